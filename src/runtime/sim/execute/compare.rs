//! Vector comparisons and classification: one bit per lane.

use crate::codegen::isa::{Condition, Element};

use super::super::error::Stopped;
use super::super::program::Step;
use super::super::wave::{EXEC, LANES, Wave};
use super::lanes::{F16, Lane, mask2};
use super::valu::unsupported;

/// What a comparison does to EXEC.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Writes {
    /// The mask operand alone.
    Mask,
    /// EXEC too.
    MaskAndExec,
}

/// Executes a comparison.
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
    let mask = mask & w.exec();
    w.set_scalar_wide(s.operands[0], mask);
    if writes == Writes::MaskAndExec {
        w.set_pair(EXEC, mask);
    }
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

/// Executes V_CMP_CLASS: is the class of a in the set b?
pub(super) fn class(w: &mut Wave, s: &Step, element: Element) -> Result<(), Stopped> {
    // Sign, magnitude, magnitude of infinity, least normal magnitude, quiet bit.
    let (values, infinity, normal, quiet): ([(bool, u64); LANES], u64, u64, u64) = match element {
        Element::F32 => {
            let read =
                f32::read(w, s, 1, 0).map(|v| (v.is_sign_negative(), u64::from(v.to_bits() & 0x7fff_ffff)));
            (read, 0x7f80_0000, 0x0080_0000, 0x0040_0000)
        }
        Element::F64 => {
            let read = f64::read(w, s, 1, 0).map(|v| (v.is_sign_negative(), v.to_bits() & (u64::MAX >> 1)));
            (read, 0x7ff << 52, 1 << 52, 1 << 51)
        }
        Element::F16 => {
            // As f32 the same value has the same class, but for denormals, whose bound is that of f16.
            let read = F16::read(w, s, 1, 0);
            let read = read.map(|v| (v.0.is_sign_negative(), u64::from(v.0.to_bits() & 0x7fff_ffff)));
            (read, 0x7f80_0000, u64::from((2.0f32.powi(-14)).to_bits()), 0x0040_0000)
        }
        _ => return Err(unsupported()),
    };
    let sets = w.lanes(s.operands[2]);
    let mut mask = 0;
    for l in 0..LANES {
        let (negative, magnitude) = values[l];
        let bit = if magnitude > infinity {
            u32::from(magnitude & quiet != 0)
        } else {
            // From the outside in: infinity, normal, denormal, zero; negative from bit 2 up, positive from bit 9 down.
            let step = match magnitude {
                m if m == infinity => 0,
                m if m >= normal => 1,
                0 => 3,
                _ => 2,
            };
            if negative { 2 + step } else { 9 - step }
        };
        mask |= u64::from(sets[l] >> bit & 1) << l;
    }
    let mask = mask & w.exec();
    w.set_scalar_wide(s.operands[0], mask);
    Ok(())
}
