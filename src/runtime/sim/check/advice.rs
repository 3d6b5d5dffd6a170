//! Advice for authors of kernels rather than instructions: what a kernel language can do about a finding.
//! Waits, barriers and registers are its compiler's work, and so is a mistake in them.

use super::finding::{AdviceReader, Finding, FindingKind, Memory};

const REPORT: &str = "this is a mistake of the compiler, not of the kernel: report it with the kernel, the options and the seed";

/// Advice for the author of a kernel; `None` if the general advice holds for such authors, too.
fn for_kernels(kind: &FindingKind) -> Option<&'static str> {
    use FindingKind::*;
    match kind {
        UninitialisedMemory { memory: Memory::Device, .. } => {
            Some("write the buffer from the host before the launch, or in the kernel before it is read")
        }
        UninitialisedMemory { .. } => Some("write all of what is allocated before it is read"),
        Endless { .. } => Some(
            "launch with smaller sizes, or raise the budget of instructions (`--budget` in the program); a limit of time (`--timeout`) stops such waves, too",
        ),
        RepeatedStore { .. } => {
            Some("nothing has to be done: workgroups that share a memory all store the same to it")
        }
        MissingWait { .. }
        | UninitialisedRegister { .. }
        | Race { .. }
        | OutOfBounds { .. }
        | Freed { .. }
        | LeavesBuffer { .. }
        | WideDescriptor { .. }
        | Misaligned { .. }
        | Hazard { .. }
        | ToleratedHazard { .. }
        | StaleVccz
        | Erratum(_)
        | ClearedHalf
        | Replay
        | DivergentBarrier { .. }
        | EmptyBarrier
        | RegisterBeyondAllocation { .. }
        | PastEnd
        | IllegalInstruction
        | WaitBeforeBarrier
        | NoProgress
        | UnmetBarrier
        | Trap { .. } => Some(REPORT),
        _ => None,
    }
}

impl Finding {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let advice = match self.reader {
            AdviceReader::Kernels => for_kernels(&self.kind),
            AdviceReader::Instructions => None,
        };
        advice.map_or_else(|| self.for_instructions(), str::to_owned)
    }
}
