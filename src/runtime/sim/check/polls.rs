//! Loops that wait: a load whose address is the same on every trip of a loop that stores nothing looks for
//! what another wave stores, and so does an atomic whose data are the same as well.
//!
//! Where machine code has no bits for the scope of a workgroup (LDS, and memory before gfx942), nothing else
//! tells such a flag from data: LLVM makes plain loads and stores of atomic ones.

use crate::codegen::isa::{Effect, Field, Format, Inst, Meaning, Operand, Unit};
use crate::codegen::rules::EXEC;

use super::super::program::{NOWHERE, Program};
use super::super::register_bits::{RegisterBits, insert, meet};
use super::facts::{InstructionFacts, Treatment};

/// Steps of the longest loop that is looked at: without optimisation a loop that waits has a hundred.
const LONGEST: usize = 192;

/// Steps in front of a loop in which its first access may stand: LLVM looks once before it begins to wait.
const BEFORE: usize = 24;

/// Marks all accesses of a program that wait with the steps of their loop.
pub(super) fn mark(facts: &mut [InstructionFacts], program: &Program) {
    for (last, step) in program.steps.iter().enumerate() {
        let first = step.target as usize;
        if step.target != NOWHERE && first <= last && last - first < LONGEST && last < facts.len() {
            for index in waiting(&facts[first..=last]) {
                let end = last as u32 + 1;
                facts[first + index].sync.polls = Some(first as u32..end);
                if let Some(before) = before_the_loop(facts, first, first + index) {
                    facts[before].sync.polls = Some(before as u32..end);
                }
            }
        }
    }
}

/// The step in front of the loop at `first` that makes the same access as the one at `access`, which waits.
fn before_the_loop(facts: &[InstructionFacts], first: usize, access: usize) -> Option<usize> {
    let sources = sources(&facts[access]);
    for at in (first.saturating_sub(BEFORE)..first).rev() {
        let here = &facts[at];
        if here.inst.is_some() && here.inst == facts[access].inst {
            return Some(at);
        }
        let stores = here.inst.as_ref().is_some_and(|inst| inst.op.info().may_store());
        if ends(here.kind) || stores || meet(&sources, &here.uses.written) {
            return None;
        }
    }
    None
}

/// Waiting does not go on beyond it.
fn ends(kind: Treatment) -> bool {
    matches!(kind, Treatment::Barrier | Treatment::GridBarrier | Treatment::End | Treatment::Undecodable)
}

/// The registers that an access reads. Which lanes it is for does not count: the mask says who waits still.
fn sources(facts: &InstructionFacts) -> RegisterBits {
    let mut read: RegisterBits = [0; 12];
    let counts = |first| first != EXEC && first != EXEC + 1;
    for register in facts.uses.all.iter().filter(|r| r.is_read && counts(r.first)) {
        insert(&mut read, register.first, register.end);
    }
    read
}

/// The steps of a loop that wait.
fn waiting(body: &[InstructionFacts]) -> Vec<usize> {
    if body.iter().any(|facts| ends(facts.kind)) {
        return Vec::new();
    }
    let insts = || body.iter().filter_map(|facts| facts.inst.as_ref());
    let slots: Vec<PrivatePlace> =
        insts().filter(|inst| inst.op.info().may_store()).filter_map(private_place).collect();
    // Whether a flat store goes to private memory is seen when it executes.
    let stores = |inst: &Inst| {
        let info = inst.op.info();
        let plain = info.may_store() && info.meaning.effect() != Effect::Atomic;
        plain && info.format != Format::Flat && private_place(inst).is_none()
    };
    if insts().any(stores) {
        return Vec::new();
    }
    // What is written in the loop may be anything at its head.
    let mut varies: RegisterBits = [0; 12];
    for facts in body {
        varies.iter_mut().zip(&facts.uses.written).for_each(|(all, written)| *all |= written);
    }
    let mut found = Vec::new();
    for (index, facts) in body.iter().enumerate() {
        let is_same = !meet(&sources(facts), &varies);
        let Some(inst) = &facts.inst else { continue };
        let info = inst.op.info();
        let slot = private_place(inst);
        let is_memory = matches!(info.format, Format::Global | Format::GlobalRtn);
        let is_shared = matches!(info.unit, Unit::Lds | Unit::Flat) || is_memory;
        let returns = matches!(info.meaning, Meaning::AtomicReturn(..));
        if is_shared && slot.is_none() && is_same && (info.may_load() && !info.may_store() || returns) {
            found.push(index);
        }
        let loads = info.may_load() && info.unit != Unit::Smem;
        let stays = is_same && (!loads || slot.is_some_and(|slot| !slots.contains(&slot)));
        for (all, written) in varies.iter_mut().zip(&facts.uses.written) {
            *all = if stays { *all & !written } else { *all | written };
        }
    }
    found
}

/// A place in private memory as far as code shows it: the registers and the offset of an access without an
/// address of its own.
pub(super) type PrivatePlace = ([Option<Operand>; 2], u32);

/// The place that an instruction accesses, if it may be one in private memory.
pub(super) fn private_place(inst: &Inst) -> Option<PrivatePlace> {
    let info = inst.op.info();
    let operand = |field| {
        let at = info.operands.iter().position(|spec| spec.field == field)?;
        Some(inst.operands[at]).filter(|operand| !operand.is_none())
    };
    let is_private = info.format.is_mubuf() || matches!(info.format, Format::Scratch | Format::ScratchLds);
    let has_address = operand(Field::Addr).is_some();
    (is_private && !has_address).then(|| ([operand(Field::Base), operand(Field::Offset)], inst.imm))
}
