//! The instruction record that every part of the machine layer shares.

use super::{Modifiers, Opcode, Operand};

/// Most operands that an instruction of the table has.
pub const MAX_OPERANDS: usize = 5;

/// One machine instruction: an opcode, its operands in the order of its row in the table (assembler order: results
/// first), one 32-bit immediate and the modifiers.
///
/// What [`imm`](Inst::imm) holds depends on the format: the literal of an operand that is [`Operand::LITERAL`]; the byte
/// offset of a memory instruction (for `read2`/`write2` forms offset0 in bits 7:0 and offset1 in bits 15:8); simm16 of
/// SOPK and SOPP (for a branch before layout: the target block).
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

// 32 bytes would need the opcode inside the modifiers; 36 keeps the record readable.
const _: () = assert!(size_of::<Inst>() <= 36);

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
}
