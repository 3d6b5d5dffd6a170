//! Elements of 64 bits: every operation of i64 and f64 against Rust's own arithmetic, bit by bit, conversions
//! from and to every dtype, scalars, and kernels that fold, sum up, spread and exchange such elements.

use groundswell::prelude::*;
use groundswell_testing::checks::OF_NUMBERS;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::floats::{agreed, random};

/// The ends of the range, numbers beside powers of two, and random ones of all lengths.
fn longs(seed: u64) -> Vec<i64> {
    let mut all: Vec<i64> = (-6..=6).collect();
    for shift in [8, 31, 32, 33, 52, 53, 62, 63] {
        let power = 1i64.wrapping_shl(shift);
        all.extend([power.wrapping_sub(1), power, power.wrapping_add(1)]);
        all.extend([power.wrapping_neg().wrapping_sub(1), power.wrapping_neg()]);
    }
    let mut state = seed;
    all.extend((0..30).map(|_| {
        let bits = random(&mut state) as i64;
        bits >> (random(&mut state) % 64)
    }));
    all
}

fn pairs<T: Copy>(all: &[T], others: &[T]) -> [Vec<T>; 2] {
    let pairs = all.iter().flat_map(|&x| others.iter().map(move |&y| (x, y)));
    let (x, y) = pairs.unzip();
    [x, y]
}

/// What is written in Rust with numbers that nothing overflows.
fn exact(word: &str, x: i64, y: i64) -> i64 {
    let (a, b) = (i128::from(x), i128::from(y));
    let floor = |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
    let result = match word {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a.wrapping_mul(b),
        "min" => a.min(b),
        "max" => a.max(b),
        "div" | "floor_div" if b == 0 => 0,
        "div" => a / b,
        "floor_div" => floor(a, b),
        "rem" if b == 0 => a,
        "rem" => a - b * floor(a, b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shift_left" => a << (b & 63),
        "shift_right" => a >> (b & 63),
        "neg" => -a,
        "abs" => a.abs(),
        "not" => !a,
        other => unreachable!("{other}"),
    };
    result as i64
}

#[test]
fn pairs_of_long_integers() {
    let [x, y] = pairs(&longs(1), &longs(2));
    let inputs = [&x, &y].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
    for word in OF_NUMBERS {
        let got = agreed(&format!("  %y = {word} %a0, %a1\n"), &inputs, I64);
        for (at, &got) in got.as_slice::<i64>().expect("i64").iter().enumerate() {
            assert_eq!(got, exact(word, x[at], y[at]), "{word} of {} and {}", x[at], y[at]);
        }
    }
}

/// Constants are immediate, inline, or in SGPRs, on either side.
#[test]
fn constants_beside_long_integers() {
    let x = longs(3);
    let input = Tensor::from_slice(&[x.len()], &x).expect("small");
    for constant in [0, 1, -1, 3, 64, 100, -7, 1 << 20, 1 << 40, (1 << 40) + 5, i64::MAX, i64::MIN] {
        for word in OF_NUMBERS {
            let body = format!("  %c = register [] i64 {constant}\n  %y = {word} %a0, %c\n");
            let got = agreed(&body, std::slice::from_ref(&input), I64);
            for (&x, &got) in x.iter().zip(got.as_slice::<i64>().expect("i64")) {
                assert_eq!(got, exact(word, x, constant), "{word} of {x} and {constant}");
            }
            let body = format!("  %c = register [] i64 {constant}\n  %y = {word} %c, %a0\n");
            let got = agreed(&body, std::slice::from_ref(&input), I64);
            for (&x, &got) in x.iter().zip(got.as_slice::<i64>().expect("i64")) {
                assert_eq!(got, exact(word, constant, x), "{word} of {constant} and {x}");
            }
        }
    }
    for word in ["neg", "abs", "not"] {
        let got = agreed(&format!("  %y = {word} %a0\n"), std::slice::from_ref(&input), I64);
        for (&x, &got) in x.iter().zip(got.as_slice::<i64>().expect("i64")) {
            assert_eq!(got, exact(word, x, 0), "{word} of {x}");
        }
    }
}

/// Zeros, denormals, ends of the range, infinities, NaN, halves, and random ones of all magnitudes.
fn doubles(seed: u64) -> Vec<f64> {
    let mut all =
        vec![0.0, 0.5, 1.0, 1.5, 2.5, 1e-3, 1e300, 2f64.powi(52) + 0.5, 2f64.powi(53), 2f64.powi(63)];
    all.extend([f64::MIN_POSITIVE, f64::from_bits(1), f64::from_bits(0xf_ffff_ffff_ffff), f64::MAX]);
    all.extend([f64::INFINITY, f64::NAN, 0.499_999_999_999_999_94, 2147483647.5, 2147483648.0, 9.2e18]);
    let mut state = seed;
    all.extend((0..20).map(|_| f64::from_bits(random(&mut state))));
    all.extend((0..20).map(|_| {
        let fraction = (random(&mut state) >> 11) as f64 / 2f64.powi(53);
        fraction * 2f64.powi((random(&mut state) % 80) as i32 - 10)
    }));
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

/// A word of the text, and what it means in Rust.
type NamedPair = (&'static str, fn(f64, f64) -> f64);
type NamedFunction = (&'static str, fn(f64) -> f64);

fn same(got: f64, expected: f64) -> bool {
    got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan()
}

fn extremum(x: f64, y: f64, least: bool) -> f64 {
    match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ if (x.total_cmp(&y).is_le()) == least => x,
        _ => y,
    }
}

#[test]
fn pairs_of_doubles() {
    let [x, y] = pairs(&doubles(1), &doubles(2));
    let inputs = [&x, &y].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
    let words: [NamedPair; 6] = [
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", |x, y| x * y),
        ("div", |x, y| x / y),
        ("min", |x, y| extremum(x, y, true)),
        ("max", |x, y| extremum(x, y, false)),
    ];
    for (word, exact) in words {
        let got = agreed(&format!("  %y = {word} %a0, %a1\n"), &inputs, F64);
        for (at, &got) in got.as_slice::<f64>().expect("f64").iter().enumerate() {
            let expected = exact(x[at], y[at]);
            assert!(same(got, expected), "{word} of {:e} and {:e}: {got:e}, not {expected:e}", x[at], y[at]);
        }
    }
    let third: Vec<f64> = x.iter().zip(&y).map(|(x, y)| -(x * y)).collect();
    for z in [third, y.iter().rev().copied().collect()] {
        let inputs = [&x, &y, &z].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
        let got = agreed("  %y = fma %a0, %a1, %a2\n", &inputs, F64);
        for (at, &got) in got.as_slice::<f64>().expect("f64").iter().enumerate() {
            assert!(same(got, x[at].mul_add(y[at], z[at])), "{:e} {:e} {:e}", x[at], y[at], z[at]);
        }
    }
    for constant in ["0.0", "-0.0", "0.5", "-2.0", "3.0", "0.1", "1e300"] {
        let value: f64 = constant.parse().expect("a number");
        for (word, exact) in words {
            for (body, swapped) in
                [(format!("  %y = {word} %a0, %c\n"), false), (format!("  %y = {word} %c, %a0\n"), true)]
            {
                let body = format!("  %c = register [] f64 {constant}\n{body}");
                let got = agreed(&body, &inputs[..1], F64);
                for (&x, &got) in x.iter().zip(got.as_slice::<f64>().expect("f64")) {
                    let expected = if swapped { exact(value, x) } else { exact(x, value) };
                    assert!(same(got, expected), "{body} of {x:e}: {got:e}, not {expected:e}");
                }
            }
        }
    }
}

#[test]
fn functions_of_doubles() {
    let mut x: Vec<f64> = (0..40).flat_map(doubles).collect();
    x.extend((-40..40).map(|at| f64::from(at) / 4.0));
    let input = Tensor::from_slice(&[x.len()], &x).expect("small");
    let words: [NamedFunction; 9] = [
        ("neg", |x| -x),
        ("abs", f64::abs),
        ("sqrt", f64::sqrt),
        ("reciprocal", |x| 1.0 / x),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
        ("trunc", f64::trunc),
        ("round_even", f64::round_ties_even),
        ("round", f64::round),
    ];
    for (word, exact) in words {
        let got = agreed(&format!("  %y = {word} %a0\n"), std::slice::from_ref(&input), F64);
        for (&x, &got) in x.iter().zip(got.as_slice::<f64>().expect("f64")) {
            assert!(same(got, exact(x)), "{word} of {x:e}: {got:e}, not {:e}", exact(x));
        }
    }
}

#[test]
fn comparisons_choose() {
    let [x, y] = pairs(&longs(4), &longs(5));
    let [u, v] = pairs(&doubles(4), &doubles(5));
    let longs = [&x, &y].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
    let doubles = [&u, &v].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
    for word in ["eq", "ne", "lt", "le", "gt", "ge"] {
        fn holds<T: PartialOrd>(word: &str, x: T, y: T) -> bool {
            match word {
                "eq" => x == y,
                "ne" => x != y,
                "lt" => x < y,
                "le" => x <= y,
                "gt" => x > y,
                _ => x >= y,
            }
        }
        let body = format!("  %c = compare {word} %a0, %a1\n  %y = select %c, %a0, %a1\n");
        let got = agreed(&body, &longs, I64);
        for (at, &got) in got.as_slice::<i64>().expect("i64").iter().enumerate() {
            let expected = if holds(word, x[at], y[at]) { x[at] } else { y[at] };
            assert_eq!(got, expected, "{word} of {} and {}", x[at], y[at]);
        }
        let got = agreed(&body, &doubles, F64);
        for (at, &got) in got.as_slice::<f64>().expect("f64").iter().enumerate() {
            let expected = if holds(word, u[at], v[at]) { u[at] } else { v[at] };
            assert!(same(got, expected), "{word} of {:e} and {:e}", u[at], v[at]);
        }
        for (dtype, inputs) in [(I64, &longs), (F64, &doubles)] {
            let body = format!("  %c = compare {word} %a0, %a1\n  %y = cast %c {dtype}\n");
            let got = agreed(&body, inputs, dtype).to_f64();
            for (at, &got) in got.iter().enumerate() {
                let holds = match dtype {
                    I64 => holds(word, x[at], y[at]),
                    _ => holds(word, u[at], v[at]),
                };
                assert_eq!(got, f64::from(u8::from(holds)));
            }
        }
    }
}

const OTHERS: [DType; 11] = [F32, F16, Bf16, I32, I16, I8, F8E4M3Fnuz, F8E5M2Fnuz, F8E4M3Fn, F8E5M2, F8E8M0];

/// Doubles beside the ties of narrower formats, so that rounding twice shows.
fn near_ties() -> Vec<f64> {
    let mut all = Vec::new();
    for x in [
        1.0f64,
        1.5,
        3.0,
        448.0,
        65504.0,
        240.0,
        2f64.powi(-14),
        2f64.powi(-24),
        2f64.powi(-126),
        2f64.powi(-149),
    ] {
        for bits in [3, 4, 8, 11, 12, 24, 25] {
            let tie = x + x * 2f64.powi(-bits);
            all.extend([tie, tie + tie * 2f64.powi(-50), tie - tie * 2f64.powi(-50)]);
            let tie = x + x * 3.0 * 2f64.powi(-bits);
            all.extend([tie, tie + tie * 2f64.powi(-40), tie - tie * 2f64.powi(-40)]);
        }
    }
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

/// What the documentation says of a conversion, in Rust.
fn rounded(x: f64, to: DType) -> f64 {
    match to {
        F32 => f64::from(x as f32),
        F16 => f16::from_f64(x).into(),
        Bf16 => bf16::from_f64(x).into(),
        F8E4M3Fnuz => f8e4m3fnuz::from_f64(x).into(),
        F8E5M2Fnuz => f8e5m2fnuz::from_f64(x).into(),
        F8E4M3Fn => f8e4m3fn::from_f64(x).into(),
        F8E5M2 => f8e5m2::from_f64(x).into(),
        F8E8M0 => f8e8m0::from_f64(x).into(),
        I32 => f64::from(x as i32),
        I16 => f64::from(x as i16),
        _ => f64::from(x as i8),
    }
}

#[test]
fn conversions_of_doubles() {
    let mut x = doubles(7);
    x.extend(near_ties());
    let input = Tensor::from_slice(&[x.len()], &x).expect("small");
    for to in OTHERS {
        let got = agreed(&format!("  %y = cast %a0 {to}\n"), std::slice::from_ref(&input), to).to_f64();
        for (&x, &got) in x.iter().zip(&got) {
            assert!(same(got, rounded(x, to)), "{x:e} is {got:e} as {to}, not {:e}", rounded(x, to));
        }
    }
    let got = agreed("  %y = cast %a0 i64\n", std::slice::from_ref(&input), I64);
    for (&x, &got) in x.iter().zip(got.as_slice::<i64>().expect("i64")) {
        assert_eq!(got, x as i64, "{x:e}");
    }
    let got = agreed("  %b = bitcast %a0 i64\n  %y = bitcast %b f64\n", std::slice::from_ref(&input), F64);
    assert!(x.iter().zip(got.as_slice::<f64>().expect("f64")).all(|(&x, &y)| same(x, y)));
    for from in OTHERS {
        let narrow = Tensor::random(&[500], from, 3).expect("small");
        let got = agreed("  %y = cast %a0 f64\n", std::slice::from_ref(&narrow), F64);
        assert_eq!(got.as_slice::<f64>().expect("f64"), narrow.to_f64(), "{from}");
    }
}

#[test]
fn conversions_of_long_integers() {
    let mut x: Vec<i64> = (0..20).flat_map(longs).collect();
    for shift in [24, 25, 30, 52, 53, 54, 60, 62] {
        for tie in [1i64 << shift, (1 << shift) + (1 << (shift - 24)), (1 << shift) + (3 << (shift - 24))] {
            x.extend([tie - 1, tie, tie + 1, -tie - 1, -tie, 1 - tie]);
        }
    }
    let input = Tensor::from_slice(&[x.len()], &x).expect("small");
    for to in OTHERS {
        let got = agreed(&format!("  %y = cast %a0 {to}\n"), std::slice::from_ref(&input), to).to_f64();
        for (&x, &got) in x.iter().zip(&got) {
            let expected = match to {
                I32 => f64::from(x as i32),
                I16 => f64::from(x as i16),
                I8 => f64::from(x as i8),
                _ => rounded(f64::from(x as f32), to),
            };
            assert!(same(got, expected), "{x} is {got:e} as {to}, not {expected:e}");
        }
    }
    let got = agreed("  %y = cast %a0 f64\n", std::slice::from_ref(&input), F64);
    for (&x, &got) in x.iter().zip(got.as_slice::<f64>().expect("f64")) {
        assert_eq!(got, x as f64, "{x}");
    }
    for from in OTHERS {
        let narrow = Tensor::random(&[500], from, 3).expect("small");
        let got = agreed("  %y = cast %a0 i64\n", std::slice::from_ref(&narrow), I64);
        for (&got, x) in got.as_slice::<i64>().expect("i64").iter().zip(narrow.to_f64()) {
            assert_eq!(got, x as i64, "{from}");
        }
    }
}

const SHAPES: [[usize; 2]; 10] =
    [[1, 1], [3, 5], [16, 64], [37, 130], [64, 1], [1, 200], [65, 257], [20, 70], [128, 32], [7, 33]];

/// A row is folded, normalised with a scalar, and stored turned: reads in two layouts, LDS, broadcasts.
#[test]
fn rows_are_folded_and_turned() {
    let [dm, dn] = symbols(["M", "N"]);
    for [m, n] in SHAPES {
        for dtype in [F64, I64] {
            for dynamic in [vec![], vec!["M"]] {
                let kernel = Kernel::trace("rows", |w| {
                    w.distribute([workgroup(dm, 8, 0), wave(dm, 4)]);
                    let alpha = w.scalar("alpha", dtype);
                    let x = w.memory("x", [dm, dn], Shared, dtype);
                    let y = w.memory("y", [dn, dm], Global, dtype);
                    let z = w.memory("z", [dn, dm], Global, dtype);
                    let rows = w.read(x);
                    w.write((rows - rows.max(dn)) * alpha + w.read(y), z);
                })
                .expect("well-formed");
                let x: Vec<f64> = (0..m * n).map(number).collect();
                let mut expected = vec![0.0; m * n];
                for row in 0..m {
                    let most = x[row * n..][..n].iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x));
                    for column in 0..n {
                        expected[column * m + row] =
                            (x[row * n + column] - most) * 3.0 + number(column * m + row);
                    }
                }
                Case {
                    name: format!("{dtype} {m}x{n}"),
                    kernel,
                    sizes: vec![("M", m as i64), ("N", n as i64)],
                    dynamic,
                    schedule: Schedule::None,
                    inputs: vec![
                        of_numbers(dtype, &[], &[3.0]),
                        of_numbers(dtype, &[m, n], &x),
                        tensor(dtype, &[n, m]),
                        zeros(dtype, &[n, m]),
                    ],
                    expected,
                }
                .check();
            }
        }
    }
}

/// Loops carry such values, under every schedule; places are cast to them, and reads are mapped.
#[test]
fn loops_carry_and_mapped_reads_give_them() {
    let [dm, dk] = symbols(["M", "K"]);
    for [m, k] in SHAPES {
        for (dtype, schedule) in [(F64, Schedule::Prefetch), (I64, Schedule::Modulo), (F64, Schedule::None)] {
            for dynamic in [vec![], vec!["K"], vec!["M", "K"]] {
                let kernel = Kernel::trace("loops", |w| {
                    w.distribute([workgroup(dm, 16, 0), tile(dk, 16)]);
                    let x = w.memory("x", [dm, dk], Shared, dtype);
                    let y = w.memory("y", [dk, dm], Global, dtype);
                    let z = w.memory("z", [dm], Global, dtype);
                    let zero = w.register([dm], dtype, 0.0);
                    let [sum] = w.iterate(dk, [zero], |w, [sum]| {
                        let last = w.read_at(y, (dk, dm + 1), [dm, dk]);
                        let place = w.self_index(dk).cast(dtype).broadcast([dm, dk]);
                        [sum + (w.read(x) * place + last).sum(dk)]
                    });
                    w.write(sum, z);
                })
                .expect("well-formed");
                let y = |row: usize, column: usize| if row < m { number(column * m + row) } else { 0.0 };
                let expected = (0..m).map(|row| {
                    (0..k).map(|at| number(row * k + at) * at as f64 + y(row + 1, at)).sum::<f64>()
                });
                Case {
                    name: format!("{dtype} {m}x{k} {schedule:?}"),
                    expected: expected.collect(),
                    kernel,
                    sizes: vec![("M", m as i64), ("K", k as i64)],
                    dynamic,
                    schedule: schedule.clone(),
                    inputs: vec![tensor(dtype, &[m, k]), tensor(dtype, &[k, m]), zeros(dtype, &[m])],
                }
                .check();
            }
        }
    }
}

#[test]
fn functions_that_f64_lacks_name_the_way_out() {
    for word in ["exp", "tanh", "rsqrt"] {
        let text = format!(
            "kernel k {{\n  workgroup N, 64, 0\n  a = memory [N] global f64\n  %x = read a\n  %y = {word} %x\n  write %y, a\n}}\n"
        );
        let kernel = Kernel::parse(&text, "k").expect("readable");
        let fault = kernel.compile(&Options::new(Target::GFX942).set("N", 64)).expect_err("f64 lacks it");
        assert_eq!(fault.message, format!("`{word}` does not take [N] f64"));
        assert_eq!(fault.help.as_deref(), Some("cast to f32 first: this function has no form for f64"));
    }
}
