//! Functions made of powers of e: of hyperbolas, and sigmoids with what they weigh.

use super::wide::one;
use super::{Care, LOG2_E, constant};
use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::types::DType;

/// sqrt(8 / pi), and what the cube weighs beside the number: `gelu_tanh x = x sigmoid(c x (1 + d x²))`.
const GELU: [f64; 2] = [1.595_769_121_605_731, 0.044_715];

impl ArithmeticLayer<'_> {
    /// `e^x - 1 = m 2^k + (2^k - 1)`, where nothing cancels.
    pub(crate) fn expm1(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let bounded = self.bounded(x, -200.0, 200.0);
        let wide = self.widened(bounded);
        let result = self.wide_expm1(wide);
        let result = self.rounded(result);
        // The sign of zeros, which the sum loses.
        let result = self.signed_as(result, x);
        self.unless_nan(x, result)
    }

    fn wide_expm1(&mut self, x: Operand) -> Operand {
        let (mantissa, whole) = self.wide_exp_parts(x);
        let power = self.wide(Opcode::VLdexpF64, &[one(), whole], 0);
        let less = self.wide_sub(power, one());
        self.wide_fma([power, mantissa, less], 0)
    }

    /// With `t = e^|x| - 1`: `(t + t / (t + 1)) / 2`.
    pub(crate) fn sinh(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let magnitude = self.magnitude(x);
        let bounded = self.vop2(Opcode::VMinF32, constant(200.0), Scalar::Reg(magnitude));
        let wide = self.widened(bounded);
        let above = self.wide_expm1(wide);
        let power = self.wide_add(above, one());
        let reciprocal = self.wide_reciprocal(power);
        let twice = self.wide_fma([above, reciprocal, above], 0);
        let half = Operand::constant(0.5f32.to_bits());
        let result = self.wide_mul(twice, half);
        let result = self.rounded(result);
        let result = self.signed_as(result, x);
        self.unless_nan(x, result)
    }

    /// `(e^|x| + e^-|x|) / 2`
    pub(crate) fn cosh(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let magnitude = self.magnitude(x);
        let bounded = self.vop2(Opcode::VMinF32, constant(200.0), Scalar::Reg(magnitude));
        let wide = self.widened(bounded);
        let power = self.wide_exp(wide);
        let reciprocal = self.wide_reciprocal(power);
        let twice = self.wide_add(power, reciprocal);
        let half = Operand::constant(0.5f32.to_bits());
        let result = self.wide_mul(twice, half);
        let result = self.rounded(result);
        self.unless_nan(x, result)
    }

    pub(crate) fn sigmoid(&mut self, x: Scalar, dtype: DType) -> Operand {
        let x = self.in_vector(x);
        if self.care(dtype) != Care::Precision {
            return self.narrow_sigmoid(x, dtype);
        }
        let bounded = self.bounded(x, -200.0, 200.0);
        let wide = self.emitter.vgpr(2);
        self.emitter.modified(Opcode::VCvtF64F32, &[wide, bounded], Modifiers::new().neg(1));
        let result = self.wide_sigmoid_of_negative(wide);
        let result = self.rounded(result);
        self.unless_nan(x, result)
    }

    /// `x sigmoid(x)`
    pub(crate) fn silu(&mut self, x: Scalar, dtype: DType) -> Operand {
        let x = self.in_vector(x);
        // Minus infinity times zero would be NaN; a NaN is not less.
        let x = self.at_least(x, -200.0);
        if self.care(dtype) != Care::Precision {
            let factor = self.narrow_sigmoid(x, dtype);
            return self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(factor));
        }
        // The negative of the lesser of `x` and 200.
        let (least, bounded) = (self.constant_sgpr((-200f32).to_bits()), self.emitter.vgpr(1));
        self.emitter.modified(Opcode::VMaxF32, &[bounded, x, least], Modifiers::new().neg(1));
        let argument = self.widened(bounded);
        self.wide_weighted(x, argument)
    }

    pub(crate) fn gelu_tanh(&mut self, x: Scalar, dtype: DType) -> Operand {
        let [scale, cube] = GELU;
        let x = self.in_vector(x);
        let x = self.at_least(x, -20.0);
        if self.care(dtype) != Care::Precision {
            let square = self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(x));
            let cubic = constant((scale * cube) as f32);
            let factor = self.vop2(Opcode::VMulF32, cubic, Scalar::Reg(square));
            let factor = self.vop2(Opcode::VAddF32, constant(scale as f32), Scalar::Reg(factor));
            let argument = self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(factor));
            let factor = self.narrow_sigmoid(argument, dtype);
            return self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(factor));
        }
        let bounded = self.vop2(Opcode::VMinF32, constant(20.0), Scalar::Reg(x));
        let wide = self.widened(bounded);
        let square = self.wide_mul(wide, wide);
        let cubic = self.wide_scaled(square, -scale * cube);
        let scale = self.wide_constant(-scale);
        let factor = self.wide_add(cubic, scale);
        let argument = self.wide_mul(wide, factor);
        self.wide_weighted(x, argument)
    }

    /// `1 / (1 + e^x)`, the sigmoid of `-x`, for `x` between -700 and 700.
    fn wide_sigmoid_of_negative(&mut self, x: Operand) -> Operand {
        let power = self.wide_exp(x);
        let sum = self.wide_add(power, one());
        self.wide_reciprocal(sum)
    }

    /// `x sigmoid(-argument)`
    fn wide_weighted(&mut self, x: Operand, argument: Operand) -> Operand {
        let factor = self.wide_sigmoid_of_negative(argument);
        let wide = self.widened(x);
        let result = self.wide_mul(wide, factor);
        self.rounded(result)
    }

    /// In f32. Where denormals count, the power is that of the negative magnitude, which does not overflow.
    fn narrow_sigmoid(&mut self, x: Operand, dtype: DType) -> Operand {
        if self.care(dtype) == Care::None {
            let exponent = self.vop2(Opcode::VMulF32, constant(-LOG2_E[0]), Scalar::Reg(x));
            let power = self.vop1(Opcode::VExpF32, Scalar::Reg(exponent));
            let sum = self.vop2(Opcode::VAddF32, constant(1.0), Scalar::Reg(power));
            return self.vop1(Opcode::VRcpF32, Scalar::Reg(sum));
        }
        let magnitude = self.magnitude(x);
        let exponent = self.vop2(Opcode::VMulF32, constant(-LOG2_E[0]), Scalar::Reg(magnitude));
        // Where the power is zero; so that it is finite.
        let exponent = self.vop2(Opcode::VMaxF32, constant(-300.0), Scalar::Reg(exponent));
        let power = self.exp2(Scalar::Reg(exponent), dtype);
        let sum = self.vop2(Opcode::VAddF32, constant(1.0), Scalar::Reg(power));
        let right = self.vop1(Opcode::VRcpF32, Scalar::Reg(sum));
        let left = self.vop2(Opcode::VMulF32, Scalar::Reg(power), Scalar::Reg(right));
        let negative = self.less_than(x, 0.0);
        let result = self.choose(negative, Scalar::Reg(left), Scalar::Reg(right));
        self.unless_nan(x, result)
    }
}
