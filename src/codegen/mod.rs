//! Machine code: the instruction table, machine bodies, passes over them, code objects, and assembler text
//! for all of these.
pub mod assembler;
pub mod isa;
pub mod lower;
pub mod machine;
pub mod object;
pub mod rules;
pub mod target;
