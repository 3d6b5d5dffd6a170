//! Iterative modulo scheduling (Rau, "Iterative Modulo Scheduling", 1994) for one interval.
//!
//! Nodes are placed one at a time, those with the longest way to the end first, in the first cycle that
//! dependences on placed nodes and the reservation table allow. A node that fits nowhere is placed all the
//! same, and the nodes in its way are taken out and go back into the queue. Placements are counted; after too
//! many the interval is considered impossible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::bounds::slack;
use super::longest::Longest;
use super::reservations::Reservations;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, NodeId};
use crate::passes::schedule::graph::resources::{Class, Cost, RESOURCES, ResourceModel};
use crate::passes::schedule::strategies::components::{ComponentId, GraphShape, Rank};
use cranelift_entity::PrimaryMap;

/// What is to be scheduled.
#[derive(Copy, Clone)]
pub(super) struct Problem<'a> {
    pub graph: &'a DependenceGraph,
    pub model: &'a ResourceModel,
    pub shape: &'a GraphShape,
}

impl<'a> Problem<'a> {
    pub(super) fn class(&self, node: NodeId) -> Class {
        self.graph.nodes()[node].class
    }

    pub(super) fn cost(&self, node: NodeId) -> &'a Cost {
        self.model.cost(self.class(node))
    }

    pub(super) fn count(&self) -> usize {
        self.graph.nodes().len()
    }

    /// True if the node occupies nothing and can be anywhere.
    pub(super) fn is_free(&self, node: NodeId) -> bool {
        self.cost(node).busy == [0; RESOURCES]
    }

    /// An empty table. Where a resource has little to spare, starts are kept on a grid that all its users
    /// share, so that there are no gaps that are too short for any of them.
    pub(super) fn table(&self, interval: u32) -> Reservations {
        let mut busy = [0u64; RESOURCES];
        let mut grain = [0usize; RESOURCES];
        for node in self.graph.nodes().values() {
            for (column, &cycles) in self.model.cost(node.class).busy.iter().enumerate() {
                busy[column] += u64::from(cycles);
                grain[column] = greatest_common_divisor(grain[column], usize::from(cycles));
            }
        }
        for (column, &units) in self.model.units.iter().enumerate() {
            let capacity = u64::from(units) * u64::from(interval);
            if busy[column] * 4 <= capacity * 3 {
                grain[column] = 1;
            }
        }
        Reservations::new(self.model, interval).with_grain(grain)
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Longest paths inside the small recurrences of a graph. In others only the dependences of neighbours are
/// known, and placements fail more often.
pub(super) struct Recurrences {
    /// By component.
    longest: PrimaryMap<ComponentId, Option<Longest>>,
    /// Place of each node in its component.
    place: PrimaryMap<NodeId, usize>,
}

/// The most work, in cubes of nodes, that goes into longest paths.
const MOST_WORK: usize = 1 << 16;

impl Recurrences {
    pub(super) fn none() -> Recurrences {
        Recurrences { longest: PrimaryMap::default(), place: PrimaryMap::default() }
    }

    /// Longest paths for intervals from `least` on.
    pub(super) fn of(problem: &Problem, least: u32) -> Recurrences {
        let components = &problem.shape.components;
        let mut recurrences = Recurrences { longest: PrimaryMap::default(), place: problem.graph.table(0) };
        let mut work = 0;
        for component in components.ids() {
            let nodes = components.nodes(component);
            for (&node, place) in nodes.iter().zip(0..) {
                recurrences.place[node] = place;
            }
            let cube = nodes.len().saturating_pow(3);
            let known = (2..=Longest::MOST).contains(&nodes.len()) && work + cube <= MOST_WORK;
            work += if known { cube } else { 0 };
            recurrences.longest.push(known.then(|| Longest::of(problem.graph, nodes, least)));
        }
        recurrences
    }
}

/// A schedule under construction: placed nodes and the first and last cycle that they leave for others.
pub(super) struct PartialSchedule<'a> {
    pub problem: Problem<'a>,
    pub interval: u32,
    pub table: Reservations,
    pub cycles: PrimaryMap<NodeId, Option<i64>>,
    pub recurrences: &'a Recurrences,
}

impl<'a> PartialSchedule<'a> {
    pub(super) fn new(
        problem: Problem<'a>,
        interval: u32,
        recurrences: &'a Recurrences,
    ) -> PartialSchedule<'a> {
        let table = problem.table(interval);
        PartialSchedule { problem, interval, table, cycles: problem.graph.table(None), recurrences }
    }

    /// The first and the last cycle that dependences on placed nodes allow, where they set limits.
    pub(super) fn window(&mut self, node: NodeId) -> (Option<i64>, Option<i64>) {
        let Problem { graph, shape, .. } = self.problem;
        let (mut early, mut late) = (None, None);
        for edge in graph.entering(node).filter(|edge| edge.from != node) {
            self.table.steps += 1;
            if let Some(from) = self.cycles[edge.from] {
                early = early.max(Some(from + slack(edge, self.interval)));
            }
        }
        let mut before = |cycle: i64| late = Some(late.map_or(cycle, |late: i64| late.min(cycle)));
        for edge in graph.leaving(node).iter().filter(|edge| edge.to != node) {
            self.table.steps += 1;
            if let Some(to) = self.cycles[edge.to] {
                before(to - slack(edge, self.interval));
            }
        }
        let component = shape.components.of(node);
        if let Some(Some(longest)) = self.recurrences.longest.get(component) {
            let at = self.recurrences.place[node];
            for (other, &member) in shape.components.nodes(component).iter().enumerate() {
                self.table.steps += 1;
                let Some(cycle) = self.cycles[member].filter(|_| other != at) else { continue };
                early = early.max(longest.at(other, at, self.interval).map(|length| cycle + length));
                if let Some(length) = longest.at(at, other, self.interval) {
                    before(cycle - length);
                }
            }
        }
        (early, late)
    }

    pub(super) fn put(&mut self, node: NodeId, cycle: i64) {
        self.table.take(self.problem.cost(node), cycle);
        self.cycles[node] = Some(cycle);
    }

    pub(super) fn take_out(&mut self, node: NodeId) -> Option<i64> {
        let cycle = self.cycles[node].take()?;
        self.table.free(self.problem.cost(node), cycle);
        Some(cycle)
    }
}

/// Nodes to place, the most urgent on top: height, then rank.
type Queue = BinaryHeap<(i64, Reverse<Rank>)>;

/// Schedules with the interval of `placement`, which is empty. False if that failed.
pub(super) fn place(placement: &mut PartialSchedule) -> bool {
    let problem = placement.problem;
    let interval = placement.interval;
    let heights = heights(&problem, interval, &mut placement.table.steps);
    let entry = |node: NodeId| (heights[node], Reverse(problem.shape.rank[node]));
    let mut queue: Queue = problem.graph.nodes().keys().map(entry).collect();
    let mut last: PrimaryMap<NodeId, Option<i64>> = problem.graph.table(None);
    let mut crowd = Crowd::new(problem.graph, interval);
    let mut budget = 4 * problem.count() + 32;
    while let Some((_, Reverse(rank))) = queue.pop() {
        let node = problem.shape.order[rank];
        if placement.cycles[node].is_some() {
            continue;
        }
        if budget == 0 {
            return false;
        }
        budget -= 1;
        let (early, late) = placement.window(node);
        let early = early.unwrap_or(0).max(0);
        let cost = problem.cost(node);
        let end = early.saturating_add(i64::from(interval) - 1);
        let found = placement.table.first_fit(cost, early, late.map_or(end, |late| late.min(end)));
        let cycle = match found.or_else(|| placement.table.first_fit(cost, early, end)) {
            Some(cycle) => cycle,
            None => {
                let cycle = last[node].map_or(early, |last| early.max(last + 1));
                while !placement.table.fits(cost, cycle) {
                    let Some(other) = crowd.least_urgent(placement, cost, cycle, &heights) else {
                        return false;
                    };
                    crowd.remove(placement, other);
                    queue.push(entry(other));
                }
                cycle
            }
        };
        placement.put(node, cycle);
        crowd.add(node, placement.table.slot(cycle));
        last[node] = Some(cycle);
        for edge in problem.graph.leaving(node).iter().filter(|edge| edge.to != node) {
            let to = placement.cycles[edge.to];
            if to.is_some_and(|to| to < cycle + slack(edge, interval)) {
                crowd.remove(placement, edge.to);
                queue.push(entry(edge.to));
            }
        }
    }
    true
}

/// The longest way from each node to the end of its iteration. Recurrences are followed until nothing
/// changes, which takes few rounds: a round follows all dependences of an iteration, and no cycle is positive
/// from the recurrence bound on.
fn heights(problem: &Problem, interval: u32, steps: &mut u64) -> PrimaryMap<NodeId, i64> {
    let components = &problem.shape.components;
    let mut heights = problem.graph.table(0i64);
    for component in components.ids().rev() {
        let nodes = components.nodes(component);
        for _ in 0..=nodes.len() {
            let mut changed = false;
            for &node in nodes.iter().rev() {
                let mut height = heights[node];
                for edge in problem.graph.leaving(node) {
                    *steps += 1;
                    height = height.max(heights[edge.to] + slack(edge, interval));
                }
                changed |= height > heights[node];
                heights[node] = height;
            }
            if !changed || nodes.len() == 1 {
                break;
            }
        }
    }
    heights
}

/// Which nodes start in which slot: a list for each slot, threaded through the nodes.
struct Crowd {
    first: Vec<Option<NodeId>>,
    next: PrimaryMap<NodeId, Option<NodeId>>,
}

impl Crowd {
    fn new(graph: &DependenceGraph, interval: u32) -> Crowd {
        Crowd { first: vec![None; interval as usize], next: graph.table(None) }
    }

    fn add(&mut self, node: NodeId, slot: usize) {
        self.next[node] = self.first[slot].replace(node);
    }

    /// Takes a placed node out of its slot and out of the schedule.
    fn remove(&mut self, placement: &mut PartialSchedule, node: NodeId) {
        let Some(cycle) = placement.take_out(node) else { return };
        let slot = placement.table.slot(cycle);
        let after = self.next[node].take();
        if self.first[slot] == Some(node) {
            self.first[slot] = after;
            return;
        }
        let mut at = self.first[slot];
        while let Some(other) = at {
            if self.next[other] == Some(node) {
                self.next[other] = after;
                return;
            }
            at = self.next[other];
        }
    }

    /// Of the nodes in the way of an operation, the one with the shortest way to the end.
    fn least_urgent(
        &self,
        placement: &mut PartialSchedule,
        cost: &Cost,
        cycle: i64,
        heights: &PrimaryMap<NodeId, i64>,
    ) -> Option<NodeId> {
        let problem = placement.problem;
        let longest = problem.model.costs.iter().flat_map(|cost| cost.busy).max().unwrap_or(0);
        let mine = cost.busy.iter().copied().max().unwrap_or(0);
        let span = (usize::from(longest) + usize::from(mine)).min(self.first.len());
        let start = placement.table.slot(cycle - i64::from(longest) + 1);
        let mut least: Option<(i64, Reverse<Rank>, NodeId)> = None;
        for offset in 0..span {
            let mut at = self.first[(start + offset) % self.first.len()];
            while let Some(node) = at {
                placement.table.steps += 1;
                let other = placement.cycles[node]?;
                if placement.table.overlap(cost, cycle, problem.cost(node), other) {
                    let entry = (heights[node], Reverse(problem.shape.rank[node]), node);
                    least = Some(least.map_or(entry, |least| least.min(entry)));
                }
                at = self.next[node];
            }
        }
        least.map(|least| least.2)
    }
}
