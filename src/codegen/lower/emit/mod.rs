//! The lowest layer of lowering: instructions, virtual registers and blocks, appended to a body.
//!
//! - `emitter`: instructions, registers, blocks, and small arithmetic that folds constants
//! - `beside_products`: scalar instructions between the last matrix instructions of a loop
//! - `late_constants`: initial values of a pipelined loop after its first loads
//! - `late_writes`: LDS writes of one tile between matrix instructions, one beside each

mod beside_products;
pub(super) mod emitter;
mod late_constants;
mod late_writes;
