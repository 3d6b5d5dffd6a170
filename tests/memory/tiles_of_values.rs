//! Tiles of shared memories whose rows stand where values say: they go through LDS, in loads of 16 bytes,
//! also where rows lie outside, sizes divide no tile, and the values come from in front of the loop. The
//! interpreter has to agree, and check mode has to find nothing.

use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

const TARGETS: [Target; 5] = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX942, Target::GFX950];

fn bound(options: Options, sizes: &[(&'static str, i64)], open: &[&str]) -> Options {
    sizes.iter().fold(options, |options, &(name, size)| match open.contains(&name) {
        true => options.dynamic(name),
        false => options.set(name, size),
    })
}

fn value<'a>(sizes: &'a [(&'static str, i64)]) -> impl Fn(Symbol) -> Option<i64> + 'a {
    |symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1)
}

/// Rows of the left factor stand where a table says; `in_loop` asks the table anew in each iteration.
fn product_of_chosen_rows(dtype: DType, waves: i64, in_loop: bool) -> Kernel {
    let [m, n, k, rows, table_rows] = symbols(["M", "N", "K", "ROWS", "COUNT"]);
    let kernel = Kernel::trace("chosen", |w| {
        w.distribute([workgroup(m, 64, 0), workgroup(n, 32, 1), tile(k, 64), wave(m, 64 / waves)]);
        w.mma_type(MatrixShape::M16x16);
        let x = w.memory("x", [rows, k], Shared, dtype);
        let y = w.memory("y", [n, k], Shared, dtype);
        let table = w.memory("table", [table_rows], Global, I32);
        let z = w.memory("z", [m, n], Global, F32);
        let chosen =
            |w: &Tracer| w.read_at(table, [w.self_index(m).minimum(w.size(table_rows) - 1)], [m]) - 1;
        let outside = chosen(w);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let row = if in_loop { chosen(w) } else { outside };
            [w.mma(w.read_at(x, (row, k), [m, k]).tag("read_x"), w.read(y), sum)]
        });
        w.write(sum, z);
    });
    kernel.expect("well-formed")
}

#[test]
fn rows_that_a_table_chooses_go_through_lds() {
    let sizes = [("M", 100), ("N", 40), ("K", 200), ("ROWS", 5), ("COUNT", 90)];
    let mut seed = 0;
    for target in TARGETS {
        for (dtype, waves, in_loop) in
            [(F16, 4, false), (F16, 2, true), (F16, 1, true), (F16, 4, true), (F32, 2, false)]
        {
            if dtype == F32 && ![Target::GFX942, Target::GFX90A].contains(&target) {
                continue;
            }
            let kernel = product_of_chosen_rows(dtype, waves, in_loop);
            for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Automatic] {
                for open in [&[][..], &["M", "K"], &["ROWS", "COUNT"]] {
                    seed += 1;
                    let options = Options::new(target).schedule(schedule.clone()).deny(Deny::UnsharedReads);
                    let executable = verified(&kernel, &bound(options, &sizes, open));
                    let title = format!("{dtype}, {waves} waves, {schedule:?} {open:?} {target}");
                    assert_right(&kernel, &executable, &value(&sizes), seed, title);
                }
            }
        }
    }
}

/// Each load brings 16 bytes, and none less.
#[test]
fn loads_of_chosen_rows_are_wide() {
    for target in [Target::GFX90A, Target::GFX942, Target::GFX950] {
        let sizes = [("M", 128), ("N", 64), ("K", 256), ("ROWS", 64), ("COUNT", 128)];
        let kernel = product_of_chosen_rows(F16, 4, false);
        let executable = verified(&kernel, &bound(Options::new(target), &sizes, &[]));
        let report = executable.report();
        assert!(report.unshared_reads.is_empty() && report.split_accesses.is_empty(), "{report}");
        // Of x 64 rows of 128 bytes and of y 32, by 256 lanes.
        assert_eq!(report.main_loop.as_ref().map(|mix| mix.global_load), Some(3), "{target}: {report}");
    }
}

/// A tile that one product takes as it lies and another one turned is loaded once, and read twice.
#[test]
fn a_tile_of_two_products_is_loaded_once() {
    let [m, n, d, rows] = symbols(["M", "N", "D", "ROWS"]);
    let kernel = Kernel::trace("twice", |w| {
        w.distribute([workgroup(m, 32, 0), tile(n, 32), wave(m, 16), wave(d, d)]);
        w.mma_type(MatrixShape::M16x16);
        let x = w.memory("x", [m, d], Global, F16);
        let y = w.memory("y", [rows, d], Shared, F16);
        let table = w.memory("table", [n], Global, I32);
        let z = w.memory("z", [m, d], Global, F32);
        let left = w.read(x);
        let zero = w.register([d, m], F32, 0.0);
        let [sum] = w.iterate(n, [zero], |w, [sum]| {
            let row = w.read_at(y, (w.read(table), d), [n, d]).tag("read_y");
            let none = w.register([n, m], F32, 0.0);
            let scores = w.mma(row, left, none).cast(F16);
            [w.mma(row, scores, sum)]
        });
        w.write(sum, z);
    });
    let kernel = kernel.expect("well-formed");
    let sizes = [("M", 50), ("N", 70), ("D", 128), ("ROWS", 6)];
    for (seed, target) in TARGETS.into_iter().enumerate() {
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let options = Options::new(target).schedule(schedule.clone()).deny(Deny::UnsharedReads);
            let executable = verified(&kernel, &bound(options, &sizes, &[]));
            let title = format!("{schedule:?} {target}");
            assert_right(&kernel, &executable, &value(&sizes), seed as u64, title);
            let report = executable.report();
            if [Target::GFX942, Target::GFX950].contains(&target) {
                // One buffer of 32 rows of 256 bytes, which may be padded.
                assert!((32 * 256..2 * 32 * 256).contains(&report.lds_bytes), "{target}: {report}");
            }
        }
    }
}
