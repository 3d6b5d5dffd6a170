//! Operands of one operation, aligned: those that lack a dimension of the others are repeated along it.

use std::cmp::Reverse;
use std::rc::Rc;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::tensor::{Data, Tensor};
use super::values::gather;
use super::window::{self, Axes, Axis};
use super::{InterpretedValue, Interpreter, ValueContent, arithmetic, malformed};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Dim;
use crate::ir::node::*;

impl Interpreter<'_> {
    /// The operands with the dims of the one that has the most, which are returned as well. Untyped constants
    /// take the dtype of the typed operand, starting with operand number `typed`.
    pub(super) fn broadcast<const N: usize>(
        &self,
        operands: [Entity; N],
        typed: usize,
    ) -> Result<(Dims, [AlignedOperand; N]), Diagnostic> {
        let mut values: SmallVec<[&InterpretedValue; 3]> = SmallVec::new();
        for &operand in &operands {
            values.push(self.value(operand)?);
        }
        // The first of those with all dims determines the order.
        let plain = |dims: &Dims| dims.iter().filter(|&&dim| !self.is_scaled(dim)).count();
        let widest = values.iter().min_by_key(|v| Reverse((v.dims.len(), plain(&v.dims))));
        let widest = widest.ok_or_else(malformed)?;
        let dtype = values[typed..].iter().find_map(|v| match &v.content {
            ValueContent::Tensor(tensor) => Some(tensor.dtype()),
            ValueContent::Untyped(_) => None,
        });
        let mut aligned: SmallVec<[AlignedOperand; 3]> = SmallVec::new();
        for value in &values {
            let tensor = match &value.content {
                ValueContent::Tensor(tensor) => tensor.clone(),
                ValueContent::Untyped(constant) => {
                    let dtype = dtype.unwrap_or(constant.dtype_alone());
                    Rc::new(Tensor::splat(&self.shape(&value.dims)?, dtype, *constant)?)
                }
            };
            aligned.push(AlignedOperand(self.align(&value.dims, &tensor, &widest.dims)?));
        }
        let aligned = <[AlignedOperand; N]>::try_from(aligned.into_vec()).map_err(|_| malformed())?;
        Ok((widest.dims.clone(), aligned))
    }

    /// The tensor with dims `from` as one with dims `to`: missing dims repeat it.
    pub(super) fn align(
        &self,
        from: &Dims,
        tensor: &Rc<Tensor>,
        to: &Dims,
    ) -> Result<Rc<Tensor>, Diagnostic> {
        if from == to {
            return Ok(tensor.clone());
        }
        let repeated = |dim: &Dim| self.scaled.iter().any(|s| s.dim == *dim && to.contains(&s.base));
        if from.iter().any(|dim| !to.contains(dim) && repeated(dim)) {
            let (dims, repeated) = self.repeat_blocks(from, tensor, to)?;
            return self.align(&dims, &repeated, to);
        }
        if let Some(&extra) = from.iter().find(|d| !to.contains(d)) {
            let text =
                format!("values with dims {} and {} do not fit together", self.names(from), self.names(to));
            return Err(Diagnostic::invalid(text)
                .note(format!("the one with more dims lacks {}", self.name(extra)), None)
                .help("one of the values must have all the dims of the other"));
        }
        let strides = window::strides(tensor.shape());
        let mut axes = Axes::new();
        for &dim in to {
            let extent = self.extent(dim)?;
            let stride = from.iter().position(|&d| d == dim).map_or(0, |at| strides[at]);
            axes.push(Axis { extent, start: 0, limit: extent, stride });
        }
        Ok(Rc::new(gather(tensor, &axes)?))
    }
}

/// An operand with the dims of its operation's result.
pub(super) struct AlignedOperand(pub(super) Rc<Tensor>);

impl AlignedOperand {
    pub(super) fn data(&self) -> &Data {
        self.0.data()
    }

    /// A tensor of the same shape, with the result of `f` for the elements.
    pub(super) fn map(
        &self,
        f: impl FnOnce(&Data) -> Result<Data, arithmetic::ArithmeticFault>,
    ) -> Result<Tensor, Diagnostic> {
        let data = f(self.data()).map_err(Diagnostic::invalid)?;
        Ok(Tensor::filled(self.0.shape().to_vec(), data))
    }
}
