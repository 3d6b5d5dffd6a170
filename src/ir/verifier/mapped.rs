//! Mapped accesses: what their operands are, and whether their types agree.

use smallvec::SmallVec;

use crate::ir::mapping::Mapping;
use crate::ir::mapping_types::{AccessTypes, MappingFault};
use crate::ir::node::*;
use crate::ir::op::NodeRole;

/// What the operands of a mapped access are: values, and what is accessed.
pub(super) fn roles(operands: &Operands, accessed: NodeRole) -> SmallVec<[NodeRole; 4]> {
    let mut roles = SmallVec::from_elem(NodeRole::Value, operands.0.len());
    match roles.last_mut() {
        Some(last) => *last = accessed,
        None => roles.push(accessed),
    }
    roles
}

/// What is wrong with the types of a mapped access whose operands have `types`; `ty` is the type of its
/// result.
pub(super) fn disagreement(
    op: Op,
    ty: &ValueType,
    mapping: &Mapping,
    types: &[&ValueType],
    show: &dyn Fn(&ValueType) -> String,
) -> Option<String> {
    types.first()?;
    let Some(access) = AccessTypes::of(op, types) else { return Some("has too few operands".to_owned()) };
    let (memory, value) = (access.memory, access.written.first().copied().unwrap_or(ty));
    if let Some(other) = access.written.iter().find(|written| **written != value) {
        return Some(format!("takes {} beside {}", show(other), show(value)));
    }
    Some(match access.fault(value, mapping)? {
        MappingFault::NoDims | MappingFault::Dtype => {
            format!("maps {} to a memory that is {}", show(value), show(memory))
        }
        MappingFault::Count => {
            let (count, dims) = (mapping.0.len(), memory.dims.len());
            format!("has {count} coordinates for a memory of {dims} dimensions")
        }
        MappingFault::OperandDtype(wrong) | MappingFault::OperandDims(wrong) => {
            format!("has a coordinate of {} for a value {}", show(wrong), show(value))
        }
    })
}
