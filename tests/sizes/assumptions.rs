//! What promises about open sizes take away from the generated code: masks, partial iterations, the loop as
//! written beside its pipeline, loops of one iteration, splitting of accesses. Kernels with and without the
//! promise compute the same, and a launch that breaks it is refused.

use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::loops;

const COPY: &str = "kernel copied {
  workgroup M, 16, 0
  workgroup N, 64, 1
  ASSUMPTIONS
  a = memory [M, N] global f16
  b = memory [M, N] global f16
  %x = read a
  %y = add %x, %x
  write %y, b
}";

const PRODUCT: &str = "kernel product {
  workgroup M, 64, 0
  workgroup N, 64, 1
  tile K, 32
  wave M, 32
  mma f32_16x16x16_f16
  ASSUMPTIONS
  a = memory [M, K] shared f16
  b = memory [N, K] shared f16
  c = memory [M, N] global f32
  %zero = register [M, N] f32 0.0
  %sum = iterate K (%acc = %zero) {
    %x = read a
    %y = read b
    %next = mma %x, %y, %acc
    yield %next
  }
  write %sum, c
}";

const SUMS: &str = "kernel sums {
  workgroup M, 4, 0
  tile N, 256
  ASSUMPTIONS
  a = memory [M, N] global f32
  b = memory [M] global f32
  %zero = register [M] f32 0.0
  %sum = iterate N (%acc = %zero) {
    %x = read a
    %part = reduce_sum %x over N
    %next = add %acc, %part
    yield %next
  }
  write %sum, b
}";

/// A kernel under promises, with sizes that keep them, compiled with all sizes open.
fn compiled(text: &str, promises: &[&str], schedule: Schedule, launches: &[&[(&str, i64)]]) -> Executable {
    let promised: Vec<String> = promises.iter().map(|promise| format!("assume {promise}")).collect();
    let kernel = Kernel::parse(&text.replace("ASSUMPTIONS", &promised.join("\n  ")), "test.gsw");
    let kernel = kernel.unwrap_or_else(|faults| panic!("{faults}"));
    let mut options = Options::new(Target::GFX942).schedule(schedule);
    for symbol in kernel.symbols() {
        options = options.dynamic(symbol);
    }
    let executable = verified(&kernel, &options);
    for (seed, sizes) in (1..).zip(launches) {
        let value = |symbol: Symbol| sizes.iter().find(|(name, _)| *name == symbol.name()).map(|s| s.1);
        assert_right(&kernel, &executable, &value, seed, format_args!("{promises:?} {sizes:?}"));
    }
    executable
}

fn count(executable: &Executable, word: &str) -> usize {
    let text = executable.assembly().expect("text");
    text.lines().filter(|line| line.trim_start().starts_with(word)).count()
}

fn refused(executable: &Executable, sizes: &[(&str, i64)], text: &str) {
    let value = |symbol: Symbol| sizes.iter().find(|(name, _)| *name == symbol.name()).map(|s| s.1);
    let fault = executable.grid(&value).expect_err("a promise is broken");
    assert!(fault.message.contains(text) && fault.help.is_some(), "{fault}");
}

#[test]
fn divisors_take_masks_away() {
    let any: &[&[(&str, i64)]] = &[&[("M", 20), ("N", 70)], &[("M", 33), ("N", 1)]];
    let whole: &[&[(&str, i64)]] = &[&[("M", 32), ("N", 128)], &[("M", 16), ("N", 64)]];
    let open = compiled(COPY, &[], Schedule::None, any);
    let promised = compiled(COPY, &["M % 16 == 0", "N % 64 == 0"], Schedule::None, whole);
    assert!(promised.report().instructions < open.report().instructions);
    assert_eq!(count(&promised, "v_cndmask") + count(&promised, "v_cmp"), 0);
    assert!(promised.report().split_accesses.is_empty());
    assert!(
        count(&promised, "buffer_store_dwordx") > 0 && count(&open, "buffer_store_dwordx") == 0,
        "wide stores"
    );
    let rows: &[&[(&str, i64)]] = &[&[("M", 20), ("N", 72)], &[("M", 33), ("N", 8)]];
    let wide = compiled(COPY, &["N % 8 == 0"], Schedule::None, rows);
    assert!(wide.report().split_accesses.is_empty() && count(&wide, "buffer_store_dwordx") > 0);
    refused(&promised, &[("M", 32), ("N", 96)], "64 divides N");
}

#[test]
fn bounds_take_guards_of_pipelines_away() {
    for schedule in [Schedule::Prefetch, Schedule::Modulo, Schedule::FourStage] {
        let sizes = |k| [("M", 70), ("N", 50), ("K", k)];
        let (short, long) = (sizes(20), sizes(100));
        let open = compiled(PRODUCT, &[], schedule.clone(), &[&short, &long]);
        let (whole, least) = (sizes(32), sizes(256));
        let divided = compiled(PRODUCT, &["K % 32 == 0"], schedule.clone(), &[&whole, &least]);
        let bounded = compiled(PRODUCT, &["K % 32 == 0", "K >= 256"], schedule.clone(), &[&least]);
        // No partial iteration, and then no loop as written beside the pipeline.
        let products = [&open, &divided, &bounded].map(|executable| count(executable, "v_mfma"));
        let branches = [&open, &divided, &bounded].map(|executable| count(executable, "s_cbranch"));
        assert!(products[0] > products[1] && products[1] >= products[2], "{schedule:?}: {products:?}");
        assert!(branches[0] > branches[1] && branches[1] > branches[2], "{schedule:?}: {branches:?}");
        if schedule == Schedule::Prefetch {
            assert_eq!(branches[2], 1, "the loop alone goes back");
        }
        refused(&bounded, &sizes(128), "K >= 256");
    }
}

#[test]
fn bounds_take_loops_and_workgroups_away() {
    let any: &[&[(&str, i64)]] = &[&[("M", 10), ("N", 700)], &[("M", 3), ("N", 100)]];
    let few: &[&[(&str, i64)]] = &[&[("M", 10), ("N", 256)], &[("M", 3), ("N", 1)], &[("M", 5), ("N", 100)]];
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
        let open = compiled(SUMS, &[], schedule.clone(), any);
        let short = compiled(SUMS, &["N <= 256"], schedule.clone(), few);
        assert!(!loops(&open.assembly().expect("text")).is_empty());
        assert!(loops(&short.assembly().expect("text")).is_empty(), "{schedule:?}: one iteration");
        assert!(short.report().instructions < open.report().instructions);
        refused(&short, &[("M", 10), ("N", 257)], "N <= 256");
    }
    let small: &[&[(&str, i64)]] = &[&[("M", 16), ("N", 70)], &[("M", 1), ("N", 64)]];
    let one = compiled(COPY, &["M <= 16"], Schedule::None, small);
    let open = compiled(COPY, &[], Schedule::None, small);
    assert!(one.report().instructions <= open.report().instructions);
    assert_eq!(
        one.grid(&|symbol: Symbol| Some(if symbol.name() == "M" { 9 } else { 700 })).expect("a grid"),
        [1, 11, 1]
    );
}
