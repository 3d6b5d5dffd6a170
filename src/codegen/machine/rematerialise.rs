//! Registers that are cheaper to make again than to keep: those with a single write, which moves a constant.
//!
//! Such a register is not stored anywhere when it has to leave: its only write is removed, and the move is
//! repeated before each instruction that reads it. The move obeys EXEC like the reader does, so it fills the
//! lanes that are read.

use super::access::{Access, accesses};
use super::body::Body;
use crate::codegen::isa::{Implicit, Inst, Meaning, Operand};

/// The register numbers and constants of moves, by register.
#[derive(Default)]
pub(super) struct Constants {
    /// The move that makes each register, by its index; [`NEVER`] if nothing has written it, [`VARIES`] if it
    /// is not a constant.
    moves: Vec<u32>,
}

const NEVER: u32 = u32::MAX;
const VARIES: u32 = u32::MAX - 1;

impl Constants {
    /// Looks at every write.
    pub(super) fn compute(&mut self, body: &Body) {
        self.moves.clear();
        self.moves.resize(body.registers.len(), NEVER);
        for (index, i) in body.insts.iter().enumerate() {
            for Access { operand, width, .. } in accesses(&i.inst).filter(Access::writes) {
                let Some((id, first)) = operand.as_virtual() else { continue };
                let whole = first == 0 && width == u32::from(body.registers[id as usize].width);
                let made = &mut self.moves[id as usize];
                *made = match *made {
                    NEVER if whole && moves_constant(&i.inst) => index as u32,
                    _ => VARIES,
                };
            }
        }
    }

    /// The instruction that makes a register, if that is a constant.
    pub(super) fn of(&self, register: usize) -> Option<usize> {
        self.moves.get(register).copied().filter(|made| *made < VARIES).map(|made| made as usize)
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
