//! Placement by kinds of operations: loads from global memory first, then stores to LDS, reads from LDS, and
//! computation last.
//!
//! A cycle here is a phase and lasts as long as it has to: waits and barriers keep the order, so latencies do
//! not matter. In one slot the oldest iteration runs first, and nodes of one iteration run in program order.
//! A dependence therefore holds as soon as its second node is in the same cycle or a later one, counted over
//! iterations.
//!
//! The kind of a node says where it would like to be, dependences say where it can be. Arithmetic that leads
//! to an address or to a store into LDS goes with that access, if its operands are available by then; so an
//! address that a pointer carries from iteration to iteration is computed ahead with the loads. A node that
//! waits for a later phase moves to that phase: a second trip through LDS, of values computed from the first,
//! is part of the computation.

use std::collections::VecDeque;

use super::components::{self, Rank};
use super::refusal::Refusal;
#[cfg(test)]
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{Dependence, DependenceGraph, Edge, NodeId};
use crate::passes::schedule::graph::resources::Class;
use cranelift_entity::PrimaryMap;

/// Loads from global memory, into registers or LDS.
pub(crate) const LOAD: u32 = 0;
/// Stores to LDS.
pub(crate) const STORE_SHARED: u32 = 1;
/// Reads from LDS.
pub(crate) const READ_SHARED: u32 = 2;
/// Computation, and stores to global memory.
pub(crate) const COMPUTE: u32 = 3;

/// Which phase the kind of a node asks for.
enum Wish {
    /// This one.
    Phase(u32),
    /// That of the first of its users.
    WithUsers,
}

fn wish(class: Class) -> Wish {
    match class {
        Class::ReadGlobal | Class::GlobalToShared => Wish::Phase(LOAD),
        Class::WriteShared => Wish::Phase(STORE_SHARED),
        Class::ReadShared => Wish::Phase(READ_SHARED),
        Class::Mma | Class::WriteGlobal => Wish::Phase(COMPUTE),
        Class::Valu | Class::Shuffle | Class::Free => Wish::WithUsers,
    }
}

/// True if every dependence of the graph holds by order alone; see the module.
#[cfg(test)]
pub(crate) fn keeps_order(graph: &DependenceGraph, assignment: &Assignment) -> bool {
    let cycle = |node: NodeId| u64::from(assignment.cycles[node]);
    graph.edges().iter().all(|edge| {
        let reached = cycle(edge.to) + u64::from(edge.distance) * u64::from(assignment.interval);
        reached >= cycle(edge.from) + u64::from(after(graph, edge))
    })
}

/// Cycles by which the second node of a dependence lies after the first: one if program order would run it
/// first. Nodes that emit nothing, such as junctions, have no place in program order.
fn after(graph: &DependenceGraph, edge: &Edge) -> u32 {
    let runs = |node: NodeId| graph.nodes()[node].class != Class::Free;
    u32::from(edge.distance == 0 && edge.to <= edge.from && runs(edge.from) && runs(edge.to))
}

/// A phase for every node, with iterations that start every `interval` phases. An error if no load runs ahead
/// in the first phase.
pub(super) fn place(graph: &DependenceGraph, interval: u32) -> Result<PrimaryMap<NodeId, u32>, Refusal> {
    place_counted(graph, interval).map(|(phases, _)| phases)
}

/// The same, with the number of dependences looked at.
pub(crate) fn place_counted(
    graph: &DependenceGraph,
    interval: u32,
) -> Result<(PrimaryMap<NodeId, u32>, u64), Refusal> {
    let order = components::order(graph)?;
    let is_load =
        |node: NodeId| matches!(graph.nodes()[node].class, Class::ReadGlobal | Class::GlobalToShared);
    let loads: Vec<NodeId> = order.values().copied().filter(|&node| is_load(node)).collect();
    let Some(&first_load) = loads.first() else { return Err(Refusal::NoLoads) };
    let (cycles, steps) = wishes(graph, &order);
    let mut phases = Phases { graph, interval, cycles, pushed_by: graph.table(None), steps };
    phases.push(&order)?;
    if !loads.iter().any(|&load| phases.cycles[load] == LOAD) {
        return Err(phases.why_late(first_load));
    }
    phases.free_to_users(&order);
    Ok((phases.cycles, phases.steps))
}

/// Phases that nodes would like to be in, and the number of dependences looked at.
fn wishes(graph: &DependenceGraph, order: &PrimaryMap<Rank, NodeId>) -> (PrimaryMap<NodeId, u32>, u64) {
    let class = |node: NodeId| graph.nodes()[node].class;
    let fixed = |node: NodeId| match wish(class(node)) {
        Wish::Phase(phase) => phase,
        Wish::WithUsers => COMPUTE,
    };
    let mut wishes: PrimaryMap<NodeId, u32> = graph.nodes().keys().map(fixed).collect();
    // Wishes only fall, and there are four, so a node is visited a few times at most.
    let mut open: VecDeque<NodeId> = order.values().rev().copied().collect();
    let mut steps = 0;
    while let Some(node) = open.pop_front() {
        for edge in graph.entering(node) {
            steps += 1;
            if edge.kind != Dependence::Value {
                continue;
            }
            if matches!(wish(class(edge.from)), Wish::WithUsers) && wishes[edge.from] > wishes[node] {
                wishes[edge.from] = wishes[node];
                open.push_back(edge.from);
            }
        }
    }
    // A node that takes no time has no wish of its own: it starts at the beginning and moves to its users in
    // the end.
    for (node, wish) in wishes.iter_mut() {
        if class(node) == Class::Free {
            *wish = 0;
        }
    }
    (wishes, steps)
}

/// Phases under construction.
struct Phases<'a> {
    graph: &'a DependenceGraph,
    interval: u32,
    cycles: PrimaryMap<NodeId, u32>,
    /// The dependence that last moved a node.
    pushed_by: PrimaryMap<NodeId, Option<Edge>>,
    /// Dependences looked at.
    steps: u64,
}

impl Phases<'_> {
    fn class(&self, node: NodeId) -> Class {
        self.graph.nodes()[node].class
    }

    /// Moves nodes until all dependences hold.
    fn push(&mut self, order: &PrimaryMap<Rank, NodeId>) -> Result<(), Refusal> {
        let mut open: VecDeque<NodeId> = order.values().copied().collect();
        while let Some(node) = open.pop_front() {
            for edge in self.graph.leaving(node) {
                self.steps += 1;
                let end = u64::from(self.cycles[node]) + u64::from(after(self.graph, edge));
                let least = end.saturating_sub(u64::from(edge.distance) * u64::from(self.interval));
                if least <= u64::from(self.cycles[edge.to]) {
                    continue;
                }
                // Computation that must wait for reads from LDS is ordinary computation.
                let computes = matches!(self.class(edge.to), Class::Valu | Class::Shuffle);
                let phase = match least as u32 {
                    READ_SHARED if computes => COMPUTE,
                    phase => phase,
                };
                if phase > COMPUTE {
                    return Err(Refusal::OutOfOrder { from: edge.from, to: edge.to });
                }
                self.cycles[edge.to] = phase;
                self.pushed_by[edge.to] = Some(*edge);
                open.push_back(edge.to);
            }
        }
        Ok(())
    }

    /// Why a load does not run ahead: the nearest node before it that takes time.
    fn why_late(&self, load: NodeId) -> Refusal {
        let mut from = load;
        let mut distance = 0;
        for _ in 0..self.cycles.len() {
            let Some(edge) = &self.pushed_by[from] else { break };
            from = edge.from;
            distance += edge.distance;
            if self.class(from) != Class::Free {
                break;
            }
        }
        match distance {
            0 => Refusal::LateLoad { from, to: load },
            _ => Refusal::Recurrence { from, to: load },
        }
    }

    /// Moves nodes that take no time to the first of their users. Dependences hold before and after: users
    /// can only come later, and the next iteration later still.
    fn free_to_users(&mut self, order: &PrimaryMap<Rank, NodeId>) {
        for &node in order.values().rev().filter(|&&node| self.graph.nodes()[node].class == Class::Free) {
            let users = self.graph.leaving(node).iter().filter(|edge| edge.to != node);
            let first = users.map(|edge| self.cycles[edge.to]).min();
            let now = self.cycles[node];
            self.cycles[node] = first.map_or(now, |first| now.max(first));
        }
    }
}
