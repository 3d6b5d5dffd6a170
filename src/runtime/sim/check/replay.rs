//! Runs of memory instructions that a replay after a page fault would execute wrongly; where the object says
//! that pages may fault (XNACK is on), and where it does not say, as far as compilers see to it then.
//!
//! A run is what stands side by side in the code and is executed in one go, so which instructions may not be
//! in one run with which is found before the launch, and a wave only has to know where it came in.

use crate::codegen::isa::Unit;
use crate::codegen::rules::{InstructionView, overwrites_own_base};
use crate::codegen::target::FeatureSetting;

use super::super::register_bits::{RegisterBits, insert, meet};
use super::checker::{CheckWorker, WaveStep};
use super::facts::InstructionFacts;
use super::finding::FindingKind;
use super::found::Raw;

/// The longest run that is checked.
const LONGEST: usize = 64;

/// How far LLVM looks back (GCNHazardRecognizer, `MaxLookAhead` of chips without matrix instructions).
const GUARDED: usize = 5;

/// A memory instruction in a run.
struct InRun {
    step: usize,
    reads: RegisterBits,
}

/// Marks every instruction of a program with those that must not be in one run with it.
///
/// An object that does not say may run where pages fault as well. LLVM parts its runs for that, from their
/// first load on and as far back as it looks (GCNHazardRecognizer, `checkSoftClauseHazards`), but lets a
/// scalar load overwrite its own base.
pub(super) fn mark(facts: &mut [InstructionFacts], xnack: FeatureSetting) {
    let is_certain = xnack == FeatureSetting::On;
    if !is_certain && xnack != FeatureSetting::Any {
        return;
    }
    let mut run: Vec<InRun> = Vec::new();
    let mut last = None;
    for step in 0..facts.len() {
        let Some(inst) = facts[step].inst.filter(|inst| is_counted(inst.op.info().unit)) else {
            run.clear();
            continue;
        };
        let view = InstructionView::new(&inst, false);
        let is_scalar = view.info.unit == Unit::Smem;
        if last != Some(is_scalar) || run.len() >= LONGEST {
            run.clear();
        }
        last = Some(is_scalar);
        let mut reads = [0; 12];
        view.reads().for_each(|r| insert(&mut reads, r.first, r.end));
        let written = &facts[step].uses.written;
        let changes = view.changes_memory();
        let meets = |earlier: &&InRun| {
            let theirs = &facts[earlier.step].uses.written;
            let loads = theirs.iter().any(|&bits| bits != 0);
            meet(written, &earlier.reads) || meet(theirs, &reads) || loads && changes
        };
        let first = if is_certain { 0 } else { run.len().saturating_sub(GUARDED) };
        let loads = |earlier: &InRun| facts[earlier.step].uses.written.iter().any(|&bits| bits != 0);
        let is_judged = is_certain || run[first..].iter().any(loads);
        let judged = run[first..].iter().filter(|_| is_judged);
        let mut apart: Vec<u32> = judged.filter(meets).map(|earlier| earlier.step as u32).collect();
        if is_certain && overwrites_own_base(&view) {
            apart.push(step as u32);
        }
        facts[step].apart_from = apart.into();
        run.push(InRun { step, reads });
    }
}

fn is_counted(unit: Unit) -> bool {
    matches!(unit, Unit::Smem | Unit::Vmem | Unit::Flat)
}

/// Judges a step of a wave that has executed everything from the step `since` on in one go.
#[cold]
pub(super) fn judge(facts: &InstructionFacts, since: u32, worker: &mut CheckWorker, who: WaveStep) {
    for &earlier in facts.apart_from.iter().filter(|&&earlier| earlier >= since) {
        if earlier == who.step {
            worker.found.add(who.raw(FindingKind::Replay, 0, 0));
        } else {
            worker.found.add(Raw { other: Some(earlier), ..who.raw(FindingKind::Replay, 1, 0) });
        }
    }
}
