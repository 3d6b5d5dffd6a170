//! Dimensions that have an element for each block of another one: loops over that one take their part of
//! them, and values along them are repeated along that one.

use std::rc::Rc;

use super::tensor::{Tensor, TensorElement, count, for_each_dtype};
use super::{Interpreter, Loop};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::ScaledDim;
use crate::ir::layout::Dim;
use crate::ir::node::Dims;

impl Interpreter<'_> {
    pub(super) fn is_scaled(&self, dim: Dim) -> bool {
        self.scaled.iter().any(|scaled| scaled.dim == dim)
    }

    /// Enters an iteration over `dim`: it takes a tile of the dimension, and of those that follow it.
    pub(super) fn enter(&mut self, dim: Dim, start: usize, tile: usize) -> Result<(), Diagnostic> {
        self.loops.push(Loop { dim, start, tile });
        for follows in self.scaled.iter().filter(|scaled| scaled.base == dim) {
            let by = follows.by as usize;
            if !tile.is_multiple_of(by) {
                let (name, base) = (self.name(follows.dim), self.name(dim));
                let text = format!("a tile of {tile} elements of {base} does not hold whole blocks of {by}");
                return Err(Diagnostic::invalid(text)
                    .note(format!("{name} counts the blocks"), None)
                    .help(format!("use tiles of {base} that are multiples of {by}")));
            }
            self.loops.push(Loop { dim: follows.dim, start: start / by, tile: tile / by });
        }
        Ok(())
    }

    /// A value along dimensions that follow others as one along these, if `to` has them: each of its elements
    /// is repeated for the elements of its block.
    pub(super) fn repeat_blocks(
        &self,
        from: &Dims,
        tensor: &Rc<Tensor>,
        to: &Dims,
    ) -> Result<(Dims, Rc<Tensor>), Diagnostic> {
        let (mut dims, mut repeated) = (from.clone(), tensor.clone());
        for &ScaledDim { dim, base, by } in &self.scaled {
            let Some(at) = dims.iter().position(|&own| own == dim).filter(|_| to.contains(&base)) else {
                continue;
            };
            dims[at] = base;
            let shape = self.shape(&dims)?;
            count(&shape)?;
            let (inner, blocks) = (shape[at + 1..].iter().product(), repeated.shape()[at]);
            let data = for_each_dtype!(repeated.data(), v => {
                TensorElement::into_data(repeated_blocks(v, [blocks, shape[at], inner], by as usize))
            });
            repeated = Rc::new(Tensor::filled(shape, data));
        }
        Ok((dims, repeated))
    }
}

/// Repeats the elements of a tensor of rows of `blocks` times `inner` elements along the first of the two,
/// `by` times each, as far as to `size`.
fn repeated_blocks<T: Copy>(tensor: &[T], [blocks, size, inner]: [usize; 3], by: usize) -> Vec<T> {
    let rows = tensor.chunks_exact((blocks * inner).max(1));
    let block = |row: &[T], at: usize| row[at / by * inner..][..inner].to_vec();
    rows.flat_map(|row| (0..size).flat_map(move |at| block(row, at))).collect()
}
