//! The rules of types: for each operation the type of its result, or what is wrong with those of its
//! operands. Inference sets what they give, and the verifier compares with it.
//!
//! Element-wise operations are typed by their rows ([`ResultType`](super::op::ResultType)); the rest has a
//! rule for each family: `element_wise`, [`contraction`], `along_dim` (reductions, scans and sorts),
//! `accesses` and `regions`. `rules` has what they share.
// A new operation has to be considered wherever operations are distinguished.
#![deny(clippy::wildcard_enum_match_arm)]

mod accesses;
mod along_dim;
pub(crate) mod contraction;
mod element_wise;
mod regions;
mod rules;

use super::node::*;
use super::op::{ConstantOp, OpFamily, OrderOp};
use super::types::DType;
pub(crate) use rules::{BrokenRule, TypeFault, TypeRules, TypedAccess, TypedNode, WrittenBy, same_dims};

impl TypeRules<'_> {
    /// The type of what a node computes, reads or writes; `None` for one that does neither.
    ///
    /// # Errors
    /// Types that do not fit together.
    pub(crate) fn result(&self, node: &TypedNode) -> Result<Option<ValueType>, TypeFault> {
        let row = node.op.row();
        if node.access.mapping.is_none() && row.takes.is_some_and(|takes| takes.len() != node.operands.len())
        {
            return Err(TypeFault::operands());
        }
        match node.op.family() {
            OpFamily::Declaration(_) => Ok(Some(node.stated.clone())),
            OpFamily::Constant(op) => self.constant(op, node.stated).map(Some),
            OpFamily::Access(op) => self.access(op, node).map(Some),
            OpFamily::ElementWise(op) => self.element_wise(op, node).map(Some),
            OpFamily::Rearrangement(_) => self.rearranged(node).map(Some),
            OpFamily::Contraction(_) => self.sum(node).map(Some),
            OpFamily::AlongDim(op) => self.along_dim(op, node).map(Some),
            OpFamily::Carried(_) => Ok(node.operands.first().copied().cloned()),
            OpFamily::Order(OrderOp::SetSymbol(symbol)) => self.set_symbol(symbol, node).map(|()| None),
            OpFamily::Order(OrderOp::Barrier | OrderOp::Control(_)) | OpFamily::Region(_) => Ok(None),
        }
    }

    /// The type of a value without operands. A constant has the one that it states, and is a number that its
    /// dtype holds.
    fn constant(&self, op: ConstantOp, stated: &ValueType) -> Result<ValueType, TypeFault> {
        let dims = match op {
            ConstantOp::Register(constant) => {
                if let Some(dtype) = stated.dtype {
                    self.holds(dtype, constant)?;
                }
                return Ok(stated.clone());
            }
            ConstantOp::SelfIndex(dim) => Dims::from_slice(&[dim]),
            ConstantOp::Size(_) | ConstantOp::WorkgroupId(_) | ConstantOp::Iteration(_) => Dims::new(),
        };
        Ok(ValueType { dims, dtype: Some(DType::I32) })
    }
}
