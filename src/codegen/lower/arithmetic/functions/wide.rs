//! Arithmetic in f64, in pairs of registers.
//!
//! The vector unit computes f64 sums and products at the rate of f32's (half of it on some chips), so a
//! function whose f32 result needs more bits than f32 has on the way is computed here and rounded once.

use smallvec::SmallVec;

use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;

/// One, as f32 and f64 instructions read it.
pub(crate) fn one() -> Operand {
    Operand::constant(1f32.to_bits())
}

/// `(e^x - 1) / x` between -ln 2 / 2 and ln 2 / 2, highest power first: a minimax fit with a relative error
/// of 2^-37.
const EXP_M1: [f64; 8] = [
    2.4801693128376728e-05,
    0.00019907623668036461,
    0.0013888978510736975,
    0.008333283480727373,
    0.04166666594747185,
    0.16666666786389536,
    0.5000000000121634,
    0.9999999999955157,
];

/// `(log((1 + s) / (1 - s)) - 2 s) / s³` in powers of `s²`, for `|s|` below 0.172, highest power first: a
/// minimax fit with an error of 2^-44 of the logarithm.
const LOG: [f64; 5] =
    [0.1958427815710185, 0.2217618269703762, 0.28572109223698344, 0.3999999562202363, 0.6666666667579842];

/// Sums with it have no bits below one, and the nearest whole number, of 32 bits with its sign, in the low
/// half.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;

impl ArithmeticLayer<'_> {
    /// An instruction with an f64 result; `negated` has a bit for each source.
    pub(crate) fn wide(&mut self, op: Opcode, sources: &[Operand], negated: u32) -> Operand {
        let out = self.emitter.vgpr(2);
        let operands: SmallVec<[Operand; 4]> = [out].into_iter().chain(sources.iter().copied()).collect();
        self.emitter.modified(op, &operands, Modifiers::new().neg(negated));
        out
    }

    /// A constant in a pair of SGPRs: a literal would be the upper half alone.
    pub(crate) fn wide_constant(&mut self, value: f64) -> Operand {
        self.wide_bits(value.to_bits())
    }

    /// 64 bits in a pair of SGPRs.
    pub(crate) fn wide_bits(&mut self, bits: u64) -> Operand {
        if let Some(&(_, register)) = self.wide_constants.iter().find(|c| c.0 == bits) {
            return register;
        }
        let register = self.emitter.sgpr(2);
        for (at, half) in [bits as u32, (bits >> 32) as u32].into_iter().enumerate() {
            let half = Scalar::Const(half.into());
            self.emitter.with(Opcode::SMovB32, register.offset(at as u32), &[half]);
        }
        self.wide_constants.push((bits, register));
        register
    }

    /// A constant in a pair of VGPRs, for instructions that read another one in SGPRs.
    fn wide_constant_copy(&mut self, value: f64) -> Operand {
        let bits = value.to_bits();
        if let Some(&(_, register)) = self.wide_copies.iter().find(|c| c.0 == bits) {
            return register;
        }
        let register = self.emitter.vgpr(2);
        for (at, half) in [bits as u32, (bits >> 32) as u32].into_iter().enumerate() {
            let half = Scalar::Const(half.into());
            self.emitter.with(Opcode::VMovB32, register.offset(at as u32), &[half]);
        }
        self.wide_copies.push((bits, register));
        register
    }

    /// An f32 in f64.
    pub(crate) fn widened(&mut self, x: Operand) -> Operand {
        self.wide(Opcode::VCvtF64F32, &[x], 0)
    }

    /// An f64 rounded to f32, denormals included.
    pub(crate) fn rounded(&mut self, x: Operand) -> Operand {
        let out = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCvtF32F64, &[out, x]);
        out
    }

    pub(super) fn wide_add(&mut self, a: Operand, b: Operand) -> Operand {
        self.wide(Opcode::VAddF64, &[a, b], 0)
    }

    /// `a - b`
    pub(super) fn wide_sub(&mut self, a: Operand, b: Operand) -> Operand {
        self.wide(Opcode::VAddF64, &[a, b], 0b10)
    }

    pub(super) fn wide_mul(&mut self, a: Operand, b: Operand) -> Operand {
        self.wide(Opcode::VMulF64, &[a, b], 0)
    }

    /// `a * b + c`; `negated` has a bit for each factor and the addend.
    pub(super) fn wide_fma(&mut self, sources: [Operand; 3], negated: u32) -> Operand {
        self.wide(Opcode::VFmaF64, &sources, negated)
    }

    /// The product with a constant.
    pub(super) fn wide_scaled(&mut self, x: Operand, factor: f64) -> Operand {
        let factor = self.wide_constant(factor);
        self.wide_mul(x, factor)
    }

    /// `yes` in the lanes of the mask, `no` in the others.
    pub(super) fn wide_choose(&mut self, mask: Operand, yes: Operand, no: Operand) -> Operand {
        let out = self.emitter.vgpr(2);
        for half in 0..2 {
            let operands = [out.offset(half), no.offset(half), yes.offset(half), mask];
            self.emitter.op(Opcode::VCndmaskB32, &operands);
        }
        out
    }

    /// A polynomial, highest power first. An instruction reads one constant at most.
    pub(super) fn wide_polynomial(&mut self, x: Operand, coefficients: &[f64]) -> Operand {
        let mut sum = x;
        for (at, &coefficient) in coefficients.iter().enumerate() {
            let coefficient = self.wide_constant(coefficient);
            sum = match at {
                0 => coefficient,
                1 => {
                    let first = self.wide_mul(x, sum);
                    self.wide_add(first, coefficient)
                }
                _ => self.wide_fma([sum, x, coefficient], 0),
            };
        }
        sum
    }

    /// `1 / x` with a relative error of 2^-47: the instruction's is 2^-24 (CDNA3 ISA guide, V_RCP_F64: 2^29
    /// ULP), and Newton's iteration squares it. Neither zeros nor infinities.
    pub(super) fn wide_reciprocal(&mut self, x: Operand) -> Operand {
        let estimate = self.wide(Opcode::VRcpF64, &[x], 0);
        let error = self.wide_fma([x, estimate, one()], 0b1);
        self.wide_fma([error, estimate, estimate], 0)
    }

    /// The nearest whole number, as an f64 and as an i32.
    pub(super) fn wide_nearest(&mut self, x: Operand) -> (Operand, Operand) {
        let nearest = self.wide(Opcode::VRndneF64, &[x], 0);
        let whole = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCvtI32F64, &[whole, nearest]);
        (nearest, whole)
    }

    /// `e^x = (1 + m) 2^k` for `x` between -700 and 700: `m` and `k`. Added to [`ROUNDING`], `x log2 e` is
    /// rounded to a whole number, which the low half of the sum is.
    pub(super) fn wide_exp_parts(&mut self, x: Operand) -> (Operand, Operand) {
        let log2_e = self.wide_constant(std::f64::consts::LOG2_E);
        let rounding = self.wide_constant_copy(ROUNDING);
        let sum = self.wide_fma([x, log2_e, rounding], 0);
        let (nearest, whole) = (self.wide_sub(sum, rounding), sum);
        let ln_2 = self.wide_constant(std::f64::consts::LN_2);
        let rest = self.wide_fma([nearest, ln_2, x], 0b1);
        (self.wide_exp_of_rest(rest), whole)
    }

    /// `e^x - 1` for `x` between -ln 2 / 2 and ln 2 / 2.
    pub(super) fn wide_exp_of_rest(&mut self, rest: Operand) -> Operand {
        let factor = self.wide_polynomial(rest, &EXP_M1);
        self.wide_mul(rest, factor)
    }

    /// `e^x` for `x` between -700 and 700.
    pub(super) fn wide_exp(&mut self, x: Operand) -> Operand {
        let (mantissa, whole) = self.wide_exp_parts(x);
        let power = self.wide_add(mantissa, one());
        self.wide(Opcode::VLdexpF64, &[power, whole], 0)
    }

    /// The natural logarithm of a positive number that is not infinite: `x = m 2^k` with `m` beside one, and
    /// with `s = (m - 1) / (m + 1)` it is `k ln 2 + 2 s + s³ P(s²)`.
    pub(super) fn wide_log(&mut self, x: Operand) -> Operand {
        let mantissa = self.wide(Opcode::VFrexpMantF64, &[x], 0);
        let exponent = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VFrexpExpI32F64, &[exponent, x]);
        // The mantissa is at least a half; below the root of a half it is doubled.
        let root = self.constant_sgpr((std::f64::consts::FRAC_1_SQRT_2.to_bits() >> 32) as u32);
        let low = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpGtU32, &[low, root, mantissa.offset(1)]);
        let up = self.choose(low, Scalar::Const(1), Scalar::ZERO);
        let mantissa = self.wide(Opcode::VLdexpF64, &[mantissa, up], 0);
        let exponent = self.vop2(Opcode::VSubU32, Scalar::Reg(exponent), Scalar::Reg(up));
        let exponent = self.wide(Opcode::VCvtF64I32, &[exponent], 0);
        let (less, more) = (self.wide_sub(mantissa, one()), self.wide_add(mantissa, one()));
        let reciprocal = self.wide_reciprocal(more);
        let s = self.wide_mul(less, reciprocal);
        let square = self.wide_mul(s, s);
        let tail = self.wide_polynomial(square, &LOG);
        let cube = self.wide_mul(square, s);
        let twice = self.wide_add(s, s);
        let sum = self.wide_fma([cube, tail, twice], 0);
        let ln_2 = self.wide_constant(std::f64::consts::LN_2);
        self.wide_fma([exponent, ln_2, sum], 0)
    }
}
