//! What the parser keeps, and what statements and attributes read alike.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::sync::Arc;

use bevy_ecs::prelude::Entity;
use rustc_hash::FxHashMap;

use super::cursor::{Cursor, Parsed, TextFaults};
use super::scope::Scopes;
use super::symbolic::dimension;
use crate::ir::assemble::KernelAssembler;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{ExprArena, Symbol};
use crate::ir::kernel::{Declaration, Locations};
use crate::ir::layout::Dim;
use crate::ir::node::*;

/// The parser of a kernel.
pub(super) struct Parser<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) nodes: KernelAssembler,
    pub(super) scopes: Scopes<'a>,
    pub(super) faults: TextFaults,
    /// Loops around the current statement.
    pub(super) loops: u32,
    /// The pass after which the kernel stands.
    pub(super) stage: Option<Arc<str>>,
    /// True while constraints may still come.
    pub(super) constrained: bool,
    /// The expressions of attributes.
    pub(super) expressions: ExprArena,
    /// Logical nodes by number.
    pub(super) logical: FxHashMap<u32, Entity>,
    /// The number that the attributes read last give to their node.
    pub(super) numbered: Option<u32>,
    /// Where the author wrote the kernel and its nodes.
    pub(super) sources: Option<(Declaration, Locations)>,
    /// Names of the kernel's arguments, and where they stand.
    pub(super) arguments: Option<Vec<(String, Location)>>,
    /// The kernel's nodes before it was expanded.
    pub(super) logical_body: Option<Vec<Entity>>,
}

impl Parser<'_> {
    pub(super) fn fault(&mut self, fault: Diagnostic) {
        match self.nodes.excess() {
            None => self.faults.add(fault, &mut self.cursor),
            // Statements beyond the limit of operations are not looked at.
            Some(excess) => self.faults.add_last(excess, &mut self.cursor),
        }
    }

    pub(super) fn fault_at(&mut self, at: &Location, fault: Diagnostic) {
        self.fault(fault.at(Some(at.clone())));
    }

    pub(super) fn shape(&mut self) -> Parsed<(Vec<Symbol>, Location)> {
        let at = self.cursor.location();
        self.cursor.expect("[")?;
        let mut shape = Vec::new();
        if !self.cursor.take("]") {
            loop {
                shape.push(dimension(&mut self.cursor, "a dimension")?);
                if !self.cursor.take(",") {
                    break;
                }
            }
            self.cursor.expect("]")?;
        }
        Ok((shape, at))
    }

    /// `[HP * WP, WP, 1]`: the factors of each stride.
    pub(super) fn strides(&mut self) -> Parsed<(Vec<Vec<Symbol>>, Location)> {
        let at = self.cursor.location();
        self.cursor.expect("[")?;
        let mut strides = Vec::new();
        loop {
            let mut factors = vec![dimension(&mut self.cursor, "a stride")?];
            while self.cursor.take("*") {
                factors.push(dimension(&mut self.cursor, "a factor of a stride")?);
            }
            strides.push(factors);
            if !self.cursor.take(",") {
                break;
            }
        }
        self.cursor.expect("]")?;
        Ok((strides, at))
    }

    pub(super) fn dim(&mut self, what: &str) -> Parsed<Dim> {
        let at = self.cursor.location();
        let symbol = dimension(&mut self.cursor, what)?;
        self.nodes.dim(symbol).map_err(|fault| fault.at(Some(at)))
    }

    /// `count` values with commas between them.
    pub(super) fn values(&mut self, count: usize) -> Parsed<Vec<Entity>> {
        let mut values = vec![self.value()?];
        while values.len() < count {
            self.cursor.expect(",")?;
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// The operands of arithmetic on two values; a number stands for a constant.
    pub(super) fn pair(&mut self, origin: Origin) -> Parsed<Vec<Entity>> {
        let left = self.operand(origin)?;
        self.cursor.expect(",")?;
        Ok(vec![left, self.operand(origin)?])
    }

    pub(super) fn operand(&mut self, origin: Origin) -> Parsed<Entity> {
        if !self.cursor.at_number() {
            return self.value();
        }
        let constant = self.cursor.number()?;
        Ok(self.nodes.push(origin, Op::Register(constant), &[], ValueType::unknown()))
    }
}
