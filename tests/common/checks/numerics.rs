//! The edges of number formats: element-wise kernels on denormals, infinities, NaNs of both kinds and numbers
//! about to overflow, with constants at ties of rounding, run on the simulator and compared with the
//! reference interpreter bit by bit. Functions that are not correctly rounded come last in a kernel and are
//! compared in units in the last place.

use std::fmt::Write;

use groundswell::author::DType;
use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::KernelResults;
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::options::Options;
use groundswell::prelude::{bf16, f16};
use groundswell::simulator::CheckOptions;
use groundswell::target::Target;

use super::{Choices, OF_NUMBERS, stages};

/// Elements of each tensor: some waves, and a part of one.
const SIZE: usize = 200;

const DTYPES: &[DType] = &[DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I8];

/// The check: the machine code gives what the interpreter gives, or both refuse the kernel for the same
/// reason.
pub fn numerics(data: &[u8]) -> Result<(), String> {
    let mut choices = Choices::new(data);
    let case = Case::new(&mut choices);
    run(&case).map_err(|fault| format!("{fault}\n{}", case.text))
}

struct Case {
    text: String,
    inputs: DType,
    output: DType,
    /// Units in the last place that a result may be off.
    bound: f64,
    /// An LDS buffer is read that nothing was written to.
    undefined: bool,
    seed: u64,
}

/// The functions, and how far results may be from the interpreter's, which are correctly rounded, in f32; in
/// the narrow formats that may turn the last rounding at most.
const FUNCTIONS: &[(&str, f64)] = &[
    ("exp", 2.5),
    ("exp2", 2.0),
    ("log2", 2.0),
    ("tanh", 3.5),
    ("sqrt", 0.0),
    ("reciprocal", 0.0),
    ("rsqrt", 1.5),
    ("cbrt", 1.1),
    ("log", 3.5),
    ("log10", 3.5),
    ("log1p", 1.1),
    ("expm1", 1.1),
    ("sin", 1.1),
    ("cos", 1.1),
    ("sinh", 1.1),
    ("cosh", 1.1),
    ("erf", 2.5),
    ("sigmoid", 1.1),
    ("silu", 1.1),
    ("gelu", 1.1),
    ("gelu_tanh", 1.1),
];

/// Functions that are exact; integers have the first two.
const EXACT: &[&str] = &["neg", "abs", "floor", "ceil", "trunc", "round_even", "round"];

impl Case {
    fn new(choices: &mut Choices<'_>) -> Case {
        let inputs = choices.one(DTYPES);
        let mut dtype = inputs;
        let mut body = String::new();
        let mut last = "a".to_owned();
        for step in 0..1 + choices.below(3) {
            let name = format!("v{step}");
            let same = dtype == inputs;
            // Writing to a string cannot fail.
            let _ = match choices.below(6) {
                0 => {
                    let op = choices.one(if dtype.is_float() { EXACT } else { &EXACT[..2] });
                    writeln!(body, "  %{name} = {op} %{last}")
                }
                1 => {
                    dtype = choices.one(DTYPES);
                    writeln!(body, "  %{name} = cast %{last} {dtype}")
                }
                2 => {
                    let predicate = choices.one(&["eq", "ne", "lt", "le", "gt", "ge"]);
                    let number = constant(choices, dtype);
                    let _ = writeln!(body, "  %c{step} = compare {predicate} %{last}, {number}");
                    let _ = writeln!(body, "  %k{step} = constant {}", constant(choices, dtype));
                    writeln!(body, "  %{name} = select %c{step}, %{last}, %k{step}")
                }
                kind => {
                    let op = choices.one(if dtype.is_float() { &OF_NUMBERS[..6] } else { OF_NUMBERS });
                    let other = if kind == 3 && same { "%b".to_owned() } else { constant(choices, dtype) };
                    writeln!(body, "  %{name} = {op} %{last}, {other}")
                }
            };
            last = name;
        }
        let mut bound = 0.0;
        if dtype.is_float() && choices.sometimes(2) {
            let (function, most) = choices.one(FUNCTIONS);
            bound = match dtype {
                DType::F32 => most,
                _ if most > 0.0 => 1.0,
                _ => 0.0,
            };
            let _ = writeln!(body, "  %f = {function} %{last}");
            last = "f".to_owned();
        }
        let undefined = match choices.below(16) {
            13.. => {
                let written = !choices.sometimes(2);
                let _ = writeln!(body, "  %lds = allocate [N] {dtype}");
                if written {
                    let _ = writeln!(body, "  write %{last}, %lds");
                }
                let _ = writeln!(body, "  %again = read %lds");
                last = "again".to_owned();
                !written
            }
            _ => false,
        };
        let text = format!(
            "kernel numerics {{\n  workgroup N, 128, 0\n  m = memory [N] global {inputs}\n  n = memory [N] global {inputs}\n  \
             o = memory [N] global {dtype}\n  %a = read m\n  %b = read n\n{body}  write %{last}, o\n}}\n"
        );
        let seed = choices.below(256) as u64;
        Case { text, inputs, output: dtype, bound, undefined, seed }
    }
}

/// Width of the fields of a float: exponent, mantissa.
fn fields(dtype: DType) -> (u32, u32) {
    match dtype {
        DType::F32 => (8, 23),
        DType::F16 => (5, 10),
        _ => (8, 7),
    }
}

/// The value of some bits of a float.
fn value(dtype: DType, bits: u32) -> f64 {
    match dtype {
        DType::F32 => f32::from_bits(bits).into(),
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        _ => bf16::from_bits(bits as u16).to_f64(),
    }
}

/// A constant: for floats at, beside and between the numbers of the format, the least and the largest among
/// them; for integers now and then one that the dtype does not hold.
fn constant(choices: &mut Choices<'_>, dtype: DType) -> String {
    if !dtype.is_float() {
        let most = if dtype == DType::I8 { 127i64 } else { i32::MAX.into() };
        let number = match choices.below(12) {
            0 => 3,
            1 => most,
            2 => -most - 1,
            3 => most + 1,
            4 => -most - 2,
            other => other as i64 - 8,
        };
        return number.to_string();
    }
    let (exponent, mantissa) = fields(dtype);
    let infinity = ((1 << exponent) - 1) << mantissa;
    let field = match choices.below(5) {
        0 => (infinity >> mantissa) / 2,
        1 => 0,
        2 => (infinity >> mantissa) - 1,
        _ => choices.below(infinity as usize >> mantissa) as u32,
    };
    let fraction = match choices.below(3) {
        0 => 0,
        1 => (1 << mantissa) - 1,
        _ => (choices.below(256) << 8 | choices.below(256)) as u32 & ((1 << mantissa) - 1),
    };
    let bits = field << mantissa | fraction;
    let here = value(dtype, bits);
    // The number after the largest is what it would be without an end of the exponent.
    let next =
        if bits + 1 == infinity { 2.0 * here - value(dtype, bits - 1) } else { value(dtype, bits + 1) };
    let middle = (here + next) / 2.0;
    let beside = |steps: i64| f64::from_bits(middle.to_bits().saturating_add_signed(steps));
    let number = match choices.below(6) {
        0 => here,
        1 => middle,
        2 => beside(1),
        3 => beside(-1),
        4 => beside(1 << 30),
        _ => beside(-(1 << 30)),
    };
    format!("{}{number:?}", if choices.sometimes(2) { "-" } else { "" })
}

/// Elements of all kinds, by a seed.
fn tensor(dtype: DType, seed: u64) -> Result<Tensor, String> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let width = dtype.bits();
    let mask = u32::MAX >> (32 - width);
    let mut bytes = Vec::new();
    for _ in 0..SIZE {
        let random = next() & mask;
        let bits = if dtype.is_float() {
            let (exponent, mantissa) = fields(dtype);
            let (infinity, fraction) = (((1 << exponent) - 1) << mantissa, random & ((1 << mantissa) - 1));
            let sign = random & 1 << (width - 1);
            let least = 1 << mantissa;
            match next() % 12 {
                0 => sign,
                1 => sign | infinity,
                2 => sign | infinity | fraction | 1,
                // Signalling.
                3 => sign | infinity | fraction & !(1 << (mantissa - 1)) | 1,
                4 | 5 => sign | fraction,
                6 => sign | least | fraction,
                7 => sign | (infinity - least) | fraction,
                // From 2^-8 to 2^8, where functions have something to do.
                8 | 9 => sign | ((infinity >> mantissa) / 2 - 8 + next() % 16) << mantissa | fraction,
                _ => random,
            }
        } else {
            match next() % 4 {
                0 => 1 << (width - 1),
                1 => (1 << (width - 1)) - 1,
                2 => (random % 9).wrapping_sub(4) & mask,
                _ => random,
            }
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..width as usize / 8]);
    }
    Tensor::from_bytes(&[SIZE], dtype, &bytes).map_err(|e| e.to_string())
}

fn run(case: &Case) -> Result<(), String> {
    let size = |_: Symbol| Some(SIZE as i64);
    let options = Options::new(Target::GFX942).set(Symbol::new("N"), SIZE as i64);
    let kernel = Kernel::parse(&case.text, "fuzz").map_err(|faults| format!("{faults:?}"))?;
    let output = Tensor::zeros(&[SIZE], case.output).map_err(|e| e.to_string())?;
    let tensors = [tensor(case.inputs, case.seed)?, tensor(case.inputs, case.seed + 1000)?, output];
    let expected = Interpreter::run(&kernel, &size, &tensors);
    let executable = match (compile_uncached(&kernel, &options, Verify::AfterEachPass), &expected) {
        (Ok(executable), Ok(_)) => executable,
        (Err(ours), Err(theirs)) if ours.kind == Kind::Invalid && ours.message == theirs.message => {
            return Ok(());
        }
        (Err(fault), _) => return Err(format!("compile: {fault}\ninterpreter: {:?}", expected.err())),
        // What a buffer holds shows only when the kernel runs.
        (Ok(executable), Err(_)) if case.undefined => executable,
        (Ok(_), Err(fault)) => return Err(format!("compiles, but the interpreter says: {fault}")),
    };
    stages::compare(&kernel, &options, KernelResults::on(&kernel, &options, &size, tensors.to_vec()))?;
    let device = Device::simulator(Target::GFX942);
    let buffers = tensors.iter().map(|tensor| device.upload_tensor(tensor)).collect::<Result<Vec<_>, _>>();
    let buffers = buffers.map_err(|e| e.to_string())?;
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    let expected = match expected {
        Ok(_) if case.undefined => return Err("the interpreter reads what nothing wrote".to_owned()),
        Ok(expected) => expected,
        Err(_) => {
            let report =
                launch.check(&CheckOptions { seed: case.seed }).map_err(|e| format!("check: {e}"))?;
            let clean = report.is_clean().then(|| "check mode lets what nothing wrote be read".to_owned());
            return clean.map_or(Ok(()), Err);
        }
    };
    launch.run().map_err(|e| format!("launch: {e}"))?;
    let bytes = buffers[2].read_bytes().map_err(|e| e.to_string())?;
    let got = Tensor::from_bytes(&[SIZE], case.output, &bytes).map_err(|e| e.to_string())?;
    let (got, want) = (got.to_f64(), expected[2].to_f64());
    let off = |g: f64, w: f64| {
        (g.is_nan() != w.is_nan() || !g.is_nan() && g.to_bits() != w.to_bits())
            && (case.bound == 0.0 || distance(case.output, g, w) > case.bound)
    };
    match got.iter().zip(&want).position(|(&g, &w)| off(g, w)) {
        None => Ok(()),
        Some(at) => {
            let [a, b] = [0, 1].map(|input: usize| tensors[input].to_f64()[at]);
            Err(format!("of {a:e} and {b:e} it is {:e}, should be {:e}", got[at], want[at]))
        }
    }
}

/// How many numbers of a format two of them are apart; without end if one is a NaN.
fn distance(dtype: DType, a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::INFINITY;
    }
    // The order of the bits is that of the numbers, once those of negative ones are turned round.
    let place = |x: f64| {
        let magnitude = match dtype {
            DType::F32 => i64::from((x as f32).abs().to_bits()),
            DType::F16 => i64::from(f16::from_f64(x.abs()).to_bits()),
            _ => i64::from(bf16::from_f64(x.abs()).to_bits()),
        };
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    (place(a) - place(b)).abs() as f64
}
