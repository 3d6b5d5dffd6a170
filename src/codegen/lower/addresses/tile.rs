//! Plans of accesses of the workgroup's own tile, whose mapping is the identity: in global memory, in LDS,
//! and from one to the other.
//!
//! Lanes have one offset for all pieces, in a VGPR that is prepared in front of a loop. A piece adds bytes to
//! it, in the immediate and beyond that in the scalar offset, and moves it where it must: in global memory it
//! selects an offset outside for lanes that are outside along a dimension that the descriptor does not end;
//! in a swizzled buffer, units that it adds are XORed instead (and rows, where they are so short that units
//! of several are exchanged).
//!
//! The scalar offset, which may or may not take part in the hardware's range check (the CDNA3 ISA guide
//! includes it, LLVM's intrinsics document it as excluded), only ever advances inside the tensor; everything
//! that can leave it is in the vector offset.

use std::ops::Range;

use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{
    AccessBase, AccessFacts, AccessPlan, AccessWidth, LdsFill, OffsetFacts, PlannedPiece, instruction_places,
};
use super::alike::{holds_copies, may_be_shared};
use super::descriptors::DescriptorBase;
use super::swizzles::{Coordinates, row_of};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::passes::facts::{Bounds, LdsBuffer, SplitAccess};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;
use crate::passes::lds::arrange_lds::access_width;

/// An access of a tile while its plan is made.
struct TileAccess<'a> {
    facts: AccessFacts<'a>,
    offsets: OffsetFacts,
}

/// The addend of a piece to the offset of the lane: a number of bytes, and multiples of strides known at
/// launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Extra {
    bytes: u32,
    dynamic: SmallVec<[(Dim, u32); 4]>,
}

/// Moves of the offset of a lane for a piece: of global memory the addends of the coordinates that masks
/// compare, and of the rows of a buffer that is filled; of LDS the units that are exchanged.
type LaneMoves = SmallVec<[u32; 4]>;

/// A piece of an access, by what tells it from others.
#[derive(Default)]
struct TilePiece {
    moves: LaneMoves,
    extra: Extra,
}

/// Registers that the pieces of an access have in common.
#[derive(Default)]
struct TileOffsets {
    /// Those of the lanes' first elements, with the coordinates that masks compare, by the rows of the filled
    /// buffer in front of them.
    lanes: SmallVec<[(u32, Operand, Coordinates); 1]>,
    /// The same after moves.
    moved: SmallVec<[(LaneMoves, Operand); 8]>,
    /// Addends of pieces, each with its bytes.
    extras: SmallVec<[(Extra, Scalar); 16]>,
}

impl TileAccess<'_> {
    /// Takes a piece apart whose first element is at a place.
    fn take_apart(&self, strides: &[(Dim, Option<u32>)], place: Place, piece: &mut TilePiece) {
        let TilePiece { moves, extra } = piece;
        moves.clear();
        extra.bytes = 0;
        extra.dynamic.clear();
        let mut coordinates: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
        for &(dim, stride) in strides {
            let coordinate = self.facts.layout.coordinate(dim, place);
            coordinates.push((dim, coordinate));
            match stride {
                Some(stride) => extra.bytes += coordinate * stride,
                None if coordinate != 0 => extra.dynamic.push((dim, coordinate)),
                None => {}
            }
        }
        let at = |dim| coordinates.iter().find(|known| known.0 == dim).map_or(0, |known| known.1);
        moves.extend(self.offsets.selected.iter().map(|&dim| at(dim)));
        let buffer = self.facts.buffer.or(self.facts.fills);
        moves.push(buffer.and_then(|buffer| Some((buffer, buffer.swizzle?))).map_or(
            0,
            |(buffer, swizzle)| {
                let row = row_of(buffer, at);
                if self.facts.fills.is_some() {
                    return row % swizzle.period();
                }
                let exchanged = (extra.bytes % swizzle.span().max(buffer.pitch)) & !(swizzle.unit - 1);
                extra.bytes -= exchanged;
                (swizzle.phase(row) * swizzle.unit) ^ exchanged
            },
        ));
        extra.bytes += self.facts.buffer.map_or(0, |buffer| buffer.offset);
    }
}

impl<'a> AddressLayer<'a> {
    /// The plan of a logical access of its own tile at this point of the code.
    pub(super) fn plan_tile(&mut self, facts: AccessFacts<'a>) -> Result<AccessPlan, Diagnostic> {
        let (base, offsets) = match facts.buffer {
            Some(buffer) => {
                let granule = access_width(buffer, &facts.layout) / buffer.element_bytes;
                (AccessBase::Lds, OffsetFacts { vector_only: true, granule, ..OffsetFacts::default() })
            }
            None => {
                let descriptor = self.descriptor(facts.memory, DescriptorBase::Tile)?;
                (AccessBase::Descriptor(descriptor), self.offset_facts(&facts)?)
            }
        };
        let tile = TileAccess { facts, offsets };
        let pieces = match self.known_pieces(&tile.facts, &tile.offsets)? {
            Some(known) => known,
            None => self.tile_pieces(&tile)?,
        };
        let TileAccess { facts, offsets } = tile;
        let fill = facts.fills.map(|buffer| self.fill(&facts.layout, buffer));
        let is_shared =
            base != AccessBase::Lds && fill.is_none() && may_be_shared(&self.pieces[pieces.clone()]);
        Ok(AccessPlan {
            base,
            advances: offsets.advances,
            is_mapped: false,
            width: AccessWidth::of(offsets.granule),
            elements: facts.layout.extent(Source::Register),
            pieces,
            shared: is_shared.then_some((facts.memory, offsets)),
            fill,
        })
    }

    /// The places in a buffer of the replicas of a layout that fills it.
    fn fill(&mut self, layout: &Layout, buffer: &LdsBuffer) -> LdsFill {
        let starts = instruction_places(layout, layout.extent(Source::Register));
        let mut places: SmallVec<[_; 16]> = starts.map(|place| (place, buffer.offset)).collect();
        let mut wave = Scalar::ZERO;
        for &dim in &buffer.dims {
            let stride = buffer.stride(dim);
            places.iter_mut().for_each(|(place, bytes)| *bytes += layout.coordinate(dim, *place) * stride);
            let part = self.wave_part(layout, dim);
            let bytes = self.emitter.mul(part, Scalar::Const(i64::from(stride)));
            wave = self.emitter.add(wave, bytes);
        }
        LdsFill { wave, places: places.into_iter().map(|place| place.1).collect() }
    }

    /// Dependences of an access of global memory, whose reach is checked.
    fn offset_facts(&mut self, facts: &AccessFacts) -> Result<OffsetFacts, Diagnostic> {
        let bounds = self.get::<Bounds>(facts.node)?;
        let row = self.row_dim(&self.get::<ValueType>(facts.memory)?.dims);
        let row_loop = row.map(|row| self.kernel.geometry.loop_dim(row));
        let advances_row = self.loops.iter().any(|l| Some(l.axis) == row_loop && !l.single);
        let mut selected: SmallVec<[Dim; 4]> =
            if advances_row { bounds.leaves.clone() } else { bounds.masks.clone() };
        if let Some(row) = row
            && self.ends_memory(facts, row)?
        {
            selected.retain(|dim| *dim != row);
        }
        let advances = self.advances(facts.memory)?;
        let layout = &*facts.layout;
        let most = layout.extent(Source::Register).min(MAX_ACCESS_BYTES / facts.element_bytes);
        let stores = self.get::<Op>(facts.node)?.is_write() && facts.fills.is_none();
        if !bounds.masks.is_empty() {
            self.emitter.out.reasons.masked.push((facts.node, facts.memory));
        }
        self.check_reach_of_tile(facts)?;
        self.note_split(facts, bounds);
        Ok(OffsetFacts {
            selected,
            advances,
            vector_only: advances || row.is_some_and(|r| bounds.leaves.contains(&r)),
            granule: bounds.granule.min(most).max(1),
            first_copy_only: stores && holds_copies(layout),
            loops: self.loops.iter().map(|open| (open.axis, open.single, open.start)).collect(),
        })
    }

    /// Notes that strides keep an access from being as wide as its elements would allow.
    fn note_split(&mut self, facts: &AccessFacts, bounds: &Bounds) {
        if self.kernel.world.get::<Strides>(facts.memory).is_none() {
            return;
        }
        let run = facts.strides.last().map_or(1, |last| facts.layout.contiguous_run(last.0));
        let possible = run.clamp(1, MAX_ACCESS_BYTES / facts.element_bytes);
        if let Some((_, why)) = bounds.narrowed.filter(|_| bounds.granule < possible) {
            let split = SplitAccess { elements: bounds.granule, possible, why };
            self.emitter.out.reasons.splits.push((facts.node, split));
        }
    }

    /// True if the elements beyond the end of `row` certainly lie beyond the memory, where the descriptor's
    /// size masks them. A stride along which there is, or at launch may be, one element says nothing of that.
    fn ends_memory(&mut self, facts: &AccessFacts, row: Dim) -> Result<bool, Diagnostic> {
        let size = self.kernel.geometry.dim(row).size;
        if self.kernel.world.get::<Strides>(facts.memory).is_none() || self.arena.range(size).at_least(2) {
            return Ok(true);
        }
        let mut inside = facts.strides.iter().skip_while(|known| known.0 != row);
        let mut left = inside.next().map_or(Expr::ZERO, |known| known.1);
        let mut reach = self.arena.int(i64::from(facts.element_bytes));
        for &(dim, stride) in inside {
            left = self.arena.sub(left, reach).map_err(|e| self.too_large(&e))?;
            let size = self.kernel.geometry.dim(dim).size;
            let last = self.arena.sub(size, Expr::ONE).map_err(|e| self.too_large(&e))?;
            reach = self.arena.mul(last, stride).map_err(|e| self.too_large(&e))?;
        }
        left = self.arena.sub(left, reach).map_err(|e| self.too_large(&e))?;
        Ok(self.arena.range(left).at_least(0))
    }

    /// The pieces of an access.
    fn tile_pieces(&mut self, tile: &TileAccess) -> Result<Range<usize>, Diagnostic> {
        let first = self.pieces.len();
        // A register that is kept longer is one less in a loop that comes next.
        let outside = std::mem::take(&mut self.outside);
        let strides = tile.facts.strides.iter().map(|&(dim, stride)| {
            (dim, self.arena.as_integer(stride).and_then(|stride| u32::try_from(stride).ok()))
        });
        let strides: SmallVec<[_; 4]> = strides.collect();
        let (mut offsets, mut piece) = (TileOffsets::default(), TilePiece::default());
        for place in instruction_places(&tile.facts.layout, tile.offsets.granule) {
            tile.take_apart(&strides, place, &mut piece);
            let mut lane = self.moved_lanes(tile, &mut offsets, &piece.moves)?;
            let mut scalar = Operand::ZERO;
            let [immediate, rest] = tile.facts.limits.immediate_and_rest(piece.extra.bytes);
            piece.extra.bytes = rest;
            if rest != 0 || !piece.extra.dynamic.is_empty() {
                match (self.extra_bytes(tile, &mut offsets, &piece.extra)?, tile.offsets.vector_only) {
                    (bytes, true) => lane = self.moved_address(lane, bytes),
                    (bytes, false) => scalar = self.emitter.in_sgpr(bytes),
                }
            }
            self.pieces.push(PlannedPiece::in_registers(lane, scalar, immediate));
        }
        self.outside = outside;
        Ok(first..self.pieces.len())
    }

    /// The lanes' offset after moves.
    fn moved_lanes(
        &mut self,
        tile: &TileAccess,
        offsets: &mut TileOffsets,
        moves: &[u32],
    ) -> Result<Operand, Diagnostic> {
        if let Some(known) = offsets.moved.iter().find(|moved| moved.0[..] == *moves) {
            return Ok(known.1);
        }
        let buffer = tile.facts.buffer;
        let last = moves.last().copied().unwrap_or(0);
        let rows = if buffer.is_some() { 0 } else { last };
        let known = match offsets.lanes.iter().position(|lane| lane.0 == rows) {
            Some(known) => known,
            None => {
                let (offset, coordinates) = match buffer {
                    Some(buffer) => (self.lane_address(&tile.facts.layout, buffer), Coordinates::new()),
                    None => self.lane_offset(tile, rows)?,
                };
                offsets.lanes.push((rows, offset, coordinates));
                offsets.lanes.len() - 1
            }
        };
        let (_, offset, coordinates) = &offsets.lanes[known];
        let moved = match (buffer, last) {
            (None, _) => self.select_inside(tile, coordinates, moves, *offset)?,
            (Some(_), 0) => *offset,
            (Some(_), units) => {
                let moved = self.emitter.vgpr(1);
                let units = Scalar::Const(i64::from(units));
                self.emitter.with(Opcode::VXorB32, moved, &[units, Scalar::Reg(*offset)]);
                moved
            }
        };
        offsets.moved.push((LaneMoves::from_slice(moves), moved));
        Ok(moved)
    }

    /// The bytes of an extra, in an SGPR unless they go to vector offsets.
    fn extra_bytes(
        &mut self,
        tile: &TileAccess,
        offsets: &mut TileOffsets,
        extra: &Extra,
    ) -> Result<Scalar, Diagnostic> {
        if let Some(known) = offsets.extras.iter().find(|known| known.0 == *extra) {
            return Ok(known.1);
        }
        let mut sum = Scalar::Const(i64::from(extra.bytes));
        for &(dim, c) in &extra.dynamic {
            let stride = self.stride_along(tile, dim)?;
            let part = self.emitter.mul(stride, Scalar::Const(i64::from(c)));
            sum = self.emitter.add(sum, part);
        }
        if !tile.offsets.vector_only {
            sum = Scalar::Reg(self.emitter.in_sgpr(sum));
        }
        offsets.extras.push((extra.clone(), sum));
        Ok(sum)
    }

    /// Bytes from one coordinate to the next along a dimension.
    fn stride_along(&mut self, tile: &TileAccess, dim: Dim) -> Result<Scalar, Diagnostic> {
        let known = tile.facts.strides.iter().find(|known| known.0 == dim);
        self.scalar(known.map_or(Expr::ZERO, |known| known.1))
    }

    /// Vector offset of the lane's first element, and the coordinates that masks compare. For an access that
    /// fills an LDS buffer, `rows` says how many rows of that buffer after the first it starts.
    fn lane_offset(&mut self, tile: &TileAccess, rows: u32) -> Result<(Operand, Coordinates), Diagnostic> {
        let layout = &*tile.facts.layout;
        let dims: Dims = tile.facts.strides.iter().map(|known| known.0).collect();
        let mut offset = None;
        let mut coordinates: Coordinates =
            dims.iter().map(|&dim| (dim, self.vector_coordinate(layout, dim))).collect();
        if let Some(buffer) = tile.facts.fills {
            self.swizzle(&mut coordinates, buffer, rows);
        }
        for &(dim, coordinate) in &coordinates {
            if let Some(coordinate) = coordinate {
                let stride = self.stride_along(tile, dim)?;
                offset = Some(self.add_scaled(offset, coordinate, stride));
            }
        }
        // A loop that runs at most once adds its start here, where the range check sees it.
        for at in 0..self.loops.len() {
            let open = &self.loops[at];
            let walked = self.kernel.geometry.walked(&dims, open.axis).filter(|_| open.single);
            let start = open.start;
            if let Some(dim) = walked.filter(|_| start != Scalar::ZERO) {
                let extent = i64::from(self.kernel.geometry.dim(dim).tiling.unwrap_or(1));
                let first = self.emitter.mul(start, Scalar::Const(extent));
                let stride = self.stride_along(tile, dim)?;
                let bytes = self.emitter.mul(first, stride);
                offset = Some(self.add_uniform(offset, bytes));
            }
        }
        let mut offset = self.add_uniform(offset, Scalar::ZERO);
        if tile.offsets.first_copy_only
            && let Some(copy) = self.copy_digit(layout)
        {
            let first = self.below(Some(copy), Scalar::Const(1));
            offset = self.or_outside(offset, Some(first));
        }
        Ok((offset, coordinates))
    }

    /// The vector offset where all selected coordinates, moved by constants, are inside the tensor, and an
    /// offset outside elsewhere.
    fn select_inside(
        &mut self,
        tile: &TileAccess,
        coordinates: &[(Dim, Option<Operand>)],
        moves: &[u32],
        mut offset: Operand,
    ) -> Result<Operand, Diagnostic> {
        for (&dim, &constant) in tile.offsets.selected.iter().zip(moves) {
            let geometry = self.kernel.geometry.dim(dim);
            let (size, workgroup, tiling) = (geometry.size, geometry.workgroup, geometry.tiling);
            let mut limit = self.scalar(size)?;
            if let Some((axis, tile)) = workgroup {
                let id = Scalar::Reg(self.workgroup[axis as usize]);
                let first = self.emitter.mul(id, Scalar::Const(i64::from(tile)));
                limit = self.emitter.sub(limit, first);
            }
            let axis = self.kernel.geometry.loop_dim(dim);
            let open = self.loops.iter().rev().find(|open| open.axis == axis);
            if let Some((is_single, start)) = open.map(|open| (open.single, open.start)) {
                if !is_single {
                    return Err(Diagnostic::bug("a mask changes inside a loop").at(self.at(tile.facts.node)));
                }
                let first = self.emitter.mul(start, Scalar::Const(i64::from(tiling.unwrap_or(1))));
                limit = self.emitter.sub(limit, first);
            }
            let limit = self.emitter.sub(limit, Scalar::Const(i64::from(constant)));
            let coordinate = coordinates.iter().find(|c| c.0 == dim).and_then(|c| c.1);
            let mask = self.below(coordinate, limit);
            offset = self.or_outside(offset, Some(mask));
        }
        Ok(offset)
    }
}
