//! Powers, logarithms, roots, reciprocals: sequences around the approximating instructions of the vector
//! unit, in 32 bits.
//!
//! `v_exp_f32`, `v_log_f32`, `v_sqrt_f32` and `v_rcp_f32` are accurate to 1 ULP and treat denormals as zeros,
//! in sources and results (CDNA3 ISA guide, "VOP1 instructions"; LLVM, AMDGPULegalizerInfo.cpp, scales around
//! them where f32 denormals count). docs/numerics.md describes what these sequences add, and the resulting
//! error bounds. All of f16 is far inside of f32's normal range, so f16 takes the instructions as they are;
//! bf16 has f32's range and needs the scaling, but not the last bits.
//!
//! None of them compares with infinities or NaN: where an instruction gives the right one, the arithmetic
//! around it keeps it.

mod errors;
mod exponentials;
mod logarithms;
mod powers;
mod rounding;
mod trigonometry;
pub(super) mod wide;

use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::types::DType;
use crate::passes::options::FloatFunctions;

pub(super) use trigonometry::Sinusoid;

/// 1 / ln 2 as the sum of two f32.
pub(super) const LOG2_E: [f32; 2] = [std::f32::consts::LOG2_E, 1.925_963e-8];

/// `tanh x = x + x³ P(x²)` for `|x|` below [`TANH_SMALL`], highest power first: a Chebyshev fit whose
/// relative error is below 2^-25.8.
const TANH: [f32; 5] = [-6.096_714e-3, 2.099_718e-2, -5.385_090_8e-2, 1.333_277e-1, -3.333_332_8e-1];

/// Where [`TANH`] ends; above, `1 - 2 / (e^2x + 1)` loses less than a bit to cancellation.
const TANH_SMALL: f32 = 0.625;

/// What a sequence has to take care of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Care {
    /// Nothing: the instruction as it is.
    None,
    /// Denormals.
    Range,
    /// Denormals and the last bits of an f32.
    Precision,
}

pub(crate) fn constant(value: f32) -> Scalar {
    Scalar::Const(i64::from(value.to_bits()))
}

impl ArithmeticLayer<'_> {
    /// IEEE division: scales both operands so that nothing overflows or is denormal, refines a reciprocal
    /// estimate by two fused multiply-adds, refines the quotient in the same way, and undoes the scaling
    /// (CDNA3 ISA guide, `v_div_scale_f32`, `v_div_fmas_f32`, `v_div_fixup_f32`).
    pub(crate) fn divide_floats(&mut self, a: Scalar, b: Scalar) -> Operand {
        let (a, b) = (self.in_vector(a), self.in_vector(b));
        let (scaled_b, scaled_a, unused) = (self.emitter.vgpr(1), self.emitter.vgpr(1), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VDivScaleF32, &[scaled_b, unused, b, b, a]);
        self.emitter.op(Opcode::VDivScaleF32, &[scaled_a, Operand::VCC, a, b, a]);
        let estimate = self.vop1(Opcode::VRcpF32, Scalar::Reg(scaled_b));
        let one = Operand::constant(1f32.to_bits());
        let error = self.fma([scaled_b, estimate, one], 1);
        let reciprocal = self.fma([error, estimate, estimate], 0);
        let quotient = self.vop2(Opcode::VMulF32, Scalar::Reg(scaled_a), Scalar::Reg(reciprocal));
        let rest = self.fma([scaled_b, quotient, scaled_a], 1);
        let better = self.fma([rest, reciprocal, quotient], 0);
        let rest = self.fma([scaled_b, better, scaled_a], 1);
        let unscaled = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VDivFmasF32, &[unscaled, rest, reciprocal, better]);
        let out = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VDivFixupF32, &[out, unscaled, b, a]);
        out
    }

    pub(super) fn care(&self, dtype: DType) -> Care {
        match (self.functions, dtype) {
            (FloatFunctions::Fast, _) => Care::None,
            (_, DType::Bf16) => Care::Range,
            (_, dtype) if dtype.bits() < 32 => Care::None,
            _ => Care::Precision,
        }
    }

    pub(crate) fn exp2(&mut self, x: Scalar, dtype: DType) -> Operand {
        if self.care(dtype) == Care::None {
            return self.vop1(Opcode::VExpF32, x);
        }
        if self.care(dtype) == Care::Range {
            let half = self.vop2(Opcode::VMulF32, constant(0.5), x);
            return self.exp2_of_twice(half);
        }
        // The fraction's power is in (1/2, 2), and the whole part goes to the exponent. Far outside of the
        // integers' range the fraction overflows, in the same direction as the result.
        let x = Scalar::Reg(self.in_vgpr(x));
        let whole = self.vop1(Opcode::VCvtI32F32, x);
        let rounded = self.vop1(Opcode::VCvtF32I32, Scalar::Reg(whole));
        let fraction = self.vop2(Opcode::VSubF32, x, Scalar::Reg(rounded));
        let power = self.vop1(Opcode::VExpF32, Scalar::Reg(fraction));
        self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(power), Scalar::Reg(whole)])
    }

    /// The square of a power of two: it is denormal where its root is far from that. Squaring doubles the
    /// relative error of the instruction, which is still far below the last bit of a bf16.
    fn exp2_of_twice(&mut self, half: Operand) -> Operand {
        let root = self.vop1(Opcode::VExpF32, Scalar::Reg(half));
        self.vop2(Opcode::VMulF32, Scalar::Reg(root), Scalar::Reg(root))
    }

    pub(crate) fn exp(&mut self, x: Scalar, dtype: DType) -> Operand {
        match self.care(dtype) {
            Care::None => {
                let exponent = self.vop2(Opcode::VMulF32, constant(LOG2_E[0]), x);
                return self.vop1(Opcode::VExpF32, Scalar::Reg(exponent));
            }
            Care::Range => {
                let half = self.vop2(Opcode::VMulF32, constant(LOG2_E[0] / 2.0), x);
                return self.exp2_of_twice(half);
            }
            Care::Precision => {}
        }
        // The product with log2 e needs more bits than an f32 has: its nearest integer is subtracted before
        // it is rounded.
        let x = self.in_vgpr(x);
        let near = self.vop2(Opcode::VMulF32, constant(LOG2_E[0]), Scalar::Reg(x));
        // Far outside of the integers' range the fraction overflows, in the same direction as the result.
        let whole = self.vop1(Opcode::VCvtRpiI32F32, Scalar::Reg(near));
        let rounded = self.vop1(Opcode::VCvtF32I32, Scalar::Reg(whole));
        let [high, low] = LOG2_E.map(|part| self.constant_sgpr(part.to_bits()));
        let fraction = self.fma([x, high, rounded], 0b100);
        let fraction = self.fma([x, low, fraction], 0);
        let power = self.vop1(Opcode::VExpF32, Scalar::Reg(fraction));
        self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(power), Scalar::Reg(whole)])
    }

    pub(crate) fn log2(&mut self, x: Scalar, dtype: DType) -> Operand {
        if self.care(dtype) == Care::None {
            return self.vop1(Opcode::VLogF32, x);
        }
        let x = self.in_vgpr(x);
        let denormal = self.less_than(x, f32::MIN_POSITIVE);
        let scale = self.choose(denormal, Scalar::Const(32), Scalar::ZERO);
        let scaled = self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(x), Scalar::Reg(scale)]);
        let logarithm = self.vop1(Opcode::VLogF32, Scalar::Reg(scaled));
        let scale = self.vop1(Opcode::VCvtF32I32, Scalar::Reg(scale));
        self.vop2(Opcode::VSubF32, Scalar::Reg(logarithm), Scalar::Reg(scale))
    }

    pub(crate) fn sqrt(&mut self, x: Scalar, dtype: DType) -> Operand {
        let (least, up) = match self.care(dtype) {
            Care::None => return self.vop1(Opcode::VSqrtF32, x),
            Care::Range => (f32::MIN_POSITIVE, 32),
            // Far enough up that the remainders below are normal numbers: 2^-46 of the least scaled number,
            // at least.
            Care::Precision => (1.0 / (1u128 << 96) as f32, 64),
        };
        let x = self.in_vgpr(x);
        let small = self.less_than(x, least);
        let scale = self.choose(small, Scalar::Const(up), Scalar::ZERO);
        let scaled = self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(x), Scalar::Reg(scale)]);
        let mut root = self.vop1(Opcode::VSqrtF32, Scalar::Reg(scaled));
        if self.care(dtype) == Care::Precision {
            root = self.nearest_root(scaled, root);
        }
        let back = self.choose(small, Scalar::Const(-up / 2), Scalar::ZERO);
        self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(root), Scalar::Reg(back)])
    }

    /// The root that is nearest to that of `x`, given `root`, which is off by at most 1 ULP, and its
    /// neighbours. A number `r` is the rounded root exactly if `x` is above `r` times the number before and
    /// not above `r` times the number after (Tuckerman's test). For zeros, infinity and NaN the comparisons
    /// are false.
    fn nearest_root(&mut self, x: Operand, root: Operand) -> Operand {
        let before = self.vop2(Opcode::VAddU32, Scalar::Const(-1), Scalar::Reg(root));
        let after = self.vop2(Opcode::VAddU32, Scalar::Const(1), Scalar::Reg(root));
        let [too_large, too_small] = [self.emitter.sgpr(2), self.emitter.sgpr(2)];
        let rest = self.fma([before, root, x], 1);
        self.emitter.op(Opcode::VCmpGeF32, &[too_large, Operand::ZERO, rest]);
        let rest = self.fma([after, root, x], 1);
        self.emitter.op(Opcode::VCmpLtF32, &[too_small, Operand::ZERO, rest]);
        let root = self.choose(too_large, Scalar::Reg(before), Scalar::Reg(root));
        self.choose(too_small, Scalar::Reg(after), Scalar::Reg(root))
    }

    pub(crate) fn tanh(&mut self, x: Scalar) -> Operand {
        let x = self.in_vgpr(x);
        let magnitude = self.vop2(Opcode::VAndB32, Scalar::Const(0x7fff_ffff), Scalar::Reg(x));
        // Large arguments: the power may overflow, and its reciprocal is the right zero.
        let exponent = self.vop2(Opcode::VMulF32, constant(2.0 * LOG2_E[0]), Scalar::Reg(magnitude));
        let power = self.vop1(Opcode::VExpF32, Scalar::Reg(exponent));
        let above = self.vop2(Opcode::VAddF32, constant(1.0), Scalar::Reg(power));
        let reciprocal = self.vop1(Opcode::VRcpF32, Scalar::Reg(above));
        let [one, minus_two] = [1f32, -2.0].map(|value| Operand::constant(value.to_bits()));
        let large = self.fma([reciprocal, minus_two, one], 0);
        // Small ones.
        let square = self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(x));
        let [first, second, others @ ..] = TANH;
        let term = self.vop2(Opcode::VMulF32, constant(first), Scalar::Reg(square));
        let mut sum = self.vop2(Opcode::VAddF32, constant(second), Scalar::Reg(term));
        for coefficient in others {
            let coefficient = self.constant_sgpr(coefficient.to_bits());
            sum = self.fma([sum, square, coefficient], 0);
        }
        let factor = self.vop2(Opcode::VMulF32, Scalar::Reg(square), Scalar::Reg(sum));
        let small = self.fma([x, factor, x], 0);
        let is_small = self.less_than(magnitude, TANH_SMALL);
        let result = self.choose(is_small, Scalar::Reg(small), Scalar::Reg(large));
        // The sign is that of x, also for zero, whose sign the sum above loses.
        let others = self.constant_sgpr(0x7fff_ffff);
        self.vop3(Opcode::VBfiB32, &[Scalar::Reg(others), Scalar::Reg(result), Scalar::Reg(x)])
    }

    /// `a / b`
    pub(crate) fn quotient(&mut self, a: Scalar, b: Scalar) -> Operand {
        if self.functions == FloatFunctions::Accurate {
            return self.divide_floats(a, b);
        }
        // Either may be an SGPR.
        let reciprocal = self.vop1(Opcode::VRcpF32, b);
        self.vop2(Opcode::VMulF32, a, Scalar::Reg(reciprocal))
    }

    pub(crate) fn reciprocal(&mut self, x: Scalar) -> Operand {
        match self.functions {
            FloatFunctions::Accurate => self.divide_floats(constant(1.0), x),
            FloatFunctions::Fast => self.vop1(Opcode::VRcpF32, x),
        }
    }

    /// The lanes in which `x` is less than `limit`.
    pub(super) fn less_than(&mut self, x: Operand, limit: f32) -> Operand {
        let (limit, mask) = (self.constant_sgpr(limit.to_bits()), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VCmpGtF32, &[mask, limit, x]);
        mask
    }

    /// `yes` in the lanes of the mask, `no` in the others.
    pub(super) fn choose(&mut self, mask: Operand, yes: Scalar, no: Scalar) -> Operand {
        self.vop3(Opcode::VCndmaskB32, &[no, yes, Scalar::Reg(mask)])
    }

    /// The number without its sign.
    pub(super) fn magnitude(&mut self, x: Operand) -> Operand {
        self.vop2(Opcode::VAndB32, Scalar::Const(0x7fff_ffff), Scalar::Reg(x))
    }

    /// `x` with the sign of `sign`.
    pub(super) fn signed_as(&mut self, x: Operand, sign: Operand) -> Operand {
        let others = self.constant_sgpr(0x7fff_ffff);
        self.vop3(Opcode::VBfiB32, &[Scalar::Reg(others), Scalar::Reg(x), Scalar::Reg(sign)])
    }

    /// The lanes in which `x` is in one of the classes of v_cmp_class_f32.
    pub(super) fn is_of_class(&mut self, x: Operand, classes: u32) -> Operand {
        let (classes, mask) = (self.constant_sgpr(classes), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VCmpClassF32, &[mask, x, classes]);
        mask
    }

    /// The number, or the nearest of the bounds; a NaN becomes any of them.
    pub(super) fn bounded(&mut self, x: Operand, least: f32, most: f32) -> Operand {
        let bounded = self.vop2(Opcode::VMaxF32, constant(least), Scalar::Reg(x));
        self.vop2(Opcode::VMinF32, constant(most), Scalar::Reg(bounded))
    }

    /// The number, or the bound where that is larger; a NaN stays.
    pub(crate) fn at_least(&mut self, x: Operand, least: f32) -> Operand {
        let below = self.less_than(x, least);
        self.choose(below, constant(least), Scalar::Reg(x))
    }

    /// The result, or NaN in the lanes where `x` is NaN.
    pub(super) fn unless_nan(&mut self, x: Operand, result: Operand) -> Operand {
        let nan = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpUF32, &[nan, x, x]);
        self.choose(nan, Scalar::Reg(x), Scalar::Reg(result))
    }

    /// A polynomial, highest power first. An instruction reads one constant at most.
    pub(super) fn polynomial(&mut self, x: Operand, coefficients: &[f32]) -> Operand {
        let mut sum = x;
        for (at, &coefficient) in coefficients.iter().enumerate().skip(1) {
            sum = match at {
                1 => {
                    let first = self.vop2(Opcode::VMulF32, constant(coefficients[0]), Scalar::Reg(x));
                    self.vop2(Opcode::VAddF32, constant(coefficient), Scalar::Reg(first))
                }
                _ => {
                    let coefficient = self.constant_sgpr(coefficient.to_bits());
                    self.fma([sum, x, coefficient], 0)
                }
            };
        }
        sum
    }

    /// `a * b + c`; `negated` has a bit for each factor and the addend.
    pub(super) fn fma(&mut self, [a, b, c]: [Operand; 3], negated: u32) -> Operand {
        let out = self.emitter.vgpr(1);
        self.emitter.modified(Opcode::VFmaF32, &[out, a, b, c], Modifiers::new().neg(negated));
        out
    }
}
