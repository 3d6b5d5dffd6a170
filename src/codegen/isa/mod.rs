//! The instruction table and everything that is read off it.
mod inst;
mod meaning;
mod modifiers;
mod operand;
#[macro_use]
mod rows;
mod spec;
mod table;

pub use inst::{Inst, MAX_OPERANDS};
pub use meaning::{BranchCondition, Calc, Condition, Element, Half, Meaning, Memory, Permutation, Shape};
pub use modifiers::{Modifiers, Omod};
pub use operand::Operand;
pub use spec::{Counter, Field, Format, Implicit, OpInfo, OperandClass, OperandSpec, Role, Unit};
pub use table::Opcode;
