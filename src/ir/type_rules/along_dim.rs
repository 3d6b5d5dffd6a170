//! Reductions, scans and sorts. They run along a dimension of their operand, whose dtypes the row says.
//!
//! A reduction has the other dimensions; if each wave reduces its own part, also the one that counts these
//! parts. A scan has the type of its operand. So has a sort, or places in its stead. Operands beside the
//! first are pieces of the same value, or what comes before it: they have its dtype.

use super::{TypeFault, TypeRules, TypedNode};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::AlongDimOp;
use crate::ir::types::DType;

impl TypeRules<'_> {
    pub(super) fn along_dim(&self, op: AlongDimOp, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let Some((&operand, others)) = node.operands.split_first() else { return Err(TypeFault::operands()) };
        self.admitted(node.op, operand)?;
        if let Some(other) = others.iter().find(|other| other.dtype != operand.dtype) {
            let text = format!("{} and {} are pieces of one value", self.show(operand), self.show(other));
            return Err(TypeFault::dtypes(text, "pieces have one dtype"));
        }
        match op {
            AlongDimOp::Reduce(reduction) => {
                let mut dims = operand.dims.clone();
                dims.retain(|dim| *dim != reduction.dim);
                if dims.len() == operand.dims.len() {
                    return Err(self.without(node, reduction.dim, "reduce along a dimension of the value"));
                }
                dims.extend(reduction.parts);
                Ok(ValueType { dims, dtype: operand.dtype })
            }
            AlongDimOp::Scan(scan) => {
                if !operand.dims.contains(&scan.dim) {
                    return Err(self.without(node, scan.dim, "sum up along a dimension of the value"));
                }
                Ok(operand.clone())
            }
            AlongDimOp::Sort(sort) => {
                if !operand.dims.contains(&sort.dim) {
                    return Err(self.without(node, sort.dim, "sort along a dimension of the value"));
                }
                let dtype = if sort.op.gives_places() { Some(DType::I32) } else { operand.dtype };
                Ok(ValueType { dims: operand.dims.clone(), dtype })
            }
        }
    }

    /// The fault of an operand without the dimension.
    fn without(&self, node: &TypedNode, dim: Dim, help: &str) -> TypeFault {
        let (word, along) = (node.op.row().word, self.dims.name(dim));
        let value = node.operands.first().map_or_else(String::new, |ty| self.show(ty));
        TypeFault::dims(format!("`{word}` runs along {along}, which the value {value} does not have"), help)
    }
}
