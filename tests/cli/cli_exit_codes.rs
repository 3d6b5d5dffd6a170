//! Exit codes of the program: 0 it worked, 1 a check failed or the input is at fault, 2 usage, 3 it cannot
//! be done here.

use std::fs::File;
use std::process::Stdio;

use crate::places::Directory;
use crate::program::{command, groundswell, json, text};

/// Arguments, what is said, and what the program ends with.
const ERRORS: &[(&[&str], &str, i32)] = &[
    (&["run", "gem"], "gem is neither a ready kernel nor a file", 1),
    (&["run", "gemm", "-s", "M=1", "-s", "M=2"], "M is bound twice, to 1 and to 2", 1),
    (&["run", "gemm", "-s", "K=0"], "K = 0 is not a size", 1),
    (&["run", "gemm", "-s", "Q=1"], "the kernel has no symbol Q", 2),
    (&["run", "gemm", "-s", "Q"], "invalid value 'Q'", 2),
    (&["run", "gemm", "--tile", "M=40"], "not a multiple of the 16", 1),
    (&["run", "gemm", "--waves", "L=2"], "there are no waves along L", 2),
    (&["run", "gemm", "--waves", "M=0"], "--waves M=0: there cannot be 0 waves along M", 2),
    (&["run", "gemm", "--waves", "M=3,N=2"], "3 waves along M are set by --waves M=3", 1),
    (&["run", "gemm", "--waves", "M=8,N=8"], "8 waves along N are set by --waves N=8", 3),
    (&["run", "gemm", "--waves", "M=1000000"], "1000000 waves along M are set by --waves M=1000000", 1),
    (&["run", "gemm", "--tile", "M=48"], "2 waves along M are the default", 1),
    (&["run", "copy", "--waves", "N=7"], "7 waves along N are set by --waves N=7", 1),
    (&["run", "gemm", "--tile", "Q=3"], "--tile Q=3 sets it", 2),
    (&["run", "gemm", "--dynamic", "Q"], "--dynamic Q leaves it open", 2),
    (&["run", "gemm", "--dynamic", "BLOCK_M"], "BLOCK_M is left open by --dynamic BLOCK_M", 1),
    (&["run", "gemm", "--dynamic", "BLOCK_K"], "BLOCK_K is left open by --dynamic BLOCK_K", 1),
    (&["run", "copy", "--dynamic", "BLOCK_N"], "1 wave along N is the default", 1),
    (
        &["run", "examples/gemm.gsw", "-s", "M=64", "-s", "N=64", "-s", "K=64", "--dynamic", "BLOCK_M"],
        "BLOCK_M is left open by --dynamic BLOCK_M",
        1,
    ),
    (&["run", "gemm", "--waves", "M=64"], "2 waves along N are the default", 3),
    (&["run", "gemm", "--dtype", "i32"], "--dtype i32 is asked for", 1),
    (&["run", "gemm", "--dtype", "f8"], "f8 is not a dtype", 2),
    (&["run", "gemm", "--out-dtype", "f8"], "--out-dtype f8: f8 is not a dtype", 2),
    (&["run", "softmax", "--out-dtype", "f16"], "softmax has no output whose dtype is chosen", 1),
    (&["run", "gemm", "--dtype", "i32"], "no matrix instruction multiplies i32", 1),
    (&["run", "gemm", "--mma", "8x8"], "8x8 is not a matrix instruction", 2),
    (&["run", "gemm", "--target", "gfx1100"], "gfx1100 is not a known target", 2),
    (&["run", "gemm", "--target", "gfx942:xnack"], "\"xnack\" is not a feature of a target id", 2),
    (&["run", "gemm_f8_scaled", "--target", "gfx908"], "gfx908 has no matrix instruction of 16x16", 3),
    (&["run", "gemm", "--waves", "M=5,N=5", "--tile", "M=160,N=160"], "25 waves", 3),
    (&["run", "gemm", "--tile", "K=2048"], "LDS", 3),
    (&["run", "gemm", "--device", "hip:0"], "HIP", 3),
    (&["run", "gemm", "--device", "gpu"], "`gpu` is not a device", 2),
    (&["run", "gemm", "--schedule", "modulo", "--pingpong"], "--pingpong goes with --schedule prefetch", 2),
    (&["run", "gemm", "--schedule", "manual"], "gemm is a ready kernel without a schedule", 2),
    (&["run", "gemm", "--time", "--chip", "MI99"], "MI300X (gfx942)", 2),
    (&["run", "gemm", "--time", "--chip", "MI210"], "a MI210 is a gfx90a, and the code is for gfx942", 2),
    (&["run", "gemm", "--time", "--clock", "0"], "clocks are 1 to 10000 MHz", 2),
    (&["run", "gemm", "--time", "--clock", "1e300"], "clocks are 1 to 10000 MHz", 2),
    (&["run", "gemm", "--time", "--clock", "NaN"], "clocks are 1 to 10000 MHz", 2),
    (&["run", "gemm", "--time", "--clock", "fast"], "expected a number of MHz", 2),
    (&["run", "gemm", "--clock", "1000"], "--time", 2),
    (&["run", "examples/gemm.gsw"], "has no", 1),
    (&["run", "examples/gemm.gsw", "--mma", "16x16"], "choose variants of ready kernels", 2),
    (&["run", "examples/gemm.gsw", "--schedule", "manual"], "examples/gemm.gsw holds no schedule", 1),
    (&["disasm", "Cargo.toml"], "cannot disassemble Cargo.toml", 1),
    (&["disasm", "no/such/file"], "cannot read no/such/file", 1),
    (&["sim", "Cargo.toml"], "cannot load Cargo.toml", 1),
    (&["asm", "Cargo.toml", "-o", "no/such/place"], "cannot write no/such/place", 3),
    (&["bench", "gem"], "gem is neither", 1),
    (&["bench", "gemm", "--target", "gfx1100"], "gfx1100 is not a known target", 2),
    (&["frobnicate"], "unrecognized subcommand", 2),
    (&[], "", 2),
];

#[test]
fn errors_are_one_json_object_and_their_exit_code_says_whose_turn_it_is() {
    for (arguments, message, expected) in ERRORS {
        let (report, code) = json(&[arguments, &["--json"][..]].concat());
        assert_eq!(code, Some(*expected), "{arguments:?}: {report}");
        let error = &report["error"];
        let said = format!("{}{}{}", error["message"], error["notes"], error["help"]).replace("\\\"", "\"");
        assert!(said.contains(message), "{arguments:?} says {said:?}");
        assert_eq!(error["kind"] == "usage", *expected == 2, "{arguments:?}: {report}");
        let output = groundswell(arguments);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*expected), "{arguments:?}: {shown}");
        assert!(!shown.contains("panicked") && output.stdout.is_empty(), "{arguments:?}: {shown}");
        assert!(!shown.contains("src/"), "{arguments:?} shows a line of the program: {shown}");
    }
    let (report, code) = json(&["compile", "gemm", "--emit", "object", "--json"]);
    assert_eq!((code, &report["error"]["message"]), (Some(2), &"a code object is not text".into()));
}

#[test]
fn help_of_the_program_and_of_every_verb_lists_the_exit_codes() {
    for verb in ["list", "run", "compile", "sim", "asm", "disasm", "bench"] {
        let [long, short] = [groundswell(&[verb, "--help"]), groundswell(&["help", verb])];
        assert_eq!((long.status.code(), short.status.code()), (Some(0), Some(0)), "{verb}");
        assert_eq!(long.stdout, short.stdout, "{verb}");
        let shown = text(&long.stdout);
        assert!(shown.contains("Exit codes:\n  0  it worked") && shown.contains("\n  3  "), "{shown}");
    }
    for arguments in [&["--help"][..], &["help"]] {
        let output = groundswell(arguments);
        assert!(text(&output.stdout).contains("Exit codes:"), "{arguments:?}");
        assert_eq!(output.status.code(), Some(0));
    }
    assert_eq!(groundswell(&["help", "frobnicate"]).status.code(), Some(2));
}

#[test]
fn chip_and_clock_are_judged_before_anything_is_simulated() {
    let directory = Directory::new("codes-chip");
    let [object, output] = ["copy.co", "out.bin"].map(|name| directory.file(name));
    let sizes = ["-s", "M=64", "-s", "N=256"];
    let made = groundswell(&[&["compile", "copy", "--emit", "object", "-o", &object][..], &sizes].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    std::fs::write(&output, "before").unwrap();
    let args =
        ["--arg", &format!("out:{output}:65536"), "--arg", &format!("out:{}:65536", directory.file("b"))];
    for wrong in [["--chip", "MI210"], ["--chip", "MI99"], ["--clock", "-5"], ["--clock", "20000"]] {
        let sim = [&["sim", &object, "--block", "256", "--time"], &wrong[..], &args].concat();
        assert_eq!(groundswell(&sim).status.code(), Some(2), "{wrong:?}");
        // What is simulated writes its buffers first.
        assert_eq!(std::fs::read(&output).unwrap(), b"before", "{wrong:?}");
    }
}

#[test]
fn standard_output_that_cannot_be_written_is_told() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("Linux has it"));
    let output = command(&["list"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("cannot write standard output"), "{}", text(&output.stderr));
    let output = command(&["compile", "copy", "-o", "-"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn compile_tells_what_a_launch_takes_as_run_does() {
    for kernel in [&["gemm"][..], &["gemm", "--dynamic", "M,K"], &["copy"]] {
        let (run, _) = json(&[&["run"], kernel, &["--json"]].concat());
        let (compiled, code) = json(&[&["compile"], kernel, &["--json"]].concat());
        assert_eq!(code, Some(0), "{compiled}");
        assert_eq!(compiled["launch"], run["launch"], "{kernel:?}");
        let launch = &compiled["launch"];
        assert!(launch["grid"][0].is_u64() && launch["block"][0].is_u64(), "{launch}");
        assert_eq!(launch["lds_bytes"], run["lds_bytes"]);
    }
    // A text kernel has no default that an open size could have.
    let open = ["compile", "examples/gemm.gsw", "--dynamic", "M", "-s", "N=33", "-s", "K=104", "--json"];
    let tile = ["--tile", "M=32,N=32,K=32", "--waves", "M=2,N=2"];
    let (report, code) = json(&[&open[..], &tile].concat());
    assert_eq!(code, Some(0), "{report}");
    assert!(report["launch"]["grid"].is_null() && report["launch"]["block"][0] == 256, "{report}");
}
