//! Follows what is in flight along every path: two queues of memory instructions, shortened by `s_waitcnt` and by
//! nothing else. No register that an instruction in flight will write may be touched.

use std::collections::BTreeSet;

use super::Fault;
use crate::codegen::isa::{Counter, Inst, Meaning, Unit, WaitCounts};
use crate::codegen::machine::access::Touched;
use crate::codegen::machine::body::Body;
use crate::codegen::machine::waits::BARRIER_WITHOUT_WAITS;

/// Instructions in flight, oldest first, by index.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct InFlight {
    vm: Vec<usize>,
    lgkm: Vec<usize>,
}

/// More states than this at one block are not followed.
const MOST_STATES: usize = 500;

/// Checks `after`, the body with waits; `before` says which of its barriers need none.
pub fn check_waits(before: &Body, after: &Body) -> Vec<Fault> {
    let barriers: Vec<bool> = (before.insts.iter().filter(|i| i.inst.op.info().meaning == Meaning::Barrier))
        .map(|i| i.inst.imm != BARRIER_WITHOUT_WAITS)
        .collect();
    let mut seen_barriers = 0;
    let mut hands_over = vec![false; after.insts.len()];
    for (index, i) in after.insts.iter().enumerate() {
        if i.inst.op.info().meaning == Meaning::Barrier {
            hands_over[index] = barriers.get(seen_barriers).copied().unwrap_or(true);
            seen_barriers += 1;
        }
    }
    let mut entries = vec![BTreeSet::new(); after.blocks.len()];
    let mut work = Vec::new();
    if !after.blocks.is_empty() {
        entries[0].insert(InFlight::default());
        work.push((0, InFlight::default()));
    }
    let mut faults = BTreeSet::new();
    while let Some((block, mut state)) = work.pop() {
        let range = after.blocks[block];
        let length = (range.end - range.start) as usize;
        for (index, &hands_over) in hands_over.iter().enumerate().skip(range.start as usize).take(length) {
            step(after, index, hands_over, &mut state, &mut faults);
        }
        for &successor in range.successors.iter().flatten() {
            let states: &mut BTreeSet<InFlight> = &mut entries[successor as usize];
            if states.len() < MOST_STATES && states.insert(state.clone()) {
                work.push((successor as usize, state.clone()));
            }
        }
    }
    faults.into_iter().collect()
}

fn step(body: &Body, index: usize, hands_over: bool, state: &mut InFlight, faults: &mut BTreeSet<Fault>) {
    let inst = &body.insts[index].inst;
    let info = inst.op.info();
    let unit = |of: usize| body.insts[of].inst.op.info().unit;
    if info.meaning == Meaning::Wait {
        let counts = WaitCounts::from_imm(inst.imm);
        let flat = state.vm.iter().any(|&other| unit(other) == Unit::Flat);
        shorten(&mut state.vm, counts.vm.into(), WaitCounts::NONE.vm.into(), !flat);
        let ordered = state.lgkm.iter().all(|&other| unit(other) == Unit::Lds);
        shorten(&mut state.lgkm, counts.lgkm.into(), WaitCounts::NONE.lgkm.into(), ordered);
        return;
    }
    if info.meaning == Meaning::Barrier && hands_over {
        let uses_lds = |&other: &usize| {
            matches!(unit(other), Unit::Lds | Unit::Flat)
                && !matches!(
                    body.insts[other].inst.op.info().meaning,
                    Meaning::LaneSwizzle | Meaning::LanePermute(_)
                )
        };
        let to_lds =
            |&other: &usize| matches!(body.insts[other].inst.op.info().meaning, Meaning::LoadToLds(_));
        if state.lgkm.iter().any(uses_lds) || state.vm.iter().any(to_lds) {
            faults.insert(Fault::new(index, "LDS data is in flight at this barrier"));
        }
    }
    let touched = Touched::of(inst);
    let results = |other: &Inst| Touched::of(other).defs;
    let all =
        state.vm.iter().map(|&other| (other, true)).chain(state.lgkm.iter().map(|&other| (other, false)));
    for (other, vm) in all {
        let in_flight = results(&body.insts[other].inst);
        let same_queue = vm && info.unit == Unit::Vmem && unit(other) == Unit::Vmem;
        if touched.uses.overlaps(&in_flight) || touched.defs.overlaps(&in_flight) && !same_queue {
            let of = body.insts[other].inst;
            faults.insert(Fault::new(
                index,
                format!("`{inst}` touches a register that `{of}` will still write"),
            ));
        }
    }
    if matches!(info.counter, Counter::Vm | Counter::VmAndLgkm) {
        state.vm.push(index);
        // The counter holds 63; the hardware stalls rather than overflow.
        if state.vm.len() > 63 {
            state.vm.remove(0);
        }
    }
    if matches!(info.counter, Counter::Lgkm | Counter::VmAndLgkm) {
        if state.lgkm.iter().any(|&other| unit(other) != Unit::Lds) {
            state.lgkm.retain(|&other| other != index);
        }
        state.lgkm.push(index);
        if state.lgkm.len() > 15 && state.lgkm.iter().all(|&other| unit(other) == Unit::Lds) {
            state.lgkm.remove(0);
        }
    }
}

/// What a wait for `count` leaves of a queue; `none` is the count that waits for nothing.
fn shorten(queue: &mut Vec<usize>, count: usize, none: usize, ordered: bool) {
    if count == 0 {
        queue.clear();
    } else if count < none && ordered && queue.len() > count {
        queue.drain(..queue.len() - count);
    }
}
