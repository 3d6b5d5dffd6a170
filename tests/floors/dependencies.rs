//! How many crates have to be built for this crate.

use std::process::Command;

use groundswell_testing::places::root;

/// Crates that a build compiles, this one included: whatever it links, procedural macros, and what build
/// scripts need. Crates of other platforms and of tests do not count.
fn crates(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "groundswell",
            "--offline",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--no-dedupe",
        ])
        .args(features)
        .current_dir(root())
        .output()
        .expect("cargo runs the tests, so it is there");
    let tree = String::from_utf8(output.stdout).expect("names are text");
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut crates: Vec<String> = tree.lines().map(name).collect();
    crates.sort();
    crates.dedup();
    assert!(
        crates.iter().any(|name| name.starts_with("groundswell ")),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    crates
}

#[test]
fn the_library_needs_at_most_90_crates_the_program_125_and_launching_20() {
    let only = |features| ["--no-default-features", "--features", features];
    for (features, most) in [(&only("compiler")[..], 90), (&[], 125), (&only("runtime"), 20)] {
        let crates = crates(features);
        assert!(crates.len() <= most, "{features:?}: {} crates, at most {most}: {crates:#?}", crates.len());
    }
}
