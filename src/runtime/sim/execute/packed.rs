//! VOP3P: two operations per lane, and mixed-width multiply-add.

use crate::codegen::isa::{Calc, Element, Half};

use super::super::error::Stopped;
use super::super::numerics::{
    Nans, flush, from_f16, greater, lesser, maximum_or_nan, minimum_or_nan, to_f16,
};
use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::lanes::{F16, FP16_OVERFLOW, clamp, finish_f16, flush_f16, unsupported};
use super::rounded::{ROUND_16, ROUND_32, Rounder};
use super::valu::{fma_f16, nans};

/// One half of packed source number `source` (operand `index`), as 16 bits with the sign modified.
pub(super) fn half(w: &Wave, s: &Step, index: usize, source: u32, half: Half) -> VectorRow {
    let m = s.modifiers;
    let (high, negated) = match half {
        Half::Low => (m.get_op_sel() >> source & 1 != 0, m.get_neg_lo() >> source & 1 != 0),
        Half::High => (m.get_op_sel_hi_flip() >> source & 1 == 0, m.get_neg_hi() >> source & 1 != 0),
    };
    let shift = if high { 16 } else { 0 };
    let flip = if negated { 0x8000 } else { 0 };
    w.lanes(s.operands[index]).map(|v| v >> shift & 0xffff ^ flip)
}

/// The same as it is in the register, without the sign.
pub(super) fn selected(w: &Wave, s: &Step, index: usize, source: u32, half: Half) -> VectorRow {
    let m = s.modifiers;
    let high = match half {
        Half::Low => m.get_op_sel() >> source & 1 != 0,
        Half::High => m.get_op_sel_hi_flip() >> source & 1 == 0,
    };
    let shift = if high { 16 } else { 0 };
    w.lanes(s.operands[index]).map(|v| v >> shift & 0xffff)
}

/// Executes a packed operation.
#[inline(always)]
pub(super) fn packed(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    if element == Element::F32 {
        return packed_f32(w, s, calc);
    }
    // A VOP2 form (v_pk_fmac_f16) accumulates into the result and has no modifiers.
    let third = if s.accumulates { 0 } else { 3 };
    let mut result = [0; LANES];
    for (side, shift) in [(Half::Low, 0), (Half::High, 16)] {
        let (a, b, c) = (half(w, s, 1, 0, side), half(w, s, 2, 1, side), half(w, s, third, 2, side));
        let values = if element == Element::F16 {
            float_half(w, s, calc, [&a, &b, &c])?
        } else {
            integer_half(s, calc, element, &a, &b, &c)?
        };
        for l in 0..LANES {
            result[l] |= (values[l] & 0xffff) << shift;
        }
    }
    w.set_lanes(s.operands[0], &result);
    Ok(())
}

fn float_half(w: &Wave, s: &Step, calc: Calc, sources: [&VectorRow; 3]) -> Result<VectorRow, Stopped> {
    let flushes = w.flushes_wide_sources();
    let value = |bits: u32| from_f16(if flushes { flush_f16(bits) } else { bits });
    let [a, b, c] = sources.map(|row| row.map(value));
    if w.mode & ROUND_16 != 0
        && let Some(f) = Rounder::new(w, Element::F16).arithmetic(calc)
    {
        let values = std::array::from_fn(|l| F16(f(a[l].into(), b[l].into(), c[l].into()) as f32));
        return Ok(finish_f16(w, s, &values));
    }
    let f: fn(f32, f32, f32) -> f32 = match (calc, nans(w)) {
        (Calc::Add, _) => |a, b, _| a + b,
        (Calc::Mul, _) => |a, b, _| a * b,
        (Calc::Fma, _) => fma_f16,
        (Calc::Min, Nans::Lose) => |a, b, _| lesser(Nans::Lose, a, b),
        (Calc::Min, Nans::Signal) => |a, b, _| lesser(Nans::Signal, a, b),
        (Calc::Max, Nans::Lose) => |a, b, _| greater(Nans::Lose, a, b),
        (Calc::Max, Nans::Signal) => |a, b, _| greater(Nans::Signal, a, b),
        (Calc::Minimum3, _) => |a, b, c| minimum_or_nan(minimum_or_nan(a, b), c),
        (Calc::Maximum3, _) => |a, b, c| maximum_or_nan(maximum_or_nan(a, b), c),
        _ => return Err(unsupported()),
    };
    let plain = !s.modifiers.has_clamp() && w.mode & (0x80 | FP16_OVERFLOW) == 0x80;
    let values: [F16; LANES] = std::array::from_fn(|l| F16(f(a[l], b[l], c[l])));
    Ok(if plain { values.map(|v| to_f16(v.0)) } else { finish_f16(w, s, &values) })
}

fn integer_half(
    s: &Step,
    calc: Calc,
    element: Element,
    a: &VectorRow,
    b: &VectorRow,
    c: &VectorRow,
) -> Result<VectorRow, Stopped> {
    let signed = element == Element::I16;
    if s.modifiers.has_clamp()
        && let Some(f) = saturating(calc)
    {
        let wide = |v: u32| if signed { i64::from(v as i16) } else { i64::from(v & 0xffff) };
        let (least, largest) = if signed { (-0x8000, 0x7fff) } else { (0, 0xffff) };
        return Ok(std::array::from_fn(|l| {
            f(wide(a[l]), wide(b[l]), wide(c[l])).clamp(least, largest) as u32
        }));
    }
    let f: fn(u32, u32, u32) -> u32 = match calc {
        Calc::Add => |a, b, _| a.wrapping_add(b),
        Calc::Sub => |a, b, _| a.wrapping_sub(b),
        Calc::Mul => |a, b, _| a.wrapping_mul(b),
        Calc::MulAdd => |a, b, c| a.wrapping_mul(b).wrapping_add(c),
        Calc::Min if signed => |a, b, _| (a as i16).min(b as i16) as u32,
        Calc::Max if signed => |a, b, _| (a as i16).max(b as i16) as u32,
        Calc::Min => |a, b, _| a.min(b),
        Calc::Max => |a, b, _| a.max(b),
        Calc::ShiftLeftRev => |a, b, _| b << (a & 15),
        Calc::ShiftRightRev if signed => |a, b, _| (b as i16 >> (a & 15)) as u32,
        Calc::ShiftRightRev => |a, b, _| b >> (a & 15),
        _ => return Err(unsupported()),
    };
    Ok(std::array::from_fn(|l| f(a[l], b[l], c[l])))
}

/// The operations that saturate with clamp.
fn saturating(calc: Calc) -> Option<fn(i64, i64, i64) -> i64> {
    Some(match calc {
        Calc::Add => |a, b, _| a + b,
        Calc::Sub => |a, b, _| a - b,
        Calc::Mul => |a, b, _| a * b,
        Calc::MulAdd => |a, b, c| a * b + c,
        _ => return None,
    })
}

/// One register of a packed f32 source: op_sel chooses which one the low result takes, op_sel_hi which one
/// the high result takes. A constant is the same for both.
#[inline(always)]
fn word(w: &Wave, s: &Step, index: usize, source: u32, side: Half) -> VectorRow {
    let high = match side {
        Half::Low => s.modifiers.get_op_sel() >> source & 1 != 0,
        Half::High => s.modifiers.get_op_sel_hi_flip() >> source & 1 == 0,
    };
    w.lanes(s.operands[index].offset(high.into()))
}

#[inline(always)]
fn packed_f32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    if w.mode & ROUND_32 != 0
        && let Some(f) = Rounder::new(w, Element::F32).arithmetic(calc)
    {
        both(w, s, |a, b, c| f(a.into(), b.into(), c.into()) as f32);
        return Ok(());
    }
    match calc {
        Calc::Add => both(w, s, |a, b, _| a + b),
        Calc::Mul => both(w, s, |a, b, _| a * b),
        Calc::Fma => both(w, s, f32::mul_add),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Computes the low and the high result of a packed f32 operation.
#[inline(always)]
fn both(w: &mut Wave, s: &Step, f: impl Fn(f32, f32, f32) -> f32) {
    let low = one(w, s, Half::Low, &f);
    let high = one(w, s, Half::High, &f);
    w.set_lanes(s.operands[0], &low);
    w.set_lanes(s.operands[0].offset(1), &high);
}

/// One result of a packed f32 operation. Loops instead of maps of arrays, which are not always inlined.
#[inline(always)]
fn one(w: &Wave, s: &Step, side: Half, f: &impl Fn(f32, f32, f32) -> f32) -> VectorRow {
    let neg = match side {
        Half::Low => s.modifiers.get_neg_lo(),
        Half::High => s.modifiers.get_neg_hi(),
    };
    let (a, b, c) = (word(w, s, 1, 0, side), word(w, s, 2, 1, side), word(w, s, 3, 2, side));
    let [flip_a, flip_b, flip_c] = [0, 1, 2].map(|number| (neg >> number & 1) << 31);
    let flushes = [w.flushes_sources(), w.flushes_results()];
    let (clamps, nan) = (s.modifiers.has_clamp(), w.clamps_nan());
    let mut result = [0; LANES];
    if flushes == [false; 2] && !clamps {
        for l in 0..LANES {
            let source = |bits: u32, flip: u32| f32::from_bits(bits ^ flip);
            result[l] = f(source(a[l], flip_a), source(b[l], flip_b), source(c[l], flip_c)).to_bits();
        }
        return result;
    }
    for l in 0..LANES {
        let source = |bits: u32, flip: u32| {
            let value = f32::from_bits(bits ^ flip);
            if flushes[0] { flush(value) } else { value }
        };
        let value = f(source(a[l], flip_a), source(b[l], flip_b), source(c[l], flip_c));
        let value = if flushes[1] { flush(value) } else { value };
        result[l] = if clamps { clamp(value, nan) } else { value }.to_bits();
    }
    result
}

/// Executes V_PK_MOV_B32: the low result comes from the first source, the high one from the second.
pub(super) fn packed_move(w: &mut Wave, s: &Step) {
    let pick = |index: usize, source: u32| {
        let high = s.modifiers.get_op_sel() >> source & 1;
        w.lanes(s.operands[index].offset(high as usize))
    };
    let (low, high) = (pick(1, 0), pick(2, 1));
    w.set_lanes(s.operands[0], &low);
    w.set_lanes(s.operands[0].offset(1), &high);
}

/// What a mixed-width multiply-add writes.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Mixed {
    /// The whole register.
    Single,
    /// An f16 in this half; the other half stays.
    Half(Half),
}

/// Executes V_FMA_MIX*: each source is an f32, or (op_sel_hi) the f16 in the half that op_sel names. An f16
/// result is the f32 one rounded once more.
pub(super) fn fma_mix(w: &mut Wave, s: &Step, result: Mixed) {
    let m = s.modifiers;
    let source = |index: usize| -> [f32; LANES] {
        let bit = |mask: u32| mask >> (index - 1) & 1 != 0;
        let values = w.lanes(s.operands[index]);
        let shift = if bit(m.get_op_sel()) { 16 } else { 0 };
        let mixed = bit(m.get_op_sel_hi_flip());
        let (flush_half, flush_single) = (w.flushes_wide_sources(), w.flushes_sources());
        values.map(|v| {
            let value = if mixed {
                let bits = v >> shift & 0xffff;
                from_f16(if flush_half { flush_f16(bits) } else { bits })
            } else if flush_single {
                flush(f32::from_bits(v))
            } else {
                f32::from_bits(v)
            };
            let value = if bit(m.get_neg_hi()) { value.abs() } else { value };
            if bit(m.get_neg_lo()) { -value } else { value }
        })
    };
    let (a, b, c) = (source(1), source(2), source(3));
    let directed = w.mode & ROUND_32 != 0;
    let single = Rounder::new(w, Element::F32);
    let (flushes, nan, clamps) = (w.flushes_results(), w.clamps_nan(), m.has_clamp());
    let values: [f32; LANES] = std::array::from_fn(|l| {
        let value = if directed {
            single.fused(a[l].into(), b[l].into(), c[l].into()) as f32
        } else {
            a[l].mul_add(b[l], c[l])
        };
        if flushes { flush(value) } else { value }
    });
    let Mixed::Half(side) = result else {
        let values = values.map(|v| if clamps { clamp(v, nan) } else { v }.to_bits());
        w.set_lanes(s.operands[0], &values);
        return;
    };
    let halves = if w.mode & ROUND_16 != 0 {
        let half = Rounder::new(w, Element::F16);
        values.map(|v| F16(half.round(v.into()) as f32))
    } else {
        values.map(F16)
    };
    let bits = finish_f16(w, s, &halves);
    let shift = if side == Half::High { 16 } else { 0 };
    let old = w.lanes(s.operands[0]);
    w.set_lanes(s.operands[0], &std::array::from_fn(|l| old[l] & !(0xffff << shift) | bits[l] << shift));
}
