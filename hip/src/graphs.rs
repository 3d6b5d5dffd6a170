//! Graphs: operations that depend on each other. They are done one after the other, in an order that is the
//! same in every run: that in which the nodes were made, as far as their dependencies let it.
//!
//! An executable graph is a copy that the program cannot reach; its nodes remember which ones they were
//! copied from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use slotmap::{DefaultKey, SlotMap};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::handles::{Handle, HandleKind, fresh};
use crate::operations::Operation;

/// A node of a graph.
pub(crate) struct Node {
    pub operation: Operation,
    /// The nodes of the same graph that come before it.
    pub after: BTreeSet<Handle>,
    /// The one that it was copied from.
    origin: Option<Handle>,
}

/// A graph.
#[derive(Default)]
pub(crate) struct Graph {
    pub nodes: BTreeMap<Handle, Node>,
}

/// All graphs. Their nodes are numbers, because the order of these is that in which nodes were made, and
/// because a node is found without its graph.
type Graphs = SlotMap<DefaultKey, Graph>;

static GRAPHS: LazyLock<Mutex<Graphs>> = LazyLock::new(Mutex::default);

fn all<R>(f: impl FnOnce(&mut Graphs) -> R) -> R {
    // A poisoned lock guards tables that are whole after each change.
    f(&mut GRAPHS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn unknown(graph: Handle) -> HipError {
    invalid(format!("{graph:#x} is no graph, or it was destroyed"))
}

/// Looks at a graph, or changes it.
///
/// # Errors
/// There is none, or `f` fails.
pub(crate) fn with<R>(graph: Handle, f: impl FnOnce(&mut Graph) -> HipResult<R>) -> HipResult<R> {
    all(|graphs| {
        let found = HandleKind::Graph.key(graph).and_then(|key| graphs.get_mut(key));
        f(found.ok_or_else(|| unknown(graph))?)
    })
}

/// Looks at the graph that a node belongs to, or changes it.
///
/// # Errors
/// There is no such node, or `f` fails.
pub(crate) fn with_owner<R>(node: Handle, f: impl FnOnce(&mut Graph) -> HipResult<R>) -> HipResult<R> {
    all(|graphs| {
        let owner = graphs.values_mut().find(|graph| graph.nodes.contains_key(&node));
        f(owner.ok_or_else(|| invalid(format!("{node:#x} is no node of a graph, or it was destroyed")))?)
    })
}

/// A new graph without nodes.
///
/// # Errors
/// There are too many graphs.
pub(crate) fn create() -> HipResult<Handle> {
    all(|graphs| HandleKind::Graph.insert(graphs, Graph::default()))
}

/// A copy of a graph, with copies of the graphs inside it.
///
/// # Errors
/// There is none.
pub(crate) fn copy(graph: Handle) -> HipResult<Handle> {
    all(|graphs| copy_in(graphs, graph))
}

fn copy_in(graphs: &mut Graphs, from: Handle) -> HipResult<Handle> {
    let graph = HandleKind::Graph.key(from).and_then(|key| graphs.get(key)).ok_or_else(|| unknown(from))?;
    let names: BTreeMap<Handle, Handle> = graph.nodes.keys().map(|&node| (node, fresh())).collect();
    let rename = |node: &Handle| names.get(node).copied();
    let mut copies = Vec::new();
    for (node, Node { operation, after, .. }) in &graph.nodes {
        let after = after.iter().filter_map(rename).collect();
        copies.push((names[node], Node { operation: operation.clone(), after, origin: Some(*node) }));
    }
    for (_, node) in &mut copies {
        if let Operation::Child(child) = &mut node.operation {
            *child = copy_in(graphs, *child)?;
        }
    }
    HandleKind::Graph.insert(graphs, Graph { nodes: copies.into_iter().collect() })
}

/// Forgets a graph, and those inside it.
///
/// # Errors
/// There is none.
pub(crate) fn destroy(graph: Handle) -> HipResult {
    all(|graphs| destroy_in(graphs, graph))
}

fn destroy_in(graphs: &mut Graphs, graph: Handle) -> HipResult {
    let gone = HandleKind::Graph.key(graph).and_then(|key| graphs.remove(key));
    let gone = gone.ok_or_else(|| unknown(graph))?;
    gone.nodes.values().try_for_each(|node| match node.operation {
        Operation::Child(child) => destroy_in(graphs, child),
        _ => Ok(()),
    })
}

/// The operations of a graph in their order.
///
/// # Errors
/// There is no such graph, or its nodes wait for each other in a circle.
pub(crate) fn ordered(graph: Handle) -> HipResult<Vec<Operation>> {
    with(graph, |graph| {
        let order = graph.order()?;
        Ok(order.iter().filter_map(|node| Some(graph.nodes.get(node)?.operation.clone())).collect())
    })
}

impl Graph {
    /// Adds a node after others.
    ///
    /// # Errors
    /// One of those is not in this graph.
    pub(crate) fn add(&mut self, operation: Operation, after: &[Handle]) -> HipResult<Handle> {
        after.iter().try_for_each(|&node| self.node(node).map(drop))?;
        let node = fresh();
        self.nodes.insert(node, Node { operation, after: after.iter().copied().collect(), origin: None });
        Ok(node)
    }

    /// A node.
    ///
    /// # Errors
    /// It is not in this graph.
    pub(crate) fn node(&mut self, node: Handle) -> HipResult<&mut Node> {
        self.nodes.get_mut(&node).ok_or_else(|| invalid(format!("{node:#x} is no node of this graph")))
    }

    /// Its nodes, each after those that it depends on.
    ///
    /// # Errors
    /// They wait for each other in a circle.
    pub(crate) fn order(&self) -> HipResult<Vec<Handle>> {
        let mut open: BTreeMap<Handle, usize> =
            self.nodes.iter().map(|(&node, what)| (node, what.after.len())).collect();
        let mut ready: BTreeSet<Handle> =
            open.iter().filter(|(_, open)| **open == 0).map(|(&node, _)| node).collect();
        let mut order = Vec::new();
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for next in self.dependents(node) {
                if let Some(count) = open.get_mut(&next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(next);
                    }
                }
            }
        }
        match order.len() == self.nodes.len() {
            true => Ok(order),
            false => Err(invalid("the nodes of the graph wait for each other in a circle")),
        }
    }

    /// The nodes that depend on one.
    pub(crate) fn dependents(&self, node: Handle) -> impl Iterator<Item = Handle> {
        self.nodes.iter().filter(move |(_, other)| other.after.contains(&node)).map(|(&other, _)| other)
    }

    /// The pairs of nodes of which the second depends on the first.
    pub(crate) fn edges(&self) -> Vec<(Handle, Handle)> {
        let edges = self.nodes.iter().flat_map(|(&to, node)| node.after.iter().map(move |&from| (from, to)));
        edges.collect()
    }

    /// Takes a node out.
    pub(crate) fn remove(&mut self, node: Handle) {
        self.nodes.remove(&node);
        for other in self.nodes.values_mut() {
            other.after.remove(&node);
        }
    }

    /// The copy of another graph's node.
    ///
    /// # Errors
    /// None was copied from it.
    pub(crate) fn copy_of(&self, node: Handle) -> HipResult<Handle> {
        let found = self.nodes.iter().find(|(_, copy)| copy.origin == Some(node));
        found.map(|(&copy, _)| copy).ok_or_else(|| {
            HipError::new(Code::InvalidValue, format!("no node of this graph was copied from {node:#x}"))
        })
    }

    /// Gives a node other parameters.
    ///
    /// # Errors
    /// It is not in this graph, or of another kind.
    pub(crate) fn set(&mut self, node: Handle, operation: Operation) -> HipResult {
        let node = self.node(node)?;
        if node.operation.kind() != operation.kind() {
            return Err(invalid(format!(
                "the node is of kind {:?}, not {:?}",
                node.operation.kind(),
                operation.kind()
            )));
        }
        node.operation = operation;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_after_those_they_depend_on_and_circles_are_errors() {
        let graph = create().expect("there is room");
        let [a, b, c] = with(graph, |graph| {
            let a = graph.add(Operation::Empty, &[])?;
            let b = graph.add(Operation::Empty, &[])?;
            let c = graph.add(Operation::Empty, &[a, b])?;
            graph.node(a)?.after.insert(b);
            assert_eq!(graph.order()?, [b, a, c]);
            assert_eq!(graph.edges(), [(b, a), (a, c), (b, c)]);
            assert!(graph.add(Operation::Empty, &[7]).is_err());
            Ok([a, b, c])
        })
        .expect("it was made above");
        let other = copy(graph).expect("it was made above");
        with(other, |graph| {
            assert_eq!(graph.order()?, [b, a, c].map(|node| graph.copy_of(node).expect("it was copied")));
            Ok(())
        })
        .expect("it was made above");
        with_owner(c, |graph| {
            graph.node(b)?.after.insert(c);
            assert!(graph.order().is_err());
            graph.remove(c);
            assert_eq!(graph.order()?, [b, a]);
            assert!(graph.set(a, Operation::Record(0)).is_err());
            Ok(())
        })
        .expect("it is a node");
        destroy(graph).expect("it was made above");
        assert!(ordered(graph).is_err() && ordered(other).is_ok());
    }
}
