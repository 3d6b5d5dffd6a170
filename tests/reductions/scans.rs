//! Scans along any dimension: the interpreter equals loops in plain Rust, and compiled code, run and in check
//! mode, equals both, for tiles, waves and sizes of all kinds.

use crate::common::meaning;
use groundswell::author::ScanOp;
use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A kernel `[M, N] -> [M, N]` with its tiles and sizes.
#[derive(Clone, Debug)]
struct Case {
    op: ScanOp,
    dtype: DType,
    sizes: [i64; 2],
    tiles: [Tile; 2],
    waves: [Option<i64>; 2],
    /// The dimension that is summed up along.
    along: usize,
    /// Whether the other one is known at launch only; it has a tile then.
    dynamic: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Tile {
    /// Of a workgroup.
    Workgroup(i64),
    /// Of a loop, which carries the sum so far.
    Loop(i64),
    /// The workgroup has the whole dimension.
    Whole,
}

fn kernel(case: &Case) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let [along, kept] = [dims[case.along], dims[1 - case.along]];
    let traced = Kernel::trace("sums", |w| {
        for (at, dim) in dims.into_iter().enumerate() {
            match case.tiles[at] {
                Tile::Workgroup(elements) => w.distribute([workgroup(dim, elements, at as u32)]),
                Tile::Loop(elements) => w.distribute([tile(dim, elements)]),
                Tile::Whole => {}
            }
            if let Some(elements) = case.waves[at] {
                w.distribute([wave(dim, elements)]);
            }
        }
        let a = w.memory("a", [m, n], Global, case.dtype);
        let b = w.memory("b", [m, n], Global, case.dtype);
        let sums = |x: Value| match case.op {
            ScanOp::Inclusive => x.cumsum(along),
            ScanOp::Exclusive => x.cumsum_exclusive(along),
        };
        let Tile::Loop(_) = case.tiles[case.along] else {
            w.write(sums(w.read(a)), b);
            return;
        };
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
    let [m, n] = case.sizes.map(|size| size as usize);
    let elements = a.to_f64();
    let wrap = |x: f64| match case.dtype {
        DType::I8 => f64::from(x as i64 as i8),
        DType::I32 => f64::from((x as i128) as i32),
        _ => x,
    };
    let mut out = vec![0.0; m * n];
    let (kept, along) = if case.along == 0 { (n, m) } else { (m, n) };
    for row in 0..kept {
        let mut sum = 0.0;
        for column in 0..along {
            let at = if case.along == 0 { column * n + row } else { row * n + column };
            if case.op == ScanOp::Exclusive {
                out[at] = sum;
            }
            sum = wrap(sum + elements[at]);
            if case.op == ScanOp::Inclusive {
                out[at] = sum;
            }
        }
    }
    out
}

/// Small integers, so that sums are exact.
fn input(case: &Case, rng: &mut StdRng) -> Tensor {
    let shape = case.sizes.map(|size| size as usize);
    let elements: Vec<i32> = (0..shape[0] * shape[1]).map(|_| rng.random_range(-3..=3)).collect();
    tensor(case.dtype, &shape, &elements)
}

fn tensor(dtype: DType, shape: &[usize], elements: &[i32]) -> Tensor {
    let floats = || elements.iter().map(|&x| x as f32);
    match dtype {
        DType::F32 => Tensor::from_slice(shape, &floats().collect::<Vec<_>>()),
        DType::F16 => Tensor::from_slice(shape, &floats().map(f16::from_f32).collect::<Vec<_>>()),
        DType::Bf16 => Tensor::from_slice(shape, &floats().map(bf16::from_f32).collect::<Vec<_>>()),
        DType::I32 => Tensor::from_slice(shape, elements),
        DType::F64 => Tensor::from_slice(shape, &elements.iter().map(|&x| x.into()).collect::<Vec<f64>>()),
        DType::I64 => Tensor::from_slice(shape, &elements.iter().map(|&x| x.into()).collect::<Vec<i64>>()),
        _ => Tensor::from_slice(shape, &elements.iter().map(|&x| x as i8).collect::<Vec<_>>()),
    }
    .unwrap()
}

/// The interpreter against plain loops, and the compiled kernel against the interpreter, with no finding.
fn judge(case: &Case, seeds: u64, compare_stages: bool) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = kernel(case);
    let value = |symbol: Symbol| {
        if symbol == m {
            Some(case.sizes[0])
        } else if symbol == n {
            Some(case.sizes[1])
        } else {
            None
        }
    };
    let mut rng = StdRng::seed_from_u64(1);
    let a = input(case, &mut rng);
    let shape = case.sizes.map(|size| size as usize);
    let b = tensor(case.dtype, &shape, &vec![0; shape[0] * shape[1]]);
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
    for (at, dim) in [m, n].into_iter().enumerate() {
        options = match case.dynamic && at != case.along {
            true => options.dynamic(dim),
            false => options.set(dim, case.sizes[at]),
        };
    }
    // The second one exchanges rows of lanes.
    for (target, seeds) in [(Target::GFX942, seeds), (Target::GFX950, 1)] {
        let executable =
            compile_uncached(&kernel, &options.clone().for_target(target), Verify::AfterEachPass)
                .unwrap_or_else(|fault| panic!("{case:?} for {target}: {fault}"));
        let device = Device::simulator(target);
        for seed in 0..seeds {
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, seed)
                .unwrap_or_else(|fault| panic!("{case:?} for {target}: {fault}"));
            assert!(report.findings.is_empty(), "{case:?} for {target}: {report}");
            assert!(comparison.ok, "{case:?} for {target}: {comparison:?}");
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
                let mut tiles = [Tile::Workgroup(4), Tile::Workgroup(64)];
                tiles[along] = Tile::Whole;
                let case =
                    Case { op, dtype, sizes: [12, 100], tiles, waves: [None; 2], along, dynamic: false };
                judge(&case, 2, dtype == F16);
            }
        }
    }
}

/// A random case whose tiles a kernel can have.
fn random(rng: &mut StdRng) -> Case {
    let along = rng.random_range(0..2);
    let mut case = Case {
        op: OPS[rng.random_range(0..2)],
        dtype: DTYPES[rng.random_range(0..DTYPES.len())],
        sizes: [rng.random_range(1..80), rng.random_range(1..300)],
        tiles: [Tile::Whole; 2],
        waves: [None; 2],
        along,
        dynamic: false,
    };
    for at in 0..2 {
        let elements = 1 << rng.random_range(0..if at == 0 { 7 } else { 8 });
        case.tiles[at] = match rng.random_range(0..3) {
            0 => Tile::Whole,
            _ if at == along => Tile::Loop(elements),
            _ => Tile::Workgroup(elements),
        };
        if rng.random_range(0..2) == 0 {
            // A workgroup has at most sixteen.
            let most = if case.waves == [None; 2] { 4 } else { 2 };
            let waves = 1 << rng.random_range(0..most);
            let of = match case.tiles[at] {
                Tile::Whole => (case.sizes[at] as u64).next_power_of_two() as i64,
                Tile::Workgroup(elements) | Tile::Loop(elements) => elements,
            };
            case.waves[at] = Some((of / waves).max(1));
        }
    }
    case.dynamic = matches!(case.tiles[1 - along], Tile::Workgroup(_)) && rng.random_bool(0.5);
    case
}

#[test]
fn random_tiles_waves_and_sizes() {
    let mut rng = StdRng::seed_from_u64(14);
    let cases = std::env::var("GROUNDSWELL_SWEEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1) * 40;
    for number in 0..cases {
        let case = random(&mut rng);
        // The interpreter takes a second for the stages of a large case, which has no other passes.
        let is_small = case.sizes.iter().product::<i64>() <= 4096;
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
            let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap();
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
    let device = Device::simulator(Target::GFX942);
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
            let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass)
                .unwrap_or_else(|fault| panic!("{kernel} {size:?}: {fault}"));
            for seed in 0..5 {
                let (report, comparison) =
                    with_findings(&kernel, &executable, &device, &value, seed).unwrap();
                assert!(report.findings.is_empty(), "{kernel} {size:?}: {report}");
                assert!(comparison.ok, "{kernel} {size:?}: {comparison:?}");
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
    let device = Device::simulator(Target::GFX942);
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for columns in [1, 64, 200, 500] {
            let options = Options::new(Target::GFX942).set(m, 6).set(n, columns).schedule(schedule.clone());
            let value = |symbol: Symbol| options.value(symbol);
            let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap();
            for seed in 0..3 {
                let (report, comparison) =
                    with_findings(&kernel, &executable, &device, &value, seed).unwrap();
                assert!(report.findings.is_empty(), "{schedule:?} {columns}: {report}");
                assert!(comparison.ok, "{schedule:?} {columns}: {comparison:?}");
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
            sizes: [rows, 8],
            tiles,
            waves: [None; 2],
            along: 0,
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
            let case = Case { op, dtype, sizes: [7, columns], tiles, waves, along: 1, dynamic: false };
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
