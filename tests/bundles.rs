//! Objects for several chips in one file: Clang's offload bundler reads what is written here and the other
//! way round, devices take the object that runs on them, and broken files are refused.

mod common;

use common::oracle::Workspace;
use common::program::{Directory, groundswell, json, text};
use groundswell::compile::Bundle;
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::object::{
    BundleEntry, BundleError, MAX_OBJECT_BYTES, compress_bundle, decompress_bundle, object_for, read_bundle,
    write_bundle,
};
use groundswell::prelude::*;
use groundswell::simulator::Simulator;
use groundswell::target::TargetId;

const CHIPS: [&str; 4] = ["gfx90a", "gfx942:xnack+", "gfx942:xnack-", "gfx950"];

fn ids(names: &[&str]) -> Vec<TargetId> {
    names.iter().map(|name| name.parse().expect("a target id")).collect()
}

fn options() -> Options {
    let sizes = [("M", 20), ("N", 70), ("BLOCK_M", 16), ("BLOCK_N", 64)];
    sizes.iter().fold(Options::new(Target::GFX90A), |options, &(name, size)| options.set(name, size))
}

fn bundle(names: &[&str]) -> Bundle {
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    kernel.compile_for(&options(), &ids(names)).expect("all of them copy")
}

fn device(id: &str) -> Device {
    Device::simulator(id.parse::<TargetId>().expect("a target id"))
}

#[test]
fn clang_unbundles_what_is_bundled_here() {
    let Some(space) = Workspace::with_tools(&["clang-offload-bundler-19"]) else { return };
    let bundle = bundle(&CHIPS);
    space.write("all", bundle.to_bytes());
    let listed = space.run("clang-offload-bundler-19 --list --type=o --input=all");
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let mut expected = CHIPS.map(|id| format!("hipv4-amdgcn-amd-amdhsa--{id}")).to_vec();
    expected.push("host-x86_64-unknown-linux-gnu-".to_owned());
    expected.sort_unstable();
    assert_eq!(listed, expected);
    // LLVM 19 lists an object for gfx950, but takes none out, because it does not know the chip.
    for (id, executable) in CHIPS[..3].iter().zip(bundle.executables()) {
        let target = format!("hipv4-amdgcn-amd-amdhsa--{id}");
        space.run(&format!(
            "clang-offload-bundler-19 --unbundle --type=o --targets={target} --input=all --output=one"
        ));
        assert!(space.read("one") == executable.object(), "{id}");
    }
}

#[test]
fn what_clang_bundles_is_read() {
    let Some(space) = Workspace::with_tools(&["clang-offload-bundler-19"]) else { return };
    let bundle = bundle(&["gfx90a", "gfx942"]);
    space.write("empty", []);
    for (name, executable) in ["first", "second"].iter().zip(bundle.executables()) {
        space.write(name, executable.object());
    }
    for (kind, alignment) in [("hipv4", 4096), ("hip", 1)] {
        space.run(&format!(
            "clang-offload-bundler-19 --type=o --bundle-align={alignment} --input=empty --input=first \
             --input=second --output=all --targets=host-x86_64-unknown-linux-gnu,\
             {kind}-amdgcn-amd-amdhsa--gfx90a,{kind}-amdgcn-amd-amdhsa--gfx942"
        ));
        let bytes = space.read("all");
        let read = read_bundle(&bytes).expect("whole").expect("a bundle");
        let expected: Vec<_> = bundle.executables().iter().map(|of| (of.target_id(), of.object())).collect();
        assert_eq!(read.iter().map(|entry| (entry.target, entry.bytes)).collect::<Vec<_>>(), expected);
        if alignment == 4096 {
            assert!(bytes == bundle.to_bytes(), "the same bundle in other bytes");
        }
    }
}

#[test]
fn clang_takes_apart_what_is_compressed_here() {
    let Some(space) = Workspace::with_tools(&["clang-offload-bundler-19"]) else { return };
    let bundle = bundle(&CHIPS[..3]);
    let compressed = bundle.to_compressed_bytes().expect("small");
    assert!(compressed.len() * 2 < bundle.to_bytes().len(), "{} bytes", compressed.len());
    space.write("all", &compressed);
    for (id, executable) in CHIPS.iter().zip(bundle.executables()) {
        let target = format!("hipv4-amdgcn-amd-amdhsa--{id}");
        space.run(&format!(
            "clang-offload-bundler-19 --unbundle --type=o --targets={target} --input=all --output=one"
        ));
        assert!(space.read("one") == executable.object(), "{id}");
    }
}

/// LLVM 19 writes version 2 with zstd. The other versions hold the same in other numbers, and it reads the
/// first.
#[test]
fn what_clang_compresses_is_read() {
    let Some(space) = Workspace::with_tools(&["clang-offload-bundler-19"]) else { return };
    let bundle = bundle(&["gfx90a", "gfx942"]);
    space.write("empty", []);
    for (name, executable) in ["first", "second"].iter().zip(bundle.executables()) {
        space.write(name, executable.object());
    }
    let whole = bundle.to_bytes();
    for level in [1, 3, 19] {
        space.run(&format!(
            "clang-offload-bundler-19 --type=o --bundle-align=4096 --compress --compression-level={level} \
             --input=empty --input=first --input=second --output=all \
             --targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a,\
             hipv4-amdgcn-amd-amdhsa--gfx942"
        ));
        let second = space.read("all");
        assert_eq!(second[..8], *b"CCOB\x02\0\x01\0", "version 2, zstd");
        let (hash, data) = (&second[16..24], &second[24..]);
        let size = whole.len() as u32;
        let first = [b"CCOB\x01\0\x01\0", &size.to_le_bytes()[..], hash, data].concat();
        let end = 32 + data.len() as u64;
        let third = [b"CCOB\x03\0\x01\0", &end.to_le_bytes()[..], &u64::from(size).to_le_bytes(), hash, data]
            .concat();
        for compressed in [&first, &second, &third] {
            assert!(decompress_bundle(compressed).expect("it is whole") == whole, "level {level}");
            for executable in bundle.executables() {
                Simulator::new(executable.target_id()).load(compressed).expect("it takes its object");
            }
        }
        // Sections of libraries hold one after the other; the head says where the first one ends.
        for mut compressed in [second, third] {
            compressed.extend(b"CCOB, or something else");
            assert!(decompress_bundle(&compressed).expect("the end is known") == whole);
        }
        space.write("first_version", &first);
        let listed = space.run("clang-offload-bundler-19 --list --type=o --input=first_version");
        assert!(listed.contains("hipv4-amdgcn-amd-amdhsa--gfx942"), "{listed}");
    }
}

/// What is cut off, changed or claims to be larger is an error, and takes no more memory than it may.
#[test]
fn broken_compressed_bundles_are_refused() {
    let entries = ids(&["gfx942", "gfx950"]).into_iter().map(|target| BundleEntry { target, bytes: b"code" });
    let whole = write_bundle(&entries.collect::<Vec<_>>());
    let zlib = compress_bundle(&whole).expect("small");
    assert_eq!(decompress_bundle(&zlib).expect("it is whole"), whole);
    assert_eq!(decompress_bundle(&whole).expect("it is not compressed"), whole);
    let mut compressed = vec![zlib];
    if let Some(space) = Workspace::with_tools(&["clang-offload-bundler-19"]) {
        space.write("empty", []);
        space.write("code", b"code");
        space.run(
            "clang-offload-bundler-19 --type=o --compress --input=empty --input=code --output=all \
             --targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx942",
        );
        compressed.push(space.read("all"));
    }
    for compressed in compressed {
        for length in 4..compressed.len() {
            let error = decompress_bundle(&compressed[..length]).expect_err("it is cut off");
            assert_eq!(error, BundleError::CutOff, "{length} bytes");
        }
        let intact = decompress_bundle(&compressed).expect("it is whole").into_owned();
        for at in 4..compressed.len() {
            for change in [1, 0x80, 0xff] {
                let mut broken = compressed.clone();
                broken[at] ^= change;
                // A checksum of the stream's own is not looked at, and what it says of its size is a hint.
                if let Ok(bundle) = decompress_bundle(&broken) {
                    assert!(bundle == intact, "byte {at}: another bundle");
                }
            }
        }
        for (at, value, expected) in [
            (4, 0, BundleError::Version { version: 0 }),
            (4, 4, BundleError::Version { version: 4 }),
            (6, 2, BundleError::Method { method: 2 }),
            (16, compressed[16] ^ 1, BundleError::Damaged),
        ] {
            let mut broken = compressed.clone();
            broken[at] = value;
            assert_eq!(decompress_bundle(&broken), Err(expected));
        }
        // More and less than there is, and more than there may be.
        let size = intact.len() as u32;
        for (claimed, expected) in [
            (size - 1, BundleError::Damaged),
            (size + 1, BundleError::Damaged),
            (0, BundleError::Damaged),
            (u32::MAX, BundleError::TooLarge { bytes: u32::MAX.into() }),
        ] {
            let mut broken = compressed.clone();
            broken[12..16].copy_from_slice(&claimed.to_le_bytes());
            assert_eq!(decompress_bundle(&broken), Err(expected), "{claimed} bytes");
        }
    }
    let bomb = compress_bundle(&vec![0; MAX_OBJECT_BYTES]).expect("as large as it may be");
    let mut small = bomb.clone();
    small[12..16].copy_from_slice(&1000u32.to_le_bytes());
    assert_eq!(decompress_bundle(&small), Err(BundleError::Damaged));
    let huge = vec![0; MAX_OBJECT_BYTES + 1];
    assert_eq!(compress_bundle(&huge), Err(BundleError::TooLarge { bytes: huge.len() as u64 }));
}

#[test]
fn a_device_takes_what_runs_on_it() {
    let bundle = bundle(&CHIPS);
    // Where a device leaves XNACK open, it is off.
    for (id, taken) in
        [("gfx90a", 0), ("gfx942:xnack+", 1), ("gfx942:sramecc+:xnack-", 2), ("gfx942", 2), ("gfx950", 3)]
    {
        let device = device(id);
        let executable = device.pick(&bundle).expect("there is one");
        assert_eq!(executable.target_id(), bundle.executables()[taken].target_id(), "{id}");
        let input = Tensor::random(&[20, 70], F32, 3).expect("small");
        let buffers = [&input, &Tensor::zeros(&[20, 70], F32).expect("small")]
            .map(|tensor| device.upload_tensor(tensor).expect("fits"));
        device.launch(executable).buffer(&buffers[0]).buffer(&buffers[1]).run().expect("it runs");
        assert_eq!(buffers[1].read_bytes(), Ok(input.to_bytes()), "{id}");
        // The bytes alone are as good.
        let all = bundle.to_bytes();
        assert!(object_for(&all, device.target_id()) == Ok(executable.object()), "{id}");
        Simulator::new(device.target_id()).load(&all).expect("it takes its object");
    }
}

#[test]
fn a_chip_without_an_object_is_told_what_there_is() {
    let bundle = bundle(&["gfx942:xnack-", "gfx950"]);
    let refused = |id: &str| {
        let fault = device(id).pick(&bundle).expect_err("there is none").to_string();
        assert!(fault.contains(&format!("the bundle is for gfx942:xnack-, gfx950, not for {id}")), "{fault}");
        let error = Simulator::new(ids(&[id])[0]).load(&bundle.to_bytes()).expect_err("there is none");
        let text = error.to_string();
        assert!(text.contains(&format!("has code for gfx942:xnack-, gfx950, not for {id}")), "{text}");
    };
    ["gfx908", "gfx90a", "gfx942:xnack+"].into_iter().for_each(refused);
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let fault = kernel.compile_for(&options(), &[]).expect_err("no target");
    assert_eq!(fault.message, "a bundle for no target");
    let fault = kernel.compile_for(&options(), &ids(&["gfx950", "gfx90a", "gfx950"])).expect_err("twice");
    assert_eq!(fault.message, "a bundle with gfx950 twice");
    let fault = kernel.compile_for(&options(), &ids(&["gfx950:xnack-", "gfx950"])).expect_err("unclear");
    assert_eq!(fault.message, "a bundle with both gfx950:xnack- and gfx950");
    let product = Gemm::any_shape().matrix(Mma::F32_16x16x16_F16).kernel().expect("a kernel");
    let sizes = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]).map(|symbol| (symbol, 64));
    let options = Options::new(Target::GFX90A);
    let options = sizes.iter().fold(options, |options, &(symbol, size)| options.set(symbol, size));
    let fault = product.compile_for(&options, &ids(&["gfx942", "gfx906"])).expect_err("no code for it");
    assert!(fault.to_string().contains("gfx906"), "{fault}");
}

/// Every prefix, and every byte of the head changed.
#[test]
fn broken_bundles_are_refused() {
    let entries = ["one", "two!"].map(str::as_bytes);
    let entries: Vec<_> = ids(&["gfx942", "gfx950"])
        .into_iter()
        .zip(entries)
        .map(|(target, bytes)| BundleEntry { target, bytes })
        .collect();
    let whole = write_bundle(&entries);
    assert_eq!(read_bundle(&whole), Ok(Some(entries)));
    for length in 24..whole.len() {
        assert_eq!(read_bundle(&whole[..length]), Err(BundleError::CutOff), "{length} bytes");
    }
    for length in 0..24 {
        assert_eq!(read_bundle(&whole[..length]), Ok(None), "{length} bytes");
    }
    assert_eq!(read_bundle(&write_bundle(&[])), Err(BundleError::Empty));
    let twice = compress_bundle(&compress_bundle(&whole).expect("small")).expect("small");
    assert_eq!(read_bundle(&decompress_bundle(&twice).expect("once")), Err(BundleError::Compressed));
    let head = whole.iter().rposition(|&byte| byte == b'o').expect("an object") / 2;
    for at in 24..head.min(400) {
        for change in [1, 0x80, 0xff] {
            let mut broken = whole.clone();
            broken[at] ^= change;
            for entry in read_bundle(&broken).into_iter().flatten().flatten() {
                assert!(entry.bytes.len() <= whole.len(), "{at}");
            }
        }
    }
}

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
