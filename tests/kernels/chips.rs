//! Every ready kernel on every chip that kernels are compiled for: what runs gives what the interpreter
//! gives, check mode finds nothing, LLVM makes the same object of its text, and what a chip cannot do is
//! refused.

use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::kernels::{Choices, Form, Gemm, KernelEntry, Waves, list};
use groundswell::prelude::*;
use groundswell::simulator::FindingKind;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::largest_loop;
use groundswell_testing::oracle::{Workspace, assert_equivalent};
use groundswell_testing::ready_shapes::shape;

/// Chips beside gfx942, for which `kernel_sweep` and `llvm_kernels` look at more shapes.
const CHIPS: [Target; 4] = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX950];

/// An aligned, a ragged and an open one.
const SHAPES: [usize; 3] = [1, 8, 3];

/// What a chip says of a kernel for which it lacks an instruction: gfx950 multiplies other 8-bit floats than
/// gfx942, and the others none.
fn refused(name: &str, target: Target) -> Option<String> {
    match name {
        "gemm_f8_blocks" | "gemm_f8_scaled" | "moe_down_f8" | "moe_gate_up_f8" => {
            Some(format!("{target} has no matrix instruction"))
        }
        _ => None,
    }
}

fn compiled(entry: &KernelEntry, target: Target, number: usize) -> Option<(Kernel, Executable)> {
    let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
    let (values, open) = shape(entry, number);
    let options = values.iter().fold(Options::new(target), |options, &(name, value)| {
        if open.contains(&name) { options.dynamic(name) } else { options.set(name, value) }
    });
    match (compile_uncached(&kernel, &options, Verify::Off), refused(entry.name, target)) {
        (Ok(executable), None) => Some((kernel, executable)),
        (Err(fault), Some(reason)) => {
            let text = fault.to_string();
            assert!(text.contains(&reason), "{text}");
            None
        }
        (Ok(_), Some(reason)) => panic!("{} is compiled, although {reason}", entry.name),
        (Err(fault), None) => panic!("{} for {target}: {fault}", entry.name),
    }
}

fn equals_interpreter(target: Target) {
    let device = Device::simulator(target);
    for entry in list() {
        for number in SHAPES {
            let Some((kernel, executable)) = compiled(entry, target, number) else { continue };
            let (values, _) = shape(entry, number);
            let title = format!("{} {values:?} for {target}", entry.name);
            let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
            let ran = against_interpreter(&kernel, &executable, &device, &value, number as u64)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"));
            assert!(ran.comparison.ok, "{title}: {:?}", ran.comparison);
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, number as u64)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"));
            // Workgroups that share a small tile may store the same.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            assert!(report.findings.iter().all(|finding| is_note(&finding.kind)), "{title}: {report}");
            assert!(comparison.ok, "{title}: {comparison:?}");
        }
    }
}

#[test]
fn ready_kernels_hold_on_gfx906() {
    equals_interpreter(CHIPS[0]);
}

#[test]
fn ready_kernels_hold_on_gfx908() {
    equals_interpreter(CHIPS[1]);
}

#[test]
fn ready_kernels_hold_on_gfx90a() {
    equals_interpreter(CHIPS[2]);
}

#[test]
fn ready_kernels_hold_on_gfx950() {
    equals_interpreter(CHIPS[3]);
}

/// Matrix instructions that products of their shape get on a chip, and their assembler text: those that other
/// chips lack, and those of f64.
const INSTRUCTIONS: [(Target, Mma, &str); 28] = [
    (Target::GFX906, Mma::F32_8x8x2_F16, "v_dot2_f32_f16"),
    (Target::GFX906, Mma::F32_8x8x2_BF16, "v_fma_f32"),
    (Target::GFX906, Mma::I32_8x8x4_I8, "v_dot4_i32_i8"),
    (Target::GFX906, Mma::F32_8x8x1_F32, "v_fma_f32"),
    (Target::GFX906, Mma::F64_8x8x1_F64, "v_fma_f64"),
    (Target::GFX908, Mma::F32_16x16x16_F16, "v_mfma_f32_16x16x16f16"),
    (Target::GFX908, Mma::F32_32x32x8_F16, "v_mfma_f32_32x32x8f16"),
    (Target::GFX908, Mma::F32_16x16x8_BF16, "v_mfma_f32_16x16x8bf16"),
    (Target::GFX908, Mma::F32_32x32x4_BF16, "v_mfma_f32_32x32x4bf16"),
    (Target::GFX908, Mma::I32_16x16x16_I8, "v_mfma_i32_16x16x16i8"),
    (Target::GFX908, Mma::I32_32x32x8_I8, "v_mfma_i32_32x32x8i8"),
    (Target::GFX908, Mma::F32_16x16x4_F32, "v_mfma_f32_16x16x4f32"),
    (Target::GFX908, Mma::F32_32x32x2_F32, "v_mfma_f32_32x32x2f32"),
    (Target::GFX90A, Mma::F64_16x16x4_F64, "v_mfma_f64_16x16x4f64"),
    (Target::GFX942, Mma::F64_16x16x4_F64, "v_mfma_f64_16x16x4_f64"),
    (Target::GFX950, Mma::F64_16x16x4_F64, "v_mfma_f64_16x16x4_f64"),
    (Target::GFX950, Mma::F32_16x16x32_F16, "v_mfma_f32_16x16x32_f16"),
    (Target::GFX950, Mma::F32_32x32x16_F16, "v_mfma_f32_32x32x16_f16"),
    (Target::GFX950, Mma::F32_16x16x32_BF16, "v_mfma_f32_16x16x32_bf16"),
    (Target::GFX950, Mma::F32_32x32x16_BF16, "v_mfma_f32_32x32x16_bf16"),
    (Target::GFX950, Mma::I32_16x16x64_I8, "v_mfma_i32_16x16x64_i8"),
    (Target::GFX950, Mma::I32_32x32x32_I8, "v_mfma_i32_32x32x32_i8"),
    (Target::GFX950, Mma::F32_16x16x128_F8E4M3FN, "v_mfma_f32_16x16x128_f8f6f4"),
    (Target::GFX950, Mma::F32_32x32x64_F8E4M3FN, "v_mfma_f32_32x32x64_f8f6f4"),
    (Target::GFX950, Mma::F32_16x16x128_F8E5M2, "v_mfma_f32_16x16x128_f8f6f4"),
    (Target::GFX950, Mma::F32_32x32x64_F8E5M2, "v_mfma_f32_32x32x64_f8f6f4"),
    (Target::GFX90A, Mma::I32_16x16x16_I8, "v_mfma_i32_16x16x16i8"),
    (Target::GFX90A, Mma::I32_32x32x8_I8, "v_mfma_i32_32x32x8i8"),
];

/// Products by such instructions in all forms and under all schedules, of whole tiles and ragged, and their
/// objects by LLVM.
fn multiplies(target: Target, space: &Workspace) {
    let forms = [Form::ABt, Form::AB, Form::AtB, Form::AtBt];
    let schedules =
        [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo, Schedule::PingPong];
    let own = INSTRUCTIONS.into_iter().filter(|row| row.0 == target);
    for (number, (_, mma, mnemonic)) in own.enumerate() {
        for (at, form) in forms.into_iter().enumerate() {
            let shape = MatrixShape::ALL.into_iter().find(|shape| shape.edge() == mma.m());
            // Products of lanes are parts of all shapes.
            let shape = shape.unwrap_or(MatrixShape::ALL[number % 2]);
            let gemm = Gemm::any_shape().inputs(mma.input()).matrix(shape).form(form);
            let gemm = if mma.input() == F64 { gemm.output(F64) } else { gemm };
            let kernel = gemm.waves(Waves::new(2, 4)).kernel().expect("a kernel");
            for (turn, schedule) in schedules.clone().into_iter().enumerate() {
                let (m, n, k) = [(128, 128, 256), (130, 70, 200), (1, 33, 65)][(at + turn + number) % 3];
                let title = format!("{mma} {form:?} {schedule:?} {m} x {n} x {k}");
                let values = [("M", m), ("N", n), ("K", k)];
                // Lanes hold whole rows of their parts of the tile.
                let deep = mma.k().max(64.min(256 / mma.input().bytes()));
                let depth = if mma.is_of_lanes() { 16 } else { deep };
                let tile = [("BLOCK_M", 64), ("BLOCK_N", 128), ("BLOCK_K", i64::from(depth))];
                let options = Options::new(target).schedule(schedule.clone());
                let options = tile.iter().fold(options, |options, &(name, size)| options.set(name, size));
                let options = values.iter().fold(options, |options, &(name, size)| {
                    if (turn + number) % 2 == 1 { options.dynamic(name) } else { options.set(name, size) }
                });
                let executable = compile_uncached(&kernel, &options, Verify::Off)
                    .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                let text = executable.assembly().expect("text");
                assert!(text.contains(mnemonic), "{title}: {text}");
                let value = |symbol: Symbol| {
                    values.iter().chain(&tile).find(|value| value.0 == symbol.name()).map(|v| v.1)
                };
                assert_right(&kernel, &executable, &value, at as u64, &title);
                if turn % forms.len() == at {
                    assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
                }
            }
        }
    }
}

#[test]
fn products_by_instructions_of_gfx906() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    multiplies(Target::GFX906, &space);
}

#[test]
fn products_by_instructions_of_gfx908() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    multiplies(Target::GFX908, &space);
}

#[test]
fn products_by_instructions_of_gfx90a() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    multiplies(Target::GFX90A, &space);
}

#[test]
fn products_by_instructions_of_gfx942() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    multiplies(Target::GFX942, &space);
}

#[test]
fn products_by_instructions_of_gfx950() {
    let Some(space) = Workspace::with_zig() else { return };
    multiplies(Target::GFX950, &space);
}

/// Accumulators of gfx908 are AGPRs from beginning to end: main loops move none of them, whether their tiles
/// leave half of the AGPRs free or fill them.
#[test]
fn gfx908_moves_no_accumulators_in_its_loops() {
    let tiles = [([128, 128, 32], Waves::new(2, 2)), ([256, 256, 32], Waves::new(2, 2))];
    for (tile, waves) in tiles {
        for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
            let kernel = Gemm::any_shape().waves(waves).kernel().expect("a kernel");
            let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
            let sizes = names.into_iter().zip([4096; 3].into_iter().chain(tile));
            let options = Options::new(Target::GFX908).schedule(schedule.clone());
            let options = sizes.fold(options, |options, (name, size)| options.set(name, size));
            let executable = compile_uncached(&kernel, &options, Verify::Off).expect("a product");
            let text = executable.assembly().expect("text");
            let main = largest_loop(&text).expect("a loop");
            let count = |word: &str| main.iter().filter(|line| line.contains(word)).count();
            let title = format!("{tile:?} {schedule:?}: {:?}", executable.report());
            assert!(count("v_mfma") >= 32 && count("v_accvgpr") == 0, "{title}\n{}", main.join("\n"));
            assert_eq!(executable.report().scratch_bytes, 0, "{title}");
        }
    }
}

/// The mnemonics of a kernel's matrix instructions.
fn multiplied_by(kernel: &Kernel, target: Target) -> Vec<String> {
    let sizes = [("M", 64), ("N", 64), ("K", 96), ("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    let options = sizes.iter().fold(Options::new(target), |options, &(name, size)| options.set(name, size));
    let executable = compile_uncached(kernel, &options, Verify::Off).expect("a product");
    let text = executable.assembly().expect("text");
    let all = text.lines().filter_map(|line| line.trim().split(' ').next());
    let mut all: Vec<String> = all.filter(|word| word.starts_with("v_mfma")).map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

/// A shape is the chip's own instruction, traced or read from text; one that is written out stays.
#[test]
fn a_chip_chooses_instructions_of_a_shape_alone() {
    let deep = [(Target::GFX942, "v_mfma_f32_16x16x16_f16"), (Target::GFX950, "v_mfma_f32_16x16x32_f16")];
    let gemm = Gemm::any_shape().kernel().expect("a kernel");
    let read = Kernel::parse(&gemm.to_string(), "gemm.gsw").expect("text");
    let written = Gemm::any_shape().matrix(Mma::F32_16x16x16_F16).kernel().expect("a kernel");
    for (target, name) in deep {
        assert_eq!(multiplied_by(&gemm, target), [name]);
        assert_eq!(multiplied_by(&read, target), [name]);
        assert_eq!(multiplied_by(&written, target), ["v_mfma_f32_16x16x16_f16"]);
    }
    // The kernel is one and the same, so what was compiled for one chip is not found for the other.
    let sizes = Gemm::new(64, 64, 64).tile(64, 64, 32);
    let orders = [Target::GFX942, Target::GFX950, Target::GFX942]
        .map(|target| sizes.compile(target).expect("a product").report().reductions.clone());
    assert_eq!(orders[0], orders[2]);
    assert_ne!(orders[0], orders[1]);
}

/// A wave of gfx906 has the registers for 64 x 64 elements, two times on a SIMD: reads stand among the
/// products that take them, and each value that is read is multiplied with eight others.
#[test]
fn gfx906_keeps_a_tile_in_registers() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
    for schedule in [Schedule::None, Schedule::Modulo] {
        let sizes = names.into_iter().zip([4096, 4096, 4096, 128, 128, 32]);
        let options = Options::new(Target::GFX906).schedule(schedule.clone());
        let options = sizes.fold(options, |options, (name, size)| options.set(name, size));
        let executable = compile_uncached(&kernel, &options, Verify::Off).expect("a product");
        let (text, report) = (executable.assembly().expect("text"), executable.report());
        // Lanes hold four columns side by side from the beginning, and store them at once.
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        assert_eq!([count("buffer_store_dword"), count("buffer_store_dwordx4")], [16; 2], "{schedule:?}");
        if schedule == Schedule::None {
            assert_eq!(count("v_mov_b32"), 64, "the zeros that the sums begin with");
        }
        let mix = report.main_loop.expect("a loop");
        assert_eq!((report.scratch_bytes, report.agprs), (0, 0), "{schedule:?} {report:?}");
        assert!(report.vgprs <= 128, "{schedule:?}: {} VGPRs", report.vgprs);
        assert!(report.lds_accesses.iter().all(|access| access.conflict_degree == 1), "{schedule:?}");
        // 64 elements of a lane by 16 pairs of k; 16 rows and columns of 32 elements, four at a time.
        assert_eq!((mix.lds_read, mix.mfma), (128, 0), "{schedule:?} {mix:?}");
        assert!((1024..1032).contains(&mix.valu), "{schedule:?} {mix:?}");
    }
}

/// A matrix instruction that is written out is refused where there is none, and its shape is not.
#[test]
fn gfx906_multiplies_by_lanes_where_a_shape_is_said() {
    let written = Gemm::any_shape().matrix(Mma::F32_16x16x16_F16).kernel().expect("a kernel");
    let sizes = [("M", 64), ("N", 64), ("K", 96), ("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    let options =
        sizes.iter().fold(Options::new(Target::GFX906), |options, &(name, size)| options.set(name, size));
    let fault = compile_uncached(&written, &options, Verify::Off).expect_err("no matrix instructions");
    assert!(fault.message.contains("gfx906 has no matrix instruction F32_16x16x16_F16"), "{fault}");
    let help = fault.help.as_deref().unwrap_or_default();
    assert!(help.contains("`mma 16x16`") && help.contains("gfx908 or gfx90a or gfx942"), "{fault}");
    let lanes = Gemm::any_shape().matrix(Mma::F32_8x8x2_F16).kernel().expect("a kernel");
    let fault =
        compile_uncached(&lanes, &options.for_target(Target::GFX942), Verify::Off).expect_err("other lanes");
    assert!(fault.help.is_some_and(|help| help.contains("compile for gfx906")), "{}", fault.message);
}

/// What lies beyond 64 KiB of LDS is out of reach of the immediates of its instructions; those of a wave that
/// is alone go furthest.
#[test]
fn gfx950_reaches_all_of_its_lds() {
    let sizes = [("M", 70), ("N", 60), ("BLOCK_M", 64), ("BLOCK_N", 64)];
    for (inputs, depth) in [(F32, 128), (F32, 160), (F16, 512), (I8, 1024), (F8E4M3Fn, 1024)] {
        for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
            for loads in [GlobalToShared::Off, GlobalToShared::Fitting] {
                let alone = Gemm::any_shape().inputs(inputs).waves(Waves::new(1, 1));
                let kernel = alone.kernel().expect("a kernel");
                let all = sizes.iter().copied().chain([("K", 3 * depth - 5), ("BLOCK_K", depth)]);
                let title = format!("{inputs} {depth} {schedule:?} {loads:?}");
                let options = Options::new(Target::GFX950).schedule(schedule.clone()).global_to_shared(loads);
                let options = all.clone().fold(options, |options, (name, size)| options.set(name, size));
                let executable = match compile_uncached(&kernel, &options, Verify::Off) {
                    Ok(executable) => executable,
                    // Copies of tiles in a pipeline may need more LDS than there is.
                    Err(fault) => {
                        assert!(fault.message.contains("bytes of LDS"), "{title}: {fault}");
                        continue;
                    }
                };
                let value =
                    |symbol: Symbol| all.clone().find(|size| size.0 == symbol.name()).map(|size| size.1);
                assert_right(&kernel, &executable, &value, 1, &title);
            }
        }
    }
}

/// A kernel of gfx90a or of an older chip adds up where its scratch is, and moves its other inputs to where
/// they would be without it: the numbers of the workgroup, and arguments that were preloaded, by the firmware
/// or by the prologue.
#[test]
fn older_chips_find_what_is_spilled() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    let kernel = Gemm::any_shape().kernel().expect("a kernel");
    let sizes = [("M", 60), ("N", 50), ("K", 90), ("BLOCK_M", 64), ("BLOCK_N", 32), ("BLOCK_K", 32)];
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
    let ways = [
        (Target::GFX906, KernargPreload::Off),
        (Target::GFX908, KernargPreload::Off),
        (Target::GFX90A, KernargPreload::Off),
        (Target::GFX90A, KernargPreload::Fitting),
    ];
    for (target, preload) in ways {
        // Its accumulators are in registers of their own.
        let vgprs = if target == Target::GFX908 { 12 } else { 24 };
        for is_open in [false, true] {
            let options = Options::new(target).max_vgprs(vgprs).kernarg_preload(preload);
            let options = sizes.iter().fold(options, |options, &(name, size)| {
                if is_open && size > 32 && size != 64 {
                    options.dynamic(name)
                } else {
                    options.set(name, size)
                }
            });
            let executable = verified(&kernel, &options);
            assert!(executable.report().scratch_bytes > 0, "{:?}", executable.report());
            let text = executable.assembly().expect("text");
            assert!(text.contains("flat_scratch_lo"), "{text}");
            assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
            for seed in 0..3 {
                assert_right(
                    &kernel,
                    &executable,
                    &value,
                    seed,
                    format_args!("{target} {preload:?} {is_open}"),
                );
            }
        }
    }
}

fn llvm_agrees(space: &Workspace, target: Target) {
    for entry in list() {
        let Some((_, executable)) = compiled(entry, target, SHAPES[1]) else { continue };
        let text = executable.assembly().unwrap_or_else(|fault| panic!("{}: {fault}", entry.name));
        assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
    }
}

#[test]
fn llvm_makes_the_same_objects_for_gfx906() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    llvm_agrees(&space, Target::GFX906);
}

#[test]
fn llvm_makes_the_same_objects_for_gfx908() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    llvm_agrees(&space, Target::GFX908);
}

#[test]
fn llvm_makes_the_same_objects_for_gfx90a() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    llvm_agrees(&space, Target::GFX90A);
}

#[test]
fn llvm_makes_the_same_objects_for_gfx950() {
    let Some(space) = Workspace::with_zig() else { return };
    llvm_agrees(&space, Target::GFX950);
}
