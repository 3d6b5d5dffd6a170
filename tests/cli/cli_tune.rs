//! `groundswell tune`: its JSON, its database, and what it refuses.

use std::fs;

use crate::places::Directory;
use crate::program::{groundswell, json, text};

const SMALL: [&str; 8] = ["tune", "gemm", "-s", "M=64", "-s", "N=128", "-s", "K=256"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn tuning_prints_a_ranking_that_says_what_it_rests_on() {
    let (tuned, code) = json(&small(&["--search", "exhaustive", "--show", "1000", "--json"]));
    assert_eq!(code, Some(0));
    let ranking = tuned["ranking"].as_array().expect("a list");
    assert_eq!(Some(ranking.len() as u64), tuned["candidates"].as_u64());
    assert_eq!(tuned["candidates"], tuned["points"]);
    assert_eq!(ranking[0], tuned["best"]);
    let times: Vec<f64> = ranking.iter().map(|one| one["us"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
    assert!(ranking.iter().any(|one| one["choices"]["tile"] == "model"), "what is taken without tuning");
    let constraints = tuned["constraints"].as_array().expect("a list");
    let dropped = |one: &serde_json::Value| one["before"].as_u64().unwrap() - one["after"].as_u64().unwrap();
    assert_eq!(tuned["pruned"].as_u64(), Some(constraints.iter().map(dropped).sum()));
    assert!(tuned["pruned"].as_u64() > Some(0), "tiles that are too large for 64 rows");
    assert_eq!(tuned["key"], "matmul f16,sums:abt:64x128x256 MI300X 1350 MHz model 1");
}

#[test]
fn winners_are_kept_as_text() {
    let directory = Directory::new("tune");
    let file = directory.file("winners.txt");
    let (one, _) = json(&small(&["--budget", "3", "--database", &file, "--json"]));
    let first = fs::read_to_string(&file).expect("it was written");
    let (_, code) = json(&[
        "tune",
        "softmax",
        "-s",
        "M=64",
        "-s",
        "N=100",
        "--level",
        "0",
        "--database",
        &file,
        "--json",
    ]);
    assert_eq!(code, Some(0));
    let both = fs::read_to_string(&file).expect("it was written");
    assert_eq!(both.lines().count(), 3, "{both}");
    assert!(first.lines().all(|line| both.contains(line)), "{first}{both}");
    let tile = one["best"]["choices"]["tile"].as_str().expect("a word");
    assert!(first.contains(&format!("tile={tile} ")), "{first}");
    fs::write(&file, "something else\n").expect("it can be written");
    let refused = groundswell(&small(&["--level", "0", "--database", &file]));
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("not `groundswell tuning 1`"), "{}", text(&refused.stderr));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "something else\n");
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    for (arguments, code, said) in [
        (&["tune", "sotfmax"][..], 2, "no ready kernel is called `sotfmax`"),
        (&["tune", "softmax", "-s", "Q=3"], 2, "softmax has no symbol Q"),
        (&["tune", "gemm", "--level", "3"], 2, "3"),
        (&["tune", "gemm", "--search", "luck"], 2, "luck is none of exhaustive, halving, guided"),
        (&["tune", "gemm", "--budget", "0"], 2, "0 is no number of candidates"),
        (&["tune", "gemm", "--budget", "some"], 2, "some is no number of candidates"),
        (&["tune", "gemm", "--shard", "0/4"], 2, "0/4 is no part of a space"),
        (&["tune", "gemm", "--target", "gfx1100"], 2, "gfx1100"),
        (&["tune", "gemm", "--dtype", "f17"], 2, "f17 is not a dtype"),
        (&["tune", "gemm", "--target", "gfx90a", "--dtype", "f8e4m3fnuz", "--level", "0"], 3, "f8e4m3fnuz"),
    ] {
        let refused = groundswell(arguments);
        let error = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
