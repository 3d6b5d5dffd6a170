//! Float formats, numbers at their edges, and kernels of one function on the simulator.

use groundswell::prelude::*;

/// A float format: bits of the mantissa, exponents of the least and the largest normal number.
pub struct Format {
    pub dtype: DType,
    pub mantissa: i32,
    pub least: i32,
    pub largest: i32,
}

pub const FORMATS: [Format; 3] = [
    Format { dtype: F32, mantissa: 23, least: -126, largest: 127 },
    Format { dtype: F16, mantissa: 10, least: -14, largest: 15 },
    Format { dtype: Bf16, mantissa: 7, least: -126, largest: 127 },
];

impl Format {
    /// Distance of `got` from `exact` in units in the last place of `exact`; infinity counts as the number
    /// after the largest.
    pub fn error(&self, got: f64, exact: f64) -> f64 {
        if got.is_nan() || exact.is_nan() {
            return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if got == 0.0 && got.is_sign_negative() != exact.is_sign_negative() {
            return f64::INFINITY;
        }
        let end = 2f64.powi(self.largest + 1);
        let (got, exact) = (got.clamp(-end, end), exact.clamp(-end, end));
        let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).clamp(self.least, self.largest);
        (got - exact).abs() / 2f64.powi(exponent - self.mantissa)
    }
}

pub fn options(elements: usize) -> Options {
    Options::new(Target::GFX942).set(Symbol::new("N"), elements as i64)
}

pub fn parse(body: &str) -> Kernel {
    let text = format!("kernel numerics {{\n  workgroup N, 256, 0\n{body}}}\n");
    Kernel::parse(&text, "numerics").unwrap_or_else(|faults| panic!("{text}{faults:?}"))
}

pub fn compiled(kernel: &Kernel, options: &Options) -> Executable {
    kernel.compile(options).unwrap_or_else(|e| panic!("{kernel}{e}"))
}

/// Elements of `dtype` in the little end of each word.
pub fn tensor(dtype: DType, bits: &[u32]) -> Tensor {
    let bytes: Vec<u8> =
        bits.iter().flat_map(|b| b.to_le_bytes().into_iter().take(dtype.bytes() as usize)).collect();
    Tensor::from_bytes(&[bits.len()], dtype, &bytes).expect("whole")
}

/// The last memory after a launch over the inputs, which the memories before have.
pub fn launched(kernel: &Kernel, options: &Options, inputs: &[Tensor], output: DType) -> Tensor {
    let executable = compiled(kernel, options);
    let device = Device::simulator(Target::GFX942);
    let elements = options.value(Symbol::new("N")).expect("bound") as usize;
    let zeros = Tensor::zeros(&[elements], output).expect("fits");
    let buffers: Vec<Buffer> =
        inputs.iter().chain([&zeros]).map(|t| device.upload_tensor(t).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    launch.run().unwrap_or_else(|e| panic!("{kernel}{e}"));
    let bytes = buffers[inputs.len()].read_bytes().expect("readable");
    Tensor::from_bytes(&[elements], output, &bytes).expect("whole")
}

/// `%y` that a body makes of `%a0`, `%a1` and so on, on the machine; the interpreter gives the same bits, or
/// a NaN where the machine has one.
pub fn agreed(body: &str, inputs: &[Tensor], output: DType) -> Tensor {
    let elements = inputs[0].shape()[0];
    let memories: String = (0..inputs.len())
        .map(|at| format!("  m{at} = memory [N] global {}\n  %a{at} = read m{at}\n", inputs[at].dtype()))
        .collect();
    let kernel = parse(&format!("{memories}  c = memory [N] global {output}\n{body}  write %y, c\n"));
    let machine = launched(&kernel, &options(elements), inputs, output);
    let tensors = [inputs, &[Tensor::zeros(&[elements], output).expect("small")]].concat();
    let host = Interpreter::run(&kernel, &|_| Some(elements as i64), &tensors).expect("it runs");
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let equal = match output.is_float() {
        true => machine.to_f64().iter().zip(&host[inputs.len()].to_f64()).all(same),
        false => host[inputs.len()] == machine,
    };
    assert!(equal, "{kernel}");
    machine
}

pub fn unary(name: &str, dtype: DType) -> Kernel {
    parse(&format!(
        "  a = memory [N] global {dtype}\n  c = memory [N] global {dtype}\n  %x = read a\n  %y = {name} %x\n  write %y, c\n"
    ))
}

/// SplitMix64.
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// f32 numbers where functions have their edges: all of the bits at random; where powers are neither zero nor
/// infinite; denormals; beside powers of two; beside the ends of the ranges in which `tanh`, `exp2` and roots
/// change their way.
pub fn singles(count: usize, seed: u64) -> Vec<u32> {
    let mut state = seed;
    let mut one = |at: usize| {
        let bits = random(&mut state);
        let low = bits as u32;
        let uniform = (bits >> 40) as f32 / (1u64 << 24) as f32;
        let beside = |value: f32| value.to_bits().wrapping_add_signed((low & 0xff) as i32 - 128);
        match at % 8 {
            0 | 1 => low,
            2 => (uniform * 310.0 - 160.0).to_bits(),
            3 => (uniform * 24.0 - 12.0).to_bits(),
            4 => low & 0x807f_ffff,
            5 => low & 0xff80_0000 | (bits >> 32) as u32 & 7,
            6 => beside(1.0) ^ low & 1 << 31,
            _ => beside([0.625, -126.0, 2f32.powi(-96), f32::MIN_POSITIVE, 127.99, 88.72][at / 8 % 6]),
        }
    };
    (0..count).map(&mut one).collect()
}

/// How many f32 inputs `GROUNDSWELL_FUNCTION_INPUTS` asks tests of functions for. The bounds of
/// docs/numerics.md were measured with sixteen million.
pub fn inputs_asked() -> Option<usize> {
    std::env::var("GROUNDSWELL_FUNCTION_INPUTS").ok().and_then(|text| text.parse().ok())
}

/// As many [`singles`] as are asked for, or `usual`, in parts of a million that are judged one after the
/// other.
pub fn asked_singles(usual: usize, seed: u64) -> impl Iterator<Item = Vec<u32>> {
    const PART: usize = 1 << 20;
    let count = inputs_asked().unwrap_or(usual);
    (0..count.div_ceil(PART)).map(move |part| singles(PART.min(count - part * PART), seed + part as u64))
}

/// Zeros, denormals, the ends of the normal range, infinities and NaNs of both kinds, and numbers between, of
/// both signs.
pub fn edges(format: &Format) -> Vec<u32> {
    let mantissa = format.mantissa as u32;
    let infinity = ((format.largest - format.least + 2) as u32) << mantissa;
    let one = (-(format.least - 1)) as u32;
    let quiet = 1 << (mantissa - 1);
    let mut bits =
        vec![0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, infinity - 1, infinity];
    bits.extend([infinity | 1, infinity | quiet, infinity | (quiet - 1), infinity | quiet | 1]);
    for exponent in [1, 2, mantissa, one - 1, one, one + 1, 2 * one - 2, 2 * one] {
        bits.extend([0, 1, quiet, quiet + 1, (1 << mantissa) - 1].map(|f| exponent << mantissa | f));
    }
    let sign = 1 << (format.dtype.bits() - 1);
    bits.iter().flat_map(|&b| [b, b | sign]).collect()
}

/// An approximating instruction: denormals are zeros, and the result is the neighbour `off` steps away
/// wherever that is less than one unit from the exact one.
pub fn approximate(exact: fn(f64) -> f64, x: f32, off: i32) -> f32 {
    let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
    let exact = exact(f64::from(flush(x)));
    let result = flush(exact as f32);
    let moved = f32::from_bits(result.to_bits().wrapping_add_signed(off));
    let allowed = result.is_normal() && moved.is_normal() && FORMATS[0].error(moved.into(), exact) <= 1.0;
    if allowed { moved } else { result }
}

pub fn scaled(x: f32, power: i32) -> f32 {
    let power = power.clamp(-1000, 1000);
    (f64::from(x) * 2f64.powi(power)) as f32
}
