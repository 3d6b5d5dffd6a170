//! Gives nodes another order: clusters name it, dependences are kept, and what no cluster names goes where it is needed.

use bevy_ecs::prelude::*;

use super::dependences::LoopGraph;
use crate::ir::node::*;

/// A part of a cluster.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Piece {
    /// A node that is there.
    Node(Entity),
    /// A new node without operands, written at the origin.
    Insert(Op, Origin),
}

/// Why nodes cannot have an order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Disorder {
    /// A cluster names a node that is not among them.
    Stranger(Entity),
    /// Clusters name a node twice.
    Twice(Entity),
    /// The first must come before the second, and the clusters say otherwise.
    Against(Entity, Entity),
}

/// State of the walk that emits nodes.
struct Order<'a> {
    found: &'a LoopGraph,
    /// Position among the clusters' pieces, plus one; zero for nodes that no cluster names.
    named: Vec<u32>,
    emitted: Vec<bool>,
    out: Vec<Entity>,
}

/// The nodes of `found` in the order that `clusters` name. Nodes in front of all named ones stay in front; others come before their first
/// user, or last. Inserted nodes are made in `world`.
///
/// # Errors
/// What is wrong with the clusters; then nothing is made.
pub fn reorder(
    world: &mut World,
    found: &LoopGraph,
    clusters: &[Vec<Piece>],
) -> Result<Vec<Entity>, Disorder> {
    let body = found.body as usize;
    let size =
        found.graph.nodes()[..body].iter().map(|n| n.entity.index_u32() as usize + 1).max().unwrap_or(0);
    let mut number = vec![u32::MAX; size];
    for (at, node) in found.graph.nodes()[..body].iter().enumerate() {
        number[node.entity.index_u32() as usize] = at as u32;
    }
    let number_of = |node: Entity| {
        number
            .get(node.index_u32() as usize)
            .copied()
            .filter(|&n| n != u32::MAX)
            .ok_or(Disorder::Stranger(node))
    };
    let mut named = vec![0; found.graph.nodes().len()];
    let mut order = Vec::new();
    for piece in clusters.iter().flatten() {
        if let Piece::Node(node) = *piece {
            let at = number_of(node)?;
            if named[at as usize] != 0 {
                return Err(Disorder::Twice(node));
            }
            order.push(at);
            named[at as usize] = order.len() as u32;
        }
    }
    let first = order.iter().copied().min().unwrap_or(0);
    let emitted = vec![false; found.graph.nodes().len()];
    let mut walk = Order { found, named, emitted, out: Vec::with_capacity(body) };
    // Once without inserting, so that nothing is made for clusters that are wrong.
    (0..first).try_for_each(|node| walk.emit(node))?;
    order.iter().try_for_each(|&node| walk.emit(node))?;
    walk.emitted.iter_mut().for_each(|emitted| *emitted = false);
    walk.out.clear();
    (0..first).try_for_each(|node| walk.emit(node))?;
    for piece in clusters.iter().flatten() {
        match *piece {
            Piece::Node(node) => walk.emit(number_of(node)?)?,
            Piece::Insert(op, origin) => {
                let bundle = (op, Operands::default(), ValueType::unknown(), origin);
                walk.out.push(world.spawn(bundle).id());
            }
        }
    }
    (0..found.body).try_for_each(|node| walk.emit(node))?;
    Ok(walk.out)
}

impl Order<'_> {
    /// Emits a node behind everything that has to come before it.
    fn emit(&mut self, node: u32) -> Result<(), Disorder> {
        if self.emitted[node as usize] {
            return Ok(());
        }
        // Nodes whose predecessors are being emitted; no recursion, since chains are as long as the body.
        let mut open = vec![node];
        while let Some(&top) = open.last() {
            if self.emitted[top as usize] {
                open.pop();
                continue;
            }
            let needed = open.len();
            for edge in self.found.graph.entering(top) {
                if edge.distance > 0 || self.emitted[edge.from as usize] {
                    continue;
                }
                if self.named[edge.from as usize] != 0 && edge.from != node {
                    return Err(Disorder::Against(self.entity(edge.from), self.entity(node)));
                }
                open.push(edge.from);
            }
            if open.len() == needed {
                open.pop();
                self.emitted[top as usize] = true;
                if top < self.found.body {
                    self.out.push(self.entity(top));
                }
            }
        }
        Ok(())
    }

    fn entity(&self, node: u32) -> Entity {
        self.found.graph.nodes()[node as usize].entity
    }
}
