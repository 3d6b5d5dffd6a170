//! The shape of a dependence graph: an order that respects the dependences within an iteration, and the
//! strongly connected components, which are its recurrences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::refusal::Refusal;
use crate::passes::schedule::graph::dependence_graph::DependenceGraph;

/// Order and components of a graph.
#[derive(Clone, Debug)]
pub(crate) struct GraphShape {
    /// Nodes in an order that respects all dependences of distance zero, and program order wherever these
    /// allow it.
    pub order: Vec<u32>,
    /// Place of each node in `order`.
    pub rank: Vec<u32>,
    /// Its strongly connected components.
    pub components: Components,
}

impl GraphShape {
    /// The shape of a graph; an error if a node depends on itself within an iteration.
    pub(crate) fn of(graph: &DependenceGraph) -> Result<GraphShape, Refusal> {
        let order = order(graph)?;
        let mut rank = vec![0; order.len()];
        for (at, &node) in order.iter().enumerate() {
            rank[node as usize] = at as u32;
        }
        let components = Components::new(graph, &rank);
        Ok(GraphShape { order, rank, components })
    }
}

/// Strongly connected components in topological order: no dependence leads from one to an earlier one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Components {
    /// All nodes, component by component.
    nodes: Vec<u32>,
    /// Where each component begins in `nodes`, plus the end of the last.
    starts: Vec<u32>,
    /// Component of each node.
    of: Vec<u32>,
}

/// Not numbered yet.
const NONE: u32 = u32::MAX;

impl Components {
    /// Tarjan's algorithm with an explicit stack. Nodes of a component are sorted by their rank.
    fn new(graph: &DependenceGraph, rank: &[u32]) -> Components {
        let count = graph.nodes().len();
        let mut number = vec![NONE; count];
        let mut low = vec![0u32; count];
        let mut of = vec![NONE; count];
        let mut next = 0;
        let mut found = 0;
        let mut pending: Vec<u32> = Vec::new();
        let mut path: Vec<(u32, u32)> = Vec::new();
        // Components come out in reverse order.
        let mut nodes = Vec::with_capacity(count);
        let mut ends: Vec<u32> = Vec::new();
        for root in 0..count as u32 {
            if number[root as usize] != NONE {
                continue;
            }
            path.push((root, 0));
            while let Some((node, edge)) = path.pop() {
                let at = node as usize;
                if edge == 0 {
                    number[at] = next;
                    low[at] = next;
                    next += 1;
                    pending.push(node);
                }
                let Some(leaving) = graph.leaving(node).get(edge as usize) else {
                    if low[at] == number[at] {
                        while let Some(member) = pending.pop() {
                            of[member as usize] = found;
                            nodes.push(member);
                            if member == node {
                                break;
                            }
                        }
                        ends.push(nodes.len() as u32);
                        found += 1;
                    }
                    if let Some(&(parent, _)) = path.last() {
                        low[parent as usize] = low[parent as usize].min(low[at]);
                    }
                    continue;
                };
                path.push((node, edge + 1));
                let to = leaving.to as usize;
                if number[to] == NONE {
                    path.push((leaving.to, 0));
                } else if of[to] == NONE {
                    low[at] = low[at].min(number[to]);
                }
            }
        }
        let mut components = Components { nodes: Vec::with_capacity(count), starts: vec![0], of };
        for found in (0..ends.len()).rev() {
            let start = if found == 0 { 0 } else { ends[found - 1] } as usize;
            let begin = components.nodes.len();
            components.nodes.extend_from_slice(&nodes[start..ends[found] as usize]);
            components.nodes[begin..].sort_unstable_by_key(|&node| rank[node as usize]);
            components.starts.push(components.nodes.len() as u32);
        }
        components.of.iter_mut().for_each(|component| *component = found - 1 - *component);
        components
    }

    /// Number of components.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Nodes of a component, in the order of the shape.
    pub(crate) fn nodes(&self, component: usize) -> &[u32] {
        &self.nodes[self.starts[component] as usize..self.starts[component + 1] as usize]
    }

    /// The component of a node.
    pub(crate) fn of(&self, node: u32) -> usize {
        self.of[node as usize] as usize
    }

    /// True if a node of the component depends on itself across iterations.
    pub(crate) fn is_recurrence(&self, graph: &DependenceGraph, component: usize) -> bool {
        match self.nodes(component) {
            [node] => graph.leaving(*node).iter().any(|edge| edge.to == *node),
            _ => true,
        }
    }
}

/// Nodes in an order that respects all dependences of distance zero, otherwise in program order (Kahn's
/// algorithm); an error if a node depends on itself within an iteration.
pub(super) fn order(graph: &DependenceGraph) -> Result<Vec<u32>, Refusal> {
    let count = graph.nodes().len();
    let mut waits = vec![0u32; count];
    for edge in graph.edges().iter().filter(|edge| edge.distance == 0) {
        waits[edge.to as usize] += 1;
    }
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..count as u32).filter(|&node| waits[node as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for edge in graph.leaving(node).iter().filter(|edge| edge.distance == 0) {
            waits[edge.to as usize] -= 1;
            if waits[edge.to as usize] == 0 {
                ready.push(Reverse(edge.to));
            }
        }
    }
    let Some(mut node) = (0..count as u32).find(|&node| waits[node as usize] > 0) else {
        return Ok(order);
    };
    // Every node that waits has a predecessor that waits, so going back far enough leads into a circle.
    for _ in 0..count {
        let before = graph.entering(node).find(|edge| edge.distance == 0 && waits[edge.from as usize] > 0);
        node = before.map_or(node, |edge| edge.from);
    }
    Err(Refusal::Circular { node })
}
