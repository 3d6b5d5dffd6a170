//! Machine code: the instruction table, machine bodies, passes over them, and code objects.
pub mod isa;
pub mod lower;
pub mod machine;
pub mod object;
pub mod target;
