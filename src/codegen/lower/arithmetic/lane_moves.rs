//! Registers of other lanes, and values that lanes choose by bits of their number.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ArithmeticLayer;
use crate::codegen::isa::{Dpp, Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::{LANES, RowSwap};
use crate::ir::diagnostic::Diagnostic;

/// Something for each value of the bits of the lane number that choose between registers.
pub(crate) type ByChoice<T> = SmallVec<[T; 2]>;

/// Pairs of registers between which rows of lanes have changed places, and what came of them.
pub(crate) type SwappedRegisters = BTreeMap<[Operand; 2], [Operand; 2]>;

impl ArithmeticLayer<'_> {
    /// What lanes have after an exchange of rows between two registers, which stay as they are.
    pub(crate) fn swapped(
        &mut self,
        known: &mut SwappedRegisters,
        from: [Operand; 2],
        swap: RowSwap,
    ) -> Operand {
        if let Some(swapped) = known.get(&from) {
            return swapped[swap.result];
        }
        let swapped = from.map(|from| {
            let copy = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VMovB32, &[copy, from]);
            copy
        });
        self.emitter.op(swap.opcode, &swapped);
        known.insert(from, swapped);
        swapped[swap.result]
    }

    /// A register of another lane by DPP. What lanes at the ends of a row get, which nobody looks at, is at
    /// least something.
    pub(crate) fn moved_by_lanes(&mut self, [to, from]: [Operand; 2], control: u32) {
        let moved = Inst::new(Opcode::VMovB32, &[to, from]).imm(Dpp::new(control).bound().to_imm());
        self.emitter.push(moved.modifiers(Modifiers::new().dpp()));
    }

    /// One of several registers in each lane, by the bits of `choosing` in its number: those for all values
    /// of these bits, in ascending order.
    pub(crate) fn chosen_by_lane(&mut self, mut all: ByChoice<Operand>, choosing: u32) -> Operand {
        for bit in (0..LANES.ilog2()).filter(|bit| choosing >> bit & 1 == 1) {
            let pairs = all.chunks(2).map(|pair| match *pair {
                [no, yes] if no != yes => {
                    let chosen = self.emitter.vgpr(1);
                    let mask = self.lanes_with_bit(bit);
                    self.emitter.op(Opcode::VCndmaskB32, &[chosen, no, yes, mask]);
                    chosen
                }
                _ => pair[0],
            });
            all = pairs.collect();
        }
        all[0]
    }

    /// The lanes with a bit in their number, as a mask.
    pub(crate) fn lanes_with_bit(&mut self, bit: u32) -> Operand {
        let lanes = (0..LANES).filter(|lane| lane >> bit & 1 == 1);
        self.wide_bits(lanes.fold(0, |mask, lane| mask | 1 << lane))
    }

    pub(crate) fn moved_by_dpp(&mut self, to: Operand, from: Operand, width: u32, control: u32) {
        for at in 0..width {
            let operands = [to.offset(at), from.offset(at)];
            let moved = Inst::new(Opcode::VMovB32, &operands).imm(Dpp::new(control).to_imm());
            self.emitter.push(moved.modifiers(Modifiers::new().dpp()));
        }
    }

    pub(crate) fn moved_by_swizzle(&mut self, to: Operand, from: Operand, width: u32, imm: u32) {
        for at in 0..width {
            let operands = [to.offset(at), from.offset(at)];
            self.emitter.push(Inst::new(Opcode::DsSwizzleB32, &operands).imm(imm));
        }
    }

    /// The element of the lane whose number is in a VGPR.
    pub(crate) fn moved_from_lane(&mut self, to: Operand, from: Operand, width: u32, lane: Operand) {
        let address = self.vop2(Opcode::VLshlrevB32, Scalar::Const(2), Scalar::Reg(lane));
        for at in 0..width {
            self.emitter.op(Opcode::DsBpermuteB32, &[to.offset(at), address, from.offset(at)]);
        }
    }

    /// The element of one lane in SGPRs.
    pub(crate) fn of_lane(&mut self, value: Operand, width: u32, lane: u32) -> Operand {
        let scalar = self.emitter.sgpr(width);
        for at in 0..width {
            let operands = [scalar.offset(at), value.offset(at), Operand::constant(lane)];
            self.emitter.op(Opcode::VReadlaneB32, &operands);
        }
        scalar
    }

    /// An instruction whose first source is what a DPP control takes from lanes in front, in some rows; lanes
    /// without a source are left alone.
    pub(crate) fn move_from_front(
        &mut self,
        opcode: Opcode,
        operands: &[Operand],
        (name, argument): (&str, u32),
        rows: u32,
    ) -> Result<(), Diagnostic> {
        let control =
            Dpp::control(name, argument).ok_or_else(|| Diagnostic::bug("a DPP control without number"))?;
        let dpp = Dpp { row_mask: rows, ..Dpp::new(control) };
        let moved = Inst::new(opcode, operands).imm(dpp.to_imm());
        self.emitter.push(moved.modifiers(Modifiers::new().dpp()));
        Ok(())
    }
}

/// The control of DPP by which lanes take something from a lane further on in their row, or before it; half a
/// row on is half a row back.
pub(crate) const fn shift(lanes: i32) -> u32 {
    // CDNA3 ISA guide, "DPP_CTRL": DPP_ROW_SL, DPP_ROW_SR and DPP_ROW_RR.
    match lanes {
        8 => 0x120 + 8,
        1.. => 0x100 + lanes as u32,
        _ => 0x110 + lanes.unsigned_abs(),
    }
}
