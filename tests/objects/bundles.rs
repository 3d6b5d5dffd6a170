//! Objects for several chips in one file: Clang's offload bundler reads what is written here and the other
//! way round, devices take the object that runs on them, and broken files are refused.

use groundswell::compile::Bundle;
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::object::{
    BundleEntry, BundleError, ContainerKind, DeviceCode, HostFault, MAX_OBJECT_BYTES, compress_bundle,
    decompress_bundle, object_for, read_bundle, write_bundle,
};
use groundswell::prelude::*;
use groundswell::simulator::Simulator;
use groundswell::target::TargetId;
use groundswell_testing::host_files::{PAGE, at_multiples, host_file, storing, three_containers};
use groundswell_testing::oracle::Workspace;

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
fn device_code_inside_of_host_files_is_found() {
    let [plain, compressed, bare] = three_containers();
    let all = [&plain[..], &compressed, &bare];
    // In a section for device code every eighth byte may be the beginning, elsewhere every page is one for
    // all.
    for (section, alignment, named) in
        [(".hip_fatbin", PAGE, true), (".hip_fatbin", 8, true), (".rodata", PAGE, false)]
    {
        let file = host_file(section, &at_multiples(alignment, &all));
        let code = DeviceCode::find(&file);
        assert_eq!(code.faults, []);
        let kinds: Vec<_> = code.containers.iter().map(|container| container.kind).collect();
        assert_eq!(kinds, [ContainerKind::Bundle, ContainerKind::CompressedBundle, ContainerKind::Object]);
        let mut unpacker = code.unpacker();
        let mut found = Vec::new();
        for (container, bytes) in code.containers.iter().zip(all) {
            assert!(container.bytes == bytes, "{section}: another extent");
            assert_eq!(container.section, named.then_some(section));
            let contents = unpacker.open(container).expect("it is whole");
            for object in container.objects(&contents).expect("it is whole") {
                assert!(object.bytes == &contents[object.offset..][..object.bytes.len()]);
                let kernels = object.kernels().expect("it has symbols").join(" ");
                found.push(format!("{} {kernels}", object.target.expect("a known chip")));
            }
        }
        let expected =
            ["gfx90a:xnack- first", "gfx90a:xnack+ first", "gfx942 first", "gfx90a second", "gfx942 second"];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5..], ["gfx942 third"]);
    }
    // Among constants of the host objects are seen at every eighth byte, and bundles are not.
    let constants = host_file(".rodata", &at_multiples(8, &[&[1; 8], &bare, &plain[..256], &[2; 3], &bare]));
    let code = DeviceCode::find(&constants);
    assert_eq!(code.faults, []);
    assert!(code.containers.len() == 2 && code.containers.iter().all(|found| found.bytes == bare));
    assert_eq!(DeviceCode::find(b"no file of any kind"), DeviceCode::default());
}

/// Entry ids of older compilers, triples with an environment, and those of newer compilers.
#[test]
fn bundles_name_their_objects_in_several_ways() {
    let object = storing("k", "gfx90a:sramecc+:xnack-", 1);
    for id in [
        "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "hipv4-amdgcn-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-",
        "hip-amdgcn-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-",
        "hipv4-amdgpu9.0a-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "hip-amdgpu9.0a-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-",
    ] {
        let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
        let fields = [1, PAGE as u64, object.len() as u64, id.len() as u64];
        fields.iter().for_each(|value| bundle.extend(value.to_le_bytes()));
        bundle.extend(id.as_bytes());
        bundle.resize(PAGE, 0);
        bundle.extend(&object);
        let entries = read_bundle(&bundle).expect("whole").expect("a bundle");
        assert_eq!(entries[0].target.to_string(), "gfx90a:sramecc+:xnack-", "{id}");
        Simulator::new(ids(&["gfx90a"])[0]).load(&bundle).expect("it takes its object");
    }
}

/// Files that are cut off or changed, entries that share their bytes, and what grows without end.
#[test]
fn broken_host_files_have_faults_and_no_more() {
    let [plain, compressed, bare] = three_containers();
    let file = host_file(".hip_fatbin", &at_multiples(PAGE, &[&compressed, &bare, &plain]));
    let walk = |file: &[u8]| {
        let code = DeviceCode::find(file);
        let (mut unpacker, mut end) = (code.unpacker(), 0);
        for container in &code.containers {
            assert!(container.offset >= end, "containers overlap");
            end = container.offset + container.bytes.len();
            assert!(file[container.offset..end] == *container.bytes);
            let Ok(contents) = unpacker.open(container) else { continue };
            for object in container.objects(&contents).into_iter().flatten() {
                let _ = object.kernels();
            }
        }
        code.faults
    };
    assert_eq!(walk(&file), []);
    for length in (0..file.len()).step_by(61) {
        walk(&file[..length]);
    }
    for at in (0..file.len()).step_by(7) {
        let mut broken = file.clone();
        broken[at] ^= [1, 0x80, 0xff][at % 3];
        walk(&broken);
    }
    // The bundle at the end claims an object that is not there, and its first object is cut off; what comes
    // before stays found.
    let cut = &file[..file.len() - plain.len()];
    let faults = walk(&[cut, &plain[..PAGE + 100]].concat());
    let [
        HostFault::CutOff { kind: ContainerKind::Bundle, missing: of_bundle, .. },
        HostFault::CutOff { kind: ContainerKind::Object, missing: of_object, .. },
    ] = faults[..]
    else {
        panic!("{faults:?}")
    };
    assert!(of_bundle > 0 && of_object > 0);
    let mut shared = plain.clone();
    let first = shared[32..].windows(5).position(|word| word == b"hipv4").expect("an entry") + 32 - 24;
    let fields = plain[first..first + 16].to_vec();
    let second = shared[first + 32..].windows(5).position(|word| word == b"hipv4").expect("two") + first + 8;
    let whole = plain.len() as u64;
    for at in [first, second] {
        shared[at..at + 8].copy_from_slice(&0u64.to_le_bytes());
        shared[at + 8..at + 16].copy_from_slice(&whole.to_le_bytes());
    }
    assert_ne!(shared[first..first + 16], fields);
    let code = DeviceCode::find(&shared);
    assert_eq!(code.containers[0].objects(&shared), Err(BundleError::Shared));
}

/// What is small in the file and large without compression is opened until it is too much together.
#[test]
fn compressed_bundles_grow_to_a_limit_together() {
    let bomb = compress_bundle(&vec![0; 16 << 20]).expect("not too large");
    let bombs = vec![&bomb[..]; 64];
    let file = host_file(".hip_fatbin", &at_multiples(PAGE, &bombs));
    let code = DeviceCode::find(&file);
    let mut unpacker = code.unpacker();
    let opened: Vec<_> = code.containers.iter().map(|container| unpacker.open(container)).collect();
    assert_eq!(opened.len(), bombs.len());
    let good = opened.iter().filter(|one| one.is_ok()).count();
    assert!((16..32).contains(&good), "{good} were opened");
    assert!(opened[63].as_ref().is_err_and(|error| matches!(error, BundleError::Growth { .. })));
}
