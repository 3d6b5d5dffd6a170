//! Modulo scheduling: the least interval at which iterations can start, and a cycle for every node.
//!
//! Starting from the bound of resources and recurrences, each interval is tried by `iterative` and, if that
//! fails, by `in_order` scheduling. Small graphs are then decided exactly.
//!
//! - [`bounds`]: intervals below which there is no schedule; [`longest`]: the longest paths around
//! - [`reservations`]: units in use, cycle by cycle of the interval
//! - `iterative`: nodes placed by urgency, and taken back; `in_order`: in program order
//! - [`exact`]: a schedule or the proof that there is none
//! - `settle`: operations that need not be early become late
//!
//! Registers have no cost in the search.

pub(crate) mod bounds;
pub(crate) mod exact;
mod in_order;
mod iterative;
pub(crate) mod longest;
pub(crate) mod reservations;
mod settle;

use self::bounds::IntervalBounds;
use self::exact::{SmallGraph, Verdict};
use self::iterative::{PartialSchedule, Problem, Recurrences};
use self::settle::{from_zero, settle};
use crate::ir::schedule::table::MOST_CYCLES;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::DependenceGraph;
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::strategies::components::GraphShape;
use crate::passes::schedule::strategies::refusal::Refusal;

/// A schedule, and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FoundSchedule {
    /// The schedule.
    pub assignment: Assignment,
    /// Lower bounds of the interval.
    pub bounds: IntervalBounds,
    /// What is known of the interval.
    pub interval: Quality,
    /// Edges, nodes and placements looked at, as the measure of the work.
    pub steps: u64,
}

/// What is known of an interval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Quality {
    /// No schedule has a shorter one.
    Least,
    /// There may be a shorter one.
    Open,
}

/// A modulo schedule of the shortest interval that was found.
pub(crate) fn schedule(graph: &DependenceGraph, model: &ResourceModel) -> Result<Assignment, Refusal> {
    Ok(search(graph, model)?.assignment)
}

/// A modulo schedule and what is known of it.
pub(crate) fn search(graph: &DependenceGraph, model: &ResourceModel) -> Result<FoundSchedule, Refusal> {
    let shape = GraphShape::of(graph)?;
    let problem = Problem { graph, model, shape: &shape };
    let bounds = IntervalBounds::of(graph, model, &shape)?;
    let mut steps = bounds.steps;
    let least = bounds.interval();
    let mut heuristic = by_heuristics(problem, &bounds, &mut steps);
    let mut quality = if heuristic.as_ref().is_ok_and(|found| found.interval == least) {
        Quality::Least
    } else {
        Quality::Open
    };
    if let Some(mut exact) = SmallGraph::of(problem, least) {
        if quality == Quality::Open {
            (heuristic, quality) = by_proof(&mut exact, &bounds, heuristic);
        }
        heuristic = heuristic.and_then(|known| exact.improve(known));
        steps += exact.places;
    }
    Ok(FoundSchedule { assignment: heuristic?, bounds, interval: quality, steps })
}

/// The schedule of the Wave language's rule: one node after the other in program order, without backtracking.
/// It is what Wave's documentation shows, and rarely better than [`schedule`].
#[cfg(test)]
pub(crate) fn in_program_order(
    graph: &DependenceGraph,
    model: &ResourceModel,
) -> Result<Assignment, Refusal> {
    let shape = GraphShape::of(graph)?;
    let problem = Problem { graph, model, shape: &shape };
    let bounds = IntervalBounds::of(graph, model, &shape)?;
    let recurrences = Recurrences::of(&problem, bounds.recurrence);
    for interval in intervals(&bounds) {
        let mut placement = PartialSchedule::new(problem, interval, &recurrences);
        if in_order::place(&mut placement) {
            return from_zero(interval, &placement.cycles);
        }
    }
    Err(not_found(&bounds))
}

/// Intervals worth trying: all of the first few, then fewer and fewer.
fn intervals(bounds: &IntervalBounds) -> impl Iterator<Item = u32> + use<> {
    let (least, last) = (bounds.interval(), last_interval(bounds));
    std::iter::successors(Some(least), move |&interval| Some(interval + 1 + (interval - least) / 4))
        .take_while(move |&interval| interval <= last)
}

fn last_interval(bounds: &IntervalBounds) -> u32 {
    bounds.interval().saturating_mul(4).saturating_add(64).min(MOST_CYCLES)
}

fn not_found(bounds: &IntervalBounds) -> Refusal {
    Refusal::NotFound { first: bounds.interval(), last: last_interval(bounds) }
}

fn by_heuristics(problem: Problem, bounds: &IntervalBounds, steps: &mut u64) -> Result<Assignment, Refusal> {
    let unknown = Recurrences::none();
    let mut known = None;
    for interval in intervals(bounds) {
        // Paths through recurrences cost more than an attempt, so the first attempt goes without them.
        let mut placement = PartialSchedule::new(problem, interval, &unknown);
        let mut placed = iterative::place(&mut placement);
        *steps += placement.table.steps;
        if !placed {
            let known = known.get_or_insert_with(|| Recurrences::of(&problem, bounds.recurrence));
            for place in [iterative::place, in_order::place] {
                if !placed {
                    placement = PartialSchedule::new(problem, interval, known);
                    placed = place(&mut placement);
                    *steps += placement.table.steps;
                }
            }
        }
        if placed {
            return settle(&mut placement);
        }
    }
    Err(not_found(bounds))
}

/// Decides the intervals below that of the heuristic schedule, from the least on.
fn by_proof(
    exact: &mut SmallGraph,
    bounds: &IntervalBounds,
    heuristic: Result<Assignment, Refusal>,
) -> (Result<Assignment, Refusal>, Quality) {
    let end = heuristic.as_ref().map_or(last_interval(bounds) + 1, |found| found.interval);
    for interval in bounds.interval()..end {
        match exact.decide(interval) {
            Verdict::Possible(cycles) => {
                return (from_zero(interval, &cycles), Quality::Least);
            }
            Verdict::Impossible => {}
            Verdict::Unknown => return (heuristic, Quality::Open),
        }
    }
    let quality = if heuristic.is_ok() { Quality::Least } else { Quality::Open };
    (heuristic, quality)
}
