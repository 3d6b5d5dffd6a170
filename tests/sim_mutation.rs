//! Mutation of correct kernels: every wait, barrier and nop of kernels of this crate and of clang is taken out or weakened, one at a
//! time. Check mode reports what the rules call wrong (`common/mutants.rs` says how that is decided); what it misses is listed
//! here with the reason. That nothing is found in the kernels as they are: `sim_check_kernels.rs`.

mod common;

use std::fmt;

use common::checked::{CLANG, Checked};
use common::mutants::{Mutant, mutants};
use common::ours::ours;
use common::clang;

/// Seeds that a mutant is tried with until something is found.
const SEEDS: u64 = 8;

/// Mutants that are wrong by the rules and pass, with the reason. A `*` stands for anything.
const EXPLAINED: &[(&str, &str)] = &[];

/// What became of the mutants of some kernels.
#[derive(Default)]
struct Tally {
    mutants: usize,
    wrong: usize,
    found: usize,
    /// Reported, though the judge says nothing.
    beyond: usize,
    explained: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { mutants, wrong, found, beyond, explained } = self;
        write!(f, "{mutants:5} mutants, {wrong:4} wrong, {found:4} of them found, {explained} explained, {beyond} beyond")
    }
}

/// Findings with the first seed that has any, in words.
fn findings(checked: &Checked) -> Option<String> {
    (0..SEEDS).find_map(|seed| match checked.check(seed) {
        Ok(report) => report.findings.first().map(|f| format!("{} at {}", f.kind, f.at.instruction)),
        Err(error) => Some(error.to_string()),
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty() || pattern.ends_with('*')
}

/// Counts the mutants of one kernel, and lists those that pass without an explanation.
fn tally(
    kernel: &str,
    mutants: Vec<Mutant>,
    launch: impl Fn(&[u8]) -> Checked,
    all: &mut Tally,
    survivors: &mut Vec<String>,
) {
    let mut here = Tally::default();
    for mutant in mutants {
        let name = format!("{kernel}: {}", mutant.name);
        let found = findings(&launch(&mutant.object));
        here.mutants += 1;
        here.wrong += usize::from(mutant.wrong.is_some());
        match (mutant.wrong, found) {
            (Some(_), Some(_)) => here.found += 1,
            (Some(fault), None) if EXPLAINED.iter().any(|(pattern, _)| matches(pattern, &name)) => {
                println!("explained: {name}: {fault}");
                here.explained += 1;
            }
            (Some(fault), None) => survivors.push(format!("{name}: {fault}")),
            (None, Some(found)) => {
                println!("beyond the rules: {name}: {found}");
                here.beyond += 1;
            }
            (None, None) => println!("harmless: {name}"),
        }
    }
    println!("{kernel:40} {here}");
    all.mutants += here.mutants;
    all.wrong += here.wrong;
    all.found += here.found;
    all.beyond += here.beyond;
    all.explained += here.explained;
}

fn judged(what: &str, all: &Tally, survivors: &[String]) {
    println!("{what:40} {all}");
    assert!(survivors.is_empty(), "{what}: {all}\n{} pass:\n{}", survivors.len(), survivors.join("\n"));
    assert!(100 * all.found >= 99 * all.wrong, "{what}: {all}");
}

#[test]
fn weakened_kernels_of_this_crate_are_found() {
    let (mut all, mut survivors) = (Tally::default(), Vec::new());
    for kernel in ours() {
        let object = kernel.executable.object();
        let mutants = mutants(object, &[kernel.executable.name()], kernel.waves());
        tally(&kernel.name, mutants, |object| kernel.checked(object), &mut all, &mut survivors);
    }
    judged("ours", &all, &survivors);
}

fn clangs(processor: &str) {
    let (mut all, mut survivors) = (Tally::default(), Vec::new());
    for (file, launches) in CLANG {
        let Some(object) = clang::compile(file, processor, "-O3") else { return };
        for launched in launches {
            let waves = launched.block.iter().product::<u32>().div_ceil(64);
            let mutants = mutants(&object, &[launched.kernel], waves);
            let launch = |object: &[u8]| Checked::clang(object, launched).expect("an object");
            let name = format!("{processor} {file} {}", launched.kernel);
            tally(&name, mutants, launch, &mut all, &mut survivors);
        }
    }
    judged(processor, &all, &survivors);
}

#[test]
fn weakened_kernels_of_clang_are_found_on_gfx942() {
    clangs("gfx942");
}

#[test]
fn weakened_kernels_of_clang_are_found_on_gfx90a() {
    clangs("gfx90a");
}
