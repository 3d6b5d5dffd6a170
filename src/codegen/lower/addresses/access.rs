//! The plan of an access, which is one for global memory, LDS and loads between them, for the identity and
//! for coordinates that are expressions; what is known of an access while its plan is made; and what an
//! expanded access takes of it.

use std::borrow::Cow;
use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::codegen::machine::RegisterFile;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::types::AddressSpace;
use crate::passes::facts::LdsBuffer;
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;

/// Limits of the instructions of a space. Those of global memory count from a base in a descriptor, have a
/// scalar offset, and do nothing at an offset outside. Those of LDS have an address alone, and lanes that are
/// outside are switched off.
#[derive(Copy, Clone, Debug)]
pub(super) struct SpaceLimits {
    /// Immediates are smaller.
    pub(super) immediates: u32,
    /// The most bytes that the place of an instruction has to be a multiple of.
    pub(super) alignment: u32,
}

impl SpaceLimits {
    /// Immediates of 12 bits (CDNA3 ISA guide, "Memory buffer instructions"). Accesses are aligned to dwords.
    pub(super) const GLOBAL: SpaceLimits = SpaceLimits { immediates: 1 << 12, alignment: 4 };

    /// Of a load straight into LDS: an immediate would move the place there as well (CDNA3 ISA guide, "Memory
    /// buffer load to LDS").
    pub(super) const INTO_LDS: SpaceLimits = SpaceLimits { immediates: 1, ..SpaceLimits::GLOBAL };

    /// Immediates of 16 bits (CDNA3 ISA guide, "LDS instruction fields"). The widest accesses take many turns
    /// if they are aligned to dwords alone.
    pub(super) const LDS: SpaceLimits = SpaceLimits { immediates: 1 << 16, alignment: MAX_ACCESS_BYTES };

    /// So many bytes in two: the part that the immediate takes, and the rest for an offset.
    pub(super) fn immediate_and_rest(self, bytes: u32) -> [u32; 2] {
        let immediate = bytes % self.immediates;
        [immediate, bytes - immediate]
    }
}

/// An access while its plan is made.
pub(super) struct AccessFacts<'a> {
    pub(super) node: Entity,
    /// The memory or LDS buffer that its instructions address.
    pub(super) memory: Entity,
    pub(super) element_bytes: u32,
    /// Bytes from one coordinate to the next along each dimension of that, without a swizzle.
    pub(super) strides: SmallVec<[(Dim, Expr); 4]>,
    /// The elements that instructions access.
    pub(super) layout: Cow<'a, Layout>,
    /// That LDS buffer.
    pub(super) buffer: Option<&'a LdsBuffer>,
    /// The LDS buffer that a load from global memory fills without registers.
    pub(super) fills: Option<&'a LdsBuffer>,
    pub(super) limits: SpaceLimits,
}

/// What offsets are counted from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum AccessBase {
    /// The beginning of LDS.
    Lds,
    /// A buffer descriptor: lanes that are outside have an offset outside.
    Descriptor(Operand),
    /// A pointer in a pair of SGPRs, of memories that a descriptor does not span: offsets of lanes count
    /// units of so many bytes, and lanes that are outside are switched off.
    Pointer { pointer: Operand, unit: u32 },
}

impl AccessBase {
    pub(crate) fn space(self) -> AddressSpace {
        match self {
            AccessBase::Lds => AddressSpace::Shared,
            AccessBase::Descriptor(_) | AccessBase::Pointer { .. } => AddressSpace::Global,
        }
    }

    /// The descriptor, if it is one.
    pub(crate) fn descriptor(self) -> Option<Operand> {
        if let AccessBase::Descriptor(descriptor) = self { Some(descriptor) } else { None }
    }
}

/// How the instructions of one logical access address.
#[derive(Clone, Debug)]
pub(super) struct AccessPlan {
    pub(super) base: AccessBase,
    /// True if the loops around bring the scalar offset to the iteration.
    pub(super) advances: bool,
    /// True if the coordinates are expressions.
    pub(super) is_mapped: bool,
    pub(super) width: AccessWidth,
    /// Elements that a lane has of each replica.
    pub(super) elements: u32,
    /// One piece per replica and instruction, those of a replica side by side: where they are among all.
    pub(super) pieces: Range<usize>,
    /// The memory, and what the offsets depend on, if another access may take them.
    pub(super) shared: Option<(Entity, OffsetFacts)>,
    /// The places in LDS of the data, of a load that brings them there.
    pub(super) fill: Option<LdsFill>,
}

/// The elements that one instruction accesses.
#[derive(Copy, Clone, Debug)]
pub(crate) struct AccessWidth {
    /// Consecutive elements.
    pub(crate) granule: u32,
    /// So many of them side by side are one and the same element of the memory.
    pub(crate) repeats: u32,
}

impl AccessWidth {
    /// So many different elements.
    pub(super) fn of(granule: u32) -> AccessWidth {
        AccessWidth { granule, repeats: 1 }
    }
}

/// One instruction's part of a plan: sum of base, lane offset, scalar offset and immediate, for the lanes in
/// which the conditions hold.
#[derive(Clone, Debug)]
pub(super) struct PlannedPiece {
    pub(super) lane: LaneOffset,
    pub(super) scalar: ScalarOffset,
    pub(super) immediate: u32,
    pub(super) conditions: ElementConditions,
}

/// The part of an address that differs from lane to lane.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LaneOffset {
    /// All of it, or an offset outside where a condition that does not change fails.
    Register(Operand),
    /// The same without what changes in a loop, which is added.
    Onto(Operand, Expr),
    /// Zero, or an offset outside where such a condition fails; joined with the expression.
    Joined(Operand, Expr),
    /// Nothing is prepared.
    Expression(Expr),
}

/// The part of an address that is the same in all lanes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ScalarOffset {
    Register(Operand),
    /// It depends on the iteration.
    Expression(Expr),
}

impl PlannedPiece {
    /// A piece without conditions of which all is in registers.
    pub(super) fn in_registers(lane: Operand, scalar: Operand, immediate: u32) -> PlannedPiece {
        let (lane, scalar) = (LaneOffset::Register(lane), ScalarOffset::Register(scalar));
        PlannedPiece { lane, scalar, immediate, conditions: SmallVec::new() }
    }

    /// A piece without conditions that nothing is prepared of.
    pub(super) fn of_expressions(lane: Expr, scalar: Expr, immediate: u32) -> PlannedPiece {
        let (lane, scalar) = (LaneOffset::Expression(lane), ScalarOffset::Expression(scalar));
        PlannedPiece { lane, scalar, immediate, conditions: SmallVec::new() }
    }
}

/// Conditions of an element: `0 <= a < b` has to hold of each pair.
pub(super) type ElementConditions = SmallVec<[(Expr, Expr); 2]>;

/// The places in LDS of the data of one logical load.
#[derive(Clone, Debug)]
pub(super) struct LdsFill {
    /// The part that depends on the wave, in bytes.
    pub(super) wave: Scalar,
    /// The part of the buffer and each replica, in bytes.
    pub(super) places: SmallVec<[u32; 16]>,
}

/// Dependences of the offsets of an access beside its layout and its memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
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

/// One instruction's addresses at a point of the code.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InstructionPiece {
    /// The part that differs from lane to lane: an offset from the descriptor's base, an address in LDS, or
    /// one of 64 bits.
    pub(crate) offset: Operand,
    /// The part that is the same for all of them; zero without a descriptor.
    pub(crate) scalar_offset: Operand,
    pub(crate) immediate: u32,
    /// The lanes that take part, if not all of them certainly do. With a descriptor the others have an offset
    /// outside.
    pub(crate) mask: Option<Operand>,
}

/// The place of an instruction of an access at coordinates made of values: others of the same values may
/// differ from it in their immediates alone.
#[derive(Clone, Debug)]
pub(super) struct LatePlace {
    /// Number of the planned piece, its base, and what the access knows.
    pub(super) at: usize,
    pub(super) base: AccessBase,
    pub(super) late: LateFacts,
    pub(super) piece: InstructionPiece,
}

/// The pieces of an access, in the order of replicas and registers.
pub(crate) type InstructionPieces = SmallVec<[InstructionPiece; 16]>;

/// An expanded access with its addresses.
pub(crate) struct AddressedAccess {
    pub(crate) base: AccessBase,
    pub(crate) width: AccessWidth,
    pub(crate) pieces: InstructionPieces,
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

impl AddressLayer<'_> {
    /// The plan of a logical access.
    pub(super) fn plan_of(&self, logical: Entity) -> Result<&AccessPlan, Diagnostic> {
        self.plans.get(logical).ok_or_else(|| Diagnostic::bug("an access without a plan"))
    }

    /// `address + place`, computed once, in a register like that of the address.
    pub(crate) fn moved_address(&mut self, address: Operand, place: Scalar) -> Operand {
        if let Some(known) = self.moved_addresses.iter().find(|m| (m.0, m.1) == (address, place)) {
            return known.2;
        }
        let (moved, add) = match self.emitter.file(address) {
            RegisterFile::Sgpr => (self.emitter.sgpr(1), Opcode::SAddU32),
            RegisterFile::Vgpr | RegisterFile::Agpr => (self.emitter.vgpr(1), Opcode::VAddU32),
        };
        self.emitter.with(add, moved, &[place, Scalar::Reg(address)]);
        self.moved_addresses.push((address, place, moved));
        moved
    }
}
