//! How undefined bits travel through instructions that execute at once, and where such an instruction lets
//! them decide something: EXEC, branches, lanes, modes. Memory instructions are judged in `access`.
//!
//! As in Valgrind's memcheck, undefined values may be copied and computed with. `rules` says as data what
//! each instruction does to them, `slices` which bits an operation on values reads and writes, `known` what
//! arithmetic does to values with some undefined bits; `vector` and `scalar` go through registers and lanes.
//! A test executes random instructions several times with different junk in the undefined bits: a bit that is
//! called defined never changes.
//!
//! Only called for instructions that use something undefined; operands still have their values from before
//! the instruction.
//!
//! A finding names the place where the undefined value was first read. The match over meanings is complete.
//! LDS and private memory keep the undefined bits of what is stored and where they were made
//! (`check/undefined`), and so does device memory during a launch (`check/undefined_bytes`). Data that go to
//! device memory have to be defined; a finding says where undefined ones are left, which count as never
//! written from then on. The HIP library, which sees what the host copies, makes a note of it if nobody
//! reads them there. A matrix instruction with something undefined in A or B has an undefined result.

mod known;
mod rules;
mod scalar;
mod slices;
#[cfg(test)]
mod tests;
mod vector;

use crate::codegen::isa::{Arch, BranchCondition, Element, Meaning, Unit};
use crate::codegen::rules::VCC;

use super::super::program::Step;
use super::super::register_bits::{FIRST_VECTOR, SCC};
use super::super::wave::Wave;
use super::facts::InstructionFacts;
use super::finding::Use;
use super::registers::{RegisterShadow, UndefinedOrigin};
use rules::DefinednessMethod;

/// An undefined value that decides something.
#[derive(Debug)]
pub(super) struct Undefined {
    /// Where the undefined value came from.
    pub origin: UndefinedOrigin,
    /// What it decides.
    pub used_in: Use,
    /// Lanes.
    pub lanes: u64,
}

/// An instruction that executes at once: `number` is that of its step.
#[derive(Copy, Clone)]
pub(super) struct Executed<'a> {
    pub facts: &'a InstructionFacts,
    pub step: &'a Step,
    pub number: u32,
    pub arch: Arch,
}

/// Applies an instruction that executes at once to definedness.
pub(super) fn propagate(
    Executed { facts, step, number, arch }: Executed<'_>,
    w: &Wave,
    r: &mut RegisterShadow,
    found: &mut Vec<Undefined>,
) {
    let Some(inst) = &facts.inst else { return };
    let info = inst.op.info();
    let mut it = DefinednessFlow { facts, step, number, arch, w, r, found, origin: None };
    match rules::way(info.meaning) {
        DefinednessMethod::Defined | DefinednessMethod::Memory => it.settle(u64::MAX),
        DefinednessMethod::Decides => it.decide(info.meaning),
        DefinednessMethod::Matrix => it.matrix(info.meaning),
        DefinednessMethod::Scalars => it.scalar(info.meaning),
        _ => it.vector(info.meaning),
    }
}

struct DefinednessFlow<'a> {
    facts: &'a InstructionFacts,
    step: &'a Step,
    number: u32,
    arch: Arch,
    w: &'a Wave,
    r: &'a mut RegisterShadow,
    found: &'a mut Vec<Undefined>,
    /// Reports where the undefined bits of this instruction's sources came from.
    origin: Option<UndefinedOrigin>,
}

impl DefinednessFlow<'_> {
    fn report(&mut self, register: u32, used_in: Use, lanes: u64) {
        let origin = self.r.origin(register, self.number);
        self.found.push(Undefined { origin, used_in, lanes });
    }

    /// Everything that is written is defined in `lanes`.
    fn settle(&mut self, lanes: u64) {
        for register in self.facts.uses.all.iter().filter(|r| r.is_written) {
            for number in register.first..register.end {
                match number {
                    FIRST_VECTOR.. => self.r.write_vector(number, lanes, u64::MAX),
                    _ => self.r.define(number),
                }
            }
        }
    }

    /// The first register that is read and not fully defined.
    fn undefined_source(&self) -> Option<u32> {
        let reads = self.facts.uses.all.iter().filter(|r| r.is_read);
        reads.flat_map(|r| r.first..r.end).find(|&n| !self.r.is_defined(n, u64::MAX))
    }

    /// Every element of the result adds up products of A and B and one element of C. It is not followed which
    /// rows and columns an undefined element of A or B reaches: such an element makes all of the result
    /// undefined.
    fn matrix(&mut self, meaning: Meaning) {
        let Some(inst) = self.facts.inst else { return };
        let undefined = |number: u32| self.r.vector(number) != u64::MAX;
        let factors = (1..inst.op.info().operands.len())
            .filter(|&n| n != 3 || matches!(meaning, Meaning::SparseMfma(..)));
        let mut registers = factors.filter_map(|n| {
            let first = inst.operands[n].number().filter(|&first| first >= FIRST_VECTOR)?;
            Some(first..first + u32::from(inst.width(n)))
        });
        let bad = registers.find_map(|mut range| range.find(|&number| undefined(number)));
        let Some(to) = inst.operands[0].number() else { return };
        let count = u32::from(inst.width(0));
        if let Some(bad) = bad {
            let origin = self.r.origin(bad, self.number);
            for number in to..to + count {
                self.r.set_vector(number, 0);
                self.r.set_origin(number, origin);
            }
            return;
        }
        let addend = if matches!(meaning, Meaning::SparseMfma(..)) { 0 } else { 3 };
        let from = inst.operands[addend].number().filter(|&first| first >= FIRST_VECTOR);
        let wide = matches!(meaning, Meaning::Mfma(.., Element::F64));
        let lanes: Vec<(u64, Option<UndefinedOrigin>)> = (0..count)
            .map(|n| {
                let Some(from) = from else { return (u64::MAX, None) };
                let other = if wide { n ^ 1 } else { n };
                let lanes = self.r.vector(from + n) & self.r.vector(from + other);
                let bad = if self.r.vector(from + n) == u64::MAX { from + other } else { from + n };
                (lanes, (lanes != u64::MAX).then(|| self.r.origin(bad, self.number)))
            })
            .collect();
        for (number, (lanes, origin)) in (to..).zip(lanes) {
            self.r.set_vector(number, lanes);
            if let Some(origin) = origin {
                self.r.set_origin(number, origin);
            }
        }
    }

    /// Branches, and instructions that set modes or select registers.
    fn decide(&mut self, meaning: Meaning) {
        use BranchCondition::{Scc0, Scc1, VccNotZero, VccZero};
        match meaning {
            Meaning::Branch(Scc0 | Scc1) if !self.r.scc() => self.report(SCC, Use::Branch, 0),
            Meaning::Branch(VccZero | VccNotZero) => {
                let (value, defined) = (self.w.pair(VCC as usize), self.r.pair(VCC));
                if defined != u64::MAX && value & defined == 0 {
                    let half = if self.r.scalar(VCC) == u32::MAX { VCC + 1 } else { VCC };
                    self.report(half, Use::Branch, !defined);
                }
            }
            Meaning::Branch(_) => {}
            _ => {
                let jumps = self.facts.inst.as_ref().is_some_and(|inst| inst.op.info().unit == Unit::Branch);
                if let Some(bad) = self.undefined_source() {
                    self.report(bad, if jumps { Use::Branch } else { Use::Mode }, 0);
                }
            }
        }
        self.settle(u64::MAX);
    }
}
