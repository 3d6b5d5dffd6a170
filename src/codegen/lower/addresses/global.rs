//! Offsets and masks of accesses to global memory.
//!
//! Every access goes through a raw buffer descriptor (CDNA3 ISA guide, "Memory buffer instructions"), whose
//! size masks along one dimension. Other dimensions select an offset that is always outside. The scalar
//! offset, which may or may not take part in the hardware's range check (the ISA guide includes it, LLVM's
//! intrinsics document it as excluded), only ever advances inside the tensor; everything that can leave it is
//! in the vector offset.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{
    AccessFacts, AccessPlan, Coordinates, InstructionPiece, InstructionPieces, OffsetFacts, PlannedPieces,
    instruction_places,
};
use super::alike::{holds_copies, may_be_shared};
use super::lds::swizzled_rows;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Expr;
use crate::ir::layout::{Dim, Source};
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::passes::facts::{Bounds, LdsBuffer, SplitAccess};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;

/// A vector offset beyond every tensor: descriptors never span more than 2 GiB.
pub(crate) const OUTSIDE: u32 = 0x8000_0000;

/// Immediate offsets are 12 bits.
pub(super) const IMMEDIATE_BYTES: u32 = 4096;

/// What a piece adds to the address of the lane: a number of bytes and multiples of strides that are known at
/// launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Extra {
    bytes: u32,
    dynamic: SmallVec<[(Dim, u32); 4]>,
}

/// Registers that the pieces of an access have in common.
#[derive(Default)]
struct SharedOffsets {
    /// Those of the lanes' first elements, with the coordinates that masks compare, by the rows of the filled
    /// buffer in front of them.
    lanes: SmallVec<[(u32, Operand, Coordinates); 1]>,
    /// The same with what is outside masked, by what the piece adds to selected coordinates, and these rows.
    masked: SmallVec<[(SmallVec<[u32; 4]>, Operand); 8]>,
    /// Those with more added, by the number of the masked one.
    moved: SmallVec<[(usize, Extra, Operand); 16]>,
    /// Further bytes, in scalar registers.
    scalars: SmallVec<[(Extra, Operand); 16]>,
    /// [`OUTSIDE`].
    outside: Option<Operand>,
}

impl AddressLayer<'_> {
    /// The plan of a logical access of its own tile at this point of the code; `fills` is the LDS buffer that
    /// it fills without registers, if there is one.
    pub(super) fn plan_global(
        &mut self,
        node: Entity,
        memory: Entity,
        fills: Option<&LdsBuffer>,
    ) -> Result<AccessPlan, Diagnostic> {
        let layout = &self.get::<Placement>(node)?.0;
        let bounds = self.get::<Bounds>(node)?;
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let element_bytes = self.element_bytes(memory)?;
        let row = self.row_dim(&dims);
        let descriptor = self.descriptor(memory)?;
        let row_loop = row.map(|row| self.kernel.geometry.loop_dim(row));
        let advances_row = self.loops.iter().any(|l| Some(l.axis) == row_loop && !l.single);
        let mut selected: SmallVec<[Dim; 4]> =
            if advances_row { bounds.leaves.clone() } else { bounds.masks.clone() };
        if let Some(row) = row
            && self.ends_memory(memory, &dims, row)?
        {
            selected.retain(|dim| *dim != row);
        }
        let advances = self.advances(memory)?;
        let most = layout.extent(Source::Register).min(MAX_ACCESS_BYTES / element_bytes);
        let granule = bounds.granule.min(most).max(1);
        let stores = self.get::<Op>(node)?.is_write() && fills.is_none();
        let offsets = OffsetFacts {
            selected,
            advances,
            vector_only: advances || row.is_some_and(|r| bounds.leaves.contains(&r)),
            granule,
            first_copy_only: stores && holds_copies(layout),
            loops: self.loops.iter().map(|open| (open.axis, open.single, open.start)).collect(),
        };
        let access = AccessFacts { layout, memory, dims, element_bytes, row, fills, offsets };
        if !bounds.masks.is_empty() {
            self.emitter.out.reasons.masked.push((node, memory));
        }
        self.check_reach(node, &access)?;
        self.note_split(node, &access, bounds);
        let pieces = match self.known_pieces(&access)? {
            Some(known) => known,
            None => self.pieces(node, &access)?,
        };
        let shared = may_be_shared(&pieces).then_some((memory, access.offsets));
        let plan = AccessPlan::new(Some(descriptor), layout, granule, PlannedPieces::Tile(pieces));
        Ok(AccessPlan { advances, shared, ..plan })
    }

    /// Notes that strides keep an access from being as wide as its elements would allow.
    fn note_split(&mut self, node: Entity, access: &AccessFacts, bounds: &Bounds) {
        if self.kernel.world.get::<Strides>(access.memory).is_none() {
            return;
        }
        let run = access.dims.last().map_or(1, |&dim| access.layout.contiguous_run(dim));
        let possible = run.clamp(1, MAX_ACCESS_BYTES / access.element_bytes);
        if let Some((_, why)) = bounds.narrowed.filter(|_| bounds.granule < possible) {
            let split = SplitAccess { elements: bounds.granule, possible, why };
            self.emitter.out.reasons.splits.push((node, split));
        }
    }

    /// True if the elements beyond the end of `row` certainly lie beyond the memory, where the descriptor's
    /// size masks them. A stride along which there is, or at launch may be, one element says nothing of that.
    fn ends_memory(&mut self, memory: Entity, dims: &[Dim], row: Dim) -> Result<bool, Diagnostic> {
        let size = self.kernel.geometry.dim(row).size;
        if self.kernel.world.get::<Strides>(memory).is_none() || self.arena.range(size).at_least(2) {
            return Ok(true);
        }
        let stride = self.stride(memory, dims, row)?;
        let mut left = self.arena.sub(stride, Expr::ONE).map_err(|e| self.too_large(&e))?;
        for &dim in dims.iter().skip_while(|&&dim| dim != row).skip(1) {
            let inner = self.stride(memory, dims, dim)?;
            let size = self.kernel.geometry.dim(dim).size;
            let last = self.arena.sub(size, Expr::ONE).map_err(|e| self.too_large(&e))?;
            let reach = self.arena.mul(last, inner).map_err(|e| self.too_large(&e))?;
            left = self.arena.sub(left, reach).map_err(|e| self.too_large(&e))?;
        }
        Ok(self.arena.range(left).at_least(0))
    }

    /// Offsets inside one descriptor must stay below 2^31: checked now, or at launch for dynamic sizes.
    fn check_reach(&mut self, node: Entity, access: &AccessFacts) -> Result<(), Diagnostic> {
        let mut reach = self.arena.int(0);
        for &dim in &access.dims {
            let tile = access.layout.tile_extent(dim);
            let advances = self.loops.iter().any(|l| l.axis == self.kernel.geometry.loop_dim(dim));
            if tile == 1 && !advances {
                // Every lane is at the descriptor's base.
                continue;
            }
            let mut extent = self.arena.int(i64::from(tile));
            if advances {
                let size = self.kernel.geometry.dim(dim).size;
                extent = self.arena.add(extent, size).map_err(|e| self.too_large(&e))?;
            }
            let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
            let part = self.arena.mul(extent, stride).map_err(|e| self.too_large(&e))?;
            reach = self.arena.add(reach, part).map_err(|e| self.too_large(&e))?;
        }
        let beyond = self.beyond_reach(access.memory, reach, 0).map_err(|e| self.too_large(&e))?;
        beyond.map_or(Ok(()), |bytes| {
            let text = format!("a workgroup's tile of this memory spans {bytes} bytes");
            Err(Diagnostic::new(Kind::Limit, text)
                .at(self.at(node))
                .help("tiles must lie within 2 GiB: use smaller tiles, or another order of dimensions"))
        })
    }

    /// Vector offset of the lane's first element, and the coordinates that masks compare. For an access that
    /// fills an LDS buffer, `rows` says how many rows of that buffer after the first it starts.
    fn lane_offset(&mut self, access: &AccessFacts, rows: u32) -> Result<(Operand, Coordinates), Diagnostic> {
        let mut offset = None;
        let mut coordinates: Coordinates =
            access.dims.iter().map(|&dim| (dim, self.vector_coordinate(access.layout, dim))).collect();
        if let Some(buffer) = access.fills {
            self.swizzle(&mut coordinates, buffer, rows);
        }
        for &(dim, coordinate) in &coordinates {
            if let Some(coordinate) = coordinate {
                let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
                let stride = self.scalar(stride)?;
                offset = Some(self.add_scaled(offset, coordinate, stride));
            }
        }
        // A loop that runs at most once adds its start here, where the range check sees it.
        for at in 0..self.loops.len() {
            let open = self.loops[at].clone();
            let walked = self.kernel.geometry.walked(&access.dims, open.axis).filter(|_| open.single);
            if let Some(dim) = walked.filter(|_| open.start != Scalar::ZERO) {
                let tile = i64::from(self.kernel.geometry.dim(dim).tiling.unwrap_or(1));
                let first = self.emitter.mul(open.start, Scalar::Const(tile));
                let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
                let stride = self.scalar(stride)?;
                let bytes = self.emitter.mul(first, stride);
                offset = Some(self.add_uniform(offset, bytes));
            }
        }
        let mut offset = self.add_uniform(offset, Scalar::ZERO);
        if access.offsets.first_copy_only
            && let Some(copy) = self.copy_digit(access.layout)
        {
            let first = self.below(Some(copy), Scalar::Const(1));
            let outside = self.in_vector(Scalar::Const(i64::from(OUTSIDE)));
            let chosen = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VCndmaskB32, &[chosen, outside, offset, first]);
            offset = chosen;
        }
        Ok((offset, coordinates))
    }

    fn pieces(&mut self, node: Entity, access: &AccessFacts) -> Result<InstructionPieces, Diagnostic> {
        let mut strides: SmallVec<[(Dim, Option<u32>); 4]> = SmallVec::new();
        for &dim in &access.dims {
            let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
            strides.push((dim, self.arena.as_integer(stride).and_then(|s| u32::try_from(s).ok())));
        }
        let mut shared = SharedOffsets::default();
        let mut pieces = InstructionPieces::new();
        for place in instruction_places(access.layout, access.offsets.granule) {
            let at = |dim: Dim| access.layout.coordinate(dim, place);
            let mut key: SmallVec<[u32; 4]> = SmallVec::new();
            access.offsets.selected.iter().for_each(|&dim| key.push(at(dim)));
            key.push(access.fills.map_or(0, |buffer| swizzled_rows(buffer, at)));
            let base = self.masked_offset(node, access, &mut shared, key)?;
            let mut extra = Extra::default();
            for &(dim, stride) in &strides {
                match (at(dim), stride) {
                    (0, _) => {}
                    (c, Some(stride)) => extra.bytes += c * stride,
                    (c, None) => extra.dynamic.push((dim, c)),
                }
            }
            // For a load to LDS it would move the place there as well (CDNA3 ISA guide, "Memory buffer load
            // to LDS").
            let immediate = if access.fills.is_some() { 0 } else { extra.bytes % IMMEDIATE_BYTES };
            extra.bytes -= immediate;
            let offset = shared.masked[base].1;
            let mut piece = InstructionPiece { offset, scalar_offset: Operand::ZERO, immediate, mask: None };
            if extra != Extra::default() {
                match access.offsets.vector_only {
                    true => piece.offset = self.further_offset(access, &mut shared, base, extra)?,
                    false => piece.scalar_offset = self.further_scalar(access, &mut shared, extra)?,
                }
            }
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// The number of the vector offset of the pieces that add so much to selected coordinates, and start so
    /// many rows of the filled buffer after the first, as the last of the numbers says.
    fn masked_offset(
        &mut self,
        node: Entity,
        access: &AccessFacts,
        shared: &mut SharedOffsets,
        key: SmallVec<[u32; 4]>,
    ) -> Result<usize, Diagnostic> {
        if let Some(known) = shared.masked.iter().position(|masked| masked.0 == key) {
            return Ok(known);
        }
        let rows = key.last().copied().unwrap_or(0);
        let lane = match shared.lanes.iter().position(|lane| lane.0 == rows) {
            Some(known) => known,
            None => {
                let (offset, coordinates) = self.lane_offset(access, rows)?;
                shared.lanes.push((rows, offset, coordinates));
                shared.lanes.len() - 1
            }
        };
        let (_, offset, coordinates) = &shared.lanes[lane];
        let inside = self.select_inside(node, access, coordinates, &key, *offset, &mut shared.outside)?;
        shared.masked.push((key, inside));
        Ok(shared.masked.len() - 1)
    }

    /// A vector offset with more added.
    fn further_offset(
        &mut self,
        access: &AccessFacts,
        shared: &mut SharedOffsets,
        base: usize,
        extra: Extra,
    ) -> Result<Operand, Diagnostic> {
        if let Some(known) = shared.moved.iter().find(|moved| moved.0 == base && moved.1 == extra) {
            return Ok(known.2);
        }
        let bytes = self.extra_bytes(access, &extra)?;
        let sum = self.add_uniform(Some(shared.masked[base].1), bytes);
        shared.moved.push((base, extra, sum));
        Ok(sum)
    }

    /// The same as a scalar offset.
    fn further_scalar(
        &mut self,
        access: &AccessFacts,
        shared: &mut SharedOffsets,
        extra: Extra,
    ) -> Result<Operand, Diagnostic> {
        if let Some(known) = shared.scalars.iter().find(|known| known.0 == extra) {
            return Ok(known.1);
        }
        let bytes = self.extra_bytes(access, &extra)?;
        let register = self.emitter.in_sgpr(bytes);
        shared.scalars.push((extra, register));
        Ok(register)
    }

    fn extra_bytes(&mut self, access: &AccessFacts, extra: &Extra) -> Result<Scalar, Diagnostic> {
        let mut sum = Scalar::Const(i64::from(extra.bytes));
        for &(dim, c) in &extra.dynamic {
            let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
            let stride = self.scalar(stride)?;
            let part = self.emitter.mul(stride, Scalar::Const(i64::from(c)));
            sum = self.emitter.add(sum, part);
        }
        Ok(sum)
    }

    /// The vector offset if all selected coordinates are inside the tensor, otherwise [`OUTSIDE`].
    fn select_inside(
        &mut self,
        node: Entity,
        access: &AccessFacts,
        coordinates: &[(Dim, Option<Operand>)],
        constants: &[u32],
        mut offset: Operand,
        outside: &mut Option<Operand>,
    ) -> Result<Operand, Diagnostic> {
        debug_assert!(access.row.is_none_or(|r| !access.offsets.selected.contains(&r)));
        for (&dim, &constant) in access.offsets.selected.iter().zip(constants) {
            let geometry = self.kernel.geometry.dim(dim);
            let (size, workgroup, tiling) = (geometry.size, geometry.workgroup, geometry.tiling);
            let mut limit = self.scalar(size)?;
            if let Some((axis, tile)) = workgroup {
                let id = Scalar::Reg(self.workgroup[axis as usize]);
                let first = self.emitter.mul(id, Scalar::Const(i64::from(tile)));
                limit = self.emitter.sub(limit, first);
            }
            let axis = self.kernel.geometry.loop_dim(dim);
            if let Some(open) = self.loops.iter().rev().find(|l| l.axis == axis).cloned() {
                if !open.single {
                    return Err(Diagnostic::bug("a mask changes inside a loop").at(self.at(node)));
                }
                let tile = Scalar::Const(i64::from(tiling.unwrap_or(1)));
                let first = self.emitter.mul(open.start, tile);
                limit = self.emitter.sub(limit, first);
            }
            let limit = self.emitter.sub(limit, Scalar::Const(i64::from(constant)));
            let coordinate = coordinates.iter().find(|c| c.0 == dim).and_then(|c| c.1);
            let mask = self.below(coordinate, limit);
            let outside = match *outside {
                Some(register) => register,
                None => {
                    let register = self.in_vector(Scalar::Const(i64::from(OUTSIDE)));
                    *outside = Some(register);
                    register
                }
            };
            let chosen = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VCndmaskB32, &[chosen, outside, offset, mask]);
            offset = chosen;
        }
        Ok(offset)
    }
}
