//! rocPRIM, AMD's library of parallel primitives, compiled by clang and run on the simulator: sorts, scans,
//! reductions, selections and histograms of 1 to 1,000,000 elements of several types give the host's results.

mod common;

use std::ffi::OsStr;
use std::path::Path;

use common::{LINKED, program, run};
use groundswell_testing::skipped;

/// Elements; `GROUNDSWELL_SWEEP` adds the largest.
const SIZES: &[&str] = &["1", "2", "63", "257", "1000", "4099", "20000"];
/// Check mode takes longer.
const CHECKED: &[&str] = &["1", "65", "300", "5000"];
const LARGEST: &[&str] = &["100000", "1000000"];

fn has_rocprim() -> bool {
    skipped::begin();
    let found = Path::new("/usr/include/rocprim/rocprim.hpp").is_file();
    if !found {
        skipped::note("librocprim-dev");
    }
    found
}

/// Runs a program in a mode; returns the findings.
fn findings(name: &str, target: &str, mode: &str, sizes: &[&str]) -> Option<Vec<String>> {
    let path = program(name, target, LINKED)?;
    let sizes: Vec<&OsStr> = sizes.iter().map(OsStr::new).collect();
    let ended = run(&path, target, mode, &sizes);
    assert_eq!(ended.text(), "good\n", "{name} for {target}, {mode}: {}", ended.errors());
    assert_eq!(ended.list("faults"), Vec::<String>::new(), "{name} for {target}, {mode}");
    Some(ended.list("findings"))
}

fn check(name: &str, target: &str) {
    if !has_rocprim() {
        return;
    }
    let mut sizes = SIZES.to_vec();
    if std::env::var_os("GROUNDSWELL_SWEEP").is_some() {
        sizes.extend(LARGEST);
    }
    findings(name, target, "run", &sizes);
    // The last block of `reduce_by_key` stores what it would hand over to the next one, which has none: items
    // past the end of the input, which were never loaded. Nobody reads that, so it is a note:
    // `scan_and_scatter_carry_outs` loads one less than there are blocks (rocPRIM 5.3.3,
    // device/detail/device_reduce_by_key.hpp).
    let Some(found) = findings(name, target, "check", CHECKED) else { return };
    assert_eq!(found, Vec::<String>::new(), "{name} for {target}");
}

#[test]
fn sorts_on_gfx90a() {
    check("primitives_sort", "gfx90a");
}

#[test]
fn sorts_on_gfx942() {
    check("primitives_sort", "gfx942");
}

#[test]
fn scans_and_reductions_on_gfx90a() {
    check("primitives_scan", "gfx90a");
}

#[test]
fn scans_and_reductions_on_gfx942() {
    check("primitives_scan", "gfx942");
}
