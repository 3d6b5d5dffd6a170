//! Atomic updates: element after element, in the order of the value's elements, which is one of the orders
//! that the operation allows.

use std::borrow::Cow;
use std::ops::{BitAnd, BitOr, BitXor};
use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::arithmetic::{greater, greater_f64, lesser, lesser_f64, number_of};
use super::tensor::{Data, Tensor};
use super::{InterpretedValue, Interpreter, ValueContent, malformed};
use crate::float16::{bf16, f16};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::mapping::Mapping;
use crate::ir::op::AtomicOp;
use crate::ir::types::DType;

impl Interpreter<'_> {
    /// An atomic update of the memory `to` by the first of the values; the others are the operands of its
    /// mapping, if it has one.
    pub(super) fn atomic(
        &mut self,
        node: Entity,
        op: AtomicOp,
        values: &[Entity],
        to: Entity,
    ) -> Result<(), Diagnostic> {
        let depth = self.loops.len();
        let (joined, values) = values.split_at_checked(op.values()).ok_or_else(malformed)?;
        let (Some(&first), Some(&last)) = (joined.first(), joined.last()) else { return Err(malformed()) };
        let [first, last] = [self.value(first)?, self.value(last)?];
        if first.dims != last.dims {
            let text = format!("{} of two values with other dimensions", op.row().word);
            return Err(Diagnostic::invalid(text).help("give both the same dimensions, in one order"));
        }
        let dims = first.dims.clone();
        let [expected, tensor] = [Rc::clone(self.tensor(first)?), Rc::clone(self.tensor(last)?)];
        let mapping = match self.world.get::<Mapping>(node) {
            Some(mapping) => Cow::Borrowed(mapping),
            None => {
                let own = self.memory(to)?.dims.iter().map(|&dim| Symbol::new(self.name(dim)));
                Cow::Owned(Mapping::identity(own))
            }
        };
        let places = self.places(&mapping, &dims, values, to)?;
        self.check_defined(to, &places)?;
        let Some(InterpretedValue { content: ValueContent::Tensor(into), .. }) = self.memories.get_mut(&to)
        else {
            return Err(malformed());
        };
        // Copied only if a value still refers to the former content.
        let before = match (Rc::make_mut(into).data_mut(), expected.data(), tensor.data()) {
            (Data::F32(into), _, Data::F32(new)) => {
                Data::F32(update(into, &places, |at, old| floats(op, old, new[at]))?)
            }
            (Data::I32(into), Data::I32(expected), Data::I32(new)) => {
                Data::I32(update(into, &places, |at, old| Some(integers(op, old, [expected[at], new[at]])))?)
            }
            (Data::F64(into), _, Data::F64(new)) => {
                Data::F64(update(into, &places, |at, old| doubles(op, old, new[at]))?)
            }
            (Data::I64(into), Data::I64(expected), Data::I64(new)) => {
                Data::I64(update(into, &places, |at, old| Some(integers(op, old, [expected[at], new[at]])))?)
            }
            (Data::F16(into), _, Data::F16(new)) => Data::F16(update(into, &places, |at, old| {
                floats(op, old.to_f32(), new[at].to_f32()).map(f16::from_f32)
            })?),
            (Data::Bf16(into), _, Data::Bf16(new)) => Data::Bf16(update(into, &places, |at, old| {
                floats(op, old.to_f32(), new[at].to_f32()).map(bf16::from_f32)
            })?),
            (into, _, with) => {
                let text =
                    format!("{} of a value {} and a memory {}", op.row().word, with.dtype(), into.dtype());
                return Err(Diagnostic::invalid(text).help("cast the value"));
            }
        };
        let content = ValueContent::Tensor(Rc::new(Tensor::filled(tensor.shape().to_vec(), before)));
        self.values.insert(node, InterpretedValue { dims, content, depth });
        Ok(())
    }
}

/// Updates the elements at `places`, and gives what they were before; zero for those outside. What an update
/// leaves follows from the number of its element and from what was there.
fn update<T: Copy + Default>(
    into: &mut [T],
    places: &[Option<usize>],
    joined: impl Fn(usize, T) -> Option<T>,
) -> Result<Vec<T>, Diagnostic> {
    let mut before = Vec::with_capacity(places.len());
    for (number, place) in places.iter().enumerate() {
        let Some(at) = *place else {
            before.push(T::default());
            continue;
        };
        before.push(into[at]);
        into[at] = joined(number, into[at]).ok_or_else(malformed)?;
    }
    Ok(before)
}

/// What an update leaves of `old`, all given by their bits; `None` for dtypes without such an update.
/// `expected` matters to comparisons alone.
pub(super) fn updated(op: AtomicOp, dtype: DType, old: u64, [expected, new]: [u64; 2]) -> Option<u64> {
    match dtype {
        DType::F32 => {
            let sum = floats(op, f32::from_bits(old as u32), f32::from_bits(new as u32));
            sum.map(|sum| sum.to_bits().into())
        }
        DType::F64 => doubles(op, f64::from_bits(old), f64::from_bits(new)).map(f64::to_bits),
        DType::I32 => Some(u64::from(integers(op, old as i32, [expected as i32, new as i32]) as u32)),
        DType::I64 => Some(integers(op, old as i64, [expected as i64, new as i64]) as u64),
        DType::F16 => {
            let sum = floats(op, f16::from_bits(old as u16).to_f32(), f16::from_bits(new as u16).to_f32());
            sum.map(|sum| f16::from_f32(sum).to_bits().into())
        }
        DType::Bf16 => {
            let sum = floats(op, bf16::from_bits(old as u16).to_f32(), bf16::from_bits(new as u16).to_f32());
            sum.map(|sum| bf16::from_f32(sum).to_bits().into())
        }
        DType::I16 | DType::I8 | DType::I1 => None,
        DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => None,
        DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => None,
    }
}

fn floats(op: AtomicOp, old: f32, new: f32) -> Option<f32> {
    match op {
        AtomicOp::Add => Some(old + new),
        AtomicOp::Min => Some(number_of(old, new, lesser)),
        AtomicOp::Max => Some(number_of(old, new, greater)),
        AtomicOp::Exchange => Some(new),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::CompareExchange => None,
    }
}

fn doubles(op: AtomicOp, old: f64, new: f64) -> Option<f64> {
    match op {
        AtomicOp::Add => Some(old + new),
        AtomicOp::Min => Some(number_of(old, new, lesser_f64)),
        AtomicOp::Max => Some(number_of(old, new, greater_f64)),
        AtomicOp::Exchange => Some(new),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::CompareExchange => None,
    }
}

fn integers<T: WrappingInteger>(op: AtomicOp, old: T, [expected, new]: [T; 2]) -> T {
    match op {
        AtomicOp::Add => old.plus(new),
        AtomicOp::Min => old.min(new),
        AtomicOp::Max => old.max(new),
        AtomicOp::And => old & new,
        AtomicOp::Or => old | new,
        AtomicOp::Xor => old ^ new,
        AtomicOp::Exchange => new,
        AtomicOp::CompareExchange if old == expected => new,
        AtomicOp::CompareExchange => old,
    }
}

/// Integers whose sums wrap.
trait WrappingInteger: Copy + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> {
    fn plus(self, other: Self) -> Self;
}

impl WrappingInteger for i32 {
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
}

impl WrappingInteger for i64 {
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
}
