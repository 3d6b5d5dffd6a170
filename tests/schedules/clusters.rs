//! Loops in clusters: attention and other chains of products give what the interpreter gives in check mode,
//! on three chips; `auto` chooses the schedule where it is the fastest one; and it says where it does not
//! suit.

use groundswell::prelude::*;
use groundswell::simulator::time::DeviceModel;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::emitted;

use super::attention::{Attention, CHAINS, CHIPS, Mask, Maximum, Second, Sizes, chain, parsed, trip};

/// What suits gfx950, whose loads bring whole tiles to LDS and whose reads turn them.
const TURNED: Attention =
    Attention { second: Second::Turned, mask: Mask::None, maximum: Maximum::Late, matrix: "32x32" };

/// Compiles under the schedule, runs in check mode, and says which schedule was applied and why.
fn run(kernel: &Kernel, target: Target, sizes: Sizes) -> (&'static str, String) {
    let executable = verified(kernel, &sizes.options(target, Schedule::Clusters));
    for seed in [7, 8] {
        let title = format_args!("{target} {sizes:?}\n{kernel}");
        assert_right(kernel, &executable, &|s| sizes.value(s), seed, title);
    }
    let report = executable.report();
    (report.schedule_applied, report.schedule_why.clone())
}

#[test]
fn attention_is_right_in_clusters() {
    let mut applied = 0;
    for (second, maximum) in [(Second::AsWritten, Maximum::Exact), (Second::Turned, Maximum::Late)] {
        for (mask, matrix) in [(Mask::None, "16x16"), (Mask::None, "32x32"), (Mask::Causal, "32x32")] {
            for (target, d) in CHIPS.into_iter().flat_map(|target| [(target, 64), (target, 128)]) {
                let attention = Attention { second, mask, maximum, matrix };
                let (schedule, why) = run(&attention.kernel(), target, Sizes { h: 2, m: 512, n: 512, d });
                let is_applied = schedule == "clusters";
                applied += u32::from(is_applied);
                let may_refuse = why.contains("waves exchange values between its operations: the LDS write");
                assert!(is_applied || may_refuse, "{attention:?} {target}: {schedule}: {why}");
            }
        }
    }
    assert!(applied >= 26, "{applied} of 36");
}

/// Loops of one and two iterations, fewer than the pipeline has stages, and rows that no tile divides.
#[test]
fn short_and_ragged_attention_is_right() {
    for target in CHIPS {
        for (m, n) in [(256, 64), (256, 128), (300, 256), (70, 320), (1, 448), (257, 576)] {
            run(&TURNED.kernel(), target, Sizes { h: 1, m, n, d: 64 });
        }
    }
}

/// The number of iterations is the launch's.
#[test]
fn attention_of_any_length_is_right() {
    let kernel = TURNED.kernel();
    let options = Options::new(Target::GFX950).schedule(Schedule::Clusters).fast_math();
    let options = options.set(Symbol::new("H"), 1).set(Symbol::new("M"), 256).set(Symbol::new("D"), 64);
    let executable = verified(&kernel, &options.dynamic(Symbol::new("N")));
    assert_eq!(executable.report().schedule_applied, "clusters");
    for n in [64, 128, 192, 256, 320, 384, 640, 704] {
        let sizes = Sizes { h: 1, m: 256, n, d: 64 };
        assert_right(&kernel, &executable, &|s| sizes.value(s), 11, n);
    }
}

#[test]
fn other_chains_of_products_are_right() {
    let mut applied = 0;
    for (name, body) in CHAINS.into_iter().chain([CARRIED]) {
        let kernel = parsed(&chain(body));
        for target in CHIPS {
            for n in [64, 256, 512, 640] {
                let (schedule, why) = run(&kernel, target, Sizes { h: 1, m: 128, n, d: 64 });
                applied += u32::from(schedule == "clusters");
                assert!(schedule == "clusters" || !why.is_empty(), "{name} {target} {n}: {schedule}");
            }
        }
    }
    // A row through LDS is read by arithmetic, and a factor's own maximum likewise.
    assert!(applied >= 24, "{applied} of 48");
}

/// Arithmetic on sums between the product that makes them and the same product of the next iteration.
const CARRIED: (&str, &str) = (
    "carried through arithmetic",
    "%k = read k
    %t0 = register [H, N, M] f32 0.0
    %s = mma %k, %q, %t0
    %d = mul %s, scale
    %sum = reduce_sum %d over N
    %v = read v
    %ph = cast %d f16
    %ov = mma %v, %ph, %oi
    %on = add %ov, %sum
    yield %on",
);

#[test]
fn loops_that_it_does_not_suit_say_why() {
    let attention = TURNED.text();
    let four_waves = attention.replace("workgroup M, 256, 0", "workgroup M, 128, 0");
    let product = "%k = read k
        %t0 = register [H, N, M] f32 0.0
        %s = mma %k, %q, %t0
        %sum = reduce_sum %s over N
        %on = add %oi, %sum
        yield %on";
    for (text, reason) in [
        (four_waves, "a workgroup has 4 waves: clusters take two for each SIMD, or a multiple of that"),
        (
            chain(product),
            "the loop has no second product: clusters are for chains of products with arithmetic between them",
        ),
    ] {
        let (schedule, why) = run(&parsed(&text), Target::GFX942, Sizes { h: 1, m: 128, n: 512, d: 64 });
        assert_ne!(schedule, "clusters");
        assert!(why.contains(reason), "{why}");
    }
}

/// With a maximum that follows late, a trip takes little more than its matrix instructions; `auto` chooses
/// clusters, and nothing spills or conflicts.
#[test]
fn attention_of_a_late_maximum_keeps_matrix_cores_busy() {
    let automatic = trip(DeviceModel::MI355X, TURNED, 128, Schedule::Automatic);
    println!("{automatic} clk of 2048");
    assert!(2048.0 / automatic >= 0.93, "{automatic} clk of 2048");
    let sizes = Sizes { h: 16, m: 4096, n: 4096, d: 128 };
    let executable = verified(&TURNED.kernel(), &sizes.options(Target::GFX950, Schedule::Automatic));
    let report = executable.report();
    assert_eq!(
        (report.schedule_applied, report.lds_accesses.iter().any(|a| a.conflict_degree > 1)),
        ("clusters", false)
    );
    let mix = report.main_loop.expect("a loop");
    // 64 instructions of 16 x 16 x 16 are 16 of 32 x 32 x 16.
    assert!(mix.valu * 16 <= 72 * mix.mfma, "{mix:?}");
    assert!(report.spills.is_none(), "{:?}", report.spills);
}

/// Vector instructions stand between matrix instructions, not before or after all of them.
#[test]
fn arithmetic_stands_between_products() {
    let sizes = Sizes { h: 1, m: 256, n: 1024, d: 128 };
    let executable = verified(&TURNED.kernel(), &sizes.options(Target::GFX950, Schedule::Clusters));
    let runs =
        emitted(&executable, &[("v_mfma", "product"), ("v_exp_f32", "power"), ("v_max3_f32", "maximum")]);
    let longest = runs.iter().filter(|run| run.0 == "power").map(|run| run.1).max();
    assert!(longest.is_some_and(|longest| longest <= 6), "{runs:?}");
}
