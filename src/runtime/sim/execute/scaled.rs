//! Conversions of gfx950 between small floats and wider ones with a common scale (CDNA4 ISA guide,
//! V_CVT_SCALEF32_*).
//!
//! The scale is the exponent field of an f32: wide values are divided by that power of two before they are
//! narrowed, narrow ones multiplied by it after they were widened; 255 means NaN. All forms are one loop over
//! elements that lie at bit positions of the source's and the result's registers; op_sel names positions
//! inside one register.

use crate::codegen::isa::{Arch, Element, Format as Encoding, Meaning};

use super::super::error::Stopped;
use super::super::exact::{Overflow, Rounding};
use super::super::formats::FloatFormat;
use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::lanes::{FP16_OVERFLOW, unsupported};
use super::special::next_random;

/// Where the bits that decide about rounding come from.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Seed {
    /// Rounding is to nearest even.
    None,
    /// The second source; it is the state of a generator that steps with every element.
    Source1,
}

/// What a form converts.
struct ConversionShape {
    /// Elements of a lane.
    count: usize,
    /// They come from the first two sources in turn.
    interleaved: bool,
    /// Position of the first one in the source.
    from_bit: usize,
    /// Position of the first one in the result.
    to_bit: usize,
}

impl ConversionShape {
    fn of(s: &Step, to: Element, from: Element, seed: Seed) -> ConversionShape {
        use Element::*;
        let op_sel = s.modifiers.get_op_sel() as usize;
        let interleaved = seed == Seed::None && s.operands[3] != super::super::program::OperandPlace::None;
        let pair = |element| matches!(element, F32x2 | F16x2 | Bf16x2);
        let count = match (to, from) {
            _ if s.format != Encoding::Vop3Sel => 32,
            (Fp4, _) => 2,
            _ if pair(to) || pair(from) || interleaved => 2,
            _ => 1,
        };
        let (source_byte, result_byte) = (op_sel & 3, op_sel >> 2 & 3);
        let from_bit = match (from, count) {
            (Fp8 | Bf8, 2) => 16 * (op_sel & 1),
            (Fp8 | Bf8 | Fp4, _) => 8 * source_byte,
            (F16 | Bf16, 1) => 16 * (op_sel & 1),
            _ => 0,
        };
        let to_bit = match (to, count) {
            (Fp8 | Bf8, 2) => 16 * (result_byte >> 1),
            (Fp8 | Bf8 | Fp4, _) => 8 * result_byte,
            (F16, 1) => 16 * (result_byte >> 1),
            _ => 0,
        };
        ConversionShape { count, interleaved, from_bit, to_bit }
    }
}

/// Bits of the result register that a conversion of this meaning leaves as they are.
pub(in super::super) fn kept_bits(s: &Step, meaning: Meaning, arch: Arch) -> u32 {
    let (to, from, seed) = match meaning {
        Meaning::ConvertScaled(to, from) => (to, from, Seed::None),
        Meaning::ConvertScaledStochastic(to, from) => (to, from, Seed::Source1),
        _ => return 0,
    };
    let shape = ConversionShape::of(s, to, from, seed);
    let written = FloatFormat::of(to, arch).map_or(32, |format| shape.count as u32 * format.bits());
    if written < 32 { !(((1u32 << written) - 1) << shape.to_bit) } else { 0 }
}

/// Bits of a lane from `position` on, in consecutive registers.
fn take(rows: &[VectorRow], lane: usize, position: usize, bits: u32) -> u64 {
    let word = |index: usize| rows.get(index).map_or(0, |row| u64::from(row[lane]));
    let (index, shift) = (position / 32, position % 32);
    (word(index) | word(index + 1) << 32) >> shift & ((1 << bits) - 1)
}

/// Puts bits there, where zeros are.
fn put(rows: &mut [VectorRow], lane: usize, position: usize, value: u64) {
    let (index, spread) = (position / 32, value << (position % 32));
    for (row, part) in rows[index..].iter_mut().zip([spread as u32, (spread >> 32) as u32]) {
        row[lane] |= part;
    }
}

/// Executes one conversion.
pub(super) fn convert(
    w: &mut Wave,
    s: &Step,
    arch: Arch,
    (to, from): (Element, Element),
    seed: Seed,
) -> Result<(), Stopped> {
    let (Some(target), Some(origin)) = (FloatFormat::of(to, arch), FloatFormat::of(from, arch)) else {
        return Err(unsupported());
    };
    let shape = ConversionShape::of(s, to, from, seed);
    let (from_bits, to_bits) = (origin.bits(), target.bits());
    let narrows = to_bits < from_bits;
    let sources = if shape.interleaved { 2 } else { 1 };
    let registers = |bits: usize| bits.div_ceil(32);
    let source_rows = registers(shape.from_bit + shape.count / sources * from_bits as usize);
    let source: Vec<Vec<VectorRow>> = (1..=sources)
        .map(|index| (0..source_rows).map(|r| w.lanes(s.operands[index].offset(r))).collect())
        .collect();
    let random = w.lanes(s.operands[2]);
    let scale = w.lanes(s.operands[if shape.interleaved || seed == Seed::Source1 { 3 } else { 2 }]);
    let overflow = if w.mode & FP16_OVERFLOW != 0 { Overflow::Saturates } else { Overflow::Special };
    let mut result = vec![[0; LANES]; registers(shape.to_bit + shape.count * to_bits as usize)];
    for l in 0..LANES {
        let exponent = (scale[l] >> 23 & 0xff) as i32;
        let power = if narrows { 127 - exponent } else { exponent - 127 };
        let mut state = random[l];
        for element in 0..shape.count {
            let (index, within) = (element % sources, element / sources);
            let bits = take(&source[index], l, shape.from_bit + within * from_bits as usize, from_bits);
            let sign = |mask: u32| mask >> index & 1 != 0;
            let value = origin.decode(bits);
            let value = if sign(s.modifiers.get_abs()) { value.abs() } else { value };
            let value = if sign(s.modifiers.get_neg()) { -value } else { value };
            let value = if exponent == 255 { f64::NAN } else { value };
            let rounding = match seed {
                Seed::None => Rounding::NearestEven,
                Seed::Source1 => Rounding::Stochastic(state),
            };
            let bits = target.encode(value, power, rounding, overflow);
            put(&mut result, l, shape.to_bit + element * to_bits as usize, bits);
            state = next_random(state);
        }
    }
    let written = shape.count as u32 * to_bits;
    if written < 32 {
        let mask = ((1u32 << written) - 1) << shape.to_bit;
        let old = w.lanes(s.operands[0]);
        result[0] = std::array::from_fn(|l| old[l] & !mask | result[0][l]);
    }
    for (r, row) in result.iter().enumerate() {
        w.set_lanes(s.operands[0].offset(r), row);
    }
    Ok(())
}
