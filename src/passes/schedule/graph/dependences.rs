//! The dependence graph of a loop, found in its expanded body.
//!
//! Values give the obvious edges; a carried value gives one from the value that the body yields to the value
//! that the next iteration sees. Accesses of one memory (a buffer in LDS, a tensor that the loop writes) form
//! groups in program order, reads together, writes of one logical node together, and a junction between
//! neighbouring groups keeps their order. From the last group back to the first there is an edge to the next
//! iteration, unless the memory is an LDS buffer that every iteration fills anew: then the number of its
//! copies decides how far apart iterations may be.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::buffer_parts::parts_of;
use super::dependence_graph::{Dependence, DependenceGraph, Edge, GraphNode, NodeId};
use super::numbers::EntityNumbers;
use super::resources::{Class, ResourceModel};
use super::view::SchedulerView;
use crate::index::{Neighbours, Stretches};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::{Bug, ExpandedNodeItem};
use crate::ir::op::{MemoryEffect, OpClass, OpUnit};
use crate::passes::loops::expand::{Base, Expansion};
use cranelift_entity::{EntityRef, PrimaryMap, iter_entity_range};

/// A loop body as schedulers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopGraph {
    /// Nodes of the body in program order, then junctions.
    pub graph: DependenceGraph,
    /// The end of the body: nodes from this one on are junctions.
    pub body_end: NodeId,
    /// What the nodes of the body are.
    pub nodes: PrimaryMap<NodeId, BodyNode>,
    /// LDS buffers that every iteration fills anew; for each, the iterations of a trip in order.
    pub buffers: SmallVec<[LoopBuffer; 4]>,
}

/// What one iteration of a trip does to an LDS buffer that it fills anew. Accesses are numbers of nodes of
/// the graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopBuffer {
    /// Its node.
    pub buffer: Entity,
    /// The writes that fill it.
    pub writes: Vec<NodeId>,
    /// The reads.
    pub reads: Vec<NodeId>,
}

/// What a node of a body is, looked up once for all who ask.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct BodyNode {
    /// What it does.
    pub op: Op,
    /// What it is a piece of.
    pub expansion: Expansion,
    /// Vector registers of its result.
    pub registers: u32,
}

impl LoopGraph {
    /// The nodes of the body.
    pub fn body(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        iter_entity_range(NodeId::default()..self.body_end)
    }

    /// The junctions.
    pub fn junctions(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        iter_entity_range(self.body_end..self.graph.nodes().next_key())
    }

    /// The nodes of the body in the world.
    pub(crate) fn body_entities(&self) -> impl Iterator<Item = Entity> + Clone {
        self.graph.nodes().range(NodeId::default()..self.body_end).iter().map(|node| node.entity)
    }

    /// The logical load of what a node writes to LDS: a global read of the loop or, if it loads straight into
    /// LDS, the node's own.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn loaded_by(&self, view: SchedulerView, write: NodeId) -> Result<Option<Entity>, Bug> {
        let own = &self.nodes[write];
        if own.op == Op::GlobalToShared {
            return Ok(Some(own.expansion.logical));
        }
        let value = view.node(self.graph.nodes()[write].entity)?.operands.at(0)?;
        let load = view.node(value)?.piece(value).logical;
        let is_load = |node: NodeId| {
            self.nodes[node].expansion.logical == load && self.graph.nodes()[node].class == Class::ReadGlobal
        };
        Ok(self.body().any(is_load).then_some(load))
    }

    /// What a node does; nothing for a junction.
    pub fn op(&self, node: NodeId) -> Option<Op> {
        self.nodes.get(node).map(|node| node.op)
    }

    /// True for a value that the loop carries.
    pub(crate) fn is_carried(&self, node: NodeId) -> bool {
        matches!(self.op(node), Some(Op::IterArg(_)))
    }

    /// True for barriers and the like.
    pub(crate) fn is_fence(&self, node: NodeId) -> bool {
        self.op(node).is_some_and(|op| op.row().class == OpClass::Order)
    }
}

/// Why a loop cannot be scheduled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum UnsuitableLoop {
    /// There is a loop in it.
    #[error("it holds another loop")]
    Nested,
    /// There is a region in it that runs under a condition.
    #[error("it holds a conditional or a while loop")]
    Conditional,
    /// There are accesses in it that are made when the author says.
    #[error("it holds a volatile access")]
    Volatile,
    /// An iteration hands on a value that it has not made.
    #[error("it hands a carried value on unchanged")]
    Unchanged,
    /// What an LDS buffer holds is not written anew by each iteration.
    #[error("it keeps an LDS buffer from one iteration to the next")]
    KeptBuffer,
    /// The kernel is broken.
    #[error("its body is broken")]
    Broken,
}

impl From<Bug> for UnsuitableLoop {
    fn from(_: Bug) -> UnsuitableLoop {
        UnsuitableLoop::Broken
    }
}

/// What an access does to a memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AccessEffect {
    Read,
    Write,
}

/// Accesses of one memory that need no order among themselves.
struct AccessGroup {
    write: bool,
    logical: Entity,
    /// The iteration that they belong to, in the steady state of a pipelined loop.
    ahead: Option<u32>,
    nodes: Vec<NodeId>,
}

/// Finds all dependences of the loop `node`.
///
/// # Errors
/// If it holds another loop, or hands on values unchanged.
pub(crate) fn dependences(
    view: SchedulerView,
    node: Entity,
    model: &ResourceModel,
) -> Result<LoopGraph, UnsuitableLoop> {
    loop_dependences(view, node, model, BufferCopies::Open, Ordered::Buffers)
}

/// The same for nodes that stay in their iterations: LDS buffers keep the numbers of copies that they have.
///
/// # Errors
/// If it holds another loop.
pub(crate) fn dependences_in_place(
    view: SchedulerView,
    node: Entity,
    model: &ResourceModel,
) -> Result<LoopGraph, UnsuitableLoop> {
    loop_dependences(view, node, model, BufferCopies::Given, Ordered::Buffers)
}

/// The same in the steady state of a pipelined loop, where only accesses of the same part of an LDS buffer
/// depend on each other.
///
/// # Errors
/// If it holds another loop.
pub(crate) fn dependences_of_parts(
    view: SchedulerView,
    node: Entity,
    model: &ResourceModel,
) -> Result<LoopGraph, UnsuitableLoop> {
    loop_dependences(view, node, model, BufferCopies::Given, Ordered::Parts)
}

/// Whether the numbers of copies of LDS buffers are still to be chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum BufferCopies {
    Open,
    Given,
}

/// Which accesses of an LDS buffer depend on each other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Ordered {
    /// All.
    Buffers,
    /// Those that touch the same part.
    Parts,
}

fn loop_dependences(
    view: SchedulerView,
    node: Entity,
    model: &ResourceModel,
    copies: BufferCopies,
    ordered: Ordered,
) -> Result<LoopGraph, UnsuitableLoop> {
    let body = view.body(node)?;
    let mut finder = Finder::new(view, model, body);
    finder.per_trip = Unrolled::of(view.world, node);
    let seen = view.nodes(body)?;
    finder.pipelined = seen.iter().any(|node| node.expansion.is_some_and(is_ahead));
    let memories = finder.straight(body, &seen)?;
    // Values that one trip hands to the next impose no order within a trip.
    if copies == BufferCopies::Open {
        finder.carried(node)?;
    }
    let mut buffers = SmallVec::new();
    for (memory, groups) in memories {
        let shared = view.op(memory)? == Op::Allocate;
        // Filled, then read: the number of copies of the buffer decides how far apart iterations may be.
        let mapped = shared && finder.is_mapped(&groups);
        if shared
            && !mapped
            && let Some(fills) = finder.fills(&groups)
        {
            for [writes, reads] in &fills {
                finder.between(memory, writes, reads, 0);
            }
            if copies == BufferCopies::Given {
                finder.turns(memory, &fills);
            }
            buffers.extend(fills.into_iter().map(|[writes, reads]| LoopBuffer {
                buffer: memory,
                writes: writes.nodes,
                reads: reads.nodes,
            }));
            continue;
        }
        let written = groups.iter().any(|group| group.write);
        if shared && written && copies == BufferCopies::Open && !finder.pipelined {
            return Err(UnsuitableLoop::KeptBuffer);
        }
        if shared && ordered == Ordered::Parts && !mapped {
            for groups in finder.by_parts(memory, &groups)? {
                finder.memory(memory, &groups);
            }
        } else {
            finder.memory(memory, &groups);
        }
        finder.find_next_trips(memory, &groups);
    }
    Ok(finder.finish(body, buffers))
}

/// Trips of a loop between two accesses: the first is `from` iterations ahead of its trip, the second is `to`
/// iterations ahead, and the second belongs to the iteration that is `later` iterations after that of the
/// first. `None` if there is no such trip.
pub(crate) fn trips_between(from: u32, to: u32, later: u32, per_trip: u32) -> Option<u32> {
    let iterations = (from + later).checked_sub(to)?;
    (iterations % per_trip == 0).then(|| iterations / per_trip)
}

/// True for nodes that a pipeline runs ahead of the iteration in which they were written.
fn is_ahead(expansion: &Expansion) -> bool {
    expansion.iteration.base == Base::Trip && expansion.iteration.ahead != expansion.copy
}

/// Finds the dependences among nodes that run once, one after the other.
///
/// # Errors
/// If there is a loop among them.
pub(crate) fn straight_dependences(
    view: SchedulerView,
    nodes: &[Entity],
    model: &ResourceModel,
) -> Result<LoopGraph, UnsuitableLoop> {
    let mut finder = Finder::new(view, model, nodes);
    for (memory, groups) in finder.straight(nodes, &view.nodes(nodes)?)? {
        for pair in groups.windows(2) {
            finder.between(memory, &pair[0], &pair[1], 0);
        }
    }
    Ok(finder.finish(nodes, SmallVec::new()))
}

/// The class of a node, as schedulers see it.
pub(crate) fn class_of(view: SchedulerView, node: &ExpandedNodeItem) -> Class {
    let op = *node.op;
    let shared = || node.memory().and_then(|memory| view.op(memory)) == Ok(Op::Allocate);
    match (op.row().unit, op.row().memory) {
        (OpUnit::Memory, MemoryEffect::Reads) if shared() => Class::ReadShared,
        (OpUnit::Memory, MemoryEffect::Reads) => Class::ReadGlobal,
        (OpUnit::Memory, MemoryEffect::Writes | MemoryEffect::Updates) if shared() => Class::WriteShared,
        (OpUnit::Memory, MemoryEffect::Writes | MemoryEffect::Updates) => Class::WriteGlobal,
        (OpUnit::Memory, MemoryEffect::Copies) => Class::GlobalToShared,
        (OpUnit::Matrix, _) => Class::Mma,
        (OpUnit::Vector, _) if node.expansion.is_some_and(|own| view.is_on_demand(own.logical)) => {
            Class::Free
        }
        (OpUnit::Vector, _) => Class::Valu,
        // No operation occupies the memory unit without an effect on memory.
        (OpUnit::None, _) | (OpUnit::Memory, MemoryEffect::None | MemoryEffect::Fence) => Class::Free,
    }
}

struct Finder<'a> {
    view: SchedulerView<'a>,
    model: &'a ResourceModel,
    nodes: PrimaryMap<NodeId, GraphNode>,
    body: PrimaryMap<NodeId, BodyNode>,
    edges: Vec<Edge>,
    /// Number of each node.
    number: EntityNumbers<NodeId>,
    /// Iterations of one trip of the loop.
    per_trip: u32,
    /// True in the steady state of a pipelined loop.
    pipelined: bool,
}

impl<'a> Finder<'a> {
    fn new(view: SchedulerView<'a>, model: &'a ResourceModel, body: &[Entity]) -> Finder<'a> {
        let (nodes, edges) = (Vec::with_capacity(body.len() + 8), Vec::with_capacity(4 * body.len()));
        Finder {
            view,
            model,
            nodes: nodes.into(),
            body: Vec::with_capacity(body.len()).into(),
            edges,
            number: EntityNumbers::of(body.iter().copied()),
            per_trip: 1,
            pipelined: false,
        }
    }

    fn finish(self, body: &[Entity], buffers: SmallVec<[LoopBuffer; 4]>) -> LoopGraph {
        let graph = DependenceGraph::new(self.nodes, self.edges);
        LoopGraph { graph, body_end: NodeId::new(body.len()), nodes: self.body, buffers }
    }

    /// Adds the nodes, with the order that values and barriers impose; returns the accesses of each memory.
    fn straight(
        &mut self,
        body: &[Entity],
        seen: &[ExpandedNodeItem],
    ) -> Result<Vec<(Entity, Vec<AccessGroup>)>, UnsuitableLoop> {
        let view = self.view;
        let mut memories: Vec<(Entity, Vec<AccessGroup>)> = Vec::new();
        let mut fences: Vec<NodeId> = Vec::new();
        let mut elements = (view.root, 0);
        for (&inner, node) in body.iter().zip(seen) {
            let (op, operands, expansion) = (*node.op, &node.operands.0[..], node.piece(inner));
            if op.runs_under_condition() {
                return Err(UnsuitableLoop::Conditional);
            }
            if op.row().class == OpClass::Region {
                return Err(UnsuitableLoop::Nested);
            }
            let flags = view.world.get::<MemoryAccessFlags>(expansion.logical);
            if flags.is_some_and(|flags| flags.volatile) {
                return Err(UnsuitableLoop::Volatile);
            }
            let at = self.nodes.push(GraphNode { entity: inner, class: class_of(view, node) });
            self.number.insert(inner, at);
            // Pieces of one node follow each other.
            if elements.0 != expansion.logical {
                elements = (expansion.logical, view.elements(expansion.logical));
            }
            let bytes = node.ty.dtype.map_or(0, |dtype| dtype.bytes());
            // Values on demand stay for no time.
            let is_kept = !view.is_on_demand(expansion.logical);
            let registers = if is_kept { (elements.1 * bytes).div_ceil(4) } else { 0 };
            self.body.push(BodyNode { op, expansion, registers });
            for &operand in operands {
                if let Some(from) = self.number.get(operand) {
                    self.edge(from, at, 0, Dependence::Value);
                }
            }
            match op.row().memory {
                MemoryEffect::None => {}
                MemoryEffect::Fence => fences.push(at),
                MemoryEffect::Reads | MemoryEffect::Writes | MemoryEffect::Updates | MemoryEffect::Copies => {
                    let &memory = operands.last().ok_or(UnsuitableLoop::Broken)?;
                    let kind = if op.is_write() { AccessEffect::Write } else { AccessEffect::Read };
                    self.note_access(&mut memories, memory, at, kind)?;
                    if op.row().memory == MemoryEffect::Copies {
                        self.note_access(&mut memories, operands[0], at, AccessEffect::Read)?;
                    }
                }
            }
        }
        self.fences(&fences, NodeId::new(body.len()));
        Ok(memories)
    }

    /// What a loop yields is what its next iteration begins with.
    fn carried(&mut self, node: Entity) -> Result<(), UnsuitableLoop> {
        let yields = self.view.world.get::<Yields>(node).ok_or(UnsuitableLoop::Broken)?;
        for at in self.body.keys() {
            let Op::IterArg(carried) = self.body[at].op else { continue };
            let from = self.number.get(yields.at(carried as usize)?).ok_or(UnsuitableLoop::Unchanged)?;
            if let Op::IterArg(_) = self.body[from].op {
                return Err(UnsuitableLoop::Unchanged);
            }
            self.edge(from, at, 1, Dependence::Value);
        }
        Ok(())
    }

    fn delay(&self, node: NodeId) -> u32 {
        u32::from(self.model.cost(self.nodes[node].class).delay)
    }

    /// An edge over which the result of `from` travels, or its write becomes visible.
    fn edge(&mut self, from: NodeId, to: NodeId, distance: u32, kind: Dependence) {
        self.edges.push(Edge { from, to, latency: self.delay(from), distance, kind });
    }

    /// An edge that only keeps an order.
    fn order(&mut self, from: NodeId, to: NodeId, distance: u32, kind: Dependence) {
        self.edges.push(Edge { from, to, latency: 0, distance, kind });
    }

    fn junction(&mut self, memory: Entity) -> NodeId {
        self.nodes.push(GraphNode { entity: memory, class: Class::Free })
    }

    /// Barriers and the like: nothing that the author wrote on one side of them may move to the other.
    fn fences(&mut self, fences: &[NodeId], body_end: NodeId) {
        for (at, &fence) in fences.iter().enumerate() {
            let from = at.checked_sub(1).map_or(NodeId::default(), |before| fences[before]);
            let to = fences.get(at + 1).map_or(body_end, |next| next.next());
            for node in iter_entity_range(from..to) {
                match node.cmp(&fence) {
                    std::cmp::Ordering::Less if self.is_held(node) => {
                        self.order(node, fence, 0, Dependence::Order);
                    }
                    std::cmp::Ordering::Greater if self.is_held(node) => {
                        self.order(fence, node, 0, Dependence::Order);
                    }
                    std::cmp::Ordering::Less | std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => {}
                }
            }
        }
        // Around the back edge: nodes in front of the first fence wait for the last fence of the previous
        // iteration, and nodes after the last fence are over before the first fence of the next.
        if let (Some(&first), Some(&last)) = (fences.first(), fences.last()) {
            for node in iter_entity_range(NodeId::default()..body_end) {
                if node <= first && self.is_held(node) {
                    self.order(last, node, 1, Dependence::Order);
                }
                if node > last && self.is_held(node) {
                    self.order(node, first, 1, Dependence::Order);
                }
            }
        }
    }

    /// True for nodes that barriers hold: all but those that take no time.
    fn is_held(&self, node: NodeId) -> bool {
        self.nodes[node].class != Class::Free || self.body[node].op.row().class == OpClass::Order
    }

    /// Keeps the accesses of one memory in order, within an iteration.
    fn memory(&mut self, memory: Entity, groups: &[AccessGroup]) {
        if groups.iter().all(|group| group.ahead.is_some()) {
            return self.steady(memory, groups);
        }
        for pair in groups.windows(2) {
            self.between(memory, &pair[0], &pair[1], 0);
        }
    }

    /// The same in the steady state of a pipelined loop, where two accesses can touch the same data only if
    /// they belong to one iteration, or to two iterations that use the same copy of the buffer.
    fn steady(&mut self, memory: Entity, groups: &[AccessGroup]) {
        let copies = self.view.copies(memory);
        for writes in groups.iter().filter(|group| group.write) {
            for reads in groups.iter().filter(|group| !group.write) {
                let (written, read) = (writes.ahead.unwrap_or(0), reads.ahead.unwrap_or(0));
                if let Some(trips) = trips_between(written, read, 0, self.per_trip) {
                    self.between(memory, writes, reads, trips);
                }
                if let Some(trips) = trips_between(read, written, copies, self.per_trip) {
                    self.between(memory, reads, writes, trips);
                }
            }
        }
    }

    /// The accesses of each part of an LDS buffer.
    fn by_parts(&self, buffer: Entity, groups: &[AccessGroup]) -> Result<Vec<Vec<AccessGroup>>, Bug> {
        let nodes = || groups.iter().flat_map(|group| &group.nodes);
        let entities: Vec<Entity> = nodes().map(|&node| self.nodes[node].entity).collect();
        let numbers = parts_of(self.view, buffer, &entities)?;
        let count = numbers.iter().max().map_or(0, |&last| last as usize + 1);
        let empty = |group: &AccessGroup| AccessGroup { nodes: Vec::new(), ..*group };
        let mut parts: Vec<Vec<AccessGroup>> =
            (0..count).map(|_| groups.iter().map(empty).collect()).collect();
        let mut numbers = numbers.into_iter();
        for (at, group) in groups.iter().enumerate() {
            for (&node, part) in group.nodes.iter().zip(&mut numbers) {
                parts[part as usize][at].nodes.push(node);
            }
        }
        parts.iter_mut().for_each(|groups| groups.retain(|group| !group.nodes.is_empty()));
        Ok(parts)
    }

    /// Whether any of the accesses writes at coordinates, and so not the whole buffer.
    fn is_mapped(&self, groups: &[AccessGroup]) -> bool {
        let writes = groups.iter().filter(|group| group.write);
        writes.into_iter().any(|group| self.view.world.get::<Mapping>(group.logical).is_some())
    }

    /// What each iteration of a trip writes into a buffer and then reads; `None` if there are other accesses.
    fn fills(&self, groups: &[AccessGroup]) -> Option<Vec<[AccessGroup; 2]>> {
        let logical = groups.first()?.logical;
        let new = |write| AccessGroup { write, logical, ahead: None, nodes: Vec::new() };
        let mut fills: Vec<[AccessGroup; 2]> = (0..self.per_trip).map(|_| [new(true), new(false)]).collect();
        for group in groups {
            if group.ahead.is_some() || (group.write && group.logical != logical) {
                return None;
            }
            for &node in &group.nodes {
                let own = self.body[node].expansion.copy;
                let [writes, reads] = fills.get_mut(own as usize)?;
                match group.write {
                    true if reads.nodes.is_empty() => writes.nodes.push(node),
                    false if !writes.nodes.is_empty() => reads.nodes.push(node),
                    _ => return None,
                }
            }
        }
        fills.iter().flatten().all(|group| !group.nodes.is_empty()).then_some(fills)
    }

    /// Keeps the accesses of one memory in order from one iteration to the next.
    fn find_next_trips(&mut self, memory: Entity, groups: &[AccessGroup]) {
        match groups {
            [first, .., last] if first.ahead.is_none() => {
                self.between(memory, last, first, 1);
                // Two reads do not wait for each other; the write between them keeps the order.
                if !first.write && !last.write {
                    let mut writes = groups.iter().filter(|group| group.write);
                    if let Some(first_write) = writes.next() {
                        let last_write = writes.next_back().unwrap_or(first_write);
                        self.between(memory, last_write, first, 1);
                        self.between(memory, last, first_write, 1);
                    }
                }
            }
            [only] if only.write => self.between(memory, only, only, 1),
            _ => {}
        }
    }

    /// An iteration may overwrite a copy of the buffer only after an earlier one has read it.
    fn turns(&mut self, memory: Entity, fills: &[[AccessGroup; 2]]) {
        let copies = self.view.copies(memory) as usize;
        for (at, [_, reads]) in fills.iter().enumerate() {
            let next = at + copies;
            self.between(memory, reads, &fills[next % fills.len()][0], (next / fills.len()) as u32);
        }
    }

    fn between(&mut self, memory: Entity, earlier: &AccessGroup, later: &AccessGroup, distance: u32) {
        let kind = match (earlier.write, later.write) {
            (true, false) => Dependence::Flow,
            (false, true) => Dependence::Anti,
            (true, true) => Dependence::Output,
            (false, false) => return,
        };
        let junction = self.junction(memory);
        for &node in &earlier.nodes {
            if kind == Dependence::Flow {
                self.edge(node, junction, 0, kind);
            } else {
                self.order(node, junction, 0, kind);
            }
        }
        for &node in &later.nodes {
            self.order(junction, node, distance, kind);
        }
    }

    fn note_access(
        &self,
        memories: &mut Vec<(Entity, Vec<AccessGroup>)>,
        memory: Entity,
        at: NodeId,
        kind: AccessEffect,
    ) -> Result<(), Bug> {
        let write = kind == AccessEffect::Write;
        let Expansion { logical, iteration, .. } = self.body[at].expansion;
        let shared = self.pipelined && self.view.op(memory)? == Op::Allocate;
        let ahead = (shared && iteration.base == Base::Trip).then_some(iteration.ahead);
        let index = memories.iter().position(|m| m.0 == memory).unwrap_or_else(|| {
            memories.push((memory, Vec::new()));
            memories.len() - 1
        });
        let groups = &mut memories[index].1;
        let alike = |group: &AccessGroup| {
            group.write == write && group.ahead == ahead && (!write || group.logical == logical)
        };
        // In the steady state accesses are told apart by their iterations, and program order does not matter.
        let known = match ahead {
            Some(_) => groups.iter_mut().find(|group| alike(group)),
            None => groups.last_mut().filter(|group| alike(group)),
        };
        match known {
            Some(group) => group.nodes.push(at),
            None => groups.push(AccessGroup { write, logical, ahead, nodes: vec![at] }),
        }
        Ok(())
    }
}
