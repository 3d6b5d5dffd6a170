//! Functions of floats on the simulator and in the interpreter, against f64: the error bounds are those of
//! docs/numerics.md.
//!
//! Every f16 and bf16 number, and f32 numbers with their edges; `GROUNDSWELL_FUNCTION_INPUTS` asks for
//! another number of f32 inputs, and prints the largest errors.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use groundswell::prelude::*;
use groundswell_testing::floats::{
    FORMATS, Format, approximate, asked_singles, compiled, edges, inputs_asked, launched, options, parse,
    scaled, singles, tensor, unary,
};

/// A function: its name, what it is in f64, its bounds in f32, f16, bf16, and in f32 with `fast_math` for
/// normal numbers.
struct Function {
    name: &'static str,
    exact: fn(f64) -> f64,
    bounds: [f64; 3],
    fast: f64,
}

const FUNCTIONS: [Function; 15] = [
    Function { name: "rsqrt", exact: |x| 1.0 / x.sqrt(), bounds: [1.0, 0.51, 0.51], fast: 1.0 },
    Function { name: "cbrt", exact: f64::cbrt, bounds: [0.501, 0.51, 0.51], fast: 50.0 },
    Function { name: "log", exact: f64::ln, bounds: [2.5, 0.51, 0.51], fast: 3.0 },
    Function { name: "log10", exact: f64::log10, bounds: [2.5, 0.51, 0.51], fast: 3.0 },
    Function { name: "log1p", exact: f64::ln_1p, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "expm1", exact: f64::exp_m1, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "sin", exact: f64::sin, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "cos", exact: f64::cos, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "sinh", exact: f64::sinh, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "cosh", exact: f64::cosh, bounds: [0.501, 0.501, 0.501], fast: 0.501 },
    Function { name: "erf", exact: erf, bounds: [1.5, 0.51, 0.51], fast: 1.5 },
    Function { name: "sigmoid", exact: sigmoid, bounds: [0.501, 0.51, 0.51], fast: 100.0 },
    Function { name: "silu", exact: |x| weighted(x, sigmoid(x)), bounds: [0.501, 0.51, 0.51], fast: 100.0 },
    Function { name: "gelu", exact: gelu, bounds: [0.501, 0.51, 0.51], fast: 400.0 },
    Function { name: "gelu_tanh", exact: gelu_tanh, bounds: [0.501, 0.51, 0.51], fast: 400.0 },
];

/// `1 - erf x` for `x` of at least a half, by the trapezoidal rule, which is as good as f64 for the integral
/// of `e^(-x² t²) / (1 + t²)` (Chiarella and Reichel, 1968).
fn tail(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    let step = 0.5;
    let sum: f64 = (1..=13)
        .map(|k| f64::from(k * k) * step * step)
        .map(|square: f64| (-square).exp() / (square + x * x))
        .sum();
    let rule = 2.0 * step * x * (-x * x).exp() / PI * (1.0 / (2.0 * x * x) + sum);
    if x < PI / step { rule - 2.0 / (2.0 * PI * x / step).exp_m1() } else { rule }
}

/// Below a half by the alternating series.
fn erf(x: f64) -> f64 {
    if x.abs() >= 0.5 {
        return (1.0 - tail(x.abs())).copysign(x);
    }
    let mut term = x;
    let mut sum = x;
    for n in 1..20 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    (FRAC_2_SQRT_PI * sum).copysign(x)
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// The limit for minus infinity is zero.
fn weighted(x: f64, weight: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x * weight }
}

fn gelu(x: f64) -> f64 {
    let a = -x * FRAC_1_SQRT_2;
    weighted(x, if a >= 0.5 { tail(a) } else { 1.0 - erf(a) } / 2.0)
}

/// By the exponential: `1 + tanh u` has no bits left where `u` is negative.
fn gelu_tanh(x: f64) -> f64 {
    let u = (2.0 / PI).sqrt() * (x + 0.044715 * x.powi(3));
    weighted(x, 1.0 / ((-2.0 * u).exp() + 1.0))
}

/// The largest error where `judged` says so: it, the argument, the result.
fn worst(
    format: &Format,
    exact: fn(f64) -> f64,
    inputs: &Tensor,
    results: &Tensor,
    judged: fn(f64, f64) -> bool,
) -> (f64, f64, f64) {
    let mut worst = (0.0, 0.0, 0.0);
    for (x, got) in inputs.to_f64().into_iter().zip(results.to_f64()) {
        let exact = exact(x);
        let error = format.error(got, exact);
        if error > worst.0 && judged(x, exact) {
            worst = (error, x, got);
        }
    }
    worst
}

#[test]
fn functions_of_every_narrow_float() {
    let all: Vec<u32> = (0..1 << 16).collect();
    for (format, number) in FORMATS[1..].iter().zip(1..) {
        for function in &FUNCTIONS {
            let (name, dtype) = (function.name, format.dtype);
            let kernel = unary(name, dtype);
            let inputs = tensor(dtype, &all);
            let got = launched(&kernel, &options(all.len()), std::slice::from_ref(&inputs), dtype);
            let (error, x, got) = worst(format, function.exact, &inputs, &got, |_, _| true);
            if inputs_asked().is_some() {
                println!("{name} {dtype}: {error:.4} at {x:e}");
            }
            assert!(
                error <= function.bounds[number],
                "{name} of {x:e} in {dtype} is {got:e}, {error} units off"
            );
            let zeros = Tensor::zeros(&[all.len()], dtype).expect("small");
            let host =
                Interpreter::run(&kernel, &|_| Some(1 << 16), &[inputs.clone(), zeros]).expect("it runs");
            let (error, x, got) = worst(format, function.exact, &inputs, &host[1], |_, _| true);
            assert!(error <= 0.501, "interpreter: {name} of {x:e} in {dtype} is {got:e}, {error} units off");
        }
    }
}

#[test]
fn functions_of_singles() {
    for function in &FUNCTIONS {
        let mut least = (0.0, 0.0, 0.0);
        for mut bits in asked_singles(1 << 16, 100) {
            bits.extend(edges(&FORMATS[0]));
            let inputs = tensor(F32, &bits);
            let got = launched(
                &unary(function.name, F32),
                &options(bits.len()),
                std::slice::from_ref(&inputs),
                F32,
            );
            let found = worst(&FORMATS[0], function.exact, &inputs, &got, |_, _| true);
            if found.0 > least.0 {
                least = found;
            }
        }
        let ((error, x, got), name) = (least, function.name);
        if inputs_asked().is_some() {
            println!("{name} f32: {error:.4} at {x:e}");
        }
        assert!(error <= function.bounds[0], "{name} of {x:e} is {got:e}, {error} units off");
    }
}

#[test]
fn fast_functions_of_normal_singles() {
    let bits = singles(1 << 15, 21);
    let inputs = tensor(F32, &bits);
    // What the sigmoids weigh with may be a denormal, and so zero, below.
    let judged =
        |x: f64, exact: f64| (x as f32).is_normal() && (exact.abs() >= 2f64.powi(-110) || exact == 0.0);
    for function in &FUNCTIONS {
        let name = function.name;
        let kernel = unary(name, F32);
        let fast = options(bits.len()).fast_math();
        let got = launched(&kernel, &fast, std::slice::from_ref(&inputs), F32);
        let (error, x, got) = worst(&FORMATS[0], function.exact, &inputs, &got, judged);
        let [plain, short] =
            [options(64), options(64).fast_math()].map(|o| compiled(&kernel, &o).report().instructions);
        if inputs_asked().is_some() {
            println!("{name} fast: {error:.4} at {x:e}; {short} of {plain} instructions");
        }
        assert!(error <= function.fast, "fast {name} of {x:e} is {got:e}, {error} units off");
        assert!(short < plain || function.fast == function.bounds[0], "{name}: {short} of {plain}");
    }
}

/// Pairs of edges, and of other numbers.
#[test]
fn functions_of_pairs() {
    type Exact = fn(f64, f64) -> f64;
    let functions: [(&str, Exact); 2] = [("pow", f64::powf), ("atan2", f64::atan2)];
    let parts = || asked_singles(1 << 15, 31).zip(asked_singles(1 << 15, 1031));
    for (format, others) in FORMATS.iter().flat_map(|format| parts().map(move |part| (format, part))) {
        let (edges, dtype) = (edges(format), format.dtype);
        let mut pairs: Vec<(u32, u32)> =
            edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
        let down = 32 - dtype.bits();
        // Bases and exponents whose power is neither zero nor infinite, and whole exponents.
        let moderate = |bits: u32| f32::from_bits(bits & 0x83ff_ffff | 0x3c00_0000).to_bits();
        for (at, (&x, &y)) in others.0.iter().zip(&others.1).enumerate() {
            let y = match at % 3 {
                0 => y,
                1 => ((y % 64) as f32 - 32.0).to_bits(),
                _ => moderate(y),
            };
            let x = if at % 4 == 0 { x } else { moderate(x) };
            pairs.push(match dtype {
                F16 => {
                    let [x, y] = [x, y].map(|bits| f16::from_f32(f32::from_bits(bits)).to_bits().into());
                    (x, y)
                }
                _ => (x >> down, y >> down),
            });
        }
        let [x, y]: [Vec<u32>; 2] =
            [pairs.iter().map(|p| p.0).collect(), pairs.iter().map(|p| p.1).collect()];
        let inputs = [tensor(dtype, &x), tensor(dtype, &y)];
        for (name, exact) in functions {
            let kernel = parse(&format!(
                "  a = memory [N] global {dtype}\n  b = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  \
                 %x = read a\n  %y = read b\n  %z = {name} %x, %y\n  write %z, c\n"
            ));
            let machine = launched(&kernel, &options(pairs.len()), &inputs, dtype).to_f64();
            let size = Some(pairs.len() as i64);
            let zeros = Tensor::zeros(&[pairs.len()], dtype).expect("small");
            let tensors = [inputs[0].clone(), inputs[1].clone(), zeros];
            let host = Interpreter::run(&kernel, &|_| size, &tensors).expect("it runs")[2].to_f64();
            let [x, y] = [&inputs[0], &inputs[1]].map(|t| t.to_f64());
            let mut largest = 0f64;
            for at in 0..pairs.len() {
                let exact = exact(x[at], y[at]);
                for (whose, got) in [("machine", machine[at]), ("interpreter", host[at])] {
                    let error = format.error(got, exact);
                    largest = largest.max(error);
                    assert!(
                        error <= 0.51,
                        "{whose}: {name} of {:e} and {:e} in {dtype} is {got:e}, not {exact:e}: {error}",
                        x[at],
                        y[at]
                    );
                }
            }
            if inputs_asked().is_some() {
                println!("{name} {dtype}: {largest:.4}");
            }
        }
    }
}

/// The sequences that rest on instructions of 1 ULP in plain f32, with instructions that are off by as much
/// as they may be. Those in f64 have none, or square the instruction's error.
mod sequences {
    use super::{approximate, scaled};

    fn log2(x: f32, off: i32) -> f32 {
        let scale = if x < f32::MIN_POSITIVE { 32 } else { 0 };
        approximate(f64::log2, scaled(x, scale), off) - scale as f32
    }

    pub fn log(x: f32, off: i32) -> f32 {
        let base_two = log2(x, off);
        base_two.mul_add(f32::from_bits(0x3f31_7217), 5.769_999e-8 * base_two)
    }

    pub fn log10(x: f32, off: i32) -> f32 {
        let base_two = log2(x, off);
        base_two.mul_add(0.301_029_98, 1.548_133_4e-8 * base_two)
    }

    pub fn rsqrt(x: f32, off: i32) -> f32 {
        let up = if x < f32::MIN_POSITIVE { 32 } else { 0 };
        scaled(approximate(|x| 1.0 / x.sqrt(), scaled(x, up), off), up / 2)
    }

    fn polynomial(x: f32, coefficients: &[f32]) -> f32 {
        let first = coefficients[0] * x + coefficients[1];
        coefficients[2..].iter().fold(first, |sum, &c| sum.mul_add(x, c))
    }

    pub fn erf(x: f32, off: i32) -> f32 {
        const SMALL: [f32; 7] = [
            7.853_85e-5,
            -8.010_202_7e-4,
            5.188_330_5e-3,
            -2.685_381_5e-2,
            1.128_358_5e-1,
            -3.761_262_6e-1,
            1.283_791_7e-1,
        ];
        const LARGE: [f64; 8] = [
            -2.168649431629791e-05,
            0.00044133199405342903,
            -0.004204539181177262,
            0.02520819274450199,
            -0.10841847115840156,
            -0.6332199967582084,
            -1.1295783690881263,
            0.00018802787498197233,
        ];
        let large = LARGE.map(|c| (c * std::f64::consts::LOG2_E) as f32);
        let tail = approximate(f64::exp2, polynomial(x.abs().min(4.0), &large), off);
        if x.abs() > 1.0 { (1.0 - tail).copysign(x) } else { x.mul_add(polynomial(x * x, &SMALL), x) }
    }
}

#[test]
fn bounds_hold_with_the_worst_instructions() {
    let bits = singles(1 << 15, 41);
    type Model = fn(f32, i32) -> f32;
    let models: [(&str, Model); 4] = [
        ("log", sequences::log),
        ("log10", sequences::log10),
        ("rsqrt", sequences::rsqrt),
        ("erf", sequences::erf),
    ];
    for (name, model) in models {
        let function = FUNCTIONS.iter().find(|f| f.name == name).expect("listed");
        let mut largest = 0f64;
        for off in [-1, 0, 1] {
            for &b in &bits {
                let x = f32::from_bits(b);
                let got = model(x, off);
                let error = FORMATS[0].error(got.into(), (function.exact)(x.into()));
                largest = largest.max(error);
                assert!(
                    error <= function.bounds[0],
                    "{name} of {x:e} ({b:#x}), {off} off, is {got:e}: {error} units"
                );
            }
        }
        if inputs_asked().is_some() {
            println!("{name} with the worst instructions: {largest:.4}");
        }
        // The model is the sequence.
        let machine = launched(&unary(name, F32), &options(bits.len()), &[tensor(F32, &bits)], F32);
        for (&b, &got) in bits.iter().zip(machine.as_slice::<f32>().expect("f32")) {
            let expected = model(f32::from_bits(b), 0);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{name} of {b:#x}: {got:e}, not {expected:e}");
        }
    }
}

/// Vector instructions of each function for one element, beyond those that widen it to f32 and round it back.
#[test]
fn functions_take_few_instructions() {
    let count = |name: &str, dtype: DType| {
        // A wave has four elements in a lane.
        let listing = |kernel: &Kernel| {
            let listing = compiled(kernel, &options(256)).assembly().expect("it has a text");
            listing.lines().filter(|line| line.trim_start().starts_with("v_")).count()
        };
        // f32 needs neither, and its casts are left out.
        let converted = parse(&format!(
            "  a = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  %x = read a\n  %w = cast %x f32\n  \
             %y = cast %w {dtype}\n  write %y, c\n"
        ));
        let instructions = (listing(&unary(name, dtype)) as f64 - listing(&converted) as f64) / 4.0;
        if inputs_asked().is_some() {
            println!("{name} {dtype}: {instructions} instructions");
        }
        instructions
    };
    for function in &FUNCTIONS {
        for dtype in [F32, F16, Bf16] {
            let instructions = count(function.name, dtype);
            assert!(instructions <= 60.0, "{} in {dtype}: {instructions}", function.name);
        }
    }
    for (name, most) in [("sigmoid", 4.0), ("silu", 8.0), ("rsqrt", 1.0), ("log", 2.0), ("round", 7.0)] {
        let instructions = count(name, F16);
        assert!(instructions <= most, "{name}: {instructions}");
    }
}
