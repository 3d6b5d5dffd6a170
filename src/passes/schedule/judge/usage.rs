//! Which units a schedule uses and when: the modulo reservation table of a finished assignment.

use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, NodeId};
use crate::passes::schedule::graph::resources::{RESOURCES, Resource, ResourceModel};

/// Uses of every kind of unit in each cycle of the interval: an operation that is busy for several cycles
/// counts in all of them.
pub(crate) fn uses(
    graph: &DependenceGraph,
    model: &ResourceModel,
    assignment: &Assignment,
) -> Vec<[u32; RESOURCES]> {
    let interval = assignment.interval.max(1);
    let mut uses = vec![[0u32; RESOURCES]; interval as usize];
    for (number, node) in graph.nodes().iter() {
        let slot = assignment.slot(number);
        for (column, &busy) in model.cost(node.class).busy.iter().enumerate() {
            let busy = u32::from(busy);
            // Whole intervals count in every cycle, and what remains counts in the cycles after the start.
            if busy >= interval {
                uses.iter_mut().for_each(|used| used[column] += busy / interval);
            }
            for after in 0..busy % interval {
                uses[((slot + after) % interval) as usize][column] += 1;
            }
        }
    }
    uses
}

/// Cycles for which the operations that start in each slot keep units of every kind busy.
pub(crate) fn busy(
    graph: &DependenceGraph,
    model: &ResourceModel,
    assignment: &Assignment,
) -> Vec<[u32; RESOURCES]> {
    let mut busy = vec![[0u32; RESOURCES]; assignment.interval.max(1) as usize];
    for (number, node) in graph.nodes().iter() {
        for (column, &cycles) in model.cost(node.class).busy.iter().enumerate() {
            busy[assignment.slot(number) as usize][column] += u32::from(cycles);
        }
    }
    busy
}

/// More uses of a unit than there are units.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Overused {
    /// Cycle of the interval.
    pub slot: u32,
    /// The kind of unit.
    pub resource: Resource,
    /// How many are used.
    pub used: u32,
}

/// The first cycle of the interval in which a schedule uses more units than there are.
pub(crate) fn overused(
    graph: &DependenceGraph,
    model: &ResourceModel,
    assignment: &Assignment,
) -> Option<Overused> {
    let uses = uses(graph, model, assignment);
    uses.iter().zip(0..).find_map(|(slot_uses, slot)| {
        let columns = slot_uses.iter().zip(&model.units).zip(&Resource::NAMES);
        let mut over = columns.filter(|((used, units), _)| **used > u32::from(**units));
        over.next().map(|((&used, _), row)| Overused { slot, resource: row.0, used })
    })
}

/// The nodes that use a unit in a cycle of the interval.
pub(crate) fn users(
    graph: &DependenceGraph,
    model: &ResourceModel,
    assignment: &Assignment,
    overused: Overused,
) -> Vec<NodeId> {
    let interval = assignment.interval.max(1);
    let here = graph.nodes().iter().filter(|&(number, node)| {
        let since = (overused.slot + interval - assignment.slot(number)) % interval;
        since < u32::from(model.cost(node.class).busy[overused.resource as usize])
    });
    here.map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use bevy_ecs::prelude::Entity;

    use super::*;
    use crate::passes::schedule::graph::dependence_graph::GraphNode;
    use crate::passes::schedule::graph::resources::Class;

    #[test]
    fn operations_wrap_around_the_interval() {
        let mut model = ResourceModel::ABSTRACT;
        model.costs[Class::Mma as usize].busy[Resource::Mma as usize] = 3;
        model.units[Resource::Mma as usize] = 1;
        let node = GraphNode { entity: Entity::PLACEHOLDER, class: Class::Mma };
        let graph = DependenceGraph::new(vec![node; 2].into(), Vec::new());
        let column = Resource::Mma as usize;
        let of = |interval, cycles: [u32; 2]| {
            let assignment = Assignment { interval, cycles: cycles.to_vec().into() };
            let all = uses(&graph, &model, &assignment);
            (all.iter().map(|slot| slot[column]).collect::<Vec<_>>(), overused(&graph, &model, &assignment))
        };
        assert_eq!(of(6, [4, 1]), (vec![1; 6], None));
        let (twice, over) = of(4, [1, 7]);
        assert_eq!(twice, [1, 2, 1, 2]);
        let over = over.unwrap();
        assert_eq!((over.slot, over.used, over.resource), (1, 2, Resource::Mma));
        let assignment = Assignment { interval: 4, cycles: vec![1, 7].into() };
        assert_eq!(users(&graph, &model, &assignment, over), [0, 1].map(NodeId::from_u32));
        // Longer than the interval: it counts in every cycle, and once more where it overlaps itself.
        assert_eq!(of(2, [0, 1]).0, [3, 3]);
    }
}
