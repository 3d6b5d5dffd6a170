//! Up to four stages of one phase each: load from global memory, store to LDS, read from LDS, compute.
//!
//! Each phase is a stage of its own, so four iterations are under way at once. Phases in which nothing runs
//! are left out: a loop that computes straight from its loads has two stages.

use super::phases;
use super::phases::COMPUTE;
use super::refusal::Refusal;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::DependenceGraph;
use crate::passes::schedule::graph::resources::Class;

/// A schedule with an interval of one phase. Its cycles are phases: dependences hold by order, not by latency
/// (see [`phases`]).
pub(crate) fn schedule(graph: &DependenceGraph) -> Result<Assignment, Refusal> {
    let mut cycles = phases::place(graph, 1)?;
    let mut used = [false; COMPUTE as usize + 1];
    for (node, &phase) in graph.nodes().values().zip(cycles.values()) {
        used[phase as usize] |= node.class != Class::Free;
    }
    if used.iter().filter(|&&used| used).count() < 2 {
        return Err(Refusal::OneStage);
    }
    // Leaving out phases brings nodes closer together but changes no order, so all dependences still hold.
    for phase in cycles.values_mut() {
        *phase = used[..*phase as usize].iter().filter(|&&used| used).count() as u32;
    }
    Ok(Assignment { interval: 1, cycles })
}
