//! The element of a memory, or the byte of LDS, that a place of a layout refers to.

use bevy_ecs::prelude::*;

use super::trace::LoopFrame;
use super::{Machine, MemoryContents, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{Base, Bounds, Iteration, LdsBuffer};
use crate::ir::layout::{Dim, Layout, Place};
use crate::ir::node::*;

/// Where an element of a global access is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ElementPlace {
    /// In the tensor, at this index.
    At(usize),
    /// Outside, where the access reads zero and writes nothing.
    Masked,
    /// Outside, where the access must not be used.
    Undefined,
}

impl Machine<'_> {
    /// The element of `memory` that `node` touches at `place`.
    pub(super) fn element(
        &self,
        node: Entity,
        memory: &MemoryContents,
        layout: &Layout,
        place: Place,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<ElementPlace, Diagnostic> {
        self.element_at(node, memory, |dim| layout.coordinate(dim, place), frame, group)
    }

    /// The element of `memory` that `node` touches at these coordinates in the workgroup's tile.
    pub(super) fn element_at(
        &self,
        node: Entity,
        memory: &MemoryContents,
        coordinate: impl Fn(Dim) -> u32,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<ElementPlace, Diagnostic> {
        let bounds = self.fact::<Bounds>(node);
        let iteration = self.iteration_of(node);
        let mut index = 0usize;
        let mut found = ElementPlace::At(0);
        for (&dim, &size) in memory.dims.iter().zip(&memory.shape) {
            let entry = &self.geometry.dims[dim];
            let first = self.first_element(dim, frame, iteration, group)?;
            let coordinate = i64::from(coordinate(dim)) + first;
            let Some(inside) = usize::try_from(coordinate).ok().filter(|&at| at < size) else {
                let (masks, leaves) = match bounds {
                    None => (true, true),
                    Some(bounds) => (bounds.masks.contains(&dim), bounds.leaves.contains(&dim)),
                };
                match (masks, leaves) {
                    (true, _) => return Ok(ElementPlace::Masked),
                    (false, true) => found = ElementPlace::Undefined,
                    (false, false) => {
                        let text = format!(
                            "an access reaches {} = {coordinate}, beyond its {size} elements, although it is not marked as leaving them",
                            entry.symbol
                        );
                        return Err(Diagnostic::invalid(text).at(self.location(node)));
                    }
                }
                continue;
            };
            index = index * size + inside;
        }
        Ok(match found {
            ElementPlace::At(_) => ElementPlace::At(index),
            outside => outside,
        })
    }

    /// The first element along a dimension of the tile that a workgroup has in an iteration.
    pub(super) fn first_element(
        &self,
        dim: Dim,
        frame: &LoopFrame,
        iteration: Iteration,
        group: &RunningGroup,
    ) -> Result<i64, Diagnostic> {
        let entry = self.geometry.dims.get(dim).ok_or_else(|| bug("a dimension without size"))?;
        let mut first = 0;
        if let Some((axis, tile)) = entry.workgroup {
            first += i64::from(group.id[axis as usize]) * i64::from(tile);
        }
        if let Some(tile) = entry.tiling
            && let Some(number) = frame.existing_tile(self.geometry.loop_dim(dim), iteration)
        {
            first += number * i64::from(tile);
        }
        Ok(first)
    }

    /// The coordinate in the whole tensor, along a dimension, of the element that `node` touches at `place`.
    pub(super) fn whole_coordinate(
        &self,
        node: Entity,
        dim: Dim,
        layout: &Layout,
        place: Place,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<i64, Diagnostic> {
        let first = self.first_element(dim, frame, self.iteration_of(node), group)?;
        Ok(i64::from(layout.coordinate(dim, place)) + first)
    }

    /// A fact about an access: about the logical node, if it is a piece of one.
    pub(super) fn fact<C: Component>(&self, node: Entity) -> Option<&C> {
        self.world.get::<C>(self.logical(node))
    }

    /// First byte of the element of an LDS buffer that `node` touches at `place`.
    pub(super) fn byte(
        &self,
        node: Entity,
        allocation: Entity,
        layout: &Layout,
        place: Place,
        frame: &LoopFrame,
    ) -> Result<u32, Diagnostic> {
        self.byte_at(node, allocation, |dim| layout.coordinate(dim, place), frame)
    }

    /// First byte of the element of an LDS buffer at these coordinates in the workgroup's tile.
    pub(super) fn byte_at(
        &self,
        node: Entity,
        allocation: Entity,
        coordinate: impl Fn(Dim) -> u32,
        frame: &LoopFrame,
    ) -> Result<u32, Diagnostic> {
        let fault = |text: String| Err(Diagnostic::invalid(text).at(self.location(node)));
        let buffer = self.buffer(allocation)?;
        let (mut row, mut column) = (0u32, 0u32);
        for (at, (&dim, &extent)) in buffer.dims.iter().zip(&buffer.extents).enumerate() {
            let coordinate = coordinate(dim);
            if coordinate >= extent {
                return fault(format!("an access is at {coordinate} of an LDS buffer's {extent} elements"));
            }
            if at + 1 == buffer.dims.len() {
                column = buffer.place_in_row(coordinate) * buffer.element_bytes;
            } else {
                row = row * extent + coordinate;
            }
        }
        let mut byte = row * buffer.pitch + column;
        if let Some(swizzle) = buffer.swizzle {
            let unit = (byte / swizzle.unit) ^ swizzle.phase(row);
            byte = unit * swizzle.unit + byte % swizzle.unit;
        }
        if byte + buffer.element_bytes > buffer.bytes {
            return fault(format!("an access is at byte {byte} of an LDS buffer of {} bytes", buffer.bytes));
        }
        let iteration = self.iteration_of(node);
        let copy = match frame.innermost() {
            Some(dim) if buffer.copies > 1 && iteration.base != Base::Written => {
                let number =
                    frame.iteration(dim, iteration).ok_or_else(|| bug("an access outside of its loop"))?;
                number.rem_euclid(i64::from(buffer.copies)) as u32
            }
            _ => 0,
        };
        Ok(buffer.offset + copy * buffer.copy_stride() + byte)
    }

    /// How a tile lies in LDS: as passes have arranged it or, before that, dense.
    pub(super) fn buffer(&self, allocation: Entity) -> Result<LdsBuffer, Diagnostic> {
        if let Some(buffer) = self.world.get::<LdsBuffer>(allocation) {
            return Ok(buffer.clone());
        }
        let ty = self.get::<ValueType>(allocation)?;
        let element_bytes = ty.dtype.ok_or_else(|| bug("a buffer without dtype"))?.bytes();
        let mut extents = smallvec::SmallVec::<[u32; 4]>::new();
        for &dim in &ty.dims {
            let extent = self.geometry.dims.get(dim).and_then(|entry| entry.workgroup_extent());
            extents.push(extent.ok_or_else(|| bug("a buffer without extent"))?);
        }
        let rows = extents.iter().rev().skip(1).fold(1u32, |all, &extent| all.saturating_mul(extent));
        let pitch = extents.last().copied().unwrap_or(1).saturating_mul(element_bytes);
        let bytes = rows.saturating_mul(pitch);
        let dims = ty.dims.clone();
        Ok(LdsBuffer {
            dims,
            extents,
            element_bytes,
            pitch,
            spacing: None,
            swizzle: None,
            offset: 0,
            bytes,
            copies: 1,
        })
    }
}
