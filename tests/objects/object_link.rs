//! Objects of several kernels: symbols, padding, arguments; what linkers do with our objects, and which
//! devices take them.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::{link, relocatable};
use groundswell::object::{ArgumentKind, ObjectFile};
use groundswell::prelude::*;
use groundswell::simulator::{LaunchConfig, SimError, Simulator};

use groundswell_testing::kernels;
use groundswell_testing::oracle::{Workspace, assert_equivalent, without_entry};

fn scaled(name: &str, factor: f64, options: Options) -> Executable {
    let [m] = symbols(["M"]);
    let kernel = Kernel::trace(name, |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [m], Global, F32);
        let x = w.read(a);
        w.write(x * factor, b);
    });
    compile_uncached(&kernel.unwrap(), &options.dynamic(m), Verify::Off).unwrap()
}

fn gemm() -> Executable {
    let case = kernels::gemm("gemm", &kernels::PLAIN);
    compile_uncached(&case.kernel, &case.options, Verify::Off).unwrap()
}

fn three(options: &Options) -> [Executable; 3] {
    [
        scaled("twice", 2.0, options.clone()),
        gemm(),
        scaled("half", 0.5, options.clone().kernarg_preload(KernargPreload::Fitting)),
    ]
}

#[test]
fn symbols_and_sizes_of_several_kernels() {
    let Some(space) = Workspace::with_tools(&["llvm-readelf-19", "llvm-objdump-19"]) else { return };
    let kernels = three(&Options::new(Target::GFX942));
    let object = link(&kernels.each_ref()).unwrap();
    space.write("ours.co", &object);
    let text = space.run("llvm-readelf-19 -W -s -S -l --notes --hash-symbols ours.co");
    for kernel in &kernels {
        let (name, size) = (kernel.name(), 4 * kernel.code().len());
        let has = |kind: &str, size: usize, name: &str| {
            let matches = |line: &&str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.ends_with(&[name])
                    && words[2..6] == [&size.to_string(), kind, "GLOBAL", "PROTECTED"]
                    && words.len() == 8
            };
            text.lines().filter(|line| line.contains(" GLOBAL ")).filter(matches).count()
        };
        // Once in .dynsym and once in .symtab.
        assert_eq!(has("FUNC", size, name), 2, "{name} in\n{text}");
        assert_eq!(has("OBJECT", 64, &format!("{name}.kd")), 2, "{name}.kd in\n{text}");
    }
    assert!(!text.contains("Invalid") && !text.contains("<corrupt>"), "{text}");
    let listing = space.run("llvm-objdump-19 -d ours.co");
    assert!(!listing.contains("<unknown>"), "{listing}");
}

#[test]
fn nops_follow_the_last_instruction() {
    let kernels = three(&Options::new(Target::GFX942));
    let object = link(&kernels.each_ref()).unwrap();
    let file = ObjectFile::parse(&object).unwrap();
    let last = file.kernels.iter().max_by_key(|kernel| kernel.entry).unwrap();
    let padding = file.bytes_at(last.entry + last.code.len() as u64).unwrap();
    let end = (last.entry + last.code.len() as u64).next_multiple_of(64) + 1024;
    assert_eq!(padding.len() as u64, end - last.entry - last.code.len() as u64);
    assert!(padding.as_chunks::<4>().0.iter().all(|word| *word == 0xbf80_0000u32.to_le_bytes()));
    assert!(file.kernels.iter().all(|kernel| kernel.entry % 256 == 0));
}

/// The segment ends with the last argument, and the runtime is asked for nothing.
#[test]
fn hidden_arguments_are_left_out() {
    for kernel in three(&Options::new(Target::GFX942)) {
        let file = ObjectFile::parse(kernel.object()).unwrap();
        let metadata = file.kernels[0].metadata.as_ref().unwrap();
        assert!(metadata.arguments.iter().all(|a| !matches!(a.kind, ArgumentKind::Other(_))));
        let last = metadata.arguments.last().unwrap();
        assert_eq!(metadata.kernarg_segment_size, last.offset + last.size);
        assert_eq!(file.kernels[0].descriptor.kernarg_size, metadata.kernarg_segment_size);
    }
}

/// A linker turns a relocatable object with several kernels into the object that we write directly: code,
/// descriptors, metadata, target.
#[test]
fn a_linked_relocatable_object_is_our_loadable_one() {
    let Some(space) = Workspace::with_tools(&["ld.lld-19", "llvm-readelf-19"]) else { return };
    let options = [
        Options::new(Target::GFX942),
        Options::new(Target::GFX942).debug_info(DebugInfo::None),
        Options::new("gfx942:sramecc+:xnack-".parse::<TargetId>().unwrap()).object_version(ObjectVersion::V6),
    ];
    for options in options {
        let kernels = [scaled("twice", 2.0, options.clone()), scaled("half", 0.5, options.clone())];
        let ours = link(&kernels.each_ref()).unwrap();
        space.write("ours.o", relocatable(&kernels.each_ref()).unwrap());
        space.run("ld.lld-19 -shared ours.o -o linked.co");
        assert_equivalent(&ours, &space.read("linked.co"));
        space.write("ours.co", &ours);
        let notes = |file| {
            let text = space.run(&format!("llvm-readelf-19 --notes {file}"));
            text[text.find("NT_AMDGPU_METADATA").unwrap()..].to_owned()
        };
        assert_eq!(notes("ours.co"), notes("linked.co"));
        assert!(ObjectFile::parse(&space.read("ours.o")).is_err(), "it cannot be loaded before");
    }
}

/// Of several relocatable objects, one of them LLVM's own, linkers make one; it runs.
#[test]
fn several_objects_are_linked_into_one() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19", "llvm-readelf-19"]) else { return };
    let [twice, gemm, half] = three(&Options::new(Target::GFX942));
    space.write("twice.o", relocatable(&[&twice]).unwrap());
    space.write("gemm.o", relocatable(&[&gemm]).unwrap());
    // Leaves its own object in llvm.o.
    space.assemble(half.target(), &half.assembly().unwrap());
    space.run("ld.lld-19 -r twice.o gemm.o -o partial.o");
    space.run("ld.lld-19 -shared partial.o llvm.o -o all.co");
    let all = space.read("all.co");
    let linked = ObjectFile::parse(&all).unwrap();
    for executable in [&twice, &gemm, &half] {
        let alone = ObjectFile::parse(executable.object()).unwrap();
        let (alone, linked) = (&alone.kernels[0], linked.kernel(executable.name()).unwrap());
        assert_eq!(alone.code, linked.code);
        assert_eq!(without_entry(alone.descriptor), without_entry(linked.descriptor));
        assert_eq!(alone.metadata, linked.metadata);
    }
    let mut simulator = Simulator::new(Target::GFX942);
    assert_eq!(simulator.load(&all).unwrap().kernel_names().count(), 3);
}

/// A loadable object is a shared library to a linker.
#[test]
fn loadable_objects_are_shared_inputs() {
    let Some(space) = Workspace::with_tools(&["ld.lld-19", "llvm-readelf-19"]) else { return };
    let [twice, gemm, _] = three(&Options::new(Target::GFX942));
    space.write("twice.co", twice.object());
    space.write("gemm.o", relocatable(&[&gemm]).unwrap());
    space.run("ld.lld-19 -shared gemm.o twice.co -o both.co");
    let text = space.run("llvm-readelf-19 -d both.co");
    assert!(text.contains("NEEDED") && text.contains("twice.co"), "{text}");
}

#[test]
fn what_cannot_be_together_is_refused() {
    let plain = scaled("a", 1.0, Options::new(Target::GFX942));
    let modes = Options::new("gfx942:xnack-".parse::<TargetId>().unwrap());
    let refused = |other: Options| link(&[&plain, &scaled("b", 2.0, other)]).unwrap_err().message;
    assert_eq!(refused(modes), "one object cannot hold kernels for different targets");
    let newer = Options::new(Target::GFX942).object_version(ObjectVersion::V6);
    assert_eq!(refused(newer), "one object cannot hold kernels of different object versions");
    assert_eq!(link(&[&plain, &plain]).unwrap_err().message, "two kernels are named \"a\"");
    assert!(relocatable(&[]).is_err());
}

fn id(text: &str) -> TargetId {
    text.parse().unwrap()
}

#[test]
fn objects_are_loaded_where_their_modes_are() {
    const MI300X: &str = "gfx942:sramecc+:xnack-";
    let loads = |object: &str, device: &str| {
        let executable = scaled("k", 2.0, Options::new(id(object)));
        Simulator::new(id(device)).load(executable.object()).map(drop)
    };
    for object in ["gfx942", "gfx942:xnack-", MI300X] {
        assert_eq!(loads(object, MI300X), Ok(()), "{object}");
        assert_eq!(loads(object, "gfx942"), Ok(()), "{object} on a device in any mode");
    }
    for object in ["gfx942:xnack+", "gfx942:sramecc-", "gfx942:sramecc+:xnack+"] {
        let message = format!("it is for {object}, the simulated device is a {MI300X}");
        assert_eq!(loads(object, MI300X), Err(SimError::OtherTarget(message)));
    }
    let device = Device::simulator(id(MI300X));
    let executable = scaled("k", 2.0, Options::new(id("gfx942:xnack+")));
    let refused = device.launch(&executable).run().unwrap_err().message;
    assert_eq!(refused, format!("`k` was compiled for gfx942:xnack+, and the device is {MI300X}"));
}

#[test]
fn kernels_for_one_shape_of_workgroup_are_launched_with_no_other() {
    let mut simulator = Simulator::new(Target::GFX942);
    let kernel = scaled("k", 2.0, Options::new(Target::GFX942));
    let module = simulator.load(kernel.object()).unwrap();
    let kernarg = vec![0; kernel.kernarg_bytes() as usize];
    for shape in [[1, 64, 1], [32, 1, 1]] {
        let refused = simulator.launch(&module, "k", LaunchConfig::new([1; 3], shape), &kernarg).unwrap_err();
        let expected = format!("workgroups of {shape:?} work-items, only [64, 1, 1] are allowed");
        assert!(refused.to_string().contains(&expected), "{refused}");
    }
}

#[test]
fn copies_that_no_host_has_room_for_are_refused() {
    let mut simulator = Simulator::new(Target::GFX942);
    let address = simulator.alloc(4).unwrap();
    for bytes in [5, usize::MAX / 2, usize::MAX] {
        assert_eq!(
            simulator.read(address, bytes),
            Err(SimError::BadAddress { address, bytes: bytes as u64 })
        );
    }
}
