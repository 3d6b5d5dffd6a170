//! Scans along any dimension: the interpreter equals loops in plain Rust, and compiled code, run and in check
//! mode, equals both, for tiles, waves and sizes of all kinds.

use crate::spread::{Spread, Tile, wrapped};
use groundswell::author::ScanOp;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{of_numbers, zeros};
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::meaning;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A kernel `[M, N] -> [M, N]`, whose loops carry the sum so far.
#[derive(Clone, Debug)]
struct Case {
    op: ScanOp,
    dtype: DType,
    spread: Spread,
    /// Whether the dimension that is kept is known at launch only; it has a tile then.
    dynamic: bool,
}

fn kernel(case: &Case) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let [along, kept] = [dims[case.spread.along], dims[1 - case.spread.along]];
    let traced = Kernel::trace("sums", |w| {
        case.spread.distribute(w);
        let a = w.memory("a", [m, n], Global, case.dtype);
        let b = w.memory("b", [m, n], Global, case.dtype);
        let sums = |x: Value| match case.op {
            ScanOp::Inclusive => x.cumsum(along),
            ScanOp::Exclusive => x.cumsum_exclusive(along),
        };
        if !case.spread.is_looped() {
            w.write(sums(w.read(a)), b);
            return;
        }
        let zero = w.register([kept], case.dtype, 0.0);
        w.iterate(along, [zero], |w, [so_far]| {
            let x = w.read(a);
            w.write(sums(x) + so_far, b);
            [so_far + x.sum(along)]
        });
    });
    traced.unwrap_or_else(|fault| panic!("{case:?}: {fault}"))
}

/// What loops in plain Rust make of the elements.
fn summed(case: &Case, a: &Tensor) -> Vec<f64> {
    let [m, n] = case.spread.shape();
    let elements = a.to_f64();
    let mut out = vec![0.0; m * n];
    let (kept, along) = if case.spread.along == 0 { (n, m) } else { (m, n) };
    for row in 0..kept {
        let mut sum = 0.0;
        for column in 0..along {
            let at = if case.spread.along == 0 { column * n + row } else { row * n + column };
            if case.op == ScanOp::Exclusive {
                out[at] = sum;
            }
            sum = wrapped(case.dtype, sum + elements[at]);
            if case.op == ScanOp::Inclusive {
                out[at] = sum;
            }
        }
    }
    out
}

/// Small integers, so that sums are exact.
fn input(case: &Case, rng: &mut StdRng) -> Tensor {
    let shape = case.spread.shape();
    let elements: Vec<f64> = (0..shape[0] * shape[1]).map(|_| rng.random_range(-3..=3).into()).collect();
    of_numbers(case.dtype, &shape, &elements)
}

/// The interpreter against plain loops, and the compiled kernel against the interpreter, with no finding.
fn judge(case: &Case, seeds: u64, compare_stages: bool) {
    let kernel = kernel(case);
    let value = |symbol: Symbol| case.spread.size(symbol);
    let mut rng = StdRng::seed_from_u64(1);
    let a = input(case, &mut rng);
    let b = zeros(case.dtype, &case.spread.shape());
    let after =
        Interpreter::run(&kernel, &value, &[a.clone(), b]).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    let exact = |x: f64| match case.dtype {
        DType::F16 => x.abs() <= 1000.0,
        DType::Bf16 => x.abs() <= 100.0,
        _ => true,
    };
    for (at, (&found, &expected)) in after[1].to_f64().iter().zip(&summed(case, &a)).enumerate() {
        assert!(found == expected || !exact(expected), "{case:?}: element {at} is {found}, not {expected}");
    }
    let mut options = Options::new(Target::GFX942);
    for (at, dim) in symbols(["M", "N"]).into_iter().enumerate() {
        options = match case.dynamic && at != case.spread.along {
            true => options.dynamic(dim),
            false => options.set(dim, case.spread.sizes[at]),
        };
    }
    // The second one exchanges rows of lanes.
    for (target, seeds) in [(Target::GFX942, seeds), (Target::GFX950, 1)] {
        let executable = verified(&kernel, &options.clone().for_target(target));
        for seed in 0..seeds {
            assert_right(&kernel, &executable, &value, seed, format_args!("{case:?} for {target}"));
        }
    }
    if compare_stages {
        meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{case:?}: {fault}"));
    }
}

const DTYPES: [DType; 7] = [F32, F16, Bf16, I32, I8, F64, I64];
const OPS: [ScanOp; 2] = [ScanOp::Inclusive, ScanOp::Exclusive];

#[test]
fn every_scan_of_every_dtype_along_rows_and_columns() {
    for op in OPS {
        for dtype in DTYPES {
            for along in 0..2 {
                let case = Case { op, dtype, spread: Spread::whole(along), dynamic: false };
                judge(&case, 2, dtype == F16);
            }
        }
    }
}

/// A random case whose tiles a kernel can have.
fn random(rng: &mut StdRng) -> Case {
    let along = rng.random_range(0..2);
    let op = OPS[rng.random_range(0..2)];
    let dtype = DTYPES[rng.random_range(0..DTYPES.len())];
    let spread = Spread::random(rng, along, 2);
    let dynamic = matches!(spread.tiles[1 - along], Tile::Workgroup(_)) && rng.random_bool(0.5);
    Case { op, dtype, spread, dynamic }
}

#[test]
fn random_tiles_waves_and_sizes() {
    let mut rng = StdRng::seed_from_u64(14);
    let cases = std::env::var("GROUNDSWELL_SWEEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1) * 40;
    for number in 0..cases {
        let case = random(&mut rng);
        // The interpreter takes a second for the stages of a large case, which has no other passes.
        let is_small = case.spread.sizes.iter().product::<i64>() <= 4096;
        judge(&case, if number % 3 == 0 { 5 } else { 1 }, number % 2 == 0 && is_small);
    }
}

/// The bits of `b` after a row kernel ran on `a`.
fn row_bits(executable: &Executable, a: &[f32]) -> Vec<u32> {
    let device = Device::simulator(Target::GFX942);
    let [from, to] = [device.upload(a).unwrap(), device.upload(&vec![7f32; a.len()]).unwrap()];
    device.launch(executable).buffer(&from).buffer(&to).run().unwrap();
    to.download::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn odd_numbers_and_rows() {
    let [m, n] = symbols(["M", "N"]);
    for op in OPS {
        for (waves, length) in
            [(None, 1), (None, 3), (None, 70), (None, 300), (None, 700), (Some(64), 256), (Some(100), 399)]
        {
            let kernel = Kernel::trace("odd", |w| {
                if waves.is_some() {
                    w.distribute([wave(n, Symbol::new("WAVE_N"))]);
                }
                let x = w.read(w.memory("a", [m, n], Global, F32));
                let sums = match op {
                    ScanOp::Inclusive => x.cumsum(n),
                    ScanOp::Exclusive => x.cumsum_exclusive(n),
                };
                w.write(sums, w.memory("b", [m, n], Global, F32));
            })
            .unwrap();
            let mut options = Options::new(Target::GFX942).set(m, 1).set(n, length as i64);
            if let Some(wave) = waves {
                options = options.set("WAVE_N", wave);
            }
            let executable = verified(&kernel, &options);
            let what = format!("{op:?} of {length}, waves {waves:?}");
            // Negative zeros: a sum of nothing is +0.0, and one of negative zeros stays negative.
            let zero = if op == ScanOp::Inclusive { -0.0f32 } else { 0.0 };
            let zeros = row_bits(&executable, &vec![-0.0; length]);
            assert!(zeros.iter().all(|&bits| bits == zero.to_bits()), "{what}: {zeros:x?}");
            // What is not finite has a part in what comes after it, and in nothing before.
            for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, f32::MAX] {
                for at in [0, length / 2, length - 1] {
                    let mut a = vec![1e-41f32; length];
                    a[at] = odd;
                    let sums = row_bits(&executable, &a);
                    let first = at + usize::from(op == ScanOp::Exclusive);
                    for (place, &bits) in sums.iter().enumerate() {
                        let found = f32::from_bits(bits);
                        let count = place + usize::from(op == ScanOp::Inclusive);
                        let small = count as f64 * f64::from(1e-41f32);
                        let expected = match place < first {
                            true => small as f32,
                            false => (small - f64::from(1e-41f32) + f64::from(odd)) as f32,
                        };
                        let same = found.is_nan() && expected.is_nan() || found == expected;
                        assert!(same, "{what}: {odd} at {at}: {found:e} at {place}, not {expected:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_other_rows() {
    let [m, n] = symbols(["M", "N"]);
    let mut rng = StdRng::seed_from_u64(2);
    for columns in [5usize, 64, 100] {
        let a: Vec<f32> = (0..40 * columns).map(|_| rng.random_range(-1f32..1.0)).collect();
        let kernel = Kernel::trace("rows", |w| {
            let x = w.read(w.memory("a", [m, n], Global, F32));
            w.write(x.cumsum(n), w.memory("b", [m, n], Global, F32));
        })
        .unwrap();
        let mut all: Option<Vec<f32>> = None;
        for rows in [40usize, 1, 3, 16, 33] {
            let options = Options::new(Target::GFX942).set(m, rows as i64).set(n, columns as i64);
            let executable = kernel.compile(&options).unwrap();
            let device = Device::simulator(Target::GFX942);
            let from = device.upload(&a[..rows * columns]).unwrap();
            let to = device.upload(&vec![0f32; rows * columns]).unwrap();
            device.launch(&executable).buffer(&from).buffer(&to).run().unwrap();
            let sums = to.download::<f32>().unwrap();
            let all = all.get_or_insert_with(|| sums.clone());
            assert_eq!(sums, all[..rows * columns], "{rows} rows of {columns}");
        }
    }
}

/// Scans whose operand comes from a matrix instruction, that are used twice, in place, of one another, and
/// that nothing uses.
#[test]
fn odd_kernels() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let product = Kernel::trace("of_product", |w| {
        w.distribute([workgroup(m, 32, 0), tile(k, 16), wave(m, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let [a, b] = [("a", m), ("b", n)].map(|(name, dim)| w.memory(name, [dim, k], Shared, F16));
        let c = w.memory("c", [m, n], Global, F32);
        let d = w.memory("d", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sum.cumsum(n), c);
        w.write(sum, d);
    });
    let rows = Kernel::trace("of_one_another", |w| {
        w.distribute([workgroup(m, 4, 0), wave(n, 32)]);
        let a = w.memory("a", [m, n], Global, F32);
        let x = w.read(a);
        let _unused = x.cumsum_exclusive(n);
        let twice = x.cumsum(n).cumsum_exclusive(n);
        let centered = twice - twice.max(n) + x.cumsum(n);
        w.write(centered, a);
    });
    let both = Kernel::trace("both_ways", |w| {
        let x = w.read(w.memory("a", [m, n], Global, F32));
        w.write(x.cumsum(n).cumsum(m), w.memory("b", [m, n], Global, F32));
    });
    let transposed = Kernel::trace("transposed", |w| {
        w.distribute([workgroup(m, 16, 0)]);
        let x = w.read(w.memory("a", [n, m], Global, F16)).cast(F32);
        w.write(x.cumsum(n).cast(F16), w.memory("b", [m, n], Global, F16));
    });
    let chosen = Kernel::trace("chosen", |w| {
        w.distribute([workgroup(m, 4, 0), wave(n, 32)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
        let x = w.read(a);
        let [sums] = w.conditional(w.workgroup_id(0).less(1), [x], |_, [x]| [x.cumsum(n)]);
        w.write(sums, b);
    });
    for (kernel, sizes) in [
        (chosen, [[9, 100, 1], [3, 20, 1]]),
        (product, [[40, 32, 50], [16, 64, 16]]),
        (rows, [[5, 100, 1], [1, 1, 1]]),
        (both, [[9, 17, 1], [30, 64, 1]]),
        (transposed, [[33, 50, 1], [5, 3, 1]]),
    ] {
        let kernel = kernel.unwrap();
        for size in sizes {
            let value = |symbol: Symbol| [m, n, k].iter().position(|&dim| dim == symbol).map(|at| size[at]);
            let mut options = Options::new(Target::GFX942).set(m, size[0]).set(n, size[1]);
            if kernel.text(groundswell::text::Detail::Source).contains("[M, K]") {
                options = options.set(k, size[2]);
            }
            let executable = verified(&kernel, &options);
            for seed in 0..5 {
                assert_right(&kernel, &executable, &value, seed, format_args!("{kernel} {size:?}"));
            }
            meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{kernel}: {fault}"));
        }
    }
}

/// Loops that carry a sum, under all schedules that reorder and pipeline them.
#[test]
fn scheduled_loops() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("scheduled", |w| {
        w.distribute([workgroup(m, 4, 0), tile(n, 64), wave(n, 32)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
        let zero = w.register([m], F32, 0.0);
        w.iterate(n, [zero], |w, [so_far]| {
            let x = w.read(a);
            w.write(x.cumsum_exclusive(n) + so_far, b);
            [so_far + x.sum(n)]
        });
    })
    .unwrap();
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for columns in [1, 64, 200, 500] {
            let options = Options::new(Target::GFX942).set(m, 6).set(n, columns).schedule(schedule.clone());
            let value = |symbol: Symbol| options.value(symbol);
            let executable = verified(&kernel, &options);
            for seed in 0..3 {
                assert_right(&kernel, &executable, &value, seed, format_args!("{schedule:?} {columns}"));
            }
            meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{fault}"));
        }
    }
}

/// Where lanes that share the dimension are in different rows, gfx950 exchanges rows without LDS.
#[test]
fn columns_are_scanned_by_exchanges_of_rows() {
    for (dtype, rows) in [(F32, 32), (I32, 16), (F64, 16)] {
        let tiles = [Tile::Whole, Tile::Workgroup(4)];
        let case = Case {
            op: ScanOp::Inclusive,
            dtype,
            spread: Spread { sizes: [rows, 8], tiles, waves: [None; 2], along: 0 },
            dynamic: false,
        };
        judge(&case, 1, false);
        for (target, exchanges) in [(Target::GFX942, false), (Target::GFX950, true)] {
            let options = Options::new(target).set("M", rows).set("N", 8);
            let listing =
                compile_uncached(&kernel(&case), &options, Verify::Off).unwrap().assembly().unwrap();
            assert_eq!(listing.contains("v_permlane"), exchanges, "{case:?}: {listing}");
            assert_eq!(listing.contains("\tds_"), !exchanges, "{case:?}: {listing}");
        }
    }
}

/// Lanes that are whole rows are summed up from row to row, without LDS: where two, four or one row share the
/// dimension, of floats and of integers.
#[test]
fn rows_of_lanes_are_scanned_without_lds() {
    for (dtype, columns) in [(F32, 256), (F32, 128), (F32, 64), (I32, 256), (I32, 128), (F16, 128)] {
        for op in [ScanOp::Inclusive, ScanOp::Exclusive] {
            let tiles = [Tile::Workgroup(4), Tile::Whole];
            let waves = [Some(4), None];
            let spread = Spread { sizes: [7, columns], tiles, waves, along: 1 };
            let case = Case { op, dtype, spread, dynamic: false };
            judge(&case, 2, false);
            let options = Options::new(Target::GFX942).set("M", 7).set("N", columns);
            let listing =
                compile_uncached(&kernel(&case), &options, Verify::Off).unwrap().assembly().unwrap();
            assert!(!listing.contains("\tds_"), "{case:?}: {listing}");
            assert_eq!(listing.contains("row_bcast:31"), columns == 256, "{case:?}: {listing}");
            assert_eq!(
                listing.contains("row_bcast:15"),
                columns >= 128 && dtype != F16,
                "{case:?}: {listing}"
            );
        }
    }
}
