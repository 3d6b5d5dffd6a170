//! Addresses of accesses: plans of logical accesses, made once where their region begins, from which each
//! expanded access takes its pieces.
//!
//! Everything that does not change in a loop (descriptors, offsets, masks, addresses) is prepared in front of
//! it; inside, a global access only needs its scalar offset advanced, and an LDS access nothing.
//!
//! - `access`: the plan that every access has, and the pieces that it is made of
//! - `planning`: who makes it, where it is made, and what is taken of it
//! - `descriptors`: buffer descriptors of memories
//! - `global`: offsets and masks of accesses to the workgroup's own tile of global memory
//! - `alike`: offsets that accesses of memories of one shape share
//! - `lds`: addresses in the workgroup's own tile of LDS
//! - `load_to_lds`: where loads from global memory straight into LDS put their data
//! - `mapped`: accesses whose coordinates are expressions, of global memory and LDS; `mapped_places`: these
//!   expressions; `mapped_widths`: how many elements an instruction takes; `mapped_splits`: addresses taken
//!   apart

pub(super) mod access;
mod alike;
mod descriptors;
pub(super) mod global;
mod lds;
mod load_to_lds;
mod mapped;
mod mapped_places;
mod mapped_splits;
mod mapped_widths;
mod planning;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use self::access::{AccessPlan, TilePlace};
use self::descriptors::DescriptorBase;
use super::emit::emitter::Scalar;
use super::values::{ValueLayer, ValueScope};
use crate::codegen::isa::Operand;
use crate::ir::node_map::NodeMap;

/// Addresses that are valid at a point of the code.
pub(crate) struct AddressLayer<'a> {
    values: ValueLayer<'a>,
    /// Pointers of memories in SGPR pairs.
    pub(crate) pointers: NodeMap<Operand>,
    /// Plans of logical accesses.
    plans: NodeMap<AccessPlan>,
    /// LDS addresses of lanes or waves with something added, the place of a copy or what is out of reach:
    /// address, what is added, sum.
    moved_addresses: SmallVec<[(Operand, Scalar, Operand); 8]>,
    /// Buffer descriptors of memories, by their bases.
    descriptors: SmallVec<[(Entity, DescriptorBase, Operand); 8]>,
    /// Places of the workgroup's tile in memories.
    tile_places: SmallVec<[TilePlace; 4]>,
    /// A VGPR that holds an offset outside of all memories, if there is one at this point.
    outside: SmallVec<[Operand; 1]>,
}

layer!(AddressLayer, values: ValueLayer);

/// How much of each list of prepared addresses is valid at a point of the code.
pub(crate) struct AddressScope {
    values: ValueScope,
    plans: usize,
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
            moved_addresses: SmallVec::new(),
            descriptors: SmallVec::new(),
            tile_places: SmallVec::new(),
            outside: SmallVec::new(),
        }
    }

    /// The lengths of the lists at this point.
    pub(crate) fn scope(&self) -> AddressScope {
        AddressScope {
            values: self.values.scope(),
            plans: self.plans.len(),
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
        self.moved_addresses.truncate(scope.moved_addresses);
        self.descriptors.truncate(scope.descriptors);
        self.tile_places.truncate(scope.tile_places);
        self.outside.truncate(scope.outside);
    }
}
