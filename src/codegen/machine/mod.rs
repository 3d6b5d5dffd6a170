//! Machine code of one kernel before it becomes bytes, and the passes over it.
//!
//! ```text
//! lowering -> interleave -> allocate -> scratch -> branches to the next block -> waits -> hazards -> islands
//!          -> code
//! ```
//!
//! [`mod@interleave`] moves instructions of loops to where their units are free.
//!
//! Allocation is several files: `operands`, `liveness` (on `flow`), `loops` and `pressure` describe the body,
//! `tie` keeps accumulators in place, `coalesce` removes copies, and `place` (on `occupancy`) finds places.
//! When there are too few, `evict` chooses which registers leave, by the rules of `agpr` and `rematerialise`,
//! and `spill` rewrites the body; `scratch_entry` lets a kernel find what it has spilled.
//!
//! A body is blocks of instructions in one list, and a pass that inserts writes the list anew. Allocation
//! knows virtual registers, files and limits, and works on machine text alone (`tests/files/machine`).
//! `check` has the judges: that of allocation follows values through registers, AGPRs, scratch and lanes,
//! and relies on nothing that the allocator recorded.
mod access;
mod agpr;
pub(crate) mod allocate;
mod allocation_error;
mod body;
pub(crate) mod branches;
pub(crate) mod check;
mod coalesce;
mod dataflow;
mod evict;
mod flow;
mod hazard_rows;
pub(crate) mod hazards;
pub(crate) mod interleave;
pub(crate) mod islands;
pub(crate) mod late_uses;
mod liveness;
mod loops;
mod matrix_rows;
mod occupancy;
mod operands;
mod place;
mod pressure;
pub(crate) mod register_parts;
mod register_set;
mod rematerialise;
mod repairs;
mod replay;
pub(crate) mod scratch_entry;
mod spill;
pub mod text;
mod tie;
pub(crate) mod waits;

pub(crate) use access::as_copy;
pub use body::{Block, BlockId, InstId, MachineBody, MachineInst, Origins, RegisterFile, VirtualRegister};

#[cfg(test)]
use crate::codegen::isa::{Operand, VReg};

/// Steps that it takes to join the registers of a body.
#[cfg(test)]
pub(crate) fn joining_steps(body: &mut MachineBody, inputs: &[(VReg, Operand)]) -> usize {
    let mut liveness = liveness::Liveness::default();
    let mut loops = loops::LoopDepths::default();
    let mut coalescer = coalesce::Coalescer::default();
    let is_fixed = |id: VReg| inputs.iter().any(|(register, _)| *register == id);
    // A body with an invalid operand takes no steps.
    let _ = liveness.compute(body, inputs);
    loops.compute(body);
    let mut ties = tie::Ties::default();
    let mut origins = body.insts.keys().map(cranelift_entity::packed_option::PackedOption::from).collect();
    ties.tie(
        body,
        &mut origins,
        &mut liveness,
        &loops,
        &mut coalescer,
        (coalesce::Tied::Accumulators, is_fixed),
    );
    coalescer.join(body, &mut liveness, &loops, is_fixed, coalesce::Joining::Join);
    coalescer.steps()
}

/// Steps that it takes to find which registers are live from block to block.
#[cfg(test)]
pub(crate) fn live_steps(body: &MachineBody, inputs: &[(VReg, Operand)]) -> usize {
    let mut liveness = liveness::Liveness::default();
    // A body with an invalid operand takes no steps.
    let _ = liveness.compute(body, inputs);
    liveness.steps()
}
