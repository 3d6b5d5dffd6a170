//! The interface as a C program sees it: compiled against the header, linked with the library, run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use groundswell_testing::skipped;

/// The folder with the library that was built with this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("this is a program");
    let deps = test.parent().expect("it is in a folder");
    deps.to_owned()
}

/// Where the compiler left the shared library: beside this test.
fn library() -> PathBuf {
    let folder = libraries();
    let named = folder.join("libgroundswell_c.so");
    let above = folder.join("../libgroundswell_c.so");
    if named.is_file() { named } else { above }
}

fn compiled(test: &str, name: &str, compiler: &str, standard: &str) -> Option<PathBuf> {
    skipped::begin();
    if Command::new(compiler).arg("--version").output().is_err() {
        skipped::note(compiler);
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).expect("the target directory can be written");
    let program = folder.join(format!("{test}-{name}-{}", standard.trim_start_matches("-std=")));
    let output = Command::new(compiler)
        .args([standard, "-O1", "-gdwarf-4", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(root.join("../include"))
        .args(if compiler.contains("++") { ["-x", "c++"] } else { ["-x", "c"] })
        .arg(root.join("tests").join(name).with_extension("c"))
        .args(["-x", "none"])
        .arg(library())
        .arg("-lm")
        .arg("-o")
        .arg(&program)
        .output()
        .expect("it was found");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn run(mut command: Command) {
    let path = library().parent().expect("it is in a folder").to_owned();
    let output =
        command.env("LD_LIBRARY_PATH", path).env("GROUNDSWELL_DEVICE", "sim").output().expect("it runs");
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("good"), "{text}{errors}");
}

#[test]
fn c_and_cpp_programs_compile_launch_check_and_see_errors() {
    for (compiler, standard) in [("clang-19", "-std=c11"), ("clang++-19", "-std=c++17")] {
        if let Some(program) = compiled("runs", "saxpy", compiler, standard) {
            run(Command::new(program));
        }
    }
}

#[test]
fn nothing_leaks_and_nothing_foreign_is_touched() {
    let Some(program) = compiled("leaks", "saxpy", "clang-19", "-std=c11") else { return };
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped::note("valgrind");
    }
    let mut command = Command::new("valgrind");
    command
        .args(["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
        .args(["--error-exitcode=9", "--quiet"])
        .arg(program);
    run(command);
}
