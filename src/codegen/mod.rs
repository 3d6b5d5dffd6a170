//! Machine code: the instruction table, machine bodies, passes over them, code objects, and assembler text
//! for all of these. Without the compiler, the chips alone: which code runs on which of them.
mod arch;
#[cfg(feature = "compiler")]
pub mod assembler;
#[cfg(feature = "compiler")]
pub mod isa;
#[cfg(feature = "compiler")]
pub(crate) mod issue;
#[cfg(feature = "compiler")]
pub(crate) mod lower;
#[cfg(feature = "compiler")]
pub(crate) mod machine;
#[cfg(feature = "compiler")]
pub mod object;
#[cfg(feature = "compiler")]
pub(crate) mod rules;
pub mod target;
