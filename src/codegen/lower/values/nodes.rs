//! Components of the kernel's nodes, and sizes and strides of memories.

use bevy_ecs::prelude::*;

use super::ValueLayer;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprError};
use crate::ir::kernel::Locations;
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::nodes::{self, ExpandedNodeItem, ExpandedNodes};
use crate::passes::facts::{Geometry, LdsBytes};

/// The kernel, as the passes leave it.
pub(crate) struct ExpandedKernel<'a> {
    pub(crate) world: &'a World,
    pub(crate) nodes: ExpandedNodes<'a, 'a>,
    /// What the query says of each node of the kernel, by entity index: every walk asks again.
    pub(super) seen: Vec<Option<ExpandedNodeItem<'a, 'a>>>,
    pub(crate) geometry: &'a Geometry,
    pub(crate) locations: &'a Locations,
    /// Bytes of LDS that a workgroup has.
    pub(crate) lds_bytes: u32,
    /// True if the kernel has products.
    pub(crate) multiplies: bool,
    /// The kernel computes with the numbers of its workgroup.
    pub(crate) counts_workgroups: bool,
    /// Masks of some loop hide nothing in most of its tiles.
    pub(crate) has_seldom_masks: bool,
}

impl<'a> ExpandedKernel<'a> {
    /// The kernel at `root`.
    ///
    /// # Errors
    /// Kernels that the passes have not come to the end of.
    pub(crate) fn new(
        world: &'a World,
        nodes: ExpandedNodes<'a, 'a>,
        root: Entity,
        entities: usize,
    ) -> Result<ExpandedKernel<'a>, Diagnostic> {
        let geometry: &Geometry = nodes::fact(world, root, "a kernel without geometry")?;
        Ok(ExpandedKernel {
            world,
            nodes,
            seen: Vec::with_capacity(entities),
            geometry,
            locations: nodes::fact(world, root, "a kernel without locations")?,
            lds_bytes: world.get::<LdsBytes>(root).map_or(0, |bytes| bytes.0),
            multiplies: false,
            counts_workgroups: false,
            has_seldom_masks: geometry.dims.values().any(|dim| !dim.masks.unmasked.is_empty()),
        })
    }
}

impl<'a> ValueLayer<'a> {
    /// What a walk over the kernel asks of each node.
    pub(crate) fn expanded(&self, node: Entity) -> Result<ExpandedNodeItem<'a, 'a>, Diagnostic> {
        match self.kernel.seen.get(node.index_u32() as usize) {
            Some(Some(seen)) => Ok(*seen),
            Some(None) | None => Ok(self.kernel.nodes.get_inner(node)?),
        }
    }

    /// The same for a node that has not been seen before.
    #[inline]
    pub(crate) fn first_seen(&mut self, node: Entity) -> Result<ExpandedNodeItem<'a, 'a>, Diagnostic> {
        let (index, seen) = (node.index_u32() as usize, self.kernel.nodes.get_inner(node)?);
        if index >= self.kernel.seen.len() {
            self.kernel.seen.resize(index + 1, None);
        }
        self.kernel.seen[index] = Some(seen);
        Ok(seen)
    }

    pub(crate) fn get<C: Component>(&self, node: Entity) -> Result<&'a C, Diagnostic> {
        self.kernel
            .world
            .get::<C>(node)
            .ok_or_else(|| Diagnostic::bug(format!("a node has no {}", std::any::type_name::<C>())))
    }

    pub(crate) fn at(&self, node: Entity) -> Option<crate::ir::diagnostic::Location> {
        self.kernel.world.get::<Origin>(node).and_then(|o| self.kernel.locations.get(o.0))
    }

    /// Size of an element of a value or memory in bytes.
    pub(crate) fn element_bytes(&self, node: Entity) -> Result<u32, Diagnostic> {
        self.get::<ValueType>(node)?
            .dtype
            .map(|d| d.bytes())
            .ok_or_else(|| Diagnostic::bug("a value without dtype"))
    }

    /// The sizes whose product is the number of elements from one coordinate of `dim` to the next in a memory
    /// of dimensions `dims`: those of the inner dimensions, unless the memory has strides.
    pub(crate) fn stride_factors(&self, memory: Entity, dims: &[Dim], dim: Dim) -> Dims {
        let strides = self.kernel.world.get::<Strides>(memory);
        match strides.and_then(|strides| strides.0.get(dims.iter().position(|&d| d == dim)?)) {
            Some(factors) => Dims::from_slice(factors),
            None => dims.iter().rev().copied().take_while(|&d| d != dim).collect(),
        }
    }

    /// The fault of offsets that cannot be computed.
    pub(crate) fn too_large(&self, error: &ExprError) -> Diagnostic {
        Diagnostic::new(Kind::Limit, format!("a memory is too large: {error}"))
            .at(self.kernel.locations.get(self.emitter.source))
            .help("offsets are computed with 64 bits: use smaller sizes")
    }

    /// Bytes from one coordinate of `dim` to the next in a memory of dimensions `dims`.
    pub(crate) fn stride_bytes(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        dim: Dim,
        element_bytes: u32,
    ) -> Result<Expr, Diagnostic> {
        let mut stride = self.arena.int(i64::from(element_bytes));
        for inner in self.stride_factors(memory, dims, dim) {
            let size = self.kernel.geometry.dim(inner).size;
            stride = self.arena.mul(stride, size).map_err(|e| self.too_large(&e))?;
        }
        Ok(stride)
    }
}
