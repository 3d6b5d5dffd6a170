//! Loops in two phases: attention and other chains of products give what the interpreter gives in check mode,
//! on three chips; `auto` chooses the schedule; time mode confirms that it pays; and it says where it does
//! not suit.

use groundswell::prelude::*;
use groundswell::simulator::time::DeviceModel;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::emitted;
use groundswell_testing::meaning::reads_back;

use super::attention::{Attention, CHAINS, CHIPS, Mask, Maximum, Second, Sizes, chain, parsed, trip};

/// Compiles under the schedule, runs in check mode, and says which schedule was applied and why.
fn run(kernel: &Kernel, target: Target, sizes: Sizes) -> (&'static str, String) {
    let executable = verified(kernel, &sizes.options(target, Schedule::TwoPhase));
    assert_right(kernel, &executable, &|s| sizes.value(s), 7, format_args!("{target} {sizes:?}\n{kernel}"));
    let report = executable.report();
    (report.schedule_applied, report.schedule_why.clone())
}

#[test]
fn attention_is_right_in_two_phases() {
    let mut applied = 0;
    for second in [Second::AsWritten, Second::Turned] {
        for (mask, matrix) in [(Mask::None, "16x16"), (Mask::None, "32x32"), (Mask::Causal, "16x16")] {
            for (target, depth) in CHIPS.into_iter().flat_map(|target| [(target, 64), (target, 128)]) {
                let attention = Attention { second, mask, matrix, maximum: Maximum::Exact };
                let sizes = Sizes { h: 2, m: 512, n: 512, d: depth };
                let (schedule, why) = run(&attention.kernel(), target, sizes);
                let is_applied = schedule == "two_phase";
                applied += u32::from(is_applied);
                let may_refuse = "waves exchange values between its operations: the LDS write";
                assert!(is_applied || why.contains(may_refuse), "{attention:?} {target}: {schedule}: {why}");
                assert!(is_applied || target == Target::GFX950, "{attention:?} {target}: {why}");
            }
        }
    }
    assert!(applied >= 26, "{applied} of 36");
}

/// Loops of one and two iterations, fewer than the pipeline has stages, and rows that no tile divides.
#[test]
fn short_and_ragged_attention_is_right() {
    let attention =
        Attention { second: Second::Turned, mask: Mask::None, matrix: "32x32", maximum: Maximum::Exact };
    for target in CHIPS {
        for (m, n) in [(256, 64), (256, 128), (300, 256), (70, 320), (1, 448), (257, 576)] {
            run(&attention.kernel(), target, Sizes { h: 1, m, n, d: 64 });
        }
    }
}

/// The number of iterations is the launch's.
#[test]
fn attention_of_any_length_is_right() {
    let attention =
        Attention { second: Second::Turned, mask: Mask::None, matrix: "16x16", maximum: Maximum::Exact };
    let kernel = attention.kernel();
    let options = Options::new(Target::GFX942).schedule(Schedule::TwoPhase).fast_math();
    let options = options.set(Symbol::new("H"), 1).set(Symbol::new("M"), 256).set(Symbol::new("D"), 64);
    let executable = verified(&kernel, &options.dynamic(Symbol::new("N")));
    assert_eq!(executable.report().schedule_applied, "two_phase");
    for n in [64, 128, 192, 256, 320, 384, 640, 704] {
        let sizes = Sizes { h: 1, m: 256, n, d: 64 };
        assert_right(&kernel, &executable, &|s| sizes.value(s), 11, n);
    }
}

/// On gfx950 some of them move values between lanes through LDS.
#[test]
fn other_chains_of_products_are_right() {
    for (name, body) in CHAINS {
        let kernel = parsed(&chain(body));
        for target in CHIPS {
            for (n, is_long) in [(64, false), (256, true), (512, true), (640, true)] {
                let (schedule, why) = run(&kernel, target, Sizes { h: 1, m: 128, n, d: 64 });
                let may_refuse = target == Target::GFX950 && why.contains("waves exchange values");
                let is_as_expected = (schedule == "two_phase") == is_long || may_refuse;
                assert!(is_as_expected, "{name} {target} {n}: {schedule} {why}");
            }
        }
    }
}

/// Reads that the vector unit uses before a product does, and the products' own, each through registers and
/// straight into LDS: all loops compile that compile without a schedule.
#[test]
fn tiles_that_vectors_read_first_are_right() {
    let scaled_first = "%k = read k
        %k1 = mul %k, 0.5
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k1, %q, %t0
        %ph = cast %s f16
        %v = read v
        %on = mma %v, %ph, %oi
        yield %on";
    let scaled_second = "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %ph = cast %s f16
        %v = read v
        %v1 = mul %v, 0.5
        %on = mma %v1, %ph, %oi
        yield %on";
    let summed_and_multiplied = "%k = read k
        %kf = cast %k f32
        %top = reduce_max %kf over D
        %t0 = register [H, N, M] f32 0.0
        %from = sub %t0, %top
        %s = mma %k, %q, %from
        %ph = cast %s f16
        %v = read v
        %on = mma %v, %ph, %oi
        yield %on";
    let multiplied_twice = "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %ph = cast %s f16
        %on = mma %k, %ph, %oi
        yield %on";
    let sizes = Sizes { h: 1, m: 128, n: 640, d: 64 };
    for body in [scaled_first, scaled_second, summed_and_multiplied, multiplied_twice] {
        let kernel = parsed(&chain(body));
        for target in CHIPS {
            for schedule in [Schedule::TwoPhase, Schedule::Automatic] {
                for way in [GlobalToShared::Off, GlobalToShared::Fitting, GlobalToShared::Automatic] {
                    let options = sizes.options(target, schedule.clone()).global_to_shared(way);
                    let executable = verified(&kernel, &options);
                    let title = format_args!("{target} {way:?}\n{kernel}");
                    assert_right(&kernel, &executable, &|s| sizes.value(s), 5, title);
                }
            }
        }
    }
}

#[test]
fn loops_that_it_does_not_suit_say_why() {
    let attention =
        Attention { second: Second::Turned, mask: Mask::None, matrix: "16x16", maximum: Maximum::Exact }
            .text();
    let four_waves = attention.replace("workgroup M, 256, 0", "workgroup M, 128, 0");
    let sums = "%k = read k
        %kf = cast %k f32
        %top = reduce_max %kf over D
        %more = reduce_sum %top over N
        %on = add %oi, %more
        yield %on";
    let product = "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %sum = reduce_sum %s over N
        %on = add %oi, %sum
        yield %on";
    // What a product adds to the carried value is a factor of the next iteration's.
    let circle = "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %top = reduce_max %oi over D
        %kf = cast %k f32
        %kt = mul %kf, scale
        %kh = cast %kt f16
        %s = mma %kh, %q, %t0
        %st = add %s, %top
        %ph = cast %st f16
        %v = read v
        %on = mma %v, %ph, %oi
        yield %on";
    for (text, expected) in [
        (
            four_waves,
            Some("a workgroup has 4 waves: two phases take two for each SIMD, or a multiple of that"),
        ),
        (
            chain(sums),
            Some(
                "the loop has no matrix product, which one of two waves would do while the other does the rest",
            ),
        ),
        (chain(product), None),
        (chain(circle), None),
    ] {
        let (schedule, why) = run(&parsed(&text), Target::GFX942, Sizes { h: 1, m: 128, n: 512, d: 64 });
        match expected {
            Some(reason) => assert_eq!((schedule, &why[..]), ("prefetch", reason)),
            None => assert_eq!((schedule, &why[..]), ("two_phase", "")),
        }
    }
}

/// With two waves of a SIMD in step, matrix cores and vector units wait for each other.
#[test]
fn attention_takes_much_less_time_in_two_phases() {
    let turned =
        Attention { second: Second::Turned, mask: Mask::None, matrix: "16x16", maximum: Maximum::Exact };
    let written = Attention { second: Second::AsWritten, ..turned };
    for (device, attention, depth, matrix, least) in [
        (DeviceModel::MI300X, turned, 128, 4096.0, 0.80),
        (DeviceModel::MI300X, written, 128, 4096.0, 0.80),
        (DeviceModel::MI300X, Attention { matrix: "32x32", ..turned }, 128, 4096.0, 0.92),
        (DeviceModel::MI300X, turned, 64, 2048.0, 0.50),
        (DeviceModel::MI355X, Attention { matrix: "32x32", ..turned }, 128, 2048.0, 0.58),
    ] {
        let [alone, automatic] = [Schedule::Prefetch, Schedule::Automatic]
            .map(|schedule| trip(device, attention, depth, schedule));
        println!(
            "{} {attention:?} {depth}: {automatic} clk of {matrix}, {alone} with prefetching",
            device.name
        );
        assert!(automatic < 0.8 * alone, "{attention:?}: {automatic} and {alone} clk");
        assert!(matrix / automatic >= least, "{attention:?}: {automatic} clk instead of {matrix}");
    }
}

/// Writes of a tile that is turned on its way into LDS stand one beside each product, where eight of them in
/// a row would hold up the matrix cores: single elements, and two at a time where lanes have two rows.
#[test]
fn writes_of_a_turned_tile_stand_beside_products() {
    let attention =
        Attention { second: Second::AsWritten, mask: Mask::None, matrix: "16x16", maximum: Maximum::Exact };
    for (depth, name, fewest) in [(128, "ds_write_b32", 8), (64, "ds_write_b16", 8)] {
        let sizes = Sizes { h: 1, m: 256, n: 1024, d: depth };
        let executable = verified(&attention.kernel(), &sizes.options(Target::GFX942, Schedule::TwoPhase));
        let between = emitted(&executable, &[("v_mfma", "product"), (name, "write")]);
        let writes: Vec<u32> = between.iter().filter(|run| run.0 == "write").map(|run| run.1).collect();
        assert!(writes.len() > fewest, "{name}: {between:?}");
        assert!(writes.iter().all(|&count| count == 1), "{name}: {between:?}");
    }
}

/// The last products of a half stand behind its barrier, before all others of their SIMD: matrix cores have
/// work until the other half of the waves has read its first factors.
#[test]
fn the_last_products_stand_behind_the_barrier() {
    let attention =
        Attention { second: Second::Turned, mask: Mask::None, matrix: "32x32", maximum: Maximum::Exact };
    let words = [("v_mfma", "product"), ("s_barrier", "barrier"), ("s_setprio 2", "first")];
    for (depth, late) in [(128, Some(6)), (64, None)] {
        let sizes = Sizes { h: 1, m: 256, n: 1024, d: depth };
        let executable = verified(&attention.kernel(), &sizes.options(Target::GFX942, Schedule::TwoPhase));
        assert_eq!(executable.report().schedule_applied, "two_phase");
        let runs = emitted(&executable, &words);
        let firsts = runs.windows(3).filter(|runs| runs[1].0 == "first");
        let found: Vec<(&str, u32)> = firsts.clone().map(|runs| (runs[0].0, runs[2].1)).collect();
        // With heads of 64 arithmetic takes longer than products, and comes first after the barrier.
        let Some(late) = late else {
            assert_eq!(found, []);
            continue;
        };
        assert_eq!(found, [("barrier", late); 2], "{runs:?}");
    }
}

/// Rows for 128 queries in eight waves, of any number of keys: the loop is unrolled, and its rest is entered
/// in step.
const OPEN: &str = "kernel open {
  workgroup X, 128, 0
  tile L, 32
  wave X, 16
  mma 16x16
  q = memory [X, D] shared f16
  k = memory [L, D] shared f16
  v = memory [L, E] shared f16
  o = memory [X, E] global f32
  %query = read q
  %zero = register [E, X] f32 0.0
  %sum = iterate L (%acc = %zero) {
    %start = register [L, X] f32 0.0
    %key = read k
    %score = mma %key, %query, %start
    %least = min %score, 4.0
    %weight = exp2 %least
    %part = cast %weight f16
    %value = read v
    %next = mma %value, %part, %acc
    yield %next
  }
  write %sum, o
}
";

/// Barriers in front of the iterations that an unrolled loop leaves do not depend on where its results stand
/// among the nodes, which no text tells.
#[test]
fn rests_of_unrolled_loops_read_back() {
    let options = Options::new(Target::GFX942).schedule(Schedule::TwoPhase);
    let options = options.set(Symbol::new("X"), 128).set(Symbol::new("D"), 32).set(Symbol::new("E"), 16);
    let options = options.dynamic(Symbol::new("L")).global_to_shared(GlobalToShared::Fitting);
    reads_back("open", &parsed(OPEN), &options);
}
