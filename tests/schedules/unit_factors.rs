//! Products with factors that are one most of the time: a branch around them changes no bit of a result,
//! whatever the scores are, on every chip and under every schedule.

use groundswell::prelude::*;
use groundswell_testing::judged::verified;

use super::attention::{Attention, CHIPS, Mask, Maximum, Second, Sizes};

const ATTENTION: Attention =
    Attention { second: Second::Turned, mask: Mask::None, maximum: Maximum::Exact, matrix: "32x32" };

const SIZES: Sizes = Sizes { h: 1, m: 256, n: 320, d: 64 };

/// Scores of all queries by the number of the key.
type Score = fn(usize) -> f32;

/// Scores, and what they are like.
const SCORES: [(&str, Score); 8] = [
    ("random", |key| ((key * 37 + 11) % 101) as f32 / 16.0 - 3.0),
    ("equal", |_| 1.5),
    ("rising", |key| key as f32 / 4.0),
    ("falling", |key| -(key as f32) / 4.0),
    ("rising tile by tile", |key| (key / 64) as f32 * 20.0),
    ("one huge", |key| if key == 200 { 60000.0 } else { key as f32 / 64.0 }),
    ("one infinite", |key| if key == 70 { f32::INFINITY } else { 0.25 }),
    ("one that is no number", |key| if key == 130 { f32::NAN } else { 0.25 }),
];

/// Q, K and V with such scores.
fn arguments(score: Score) -> [Vec<f16>; 3] {
    let [m, n, d] = [SIZES.m, SIZES.n, SIZES.d].map(|size| size as usize);
    let first =
        |at: usize, value: f32, others: f32| f16::from_f32(if at.is_multiple_of(d) { value } else { others });
    let queries = (0..m * d).map(|at| first(at, 1.0, 0.0)).collect();
    let keys = (0..n * d).map(|at| first(at, score(at / d), 0.5)).collect();
    let values = (0..n * d).map(|at| f16::from_f32((at * 7 % 31) as f32 / 8.0 - 2.0)).collect();
    [queries, keys, values]
}

fn result(executable: &Executable, arguments: &[Vec<f16>; 3]) -> Vec<u32> {
    let device = Device::simulator(executable.target());
    let [q, k, v] = arguments.each_ref().map(|values| device.upload(values).expect("it fits"));
    let o = device.upload(&vec![0f32; (SIZES.m * SIZES.d) as usize]).expect("it fits");
    device
        .launch(executable)
        .buffer(&q)
        .buffer(&k)
        .buffer(&v)
        .buffer(&o)
        .scalar(1f32)
        .run()
        .expect("it runs");
    o.download::<f32>().expect("it is there").iter().map(|value| value.to_bits()).collect()
}

#[test]
fn results_have_the_same_bits_with_and_without_branches() {
    let mut skipping_kernels = 0;
    let schedules = [Schedule::None, Schedule::Prefetch, Schedule::TwoPhase, Schedule::Clusters];
    for target in CHIPS {
        for maximum in [Maximum::Exact, Maximum::Late] {
            let kernel = Attention { maximum, ..ATTENTION }.kernel();
            for schedule in schedules.clone() {
                let options = SIZES.options(target, schedule.clone());
                let always = verified(&kernel, &options.clone().unit_factors(UnitFactors::Multiply));
                let skipping = verified(&kernel, &options);
                assert_eq!(always.report().seldom_instructions, 0);
                // Nothing but clusters and two phases has a place for branches.
                let report = skipping.report();
                let skips = report.seldom_instructions > 0;
                skipping_kernels += u32::from(skips);
                let has_place = ["clusters", "two_phase"].contains(&report.schedule_applied);
                assert_eq!(skips, has_place, "{target} {schedule:?}");
                for (name, score) in SCORES {
                    let arguments = arguments(score);
                    let [expected, got] =
                        [&always, &skipping].map(|executable| result(executable, &arguments));
                    assert_eq!(expected, got, "{target} {schedule:?} {maximum:?}: {name}");
                }
            }
        }
    }
    // Both maxima and both schedules on each chip.
    assert_eq!(skipping_kernels, 12);
}

/// Whoever looks at the report sees what is left out, and it is not in the loop's mix.
#[test]
fn reports_say_what_is_left_out() {
    let sizes = Sizes { n: 4096, ..SIZES };
    let options = sizes.options(Target::GFX950, Schedule::Clusters);
    let kernel = ATTENTION.kernel();
    let skipping = verified(&kernel, &options);
    let always = verified(&kernel, &options.unit_factors(UnitFactors::Multiply));
    let mixes = [&skipping, &always].map(|executable| executable.report().main_loop.expect("a loop").valu);
    // Two trips of 2 x 16 registers of the sum, less one comparison for each.
    assert_eq!(mixes[0] + 62, mixes[1]);
    let lines = skipping.report().lines();
    let line = lines.iter().find(|line| line.0 == "seldom").expect("a line");
    assert!(
        line.1.ends_with("instructions, left out where factors are one or masks hide nothing"),
        "{}",
        line.1
    );
}

/// Factors of values that something else uses as well, of few elements, or that are no powers of a rise,
/// get no branch.
#[test]
fn other_products_get_no_branch() {
    let text = ATTENTION.text();
    for (from, to, applied) in [
        // The factor is one of a tile's maximum, which falls as well.
        ("%dm = sub %mi, %mn", "%dm = sub %mi, %mx", "clusters"),
        // The sum before is needed, too, and stays in registers beside the one after it.
        ("yield %mn, %ln, %on", "%more = add %on, %oi\n yield %mn, %ln, %more", "two_phase"),
    ] {
        assert!(text.contains(from));
        let kernel = super::attention::parsed(&text.replace(from, to));
        let executable = verified(&kernel, &SIZES.options(Target::GFX950, Schedule::Clusters));
        let report = executable.report();
        assert_eq!((report.schedule_applied, report.seldom_instructions), (applied, 0), "{to}");
    }
}
