//! Definedness through the scalar ALU.

use crate::codegen::isa::{Calc, Element, Half, Inst, Meaning};
use crate::codegen::rules::EXEC;

use super::super::super::program::OperandPlace;
use super::super::super::register_bits::SCC;
use super::super::super::wave::{M0, SGPRS};
use super::super::finding::Use;
use super::known::{KnownBits, low_bits};
use super::rules::{self, DefinednessRule, IntegerKind, half_shift};
use super::{DefinednessFlow, Undefined};

/// How it is known afterwards whether SCC is defined.
#[derive(Copy, Clone)]
enum SccCondition {
    /// It says whether the result is zero.
    NotZero,
    Known(bool),
}

impl DefinednessFlow<'_> {
    pub(super) fn scalar(&mut self, meaning: Meaning) {
        let Some(inst) = self.facts.inst else { return };
        if let Meaning::MoveFromRelative(element) | Meaning::MoveToRelative(element) = meaning {
            return self.move_relative(&inst, meaning, element);
        }
        let Some(bad) = self.undefined_source() else { return self.settle(u64::MAX) };
        self.origin = Some(self.r.origin(bad, self.number));
        let wide = |element: Element| element.registers() == 2;
        let imm = KnownBits::new(u64::from(i32::from(self.step.imm as i16) as u32));
        match meaning {
            Meaning::Scalar(calc, element) => self.calculate(&inst, calc, element),
            Meaning::ScalarSelect(element) | Meaning::ScalarMoveIf(element) => {
                // A move that is not made leaves what is there.
                let otherwise = if meaning == Meaning::ScalarSelect(element) { 2 } else { 0 };
                let sources = [1, otherwise].map(|operand| self.known(&inst, operand, wide(element)));
                let chosen = self.choose(sources);
                self.write_scalar(&inst, chosen, SccCondition::Known(true));
            }
            Meaning::MoveImmediateIf => {
                let chosen = self.choose([imm, self.known(&inst, 0, false)]);
                self.write_scalar(&inst, chosen, SccCondition::Known(true));
            }
            Meaning::ScalarShiftAdd(n) => {
                let [a, b] = [1, 2].map(|operand| self.known(&inst, operand, false));
                let (sum, is_carry_known) = shift_add(a, u32::from(n), b);
                self.write_scalar(&inst, sum, SccCondition::Known(is_carry_known));
            }
            Meaning::ScalarPack(low, high) => {
                let half = |operand: usize, half: Half| {
                    self.known(&inst, operand, false).without_lowest(half_shift(half)).masked(0xffff)
                };
                let (low, high) = (half(1, low), half(2, high));
                let undefined = low.undefined | high.undefined << 16;
                self.write_scalar(&inst, KnownBits { value: 0, undefined }, SccCondition::Known(true));
            }
            Meaning::ScalarCompare(..) | Meaning::CompareImmediate(..) | Meaning::ScalarBitCompare(_) => {
                self.set_condition(self.is_condition_known(&inst, meaning, imm));
            }
            Meaning::ScalarBitSet(_, element) => {
                let (old, bit) = (self.known(&inst, 0, wide(element)), self.known(&inst, 1, false));
                let bit = bit.masked(if wide(element) { 63 } else { 31 });
                let result = match bit.undefined {
                    0 => KnownBits { value: 0, undefined: old.undefined & !(1 << bit.value) },
                    _ => KnownBits::nothing(0),
                };
                self.write_scalar(&inst, result, SccCondition::Known(true));
            }
            Meaning::AddImmediate => {
                let old = self.known(&inst, 0, false);
                let sum = old.plus(imm, KnownBits::new(0));
                self.write_scalar(&inst, sum, SccCondition::Known(old.undefined == 0));
            }
            Meaning::MulImmediate => {
                let product = self.known(&inst, 0, false).times(imm);
                self.write_scalar(&inst, product, SccCondition::Known(true));
            }
            Meaning::SaveExec(calc) | Meaning::WriteExec(calc) => self.change_exec(&inst, calc),
            _ => self.write_scalar(&inst, KnownBits::nothing(0), SccCondition::Known(false)),
        }
    }

    /// True if undefined bits do not change the result of a comparison.
    fn is_condition_known(&self, inst: &Inst, meaning: Meaning, imm: KnownBits) -> bool {
        match meaning {
            Meaning::ScalarCompare(condition, element) => {
                let registers = element.registers();
                let [a, b] = [0, 1].map(|operand| self.known(inst, operand, registers == 2));
                a.is_comparison_known(b, condition, 32 * u32::from(registers), element == Element::I32)
            }
            Meaning::CompareImmediate(condition, element) => {
                let signed = element == Element::I32;
                let imm = if signed { imm } else { imm.masked(0xffff) };
                self.known(inst, 0, false).is_comparison_known(imm, condition, 32, signed)
            }
            _ => {
                let wide = inst.width(0) == 2;
                let (value, bit) = (self.known(inst, 0, wide), self.known(inst, 1, false));
                let bit = bit.masked(if wide { 63 } else { 31 });
                bit.undefined == 0 && value.undefined >> bit.value & 1 == 0
            }
        }
    }

    /// A source of a scalar instruction.
    fn known(&self, inst: &Inst, operand: usize, wide: bool) -> KnownBits {
        let place = self.step.operands[operand];
        let value = if wide { self.w.scalar_wide(place) } else { self.w.scalar(place).into() };
        let undefined = match (place, inst.operands[operand].number()) {
            (OperandPlace::Scalar(_), Some(n)) if wide => !self.r.pair(n),
            (OperandPlace::Scalar(_), Some(n)) => u64::from(!self.r.scalar(n)),
            (OperandPlace::Scc, _) => u64::from(!self.r.scc()),
            (OperandPlace::VccZero, _) => u64::from(self.r.pair(crate::codegen::rules::VCC) != u64::MAX),
            _ => 0,
        };
        KnownBits { value, undefined }
    }

    /// The value that SCC selects.
    fn choose(&self, [yes, no]: [KnownBits; 2]) -> KnownBits {
        match (self.r.scc(), self.w.scc) {
            (true, true) => yes,
            (true, false) => no,
            _ => {
                let undefined = yes.undefined | no.undefined | yes.value ^ no.value;
                KnownBits { value: if self.w.scc { yes.value } else { no.value }, undefined }
            }
        }
    }

    fn calculate(&mut self, inst: &Inst, calc: Calc, element: Element) {
        let kind = IntegerKind::in_registers(element);
        let count = inst.op.info().operands.len();
        let source = |operand: usize| match operand < count {
            true => self.known(inst, operand, inst.width(operand) == 2),
            false => KnownBits::new(0),
        };
        let (a, b) = (source(1), source(2));
        let carry = KnownBits { value: self.w.scc.into(), undefined: u64::from(!self.r.scc()) };
        let all_known = a.undefined | b.undefined == 0;
        let names = [0, if count > 2 && inst.operands[1] == inst.operands[2] { 0 } else { 1 }, 2];
        let rule = rules::of(calc, element, true, 0);
        let signed = element == Element::I32;
        let (result, condition) = match calc {
            Calc::AddCarry => (a.plus(b, carry), SccCondition::Known(a.is_carry_known(b, carry, 32))),
            Calc::SubBorrow => (a.minus(b, carry), SccCondition::Known(a.is_borrow_known(b, carry))),
            _ if rule == DefinednessRule::Whole => {
                // A minimum reports which source it selected.
                let chooses = matches!(calc, Calc::Min | Calc::Max);
                let condition = if chooses { SccCondition::Known(all_known) } else { SccCondition::NotZero };
                (KnownBits::of_all(0, &[a, b]), condition)
            }
            _ => {
                let result = rule.apply(kind, [a, b, KnownBits::new(0)], names);
                let known = match calc {
                    Calc::Add if !signed => SccCondition::Known(a.is_carry_known(b, KnownBits::new(0), 32)),
                    Calc::Sub if !signed => SccCondition::Known(a.is_borrow_known(b, KnownBits::new(0))),
                    Calc::Add | Calc::Sub => SccCondition::Known(all_known),
                    _ => SccCondition::NotZero,
                };
                (result, known)
            }
        };
        self.write_scalar(inst, result.masked(low_bits(32 * u32::from(inst.width(0)))), condition);
    }

    /// A result in the first operand, and SCC if the row says so.
    fn write_scalar(&mut self, inst: &Inst, result: KnownBits, condition: SccCondition) {
        let Some(to) = inst.operands[0].number() else { return };
        let count = u32::from(inst.width(0));
        let result = result.masked(low_bits(32 * count));
        for half in 0..count {
            let undefined = (result.undefined >> (32 * half)) as u32;
            let number = to + half;
            if matches!(number, EXEC | 127) {
                if undefined != 0 {
                    let lanes = result.undefined << if count == 2 { 0 } else { 32 * (number - EXEC) };
                    self.found_in_exec(lanes);
                    break;
                }
                continue;
            }
            self.r.set_scalar(number, !undefined);
            if let Some(origin) = self.origin.filter(|_| undefined != 0) {
                self.r.set_origin(number, origin);
            }
        }
        let known = match condition {
            SccCondition::NotZero => result.undefined == 0 || result.value & !result.undefined != 0,
            SccCondition::Known(known) => known,
        };
        self.set_condition(known);
    }

    /// Notes whether SCC is known, if the instruction writes it.
    fn set_condition(&mut self, known: bool) {
        if self.facts.uses.all.iter().any(|r| r.is_written && r.first == SCC) {
            self.r.set_scc(known);
            if let Some(origin) = self.origin.filter(|_| !known) {
                self.r.set_origin(SCC, origin);
            }
        }
    }

    fn found_in_exec(&mut self, lanes: u64) {
        let origin = self.origin.unwrap_or(self.r.origin(EXEC, self.number));
        self.found.push(Undefined { origin, used_in: Use::Exec, lanes });
    }

    /// Operations on EXEC, which is always defined.
    fn change_exec(&mut self, inst: &Inst, calc: Calc) {
        let sources = [self.known(inst, 1, true), KnownBits::new(self.w.exec()), KnownBits::new(0)];
        let result =
            rules::of(calc, Element::B64, true, 0).apply(IntegerKind::of(Element::B64), sources, [0, 1, 2]);
        if result.undefined != 0 {
            self.found_in_exec(result.undefined);
        }
        self.settle(u64::MAX);
    }

    /// Moves from or to the register that M0 names.
    fn move_relative(&mut self, inst: &Inst, meaning: Meaning, element: Element) {
        if self.r.scalar(M0 as u32) != u32::MAX {
            self.report(M0 as u32, Use::Lane, 0);
        }
        let by = self.w.s[M0];
        let number = |operand: usize| inst.operands[operand].number();
        let (Some(to), Some(from)) = (number(0), number(1)) else { return };
        // Out of range it is s0 for reads, and writes do nothing.
        let moved = |number: u32| {
            let moved = number.saturating_add(by);
            (moved.saturating_add(element.registers().into()) <= SGPRS as u32).then_some(moved)
        };
        let (to, from) = match meaning {
            Meaning::MoveFromRelative(_) => (Some(to), moved(from).unwrap_or(0)),
            _ => (moved(to), from),
        };
        let Some(to) = to else { return };
        for register in 0..u32::from(element.registers()) {
            let (to, from) = (to.saturating_add(register), from.saturating_add(register));
            let bits = if from < 128 { self.r.scalar(from) } else { u32::MAX };
            if to >= EXEC {
                if to < 128 && bits != u32::MAX {
                    self.origin = Some(self.r.origin(from, self.number));
                    self.found_in_exec(u64::from(!bits) << (32 * (to - EXEC)));
                }
                continue;
            }
            let origin = (bits != u32::MAX).then(|| self.r.origin(from, self.number));
            self.r.set_scalar(to, bits);
            if let Some(origin) = origin {
                self.r.set_origin(to, origin);
            }
        }
    }
}

/// 32 bits of `a` shifted to the left by `count` and added to `b`; true if the carry of that is known.
fn shift_add(a: KnownBits, count: u32, b: KnownBits) -> (KnownBits, bool) {
    let moved = KnownBits { value: a.value << count, undefined: a.undefined << count };
    let sum = moved.plus(b, KnownBits::new(0));
    let carry = sum.without_lowest(32);
    let known = carry.undefined == 0 || carry.value & !carry.undefined != 0;
    (sum.masked(low_bits(32)), known)
}
