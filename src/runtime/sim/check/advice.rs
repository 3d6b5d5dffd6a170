//! What to do about a finding: advice for authors of instructions, and for those of kernels. Waits, barriers
//! and registers are the work of a kernel language's compiler, and so is a mistake in them.

use super::super::error::{RAISE_BUDGET, RAISE_TIMEOUT};
use super::finding::{AdviceReader, Finding, FindingKind, Memory, Unordered};

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

/// Advice for authors of instructions: it names waits, registers and barriers.
fn for_instructions(kind: &FindingKind) -> String {
    use FindingKind::*;
    let advice = match kind {
        MissingWait { counter, at_most, .. } => {
            return format!("put `s_waitcnt {counter}({at_most})` in front of it");
        }
        UninitialisedRegister { register, .. } => {
            return format!("write {register} on every path that leads here");
        }
        Misaligned { alignment, .. } => return format!("align the address to {alignment} bytes"),
        Hazard { needed, present } => {
            let missing = needed - present;
            return format!("put `s_nop {}` or {missing} other instructions between", missing - 1);
        }
        UninitialisedMemory { memory: Memory::Device, .. } => {
            "write the buffer from the host or in the kernel before it is loaded"
        }
        UninitialisedMemory { .. } => "store before the load, on every path and in every lane",
        Race { reason, memory, .. } => against_race(*reason, *memory),
        RepeatedStore { .. } => "let one of them store it, if that is cheaper",
        UnreadStore { .. } => "nothing has to be done, unless somebody was meant to read it",
        OutOfBounds { memory: Memory::Device, .. } => {
            "mask the lanes off, or check the sizes of buffers and grid"
        }
        Freed { .. } => "free the memory after the last kernel that uses it",
        OutOfBounds { memory: Memory::Lds, .. } => {
            "declare as much LDS as the kernel uses (group_segment_fixed_size, dynamic LDS)"
        }
        OutOfBounds { .. } => "declare as much scratch as the kernel uses",
        WideDescriptor { .. } => "end the descriptor where its buffer ends: its size may have wrapped around",
        LeavesBuffer { .. } => "end the descriptor where its buffer ends, or mask the lanes off",
        ToleratedHazard { .. } => {
            "nothing has to be done: kernels that AMD ships, or its compiler makes, have no more"
        }
        StaleVccz => "put `s_mov_b64 vcc, vcc` in front of it",
        ClearedHalf => "load the halves into two registers, and join them with `v_perm_b32` or `v_or_b32`",
        Erratum(erratum) => erratum.advice(),
        Replay => "put `s_nop 0` between the memory instructions, or have the target id say `xnack-`",
        EmptyBarrier => {
            "put `s_cbranch_execz` round the barrier if the wave is not to take part, or let all waves reach the same \
             barriers"
        }
        DivergentBarrier { .. } => "let all lanes of a wave reach the barrier together",
        RegisterBeyondAllocation { .. } => "raise the number of registers in the descriptor",
        PastEnd => "end every path with `s_endpgm`",
        IllegalInstruction => "look at how control came here",
        WaitBeforeBarrier => "put `s_waitcnt vmcnt(0) lgkmcnt(0)` in front of it",
        Endless { .. } => RAISE_BUDGET,
        UnmetBarrier => "let one wave of each workgroup come here, and as many as M0 and the data say",
        NoProgress => "look at the condition of the branch: nothing in the loop changes it",
        TimedOut { .. } => RAISE_TIMEOUT,
        Trap { .. } => "the kernel itself found something wrong",
        Unsupported { .. } => "what this wave does after it is not checked",
    };
    advice.to_owned()
}

/// Advice about a race for authors of instructions.
fn against_race(reason: Unordered, memory: Memory) -> &'static str {
    match (reason, memory) {
        (Unordered::NoBarrier, _) => "put a wait for the first access and `s_barrier` between the two",
        (Unordered::NotWaited, Memory::Lds) => {
            "wait for the first access (lgkmcnt; vmcnt for loads to LDS) in front of the barrier"
        }
        (Unordered::NotWaited, _) => "wait for the first access in front of the barrier",
        (Unordered::OtherWorkgroup, _) => {
            "give the bytes to one workgroup, use atomics, or release and acquire at agent scope"
        }
        (Unordered::NotWrittenBack, _) => {
            "put `buffer_wbl2 sc1` and `s_waitcnt vmcnt(0)` before the access that hands over the data, as workgroups may \
             be on different dies"
        }
        (Unordered::NotInvalidated, _) => {
            "wait for the access that hands over the data and put `buffer_inv` (sc1 between workgroups, sc0 inside one; \
             `buffer_wbinvl1_vol` before CDNA 3) after it"
        }
        (Unordered::NarrowScope, _) => {
            "give both accesses sc1, as sc0 alone means the workgroup and workgroups may be on different dies"
        }
    }
}

impl Finding {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let advice = match self.reader {
            AdviceReader::Kernels => for_kernels(&self.kind),
            AdviceReader::Instructions => None,
        };
        advice.map_or_else(|| for_instructions(&self.kind), str::to_owned)
    }
}
