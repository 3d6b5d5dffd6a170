//! Where the tile of a memory, or of LDS, lies that a workgroup has in an iteration.

use std::borrow::Cow;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::trace::LoopFrame;
use super::{Machine, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::facts::{Base, Iteration, LdsBuffer};
use crate::ir::layout::Dim;
use crate::ir::node::*;

/// A dimension of what is accessed: how many elements it has, and the first one of the tile.
pub(super) struct TileDim {
    pub(super) dim: Dim,
    pub(super) symbol: Symbol,
    pub(super) size: usize,
    pub(super) first: i64,
}

impl TileDim {
    /// A coordinate along it, if there is an element.
    pub(super) fn inside(&self, coordinate: i64) -> Option<usize> {
        usize::try_from(coordinate).ok().filter(|&at| at < self.size)
    }
}

/// An LDS buffer, and where the copy of it begins that an iteration uses.
pub(super) struct LdsTile<'a> {
    buffer: Cow<'a, LdsBuffer>,
    first: u32,
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
    /// Dimensions of so many elements each, with the first ones of the tile that `node` is in.
    pub(super) fn tile_dims(
        &self,
        node: Entity,
        dims: impl Iterator<Item = (Dim, usize)>,
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<SmallVec<[TileDim; 4]>, Diagnostic> {
        let iteration = self.iteration_of(node);
        let of_dim = |(dim, size): (Dim, usize)| {
            let first = self.first_element(dim, frame, iteration, group)?;
            Ok(TileDim { dim, symbol: self.geometry.dims[dim].symbol, size, first })
        };
        dims.map(of_dim).collect()
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
