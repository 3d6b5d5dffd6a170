//! Random schedules: a schedule that a brute-force model of the loop calls legal is applied and gives right
//! results in check mode, one that it calls illegal is rejected. `GROUNDSWELL_SCHEDULE_CASES` asks for
//! another number than two thousand.

use groundswell_testing::checks::{Verdict, schedule_verdict};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

fn count() -> u64 {
    let asked = std::env::var("GROUNDSWELL_SCHEDULE_CASES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(2000)
}

#[test]
fn legal_schedules_are_right_and_others_are_refused() {
    let verdicts: Vec<Result<Verdict, String>> = (0..count())
        .into_par_iter()
        .map(|seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            let bytes: Vec<u8> = (0..200).map(|_| rng.random()).collect();
            schedule_verdict(&bytes).map_err(|fault| format!("seed {seed}: {fault}"))
        })
        .collect();
    let faults: Vec<&String> = verdicts.iter().filter_map(|verdict| verdict.as_ref().err()).collect();
    let shown: String = faults.iter().take(3).map(|fault| format!("\n{fault}\n")).collect();
    assert!(faults.is_empty(), "{} of {} fail:{shown}", faults.len(), verdicts.len());
    let share = |wanted: Verdict| verdicts.iter().filter(|v| **v == Ok(wanted)).count();
    let [applied, staggered, refused, short] =
        [Verdict::Applied, Verdict::Staggered, Verdict::Refused, Verdict::Short].map(share);
    println!("{applied} applied, {staggered} staggered, {refused} refused, {short} too long for their loops");
    assert!(applied * 4 > verdicts.len() && refused * 10 > verdicts.len() && short > 0 && staggered > 0);
}
