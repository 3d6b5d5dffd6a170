//! Loads straight into LDS: GEMM with them under every schedule gives what the interpreter gives, check mode
//! finds nothing, and no access has bank conflicts; the ping-pong schedule for them; tiles that such loads
//! cannot bring, and why.

use groundswell::compile::compile_uncached;
use groundswell::compile::listing;
use groundswell::compile::{Parameter, Verify};
use groundswell::internals::schedules::{
    Cut, Roles, TileReads, schedule_of_direct_loads, schedule_of_whole_tiles,
};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::largest_loop;
use groundswell_testing::schedules::GENERAL as SCHEDULES;
use groundswell_testing::tiles;

#[derive(Clone, Debug)]
struct Case {
    shape: [i64; 3],
    tile: [i64; 3],
    dynamic: bool,
}

impl Case {
    fn value(&self, symbol: Symbol) -> Option<i64> {
        tiles::size([self.shape, self.tile], symbol)
    }

    fn options(&self) -> Options {
        self.options_for(Target::GFX942)
    }

    fn options_for(&self, target: Target) -> Options {
        let options = Options::new(target).global_to_shared(GlobalToShared::Fitting);
        tiles::options(options, [self.shape, self.tile], self.dynamic)
    }

    /// Compiles, runs in check mode and compares.
    fn run(&self, kernel: &Kernel, options: &Options) -> Executable {
        let executable = verified(kernel, options);
        assert_right(kernel, &executable, &|s| self.value(s), 7, format_args!("{self:?}"));
        // A swizzle moves what a lane loads as one. Where that is 16 bytes and a lane reads 4 or 8, two of
        // them can meet in a bank.
        let reads_parts = options.target() == Target::GFX950 && reads_less_than_16_bytes(&executable);
        let most = if reads_parts { 2 } else { 1 };
        for access in &executable.report().lds_accesses {
            assert!(access.conflict_degree <= most, "{self:?}: {access:?}");
        }
        executable
    }
}

/// Whether lanes read fewer bytes of the factors of a product at once.
fn reads_less_than_16_bytes(executable: &Executable) -> bool {
    matches!(executable.parameters()[0], Parameter::Buffer { dtype: I8 | F32, .. })
}

/// A lane of gfx950 loads 4 or 16 bytes, one of the others 4.
const CHIPS: [Target; 3] = [Target::GFX90A, Target::GFX942, Target::GFX950];

#[test]
fn gemm_is_right_under_every_schedule() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    for (target, schedule) in CHIPS.into_iter().flat_map(|target| SCHEDULES.map(|s| (target, s))) {
        for dynamic in [false, true] {
            for k in [32, 64, 96, 160, 256, 20, 40, 72, 90] {
                for [m, n] in [[64, 64], [50, 70]] {
                    let case = Case { shape: [m, n, k], tile: [32, 32, 32], dynamic };
                    let options = case.options_for(target).schedule(schedule.clone());
                    let executable = case.run(&kernel, &options);
                    let report = executable.report();
                    if !dynamic && k >= 32 {
                        assert!(report.direct_loads >= 2, "{case:?}: {}", report.direct_loads_why);
                    }
                }
            }
        }
    }
}

#[test]
fn all_types_tiles_and_numbers_of_waves() {
    for (target, inputs) in CHIPS.into_iter().flat_map(|target| [F16, Bf16, F32, I8].map(|i| (target, i))) {
        for (waves, tile) in [
            (Waves::new(1, 1), [32, 32, 64]),
            (Waves::new(2, 1), [64, 32, 32]),
            (Waves::new(2, 4), [64, 128, 32]),
            (Waves::new(4, 2), [128, 64, 32]),
        ] {
            let kernel = Gemm::any_shape().inputs(inputs).waves(waves).kernel().expect("a kernel");
            for schedule in [Schedule::None, Schedule::Prefetch] {
                let case = Case { shape: [130, 140, 192], tile, dynamic: false };
                let executable = case.run(&kernel, &case.options_for(target).schedule(schedule));
                let report = executable.report();
                assert_eq!(
                    (report.direct_loads, &report.direct_loads_why[..]),
                    (2, ""),
                    "{target} {inputs:?} {case:?}"
                );
            }
        }
    }
}

/// LDS has room for so many copies of small tiles that a wave would have 74 loads under way where it waits,
/// which is more than a wait counts.
#[test]
fn small_tiles_have_no_more_loads_under_way_than_waits_count() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for k in [32, 42, 192, 1000] {
        let case = Case { shape: [64, 61, k], tile: [64, 64, 32], dynamic: false };
        case.run(&kernel, &case.options_for(Target::GFX950).schedule(Schedule::PingPong));
    }
}

/// A loop of known length has no more copies than iterations.
#[test]
fn short_loops_take_turns() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for k in [64, 96, 256, 512] {
        let case = Case { shape: [64, 61, k], tile: [64, 64, 32], dynamic: false };
        let executable = case.run(&kernel, &case.options_for(Target::GFX950).schedule(Schedule::PingPong));
        assert_eq!(executable.report().schedule_applied, "pingpong", "{k}");
    }
}

/// What gfx942 brings in four loads, gfx950 brings in one.
#[test]
fn a_lane_of_gfx950_loads_16_bytes() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let case = Case { shape: [4096; 3], tile: [128, 128, 64], dynamic: false };
    // gfx950 multiplies twice as many at once.
    let loads = [(Target::GFX942, 32), (Target::GFX950, 16)].map(|(target, products)| {
        let options = case.options_for(target).schedule(Schedule::Prefetch);
        let executable = compile_uncached(&kernel, &options, Verify::Off).expect("compiles");
        let mix = executable.report().main_loop.expect("a loop");
        assert_eq!((mix.mfma, mix.lds_read, mix.lds_write), (products, 12, 0), "{target}");
        mix.global_load
    });
    assert_eq!(loads, [16, 4]);
}

/// The main loop has loads and LDS reads, and no LDS writes; data goes through no register.
#[test]
fn no_register_lies_between() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let case = Case { shape: [4096; 3], tile: [128, 128, 64], dynamic: false };
    let compiled = |options: Options| {
        let executable = compile_uncached(&kernel, &options, Verify::Off).expect("compiles");
        (executable.report().main_loop.expect("a loop"), executable)
    };
    let (mix, direct) = compiled(case.options().schedule(Schedule::Prefetch));
    assert_eq!((mix.mfma, mix.global_load, mix.lds_read, mix.lds_write), (32, 16, 12, 0));
    let text = listing(direct.code(), direct.target().arch).expect("code of this crate is listed");
    let loads = text.lines().filter(|line| line.contains("buffer_load") && !line.ends_with(" lds"));
    assert_eq!(loads.count(), 0, "{text}");
}

/// Tags of the ready product of two factors.
fn roles() -> Roles<'static> {
    Roles { k_loop: "k_loop", lhs: "read_a", rhs: "read_b", scales: None, mma: "mma", k: Symbol::new("K") }
}

fn async_two_pp_cluster(cut: &Cut) -> WaveSchedule {
    schedule_of_direct_loads(&roles(), cut).expect("a schedule")
}

/// Barriers, priorities, waits and the operations between them, in the order of the main loop.
fn outline(executable: &Executable) -> Vec<String> {
    let text = listing(executable.code(), executable.target().arch).expect("code of this crate is listed");
    let mut outline: Vec<String> = Vec::new();
    for line in largest_loop(&text).expect("a loop").into_iter().map(str::trim) {
        let word = match line.split_whitespace().next().unwrap_or_default() {
            "buffer_load_dword" | "buffer_load_dwordx4" => "load to LDS",
            "s_setprio" => line,
            word if word.starts_with("ds_read") => "LDS read",
            word if word.starts_with("v_mfma") => "mfma",
            "s_barrier" => "barrier",
            "s_waitcnt" if line.contains("vmcnt") => line,
            _ => continue,
        };
        match outline.last_mut() {
            Some(last) if last.split(" x ").next() == Some(word) && !word.starts_with("barrier") => {
                let count: u32 = last.split(" x ").nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
                *last = format!("{word} x {}", count + 1);
            }
            _ => outline.push(word.to_owned()),
        }
    }
    outline
}

/// Eight waves, one half of them a cluster late: a cluster of reads and loads, one of matrix
/// instructions, reads, matrix instructions, with a barrier after each.
#[test]
fn clusters_of_asynchronous_ping_pong() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let case = Case { shape: [4096; 3], tile: [128, 128, 64], dynamic: false };
    let cut = Cut { loads: [8, 8], ..Cut::EVEN };
    let options = case.options().wave_schedule(&async_two_pp_cluster(&cut));
    let executable = verified(&kernel, &options);
    let expected = [
        "LDS read x 6",
        "load to LDS x 16",
        "barrier",
        "s_setprio 1",
        "mfma x 16",
        "s_setprio 0",
        "s_waitcnt vmcnt(16)",
        "barrier",
        "LDS read x 6",
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "barrier",
        "s_setprio 1",
        "mfma x 16",
        "s_setprio 0",
        "barrier",
    ];
    assert_eq!(outline(&executable), expected);
    let report = executable.report();
    assert!(report.vgprs + report.agprs <= 256 && report.scratch_bytes == 0 && report.lds_bytes == 65536);
}

#[test]
fn asynchronous_ping_pong_is_right() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for (tile, cut) in [
        ([128, 128, 64], Cut { loads: [8, 8], ..Cut::EVEN }),
        // All LDS reads bring both halves.
        ([128, 64, 32], Cut { loads: [4, 2], read_parts: [1, 1], ..Cut::EVEN }),
    ] {
        let schedule = async_two_pp_cluster(&cut);
        let text = schedule.to_string();
        let read = WaveSchedule::parse(&text, "async.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
        for dynamic in [false, true] {
            for k in [64, 128, 192, 256, 320, 512, 100, 190] {
                let case = Case { shape: [130, 70, k], tile, dynamic };
                case.run(&kernel, &case.options().wave_schedule(&schedule));
            }
        }
        let case = Case { shape: [128, 128, 256], tile, dynamic: false };
        let code = |schedule: &WaveSchedule| {
            let options = case.options().wave_schedule(schedule);
            compile_uncached(&kernel, &options, Verify::Off).expect("compiles").code().to_vec()
        };
        assert_eq!(code(&read), code(&schedule));
    }
}

/// One copy is read while the other one is loaded, or two others, or two of the left factor alone.
const WHOLE: [([i64; 3], Cut); 3] = [
    ([128, 128, 64], Cut { loads: [2, 2], copies: [2; 2], ..Cut::EVEN }),
    ([64, 128, 64], Cut { loads: [1, 2], copies: [3; 2], ..Cut::EVEN }),
    ([128, 64, 64], Cut { loads: [2, 1], copies: [3, 2], ..Cut::EVEN }),
];

fn whole_tile_pp_cluster(cut: &Cut) -> WaveSchedule {
    schedule_of_whole_tiles(&roles(), cut).expect("a schedule")
}

/// A cluster of reads and the loads of one factor, one of matrix instructions, one of the other factor's
/// loads, one of matrix instructions; what is waited for is counted.
#[test]
fn clusters_of_whole_tiles() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let outlines = WHOLE.map(|(tile, cut)| {
        let case = Case { shape: [4096; 3], tile, dynamic: false };
        let options = case.options_for(Target::GFX950).wave_schedule(&whole_tile_pp_cluster(&cut));
        let executable = verified(&kernel, &options);
        let [m, n, k] = tile;
        let [left, right] = cut.copies.map(i64::from);
        assert_eq!(i64::from(executable.report().lds_bytes), (m * left + n * right) * k * 2);
        outline(&executable)
    });
    let expected = |reads: u32, [alone, beside]: [u32; 2], products: u32, under_way: u32| {
        let mfma = format!("mfma x {products}");
        let load = |count| match count {
            1 => "load to LDS".to_owned(),
            more => format!("load to LDS x {more}"),
        };
        let (urgent, yielding, barrier) =
            ("s_setprio 1".to_owned(), "s_setprio 0".to_owned(), "barrier".to_owned());
        vec![
            urgent.clone(),
            format!("LDS read x {reads}"),
            load(beside),
            yielding.clone(),
            barrier.clone(),
            mfma.clone(),
            barrier.clone(),
            urgent,
            load(alone),
            format!("s_waitcnt vmcnt({under_way})"),
            yielding,
            barrier.clone(),
            mfma,
            barrier,
        ]
    };
    let all = [expected(12, [2, 2], 8, 2), expected(8, [1, 2], 4, 4), expected(10, [1, 2], 4, 3)];
    assert_eq!(outlines, all);
}

#[test]
fn ping_pong_of_whole_tiles_is_right() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for (tile, cut) in WHOLE {
        let schedule = whole_tile_pp_cluster(&cut);
        for dynamic in [false, true] {
            for k in [64, 128, 192, 256, 320, 512, 104, 200] {
                let case = Case { shape: [130, 72, k], tile, dynamic };
                let options = case.options_for(Target::GFX950);
                case.run(&kernel, &options.wave_schedule(&schedule));
            }
        }
    }
}

/// Where all reads together would take longer than the matrix instructions beside them, those of half of the
/// right factor, or of the left one if that has a copy more, come with the other factor's loads.
#[test]
fn half_of_a_tile_is_read_later() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for ((tile, cut), [first, second]) in WHOLE.into_iter().zip([[10, 2], [6, 2], [6, 4]]) {
        let schedule = whole_tile_pp_cluster(&Cut { tile_reads: TileReads::SecondHalfLater, ..cut });
        let case = Case { shape: [4096; 3], tile, dynamic: false };
        let options = case.options_for(Target::GFX950).wave_schedule(&schedule);
        let executable = verified(&kernel, &options);
        let reads: Vec<String> =
            outline(&executable).into_iter().filter(|line| line.starts_with("LDS read")).collect();
        assert_eq!(reads, [first, second].map(|count| format!("LDS read x {count}")));
        for (dynamic, k) in [(false, 256), (false, 200), (true, 64), (true, 320)] {
            let case = Case { shape: [130, 72, k], tile, dynamic };
            case.run(&kernel, &case.options_for(Target::GFX950).wave_schedule(&schedule));
        }
    }
    // In 128 x 256 x 64 the reads take 256 clk and arrive later, and so long take the matrix instructions.
    for (tile, reads) in [([128, 256, 64], vec![12, 4]), ([256, 256, 64], vec![24])] {
        let case = Case { shape: [4096; 3], tile, dynamic: false };
        let options = case.options_for(Target::GFX950).schedule(Schedule::PingPong);
        let executable = verified(&kernel, &options);
        let lines = outline(&executable);
        let found: Vec<usize> =
            lines.iter().filter_map(|line| line.strip_prefix("LDS read x ")?.parse().ok()).collect();
        assert_eq!(found, reads, "{tile:?}");
    }
}

/// Every wait, one more left under way than there may be: the compiler says which accesses would meet.
#[test]
fn a_wait_that_leaves_too_many_is_refused() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for ((tile, cut), loads) in
        WHOLE.into_iter().zip(["wait_for_loads 2", "wait_for_loads 4", "wait_for_loads 3"])
    {
        let case = Case { shape: [4096; 3], tile, dynamic: false };
        let text = whole_tile_pp_cluster(&cut).to_string();
        let (last, more) = loads.split_at(loads.len() - 1);
        let more: u32 = more.parse().expect("a number");
        let faults =
            [(loads, format!("{last}{}", more + 1)), ("wait_for_shared 0", "wait_for_shared 1".to_owned())];
        for (right, wrong) in faults {
            assert_eq!(text.matches(right).count(), 1, "{text}");
            let schedule =
                WaveSchedule::parse(&text.replace(right, &wrong), "wrong.gsw").expect("a schedule");
            let options = case.options_for(Target::GFX950).wave_schedule(&schedule);
            let fault = compile_uncached(&kernel, &options, Verify::Off).expect_err("accesses meet");
            assert!(fault.message.starts_with("no barrier keeps the "), "{wrong}: {fault}");
        }
    }
}

/// Ping-pong on gfx950 loads straight into LDS without being asked to, unless it is told not to.
#[test]
fn ping_pong_of_gfx950_takes_such_loads() {
    let tiles = |gemm: Gemm, target: Target, how: GlobalToShared| {
        let kernel = gemm.waves(Waves::new(2, 4)).kernel().expect("a kernel");
        let case = Case { shape: [4096; 3], tile: [256, 256, 64], dynamic: false };
        let options = case.options_for(target).global_to_shared(how).schedule(Schedule::PingPong);
        let executable = verified(&kernel, &options);
        let report = executable.report();
        assert_eq!(report.schedule_applied, "pingpong", "{}", report.schedule_why);
        assert_eq!(report.scratch_bytes, 0);
        (report.direct_loads, report.lds_bytes)
    };
    let plain = Gemm::any_shape;
    // Three copies of the left factor's tile and two of the right one's fill LDS: half a trip is less than a
    // load from memory may take.
    assert_eq!(tiles(plain(), Target::GFX950, GlobalToShared::Automatic), (2, 5 << 15));
    let bf16 = plain().inputs(Bf16).output(Bf16);
    assert_eq!(tiles(bf16, Target::GFX950, GlobalToShared::Automatic), (2, 5 << 15));
    assert_eq!(tiles(plain(), Target::GFX950, GlobalToShared::Off), (0, 2 << 15));
    assert_eq!(tiles(plain(), Target::GFX942, GlobalToShared::Automatic), (0, 2 << 15));
}

/// A wave alone has no barriers after which loads are over: each of its reads would wait for all of them, so
/// tiles go through registers unless loads straight into LDS are asked for.
#[test]
fn a_wave_alone_takes_them_only_where_they_are_asked_for() {
    let loaded = |waves: Waves, schedule: Schedule, how: GlobalToShared| {
        let kernel = Gemm::any_shape().waves(waves).kernel().expect("a kernel");
        let case = Case { shape: [4096; 3], tile: [64, 64, 64], dynamic: false };
        let options = case.options_for(Target::GFX950).global_to_shared(how).schedule(schedule);
        let executable = verified(&kernel, &options);
        executable.report().direct_loads
    };
    for schedule in [Schedule::Interleaved, Schedule::Automatic] {
        for (waves, how, tiles) in [
            (Waves::new(1, 1), GlobalToShared::Automatic, 0),
            (Waves::new(1, 1), GlobalToShared::Fitting, 2),
            (Waves::new(2, 2), GlobalToShared::Automatic, 2),
        ] {
            assert_eq!(loaded(waves, schedule.clone(), how), tiles, "{schedule:?} {waves:?} {how:?}");
        }
    }
}

/// Lanes that read every row, and lanes that leave three out: 16 of them find all banks of gfx950 in two
/// rows.
#[test]
fn rows_that_are_loaded_together_change_places() {
    for (output, matrix) in [(F32, "32x32"), (F16, "16x16"), (F16, "32x32")] {
        let shape = MatrixShape::ALL.into_iter().find(|shape| shape.to_string() == matrix).expect("a shape");
        let gemm = Gemm::any_shape().matrix(shape).output(output).waves(Waves::new(2, 4));
        let kernel = gemm.kernel().expect("a kernel");
        let case = Case { shape: [130, 260, 192], tile: [128, 256, 64], dynamic: false };
        case.run(&kernel, &case.options_for(Target::GFX950).schedule(Schedule::PingPong));
    }
}

fn why(kernel: &Kernel, case: &Case, schedule: Schedule) -> (u32, String) {
    let report = verified(kernel, &case.options().schedule(schedule)).report().clone();
    (report.direct_loads, report.direct_loads_why)
}

#[test]
fn what_such_loads_cannot_bring_goes_through_registers() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let large = Case { shape: [4096; 3], tile: [128, 256, 64], dynamic: false };
    let text = "two copies of the tiles would take 98304 bytes of LDS, and a workgroup has 65536";
    assert_eq!(why(&kernel, &large, Schedule::PingPong), (0, text.to_owned()));
    assert_eq!(why(&kernel, &large, Schedule::None), (2, String::new()));
    let odd = Case { shape: [64, 128, 45], tile: [64, 128, 32], dynamic: false };
    let text = "a load of 4 bytes may be in part outside of the tensor";
    assert_eq!(why(&kernel, &odd, Schedule::None), (2, text.to_owned()));
    let small = Case { shape: [32, 64, 64], tile: [32, 64, 16], dynamic: false };
    let text = "a tile of 1024 bytes does not fall into loads of 256 bytes for each of 8 waves";
    assert_eq!(why(&kernel, &small, Schedule::None), (1, text.to_owned()));
}

#[test]
fn ping_pong_with_such_loads_says_why_it_does_not_suit() {
    let applied = |kernel: &Kernel, tile: [i64; 3]| {
        let case = Case { shape: [4096; 3], tile, dynamic: false };
        let options = case.options().schedule(Schedule::PingPong);
        let executable = verified(kernel, &options);
        let report = executable.report().clone();
        assert_eq!(report.direct_loads, 2, "{}", report.direct_loads_why);
        (report.schedule_applied, report.schedule_why)
    };
    let f16 = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let text = "taking turns would need about 1872 clocks per iteration, and prefetching alone 1792";
    assert_eq!(applied(&f16, [128, 128, 64]), ("prefetch", text.to_owned()));
    let f32 = Gemm::any_shape().inputs(F32).waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let text =
        "products of f32 run on the vector ALU, which addresses of loads straight into LDS would wait for";
    assert_eq!(applied(&f32, [128, 128, 32]), ("prefetch", text.to_owned()));
}
