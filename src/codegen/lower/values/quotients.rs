//! Quotients rounded down, on the scalar or on the vector unit.

use super::ValueLayer;
use super::dependence::HeldValue;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::{MOST_DIVIDED, Scalar, magic_divisor};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Range;

/// Known facts about a dividend.
#[derive(Copy, Clone, Debug)]
pub(super) struct Dividend {
    /// It is not negative.
    pub(super) natural: bool,
    /// The most that it, or its complement if it is negative, can be.
    pub(super) most: u32,
}

impl Dividend {
    pub(super) const ANY: Dividend = Dividend { natural: false, most: MOST_DIVIDED };

    pub(super) fn of(range: Range) -> Dividend {
        let most = range.hi.and_then(|hi| u32::try_from(hi).ok()).filter(|_| range.at_least(0));
        Dividend { natural: range.at_least(0), most: most.unwrap_or(MOST_DIVIDED).min(MOST_DIVIDED) }
    }
}

/// Known facts about a divisor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Divisor {
    Positive,
    Any,
}

impl Divisor {
    pub(super) fn of(range: Range) -> Divisor {
        if range.at_least(0) { Divisor::Positive } else { Divisor::Any }
    }
}

impl ValueLayer<'_> {
    /// `a / b` rounded down.
    pub(super) fn floored_quotient(
        &mut self,
        (a, dividend): (HeldValue, Dividend),
        b: HeldValue,
        divisor: Divisor,
    ) -> Result<HeldValue, Diagnostic> {
        let constant = match b {
            HeldValue::Uniform(Scalar::Const(d)) => u32::try_from(d).ok().filter(|&d| d > 0 && d < 1 << 31),
            HeldValue::Uniform(_) | HeldValue::Vector(_) => None,
        };
        match (a, constant) {
            (HeldValue::Uniform(a), Some(d)) if dividend.natural && !d.is_power_of_two() => {
                Ok(HeldValue::Uniform(self.emitter.divide_up_to(a, d, dividend.most)))
            }
            (HeldValue::Uniform(a), Some(d)) => Ok(HeldValue::Uniform(self.emitter.floor_divide(a, d))),
            (HeldValue::Vector(a), Some(d)) => {
                Ok(HeldValue::Vector(self.vector_floor_divide(a, d, dividend)))
            }
            _ => {
                let uniform = matches!((a, b), (HeldValue::Uniform(_), HeldValue::Uniform(_)));
                let quotient = self.floor_divide_vectors(a, b, dividend, divisor);
                if !uniform {
                    return Ok(HeldValue::Vector(quotient));
                }
                let number = self.emitter.sgpr(1);
                self.emitter.op(Opcode::VReadfirstlaneB32, &[number, quotient]);
                Ok(HeldValue::Uniform(Scalar::Reg(number)))
            }
        }
    }

    /// The complement of a negative number is `-1 - a`, which is not negative, and the complement of its
    /// quotient is that of `a`.
    fn vector_floor_divide(&mut self, a: Operand, d: u32, dividend: Dividend) -> Operand {
        if d == 1 {
            return a;
        }
        let two = |lowering: &mut Self, op: Opcode, x: Scalar, y: Operand| {
            let out = lowering.emitter.vgpr(1);
            lowering.emitter.with(op, out, &[x, Scalar::Reg(y)]);
            out
        };
        if d.is_power_of_two() {
            return two(self, Opcode::VAshrrevI32, Scalar::Const(i64::from(d.ilog2())), a);
        }
        let sign = (!dividend.natural).then(|| two(self, Opcode::VAshrrevI32, Scalar::Const(31), a));
        let positive = sign.map_or(a, |sign| two(self, Opcode::VXorB32, Scalar::Reg(sign), a));
        let (magic, shift) = magic_divisor(d, dividend.most);
        let magic = self.constant_sgpr(magic);
        let high = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VMulHiU32, &[high, magic, positive]);
        let quotient = match shift {
            0 => high,
            _ => two(self, Opcode::VLshrrevB32, Scalar::Const(i64::from(shift)), high),
        };
        sign.map_or(quotient, |sign| two(self, Opcode::VXorB32, Scalar::Reg(sign), quotient))
    }

    /// The same for divisors that are not known: the signs are taken off and put back around a truncating
    /// division of numbers that are not negative.
    fn floor_divide_vectors(
        &mut self,
        a: HeldValue,
        b: HeldValue,
        dividend: Dividend,
        divisor: Divisor,
    ) -> Operand {
        let two = |lowering: &mut Self, op: Opcode, x: Operand, y: Operand| {
            let out = lowering.emitter.vgpr(1);
            lowering.emitter.op(op, &[out, x, y]);
            out
        };
        let sign_of = |lowering: &mut Self, x: Operand| {
            let out = lowering.emitter.vgpr(1);
            lowering.emitter.with(Opcode::VAshrrevI32, out, &[Scalar::Const(31), Scalar::Reg(x)]);
            out
        };
        let (mut a, mut b) = (self.vector_of(a), self.vector_of(b));
        if divisor == Divisor::Any {
            let sign = sign_of(self, b);
            for x in [&mut a, &mut b] {
                let flipped = two(self, Opcode::VXorB32, *x, sign);
                *x = two(self, Opcode::VSubU32, flipped, sign);
            }
        }
        let natural = dividend.natural && divisor == Divisor::Positive;
        let sign = (!natural).then(|| sign_of(self, a));
        let dividend = sign.map_or(a, |sign| two(self, Opcode::VXorB32, a, sign));
        let quotient = self.divide_integers(Scalar::Reg(dividend), Scalar::Reg(b));
        sign.map_or(quotient, |sign| two(self, Opcode::VXorB32, quotient, sign))
    }
}
