//! Addresses of accesses: plans of logical accesses, made once where their region begins, from which each
//! expanded access takes its pieces.
//!
//! One plan is a base, a width and a piece for each instruction: `base + lane offset + scalar offset +
//! immediate`, for the lanes in which conditions hold (`AccessPlan`, `PlannedPiece`). `plan` makes it of
//! mapping, memory layout and space, which `AccessFacts` has as the strides in bytes, the layout of the
//! elements and the space's limits.
//! - The mapping says what the address is a sum of: the identity has digits of lane and wave, which are
//!   added up in registers, any other one expressions, of which each part goes where it changes least.
//! - Spaces differ in a table (`SpaceLimits`): immediates of 12 bits in global memory, none in loads from
//!   there into LDS, 16 bits in LDS; dwords as alignment, or 16 bytes. What an immediate cannot hold goes to
//!   the scalar offset where nothing else is there, and else to that of the lanes.
//! - A descriptor bounds accesses of global memory: lanes outside have an offset outside. In LDS they are
//!   switched off. A swizzled buffer exchanges units of the offset of the lanes.
//!
//! Everything that does not change in a loop (descriptors, offsets, masks, addresses) is prepared in front of
//! it; inside, a global access only needs its scalar offset advanced, and an LDS access nothing.
//!
//! - `access`: the plan that every access has, and the pieces that it is made of
//! - `planning`: what a plan is made of, where it is made, and what is taken of it
//! - `descriptors`: buffer descriptors of memories
//! - `tile`: the identity; `alike`: offsets that accesses of memories of one shape share; `swizzles`: lanes
//!   in swizzled buffers
//! - `mapped`: accesses whose coordinates are expressions; `mapped_places`: these expressions;
//!   `mapped_widths`: how many elements an instruction takes; `mapped_splits`: addresses taken apart
//! - `masks`: lanes outside of a memory

pub(super) mod access;
mod alike;
mod descriptors;
mod mapped;
mod mapped_places;
mod mapped_splits;
mod mapped_widths;
pub(super) mod masks;
mod planning;
mod swizzles;
mod tile;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use self::access::{AccessPlan, LatePlace, PlannedPiece};
use self::alike::TilePlace;
use self::descriptors::DescriptorBase;
use super::emit::emitter::Scalar;
use super::values::{ValueLayer, ValueScope};
use crate::codegen::isa::Operand;
use crate::ir::node_map::NodeMap;

/// Pieces that most kernels have no more than.
const PIECES: usize = 128;

/// Addresses that are valid at a point of the code.
pub(crate) struct AddressLayer<'a> {
    values: ValueLayer<'a>,
    /// Pointers of memories in SGPR pairs.
    pub(crate) pointers: NodeMap<Operand>,
    /// Plans of logical accesses.
    plans: NodeMap<AccessPlan>,
    /// The pieces of all of them.
    pieces: Vec<PlannedPiece>,
    /// LDS addresses of lanes or waves with something added, the place of a copy or what is out of reach:
    /// address, what is added, sum.
    moved_addresses: SmallVec<[(Operand, Scalar, Operand); 8]>,
    /// Buffer descriptors of memories, by their bases.
    descriptors: SmallVec<[(Entity, DescriptorBase, Operand); 8]>,
    /// Places of the workgroup's tile in memories.
    tile_places: SmallVec<[TilePlace; 4]>,
    /// A VGPR that holds an offset outside of all memories, if there is one at this point.
    outside: SmallVec<[Operand; 1]>,
    /// The place that was made last of values in coordinates, in this scope.
    last_place: Option<LatePlace>,
}

layer!(AddressLayer, values: ValueLayer);

/// How much of each list of prepared addresses is valid at a point of the code.
pub(crate) struct AddressScope {
    values: ValueScope,
    plans: usize,
    pieces: usize,
    moved_addresses: usize,
    descriptors: usize,
    tile_places: usize,
    outside: usize,
}

impl<'a> AddressLayer<'a> {
    /// None is known yet.
    #[inline]
    pub(super) fn new(values: ValueLayer<'a>) -> AddressLayer<'a> {
        AddressLayer {
            values,
            pointers: NodeMap::default(),
            plans: NodeMap::default(),
            pieces: Vec::with_capacity(PIECES),
            moved_addresses: SmallVec::new(),
            descriptors: SmallVec::new(),
            tile_places: SmallVec::new(),
            outside: SmallVec::new(),
            last_place: None,
        }
    }

    /// The lengths of the lists at this point.
    pub(crate) fn scope(&self) -> AddressScope {
        AddressScope {
            values: self.values.scope(),
            plans: self.plans.len(),
            pieces: self.pieces.len(),
            moved_addresses: self.moved_addresses.len(),
            descriptors: self.descriptors.len(),
            tile_places: self.tile_places.len(),
            outside: self.outside.len(),
        }
    }

    /// Forgets what has been prepared since then.
    pub(crate) fn leave(&mut self, scope: &AddressScope) {
        self.values.leave(&scope.values);
        self.plans.truncate(scope.plans);
        self.pieces.truncate(scope.pieces);
        self.moved_addresses.truncate(scope.moved_addresses);
        self.descriptors.truncate(scope.descriptors);
        self.tile_places.truncate(scope.tile_places);
        self.outside.truncate(scope.outside);
        self.last_place = None;
    }
}
