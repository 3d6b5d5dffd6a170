//! Accesses. A read has the type of its memory or, where it turns units, has them along another dimension. A
//! written value has the memory's dtype and all of its dimensions, in any order.
//!
//! With a mapping they have the memory's dtype and any dimensions, there is a coordinate for each dimension
//! of the memory, and further operands are i32 with dimensions among those of the value.
//!
//! Atomic updates have the type of the value, of a dtype for which there is an instruction.

use super::{BrokenRule, TypeFault, TypeRules, TypedNode, WrittenBy, same_dims};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::layout::{Dim, UnitDims};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::{AccessOp, DataMovement};
use crate::ir::types::{AddressSpace, DType};

impl TypeRules<'_> {
    /// The type of the value that is accessed.
    pub(super) fn access(&self, op: AccessOp, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let value = match node.access.mapping {
            Some(mapping) => self.mapped(mapping, node)?,
            None => self.at_own_coordinates(op.movement(), node)?,
        };
        if let DataMovement::Update(op) = op.movement() {
            self.update(op, node)?;
        }
        Ok(value)
    }

    fn at_own_coordinates(&self, movement: DataMovement, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let Some((&memory, values)) = node.operands.split_last() else { return Err(TypeFault::operands()) };
        match movement {
            DataMovement::Load => match node.access.turned {
                Some(turned) => self.turned(turned, memory, node.stated),
                None => Ok(memory.clone()),
            },
            DataMovement::Copy if self.written_by == WrittenBy::Author => {
                let help = "read a shared memory, and compile with loads straight into LDS";
                Err(TypeFault::new(BrokenRule::Operands, "a load to LDS is written".to_owned(), help))
            }
            DataMovement::Copy => Ok(memory.clone()),
            DataMovement::Store | DataMovement::Update(_) => {
                if let (DataMovement::Update(_), true) = (movement, node.access.in_lds) {
                    let text = "an LDS buffer is updated atomically".to_owned();
                    let help = "update a memory, or read and write the buffer";
                    return Err(TypeFault::new(BrokenRule::Dims, text, help));
                }
                values.iter().try_for_each(|value| self.written(value, memory))?;
                values.first().copied().cloned().ok_or_else(TypeFault::operands)
            }
        }
    }

    fn written(&self, value: &ValueType, memory: &ValueType) -> Result<(), TypeFault> {
        let has_same_dims = same_dims(&value.dims, &memory.dims);
        if has_same_dims && value.dtype == memory.dtype {
            return Ok(());
        }
        let text = format!("a value {} is written to a memory {}", self.show(value), self.show(memory));
        let lacks = value.dims.iter().all(|d| memory.dims.contains(d));
        let help = match (has_same_dims, lacks) {
            (true, _) => "cast the value".to_owned(),
            (false, true) => {
                format!("the value needs exactly the memory's dimensions: {}", self.widen(&memory.dims))
            }
            (false, false) => "the value needs exactly the memory's dimensions".to_owned(),
        };
        Err(TypeFault::dims(text, help))
    }

    /// The type of the value of a mapped access.
    fn mapped(&self, mapping: &Mapping, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let Some((&memory, others)) = node.operands.split_last() else { return Err(TypeFault::operands()) };
        let Some((written, others)) = others.split_at_checked(node.op.values_in_front()) else {
            return Err(TypeFault::operands());
        };
        let value = match written.first() {
            Some(&value) => value.clone(),
            None => ValueType { dtype: memory.dtype, ..node.stated.clone() },
        };
        if value.dims.is_empty() {
            let text = format!("a mapped access of a value {}", self.show(&value));
            return Err(TypeFault::dims(text, "the value of a mapped access has at least one dimension"));
        }
        if value.dtype != memory.dtype {
            let text = format!("a value {} is written to a memory {}", self.show(&value), self.show(memory));
            return Err(TypeFault::dtypes(text, "cast the value"));
        }
        if mapping.0.len() != memory.dims.len() {
            let given = match mapping.0.len() {
                1 => "1 coordinate is".to_owned(),
                count => format!("{count} coordinates are"),
            };
            let text = format!("{given} given for a memory {}", self.show(memory));
            let help = "give a coordinate for each dimension of the memory, in its order";
            return Err(TypeFault::dims(text, help));
        }
        others.iter().try_for_each(|other| self.coordinate(other, &value))?;
        Ok(value)
    }

    /// Checks a value that coordinates are made of.
    fn coordinate(&self, part: &ValueType, value: &ValueType) -> Result<(), TypeFault> {
        if part.dtype != Some(DType::I32) {
            let text = format!("a coordinate is made of a value {}", self.show(part));
            return Err(TypeFault::dtypes(text, "values in coordinates are i32: cast it"));
        }
        if part.dims.iter().any(|dim| !value.dims.contains(dim)) {
            let (value, part) = (self.show(value), self.show(part));
            let text = format!("a coordinate of a value {value} is made of a value {part}");
            let help = "values in coordinates have dimensions of the value that is accessed only";
            return Err(TypeFault::dims(text, help));
        }
        Ok(())
    }

    /// Checks the values of an update of a memory, or of a buffer in LDS.
    fn update(&self, op: AtomicOp, node: &TypedNode) -> Result<(), TypeFault> {
        let values = node.operands.get(..op.values()).ok_or_else(TypeFault::operands)?;
        let Some((&value, others)) = values.split_first() else {
            let diagnostic = Diagnostic::bug("an update without value");
            return Err(TypeFault { broken: BrokenRule::Operands, diagnostic });
        };
        if let Some(&other) = others.iter().find(|other| **other != value) {
            let text = format!("an update by values {} and {}", self.show(value), self.show(other));
            return Err(TypeFault::dims(text, "give both one dtype and the same dimensions, in one order"));
        }
        let space = node.access.space();
        let Some(dtype) = value.dtype.filter(|&dtype| !op.admits(dtype, space)) else { return Ok(()) };
        let text = format!("`{}` does not take {}", op.row().word, self.show(value));
        let known: Vec<DType> = op.dtypes(space).collect();
        let known = listed(&known);
        let help = match (space, dtype) {
            (AddressSpace::Global, _) if op.admits(dtype, AddressSpace::Shared) => format!(
                "the chip updates {dtype} in LDS alone: collect in an LDS buffer (`allocate`) what a \
                 workgroup has, or cast the value and the memory to one of {known}"
            ),
            _ => format!(
                "there are instructions for {known}: cast or bitcast the value, and declare the memory so"
            ),
        };
        Err(TypeFault::dtypes(text, help))
    }

    /// The type of a value that has the elements of the memory in units along another dimension.
    fn turned(
        &self,
        turned: &TurnedUnits,
        memory: &ValueType,
        value: &ValueType,
    ) -> Result<ValueType, TypeFault> {
        let TurnedUnits { stored, held, elements, .. } = *turned;
        let counts = |dims: UnitDims| self.dims.scaled_from(dims.units) == Some((dims.elements, elements));
        let of_value = |&dim: &Dim| match dim {
            dim if dim == stored.units => stored.elements,
            dim if dim == held.elements => held.units,
            dim => dim,
        };
        let has_both = memory.dims.contains(&stored.units) && memory.dims.contains(&held.elements);
        let has_words =
            held.words == stored.words && stored.words.is_none_or(|words| memory.dims.contains(&words));
        if !has_both || !has_words || !counts(stored) || !counts(held) {
            let text =
                format!("units of {} are turned into those of {}", self.show(memory), self.show(value));
            return Err(TypeFault::dims(text, "units lie along a dimension of the memory"));
        }
        Ok(ValueType { dims: memory.dims.iter().map(of_value).collect(), dtype: memory.dtype })
    }
}

/// `i32, i64 and f64`.
fn listed(dtypes: &[DType]) -> String {
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}
