//! Follows what is in flight along every path: queues of memory instructions, shortened by `s_waitcnt` alone.
//! No register that an instruction in flight will write may be touched, and no access to memory may run ahead
//! of one that it depends on.

use std::collections::BTreeSet;

use super::MachineFault;
use crate::codegen::isa::{Arch, Counter, Generation, Meaning, Unit, WaitCounts};
use crate::codegen::machine::body::{BlockId, InstId, MachineBody};
use crate::codegen::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads};
use crate::codegen::rules::{EXEC, InstructionView, UsedRegisters};
use crate::index::Neighbours;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

/// Instructions in flight, oldest first, by index.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct InFlight {
    vm: Vec<InstId>,
    lgkm: Vec<InstId>,
    /// Global data share instructions and exports whose registers may not have been read yet.
    exp: Vec<InstId>,
    indexing: bool,
    scalar_stores: bool,
}

/// Beyond this many states, the paths through a block are not followed.
const MOST_STATES: usize = 500;

struct WaitChecker<'a> {
    /// Each instruction without and with indexed VGPRs.
    views: PrimaryMap<InstId, [InstructionView<'a>; 2]>,
    /// Barriers that hand over LDS data.
    hands_over: SecondaryMap<InstId, bool>,
    arch: Arch,
    lds_loads: LdsLoads,
    faults: BTreeSet<MachineFault>,
}

/// Checks `after`, the body with waits; `before` says which of its barriers need none.
pub fn check_waits(
    before: &MachineBody,
    after: &MachineBody,
    arch: Arch,
    lds_loads: LdsLoads,
) -> Vec<MachineFault> {
    let barriers: Vec<bool> =
        (before.insts.values().filter(|i| i.inst.op.info().meaning == Meaning::Barrier))
            .map(|i| i.inst.imm != BARRIER_WITHOUT_WAITS)
            .collect();
    let mut seen_barriers = 0;
    let mut hands_over = SecondaryMap::new();
    hands_over.resize(after.insts.len());
    for (index, i) in after.insts.iter() {
        if i.inst.op.info().meaning == Meaning::Barrier {
            hands_over[index] = barriers.get(seen_barriers).copied().unwrap_or(true);
            seen_barriers += 1;
        }
    }
    let views =
        after.insts.values().map(|i| [false, true].map(|indexed| InstructionView::new(&i.inst, indexed)));
    let mut checker =
        WaitChecker { views: views.collect(), hands_over, arch, lds_loads, faults: BTreeSet::new() };
    let mut entries = SecondaryMap::<BlockId, BTreeSet<InFlight>>::new();
    entries.resize(after.blocks.len());
    let mut work = Vec::new();
    if !after.blocks.is_empty() {
        entries[BlockId::new(0)].insert(InFlight::default());
        work.push((BlockId::new(0), InFlight::default()));
    }
    while let Some((block, mut state)) = work.pop() {
        let range = after.blocks[block];
        for index in range.insts() {
            checker.step(index, range.end, &mut state);
        }
        for &successor in range.successors.iter().flatten() {
            let states = &mut entries[successor];
            if states.len() < MOST_STATES && states.insert(state.clone()) {
                work.push((successor, state.clone()));
            }
        }
    }
    checker.faults.into_iter().collect()
}

/// Kinds of instructions that do not complete in order with each other; those of one ordered kind do among
/// themselves.
#[derive(PartialEq, Eq)]
enum QueueKind {
    Lds,
    Gds,
    Message,
    Vector,
    Unordered,
}

fn kind(view: &InstructionView) -> QueueKind {
    match view.info.unit {
        Unit::Vmem => QueueKind::Vector,
        Unit::Lds if view.is_gds() => QueueKind::Gds,
        Unit::Lds => QueueKind::Lds,
        Unit::Smem | Unit::Flat => QueueKind::Unordered,
        _ => QueueKind::Message,
    }
}

fn uses_lds(view: &InstructionView) -> bool {
    let lanes_only =
        matches!(view.info.meaning, Meaning::LaneSwizzle | Meaning::LanePermute(_) | Meaning::LdsNop);
    view.info.unit == Unit::Flat || view.info.unit == Unit::Lds && !lanes_only && !view.is_gds()
}

impl WaitChecker<'_> {
    fn step(&mut self, index: InstId, block_end: InstId, state: &mut InFlight) {
        let view = &self.views[index][usize::from(state.indexing)];
        let meaning = view.info.meaning;
        if meaning == Meaning::Wait {
            self.wait(WaitCounts::from_imm(view.inst.imm), state);
            return;
        }
        let mut faults = Vec::new();
        let mut fault = |condition: bool, message: &str| {
            if condition {
                faults.push(MachineFault::new(index, format!("{message} at `{}`", view.inst)));
            }
        };
        let views = &self.views;
        let in_vm = |is: fn(&InstructionView) -> bool| state.vm.iter().any(|&other| is(&views[other][0]));
        let in_lgkm = |is: fn(&InstructionView) -> bool| state.lgkm.iter().any(|&other| is(&views[other][0]));
        let is_writeback = |view: &InstructionView| view.info.meaning == Meaning::CacheWriteBack;
        let anything = !state.vm.is_empty() || !state.lgkm.is_empty();

        if meaning == Meaning::Barrier {
            let lds = in_lgkm(uses_lds) || in_vm(|other| other.is_lds_dma());
            fault(self.hands_over[index] && lds, "LDS data is in flight");
            fault(self.arch.generation() < Generation::Cdna2 && anything, "something is in flight");
            fault(in_vm(is_writeback), "a writeback is in flight");
        }
        fault(view.is_border() && (anything || !state.exp.is_empty()), "something is in flight");
        let stores = (view.is_vmem() || view.info.unit == Unit::Smem) && view.changes_memory();
        fault((stores || meaning == Meaning::SendMessage) && in_vm(is_writeback), "a writeback is in flight");
        let loads = |view: &InstructionView| view.writes().next().is_some();
        fault(meaning == Meaning::CacheInvalidate && in_vm(loads), "a load is in flight");
        if self.lds_loads == LdsLoads::Anywhere {
            fault(view.is_lds_dma() && in_lgkm(uses_lds), "an LDS instruction is in flight");
            fault(uses_lds(view) && in_vm(|other| other.is_lds_dma()), "a load to LDS is in flight");
        }
        fault(meaning == Meaning::EndProgram && state.scalar_stores, "scalar stores are in the cache");
        if matches!(meaning, Meaning::GlobalWaveSync | Meaning::GlobalBarrier) {
            let next = (index.next() < block_end).then(|| self.views[index.next()][0].inst);
            let waits = next.is_some_and(|n| n.op.info().meaning == Meaning::Wait && n.imm & 0xcf7f == 0);
            fault(!waits, "no full wait follows");
        }
        self.registers_in_flight(view, state, &mut fault);
        self.faults.extend(faults);
        self.issue(index, state);
    }

    /// Registers that instructions under way still write or read.
    fn registers_in_flight(
        &self,
        view: &InstructionView,
        state: &InFlight,
        fault: &mut impl FnMut(bool, &str),
    ) {
        let all = state.vm.iter().map(|&other| (other, true));
        for (other, vm) in all.chain(state.lgkm.iter().map(|&other| (other, false))) {
            let earlier = &self.views[other][0];
            let same_queue = vm && view.info.unit == Unit::Vmem && earlier.info.unit == Unit::Vmem;
            let clash = |written: &UsedRegisters| {
                view.registers.iter().any(|r| r.meets(written) && (r.is_read || !same_queue))
            };
            if earlier.writes().any(clash) {
                let message = format!("a register that `{}` will still write", earlier.inst);
                fault(true, &message);
            }
        }
        for &other in &state.exp {
            let mut read = self.views[other][0].reads().filter(|r| r.is_vector() || r.has(EXEC));
            let overwritten = read.any(|r| view.writes().any(|w| w.meets(r)));
            fault(overwritten, "a register that the global data share or an export may still read");
        }
    }

    fn issue(&self, index: InstId, state: &mut InFlight) {
        let view = &self.views[index][0];
        let counter = view.info.counter;
        if matches!(counter, Counter::Vm | Counter::VmAndLgkm) {
            state.vm.push(index);
            // The counter holds 63; the hardware stalls rather than overflow.
            let ordered = state.vm.iter().all(|&other| kind(&self.views[other][0]) == QueueKind::Vector);
            if state.vm.len() > 63 && ordered {
                state.vm.remove(0);
            }
            // More of the unordered ones add no information.
            if !ordered {
                state.vm.sort_unstable();
                state.vm.dedup();
            }
        }
        if matches!(counter, Counter::Lgkm | Counter::VmAndLgkm) && view.info.meaning != Meaning::LdsNop {
            state.lgkm.push(index);
            if self.in_order(&state.lgkm) {
                if state.lgkm.len() > 15 {
                    state.lgkm.remove(0);
                }
            } else {
                state.lgkm.sort_unstable();
                state.lgkm.dedup();
            }
            if view.is_gds() && !state.exp.contains(&index) {
                state.exp.push(index);
            }
            let stores = view.info.unit == Unit::Smem && view.changes_memory();
            state.scalar_stores |= stores;
            state.scalar_stores &= view.info.meaning != Meaning::ScalarCacheWriteBack;
        }
        match view.info.meaning {
            Meaning::Export if !state.exp.contains(&index) => state.exp.push(index),
            Meaning::SetGprIndexOn => state.indexing = true,
            Meaning::SetGprIndexOff => state.indexing = false,
            Meaning::SetHardwareRegister => {
                let (register, bits) = view.hardware_register();
                state.indexing |= register == 1 && bits.contains(&27);
            }
            _ => {}
        }
    }

    /// True if the instructions of a queue come back in the order in which they were issued.
    fn in_order(&self, queue: &[InstId]) -> bool {
        let kinds = queue.iter().map(|&other| kind(&self.views[other][0]));
        kinds.clone().all(|k| k != QueueKind::Unordered)
            && kinds.clone().zip(kinds.skip(1)).all(|(a, b)| a == b)
    }

    fn wait(&self, counts: WaitCounts, state: &mut InFlight) {
        let vm_ordered = self.in_order(&state.vm);
        shorten(&mut state.vm, counts.vm.into(), WaitCounts::NONE.vm.into(), vm_ordered);
        let lgkm_ordered = self.in_order(&state.lgkm);
        shorten(&mut state.lgkm, counts.lgkm.into(), WaitCounts::NONE.lgkm.into(), lgkm_ordered);
        if counts.exp == 0 {
            state.exp.clear();
        }
    }
}

/// What a wait for `count` leaves of a queue; `none` is the count that waits for nothing.
fn shorten(queue: &mut Vec<InstId>, count: usize, none: usize, ordered: bool) {
    if count == 0 {
        queue.clear();
    } else if count < none && ordered && queue.len() > count {
        queue.drain(..queue.len() - count);
    }
}
