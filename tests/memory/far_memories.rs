//! Memories of which 32-bit offsets do not reach every element: accesses at coordinates that are expressions
//! refuse them, in whatever order their dimensions lie, and take what they do reach.

use groundswell::diagnostic::Kind;
use groundswell::prelude::*;
use groundswell_testing::judged::assert_right;

/// Columns that lie apart, read in an order of their own.
const COLUMNS: &str = "kernel columns {
  workgroup M, 64, 0
  workgroup T, 16, 1
  a = memory [M, N] global f32 strides [1, LDA]
  b = memory [M, T] global f32
  %x = read a at [M, T * 5 % 6] as [M, T]
  write %x, b
}";

/// The same written.
const WRITTEN: &str = "kernel written {
  workgroup M, 64, 0
  x = memory [M, T] global f32
  a = memory [M, N] global f32 strides [1, LDA]
  %x = read x
  write %x, a at [M, 5 - T]
}";

/// Rows of the only matrix of a batch.
const BATCH_OF_ONE: &str = "kernel batch {
  workgroup T, 32, 0
  workgroup N, 64, 1
  a = memory [B, M, N] global f32 strides [SB, LDA, 1]
  b = memory [T, N] global f32
  %t = self_index T
  %x = read a at [0, %t, N] as [T, N]
  write %x, b
}";

/// Rows whose last bytes lie around 2 GiB.
const ROWS: &str = "kernel rows {
  a = memory [M, N] global f32 strides [LDA, 1]
  b = memory [M, N] global f32
  %x = read a at [M, N] as [M, N]
  write %x, b
}";

/// Rows that are chosen, of a matrix with one of them.
const ONE_ROW: &str = "kernel one_row {
  workgroup N, 64, 0
  a = memory [M, N] global f32 strides [LDA, 1]
  b = memory [T, N] global f32
  %t = self_index T
  %x = read a at [%t, N] as [T, N]
  write %x, b
}";

type Sizes<'a> = &'a [(&'a str, i64)];

fn parsed(text: &str) -> Kernel {
    Kernel::parse(text, "far.gsw").unwrap_or_else(|faults| panic!("{faults}"))
}

fn options(sizes: Sizes<'_>) -> Options {
    sizes.iter().fold(Options::new(Target::GFX942), |options, &(name, size)| options.set(name, size))
}

/// The same with the distance of rows left open.
fn open_options(sizes: Sizes<'_>) -> Options {
    let others: Vec<(&str, i64)> = sizes.iter().copied().filter(|size| size.0 != "LDA").collect();
    options(&others).dynamic("LDA")
}

#[test]
fn elements_beyond_32_bit_offsets_are_refused_in_any_order_of_dimensions() {
    let cases: [(&str, Sizes<'_>); 4] = [
        (COLUMNS, &[("M", 64), ("N", 6), ("LDA", 1 << 27), ("T", 20)]),
        (WRITTEN, &[("M", 64), ("N", 6), ("LDA", 1 << 28), ("T", 6)]),
        (BATCH_OF_ONE, &[("B", 1), ("M", 6), ("N", 64), ("SB", 1), ("LDA", 1 << 27), ("T", 6)]),
        (ROWS, &[("M", 2), ("N", 64), ("LDA", 536_870_848)]),
    ];
    for (text, sizes) in cases {
        let fault = parsed(text).compile(&options(sizes)).expect_err(text);
        assert_eq!(fault.kind, Kind::Limit, "{fault}");
        // What is open until the launch is refused there.
        let refused = parsed(text).compile(&open_options(sizes)).and_then(|executable| {
            executable
                .grid(&|symbol| sizes.iter().find(|size| Symbol::new(size.0) == symbol).map(|size| size.1))
        });
        assert_eq!(refused.expect_err(text).kind, Kind::Limit, "{text}");
    }
}

#[test]
fn elements_within_32_bit_offsets_are_right_whatever_the_strides() {
    let cases: [(&str, Sizes<'_>); 4] = [
        (COLUMNS, &[("M", 64), ("N", 6), ("LDA", 100_000), ("T", 20)]),
        (WRITTEN, &[("M", 64), ("N", 6), ("LDA", 100_000), ("T", 6)]),
        (BATCH_OF_ONE, &[("B", 1), ("M", 6), ("N", 64), ("SB", 1), ("LDA", 100_000), ("T", 6)]),
        // The only row may have any distance from the next one.
        (ONE_ROW, &[("M", 1), ("N", 64), ("LDA", 2_000_000_000), ("T", 3)]),
    ];
    for (text, sizes) in cases {
        let kernel = parsed(text);
        for options in [options(sizes), open_options(sizes)] {
            let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
            let value =
                |symbol: Symbol| sizes.iter().find(|size| Symbol::new(size.0) == symbol).map(|size| size.1);
            assert_right(&kernel, &executable, &value, 1, text);
        }
    }
}
