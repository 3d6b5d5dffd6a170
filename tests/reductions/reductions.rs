//! Reductions along any dimension: the interpreter equals loops in plain Rust, and compiled code, in check
//! mode, equals both, for tiles, waves and sizes of all kinds.

use crate::common::meaning;
use groundswell::author::ReductionOp;
use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A kernel `[M, N] -> [M]` or `[N]` with its tiles and sizes.
#[derive(Clone, Debug)]
struct Case {
    op: ReductionOp,
    dtype: DType,
    sizes: [i64; 2],
    /// Elements of M and N per workgroup or per iteration; `None` for all of the dimension.
    tiles: [Tile; 2],
    waves: [Option<i64>; 2],
    /// The dimension that is folded.
    along: usize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Tile {
    /// Of a workgroup.
    Workgroup(i64),
    /// Of a loop.
    Loop(i64),
    /// The workgroup has the whole dimension.
    Whole,
}

fn kernel(case: &Case) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let [along, kept] = [dims[case.along], dims[1 - case.along]];
    let traced = Kernel::trace("fold", |w| {
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
        let b = w.memory("b", [kept], Global, case.dtype);
        let fold = |x: Value| match case.op {
            ReductionOp::Sum => x.sum(along),
            ReductionOp::Product => x.product(along),
            ReductionOp::Min => x.min(along),
            ReductionOp::Max => x.max(along),
        };
        let Tile::Loop(_) = case.tiles[case.along] else {
            w.write(fold(w.read(a)), b);
            return;
        };
        let first = match (case.op, case.dtype.is_float()) {
            (ReductionOp::Sum, _) => 0.0,
            (ReductionOp::Product, _) => 1.0,
            (ReductionOp::Min, true) => f64::INFINITY,
            (ReductionOp::Max, true) => f64::NEG_INFINITY,
            (ReductionOp::Min, false) => 127.0,
            (ReductionOp::Max, false) => -128.0,
        };
        let first = w.register([kept], case.dtype, first);
        let [all] = w.iterate(along, [first], |w, [so_far]| {
            let part = fold(w.read(a));
            [match case.op {
                ReductionOp::Sum => so_far + part,
                ReductionOp::Product => so_far * part,
                ReductionOp::Min => so_far.minimum(part),
                ReductionOp::Max => so_far.maximum(part),
            }]
        });
        w.write(all, b);
    });
    traced.unwrap_or_else(|fault| panic!("{case:?}: {fault}"))
}

/// What loops in plain Rust make of the elements.
fn folded(case: &Case, a: &Tensor) -> Vec<f64> {
    let [m, n] = case.sizes.map(|size| size as usize);
    let elements = a.to_f64();
    let at = |kept: usize, along: usize| match case.along {
        0 => elements[along * n + kept],
        _ => elements[kept * n + along],
    };
    let (kept, along) = if case.along == 0 { (n, m) } else { (m, n) };
    let wrap = |x: f64| match case.dtype {
        DType::I8 => f64::from(x as i64 as i8),
        DType::I32 => f64::from((x as i128) as i32),
        _ => x,
    };
    let mut all = Vec::new();
    for row in 0..kept {
        let mut so_far = at(row, 0);
        for column in 1..along {
            let x = at(row, column);
            so_far = match case.op {
                ReductionOp::Sum => wrap(so_far + x),
                ReductionOp::Product => wrap(so_far * x),
                ReductionOp::Min => so_far.min(x),
                ReductionOp::Max => so_far.max(x),
            };
        }
        all.push(so_far);
    }
    all
}

/// Small integers, so that sums and products are exact.
fn input(case: &Case, rng: &mut StdRng) -> Tensor {
    let [m, n] = case.sizes.map(|size| size as usize);
    let mut element = || match case.op {
        ReductionOp::Product if rng.random_range(0..8) == 0 => -2.0,
        ReductionOp::Product => 1.0,
        _ => f64::from(rng.random_range(-3..=3)),
    };
    let elements: Vec<f64> = (0..m * n).map(|_| element()).collect();
    let floats: Vec<f32> = elements.iter().map(|&x| x as f32).collect();
    match case.dtype {
        DType::F32 => Tensor::from_slice(&[m, n], &floats),
        DType::F16 => {
            Tensor::from_slice(&[m, n], &floats.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())
        }
        DType::Bf16 => {
            Tensor::from_slice(&[m, n], &floats.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>())
        }
        DType::F64 => Tensor::from_slice(&[m, n], &elements),
        DType::I64 => Tensor::from_slice(&[m, n], &elements.iter().map(|&x| x as i64).collect::<Vec<_>>()),
        DType::I32 => Tensor::from_slice(&[m, n], &elements.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        _ => Tensor::from_slice(&[m, n], &elements.iter().map(|&x| x as i8).collect::<Vec<_>>()),
    }
    .unwrap()
}

/// The interpreter against plain loops, and the compiled kernel against the interpreter, with no finding.
fn judge(case: &Case, compare_stages: bool) {
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
    let mut rng = StdRng::seed_from_u64(case.sizes[0] as u64 * 1000 + case.sizes[1] as u64);
    let a = input(case, &mut rng);
    let b = Tensor::zeros(&[case.sizes[1 - case.along] as usize], case.dtype).unwrap();
    let after =
        Interpreter::run(&kernel, &value, &[a.clone(), b]).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    // 16-bit results of loops are rounded in every iteration: compare those of one step.
    let expected = folded(case, &a);
    let exact = |x: f64| match case.dtype {
        DType::F16 => x.abs() <= 2048.0,
        DType::Bf16 => x.abs() <= 256.0,
        _ => true,
    };
    for (at, (&found, &expected)) in after[1].to_f64().iter().zip(&expected).enumerate() {
        assert!(found == expected || !exact(expected), "{case:?}: element {at} is {found}, not {expected}");
    }
    let options = Options::new(Target::GFX942).set(m, case.sizes[0]).set(n, case.sizes[1]);
    for (target, seeds) in [(Target::GFX942, 0..2), (Target::GFX950, 2..3)] {
        let options = options.clone().for_target(target);
        let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass)
            .unwrap_or_else(|fault| panic!("{target} {case:?}: {fault}"));
        let device = Device::simulator(target);
        for seed in seeds {
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, seed)
                .unwrap_or_else(|fault| panic!("{target} {case:?}: {fault}"));
            assert!(report.findings.is_empty(), "{target} {case:?}: {report}");
            assert!(comparison.ok, "{target} {case:?}: {comparison:?}");
        }
    }
    if compare_stages {
        meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{case:?}: {fault}"));
    }
}

const DTYPES: [DType; 7] = [F32, F16, Bf16, I32, I8, F64, I64];

#[test]
fn every_reduction_of_every_dtype_along_rows_and_columns() {
    for op in ReductionOp::ALL.iter().copied() {
        for dtype in DTYPES {
            for along in 0..2 {
                let mut tiles = [Tile::Workgroup(4); 2];
                tiles[1] = Tile::Workgroup(64);
                tiles[along] = Tile::Whole;
                let case = Case { op, dtype, sizes: [12, 100], tiles, waves: [None; 2], along };
                judge(&case, dtype == F16);
            }
        }
    }
}

/// A random case whose tiles a kernel can have.
fn random(rng: &mut StdRng) -> Case {
    let along = rng.random_range(0..2);
    let mut case = Case {
        op: ReductionOp::ALL[rng.random_range(0..ReductionOp::ALL.len())],
        dtype: DTYPES[rng.random_range(0..DTYPES.len())],
        sizes: [rng.random_range(1..80), rng.random_range(1..300)],
        tiles: [Tile::Whole; 2],
        waves: [None; 2],
        along,
    };
    for at in 0..2 {
        let elements = 1 << rng.random_range(0..if at == 0 { 7 } else { 8 });
        case.tiles[at] = match rng.random_range(0..3) {
            0 => Tile::Whole,
            _ if at == along => Tile::Loop(elements),
            _ => Tile::Workgroup(elements),
        };
        if rng.random_range(0..3) == 0 {
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
    case
}

#[test]
fn random_tiles_waves_and_sizes() {
    let mut rng = StdRng::seed_from_u64(14);
    let cases = std::env::var("GROUNDSWELL_SWEEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1) * 60;
    for number in 0..cases {
        let case = random(&mut rng);
        judge(&case, number % 4 == 0);
    }
}

#[test]
fn many_waves_hold_many_columns_each() {
    // Results of eight waves for eight columns of a lane are more than one value's registers.
    for (dtype, waves) in [(F16, 16), (Bf16, 8), (F32, 8), (I8, 32)] {
        let tiles = [Tile::Loop(128), Tile::Workgroup(64)];
        let waves = [Some(waves), None];
        judge(&Case { op: ReductionOp::Sum, dtype, sizes: [200, 70], tiles, waves, along: 0 }, false);
    }
}

/// What each wave has found lies side by side in LDS: five or ten numbers are no whole number of its wide
/// accesses, and sixteen of 64 bits are more than one value's registers.
#[test]
fn waves_of_any_number_join_what_they_have() {
    for (op, dtype) in [
        (ReductionOp::Sum, F32),
        (ReductionOp::Min, F32),
        (ReductionOp::Max, F16),
        (ReductionOp::Sum, F64),
        (ReductionOp::Product, I64),
        (ReductionOp::Min, I8),
    ] {
        for count in [3, 5, 6, 7, 9, 10, 12, 16] {
            for (columns, kept) in [(17, 64), (3, 8), (40, 32)] {
                let tiles = [Tile::Whole, Tile::Workgroup(kept)];
                let sizes = [16 * count - 15, columns];
                judge(&Case { op, dtype, sizes, tiles, waves: [Some(16), None], along: 0 }, false);
            }
        }
    }
}
