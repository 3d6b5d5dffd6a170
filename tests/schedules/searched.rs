//! Schedules that a search finds: the same in every search, never longer by the estimate than what strategies
//! find, right in check mode, and the same code when they are read back.

use groundswell::compile::{SearchedSchedule, search_schedule};
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

use super::attention::{Attention, Mask, Maximum, Second, Sizes};

/// Enough for some changes.
const FEW: u32 = 60;

const SIZES: Sizes = Sizes { h: 1, m: 256, n: 512, d: 64 };

fn attention() -> Kernel {
    let (second, maximum) = (Second::Turned, Maximum::Late);
    Attention { second, mask: Mask::None, maximum, matrix: "32x32" }.kernel()
}

fn gemm() -> (Kernel, Options) {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let sizes = [("M", 512), ("N", 512), ("K", 1024), ("BLOCK_M", 128), ("BLOCK_N", 256), ("BLOCK_K", 64)];
    let options = Options::new(Target::GFX942);
    (kernel, sizes.iter().fold(options, |options, &(name, size)| options.set(Symbol::new(name), size)))
}

fn searched(kernel: &Kernel, options: &Options, most: u32) -> SearchedSchedule {
    search_schedule(kernel, options, most).unwrap_or_else(|fault| panic!("{fault}"))
}

fn code(kernel: &Kernel, options: &Options) -> Vec<u32> {
    kernel.compile(options).unwrap_or_else(|fault| panic!("{fault}")).code().to_vec()
}

/// Clk that a trip of the kernel's one loop is estimated to take under a strategy.
fn estimated(kernel: &Kernel, options: &Options, strategy: &str) -> u32 {
    let executable = kernel.compile(&options.clone().schedule(Schedule::Automatic)).expect("compiles");
    let candidates = &executable.report().schedule_choices[0].candidates;
    let own = candidates.iter().find(|candidate| candidate.strategy == strategy).expect("a candidate");
    own.estimate().expect("it suits").clk
}

/// Without any candidate a search gives what `auto` chooses, and that is the same code.
#[test]
fn a_search_begins_with_what_auto_chooses() {
    let [mi355x, mi300x] = [Target::GFX950, Target::GFX942].map(|t| SIZES.options(t, Schedule::None));
    let (product, of_product) = gemm();
    for (kernel, options) in [(attention(), mi355x), (attention(), mi300x), (product, of_product)] {
        let found = searched(&kernel, &options, 0);
        assert_eq!((found.tried, found.loops.len()), (0, 1));
        assert_eq!(found.loops[0].began, found.loops[0].reached);
        let by_name = code(&kernel, &options.clone().schedule(Schedule::Automatic));
        assert!(code(&kernel, &options.wave_schedule(&found.schedule)) == by_name, "{}", found.schedule);
    }
}

#[test]
fn what_is_found_is_no_longer_than_strategies_are() {
    let (product, of_product) = gemm();
    for (kernel, options, strategy) in [
        (attention(), SIZES.options(Target::GFX950, Schedule::None), "clusters"),
        (attention(), SIZES.options(Target::GFX942, Schedule::None), "two_phase"),
        (product, of_product, "interleaved"),
    ] {
        let found = searched(&kernel, &options, FEW);
        assert!(found.tried > 1 && found.tried <= FEW, "{}", found.tried);
        let own = &found.loops[0];
        assert!(own.reached <= own.began && own.began <= estimated(&kernel, &options, strategy), "{own:?}");
        // The same again.
        assert_eq!(searched(&kernel, &options, FEW).schedule, found.schedule);
        let again = WaveSchedule::parse(&found.schedule.to_string(), "best.schedule").expect("it reads");
        assert_eq!(again, found.schedule);
        let [once, twice] =
            [&found.schedule, &again].map(|block| code(&kernel, &options.clone().wave_schedule(block)));
        assert!(once == twice, "{strategy}");
    }
}

#[test]
fn what_is_found_is_right() {
    for target in [Target::GFX950, Target::GFX942] {
        let (kernel, options) = (attention(), SIZES.options(target, Schedule::None));
        let found = searched(&kernel, &options, FEW);
        let executable = verified(&kernel, &options.wave_schedule(&found.schedule));
        assert_right(&kernel, &executable, &|s| SIZES.value(s), 5, format_args!("{}", found.schedule));
    }
}

#[test]
fn kernels_without_loops_have_nothing_to_search() {
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let sizes = [("M", 64), ("N", 64), ("BLOCK_M", 16), ("BLOCK_N", 64)];
    let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
    let found = searched(&kernel, &options, FEW);
    assert_eq!((found.tried, found.loops.len(), found.schedule.operations().len()), (0, 0, 0));
    let written = code(&kernel, &options.clone().wave_schedule(&found.schedule));
    assert!(written == code(&kernel, &options));
}

/// Schedules that name nodes, and what is wrong with them.
#[test]
fn names_of_nodes_are_checked() {
    let options = SIZES.options(Target::GFX950, Schedule::None);
    let compiled = |statements: &str| {
        let text = format!("schedule s {{\n{statements}\n}}\n");
        let schedule = WaveSchedule::parse(&text, "s").map_err(|faults| faults[0].to_string())?;
        let executable = attention().compile(&options.clone().wave_schedule(&schedule));
        executable.map(|executable| executable.report().schedule_applied).map_err(|fault| fault.to_string())
    };
    let on_loop = "a = get_node_by_tag \"a\"\n  schedule_loop a prefetch";
    assert_eq!(compiled(&format!("  tag_nodes \"a\" [\"loop.0\"]\n  {on_loop}")), Ok("prefetch"));
    for (statements, fault) in [
        ("  tag_nodes \"a\" [\"loop.7\"]", "the kernel has no operation `loop.7`"),
        ("  tag_nodes \"a\" [\"loop.0.mma\"]", "the kernel has no operation `loop.0.mma`"),
        ("  tag_nodes \"a\" [\"loop.0\"]\n  tag_nodes \"a\" []", "the tag \"a\" is given twice"),
        ("  tag_nodes \"a\" [1]", "a tag"),
        ("  x = tag_nodes \"a\" []", "has no result"),
        ("  x = load_to_lds", "has no result"),
    ] {
        let found = compiled(statements).expect_err("it is wrong");
        assert!(found.contains(fault), "{statements}: {found}");
    }
}
