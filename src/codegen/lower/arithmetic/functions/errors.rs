//! The integral of the normal distribution: `erf`, and `gelu`, which weighs a number with it.

use super::wide::one;
use super::{Care, LOG2_E, constant};
use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::types::DType;

/// `erf x / x - 1` below one in powers of `x²`, highest first: a minimax fit with an error of 2^-29.
const SMALL: [f32; 7] = [
    7.853_85e-5,
    -8.010_202_7e-4,
    5.188_330_5e-3,
    -2.685_381_5e-2,
    1.128_358_5e-1,
    -3.761_262_6e-1,
    1.283_791_7e-1,
];

/// `log2 (1 - erf x)` from one to four, highest power first: a minimax fit with an error of 2^-35 of `erf x`.
const LARGE: [f64; 8] = [
    -2.168649431629791e-05,
    0.00044133199405342903,
    -0.004204539181177262,
    0.02520819274450199,
    -0.10841847115840156,
    -0.6332199967582084,
    -1.1295783690881263,
    0.00018802787498197233,
];

/// `e^(a²) (1 - erf a) (1 + 2 a)` for `a` from 0 to 10.5 in powers of `1 - 6 / (a + 3)` (the form is Shepherd
/// and Laframboise's, Math. Comp. 36, 1981), highest power first: a minimax fit with an error of 2^-34.
const SCALED: [f64; 13] = [
    3.268217311228384e-05,
    0.0001254404184169006,
    -0.00012775620158549035,
    -0.0007896301582715992,
    0.0018950743955963624,
    0.002533660536345477,
    -0.023771242844237907,
    0.06830731612476477,
    -0.11927363527081893,
    0.1296452061509208,
    -0.0475622945058783,
    -0.1356211070164483,
    1.2530080582699366,
];

/// `e^(x²/2) (1 - erf(x / sqrt 2)) / 2 / t` for `x` from 0 to 20, with `t = 1 / (1 + x` [`NARROW_STEP`]`)`,
/// in powers of `t`, highest first: a minimax fit with a relative error of 2^-19.6.
const NARROW_TAIL: [f32; 7] =
    [0.048_383_433, -0.172_097_12, 0.150_795_36, 0.043_123, 0.136_306_84, 0.146_238_74, 0.147_250_37];

/// How `t` falls with `x` in [`NARROW_TAIL`].
const NARROW_STEP: f32 = 0.369;

impl ArithmeticLayer<'_> {
    pub(crate) fn erf(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let square = self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(x));
        let factor = self.polynomial(square, &SMALL);
        let small = self.fma([x, factor, x], 0);
        // A magnitude of four and more gives one.
        let magnitude = self.magnitude(x);
        let bounded = self.vop2(Opcode::VMinF32, constant(4.0), Scalar::Reg(magnitude));
        let exponent = self.polynomial(bounded, &LARGE.map(|c| (c * std::f64::consts::LOG2_E) as f32));
        let rest = self.vop1(Opcode::VExpF32, Scalar::Reg(exponent));
        let large = self.vop2(Opcode::VSubF32, constant(1.0), Scalar::Reg(rest));
        let large = self.signed_as(large, x);
        let is_large = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpLtF32, &[is_large, one(), magnitude]);
        self.choose(is_large, Scalar::Reg(large), Scalar::Reg(small))
    }

    /// `x (1 + erf(x / sqrt 2)) / 2`, as `max(x, 0)` less what the tail of the distribution takes off: with
    /// `b = |x|`, `b (1 - erf(b / sqrt 2)) / 2`, whose bits count where `x` is negative.
    pub(crate) fn gelu(&mut self, x: Scalar, dtype: DType) -> Operand {
        let x = self.in_vector(x);
        if self.care(dtype) != Care::Precision {
            return self.narrow_gelu(x, dtype);
        }
        // A NaN is lost here, and comes back with the sum.
        let bounded = self.magnitude_up_to(x, 14.8);
        let wide = self.widened(bounded);
        let square = self.wide_mul(wide, wide);
        let half = self.wide_mul(square, Operand::constant((-0.5f32).to_bits()));
        let power = self.wide_exp(half);
        let a = self.wide_scaled(wide, std::f64::consts::FRAC_1_SQRT_2);
        // Both reciprocals from that of the product.
        let three = self.wide_constant(3.0);
        let first = self.wide_add(a, three);
        let second = self.wide_fma([a, Operand::constant(2f32.to_bits()), one()], 0);
        let product = self.wide_mul(first, second);
        let reciprocal = self.wide_reciprocal(product);
        let over_first = self.wide_mul(reciprocal, second);
        let over_second = self.wide_mul(reciprocal, first);
        let minus_six = self.wide_constant(-6.0);
        let t = self.wide_fma([over_first, minus_six, one()], 0);
        let scaled = self.wide_polynomial(t, &SCALED.map(|coefficient| coefficient / 2.0));
        let tail = self.wide_mul(scaled, over_second);
        let tail = self.wide_mul(tail, power);
        let positive = self.unless_negative(x);
        let positive = self.widened(positive);
        let result = self.wide_fma([wide, tail, positive], 0b1);
        self.rounded(result)
    }

    fn narrow_gelu(&mut self, x: Operand, dtype: DType) -> Operand {
        let bounded = self.magnitude_up_to(x, 20.0);
        let step = self.constant_sgpr(NARROW_STEP.to_bits());
        let below = self.fma([bounded, step, one()], 0);
        let t = self.vop1(Opcode::VRcpF32, Scalar::Reg(below));
        let scaled = self.polynomial(t, &NARROW_TAIL);
        let factor = self.vop2(Opcode::VMulF32, Scalar::Reg(scaled), Scalar::Reg(t));
        let square = self.vop2(Opcode::VMulF32, Scalar::Reg(bounded), Scalar::Reg(bounded));
        let exponent = self.vop2(Opcode::VMulF32, constant(-0.5 * LOG2_E[0]), Scalar::Reg(square));
        let power = self.exp2(Scalar::Reg(exponent), dtype);
        let tail = self.vop2(Opcode::VMulF32, Scalar::Reg(factor), Scalar::Reg(power));
        let positive = self.unless_negative(x);
        self.fma([bounded, tail, positive], 0b1)
    }

    /// The number without its sign, but no more than `most`, which a NaN becomes as well.
    fn magnitude_up_to(&mut self, x: Operand, most: f32) -> Operand {
        let (most, out) = (self.constant_sgpr(most.to_bits()), self.emitter.vgpr(1));
        self.emitter.modified(Opcode::VMinF32, &[out, x, most], Modifiers::new().abs(1));
        out
    }

    /// The number, or a zero with its sign where it is negative; a NaN stays.
    fn unless_negative(&mut self, x: Operand) -> Operand {
        let negative = self.less_than(x, 0.0);
        self.choose(negative, constant(-0.0), Scalar::Reg(x))
    }
}
