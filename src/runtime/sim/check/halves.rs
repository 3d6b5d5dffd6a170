//! Loads into the two halves of one register. Chips with SRAM ECC, which from CDNA2 on all have, write the
//! whole register: the second load clears what the first one has brought (LLVM,
//! `GCNSubtarget::d16PreservesUnusedBits`).

use crate::codegen::isa::{Generation, Half, Inst, Meaning, MemoryData};
use crate::codegen::rules::InstructionView;

use super::super::program::Program;
use super::super::register_bits::RegisterBits;
use super::facts::InstructionFacts;

/// How far apart the two loads are looked for.
const FARTHEST: usize = 256;

/// The half of a register that an instruction loads.
fn loaded_half(inst: &Inst) -> Option<Half> {
    use MemoryData::*;
    match inst.op.info().meaning {
        Meaning::Load(ByteLow | SignedByteLow | ShortLow) => Some(Half::Low),
        Meaning::Load(ByteHigh | SignedByteHigh | ShortHigh) | Meaning::LoadFormatHigh => Some(Half::High),
        _ => None,
    }
}

/// True if what follows the instruction in the code need not follow it when it is executed.
fn leads_elsewhere(facts: &InstructionFacts) -> bool {
    facts.inst.as_ref().is_none_or(|inst| {
        let meaning = inst.op.info().meaning;
        let ends = matches!(meaning, Meaning::Branch(_) | Meaning::EndProgram | Meaning::EndProgramSaved);
        ends || InstructionView::new(inst, false).is_border()
    })
}

/// Marks the loads of a program that clear a half of their register which has been loaded straight before: no
/// other instruction in between touches the register, and control does not come from elsewhere.
pub(super) fn mark(facts: &mut [InstructionFacts], program: &Program) {
    if program.arch.generation() < Generation::Cdna2 {
        return;
    }
    let half = |facts: &InstructionFacts| facts.inst.as_ref().and_then(loaded_half);
    if !facts.iter().any(|facts| half(facts).is_some()) {
        return;
    }
    let mut is_target = vec![false; facts.len()];
    for step in &program.steps {
        is_target.get_mut(step.target as usize).into_iter().for_each(|target| *target = true);
    }
    for step in 0..facts.len() {
        let Some(own) = half(&facts[step]) else { continue };
        let register: RegisterBits = facts[step].uses.written;
        let mut before = (step.saturating_sub(FARTHEST)..step)
            .rev()
            .take_while(|&earlier| !is_target[earlier + 1] && !leads_elsewhere(&facts[earlier]));
        let touching = before.find(|&earlier| facts[earlier].uses.touched.meet(&register, &register)[0]);
        let loads_other = |earlier: &usize| {
            let earlier = &facts[*earlier];
            earlier.uses.written == register && half(earlier).is_some_and(|other| other != own)
        };
        facts[step].clears = touching.filter(loads_other).map(|earlier| earlier as u32);
    }
}
