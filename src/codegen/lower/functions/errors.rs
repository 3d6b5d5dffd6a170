//! The integral of the normal distribution: `erf`, and `gelu`, which weighs a number with it.

use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::Lowering;
use crate::codegen::lower::emitter::Scalar;
use crate::ir::types::DType;

use super::wide::one;
use super::{Care, LOG2_E, constant};

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

/// The same with an error of 2^-23.
const SCALED_NARROW: [f32; 9] = [
    2.525_943_6e-3,
    2.226_853_6e-3,
    -2.422_228_8e-2,
    6.831_003e-2,
    -1.191_740_5e-1,
    1.296_527_7e-1,
    -4.756_967_6e-2,
    -1.356_215e-1,
    1.253_008_1,
];

impl Lowering<'_> {
    pub(in crate::codegen::lower) fn erf(&mut self, x: Scalar) -> Operand {
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

    /// `x (1 + erf(x / sqrt 2)) / 2`, from the side of the tail, whose bits count where `x` is negative.
    pub(in crate::codegen::lower) fn gelu(&mut self, x: Scalar, dtype: DType) -> Operand {
        let x = self.in_vector(x);
        let x = self.at_least(x, -20.0);
        if self.care(dtype) != Care::Precision {
            return self.narrow_gelu(x, dtype);
        }
        let magnitude = self.magnitude(x);
        // A NaN is lost here, and comes back with the last product.
        let bounded = self.vop2(Opcode::VMinF32, constant(14.8), Scalar::Reg(magnitude));
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
        let scaled = self.wide_polynomial(t, &SCALED);
        let tail = self.wide_mul(scaled, over_second);
        let tail = self.wide_mul(tail, power);
        let tail = self.wide_mul(tail, Operand::constant(0.5f32.to_bits()));
        let rest = self.wide_sub(one(), tail);
        let negative = self.less_than(x, 0.0);
        let factor = self.wide_choose(negative, tail, rest);
        let wide = self.widened(x);
        let result = self.wide_mul(wide, factor);
        self.rounded(result)
    }

    fn narrow_gelu(&mut self, x: Operand, dtype: DType) -> Operand {
        let magnitude = self.magnitude(x);
        let bounded = self.vop2(Opcode::VMinF32, constant(20.0), Scalar::Reg(magnitude));
        let root = std::f32::consts::FRAC_1_SQRT_2;
        let a = self.vop2(Opcode::VMulF32, constant(root), Scalar::Reg(bounded));
        let first = self.vop2(Opcode::VAddF32, constant(3.0), Scalar::Reg(a));
        let first = self.vop1(Opcode::VRcpF32, Scalar::Reg(first));
        let minus_six = self.constant_sgpr((-6f32).to_bits());
        let t = self.fma([first, minus_six, one()], 0);
        let scaled = self.polynomial(t, &SCALED_NARROW);
        let second = self.fma([a, Operand::constant(2f32.to_bits()), one()], 0);
        let second = self.vop1(Opcode::VRcpF32, Scalar::Reg(second));
        let square = self.vop2(Opcode::VMulF32, Scalar::Reg(bounded), Scalar::Reg(bounded));
        let exponent = self.vop2(Opcode::VMulF32, constant(-0.5 * LOG2_E[0]), Scalar::Reg(square));
        let power = self.exp2(Scalar::Reg(exponent), dtype);
        let half = self.vop2(Opcode::VMulF32, constant(0.5), Scalar::Reg(scaled));
        let factor = self.vop2(Opcode::VMulF32, Scalar::Reg(half), Scalar::Reg(second));
        let tail = self.vop2(Opcode::VMulF32, Scalar::Reg(factor), Scalar::Reg(power));
        let rest = self.vop2(Opcode::VSubF32, constant(1.0), Scalar::Reg(tail));
        let negative = self.less_than(x, 0.0);
        let factor = self.choose(negative, Scalar::Reg(tail), Scalar::Reg(rest));
        self.vop2(Opcode::VMulF32, Scalar::Reg(x), Scalar::Reg(factor))
    }
}
