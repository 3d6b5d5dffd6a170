//! Mapped accesses: what their operands are, and whether their types agree.

use smallvec::SmallVec;

use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::NodeRole;
use crate::ir::types::DType;

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
    let (&memory, others) = types.split_last()?;
    let Some((written, others)) = others.split_at_checked(op.values_in_front()) else {
        return Some("has too few operands".to_owned());
    };
    let value = written.first().copied().unwrap_or(ty);
    if let Some(other) = written.iter().find(|written| **written != value) {
        return Some(format!("takes {} beside {}", show(other), show(value)));
    }
    if value.dtype != memory.dtype || value.dims.is_empty() {
        return Some(format!("maps {} to a memory that is {}", show(value), show(memory)));
    }
    if mapping.0.len() != memory.dims.len() {
        let (count, dims) = (mapping.0.len(), memory.dims.len());
        return Some(format!("has {count} coordinates for a memory of {dims} dimensions"));
    }
    let fits = |other: &&&ValueType| {
        other.dtype == Some(DType::I32) && other.dims.iter().all(|dim| value.dims.contains(dim))
    };
    let wrong = others.iter().find(|other| !fits(other))?;
    Some(format!("has a coordinate of {} for a value {}", show(wrong), show(value)))
}
