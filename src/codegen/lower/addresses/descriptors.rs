//! Buffer descriptors of memories.
//!
//! The base of a descriptor is the workgroup's own tile, so offsets stay small for tensors of any size. Its
//! size ends the tensor (or the batch slice): accesses beyond it along the first dimension that lanes spread
//! over read zero and are not stored.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::TilePlace;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::scalars::Sign;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;

/// Word 3 of a raw buffer descriptor: data format 32, number format uint, no swizzle, no index stride.
pub(super) const DESCRIPTOR_WORD3: u32 = 0x0002_7000;

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

    /// The descriptor of a memory: from the first element of the workgroup's tile to the end of the tensor or
    /// batch slice.
    pub(super) fn descriptor(&mut self, memory: Entity) -> Result<Operand, Diagnostic> {
        if let Some(&descriptor) = self.descriptors.get(memory) {
            return Ok(descriptor);
        }
        let pointer = self.pointers.get(memory).copied();
        let pointer = pointer.ok_or_else(|| Diagnostic::bug("a memory that is no argument"))?;
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
        let bytes = i64::from(element_bytes) * i64::from(tile);
        let mut factors: SmallVec<[Scalar; 6]> = SmallVec::new();
        factors.push(Scalar::Reg(self.workgroup[axis as usize]));
        let mut constant = bytes;
        let mut known: SmallVec<[i64; 4]> = SmallVec::new();
        let mut bound = Some(bytes);
        for inner in self.stride_factors(memory, dims, dim) {
            let size = self.kernel.geometry.dim(inner).size;
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
        let extent = self.kernel.geometry.dim(dim).static_size;
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
}
