//! The instruction table and everything that is read off it.
mod inst;
mod operand;

pub use inst::{Inst, MAX_OPERANDS};
pub use operand::Operand;

/// Stand-in until the table is in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Modifiers(u32);

/// Stand-in until the table is in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum Opcode {
    /// `s_endpgm`
    SEndpgm,
}
