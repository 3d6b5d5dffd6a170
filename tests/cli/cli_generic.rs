//! The generic target through the program.

use crate::places::Directory;
use crate::program::{groundswell, json, text};

#[test]
fn the_generic_target_runs_on_each_chip() {
    let run = |device: &str| {
        let (json, code) = json(&[
            "run",
            "gemm",
            "-s",
            "M=64",
            "-s",
            "N=64",
            "-s",
            "K=64",
            "--target",
            "gfx9-4-generic",
            "--device",
            device,
            "--check",
            "--json",
        ]);
        assert_eq!((json["target"].as_str(), code), (Some("gfx9-4-generic"), Some(0)));
        json["device"].as_str().expect("a name").to_owned()
    };
    assert_eq!(run("auto"), "simulator of gfx942");
    assert_eq!(run("sim:gfx950"), "simulator of gfx950");
    let output = groundswell(&["run", "copy", "--target", "gfx9-4-generic", "--device", "sim:gfx90a"]);
    assert!(text(&output.stderr).contains("a gfx90a does not run code for gfx9-4-generic"));
    let output = groundswell(&["compile", "copy", "--target", "gfx1100"]);
    assert!(text(&output.stderr).contains("gfx950, gfx9-4-generic"), "{}", text(&output.stderr));
    let directory = Directory::new("generic");
    let path = directory.file("copy.co");
    let output =
        groundswell(&["compile", "copy", "--target", "gfx9-4-generic", "--emit", "object", "-o", &path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed = groundswell(&["disasm", &path]);
    assert!(text(&listed.stdout).contains("gfx9-4-generic"), "{}", text(&listed.stdout));
}
