//! What accesses of memories that are alike share: the place of the workgroup's tile, and the offsets of the
//! pieces of an access. Two memories are alike if they have the same dimensions and element size and no
//! strides of their own, so that the same element is equally far from the start of both.

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{AccessFacts, LaneOffset, OffsetFacts, PlannedPiece};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Layout, Source};
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;

/// The most registers of offsets that are kept for another access. Where each piece has a mask of its own
/// there are many, and making them again costs less than the registers would.
const MOST_OFFSETS: usize = 2;

/// The place of the workgroup's tile in a memory and in all memories like it.
#[derive(Copy, Clone, Debug)]
pub(super) struct TilePlace {
    pub(super) memory: Entity,
    /// Bytes from the start of the memory.
    pub(super) offset: [Scalar; 2],
    /// Bytes to the end of the slice.
    pub(super) records: Scalar,
}

impl AddressLayer<'_> {
    fn are_alike(&self, a: Entity, b: Entity) -> Result<bool, Diagnostic> {
        if a == b {
            return Ok(true);
        }
        let strided = [a, b].iter().any(|&memory| self.kernel.world.get::<Strides>(memory).is_some());
        let same_dims = self.get::<ValueType>(a)?.dims == self.get::<ValueType>(b)?.dims;
        Ok(!strided && same_dims && self.element_bytes(a)? == self.element_bytes(b)?)
    }

    /// The place of the workgroup's tile, if it is known of a memory that is alike.
    pub(super) fn known_tile_place(&self, memory: Entity) -> Result<Option<TilePlace>, Diagnostic> {
        for place in &self.tile_places {
            if self.are_alike(place.memory, memory)? {
                return Ok(Some(*place));
            }
        }
        Ok(None)
    }

    /// The pieces of another access with the same offsets, if one is valid at this point.
    pub(super) fn known_pieces(
        &self,
        facts: &AccessFacts,
        offsets: &OffsetFacts,
    ) -> Result<Option<Range<usize>>, Diagnostic> {
        if facts.buffer.is_some() || facts.fills.is_some() {
            return Ok(None);
        }
        for (node, plan) in self.plans.iter() {
            let Some((memory, known)) = &plan.shared else { continue };
            let same = known == offsets
                && self.are_alike(*memory, facts.memory)?
                && self.get::<Placement>(node)?.0 == *facts.layout;
            if same {
                return Ok(Some(plan.pieces.clone()));
            }
        }
        Ok(None)
    }
}

/// Whether other accesses may take the offsets of these pieces.
pub(super) fn may_be_shared(pieces: &[PlannedPiece]) -> bool {
    let mut lanes: SmallVec<[LaneOffset; MOST_OFFSETS]> = SmallVec::new();
    pieces.iter().all(|piece| {
        if !lanes.contains(&piece.lane) {
            lanes.push(piece.lane);
        }
        lanes.len() <= MOST_OFFSETS
    })
}

/// Whether several lanes or waves hold the same elements.
pub(super) fn holds_copies(layout: &Layout) -> bool {
    let sources = [Source::Lane, Source::Wave];
    sources.iter().any(|&source| layout.of_source(source).any(|mode| mode.dim.is_none() && mode.extent > 1))
}
