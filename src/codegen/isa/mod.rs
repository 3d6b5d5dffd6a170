//! The instruction table and everything that is read off it.
mod allowed;
mod decode;
mod encode;
mod fields;
mod inst;
mod layout;
mod meaning;
mod modifiers;
mod operand;
mod print;
#[macro_use]
mod rows;
mod spec;
mod table;

pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, encode, size_in_bytes};
pub use fields::WaitCounts;
pub use inst::{Inst, MAX_OPERANDS};
pub use meaning::{BranchCondition, Calc, Condition, Element, Half, Meaning, Memory, Permutation, Shape};
pub use modifiers::{Modifiers, Omod};
pub use operand::Operand;
pub use print::write_inst;
pub use spec::{Counter, Field, Format, Implicit, OpInfo, OperandClass, OperandSpec, Role, Unit};
pub use table::Opcode;
