//! What is known of an access while its addresses are made, the plan of it, and what an expanded access takes
//! of that. Accesses of global memory, of LDS and between them have one kind of plan, with coordinates that
//! are expressions or without.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::ir::types::AddressSpace;
use crate::passes::facts::LdsBuffer;

/// The pieces of an access, in the order of replicas and registers.
pub(crate) type InstructionPieces = SmallVec<[InstructionPiece; 16]>;

/// One instruction's part of an access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InstructionPiece {
    /// The part that differs from lane to lane: an offset from the descriptor's base, or an address in LDS.
    pub(crate) offset: Operand,
    /// The part that is the same for all of them; zero in LDS.
    pub(crate) scalar_offset: Operand,
    pub(crate) immediate: u32,
    /// The lanes that take part, if not all of them certainly do. In global memory the others have an offset
    /// outside.
    pub(crate) mask: Option<Operand>,
}

/// How the pieces of one logical access are addressed.
#[derive(Clone, Debug)]
pub(super) struct AccessPlan {
    /// The buffer descriptor that offsets are counted from; none in LDS.
    pub(super) descriptor: Option<Operand>,
    /// True if the loops around bring the scalar offset to the iteration.
    pub(super) advances: bool,
    /// Consecutive elements per instruction.
    pub(super) granule: u32,
    /// Elements that a lane has of each replica.
    pub(super) elements: u32,
    /// So many of them side by side are one and the same element of the memory.
    pub(super) repeats: u32,
    /// One per replica and piece; the pieces of a replica are adjacent.
    pub(super) pieces: PlannedPieces,
    /// The memory, and what the offsets depend on, if another access may take them.
    pub(super) shared: Option<(Entity, OffsetFacts)>,
    /// The places in LDS of the data, of a load that brings them there.
    pub(super) fill: Option<LdsFill>,
}

impl AccessPlan {
    /// A plan of an access of the elements of a layout that no loop advances.
    pub(super) fn new(
        descriptor: Option<Operand>,
        layout: &Layout,
        granule: u32,
        pieces: PlannedPieces,
    ) -> AccessPlan {
        let elements = layout.extent(Source::Register);
        AccessPlan {
            descriptor,
            advances: false,
            granule,
            elements,
            repeats: 1,
            pieces,
            shared: None,
            fill: None,
        }
    }
}

/// The pieces of a plan.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most plans are of tiles, and these allocate nothing")]
pub(super) enum PlannedPieces {
    /// Those of tiles: all but what the iteration adds is in registers.
    Tile(InstructionPieces),
    /// Those at coordinates that are expressions.
    Mapped(Vec<MappedPiece>),
}

/// ElementConditions of an element: `0 <= a < b` has to hold of each pair.
pub(super) type ElementConditions = SmallVec<[(Expr, Expr); 4]>;

/// One instruction's part of an access.
#[derive(Clone, Debug)]
pub(super) struct MappedPiece {
    /// The part of the address that differs from lane to lane.
    pub(super) vector: Expr,
    /// The part that depends on the iteration alone.
    pub(super) scalar: Expr,
    pub(super) immediate: u32,
    pub(super) conditions: ElementConditions,
    /// The part that is prepared in front of a loop.
    pub(super) kept: KeptOffset,
}

/// The part of an offset that a loop finds in a register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum KeptOffset {
    Nothing,
    /// The vector part, or an offset outside where a condition that does not change fails.
    Offset(Operand),
    /// What of the vector part does not change, or an offset outside where such a condition fails; what
    /// changes is added.
    Base(Operand),
    /// Zero, or an offset outside where such a condition fails.
    Poison(Operand),
}

impl MappedPiece {
    /// A piece that nothing is prepared of, without conditions.
    pub(super) fn new(vector: Expr, scalar: Expr, immediate: u32) -> MappedPiece {
        MappedPiece { vector, scalar, immediate, conditions: SmallVec::new(), kept: KeptOffset::Nothing }
    }
}

/// The places in LDS of the data of one logical load.
#[derive(Clone, Debug)]
pub(super) struct LdsFill {
    /// The part that depends on the wave, in bytes.
    pub(super) wave: Scalar,
    /// The part of the buffer and each replica, in bytes.
    pub(super) places: SmallVec<[u32; 16]>,
}

/// An expanded access with its addresses.
pub(crate) struct AddressedAccess {
    /// The buffer descriptor; none in LDS.
    pub(crate) descriptor: Option<Operand>,
    /// Consecutive elements per instruction.
    pub(crate) granule: u32,
    /// So many of them side by side are one and the same element of the memory.
    pub(crate) repeats: u32,
    pub(crate) pieces: InstructionPieces,
}

impl AddressedAccess {
    /// The space of the memory.
    pub(crate) fn space(&self) -> AddressSpace {
        space_of(self.descriptor)
    }
}

/// The space of a memory, by its descriptor.
pub(super) fn space_of(descriptor: Option<Operand>) -> AddressSpace {
    if descriptor.is_some() { AddressSpace::Global } else { AddressSpace::Shared }
}

/// The places of the first elements of instructions of so many, in the order of pieces.
pub(super) fn instruction_places(layout: &Layout, granule: u32) -> impl Iterator<Item = layout::Place> {
    let registers = layout.extent(Source::Register);
    let of_replica = move |replica| {
        let first = (0..registers).step_by(granule as usize);
        first.map(move |register| layout::Place { replica, register, ..layout::Place::default() })
    };
    (0..layout.extent(Source::Replica)).flat_map(of_replica)
}

/// Facts of an access to global memory while its plan is made.
pub(super) struct AccessFacts<'a> {
    pub(super) layout: &'a Layout,
    pub(super) memory: Entity,
    pub(super) dims: Dims,
    pub(super) element_bytes: u32,
    /// First dimension that lanes or loops spread over; the descriptor ends it.
    pub(super) row: Option<Dim>,
    /// The LDS buffer that it fills without registers.
    pub(super) fills: Option<&'a LdsBuffer>,
    pub(super) offsets: OffsetFacts,
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
    /// Dimensions masked by selecting an outside offset.
    pub(super) selected: SmallVec<[Dim; 4]>,
    /// True if an enclosing loop advances the scalar offset.
    pub(super) advances: bool,
    /// True if nothing else may be added to the scalar offset.
    pub(super) vector_only: bool,
    /// Consecutive elements per instruction.
    pub(super) granule: u32,
    /// Of lanes and waves that hold the same elements only the first takes part, as in stores.
    pub(super) first_copy_only: bool,
    /// The loops around it: axis, whether it runs at most once, first tile.
    pub(super) loops: SmallVec<[(Dim, bool, Scalar); 2]>,
}

/// Coordinates that lane and wave give, along each dimension; `None` where they are zero.
pub(crate) type Coordinates = SmallVec<[(Dim, Option<Operand>); 4]>;

impl AddressLayer<'_> {
    /// The plan of a logical access.
    pub(super) fn plan_of(&self, logical: Entity) -> Result<&AccessPlan, Diagnostic> {
        self.plans.get(logical).ok_or_else(|| Diagnostic::bug("an access without a plan"))
    }
}
