//! Types of accesses at coordinates: which of them go together. Passes ask it of what an author wrote, and
//! the verifier of what passes have made.

use super::mapping::Mapping;
use super::node::*;
use super::types::DType;

/// The types of the operands of an access at coordinates, and of its value.
pub(crate) struct AccessTypes<'a> {
    /// Of what is accessed.
    pub memory: &'a ValueType,
    /// Of the values that are written.
    pub written: &'a [&'a ValueType],
    /// Of the operands of the mapping.
    pub operands: &'a [&'a ValueType],
}

/// A rule that such types break.
#[derive(Copy, Clone, Debug)]
pub(crate) enum MappingFault<'a> {
    /// The value has no dimensions.
    NoDims,
    /// The memory has another dtype than the value.
    Dtype,
    /// There are more or fewer coordinates than dimensions of the memory.
    Count,
    /// An operand of the mapping is not i32.
    OperandDtype(&'a ValueType),
    /// An operand of the mapping has a dimension that the value does not have.
    OperandDims(&'a ValueType),
}

impl<'a> AccessTypes<'a> {
    /// Those of an access by the types of all of its operands, if it has enough of them.
    pub(crate) fn of(op: Op, types: &'a [&'a ValueType]) -> Option<AccessTypes<'a>> {
        let (&memory, others) = types.split_last()?;
        let (written, operands) = others.split_at_checked(op.values_in_front())?;
        Some(AccessTypes { memory, written, operands })
    }

    /// The first rule that they break, for a value of this type.
    pub(crate) fn fault(&self, value: &ValueType, mapping: &Mapping) -> Option<MappingFault<'a>> {
        if value.dims.is_empty() {
            return Some(MappingFault::NoDims);
        }
        if value.dtype != self.memory.dtype {
            return Some(MappingFault::Dtype);
        }
        if mapping.0.len() != self.memory.dims.len() {
            return Some(MappingFault::Count);
        }
        self.operands.iter().find_map(|&operand| {
            if operand.dtype != Some(DType::I32) {
                return Some(MappingFault::OperandDtype(operand));
            }
            let is_foreign = operand.dims.iter().any(|dim| !value.dims.contains(dim));
            is_foreign.then_some(MappingFault::OperandDims(operand))
        })
    }
}
