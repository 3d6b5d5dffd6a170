//! Mutation of correct kernels: every wait, barrier and nop of kernels of this crate and of clang is taken
//! out or weakened, one at a time. Check mode reports what the rules call wrong (`common/mutants.rs` says how
//! that is decided); what it misses is listed here with the reason. That nothing is found in the kernels as
//! they are: `sim_check_kernels.rs`.
//!
//! Barriers of which the compiler has proved that every access is in order without them are not wrong to
//! leave out, but slow (`schedules/barrier_roles.rs`): there check mode has to find nothing with any seed.

use std::fmt;

use groundswell::internals::schedules::BarrierRole;
use groundswell::simulator::{Finding, FindingKind};
use groundswell::target::Target;
use groundswell_testing::checked::{CLANG, Checked};
use groundswell_testing::clang;
use groundswell_testing::mutants::{Known, Mutant, mutants, told_barriers};
use groundswell_testing::ours::{Ours, block_floats, ours};

/// Seeds that a wrong mutant is tried with until something is found.
const SEEDS: u64 = 8;
/// Seeds of those that the rules allow, which are only counted.
const SEEDS_OF_HARMLESS: u64 = 1;

/// Mutants that are wrong by the rules and are not found.
struct Explained {
    /// Their names with their fault; `*` matches anything.
    pattern: &'static str,
    /// How many of a kernel there may be.
    most: usize,
    reason: &'static str,
}

const EXPLAINED: &[Explained] = &[
    Explained {
        pattern: "spilling gemm: *`s_nop 0` removed: *load*needs 1 wait states after `scratch_store_dwordx4*",
        most: 13,
        reason: "the guides want a wait state between a wide store and a load over its data; LLVM never keeps it, so check mode says nothing",
    },
    Explained {
        pattern: "mxfp* in turns: *`s_barrier` removed: waves do not meet any more",
        most: 1,
        reason: "before the trips after a loop whose waves take turns: the loop has waited for the next trip as for one of its own, and for later ones each wave waits before a later barrier",
    },
];

/// What is known of clang's kernels.
fn known(kernel: &str, waves: u32) -> Known {
    let known = Known { waves, ..Known::default() };
    match kernel {
        // From the third step on, which adds 32 elements, all that touch LDS are in the first wave.
        "reduce" | "reduction" => Known { idle_barriers: 2..9, ..known },
        _ => known,
    }
}

/// Functions that a kernel calls.
fn called(kernel: &str) -> &'static [&'static str] {
    match kernel {
        "calls" => &["called"],
        "recursion" => &["ackermann"],
        "function_pointers" => &["twice", "square", "plus_one"],
        _ => &[],
    }
}

/// What became of the mutants of some kernels.
#[derive(Default)]
struct Tally {
    mutants: usize,
    wrong: usize,
    found: usize,
    /// Reported, although the judge finds nothing: it looks at one function at a time.
    beyond: usize,
    explained: usize,
    /// Without a barrier that keeps waves in pace, and in order.
    slow: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { mutants, wrong, found, beyond, explained, slow } = self;
        write!(
            f,
            "{mutants:5} mutants, {wrong:4} wrong, {found:4} of them found, {explained} explained, {beyond} beyond, {slow} slow"
        )
    }
}

/// The first finding with the first seed that has any, in words. Wait states that AMD's manual does not ask
/// for are missed with a note.
fn finding(checked: &Checked, seeds: u64) -> Option<String> {
    let is_missed = |note: &&Finding| matches!(note.kind, FindingKind::ToleratedHazard { .. });
    (0..seeds).find_map(|seed| match checked.check(seed) {
        Ok(report) => {
            let found = report.findings.first().or_else(|| report.notes.iter().find(is_missed));
            found.map(|f| format!("{} at {}", f.kind, f.at.instruction))
        }
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
    (kernel, original): (&str, &[u8]),
    mutants: Vec<Mutant>,
    launch: impl Fn(&[u8]) -> Checked,
    all: &mut Tally,
    survivors: &mut Vec<String>,
) {
    if let Some(found) = finding(&launch(original), SEEDS) {
        survivors.push(format!("{kernel}: found as it is: {found}"));
        return;
    }
    let (mut here, mut explained) = (Tally::default(), [0; EXPLAINED.len()]);
    for mutant in mutants {
        let name = format!("{kernel}: {}", mutant.name);
        let Mutant { wrong, lacks_pace, .. } = mutant;
        let seeds = if wrong.is_some() || lacks_pace { SEEDS } else { SEEDS_OF_HARMLESS };
        let found = finding(&launch(&mutant.object), seeds);
        here.mutants += 1;
        here.wrong += usize::from(wrong.is_some());
        match (wrong, found) {
            (None, found) if lacks_pace => match found {
                Some(found) => survivors.push(format!("{name}: not for the pace alone: {found}")),
                None => here.slow += 1,
            },
            (Some(_), Some(_)) => here.found += 1,
            (Some(fault), None) => {
                let survivor = format!("{name}: {fault}");
                let row = EXPLAINED.iter().position(|row| matches(row.pattern, &survivor));
                match row.filter(|&row| explained[row] < EXPLAINED[row].most) {
                    Some(row) => {
                        println!("explained: {survivor}: {}", EXPLAINED[row].reason);
                        explained[row] += 1;
                        here.explained += 1;
                    }
                    None => survivors.push(survivor),
                }
            }
            (None, Some(found)) => {
                println!("beyond the rules: {name}: {found}");
                here.beyond += 1;
            }
            (None, None) => {}
        }
    }
    println!("{kernel:40} {here}");
    all.mutants += here.mutants;
    all.wrong += here.wrong;
    all.found += here.found;
    all.beyond += here.beyond;
    all.explained += here.explained;
    all.slow += here.slow;
}

fn judged(what: &str, all: &Tally, survivors: &[String]) {
    println!("{what:40} {all}");
    assert!(survivors.is_empty(), "{what}: {all}\n{} pass:\n{}", survivors.len(), survivors.join("\n"));
    assert!(all.wrong > 500, "{what}: {all}");
    assert!(100 * all.found >= 99 * all.wrong, "{what}: {all}");
}

/// Mutants of kernels of this crate, of which what passes was found.
fn of_kernels(what: &str, kernels: Vec<Ours>) -> Tally {
    let (mut all, mut survivors) = (Tally::default(), Vec::new());
    for kernel in kernels {
        let (object, name) = (kernel.executable.object(), kernel.executable.name());
        let told = told_barriers(object, name, &kernel.barriers).into_iter();
        let pace_barriers = told.filter(|(_, role)| *role == BarrierRole::Pace).map(|(at, _)| at).collect();
        let known = Known { waves: kernel.waves(), is_linear: true, pace_barriers, ..Known::default() };
        let mutants = mutants(object, &[name], &known);
        tally((&kernel.name, object), mutants, |object| kernel.checked(object), &mut all, &mut survivors);
    }
    judged(what, &all, &survivors);
    all
}

fn of_this_crate(target: Target) {
    let all = of_kernels(&format!("ours for {target}"), ours(target));
    // What is explained is a hazard of wide scratch stores that gfx90a does not have.
    assert_eq!(all.explained > 0, target >= Target::GFX942, "{target}: {all}");
}

#[test]
fn weakened_kernels_of_this_crate_are_found_on_gfx908() {
    of_this_crate(Target::GFX908);
}

#[test]
fn weakened_kernels_of_this_crate_are_found_on_gfx90a() {
    of_this_crate(Target::GFX90A);
}

#[test]
fn weakened_kernels_of_this_crate_are_found_on_gfx942() {
    of_this_crate(Target::GFX942);
}

#[test]
fn weakened_products_of_block_floats_are_found_on_gfx950() {
    of_kernels("block floats", block_floats(Target::GFX950));
}

#[test]
fn weakened_kernels_of_this_crate_are_found_on_gfx950() {
    of_this_crate(Target::GFX950);
}

fn clangs(processor: &str) {
    let (mut all, mut survivors) = (Tally::default(), Vec::new());
    for (file, launches) in CLANG {
        let Some(object) = clang::compile(file, processor, "-O3") else { return };
        for launched in launches {
            let waves = launched.block.iter().product::<u32>().div_ceil(64);
            let functions = [&[launched.kernel], called(launched.kernel)].concat();
            let mutants = mutants(&object, &functions, &known(launched.kernel, waves));
            let launch = |object: &[u8]| Checked::clang(object, launched).expect("an object");
            let name = format!("{processor} {file} {}", launched.kernel);
            tally((&name, &object), mutants, launch, &mut all, &mut survivors);
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
