//! Machine code: the instruction table, machine bodies, passes over them, code objects, and assembler text
//! for all of these.
pub mod assembler;
pub mod isa;
pub(crate) mod lower;
pub(crate) mod machine;
pub mod object;
pub(crate) mod rules;
pub mod target;
