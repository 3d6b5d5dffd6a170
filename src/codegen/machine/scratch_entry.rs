//! The beginning of a kernel that spills on a chip with absolute scratch: FLAT_SCRATCH becomes what the
//! kernel was given for its dispatch, and the offset of its wave.
//!
//! The two registers of the former stand among the kernel's inputs and push those after them up by two; the
//! latter comes after all of them (LLVM's "User Guide for AMDGPU Backend", "Initial Kernel Execution State"
//! and "Flat Scratch"). So that nothing else need know, the beginning moves the inputs back to where they
//! are in a kernel without scratch.

use super::body::{BlockId, InstId, MachineBody, MachineInst};
use crate::codegen::isa::{Inst, Opcode, Operand};

/// FLAT_SCRATCH_LO; the other half is the next register.
const FLAT_SCRATCH: u32 = 102;

/// SGPRs that a kernel begins with.
pub(crate) struct EntrySgprs {
    /// Those of the pointer to its arguments.
    pub pointer: u32,
    /// Preloaded arguments and numbers of the workgroup, which come next.
    pub others: u32,
}

/// Puts the beginning in front of a kernel; none if control comes back to it.
#[must_use]
pub(crate) fn find_scratch(body: &mut MachineBody, entry: &EntrySgprs) -> Option<()> {
    let first = BlockId::from_u32(0);
    if body.blocks.values().any(|block| block.successors.contains(&Some(first))) {
        return None;
    }
    let EntrySgprs { pointer, others } = *entry;
    let given = Operand::sgpr(pointer);
    let wave = Operand::sgpr(pointer + 2 + others);
    let scratch = Operand::sgpr(FLAT_SCRATCH);
    body.spare.clear();
    let mut push = |inst: Inst| body.spare.push(MachineInst { inst, source: u32::MAX });
    push(Inst::new(Opcode::SAddU32, &[scratch, given, wave]));
    push(Inst::new(Opcode::SAddcU32, &[scratch.offset(1), given.offset(1), Operand::constant(0)]));
    for at in pointer..pointer + others {
        push(Inst::new(Opcode::SMovB32, &[Operand::sgpr(at), Operand::sgpr(at + 2)]));
    }
    let inserted = body.spare.next_key().as_u32();
    body.spare.extend(body.insts.values().copied());
    std::mem::swap(&mut body.insts, &mut body.spare);
    let moved = |inst: InstId| InstId::from_u32(inst.as_u32() + inserted);
    for (id, block) in body.blocks.iter_mut() {
        block.start = if id == first { block.start } else { moved(block.start) };
        block.end = moved(block.end);
    }
    Some(())
}
