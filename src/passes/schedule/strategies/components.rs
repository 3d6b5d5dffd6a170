//! The shape of a dependence graph: an order that respects the dependences within an iteration, and the
//! strongly connected components, which are its recurrences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::refusal::Refusal;
use crate::index::Neighbours;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, NodeId};
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

/// A place in the order of a [`GraphShape`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Rank(u32);
entity_impl!(Rank, "");

/// The number of a strongly connected component.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct ComponentId(u32);
entity_impl!(ComponentId, "");

/// Order and components of a graph.
#[derive(Clone, Debug)]
pub(crate) struct GraphShape {
    /// Nodes in an order that respects all dependences of distance zero, and program order wherever these
    /// allow it.
    pub order: PrimaryMap<Rank, NodeId>,
    /// Place of each node in `order`.
    pub rank: PrimaryMap<NodeId, Rank>,
    /// Its strongly connected components.
    pub components: Components,
}

impl GraphShape {
    /// The shape of a graph; an error if a node depends on itself within an iteration.
    pub(crate) fn of(graph: &DependenceGraph) -> Result<GraphShape, Refusal> {
        let order = order(graph)?;
        let mut rank = graph.table(Rank::default());
        order.iter().for_each(|(at, &node)| rank[node] = at);
        let components = Components::new(graph, &rank);
        Ok(GraphShape { order, rank, components })
    }
}

/// Strongly connected components in topological order: no dependence leads from one to an earlier one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Components {
    /// All nodes, component by component.
    nodes: Vec<NodeId>,
    /// Where each component begins in `nodes`, plus the end of the last.
    starts: PrimaryMap<ComponentId, usize>,
    /// Component of each node.
    of: PrimaryMap<NodeId, ComponentId>,
}

impl Components {
    /// Tarjan's algorithm with an explicit stack. Nodes of a component are sorted by their rank.
    fn new(graph: &DependenceGraph, rank: &PrimaryMap<NodeId, Rank>) -> Components {
        let count = graph.nodes().len();
        let mut number = graph.table(None::<u32>);
        let mut low = graph.table(0u32);
        let mut done = graph.table(false);
        let mut next = 0;
        let mut pending: Vec<NodeId> = Vec::new();
        let mut path: Vec<(NodeId, usize)> = Vec::new();
        // Components come out in reverse order.
        let mut nodes = Vec::with_capacity(count);
        let mut ends: PrimaryMap<ComponentId, usize> = PrimaryMap::default();
        for root in graph.nodes().keys() {
            if number[root].is_some() {
                continue;
            }
            path.push((root, 0));
            while let Some((node, edge)) = path.pop() {
                if edge == 0 {
                    number[node] = Some(next);
                    low[node] = next;
                    next += 1;
                    pending.push(node);
                }
                let Some(leaving) = graph.leaving(node).get(edge) else {
                    if Some(low[node]) == number[node] {
                        while let Some(member) = pending.pop() {
                            done[member] = true;
                            nodes.push(member);
                            if member == node {
                                break;
                            }
                        }
                        ends.push(nodes.len());
                    }
                    if let Some(&(parent, _)) = path.last() {
                        low[parent] = low[parent].min(low[node]);
                    }
                    continue;
                };
                path.push((node, edge + 1));
                match number[leaving.to] {
                    None => path.push((leaving.to, 0)),
                    Some(number) if !done[leaving.to] => low[node] = low[node].min(number),
                    Some(_) => {}
                }
            }
        }
        let mut components = Components {
            nodes: Vec::with_capacity(count),
            starts: vec![0].into(),
            of: graph.table(ComponentId::default()),
        };
        for reverse in ends.keys().rev() {
            let start = reverse.before().map_or(0, |before| ends[before]);
            let begin = components.nodes.len();
            components.nodes.extend_from_slice(&nodes[start..ends[reverse]]);
            components.nodes[begin..].sort_unstable_by_key(|&node| rank[node]);
            let component = components.starts.push(components.nodes.len()).before().unwrap_or_default();
            for &node in &components.nodes[begin..] {
                components.of[node] = component;
            }
        }
        components
    }

    /// All components.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = ComponentId> + use<> {
        (0..self.starts.len() - 1).map(ComponentId::new)
    }

    /// Nodes of a component, in the order of the shape.
    pub(crate) fn nodes(&self, component: ComponentId) -> &[NodeId] {
        &self.nodes[self.starts[component]..self.starts[component.next()]]
    }

    /// The component of a node.
    pub(crate) fn of(&self, node: NodeId) -> ComponentId {
        self.of[node]
    }

    /// True if a node of the component depends on itself across iterations.
    pub(crate) fn is_recurrence(&self, graph: &DependenceGraph, component: ComponentId) -> bool {
        match self.nodes(component) {
            [node] => graph.leaving(*node).iter().any(|edge| edge.to == *node),
            _ => true,
        }
    }
}

/// Nodes in an order that respects all dependences of distance zero, otherwise in program order (Kahn's
/// algorithm); an error if a node depends on itself within an iteration.
pub(super) fn order(graph: &DependenceGraph) -> Result<PrimaryMap<Rank, NodeId>, Refusal> {
    let count = graph.nodes().len();
    let mut waits = graph.table(0u32);
    for edge in graph.edges().iter().filter(|edge| edge.distance == 0) {
        waits[edge.to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<NodeId>> =
        graph.nodes().keys().filter(|&node| waits[node] == 0).map(Reverse).collect();
    let mut order: PrimaryMap<Rank, NodeId> = Vec::with_capacity(count).into();
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for edge in graph.leaving(node).iter().filter(|edge| edge.distance == 0) {
            waits[edge.to] -= 1;
            if waits[edge.to] == 0 {
                ready.push(Reverse(edge.to));
            }
        }
    }
    let Some(mut node) = graph.nodes().keys().find(|&node| waits[node] > 0) else {
        return Ok(order);
    };
    // Every node that waits has a predecessor that waits, so going back far enough leads into a circle.
    for _ in 0..count {
        let before = graph.entering(node).find(|edge| edge.distance == 0 && waits[edge.from] > 0);
        node = before.map_or(node, |edge| edge.from);
    }
    Err(Refusal::Circular { node })
}
