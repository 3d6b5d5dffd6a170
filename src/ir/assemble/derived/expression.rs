//! Values of expressions, and the symbols in them: sizes, places in the grid, and those that an author set to
//! values.

use bevy_ecs::prelude::Entity;
use smallvec::{SmallVec, smallvec};

use super::Deriver;
use crate::ir::assemble::check_register;
use crate::ir::constraint::{Constraint, GridSymbol};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::mapping::{Mapping, check_expression, is_value, operand_number, operand_symbol};
use crate::ir::node::*;
use crate::ir::types::DType;

impl Deriver<'_> {
    /// The value of an expression in which `values` stand as operand symbols.
    ///
    /// # Errors
    /// Too many operations, and symbols that stand for nothing.
    pub(in crate::ir) fn expression(&mut self, e: &SymExpr, values: &[Entity]) -> Result<Entity, Diagnostic> {
        check_expression(e, values.len(), "an expression")?;
        if let Some(value) = literal(e) {
            let constant = Constant::Integer(value);
            check_register(constant, DType::I32)?;
            return Ok(self.push_typed(Op::Register(constant), &[], Dims::new(), DType::I32));
        }
        self.part(e, values)
    }

    /// A value of a shape and a dtype whose elements are all the value of an expression.
    ///
    /// # Errors
    /// As of [`Deriver::expression`], and shapes and dtypes that no register has.
    pub(in crate::ir) fn register_of(
        &mut self,
        shape: &[Symbol],
        dtype: DType,
        e: &SymExpr,
        values: &[Entity],
    ) -> Result<Entity, Diagnostic> {
        let dims = self.nodes.dims(shape)?;
        check_register(Constant::Integer(0).read_as(dtype), dtype)?;
        if let Some(value) = literal(e) {
            let constant = Constant::Integer(value).read_as(dtype);
            check_register(constant, dtype)?;
            return Ok(self.push_typed(Op::Register(constant), &[], dims, dtype));
        }
        let mut value = self.expression(e, values)?;
        if dtype != DType::I32 {
            value = self.cast(value, dtype);
        }
        if !dims.is_empty() {
            value = self.broadcast(value, &dims);
        }
        Ok(value)
    }

    fn part(&mut self, e: &SymExpr, values: &[Entity]) -> Result<Entity, Diagnostic> {
        if let Some(value) = literal(e) {
            return Ok(self.integer(value));
        }
        let (op, a, b) = match e.node() {
            SymNode::Symbol(symbol) => return self.symbol(*symbol, values),
            SymNode::Operation(op, a, b) => (*op, self.part(a, values)?, self.part(b, values)?),
            SymNode::Int(_) | SymNode::TooDeep => {
                return Err(Diagnostic::invalid(
                    "an expression has a number beyond 64 bits, or nests too deeply",
                ));
            }
        };
        Ok(match op {
            SymOp::Add => self.binary(BinaryOp::Add, a, b),
            SymOp::Sub => self.binary(BinaryOp::Sub, a, b),
            SymOp::Mul => self.binary(BinaryOp::Mul, a, b),
            SymOp::FloorDiv => self.binary(BinaryOp::FloorDiv, a, b),
            SymOp::Mod => self.binary(BinaryOp::Rem, a, b),
            SymOp::Min => self.binary(BinaryOp::Min, a, b),
            SymOp::Max => self.binary(BinaryOp::Max, a, b),
            SymOp::CeilDiv => {
                // The quotient rounded up is that of the negated dividend, negated.
                let zero = self.integer(0);
                let negative = self.binary(BinaryOp::Sub, zero, a);
                let quotient = self.binary(BinaryOp::FloorDiv, negative, b);
                let zero = self.integer(0);
                self.binary(BinaryOp::Sub, zero, quotient)
            }
        })
    }

    fn symbol(&mut self, symbol: Symbol, values: &[Entity]) -> Result<Entity, Diagnostic> {
        if is_value(symbol) {
            let value = operand_number(symbol).and_then(|number| values.get(number)).copied();
            return value.ok_or_else(|| Diagnostic::bug("an expression of a value that is not there"));
        }
        match self.special(symbol)? {
            Some(value) => Ok(value),
            None => {
                let dim = self.nodes.dim(symbol)?;
                Ok(self.size(dim))
            }
        }
    }

    /// What a symbol stands for that is not a size: what it was set to, or a number of the grid.
    fn special(&mut self, symbol: Symbol) -> Result<Option<Entity>, Diagnostic> {
        if let Some(value) = self.nodes.symbol_value(symbol)? {
            return Ok(Some(value));
        }
        match GridSymbol::of(symbol).filter(|_| !self.nodes.is_dim(symbol)) {
            None => Ok(None),
            Some(GridSymbol::Workgroup(axis)) => {
                Ok(Some(self.push_typed(Op::WorkgroupId(axis), &[], Dims::new(), DType::I32)))
            }
            Some(GridSymbol::Size(axis)) => self.grid_size(axis).map(Some),
        }
    }

    /// Workgroups along an axis of the grid: tiles of the dimension that is spread over it.
    fn grid_size(&mut self, axis: u32) -> Result<Entity, Diagnostic> {
        let tiles = self.nodes.constraints().iter().find_map(|(constraint, _)| match constraint {
            Constraint::Workgroup { dim, tile, axis: own } if *own == axis => {
                Some(dim.clone().ceil_div(tile))
            }
            _ => None,
        });
        let none = || {
            Diagnostic::invalid(format!("no dimension is spread over axis {axis} of the grid so far"))
                .help(format!("state the `workgroup` constraint of axis {axis} above this"))
        };
        let tiles = tiles.ok_or_else(none)?;
        self.expression(&tiles, &[])
    }

    /// The coordinates of an access with what stands for values in place of symbols that do; these values
    /// become further ones of `values`.
    ///
    /// # Errors
    /// Symbols that stand for nothing.
    pub(in crate::ir) fn coordinates(
        &mut self,
        mapping: Mapping,
        values: &mut SmallVec<[Entity; 2]>,
    ) -> Result<Mapping, Diagnostic> {
        let mut found: SmallVec<[Symbol; 4]> = smallvec![];
        mapping.visit(&mut |symbol| {
            if !is_value(symbol) && !found.contains(&symbol) {
                found.push(symbol);
            }
        });
        let mut replacements: SmallVec<[(Symbol, SymExpr); 2]> = smallvec![];
        for symbol in found {
            if let Some(following) = self.nodes.following(symbol) {
                let text = format!("a coordinate is {symbol}, which follows others");
                let place = &following.place;
                return Err(Diagnostic::invalid(text).help(match following.values.is_empty() {
                    true => format!("write its place, `{place}`"),
                    false => "leave the coordinates out, and its place is taken".to_owned(),
                }));
            }
            if let Some(value) = self.special(symbol)? {
                let number = values.iter().position(|&known| known == value).unwrap_or_else(|| {
                    values.push(value);
                    values.len() - 1
                });
                replacements.push((symbol, operand_symbol(number).into()));
            }
        }
        match replacements.is_empty() {
            true => Ok(mapping),
            false => {
                Ok(mapping
                    .replaced(&|symbol| replacements.iter().find(|r| r.0 == symbol).map(|r| r.1.clone())))
            }
        }
    }
}

/// The number that an expression without symbols is.
fn literal(e: &SymExpr) -> Option<i64> {
    e.value(&|_| None)
}
