//! Kernel arguments: preloaded by firmware, loaded by the prologue where firmware cannot, loaded by the
//! kernel: the results are the same.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::{Parameter, Size};
use groundswell::isa::{Arch, Meaning, decode};
use groundswell::object::{DescriptorField, ObjectFile};
use groundswell::prelude::*;
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::judged::verified;
use groundswell_testing::kernels::{self, Case};
use groundswell_testing::oracle::{Workspace, assert_equivalent};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Launch value of every dynamic symbol.
const SIZE: i64 = 70;

/// A kernel of `count` memories: the sum of all but the last into the last.
fn sum_of(count: usize) -> Case {
    let [m] = symbols(["M"]);
    let kernel = Kernel::trace("sum", |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let memories: Vec<_> = (0..count).map(|i| w.memory(&format!("m{i}"), [m], Global, F32)).collect();
        let mut sum = w.read(memories[0]);
        for &memory in &memories[1..count - 1] {
            let next = w.read(memory);
            sum += next;
        }
        w.write(sum, memories[count - 1]);
    });
    Case {
        name: format!("sum of {count}"),
        kernel: kernel.unwrap(),
        options: Options::new(Target::GFX942).dynamic(m),
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = kernels::all().into_iter().step_by(5).collect();
    cases.extend([2, 6, 7, 8, 10].map(sum_of));
    cases
}

fn compile(case: &Case, preload: KernargPreload) -> Executable {
    let options = case.options.clone().kernarg_preload(preload);
    verified(&case.kernel, &options)
}

/// Contents of all buffers after a launch on random bits.
fn run(executable: &Executable, object: &[u8]) -> Vec<Vec<u8>> {
    let mut rng = StdRng::seed_from_u64(7);
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(object).unwrap();
    let mut kernarg = vec![0; executable.kernarg_bytes() as usize];
    let mut buffers = Vec::new();
    for parameter in executable.parameters() {
        match parameter {
            Parameter::Symbol { offset, .. } => {
                kernarg[*offset as usize..][..4].copy_from_slice(&(SIZE as u32).to_le_bytes());
            }
            Parameter::Scalar { offset, .. } => {
                kernarg[*offset as usize..][..4].copy_from_slice(&rng.random::<[u8; 4]>());
            }
            Parameter::Buffer { dtype, shape, offset, .. } | Parameter::Log { dtype, shape, offset, .. } => {
                let size = |size: &Size| match size {
                    Size::Static(size) => *size as usize,
                    Size::Dynamic(_) => SIZE as usize,
                };
                let bytes = shape.iter().map(size).product::<usize>() * dtype.bytes() as usize;
                let address = simulator.alloc(bytes as u64).unwrap();
                let contents: Vec<u8> = (0..bytes).map(|_| rng.random()).collect();
                simulator.write(address, &contents).unwrap();
                kernarg[*offset as usize..][..8].copy_from_slice(&address.to_le_bytes());
                buffers.push((address, bytes));
            }
        }
    }
    let grid = executable.grid(&|_| Some(SIZE)).unwrap();
    let config = LaunchConfig::new(grid, executable.block());
    simulator.launch(&module, executable.name(), config, &kernarg).unwrap();
    buffers.into_iter().map(|(address, bytes)| simulator.read(address, bytes).unwrap()).collect()
}

/// The object as firmware sees it that knows nothing of preloading: it enters at the prologue.
fn seen_by_old_firmware(object: &[u8]) -> Vec<u8> {
    const PRELOAD_SPEC: usize = 58;
    let file = ObjectFile::parse(object).unwrap();
    // The file begins at address 0.
    let at = file.kernels[0].descriptor_address as usize + PRELOAD_SPEC;
    let mut object = object.to_vec();
    object[at..at + 2].fill(0);
    assert_eq!(
        ObjectFile::parse(&object).unwrap().kernels[0].descriptor.get(DescriptorField::KernargPreloadLength),
        0
    );
    object
}

#[test]
fn preloaded_arguments_give_the_same_results() {
    for case in cases() {
        let plain = compile(&case, KernargPreload::Off);
        let preloaded = compile(&case, KernargPreload::Fitting);
        let expected = run(&plain, plain.object());
        assert!(run(&preloaded, preloaded.object()) == expected, "{}: preloaded", case.name);
        let old = seen_by_old_firmware(preloaded.object());
        assert!(run(&preloaded, &old) == expected, "{}: loaded by the prologue", case.name);
    }
}

/// A fault of gfx950's firmware.
#[test]
fn more_than_four_preloaded_dwords_are_a_warning_on_gfx950() {
    let warnings = |target, count, preload| {
        let Case { name, kernel, .. } = sum_of(count);
        let options = Options::new(target).dynamic(Symbol::new("M"));
        compile(&Case { name, kernel, options }, preload).warnings()
    };
    let fitting = warnings(Target::GFX950, 2, KernargPreload::Fitting);
    assert!(fitting[..].iter().any(|text| text.contains("stale preloaded arguments")), "{fitting:?}");
    assert!(warnings(Target::GFX950, 2, KernargPreload::Off).is_empty());
    assert!(warnings(Target::GFX942, 2, KernargPreload::Fitting).is_empty());
}

#[test]
fn as_many_whole_arguments_as_fit_are_preloaded() {
    // Two dwords a pointer, and the size; 14 user SGPRs are left after the pointer to the segment.
    for (count, dwords) in [(2, 5), (6, 13), (7, 14), (8, 14), (10, 14)] {
        let executable = compile(&sum_of(count), KernargPreload::Fitting);
        assert_eq!(executable.report().kernarg_preload_dwords, dwords, "{count} memories");
        let file = ObjectFile::parse(executable.object()).unwrap();
        let descriptor = file.kernels[0].descriptor;
        assert_eq!(descriptor.get(DescriptorField::KernargPreloadLength), dwords);
        assert_eq!(descriptor.get(DescriptorField::UserSgprCount), 2 + dwords);
        let loads = |words: &[u32]| count_loads(words);
        let (prologue, body) = executable.code().split_at(64);
        assert!(loads(prologue) > 0);
        // What does not fit is loaded one by one: the other pointers and the size.
        let rest = if dwords % 2 == 1 { 0 } else { count - 7 + 1 };
        assert_eq!(loads(body), rest, "{count} memories");
    }
}

fn count_loads(words: &[u32]) -> usize {
    let mut at = 0;
    let mut loads = 0;
    while at < words.len() {
        let (inst, length) = decode(&words[at..], Arch::Gfx942).unwrap();
        loads += usize::from(matches!(inst.op.info().meaning, Meaning::ScalarLoad(_)));
        at += length;
    }
    loads
}

#[test]
fn llvm_makes_the_same_of_preloading_kernels() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19", "llvm-objdump-19"]) else { return };
    for case in cases() {
        let executable = compile(&case, KernargPreload::Fitting);
        let llvm = space.assemble(executable.target(), &executable.assembly().unwrap());
        assert_equivalent(executable.object(), &llvm);
        space.write("ours.co", executable.object());
        let text = space.run("llvm-objdump-19 -D -j .rodata ours.co");
        let dwords = executable.report().kernarg_preload_dwords;
        assert!(text.contains(&format!(".amdhsa_user_sgpr_kernarg_preload_length {dwords}\n")), "{text}");
    }
}

#[test]
fn targets_without_preloading_say_who_has_it() {
    let case = sum_of(2);
    let options = Options::new(Target::GFX908).kernarg_preload(KernargPreload::Fitting);
    let error = compile_uncached(&case.kernel, &options, Verify::Off).unwrap_err();
    assert_eq!(error.message, "gfx908 has no kernarg preload");
    assert_eq!(error.help.as_deref(), Some("gfx90a, gfx942, gfx950 have it"));
}

/// Where a page fault may be retried, a load of several registers is done again from its beginning: it must
/// not have overwritten its own address.
#[test]
fn scalar_loads_can_be_retried() {
    for case in kernels::all() {
        for preload in [KernargPreload::Off, KernargPreload::Fitting] {
            let executable = compile(&case, preload);
            let words = executable.code();
            let mut at = 0;
            while at < words.len() {
                let (inst, length) = decode(&words[at..], Arch::Gfx942).unwrap();
                if let Meaning::ScalarLoad(2..) = inst.op.info().meaning {
                    let range = |index: usize| {
                        let first = inst.operands[index].number().unwrap();
                        first..first + u32::from(inst.width(index))
                    };
                    let (to, from) = (range(0), range(1));
                    assert!(to.end <= from.start || from.end <= to.start, "{}: {inst}", case.name);
                }
                at += length;
            }
        }
    }
}
