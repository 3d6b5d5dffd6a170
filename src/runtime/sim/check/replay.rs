//! Runs of memory instructions that a replay after a page fault would execute wrongly, along the executed
//! path; only where pages may fault (XNACK).

use crate::codegen::isa::Unit;
use crate::codegen::rules::{InstructionView, overwrites_own_base};

use super::checker::{CheckWorker, WaveStep};
use super::facts::{Table, meet};
use super::finding::FindingKind;
use super::found::Raw;

/// The longest run that is checked.
const LONGEST: usize = 64;

/// Judges a step and adds it to the run, which are the steps of memory instructions of one kind that directly
/// precede it.
pub(super) fn judge(table: &Table, run: &mut Vec<u32>, worker: &mut CheckWorker, who: WaveStep) {
    let inst_of = |step: u32| table.facts[step as usize].inst.as_ref();
    let Some(inst) = inst_of(who.step) else { return };
    let view = InstructionView::new(inst, false);
    let scalar = view.info.unit == Unit::Smem;
    if !scalar && !view.is_vmem() {
        run.clear();
        return;
    }
    let same = |step: u32| inst_of(step).is_some_and(|i| (i.op.info().unit == Unit::Smem) == scalar);
    if run.last().is_some_and(|&last| !same(last)) || run.len() >= LONGEST {
        run.clear();
    }
    if overwrites_own_base(&view) {
        worker.found.add(who.raw(FindingKind::Replay, 0, 0));
    }
    let reads = |view: &InstructionView| {
        let mut bits = [0; 12];
        view.reads().for_each(|r| super::facts::insert(&mut bits, r.first, r.end));
        bits
    };
    let (own_reads, own_writes) = (reads(&view), table.facts[who.step as usize].written);
    for &step in run.iter() {
        let Some(earlier) = inst_of(step) else { continue };
        let earlier = InstructionView::new(earlier, false);
        let writes = table.facts[step as usize].written;
        let loads = earlier.writes().next().is_some();
        if meet(&own_writes, &reads(&earlier)) || meet(&writes, &own_reads) || loads && view.changes_memory()
        {
            worker.found.add(Raw { other: Some(step), ..who.raw(FindingKind::Replay, 1, 0) });
        }
    }
    run.push(who.step);
}
