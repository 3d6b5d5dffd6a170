//! VOP3P: two operations per lane, mixed-width multiply-add and dot products.

use crate::codegen::isa::{Calc, Element, Format, Half};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{flush, from_f16, maximum, minimum, to_f16};
use super::super::program::{Place, Step};
use super::super::wave::{LANES, Row, Wave};
use super::valu::{fma_f16, unsupported};

/// One half of packed source number `source` (operand `index`), as 16 bits with the sign modified.
fn half(w: &Wave, s: &Step, index: usize, source: u32, half: Half) -> Row {
    let m = s.modifiers;
    let (high, negated) = match half {
        Half::Low => (m.get_op_sel() >> source & 1 != 0, m.get_neg_lo() >> source & 1 != 0),
        Half::High => (m.get_op_sel_hi_flip() >> source & 1 == 0, m.get_neg_hi() >> source & 1 != 0),
    };
    let shift = if high { 16 } else { 0 };
    let flip = if negated { 0x8000 } else { 0 };
    w.lanes(s.operands[index]).map(|v| v >> shift & 0xffff ^ flip)
}

/// Executes a packed operation.
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
            float_half(w, s, calc, &a, &b, &c)?
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

fn float_half(w: &Wave, s: &Step, calc: Calc, a: &Row, b: &Row, c: &Row) -> Result<Row, Stopped> {
    let f: fn(f32, f32, f32) -> f32 = match calc {
        Calc::Add => |a, b, _| a + b,
        Calc::Mul => |a, b, _| a * b,
        Calc::Fma => fma_f16,
        Calc::Min => |a, b, _| minimum(a, b),
        Calc::Max => |a, b, _| maximum(a, b),
        _ => return Err(unsupported()),
    };
    let (clamp, nan) = (s.modifiers.has_clamp(), if w.clamps_nan() { 0.0 } else { f32::NAN });
    Ok(std::array::from_fn(|l| {
        let value = f(from_f16(a[l]), from_f16(b[l]), from_f16(c[l]));
        let clamped = if value.is_nan() { nan } else { value.clamp(0.0, 1.0) };
        to_f16(if clamp { clamped } else { value })
    }))
}

fn integer_half(s: &Step, calc: Calc, element: Element, a: &Row, b: &Row, c: &Row) -> Result<Row, Stopped> {
    let signed = element == Element::I16;
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
    if s.modifiers.has_clamp() {
        return Err(Stopped::wave(FaultKind::Unsupported("clamp on packed integers")));
    }
    Ok(std::array::from_fn(|l| f(a[l], b[l], c[l])))
}

/// One register of a packed f32 source: op_sel chooses which one the low result takes, op_sel_hi which one the high result
/// takes. A constant is the same for both.
fn word(w: &Wave, s: &Step, index: usize, source: u32, side: Half) -> Row {
    let high = match side {
        Half::Low => s.modifiers.get_op_sel() >> source & 1 != 0,
        Half::High => s.modifiers.get_op_sel_hi_flip() >> source & 1 == 0,
    };
    w.lanes(s.operands[index].offset(high.into()))
}

fn packed_f32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    let f: fn(f32, f32, f32) -> f32 = match calc {
        Calc::Add => |a, b, _| a + b,
        Calc::Mul => |a, b, _| a * b,
        Calc::Fma => f32::mul_add,
        _ => return Err(unsupported()),
    };
    let results = [Half::Low, Half::High].map(|side| {
        let source = |index: usize| {
            let number = index as u32 - 1;
            let neg = match side {
                Half::Low => s.modifiers.get_neg_lo(),
                Half::High => s.modifiers.get_neg_hi(),
            };
            let flip = (neg >> number & 1) << 31;
            let values = word(w, s, index, number, side).map(|v| f32::from_bits(v ^ flip));
            if w.flushes_sources() { values.map(flush) } else { values }
        };
        let (a, b, c) = (source(1), source(2), source(3));
        let clamp = s.modifiers.has_clamp();
        let values: Row = std::array::from_fn(|l| {
            let value = f(a[l], b[l], c[l]);
            let value = if w.flushes_results() { flush(value) } else { value };
            let nan = if w.clamps_nan() { 0.0 } else { f32::NAN };
            let clamped = if value.is_nan() { nan } else { value.clamp(0.0, 1.0) };
            if clamp { clamped } else { value }.to_bits()
        });
        values
    });
    w.set_lanes(s.operands[0], &results[0]);
    w.set_lanes(s.operands[0].offset(1), &results[1]);
    Ok(())
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

/// Executes V_FMA_MIX*: each source is an f32, or (op_sel_hi) the f16 in the half that op_sel names.
pub(super) fn fma_mix(w: &mut Wave, s: &Step, result: Mixed) {
    let m = s.modifiers;
    let source = |index: usize| -> [f32; LANES] {
        let bit = |mask: u32| mask >> (index - 1) & 1 != 0;
        let values = w.lanes(s.operands[index]);
        let shift = if bit(m.get_op_sel()) { 16 } else { 0 };
        let mixed = bit(m.get_op_sel_hi_flip());
        values.map(|v| {
            let value = if mixed { from_f16(v >> shift) } else { f32::from_bits(v) };
            let value = if bit(m.get_neg_hi()) { value.abs() } else { value };
            if bit(m.get_neg_lo()) { -value } else { value }
        })
    };
    let (a, b, c) = (source(1), source(2), source(3));
    let old = w.lanes(s.operands[0]);
    let values = std::array::from_fn(|l| {
        let value = a[l].mul_add(b[l], c[l]);
        let value = if m.has_clamp() { value.clamp(0.0, 1.0) } else { value };
        match result {
            Mixed::Single => value.to_bits(),
            Mixed::Half(Half::Low) => old[l] & 0xffff_0000 | to_f16(value),
            Mixed::Half(Half::High) => old[l] & 0xffff | to_f16(value) << 16,
        }
    });
    w.set_lanes(s.operands[0], &values);
}

/// Executes a dot product. Float sums go from the low to the high element, each product and sum rounded in f32 (the product
/// of two f16 is exact); integer ones wrap.
pub(super) fn dot(w: &mut Wave, s: &Step, element: Element) -> Result<(), Stopped> {
    let accumulates = s.accumulates;
    if s.format == Format::Vop3p && s.modifiers.has_clamp() {
        return Err(Stopped::wave(FaultKind::Unsupported("clamp on a dot product")));
    }
    let c: Place = s.operands[if accumulates { 0 } else { 3 }];
    let c = w.lanes(c);
    let values: Row = match element {
        Element::F16 => {
            let sides = [Half::Low, Half::High].map(|side| (half(w, s, 1, 0, side), half(w, s, 2, 1, side)));
            let flip = (s.modifiers.get_neg_lo() >> 2 & 1) << 31;
            std::array::from_fn(|l| {
                let start = f32::from_bits(c[l] ^ flip);
                let sum = sides.iter().fold(start, |sum, (a, b)| from_f16(a[l]) * from_f16(b[l]) + sum);
                sum.to_bits()
            })
        }
        Element::I8 | Element::U8 => {
            let (a, b) = (w.lanes(s.operands[1]), w.lanes(s.operands[2]));
            let signed = element == Element::I8;
            let byte = |v: u8| if signed { i32::from(v as i8) } else { i32::from(v) };
            std::array::from_fn(|l| {
                let pairs = a[l].to_le_bytes().into_iter().zip(b[l].to_le_bytes());
                pairs.fold(c[l], |sum, (x, y)| sum.wrapping_add((byte(x) * byte(y)) as u32))
            })
        }
        _ => return Err(unsupported()),
    };
    w.set_lanes(s.operands[0], &values);
    Ok(())
}
