//! Figures that the generated code must keep: registers, LDS conflicts, and what the main loop of a GEMM
//! holds.

use groundswell::kernels::{Conv2d, Form, Gemm, Waves};
use groundswell::prelude::*;
use groundswell::report::{InstructionMix, Report};

fn report(tile: [i64; 3], waves: [u32; 2], size: impl Fn(Options, Symbol, usize) -> Options) -> Report {
    let kernel = Gemm::any_shape().waves(Waves::new(waves[0], waves[1])).kernel().expect("a valid kernel");
    let mut options = Options::new(Target::GFX942);
    for (name, value) in ["BLOCK_M", "BLOCK_N", "BLOCK_K"].into_iter().zip(tile) {
        options = options.set(Symbol::new(name), value);
    }
    for (at, name) in ["M", "N", "K"].into_iter().enumerate() {
        options = size(options, Symbol::new(name), at);
    }
    kernel.compile(&options).expect("compiles").report().clone()
}

fn aligned(options: Options, symbol: Symbol, _: usize) -> Options {
    options.set(symbol, 4096)
}

fn main_loop(report: &Report) -> InstructionMix {
    report.main_loop.expect("a GEMM over 4096 has a loop")
}

#[test]
fn gemm_128x128x32_keeps_its_loop_clean() {
    let report = report([128, 128, 32], [2, 2], aligned);
    let mix = main_loop(&report);
    assert_eq!(report.scratch_bytes, 0);
    assert!(report.vgprs + report.agprs <= 128, "{} + {} vector registers", report.vgprs, report.agprs);
    assert!(report.lds_accesses.iter().all(|a| a.conflict_degree == 1), "{:?}", report.lds_accesses);
    assert_eq!(report.lds_accesses.len(), 4, "two tiles, each written and read");
    assert_eq!(mix.mfma, 32);
    assert!(mix.valu <= 2, "{mix:?}");
    assert_eq!((mix.global_load, mix.lds_write, mix.lds_read, mix.barrier), (4, 4, 8, 2));
}

#[test]
fn unaligned_and_dynamic_sizes_leave_the_steady_state_alone() {
    let clean = main_loop(&report([128, 128, 32], [2, 2], aligned));
    let unaligned = report([128, 128, 32], [2, 2], |o, s, at| o.set(s, [4095, 4097, 4099][at]));
    let dynamic = report([128, 128, 32], [2, 2], |o, s, _| o.dynamic(s));
    for (what, report) in [("unaligned", unaligned), ("dynamic", dynamic)] {
        let mix = main_loop(&report);
        assert!(mix.total() <= clean.total() + 4, "{what}: {mix:?} instead of {clean:?}");
        assert!(mix.valu <= clean.valu + 2, "{what}: {mix:?}");
        assert_eq!(report.scratch_bytes, 0, "{what}");
        assert!(
            report.lds_accesses.iter().all(|a| a.conflict_degree == 1),
            "{what}: {:?}",
            report.lds_accesses
        );
    }
}

#[test]
fn large_tiles_fit_into_registers_and_lds() {
    for (tile, waves) in [([128, 256, 64], [4, 2]), ([256, 256, 64], [4, 2]), ([256, 256, 64], [2, 2])] {
        let report = report(tile, waves, aligned);
        assert_eq!(report.scratch_bytes, 0, "{tile:?}");
        assert!(report.lds_bytes <= 65_536, "{tile:?}: {} bytes of LDS", report.lds_bytes);
        assert!(
            report.lds_accesses.iter().all(|a| a.conflict_degree == 1),
            "{tile:?}: {:?}",
            report.lds_accesses
        );
        assert!(main_loop(&report).valu <= 2, "{tile:?}: {:?}", report.main_loop);
    }
}

/// A matrix whose rows lie across the summed dimension is turned on its way into LDS: written in elements, or
/// in pairs of them from two rows, of which those that are written together are in different banks, and read
/// as if it had not been turned.
#[test]
fn turned_matrices_are_read_as_others_and_have_no_conflicts() {
    let tiles = [
        ([128, 128, 32], [2, 2]),
        ([128, 128, 64], [2, 2]),
        ([64, 64, 32], [2, 2]),
        ([256, 256, 64], [2, 4]),
    ];
    for (tile, waves) in tiles {
        for dtype in [F16, Bf16, F32] {
            let compile = |form| {
                let [m, n, k] = tile;
                let gemm = Gemm::new(4096, 4096, 4096).inputs(dtype).form(form).tile(m, n, k);
                gemm.waves(Waves::new(waves[0], waves[1])).compile(Target::GFX942)
            };
            if dtype == F32 && tile == [256, 256, 64] {
                assert!(compile(Form::ABt).is_err(), "twice the LDS of a workgroup");
                continue;
            }
            let plain = compile(Form::ABt).expect("compiles");
            let plain = main_loop(plain.report());
            for form in [Form::AB, Form::AtB, Form::AtBt] {
                let executable = compile(form).expect("compiles");
                let report = executable.report();
                let mix = main_loop(report);
                let conflicts = report.lds_accesses.iter().map(|access| access.conflict_degree).max();
                assert_eq!(conflicts, Some(1), "{form:?} {dtype:?} {tile:?}");
                assert_eq!(mix.lds_read, plain.lds_read, "{form:?} {dtype:?} {tile:?}: {mix:?}");
                // A permutation for each write of two elements, in place of a write of one.
                let of_one = mix.global_load / 2;
                let elements = 16 / dtype.bytes();
                let turned = if form == Form::AtB { 2 } else { 1 };
                let writes = of_one * (turned * elements + (2 - turned));
                assert_eq!(mix.valu + mix.lds_write, writes, "{form:?} {dtype:?} {tile:?}: {mix:?}");
                assert_eq!(
                    (mix.mfma, mix.global_load),
                    (plain.mfma, plain.global_load),
                    "{form:?} {dtype:?} {tile:?}"
                );
                assert_eq!(report.scratch_bytes, 0, "{form:?} {dtype:?} {tile:?}");
            }
        }
    }
}

/// Addresses of convolutions: the base and what changes with the iteration are apart, quotients are few, and
/// what is the same in all lanes is on the scalar unit. The bound is that of 16 matrix instructions.
#[test]
fn convolutions_compute_few_addresses_in_their_loop() {
    for (channels, tile, valu) in
        [(64, [64, 64, 64], 0), (256, [128, 128, 64], 0), (48, [64, 64, 64], 4), (60, [128, 128, 32], 4)]
    {
        let conv = Conv2d::new();
        let options = conv.options(Target::GFX942, 2, [34, 34], channels, 128, [3, 3]).expect("it fits");
        let tile = ["BLOCK_M", "BLOCK_N", "BLOCK_K"].into_iter().zip(tile);
        let options = tile.fold(options, |options, (name, size)| options.set(name, size));
        let executable = conv.kernel().expect("a kernel").compile(&options).expect("compiles");
        let mix = main_loop(executable.report());
        let per_16 = |count: u32| (count * 16).div_ceil(mix.mfma);
        assert!(per_16(mix.valu) <= valu && per_16(mix.salu) <= 8, "{channels} channels: {mix:?}");
    }
}
