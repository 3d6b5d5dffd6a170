//! Quadrants: products whose waves take turns quadrant by quadrant give what the interpreter gives, check
//! mode finds nothing, nothing spills, no access has bank conflicts; what the schedule looks like, and what
//! is refused.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::internals::schedules::{
    Factor, QuadrantMoves, Quadrants, REGIONS, Roles, schedule_of_quadrants,
};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::emitted;
use groundswell_testing::tiles;

#[derive(Copy, Clone, Debug)]
struct Case {
    target: Target,
    shape: [i64; 3],
    tile: [i64; 3],
    waves: Waves,
    dynamic: bool,
}

const GFX942: Case = Case {
    target: Target::GFX942,
    shape: [256, 256, 320],
    tile: [256, 256, 64],
    waves: Waves { m: 2, n: 4 },
    dynamic: false,
};

const GFX950: Case = Case { target: Target::GFX950, ..GFX942 };

impl Case {
    fn value(&self, symbol: Symbol) -> Option<i64> {
        tiles::size([self.shape, self.tile], symbol)
    }

    fn kernel(&self, inputs: DType) -> Kernel {
        Gemm::any_shape().inputs(inputs).waves(self.waves).kernel().expect("a kernel")
    }

    fn options(&self) -> Options {
        tiles::options(Options::new(self.target), [self.shape, self.tile], self.dynamic)
    }

    fn compiled(&self, options: &Options) -> Executable {
        verified(&self.kernel(F16), options)
    }

    /// Compiles with this schedule, runs in check mode and compares.
    fn run(&self, inputs: DType, options: &Options) -> Executable {
        let kernel = self.kernel(inputs);
        let executable = verified(&kernel, options);
        assert_right(&kernel, &executable, &|s| self.value(s), 7, format_args!("{self:?} {inputs:?}"));
        let report = executable.report();
        assert!(report.spills.is_none(), "{self:?} {inputs:?}: {:?}", report.spills);
        for access in &report.lds_accesses {
            assert_eq!(access.conflict_degree, 1, "{self:?} {inputs:?}: {access:?}");
        }
        executable
    }

    fn in_quadrants(&self, inputs: DType) -> Executable {
        self.run(inputs, &self.options().schedule(Schedule::Quadrants))
    }
}

/// From one trip to five, with and without a remainder of k.
#[test]
fn products_of_any_length_are_right() {
    for case in [GFX942, GFX950] {
        for dynamic in [false, true] {
            for k in [64, 128, 192, 256, 320, 40, 90, 200] {
                let case = Case { shape: [250, 256, k], dynamic, ..case };
                let executable = case.in_quadrants(F16);
                // Three stages have two iterations or more, and two have one.
                let least = if case.target == Target::GFX942 { 128 } else { 64 };
                let is_short = !dynamic && k < least;
                let expected = if is_short { "none" } else { "quadrants" };
                assert_eq!(executable.report().schedule_applied, expected, "{case:?}");
            }
        }
    }
}

#[test]
fn other_tiles_and_types_are_right() {
    for (waves, tile) in [
        (Waves::new(4, 2), [256, 256, 64]),
        (Waves::new(2, 4), [128, 256, 64]),
        (Waves::new(4, 2), [256, 128, 64]),
    ] {
        for case in [GFX942, GFX950] {
            let case = Case { waves, tile, shape: [tile[0] + 5, tile[1], 4 * tile[2] + 8], ..case };
            let executable = case.in_quadrants(F16);
            assert_eq!(executable.report().schedule_applied, "quadrants", "{case:?}");
        }
    }
    for case in [GFX942, GFX950] {
        let bytes = if case.target == Target::GFX942 { F8E4M3Fnuz } else { F8E4M3Fn };
        for (inputs, depth) in [(Bf16, 64), (I8, 128), (bytes, 128)] {
            let case = Case { tile: [256, 256, depth], shape: [256, 256, 4 * depth], ..case };
            let executable = case.in_quadrants(inputs);
            assert_eq!(executable.report().schedule_applied, "quadrants", "{case:?} {inputs:?}");
        }
    }
}

/// Where a region takes long, one copy of the tiles is enough on gfx950, although loads go straight into it.
#[test]
fn deep_tiles_have_one_copy() {
    let case = Case { tile: [128, 256, 128], shape: [128, 256, 640], ..GFX950 };
    let report = case.in_quadrants(F16);
    let report = report.report();
    assert_eq!((report.schedule_applied, report.lds_bytes), ("quadrants", (128 + 256) * 256));
    assert_eq!(report.direct_loads, 2);
}

/// Both halves of the factor with more registers follow each other in the same ones.
#[test]
fn quadrants_take_fewer_registers() {
    for case in [GFX942, GFX950] {
        let [turns, quadrants] = [Schedule::PingPong, Schedule::Quadrants].map(|schedule| {
            let executable = case.compiled(&case.options().schedule(schedule));
            executable.report().vgprs + executable.report().agprs
        });
        assert!(quadrants + 16 <= turns, "{case:?}: {quadrants} and {turns}");
    }
}

/// Instructions that a schedule decides on.
const SCHEDULED: [(&str, &str); 5] = [
    ("buffer_load", "load"),
    ("ds_write", "write"),
    ("ds_read", "read"),
    ("v_mfma", "product"),
    ("s_barrier", "barrier"),
];

/// A memory region, and the compute region after it.
fn region(memory: &[(&'static str, u32)], products: u32) -> Vec<(&'static str, u32)> {
    [memory, &[("barrier", 1), ("product", products), ("barrier", 1)]].concat()
}

#[test]
fn a_half_is_read_in_each_region_and_replaced_in_the_next() {
    let quadrants =
        |case: &Case| emitted(&case.compiled(&case.options().schedule(Schedule::Quadrants)), &SCHEDULED);
    let through_registers = [
        region(&[("read", 8), ("load", 4)], 32),
        region(&[("read", 4)], 32),
        region(&[("read", 8), ("write", 4)], 32),
        region(&[("read", 4), ("write", 4), ("load", 4)], 32),
    ];
    assert_eq!(quadrants(&GFX942), through_registers.concat());
    let direct = [8, 4, 8, 4].map(|reads| region(&[("read", reads), ("load", 2)], 16));
    assert_eq!(quadrants(&GFX950), direct.concat());
}

/// Beside those of the loop and the two that let waves part and meet: one after the first tile has been
/// written, and two where the last one is. What the prologue reads is over before the loop writes there, and
/// what the loop accesses is over when its waves meet.
#[test]
fn no_barrier_stands_around_the_loop_that_nothing_needs() {
    let executable = GFX942.compiled(&GFX942.options().schedule(Schedule::Quadrants));
    assert_eq!(executable.report().barriers, 2 * REGIONS as u32 + 5);
}

fn schedule_with(moves: QuadrantMoves) -> WaveSchedule {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let roles = Roles { k_loop: "k_loop", lhs: "read_a", rhs: "read_b", scales: None, mma: "mma", k };
    let quadrants = Quadrants { halves: [m, n], shared: Factor::Left, moves };
    schedule_of_quadrants(&roles, &quadrants).expect("a schedule")
}

#[test]
fn it_is_a_schedule_that_authors_can_write() {
    let text = schedule_with(QuadrantMoves::ThroughRegisters).to_string();
    let read = WaveSchedule::parse(&text, "quadrants.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
    for dynamic in [false, true] {
        let case = Case { dynamic, ..GFX942 };
        let expected = case.compiled(&case.options().schedule(Schedule::Quadrants));
        assert_eq!(case.compiled(&case.options().wave_schedule(&read)).code(), expected.code(), "{case:?}");
    }
}

type Loads = Box<[[Vec<u32>; REGIONS]; 2]>;
type UnderWay = [Option<u8>; REGIONS];

/// Loads as they are distributed without this schedule: each of those of the right factor brings rows of both
/// halves, so that they come after the second one has been read.
fn loads() -> Loads {
    let none = Vec::new;
    Box::new([[none(), vec![0, 2], none(), vec![1, 3]], [none(), none(), vec![0, 1, 2, 3], none()]])
}

const UNDER_WAY: UnderWay = [Some(10), Some(10), Some(8), Some(14)];

fn direct(loads: Loads, under_way: UnderWay) -> Result<Executable, Diagnostic> {
    let schedule = schedule_with(QuadrantMoves::Direct { copies: 2, loads, under_way });
    let options = GFX950.options().global_to_shared(GlobalToShared::Fitting).wave_schedule(&schedule);
    compile_uncached(&GFX950.kernel(F16), &options, Verify::AfterEachPass)
}

#[test]
fn what_has_been_read_is_loaded_anew_while_the_other_half_is_not() {
    let schedule = schedule_with(QuadrantMoves::Direct { copies: 2, loads: loads(), under_way: UNDER_WAY });
    let options = GFX950.options().global_to_shared(GlobalToShared::Fitting).wave_schedule(&schedule);
    let executable = GFX950.run(F16, &options);
    assert_eq!(executable.report().lds_bytes, 128 << 10);
}

/// The first half of the left factor is read in region 0 and the second one in region 2, the first half of
/// the right one in region 3 and the second one in region 1.
#[test]
fn loads_that_come_too_early_are_refused() {
    let none = Vec::new;
    let right = || loads()[1].clone();
    for early in [
        // Both waves of a SIMD would have to be over with the region that reads.
        [[vec![0, 2], none(), none(), vec![1, 3]], right()],
        // Rows of the second half.
        [[none(), vec![0, 1], none(), vec![2, 3]], right()],
        [[none(), vec![0, 1, 2, 3], none(), none()], right()],
        // Late waves bring rows of the second half, and others of them read these in that region.
        [loads()[0].clone(), [none(), vec![3], vec![0, 1, 2], none()]],
    ] {
        let Err(fault) = direct(Box::new(early.clone()), [Some(0); REGIONS]) else {
            panic!("accepted: {early:?}");
        };
        let is_order = fault.message.contains("no barrier keeps") || fault.message.contains("overwrites");
        assert!(is_order || fault.message.contains("has to come before"), "{early:?}: {fault}");
    }
}

/// Of rows that early waves alone read, early waves load the half that was read half a trip ago, and late
/// ones the half that was read one barrier ago.
#[test]
fn groups_of_waves_are_told_apart() {
    let loads: Loads = Box::new([loads()[0].clone(), [Vec::new(), vec![0], vec![1, 2, 3], Vec::new()]]);
    let under_way = [Some(0); REGIONS];
    let schedule = schedule_with(QuadrantMoves::Direct { copies: 2, loads, under_way });
    let options = GFX950.options().global_to_shared(GlobalToShared::Fitting).wave_schedule(&schedule);
    assert_eq!(GFX950.run(F16, &options).report().schedule_applied, "manual");
}

#[test]
fn waits_for_too_few_loads_are_refused() {
    assert!(direct(loads(), UNDER_WAY).is_ok());
    // What regions 0 and 1 read has been waited for with what region 3 reads.
    for region in [1, 2] {
        let mut under_way = UNDER_WAY;
        under_way[region] = under_way[region].map(|count| count + 1);
        let Err(fault) = direct(loads(), under_way) else { panic!("accepted: {under_way:?}") };
        assert!(fault.message.contains("no barrier keeps"), "{region}: {fault}");
    }
}

#[test]
fn it_says_why_a_loop_is_not_suited() {
    let why = |case: &Case| {
        let executable = case.compiled(&case.options().schedule(Schedule::Quadrants));
        let report = executable.report();
        (report.schedule_applied, report.schedule_why.clone())
    };
    let few = Case { waves: Waves::new(2, 2), tile: [64, 64, 64], ..GFX942 };
    let turns = "a workgroup has 4 waves: ping-pong takes two for each of the four SIMDs, or four";
    // The reason of ping-pong, which would be next, is the same.
    assert_eq!(why(&few), ("prefetch", turns.to_owned()));
    let narrow = Case { tile: [64, 64, 64], ..GFX942 };
    let halves =
        "the right factor of a wave's tile is not two equal halves that are multiplied one after the other";
    assert_eq!(why(&narrow), ("pingpong", halves.to_owned()));
}
