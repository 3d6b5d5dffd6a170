//! Two stages: while one iteration computes, the next one loads.
//!
//! Stage 0 loads from global memory and stores to LDS, stage 1 reads from LDS and computes. A trip reads what
//! is in LDS, loads the next iteration's data, computes, and stores that data, so one LDS buffer is enough.

use super::phases;
use super::refusal::Refusal;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, GraphNode};
use crate::passes::schedule::graph::resources::Class;

/// Phases per stage.
const INTERVAL: u32 = 2;

/// A schedule of two stages. Its cycles are phases: dependences hold by order, not by latency (see
/// [`phases`]).
pub(crate) fn schedule(graph: &DependenceGraph) -> Result<Assignment, Refusal> {
    let assignment = Assignment { interval: INTERVAL, cycles: phases::place(graph, INTERVAL)? };
    let works_late = |(node, &cycle): (&GraphNode, &u32)| node.class != Class::Free && cycle >= INTERVAL;
    if !graph.nodes().values().zip(assignment.cycles.values()).any(works_late) {
        return Err(Refusal::OneStage);
    }
    Ok(assignment)
}
