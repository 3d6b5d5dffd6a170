//! Mapped accesses in the text: `at [...]` after the memory, and the dimensions of a read's value.
//!
//! ```text
//! mapping = "at" "[" [expression {"," expression}] "]"
//! read    = "read" memory mapping "as" shape
//! write   = "write" value "," memory mapping
//! flags   = {"volatile" | "non_temporal"}, after the memory and the mapping of either
//! ```
//! An expression names dimensions and sizes by their symbols, and further operands as values: `%x`, or the
//! name of a scalar.

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::cursor::Parsed;
use super::lex::Token;
use super::parser::Parser;
use super::scope::NameMeaning;
use super::symbolic::{dimension, expr_of_values};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::assemble::derived::Deriver;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::mapping::{Mapping, is_value, operand_symbol};
use crate::ir::node::*;

/// A mapping and the values that its expressions use.
pub(super) struct ParsedMapping {
    pub(super) mapping: Mapping,
    values: SmallVec<[Entity; 2]>,
}

impl ParsedMapping {
    /// The operands of the access: those in front, the values of the mapping, the memory.
    pub(super) fn operands_of(&self, front: &[Entity], memory: Entity) -> Vec<Entity> {
        front.iter().chain(&self.values).copied().chain([memory]).collect()
    }
}

impl Parser<'_> {
    /// `at [...]`, if it comes next.
    pub(super) fn mapping(&mut self, origin: Origin) -> Parsed<Option<ParsedMapping>> {
        if !self.cursor.take_word("at") {
            return Ok(None);
        }
        let start = self.cursor.location();
        self.cursor.expect("[")?;
        let mut coordinates: SmallVec<[SymExpr; 4]> = SmallVec::new();
        let mut values: SmallVec<[Entity; 2]> = SmallVec::new();
        // A value without dimensions has no coordinates.
        let mut is_open = !self.cursor.take("]");
        while is_open {
            coordinates.push(self.expression_of_values(&mut values)?);
            is_open = self.cursor.take(",");
            if !is_open {
                self.cursor.expect("]")?;
            }
        }
        let mapping = Mapping(coordinates).checked(values.len());
        let mapping = mapping
            .and_then(|mapping| Deriver::new(&mut self.nodes, origin).coordinates(mapping, &mut values));
        Ok(Some(ParsedMapping { mapping: mapping.map_err(|fault| fault.at(Some(start)))?, values }))
    }

    /// An expression; the values that it speaks of are numbered as in `values`, which get those that are
    /// missing.
    pub(super) fn expression_of_values(&mut self, values: &mut SmallVec<[Entity; 2]>) -> Parsed<SymExpr> {
        let at = self.cursor.location();
        let written = expr_of_values(&mut self.cursor)?;
        let mut names: SmallVec<[(Symbol, SymExpr); 2]> = SmallVec::new();
        let mut used: SmallVec<[Symbol; 4]> = SmallVec::new();
        written.visit(&mut |symbol| {
            if !used.contains(&symbol) {
                used.push(symbol);
            }
        });
        for symbol in used {
            let scalar = self.scopes.get(symbol.name()).map(|known| known.meaning);
            let value = match scalar {
                _ if is_value(symbol) => match self.visible(symbol.name(), &at) {
                    Some(NameMeaning::Value(node) | NameMeaning::Scalar(node)) => node,
                    Some(NameMeaning::Place(_)) => {
                        let text = format!("`{}` is an LDS buffer, and a value is expected", symbol.name());
                        return Err(Diagnostic::invalid(text).at(Some(at)).help("read it first"));
                    }
                    Some(NameMeaning::Unknown) | None => Entity::PLACEHOLDER,
                },
                Some(NameMeaning::Scalar(node)) => node,
                _ => continue,
            };
            let number = values.iter().position(|&known| known == value).unwrap_or_else(|| {
                values.push(value);
                values.len() - 1
            });
            names.push((symbol, operand_symbol(number).into()));
        }
        let named = |symbol| names.iter().find(|name| name.0 == symbol).map(|name| name.1.clone());
        Ok(written.replaced(&named))
    }

    /// The rest of a read with a mapping, after `at [...]`.
    pub(super) fn mapped_load(
        &mut self,
        origin: Origin,
        op: Op,
        memory: Entity,
        mapped: ParsedMapping,
    ) -> Parsed<NameMeaning> {
        if !self.cursor.take_word("as") {
            let fault = self.cursor.expected("`as` and the dimensions of the value");
            return Err(fault.help("write `read x at [m, k] as [M, K]`"));
        }
        let (shape, at) = self.shape()?;
        // One element has no dimension, but is accessed along one of one element.
        let is_single = shape.is_empty();
        let shape = if is_single { vec![Symbol::from(1u32)] } else { shape };
        let dims = self.nodes.dims(&shape).map_err(|fault| fault.at(Some(at.clone())))?;
        let ty = ValueType { dims, dtype: None };
        let node = self.nodes.push(origin, op, &mapped.operands_of(&[], memory), ty);
        self.nodes.map(node, mapped.mapping);
        self.access_flags(node)?;
        if !is_single {
            return Ok(NameMeaning::Value(node));
        }
        let one = Deriver::new(&mut self.nodes, origin).only_element(node);
        one.map(NameMeaning::Value).map_err(|fault| fault.at(Some(at)))
    }

    /// `scatter_add %x, table at %ids along ROWS`, after the word: an `atomic_add` with these coordinates.
    pub(super) fn scatter_add(&mut self, origin: Origin) -> Parsed<NameMeaning> {
        let value = self.value()?;
        self.cursor.expect(",")?;
        let memory = self.place()?;
        if !self.cursor.take_word("at") {
            let fault = self.cursor.expected("`at`, a value of positions, `along` and a dimension");
            return Err(fault.help("write `scatter_add %x, table at %ids along ROWS`"));
        }
        let ids = self.value()?;
        if !self.cursor.take_word("along") {
            return Err(self.cursor.expected("`along` and a dimension of the memory"));
        }
        let at = self.cursor.location();
        let dim = dimension(&mut self.cursor, "a dimension of the memory")?;
        let dims = self.nodes.scattered_dims(memory, dim).map_err(|fault| fault.at(Some(at)))?;
        let place = |own: Symbol| if own == dim { operand_symbol(0).into() } else { SymExpr::from(own) };
        let mapping = Mapping(dims.into_iter().map(place).collect());
        let op = Op::Atomic(AtomicOp::Add);
        let node = self.nodes.push(origin, op, &[value, ids, memory], ValueType::unknown());
        self.nodes.map(node, mapping);
        Ok(NameMeaning::Value(node))
    }

    /// An access without coordinates, at the end of what was read.
    pub(super) fn accessed(
        &mut self,
        origin: Origin,
        op: Op,
        front: &[Entity],
        memory: Entity,
    ) -> Parsed<Entity> {
        let node = self.nodes.access(origin, op, front, memory);
        node.map_err(|fault| fault.at(self.nodes.location_of(origin)))
    }

    /// `volatile`, `non_temporal`, after the memory of an access and its mapping.
    pub(super) fn access_flags(&mut self, access: Entity) -> Parsed<()> {
        let at = self.cursor.location();
        let mut flags = MemoryAccessFlags::default();
        while let Token::Name(word) = *self.cursor.peek()
            && flags.set(word)
        {
            self.cursor.bump();
        }
        match flags.is_empty() {
            true => Ok(()),
            false => self.nodes.flag(access, flags).map_err(|fault| fault.at(Some(at))),
        }
    }
}
