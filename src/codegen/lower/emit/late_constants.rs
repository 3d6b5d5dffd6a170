//! Initial values of a pipelined loop that are brought into their registers after its first loads.
//!
//! The sums of a matrix product begin as zeros, one instruction for each of up to 256 registers. In front of
//! the loads that a pipeline begins with, each wave would load so many turns later, and two waves of a SIMD
//! one after the other; after them, the time in which the loads come is long enough for all of them.

use crate::codegen::isa::Opcode;
use crate::codegen::machine::{InstId, MachineBody, MachineInst};
use crate::index::{Neighbours, Stretches};

/// Constants that are put off.
#[derive(Default)]
pub(crate) struct LateConstants {
    insts: Vec<MachineInst>,
}

impl LateConstants {
    /// True if some are put off.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.insts.is_empty()
    }

    /// Puts off those of the instructions of `body` from `first` on that copy a constant into a register. All
    /// of these instructions write registers that nothing has named before.
    pub(super) fn put_off(&mut self, body: &mut MachineBody, first: InstId) {
        let end = body.insts.next_key();
        let mut kept = first;
        for at in 0..body.insts.range(first..end).len() {
            let inst = body.insts.range(first..end)[at];
            let [_, source, ..] = inst.inst.operands;
            if inst.inst.op == Opcode::VMovB32 && source.is_constant() {
                self.insts.push(inst);
            } else {
                body.insts[kept] = inst;
                kept = kept.next();
            }
        }
        body.insts.truncate(kept);
    }

    /// Appends them to `body`.
    pub(super) fn write(&mut self, body: &mut MachineBody) {
        body.insts.extend(self.insts.drain(..));
    }
}
