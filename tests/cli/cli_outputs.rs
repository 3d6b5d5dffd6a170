//! Files that the program writes: links and devices stay what they are, files are written whole or not at
//! all, and no file is named twice.

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::places::Directory;
use crate::program::{command, groundswell, json, text};

const COMPILE: [&str; 6] = ["compile", "copy", "-s", "M=64", "-s", "N=256"];

/// Compiles something small to a file.
fn write_to(path: &str) -> Output {
    groundswell(&[&COMPILE[..], &["-o", path]].concat())
}

/// What it writes.
fn expected() -> Vec<u8> {
    let output = groundswell(&COMPILE);
    assert_eq!(output.status.code(), Some(0));
    output.stdout
}

fn assert_worked(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn tool(command: &str, arguments: &[&str]) -> bool {
    Command::new(command).args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn a_device_stays_a_device() {
    let directory = Directory::new("outputs-device");
    let mut null = directory.file("null");
    if !tool("mknod", &[&null, "c", "1", "3"]) {
        // Making one is for root. For others the one of the system is safe: they cannot replace it.
        assert_ne!(std::fs::metadata(&directory.0).unwrap().uid(), 0, "root has to be able to make devices");
        null = "/dev/null".to_owned();
    }
    assert_worked(&write_to(&null));
    let (report, code) = json(&[&COMPILE[..], &["-o", &null, "--json"]].concat());
    assert_eq!((code, &report["output"]), (Some(0), &null.as_str().into()));
    // A device may be written by all.
    let two = ["run", "gemm", "--time", "--trace", &null, "--page", &null];
    assert_worked(&groundswell(&two));
    assert!(std::fs::metadata(&null).unwrap().file_type().is_char_device());
}

#[test]
fn a_fifo_carries_what_is_written() {
    let directory = Directory::new("outputs-fifo");
    let fifo = directory.file("fifo");
    assert!(tool("mkfifo", &[&fifo]));
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo).unwrap()
    });
    assert_worked(&write_to(&fifo));
    assert!(reader.join().unwrap() == expected());
    assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
    let two = groundswell(&["run", "gemm", "--time", "--trace", &fifo, "--page", &fifo]);
    assert_eq!(two.status.code(), Some(2));
}

#[test]
fn names_of_standard_output_are_standard_output() {
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let output = groundswell(&[&COMPILE[..], &["-o", name]].concat());
        assert_worked(&output);
        assert!(output.stdout == expected(), "{name}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("bytes"), "what is said goes to standard error");
        let (report, code) = json(&[&COMPILE[..], &["-o", name, "--json"]].concat());
        assert_eq!(code, Some(2), "{name}: {report}");
    }
    assert!(!Path::new("-").exists());
    // A file that others write to as well: neither replaced nor cut.
    let directory = Directory::new("outputs-standard");
    let log = directory.file("log");
    for name in ["-", "/dev/stdout", &log] {
        let script = format!("{{ echo before; \"$@\" -o {name}; echo after; }} > {log}");
        let program = env!("CARGO_BIN_EXE_groundswell");
        let shell = Command::new("sh").args(["-c", &script, "sh", program]).args(COMPILE).output().unwrap();
        assert_worked(&shell);
        let written = std::fs::read(&log).unwrap();
        assert!(written == [b"before\n", &expected()[..], b"after\n"].concat(), "{name}");
    }
}

#[test]
fn descriptors_of_the_caller_are_written() {
    let directory = Directory::new("outputs-descriptor");
    let log = directory.file("log");
    let program = env!("CARGO_BIN_EXE_groundswell");
    let run = |script: &str| {
        let output = Command::new("bash").args(["-c", script, "sh", program]).args(COMPILE).output().unwrap();
        assert_worked(&output);
        output
    };
    run(&format!("echo before > {log}; \"$@\" -o /dev/fd/3 3>> {log}"));
    assert!(std::fs::read(&log).unwrap() == [b"before\n", &expected()[..]].concat());
    let piped = run("\"$@\" -o >(cat >&2) > /dev/null; wait $!");
    assert!(piped.stderr == expected(), "{}", text(&piped.stderr));
}

#[test]
fn a_regular_file_keeps_its_mode_and_its_links() {
    let directory = Directory::new("outputs-regular");
    let [file, link, other, dangling] =
        ["file", "link", "other", "dangling"].map(|name| directory.file(name));
    std::fs::write(&file, "before").unwrap();
    for bits in [0o600, 0o640, 0o755, 0o666] {
        std::fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
        assert_worked(&write_to(&file));
        assert_eq!(mode(&file), bits);
    }
    let number = std::fs::metadata(&file).unwrap().ino();
    symlink("file", &link).unwrap();
    assert_worked(&write_to(&link));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    assert!(std::fs::read(&file).unwrap() == expected(), "what it leads to is written");
    assert_ne!(std::fs::metadata(&file).unwrap().ino(), number, "there is the old file or the new one");

    std::fs::write(&file, "before").unwrap();
    std::fs::hard_link(&file, &other).unwrap();
    assert_worked(&write_to(&file));
    assert!(std::fs::read(&other).unwrap() == expected(), "both names have the new content");
    assert_eq!(std::fs::metadata(&file).unwrap().nlink(), 2);

    symlink("target", &dangling).unwrap();
    assert_worked(&write_to(&dangling));
    assert!(std::fs::symlink_metadata(&dangling).unwrap().is_symlink());
    assert!(std::fs::read(directory.file("target")).unwrap() == expected());
    assert_eq!(directory.entries(), ["dangling", "file", "link", "other", "target"], "nothing else is left");
}

#[test]
fn a_read_only_file_is_refused_before_work_starts() {
    let directory = Directory::new("outputs-read-only");
    let file = directory.file("file");
    std::fs::write(&file, "before").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let output = write_to(&file);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("the file is read-only") && said.contains("chmod u+w"), "{said}");
    // A kernel that does not exist would be reported first if work had started.
    let early = groundswell(&["run", "no_kernel", "--time", "--page", &file]);
    assert!(text(&early.stderr).contains("read-only"), "{}", text(&early.stderr));
    assert_eq!((std::fs::read(&file).unwrap(), mode(&file)), (b"before".to_vec(), 0o444));
}

#[test]
fn no_file_is_named_twice() {
    let directory = Directory::new("outputs-twice");
    let name = |name: &str| directory.file(name);
    let [a, symbolic, hard, new, kernel, upper] = ["a", "s", "h", "new", "k.gsw", "sub/../new"].map(name);
    std::fs::write(&a, "before").unwrap();
    std::fs::create_dir(name("sub")).unwrap();
    symlink("a", &symbolic).unwrap();
    std::fs::hard_link(&a, &hard).unwrap();
    std::fs::copy("examples/gemm.gsw", &kernel).unwrap();
    let before = directory.entries();
    let time = |first: &str, second: &str| {
        groundswell(&["run", "gemm", "--time", "--trace", first, "--page", second])
    };
    let (out, io, input) = (format!("out:{a}:64"), format!("io:{hard}"), format!("in:{symbolic}"));
    let sim = |first: &str, second: &str| groundswell(&["sim", "no.co", "--arg", first, "--arg", second]);
    for (what, output) in [
        ("one name", time(&new, &new)),
        ("two names of a file that is not there yet", time(&new, &upper)),
        ("a file and a symbolic link", time(&a, &symbolic)),
        ("a file and a hard link", time(&hard, &a)),
        ("standard output", time("-", "/dev/stdout")),
        ("two buffers", sim(&out, &io)),
        ("input and output", sim(&input, &out)),
        ("output and input", sim(&io, &input)),
        ("a kernel and its object", groundswell(&["compile", &kernel, "-o", &kernel])),
        ("a text and its object", groundswell(&["asm", &a, "-o", &symbolic])),
        ("a table", groundswell(&["compile", "gemm", "--schedule-file", &a, "-o", &hard])),
        ("an object and its page", groundswell(&["sim", &a, "--time", "--page", &a])),
    ] {
        assert_eq!(output.status.code(), Some(2), "{what}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("own"), "{what}: {}", text(&output.stderr));
    }
    assert_eq!(std::fs::read(&a).unwrap(), b"before");
    assert_eq!(directory.entries(), before);
}

/// A kernel that does nothing and takes what it is given.
const NOTHING: &str = "
    .amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
    .globl nothing
    .p2align 8
    .type nothing,@function
nothing:
    s_endpgm
    .size nothing, . - nothing
    .rodata
    .p2align 6
    .amdhsa_kernel nothing
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_next_free_vgpr 1
      .amdhsa_next_free_sgpr 2
      .amdhsa_accum_offset 4
    .end_amdhsa_kernel
";

fn object(directory: &Directory) -> String {
    let [source, object] = ["nothing.s", "nothing.co"].map(|name| directory.file(name));
    std::fs::write(&source, NOTHING).unwrap();
    assert_worked(&groundswell(&["asm", &source, "-o", &object]));
    std::fs::remove_file(source).unwrap();
    object
}

#[test]
fn buffers_go_to_standard_output_and_to_fifos() {
    let directory = Directory::new("outputs-sim");
    let object = object(&directory);
    let input = directory.file("in");
    std::fs::write(&input, [7; 64]).unwrap();
    let output = groundswell(&["sim", &object, "--arg", &format!("io:{input}"), "--arg", "out:-:16"]);
    assert_worked(&output);
    assert_eq!(output.stdout, [0; 16]);
    assert!(text(&output.stderr).contains("wave instructions"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&input).unwrap(), [7; 64]);
    let fifo = directory.file("fifo");
    assert!(tool("mkfifo", &[&fifo]));
    let mut child =
        command(&["sim", &object, "--arg", &format!("out:{fifo}:16")]).stdout(Stdio::null()).spawn().unwrap();
    let mut written = Vec::new();
    File::open(&fifo).unwrap().read_to_end(&mut written).unwrap();
    assert_eq!((child.wait().unwrap().code(), written), (Some(0), vec![0; 16]));
}

/// The signals that children of this process ignore (proc(5)).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn a_signal_leaves_no_part_of_a_file() {
    let directory = Directory::new("outputs-signal");
    let object = object(&directory);
    std::fs::write(directory.file("out"), "before").unwrap();
    let argument = format!("out:{}:200000000", directory.file("out"));
    for (signal, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)] {
        // What is ignored here, as under nohup, is ignored there.
        if ignored_signals() >> (number - 1) & 1 == 1 {
            continue;
        }
        let mut caught = false;
        // The moment may be missed on a busy machine.
        for _ in 0..20 {
            let mut child =
                command(&["sim", &object, "--arg", &argument]).stdout(Stdio::null()).spawn().unwrap();
            let partial = || directory.entries().iter().any(|name| name.ends_with(".partial"));
            while child.try_wait().unwrap().is_none() && !partial() {
                std::thread::sleep(Duration::from_micros(200));
            }
            let sent = tool("sh", &["-c", &format!("kill -{signal} {}", child.id())]);
            let status = child.wait().unwrap();
            assert_eq!(directory.entries(), ["nothing.co", "out"], "{signal}");
            if sent && !status.success() {
                assert_eq!(status.code(), None, "the signal ends it");
                // It may come when the file is complete and the program about to end.
                let length = std::fs::metadata(directory.file("out")).unwrap().len();
                assert!([6, 200_000_000].contains(&length), "{signal}: the file has {length} bytes");
                caught = length == 6;
            }
            if caught {
                break;
            }
            std::fs::write(directory.file("out"), "before").unwrap();
        }
        assert!(caught, "never in time for {signal}");
    }
}
