//! Registers that are cheaper to make again than to keep: those with a single write, which moves a constant.
//!
//! Such a register is not stored anywhere when it has to leave: its only write is removed, and the move is
//! repeated before each instruction that reads it. The move obeys EXEC like the reader does, so it fills the
//! lanes that are read.

use super::access::{RegisterAccess, accesses};
use super::body::{InstId, MachineBody};
use crate::codegen::isa::{Implicit, Inst, Meaning, Operand, VReg};
use crate::index::IndexVec;

/// What writes each register.
#[derive(Copy, Clone)]
enum ConstantWrites {
    /// Nothing has yet.
    Never,
    /// This move of a constant alone.
    Once(InstId),
    /// It is no constant.
    Varies,
}

/// The moves of constants that alone write a register, by register.
#[derive(Default)]
pub(super) struct Constants {
    moves: IndexVec<VReg, ConstantWrites>,
}

impl Constants {
    /// Looks at every write.
    pub(super) fn compute(&mut self, body: &MachineBody) {
        self.moves.refill(body.registers.next_id(), ConstantWrites::Never);
        for (index, i) in body.insts.enumerated() {
            for RegisterAccess { operand, width, .. } in accesses(&i.inst).filter(RegisterAccess::writes) {
                let Some((id, first)) = operand.as_virtual() else { continue };
                let whole = first == 0 && width == u32::from(body.registers[id].width);
                let made = &mut self.moves[id];
                *made = match *made {
                    ConstantWrites::Never if whole && moves_constant(&i.inst) => ConstantWrites::Once(index),
                    _ => ConstantWrites::Varies,
                };
            }
        }
    }

    /// The instruction that makes a register, if that is a constant.
    pub(super) fn of(&self, register: VReg) -> Option<InstId> {
        match self.moves.get(register) {
            Some(ConstantWrites::Once(index)) => Some(*index),
            Some(ConstantWrites::Never | ConstantWrites::Varies) | None => None,
        }
    }
}

/// True for a move of a constant to a whole register.
pub(super) fn moves_constant(inst: &Inst) -> bool {
    let info = inst.op.info();
    let source = inst.operands[1];
    // VCCZ, EXECZ and SCC have numbers among the constants, but are not constants.
    let constant = source.is_constant() && !matches!(source, Operand::VCCZ | Operand::EXECZ | Operand::SCC);
    match info.meaning {
        Meaning::Scalar(crate::codegen::isa::Calc::Mov, _)
        | Meaning::Vector(crate::codegen::isa::Calc::Mov, _) => constant && inst.modifiers.is_empty(),
        Meaning::MoveImmediate => info.reads == Implicit::NONE,
        _ => false,
    }
}
