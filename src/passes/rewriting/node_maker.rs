//! Arithmetic that passes add: nodes that all have the dimensions of one value, and coordinates as values.

use bevy_ecs::prelude::*;
use smallvec::smallvec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::operand_number;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::kernel_editor::KernelEditor;

/// Makes nodes at the place where an editor is.
pub(super) struct NodeMaker<'e, 'w> {
    pub(super) editor: &'e mut KernelEditor<'w>,
    /// What all results have.
    pub(super) dims: Dims,
    /// The values that coordinates are made of.
    pub(super) values: &'e [Entity],
}

impl<'w> KernelEditor<'w> {
    /// A maker of nodes with some dimensions.
    pub(super) fn maker(&mut self, dims: &Dims) -> NodeMaker<'_, 'w> {
        NodeMaker { editor: self, dims: dims.clone(), values: &[] }
    }

    /// A maker of nodes with the dimensions of a value.
    ///
    /// # Errors
    /// If it is not a node.
    pub(super) fn maker_like(&mut self, value: Entity) -> Result<NodeMaker<'_, 'w>, Bug> {
        let dims = self.dims(value)?;
        Ok(NodeMaker { editor: self, dims, values: &[] })
    }
}

impl NodeMaker<'_, '_> {
    /// A node of any type.
    pub(super) fn spawn(&mut self, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        self.editor.add(op, operands, ty, ())
    }

    /// A node with the dimensions of all.
    pub(super) fn made(&mut self, op: Op, operands: &[Entity], dtype: DType) -> Entity {
        let ty = ValueType { dims: self.dims.clone(), dtype: Some(dtype) };
        self.spawn(op, operands, ty)
    }

    /// A number everywhere.
    pub(super) fn number(&mut self, constant: impl Into<Constant>, dtype: DType) -> Entity {
        self.made(Op::Register(constant.into()), &[], dtype)
    }

    /// Arithmetic on two values.
    pub(super) fn binary(&mut self, op: BinaryOp, one: Entity, other: Entity, dtype: DType) -> Entity {
        self.made(Op::Binary(op), &[one, other], dtype)
    }

    /// Arithmetic on a value and a number.
    pub(super) fn with(
        &mut self,
        op: BinaryOp,
        value: Entity,
        number: impl Into<Constant>,
        dtype: DType,
    ) -> Entity {
        let number = self.number(number, dtype);
        self.binary(op, value, number, dtype)
    }

    /// Another dtype.
    pub(super) fn converted(&mut self, conversion: Conversion, value: Entity, dtype: DType) -> Entity {
        self.made(Op::Convert(conversion), &[value], dtype)
    }

    pub(super) fn compare(&mut self, predicate: Predicate, one: Entity, other: Entity) -> Entity {
        self.made(Op::Compare(predicate), &[one, other], DType::I1)
    }

    /// An i32 value of some of the dimensions, repeated along the others.
    fn repeated(&mut self, value: Entity, own: &[Dim]) -> Entity {
        match *own == self.dims[..] {
            true => value,
            false => self.made(Op::Broadcast, &[value], DType::I32),
        }
    }

    /// The size of a dimension.
    pub(super) fn size(&mut self, dim: Dim) -> Entity {
        let ty = ValueType { dims: Dims::new(), dtype: Some(DType::I32) };
        let size = self.spawn(Op::Size(dim), &[], ty);
        self.repeated(size, &[])
    }

    /// The place of each element along a dimension.
    pub(super) fn index(&mut self, dim: Dim) -> Entity {
        let ty = ValueType { dims: smallvec![dim], dtype: Some(DType::I32) };
        let index = self.spawn(Op::SelfIndex(dim), &[], ty);
        self.repeated(index, &[dim])
    }

    /// A coordinate as a value.
    pub(super) fn value_of(&mut self, e: &SymExpr) -> Result<Entity, Diagnostic> {
        let of_pair = match e.node() {
            SymNode::Int(value) => {
                let value =
                    i64::try_from(*value).map_err(|_| Diagnostic::bug("a coordinate beyond 64 bits"))?;
                return Ok(self.number(value, DType::I32));
            }
            SymNode::Symbol(symbol) => return self.value_of_symbol(*symbol),
            SymNode::TooDeep => return Err(Diagnostic::bug("a coordinate that is too deep")),
            SymNode::Operation(op, a, b) => (*op, self.value_of(a)?, self.value_of(b)?),
        };
        let (op, a, b) = of_pair;
        let op = match op {
            SymOp::Add => BinaryOp::Add,
            SymOp::Sub => BinaryOp::Sub,
            SymOp::Mul => BinaryOp::Mul,
            SymOp::FloorDiv => BinaryOp::FloorDiv,
            SymOp::Mod => BinaryOp::Rem,
            SymOp::Min => BinaryOp::Min,
            SymOp::Max => BinaryOp::Max,
            // The negative quotient, rounded down, of the negative dividend.
            SymOp::CeilDiv => {
                let negative = self.made(Op::Unary(UnaryOp::Neg), &[a], DType::I32);
                let down = self.binary(BinaryOp::FloorDiv, negative, b, DType::I32);
                return Ok(self.made(Op::Unary(UnaryOp::Neg), &[down], DType::I32));
            }
        };
        Ok(self.binary(op, a, b, DType::I32))
    }

    fn value_of_symbol(&mut self, symbol: Symbol) -> Result<Entity, Diagnostic> {
        if let Some(number) = operand_number(symbol) {
            let value = self.values.get(number).copied();
            let value = value.ok_or_else(|| Diagnostic::bug("a coordinate of a value that is not there"))?;
            let own = self.editor.dims(value)?;
            return Ok(self.repeated(value, &own));
        }
        if let Some(value) = symbol.value() {
            return Ok(self.number(value, DType::I32));
        }
        let dim = self
            .editor
            .kernel::<DimTable>()?
            .find(symbol)
            .ok_or_else(|| Diagnostic::bug("a coordinate of an unknown size"))?;
        Ok(if self.dims.contains(&dim) { self.index(dim) } else { self.size(dim) })
    }
}
