//! What role the nodes of a loop play for its product.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::Unsuitable;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::passes::expand::Expansion;
use crate::passes::schedule::graph::coordinates::coordinate;
use crate::passes::schedule::graph::dependence_graph::GraphNode;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;

/// The nodes of a loop over `axis`.
pub(super) struct Operations<'a> {
    pub(super) world: &'a World,
    pub(super) axis: Dim,
    found: &'a LoopGraph,
    pub(super) body: &'a [GraphNode],
    /// The logical node of each.
    origins: Vec<Entity>,
}

impl<'a> Operations<'a> {
    pub(super) fn of(world: &'a World, found: &'a LoopGraph, axis: Dim) -> Operations<'a> {
        let body = &found.graph.nodes()[..found.body as usize];
        let origins = body.iter().map(|n| logical(world, n.entity)).collect();
        Operations { world, axis, found, body, origins }
    }

    /// All nodes with their logical ones.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&GraphNode, Entity)> {
        self.body.iter().zip(self.origins.iter().copied())
    }

    /// The only product.
    pub(super) fn product(&self) -> Result<Entity, Unsuitable> {
        let mut products = self.pairs().filter(|(n, _)| n.class == Class::Mma).map(|(_, own)| own);
        let first = products.next().ok_or(Unsuitable::NoProduct)?;
        if products.all(|own| own == first) { Ok(first) } else { Err(Unsuitable::SeveralProducts) }
    }

    /// Logical reads from LDS, writes to it and global reads of both factors.
    pub(super) fn factors(&self, mma: Entity) -> Result<[[Entity; 3]; 2], Unsuitable> {
        let world = self.world;
        let operands = world.get::<Operands>(mma).map(|o| &o.0[..]).unwrap_or_default();
        let mut factors = [[mma; 3]; 2];
        for ((slot, &operand), side) in factors.iter_mut().zip(operands).zip(["left", "right"]) {
            if !world.get::<ValueType>(operand).is_some_and(|ty| ty.dims.contains(&self.axis)) {
                return Err(Unsuitable::NoProduct);
            }
            *slot = self.through_lds(operand).ok_or(Unsuitable::NotThroughLds(side))?;
        }
        if factors[0] == factors[1] { Err(Unsuitable::OneFactor) } else { Ok(factors) }
    }

    /// The read `operand`, the node that has written what it reads, and the node that has loaded that; the
    /// last two may be one.
    fn through_lds(&self, operand: Entity) -> Option<[Entity; 3]> {
        let world = self.world;
        self.found.buffers.iter().find_map(|buffer| {
            let read = self.origins[*buffer.reads.first()? as usize];
            let write = *buffer.writes.first()? as usize;
            let entity = self.body[write].entity;
            let load = if *world.get::<Op>(entity)? == Op::GlobalToShared {
                entity
            } else {
                world.get::<Operands>(entity)?.0.first().copied()?
            };
            (read == operand).then_some([read, self.origins[write], logical(world, load)])
        })
    }

    /// Checks that nothing else in the loop takes time.
    pub(super) fn are_only(&self, factors: &[[Entity; 3]; 2], mma: Entity) -> Result<(), Unsuitable> {
        let known: SmallVec<[Entity; 8]> = factors.iter().flatten().copied().chain([mma]).collect();
        let other = self.pairs().find(|(n, own)| n.class != Class::Free && !known.contains(own));
        if let Some((node, _)) = other {
            return Err(Unsuitable::Others(match node.class {
                Class::ReadGlobal => "other global reads",
                Class::WriteGlobal => "global writes",
                Class::ReadShared | Class::WriteShared | Class::GlobalToShared => "other LDS accesses",
                Class::Valu | Class::Shuffle | Class::Mma | Class::Free => "arithmetic",
            }));
        }
        let op = |n: &GraphNode| self.world.get::<Op>(n.entity);
        match self.body.iter().any(|n| matches!(op(n), Some(Op::Barrier | Op::Control(_)))) {
            true => Err(Unsuitable::Others("barriers or controls")),
            false => Ok(()),
        }
    }

    /// How many coordinates along `dim` the copies of a logical node have.
    pub(super) fn places_along(&self, node: Entity, dim: Dim) -> u32 {
        let own = self.pairs().filter(|(_, own)| *own == node);
        let mut places: Vec<(u32, u32)> = own.map(|(n, _)| coordinate(self.world, n.entity, dim)).collect();
        places.sort_unstable();
        places.dedup();
        places.len() as u32
    }

    /// How many copies a logical node has.
    pub(super) fn count(&self, node: Entity) -> u32 {
        self.origins.iter().filter(|own| **own == node).count() as u32
    }
}

/// What a node is a copy of.
pub(super) fn logical(world: &World, node: Entity) -> Entity {
    world.get::<Expansion>(node).map_or(node, |e| e.logical)
}
