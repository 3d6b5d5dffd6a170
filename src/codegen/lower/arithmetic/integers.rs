//! Quotients, remainders and shifts of integers, in 32 bits.

use super::ArithmeticLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::{MOST_DIVIDED, Scalar, magic_divisor};
use crate::ir::types::DType;

/// 1.5 * 2^52: a whole number of fewer than 52 bits added to it is in the low bits of the sum.
const WHOLE_IN_LOW_BITS: f64 = 6_755_399_441_055_744.0;

impl ArithmeticLayer<'_> {
    /// Truncating division; by zero it gives zero.
    pub(crate) fn divide_integers(&mut self, a: Scalar, b: Scalar) -> Operand {
        match constant_divisor(b) {
            Some(divisor) if divisor > 0 => self.divide_by(a, divisor as u32),
            _ => self.divide_by_any(a, b),
        }
    }

    /// Truncating division by a positive constant.
    fn divide_by(&mut self, a: Scalar, divisor: u32) -> Operand {
        let a = self.in_vector(a);
        let n = Scalar::Reg(a);
        if divisor == 1 {
            return a;
        }
        if divisor.is_power_of_two() {
            // Negative numbers are rounded up: what is below the quotient is filled first.
            let bits = i64::from(divisor.ilog2());
            let sign = self.vop2(Opcode::VAshrrevI32, Scalar::Const(31), n);
            let fill = self.vop2(Opcode::VLshrrevB32, Scalar::Const(32 - bits), Scalar::Reg(sign));
            let sum = self.vop2(Opcode::VAddU32, n, Scalar::Reg(fill));
            return self.vop2(Opcode::VAshrrevI32, Scalar::Const(bits), Scalar::Reg(sum));
        }
        // Granlund and Montgomery, Division by invariant integers using multiplication, figure 5.2: the
        // multiplier less 2^32 fits into 32 bits.
        let up = divisor.ilog2() + 1;
        let magic = (1u64 << (31 + up)) / u64::from(divisor) + 1;
        let magic = self.constant_sgpr(magic as u32);
        let high = self.vop3(Opcode::VMulHiI32, &[Scalar::Reg(magic), n]);
        let sum = self.vop2(Opcode::VAddU32, n, Scalar::Reg(high));
        let below = self.vop2(Opcode::VAshrrevI32, Scalar::Const(i64::from(up) - 1), Scalar::Reg(sum));
        let negative = self.vop2(Opcode::VLshrrevB32, Scalar::Const(31), n);
        self.vop2(Opcode::VAddU32, Scalar::Reg(below), Scalar::Reg(negative))
    }

    /// Quotient rounded down; by zero it gives zero.
    pub(crate) fn floor_divide_integers(&mut self, a: Scalar, b: Scalar) -> Operand {
        match constant_divisor(b) {
            Some(divisor) if divisor > 0 => self.floor_divide_by(a, divisor as u32),
            _ => {
                let quotient = self.floor_quotient(a, b);
                self.zero_where_zero(b, quotient)
            }
        }
    }

    /// Quotient by a positive constant, rounded down.
    fn floor_divide_by(&mut self, a: Scalar, divisor: u32) -> Operand {
        let a = self.in_vector(a);
        let n = Scalar::Reg(a);
        if divisor == 1 {
            return a;
        }
        if divisor.is_power_of_two() {
            return self.vop2(Opcode::VAshrrevI32, Scalar::Const(i64::from(divisor.ilog2())), n);
        }
        // Of a negative number, the quotient of its complement, complemented.
        let sign = Scalar::Reg(self.vop2(Opcode::VAshrrevI32, Scalar::Const(31), n));
        let positive = self.vop2(Opcode::VXorB32, sign, n);
        let (magic, shift) = magic_divisor(divisor, MOST_DIVIDED);
        let magic = self.constant_sgpr(magic);
        let high = self.vop3(Opcode::VMulHiU32, &[Scalar::Reg(magic), Scalar::Reg(positive)]);
        let quotient = self.vop2(Opcode::VLshrrevB32, Scalar::Const(shift.into()), Scalar::Reg(high));
        self.vop2(Opcode::VXorB32, sign, Scalar::Reg(quotient))
    }

    /// What the quotient that is rounded down leaves: all of `a` where `b` is zero.
    pub(super) fn remainder(&mut self, a: Scalar, b: Scalar) -> Operand {
        let quotient = match constant_divisor(b) {
            Some(divisor) if divisor > 0 && (divisor as u32).is_power_of_two() => {
                let a = self.in_vector(a);
                let mask = Scalar::Const(i64::from(divisor) - 1);
                return self.vop2(Opcode::VAndB32, mask, Scalar::Reg(a));
            }
            Some(divisor) if divisor > 0 => self.floor_divide_by(a, divisor as u32),
            // Whatever the quotient by zero is: its product is zero.
            _ => self.floor_quotient(a, b),
        };
        let b = self.factor(b);
        let product = self.vop3(Opcode::VMulLoU32, &[Scalar::Reg(quotient), b]);
        let a = self.in_vector(a);
        self.vop2(Opcode::VSubU32, Scalar::Reg(a), Scalar::Reg(product))
    }

    /// A source of an instruction that takes no literal.
    fn factor(&mut self, source: Scalar) -> Scalar {
        match source {
            Scalar::Const(value) if source.source().0 == Operand::LITERAL => {
                Scalar::Reg(self.constant_sgpr(value as u32))
            }
            Scalar::Const(_) | Scalar::Reg(_) => source,
        }
    }

    /// Quotient in f64, rounded down: whole numbers of 32 bits are so far from other quotients of such
    /// numbers that f64's rounding does not reach them. Unspecified where `b` is zero.
    fn floor_quotient(&mut self, a: Scalar, b: Scalar) -> Operand {
        let [wide_a, wide_b] = [a, b].map(|x| {
            let x = self.in_vector(x);
            let wide = self.emitter.vgpr(2);
            self.emitter.op(Opcode::VCvtF64I32, &[wide, x]);
            wide
        });
        let quotient = self.wide_quotient(wide_a, wide_b);
        let floor = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VFloorF64, &[floor, quotient]);
        // The least integer through -1 is 2^31, which wraps; a conversion would saturate.
        let low = self.wide_constant(WHOLE_IN_LOW_BITS);
        let sum = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VAddF64, &[sum, low, floor]);
        sum.offset(0)
    }

    /// `a / b`, in f64, good to its last bits.
    fn wide_quotient(&mut self, a: Operand, b: Operand) -> Operand {
        let mut reciprocal = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VRcpF64, &[reciprocal, b]);
        let one = Operand::constant(1f32.to_bits());
        for _ in 0..2 {
            let error = self.wide(Opcode::VFmaF64, &[b, reciprocal, one], 1);
            reciprocal = self.wide(Opcode::VFmaF64, &[error, reciprocal, reciprocal], 0);
        }
        let estimate = self.wide(Opcode::VMulF64, &[a, reciprocal], 0);
        let rest = self.wide(Opcode::VFmaF64, &[b, estimate, a], 1);
        self.wide(Opcode::VFmaF64, &[rest, reciprocal, estimate], 0)
    }

    /// The quotient, or zero in the lanes where the divisor is zero.
    fn zero_where_zero(&mut self, divisor: Scalar, quotient: Operand) -> Operand {
        let divisor = self.in_vector(divisor);
        let by_zero = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpEqU32, &[by_zero, Operand::ZERO, divisor]);
        let zero = self.in_vgpr(Scalar::ZERO);
        let out = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[out, quotient, zero, by_zero]);
        out
    }

    /// `x` moved up or down by `count` modulo the width of the dtype.
    pub(super) fn shift(&mut self, opcode: Opcode, x: Scalar, count: Scalar, dtype: DType) -> Operand {
        let count = match count {
            Scalar::Const(count) => Scalar::Const(count & i64::from(dtype.bits() - 1)),
            // The instruction looks at five bits.
            Scalar::Reg(_) if dtype.bits() == 32 => count,
            Scalar::Reg(_) => {
                let bits = Scalar::Const(i64::from(dtype.bits() - 1));
                Scalar::Reg(self.vop2(Opcode::VAndB32, bits, count))
            }
        };
        let x = if self.is_uniform(count) { Scalar::Reg(self.in_vector(x)) } else { x };
        self.vop2(opcode, count, x)
    }

    /// Truncating division in f64, whose 53 bits hold every quotient of 32-bit integers closely enough that
    /// truncation is right.
    fn divide_by_any(&mut self, a: Scalar, b: Scalar) -> Operand {
        let (a, b) = (self.in_vector(a), self.in_vector(b));
        let magnitude = |lowering: &mut Self, x: Operand| {
            let negated = lowering.vop2(Opcode::VSubU32, Scalar::ZERO, Scalar::Reg(x));
            let absolute = lowering.vop2(Opcode::VMaxI32, Scalar::Reg(x), Scalar::Reg(negated));
            let wide = lowering.emitter.vgpr(2);
            // The magnitude of the smallest integer is itself, read as unsigned.
            lowering.emitter.op(Opcode::VCvtF64U32, &[wide, absolute]);
            wide
        };
        let (wide_a, wide_b) = (magnitude(self, a), magnitude(self, b));
        let quotient = self.wide_quotient(wide_a, wide_b);
        let whole = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCvtU32F64, &[whole, quotient]);
        // Sign: all ones where the signs differ.
        let differ = self.vop2(Opcode::VXorB32, Scalar::Reg(a), Scalar::Reg(b));
        let sign = self.vop2(Opcode::VAshrrevI32, Scalar::Const(31), Scalar::Reg(differ));
        let flipped = self.vop2(Opcode::VXorB32, Scalar::Reg(whole), Scalar::Reg(sign));
        let signed = self.vop2(Opcode::VSubU32, Scalar::Reg(flipped), Scalar::Reg(sign));
        self.zero_where_zero(Scalar::Reg(b), signed)
    }
}

/// A divisor that is known now, as the instructions see it.
fn constant_divisor(divisor: Scalar) -> Option<i32> {
    match divisor {
        Scalar::Const(value) => Some(value as u32 as i32),
        Scalar::Reg(_) => None,
    }
}
