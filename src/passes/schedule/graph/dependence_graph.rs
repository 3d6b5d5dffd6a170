//! The dependence graph of a loop body: what has to come before what, how many cycles before, and how many
//! iterations apart.
//!
//! Nodes are dense numbers in program order; edges are one list, sorted by the node they leave, together with
//! an index sorted by the node they enter. Dependences through a memory go through a *junction*, a node that
//! stands for "everything before is written" (or read), so that the number of edges grows with the number of
//! accesses and not with its square.

use bevy_ecs::prelude::Entity;

use super::resources::Class;

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
    pub from: u32,
    /// The later node.
    pub to: u32,
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
    nodes: Vec<GraphNode>,
    /// Sorted by `from`, then by `to`.
    edges: Vec<Edge>,
    /// Where the edges of each node begin in `edges`, plus the end of the last.
    leaving: Vec<u32>,
    /// Numbers of edges, sorted by the node they enter.
    by_target: Vec<u32>,
    /// Where those of each node begin in `by_target`, plus the end of the last.
    entering: Vec<u32>,
}

impl DependenceGraph {
    /// A graph of these nodes and edges. Edges that refer to nodes out of range are left out.
    pub fn new(nodes: Vec<GraphNode>, mut edges: Vec<Edge>) -> DependenceGraph {
        let count = nodes.len();
        edges.retain(|edge| (edge.from as usize) < count && (edge.to as usize) < count);
        let (leaving, by_source) = grouped(count, edges.iter().map(|edge| edge.from));
        let mut edges: Vec<Edge> = by_source.iter().map(|&edge| edges[edge as usize]).collect();
        for own in leaving.windows(2) {
            edges[own[0] as usize..own[1] as usize].sort_by_key(|edge| (edge.to, edge.distance, edge.kind));
        }
        let (entering, by_target) = grouped(count, edges.iter().map(|edge| edge.to));
        DependenceGraph { nodes, edges, leaving, by_target, entering }
    }

    /// All nodes, in program order; junctions after them.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// All edges, by the node they leave.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Edges that leave a node.
    pub fn leaving(&self, node: u32) -> &[Edge] {
        &self.edges[self.leaving[node as usize] as usize..self.leaving[node as usize + 1] as usize]
    }

    /// Edges that enter a node.
    pub fn entering(&self, node: u32) -> impl Iterator<Item = &Edge> {
        let range = self.entering[node as usize] as usize..self.entering[node as usize + 1] as usize;
        self.by_target[range].iter().map(|&edge| &self.edges[edge as usize])
    }
}

/// Sorts items by their keys, which are below `count`, keeping their order otherwise: where each key's run
/// begins (with one more entry for the end), and the items' numbers.
fn grouped(count: usize, keys: impl ExactSizeIterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0; count + 1];
    keys.clone().for_each(|key| starts[key as usize + 1] += 1);
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut items = vec![0; keys.len()];
    for (item, key) in keys.enumerate() {
        items[next[key as usize] as usize] = item as u32;
        next[key as usize] += 1;
    }
    (starts, items)
}
