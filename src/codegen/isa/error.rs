//! Why instructions have no encoding, and words no instruction.

use super::operand::Operand;
use super::table::Opcode;
use crate::codegen::arch::Arch;

/// Why words are not an instruction of the table.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The words end inside an instruction.
    #[error("the code ends inside an instruction")]
    Truncated,
    /// No row has this opcode.
    #[error("{word:#010x} is not a known instruction")]
    Unknown {
        /// First word.
        word: u32,
    },
    /// The row is known, but an operand is not one that it takes.
    #[error("`{}`: operand {index} is not one that the instruction takes", .op.mnemonic())]
    Operand {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
    },
    /// The row is known, but the second word of its DPP or SDWA form has no meaning.
    #[error("`{}`: the control in its second word has no meaning", .op.mnemonic())]
    Control {
        /// Instruction.
        op: Opcode,
    },
    /// The row is known, but not with such modifiers.
    #[error("`{}` does not have these modifiers", .op.mnemonic())]
    Modifiers {
        /// Instruction.
        op: Opcode,
    },
}

/// Why an instruction has no encoding.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// A virtual register is left.
    #[error("`{}`: operand {index} is a virtual register", .op.mnemonic())]
    Virtual {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
    },
    /// An operand is not of the class that the row wants, or has no number in the field.
    #[error("`{}`: operand {index} cannot be {operand:?}", .op.mnemonic())]
    Operand {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
        /// The operand.
        operand: Operand,
    },
    /// The chip has no such instruction.
    #[error("`{}` does not exist on {arch}, only on {}", .op.mnemonic(), .op.info().arches)]
    Arch {
        /// Instruction.
        op: Opcode,
        /// Chip.
        arch: Arch,
    },
    /// A literal in an encoding without room for one.
    #[error("`{}`: no literal in the 64-bit encoding", .op.mnemonic())]
    Literal {
        /// Instruction.
        op: Opcode,
    },
    /// Offset or simm16 out of range.
    #[error("`{}`: immediate {imm:#x} is out of range", .op.mnemonic())]
    Immediate {
        /// Instruction.
        op: Opcode,
        /// The value.
        imm: u32,
    },
    /// Modifiers that the row does not have on this chip.
    #[error("`{}` does not have these modifiers on {arch}", .op.mnemonic())]
    Modifiers {
        /// Instruction.
        op: Opcode,
        /// Chip.
        arch: Arch,
    },
}
