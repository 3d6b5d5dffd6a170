//! Gives nodes another order: the clusters' order, with dependences kept and nodes that no cluster names
//! placed where they are needed.

use crate::passes::schedule::graph::dependence_graph::NodeId;
use bevy_ecs::prelude::*;

use crate::ir::node::*;
use crate::ir::nodes::NodeBundle;
use crate::passes::facts::OfSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::numbers::EntityNumbers;
use cranelift_entity::{PrimaryMap, iter_entity_range};

/// A part of a cluster.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum ClusterPiece {
    /// A node of the kernel.
    Node(Entity),
    /// A new node without operands, written at the origin.
    Insert(Op, Origin),
}

/// Why nodes cannot have an order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Disorder {
    /// A cluster names a node that is not among them.
    Stranger(Entity),
    /// Clusters name a node twice.
    Twice(Entity),
    /// The first must come before the second, and the clusters say otherwise.
    Against(Entity, Entity),
}

/// State of the walk that emits nodes.
struct EmissionOrder<'a> {
    found: &'a LoopGraph,
    /// Position among the clusters' pieces, plus one; zero for nodes that no cluster names.
    named: PrimaryMap<NodeId, u32>,
    emitted: PrimaryMap<NodeId, bool>,
    /// Nodes whose predecessors are being emitted.
    open: Vec<NodeId>,
    out: Vec<Entity>,
    /// Dependences looked at.
    steps: u64,
}

/// Puts the nodes of `found` in the order that `clusters` name. Nodes in front of all named ones stay in
/// front; others come before their first user, or last. Inserted nodes are spawned in `world`.
///
/// # Errors
/// What is wrong with the clusters; then no node is spawned.
pub(crate) fn reorder(
    world: &mut World,
    found: &LoopGraph,
    clusters: &[Vec<ClusterPiece>],
) -> Result<Vec<Entity>, Disorder> {
    reorder_counted(world, found, clusters).map(|(order, _)| order)
}

/// The same, with the number of dependences looked at.
pub(crate) fn reorder_counted(
    world: &mut World,
    found: &LoopGraph,
    clusters: &[Vec<ClusterPiece>],
) -> Result<(Vec<Entity>, u64), Disorder> {
    let number = EntityNumbers::in_order(found.body_entities());
    let mut named = found.graph.table(0);
    let mut order = Vec::with_capacity(found.nodes.len());
    for piece in clusters.iter().flatten() {
        if let ClusterPiece::Node(node) = *piece {
            let at: NodeId = number.get(node).ok_or(Disorder::Stranger(node))?;
            if named[at] != 0 {
                return Err(Disorder::Twice(node));
            }
            order.push(at);
            named[at] = order.len() as u32;
        }
    }
    let first = order.iter().copied().min().unwrap_or_default();
    let emitted = found.graph.table(false);
    let (open, out) = (Vec::new(), Vec::with_capacity(found.nodes.len() + 16));
    let mut walk = EmissionOrder { found, named, emitted, open, out, steps: 0 };
    iter_entity_range(NodeId::default()..first).try_for_each(|node| walk.emit(node))?;
    // Room is left for insertions: nothing is spawned before the clusters are known to be right.
    let mut inserted = Vec::new();
    let mut named = order.into_iter();
    for piece in clusters.iter().flatten() {
        match *piece {
            ClusterPiece::Node(_) => named.next().map_or(Ok(()), |node| walk.emit(node))?,
            ClusterPiece::Insert(op, origin) => {
                inserted.push((walk.out.len(), op, origin));
                walk.out.push(Entity::PLACEHOLDER);
            }
        }
    }
    found.body().try_for_each(|node| walk.emit(node))?;
    for (at, op, origin) in inserted {
        walk.out[at] = NodeBundle::effect(op, origin).spawn(world, OfSchedule);
    }
    Ok((walk.out, walk.steps))
}

impl EmissionOrder<'_> {
    /// Emits a node after everything that has to come before it.
    fn emit(&mut self, node: NodeId) -> Result<(), Disorder> {
        if self.emitted[node] {
            return Ok(());
        }
        // Not recursive, because chains are as long as the body.
        self.open.clear();
        self.open.push(node);
        while let Some(&top) = self.open.last() {
            if self.emitted[top] {
                self.open.pop();
                continue;
            }
            let needed = self.open.len();
            for edge in self.found.graph.entering(top) {
                self.steps += 1;
                if edge.distance > 0 || self.emitted[edge.from] {
                    continue;
                }
                if self.named[edge.from] != 0 && edge.from != node {
                    return Err(Disorder::Against(self.entity(edge.from), self.entity(node)));
                }
                self.open.push(edge.from);
            }
            if self.open.len() == needed {
                self.open.pop();
                self.emitted[top] = true;
                if top < self.found.body_end {
                    self.out.push(self.entity(top));
                }
            }
        }
        Ok(())
    }

    fn entity(&self, node: NodeId) -> Entity {
        self.found.graph.nodes()[node].entity
    }
}
