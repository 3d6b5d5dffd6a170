//! Logs: what is written to them before a pass has given them types, and what they hold where nothing was
//! written: NaN, or 0 of integers.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::Tensor;
use super::{InterpretedValue, Interpreter, ValueContent, malformed};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::DimTable;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::*;
use crate::ir::types::DType;

/// A log to which nothing has been written yet.
pub(crate) fn unwritten(shape: &[usize], dtype: DType) -> Result<Tensor, Diagnostic> {
    let constant = if dtype.is_float() { Constant::Float(f64::NAN) } else { Constant::Integer(0) };
    Tensor::splat(shape, dtype, constant)
}

/// The coordinate along a dimension of a value, in the value's place of a log with slots.
///
/// # Errors
/// The dimension is a number, which stands for itself in coordinates.
pub(crate) fn own_coordinate(dim: Symbol) -> Result<SymExpr, Diagnostic> {
    match dim.value() {
        None => Ok(dim.into()),
        Some(1) => Ok(SymExpr::from(0)),
        Some(number) => {
            let text = format!("a log with slots has a value with the dimension {number}");
            Err(Diagnostic::invalid(text).help("give the dimension a name, and bind it to the number"))
        }
    }
}

impl Interpreter<'_> {
    /// Whether a memory is a log whose type is that of what is written to it.
    pub(super) fn is_untyped_log(&self, memory: Entity) -> bool {
        let dtype = self.world.get::<ValueType>(memory).and_then(|ty| ty.dtype);
        dtype.is_none() && self.world.get::<DebugLog>(memory).is_some()
    }

    /// A write of `value` to a log, at the coordinates of its slot; `values` are the operands of these.
    pub(super) fn log(
        &mut self,
        slot: Option<&Mapping>,
        value: Entity,
        values: &[Entity],
        log: Entity,
    ) -> Result<(), Diagnostic> {
        let value = self.value(value)?;
        let tensor = self.tensor(value)?.clone();
        let mut dims = value.dims.clone();
        let table = self.get::<DimTable>(self.root)?;
        if dims.is_empty() {
            dims.push(table.find(1u32.into()).ok_or_else(malformed)?);
        }
        let slots = self.get::<ValueType>(log)?.dims.clone();
        if slot.map_or(0, |slot| slot.0.len()) != slots.len() {
            return Err(Diagnostic::invalid(
                "a log without slots is written without coordinates, and one with \
                                            slots at the number of its slot",
            ));
        }
        if !self.memories.contains_key(&log) {
            let all: Dims = slots.iter().chain(&dims).copied().collect();
            let shape = all.iter().map(|&dim| self.size(dim)).collect::<Result<Vec<_>, _>>()?;
            let content = ValueContent::Tensor(Rc::new(unwritten(&shape, tensor.dtype())?));
            self.memories.insert(log, InterpretedValue { dims: all, content, depth: 0 });
        }
        let tensor = Rc::new(Tensor::filled(self.shape(&dims)?, tensor.data().clone()));
        let Some(slot) = slot.filter(|_| !slots.is_empty()) else {
            return self.write_tensor((&dims, &tensor), log);
        };
        let mut coordinates = slot.0.clone();
        for dim in self.memory(log)?.dims[slots.len()..].iter() {
            coordinates.push(own_coordinate(*table.0.get(*dim).ok_or_else(malformed)?)?);
        }
        self.write_elements(&Mapping(coordinates), (&dims, &tensor), values, log)
    }
}
