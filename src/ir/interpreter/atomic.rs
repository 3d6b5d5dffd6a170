//! Atomic updates: element after element, in the order of the value's elements, which is one of the orders
//! that the operation allows.

use std::ops::{BitAnd, BitOr, BitXor};
use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::arithmetic::{greater_f64, lesser_f64, number_of};
use super::tensor::{Data, Tensor};
use super::{InterpretedValue, Interpreter, ValueContent, malformed};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::mapping::Mapping;
use crate::ir::op::AtomicOp;
use crate::ir::types::DType;

impl Interpreter<'_> {
    /// An atomic update of the memory `to` by `value`; `values` are the operands of its mapping, if it has
    /// one.
    pub(super) fn atomic(
        &mut self,
        node: Entity,
        op: AtomicOp,
        value: Entity,
        values: &[Entity],
        to: Entity,
    ) -> Result<(), Diagnostic> {
        let depth = self.loops.len();
        let value = self.value(value)?;
        let (dims, tensor) = (value.dims.clone(), Rc::clone(self.tensor(value)?));
        let own;
        let mapping = match self.world.get::<Mapping>(node) {
            Some(mapping) => mapping,
            None => {
                let names = self.memory(to)?.dims.iter().map(|&dim| Symbol::new(self.name(dim)));
                own = Mapping(names.map(SymExpr::from).collect());
                &own
            }
        };
        let places = self.places(mapping, &dims, values, to)?;
        self.check_defined(to, &places)?;
        let Some(InterpretedValue { content: ValueContent::Tensor(into), .. }) = self.memories.get_mut(&to)
        else {
            return Err(malformed());
        };
        // Copied only if a value still refers to the former content.
        let before = match (Rc::make_mut(into).data_mut(), tensor.data()) {
            (Data::F32(into), Data::F32(with)) => {
                Data::F32(update(into, with, &places, |old, new| floats(op, old, new))?)
            }
            (Data::I32(into), Data::I32(with)) => {
                Data::I32(update(into, with, &places, |old, new| Some(integers(op, old, new)))?)
            }
            (Data::F64(into), Data::F64(with)) => {
                Data::F64(update(into, with, &places, |old, new| doubles(op, old, new))?)
            }
            (Data::I64(into), Data::I64(with)) => {
                Data::I64(update(into, with, &places, |old, new| Some(integers(op, old, new)))?)
            }
            (into, with) => {
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

/// Updates the elements at `places`, and gives what they were before; zero for those outside.
fn update<T: Copy + Default>(
    into: &mut [T],
    with: &[T],
    places: &[Option<usize>],
    joined: impl Fn(T, T) -> Option<T>,
) -> Result<Vec<T>, Diagnostic> {
    let mut before = Vec::with_capacity(with.len());
    for (place, &new) in places.iter().zip(with) {
        let Some(at) = *place else {
            before.push(T::default());
            continue;
        };
        before.push(into[at]);
        into[at] = joined(into[at], new).ok_or_else(malformed)?;
    }
    Ok(before)
}

/// What an update leaves of `old`, both given by their bits; `None` for dtypes without such an update.
pub(super) fn updated(op: AtomicOp, dtype: DType, old: u64, new: u64) -> Option<u64> {
    match dtype {
        DType::F32 => {
            let sum = floats(op, f32::from_bits(old as u32), f32::from_bits(new as u32));
            sum.map(|sum| sum.to_bits().into())
        }
        DType::F64 => doubles(op, f64::from_bits(old), f64::from_bits(new)).map(f64::to_bits),
        DType::I32 => Some(u64::from(integers(op, old as i32, new as i32) as u32)),
        DType::I64 => Some(integers(op, old as i64, new as i64) as u64),
        DType::F16 | DType::Bf16 | DType::I16 | DType::I8 | DType::I1 => None,
        DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => None,
    }
}

fn floats(op: AtomicOp, old: f32, new: f32) -> Option<f32> {
    match op {
        AtomicOp::Add => Some(old + new),
        AtomicOp::Exchange => Some(new),
        AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => None,
    }
}

fn doubles(op: AtomicOp, old: f64, new: f64) -> Option<f64> {
    match op {
        AtomicOp::Add => Some(old + new),
        AtomicOp::Min => Some(number_of(old, new, lesser_f64)),
        AtomicOp::Max => Some(number_of(old, new, greater_f64)),
        AtomicOp::Exchange => Some(new),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => None,
    }
}

fn integers<T: WrappingInteger>(op: AtomicOp, old: T, new: T) -> T {
    match op {
        AtomicOp::Add => old.plus(new),
        AtomicOp::Min => old.min(new),
        AtomicOp::Max => old.max(new),
        AtomicOp::And => old & new,
        AtomicOp::Or => old | new,
        AtomicOp::Xor => old ^ new,
        AtomicOp::Exchange => new,
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
