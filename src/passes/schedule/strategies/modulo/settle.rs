//! The last step of a modulo schedule: operations that need not be early become late, and the first cycle
//! becomes 0.

use super::iterative::PartialSchedule;
use crate::ir::schedule::table::LAST_CYCLE;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::strategies::refusal::Refusal;
use cranelift_entity::PrimaryMap;

/// Turns a complete placement into an assignment. Values wait in registers, so reads from LDS move to the
/// last cycle in which they fit, and nodes that take no time (carried values, constants) to their earliest
/// user. Loads from global memory stay where they are: how long they take is not known well enough.
pub(super) fn settle(placement: &mut PartialSchedule) -> Result<Assignment, Refusal> {
    let problem = placement.problem;
    for &node in problem.shape.order.values().rev() {
        let free = problem.is_free(node);
        if !free && problem.class(node) != Class::ReadShared {
            continue;
        }
        let Some(now) = placement.cycles[node] else { continue };
        let Some(mut late) = placement.window(node).1 else { continue };
        if free {
            let users = problem.graph.leaving(node).iter().filter_map(|edge| placement.cycles[edge.to]);
            late = late.min(users.min().unwrap_or(now));
        }
        if late <= now {
            continue;
        }
        placement.take_out(node);
        let cycle = placement.table.last_fit(problem.cost(node), now, late).unwrap_or(now);
        placement.put(node, cycle);
    }
    from_zero(placement.interval, &placement.cycles)
}

/// Moves the first cycle to 0. Cycles that an assignment cannot hold are an error.
pub(super) fn from_zero(
    interval: u32,
    cycles: &PrimaryMap<NodeId, Option<i64>>,
) -> Result<Assignment, Refusal> {
    let first = cycles.values().flatten().min().copied().unwrap_or(0);
    let cycles = cycles.iter().map(|(node, cycle)| {
        let cycle = cycle.unwrap_or(first) - first;
        if cycle <= LAST_CYCLE { Ok(cycle as u32) } else { Err(Refusal::TooLong { node }) }
    });
    Ok(Assignment { interval, cycles: cycles.collect::<Result<_, _>>()? })
}
