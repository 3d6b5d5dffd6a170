//! What role the nodes of a loop play for its product.

use crate::index::Stretches;
use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OtherLoop;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::facts::Geometry;
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::graph::dependence_graph::{GraphNode, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// Which operands of a scaled product are scales.
const SCALES: Range<usize> = 3..5;

/// The nodes of a loop.
pub(in crate::passes::schedule::strategies) struct Operations<'a> {
    pub(in crate::passes::schedule::strategies) view: SchedulerView<'a>,
    /// The dimension that the product of the loop contracts: the loop's own, or one that follows it, as that
    /// of bytes of two 4-bit floats does.
    pub(in crate::passes::schedule::strategies) axis: Dim,
    pub(in crate::passes::schedule::strategies) found: &'a LoopGraph,
    pub(in crate::passes::schedule::strategies) body: &'a [GraphNode],
}

impl<'a> Operations<'a> {
    /// Those of a loop over `walked`, and its only product.
    pub(in crate::passes::schedule::strategies) fn of(
        view: SchedulerView<'a>,
        found: &'a LoopGraph,
        walked: Dim,
    ) -> Result<(Operations<'a>, Entity), OtherLoop> {
        let body = found.graph.nodes().range(NodeId::default()..found.body_end);
        let mut operations = Operations { view, axis: walked, found, body };
        let mma = operations.product()?;
        let geometry = view.world.get::<Geometry>(view.root).ok_or(Bug::new("a kernel without geometry"))?;
        let lhs = view.node(view.node(mma)?.operands.at(0)?)?;
        operations.axis = geometry.walked(&lhs.ty.dims, walked).ok_or(OtherLoop::NoProduct)?;
        Ok((operations, mma))
    }

    fn logical(&self, node: NodeId) -> Entity {
        self.found.nodes[node].expansion.logical
    }

    /// All nodes with their logical ones.
    pub(in crate::passes::schedule::strategies) fn pairs(
        &self,
    ) -> impl Iterator<Item = (&GraphNode, Entity)> {
        self.body.iter().zip(self.found.nodes.values().map(|node| node.expansion.logical))
    }

    /// The only product.
    fn product(&self) -> Result<Entity, OtherLoop> {
        let mut products = self.pairs().filter(|(n, _)| n.class == Class::Mma).map(|(_, own)| own);
        let first = products.next().ok_or(OtherLoop::NoProduct)?;
        if products.all(|own| own == first) { Ok(first) } else { Err(OtherLoop::SeveralProducts) }
    }

    /// Logical reads from LDS, writes to it and global reads of both factors.
    pub(in crate::passes::schedule::strategies) fn factors(
        &self,
        mma: Entity,
    ) -> Result<[[Entity; 3]; 2], OtherLoop> {
        let operands = &self.view.node(mma)?.operands.0;
        let mut factors = [[mma; 3]; 2];
        for ((slot, &operand), side) in factors.iter_mut().zip(operands).zip(["left", "right"]) {
            if !self.view.node(operand)?.ty.dims.contains(&self.axis) {
                return Err(OtherLoop::NoProduct);
            }
            *slot = self.through_lds(operand)?.ok_or(OtherLoop::NotThroughLds(side))?;
        }
        if factors[0] == factors[1] { Err(OtherLoop::OneFactor) } else { Ok(factors) }
    }

    /// Logical reads from LDS, writes to it and global reads of both factors' scales, where the product has
    /// some.
    pub(in crate::passes::schedule::strategies) fn scales(
        &self,
        mma: Entity,
    ) -> Result<Option<[[Entity; 3]; 2]>, OtherLoop> {
        let operands = &self.view.node(mma)?.operands.0;
        let Some(own) = operands.get(SCALES) else { return Ok(None) };
        let mut scales = [[mma; 3]; 2];
        for (slot, &operand) in scales.iter_mut().zip(own) {
            let [read, write, load] = self.through_lds(operand)?.ok_or(OtherLoop::Scales)?;
            if write == load {
                return Err(OtherLoop::Scales);
            }
            *slot = [read, write, load];
        }
        if scales[0] == scales[1] { Err(OtherLoop::OneFactor) } else { Ok(Some(scales)) }
    }

    /// The read `operand`, the node that has written what it reads, and the node that has loaded that; the
    /// last two may be one.
    fn through_lds(&self, operand: Entity) -> Result<Option<[Entity; 3]>, Bug> {
        for buffer in &self.found.buffers {
            let (Some(&read), Some(&write)) = (buffer.reads.first(), buffer.writes.first()) else { continue };
            if self.logical(read) != operand {
                continue;
            }
            let entity = self.found.graph.nodes()[write].entity;
            let load = match self.found.op(write) {
                Some(Op::GlobalToShared) => entity,
                _ => self.view.node(entity)?.operands.at(0)?,
            };
            let load = self.view.node(load)?.piece(load).logical;
            return Ok(Some([operand, self.logical(write), load]));
        }
        Ok(None)
    }

    /// Checks that nothing in the loop takes time but the product and what is `moved` for it.
    pub(in crate::passes::schedule::strategies) fn are_only(
        &self,
        moved: &[[Entity; 3]],
        mma: Entity,
    ) -> Result<(), OtherLoop> {
        let known: SmallVec<[Entity; 16]> = moved.iter().flatten().copied().chain([mma]).collect();
        let other = self.pairs().find(|(n, own)| n.class != Class::Free && !known.contains(own));
        if let Some((node, _)) = other {
            return Err(OtherLoop::Others(match node.class {
                Class::ReadGlobal => "other global reads",
                Class::WriteGlobal => "global writes",
                Class::ReadShared | Class::WriteShared | Class::GlobalToShared => "other LDS accesses",
                Class::Valu | Class::Shuffle | Class::Mma | Class::Free => "arithmetic",
            }));
        }
        match self.found.body().any(|node| self.found.is_fence(node)) {
            true => Err(OtherLoop::Others("barriers or controls")),
            false => Ok(()),
        }
    }

    /// How many coordinates along `dim` the copies of a logical node have.
    pub(in crate::passes::schedule::strategies) fn places_along(
        &self,
        node: Entity,
        dim: Dim,
    ) -> Result<u32, Bug> {
        let own = self.pairs().filter(|(_, own)| *own == node);
        let mut along = PlacesAlong::new(self.view, dim);
        let places = own.map(|(n, _)| along.of(n.entity));
        let mut places = places.collect::<Result<Vec<(u32, u32)>, Bug>>()?;
        places.sort_unstable();
        places.dedup();
        Ok(places.len() as u32)
    }

    /// Vector registers of what an iteration reads from LDS and loads into registers, and of what it adds to.
    pub(in crate::passes::schedule::strategies) fn registers_of_values(&self) -> u32 {
        let nodes = self.body.iter().zip(self.found.nodes.values());
        let is_read = |node: &GraphNode| matches!(node.class, Class::ReadShared | Class::ReadGlobal);
        let held = nodes.filter(|(node, own)| is_read(node) || matches!(own.op, Op::IterArg(_)));
        held.map(|(_, own)| own.registers).sum()
    }

    /// Vector registers of what an iteration reads at one logical node.
    pub(in crate::passes::schedule::strategies) fn registers_of(&self, read: Entity) -> u32 {
        let own = self.found.nodes.values().filter(|node| node.expansion.logical == read);
        own.map(|node| node.registers).sum()
    }

    /// True if no product of the first half along `dim` reads what is in the second half of a factor, for the
    /// logical product and reads of both factors. Reads that turn tiles may bring several runs of k at once.
    pub(in crate::passes::schedule::strategies) fn halves_match(
        &self,
        logical: [Entity; 3],
        dim: Dim,
    ) -> Result<bool, Bug> {
        let graph = &self.found.graph;
        let mut second_half = graph.table(false);
        for own in logical {
            let nodes = || graph.nodes().keys().take(self.body.len()).filter(|&id| self.logical(id) == own);
            let mut along = PlacesAlong::new(self.view, dim);
            let own = nodes().map(|id| along.of(graph.nodes()[id].entity));
            let own = own.collect::<Result<Vec<(u32, u32)>, Bug>>()?;
            let mut places = own.clone();
            places.sort_unstable();
            places.dedup();
            for (id, own) in nodes().zip(own) {
                second_half[id] = 2 * places.partition_point(|place| *place < own) >= places.len();
            }
        }
        let is = |id: NodeId, class| graph.nodes()[id].class == class;
        // What reads hand on by way of nodes that take no time.
        let mut late = graph.table(false);
        for id in graph.nodes().keys() {
            let own = is(id, Class::ReadShared) && second_half[id];
            late[id] = own || graph.entering(id).any(|edge| edge.distance == 0 && late[edge.from]);
        }
        Ok(!graph.nodes().keys().any(|id| is(id, Class::Mma) && !second_half[id] && late[id]))
    }

    /// How many copies a logical node has.
    pub(in crate::passes::schedule::strategies) fn count(&self, node: Entity) -> u32 {
        self.pairs().filter(|(_, own)| *own == node).count() as u32
    }
}
