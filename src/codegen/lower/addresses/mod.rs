//! Addresses of accesses: plans of logical accesses, made once where their region begins, from which each
//! expanded access takes its pieces.
//!
//! Everything that does not change in a loop (descriptors, offsets, masks, addresses) is prepared in front of
//! it; inside, a global access only needs its scalar offset advanced, and an LDS access nothing.
//!
//! - `planning`: which plan an access has, where it is made, and what is taken of it
//! - `access`: facts of an access to global memory, and the pieces that it is made of
//! - `descriptors`: buffer descriptors of memories
//! - `global`: offsets and masks of accesses to global memory
//! - `alike`: offsets that accesses of memories of one shape share
//! - `mapped`, `mapped_places`, `mapped_values`, `mapped_widths`: accesses whose coordinates are expressions
//! - `lds`: addresses of LDS accesses
//! - `lds_mapped`: those at coordinates
//! - `load_to_lds`: where loads from global memory straight into LDS put their data

pub(super) mod access;
mod alike;
mod descriptors;
pub(super) mod global;
mod lds;
pub(super) mod lds_mapped;
mod load_to_lds;
mod mapped;
mod mapped_places;
mod mapped_values;
mod mapped_widths;
mod planning;

use smallvec::SmallVec;

use self::access::TilePlace;
use self::global::GlobalPlan;
use self::lds::LdsPlan;
use self::lds_mapped::MappedLdsPlan;
use self::load_to_lds::ToLdsPlan;
use self::mapped::MappedPlan;
use self::mapped_values::{MappedScope, MappedState};
use super::emit::emitter::Scalar;
use super::values::{ValueLayer, ValueScope};
use crate::codegen::isa::Operand;
use crate::ir::node_map::NodeMap;

/// Addresses that are valid at a point of the code.
pub(crate) struct AddressLayer<'a> {
    values: ValueLayer<'a>,
    /// Pointers of memories in SGPR pairs.
    pub(crate) pointers: NodeMap<Operand>,
    /// Plans of logical accesses, of each kind.
    global_plans: NodeMap<GlobalPlan>,
    mapped_plans: NodeMap<MappedPlan>,
    lds_plans: NodeMap<LdsPlan>,
    mapped_lds_plans: NodeMap<MappedLdsPlan>,
    pub(super) to_lds_plans: NodeMap<ToLdsPlan>,
    /// LDS addresses of lanes or waves with something added, the place of a copy or what is out of reach:
    /// address, what is added, sum.
    moved_addresses: SmallVec<[(Operand, Scalar, Operand); 8]>,
    /// Buffer descriptors.
    descriptors: NodeMap<Operand>,
    /// Places of the workgroup's tile in memories.
    tile_places: SmallVec<[TilePlace; 4]>,
    /// Values of expressions in mapped accesses.
    mapped: MappedState,
}

layer!(AddressLayer, values: ValueLayer);

/// How much of each list of prepared addresses is valid at a point of the code.
pub(crate) struct AddressScope {
    values: ValueScope,
    global_plans: usize,
    mapped_plans: usize,
    lds_plans: usize,
    mapped_lds_plans: usize,
    to_lds_plans: usize,
    moved_addresses: usize,
    descriptors: usize,
    tile_places: usize,
    mapped: MappedScope,
}

impl<'a> AddressLayer<'a> {
    /// None is known yet.
    #[inline]
    pub(super) fn new(values: ValueLayer<'a>) -> AddressLayer<'a> {
        AddressLayer {
            values,
            pointers: NodeMap::default(),
            global_plans: NodeMap::default(),
            mapped_plans: NodeMap::default(),
            lds_plans: NodeMap::default(),
            mapped_lds_plans: NodeMap::default(),
            to_lds_plans: NodeMap::default(),
            moved_addresses: SmallVec::new(),
            descriptors: NodeMap::default(),
            tile_places: SmallVec::new(),
            mapped: MappedState::default(),
        }
    }

    /// The lengths of the lists at this point.
    pub(crate) fn scope(&self) -> AddressScope {
        AddressScope {
            values: self.values.scope(),
            global_plans: self.global_plans.len(),
            mapped_plans: self.mapped_plans.len(),
            lds_plans: self.lds_plans.len(),
            mapped_lds_plans: self.mapped_lds_plans.len(),
            to_lds_plans: self.to_lds_plans.len(),
            moved_addresses: self.moved_addresses.len(),
            descriptors: self.descriptors.len(),
            tile_places: self.tile_places.len(),
            mapped: self.mapped.scope(),
        }
    }

    /// Forgets what has been prepared since then.
    pub(crate) fn leave(&mut self, scope: &AddressScope) {
        self.values.leave(&scope.values);
        self.global_plans.truncate(scope.global_plans);
        self.mapped_plans.truncate(scope.mapped_plans);
        self.lds_plans.truncate(scope.lds_plans);
        self.mapped_lds_plans.truncate(scope.mapped_lds_plans);
        self.to_lds_plans.truncate(scope.to_lds_plans);
        self.moved_addresses.truncate(scope.moved_addresses);
        self.descriptors.truncate(scope.descriptors);
        self.tile_places.truncate(scope.tile_places);
        self.mapped.leave(scope.mapped);
    }
}
