//! The interleaved schedule: GEMM under it gives what the interpreter gives in check mode, on three chips,
//! for several dtypes and ragged sizes; authors can write it; and it says where it does not suit.

use groundswell::internals::schedules::{Moves, Roles, Spacing, schedule_of_interleaved};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::tiles;

#[derive(Copy, Clone, Debug)]
struct Case {
    shape: [i64; 3],
    tile: [i64; 3],
    dynamic: bool,
}

impl Case {
    fn value(&self, symbol: Symbol) -> Option<i64> {
        tiles::size([self.shape, self.tile], symbol)
    }

    fn options(&self, target: Target) -> Options {
        let options = Options::new(target).schedule(Schedule::Interleaved);
        tiles::options(options, [self.shape, self.tile], self.dynamic)
    }

    /// Compiles, runs in check mode and compares.
    fn run(&self, kernel: &Kernel, options: &Options) -> Executable {
        let executable = verified(kernel, options);
        assert_right(kernel, &executable, &|s| self.value(s), 7, format_args!("{self:?}"));
        executable
    }
}

const LARGE: Case = Case { shape: [4096; 3], tile: [256, 256, 64], dynamic: false };

const CHIPS: [Target; 3] = [Target::GFX90A, Target::GFX942, Target::GFX950];

#[test]
fn gemm_is_right_under_it() {
    let waves = [(Waves::new(2, 2), [64, 64]), (Waves::new(1, 1), [32, 32]), (Waves::new(2, 4), [64, 128])];
    let mut applied = 0;
    for (target, (waves, [m, n])) in CHIPS.into_iter().flat_map(|target| waves.map(|case| (target, case))) {
        let kernel = Gemm::any_shape().waves(waves).kernel().expect("a kernel");
        for (shape, dynamic) in [
            ([64, 128, 384], false),
            ([70, 140, 384], false),
            ([50, 30, 200], true),
            ([130, 70, 460], true),
            ([64, 64, 64], true),
        ] {
            let case = Case { shape, tile: [m, n, 64], dynamic };
            let report = case.run(&kernel, &case.options(target)).report().clone();
            applied += u32::from(report.schedule_applied == "interleaved");
            assert_eq!((report.schedule_applied, &report.schedule_why[..]), ("interleaved", ""), "{case:?}");
        }
    }
    assert_eq!(applied, 45);
}

#[test]
fn all_types_go_through_registers_and_straight_into_lds() {
    for (target, inputs) in CHIPS.into_iter().flat_map(|target| [F16, Bf16, I8].map(|i| (target, i))) {
        let kernel = Gemm::any_shape().inputs(inputs).waves(Waves::new(2, 2)).kernel().expect("a kernel");
        let case = Case { shape: [130, 140, 640], tile: [64, 64, 128], dynamic: false };
        for (how, tiles) in [(GlobalToShared::Off, 0), (GlobalToShared::Fitting, 2)] {
            let executable = case.run(&kernel, &case.options(target).global_to_shared(how));
            let report = executable.report();
            assert_eq!(
                (report.direct_loads, report.schedule_applied, &report.schedule_why[..]),
                (tiles, "interleaved", ""),
                "{target} {inputs:?} {how:?}"
            );
        }
    }
}

/// One wave on each SIMD holds a quarter of the largest tile: its accumulators are in AGPRs, and its loop has
/// nothing but what moves data, multiplies and waits.
#[test]
fn the_largest_tile_fits_the_registers_of_four_waves() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    for (target, products, writes, barriers) in [(Target::GFX942, 256, 16, 2), (Target::GFX950, 128, 0, 2)] {
        let executable = verified(&kernel, &LARGE.options(target));
        let report = executable.report();
        assert_eq!((report.schedule_applied, &report.schedule_why[..]), ("interleaved", ""));
        assert_eq!(report.scratch_bytes, 0, "{target}: {:?}", report.spills);
        let mix = report.main_loop.as_ref().expect("a loop");
        assert_eq!(
            (mix.mfma, mix.lds_read, mix.lds_write, mix.global_load, mix.barrier),
            (products, 32, writes, 16, barriers),
            "{target}: {mix:?}"
        );
        // Addresses of the two copies of tiles in LDS.
        assert!(mix.valu <= 4, "{target}: {mix:?}");
        assert!(report.lds_accesses.iter().all(|access| access.conflict_degree == 1), "{target}");
    }
}

#[test]
fn authors_can_write_it() {
    let roles = Roles {
        k_loop: "k_loop",
        lhs: "read_a",
        rhs: "read_b",
        scales: None,
        mma: "mma",
        k: Symbol::new("K"),
    };
    let through_registers = Spacing {
        reads: 2,
        first_read: 170,
        loads: 4,
        first_load: 86,
        moves: Moves::ThroughRegisters { writes: 2, first_write: 85 },
    };
    let direct = Spacing {
        reads: 1,
        first_read: 105,
        loads: 6,
        first_load: 23,
        moves: Moves::Direct { copies: 2, under_way: 14 },
    };
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    for (target, spacing) in [(Target::GFX942, through_registers), (Target::GFX950, direct)] {
        let text = schedule_of_interleaved(&roles, &spacing).expect("a schedule").to_string();
        let read =
            WaveSchedule::parse(&text, "interleaved.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
        let options = LARGE.options(target);
        let direct = match spacing.moves {
            Moves::ThroughRegisters { .. } => GlobalToShared::Off,
            Moves::Direct { .. } => GlobalToShared::Fitting,
        };
        let by_hand = verified(&kernel, &options.clone().wave_schedule(&read).global_to_shared(direct));
        assert_eq!(by_hand.code(), verified(&kernel, &options).code(), "{target}\n{text}");
    }
}

fn why(kernel: &Kernel, case: &Case, target: Target) -> (&'static str, String) {
    let executable = verified(kernel, &case.options(target));
    let report = executable.report();
    (report.schedule_applied, report.schedule_why.clone())
}

#[test]
fn it_says_why_it_does_not_suit() {
    let kernel = |waves| Gemm::any_shape().waves(waves).kernel().expect("a kernel");
    let thin = Case { tile: [64, 64, 32], ..LARGE };
    let text = "a tile has 1 steps along the loop's dimension, which are not two equal parts";
    assert_eq!(why(&kernel(Waves::new(2, 2)), &thin, Target::GFX950), ("prefetch", text.to_owned()));
    let small = Case { tile: [32, 32, 64], ..LARGE };
    let text = "2 reads of LDS do not fit between the 1 matrix instructions of half an iteration";
    assert_eq!(why(&kernel(Waves::new(2, 2)), &small, Target::GFX950), ("prefetch", text.to_owned()));
    let (schedule, text) = why(&kernel(Waves::new(1, 2)), &LARGE, Target::GFX942);
    assert_eq!(schedule, "prefetch");
    assert!(text.ends_with("vector registers, and has 492: use smaller tiles"), "{text}");
}
