//! How undefined values travel through instructions that execute at once, and where they make a difference there: EXEC,
//! branches, matrix instructions. Memory instructions are judged in `access`.
//!
//! Only called for instructions that touch something undefined; operands still have their values from before.

use crate::codegen::isa::{BranchCondition, Calc, Element, Field, Meaning, Operand, Unit};
use crate::codegen::rules::{EXEC, VCC};

use super::super::program::Step;
use super::super::wave::Wave;
use super::facts::{FIRST_VECTOR, Facts, SCC};
use super::finding::Use;
use super::registers::{Origin, Registers};

/// Something undefined that makes a difference.
pub(super) struct Undefined {
    /// Where it came from.
    pub origin: Origin,
    /// What it gets into.
    pub used_in: Use,
    /// Lanes.
    pub lanes: u64,
}

/// Says what an instruction that executes at once does to definedness.
pub(super) fn propagate(
    facts: &Facts,
    step: &Step,
    number: u32,
    w: &Wave,
    r: &mut Registers,
    found: &mut Vec<Undefined>,
) {
    let Some(inst) = &facts.inst else { return };
    let info = inst.op.info();
    let mut it = Flow { facts, step, number, w, r, found };
    match info.unit {
        Unit::Valu | Unit::Trans => it.vector(info.meaning),
        Unit::Mfma(_) => it.matrix(),
        Unit::Branch => it.branch(info.meaning),
        Unit::Salu => it.scalar(info.meaning),
        _ => it.settle(u64::MAX),
    }
}

struct Flow<'a> {
    facts: &'a Facts,
    step: &'a Step,
    number: u32,
    w: &'a Wave,
    r: &'a mut Registers,
    found: &'a mut Vec<Undefined>,
}

/// Values of 64 bits, and which of them are defined.
#[derive(Copy, Clone)]
struct Known {
    value: u64,
    defined: u64,
}

impl Flow<'_> {
    fn report(&mut self, register: u32, used_in: Use, lanes: u64) {
        let origin = self.r.origin(register, self.number);
        self.found.push(Undefined { origin, used_in, lanes });
    }

    /// Everything written is defined in `lanes`.
    fn settle(&mut self, lanes: u64) {
        for register in self.facts.registers.iter().filter(|r| r.is_written) {
            for number in register.first..register.end {
                match number {
                    FIRST_VECTOR.. => self.r.write_vector(number, lanes, u64::MAX),
                    _ => self.r.define(number),
                }
            }
        }
    }

    fn vector(&mut self, meaning: Meaning) {
        let exec = self.w.exec();
        match meaning {
            Meaning::ReadFirstLane | Meaning::ReadLane => return self.read_lane(meaning),
            Meaning::WriteLane => return self.write_lane(),
            Meaning::SwapRows(_) => return self.settle(exec),
            _ => {}
        }
        let Some(inst) = &self.facts.inst else { return };
        let adds_to_result = !matches!(
            meaning,
            Meaning::PackConvert(..)
                | Meaning::ConvertScaled(..)
                | Meaning::ConvertStochastic(..)
                | Meaning::ConvertScaledStochastic(..)
                | Meaning::FmaMix(_)
                | Meaning::FmaMixHigh
        );
        let dpp = inst.modifiers.has_dpp();
        let mut undefined = 0;
        let mut origin = None;
        for register in self.facts.registers.iter().filter(|r| r.is_read) {
            if register.first == EXEC && register.field.is_none() {
                continue;
            }
            // What stays of a result that is written in part makes no difference here.
            let kept = register.is_written && !(adds_to_result && self.step.accumulates);
            if kept && register.field == Some(Field::Dst) {
                continue;
            }
            let lanes = self.undefined_lanes(register, meaning, dpp && register.field == Some(Field::Src0));
            if lanes & exec != 0 && origin.is_none() {
                let number = (register.first..register.end).find(|&n| !self.r.is_defined(n, exec));
                origin = Some(self.r.origin(number.unwrap_or(register.first), self.number));
            }
            undefined |= lanes;
        }
        if meaning == Meaning::SelectLane
            && let Some(lanes) = self.selected()
        {
            undefined = lanes;
        }
        undefined &= exec;
        for register in self.facts.registers.iter().filter(|r| r.is_written) {
            for number in register.first..register.end {
                if number >= FIRST_VECTOR {
                    self.r.write_vector(number, exec, !undefined);
                } else if register.first < EXEC {
                    // Masks: inactive lanes are zero.
                    let shift = 32 * (number - register.first);
                    self.r.set_scalar(number, !(undefined >> shift.min(32)) as u32);
                } else if undefined != 0 && number == EXEC {
                    let origin = origin.unwrap_or(self.r.origin(number, self.number));
                    self.found.push(Undefined { origin, used_in: Use::Exec, lanes: undefined });
                }
                if let Some(origin) =
                    origin.filter(|_| undefined != 0 && number != EXEC && number != EXEC + 1)
                {
                    self.r.set_origin(number, origin);
                }
            }
        }
    }

    /// Lanes whose value of a source is undefined.
    fn undefined_lanes(
        &self,
        register: &crate::codegen::rules::Registers,
        meaning: Meaning,
        crosses_lanes: bool,
    ) -> u64 {
        let exec = self.w.exec();
        let mut undefined = 0;
        if register.first >= FIRST_VECTOR {
            for number in register.first..register.end {
                let defined = self.r.vector(number);
                // Which lane a value comes from is not followed: it is undefined if none is defined.
                undefined |= match crosses_lanes {
                    true if defined & exec != 0 => 0,
                    true => u64::MAX,
                    false => !defined,
                };
            }
            return undefined;
        }
        let is_mask = register.field == Some(Field::Src2)
            && matches!(meaning, Meaning::SelectLane | Meaning::CarryInOut(_))
            || register.field.is_none() && register.first == VCC;
        if is_mask {
            return !self.r.pair(register.first);
        }
        let all = (register.first..register.end).all(|n| self.r.is_defined(n, exec));
        if all { 0 } else { u64::MAX }
    }

    /// Undefined lanes of a selection: those of the source that each lane takes.
    fn selected(&self) -> Option<u64> {
        let inst = self.facts.inst.as_ref()?;
        let mask = inst.operands[3];
        let condition = match mask.number()? {
            n @ 0..128 => Known { value: self.w.pair(n as usize), defined: self.r.pair(n) },
            _ => Known { value: self.w.scalar_wide(self.step.operands[3]), defined: u64::MAX },
        };
        let of = |operand: Operand| match operand.number() {
            Some(n @ FIRST_VECTOR..) => !self.r.vector(n),
            Some(n @ 0..128) if !self.r.is_defined(n, 0) => u64::MAX,
            _ => 0,
        };
        let [a, b] = [of(inst.operands[1]), of(inst.operands[2])];
        Some(!condition.defined | condition.value & b | !condition.value & a)
    }

    fn read_lane(&mut self, meaning: Meaning) {
        let Some(inst) = &self.facts.inst else { return };
        let (Some(to), Some(from)) = (inst.operands[0].number(), inst.operands[1].number()) else { return };
        let lane = match meaning {
            Meaning::ReadLane => self.w.scalar(self.step.operands[2]) as usize % 64,
            _ => (self.w.exec().trailing_zeros() % 64) as usize,
        };
        if from < FIRST_VECTOR {
            return self.settle(u64::MAX);
        }
        let defined = self.r.lane(from, lane);
        let origin = self.r.origin(from, self.number);
        self.r.set_scalar(to, if defined { u32::MAX } else { 0 });
        if !defined {
            self.r.set_origin(to, origin);
        }
    }

    fn write_lane(&mut self) {
        let Some(inst) = &self.facts.inst else { return };
        let Some(to) = inst.operands[0].number() else { return };
        let lane = 1u64 << (self.w.scalar(self.step.operands[2]) % 64);
        // Masks of lanes that are kept here may be undefined for lanes that are off.
        let from = inst.operands[1].number().filter(|&n| n < 128 && self.r.scalar(n) == 0);
        self.r.write_vector(to, lane, if from.is_some() { 0 } else { u64::MAX });
        if let Some(from) = from {
            let origin = self.r.origin(from, self.number);
            self.r.set_origin(to, origin);
        }
    }

    fn matrix(&mut self) {
        for index in 0..self.facts.registers.len() {
            let register = self.facts.registers[index];
            if !register.is_read || register.first < FIRST_VECTOR {
                continue;
            }
            if let Some(number) = (register.first..register.end).find(|&n| self.r.vector(n) != u64::MAX) {
                let lanes = !self.r.vector(number);
                self.report(number, Use::Matrix, lanes);
            }
        }
        self.settle(u64::MAX);
    }

    fn branch(&mut self, meaning: Meaning) {
        use BranchCondition::*;
        match meaning {
            Meaning::Branch(Scc0 | Scc1) if !self.r.scc() => self.report(SCC, Use::Branch, 0),
            Meaning::Branch(VccZero | VccNotZero) => {
                let (value, defined) = (self.w.pair(VCC as usize), self.r.pair(VCC));
                if defined != u64::MAX && value & defined == 0 {
                    let half = if self.r.scalar(VCC) == u32::MAX { VCC + 1 } else { VCC };
                    self.report(half, Use::Branch, !defined);
                }
            }
            Meaning::SetPc | Meaning::SwapPc => {
                let reads = self.facts.registers.iter().filter(|r| r.is_read);
                let bad = reads.flat_map(|r| r.first..r.end).find(|&n| !self.r.is_defined(n, 0));
                if let Some(bad) = bad {
                    self.report(bad, Use::Branch, 0);
                }
            }
            _ => {}
        }
        self.settle(u64::MAX);
    }

    fn scalar(&mut self, meaning: Meaning) {
        let Some(inst) = &self.facts.inst else { return };
        let wide = |element: Element| element.registers() == 2;
        match meaning {
            // Which register is meant is not followed, and once VGPRs are indexed neither is which those are.
            Meaning::MoveFromRelative(_) | Meaning::MoveToRelative(_) => return self.settle(u64::MAX),
            Meaning::Scalar(calc, element) => {
                if let Some(result) = self.bitwise(calc, wide(element), [1, 2]) {
                    return self.write_bits(inst.operands[0], wide(element), result);
                }
            }
            Meaning::ScalarSelect(element) if self.r.scc() => {
                let chosen = self.known(if self.w.scc { 1 } else { 2 }, wide(element));
                return self.write_bits(inst.operands[0], wide(element), chosen);
            }
            Meaning::ScalarMoveIf(element) if self.r.scc() => {
                if self.w.scc {
                    let moved = self.known(1, wide(element));
                    self.write_bits(inst.operands[0], wide(element), moved);
                }
                return;
            }
            Meaning::MoveImmediateIf if self.r.scc() => {
                if self.w.scc {
                    self.settle(u64::MAX);
                }
                return;
            }
            Meaning::SaveExec(calc) | Meaning::WriteExec(calc) if self.change_exec(calc) => return,
            _ => {}
        }
        // Anything else: one undefined bit makes all of the result undefined.
        let reads = self.facts.registers.iter().filter(|r| r.is_read);
        let bad = reads.flat_map(|r| r.first..r.end).find(|&n| !self.r.is_defined(n, 0));
        let origin = bad.map(|bad| self.r.origin(bad, self.number));
        for index in 0..self.facts.registers.len() {
            let register = self.facts.registers[index];
            for number in (register.first..register.end).filter(|_| register.is_written) {
                match (number, origin) {
                    (EXEC | 127, Some(origin)) => {
                        self.found.push(Undefined { origin, used_in: Use::Exec, lanes: 0 });
                    }
                    (SCC, Some(origin)) => {
                        self.r.set_scc(false);
                        self.r.set_origin(SCC, origin);
                    }
                    (_, Some(origin)) => {
                        self.r.set_scalar(number, 0);
                        self.r.set_origin(number, origin);
                    }
                    (_, None) => self.r.define(number),
                }
            }
        }
    }

    /// A source of a scalar instruction.
    fn known(&self, operand: usize, wide: bool) -> Known {
        let place = self.step.operands[operand];
        let value = if wide { self.w.scalar_wide(place) } else { self.w.scalar(place).into() };
        let number = self.facts.inst.as_ref().and_then(|inst| inst.operands[operand].number());
        let defined = match number {
            Some(n @ 0..128) if wide => self.r.pair(n),
            Some(n @ 0..128) => u64::from(self.r.scalar(n)) | 0xffff_ffff << 32,
            Some(SCC) if !self.r.scc() => 0,
            _ => u64::MAX,
        };
        Known { value, defined }
    }

    /// Result of a bitwise operation, bit by bit.
    fn bitwise(&self, calc: Calc, wide: bool, sources: [usize; 2]) -> Option<Known> {
        let [a, b] = sources.map(|source| self.known(source, wide));
        combine(calc, a, b)
    }

    /// A scalar result, and SCC if the row says so.
    fn write_bits(&mut self, to: Operand, wide: bool, result: Known) {
        let Some(to) = to.number() else { return };
        let mask = if wide { u64::MAX } else { 0xffff_ffff };
        let undefined = !result.defined & mask;
        let reads = self.facts.registers.iter().filter(|r| r.is_read);
        let bad = reads.flat_map(|r| r.first..r.end).find(|&n| !self.r.is_defined(n, 0));
        let origin = self.r.origin(bad.unwrap_or(to), self.number);
        for half in 0..if wide { 2 } else { 1 } {
            let bits = !(undefined >> (32 * half)) as u32;
            let number = to + half;
            if matches!(number, EXEC | 127) {
                if bits != u32::MAX {
                    let lanes = undefined << if wide { 0 } else { 32 * (number - EXEC) };
                    self.found.push(Undefined { origin, used_in: Use::Exec, lanes });
                    return self.r.set_scc(true);
                }
                continue;
            }
            self.r.set_scalar(number, bits);
            if bits != u32::MAX {
                self.r.set_origin(number, origin);
            }
        }
        if self.facts.registers.iter().any(|r| r.is_written && r.first == SCC) {
            let defined = undefined == 0 || result.value & result.defined & mask != 0;
            self.r.set_scc(defined);
            if !defined {
                self.r.set_origin(SCC, origin);
            }
        }
    }

    /// Operations on EXEC; false if it is not a bitwise one.
    fn change_exec(&mut self, calc: Calc) -> bool {
        let exec = Known { value: self.w.exec(), defined: u64::MAX };
        let source = self.known(1, true);
        let Some(result) = combine(calc, source, exec) else { return false };
        if result.defined != u64::MAX {
            let number = self.facts.inst.as_ref().and_then(|i| i.operands[1].number()).unwrap_or(EXEC);
            let half = if self.r.scalar(number) == u32::MAX { number + 1 } else { number };
            self.report(half, Use::Exec, !result.defined);
        }
        self.settle(u64::MAX);
        true
    }
}

/// Bitwise operations, with which result bits are defined whatever the undefined ones are.
fn combine(calc: Calc, a: Known, b: Known) -> Option<Known> {
    let not = |k: Known| Known { value: !k.value, ..k };
    let and = |a: Known, b: Known| Known {
        value: a.value & b.value,
        defined: a.defined & b.defined | a.defined & !a.value | b.defined & !b.value,
    };
    let xor = Known { value: a.value ^ b.value, defined: a.defined & b.defined };
    Some(match calc {
        Calc::Mov => a,
        Calc::Not => not(a),
        Calc::And => and(a, b),
        Calc::AndNot => and(a, not(b)),
        Calc::NotAnd => and(not(a), b),
        Calc::Nand => not(and(a, b)),
        Calc::Or => not(and(not(a), not(b))),
        Calc::OrNot => not(and(not(a), b)),
        Calc::NotOr => not(and(a, not(b))),
        Calc::Nor => and(not(a), not(b)),
        Calc::Xor => xor,
        Calc::Xnor => not(xor),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of bits, each known or not.
    #[test]
    fn a_result_is_defined_if_it_is_the_same_for_all_undefined_bits() {
        use Calc::{And, AndNot, Nand, Nor, Not, NotAnd, NotOr, Or, OrNot, Xnor, Xor};
        let bits: Vec<Known> =
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(value, defined)| Known { value, defined }).to_vec();
        let whole = |value| Known { value, defined: u64::MAX };
        for calc in [And, AndNot, NotAnd, Nand, Or, OrNot, NotOr, Nor, Xor, Xnor, Not] {
            for a in &bits {
                for b in &bits {
                    let choices = |k: &Known| if k.defined == 1 { vec![k.value] } else { vec![0, 1] };
                    let mut results = Vec::new();
                    for x in choices(a) {
                        for y in choices(b) {
                            results.push(combine(calc, whole(x), whole(y)).unwrap().value & 1);
                        }
                    }
                    let same = results.iter().all(|r| *r == results[0]);
                    let defined = combine(calc, *a, *b).unwrap().defined & 1;
                    assert_eq!(
                        defined == 1,
                        same,
                        "{calc:?} of {}/{}, {}/{}",
                        a.value,
                        a.defined,
                        b.value,
                        b.defined
                    );
                }
            }
        }
    }
}
