//! Words that stand for several operations:
//!
//! ```text
//! "%x = apply_expr" expression
//! "%x = register" shape dtype "(" expression ")"
//! "set_symbol" symbol "," value
//! "follow" symbol "," expression "as" shape
//! "%x =" ("argmax" | "argmin" | "any" | "all" | "mean") value "over" (dimension | shape)
//! "%v, %place, .. = topk" value "over" dimension
//! ```
//! The kernel printed has the operations.

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::cursor::Parsed;
use super::parser::Parser;
use super::symbolic::symbol;
use crate::ir::assemble::derived::{DerivedReduction, Deriver};
use crate::ir::assemble::following::FollowingDim;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::layout::Dim;
use crate::ir::node::Origin;
use crate::ir::types::DType;

/// Words of this file that give values.
pub(super) const DERIVED_WORDS: &[&str] = &["apply_expr", "argmax", "argmin", "any", "all", "mean", "topk"];

impl Parser<'_> {
    /// What is derived by `word`, if it is one of those with a single result.
    pub(super) fn derived(&mut self, origin: Origin, word: &str) -> Parsed<Option<Entity>> {
        if word == "apply_expr" {
            return self.applied(|derive, e, values| derive.expression(e, values), origin).map(Some);
        }
        let Some(&(_, op)) = DerivedReduction::WORDS.iter().find(|row| row.0 == word) else {
            return Ok(None);
        };
        let value = self.value()?;
        let dims = self.reduced_dims()?;
        Ok(Some(Deriver::new(&mut self.nodes, origin).reduction(op, value, &dims)))
    }

    /// A register of an expression, after its dtype.
    pub(super) fn register_of(&mut self, origin: Origin, shape: &[Symbol], dtype: DType) -> Parsed<Entity> {
        self.applied(|derive, e, values| derive.register_of(shape, dtype, e, values), origin)
    }

    fn applied(
        &mut self,
        derive: impl FnOnce(&mut Deriver<'_>, &SymExpr, &[Entity]) -> Result<Entity, Diagnostic>,
        origin: Origin,
    ) -> Parsed<Entity> {
        let at = self.cursor.location();
        let mut values: SmallVec<[Entity; 2]> = SmallVec::new();
        let e = self.expression_of_values(&mut values)?;
        let value = derive(&mut Deriver::new(&mut self.nodes, origin), &e, &values);
        value.map_err(|fault| fault.at(Some(at)))
    }

    /// `set_symbol S, %x`.
    pub(super) fn set_symbol(&mut self, origin: Origin) -> Parsed<()> {
        self.cursor.bump();
        let at = self.cursor.location();
        let symbol = symbol(&mut self.cursor, "the symbol to set")?;
        self.cursor.expect(",")?;
        let value = self.value()?;
        match self.nodes.set_symbol(origin, symbol, value).map_err(|fault| fault.at(Some(at)))? {
            Some(node) => self.tag(node),
            None => Ok(()),
        }
    }

    /// `follow KV, H // 4 as [H]`.
    pub(super) fn follow(&mut self, origin: Origin) -> Parsed<()> {
        self.cursor.bump();
        let at = self.cursor.location();
        let symbol = symbol(&mut self.cursor, "the dimension that follows others")?;
        self.cursor.expect(",")?;
        let mut values = SmallVec::new();
        let place = self.expression_of_values(&mut values)?;
        if !self.cursor.take_word("as") {
            let fault = self.cursor.expected("`as` and the dimensions that values have instead");
            return Err(fault.help("write `follow KV, H // 4 as [H]`"));
        }
        let dims = self.shape()?.0.into_iter().collect();
        let following = FollowingDim { symbol, place, values, dims, origin };
        self.nodes.follow(following).map_err(|fault| fault.at(Some(at)))
    }

    /// `topk %x over N`, for so many results: each element and its place.
    pub(super) fn topk(&mut self, origin: Origin, results: usize) -> Parsed<Vec<Entity>> {
        let at = self.cursor.location();
        self.cursor.bump();
        let value = self.value()?;
        if !results.is_multiple_of(2) {
            let fault = Diagnostic::invalid("`topk` gives each element with its place").at(Some(at));
            return Err(fault.help("write `%most, %place, %second, %place_of_second = topk %x over N`"));
        }
        self.over("and a dimension")?;
        let dim = self.dim("the dimension to search")?;
        let found = Deriver::new(&mut self.nodes, origin).topk(value, dim, results as u32 / 2);
        Ok(found.into_iter().flat_map(|(value, place)| [value, place]).collect())
    }

    fn over(&mut self, what: &str) -> Parsed<()> {
        match self.cursor.take_word("over") {
            true => Ok(()),
            false => Err(self.cursor.expected(&format!("`over` {what}"))),
        }
    }

    /// `over N` or `over [M, N]`.
    fn reduced_dims(&mut self) -> Parsed<SmallVec<[Dim; 4]>> {
        self.over("and a dimension")?;
        let mut dims = SmallVec::new();
        if !self.cursor.take("[") {
            dims.push(self.dim("the dimension to reduce")?);
            return Ok(dims);
        }
        loop {
            dims.push(self.dim("a dimension to reduce")?);
            if !self.cursor.take(",") {
                break;
            }
        }
        self.cursor.expect("]")?;
        Ok(dims)
    }
}
