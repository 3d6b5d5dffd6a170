//! The caches between a compute unit and memory, as far as waves need instructions to see each other's
//! accesses (LLVM, "User Guide for AMDGPU Backend", sections "Memory Model GFX90A" and "Memory Model GFX942",
//! which also holds for gfx950).
//!
//! Every compute unit has a first-level cache that stores go through; it keeps the order of its waves. Every
//! die has an L2. Up to gfx90a a device is one die, so what has reached L2 is visible to every wave that
//! bypasses its own first-level cache. From gfx942 on a device has several dies, and workgroups may be on any
//! of them.

use crate::codegen::isa::{Arch, Effect, Generation, Inst, Meaning, Opcode};

/// The waves for which an instruction makes data visible or from which it sees data. The simulated device is
/// the only agent, so system scope is no wider than agent scope.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SyncScope {
    /// The wave: the access has no role in the memory model.
    Wave,
    /// Waves of the workgroup.
    Workgroup,
    /// All waves of the device.
    Agent,
}

/// The caches of a launch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct CacheModel {
    /// Workgroups may be on different dies with an L2 each: stores have to be written back, and instructions
    /// that write back say how far.
    ///
    /// Any two workgroups count as if they were on different dies. LLVM's section "Memory Model GFX942" says
    /// that an agent may consist of groups of compute units with a separate L2 each, and its code sequences
    /// make no use of where a workgroup runs: agent scope takes `buffer_wbl2 sc1` and `buffer_inv sc1`, and
    /// workgroup scope is for waves of one workgroup. A kernel cannot choose its die, so less than agent
    /// scope between two workgroups works only by chance.
    pub has_several_l2: bool,
    /// Waves of a workgroup may be on different compute units (`tg_split`).
    pub is_split: bool,
}

impl CacheModel {
    /// The caches of a chip, and of a kernel in tg_split mode or not.
    pub(super) fn new(arch: Arch, is_split: bool) -> CacheModel {
        CacheModel { has_several_l2: arch.generation() >= Generation::Cdna3, is_split }
    }
}

/// The scope of an access to device memory. From gfx942 on loads and stores have it in sc1 and sc0 (none:
/// wave, sc0: workgroup, sc1: agent, both: system); before that glc lets an access bypass the first-level
/// cache. Atomics always do; there sc0 asks for the former value.
///
/// On gfx90a and before, a load with glc counts as an atomic load of agent scope, because that is all that
/// LLVM makes of one (section "Memory Model GFX90A", `load atomic monotonic`, agent:
/// `buffer/global/flat_load` with glc): machine code does not tell it from a load that only bypasses the
/// cache. It may read a flag, and no more: to see what the flag stands for, the wave also needs `s_waitcnt
/// vmcnt(0)` and `buffer_wbinvl1_vol` (`load atomic acquire`, agent). An atomic store has no bits there, so
/// it is one side's bits that count.
pub(super) fn scope(inst: &Inst, arch: Arch) -> SyncScope {
    if inst.op.info().meaning.effect() == Effect::Atomic {
        return SyncScope::Agent;
    }
    match (inst.modifiers.has_sc0(), inst.modifiers.has_sc1()) {
        (false, false) => SyncScope::Wave,
        (true, false) if arch.has_scope_bits() => SyncScope::Workgroup,
        _ => SyncScope::Agent,
    }
}

/// The scope of an access of the scalar unit. Its cache is not coherent with anything; glc lets an access go
/// to L2, as flags of AMD's own split products do on chips with several (Vega ISA guide, "Scalar Memory
/// Operations": a store with glc is written through, a load with glc misses).
pub(super) fn scalar_scope(inst: &Inst) -> SyncScope {
    if inst.modifiers.has_sc0() { SyncScope::Agent } else { SyncScope::Wave }
}

/// Which caches an instruction invalidates for its wave. `buffer_inv` encodes it as loads do; `buffer_invl2`
/// leaves the first level alone.
pub(super) fn invalidates(inst: &Inst, arch: Arch) -> SyncScope {
    match inst.op.info().meaning {
        Meaning::CacheInvalidate if arch.has_scope_bits() => scope(inst, arch),
        Meaning::CacheInvalidate if inst.op != Opcode::BufferInvl2 => SyncScope::Agent,
        _ => SyncScope::Wave,
    }
}

/// True if an instruction writes the L2 of its die back to where other dies look: `buffer_wbl2` does nothing
/// without sc1 (CDNA3 ISA guide, section 9.1.10).
pub(super) fn writes_back(inst: &Inst) -> bool {
    inst.op.info().meaning == Meaning::CacheWriteBack && inst.modifiers.has_sc1()
}
