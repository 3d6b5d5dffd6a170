//! Functions, quotients, minima and constants at the edges of number formats, on the simulator against f64
//! and plain Rust: the error bounds are those of docs/numerics.md.

use groundswell::internals::Constant;
use groundswell::object::{DescriptorField, ObjectFile};
use groundswell::prelude::*;
use groundswell_testing::floats::{
    FORMATS, Format, asked_singles, compiled, edges, inputs_asked, launched, options, parse, random, singles,
    tensor, unary,
};

/// A function: its name, what it is in f64, its bounds in f32 and in the narrow formats.
struct Function {
    name: &'static str,
    exact: fn(f64) -> f64,
    bounds: [f64; 2],
    /// Of `fast_math`, in f32, for normal numbers.
    fast: f64,
}

const FUNCTIONS: [Function; 6] = [
    Function { name: "exp", exact: f64::exp, bounds: [2.0, 0.51], fast: 115.0 },
    Function { name: "exp2", exact: f64::exp2, bounds: [1.5, 0.51], fast: 1.0 },
    Function { name: "log2", exact: f64::log2, bounds: [1.5, 0.51], fast: 1.0 },
    Function { name: "tanh", exact: f64::tanh, bounds: [3.0, 0.51], fast: 3.0 },
    // Half a unit and what f64 itself is off by.
    Function { name: "sqrt", exact: f64::sqrt, bounds: [0.500_001, 0.51], fast: 1.0 },
    Function { name: "reciprocal", exact: |x| 1.0 / x, bounds: [0.500_001, 0.500_001], fast: 1.0 },
];

/// Results of a function on all of `bits` are within `bound` wherever `judged` says so.
fn check(
    function: &Function,
    format: &Format,
    bits: &[u32],
    options: &Options,
    bound: f64,
    judged: fn(f64, f64) -> bool,
) {
    let inputs = [tensor(format.dtype, bits)];
    let got = launched(&unary(function.name, format.dtype), options, &inputs, format.dtype).to_f64();
    let mut worst = (0.0, 0.0, 0.0);
    for (x, got) in inputs[0].to_f64().into_iter().zip(got) {
        let exact = (function.exact)(x);
        let error = format.error(got, exact);
        if error > worst.0 && judged(x, exact) {
            worst = (error, x, got);
        }
    }
    let (error, x, got) = worst;
    let (name, dtype) = (function.name, format.dtype);
    if inputs_asked().is_some() {
        println!("{name} {dtype}: {error:.4} at {x:e}");
    }
    assert!(error <= bound, "{name} of {x:e} in {dtype} is {got:e}, {error} units off");
}

#[test]
fn functions_of_every_narrow_float_are_within_their_bounds() {
    let all: Vec<u32> = (0..1 << 16).collect();
    for format in &FORMATS[1..] {
        for function in &FUNCTIONS {
            check(function, format, &all, &options(all.len()), function.bounds[1], |_, _| true);
        }
    }
}

#[test]
fn functions_of_f32_are_within_their_bounds() {
    for bits in asked_singles(1 << 19, 1) {
        for function in &FUNCTIONS {
            check(function, &FORMATS[0], &bits, &options(bits.len()), function.bounds[0], |_, _| true);
        }
    }
}

#[test]
fn fast_functions_are_close_for_normal_numbers_and_flush_the_others() {
    let bits = singles(1 << 16, 2);
    let fast = options(bits.len()).fast_math();
    let judged = |x: f64, exact: f64| (x as f32).is_normal() && ((exact as f32).is_normal() || exact == 0.0);
    for function in &FUNCTIONS {
        check(function, &FORMATS[0], &bits, &fast, function.fast, judged);
        let [plain, short] = [options(64), options(64).fast_math()]
            .map(|options| compiled(&unary(function.name, F32), &options).report().instructions);
        assert!(short < plain || function.name == "tanh", "{}: {short} of {plain}", function.name);
    }
    for (name, x, result) in [
        ("exp2", -126.5, 0.0),
        ("log2", 1e-40, f32::NEG_INFINITY),
        ("sqrt", 1e-40, 0.0),
        ("reciprocal", 1e-40, f32::INFINITY),
    ] {
        let inputs = [tensor(F32, &[f32::to_bits(x); 64])];
        let got = launched(&unary(name, F32), &options(64).fast_math(), &inputs, F32);
        assert_eq!(got.as_slice::<f32>().map(|v| v[0]), Some(result), "{name}");
    }
}

/// The sequences of the code generator in plain f32, with instructions that are off by as much as they may
/// be: the bounds hold on hardware, too, whose last bits are not published.
mod sequences {
    use std::f32::consts::LOG2_E;

    use groundswell_testing::floats::{approximate, scaled};

    pub fn exp2(x: f32, off: i32) -> f32 {
        let whole = x as i32;
        scaled(approximate(f64::exp2, x - whole as f32, off), whole)
    }

    pub fn exp(x: f32, off: i32) -> f32 {
        let whole = (f64::from(LOG2_E * x) + 0.5).floor() as i32;
        let fraction = x.mul_add(1.925_963e-8, x.mul_add(LOG2_E, -(whole as f32)));
        scaled(approximate(f64::exp2, fraction, off), whole)
    }

    pub fn log2(x: f32, off: i32) -> f32 {
        let scale = if x < f32::MIN_POSITIVE { 32 } else { 0 };
        approximate(f64::log2, scaled(x, scale), off) - scale as f32
    }

    pub fn sqrt(x: f32, off: i32) -> f32 {
        let small = x < 2f32.powi(-96);
        let x = if small { scaled(x, 64) } else { x };
        let root = approximate(f64::sqrt, x, off);
        let [before, after] = [-1, 1].map(|step| f32::from_bits(root.to_bits().wrapping_add_signed(step)));
        let too_large = (-before).mul_add(root, x) <= 0.0;
        let too_small = (-after).mul_add(root, x) > 0.0;
        let root = if too_large { before } else { root };
        let root = if too_small { after } else { root };
        scaled(root, if small { -32 } else { 0 })
    }

    pub fn tanh(x: f32, off: i32) -> f32 {
        let power = approximate(f64::exp2, 2.0 * LOG2_E * x.abs(), off);
        let large = approximate(|x| 1.0 / x, power + 1.0, -off).mul_add(-2.0, 1.0).copysign(x);
        let square = x * x;
        let first = -6.096_714e-3 * square + 2.099_718e-2;
        let rest = [-5.385_090_8e-2, 1.333_277e-1, -3.333_332_8e-1];
        let sum = rest.iter().fold(first, |sum: f32, &c| sum.mul_add(square, c));
        let small = x.mul_add(square * sum, x);
        if x.abs() < 0.625 { small.copysign(x) } else { large }
    }
}

#[test]
fn bounds_hold_with_the_worst_instructions() {
    let bits = singles(1 << 16, 3);
    type Model = fn(f32, i32) -> f32;
    let models: [(&str, Model); 5] = [
        ("exp", sequences::exp),
        ("exp2", sequences::exp2),
        ("log2", sequences::log2),
        ("sqrt", sequences::sqrt),
        ("tanh", sequences::tanh),
    ];
    for (name, model) in models {
        let function = FUNCTIONS.iter().find(|f| f.name == name).expect("listed");
        for off in [-1, 0, 1] {
            for &b in &bits {
                let x = f32::from_bits(b);
                let got = model(x, off);
                let error = FORMATS[0].error(got.into(), (function.exact)(x.into()));
                assert!(
                    error <= function.bounds[0],
                    "{name} of {x:e} ({b:#x}), {off} off, is {got:e}: {error} units"
                );
            }
        }
        // The model is the sequence: with exact instructions it gives what the machine code gives.
        let inputs = [tensor(F32, &bits)];
        let machine = launched(&unary(name, F32), &options(bits.len()), &inputs, F32);
        for (&b, &got) in bits.iter().zip(machine.as_slice::<f32>().expect("f32")) {
            let expected = model(f32::from_bits(b), 0);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{name} of {b:#x}: {got:e}, not {expected:e}");
        }
    }
}

/// Whole numbers: name, and what it is in plain Rust.
type Rounding = (&'static str, fn(f32) -> f32);

const ROUNDINGS: [Rounding; 5] = [
    ("floor", f32::floor),
    ("ceil", f32::ceil),
    ("trunc", f32::trunc),
    ("round_even", f32::round_ties_even),
    ("round", f32::round),
];

/// Every narrow float, and f32 numbers with denormals, halves and what is beside halves among them: the bits
/// are those of plain Rust, the sign of zeros too; NaN gives NaN.
#[test]
fn whole_numbers_are_exact() {
    let narrow: Vec<u32> = (0..1 << 16).collect();
    let halves = (0..1u32 << 13).flat_map(|at| {
        let half = (at as f32 / 2.0).to_bits();
        [half, half.wrapping_add(1), half.wrapping_sub(1) & 0x7fff_ffff].map(|bits| bits | ((at % 2) << 31))
    });
    let mut singles = singles(1 << 16, 5);
    singles.extend(halves.chain(edges(&FORMATS[0])));
    for (name, exact) in ROUNDINGS {
        for format in &FORMATS {
            let (dtype, bits) = (format.dtype, if format.dtype == F32 { &singles } else { &narrow });
            let kernel = unary(name, dtype);
            let inputs = [tensor(dtype, bits)];
            let machine = launched(&kernel, &options(bits.len()), &inputs, dtype);
            let zeros = Tensor::zeros(&[bits.len()], dtype).expect("small");
            let tensors = [inputs[0].clone(), zeros];
            let host = Interpreter::run(&kernel, &|_| Some(bits.len() as i64), &tensors).expect("it runs");
            for ((x, got), host) in inputs[0].to_f64().into_iter().zip(machine.to_f64()).zip(host[1].to_f64())
            {
                let exact = f64::from(exact(x as f32));
                for got in [got, host] {
                    let same = got.to_bits() == exact.to_bits() || got.is_nan() && exact.is_nan();
                    assert!(same, "{name} of {x:e} in {dtype} is {got:e}, not {exact:e}");
                }
            }
        }
    }
}

/// Denormals, zeros of both signs and NaNs of both kinds with all of their bits.
#[test]
fn bits_seen_as_another_dtype_are_the_same() {
    let words: Vec<u32> = singles(1 << 14, 6).into_iter().chain(edges(&FORMATS[0])).collect();
    let halves: Vec<u32> = (0..1 << 16).collect();
    let pairs = [(F32, I32), (I32, F32), (F32, F32), (F16, Bf16), (Bf16, F16), (F16, F16), (I8, I8)];
    for (from, to) in pairs {
        let bits = if from.bits() == 32 { &words } else { &halves };
        let kernel = parse(&format!(
            "  a = memory [N] global {from}\n  c = memory [N] global {to}\n  %x = read a\n  %y = bitcast %x {to}\n  write %y, c\n"
        ));
        let input = tensor(from, bits);
        let machine = launched(&kernel, &options(bits.len()), std::slice::from_ref(&input), to);
        assert!(machine.to_bytes() == input.to_bytes(), "{from} as {to} on the machine");
        let zeros = Tensor::zeros(&[bits.len()], to).expect("small");
        let size = Some(bits.len() as i64);
        let host = Interpreter::run(&kernel, &|_| size, &[input.clone(), zeros]).expect("it runs");
        assert!(host[1].to_bytes() == input.to_bytes(), "{from} as {to} in the interpreter");
    }
    // The next number up: arithmetic on the bits, and a constant seen as another dtype.
    let kernel = parse(
        "  a = memory [N] global f32\n  c = memory [N] global f32\n  %x = read a\n  %i = bitcast %x i32\n  \
         %tiny = register [] f32 1e-45\n  %one = bitcast %tiny i32\n  %j = add %i, %one\n  %y = bitcast %j f32\n  write %y, c\n",
    );
    let machine = launched(&kernel, &options(words.len()), &[tensor(F32, &words)], F32);
    for (&x, y) in words.iter().zip(machine.as_slice::<f32>().expect("f32")) {
        assert_eq!(y.to_bits(), x.wrapping_add(1), "after {x:#x}");
    }
}

/// Every triple of some edges: the sum and the product are rounded once together in f32.
#[test]
fn fused_products_of_edges() {
    for format in &FORMATS {
        let dtype = format.dtype;
        let edges: Vec<u32> = edges(format).into_iter().step_by(3).collect();
        let mut triples: [Vec<u32>; 3] = Default::default();
        for (at, &x) in edges.iter().enumerate() {
            for &y in &edges {
                for &z in edges.iter().skip(at % 2).step_by(2) {
                    [x, y, z].into_iter().zip(&mut triples).for_each(|(bits, of)| of.push(bits));
                }
            }
        }
        let mut state = 11;
        for of in &mut triples {
            let others = inputs_asked().unwrap_or(20_000).min(1 << 21);
            of.extend((0..others).map(|_| random(&mut state) as u32 & (u32::MAX >> (32 - dtype.bits()))));
        }
        let inputs = triples.map(|bits| tensor(dtype, &bits));
        let kernel = parse(&format!(
            "  a = memory [N] global {dtype}\n  b = memory [N] global {dtype}\n  d = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  \
             %x = read a\n  %y = read b\n  %z = read d\n  %r = fma %x, %y, %z\n  write %r, c\n"
        ));
        let count = inputs[0].shape()[0];
        let machine = launched(&kernel, &options(count), &inputs, dtype);
        let mut tensors = inputs.to_vec();
        tensors.push(Tensor::zeros(&[count], dtype).expect("small"));
        let host = Interpreter::run(&kernel, &|_| Some(count as i64), &tensors).expect("it runs");
        let [x, y, z] = inputs.map(|t| t.to_f64());
        for (at, (machine, host)) in machine.to_f64().into_iter().zip(host[3].to_f64()).enumerate() {
            let exact = (x[at] as f32).mul_add(y[at] as f32, z[at] as f32);
            let exact = match dtype {
                F16 => half_fma(x[at], y[at], z[at]),
                Bf16 => bf16::from_f32(exact).to_f64(),
                _ => exact.into(),
            };
            for got in [machine, host] {
                let same = got.to_bits() == exact.to_bits() || got.is_nan() && exact.is_nan();
                assert!(same, "{:e} * {:e} + {:e} in {dtype} is {got:e}, not {exact:e}", x[at], y[at], z[at]);
            }
        }
    }
}

/// The fused multiply-add of f16, in integers: every f16 is a multiple of 2^-24 below 2^16. The sum is cut to
/// 53 bits, the last of which says whether anything was lost, and rounded once.
fn half_fma(x: f64, y: f64, z: f64) -> f64 {
    if !(x.is_finite() && y.is_finite() && z.is_finite()) {
        return x.mul_add(y, z);
    }
    let whole = |x: f64| (x * 2f64.powi(24)) as i128;
    let sum = whole(x) * whole(y) + (whole(z) << 24);
    if sum == 0 {
        return x.mul_add(y, z);
    }
    let magnitude = sum.unsigned_abs();
    let lost = (u128::BITS - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> lost;
    let sticky = u128::from(kept << lost != magnitude);
    let odd = (kept | sticky) as f64 * 2f64.powi(lost as i32 - 48);
    f16::from_f64(if sum < 0 { -odd } else { odd }).to_f64()
}

/// In f32 some sums are rounded to the middle between two f16.
#[test]
fn fma_of_f16_is_not_rounded_twice() {
    let mut state = 5;
    let mut differ = 0;
    for _ in 0..2_000_000 {
        let [x, y, z] = [(); 3].map(|()| f16::from_bits(random(&mut state) as u16).to_f64());
        let twice = f16::from_f32((x as f32).mul_add(y as f32, z as f32)).to_f64();
        differ += u32::from(twice.is_finite() && twice != half_fma(x, y, z));
    }
    assert!(differ > 10, "{differ}");
}

#[test]
fn arithmetic_of_all_pairs_of_edges() {
    for format in &FORMATS {
        let edges = edges(format);
        let pairs: Vec<(u32, u32)> = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
        arithmetic_is_rounded_once(format.dtype, &pairs);
    }
}

#[test]
fn arithmetic_of_other_pairs() {
    for (x, y) in asked_singles(1 << 15, 51).zip(asked_singles(1 << 15, 1051)) {
        for format in &FORMATS {
            let narrow = 32 - format.dtype.bits();
            let pairs: Vec<(u32, u32)> = x.iter().zip(&y).map(|(x, y)| (x >> narrow, y >> narrow)).collect();
            arithmetic_is_rounded_once(format.dtype, &pairs);
        }
    }
}

fn arithmetic_is_rounded_once(dtype: DType, pairs: &[(u32, u32)]) {
    type Scalar = fn(f32, f32) -> f32;
    type Exact<'a> = &'a dyn Fn(f32, f32) -> f32;
    let other = |x: f32, y: f32, pick: fn(f32, f32) -> bool| match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ => [y, x][usize::from(pick(x, y))],
    };
    let operations: [(&str, Exact); 6] = [
        ("div", &((|x, y| x / y) as Scalar)),
        ("min", &|x, y| other(x, y, |x, y| x < y || x == y && x.is_sign_negative())),
        ("max", &|x, y| other(x, y, |x, y| x > y || x == y && x.is_sign_positive())),
        ("mul", &((|x, y| x * y) as Scalar)),
        ("add", &((|x, y| x + y) as Scalar)),
        ("sub", &((|x, y| x - y) as Scalar)),
    ];
    let [x, y]: [Vec<u32>; 2] = [pairs.iter().map(|p| p.0).collect(), pairs.iter().map(|p| p.1).collect()];
    let inputs = [tensor(dtype, &x), tensor(dtype, &y)];
    for (name, exact) in operations {
        let kernel = parse(&format!(
            "  a = memory [N] global {dtype}\n  b = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  \
             %x = read a\n  %y = read b\n  %z = {name} %x, %y\n  write %z, c\n"
        ));
        let got = launched(&kernel, &options(pairs.len()), &inputs, dtype).to_f64();
        let [x, y] = [&inputs[0], &inputs[1]].map(|t| t.to_f64());
        for (at, got) in got.into_iter().enumerate() {
            let exact = exact(x[at] as f32, y[at] as f32);
            let exact = match dtype {
                F16 => f16::from_f32(exact).to_f64(),
                Bf16 => bf16::from_f32(exact).to_f64(),
                _ => exact.into(),
            };
            let same = got.to_bits() == exact.to_bits() || got.is_nan() && exact.is_nan();
            let (a, b) = pairs[at];
            assert!(same, "{name} of {a:#x} and {b:#x} in {dtype} is {got:e}, not {exact:e}");
        }
    }
}

#[test]
fn ieee_mode_is_off_where_a_number_has_to_win_against_any_nan() {
    let mode = |kernel: &Kernel| {
        let executable = compiled(kernel, &options(256));
        let object = ObjectFile::parse(executable.object()).expect("an object");
        object.kernels[0].descriptor.get(DescriptorField::IeeeMode)
    };
    let body = |op: &str, dtype: DType| {
        parse(&format!(
            "  a = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  %x = read a\n  %y = {op} %x, 1{}\n  write %y, c\n",
            if dtype.is_float() { ".0" } else { "" }
        ))
    };
    for dtype in [F32, F16, Bf16] {
        assert_eq!(
            [mode(&body("min", dtype)), mode(&body("max", dtype)), mode(&body("add", dtype))],
            [0, 0, 1]
        );
    }
    assert_eq!(mode(&body("max", I32)), 1, "integers have no NaN");
}

#[test]
fn constants_are_rounded_once() {
    let constant = |dtype: DType, value: &str| {
        let kernel = parse(&format!(
            "  c = memory [N] global {dtype}\n  %k = register [N] {dtype} {value}\n  write %k, c\n"
        ));
        let device = launched(&kernel, &options(256), &[], dtype);
        let zeros = [Tensor::zeros(&[256], dtype).expect("small")];
        let host = Interpreter::run(&kernel, &|_| Some(256), &zeros).expect("it runs");
        assert_eq!(device, host[0], "{dtype} {value}");
        device.to_f64()[0]
    };
    let operand = |dtype: DType, value: &str| {
        let kernel = parse(&format!(
            "  a = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  %x = read a\n  %y = add %x, {value}\n  write %y, c\n"
        ));
        launched(&kernel, &options(256), &[Tensor::zeros(&[256], dtype).expect("small")], dtype).to_f64()[0]
    };
    for of in [&constant as &dyn Fn(DType, &str) -> f64, &operand] {
        assert_eq!(of(F16, "65519.999999999"), 65504.0);
        assert_eq!(of(F16, "65520.0"), f64::INFINITY);
        assert_eq!(of(F16, "2049.0"), 2048.0);
        assert_eq!(of(F16, "2049.0000000000005"), 2050.0);
        assert_eq!(of(F16, "1.00048828125"), 1.0);
        assert_eq!(of(F16, "1.0004882812500002"), 1.0 + 2f64.powi(-10));
        assert_eq!(of(F16, "2.9802322387695312e-8"), 0.0);
        assert_eq!(of(F16, "2.980232238769532e-8"), 2f64.powi(-24));
        assert_eq!(of(Bf16, "1.00390625"), 1.0);
        assert_eq!(of(Bf16, "1.0039062500000002"), 1.0078125);
        assert_eq!(of(Bf16, "3.39617752923046e38"), f64::INFINITY);
        assert_eq!(of(Bf16, "3.3961775292304597e38"), bf16::MAX.to_f64());
        assert_eq!(of(Bf16, "1157425104234217473"), 2f64.powi(60) * (1.0 + 2f64.powi(-7)));
        assert_eq!(of(F32, "1.4e-45"), 2f64.powi(-149));
    }
}

#[test]
fn constants_that_a_dtype_lacks_are_refused_by_all() {
    let run = |kernel: &Kernel, dtype: DType| {
        let tensors = [(); 2].map(|()| Tensor::zeros(&[8], dtype).expect("small"));
        let compiled = kernel.compile(&options(8)).expect_err("it is refused");
        let interpreted = Interpreter::run(kernel, &|_| Some(8), &tensors).expect_err("it is refused");
        assert_eq!(compiled, interpreted);
        assert!(compiled.help.is_some() && compiled.location.is_some(), "{compiled}");
        compiled.message
    };
    for (dtype, value) in [(I8, 300), (I8, 128), (I8, -129)] {
        let text = parse(&format!(
            "  a = memory [N] global i8\n  c = memory [N] global i8\n  %x = read a\n  %y = add %x, {value}\n  write %y, c\n"
        ));
        assert_eq!(run(&text, dtype), format!("{value} is not a value of i8"));
        let [n] = symbols(["N"]);
        let traced = Kernel::trace("traced", |w| {
            w.distribute([workgroup(n, 256, 0)]);
            let (a, c) = (w.memory("a", [n], Global, I8), w.memory("c", [n], Global, I8));
            let x = w.read(a);
            w.write(x + value, c);
        });
        assert_eq!(run(&traced.expect("it traces"), dtype), format!("{value} is not a value of i8"));
        let declared = Kernel::trace("declared", |w| {
            w.register([n], dtype, f64::from(value));
        });
        assert_eq!(declared.expect_err("it is refused").message, format!("{value} is not a value of i8"));
        let text = format!("kernel k {{\n  %x = register [N] i8 {value}\n}}\n");
        let faults = Kernel::parse(&text, "k").expect_err("it is refused");
        assert_eq!(faults[0].message, format!("{value} is not a value of i8"));
        assert_eq!(faults[0].location.as_ref().map(|l| l.line), Some(2));
    }
    let wide = parse(
        "  a = memory [N] global i32\n  c = memory [N] global i32\n  %x = read a\n  %y = max %x, 2147483648\n  write %y, c\n",
    );
    assert_eq!(run(&wide, I32), "2147483648 is not a value of i32");
    assert!(Constant::Integer(2_147_483_647).bits(I32).is_ok());
}

#[test]
fn what_nothing_wrote_is_not_read() {
    let kernel = |body: &str| {
        parse(&format!(
            "  a = memory [N] global f32\n  c = memory [N] global f32\n  %lds = allocate [N] f32\n{body}  %y = read %lds\n  write %y, c\n"
        ))
    };
    let run = |kernel: &Kernel| {
        let a = Tensor::from_slice(&[256], &[2.5f32; 256]).expect("small");
        Interpreter::run(kernel, &|_| Some(256), &[a, Tensor::zeros(&[256], F32).expect("small")])
    };
    let fault = run(&kernel("")).expect_err("nothing was written");
    assert_eq!(fault.message, "an LDS buffer is read where it was not written");
    assert_eq!(fault.location.map(|l| l.line), Some(6));
    assert_eq!(fault.notes[0].1.as_ref().map(|l| l.line), Some(5));
    let written = run(&kernel("  %x = read a\n  write %x, %lds\n")).expect("all of it is written");
    assert_eq!(written[1].to_f64(), [2.5; 256]);
}
