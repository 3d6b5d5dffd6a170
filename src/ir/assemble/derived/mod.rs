//! What authors say in one word and what is made of several operations: tracing and the text reader derive
//! the same nodes for it, so that no later part of the compiler knows of it.
//!
//! - `expression`: values of expressions over symbols and values, and symbols that stand for values;
//! - `reductions`: places of extrema, largest elements, conditions on all elements, means.
//!
//! To add such a word, add a function of `Deriver`, which appends the nodes for the author's line, a method
//! of `Value` or `Tracer` that calls it, and its word in `ir/text/derived`. Printed text has the operations.

mod expression;
mod reductions;

use bevy_ecs::prelude::Entity;
use smallvec::smallvec;

use super::KernelAssembler;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::types::DType;

pub(in crate::ir) use reductions::DerivedReduction;

/// Appends the nodes that stand for one thing that the author says at one place.
pub(in crate::ir) struct Deriver<'k> {
    nodes: &'k mut KernelAssembler,
    origin: Origin,
}

impl<'k> Deriver<'k> {
    pub(in crate::ir) fn new(nodes: &'k mut KernelAssembler, origin: Origin) -> Deriver<'k> {
        Deriver { nodes, origin }
    }

    fn push(&mut self, op: Op, operands: &[Entity]) -> Entity {
        self.nodes.push(self.origin, op, operands, ValueType::unknown())
    }

    fn push_typed(&mut self, op: Op, operands: &[Entity], dims: Dims, dtype: DType) -> Entity {
        self.nodes.push(self.origin, op, operands, ValueType { dims, dtype: Some(dtype) })
    }

    /// A number, which takes the dtype of the value beside it.
    fn number(&mut self, constant: Constant) -> Entity {
        self.push(Op::Register(constant), &[])
    }

    fn integer(&mut self, value: i64) -> Entity {
        self.number(Constant::Integer(value))
    }

    fn binary(&mut self, op: BinaryOp, left: Entity, right: Entity) -> Entity {
        self.push(Op::Binary(op), &[left, right])
    }

    fn compare(&mut self, predicate: Predicate, left: Entity, right: Entity) -> Entity {
        self.push(Op::Compare(predicate), &[left, right])
    }

    fn select(&mut self, condition: Entity, yes: Entity, no: Entity) -> Entity {
        self.push(Op::Select, &[condition, yes, no])
    }

    fn reduce(&mut self, op: ReductionOp, value: Entity, dims: &[Dim]) -> Entity {
        dims.iter()
            .fold(value, |value, &dim| self.push(Op::Reduce(Reduction { op, dim, parts: None }), &[value]))
    }

    /// The element of a value along a dimension of one.
    ///
    /// # Errors
    /// Too many dimensions.
    pub(in crate::ir) fn only_element(&mut self, value: Entity) -> Result<Entity, Diagnostic> {
        let one = self.nodes.dim(Symbol::from(1u32))?;
        Ok(self.reduce(ReductionOp::Max, value, &[one]))
    }

    fn cast(&mut self, value: Entity, dtype: DType) -> Entity {
        let ty = ValueType { dims: Dims::new(), dtype: Some(dtype) };
        self.nodes.push(self.origin, Op::Convert(Conversion::Cast), &[value], ty)
    }

    fn broadcast(&mut self, value: Entity, dims: &[Dim]) -> Entity {
        let ty = ValueType { dims: Dims::from_slice(dims), dtype: None };
        self.nodes.push(self.origin, Op::Broadcast, &[value], ty)
    }

    fn size(&mut self, dim: Dim) -> Entity {
        self.push_typed(Op::Size(dim), &[], Dims::new(), DType::I32)
    }

    fn self_index(&mut self, dim: Dim) -> Entity {
        self.push_typed(Op::SelfIndex(dim), &[], smallvec![dim], DType::I32)
    }
}
