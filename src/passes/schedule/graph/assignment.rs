//! What a scheduler decides: a cycle for every node of a loop body.

use super::dependence_graph::{DependenceGraph, NodeId};
use cranelift_entity::PrimaryMap;

/// Cycles of the nodes of a [`DependenceGraph`], and how often an iteration starts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Assignment {
    /// Cycles from the start of one iteration to the start of the next; at least 1.
    pub interval: u32,
    /// Cycle of each node since the start of its iteration, by number.
    pub cycles: PrimaryMap<NodeId, u32>,
}

impl Assignment {
    /// The pipeline stage of a node.
    pub fn stage(&self, node: NodeId) -> u32 {
        self.cycles[node] / self.interval
    }

    /// The cycle of a node within its stage.
    pub fn slot(&self, node: NodeId) -> u32 {
        self.cycles[node] % self.interval
    }

    /// Number of pipeline stages.
    pub fn stages(&self) -> u32 {
        self.cycles.values().max().map_or(1, |&last| last / self.interval + 1)
    }

    /// True if every dependence of the graph holds: `cycle(to) + distance * interval >= cycle(from) +
    /// latency`.
    pub fn respects(&self, graph: &DependenceGraph) -> bool {
        let cycle = |node: NodeId| u64::from(self.cycles[node]);
        graph.edges().iter().all(|edge| {
            let reached = cycle(edge.to) + u64::from(edge.distance) * u64::from(self.interval);
            reached >= cycle(edge.from) + u64::from(edge.latency)
        })
    }
}
