//! Reductions along any dimension: the interpreter equals loops in plain Rust, and compiled code, in check
//! mode, equals both, for tiles, waves and sizes of all kinds.

use crate::spread::{Spread, Tile, wrapped};
use groundswell::author::ReductionOp;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::{of_numbers, zeros};
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::meaning;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A kernel `[M, N] -> [M]` or `[N]`.
#[derive(Clone, Debug)]
struct Case {
    op: ReductionOp,
    dtype: DType,
    spread: Spread,
}

fn kernel(case: &Case) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let [along, kept] = [dims[case.spread.along], dims[1 - case.spread.along]];
    let traced = Kernel::trace("fold", |w| {
        case.spread.distribute(w);
        let a = w.memory("a", [m, n], Global, case.dtype);
        let b = w.memory("b", [kept], Global, case.dtype);
        let fold = |x: Value| match case.op {
            ReductionOp::Sum => x.sum(along),
            ReductionOp::Product => x.product(along),
            ReductionOp::Min => x.min(along),
            ReductionOp::Max => x.max(along),
        };
        if !case.spread.is_looped() {
            w.write(fold(w.read(a)), b);
            return;
        }
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
    let [m, n] = case.spread.shape();
    let elements = a.to_f64();
    let at = |kept: usize, along: usize| match case.spread.along {
        0 => elements[along * n + kept],
        _ => elements[kept * n + along],
    };
    let (kept, along) = if case.spread.along == 0 { (n, m) } else { (m, n) };
    let wrap = |x: f64| wrapped(case.dtype, x);
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
    let [m, n] = case.spread.shape();
    let mut element = || match case.op {
        ReductionOp::Product if rng.random_range(0..8) == 0 => -2.0,
        ReductionOp::Product => 1.0,
        _ => f64::from(rng.random_range(-3..=3)),
    };
    let elements: Vec<f64> = (0..m * n).map(|_| element()).collect();
    of_numbers(case.dtype, &[m, n], &elements)
}

/// The interpreter against plain loops, and the compiled kernel against the interpreter, with no finding.
fn judge(case: &Case, compare_stages: bool) {
    let kernel = kernel(case);
    let ([m, n], sizes) = (symbols(["M", "N"]), case.spread.sizes);
    let value = |symbol: Symbol| case.spread.size(symbol);
    let mut rng = StdRng::seed_from_u64(sizes[0] as u64 * 1000 + sizes[1] as u64);
    let a = input(case, &mut rng);
    let b = zeros(case.dtype, &[case.spread.shape()[1 - case.spread.along]]);
    let after =
        Interpreter::run(&kernel, &value, &[a.clone(), b]).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    // 16-bit results of loops are rounded in every iteration: compare those of one step.
    let expected = folded(case, &a);
    let exact = |x: f64| match case.dtype {
        F16 => x.abs() <= 2048.0,
        Bf16 => x.abs() <= 256.0,
        _ => true,
    };
    for (at, (&found, &expected)) in after[1].to_f64().iter().zip(&expected).enumerate() {
        assert!(found == expected || !exact(expected), "{case:?}: element {at} is {found}, not {expected}");
    }
    let options = Options::new(Target::GFX942).set(m, sizes[0]).set(n, sizes[1]);
    for (target, seeds) in [(Target::GFX942, 0..2), (Target::GFX950, 2..3)] {
        let options = options.clone().for_target(target);
        let executable = verified(&kernel, &options);
        for seed in seeds {
            assert_right(&kernel, &executable, &value, seed, format_args!("{target} {case:?}"));
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
                judge(&Case { op, dtype, spread: Spread::whole(along) }, dtype == F16);
            }
        }
    }
}

/// A random case whose tiles a kernel can have.
fn random(rng: &mut StdRng) -> Case {
    let along = rng.random_range(0..2);
    let op = ReductionOp::ALL[rng.random_range(0..ReductionOp::ALL.len())];
    let dtype = DTYPES[rng.random_range(0..DTYPES.len())];
    Case { op, dtype, spread: Spread::random(rng, along, 3) }
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
        let spread = Spread { sizes: [200, 70], tiles, waves: [Some(waves), None], along: 0 };
        judge(&Case { op: ReductionOp::Sum, dtype, spread }, false);
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
                let spread = Spread { sizes, tiles, waves: [Some(16), None], along: 0 };
                judge(&Case { op, dtype, spread }, false);
            }
        }
    }
}

/// The smaller or greater of two: a number wins against any NaN, and minus zero is less than plus zero.
fn extremum(op: ReductionOp, a: f32, b: f32) -> f32 {
    let a_is_less = a < b || a == b && a.is_sign_negative();
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a_is_less == (op == ReductionOp::Min) => a,
        _ => b,
    }
}

/// A lane joins three elements at a time by one instruction, which does with them what two do one after the
/// other: every three of NaNs, infinities, zeros, denormals and numbers, in every order.
#[test]
fn three_elements_are_joined_as_pairs_are() {
    let nans = [0x7fc0_0000, 0x7f80_0001, 0xffc1_2345, 0xff80_0400].map(f32::from_bits);
    let numbers = [f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-40, -1e-40, f32::MAX, -1.5];
    let special: Vec<f32> = nans.into_iter().chain(numbers).collect();
    let count = special.len();
    let rows: Vec<[f32; 3]> = (0..count.pow(3))
        .map(|at| [at, at / count, at / count / count].map(|at| special[at % count]))
        .collect();
    let [m, n] = symbols(["M", "N"]);
    for op in [ReductionOp::Min, ReductionOp::Max] {
        let kernel = Kernel::trace("extrema", |w| {
            w.distribute([workgroup(m, 64, 0)]);
            let a = w.memory("a", [m, n], Global, F32);
            let b = w.memory("b", [m], Global, F32);
            let x = w.read(a);
            w.write(if op == ReductionOp::Min { x.min(n) } else { x.max(n) }, b);
        });
        let kernel = kernel.expect("a kernel");
        for target in Target::ALL {
            // Rows of four, eight and thirteen elements, which are NaNs from the fourth on.
            for columns in [4, 8, 13] {
                let options = Options::new(target).set(m, rows.len()).set(n, columns);
                let executable = compile_uncached(&kernel, &options, Verify::Off).expect("a reduction");
                let text = executable.assembly().expect("text");
                let name = if op == ReductionOp::Min { "v_min" } else { "v_max" };
                // Of four elements one instruction joins three, and another one the last.
                let [of_three, of_two] =
                    ["3_f32", "_f32_e32"].map(|end| text.matches(&format!("{name}{end}")).count());
                assert!(of_three > 0 && of_two <= of_three, "{target}: {text}");
                let device = Device::simulator(target);
                let elements = rows.iter().flat_map(|row| {
                    let rest = nans.into_iter().cycle().take(columns - 3);
                    row.iter().copied().chain(rest)
                });
                let a = device.upload(&elements.collect::<Vec<f32>>()).expect("memory");
                let b = device.upload(&vec![0.5f32; rows.len()]).expect("memory");
                let launch = device.launch(&executable).buffer(&a).buffer(&b);
                let report = launch.check(&CheckOptions { seed: 1 }).expect("a launch");
                assert!(report.is_clean(), "{target}: {report}");
                for (row, found) in rows.iter().zip(b.download::<f32>().expect("memory")) {
                    let expected = row.iter().copied().reduce(|a, b| extremum(op, a, b)).expect("three");
                    let is_right =
                        found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    assert!(is_right, "{target} {op:?} of {row:?}: {found}, not {expected}");
                }
            }
        }
    }
}

/// The same of integers, with the least and the greatest.
#[test]
fn three_integers_are_joined_at_a_time() {
    let special = [i32::MIN, i32::MAX, -1, 0, 1, 0x4000_0000];
    let rows: Vec<i32> =
        (0..6usize.pow(3)).flat_map(|at| [at, at / 6, at / 36, at / 7].map(|at| special[at % 6])).collect();
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("extrema", |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let a = w.memory("a", [m, n], Global, I32);
        let x = w.read(a);
        w.write(x.min(n), w.memory("least", [m], Global, I32));
        w.write(x.max(n), w.memory("most", [m], Global, I32));
    });
    let options = Options::new(Target::GFX90A).set(m, rows.len() / 4).set(n, 4);
    let executable = compile_uncached(&kernel.expect("a kernel"), &options, Verify::Off).expect("reductions");
    let text = executable.assembly().expect("text");
    assert!(text.contains("v_min3_i32") && text.contains("v_max3_i32"), "{text}");
    let device = Device::simulator(Target::GFX90A);
    let a = device.upload(&rows).expect("memory");
    let [least, most] = [0; 2].map(|zero| device.upload(&vec![zero; rows.len() / 4]).expect("memory"));
    device.launch(&executable).buffer(&a).buffer(&least).buffer(&most).run().expect("a launch");
    let expected = |of: fn(&[i32]) -> Option<i32>| rows.chunks(4).filter_map(of).collect::<Vec<i32>>();
    assert_eq!(least.download::<i32>().expect("memory"), expected(|row| row.iter().copied().min()));
    assert_eq!(most.download::<i32>().expect("memory"), expected(|row| row.iter().copied().max()));
}

/// A factor that is infinite for one trip, or so large that the parts of a sum overflow where the sum does
/// not: a running sum is multiplied whole, and not part by part.
#[test]
fn carried_sums_that_are_multiplied_stay_whole() {
    let text = |element: &str, factor: &str| {
        format!(
            "kernel scaled {{
              workgroup M, 4, 0
              tile K, 64
              wave M, 4
              a = memory [M, K] global f32
              o = memory [M] global f32
              %zero = register [M] f32 0.0
              %large = register [M] f32 {factor}
              %one = register [M] f32 1.0
              %sum = iterate K (%l = %zero) {{
                %place = self_index K
                {element}
                %s = reduce_sum %p over K
                %trip = iteration K
                %is_second = compare eq %trip, 1
                %of_all = broadcast %is_second [M]
                %f = select %of_all, %large, %one
                %n = fma %l, %f, %s
                yield %n
              }}
              write %sum, o
            }}"
        )
    };
    let one = "%is_third = compare eq %place, 3
        %third = broadcast %is_third [M, K]
        %none = register [M, K] f32 0.0
        %some = register [M, K] f32 1.0
        %p = select %third, %some, %none";
    let opposite = "%half = compare lt %place, 32
        %first = broadcast %half [M, K]
        %up = register [M, K] f32 1e20
        %down = register [M, K] f32 -1e20
        %p = select %first, %up, %down";
    for (element, factor) in [(one, "inf"), (one, "1e38"), (opposite, "1e30")] {
        let kernel = Kernel::parse(&text(element, factor), "scaled.gsw").expect("well-formed");
        for target in Target::ALL {
            let value = |symbol: Symbol| match symbol.name() {
                "M" => Some(4),
                "K" => Some(192),
                _ => None,
            };
            let options = Options::new(target).set(Symbol::new("M"), 4).set(Symbol::new("K"), 192);
            let executable = kernel.compile(&options).expect("it compiles");
            assert_right(&kernel, &executable, &value, 3, format_args!("{target} {factor}"));
        }
    }
}
