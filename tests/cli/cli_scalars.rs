//! Scalar arguments as the program takes them, and as it lists them in objects.

use crate::places::Directory;
use crate::program::{groundswell, json, text};
use groundswell::object::ObjectFile;

const SCALED: &str = "kernel scaled {
  workgroup M, 64, 0
  alpha = scalar f32
  shift = scalar i32
  a = memory [M, 4] global f32
  b = memory [M, 4] global f32
  %a = read a
  %p = mul %a, alpha
  %s = cast shift f32
  %o = add %p, %s
  write %o, b
}
";

#[test]
fn the_program_takes_and_tells_scalars() {
    let directory = Directory::new("scalar_arguments");
    let file = directory.file("scaled.gsw");
    std::fs::write(&file, SCALED).unwrap();
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", &file, "-s", "M=100", "--json"];
        arguments.extend(more);
        json(&arguments)
    };
    let (report, code) = run(&["--arg", "alpha=-1.5", "--arg", "shift=-3", "--check", "--time"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["scalars"].to_string(), r#"{"alpha":-1.5,"shift":-3}"#);
    assert_eq!(report["check"]["ok"], true);
    assert_eq!(report["check"]["max_abs_err"], 0.0);
    let arguments = &report["launch"]["args"];
    assert_eq!(arguments[0].to_string(), r#"{"name":"alpha","kind":"scalar","dtype":"f32","offset":0}"#);
    assert_eq!(arguments[1].to_string(), r#"{"name":"shift","kind":"scalar","dtype":"i32","offset":4}"#);
    assert_eq!(arguments[2]["shape"].to_string(), "[100,4]");
    // Without values they are random, and the same each time.
    let (first, second) = (run(&[]), run(&["--arg", "alpha=nan"]));
    assert_eq!((first.1, second.1), (Some(0), Some(0)), "{first:?} {second:?}");
    assert!(first.0["scalars"]["alpha"].is_number() && second.0["scalars"]["alpha"].is_null());
    assert_eq!(first.0["scalars"]["shift"], second.0["scalars"]["shift"]);
    for (more, message) in [
        (["--arg", "beta=1"], "the kernel has no scalar beta"),
        (["--arg", "shift=0.5"], "--arg shift=0.5: `0.5` is not i32"),
        (["--arg", "alpha=x"], "--arg alpha=x: `x` is not f32"),
        (["--arg", "alpha"], "expected NAME=NUMBER"),
        (["-s", "4=2"], "the kernel has no symbol 4"),
    ] {
        let output = groundswell(&[&["run", &file, "-s", "M=100"][..], &more[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(text(&output.stderr).contains(message), "{more:?}: {}", text(&output.stderr));
    }
    let output = groundswell(&["run", &file, "-s", "M=100", "--arg", "alpha=0.25", "--arg", "shift=2"]);
    assert!(text(&output.stdout).contains("alpha=0.25 shift=2"), "{}", text(&output.stdout));
}

#[test]
fn sim_and_disasm_take_objects_with_scalars() {
    let directory = Directory::new("scalar_objects");
    let [source, object, out] = ["scaled.gsw", "scaled.co", "b.bin"].map(|name| directory.file(name));
    std::fs::write(&source, SCALED).unwrap();
    std::fs::write(directory.file("a.bin"), 2.0f32.to_le_bytes().repeat(256)).unwrap();
    let compiled = groundswell(&["compile", &source, "-s", "M=64", "--emit", "object", "-o", &object]);
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    let (a, b) = (format!("in:{}", directory.file("a.bin")), format!("out:{out}:1024"));
    let arguments = ["sim", &object, "--arg", "f32:-0.5", "--arg", "i32:-3", "--arg", &a, "--arg", &b];
    let ran = groundswell(&arguments);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(std::fs::read(&out).unwrap(), (-4.0f32).to_le_bytes().repeat(256));
    let listing = text(&groundswell(&["disasm", &object]).stdout);
    assert!(listing.contains("by_value") && listing.contains("alpha"), "{listing}");
    let (assembly, again) = (directory.file("scaled.s"), directory.file("again.co"));
    std::fs::write(&assembly, &listing).unwrap();
    let assembled = groundswell(&["asm", &assembly, "-o", &again]);
    assert!(assembled.status.success(), "{}", text(&assembled.stderr));
    let metadata = |file: &str| {
        let bytes = std::fs::read(file).unwrap();
        ObjectFile::parse(&bytes).unwrap().kernels[0].metadata.clone()
    };
    assert_eq!(metadata(&again), metadata(&object));
}
