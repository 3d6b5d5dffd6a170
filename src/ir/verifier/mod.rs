//! The verifier: whether a world of logical nodes is a kernel. It runs after every pass in tests and on
//! request, collects all faults, and anchors each at the line of the node's author. Numbers in its messages
//! count the nodes in program order.
//!
//! # Invariants
//! Of every node in a region:
//! 1. It has [`Op`], [`Operands`], [`ValueType`] and [`Origin`], and stands in one place of one region. (A
//!    node in no region is dead; nothing may use it.)
//! 2. It has as many operands as its op takes, and of the right kind: values, memories (arguments or
//!    allocations) or a loop.
//! 3. Its operands stand before it, in its region or in one around it.
//! 4. The dims of its type are different ones, and in the kernel's [`DimTable`]. Without a result it has no
//!    type.
//! 5. Its tag, if any, is not empty, and its layout, if any, has dims of the [`DimTable`] only.
//!
//! Of special nodes:
//!
//! 6. Memories stand in the kernel's body and have [`Name`], [`Space`] and a dtype; allocations have a dtype.
//!    Scalars stand in the kernel's body and have [`Name`], no dims, and a dtype of [`Op::SCALAR_DTYPES`].
//! 7. Loops have [`Body`] and [`Yields`]; the body starts with its arguments, numbered from 0, one for each
//!    initial value, and there are no others; it yields as many values, defined in the body or before the
//!    loop. Loop results stand after their loop and are numbered within its carried values.
//! 8. A loop is not inside another one over the same dim, and nothing that has its dim goes into it or is
//!    carried round it.
//!
//! Once every result has a dtype, the types agree as well: see the `types` part of this module.
// A new operation has to be considered wherever operations are distinguished.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

pub(crate) mod buffer_coordinates;
pub(crate) mod distribution;
pub(crate) mod facts;
pub(crate) mod loop_symbols;
#[cfg(test)]
mod tests;
mod types;

use cranelift_entity::EntityRef;
use std::collections::hash_map::Entry;
use std::fmt;

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::diagnostic::{Diagnostic, Kind, Location};
use super::facts::Expansion;
use super::kernel::{DimTable, Locations, ScaledDim};
use super::layout::Dim;
use super::mapping::Mapping;
use super::memory_layout::DebugLog;
use super::node::{Name, *};
use super::op::{AlongDimOp, CarriedOp, DeclarationOp, NodeRole, OpClass, OpFamily};

/// Every fault of the kernel `root` of `world`; none for a valid one. Faults that an author can cause are
/// [`Kind::Invalid`], the others [`Kind::Bug`].
pub(crate) fn verify(world: &World, root: Entity) -> Vec<Diagnostic> {
    let mut verifier = Verifier {
        world,
        root,
        dims: world.get::<DimTable>(root).map_or(0, |t| t.0.len()),
        slots: slots(world),
        order: Vec::with_capacity(world.entities().len() as usize),
        loops: SmallVec::new(),
        scaled: world.get::<DimTable>(root).map(DimTable::scaled).unwrap_or_default(),
        pipelines: 0,
        typed: true,
        numbers: None,
        faults: Vec::new(),
    };
    match world.get::<Body>(root) {
        Some(body) => verifier.region(&body.0, None),
        None => verifier.faults.push(Diagnostic::new(Kind::Bug, "the kernel has no body")),
    }
    verifier.annotations();
    if verifier.typed {
        types::check(&mut verifier);
    }
    verifier.faults
}

/// A node and where the walk met it; slots stand at the index of their entity.
#[derive(Copy, Clone)]
struct NodeSlot<'w> {
    node: Entity,
    /// The components of the node, if it is complete.
    parts: Option<NodeParts<'w>>,
    role: NodeRole,
    state: SlotState,
    /// Loops around the node.
    depth: u16,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum SlotState {
    Unseen,
    /// A loop while its body is walked.
    Open,
    /// In a region that is not finished: it may be used.
    Defined,
    /// In a loop body that is finished.
    Closed,
}

impl NodeSlot<'_> {
    const EMPTY: Self = NodeSlot {
        node: Entity::PLACEHOLDER,
        parts: None,
        role: NodeRole::Nothing,
        state: SlotState::Unseen,
        depth: 0,
    };
}

/// What every node has, besides its [`Origin`].
type NodeParts<'w> = (&'w Op, &'w Operands, &'w ValueType);

/// Slots of all complete nodes, from one run over the tables: much faster than looking up each one.
fn slots(world: &World) -> Vec<NodeSlot<'_>> {
    let mut slots = Vec::with_capacity(world.entities().len() as usize);
    let Some(nodes) = world.try_query_filtered::<(Entity, NodeParts), With<Origin>>() else { return slots };
    for (node, parts) in nodes.query_manual(world).iter_inner() {
        *place(&mut slots, node) = NodeSlot { node, parts: Some(parts), ..NodeSlot::EMPTY };
    }
    slots
}

/// The slot for a node that exists, so that there are never more slots than entities.
fn place<'s, 'w>(slots: &'s mut Vec<NodeSlot<'w>>, node: Entity) -> &'s mut NodeSlot<'w> {
    let at = node.index_u32() as usize;
    if at >= slots.len() {
        slots.resize(at + 1, NodeSlot::EMPTY);
    }
    &mut slots[at]
}

struct Verifier<'w> {
    world: &'w World,
    root: Entity,
    /// Length of the dim table.
    dims: usize,
    slots: Vec<NodeSlot<'w>>,
    /// Nodes as the walk met them.
    order: Vec<Entity>,
    /// Dims that follow others.
    scaled: SmallVec<[ScaledDim; 2]>,
    /// Dims along which the loops around the current node walk.
    loops: SmallVec<[Dim; 4]>,
    /// Pipelined loops around the node.
    pipelines: u32,
    /// Every result has a dtype.
    typed: bool,
    /// Number of each node, computed once a message needs it.
    numbers: Option<FxHashMap<Entity, usize>>,
    faults: Vec<Diagnostic>,
}

impl<'w> Verifier<'w> {
    /// The components of a node, if it is complete.
    fn node(&self, node: Entity) -> Option<NodeParts<'w>> {
        self.slot(node)?.parts
    }

    fn slot(&self, node: Entity) -> Option<&NodeSlot<'w>> {
        self.slots.get(node.index_u32() as usize).filter(|slot| slot.node == node)
    }

    fn is_seen(&self, node: Entity) -> bool {
        self.slot(node).is_some_and(|slot| slot.state != SlotState::Unseen)
    }

    /// Notes what the walk knows of a node that it has met.
    fn mark(&mut self, node: Entity, role: NodeRole, state: SlotState) {
        let depth = self.loops.len() as u16;
        let slot = place(&mut self.slots, node);
        *slot = NodeSlot { node, parts: slot.parts, role, state, depth };
    }

    /// Walks a region; `carried` is the number of carried values if it is the body of a loop.
    fn region(&mut self, body: &'w [Entity], carried: Option<usize>) {
        for (place, &node) in body.iter().enumerate() {
            if self.is_seen(node) {
                self.bug(node, "stands in two places");
                continue;
            }
            match self.node(node) {
                Some(parts) => self.visit(node, place, carried, parts),
                None if self.world.get_entity(node).is_ok() => self.incomplete(node),
                None => self.bug(node, "stands in a region, but does not exist"),
            }
        }
    }

    /// Ends a region that [`Verifier::region`] has walked.
    fn close(&mut self, body: &[Entity]) {
        for &node in body {
            let slot = self.slots.get_mut(node.index_u32() as usize);
            if let Some(slot) = slot.filter(|s| s.node == node && s.state == SlotState::Defined) {
                slot.state = SlotState::Closed;
            }
        }
    }

    /// Invariant 1, broken: what is missing.
    fn incomplete(&mut self, node: Entity) {
        let has = [
            (self.world.get::<Op>(node).is_some(), "Op"),
            (self.world.get::<Operands>(node).is_some(), "Operands"),
            (self.world.get::<ValueType>(node).is_some(), "ValueType"),
            (self.world.get::<Origin>(node).is_some(), "Origin"),
        ];
        for (_, missing) in has.iter().filter(|(has, _)| !has) {
            self.bug(node, format!("has no {missing}"));
        }
        // Its known parts are kept, so that its users are not reported as well.
        let role = self.world.get::<Op>(node).map_or(NodeRole::Value, |op| op.row().gives);
        self.mark(node, role, SlotState::Defined);
        self.typed = false;
    }

    fn visit(&mut self, node: Entity, place: usize, carried: Option<usize>, parts: NodeParts<'w>) {
        let (op, operands, ty) = parts;
        self.order.push(node);
        let row = op.row();
        let mapped;
        let takes = match row.takes {
            Some(_) if row.class == OpClass::Access && Mapping::of(self.world, node).is_some() => {
                // Reads of values become reads of LDS before any layout is chosen.
                let accessed = operands.0.last().and_then(|&memory| self.slot(memory));
                let reads_value = op.loads()
                    && self.world.get::<Placement>(node).is_none()
                    && accessed.is_some_and(|slot| slot.role == NodeRole::Value);
                mapped = mapped_roles(operands, if reads_value { NodeRole::Value } else { NodeRole::Memory });
                Some(&mapped[..])
            }
            takes => takes,
        };
        self.operands(node, takes, operands);
        self.result(node, row.gives, ty);
        match op.family() {
            OpFamily::Declaration(DeclarationOp::Memory) => self.memory(node),
            OpFamily::Declaration(DeclarationOp::Scalar) => self.scalar(node, ty),
            OpFamily::Declaration(DeclarationOp::Allocate) => self.allocation(node),
            OpFamily::Carried(CarriedOp::IterArg(number)) => self.argument(node, number, place, carried),
            OpFamily::Carried(CarriedOp::LoopResult(number)) => self.loop_result(node, number, operands),
            OpFamily::Region(_) => return self.iterate(node, op.walks(), parts),
            OpFamily::AlongDim(AlongDimOp::Reduce(_)) => self.reduction(node, operands),
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => self.scan(node, operands, scan.by_wave.is_some()),
            // Their rows say all there is to check.
            OpFamily::AlongDim(AlongDimOp::Sort(_))
            | OpFamily::Constant(_)
            | OpFamily::Access(_)
            | OpFamily::ElementWise(_)
            | OpFamily::Rearrangement(_)
            | OpFamily::Contraction(_)
            | OpFamily::Order(_) => {}
        }
        self.mark(node, row.gives, SlotState::Defined);
    }

    /// Invariants 2, 3 and 8.
    fn operands(&mut self, node: Entity, takes: Option<&[NodeRole]>, operands: &'w Operands) {
        if let Some(takes) = takes
            && takes.len() != operands.0.len()
        {
            self.bug(node, format!("has {} operands, not {}", operands.0.len(), takes.len()));
        }
        for (number, &operand) in operands.0.iter().enumerate() {
            let expected = match takes {
                Some(takes) => takes.get(number).copied(),
                None => Some(NodeRole::Value),
            };
            self.used(node, format_args!("operand {number}"), operand, expected);
        }
    }

    /// One use of a node by another.
    fn used(&mut self, node: Entity, what: fmt::Arguments, used: Entity, expected: Option<NodeRole>) {
        let slot =
            self.slot(used).map_or((SlotState::Unseen, NodeRole::Nothing, 0), |s| (s.state, s.role, s.depth));
        let (state, role, depth) = slot;
        let why = match state {
            SlotState::Unseen if self.world.get_entity(used).is_err() => "does not exist",
            SlotState::Unseen => "is not defined before it",
            SlotState::Open => "is the loop around it",
            SlotState::Closed => "is inside a loop that ends before it",
            SlotState::Defined => "",
        };
        if !why.is_empty() {
            let text = format!("{what} ({}) {why}", self.describe(used));
            self.bug(node, text);
        } else if let Some(expected) = expected
            && role != expected
        {
            let text =
                format!("{what} ({}) is {}, not {}", self.describe(used), role.name(), expected.name());
            self.bug(node, text);
        }
        if role == NodeRole::Value && (depth as usize) < self.loops.len() {
            self.not_across_loops(node, used, depth as usize);
        }
    }

    /// Invariant 8: no value with the dim of a loop goes into it.
    fn not_across_loops(&mut self, node: Entity, used: Entity, depth: usize) {
        let Some((_, _, ty)) = self.node(used) else { return };
        if let Some(dim) = self.loops[depth..].iter().copied().find(|d| ty.dims.contains(d)) {
            let dim = self.dim(dim);
            let text = format!("a value with all of {dim} is used inside the loop over {dim}");
            let fault = self.fault(Kind::Invalid, node, text);
            let from = self.location(used);
            self.faults
                .push(fault.note("the value comes from here", from).help("move the value into the loop"));
        }
    }

    /// Invariant 4.
    fn result(&mut self, node: Entity, role: NodeRole, ty: &ValueType) {
        for (at, &dim) in ty.dims.iter().enumerate() {
            if dim.index() >= self.dims {
                self.bug(
                    node,
                    format!("has the dim number {}, but the kernel has {} dims", dim.0, self.dims),
                );
            }
            if ty.dims[..at].contains(&dim) {
                self.bug(node, format!("has the dim {} twice", self.dim(dim)));
            }
        }
        match role {
            NodeRole::Value => self.typed &= ty.dtype.is_some(),
            // The value that is written to it says what it is.
            NodeRole::Memory if ty.dtype.is_none() && self.world.get::<DebugLog>(node).is_some() => {
                self.typed = false;
            }
            NodeRole::Memory if ty.dtype.is_none() => self.bug(node, "has no dtype"),
            NodeRole::Loop | NodeRole::Nothing if ty.dtype.is_some() || !ty.dims.is_empty() => {
                self.bug(node, "has no result, but a type");
            }
            NodeRole::Memory | NodeRole::Loop | NodeRole::Nothing => {}
        }
    }

    /// Invariant 2, of a reduction: it takes one value, or the pieces of one.
    fn reduction(&mut self, node: Entity, operands: &Operands) {
        let pieces = self.world.get::<Expansion>(node).is_some();
        if operands.0.is_empty() || (operands.0.len() > 1 && !pieces) {
            self.bug(node, format!("has {} operands, not 1", operands.0.len()));
        }
    }

    /// Invariant 2, of a scan: it takes one value, and the sums of all waves if they share it. An expanded
    /// one has the pieces of what comes before it.
    fn scan(&mut self, node: Entity, operands: &Operands, is_shared: bool) {
        let takes = 1 + usize::from(is_shared);
        let pieces = self.world.get::<Expansion>(node).is_some();
        if operands.0.is_empty() || (operands.0.len() != takes && !pieces) {
            self.bug(node, format!("has {} operands, not {takes}", operands.0.len()));
        }
    }

    /// Invariant 6.
    fn memory(&mut self, node: Entity) {
        if self.world.get::<Name>(node).is_none() {
            self.bug(node, "has no Name");
        }
        if self.world.get::<Space>(node).is_none() {
            self.bug(node, "has no Space");
        }
        if !self.loops.is_empty() {
            let fault = self.fault(Kind::Invalid, node, "a memory is declared inside a loop");
            self.faults.push(fault.help("declare the kernel's memories before its loops"));
        }
    }

    /// Passes look for LDS buffers at the beginning of the kernel.
    fn allocation(&mut self, node: Entity) {
        if !self.loops.is_empty() {
            let fault = self.fault(Kind::Invalid, node, "an LDS buffer is declared inside a loop");
            self.faults.push(fault.help("declare the kernel's LDS buffers before its loops"));
        }
    }

    /// Invariant 6.
    fn scalar(&mut self, node: Entity, ty: &ValueType) {
        if self.world.get::<Name>(node).is_none() {
            self.bug(node, "has no Name");
        }
        if !ty.dims.is_empty() || !ty.dtype.is_some_and(|dtype| Op::SCALAR_DTYPES.contains(&dtype)) {
            self.bug(node, "is neither an f32 nor an i32");
        }
        if !self.loops.is_empty() {
            let fault = self.fault(Kind::Invalid, node, "a scalar is declared inside a loop");
            self.faults.push(fault.help("declare the kernel's scalars before its loops"));
        }
    }

    /// Invariant 7: the head of a loop's body.
    fn argument(&mut self, node: Entity, number: u32, place: usize, carried: Option<usize>) {
        match carried {
            None => self.bug(node, "is not in the body of a loop"),
            Some(_) if number as usize != place => {
                self.bug(
                    node,
                    format!("has number {number}, but stands at place {place} of its loop's body"),
                );
            }
            Some(carried) if number as usize >= carried => {
                self.bug(node, format!("has number {number}, but its loop carries {carried} values"));
            }
            Some(_) => {}
        }
    }

    /// Invariant 7: results.
    fn loop_result(&mut self, node: Entity, number: u32, operands: &Operands) {
        let of = operands.0.first().and_then(|&of| self.node(of));
        if let Some((op, Operands(operands), ..)) = of
            && op.row().class == OpClass::Region
            && number as usize >= op.initial(operands).len()
        {
            let count = op.initial(operands).len();
            self.bug(node, format!("has number {number}, but its loop carries {count} values"));
        }
    }

    /// Invariants 7 and 8.
    fn iterate(&mut self, node: Entity, dim: Option<Dim>, parts: NodeParts<'w>) {
        let (op, operands, _) = parts;
        let init = op.initial(&operands.0);
        self.mark(node, NodeRole::Loop, SlotState::Open);
        if let Some(dim) = dim.filter(|dim| dim.index() >= self.dims) {
            self.bug(node, format!("is over dim number {}, but the kernel has {} dims", dim.0, self.dims));
        }
        if let Some(dim) = dim.filter(|dim| self.loops.contains(dim)) {
            let text = format!("a loop over {} is inside a loop over {0}", self.dim(dim));
            let fault = self.fault(Kind::Invalid, node, text);
            self.faults.push(fault);
        }
        if op.takes_condition() && operands.0.is_empty() {
            self.bug(node, "has no condition");
        }
        self.carried_in(node, dim, init);
        let (body, yields) = (self.world.get::<Body>(node), self.world.get::<Yields>(node));
        match body {
            None => self.bug(node, "has no Body"),
            Some(Body(body)) => {
                // Inside a pipelined loop each value belongs to one iteration, and those of several ones are
                // carried.
                let pipeline = u32::from(op.is_pipeline());
                let depth = self.loops.len();
                self.pipelines += pipeline;
                if let Some(dim) = dim.filter(|_| pipeline == 0) {
                    self.loops.push(dim);
                    let follow = self.scaled.iter().filter(|scaled| scaled.base == dim);
                    self.loops.extend(follow.map(|scaled| scaled.dim));
                }
                self.loop_body(node, body, init.len(), yields);
                self.pipelines -= pipeline;
                self.loops.truncate(depth);
                self.close(body);
            }
        }
        match yields {
            None => self.bug(node, "has no Yields"),
            Some(Yields(yields)) if yields.len() != init.len() + usize::from(op.yields_condition()) => {
                self.bug(node, format!("carries {} values, but yields {}", init.len(), yields.len()));
            }
            Some(_) => {}
        }
        self.mark(node, NodeRole::Loop, SlotState::Defined);
    }

    /// Invariant 8: the values that a loop starts with.
    fn carried_in(&mut self, node: Entity, dim: Option<Dim>, init: &[Entity]) {
        let Some(dim) = dim.filter(|_| self.pipelines == 0) else { return };
        for (number, &value) in init.iter().enumerate() {
            if self.node(value).is_some_and(|(_, _, ty)| ty.dims.contains(&dim)) {
                let name = self.dim(dim);
                let text = format!("carried value {number} has the dim {name} that its loop iterates over");
                let fault = self.fault(Kind::Invalid, node, text);
                self.faults.push(fault.help("carry values that do not have that dim"));
            }
        }
    }

    /// Invariant 7: a body with its arguments and what it hands on.
    fn loop_body(&mut self, node: Entity, body: &'w [Entity], carried: usize, yields: Option<&Yields>) {
        self.region(body, Some(carried));
        let is_argument = |n: &&Entity| matches!(self.node(**n), Some((Op::IterArg(_), ..)));
        let arguments = body.iter().take_while(is_argument).count();
        if arguments < carried {
            self.bug(node, format!("carries {carried} values, but its body has {arguments} arguments"));
        }
        for (number, &value) in yields.iter().flat_map(|y| &y.0).enumerate() {
            self.used(node, format_args!("yield {number}"), value, Some(NodeRole::Value));
        }
    }

    /// Invariant 5.
    fn annotations(&mut self) {
        let world = self.world;
        if let Some(tags) = world.try_query::<(Entity, &Tag)>() {
            for (node, _) in tags.query_manual(world).iter_inner().filter(|(_, tag)| tag.0.is_empty()) {
                if self.is_seen(node) {
                    self.bug(node, "has an empty tag");
                }
            }
        }
        if let Some(placements) = world.try_query::<(Entity, &Placement)>() {
            for (node, Placement(layout)) in placements.query_manual(world).iter_inner() {
                let Some(beyond) = layout.dims().into_iter().map(EntityRef::index).find(|&d| d >= self.dims)
                else {
                    continue;
                };
                if self.is_seen(node) {
                    self.bug(
                        node,
                        format!(
                            "has dim number {beyond} in its layout, but the kernel has {} dims",
                            self.dims
                        ),
                    );
                }
            }
        }
    }

    fn dim(&self, dim: Dim) -> &'static str {
        self.world.get::<DimTable>(self.root).map_or("?", |t| t.name(dim))
    }

    fn location(&self, node: Entity) -> Option<Location> {
        let locations = self.world.get::<Locations>(self.root)?;
        locations.get(self.world.get::<Origin>(node)?.0)
    }

    fn fault(&self, kind: Kind, node: Entity, text: impl Into<String>) -> Diagnostic {
        Diagnostic::new(kind, text).at(self.location(node))
    }

    /// A fault of the compiler; the message starts with the node.
    #[cold]
    fn bug(&mut self, node: Entity, text: impl AsRef<str>) {
        let text = format!("`{}` {}", self.describe(node), text.as_ref());
        let fault = self.fault(Kind::Bug, node, text);
        self.faults.push(fault);
    }

    /// The node as messages show it: its number, its op and the numbers of its operands.
    fn describe(&mut self, node: Entity) -> String {
        let (world, root) = (self.world, self.root);
        let numbers = self.numbers.get_or_insert_with(|| {
            let mut numbers = FxHashMap::default();
            number(world, root, &mut numbers);
            numbers
        });
        let show = |n: &Entity| numbers.get(n).map_or("%?".to_string(), |n| format!("%{n}"));
        let op = match world.get::<Op>(node) {
            Some(Op::Compare(predicate)) => predicate.word(),
            Some(op) => op.row().word,
            None => "?",
        };
        let operands: Vec<String> =
            world.get::<Operands>(node).map(|o| o.0.iter().map(show).collect()).unwrap_or_default();
        let gap = if operands.is_empty() { "" } else { " " };
        format!("{} = {op}{gap}{}", show(&node), operands.join(", "))
    }
}

/// Roles of the operands of a mapped access: values, and what is accessed.
fn mapped_roles(operands: &Operands, accessed: NodeRole) -> SmallVec<[NodeRole; 4]> {
    let mut roles = SmallVec::from_elem(NodeRole::Value, operands.0.len());
    match roles.last_mut() {
        Some(last) => *last = accessed,
        None => roles.push(accessed),
    }
    roles
}

/// Numbers the nodes of a region in program order, those of loop bodies after their loop.
fn number(world: &World, region: Entity, numbers: &mut FxHashMap<Entity, usize>) {
    for &node in world.get::<Body>(region).iter().flat_map(|b| &b.0) {
        let next = numbers.len();
        if let Entry::Vacant(entry) = numbers.entry(node) {
            entry.insert(next);
            number(world, node, numbers);
        }
    }
}
