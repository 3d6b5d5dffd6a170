//! Reads of memories whose elements share units, as units along another dimension.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::{Tensor, bits_of, count, data_of};
use super::{InterpretedValue, Interpreter, ValueContent};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{TurnedUnits, UnitPart};
use crate::ir::layout::Dim;
use crate::ir::node::*;

impl Interpreter<'_> {
    /// Reads units of a memory, and makes those of the value of them; elements outside of the memory are
    /// zero.
    pub(super) fn read_turned(
        &mut self,
        node: Entity,
        turned: &TurnedUnits,
        from: Entity,
    ) -> Result<(), Diagnostic> {
        self.read(node, from)?;
        let dims = self.get::<ValueType>(node)?.dims.clone();
        let shape = self.shape(&dims)?;
        let read = self.value(node)?;
        let tensor = self.tensor(read)?;
        let units = bits_of(tensor.data());
        let mut made = Vec::with_capacity(count(&shape)?);
        let mut index = vec![0u32; shape.len()];
        for _ in 0..count(&shape)? {
            let coordinate = |dim: Dim| {
                let own = dims.iter().zip(&index).find(|(own, _)| **own == dim);
                own.map_or(0, |(_, &at)| at)
            };
            let stored = |part: &UnitPart| {
                let place = read.dims.iter().zip(tensor.shape()).try_fold(0, |place, (&dim, &extent)| {
                    let at = turned.stored_coordinate(dim, part, coordinate) as usize;
                    (at < extent).then_some(place * extent + at)
                });
                place.and_then(|place| units.get(place).copied()).unwrap_or(0)
            };
            let parts = turned.parts(coordinate);
            made.push(parts.iter().fold(0, |word, part| word | part.of(stored(part))));
            for (own, &extent) in index.iter_mut().zip(&shape).rev() {
                *own += 1;
                if (*own as usize) < extent {
                    break;
                }
                *own = 0;
            }
        }
        let tensor = Tensor::filled(shape, data_of(tensor.dtype(), &made));
        let content = ValueContent::Tensor(Rc::new(tensor));
        let depth = self.loops.len();
        self.values.insert(node, InterpretedValue { dims, content, depth });
        Ok(())
    }
}
