//! The arithmetic of atomic operations, on memory and on LDS.

use crate::codegen::isa::{Calc, Element};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{from_f16, maximum, minimum, to_f16};
use super::super::wave::Wave;

/// New value of a place that holds `old`.
pub(super) fn apply(calc: Calc, element: Element, old: u64, data: u64) -> Result<u64, Stopped> {
    use Element::*;
    let (o, d) = (old as u32, data as u32);
    let float = |f: fn(f32, f32) -> f32| u64::from(f(f32::from_bits(o), f32::from_bits(d)).to_bits());
    let double = |f: fn(f64, f64) -> f64| f(f64::from_bits(old), f64::from_bits(data)).to_bits();
    let halves = |f: &dyn Fn(u32, u32) -> u32| {
        u64::from(f(o & 0xffff, d & 0xffff) & 0xffff | f(o >> 16, d >> 16) << 16)
    };
    Ok(match (calc, element) {
        (Calc::Add, F32) => float(|a, b| a + b),
        (Calc::Min, F32) => float(minimum),
        (Calc::Max, F32) => float(maximum),
        (Calc::Add, F64) => double(|a, b| a + b),
        (Calc::Min, F64) => double(minimum),
        (Calc::Max, F64) => double(maximum),
        (Calc::Add, F16x2) => halves(&|a, b| to_f16(from_f16(a) + from_f16(b))),
        (Calc::Add, U64 | I64 | B64) => old.wrapping_add(data),
        (Calc::Sub, U64 | I64 | B64) => old.wrapping_sub(data),
        (Calc::Add, U32 | I32 | B32) => o.wrapping_add(d).into(),
        (Calc::Sub, U32 | I32 | B32) => o.wrapping_sub(d).into(),
        (Calc::Min, I32) => u64::from((o as i32).min(d as i32) as u32),
        (Calc::Max, I32) => u64::from((o as i32).max(d as i32) as u32),
        (Calc::Min, I64) => (old as i64).min(data as i64) as u64,
        (Calc::Max, I64) => (old as i64).max(data as i64) as u64,
        (Calc::Min, U32 | U64) => old.min(data),
        (Calc::Max, U32 | U64) => old.max(data),
        (Calc::And, _) => old & data,
        (Calc::Or, _) => old | data,
        (Calc::Xor, _) => old ^ data,
        (Calc::Mov, _) => data,
        _ => return Err(Stopped::wave(FaultKind::Unsupported("this atomic operation"))),
    })
}

/// Data of lane `l` in the registers from row `row` on.
pub(super) fn operand(w: &Wave, row: usize, l: usize, wide: bool) -> u64 {
    let high = if wide { u64::from(w.rows[row + 1][l]) << 32 } else { 0 };
    u64::from(w.rows[row][l]) | high
}

/// Puts a value into lane `l` of the registers from row `row` on.
pub(super) fn put(w: &mut Wave, row: usize, l: usize, wide: bool, value: u64) {
    w.rows[row][l] = value as u32;
    if wide {
        w.rows[row + 1][l] = (value >> 32) as u32;
    }
}
