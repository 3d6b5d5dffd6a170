//! Scans inside a wave: first what a lane holds, one element after the other, then the sums of the lanes in
//! front, and what comes before this part: the end of the replica before it, or the sums of the waves before.
//!
//! Where the lanes that share the dimension are whole rows and the elements have 32 bits, each lane takes the
//! element of the lane in front, and adds what lanes 1, 2, 4 and 8 in front have by then, and the last lanes
//! of the rows in front (DPP). Else the sums are made one bit of the lane number after the other.
//!
//! The layout of a scan is that of its operand, in which the elements along the dimension lie in their order
//! in registers, lanes, replicas and waves; other layouts are converted. `split_reductions` widens the
//! elements and brings the sums of all waves, and expansion gives each replica the one before it. Masks are
//! not needed: what is outside of the tensor is after everything that is inside. A carry through a loop is a
//! value that the author adds.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use super::reduce::{ROW, exchange, same_coordinates};
use crate::codegen::isa::{Dpp, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::target::{LANES, RowSwap};
use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// The registers of one lane that are summed up: those of one place along the other dimensions.
type ScannedRegisters = SmallVec<[u32; 16]>;

/// How a scan joins its elements.
#[derive(Copy, Clone)]
struct ScanJoining {
    joins: ReductionOp,
    /// The element that it starts with.
    start: Scalar,
    dtype: DType,
}

/// A constant of 32 or 64 bits.
fn bits_of(constant: Constant, dtype: DType) -> Scalar {
    Scalar::Const(match (constant, dtype.bits()) {
        (Constant::Float(value), 64) => value.to_bits() as i64,
        (Constant::Float(value), _) => i64::from((value as f32).to_bits()),
        (Constant::Integer(value), 64) => value,
        (Constant::Integer(value), _) => i64::from(value as u32),
    })
}

impl OperationLayer<'_> {
    /// One replica of a scan. Its operands are the replica of the value and, of the first one along the
    /// dimension, the sums of all waves if they share it; of others the replica of the scan before it, and
    /// that of the value if a scan leaves out the element itself.
    pub(crate) fn scan(
        &mut self,
        node: Entity,
        expansion: Expansion,
        scan: Scan,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let (&piece, before) = operands.split_first().ok_or_else(|| Diagnostic::bug("a scan of nothing"))?;
        let dtype = self.logical_dtype(piece)?;
        if dtype.bytes() < 4 {
            return Err(Diagnostic::bug("a scan of elements that are narrower than 32 bits"));
        }
        let width = dtype.bytes() / 4;
        let missing = || Diagnostic::bug("a scan without layout".to_string());
        let layout = &self.kernel.world.get::<Placement>(expansion.logical).ok_or_else(missing)?.0;
        let place = Place { replica: expansion.replica, ..Place::default() };
        let is_first = layout.coordinate(scan.dim, place) == 0;
        let joining =
            ScanJoining { joins: scan.op.joins(), start: bits_of(scan.op.start(dtype), dtype), dtype };
        let bits = layout.lane_bits(scan.dim);
        let by_rows = layout.scans_rows(scan.dim) && self.joining_opcode(scan.op.joins(), dtype).is_some();
        let masks = if by_rows { SmallVec::new() } else { self.lane_masks(bits) };
        let kept: Dims = layout.dims().into_iter().filter(|dim| *dim != scan.dim).collect();
        let registers = layout.extent(Source::Register);
        let mut results: SmallVec<[Option<Operand>; 16]> = SmallVec::from_elem(None, registers as usize);
        for at in 0..registers {
            if results[at as usize].is_some() {
                continue;
            }
            let group: ScannedRegisters = same_coordinates(layout, at, layout, &kept);
            let carry = match (is_first, scan.by_wave) {
                (false, _) => Some(self.end_of(before, &group, bits, joining)?),
                (true, Some(parts)) => {
                    let wave = self.wave_part(layout, scan.dim);
                    let sums = self.sums_of_waves(layout, at, &kept, (parts, before), dtype)?;
                    Some(self.sum_before(wave, self.wave_stride(layout, scan.dim), sums, joining)?)
                }
                (true, None) => None,
            };
            let sums = self.running_sums(piece, &group, joining)?;
            let last = *sums.last().ok_or_else(|| Diagnostic::bug("a scan of nothing"))?;
            let lanes = match by_rows {
                true => Some(Scalar::Reg(self.sums_before_lane_by_rows(last, bits, joining)?)),
                false => self.sums_before_lane(last, &masks, joining)?,
            };
            let base = self.sum_of_both(carry, lanes, joining)?;
            let found = self.with_base(scan.op, &sums, base, joining)?;
            for (register, sum) in group.into_iter().zip(found) {
                results[register as usize] = Some(sum);
            }
        }
        let value = self.emitter.vgpr(width * registers);
        for (at, result) in (0..).zip(results) {
            let result = result.ok_or_else(|| Diagnostic::bug("a scan that leaves elements out"))?;
            self.copy_registers(value.offset(at * width), result, width);
        }
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// The results of registers whose sums in a lane are `sums`, with what comes before the lane.
    fn with_base(
        &mut self,
        op: ScanOp,
        sums: &[Scalar],
        base: Option<Scalar>,
        joining: ScanJoining,
    ) -> Result<SmallVec<[Operand; 16]>, Diagnostic> {
        let mut results = SmallVec::new();
        if op.is_exclusive() {
            let base = self.in_vectors(base.unwrap_or(joining.start), joining.dtype);
            results.push(base);
            for &sum in &sums[..sums.len() - 1] {
                results.push(self.add(Scalar::Reg(base), sum, joining)?);
            }
        } else {
            for &sum in sums {
                let sum = match base {
                    Some(base) => Scalar::Reg(self.add(base, sum, joining)?),
                    None => sum,
                };
                results.push(self.in_vectors(sum, joining.dtype));
            }
        }
        Ok(results)
    }

    /// The sum of what comes before a lane in its wave and in others, of which either may be nothing.
    fn sum_of_both(
        &mut self,
        carry: Option<Scalar>,
        lanes: Option<Scalar>,
        joining: ScanJoining,
    ) -> Result<Option<Scalar>, Diagnostic> {
        Ok(match (lanes, carry) {
            (Some(lanes), Some(carry)) => Some(Scalar::Reg(self.add(carry, lanes, joining)?)),
            (lanes, carry) => lanes.or(carry),
        })
    }

    fn add(&mut self, a: Scalar, b: Scalar, joining: ScanJoining) -> Result<Operand, Diagnostic> {
        self.join(joining.joins, a, b, joining.dtype)
    }

    /// The sums of what a lane holds, one element after the other.
    fn running_sums(
        &mut self,
        piece: Entity,
        group: &ScannedRegisters,
        joining: ScanJoining,
    ) -> Result<SmallVec<[Scalar; 16]>, Diagnostic> {
        let mut sums: SmallVec<[Scalar; 16]> = SmallVec::new();
        for &register in group {
            let element = self.element(piece, register, joining.dtype)?;
            sums.push(match sums.last() {
                None => Scalar::Reg(self.in_vectors(element, joining.dtype)),
                Some(&sum) => Scalar::Reg(self.add(sum, element, joining)?),
            });
        }
        Ok(sums)
    }

    /// The lanes in which a bit of the lane number is set, for each of `bits`.
    fn lane_masks(&mut self, bits: u32) -> SmallVec<[(u32, Operand); 6]> {
        let mut masks = SmallVec::new();
        for bit in (0..LANES.ilog2()).filter(|bit| bits >> bit & 1 == 1) {
            let lanes = (0..u64::from(LANES)).filter(|lane| lane >> bit & 1 == 1);
            let lanes = lanes.fold(0u64, |mask, lane| mask | 1 << lane);
            let mask = self.emitter.sgpr(2);
            for (at, half) in [lanes as u32, (lanes >> 32) as u32].into_iter().enumerate() {
                self.emitter.with(Opcode::SMovB32, mask.offset(at as u32), &[Scalar::Const(i64::from(half))]);
            }
            masks.push((bit, mask));
        }
        masks
    }

    /// The sum of what the lanes in front of each lane hold; `None` if no lanes share the dimension.
    fn sums_before_lane(
        &mut self,
        own: Scalar,
        masks: &[(u32, Operand)],
        joining: ScanJoining,
    ) -> Result<Option<Scalar>, Diagnostic> {
        let dtype = joining.dtype;
        // The sum of all lanes that differ in the bits that are done, and of those of them in front.
        let mut total = self.in_vectors(own, dtype);
        let (mut before, mut done) = (None, 0);
        for (at, &(bit, mask)) in masks.iter().enumerate() {
            // Where rows are exchanged, the higher lanes have the sum of the lower ones as the even one.
            let [other, own] = match RowSwap::opcode(self.target, bit) {
                Some(swap) => self.both_rows(total, swap, dtype),
                None => [self.partner(total, exchange(bit, done), dtype), total],
            };
            let (none, some) = self.next_sum(before, other, joining)?;
            before = Some(self.chosen_sum(mask, some, none, dtype));
            if at + 1 < masks.len() {
                total = self.add(Scalar::Reg(other), Scalar::Reg(own), joining)?;
            }
            done |= 1 << bit;
        }
        Ok(before.map(Scalar::Reg))
    }

    /// The sum of what the lanes in front of each lane hold, where those that share the dimension are the
    /// rows of `bits`.
    fn sums_before_lane_by_rows(
        &mut self,
        own: Scalar,
        bits: u32,
        ScanJoining { joins, start, dtype }: ScanJoining,
    ) -> Result<Operand, Diagnostic> {
        let own = self.in_vectors(own, dtype);
        let mut sum = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VMovB32, sum, &[start]);
        // A lane without a source keeps what it has.
        let (name, rows) = if bits < ROW { ("row_shr", 1) } else { ("wave_shr", (bits + 1) / ROW) };
        self.move_from_front(Opcode::VMovB32, &[sum, own], (name, 1), 0xf)?;
        if rows == 2 {
            // The third row begins anew.
            let mask = self.emitter.sgpr(2);
            for (at, half) in [0, 1].into_iter().enumerate() {
                self.emitter.with(Opcode::SMovB32, mask.offset(at as u32), &[Scalar::Const(half)]);
            }
            let start = self.in_vectors(start, dtype);
            sum = self.chosen_sum(mask, start, sum, dtype);
        }
        let add = self.joining_opcode(joins, dtype);
        let add = add.ok_or_else(|| Diagnostic::bug("a sum without instruction"))?;
        for lanes in [1, 2, 4, 8] {
            self.move_from_front(add, &[sum, sum, sum], ("row_shr", lanes), 0xf)?;
        }
        if rows >= 2 {
            self.move_from_front(add, &[sum, sum, sum], ("row_bcast", 15), 0b1010)?;
        }
        if rows == 4 {
            self.move_from_front(add, &[sum, sum, sum], ("row_bcast", 31), 0b1100)?;
        }
        Ok(sum)
    }

    /// The sum so far, and that with one part more.
    fn next_sum(
        &mut self,
        before: Option<Operand>,
        part: Operand,
        joining: ScanJoining,
    ) -> Result<(Operand, Operand), Diagnostic> {
        let ScanJoining { joins, start, dtype } = joining;
        // Nothing changes what is added to -0.0 or to an integer; 0.0 has a part in it.
        let is_neutral = start == bits_of(joins.identity(dtype), dtype);
        let so_far = match before {
            Some(before) => before,
            None => self.in_vectors(start, dtype),
        };
        let with = match before.is_none() && is_neutral {
            true => part,
            false => self.add(Scalar::Reg(so_far), Scalar::Reg(part), joining)?,
        };
        Ok((so_far, with))
    }

    /// The sum at the end of the replica before: of the scan's last element and, if that leaves itself out,
    /// of the value's.
    fn end_of(
        &mut self,
        before: &[Entity],
        group: &[u32],
        bits: u32,
        joining: ScanJoining,
    ) -> Result<Scalar, Diagnostic> {
        let dtype = joining.dtype;
        let &last = group.last().ok_or_else(|| Diagnostic::bug("a scan of nothing"))?;
        let mut sum: Option<Scalar> = None;
        for &part in before {
            let element = self.element(part, last, dtype)?;
            sum = Some(match sum {
                None => element,
                Some(sum) => Scalar::Reg(self.add(sum, element, joining)?),
            });
        }
        let sum = sum.ok_or_else(|| Diagnostic::bug("a scan that does not go on"))?;
        let sum = self.in_vectors(sum, dtype);
        Ok(self.of_last_lane(sum, bits, dtype))
    }

    /// `yes` in the lanes of the mask, `no` in the others.
    fn chosen_sum(&mut self, mask: Operand, yes: Operand, no: Operand, dtype: DType) -> Operand {
        let width = dtype.bytes() / 4;
        let chosen = self.emitter.vgpr(width);
        for at in 0..width {
            let operands = [chosen.offset(at), no.offset(at), yes.offset(at), mask];
            self.emitter.op(Opcode::VCndmaskB32, &operands);
        }
        chosen
    }

    /// The value of the last of the lanes whose numbers differ in `bits`, in all of them.
    fn of_last_lane(&mut self, value: Operand, bits: u32, dtype: DType) -> Scalar {
        let width = dtype.bytes() / 4;
        let other = self.emitter.vgpr(width);
        match bits {
            0 => return Scalar::Reg(value),
            _ if bits == LANES - 1 => {
                return Scalar::Reg(self.of_lane(value, width, LANES - 1));
            }
            1..4 => {
                let control = Dpp::quad_perm([0, 1, 2, 3].map(|lane| lane | bits));
                self.moved_by_dpp(other, value, width, control);
            }
            4..32 => {
                // Bits 4:0 of the offset are an AND mask, 9:5 an OR mask (CDNA3 ISA guide,
                // `DS_SWIZZLE_B32`).
                self.moved_by_swizzle(other, value, width, bits << 5 | 0x1f);
            }
            _ => {
                let lane = Scalar::Reg(self.thread.lane);
                let last = self.vop2(Opcode::VOrB32, Scalar::Const(i64::from(bits)), lane);
                self.moved_from_lane(other, value, width, last);
            }
        }
        Scalar::Reg(other)
    }

    /// How far the parts of neighbouring waves are apart.
    fn wave_stride(&self, layout: &Layout, dim: Dim) -> u32 {
        let mut modes = layout.of_source(Source::Wave).filter(|mode| mode.dim == Some(dim));
        modes.next().map_or(0, |mode| mode.stride)
    }

    /// What each wave's part sums up to, in the order of the waves, at the place of register `at`.
    fn sums_of_waves(
        &mut self,
        layout: &Layout,
        at: u32,
        kept: &[Dim],
        (parts, pieces): (Dim, &[Entity]),
        dtype: DType,
    ) -> Result<Vec<Scalar>, Diagnostic> {
        let world = self.kernel.world;
        let mut found: SmallVec<[(u32, Scalar); 16]> = SmallVec::new();
        for &piece in pieces {
            let own = Expansion::at(world, piece);
            let missing = || Diagnostic::bug("sums of waves without layout".to_string());
            let of_waves = &world.get::<Placement>(own.logical).ok_or_else(missing)?.0;
            for register in same_coordinates(layout, at, of_waves, kept) {
                let place = Place { register, replica: own.replica, ..Place::default() };
                found.push((of_waves.coordinate(parts, place), self.element(piece, register, dtype)?));
            }
        }
        found.sort_by_key(|&(part, _)| part);
        Ok(found.into_iter().map(|(_, sum)| sum).collect())
    }

    /// The sum of `sums` of waves in front of the one whose part begins at `wave`; parts are `stride` long.
    fn sum_before(
        &mut self,
        wave: Scalar,
        stride: u32,
        sums: Vec<Scalar>,
        joining: ScanJoining,
    ) -> Result<Scalar, Diagnostic> {
        let ScanJoining { start, dtype, .. } = joining;
        let none = self.in_vectors(start, dtype);
        let mut before: Option<Operand> = None;
        // No wave is after the last one.
        for (part, &sum) in sums[..sums.len().saturating_sub(1)].iter().enumerate() {
            let place = self.add_uniform(None, Scalar::Const(part as i64 * i64::from(stride)));
            let mask = self.below(Some(place), wave);
            let sum = self.in_vectors(sum, dtype);
            let (otherwise, sum) = self.next_sum(before, sum, joining)?;
            before = Some(self.chosen_sum(mask, sum, otherwise, dtype));
        }
        Ok(Scalar::Reg(before.unwrap_or(none)))
    }
}
