//! The same input gives the same bytes: in one process whatever was compiled before it or at the same time,
//! in other processes, and whatever symbols were named first.

use std::hash::{DefaultHasher, Hasher};
use std::process::Command;

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::prelude::*;
use groundswell_testing::kernels::{self, Case};

/// Tells a child process, which is this test program again, what to do before it compiles.
const CHILD: &str = "GROUNDSWELL_DETERMINISM_CHILD";
/// Marks the line with the child's result.
const MARK: &str = "hashes of all objects:";

/// Every kind of kernel once or twice; each is traced again at each call.
fn sample() -> Vec<Case> {
    kernels::all().into_iter().step_by(3).collect()
}

/// Hash of the object and the assembly of a kernel, or of its diagnostic.
fn hash(case: &Case) -> u64 {
    let mut hasher = DefaultHasher::new();
    match compile_uncached(&case.kernel, &case.options, Verify::Off) {
        Ok(executable) => {
            hasher.write(executable.object());
            hasher.write(executable.assembly().unwrap().as_bytes());
        }
        Err(error) => hasher.write(error.to_string().as_bytes()),
    }
    hasher.finish()
}

fn hashes(cases: &[Case]) -> Vec<u64> {
    cases.iter().map(hash).collect()
}

#[test]
fn one_process_gives_the_same_bytes_in_any_order() {
    let cases = sample();
    let first = hashes(&cases);
    let again = sample();
    let mut backwards: Vec<u64> = again.iter().rev().map(hash).collect();
    backwards.reverse();
    for ((case, first), again) in cases.iter().zip(&first).zip(&backwards) {
        assert_eq!(first, again, "{}", case.name);
    }
}

#[test]
fn threads_give_the_same_bytes() {
    let cases = sample();
    let cases = &cases[..cases.len().min(16)];
    let expected = hashes(cases);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let expected = &expected;
            scope.spawn(move || {
                for step in 0..cases.len() {
                    // Each thread begins elsewhere, so different kernels meet in the pools.
                    let at = (step + thread * 5) % cases.len();
                    assert_eq!(hash(&cases[at]), expected[at], "{}", cases[at].name);
                }
            });
        }
    });
}

fn child(preparation: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "determinism::prints_hashes_when_it_is_a_child", "--nocapture"])
        .env(CHILD, preparation)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let at = text.find(MARK).unwrap_or_else(|| panic!("no hashes in\n{text}"));
    text[at..].lines().next().unwrap().to_owned()
}

#[test]
fn other_processes_and_symbol_orders_give_the_same_bytes() {
    let plain = child("plain");
    assert_eq!(plain, child("plain"), "another process");
    assert_eq!(plain, child("symbols"), "other symbols were named first");
    assert_eq!(plain, child("backwards"), "other kernels were compiled first");
}

/// The other half of the test above, which proves nothing alone.
#[test]
fn prints_hashes_when_it_is_a_child() {
    let Ok(preparation) = std::env::var(CHILD) else { return };
    match preparation.as_str() {
        "symbols" => {
            for number in 0..100 {
                Symbol::new(&format!("UNUSED_{number}"));
            }
            symbols(["WAVE_N", "WAVE_M", "BLOCK_K", "BLOCK_N", "BLOCK_M", "K", "N", "M", "B"]);
        }
        "backwards" => {
            let cases = sample();
            let others: Vec<u64> = cases.iter().rev().map(hash).collect();
            assert_eq!(others.len(), cases.len());
        }
        _ => {}
    }
    println!("\n{MARK} {:x?}", hashes(&sample()));
}
