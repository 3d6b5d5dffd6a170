//! Reductions inside a wave: first what a lane holds, as a balanced tree, then across lanes, one bit of the
//! lane number after the other. All lanes that took part have the result. Lanes whose parts a reduction keeps
//! apart do not take part.
//!
//! Lanes up to eight apart exchange values as the first source of the instruction that joins them (DPP).
//! Where a whole wave is folded, rows hand their results on to the rows after them by DPP (`row_bcast`), and
//! all lanes read the last one. Else lanes sixteen apart use `ds_swizzle`, and those thirty-two apart
//! `ds_bpermute`: before gfx950 no vector instruction takes the element of a lane in a row after its own, and
//! both rows need the result. There, `v_permlane16_swap` and `v_permlane32_swap` exchange rows of two
//! registers.
//!
//! By time mode, clk of 2048 rows on MI300X: with four reads of rows and three additions in place of
//! `row_bcast` softmax of 1024 columns takes 8176 and with it 8184, log-softmax 8196 and 8156, RMS norm 7884
//! and 7844, layer norm of 4096 columns 16956 and 16668, row sums of 1024 columns 5296 and 5280. Where half a
//! wave is folded (256 columns), `row_bcast`, two reads and a selection in place of `ds_swizzle` would take
//! 4743 and not 4727 for softmax, 4195 and not 4139 for RMS norm, but 3300 and not 3312 for row sums.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Dpp, Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::target::{LANES, RowSwap};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// Lanes of a row: DPP does not exchange elements beyond.
pub(super) const ROW: u32 = 16;

/// How lanes whose numbers differ in one bit find each other's value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Exchange {
    /// As the first source of an instruction: its control.
    Dpp(u32),
    /// The same, of what a first control has moved.
    TwoDpp([u32; 2]),
    /// With `ds_swizzle`: the bit that differs.
    Swizzle(u32),
    /// With `ds_bpermute`: the bit that differs.
    Permute(u32),
}

/// The exchange for bit `bit` of the lane number, where all lanes that differ in the bits `done` have the
/// same value.
pub(crate) fn exchange(bit: u32, done: u32) -> Exchange {
    match bit {
        0 => Exchange::Dpp(Dpp::quad_perm([1, 0, 3, 2])),
        1 => Exchange::Dpp(Dpp::quad_perm([2, 3, 0, 1])),
        // A mirrored half row changes the two bits below as well, which does not matter then.
        2 if done & 3 == 3 => Exchange::Dpp(Dpp::HALF_MIRROR),
        2 => Exchange::TwoDpp([Dpp::HALF_MIRROR, Dpp::quad_perm([3, 2, 1, 0])]),
        3 => Dpp::control("row_ror", 8).map_or(Exchange::Swizzle(bit), Exchange::Dpp),
        4 => Exchange::Swizzle(bit),
        _ => Exchange::Permute(bit),
    }
}

impl OperationLayer<'_> {
    /// One expanded reduction of `pieces`.
    pub(crate) fn reduce(
        &mut self,
        node: Entity,
        expansion: Expansion,
        reduction: Reduction,
        pieces: &[Entity],
    ) -> Result<(), Diagnostic> {
        let world = self.kernel.world;
        let &first = pieces.first().ok_or_else(|| Diagnostic::bug("a reduction of nothing"))?;
        let dtype = self.logical_dtype(first)?;
        if dtype.bytes() < 4 {
            return Err(Diagnostic::bug("a reduction of elements that are narrower than 32 bits"));
        }
        let width = dtype.bytes() / 4;
        let scalar = Layout::default();
        let layout_of = |node: Entity| world.get::<Placement>(node).map_or(&scalar, |placement| &placement.0);
        let from = layout_of(Expansion::at(world, first).logical);
        let own = layout_of(expansion.logical);
        let kept: Dims = own.dims().into_iter().filter(|dim| Some(*dim) != reduction.parts).collect();
        let mut results: SmallVec<[Operand; 16]> = SmallVec::new();
        for at in 0..own.extent(Source::Register) {
            let registers = same_coordinates(own, at, from, &kept);
            let mut elements: SmallVec<[Scalar; 32]> = SmallVec::new();
            for &piece in pieces {
                for &register in &registers {
                    elements.push(self.element(piece, register, dtype)?);
                }
            }
            results.push(self.tree(reduction.op, elements, dtype)?);
        }
        let apart = reduction.parts.map_or(0, |parts| own.lane_bits(parts));
        self.across_lanes(reduction.op, &mut results, from.lane_bits(reduction.dim) & !apart, dtype)?;
        let value = match results[..] {
            [one] => one,
            _ => {
                let value = self.emitter.vgpr(width * results.len() as u32);
                for (at, &result) in (0..).zip(&results) {
                    self.copy_registers(value.offset(at * width), result, width);
                }
                value
            }
        };
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Joins neighbours first: elements in pairs, or three at a time where one instruction joins as many.
    /// Then what is left of a level goes on to the next one, so that as few instructions as possible join
    /// two; the tree is as deep as one of pairs at most.
    fn tree(
        &mut self,
        op: ReductionOp,
        mut elements: SmallVec<[Scalar; 32]>,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        let joins_three = joining_three(op, dtype);
        while elements.len() > 1 {
            let at_a_time = if joins_three.is_some() && elements.len() > 2 { 3 } else { 2 };
            let mut joined = SmallVec::with_capacity(elements.len().div_ceil(2));
            for group in elements.chunks(at_a_time) {
                match (joins_three, group) {
                    (Some(opcode), &[a, b, c]) => {
                        joined.push(Scalar::Reg(self.join_three(opcode, [a, b, c])));
                    }
                    (_, &[a, b]) if at_a_time == 2 => {
                        joined.push(Scalar::Reg(self.join(op, a, b, dtype)?));
                    }
                    _ => joined.extend_from_slice(group),
                }
            }
            elements = joined;
        }
        let last = *elements.first().ok_or_else(|| Diagnostic::bug("a reduction of nothing"))?;
        Ok(self.in_vectors(last, dtype))
    }

    /// Joins three elements; one of them may be an SGPR. Of floats a number wins against any NaN as it does
    /// where two are joined, outside of IEEE mode.
    fn join_three(&mut self, opcode: Opcode, mut elements: [Scalar; 3]) -> Operand {
        self.emitter.out.float_extremum |= matches!(opcode, Opcode::VMin3F32 | Opcode::VMax3F32);
        self.limit_uniform(&mut elements, 1);
        self.vop3(opcode, &elements)
    }

    pub(super) fn join(
        &mut self,
        op: ReductionOp,
        a: Scalar,
        b: Scalar,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        // One of the sources may be an SGPR.
        let b = if self.is_uniform(a) && dtype.bits() < 64 { Scalar::Reg(self.in_vector(b)) } else { b };
        self.binary(op.joins(), a, b, dtype)
    }

    /// Joins the values of lanes whose numbers differ in `bits`.
    fn across_lanes(
        &mut self,
        op: ReductionOp,
        values: &mut [Operand],
        bits: u32,
        dtype: DType,
    ) -> Result<(), Diagnostic> {
        let whole = bits == LANES - 1;
        let mut done = 0;
        let steps = if whole { ROW } else { LANES };
        for bit in (0..steps.ilog2()).filter(|bit| bits >> bit & 1 == 1) {
            let (swap, exchange) = (RowSwap::opcode(self.target, bit), exchange(bit, done));
            for value in &mut *values {
                *value = match swap {
                    Some(swap) => self.joined_by_swap(op, *value, swap, dtype)?,
                    None => self.exchange(op, *value, exchange, dtype)?,
                };
            }
            done |= 1 << bit;
        }
        if whole {
            self.across_rows(op, values, dtype)?;
        }
        Ok(())
    }

    /// A value joined with that of another lane.
    pub(super) fn exchange(
        &mut self,
        op: ReductionOp,
        value: Operand,
        exchange: Exchange,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        let last = match exchange {
            Exchange::Dpp(last) | Exchange::TwoDpp([_, last]) => Some(last),
            Exchange::Swizzle(_) | Exchange::Permute(_) => None,
        };
        if let Some(last) = last
            && let Some(opcode) = self.joining_opcode(op, dtype)
        {
            let [other, mut moved] = [self.emitter.vgpr(1), value];
            if let Exchange::TwoDpp([first, _]) = exchange {
                moved = self.emitter.vgpr(1);
                self.moved_by_dpp(moved, value, 1, first);
            }
            let joined = Inst::new(opcode, &[other, moved, value]).imm(Dpp::new(last).to_imm());
            self.emitter.push(joined.modifiers(Modifiers::new().dpp()));
            return Ok(other);
        }
        let other = self.partner(value, exchange, dtype);
        self.join(op, Scalar::Reg(other), Scalar::Reg(value), dtype)
    }

    /// A value joined with that of the lane in the other row of a pair.
    fn joined_by_swap(
        &mut self,
        op: ReductionOp,
        value: Operand,
        swap: Opcode,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        let [even, odd] = self.both_rows(value, swap, dtype);
        self.join(op, Scalar::Reg(even), Scalar::Reg(odd), dtype)
    }

    /// What the lane in the even row of a pair has, and what the one in the odd row has, in both. Of two
    /// copies, the odd row of one and the even row of the other change places: then one has the even row
    /// twice, and the other the odd one.
    pub(super) fn both_rows(&mut self, value: Operand, swap: Opcode, dtype: DType) -> [Operand; 2] {
        let width = dtype.bytes().div_ceil(4);
        let [even, odd] = [self.emitter.vgpr(width), self.emitter.vgpr(width)];
        self.copy_registers(even, value, width);
        self.copy_registers(odd, value, width);
        for at in 0..width {
            self.emitter.op(swap, &[even.offset(at), odd.offset(at)]);
        }
        [even, odd]
    }

    /// The element of another lane.
    pub(super) fn partner(&mut self, value: Operand, exchange: Exchange, dtype: DType) -> Operand {
        let width = dtype.bytes().div_ceil(4);
        let other = self.emitter.vgpr(width);
        match exchange {
            Exchange::Dpp(control) => self.moved_by_dpp(other, value, width, control),
            Exchange::TwoDpp([first, last]) => {
                let moved = self.emitter.vgpr(width);
                self.moved_by_dpp(moved, value, width, first);
                self.moved_by_dpp(other, moved, width, last);
            }
            Exchange::Swizzle(bit) => {
                // Bits 4:0 of the offset are an AND mask, 14:10 an XOR mask (CDNA3 ISA guide,
                // `DS_SWIZZLE_B32`).
                self.moved_by_swizzle(other, value, width, (1 << bit) << 10 | 0x1f);
            }
            Exchange::Permute(bit) => {
                let lane = Scalar::Reg(self.thread.lane);
                let partner = self.vop2(Opcode::VXorB32, Scalar::Const(1 << bit), lane);
                self.moved_from_lane(other, value, width, partner);
            }
        }
        other
    }

    /// Joins the four rows of a wave, each of which has one value: the second with the first, the fourth with
    /// the third, and these two. By DPP the last row has the result, which all lanes read from there; what
    /// DPP does not join is read from each row.
    fn across_rows(
        &mut self,
        op: ReductionOp,
        values: &mut [Operand],
        dtype: DType,
    ) -> Result<(), Diagnostic> {
        let width = dtype.bytes() / 4;
        let Some(joins) = self.joining_opcode(op, dtype) else {
            for value in values {
                // An instruction takes one scalar.
                let rows = (0..LANES / ROW).map(|row| {
                    let row = self.of_lane(*value, width, row * ROW);
                    Scalar::Reg(self.in_vectors(Scalar::Reg(row), dtype))
                });
                let rows = rows.collect();
                *value = self.tree(op, rows, dtype)?;
            }
            return Ok(());
        };
        for (last, rows) in [(15, 0b1010), (31, 0b1000)] {
            for &mut value in &mut *values {
                self.move_from_front(joins, &[value; 3], ("row_bcast", last), rows)?;
            }
        }
        for value in values {
            let result = self.of_lane(*value, width, LANES - 1);
            *value = self.emitter.vgpr(width);
            self.copy_registers(*value, result, width);
        }
        Ok(())
    }

    /// The instruction of two sources that joins elements, if there is one whose first source can be another
    /// lane's.
    pub(super) fn joining_opcode(&mut self, op: ReductionOp, dtype: DType) -> Option<Opcode> {
        if dtype.bits() == 64 {
            return None;
        }
        let opcode = match (op, dtype.is_float()) {
            (ReductionOp::Sum, true) => Opcode::VAddF32,
            (ReductionOp::Product, true) => Opcode::VMulF32,
            (ReductionOp::Min, true) => Opcode::VMinF32,
            (ReductionOp::Max, true) => Opcode::VMaxF32,
            (ReductionOp::Sum, false) => Opcode::VAddU32,
            (ReductionOp::Product, false) => return None,
            (ReductionOp::Min, false) => Opcode::VMinI32,
            (ReductionOp::Max, false) => Opcode::VMaxI32,
        };
        self.emitter.out.float_extremum |= matches!(opcode, Opcode::VMinF32 | Opcode::VMaxF32);
        Some(opcode)
    }
}

/// The instruction that joins three elements, if there is one: it joins two, and their result with the third
/// (CDNA3 ISA guide, `V_MAX3_F32`; Vega ISA guide, likewise).
fn joining_three(op: ReductionOp, dtype: DType) -> Option<Opcode> {
    if dtype.bits() == 64 {
        return None;
    }
    match (op, dtype.is_float()) {
        (ReductionOp::Min, true) => Some(Opcode::VMin3F32),
        (ReductionOp::Max, true) => Some(Opcode::VMax3F32),
        (ReductionOp::Min, false) => Some(Opcode::VMin3I32),
        (ReductionOp::Max, false) => Some(Opcode::VMax3I32),
        (ReductionOp::Sum | ReductionOp::Product, _) => None,
    }
}

/// The registers of `from` whose coordinates along `kept` are those of register `at` of `own`.
pub(super) fn same_coordinates(own: &Layout, at: u32, from: &Layout, kept: &[Dim]) -> SmallVec<[u32; 16]> {
    let place = |register| layout::Place { register, ..layout::Place::default() };
    let coordinates: SmallVec<[u32; 4]> = kept.iter().map(|&dim| own.coordinate(dim, place(at))).collect();
    let same = |register: &u32| {
        kept.iter().zip(&coordinates).all(|(&dim, &own)| from.coordinate(dim, place(*register)) == own)
    };
    let registers = 0..from.extent(Source::Register);
    match kept.is_empty() {
        true => registers.collect(),
        false => registers.filter(same).collect(),
    }
}
