//! What is known of an access to global memory while its addresses are made, and what these are.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::passes::facts::LdsBuffer;

/// One instruction's part of an access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InstructionPiece {
    pub(crate) offset: Operand,
    pub(crate) scalar_offset: Operand,
    pub(crate) immediate: u32,
}

/// Facts of an access while its plan is made.
pub(super) struct AccessFacts<'a> {
    pub(super) layout: &'a Layout,
    pub(super) memory: Entity,
    pub(super) dims: Dims,
    pub(super) element_bytes: u32,
    /// First dimension that lanes or loops spread over; the descriptor ends it.
    pub(super) row: Option<Dim>,
    /// Dimensions masked by selecting an outside offset.
    pub(super) selected: SmallVec<[Dim; 4]>,
    /// True if an enclosing loop advances the scalar offset.
    pub(super) advances: bool,
    /// True if nothing else may be added to the scalar offset.
    pub(super) vector_only: bool,
    /// The LDS buffer that it fills without registers.
    pub(super) fills: Option<&'a LdsBuffer>,
    /// True if it stores: of lanes and waves that hold the same elements only the first may.
    pub(super) stores: bool,
}

/// Where the workgroup's tile lies in a memory and in all memories like it.
#[derive(Copy, Clone, Debug)]
pub(super) struct TilePlace {
    pub(super) memory: Entity,
    /// Bytes from the start of the memory.
    pub(super) offset: [Scalar; 2],
    /// Bytes to the end of the slice.
    pub(super) records: Scalar,
}

/// What the offsets of an access depend on beside its layout and its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OffsetFacts {
    pub(super) selected: SmallVec<[Dim; 4]>,
    pub(super) advances: bool,
    pub(super) vector_only: bool,
    pub(super) granule: u32,
    /// Lanes that hold copies of elements are left out.
    pub(super) first_copy_only: bool,
    /// The loops around it: axis, whether it runs at most once, first tile.
    pub(super) loops: SmallVec<[(Dim, bool, Scalar); 2]>,
}

/// Coordinates that lane and wave give, along each dimension; `None` where they are zero.
pub(crate) type Coordinates = SmallVec<[(Dim, Option<Operand>); 4]>;
