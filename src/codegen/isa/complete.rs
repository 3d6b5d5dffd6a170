//! The columns of a row that follow from its other columns.

use super::allowed;
use super::meaning::Meaning;
use super::spec::{Counter, Format, Implicit, OpInfo, Unit};

impl OpInfo {
    /// Completes a row with what follows from the format, so that not every line has to say it.
    pub(super) const fn complete(mut self) -> OpInfo {
        // MFMA ignores EXEC, and so do the instructions that name their lane (CDNA3 ISA guide, "EXEC mask").
        let masked = match self.unit {
            Unit::Valu | Unit::Trans => !matches!(self.meaning, Meaning::ReadLane | Meaning::WriteLane),
            Unit::Lds | Unit::Vmem | Unit::Flat => !matches!(self.format, Format::MubufBare),
            _ => false,
        };
        if masked {
            self.reads = self.reads.with(Implicit::EXEC);
        }
        self.modifiers = allowed::plain(&self);
        self.dpp_modifiers = allowed::dpp(&self);
        self.sdwa_modifiers = allowed::sdwa(&self);
        self.counter = match self.unit {
            Unit::Smem | Unit::Lds => Counter::Lgkm,
            Unit::Flat => Counter::VmAndLgkm,
            // LLVM's SIInsertWaitcnts: buffer_inv counts nothing, buffer_wbl2 does.
            Unit::Vmem if matches!(self.meaning, Meaning::CacheInvalidate) => Counter::None,
            Unit::Vmem => Counter::Vm,
            Unit::Other if matches!(self.meaning, Meaning::SendMessage) => Counter::Lgkm,
            _ => Counter::None,
        };
        self
    }
}
