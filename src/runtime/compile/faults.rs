//! Faults that a compilation finds after the passes, in words for the author: too few registers, and what the
//! options deny.

use super::Compilation;
use crate::codegen::machine::RegisterFile;
use crate::codegen::machine::allocate::{AllocationError, RegisterLimits, Spills};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::passes::PassResult;
use crate::passes::options::Deny;
use crate::runtime::report::Report;

const SMALLER_TILES: &str = "use smaller wave tiles: more waves per workgroup or smaller tiles";

/// Bytes of the widest register.
const WIDEST_REGISTER: u32 = 4 * 32;

impl Compilation<'_> {
    /// The fault of registers that are too few.
    pub(super) fn out_of_registers(&self, limits: &RegisterLimits, error: AllocationError) -> Diagnostic {
        let AllocationError::Exhausted { file, available, peak, all, spills } = &error else {
            return match &error {
                AllocationError::LanesOfAccumulator { .. } => Diagnostic::new(Kind::Limit, error.to_string())
                    .help("read the accumulator where all lanes are on, or compile for gfx90a or newer"),
                _ => Diagnostic::bug(error.to_string()),
            };
        };
        let Spills { scratch_bytes, to_lanes, .. } = *spills;
        if *file != RegisterFile::Sgpr
            && scratch_bytes > 0
            && scratch_bytes + WIDEST_REGISTER > limits.scratch_bytes
        {
            let (alive, vectors, scratch) = (all.registers, limits.vectors, limits.scratch_bytes);
            let text = format!("{alive} vector registers are alive at once, and scratch memory is full");
            let note = format!(
                "a wave has {vectors} vector registers here; {} were spilled, each to a place of its own in the \
                 {scratch} bytes of scratch that a work-item can have",
                scratch_bytes / 4
            );
            return Diagnostic::new(Kind::Limit, text)
                .at(self.location(all.source))
                .note(note, None)
                .help(format!("{SMALLER_TILES}; or read values again where they are used"));
        }
        let needed = peak.registers;
        let diagnostic = match self.options.vgpr_limit() {
            Some(limit) if *file != RegisterFile::Sgpr => {
                let text = format!(
                    "one operation alone needs {needed} vector registers, and the options allow {limit}"
                );
                Diagnostic::new(Kind::Denied, text).help(format!("{SMALLER_TILES}; or raise max_vgprs"))
            }
            _ => {
                let text = format!("the kernel needs {needed} {file} at once, and there are {available}");
                Diagnostic::new(Kind::Limit, text).help(SMALLER_TILES)
            }
        };
        let diagnostic = diagnostic
            .at(self.location(peak.source))
            .note("this operation needs them, with everything else spilled", None);
        match to_lanes {
            0 => diagnostic,
            _ if *file == RegisterFile::Sgpr => diagnostic,
            _ => diagnostic.note(
                format!(
                    "{to_lanes} SGPRs, addresses of memories among them, are kept in {} of the VGPRs",
                    to_lanes.div_ceil(self.options.target().wave_size)
                ),
                None,
            ),
        }
    }

    /// The fault of a kernel that spills where the options deny it.
    pub(super) fn deny_spills(&self, limits: &RegisterLimits) -> PassResult {
        let spills = &self.allocation.spills;
        if !self.options.denies(Deny::Spills) || !spills.any() {
            return Ok(());
        }
        let (what, file, available) = match spills.to_scratch {
            0 => (format!("{} SGPRs to VGPRs", spills.to_lanes), RegisterFile::Sgpr, limits.sgprs),
            count => {
                let bytes = spills.scratch_bytes;
                let text = format!("{count} vector registers to {bytes} bytes of scratch per work-item");
                (text, RegisterFile::Vgpr, limits.vectors)
            }
        };
        let peak = self.allocation.peaks[file as usize];
        let help = match self.options.vgpr_limit() {
            Some(_) => format!("{SMALLER_TILES}; or raise max_vgprs"),
            None => SMALLER_TILES.to_owned(),
        };
        Err(Diagnostic::new(Kind::Denied, format!("the kernel spills {what}"))
            .at(self.location(peak.source))
            .note(
                format!("{} {file} are alive at this operation, and there are {available}", peak.registers),
                None,
            )
            .help(help))
    }

    /// The fault of an LDS access with bank conflicts where the options deny them.
    pub(super) fn deny_bank_conflicts(&self, report: &Report) -> PassResult {
        if self.options.denies(Deny::BankConflicts)
            && let Some(access) = report.lds_accesses.iter().find(|a| a.conflict_degree > 1)
        {
            let text = format!(
                "the LDS {} of {} has bank conflicts of degree {}",
                access.kind, access.what, access.conflict_degree
            );
            return Err(Diagnostic::new(Kind::Denied, text)
                .at(access.location.clone())
                .help("choose a loop tile whose rows are a power of two of at least 32 bytes"));
        }
        Ok(())
    }

    /// The fault of a read of a shared memory past LDS where the options deny it.
    pub(super) fn deny_unshared_reads(&self, report: &Report) -> PassResult {
        if self.options.denies(Deny::UnsharedReads)
            && let Some(read) = report.unshared_reads.first()
        {
            let text =
                format!("the read of {} does not go through LDS, and `{}` is shared", read.what, read.memory);
            return Err(Diagnostic::new(Kind::Denied, text)
                .at(read.location.clone())
                .note(read.why, None)
                .help(
                    "declare the memory as global, or write what lanes share to an LDS buffer and read that",
                ));
        }
        Ok(())
    }

    /// The fault of a mapped access in several instructions where the options deny it.
    pub(super) fn deny_split_accesses(&self, report: &Report) -> PassResult {
        if self.options.denies(Deny::SplitAccesses)
            && let Some(access) = report.split_accesses.first()
        {
            let (elements, possible) = (access.elements, access.possible);
            let text = format!(
                "an instruction of the {} of {} moves {elements} of {possible} elements",
                access.kind, access.what
            );
            return Err(Diagnostic::new(Kind::Denied, text)
                .at(access.location.clone())
                .note(access.why, None)
                .help("choose sizes and tiles that the divisors of its coordinates divide, or keep the innermost dimension whole"));
        }
        Ok(())
    }
}
