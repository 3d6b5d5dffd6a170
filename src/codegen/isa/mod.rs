//! The instruction table and everything that is read off it: encoder, decoder, assembly printer, operand
//! rules.
//!
//! The rows are in `rows/`, their columns in `spec.rs` and `meaning.rs`, the bits of the formats in
//! `layout.rs`. To add an instruction, add a row; the tests in `tests/isa/isa_llvm.rs` then compare it with
//! LLVM.
mod allowed;
mod buffer_format;
mod complete;
mod decode;
mod dpp;
mod encode;
mod error;
mod fields;
mod inst;
mod layout;
mod meaning;
mod modifiers;
mod operand;
pub(crate) mod parse;
mod print;
#[macro_use]
mod rows;
mod sdwa;
mod second_word;
mod spec;
mod table;
mod verify;

pub use super::arch::{Arch, Arches, Generation};
pub use buffer_format::BufferFormat;
pub use decode::decode;
pub use dpp::Dpp;
pub use encode::{encode, size_in_bytes};
pub use error::{DecodeError, EncodeError};
pub use fields::WaitCounts;
pub use inst::Inst;
pub(crate) use inst::MAX_OPERANDS;
pub use meaning::{
    BranchCondition, Calc, Condition, Effect, Element, Half, Meaning, MemoryData, Permutation, Shape,
};
pub use modifiers::{Modifiers, Omod};
pub use operand::{Operand, VReg};
pub use parse::{LineError, ParsedInstruction, Reference, Slot, parse_inst};
pub use print::write_inst;
pub use sdwa::{Sdwa, Select, Unused};
pub use spec::{Counter, Field, Format, Implicit, OpInfo, OperandClass, OperandSpec, Role, Unit};
pub use table::Opcode;
pub use verify::{OperandError, check};
