//! Bundles and files of the host as the program makes, lists and takes them.

use crate::host_files::{PAGE, at_multiples, host_file, three_containers};
use crate::places::Directory;
use crate::program::{groundswell, json, text};
use groundswell::object::decompress_bundle;

#[test]
fn the_program_makes_and_takes_bundles() {
    let directory = Directory::new("bundles");
    let file = directory.file("all.co");
    let file = file.as_str();
    let made = ["compile", "copy", "--target", "gfx90a,gfx942:xnack-,gfx950", "--emit", "object", "-o", file];
    let (report, code) = json(&[&made[..], &["--json"]].concat());
    assert_eq!(code, Some(0), "{report}");
    let targets = report["targets"].as_array().expect("a list");
    let names: Vec<&str> = targets.iter().filter_map(|one| one["target"].as_str()).collect();
    assert_eq!(names, ["gfx90a", "gfx942:xnack-", "gfx950"]);
    assert!(targets.iter().all(|one| one["instructions"].as_u64() > Some(0)), "{report}");
    let small = directory.file("small.co");
    let mut compressing = made.to_vec();
    compressing[7] = &small;
    compressing.push("--compress");
    let output = groundswell(&compressing);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let [whole, compressed] = [file, &small].map(|file| std::fs::read(file).expect("it is there"));
    assert!(decompress_bundle(&compressed).expect("a bundle") == whole);
    for file in [file, &small] {
        let output = groundswell(&["disasm", file, "--target", "gfx950"]);
        assert!(text(&output.stdout).contains("gfx950 code object"), "{}", text(&output.stdout));
    }
    let [cut, one, generic] = ["cut.co", "one.co", "generic.co"].map(|name| directory.file(name));
    std::fs::write(&cut, &compressed[..100]).expect("it can be written");
    for (file, target) in [(&one, "gfx942:xnack-"), (&generic, "gfx9-4-generic")] {
        let output = groundswell(&["compile", "copy", "--target", target, "--emit", "object", "-o", file]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    // A copy of nothing: what counts is which device it is given to.
    let args = ["--arg", "i64:0", "--arg", "i64:0", "--block", "256"];
    for (object, device) in [
        (&one, "gfx942"),
        (&one, "gfx942:xnack-"),
        (&generic, "gfx942"),
        (&generic, "gfx950:xnack+"),
        (&small, "gfx90a"),
    ] {
        let output =
            groundswell(&[&["sim", object, "--target", device, "--grid", "0,1,1"], &args[..]].concat());
        let said = text(&output.stderr);
        assert!(!said.contains("not for"), "{object} on {device}: {said}");
    }
    for (arguments, reason) in [
        (&["disasm", file][..], "choose one with --target: gfx90a, gfx942:xnack-, gfx950"),
        (&["disasm", file, "--target", "gfx942:xnack+"], "not for gfx942:xnack+"),
        (&["sim", file, "--target", "gfx906"], "not for gfx906"),
        (&["sim", &small, "--target", "gfx906"], "not for gfx906"),
        (&["sim", &cut, "--target", "gfx90a"], "the bundle is cut off"),
        (&["sim", &one, "--target", "gfx950"], "one.co has code for gfx942:xnack-, not for gfx950"),
        (&["sim", &one, "--target", "gfx942:xnack+"], "has code for gfx942:xnack-, not for gfx942:xnack+"),
        (&["disasm", &one, "--target", "gfx906"], "has code for gfx942:xnack-, not for gfx906"),
        (&["sim", &generic, "--target", "gfx90a"], "has code for gfx9-4-generic, not for gfx90a"),
        (&["compile", "copy", "--emit", "object", "--compress", "-o", "-"], "--compress goes with a bundle"),
        (&["disasm", file, "--target", "gfx1100"], "targets are gfx906, gfx908, gfx90a, gfx942, gfx950"),
        (&["run", "copy", "--target", "gfx90a,gfx942"], "run takes one target, not 2"),
        (&["compile", "copy", "--target", "gfx90a,gfx942"], "--emit asm takes one target, not 2"),
        (&["compile", "copy", "--target", "gfx90a,gfx90a", "--emit", "object", "-o", "-"], "gfx90a twice"),
    ] {
        let output = groundswell(arguments);
        let said = text(&output.stderr);
        assert!(output.status.code() != Some(0) && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn the_program_lists_and_takes_what_host_files_hold() {
    let directory = Directory::new("host-files");
    let containers = three_containers();
    let all: Vec<&[u8]> = containers.iter().map(Vec::as_slice).collect();
    let [library, out] = ["lib.so", "out.bin"].map(|name| directory.file(name));
    std::fs::write(&library, host_file(".hip_fatbin", &at_multiples(PAGE, &all))).expect("it can be written");
    for listing in [&["disasm", &library][..], &["hip", "--list", "--", &library]] {
        let mut scripts = listing.to_vec();
        scripts.insert(1, "--json");
        let (report, code) = json(&scripts);
        assert_eq!(code, Some(0), "{report}");
        let objects = report["objects"].as_array().expect("a list");
        let said = |key: &str| objects.iter().map(|one| one[key].to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(said("target"), r#""gfx90a:xnack-" "gfx90a:xnack+" "gfx942" "gfx90a" "gfx942" "gfx942""#);
        assert_eq!(said("object"), "1 2 3 4 5 6");
        assert_eq!(said("kernels"), r#"["first"] ["first"] ["first"] ["second"] ["second"] ["third"]"#);
        assert_eq!(report["objects"][3]["container"]["kind"], "compressed bundle");
        assert_eq!(report["objects"][3]["container"]["section"], ".hip_fatbin");
        assert_eq!(report["faults"], serde_json::json!([]));
        let shown = text(&groundswell(listing).stdout);
        assert!(shown.contains("6 code objects in 3 places") && shown.contains("third"), "{shown}");
    }
    // One object is chosen by chip, kernel and number.
    for (choice, head) in [
        (&["--target", "gfx90a:xnack+", "--kernel", "first"][..], "gfx90a"),
        (&["--target", "gfx942", "--kernel", "second"], "gfx942"),
        (&["--kernel", "third"], "gfx942"),
        (&["--object", "4"], "gfx90a"),
    ] {
        let output = groundswell(&[&["disasm", &library], choice].concat());
        let shown = text(&output.stdout);
        assert!(shown.starts_with(&format!("// lib.so: {head} code object")), "{choice:?}: {shown}");
        assert!(shown.contains("global_store_dword"), "{shown}");
    }
    // It runs for the first chip that has the kernel, and for one that is named.
    let arg = format!("out:{out}:4");
    for (choice, target, stored) in [
        (&["--kernel", "first"][..], "gfx90a", 7),
        (&["--kernel", "second", "--target", "gfx942"], "gfx942", 7),
        (&["--kernel", "third"], "gfx942", 9),
        (&["--object", "6"], "gfx942", 9),
    ] {
        let (report, code) =
            json(&[&["sim", &library, "--block", "1", "--arg", &arg, "--json"], choice].concat());
        assert_eq!((code, &report["target"]), (Some(0), &target.into()), "{choice:?}: {report}");
        let bytes = std::fs::read(&out).expect("it is written");
        assert_eq!(bytes, u32::to_le_bytes(stored), "{choice:?}");
    }
    let refused = |arguments: &[&str]| {
        let output = groundswell(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let said = refused(&["sim", &library]);
    assert!(
        said.contains("has 2 objects for gfx90a") && said.contains("--kernel NAME or --object N: 1, 4"),
        "{said}"
    );
    let said = refused(&["disasm", &library, "--target", "gfx950"]);
    assert!(
        said.contains("fits --target gfx950") && said.contains("code for gfx90a, gfx90a:xnack+"),
        "{said}"
    );
    let said = refused(&["sim", &library, "--kernel", "hird"]);
    assert!(said.contains("fits --kernel hird") && said.contains("in full: third"), "{said}");
    let [empty, section] = ["empty.so", "section"].map(|name| directory.file(name));
    std::fs::write(&empty, host_file(".rodata", b"nothing")).expect("it can be written");
    let output = groundswell(&["sim", &empty]);
    assert!(text(&output.stderr).contains("has no code for AMD's chips inside"), "{}", text(&output.stderr));
    // A section that was copied out of a library begins with the first of several.
    std::fs::write(&section, at_multiples(PAGE, &all)).expect("it can be written");
    assert!(text(&groundswell(&["disasm", &section]).stdout).contains("6 code objects in 3 places"));
}
