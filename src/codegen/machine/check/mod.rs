//! The machine verifier: looks at what the passes left and says what is wrong, with rules of its own.
//!
//! Allocation is checked by following values through the registers, waits by following what is in flight along every
//! path, hazards by walking back from every instruction. Nothing here is shared with the passes but the instruction
//! table; it is slow and for tests and `--verify`.
mod allocation;
mod hazards;
mod waits;

pub use allocation::{Allocated, check_allocation};
pub use hazards::check_hazards;
pub use waits::check_waits;

use super::body::Body;
use crate::codegen::isa::{Arch, check};

/// Something wrong with one instruction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[error("instruction {inst}: {message}")]
pub struct Fault {
    /// Instruction.
    pub inst: u32,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    fn new(inst: usize, message: impl Into<String>) -> Fault {
        Fault { inst: inst as u32, message: message.into() }
    }
}

/// Checks every instruction against its row, and that blocks cover the body without gaps.
pub fn check_operands(body: &Body, arch: Arch) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut at = 0;
    for (index, block) in body.blocks.iter().enumerate() {
        if block.start != at || block.end < at {
            faults.push(Fault::new(
                at as usize,
                format!("bb{index} does not start where the one before it ends"),
            ));
        }
        at = block.end;
    }
    if at as usize != body.insts.len() {
        faults.push(Fault::new(at as usize, "the blocks do not cover the body"));
    }
    for (index, i) in body.insts.iter().enumerate() {
        if let Err(error) = check(&i.inst, arch) {
            faults.push(Fault::new(index, error.to_string()));
        }
    }
    faults
}
