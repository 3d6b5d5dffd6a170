//! What element-wise operations make of constants, for passes that ask what an element is which they know.

use super::arithmetic;
use super::tensor::{Tensor, bits_of, data_of};
use crate::ir::node::Op;
use crate::ir::types::DType;

/// A number by its bits.
pub(crate) type ConstantElement = (u64, DType);

/// The bits of what `op` makes of `operands`, as an element of `to`; nothing for an operation that is not
/// element-wise, or for operands that it does not take.
pub(crate) fn element(op: Op, operands: &[ConstantElement], to: DType) -> Option<u64> {
    let data = |at: usize| operands.get(at).map(|&(bits, dtype)| data_of(dtype, &[bits]));
    let made = if let Op::Unary(op) = op {
        arithmetic::unary(op, &data(0)?)
    } else if let Op::Binary(op) = op {
        arithmetic::binary(op, &data(0)?, &data(1)?)
    } else if let Op::Ternary(op) = op {
        arithmetic::ternary(op, &data(0)?, &data(1)?, &data(2)?)
    } else if let Op::Compare(predicate) = op {
        arithmetic::comparison(predicate, &data(0)?, &data(1)?)
    } else if let Op::Select = op {
        arithmetic::select(&data(0)?, &data(1)?, &data(2)?)
    } else if let Op::Convert(conversion) = op {
        arithmetic::convert(conversion, &data(0)?, to)
    } else {
        return None;
    };
    bits_of(&made.ok()?).first().copied()
}

/// The number as an f64.
pub(crate) fn number((bits, dtype): ConstantElement) -> Option<f64> {
    Tensor::filled(vec![1], data_of(dtype, &[bits])).to_f64().first().copied()
}
