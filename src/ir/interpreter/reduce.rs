//! Reductions: sums and products of floats are taken in f64, in the order of the elements, and rounded once,
//! so that what a device does in another order can be measured against them. Integers wrap.

use super::arithmetic::{ArithmeticFault, greater_f64, lesser_f64, number_of, widened};
use super::tensor::{Data, data_of};
use crate::ir::constant::Constant;
use crate::ir::node::ReductionOp;

/// How a tensor is folded along one of its dimensions.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fold {
    /// Elements of the dimensions before it.
    pub(super) outer: usize,
    /// Elements of the dimension.
    pub(super) extent: usize,
    /// Those that take part: the first so many.
    pub(super) taken: usize,
    /// Elements of the dimensions after it.
    pub(super) inner: usize,
}

impl Fold {
    fn of<T: Copy, R>(self, elements: &[T], fold: impl Fn(&mut dyn Iterator<Item = T>) -> R) -> Vec<R> {
        let mut folded = Vec::with_capacity(self.outer * self.inner);
        for outer in 0..self.outer {
            for inner in 0..self.inner {
                let first = outer * self.extent * self.inner + inner;
                folded.push(fold(&mut (0..self.taken).map(|at| elements[first + at * self.inner])));
            }
        }
        folded
    }
}

/// The elements of `data`, folded.
pub(super) fn reduce(op: ReductionOp, data: &Data, fold: Fold) -> Result<Data, ArithmeticFault> {
    if let Some(wide) = widened(data) {
        let rounded = |value| Constant::Float(value).bits(data.dtype());
        let folded = fold.of(&wide, |elements| rounded(floats(op, &mut elements.map(f64::from))));
        let bits = folded.into_iter().collect::<Result<Vec<_>, _>>().map_err(|fault| fault.message)?;
        return Ok(data_of(data.dtype(), &bits));
    }
    Ok(match data {
        Data::F64(v) => Data::F64(fold.of(v, |elements| floats(op, elements))),
        Data::I64(v) => Data::I64(fold.of(v, |elements| long_integers(op, elements))),
        Data::I32(v) => Data::I32(fold.of(v, |elements| integers(op, i32::MIN, i32::MAX, elements))),
        Data::I16(v) => Data::I16(fold.of(v, |elements| {
            let wide = &mut elements.map(i32::from);
            integers(op, i16::MIN.into(), i16::MAX.into(), wide) as i16
        })),
        Data::I8(v) => Data::I8(fold.of(v, |elements| {
            let wide = &mut elements.map(i32::from);
            integers(op, i8::MIN.into(), i8::MAX.into(), wide) as i8
        })),
        _ => return Err(format!("{} is not defined for {}", op.row().word, data.dtype())),
    })
}

/// Floats, joined in f64 in their order.
pub(super) fn floats(op: ReductionOp, elements: &mut dyn Iterator<Item = f64>) -> f64 {
    match op {
        ReductionOp::Sum => elements.fold(-0.0, |sum, x| sum + x),
        ReductionOp::Product => elements.product(),
        ReductionOp::Min => elements.fold(f64::NAN, |least, x| number_of(least, x, lesser_f64)),
        ReductionOp::Max => elements.fold(f64::NAN, |most, x| number_of(most, x, greater_f64)),
    }
}

fn integers(op: ReductionOp, least: i32, most: i32, elements: &mut dyn Iterator<Item = i32>) -> i32 {
    match op {
        ReductionOp::Sum => elements.fold(0, i32::wrapping_add),
        ReductionOp::Product => elements.fold(1, i32::wrapping_mul),
        ReductionOp::Min => elements.fold(most, i32::min),
        ReductionOp::Max => elements.fold(least, i32::max),
    }
}

/// Integers of 64 bits, joined in their order.
pub(super) fn long_integers(op: ReductionOp, elements: &mut dyn Iterator<Item = i64>) -> i64 {
    match op {
        ReductionOp::Sum => elements.fold(0, i64::wrapping_add),
        ReductionOp::Product => elements.fold(1, i64::wrapping_mul),
        ReductionOp::Min => elements.fold(i64::MAX, i64::min),
        ReductionOp::Max => elements.fold(i64::MIN, i64::max),
    }
}
