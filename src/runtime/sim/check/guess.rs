//! Loads that guess: a plain load from an address that a compare-and-swap then uses. If another wave comes
//! between, the swap fails and returns the value, so the access of such a load counts as atomic (LLVM makes
//! plain loads of atomic operations without an instruction, AtomicExpandPass.cpp). Where the address is the
//! same for all lanes it is a scalar load, while the swap has the offset in a vector register.
//!
//! The value has to go to the comparand alone: what is stored or used as an address before the swap has
//! verified it is an ordinary access.

use crate::codegen::isa::{Calc, Element, Field, Inst, Meaning, Operand};
use crate::codegen::rules::EXEC;

use super::super::register_bits::{RegisterBits, insert, meet};
use super::facts::InstructionFacts;
use super::model::SyncScope;
use super::polls::private_place;

/// The most steps between a guess and the instruction that verifies it.
const FARTHEST: usize = 64;

/// Marks all loads of a program that guess.
pub(super) fn mark(facts: &mut [InstructionFacts]) {
    for swap in 0..facts.len() {
        if let Some(load) = guess_of(facts, swap) {
            facts[load].sync.scope = SyncScope::Agent;
            facts[load].sync.is_guess = true;
        }
    }
}

/// The load whose value the step `swap` compares with memory.
fn guess_of(facts: &[InstructionFacts], swap: usize) -> Option<usize> {
    let inst = facts[swap].inst.as_ref()?;
    let element = swapped(inst)?;
    let place = address(inst);
    let mut whole: RegisterBits = [0; 12];
    registers(inst, &[Field::Addr, Field::Base, Field::Offset], &mut whole);
    let mut scalar = ScalarPlace::of(facts, swap, inst, element);
    let mut base: RegisterBits = [0; 12];
    registers(inst, &[Field::Offset], &mut base);
    let mut same = true;
    for load in (swap.saturating_sub(FARTHEST)..swap).rev() {
        let earlier = &facts[load];
        let inst = earlier.inst.as_ref()?;
        let loads = same && matches!(inst.op.info().meaning, Meaning::Load(_)) && address(inst) == place;
        if loads || scalar.as_ref().is_some_and(|scalar| scalar.is_loaded_by(inst)) {
            return (!escapes(facts, load, swap)).then_some(load);
        }
        same &= !meet(&earlier.uses.written, &whole);
        scalar = scalar.filter(|_| !meet(&earlier.uses.written, &base));
        if !same && scalar.is_none() {
            return None;
        }
    }
    None
}

/// What a compare-and-swap swaps; none for other instructions.
fn swapped(inst: &Inst) -> Option<Element> {
    match inst.op.info().meaning {
        Meaning::Atomic(Calc::CompareSwap | Calc::CompareStore, element)
        | Meaning::AtomicReturn(Calc::CompareSwap | Calc::CompareStore, element) => Some(element),
        _ => None,
    }
}

/// What a memory instruction addresses: registers and offset.
fn address(inst: &Inst) -> ([Option<Operand>; 3], u32) {
    ([Field::Addr, Field::Base, Field::Offset].map(|field| operand(inst, field)), inst.imm)
}

fn operand(inst: &Inst, field: Field) -> Option<Operand> {
    inst.op.info().operands.iter().position(|spec| spec.field == field).map(|at| inst.operands[at])
}

/// Adds the registers of some operands.
fn registers(inst: &Inst, fields: &[Field], bits: &mut RegisterBits) {
    for (at, spec) in inst.op.info().operands.iter().enumerate() {
        if let Some(first) = inst.operands[at].number().filter(|_| fields.contains(&spec.field)) {
            insert(bits, first, first + u32::from(inst.width(at)));
        }
    }
}

/// A place that a scalar load can load as well: a pair of scalar registers and an offset.
struct ScalarPlace {
    base: Operand,
    offset: u32,
    registers: u8,
}

impl ScalarPlace {
    /// Of a global swap whose vector offset is a constant.
    fn of(facts: &[InstructionFacts], swap: usize, inst: &Inst, element: Element) -> Option<ScalarPlace> {
        let at = inst.op.info().operands.iter().position(|spec| spec.field == Field::Offset)?;
        let base = Some(inst.operands[at]).filter(|base| !base.is_none() && inst.width(at) == 2)?;
        let offset = constant(facts, swap, operand(inst, Field::Addr)?.number()?)?;
        Some(ScalarPlace { base, offset: inst.imm.wrapping_add(offset), registers: element.registers() })
    }

    fn is_loaded_by(&self, inst: &Inst) -> bool {
        let loads = inst.op.info().meaning == Meaning::ScalarLoad(self.registers);
        loads && inst.operands[1] == self.base && inst.operands[2].is_none() && inst.imm == self.offset
    }
}

/// The constant that a move has put into a vector register that the step `at` reads.
fn constant(facts: &[InstructionFacts], at: usize, register: u32) -> Option<u32> {
    let before = facts[at.saturating_sub(2 * FARTHEST)..at].iter();
    let inst = before.rev().find(|facts| facts.writes(register))?.inst.as_ref()?;
    if !matches!(inst.op.info().meaning, Meaning::Vector(Calc::Mov, Element::B32)) {
        return None;
    }
    match inst.operands[1] {
        Operand::LITERAL => Some(inst.imm),
        from => {
            (0..=64).find(|&value| Operand::inline_integer(value) == Some(from)).map(|value| value as u32)
        }
    }
}

/// True if what the step `load` loads is stored, or is part of an address, before the step `swap`.
fn escapes(facts: &[InstructionFacts], load: usize, swap: usize) -> bool {
    let mut derived = facts[load].uses.written;
    let mut execution: RegisterBits = [0; 12];
    insert(&mut execution, EXEC, EXEC + 2);
    for here in &facts[load + 1..swap] {
        let Some(inst) = &here.inst else { return true };
        let mut read: RegisterBits = [0; 12];
        here.uses.all.iter().filter(|r| r.is_read).for_each(|r| insert(&mut read, r.first, r.end));
        let info = inst.op.info();
        let uses = meet(&read, &derived);
        if uses && (info.may_store() || info.may_load()) && private_place(inst).is_none() {
            return true;
        }
        for (derived, written) in derived.iter_mut().zip(&here.uses.written) {
            *derived = if uses { *derived | written } else { *derived & !written };
        }
        // Which lanes go on is their own matter.
        derived.iter_mut().zip(&execution).for_each(|(derived, execution)| *derived &= !execution);
    }
    false
}
