//! Vector comparisons and classification: one bit per lane.

use crate::codegen::isa::{Condition, Element};

use super::super::error::Stopped;
use super::super::formats::{self, FloatFormat};
use super::super::program::Step;
use super::super::wave::{EXEC, LANES, Wave};
use super::lanes::{F16, Lane, ReadHalf, mask2, unsupported};

/// What a comparison does to EXEC.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Writes {
    /// The mask operand alone.
    Mask,
    /// EXEC too.
    MaskAndExec,
}

/// Executes a comparison.
#[inline(always)]
pub(super) fn compare(
    w: &mut Wave,
    s: &Step,
    condition: Condition,
    element: Element,
    writes: Writes,
) -> Result<(), Stopped> {
    let mask = match element {
        Element::I32 => ordered(w, s, condition, |v: i32| v),
        Element::U32 | Element::B32 => ordered(w, s, condition, |v: u32| v),
        Element::I64 => ordered(w, s, condition, |v: i64| v),
        Element::U64 | Element::B64 => ordered(w, s, condition, |v: u64| v),
        Element::I16 => ordered(w, s, condition, |v: i16| v),
        Element::U16 | Element::B16 => ordered(w, s, condition, |v: u16| v),
        Element::F32 => ordered(w, s, condition, |v: f32| v),
        Element::F64 => ordered(w, s, condition, |v: f64| v),
        Element::F16 => ordered(w, s, condition, |v: F16| v.0),
        _ => return Err(unsupported()),
    };
    finish(w, s, mask, writes);
    Ok(())
}

#[inline(always)]
fn ordered<T: Lane, V: PartialOrd>(
    w: &Wave,
    s: &Step,
    condition: Condition,
    value: impl Fn(T) -> V + Copy,
) -> u64 {
    match condition {
        Condition::False => 0,
        Condition::True => u64::MAX,
        Condition::Lt => mask2(w, s, |a: T, b: T| value(a) < value(b)),
        Condition::Eq => mask2(w, s, |a: T, b: T| value(a) == value(b)),
        Condition::Le => mask2(w, s, |a: T, b: T| value(a) <= value(b)),
        Condition::Gt => mask2(w, s, |a: T, b: T| value(a) > value(b)),
        Condition::Ge => mask2(w, s, |a: T, b: T| value(a) >= value(b)),
        // For floats "less or greater", which an unordered pair is not; integers are always ordered.
        Condition::Ne => mask2(w, s, |a: T, b: T| value(a) < value(b) || value(a) > value(b)),
        Condition::Ordered => mask2(w, s, |a: T, b: T| value(a).partial_cmp(&value(b)).is_some()),
        Condition::Unordered => !ordered(w, s, Condition::Ordered, value),
        Condition::NotGe => !ordered(w, s, Condition::Ge, value),
        Condition::NotNe => !ordered(w, s, Condition::Ne, value),
        Condition::NotGt => !ordered(w, s, Condition::Gt, value),
        Condition::NotLe => !ordered(w, s, Condition::Le, value),
        Condition::NotEq => !ordered(w, s, Condition::Eq, value),
        Condition::NotLt => !ordered(w, s, Condition::Lt, value),
    }
}

/// Executes V_CMP_CLASS: is the class of a in the set b? MODE's denormal bits do not matter.
pub(super) fn class(w: &mut Wave, s: &Step, element: Element, writes: Writes) -> Result<(), Stopped> {
    let (format, bits): (&FloatFormat, [u64; LANES]) = match element {
        Element::F32 => (&formats::F32, w.lanes(s.operands[1]).map(u64::from)),
        Element::F64 => (&formats::F64, w.lanes_wide(s.operands[1])),
        Element::F16 => (&formats::F16, u16::read_half(w, s, 1, 0).map(u64::from)),
        _ => return Err(unsupported()),
    };
    let sign = format.sign(true);
    let (infinity, quiet) = (format.infinity(false), 1 << (format.mantissa_bits - 1));
    let clear = if s.modifiers.get_abs() & 1 != 0 { !sign } else { !0 };
    let flip = if s.modifiers.get_neg() & 1 != 0 { sign } else { 0 };
    let sets = w.lanes(s.operands[2]);
    let mut mask = 0;
    for l in 0..LANES {
        let bits = bits[l] & clear ^ flip;
        let (negative, magnitude) = (bits & sign != 0, bits & !sign);
        let bit = if magnitude > infinity {
            u32::from(magnitude & quiet != 0)
        } else {
            // From the outside in: infinity, normal, denormal, zero; negative from bit 2 up, positive from
            // bit 9 down.
            let step = match magnitude {
                m if m == infinity => 0,
                m if m >> format.mantissa_bits != 0 => 1,
                0 => 3,
                _ => 2,
            };
            if negative { 2 + step } else { 9 - step }
        };
        mask |= u64::from(sets[l] >> bit & 1) << l;
    }
    finish(w, s, mask, writes);
    Ok(())
}

/// Writes the bits of the active lanes.
#[inline(always)]
fn finish(w: &mut Wave, s: &Step, mask: u64, writes: Writes) {
    let mask = mask & w.exec();
    w.set_scalar_wide(s.operands[0], mask);
    if writes == Writes::MaskAndExec {
        w.set_pair(EXEC, mask);
    }
}
