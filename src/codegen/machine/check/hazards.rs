//! Walks back from every instruction along every path and compares the wait states along the way with what
//! the hazard rules ask for between the two; also looks for errata that should have been repaired, and for
//! runs of memory instructions that a replay would execute wrongly.

use super::MachineFault;
use crate::codegen::isa::{Arch, BranchCondition, Generation, Inst, Meaning, Opcode, Operand, Unit};
use crate::codegen::machine::body::{BlockId, InstId, MachineBody, MachineInst};
use crate::codegen::rules::{
    Between, FARTHEST, InstructionView, MatrixPipe, UsedRegisters, VCC, class, is_acc_move,
    overwrites_own_base, pending, required, required_before_load, shift_amount,
};
use crate::index::Stretches;
use cranelift_entity::{PrimaryMap, SecondaryMap, iter_entity_range};

/// Finds instructions that come too soon after another, and errata that are not repaired.
pub fn check_hazards(body: &MachineBody, arch: Arch) -> Vec<MachineFault> {
    let indexed = flow(body, indexing_after);
    let stale_vccz = flow(body, stale_vccz_after);
    let views: PrimaryMap<InstId, InstructionView> = (body.insts.values().zip(indexed.values()))
        .map(|(i, &indexed)| InstructionView::new(&i.inst, indexed))
        .collect();
    let predecessors = predecessors(body);
    let mut faults = Vec::new();
    let reads_stale = |(index, i): &(InstId, &MachineInst)| stale_vccz[*index] && looks_at_vccz(&i.inst);
    for (index, i) in body.insts.iter().filter(reads_stale) {
        faults.push(MachineFault::new(index, format!("VCCZ is stale at `{}`", i.inst)));
    }
    for (block, data) in body.blocks.iter() {
        for index in data.insts() {
            let predecessors = &predecessors;
            let mut walk = HazardWalk { body, views: &views, arch, predecessors, index, faults: &mut faults };
            let mut best = SecondaryMap::with_default([u32::MAX; 4]);
            best.resize(body.blocks.len());
            walk.back(block, index, 0, Between::default(), &mut best);
        }
    }
    if arch.generation() >= Generation::Cdna2 {
        check_shifts(&views, &mut faults);
    }
    faults.sort();
    faults.dedup();
    faults
}

/// For each block, the blocks that control may come from.
type Predecessors = SecondaryMap<BlockId, Vec<BlockId>>;

fn predecessors(body: &MachineBody) -> Predecessors {
    let mut predecessors = Predecessors::default();
    predecessors.resize(body.blocks.len());
    for (block, data) in body.blocks.iter() {
        for &successor in data.successors.iter().flatten() {
            predecessors[successor].push(block);
        }
    }
    predecessors
}

/// Finds what goes wrong when memory instructions are issued again after a page fault, as they may be with
/// XNACK on.
pub fn check_replay(body: &MachineBody) -> Vec<MachineFault> {
    let views: PrimaryMap<InstId, InstructionView> =
        body.insts.values().map(|i| InstructionView::new(&i.inst, false)).collect();
    let predecessors = predecessors(body);
    let mut faults = Vec::new();
    for (block, data) in body.blocks.iter() {
        for index in data.insts() {
            check_run(body, &views, &predecessors, (block, index), &mut faults);
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// Before each instruction, whether a condition may hold; `after` says what an instruction makes of it.
fn flow(body: &MachineBody, after: fn(&Inst, bool) -> bool) -> SecondaryMap<InstId, bool> {
    let mut at_start = SecondaryMap::<BlockId, bool>::new();
    at_start.resize(body.blocks.len());
    let mut before = SecondaryMap::new();
    before.resize(body.insts.len());
    let mut changed = true;
    while changed {
        changed = false;
        for (block, data) in body.blocks.iter() {
            let mut holds = at_start[block];
            for index in data.insts() {
                before[index] = holds;
                holds = after(&body.insts[index].inst, holds);
            }
            for &successor in data.successors.iter().flatten() {
                changed |= holds && !at_start[successor];
                at_start[successor] |= holds;
            }
        }
    }
    before
}

fn indexing_after(inst: &Inst, before: bool) -> bool {
    match inst.op.info().meaning {
        Meaning::SetGprIndexOn => true,
        Meaning::SetGprIndexOff => false,
        Meaning::SetHardwareRegister => {
            let (register, bits) = InstructionView::new(inst, false).hardware_register();
            before || register == 1 && bits.contains(&27)
        }
        _ => before,
    }
}

fn stale_vccz_after(inst: &Inst, before: bool) -> bool {
    let view = InstructionView::new(inst, false);
    let surely = !matches!(view.info.meaning, Meaning::MoveToRelative(_));
    let half = |r: &UsedRegisters| r.has(VCC) != r.has(VCC + 1);
    let whole = |r: &UsedRegisters| r.has(VCC) && r.has(VCC + 1);
    if view.writes().any(|r| whole(r) && surely) {
        false
    } else {
        before || view.writes().any(|r| half(r) || whole(r))
    }
}

fn looks_at_vccz(inst: &Inst) -> bool {
    use BranchCondition::{VccNotZero, VccZero};
    matches!(inst.op.info().meaning, Meaning::Branch(VccZero | VccNotZero))
        || inst.operands.contains(&Operand::VCCZ)
}

/// The amount of a 64-bit shift must not be in the last VGPR of the last eight.
fn check_shifts(views: &PrimaryMap<InstId, InstructionView>, faults: &mut Vec<MachineFault>) {
    let all = views.values().flat_map(|view| &view.registers).filter(|r| r.is_vgpr());
    let end = all.map(|r| r.end).max().unwrap_or(0);
    for (index, view) in views.iter() {
        let amount = shift_amount(view.inst);
        if amount.is_some_and(|v| v % 8 == 7 && Operand::FIRST_VGPR + v + 1 == end) {
            faults.push(MachineFault::new(index, format!("`{}` shifts by the last VGPR", view.inst)));
        }
    }
}

struct HazardWalk<'a> {
    body: &'a MachineBody,
    views: &'a PrimaryMap<InstId, InstructionView<'a>>,
    arch: Arch,
    predecessors: &'a Predecessors,
    index: InstId,
    faults: &'a mut Vec<MachineFault>,
}

impl HazardWalk<'_> {
    fn back(
        &mut self,
        block: BlockId,
        from: InstId,
        mut states: u32,
        mut between: Between,
        best: &mut SecondaryMap<BlockId, [u32; 4]>,
    ) {
        let then = &self.views[self.index];
        for earlier in iter_entity_range(self.body.blocks[block].start..from).rev() {
            let first = &self.views[earlier];
            if states >= FARTHEST || first.is_border() {
                return;
            }
            let need = if then.is_border() {
                pending(first, self.arch)
            } else {
                required(first, then, between, self.arch).max(required_before_load(first, then, self.arch))
            };
            if need > states {
                let (first, then) = (first.inst, then.inst);
                let message = format!("`{then}` needs {need} wait states after `{first}`, has {states}");
                self.faults.push(MachineFault::new(self.index, message));
            }
            let is_nop = first.inst.op == Opcode::SNop;
            states += if is_nop { (first.inst.imm & 15) + 1 } else { 1 };
            between.dgemm |= class(first, self.arch) == Some(MatrixPipe::D);
            between.acc |= is_acc_move(first);
        }
        if states >= FARTHEST {
            return;
        }
        for &predecessor in &self.predecessors[block] {
            // A shorter way to the end of a block shows everything that a longer one shows with the same
            // instructions in between.
            let best_here = &mut best[predecessor][usize::from(between.dgemm) + 2 * usize::from(between.acc)];
            if states < *best_here {
                *best_here = states;
                let end = self.body.blocks[predecessor].end;
                self.back(predecessor, end, states, between, best);
            }
        }
    }
}

/// Compares an instruction with all of the run of memory instructions before it, which may have begun in a
/// block that falls through to its own.
fn check_run(
    body: &MachineBody,
    views: &PrimaryMap<InstId, InstructionView>,
    predecessors: &Predecessors,
    (block, index): (BlockId, InstId),
    faults: &mut Vec<MachineFault>,
) {
    let view = &views[index];
    if view.info.unit != Unit::Smem && !view.is_vmem() {
        return;
    }
    if overwrites_own_base(view) {
        faults.push(MachineFault::new(index, format!("`{}` overwrites its own base", view.inst)));
    }
    let same_run = |other: &&InstructionView| {
        if view.is_vmem() { other.is_vmem() } else { other.info.unit == Unit::Smem }
    };
    let mut seen = SecondaryMap::<BlockId, bool>::new();
    seen.resize(body.blocks.len());
    let mut work = vec![(block, index)];
    while let Some((block, end)) = work.pop() {
        let start = body.blocks[block].start;
        let mut run = 0;
        for earlier in views.range(start..end).iter().rev().take_while(same_run) {
            run += 1;
            let loads = earlier.writes().next().is_some();
            let meet = |one: &InstructionView, other: &InstructionView| {
                one.writes().any(|w| other.reads().any(|r| r.meets(w)))
            };
            if meet(view, earlier) || meet(earlier, view) || loads && view.changes_memory() {
                let message = format!("`{}` may not be in one run with `{}`", view.inst, earlier.inst);
                faults.push(MachineFault::new(index, message));
            }
        }
        if run == iter_entity_range(start..end).len() {
            for &before in &predecessors[block] {
                if !std::mem::replace(&mut seen[before], true) {
                    work.push((before, body.blocks[before].end));
                }
            }
        }
    }
}
