//! The arithmetic of atomic operations, on memory and on LDS.

use crate::codegen::isa::{Calc, Element};
use crate::float16::bf16;

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{from_f16, maximum, minimum, to_f16};
use super::super::wave::Wave;

/// An atomic operation.
pub(super) type AtomicOperation = (Calc, Element);

/// Where an atomic has its data and puts its result.
#[derive(Copy, Clone)]
pub(super) struct AtomicRegisters {
    /// First data.
    pub data: usize,
    /// Second data, for operations that take two.
    pub second: usize,
    /// Former value.
    pub result: Option<usize>,
}

impl AtomicRegisters {
    /// Data of memory instructions: the second lies after the first.
    pub(super) fn consecutive(
        data: usize,
        element: Element,
        calc: Calc,
        result: Option<usize>,
    ) -> AtomicRegisters {
        let two = matches!(calc, Calc::CompareSwap);
        let second = if two { data + usize::from(element.registers()) } else { data };
        AtomicRegisters { data, second, result }
    }
}

/// New value of a place that holds `old`. `data` and `second` are in the order of the operands.
pub(super) fn apply(operation: AtomicOperation, old: u64, data: u64, second: u64) -> Result<u64, Stopped> {
    use Element::*;
    let (calc, element) = operation;
    let (o, d, e) = (old as u32, data as u32, second as u32);
    let float = |f: fn(f32, f32) -> f32| u64::from(f(f32::from_bits(o), f32::from_bits(d)).to_bits());
    let double = |f: fn(f64, f64) -> f64| f(f64::from_bits(old), f64::from_bits(data)).to_bits();
    let halves = |f: &dyn Fn(u32, u32) -> u32| {
        u64::from(f(o & 0xffff, d & 0xffff) & 0xffff | f(o >> 16, d >> 16) << 16)
    };
    let choose = |condition: bool, yes: u64, no: u64| if condition { yes } else { no };
    let brain = |bits: u32| bf16::from_bits(bits as u16).to_f32();
    Ok(match (calc, element) {
        (Calc::Add, F32) => float(|a, b| a + b),
        (Calc::Min, F32) => float(minimum),
        (Calc::Max, F32) => float(maximum),
        (Calc::Add, F64) => double(|a, b| a + b),
        (Calc::Min, F64) => double(minimum),
        (Calc::Max, F64) => double(maximum),
        (Calc::Add, F16x2) => halves(&|a, b| to_f16(from_f16(a) + from_f16(b))),
        (Calc::Add, Bf16x2) => halves(&|a, b| bf16::from_f32(brain(a) + brain(b)).to_bits().into()),
        (Calc::Add, U64 | I64 | B64) => old.wrapping_add(data),
        (Calc::Sub, U64 | I64 | B64) => old.wrapping_sub(data),
        (Calc::SubRev, U64 | I64 | B64) => data.wrapping_sub(old),
        (Calc::Add, U32 | I32 | B32) => o.wrapping_add(d).into(),
        (Calc::Sub, U32 | I32 | B32) => o.wrapping_sub(d).into(),
        (Calc::SubRev, U32 | I32 | B32) => d.wrapping_sub(o).into(),
        (Calc::Min, I32) => u64::from((o as i32).min(d as i32) as u32),
        (Calc::Max, I32) => u64::from((o as i32).max(d as i32) as u32),
        (Calc::Min, I64) => (old as i64).min(data as i64) as u64,
        (Calc::Max, I64) => (old as i64).max(data as i64) as u64,
        (Calc::Min, U32 | U64) => old.min(data),
        (Calc::Max, U32 | U64) => old.max(data),
        (Calc::IncrementWrap, U32 | U64) => choose(old < data, old.wrapping_add(1), 0),
        (Calc::DecrementWrap, U32 | U64) => choose(old == 0 || old > data, data, old.wrapping_sub(1)),
        (Calc::And, _) => old & data,
        (Calc::Or, _) => old | data,
        (Calc::Xor, _) => old ^ data,
        (Calc::Mov, _) => data,
        (Calc::MaskedOr, _) => old & !data | second,
        (Calc::CompareSwap, _) => choose(old == second, data, old),
        (Calc::CompareStore, F32) => choose(f32::from_bits(o) == f32::from_bits(d), second, old),
        (Calc::CompareStore, F64) => choose(f64::from_bits(old) == f64::from_bits(data), second, old),
        (Calc::CompareStore, _) => choose(old == data, second, old),
        (Calc::Wrap, _) => u64::from(if o >= d { o - d } else { o.wrapping_add(e) }),
        _ => return Err(Stopped::wave(FaultKind::Unsupported("this atomic operation"))),
    })
}

/// Lane `l` of the registers from row `row` on.
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
