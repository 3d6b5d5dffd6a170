//! The dependence graph of a loop body: what has to come before what, how many cycles before, and how many
//! iterations apart.
//!
//! Nodes are dense numbers in program order; edges are one list, sorted by the node they leave, together with
//! an index sorted by the node they enter. Dependences through a memory go through a *junction*, a node that
//! stands for "everything before is written" (or read), so that the number of edges grows with the number of
//! accesses and not with its square.

use bevy_ecs::prelude::Entity;

use super::resources::Class;
use crate::index::{Neighbours, Stretches};
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

/// The number of a node of a [`DependenceGraph`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(u32);
entity_impl!(NodeId, "");

/// The number of an edge of a [`DependenceGraph`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
struct EdgeId(u32);
entity_impl!(EdgeId, "");

/// A node of the graph.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GraphNode {
    /// The expanded node; for a junction the memory (or LDS buffer) that it stands for.
    pub entity: Entity,
    /// The units that it occupies and how long its result takes.
    pub class: Class,
}

/// What makes one node depend on another.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Dependence {
    /// A value that the first computes and the second uses.
    Value,
    /// The first writes what the second reads.
    Flow,
    /// The first reads what the second overwrites.
    Anti,
    /// Both write the same place.
    Output,
    /// One of them is a barrier.
    Order,
}

/// One dependence: node `to` of iteration `i + distance` starts at least `latency` cycles after node `from`
/// of iteration `i`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The earlier node.
    pub from: NodeId,
    /// The later node.
    pub to: NodeId,
    /// Cycles between their starts.
    pub latency: u32,
    /// Iterations between them.
    pub distance: u32,
    /// Why the second depends on the first.
    pub kind: Dependence,
}

/// The dependences of one loop body.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DependenceGraph {
    nodes: PrimaryMap<NodeId, GraphNode>,
    /// Sorted by `from`, then by `to`.
    edges: PrimaryMap<EdgeId, Edge>,
    /// Where the edges of each node begin in `edges`, plus the end of the last.
    leaving: PrimaryMap<NodeId, EdgeId>,
    /// The edges, sorted by the node they enter.
    by_target: PrimaryMap<EdgeId, EdgeId>,
    /// Where those of each node begin in `by_target`, plus the end of the last.
    entering: PrimaryMap<NodeId, EdgeId>,
}

impl DependenceGraph {
    /// A graph of these nodes and edges. Edges that refer to nodes out of range are left out.
    pub fn new(nodes: PrimaryMap<NodeId, GraphNode>, mut edges: Vec<Edge>) -> DependenceGraph {
        let end = nodes.next_key();
        edges.retain(|edge| edge.from < end && edge.to < end);
        let edges: PrimaryMap<EdgeId, Edge> = edges.into();
        let (leaving, by_source) = grouped(end, edges.values().map(|edge| edge.from));
        let mut edges: PrimaryMap<EdgeId, Edge> = by_source.values().map(|&edge| edges[edge]).collect();
        for own in leaving.as_values_slice().windows(2) {
            edges.range_mut(own[0]..own[1]).sort_by_key(|edge| (edge.to, edge.distance, edge.kind));
        }
        let (entering, by_target) = grouped(end, edges.values().map(|edge| edge.to));
        DependenceGraph { nodes, edges, leaving, by_target, entering }
    }

    /// All nodes, in program order; junctions after them.
    pub fn nodes(&self) -> &PrimaryMap<NodeId, GraphNode> {
        &self.nodes
    }

    /// A table with the same value for all nodes.
    pub(crate) fn table<T: Clone>(&self, value: T) -> PrimaryMap<NodeId, T> {
        vec![value; self.nodes.len()].into()
    }

    /// All edges, by the node they leave.
    pub fn edges(&self) -> &[Edge] {
        self.edges.as_values_slice()
    }

    /// Edges that leave a node.
    pub fn leaving(&self, node: NodeId) -> &[Edge] {
        self.edges.range(self.leaving[node]..self.leaving[node.next()])
    }

    /// Edges that enter a node.
    pub fn entering(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        let range = self.entering[node]..self.entering[node.next()];
        self.by_target.range(range).iter().map(|&edge| &self.edges[edge])
    }
}

/// Sorts edges by the nodes that they have as `keys`, which are before `end`, keeping their order otherwise:
/// where each node's run begins (with one more entry for the end), and the edges.
fn grouped(
    end: NodeId,
    keys: impl ExactSizeIterator<Item = NodeId> + Clone,
) -> (PrimaryMap<NodeId, EdgeId>, PrimaryMap<EdgeId, EdgeId>) {
    let mut next: PrimaryMap<NodeId, u32> = vec![0; end.index()].into();
    keys.clone().for_each(|key| next[key] += 1);
    let mut starts: PrimaryMap<NodeId, EdgeId> = Vec::with_capacity(next.len() + 1).into();
    let mut start = 0;
    for count in next.values_mut() {
        starts.push(EdgeId::from_u32(start));
        start += std::mem::replace(count, start);
    }
    starts.push(EdgeId::from_u32(start));
    let mut sorted: PrimaryMap<EdgeId, EdgeId> = vec![EdgeId::default(); start as usize].into();
    for (edge, key) in keys.enumerate() {
        sorted[EdgeId::from_u32(next[key])] = EdgeId::new(edge);
        next[key] += 1;
    }
    (starts, sorted)
}
