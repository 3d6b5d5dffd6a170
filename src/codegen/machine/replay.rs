//! Runs of memory instructions that must survive a replay: with XNACK on, a run of consecutive scalar or of
//! consecutive vector memory instructions is issued again after a page fault, so none may read what the run
//! has overwritten, and loads and stores may not mix (LLVM GCNHazardRecognizer, `checkSoftClauseHazards`).
//! One instruction in between breaks a run.

use super::access::{TouchedRegisters, writes_memory};
use super::register_set::TouchedSet;
use crate::codegen::isa::{Inst, OpInfo, Role, Unit};

/// A run of scalar or of vector memory instructions.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub(super) struct MemoryRun {
    kind: RunKind,
    touched: TouchedSet,
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

impl MemoryRun {
    /// True if `inst` may not continue the run.
    pub(super) fn breaks_at(&self, inst: &Inst) -> bool {
        let info = inst.op.info();
        if self.kind == RunKind::None || RunKind::of(info) != self.kind {
            return false;
        }
        let loads = self.touched.writes();
        if writes_memory(info) && loads {
            return true;
        }
        // A store after stores.
        if !loads && !inst.modifiers.may_change_roles() && info.operands.iter().all(|o| o.role == Role::Use) {
            return false;
        }
        self.touched.is_read_or_overwritten(&TouchedRegisters::of(inst))
    }

    /// Goes on with `inst`, which may end the run or begin another.
    pub(super) fn pass(&mut self, inst: &Inst) {
        let kind = RunKind::of(inst.op.info());
        if kind != self.kind {
            *self = MemoryRun { kind, ..MemoryRun::default() };
        }
        if kind != RunKind::None {
            self.touched.add(&TouchedRegisters::of(inst));
        }
    }

    /// Merges runs that reach a block on several paths; true if that added something.
    pub(super) fn join(&mut self, other: &MemoryRun) -> bool {
        let before = *self;
        if other.kind != RunKind::None {
            // At most one path falls through, and the branch of any other has ended its run, so two kinds
            // never meet.
            self.kind = other.kind;
            self.touched.join(&other.touched);
        }
        *self != before
    }
}
