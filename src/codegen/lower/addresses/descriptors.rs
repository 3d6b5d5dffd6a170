//! Buffer descriptors of memories.
//!
//! The base of a descriptor is the workgroup's own tile, so offsets stay small for tensors of any size. Its
//! size ends the tensor (or the batch slice): accesses beyond it along the first dimension that lanes spread
//! over read zero and are not stored. That of a mapped access begins where all its lanes are at all times,
//! and its size decides nothing.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::AccessFacts;
use super::alike::TilePlace;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::dependence::HeldValue;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::codegen::lower::values::scalars::Sign;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprError};
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;

/// Word 3 of a raw buffer descriptor: data format 32, number format uint, no swizzle, no index stride.
pub(super) const DESCRIPTOR_WORD3: u32 = 0x0002_7000;

/// The base of a descriptor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DescriptorBase {
    /// The workgroup's own tile.
    Tile,
    /// So many bytes after the beginning of the memory, less the bias.
    Moved { uniform: Expr, bias: i64 },
}

/// Largest size in a descriptor.
pub(super) const MAX_RECORDS: u32 = 0x7fff_ffff;

impl AddressLayer<'_> {
    /// The first dimension whose coordinate is not the same for the whole workgroup at all times.
    pub(super) fn row_dim(&self, dims: &[Dim]) -> Option<Dim> {
        let uniform = |dim: &Dim| {
            let entry = self.kernel.geometry.dim(*dim);
            entry.tiling.is_none() && entry.workgroup.is_some_and(|w| w.1 == 1)
        };
        dims.iter().copied().find(|d| !uniform(d))
    }

    /// The descriptor of a memory with a base. That of a tile ends with the tensor or batch slice.
    pub(super) fn descriptor(&mut self, memory: Entity, base: DescriptorBase) -> Result<Operand, Diagnostic> {
        let known = self.descriptors.iter().find(|known| (known.0, known.1) == (memory, base));
        if let Some(known) = known {
            return Ok(known.2);
        }
        let pointer = self.pointer(memory)?;
        let [low, high] = [Scalar::Reg(pointer), Scalar::Reg(pointer.offset(1))];
        let (descriptor, records) = match base {
            DescriptorBase::Tile => {
                let TilePlace { offset, records, .. } = self.tile_place(memory)?;
                let descriptor = self.emitter.sgpr(4);
                if offset == [Scalar::ZERO; 2] {
                    self.emitter.op(Opcode::SMovB64, &[descriptor, pointer]);
                } else {
                    self.emitter.with(Opcode::SAddU32, descriptor, &[low, offset[0]]);
                    self.emitter.with(Opcode::SAddcU32, descriptor.offset(1), &[high, offset[1]]);
                }
                (descriptor, records)
            }
            DescriptorBase::Moved { uniform, bias } => {
                let [low, high] = self.moved_base([low, high], uniform)?;
                let [low, high] = self.sum64([low, high], [Scalar::Const(bias), Scalar::ZERO], Sign::Minus);
                let descriptor = self.emitter.sgpr(4);
                self.emitter.with(Opcode::SMovB32, descriptor, &[low]);
                self.emitter.with(Opcode::SMovB32, descriptor.offset(1), &[high]);
                (descriptor, Scalar::Const(i64::from(MAX_RECORDS)))
            }
        };
        self.emitter.with(Opcode::SMovB32, descriptor.offset(2), &[records]);
        let word3 = Scalar::Const(i64::from(DESCRIPTOR_WORD3));
        self.emitter.with(Opcode::SMovB32, descriptor.offset(3), &[word3]);
        self.descriptors.push((memory, base, descriptor));
        Ok(descriptor)
    }

    /// A pointer to so many bytes after the beginning of a memory, in a pair of SGPRs.
    pub(super) fn moved_pointer(&mut self, memory: Entity, uniform: Expr) -> Result<Operand, Diagnostic> {
        let pointer = self.pointer(memory)?;
        let base = [Scalar::Reg(pointer), Scalar::Reg(pointer.offset(1))];
        let moved = self.moved_base(base, uniform)?;
        if moved == base {
            return Ok(pointer);
        }
        let pair = self.emitter.sgpr(2);
        self.emitter.with(Opcode::SMovB32, pair, &[moved[0]]);
        self.emitter.with(Opcode::SMovB32, pair.offset(1), &[moved[1]]);
        Ok(pair)
    }

    /// A base moved by what is the same in the workgroup at all times.
    fn moved_base(&mut self, mut base: [Scalar; 2], uniform: Expr) -> Result<[Scalar; 2], Diagnostic> {
        for (part, sign) in self.uniform_parts(uniform)? {
            base = self.sum64(base, part, sign);
        }
        Ok(base)
    }

    /// The pointer of a memory, in a pair of SGPRs.
    fn pointer(&self, memory: Entity) -> Result<Operand, Diagnostic> {
        let pointer = self.pointers.get(memory).copied();
        pointer.ok_or_else(|| Diagnostic::bug("a memory that is no argument"))
    }

    /// The place of the workgroup's tile.
    fn tile_place(&mut self, memory: Entity) -> Result<TilePlace, Diagnostic> {
        if let Some(known) = self.known_tile_place(memory)? {
            return Ok(known);
        }
        let dims = &self.get::<ValueType>(memory)?.dims;
        let element_bytes = self.element_bytes(memory)?;
        let row = self.row_dim(dims);
        let mut offset = [Scalar::ZERO; 2];
        let mut inside = [Scalar::ZERO; 2];
        // Without a row the slice is the one element at the base.
        let mut in_slice = false;
        // The largest that the offset can be.
        let mut most = Some(0i64);
        for &dim in dims {
            in_slice |= Some(dim) == row;
            let Some((axis, tile)) = self.kernel.geometry.dim(dim).workgroup else { continue };
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
        let mut constant = i64::from(element_bytes) * i64::from(tile);
        let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
        factors.push(Scalar::Reg(self.workgroup[axis as usize]));
        for inner in self.stride_factors(memory, dims, dim) {
            let size = self.kernel.geometry.dim(inner).size;
            match self.scalar(size)? {
                Scalar::Const(value) => constant = constant.saturating_mul(value),
                register => factors.push(register),
            }
        }
        // The whole extent of the dimension bounds the offset, when it is known.
        let extent = self.kernel.geometry.dim(dim).static_size.filter(|_| factors.len() == 1);
        let largest =
            extent.map(|size| (constant / i64::from(tile)).saturating_mul(i64::from(size) + i64::from(tile)));
        if largest.is_some_and(|l| l < 1 << 32) {
            let id = factors[0];
            return Ok(([self.emitter.mul(id, Scalar::Const(constant)), Scalar::ZERO], largest));
        }
        Ok((self.multiple64(factors, constant.unsigned_abs()), largest))
    }

    /// So many times the product of factors of 32 bits.
    fn multiple64(&mut self, mut factors: SmallVec<[Scalar; 6]>, times: u64) -> [Scalar; 2] {
        factors.push(Scalar::Const((times & 0xffff_ffff) as i64));
        let low = self.product64(&factors);
        if times >> 32 == 0 {
            return low;
        }
        factors.pop();
        factors.push(Scalar::Const((times >> 32) as i64));
        let [high, _] = self.product64(&factors);
        self.sum64(low, [Scalar::ZERO, high], Sign::Plus)
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
        let total = match self.kernel.world.get::<Strides>(memory) {
            Some(_) => self.strided_span(memory, dims, &slice, element_bytes)?,
            None => {
                let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
                factors.push(Scalar::Const(i64::from(element_bytes)));
                for dim in slice {
                    let size = self.kernel.geometry.dim(dim).size;
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
            let size = self.kernel.geometry.dim(dim).size;
            let last = self.arena.sub(size, Expr::ONE).map_err(|e| self.too_large(&e))?;
            let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
            factors.push(Scalar::Const(i64::from(element_bytes)));
            factors.push(self.scalar(last)?);
            for factor in self.stride_factors(memory, dims, dim) {
                let size = self.kernel.geometry.dim(factor).size;
                factors.push(self.scalar(size)?);
            }
            let part = self.product64(&factors);
            span = self.sum64(span, part, Sign::Plus);
        }
        Ok(span)
    }

    /// Offsets inside one descriptor must stay below 2^31: checked now, or at launch for dynamic sizes.
    pub(super) fn check_reach_of_tile(&mut self, facts: &AccessFacts) -> Result<(), Diagnostic> {
        let mut reach = self.arena.int(0);
        for &(dim, stride) in &facts.strides {
            let tile = facts.layout.tile_extent(dim);
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
            let part = self.arena.mul(extent, stride).map_err(|e| self.too_large(&e))?;
            reach = self.arena.add(reach, part).map_err(|e| self.too_large(&e))?;
        }
        let Some(bytes) = self.beyond_reach(facts.memory, reach, 0).map_err(|e| self.too_large(&e))? else {
            return Ok(());
        };
        let text = format!("a workgroup's tile of this memory spans {bytes} bytes");
        Err(Diagnostic::new(Kind::Limit, text)
            .at(self.at(facts.node))
            .help("tiles must lie within 2 GiB: use smaller tiles, or another order of dimensions"))
    }

    /// Checks that a memory and the bytes in front of it have less than 2 GiB, now or at launch.
    pub(super) fn check_reach_of_memory(
        &mut self,
        facts: &AccessFacts,
        before: i64,
    ) -> Result<(), Diagnostic> {
        let reach = self.reach_of_memory(facts).map_err(|e| self.unmappable(e))?;
        let beyond = self.beyond_reach(facts.memory, reach, before).map_err(|e| self.unmappable(e))?;
        let Some(bytes) = beyond else { return Ok(()) };
        let text = format!("a memory of {bytes} bytes is accessed at coordinates that are far apart");
        Err(Diagnostic::new(Kind::Limit, text)
            .at(self.at(facts.node))
            .help("such memories have less than 2 GiB: make several of it"))
    }

    /// Bytes from the first one of a memory to the last: dimensions may lie in any order, and that of a
    /// single coordinate may have any stride.
    pub(super) fn reach_of_memory(&mut self, facts: &AccessFacts) -> Result<Expr, ExprError> {
        let mut reach = self.arena.int(i64::from(facts.element_bytes));
        for &(dim, stride) in &facts.strides {
            let size = self.kernel.geometry.dim(dim).size;
            let last = self.arena.sub(size, Expr::ONE)?;
            let span = self.arena.mul(stride, last)?;
            reach = self.arena.add(reach, span)?;
        }
        Ok(reach)
    }

    /// Checks that offsets that count units have 31 bits, now or at launch.
    pub(super) fn check_units_of_memory(
        &mut self,
        facts: &AccessFacts,
        reach: Expr,
        unit: u32,
    ) -> Result<(), Diagnostic> {
        let unit = self.arena.int(i64::from(unit));
        let units = self.arena.ceil_div(reach, unit).map_err(|e| self.unmappable(e))?;
        let beyond = self.beyond_reach(facts.memory, units, 0).map_err(|e| self.unmappable(e))?;
        let Some(count) = beyond else { return Ok(()) };
        let text = format!(
            "a memory of {count} units of its addresses is accessed at coordinates that are far apart"
        );
        Err(Diagnostic::new(Kind::Limit, text).at(self.at(facts.node)).help(
            "a unit is the largest power of two up to 64 that divides all strides; \
                   there may be fewer than 2147483648: make several memories of it",
        ))
    }

    /// The bytes of a reach in a memory, if they are, with those in front, more than a descriptor spans. What
    /// depends on open sizes is noted, to be checked at launch.
    fn beyond_reach(&mut self, memory: Entity, reach: Expr, before: i64) -> Result<Option<i64>, ExprError> {
        if let Some(bytes) = self.arena.as_integer(reach) {
            return Ok(Some(bytes).filter(|bytes| bytes.saturating_add(before) > i64::from(MAX_RECORDS)));
        }
        let before = self.arena.int(before);
        let reach = self.arena.add(reach, before)?;
        if self.emitter.out.reaches.iter().all(|known| known.1 != reach) {
            self.emitter.out.reaches.push((memory, reach));
        }
        Ok(None)
    }

    /// Numbers of 64 bits, with their signs, whose sum a uniform expression is.
    fn uniform_parts(&mut self, uniform: Expr) -> Result<Vec<([Scalar; 2], Sign)>, Diagnostic> {
        if uniform == Expr::ZERO {
            return Ok(Vec::new());
        }
        let range = self.arena.range(uniform);
        if range.at_least(0) && range.at_most(i64::from(i32::MAX)) {
            let HeldValue::Uniform(value) = self.held(uniform, &LateFacts::default())? else {
                return Err(Diagnostic::bug("a uniform offset in vector registers"));
            };
            return Ok(vec![([value, Scalar::ZERO], Sign::Plus)]);
        }
        let mut parts = Vec::new();
        for (coefficient, factors) in self.terms(uniform) {
            let magnitude = coefficient.numer().unsigned_abs();
            let mut all: SmallVec<[Scalar; 6]> = SmallVec::new();
            for factor in factors {
                let HeldValue::Uniform(value) = self.held(factor, &LateFacts::default())? else {
                    return Err(Diagnostic::bug("a uniform offset in vector registers"));
                };
                all.push(value);
            }
            let product = self.multiple64(all, magnitude);
            let sign = if *coefficient.numer() < 0 { Sign::Minus } else { Sign::Plus };
            parts.push((product, sign));
        }
        Ok(parts)
    }
}
