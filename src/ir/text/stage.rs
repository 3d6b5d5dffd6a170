//! The parts that only texts after a pass have: facts about the kernel, logical nodes beside their pieces,
//! attributes of nodes.

use std::sync::Arc;

use bevy_ecs::prelude::Entity;

use super::attributes::{Attributes, Given, Holder, read_all};
use super::cursor::Parsed;
use super::parse::Region;
use super::parser::Parser;
use crate::ir::constraint::{Constraint, GridSymbol, SCALARS_OF_ITERATIONS, dim_of_iteration};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::Symbol;
use crate::ir::facts::{Expressions, KernelStage, LogicalBody};
use crate::ir::kernel::Kernel;

impl Parser<'_> {
    /// `facts` and attributes of the kernel.
    pub(super) fn facts(&mut self) -> Parsed<()> {
        if !self.constrained {
            return Err(self.cursor.fault(Diagnostic::invalid("`facts` stands twice")));
        }
        self.cursor.bump();
        self.constrained = false;
        let attach = read_all(self, Holder::Kernel)?;
        let root = self.nodes.root();
        self.attach(root, Attributes { attach, number: None });
        Ok(())
    }

    /// The nodes of the kernel before it was expanded. They are identified by numbers, and no region holds
    /// them.
    pub(super) fn logical_block(&mut self) -> Parsed<()> {
        if self.logical_body.is_some() {
            return Err(self.cursor.fault(Diagnostic::invalid("`logical` stands twice")));
        }
        self.cursor.bump();
        let opened = self.cursor.location();
        self.cursor.expect("{")?;
        self.nodes.open();
        self.scopes.open();
        self.region(Region::Logical, &opened);
        self.scopes.close();
        self.logical_body = Some(self.nodes.close());
        Ok(())
    }

    /// The attributes that come next.
    pub(super) fn attributes(&mut self) -> Parsed<Attributes> {
        if !self.cursor.at("!") {
            return Ok(Attributes::default());
        }
        self.numbered = None;
        let attach = read_all(self, Holder::Node)?;
        Ok(Attributes { attach, number: self.numbered.take() })
    }

    pub(super) fn attach(&mut self, node: Entity, attributes: Attributes) {
        if let Some(number) = attributes.number {
            self.logical.insert(number, node);
        }
        if let Some(mut node) = self.nodes.node_mut(node) {
            attributes.attach.into_iter().for_each(|attach| attach(&mut node));
        }
    }

    /// `!at(number)` of a constraint.
    pub(super) fn constraint_origin(&mut self) -> Parsed<u32> {
        self.cursor.expect("!")?;
        if !self.cursor.take_word("at") {
            return Err(self.cursor.expected("`at`"));
        }
        self.cursor.expect("(")?;
        let at = self.number()?;
        self.cursor.expect(")")?;
        Ok(at)
    }

    /// Tells the arena what expressions may rely on: sizes that are open until launch are positive, and
    /// satisfy the constraints. Setting symbols of masks is an operation.
    pub(super) fn assume(&mut self, dynamic: &[Symbol], mask_values: &[Symbol]) -> Parsed<()> {
        let at = self.cursor.location();
        let fault =
            |error: crate::ir::expr::ExprError| Diagnostic::invalid(error.to_string()).at(Some(at.clone()));
        let is_open = |symbol: &Symbol| dynamic.contains(symbol);
        for &symbol in dynamic {
            self.expressions.assume_range(symbol, 1..=i64::from(i32::MAX)).map_err(fault)?;
        }
        for &symbol in mask_values {
            self.expressions.assume_range(symbol, SCALARS_OF_ITERATIONS).map_err(fault)?;
            self.nodes.count_by(symbol);
        }
        for (constraint, _) in self.nodes.constraints() {
            match constraint {
                Constraint::Divisible { symbol, by } => {
                    if let Some(symbol) = symbol.as_symbol().filter(is_open)
                        && *by > 0
                    {
                        self.expressions.assume_divisible(symbol, i64::from(*by)).map_err(fault)?;
                    }
                }
                Constraint::AtLeast { symbol, least } => {
                    if let Some(symbol) = symbol.as_symbol().filter(is_open) {
                        let most = i64::from(i32::MAX);
                        self.expressions
                            .assume_range(symbol, (*least).clamp(1, most)..=most)
                            .map_err(fault)?;
                    }
                }
                // What is neither a size nor of the grid is a scalar, or an iteration of a loop around.
                Constraint::Iterations { first, count, .. } => {
                    for e in [first, count] {
                        let mut assumed = Ok(());
                        e.visit(&mut |symbol| {
                            let is_known = is_open(&symbol) || GridSymbol::of(symbol).is_some();
                            let is_iteration = dim_of_iteration(symbol).is_some();
                            if !is_known && !is_iteration && assumed.is_ok() {
                                assumed = self.expressions.assume_range(symbol, SCALARS_OF_ITERATIONS);
                            }
                        });
                        assumed.map_err(fault)?;
                    }
                }
                Constraint::AtMost { symbol, most } => {
                    if let Some(symbol) = symbol.as_symbol().filter(is_open) {
                        let most = (*most).clamp(1, i64::from(i32::MAX));
                        self.expressions.assume_range(symbol, ..=most).map_err(fault)?;
                    }
                }
                Constraint::Workgroup { .. }
                | Constraint::Tiling { .. }
                | Constraint::Wave { .. }
                | Constraint::Reorder(_)
                | Constraint::Persistent { .. }
                | Constraint::Emulate(_)
                | Constraint::MmaType(_) => {}
            }
        }
        Ok(())
    }

    /// The kernel as a pass left it.
    pub(super) fn finish_stage(
        mut self,
        name: &str,
        at: Location,
        stage: Arc<str>,
    ) -> Result<Kernel, Vec<Diagnostic>> {
        let arguments = self.find_arguments().map_err(|fault| vec![fault])?;
        let (root, sources) = (self.nodes.root(), self.sources.take());
        if let Some(mut root) = self.nodes.node_mut(root) {
            root.insert((KernelStage(stage), Expressions(Box::new(self.expressions))));
            if let Some(arguments) = arguments {
                root.insert(arguments);
            }
            if let Some(logical) = self.logical_body {
                root.insert(LogicalBody(logical));
            }
        }
        self.nodes.finish_stage::<Given>(name, at, sources, |given| given.0)
    }
}
