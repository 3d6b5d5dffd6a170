//! Global memory: buffer descriptors, offsets, masks; loads and stores.
//!
//! Every access goes through a raw buffer descriptor (CDNA3 ISA guide, "Memory buffer instructions") whose
//! base is the workgroup's own tile, so offsets stay small for tensors of any size. The descriptor's size
//! ends the tensor (or the batch slice): accesses beyond it along the first dimension that lanes spread over
//! read zero and are not stored. Other dimensions select an offset that is always outside. The scalar offset,
//! which may or may not take part in the hardware's range check (the ISA guide includes it, LLVM's intrinsics
//! document it as excluded), only ever advances inside the tensor; everything that can leave it is in the
//! vector offset.
//!
//! A store of a value of which lanes or waves hold copies is made by the first of them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::access::{AccessFacts, InstructionPiece, OffsetFacts, TilePlace};
use super::alike::may_be_shared;
use super::emitter::Scalar;
use super::lds::swizzled_rows;
use super::scalar::Sign;
use super::{Lowering, ValuePlace};
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Expr;
use crate::ir::layout::{self, Dim, Source};
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::passes::facts::{Bounds, LdsBuffer};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;
use crate::passes::loops::expand::Expansion;

/// Word 3 of a raw buffer descriptor: data format 32, number format uint, no swizzle, no index stride.
pub(super) const DESCRIPTOR_WORD3: u32 = 0x0002_7000;
/// A vector offset beyond every tensor: descriptors never span more than [`MAX_RECORDS`] bytes.
pub(super) const OUTSIDE: u32 = 0x8000_0000;
/// Largest size in a descriptor.
pub(super) const MAX_RECORDS: u32 = 0x7fff_ffff;
/// Immediate offsets are 12 bits.
const IMMEDIATE_BYTES: u32 = 4096;

/// How the pieces of one logical access are addressed.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct GlobalPlan {
    descriptor: Operand,
    /// True if its scalar offset depends on the iteration.
    advances: bool,
    /// Consecutive elements per instruction.
    granule: u32,
    /// One per replica and piece; the pieces of a replica are adjacent.
    pub(super) pieces: SmallVec<[InstructionPiece; 16]>,
    /// The memory, and what the offsets depend on, if another access may take them.
    pub(super) shared: Option<(Entity, OffsetFacts)>,
}

/// What a piece adds to the address of the lane: a number of bytes and multiples of strides that are known at
/// launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Extra {
    bytes: u32,
    dynamic: SmallVec<[(Dim, u32); 4]>,
}

/// Coordinates that lane and wave give, along each dimension; `None` where they are zero.
pub(super) type Coordinates = SmallVec<[(Dim, Option<Operand>); 4]>;

impl Lowering<'_> {
    /// Bytes per step of `dim` in a memory.
    pub(super) fn stride_bytes(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        dim: Dim,
        element_bytes: u32,
    ) -> Result<Expr, Diagnostic> {
        let stride = self.stride(memory, dims, dim)?;
        let bytes = self.arena.int(i64::from(element_bytes));
        self.arena.mul(stride, bytes).map_err(|e| self.too_large(&e))
    }

    /// Bytes that one iteration of the loop over `axis` moves on in `memory`.
    pub(super) fn loop_step(&mut self, memory: Entity, axis: Dim) -> Result<Option<Expr>, Diagnostic> {
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let Some(dim) = self.geometry.walked(&dims, axis) else { return Ok(None) };
        let element_bytes = self.element_bytes(memory)?;
        let stride = self.stride_bytes(memory, &dims, dim, element_bytes)?;
        let tile = self.arena.int(i64::from(self.geometry.dim(dim).tiling.unwrap_or(1)));
        let step = self.arena.mul(stride, tile);
        step.map(Some).map_err(|e| self.too_large(&e))
    }

    /// The first dimension whose coordinate is not the same for the whole workgroup at all times.
    fn row_dim(&self, dims: &[Dim]) -> Option<Dim> {
        let uniform = |dim: &Dim| {
            let entry = self.geometry.dim(*dim);
            entry.tiling.is_none() && entry.workgroup.is_some_and(|w| w.1 == 1)
        };
        dims.iter().copied().find(|d| !uniform(d))
    }

    /// The descriptor of a memory: from the first element of the workgroup's tile to the end of the tensor or
    /// batch slice.
    fn descriptor(&mut self, memory: Entity) -> Result<Operand, Diagnostic> {
        if let Some(&descriptor) = self.descriptors.get(memory) {
            return Ok(descriptor);
        }
        let pointer = self.pointers.get(memory).copied();
        let pointer = pointer.ok_or_else(|| self.bug("a memory that is no argument"))?;
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let element_bytes = self.element_bytes(memory)?;
        let TilePlace { offset, records, .. } = match self.known_tile_place(memory)? {
            Some(known) => known,
            None => self.tile_place(memory, &dims, element_bytes)?,
        };
        let descriptor = self.emitter.sgpr(4);
        let (low, high) = (pointer, pointer.offset(1));
        if offset == [Scalar::ZERO; 2] {
            self.emitter.op(Opcode::SMovB64, &[descriptor, pointer]);
        } else {
            self.emitter.with(Opcode::SAddU32, descriptor, &[Scalar::Reg(low), offset[0]]);
            self.emitter.with(Opcode::SAddcU32, descriptor.offset(1), &[Scalar::Reg(high), offset[1]]);
        }
        self.emitter.with(Opcode::SMovB32, descriptor.offset(2), &[records]);
        let word3 = Scalar::Const(i64::from(DESCRIPTOR_WORD3));
        self.emitter.with(Opcode::SMovB32, descriptor.offset(3), &[word3]);
        self.descriptors.insert(memory, descriptor);
        Ok(descriptor)
    }

    /// Where the workgroup's tile lies.
    fn tile_place(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        element_bytes: u32,
    ) -> Result<TilePlace, Diagnostic> {
        let row = self.row_dim(dims);
        let mut offset = [Scalar::ZERO; 2];
        let mut inside = [Scalar::ZERO; 2];
        // Without a row the slice is the one element at the base.
        let mut in_slice = false;
        // The largest that the offset can be.
        let mut most = Some(0i64);
        for &dim in dims {
            in_slice |= Some(dim) == row;
            let Some((axis, tile)) = self.geometry.dim(dim).workgroup else { continue };
            let (part, largest) = self.workgroup_offset(memory, dims, dim, (axis, tile), element_bytes)?;
            most = most.zip(largest).map(|(most, largest)| most.saturating_add(largest));
            let fits = most.is_some_and(|most| most < 1 << 32);
            let mut sum = |before: [Scalar; 2]| match fits {
                true => [self.emitter.add(before[0], part[0]), Scalar::ZERO],
                false => self.sum64(before, part, Sign::Plus),
            };
            let before = offset;
            offset = sum(before);
            if in_slice {
                inside = if inside == before { offset } else { sum(inside) };
            }
        }
        let records = self.records(memory, dims, row, element_bytes, inside)?;
        let place = TilePlace { memory, offset, records };
        self.tile_places.push(place);
        Ok(place)
    }

    /// Byte offset of the workgroup's tile along one dimension, 64 bits, and the largest that it can be where
    /// that is known.
    fn workgroup_offset(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        dim: Dim,
        (axis, tile): (u32, u32),
        element_bytes: u32,
    ) -> Result<([Scalar; 2], Option<i64>), Diagnostic> {
        let bytes = i64::from(element_bytes) * i64::from(tile);
        let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
        factors.push(Scalar::Reg(self.workgroup[axis as usize]));
        let mut constant = bytes;
        let mut known: SmallVec<[i64; 4]> = SmallVec::new();
        let mut bound = Some(bytes);
        for inner in self.stride_factors(memory, dims, dim) {
            let size = self.geometry.dim(inner).size;
            match self.scalar(size)? {
                Scalar::Const(value) => {
                    constant = constant.saturating_mul(value);
                    known.push(value);
                }
                register => {
                    factors.push(register);
                    bound = None;
                }
            }
        }
        // The whole extent of the dimension bounds the offset, when it is known.
        let extent = self.geometry.dim(dim).static_size;
        let largest = bound
            .and(extent)
            .map(|size| (constant / i64::from(tile)).saturating_mul(i64::from(size) + i64::from(tile)));
        if largest.is_some_and(|l| l < 1 << 32) {
            let id = factors[0];
            return Ok(([self.emitter.mul(id, Scalar::Const(constant)), Scalar::ZERO], largest));
        }
        // Factors have 32 bits: a larger constant is split.
        if constant < 1 << 32 {
            factors.push(Scalar::Const(constant));
        } else {
            factors.push(Scalar::Const(bytes));
            let mut factor = 1;
            for value in known {
                if factor * value >= 1 << 32 {
                    factors.push(Scalar::Const(factor));
                    factor = 1;
                }
                factor *= value;
            }
            factors.push(Scalar::Const(factor));
        }
        Ok((self.product64(&factors), largest))
    }

    /// Bytes from the workgroup's tile, which lies `inside` the slice, to the end of the slice: at most
    /// [`MAX_RECORDS`]. The slice has the dimensions from `row` on; it is a single element if there is none.
    fn records(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        row: Option<Dim>,
        element_bytes: u32,
        inside: [Scalar; 2],
    ) -> Result<Scalar, Diagnostic> {
        let slice: SmallVec<[Dim; 4]> = dims.iter().copied().skip_while(|d| Some(*d) != row).collect();
        let total = match self.world.get::<Strides>(memory) {
            Some(_) => self.strided_span(memory, dims, &slice, element_bytes)?,
            None => {
                let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
                factors.push(Scalar::Const(i64::from(element_bytes)));
                for dim in slice {
                    let size = self.geometry.dim(dim).size;
                    factors.push(self.scalar(size)?);
                }
                self.product64(&factors)
            }
        };
        if let [Scalar::Const(low), Scalar::Const(0)] = total
            && (low as u32) <= MAX_RECORDS
        {
            return Ok(self.emitter.sub(Scalar::Const(i64::from(low as u32)), inside[0]));
        }
        let [low, high] = self.sum64(total, inside, Sign::Minus);
        if let (Scalar::Const(_), Scalar::Const(_)) = (low, high) {
            return Ok(Scalar::Const(i64::from(MAX_RECORDS)));
        }
        let most = Scalar::Const(i64::from(MAX_RECORDS));
        let least = self.emitter.binary(Opcode::SMinU32, low, most);
        if high == Scalar::ZERO {
            return Ok(least);
        }
        let (high, least) = (self.emitter.in_sgpr(high), self.emitter.in_sgpr(least));
        let records = self.emitter.sgpr(1);
        let compare = Inst::new(Opcode::SCmpEqU32, &[high, Operand::ZERO]);
        self.emitter.push(compare);
        self.emitter.with(Opcode::SCselectB32, records, &[Scalar::Reg(least), most]);
        Ok(Scalar::Reg(records))
    }

    /// Bytes from the first element of a slice of a memory with strides to the end of the last one: what may
    /// come after that does not belong to the memory.
    fn strided_span(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        slice: &[Dim],
        element_bytes: u32,
    ) -> Result<[Scalar; 2], Diagnostic> {
        let mut span = [Scalar::Const(i64::from(element_bytes)), Scalar::ZERO];
        for &dim in slice {
            let size = self.geometry.dim(dim).size;
            let last = self.arena.sub(size, Expr::ONE).map_err(|e| self.too_large(&e))?;
            let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
            factors.push(Scalar::Const(i64::from(element_bytes)));
            factors.push(self.scalar(last)?);
            for factor in self.stride_factors(memory, dims, dim) {
                let size = self.geometry.dim(factor).size;
                factors.push(self.scalar(size)?);
            }
            let part = self.product64(&factors);
            span = self.sum64(span, part, Sign::Plus);
        }
        Ok(span)
    }

    /// Makes the plan of a logical access at this point of the code; `buffer` is the LDS buffer that it fills
    /// without registers, if there is one.
    pub(super) fn plan_global(
        &mut self,
        node: Entity,
        memory: Entity,
        fills: Option<&LdsBuffer>,
    ) -> Result<(), Diagnostic> {
        if self.global_plans.get(node).is_some() {
            return Ok(());
        }
        let layout = self.get::<Placement>(node)?.0.clone();
        let bounds = self.get::<Bounds>(node)?.clone();
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let element_bytes = self.element_bytes(memory)?;
        let row = self.row_dim(&dims);
        let descriptor = self.descriptor(memory)?;
        let row_loop = row.map(|row| self.geometry.loop_dim(row));
        let advances_row = self.loops.iter().any(|l| Some(l.axis) == row_loop && !l.single);
        let mut selected: SmallVec<[Dim; 4]> =
            if advances_row { bounds.leaves.clone() } else { bounds.masks.clone() };
        if let Some(row) = row
            && self.ends_memory(memory, &dims, row)?
        {
            selected.retain(|dim| *dim != row);
        }
        let advances = self.advances(memory)?;
        let access = AccessFacts {
            layout: &layout,
            memory,
            vector_only: advances || row.is_some_and(|r| bounds.leaves.contains(&r)),
            dims,
            element_bytes,
            row,
            selected,
            advances,
            fills,
            stores: self.get::<Op>(node)?.is_write() && fills.is_none(),
        };
        self.check_reach(node, &access)?;
        if self.world.get::<Strides>(memory).is_some() {
            let run = access.dims.last().map_or(1, |&dim| layout.contiguous_run(dim));
            let possible = run.clamp(1, MAX_ACCESS_BYTES / element_bytes);
            if bounds.granule < possible {
                self.out.splits.push((node, [bounds.granule, possible]));
            }
        }
        let facts = self.offset_facts(&access, bounds.granule);
        let pieces = match self.known_pieces(&access, &facts)? {
            Some(known) => known,
            None => self.pieces(node, &access, bounds.granule)?,
        };
        let shared = may_be_shared(&pieces).then_some((memory, facts));
        let granule = granule_of(&access, bounds.granule);
        let plan = GlobalPlan { descriptor, advances: access.advances, granule, pieces, shared };
        self.global_plans.insert(node, plan);
        Ok(())
    }

    /// True if the elements beyond the end of `row` certainly lie beyond the memory, where the descriptor's
    /// size masks them. A stride along which there is, or at launch may be, one element says nothing of that.
    fn ends_memory(&mut self, memory: Entity, dims: &[Dim], row: Dim) -> Result<bool, Diagnostic> {
        let size = self.geometry.dim(row).size;
        if self.world.get::<Strides>(memory).is_none() || self.arena.range(size).at_least(2) {
            return Ok(true);
        }
        let stride = self.stride(memory, dims, row)?;
        let mut left = self.arena.sub(stride, Expr::ONE).map_err(|e| self.too_large(&e))?;
        for &dim in dims.iter().skip_while(|&&dim| dim != row).skip(1) {
            let inner = self.stride(memory, dims, dim)?;
            let size = self.geometry.dim(dim).size;
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
            let advances = self.loops.iter().any(|l| l.axis == self.geometry.loop_dim(dim));
            if tile == 1 && !advances {
                // Every lane is at the descriptor's base.
                continue;
            }
            let mut extent = self.arena.int(i64::from(tile));
            if advances {
                extent =
                    self.arena.add(extent, self.geometry.dim(dim).size).map_err(|e| self.too_large(&e))?;
            }
            let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
            let part = self.arena.mul(extent, stride).map_err(|e| self.too_large(&e))?;
            reach = self.arena.add(reach, part).map_err(|e| self.too_large(&e))?;
        }
        match self.arena.as_integer(reach) {
            Some(bytes) if bytes > i64::from(MAX_RECORDS) => {
                let text = format!("a workgroup's tile of this memory spans {bytes} bytes");
                Err(Diagnostic::new(Kind::Limit, text)
                    .at(self.at(node))
                    .help("tiles must lie within 2 GiB: use smaller tiles, or another order of dimensions"))
            }
            Some(_) => Ok(()),
            None => {
                if self.out.reaches.iter().all(|r| r.1 != reach) {
                    self.out.reaches.push((access.memory, reach));
                }
                Ok(())
            }
        }
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
            let walked = self.geometry.walked(&access.dims, open.axis).filter(|_| open.single);
            if let Some(dim) = walked.filter(|_| open.start != Scalar::ZERO) {
                let tile = i64::from(self.geometry.dim(dim).tiling.unwrap_or(1));
                let first = self.emitter.mul(open.start, Scalar::Const(tile));
                let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
                let stride = self.scalar(stride)?;
                let bytes = self.emitter.mul(first, stride);
                offset = Some(self.add_uniform(offset, bytes));
            }
        }
        let mut offset = self.add_uniform(offset, Scalar::ZERO);
        if access.stores
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

    fn pieces(
        &mut self,
        node: Entity,
        access: &AccessFacts,
        granule: u32,
    ) -> Result<SmallVec<[InstructionPiece; 16]>, Diagnostic> {
        let layout = access.layout;
        let mut lanes: SmallVec<[(u32, Operand, Coordinates); 1]> = SmallVec::new();
        let registers = layout.extent(Source::Register);
        let granule = granule_of(access, granule);
        let mut strides: SmallVec<[(Dim, Option<u32>); 4]> = SmallVec::new();
        for &dim in &access.dims {
            let stride = self.stride_bytes(access.memory, &access.dims, dim, access.element_bytes)?;
            strides.push((dim, self.arena.as_integer(stride).and_then(|s| u32::try_from(s).ok())));
        }
        let mut masked: SmallVec<[(SmallVec<[u32; 4]>, Operand); 8]> = SmallVec::new();
        let mut moved: SmallVec<[(usize, Extra, Operand); 16]> = SmallVec::new();
        let mut scalars: SmallVec<[(Extra, Operand); 16]> = SmallVec::new();
        let mut outside = None;
        let count = layout.extent(Source::Replica) * registers.div_ceil(granule);
        let mut pieces = SmallVec::with_capacity(count as usize);
        for replica in 0..layout.extent(Source::Replica) {
            for first in (0..registers).step_by(granule as usize) {
                let place = layout::Place { replica, register: first, ..layout::Place::default() };
                let at = |dim: Dim| layout.coordinate(dim, place);
                let mut key: SmallVec<[u32; 4]> = SmallVec::new();
                access.selected.iter().for_each(|&dim| key.push(at(dim)));
                let rows = access.fills.map_or(0, |buffer| swizzled_rows(buffer, at));
                key.push(rows);
                let base = match masked.iter().position(|m| m.0 == key) {
                    Some(known) => known,
                    None => {
                        let lane = match lanes.iter().position(|lane| lane.0 == rows) {
                            Some(known) => known,
                            None => {
                                let (offset, coordinates) = self.lane_offset(access, rows)?;
                                lanes.push((rows, offset, coordinates));
                                lanes.len() - 1
                            }
                        };
                        let (_, offset, coordinates) = &lanes[lane];
                        let inside =
                            self.select_inside(node, access, coordinates, &key, *offset, &mut outside)?;
                        masked.push((key, inside));
                        masked.len() - 1
                    }
                };
                let mut extra = Extra::default();
                for &(dim, stride) in &strides {
                    match (at(dim), stride) {
                        (0, _) => {}
                        (c, Some(stride)) => extra.bytes += c * stride,
                        (c, None) => extra.dynamic.push((dim, c)),
                    }
                }
                // For a load to LDS it would move the place there as well (CDNA3 ISA guide, "Memory buffer
                // load to LDS").
                let immediate = if access.fills.is_some() { 0 } else { extra.bytes % IMMEDIATE_BYTES };
                extra.bytes -= immediate;
                let none = extra == Extra::default();
                let mut piece =
                    InstructionPiece { offset: masked[base].1, scalar_offset: Operand::ZERO, immediate };
                if !none && access.vector_only {
                    piece.offset = match moved.iter().find(|m| m.0 == base && m.1 == extra) {
                        Some(known) => known.2,
                        None => {
                            let bytes = self.extra_bytes(access, &extra)?;
                            let sum = self.add_uniform(Some(piece.offset), bytes);
                            moved.push((base, extra, sum));
                            sum
                        }
                    };
                } else if !none {
                    piece.scalar_offset = match scalars.iter().find(|s| s.0 == extra) {
                        Some(known) => known.1,
                        None => {
                            let bytes = self.extra_bytes(access, &extra)?;
                            let register = self.emitter.in_sgpr(bytes);
                            scalars.push((extra, register));
                            register
                        }
                    };
                }
                pieces.push(piece);
            }
        }
        Ok(pieces)
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
        debug_assert!(access.row.is_none_or(|r| !access.selected.contains(&r)));
        for (&dim, &constant) in access.selected.iter().zip(constants) {
            let geometry = self.geometry.dim(dim);
            let (size, workgroup, tiling) = (geometry.size, geometry.workgroup, geometry.tiling);
            let mut limit = self.scalar(size)?;
            if let Some((axis, tile)) = workgroup {
                let id = Scalar::Reg(self.workgroup[axis as usize]);
                let first = self.emitter.mul(id, Scalar::Const(i64::from(tile)));
                limit = self.emitter.sub(limit, first);
            }
            let axis = self.geometry.loop_dim(dim);
            if let Some(open) = self.loops.iter().rev().find(|l| l.axis == axis).cloned() {
                if !open.single {
                    return Err(self.bug("a mask changes inside a loop").at(self.at(node)));
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
                    let register = self.emitter.vgpr(1);
                    let value = Scalar::Const(i64::from(OUTSIDE));
                    self.emitter.with(Opcode::VMovB32, register, &[value]);
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

    fn plan_of(&self, node: Entity) -> Result<&GlobalPlan, Diagnostic> {
        self.global_plans.get(node).ok_or_else(|| self.bug("an access without a plan"))
    }

    /// Descriptor, elements per instruction and pieces of one expanded access.
    pub(super) fn pieces_of(
        &mut self,
        expansion: Expansion,
        registers: u32,
        memory: Entity,
    ) -> Result<(Operand, u32, SmallVec<[InstructionPiece; 16]>), Diagnostic> {
        let plan = self.plan_of(expansion.logical)?;
        let (descriptor, advances, granule) = (plan.descriptor, plan.advances, plan.granule);
        let count = (registers / granule) as usize;
        let first = expansion.replica as usize * count;
        let mut pieces: SmallVec<[InstructionPiece; 16]> = plan.pieces[first..first + count].into();
        if advances {
            let offset = self.iteration_offset(memory, expansion.iteration)?;
            pieces.iter_mut().for_each(|piece| piece.scalar_offset = offset);
        }
        Ok((descriptor, granule, pieces))
    }

    /// Emits the loads of one expanded read and notes where its value is.
    pub(super) fn load_global(
        &mut self,
        node: Entity,
        expansion: Expansion,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let (descriptor, granule, pieces) = match self.is_mapped(expansion.logical) {
            true => self.mapped_pieces(node, expansion, registers)?,
            false => self.pieces_of(expansion, registers, memory)?,
        };
        let cache = self.cache_bits(expansion.logical);
        let repeats = self.repeats_of(expansion.logical);
        let loaded = granule / repeats * bytes;
        let op = match loaded {
            1 => Opcode::BufferLoadUbyte,
            2 => Opcode::BufferLoadUshort,
            4 => Opcode::BufferLoadDword,
            8 => Opcode::BufferLoadDwordx2,
            12 => Opcode::BufferLoadDwordx3,
            16 => Opcode::BufferLoadDwordx4,
            other => return Err(self.bug(&format!("a load of {other} bytes"))),
        };
        let value = self.emitter.vgpr((registers * bytes).div_ceil(4));
        let parts = match repeats {
            1 => self.parts(value, registers * bytes, loaded),
            _ => self.repeated_parts(value, registers * bytes, loaded, [bytes, repeats]),
        };
        for (piece, &dst) in pieces.iter().zip(&parts.registers) {
            self.buffer_access(op, dst, *piece, (descriptor, cache));
        }
        self.finish_later(node, parts.joins);
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Emits the stores of one expanded write.
    pub(super) fn store_global(
        &mut self,
        node: Entity,
        expansion: Expansion,
        value: Entity,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        self.out.written.insert(memory);
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let value = self.in_registers(value, registers, bytes)?;
        let (descriptor, granule, pieces) = match self.is_mapped(expansion.logical) {
            true => self.mapped_pieces(node, expansion, registers)?,
            false => self.pieces_of(expansion, registers, memory)?,
        };
        let cache = self.cache_bits(expansion.logical);
        for (at, piece) in pieces.into_iter().enumerate() {
            let byte = at as u32 * granule * bytes;
            let data = value.offset(byte / 4);
            let (op, data) = match (granule * bytes, byte % 4) {
                (16, _) => (Opcode::BufferStoreDwordx4, data),
                (8, _) => (Opcode::BufferStoreDwordx2, data),
                (4, _) => (Opcode::BufferStoreDword, data),
                (2, 0) => (Opcode::BufferStoreShort, data),
                (2, _) => (Opcode::BufferStoreShortD16Hi, data),
                (1, 0) => (Opcode::BufferStoreByte, data),
                (1, 2) => (Opcode::BufferStoreByteD16Hi, data),
                (1, position) => {
                    let shifted = self.emitter.vgpr(1);
                    let shift = Scalar::Const(i64::from(position * 8));
                    self.emitter.with(Opcode::VLshrrevB32, shifted, &[shift, Scalar::Reg(data)]);
                    (Opcode::BufferStoreByte, shifted)
                }
                (other, _) => return Err(self.bug(&format!("a store of {other} bytes"))),
            };
            self.buffer_access(op, data, piece, (descriptor, cache));
        }
        Ok(())
    }

    pub(super) fn buffer_access(
        &mut self,
        op: Opcode,
        data: Operand,
        piece: InstructionPiece,
        (descriptor, cache): (Operand, Modifiers),
    ) {
        let operands = [data, piece.offset, descriptor, piece.scalar_offset];
        let inst = Inst::new(op, &operands).imm(piece.immediate).modifiers(cache.offen());
        self.emitter.push(inst);
    }

    /// A load that brings its data to LDS, at the address in M0.
    pub(super) fn buffer_load_to_lds(
        &mut self,
        op: Opcode,
        piece: InstructionPiece,
        (descriptor, cache): (Operand, Modifiers),
    ) {
        let operands = [piece.offset, descriptor, piece.scalar_offset];
        self.emitter.push(Inst::new(op, &operands).modifiers(cache.offen()));
    }

    /// What the flags of an access mean for the caches: system scope is sc0 and sc1, before gfx90a glc alone,
    /// and `nt` a hint (CDNA3 ISA guide, "Memory scopes and temporal hints"; LLVM's AMDGPU usage page, memory
    /// models).
    pub(super) fn cache_bits(&self, logical: Entity) -> Modifiers {
        let flags = self.world.get::<MemoryAccessFlags>(logical).copied().unwrap_or_default();
        let widest = match self.target.arch.has_system_scope() {
            true => Modifiers::new().sc0().sc1(),
            false => Modifiers::new().sc0(),
        };
        let scope = if flags.volatile { widest } else { Modifiers::new() };
        if flags.non_temporal { scope.nt() } else { scope }
    }
}

/// Consecutive elements per instruction, where masks allow `most`.
fn granule_of(access: &AccessFacts, most: u32) -> u32 {
    let registers = access.layout.extent(Source::Register);
    most.min(registers).min(MAX_ACCESS_BYTES / access.element_bytes).max(1)
}
