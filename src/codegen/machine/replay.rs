//! Runs of memory instructions that must survive a replay: with XNACK on, a run of consecutive scalar or of
//! consecutive vector memory instructions is issued again after a page fault, so none may read what the run
//! has overwritten, and loads and stores may not mix (LLVM GCNHazardRecognizer, `checkSoftClauseHazards`).
//! One instruction in between breaks a run.

use super::access::{Ranges, RegisterRange, TouchedRegisters, writes_memory};
use crate::codegen::isa::{Inst, OpInfo, Operand, Role, Unit};

/// Registers by operand number.
type RegisterSet = [u64; Operand::END as usize / 64];

/// A run of scalar or of vector memory instructions.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub(super) struct MemoryRun {
    kind: RunKind,
    defs: RegisterSet,
    uses: RegisterSet,
}

#[derive(Copy, Clone, Default, PartialEq, Eq)]
enum RunKind {
    #[default]
    None,
    Scalar,
    Vector,
}

impl RunKind {
    fn of(info: &OpInfo) -> RunKind {
        match info.unit {
            Unit::Smem => RunKind::Scalar,
            Unit::Vmem | Unit::Flat => RunKind::Vector,
            _ => RunKind::None,
        }
    }
}

/// The words of a set in which a range lies, and its bits there.
#[inline]
fn words(range: RegisterRange) -> impl Iterator<Item = (usize, u64)> {
    let (start, end) = (range.numbers().start, range.numbers().end);
    (start / 64..end.div_ceil(64)).map(move |word| {
        let from = |number: usize| u64::MAX.checked_shl(number.saturating_sub(64 * word) as u32).unwrap_or(0);
        (word, from(start) & !from(end))
    })
}

impl MemoryRun {
    /// True if `inst` may not continue the run.
    pub(super) fn breaks_at(&self, inst: &Inst) -> bool {
        let info = inst.op.info();
        if self.kind == RunKind::None || RunKind::of(info) != self.kind {
            return false;
        }
        let loads = self.defs != RegisterSet::default();
        if writes_memory(info) && loads {
            return true;
        }
        // A store after stores.
        if !loads && !inst.modifiers.may_change_roles() && info.operands.iter().all(|o| o.role == Role::Use) {
            return false;
        }
        let touched = TouchedRegisters::of(inst);
        let meet = |own: &Ranges, set: &RegisterSet| {
            own.as_slice().iter().any(|&range| words(range).any(|(word, bits)| set[word] & bits != 0))
        };
        meet(&touched.defs, &self.uses) || meet(&touched.uses, &self.defs)
    }

    /// Goes on with `inst`, which may end the run or begin another.
    pub(super) fn pass(&mut self, inst: &Inst) {
        let kind = RunKind::of(inst.op.info());
        if kind != self.kind {
            *self = MemoryRun { kind, ..MemoryRun::default() };
        }
        if kind != RunKind::None {
            self.add(inst);
        }
    }

    fn add(&mut self, inst: &Inst) {
        let touched = TouchedRegisters::of(inst);
        for (set, ranges) in [(&mut self.defs, &touched.defs), (&mut self.uses, &touched.uses)] {
            for &range in ranges.as_slice() {
                words(range).for_each(|(word, bits)| set[word] |= bits);
            }
        }
    }

    /// Merges runs that reach a block on several paths; true if that added something.
    pub(super) fn join(&mut self, other: &MemoryRun) -> bool {
        let before = *self;
        if other.kind != RunKind::None {
            // At most one path falls through, and the branch of any other has ended its run, so two kinds
            // never meet.
            self.kind = other.kind;
            for (set, more) in [(&mut self.defs, &other.defs), (&mut self.uses, &other.uses)] {
                set.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
            }
        }
        *self != before
    }
}
