//! The instruction record that every part of the machine layer shares.

use super::{Modifiers, Opcode, Operand, OperandClass};

/// Most operands that an instruction of the table has.
pub const MAX_OPERANDS: usize = 5;

/// One machine instruction: an opcode, its operands in the order of its row in the table (assembler order: results
/// first), one 32-bit immediate and the modifiers.
///
/// What [`imm`](Inst::imm) holds depends on the format: the literal of an operand that is [`Operand::LITERAL`]; the byte
/// offset of a memory instruction (for `read2`/`write2` forms offset0 in bits 7:0 and offset1 in bits 15:8); simm16 of
/// SOPK and SOPP (for a branch before layout: the target block; for `s_setreg_imm32_b32` simm16 is in the modifiers, and
/// this is its literal).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    /// Which instruction.
    pub op: Opcode,
    /// Literal, offset or simm16.
    pub imm: u32,
    /// Everything that is written behind the operands in assembler text.
    pub modifiers: Modifiers,
    /// Operands in the order of the row; unused places are [`Operand::NONE`].
    pub operands: [Operand; MAX_OPERANDS],
}

// Two records per cache line.
const _: () = assert!(size_of::<Inst>() <= 32);

impl Inst {
    /// An instruction without modifiers and immediate.
    pub fn new(op: Opcode, operands: &[Operand]) -> Inst {
        let mut all = [Operand::NONE; MAX_OPERANDS];
        all[..operands.len()].copy_from_slice(operands);
        Inst { op, imm: 0, modifiers: Modifiers::default(), operands: all }
    }

    /// The same with an immediate.
    pub fn imm(mut self, imm: u32) -> Inst {
        self.imm = imm;
        self
    }

    /// The same with modifiers.
    pub fn modifiers(mut self, modifiers: Modifiers) -> Inst {
        self.modifiers = modifiers;
        self
    }

    /// Number of 32-bit registers that operand `index` covers: what the row says, except for the addresses of buffer and
    /// global instructions, which depend on modifiers and on the scalar base.
    pub fn width(&self, index: usize) -> u8 {
        let spec = &self.op.info().operands[index];
        match spec.class {
            OperandClass::BufferAddress if self.modifiers.has_offen() && self.modifiers.has_idxen() => 2,
            OperandClass::GlobalAddress if !self.scalar_base().is_none() => 1,
            _ => spec.width,
        }
    }

    /// The scalar base of a global or scratch instruction.
    fn scalar_base(&self) -> Operand {
        let base = self.op.info().operands.iter().position(|spec| spec.class == OperandClass::ScalarBase);
        base.map_or(Operand::NONE, |index| self.operands[index])
    }
}
