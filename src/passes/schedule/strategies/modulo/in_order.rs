//! Modulo scheduling without backtracking, for one interval: component after component, each in the order of
//! its dependences.
//!
//! This is how the Wave language's scheduler works. The first node of a component tries the cycles of one
//! interval from its earliest one on; the others follow in the first cycle that the placed neighbours allow.
//! Values that the loop carries come last, because they take no time themselves. If the nodes do not fit, the
//! first one tries its next cycle; components that are already placed stay where they are.

use super::iterative::{PartialSchedule, Problem};
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::strategies::components::ComponentId;

/// Schedules with the interval of `placement`, which is empty. False if that failed.
pub(super) fn place(placement: &mut PartialSchedule) -> bool {
    let shape = placement.problem.shape;
    shape.components.ids().all(|component| place_component(placement, component))
}

fn place_component(placement: &mut PartialSchedule, component: ComponentId) -> bool {
    let Problem { graph, shape, .. } = placement.problem;
    let waits = |node: NodeId| {
        let mut before = graph.entering(node).filter(|edge| edge.distance == 0);
        before.any(|edge| shape.components.of(edge.from) == component)
    };
    let mut nodes = shape.components.nodes(component).to_vec();
    nodes.sort_by_key(|&node| placement.problem.is_free(node) && !waits(node));
    let Some((&first, others)) = nodes.split_first() else { return true };
    let length = i64::from(placement.interval);
    let earliest = placement.window(first).0.unwrap_or(0).max(0);
    let last = earliest.saturating_add(length - 1);
    let mut from = earliest;
    // Each attempt is a walk over the component, so a large one gets few.
    for _ in 0..(4096 / nodes.len()).max(4) {
        let cost = placement.problem.cost(first);
        let Some(start) = placement.table.first_fit(cost, from, last) else { return false };
        placement.put(first, start);
        let failed = others.iter().position(|&node| !place_node(placement, node));
        let Some(failed) = failed else { return true };
        placement.take_out(first);
        for &node in &others[..failed] {
            placement.take_out(node);
        }
        from = start + 1;
    }
    false
}

/// Places a node between its placed neighbours.
fn place_node(placement: &mut PartialSchedule, node: NodeId) -> bool {
    let (early, late) = placement.window(node);
    let early = early.unwrap_or(0).max(0);
    let end = early.saturating_add(i64::from(placement.interval) - 1);
    let cost = placement.problem.cost(node);
    let cycle = placement.table.first_fit(cost, early, late.map_or(end, |late| late.min(end)));
    cycle.is_some_and(|cycle| {
        placement.put(node, cycle);
        true
    })
}
