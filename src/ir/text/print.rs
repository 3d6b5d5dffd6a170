//! The printer. Values are numbered in the order in which the text defines them.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::fmt::Write;

use bevy_ecs::prelude::{Entity, World};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Detail;
use super::attributes::{AttributePosition, Printed, print_all};
use super::constraints::mma_type_text;
use super::printer::Printer;
use super::symbolic::{Level, write_expr};
use crate::ir::assemble::is_identifier;
use crate::ir::constraint::{Constraint, Reordering};
use crate::ir::facts::{KernelStage, LogicalBody};
use crate::ir::kernel::{Constraints, KernelName};
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::op::{NodeRole, OpClass};

/// The text of the kernel whose root is `root`. It prints broken kernels, too: a value without a definition
/// prints as `%?`.
pub fn print(world: &World, root: Entity, detail: Detail) -> String {
    print_after(world, root, world.get::<KernelStage>(root).map(|stage| &*stage.0), detail)
}

/// [`print()`] of a kernel as the pass `stage` left it; `None` if no pass has seen it.
pub(crate) fn print_after(world: &World, root: Entity, stage: Option<&str>, detail: Detail) -> String {
    let mut printer = Printer {
        world,
        root,
        detail,
        stage,
        names: FxHashMap::default(),
        carried: FxHashMap::default(),
        logical: NodeMap::default(),
        out: String::with_capacity(1024),
        depth: 1,
    };
    printer.kernel();
    printer.out
}

impl<'w> Printer<'w> {
    /// Numbers the values of a region in the order of the text: a loop's results, its arguments, its body.
    fn number(&mut self, region: &[Entity]) {
        for &node in region {
            if let Some(Op::LoopResult(at)) = self.op(node)
                && let Some(&origin) = self.operands(node).first()
            {
                enter(&mut self.carried.entry(origin).or_default().results, at, node);
            }
        }
        for &node in region {
            let Some(op) = self.op(node) else { continue };
            match (op.row().class, op.row().gives) {
                (OpClass::Carried, _) | (_, NodeRole::Nothing) => {}
                (OpClass::Declaration, _) if self.world.get::<Name>(node).is_some() => {}
                (_, NodeRole::Loop) => {
                    let body = self.body(node);
                    let mut carried = self.carried.remove(&node).unwrap_or_default();
                    for &inner in body {
                        if let Some(Op::IterArg(at)) = self.op(inner) {
                            enter(&mut carried.args, at, inner);
                        }
                    }
                    let count = op.initial(self.operands(node)).len();
                    carried.args.resize(count.max(carried.args.len()), None);
                    carried.results.resize(count.max(carried.results.len()), None);
                    for &value in carried.results.iter().chain(&carried.args).flatten() {
                        self.name(value);
                    }
                    self.carried.insert(node, carried);
                    self.number(body);
                }
                (_, NodeRole::Value | NodeRole::Memory) => self.name(node),
            }
        }
    }

    fn name(&mut self, node: Entity) {
        let next = self.names.len() as u32;
        self.names.entry(node).or_insert(next);
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    fn kernel(&mut self) {
        let body = self.body(self.root);
        let logical = self.world.get::<LogicalBody>(self.root).map(|logical| &logical.0[..]);
        // Arguments and buffers are the same before and after expansion: they come first, and only once.
        let is_place = |node: &Entity| matches!(self.op(*node), Some(Op::Memory | Op::Scalar | Op::Allocate));
        let (places, body): (Vec<Entity>, Vec<Entity>) = match logical {
            Some(_) => body.iter().copied().partition(is_place),
            None => (Vec::new(), body.to_vec()),
        };
        let logical: Vec<Entity> =
            logical.unwrap_or_default().iter().copied().filter(|node| !is_place(node)).collect();
        self.number(&places);
        self.number(&logical);
        self.number(&body);
        self.number_logical(&logical);
        let name = self.world.get::<KernelName>(self.root).map_or("", |name| &name.0);
        self.write(format_args!("kernel {name} "));
        if let Some(stage) = self.stage {
            self.write(format_args!("after {stage} "));
        }
        self.out.push_str("{\n");
        if let Some(constraints) = self.world.get::<Constraints>(self.root) {
            for (constraint, origin) in &constraints.0 {
                self.indent();
                write_constraint(&mut self.out, constraint);
                if self.stage.is_some() && self.detail == Detail::Stage && *origin != u32::MAX {
                    self.write(format_args!(" !at({origin})"));
                }
                self.out.push('\n');
            }
        }
        self.facts();
        self.region(&places);
        if !logical.is_empty() {
            self.out.push_str("  logical {\n");
            self.depth += 1;
            self.region(&logical);
            self.depth -= 1;
            self.out.push_str("  }\n");
        }
        self.region(&body);
        self.out.push_str("}\n");
    }

    /// The facts about the whole kernel.
    fn facts(&mut self) {
        let mut facts = String::new();
        self.attributes(self.root, AttributePosition::Kernel, "\n    ", &mut facts);
        if !facts.is_empty() {
            self.write(format_args!("  facts{facts}\n"));
        }
    }

    /// Numbers logical nodes in the order of the text, in which a loop's arguments and results are next to
    /// it: a pass may have left them in another order.
    fn number_logical(&mut self, region: &[Entity]) {
        for &node in region {
            if self.op(node).is_some_and(|op| op.row().class == OpClass::Carried) {
                continue;
            }
            self.number_node(node);
            let carried = self.carried.get(&node);
            let (args, results) = carried.map(|it| (it.args.clone(), it.results.clone())).unwrap_or_default();
            args.into_iter().flatten().for_each(|arg| self.number_node(arg));
            self.number_logical(self.body(node));
            results.into_iter().flatten().for_each(|result| self.number_node(result));
        }
    }

    fn number_node(&mut self, node: Entity) {
        let next = self.logical.len() as u32;
        self.logical.insert(node, next);
    }

    fn region(&mut self, region: &[Entity]) {
        for &node in region {
            match self.op(node) {
                // They are in the first line of their loop.
                Some(Op::IterArg(_) | Op::LoopResult(_)) => {}
                Some(op) => self.node(node, op),
                None => {}
            }
        }
    }

    fn node(&mut self, node: Entity, op: Op) {
        self.indent();
        if op.row().class == OpClass::Region {
            return self.carrying(node, op);
        }
        match (self.names.get(&node).copied(), self.world.get::<Name>(node)) {
            (Some(number), _) => self.write(format_args!("%{number} = ")),
            (None, Some(name)) if op.is_argument() => self.write(format_args!("{} = ", name.0)),
            _ => {}
        }
        self.operation(node, op);
        self.tag(node);
        self.append(node, AttributePosition::After, " ");
        let before = format!("\n{:1$}", "", 2 * self.depth + 2);
        self.append(node, AttributePosition::Below, &before);
        self.out.push('\n');
    }

    /// A node with a region of its own: a loop, a conditional.
    fn carrying(&mut self, node: Entity, op: Op) {
        let carried = self.carried.remove(&node).unwrap_or_default();
        for (at, result) in carried.results.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.definition(*result);
        }
        if !carried.results.is_empty() {
            self.out.push_str(" = ");
        }
        self.out.push_str(op.row().word);
        if let Some(dim) = op.walks() {
            self.out.push(' ');
            self.dim(dim);
        }
        let operands = self.operands(node);
        if let Some(condition) = op.condition(operands) {
            self.out.push(' ');
            self.value(condition);
        }
        self.out.push_str(" (");
        let init = op.initial(operands);
        for (at, arg) in carried.args.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.definition(*arg);
            self.out.push_str(" = ");
            match init.get(at) {
                Some(&value) => self.value(value),
                None => self.out.push_str("%?"),
            }
        }
        self.out.push(')');
        self.tag(node);
        self.append(node, AttributePosition::After, " ");
        self.append(node, AttributePosition::Below, " ");
        self.out.push_str(" {\n");
        self.depth += 1;
        self.region(self.body(node));
        if let Some(yields) = self.world.get::<Yields>(node).filter(|yields| !yields.0.is_empty()) {
            self.indent();
            self.out.push_str("yield ");
            self.values(&yields.0);
            self.out.push('\n');
        }
        self.depth -= 1;
        self.indent();
        self.out.push_str("}\n");
    }

    /// A loop-carried value where it is defined.
    fn definition(&mut self, node: Option<Entity>) {
        match node {
            Some(node) => {
                self.value(node);
                self.tag(node);
                self.append(node, AttributePosition::After, " ");
                self.append(node, AttributePosition::Below, " ");
            }
            None => self.out.push('_'),
        }
    }

    fn tag(&mut self, node: Entity) {
        let Some(tag) = self.world.get::<Tag>(node).filter(|_| self.detail != Detail::Identity) else {
            return;
        };
        if is_identifier(&tag.0) {
            self.write(format_args!(" @{}", tag.0));
        } else {
            self.write(format_args!(" @\"{}\"", tag.0.escape_default()));
        }
    }

    /// Appends the attributes of a node to the text.
    fn append(&mut self, node: Entity, position: AttributePosition, before: &str) {
        let mut out = std::mem::take(&mut self.out);
        self.attributes(node, position, before, &mut out);
        self.out = out;
    }

    fn attributes(&self, node: Entity, position: AttributePosition, before: &str, out: &mut String) {
        if self.stage.is_some() {
            let (world, root, logical, detail) = (self.world, self.root, &self.logical, self.detail);
            print_all(Printed { world, root, node, logical, detail }, position, before, out);
        }
    }
}

/// Puts a node into its place in a list that grows as needed; a place far beyond the end belongs to a broken
/// kernel and is dropped.
fn enter(list: &mut SmallVec<[Option<Entity>; 4]>, at: u32, node: Entity) {
    const MOST: usize = 1 << 16;
    let at = at as usize;
    if at < MOST {
        list.resize(list.len().max(at + 1), None);
        list[at] = Some(node);
    }
}

/// Writes an order of workgroups.
fn write_order(out: &mut String, order: &Reordering) {
    let _ = match order {
        Reordering::Grouped(rows) => write!(out, "reorder grouped {rows}"),
        Reordering::Xcd(dies) => write!(out, "reorder xcd {dies}"),
        Reordering::Cached => write!(out, "reorder cached"),
        Reordering::Place { axis, .. } => write!(out, "reorder {axis}, "),
    };
    if let Reordering::Place { place, .. } = order {
        write_expr(out, place, Level::Sum);
    }
}

fn write_constraint(out: &mut String, constraint: &Constraint) {
    let mut pair = |word: &str, dim, tile| {
        out.push_str(word);
        write_expr(out, dim, Level::Sum);
        out.push_str(", ");
        write_expr(out, tile, Level::Sum);
    };
    match constraint {
        Constraint::Workgroup { dim, tile, axis } => {
            pair("workgroup ", dim, tile);
            let _ = write!(out, ", {axis}");
        }
        Constraint::Reorder(order) => write_order(out, order),
        Constraint::Tiling { dim, tile } => pair("tile ", dim, tile),
        Constraint::Iterations { dim, first, count, step } => {
            pair("iterations ", dim, first);
            out.push_str(", ");
            write_expr(out, count, Level::Sum);
            if step.as_integer() != Some(1) {
                out.push_str(", step ");
                write_expr(out, step, Level::Sum);
            }
        }
        Constraint::Persistent { workgroups } => {
            out.push_str("persistent ");
            write_expr(out, workgroups, Level::Sum);
        }
        Constraint::Wave { dim, tile } => pair("wave ", dim, tile),
        Constraint::Emulate(dtype) => {
            let _ = write!(out, "emulate {dtype}");
        }
        Constraint::MmaType(mma) => {
            let _ = write!(out, "mma {}", mma_type_text(*mma));
        }
        Constraint::Divisible { symbol, by } => {
            out.push_str("assume ");
            write_expr(out, symbol, Level::Product);
            let _ = write!(out, " % {by} == 0");
        }
        Constraint::AtLeast { symbol, least } => {
            out.push_str("assume ");
            write_expr(out, symbol, Level::Sum);
            let _ = write!(out, " >= {least}");
        }
        Constraint::AtMost { symbol, most } => {
            out.push_str("assume ");
            write_expr(out, symbol, Level::Sum);
            let _ = write!(out, " <= {most}");
        }
    }
}
