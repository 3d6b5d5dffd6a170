//! Exact modulo scheduling of small graphs.
//!
//! Whether an interval is possible is decided on slots alone: once every busy node has its slot, dependences
//! ask for differences of stages, and these can be met unless their sum around some circle is positive. For
//! the least interval a second search, over cycles, looks for the fewest stages and, among those, the least
//! sum of lifetimes. Both count the placements that they try and give up in time.

use super::iterative::Problem;
use super::longest::Longest;
use super::reservations::Reservations;
use super::settle::from_zero;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{Dependence, NodeId};
use crate::passes::schedule::strategies::refusal::Refusal;
use cranelift_entity::{EntityRef, PrimaryMap};

/// The most nodes that occupy a unit.
const MOST_BUSY: usize = 12;

/// Placements that the search for an interval tries before it gives up.
const MOST_PROOF: u64 = 10_000;

/// Placements that the search for the best schedule of an interval tries before it takes the best found so
/// far.
const MOST_IMPROVEMENT: u64 = 3_000;

/// What is known of an interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A schedule.
    Possible(PrimaryMap<NodeId, Option<i64>>),
    /// There is none.
    Impossible,
    /// The search took too long.
    Unknown,
}

/// A small graph with all its longest paths.
pub(super) struct SmallGraph<'a> {
    problem: Problem<'a>,
    longest: Longest,
    /// Nodes that occupy a unit, those in recurrences first.
    busy: Vec<NodeId>,
    /// Placements tried so far.
    pub places: u64,
}

impl<'a> SmallGraph<'a> {
    /// None if the graph is too large. `least` is no less than the recurrence bound.
    pub(super) fn of(problem: Problem<'a>, least: u32) -> Option<SmallGraph<'a>> {
        if problem.count() > Longest::MOST {
            return None;
        }
        let all: Vec<NodeId> = problem.graph.nodes().keys().collect();
        let mut busy: Vec<NodeId> = all.iter().copied().filter(|&node| !problem.is_free(node)).collect();
        if busy.len() > MOST_BUSY {
            return None;
        }
        let components = &problem.shape.components;
        busy.sort_by_key(|&node| {
            (components.nodes(components.of(node)).len() == 1, problem.shape.rank[node])
        });
        Some(SmallGraph { problem, longest: Longest::of(problem.graph, &all, least), busy, places: 0 })
    }

    /// Least cycles between two nodes.
    /// All nodes stand in the list of the longest paths in their order.
    fn between(&self, from: NodeId, to: NodeId, interval: u32) -> Option<i64> {
        self.longest.at(from.index(), to.index(), interval)
    }

    /// Decides an interval.
    pub(super) fn decide(&mut self, interval: u32) -> Verdict {
        let count = self.busy.len();
        let mut slots = SlotSearch {
            interval: i64::from(interval),
            ends: self.places + MOST_PROOF,
            table: Reservations::new(self.problem.model, interval),
            slots: Vec::with_capacity(count),
            between: Vec::with_capacity(count * count),
        };
        for &from in &self.busy {
            slots.between.extend(self.busy.iter().map(|&to| self.between(from, to, interval)));
        }
        match self.fill_slots(&mut slots, &vec![None; count * count]) {
            Some(stages) => {
                let mut cycles = self.problem.graph.table(None);
                for (at, &node) in self.busy.iter().enumerate() {
                    // Stages count from the earliest one that a node can have if none lies before 0.
                    let stage = (0..count).filter_map(|other| stages[other * count + at]).max();
                    cycles[node] = Some(stage.unwrap_or(0).max(0) * slots.interval + slots.slots[at]);
                }
                Verdict::Possible(self.complete(cycles, interval))
            }
            None if self.places >= slots.ends => Verdict::Unknown,
            None => Verdict::Impossible,
        }
    }

    /// Gives the next busy node each slot in turn, and all nodes after it; `stages` says by how many stages a
    /// node has to lie after another.
    fn fill_slots(&mut self, slots: &mut SlotSearch, stages: &[Option<i64>]) -> Option<Vec<Option<i64>>> {
        let (at, count) = (slots.slots.len(), self.busy.len());
        if at == count {
            return Some(stages.to_vec());
        }
        let cost = self.problem.cost(self.busy[at]);
        // Rotating all slots by the same amount changes nothing, so the first node only needs to try one.
        let choices = if at == 0 { 1 } else { slots.interval };
        for slot in 0..choices {
            if self.places >= slots.ends {
                return None;
            }
            self.places += 1;
            if !slots.table.fits(cost, slot) {
                continue;
            }
            slots.slots.push(slot);
            if let Some(stages) = slots.close(stages, at, count) {
                slots.table.take(cost, slot);
                if let Some(found) = self.fill_slots(slots, &stages) {
                    return Some(found);
                }
                slots.table.free(cost, slot);
            }
            slots.slots.pop();
        }
        None
    }

    /// Places the nodes that occupy nothing between the others: as early as the placed nodes before them
    /// allow, or else as late as those after them do. All paths are known, so there is always a place.
    fn complete(
        &self,
        mut cycles: PrimaryMap<NodeId, Option<i64>>,
        interval: u32,
    ) -> PrimaryMap<NodeId, Option<i64>> {
        for &node in self.problem.shape.order.values() {
            if cycles[node].is_some() {
                continue;
            }
            let placed = || cycles.iter().filter_map(|(other, cycle)| cycle.map(|cycle| (other, cycle)));
            let early = placed().filter_map(|(other, cycle)| {
                self.between(other, node, interval).map(|length| cycle + length)
            });
            let late = placed().filter_map(|(other, cycle)| {
                self.between(node, other, interval).map(|length| cycle - length)
            });
            cycles[node] = early.max().or(late.min()).or(Some(0));
        }
        cycles
    }

    /// The schedule of the fewest stages and, among those, the shortest lifetimes, as far as the search gets;
    /// `known` if it finds nothing better.
    pub(super) fn improve(&mut self, known: Assignment) -> Result<Assignment, Refusal> {
        let interval = known.interval;
        let nodes = || self.problem.graph.nodes().keys();
        let reach =
            |lengths: &mut dyn Iterator<Item = Option<i64>>| lengths.flatten().max().unwrap_or(0).max(0);
        let before: Vec<i64> = nodes()
            .map(|node| reach(&mut nodes().map(|other| self.between(other, node, interval))))
            .collect();
        let after: Vec<i64> = nodes()
            .map(|node| reach(&mut nodes().map(|other| self.between(node, other, interval))))
            .collect();
        let path = before.iter().zip(&after).map(|(before, after)| before + after).max().unwrap_or(0);
        let mut best = Best { lifetime: self.lifetime(&known), cycles: None };
        let ends = self.places + MOST_IMPROVEMENT;
        for stages in path / i64::from(interval) + 1..=i64::from(known.stages()) {
            if stages < i64::from(known.stages()) {
                best.lifetime = i64::MAX;
            }
            let last = stages * i64::from(interval) - 1;
            let windows = before.iter().zip(&after).map(|(&before, &after)| (before, last - after)).collect();
            let mut cycles = Cycles {
                interval,
                ends,
                table: Reservations::new(self.problem.model, interval),
                cycles: self.problem.graph.table(None),
            };
            self.fill_cycles(&mut cycles, windows, &mut best);
            if best.cycles.is_some() {
                break;
            }
            best.lifetime = self.lifetime(&known);
        }
        match best.cycles {
            Some(cycles) => from_zero(interval, &cycles.values().copied().map(Some).collect()),
            None => Ok(known),
        }
    }

    /// Gives the most restricted busy node each cycle of its window in turn, and all nodes after it.
    fn fill_cycles(&mut self, cycles: &mut Cycles, windows: PrimaryMap<NodeId, (i64, i64)>, best: &mut Best) {
        let open = self.busy.iter().copied().filter(|&node| cycles.cycles[node].is_none());
        let Some(node) = open.min_by_key(|&node| windows[node].1 - windows[node].0) else {
            let found = self.complete_within(cycles, windows);
            let lifetime = self.lifetime_of(cycles.interval, |node| Some(found[node]));
            if lifetime < best.lifetime {
                *best = Best { lifetime, cycles: Some(found) };
            }
            return;
        };
        let (early, late) = windows[node];
        let cost = self.problem.cost(node);
        for cycle in early..=late {
            if self.places >= cycles.ends {
                return;
            }
            self.places += 1;
            if !cycles.table.fits(cost, cycle) {
                continue;
            }
            cycles.cycles[node] = Some(cycle);
            if self.lifetime_of(cycles.interval, |node| cycles.cycles[node]) < best.lifetime {
                cycles.table.take(cost, cycle);
                let narrowed = self.narrow(&windows, node, cycle, cycles.interval);
                if narrowed.values().all(|window| window.0 <= window.1) {
                    self.fill_cycles(cycles, narrowed, best);
                }
                cycles.table.free(cost, cycle);
            }
            cycles.cycles[node] = None;
        }
    }

    /// The windows that a placed node leaves to the others.
    fn narrow(
        &self,
        windows: &PrimaryMap<NodeId, (i64, i64)>,
        node: NodeId,
        cycle: i64,
        interval: u32,
    ) -> PrimaryMap<NodeId, (i64, i64)> {
        let narrow = |(other, &(early, late)): (NodeId, &(i64, i64))| {
            if other == node {
                return (cycle, cycle);
            }
            let early = self.between(node, other, interval).map_or(early, |length| early.max(cycle + length));
            let late = self.between(other, node, interval).map_or(late, |length| late.min(cycle - length));
            (early, late)
        };
        windows.iter().map(narrow).collect()
    }

    /// Places the nodes that occupy nothing as late as their windows allow, from the last to the first.
    fn complete_within(
        &self,
        cycles: &Cycles,
        mut windows: PrimaryMap<NodeId, (i64, i64)>,
    ) -> PrimaryMap<NodeId, i64> {
        for &node in self.problem.shape.order.values().rev() {
            if cycles.cycles[node].is_none() {
                let users = self.problem.graph.leaving(node).iter().map(|edge| windows[edge.to].1);
                let (early, late) = windows[node];
                let cycle = users.min().map_or(early, |user| user.clamp(early, late));
                windows = self.narrow(&windows, node, cycle, cycles.interval);
            }
        }
        windows.values().map(|window| window.0).collect()
    }

    fn lifetime(&self, assignment: &Assignment) -> i64 {
        self.lifetime_of(assignment.interval, |node| Some(i64::from(assignment.cycles[node])))
    }

    /// Sum over all nodes of the cycles from each node to the last one that uses its value; a lower bound
    /// while some nodes are not placed yet.
    fn lifetime_of(&self, interval: u32, cycle: impl Fn(NodeId) -> Option<i64>) -> i64 {
        let life = |node: NodeId| {
            let values =
                self.problem.graph.leaving(node).iter().filter(|edge| edge.kind == Dependence::Value);
            let lives = values.map(|edge| match (cycle(edge.from), cycle(edge.to)) {
                (Some(from), Some(to)) => to + i64::from(edge.distance) * i64::from(interval) - from,
                _ => i64::from(edge.latency),
            });
            lives.max().unwrap_or(0)
        };
        self.problem.graph.nodes().keys().map(life).sum()
    }
}

/// State of the search over slots.
struct SlotSearch {
    interval: i64,
    /// Count of placements at which the search gives up.
    ends: u64,
    table: Reservations,
    /// Slots of the first busy nodes.
    slots: Vec<i64>,
    /// Least cycles between busy nodes.
    between: Vec<Option<i64>>,
}

impl SlotSearch {
    /// Stages between the first nodes once the one at `at` has its slot; none if they exclude one another.
    /// Rounding up to stages along a path is not the same as at its ends, so the closure over paths is kept.
    fn close(&self, stages: &[Option<i64>], at: usize, count: usize) -> Option<Vec<Option<i64>>> {
        let direct = |from: usize, to: usize| {
            let length = self.between[from * count + to]?;
            Some(divide_up(self.slots[from] + length - self.slots[to], self.interval))
        };
        let mut stages = stages.to_vec();
        let mut into = vec![None; at];
        let mut out = vec![None; at];
        for other in 0..at {
            into[other] = direct(other, at);
            out[other] = direct(at, other);
        }
        for other in 0..at {
            for via in 0..at {
                let before = stages[other * count + via].zip(direct(via, at)).map(|(a, b)| a + b);
                into[other] = into[other].max(before);
                let through = stages[via * count + other].zip(direct(at, via)).map(|(a, b)| a + b);
                out[other] = out[other].max(through);
            }
        }
        for from in 0..at {
            stages[from * count + at] = into[from];
            stages[at * count + from] = out[from];
            if into[from].zip(out[from]).is_some_and(|(into, out)| into + out > 0) {
                return None;
            }
        }
        for from in 0..at {
            for to in 0..at {
                let via = into[from].zip(out[to]).map(|(a, b)| a + b);
                stages[from * count + to] = stages[from * count + to].max(via);
            }
        }
        Some(stages)
    }
}

/// Division by a positive number, rounded up.
fn divide_up(cycles: i64, by: i64) -> i64 {
    -(-cycles).div_euclid(by)
}

/// State of the search over cycles.
struct Cycles {
    interval: u32,
    /// Count of placements at which the search gives up.
    ends: u64,
    table: Reservations,
    /// Cycles of the busy nodes that have one.
    cycles: PrimaryMap<NodeId, Option<i64>>,
}

/// The best schedule so far.
struct Best {
    lifetime: i64,
    cycles: Option<PrimaryMap<NodeId, i64>>,
}
