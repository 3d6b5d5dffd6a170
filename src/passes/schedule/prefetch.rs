//! Two stages.

use super::assignment::Assignment;
use super::graph::DependenceGraph;
use super::resources::Class;

/// Cycles by class.
pub fn prefetch(graph: &DependenceGraph) -> Assignment {
    let cycle = |class: Class| match class {
        Class::ReadGlobal | Class::GlobalToShared => 0,
        Class::WriteShared => 1,
        Class::ReadShared => 2,
        _ => 3,
    };
    Assignment { interval: 2, cycles: graph.nodes().iter().map(|n| cycle(n.class)).collect() }
}
