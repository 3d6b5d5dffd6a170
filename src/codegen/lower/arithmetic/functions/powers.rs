//! Roots, and powers of any base.

use super::wide::one;
use super::{Care, constant};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::types::DType;

/// Classes of v_cmp_class_f32 (CDNA3 ISA guide): bits for NaNs, minus infinity, negative normal and denormal
/// numbers, zeros, positive ones, plus infinity.
pub(crate) const ZERO: u32 = 0x60;

const NAN_OR_INFINITE: u32 = 0x207;

const NEGATIVE: u32 = 0x18;

const NAN_ZERO_OR_INFINITE: u32 = 0x267;

impl ArithmeticLayer<'_> {
    /// The instruction takes denormals for zeros, so they are scaled by an even power of two before.
    pub(crate) fn rsqrt(&mut self, x: Scalar, dtype: DType) -> Operand {
        if self.care(dtype) == Care::None {
            return self.vop1(Opcode::VRsqF32, x);
        }
        let x = self.in_vector(x);
        let small = self.less_than(x, f32::MIN_POSITIVE);
        let up = self.choose(small, Scalar::Const(32), Scalar::ZERO);
        let scaled = self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(x), Scalar::Reg(up)]);
        let root = self.vop1(Opcode::VRsqF32, Scalar::Reg(scaled));
        let back = self.choose(small, Scalar::Const(16), Scalar::ZERO);
        self.vop3(Opcode::VLdexpF32, &[Scalar::Reg(root), Scalar::Reg(back)])
    }

    pub(crate) fn cbrt(&mut self, x: Scalar, dtype: DType) -> Operand {
        let x = self.in_vector(x);
        let magnitude = self.magnitude(x);
        let logarithm = match self.care(dtype) {
            Care::Precision => self.log2(Scalar::Reg(magnitude), DType::Bf16),
            Care::None | Care::Range => self.log2(Scalar::Reg(magnitude), dtype),
        };
        let third = self.vop2(Opcode::VMulF32, constant(1.0 / 3.0), Scalar::Reg(logarithm));
        let root = self.vop1(Opcode::VExpF32, Scalar::Reg(third));
        if self.care(dtype) != Care::Precision {
            return self.signed_as(root, x);
        }
        // Newton's iteration in f64, from an error of 2^-18: `y + (x - y³) / 3 y²`.
        let square = self.vop2(Opcode::VMulF32, Scalar::Reg(root), Scalar::Reg(root));
        let slope = self.vop2(Opcode::VMulF32, constant(3.0), Scalar::Reg(square));
        let slope = self.vop1(Opcode::VRcpF32, Scalar::Reg(slope));
        let [wide, y, slope] = [magnitude, root, slope].map(|v| self.widened(v));
        let square = self.wide_mul(y, y);
        let rest = self.wide_fma([square, y, wide], 0b1);
        let better = self.wide_fma([rest, slope, y], 0);
        let better = self.rounded(better);
        let result = self.signed_as(better, x);
        let special = self.is_of_class(x, NAN_ZERO_OR_INFINITE);
        self.choose(special, Scalar::Reg(x), Scalar::Reg(result))
    }

    /// `x^y` by `2^(y log2 |x|)` in f64, and the cases of IEEE 754, 9.2.1.
    pub(crate) fn pow(&mut self, x: Scalar, y: Scalar) -> Operand {
        let [x, y] = [x, y].map(|v| self.in_vector(v));
        let magnitude = self.magnitude(x);
        let wide = self.widened(magnitude);
        let logarithm = self.wide_log(wide);
        // Numbers so large that only an exponent of zero makes their product small. A NaN to the power of
        // zero is one, too.
        let mut high = logarithm.offset(1);
        for (class, value) in [(ZERO, -1e300f64), (NAN_OR_INFINITE, 1e300)] {
            let is = self.is_of_class(x, class);
            high = self.choose(is, Scalar::Const((value.to_bits() >> 32) as i64), Scalar::Reg(high));
        }
        let together = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VMovB32, &[together.offset(0), logarithm.offset(0)]);
        self.emitter.op(Opcode::VMovB32, &[together.offset(1), high]);
        let base_two = self.wide_scaled(together, std::f64::consts::LOG2_E);
        // An infinite exponent, which times zero would be NaN.
        let mut exponent = self.widened(y);
        for (op, bound) in [(Opcode::VMinF64, 1e300), (Opcode::VMaxF64, -1e300)] {
            let bound = self.wide_constant(bound);
            exponent = self.wide(op, &[exponent, bound], 0);
        }
        let mut power = self.wide_mul(base_two, exponent);
        for (op, bound) in [(Opcode::VMinF64, 1000.0), (Opcode::VMaxF64, -1000.0)] {
            let bound = self.wide_constant(bound);
            power = self.wide(op, &[power, bound], 0);
        }
        let (nearest, whole) = self.wide_nearest(power);
        let rest = self.wide_sub(power, nearest);
        let rest = self.wide_scaled(rest, std::f64::consts::LN_2);
        let mantissa = self.wide_exp_of_rest(rest);
        let mantissa = self.wide_add(mantissa, one());
        let result = self.wide(Opcode::VLdexpF64, &[mantissa, whole], 0);
        let result = self.rounded(result);
        self.signed_power(x, y, result)
    }

    /// The power with the sign of `x` where `y` is odd, NaN where a negative number has a broken exponent,
    /// and where one of them is NaN, unless the other one decides alone.
    fn signed_power(&mut self, x: Operand, y: Operand, power: Operand) -> Operand {
        let half = self.vop2(Opcode::VMulF32, constant(0.5), Scalar::Reg(y));
        let [whole, whole_half] = [y, half].map(|v| self.vop1(Opcode::VTruncF32, Scalar::Reg(v)));
        let masks: [Operand; 6] = std::array::from_fn(|_| self.emitter.sgpr(2));
        let [integer, odd, nan, not_one, not_zero, undefined] = masks;
        self.emitter.op(Opcode::VCmpEqF32, &[integer, whole, y]);
        self.emitter.op(Opcode::VCmpNeqF32, &[odd, whole_half, half]);
        self.emitter.op(Opcode::SAndB64, &[odd, odd, integer]);
        let sign = self.vop2(Opcode::VAndB32, Scalar::Const(0x8000_0000), Scalar::Reg(x));
        let sign = self.choose(odd, Scalar::Reg(sign), Scalar::ZERO);
        let result = self.vop2(Opcode::VOrB32, Scalar::Reg(sign), Scalar::Reg(power));
        let negative = self.is_of_class(x, NEGATIVE);
        self.emitter.op(Opcode::SAndn2B64, &[undefined, negative, integer]);
        self.emitter.op(Opcode::VCmpUF32, &[nan, x, y]);
        self.emitter.op(Opcode::VCmpNeqF32, &[not_one, one(), x]);
        self.emitter.op(Opcode::VCmpNeqF32, &[not_zero, Operand::ZERO, y]);
        self.emitter.op(Opcode::SAndB64, &[nan, nan, not_one]);
        self.emitter.op(Opcode::SAndB64, &[nan, nan, not_zero]);
        self.emitter.op(Opcode::SOrB64, &[nan, nan, undefined]);
        self.choose(nan, Scalar::Const(f32::NAN.to_bits().into()), Scalar::Reg(result))
    }
}
