//! Tensors whose elements share bytes or words: as these, and as elements again.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::Tensor;
use super::{Interpreter, ValueContent};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::PackedElements;
use crate::ir::node::Dims;
use crate::ir::types::DType;

impl Interpreter<'_> {
    /// A bitcast between bytes and the elements in them; `None` of other dtypes.
    pub(super) fn repacked(&self, value: Entity, to: DType) -> Result<Option<(Dims, Tensor)>, Diagnostic> {
        let value = self.value(value)?;
        let ValueContent::Tensor(tensor) = &value.content else { return Ok(None) };
        match (tensor.dtype(), to) {
            (DType::I8, DType::F4E2M1) | (DType::F4E2M1, DType::I8) => {}
            _ => return Ok(None),
        }
        let dims = self.repacked_dims(&value.dims, tensor.dtype())?;
        let shape = dims.iter().map(|&dim| self.extent(dim)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some((dims, Tensor::from_bytes(&shape, to, &tensor.to_bytes())?)))
    }

    /// The last of the dimensions is that of bytes, or that of their elements.
    fn repacked_dims(&self, dims: &Dims, from: DType) -> Result<Dims, Diagnostic> {
        let wrong = || {
            Diagnostic::invalid(format!("a bitcast of a value {} that is {from}", self.names(dims)))
                .help("elements of f4e2m1 along K are two in a byte along K/2, the last dimension")
        };
        let mut dims = dims.clone();
        let last = dims.pop().ok_or_else(wrong)?;
        let mut pairs = self.scaled.iter().filter(|scaled| scaled.by == 2);
        dims.push(match from {
            DType::I8 => pairs.find(|scaled| scaled.dim == last).ok_or_else(wrong)?.base,
            _ => pairs.find(|scaled| scaled.base == last).ok_or_else(wrong)?.dim,
        });
        Ok(dims)
    }
}

/// What the memory `node` holds where its argument is `given`.
pub(super) fn stored(world: &World, node: Entity, given: Tensor) -> Result<Tensor, Diagnostic> {
    let packing = given.dtype().packing().filter(|_| world.get::<PackedElements>(node).is_some());
    let Some(packing) = packing else { return Ok(given) };
    let mut shape = given.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = last.div_ceil(packing.elements as usize);
    }
    if packing.words > 1 {
        shape.push(packing.words as usize);
    }
    Tensor::from_bytes(&shape, packing.word, &given.to_bytes())
}

/// What the argument of a memory is that holds `stored`; `given` is the shape and the dtype of the argument.
pub(super) fn shown(
    stored: &Rc<Tensor>,
    (shape, dtype): &(Vec<usize>, DType),
) -> Result<Rc<Tensor>, Diagnostic> {
    match stored.dtype() == *dtype {
        true => Ok(stored.clone()),
        false => Tensor::from_bytes(shape, *dtype, &stored.to_bytes()).map(Rc::new),
    }
}
