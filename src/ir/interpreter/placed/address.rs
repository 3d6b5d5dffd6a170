//! The element of a memory, or the byte of LDS, that a place of a layout refers to. What is the same for all
//! places of an access is found once.

use std::borrow::Cow;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::trace::LoopFrame;
use super::{Machine, MemoryContents, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::facts::{Base, Bounds, Iteration, LdsBuffer};
use crate::ir::layout::{Dim, Layout, Place};
use crate::ir::node::*;

/// The place of an element of an access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ElementPlace {
    /// In the tensor, at this index; in LDS, at this byte.
    At(usize),
    /// Outside, where the access reads zero and writes nothing.
    Masked,
    /// Outside, where the access must not be used.
    Undefined,
}

/// The tile of a memory that an access is in.
pub(super) enum AccessedTile<'a> {
    Memory(MemoryTile<'a>),
    Lds(LdsTile<'a>),
}

/// The part of a memory that a workgroup accesses in one iteration.
pub(super) struct MemoryTile<'a> {
    dims: SmallVec<[TileDim; 4]>,
    bounds: Option<&'a Bounds>,
}

/// A dimension of a memory: how many elements it has, and the first one of the tile.
struct TileDim {
    dim: Dim,
    symbol: Symbol,
    size: usize,
    first: i64,
}

/// An LDS buffer, and where the copy of it begins that an iteration uses.
pub(super) struct LdsTile<'a> {
    buffer: Cow<'a, LdsBuffer>,
    first: u32,
}

impl AccessedTile<'_> {
    /// The element at these coordinates in the workgroup's tile.
    pub(super) fn element(&self, coordinate: impl Fn(Dim) -> u32) -> Result<ElementPlace, Diagnostic> {
        match self {
            AccessedTile::Memory(tile) => tile.element(coordinate),
            AccessedTile::Lds(tile) => Ok(ElementPlace::At(tile.byte(coordinate)? as usize)),
        }
    }
}

impl MemoryTile<'_> {
    fn element(&self, coordinate: impl Fn(Dim) -> u32) -> Result<ElementPlace, Diagnostic> {
        let mut index = 0usize;
        let mut found = ElementPlace::At(0);
        for &TileDim { dim, symbol, size, first } in &self.dims {
            let coordinate = i64::from(coordinate(dim)) + first;
            let Some(inside) = usize::try_from(coordinate).ok().filter(|&at| at < size) else {
                let (masks, leaves) = match self.bounds {
                    None => (true, true),
                    Some(bounds) => (bounds.masks.contains(&dim), bounds.leaves.contains(&dim)),
                };
                match (masks, leaves) {
                    (true, _) => return Ok(ElementPlace::Masked),
                    (false, true) => found = ElementPlace::Undefined,
                    (false, false) => {
                        return Err(Diagnostic::invalid(format!(
                            "an access reaches {symbol} = {coordinate}, beyond its {size} elements, although it is not \
                             marked as leaving them",
                        )));
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
}

impl LdsTile<'_> {
    /// First byte of the element at these coordinates in the workgroup's tile.
    pub(super) fn byte(&self, coordinate: impl Fn(Dim) -> u32) -> Result<u32, Diagnostic> {
        let buffer = &*self.buffer;
        let (mut row, mut column) = (0u32, 0u32);
        for (at, (&dim, &extent)) in buffer.dims.iter().zip(&buffer.extents).enumerate() {
            let coordinate = coordinate(dim);
            if coordinate >= extent {
                let text = format!("an access is at {coordinate} of an LDS buffer's {extent} elements");
                return Err(Diagnostic::invalid(text));
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
            let text = format!("an access is at byte {byte} of an LDS buffer of {} bytes", buffer.bytes);
            return Err(Diagnostic::invalid(text));
        }
        Ok(self.first + byte)
    }
}

impl<'a> Machine<'a> {
    /// The tile of a memory or an LDS buffer that `node` is in.
    pub(super) fn tile(
        &self,
        node: Entity,
        memory: Entity,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<AccessedTile<'a>, Diagnostic> {
        match self.by_node.get(memory) {
            Some(&number) => {
                Ok(AccessedTile::Memory(self.memory_tile(node, &self.memories[number], frame, group)?))
            }
            None => Ok(AccessedTile::Lds(self.lds_tile(node, memory, frame)?)),
        }
    }

    fn memory_tile(
        &self,
        node: Entity,
        memory: &MemoryContents,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<MemoryTile<'a>, Diagnostic> {
        let iteration = self.iteration_of(node);
        let mut dims = SmallVec::new();
        for (&dim, &size) in memory.dims.iter().zip(&memory.shape) {
            let first = self.first_element(dim, frame, iteration, group)?;
            dims.push(TileDim { dim, symbol: self.geometry.dims[dim].symbol, size, first });
        }
        Ok(MemoryTile { dims, bounds: self.fact::<Bounds>(node) })
    }

    /// The copy of an LDS buffer that `node` uses.
    pub(super) fn lds_tile(
        &self,
        node: Entity,
        allocation: Entity,
        frame: &LoopFrame,
    ) -> Result<LdsTile<'a>, Diagnostic> {
        let buffer = self.buffer(allocation)?;
        let iteration = self.iteration_of(node);
        let copy = match frame.innermost() {
            Some(dim) if buffer.copies > 1 && iteration.base != Base::Written => {
                let number =
                    frame.iteration(dim, iteration).ok_or_else(|| bug("an access outside of its loop"))?;
                number.rem_euclid(i64::from(buffer.copies)) as u32
            }
            _ => 0,
        };
        let first = buffer.offset + copy * buffer.copy_stride();
        Ok(LdsTile { buffer, first })
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
    pub(super) fn fact<C: Component>(&self, node: Entity) -> Option<&'a C> {
        self.world.get::<C>(self.logical(node))
    }

    /// How a tile lies in LDS: as passes have arranged it or, before that, dense.
    pub(super) fn buffer(&self, allocation: Entity) -> Result<Cow<'a, LdsBuffer>, Diagnostic> {
        if let Some(buffer) = self.world.get::<LdsBuffer>(allocation) {
            return Ok(Cow::Borrowed(buffer));
        }
        let ty = self.get::<ValueType>(allocation)?;
        let element_bytes = ty.dtype.ok_or_else(|| bug("a buffer without dtype"))?.bytes();
        let mut extents = SmallVec::<[u32; 4]>::new();
        for &dim in &ty.dims {
            let extent = self.geometry.dims.get(dim).and_then(|entry| entry.workgroup_extent());
            extents.push(extent.ok_or_else(|| bug("a buffer without extent"))?);
        }
        let rows = extents.iter().rev().skip(1).fold(1u32, |all, &extent| all.saturating_mul(extent));
        let pitch = extents.last().copied().unwrap_or(1).saturating_mul(element_bytes);
        let bytes = rows.saturating_mul(pitch);
        let dims = ty.dims.clone();
        Ok(Cow::Owned(LdsBuffer {
            dims,
            extents,
            element_bytes,
            pitch,
            spacing: None,
            swizzle: None,
            offset: 0,
            bytes,
            copies: 1,
        }))
    }
}
