//! Advice for authors of kernels rather than instructions: what a kernel language can do about a finding.
//! Waits, barriers and registers are its compiler's work, and so is a mistake in them.

use super::finding::{FindingKind, Memory};

/// Who the advice of a finding is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Reader {
    /// Authors of instructions: in assembler text, or in a language that leaves memory and its order to them.
    #[default]
    Instructions,
    /// Authors of kernels whose compiler places waits, barriers and registers.
    Kernels,
}

const REPORT: &str = "this is a mistake of the compiler, not of the kernel: report it with the kernel, the options and the seed";

/// Advice for the author of a kernel; `None` if the general advice holds for such authors, too.
pub(super) fn for_kernels(kind: &FindingKind) -> Option<&'static str> {
    use FindingKind::*;
    match kind {
        UninitialisedMemory { memory: Memory::Device, .. } => {
            Some("write the buffer from the host before the launch, or in the kernel before it is read")
        }
        UninitialisedMemory { .. } => Some("write all of what is allocated before it is read"),
        Endless { .. } => Some("launch with smaller sizes, or raise the budget"),
        RepeatedStore { .. } => {
            Some("nothing has to be done: workgroups that share a memory all store the same to it")
        }
        MissingWait { .. }
        | UninitialisedRegister { .. }
        | Race { .. }
        | OutOfBounds { .. }
        | LeavesBuffer { .. }
        | WideDescriptor { .. }
        | Misaligned { .. }
        | Hazard { .. }
        | StaleVccz
        | Replay
        | DivergentBarrier { .. }
        | RegisterBeyondAllocation { .. }
        | PastEnd
        | IllegalInstruction
        | WaitBeforeBarrier
        | NoProgress
        | Trap { .. } => Some(REPORT),
        _ => None,
    }
}
