//! Inputs that are too large are rejected by their size, and large ones take no more memory or time than
//! needed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::places::Directory;
use crate::program::{command, groundswell, json, text};

/// Makes a file of a size that takes no room on the disk.
fn sparse(directory: &Directory, name: &str, bytes: u64) -> String {
    let path = directory.file(name);
    File::create(&path).and_then(|file| file.set_len(bytes)).unwrap();
    path
}

#[test]
fn files_of_more_than_the_documented_size_are_refused_before_they_are_read() {
    let directory = Directory::new("limits-size");
    let [kernel, assembly, object] = [("k.gsw", 5 << 20), ("k.s", 2049 << 20), ("k.co", 257 << 20)]
        .map(|(name, bytes)| sparse(&directory, name, bytes));
    let output = directory.file("out");
    for (arguments, said) in [
        (&["run", &kernel][..], "a text kernel may have 4194304 (4 MiB)"),
        (&["compile", "gemm", "--schedule-file", &kernel], "a schedule table may have 4194304 (4 MiB)"),
        (&["asm", &assembly, "-o", &output], "an assembler text may have 2147483648 (2048 MiB)"),
        (&["disasm", &object], "a code object may have 268435456 (256 MiB)"),
        (&["sim", &object], "a code object may have 268435456 (256 MiB)"),
    ] {
        let begin = Instant::now();
        let refused = groundswell(arguments);
        assert!(begin.elapsed() < Duration::from_secs(2), "{arguments:?} took {:?}", begin.elapsed());
        assert_eq!(refused.status.code(), Some(3), "{arguments:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(said), "{arguments:?}: {}", text(&refused.stderr));
    }
    // What has no size to ask for is not read to its end either.
    for (arguments, end) in [
        (["run", "/dev/stdin", "--json"], "and a text kernel"),
        (["disasm", "/dev/zero", "--json"], "and a code object"),
    ] {
        let zero = File::open("/dev/zero").unwrap();
        let refused = command(&arguments).stdin(zero).output().unwrap();
        assert_eq!(refused.status.code(), Some(3), "{arguments:?}: {}", text(&refused.stdout));
        assert!(text(&refused.stdout).contains(&format!("goes on, {end}")), "{}", text(&refused.stdout));
    }
}

#[test]
fn a_text_of_the_greatest_size_that_holds_nothing_is_no_strain() {
    let directory = Directory::new("limits-newlines");
    let path = directory.file("k.gsw");
    std::fs::write(&path, "\n".repeat(4 << 20)).unwrap();
    // Half a gigabyte of addresses.
    let limited = limited(500_000, &["run", &path]).output().unwrap();
    assert_eq!(limited.status.code(), Some(1), "{}", text(&limited.stderr));
    assert!(text(&limited.stderr).contains("expected `kernel`"), "{}", text(&limited.stderr));
}

/// The program with a number of kilobytes of address space.
fn limited(kilobytes: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {kilobytes}; exec \"$@\"");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_groundswell")]).args(arguments);
    // Two threads in a pool instead of one for each core, whose stacks would count.
    command.env("RAYON_NUM_THREADS", "2");
    command
}

#[test]
fn faults_are_shown_up_to_a_number_and_of_each_line_a_part() {
    let directory = Directory::new("limits-faults");
    let [source, output] = ["k.s", "k.co"].map(|name| directory.file(name));
    let mut file = String::from(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n");
    // Every second branch goes too far, and each of them says so only when all places are known.
    for _ in 0..40_000 {
        file.push_str("s_branch end\ns_nop 0\n");
    }
    file.push_str("end: s_endpgm\n");
    std::fs::write(&source, &file).unwrap();
    let begin = Instant::now();
    let refused = groundswell(&["asm", &source, "-o", &output]);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    let said = text(&refused.stderr);
    assert_eq!((refused.status.code(), said.matches("the distance of a branch").count()), (Some(1), 100));
    assert!(said.len() < 50_000 && said.contains("k.s:2:10") && said.contains("s_branch end"), "{said}");

    let wide = format!("  v_nop {} wrong {}\n", "/* x */".repeat(20_000), "y".repeat(100_000));
    std::fs::write(&source, format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n{wide}")).unwrap();
    let said = text(&groundswell(&["asm", &source, "-o", &output]).stderr);
    let widest = said.lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(220), "{widest:?} columns:\n{}", said.chars().take(3000).collect::<String>());
    assert!(said.contains(" wrong yyy") && said.contains("^^^^^"), "{said}");

    let kernel = directory.file("k.gsw");
    let names = "a, ".repeat(50_000);
    std::fs::write(&kernel, format!("kernel k {{\n  a = memory [{names}, M] global f99\n}}\n")).unwrap();
    let said = text(&groundswell(&["run", &kernel]).stderr);
    assert!(said.lines().all(|line| line.chars().count() < 220) && said.contains("k.gsw:2:"), "{said}");
}

#[test]
fn a_large_object_is_disassembled_while_it_is_written() {
    let directory = Directory::new("limits-disasm");
    let [source, object] = ["k.s", "k.co"].map(|name| directory.file(name));
    // Eight megabytes of code, of which branches take a part and go everywhere.
    let mut file = File::create(&source).unwrap();
    writeln!(file, ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\n.type k,@function\nk:").unwrap();
    for block in 0..1000 {
        let mut code = String::new();
        for at in 0..256 {
            let far = (block * 7 + at * 13) % 2000;
            code += &format!(
                "v_add_u32_e32 v{at}, v{}, v1\ns_branch {far}\ns_mov_b32 s1, 0x{block:x}12{at:02x}\n",
                (at + 1) % 256
            );
            code += "v_fma_f32 v0, v1, v2, v3\nds_read_b32 v1, v2 offset:16\n";
        }
        file.write_all(code.as_bytes()).unwrap();
    }
    writeln!(file, ".size k, . - k").unwrap();
    drop(file);
    let made = groundswell(&["asm", &source, "-o", &object]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let bytes = std::fs::metadata(&object).unwrap().len();
    assert!(bytes > 7 << 20, "{bytes}");
    // Twenty times the file, of addresses, and the program with its libraries is in it.
    let allowed = (20 * bytes / 1024) as u32;
    let mut child =
        limited(allowed, &["disasm", &object]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut lines, mut buffer) = (0, vec![0; 1 << 20]);
    let mut out = child.stdout.take().unwrap();
    loop {
        match out.read(&mut buffer).unwrap() {
            0 => break,
            count => lines += buffer[..count].iter().filter(|&&byte| byte == b'\n').count(),
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(lines > 1_280_000, "{lines} lines");
}

#[test]
fn the_json_of_a_listing_has_what_the_text_has() {
    let directory = Directory::new("limits-json");
    let object = directory.file("k.co");
    let made = groundswell(&["compile", "gemm", "--emit", "object", "-o", &object]);
    assert_eq!(made.status.code(), Some(0));
    let (report, code) = json(&["disasm", &object, "--json"]);
    let people = text(&groundswell(&["disasm", &object]).stdout);
    let (head, rest) = people.split_once('\n').unwrap();
    assert_eq!((code, head), (Some(0), "// k.co: gfx942 code object"));
    assert_eq!(report["text"], rest);
    assert_eq!((&report["target"], &report["notes"]), (&"gfx942".into(), &serde_json::json!([])));
}

/// A kernel that stops only from outside: what it does in its loop differs from round to round.
const COUNTS: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
.text
.globl k
.p2align 8
.type k,@function
k:
again:
s_add_u32 s8, s8, 1
s_branch again
.size k, . - k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 4
.amdhsa_next_free_sgpr 16
.amdhsa_accum_offset 4
.end_amdhsa_kernel
";

#[test]
fn orders_of_waves_are_asked_for_by_name() {
    let directory = Directory::new("limits-order");
    let [source, object] = ["k.s", "k.co"].map(|name| directory.file(name));
    std::fs::write(&source, COUNTS.replace("s_branch again", "s_endpgm")).unwrap();
    assert_eq!(groundswell(&["asm", &source, "-o", &object]).status.code(), Some(0));
    for order in ["round-robin", "round-robin:8", "first-to-last", "last-to-first", "random:7"] {
        let output = groundswell(&["sim", &object, "--block", "256", "--order", order]);
        assert_eq!(output.status.code(), Some(0), "{order}: {}", text(&output.stderr));
    }
    let output = groundswell(&["sim", &object, "--order", "sorted"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("last-to-first"), "{}", text(&output.stderr));
}

#[test]
fn a_kernel_that_does_not_end_says_how_to_change_both_limits() {
    let directory = Directory::new("limits-endless");
    let [source, object] = ["k.s", "k.co"].map(|name| directory.file(name));
    std::fs::write(&source, COUNTS.replace("k:\nagain", "k:\ns_mov_b32 s8, 0\nagain")).unwrap();
    assert_eq!(groundswell(&["asm", &source, "-o", &object]).status.code(), Some(0));
    for mode in [&[][..], &["--check"], &["--time"]] {
        for limit in [["--budget", "20000"], ["--timeout", "0.2"]] {
            let output = groundswell(&[&["sim", &object, "--block", "64"], mode, &limit].concat());
            let said = format!("{}{}", text(&output.stderr), text(&output.stdout));
            assert_eq!(output.status.code(), Some(1), "{mode:?}: {said}");
            assert!(said.contains("--timeout") && said.contains("did not end within"), "{mode:?}: {said}");
            assert!(limit[0] == "--timeout" || said.contains("--budget"), "{mode:?}: {said}");
            // What takes long may be right.
            let accuses = said.contains("wait for each other") || said.contains("comes to no end");
            assert!(limit[0] == "--budget" || (!accuses && said.contains("look alike")), "{mode:?}: {said}");
        }
    }
}
