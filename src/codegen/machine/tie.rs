//! Accumulators stay in place: the result of a matrix instruction takes the register of its accumulator if
//! nothing reads the accumulator afterwards, and a loop carries it in the same register.
//!
//! A body comes with a register of its own for every value, except for sums whose accumulator nothing else
//! uses, and with copies where a loop hands one on; the verifier of the allocation compares with that.
//! Registers that liveness allows to be one become one before anything is placed or spilled, however much
//! room there is: a loop that copies its accumulators would be far too slow.
//!
//! Where VGPRs have to move to AGPRs, the same is done for all of their copies: what a loop hands on is two
//! registers and a copy, of which one alone might move. Then the copy crosses the files in every trip, and
//! each of them keeps room for a value that only one holds at a time.

use super::body::{InstId, MachineBody, Origins};
use super::coalesce::{Coalescer, Tied};
use super::liveness::Liveness;
use super::loops::LoopDepths;
use crate::codegen::isa::{Operand, VReg};
use cranelift_entity::PrimaryMap;

/// The pass's memory.
#[derive(Default)]
pub(super) struct Ties {
    /// The number of each instruction afterwards; for one that is removed, that of the next.
    numbers: PrimaryMap<InstId, InstId>,
}

impl Ties {
    /// Ties what `tied` names in `body` and removes the copies that became empty, from `origins` and
    /// `liveness` as well.
    pub(super) fn tie(
        &mut self,
        body: &mut MachineBody,
        origins: &mut Origins,
        liveness: &mut Liveness,
        loops: &LoopDepths,
        coalescer: &mut Coalescer,
        (tied, is_fixed): (Tied, impl Fn(VReg) -> bool),
    ) {
        if !coalescer.tie(body, liveness, loops, is_fixed, tied) {
            return;
        }
        self.numbers.clear();
        let numbers = &mut self.numbers;
        let name = |id, first| Operand::virtual_register(coalescer.root(id).0, first);
        body.rename(origins, name, |now| {
            numbers.push(now);
        });
        self.numbers.push(body.insts.next_key());
        liveness.renumber(&self.numbers);
    }
}
