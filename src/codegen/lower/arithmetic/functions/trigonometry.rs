//! Sine, cosine, and the angle of a point, in f64.

use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;

/// `sin(pi r / 2) / r` for `|r|` up to a half, in powers of `r²`, highest first: a minimax fit with a
/// relative error of 2^-47.
const SIN: [f64; 6] = [
    -3.5561214894929754e-06,
    0.00016042910447364812,
    -0.004681752557403887,
    0.07969262615280048,
    -0.64596409750422,
    1.5707963267948895,
];

/// `cos(pi r / 2)` in the same way, with an error of 2^-43.
const COS: [f64; 6] = [
    -2.4845291232708048e-05,
    0.0009191582246992286,
    -0.020863467240871385,
    0.25366950708630953,
    -1.2337005501180698,
    0.999999999999934,
];

/// `atan r / r` for `|r|` up to one, in powers of `r²`, highest first: a minimax fit with a relative error of
/// 2^-36.
const ATAN: [f64; 13] = [
    0.0004328041711702232,
    -0.003277415561250837,
    0.011644397994324719,
    -0.026335438353631873,
    0.043964367643481,
    -0.06042461925880181,
    0.07503893580626504,
    -0.09051602317969765,
    0.11105738744962376,
    -0.14285271147842515,
    0.19999980823120328,
    -0.3333333300504015,
    0.9999999999906455,
];

/// The two waves, a quarter of a turn apart.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sinusoid {
    /// Zero at zero.
    Sine,
    /// One at zero.
    Cosine,
}

impl ArithmeticLayer<'_> {
    /// The sine or cosine of any number: `x = (k + r) pi / 2`.
    pub(crate) fn sinusoid(&mut self, sinusoid: Sinusoid, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let magnitude = self.magnitude(x);
        let wide = self.widened(magnitude);
        let (quarter, rest) = self.quarters(wide);
        let square = self.wide_mul(rest, rest);
        let sine = self.wide_polynomial(square, &SIN);
        let sine = self.wide_mul(rest, sine);
        let cosine = self.wide_polynomial(square, &COS);
        let [sine, cosine] = [sine, cosine].map(|f| self.rounded(f));
        let quarter = match sinusoid {
            Sinusoid::Sine => quarter,
            Sinusoid::Cosine => self.vop2(Opcode::VAddU32, Scalar::Const(1), Scalar::Reg(quarter)),
        };
        let bit = self.vop2(Opcode::VAndB32, Scalar::Const(1), Scalar::Reg(quarter));
        let odd = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpNeU32, &[odd, Operand::ZERO, bit]);
        let value = self.choose(odd, Scalar::Reg(cosine), Scalar::Reg(sine));
        let mut sign = self.vop2(Opcode::VLshlrevB32, Scalar::Const(30), Scalar::Reg(quarter));
        if sinusoid == Sinusoid::Sine {
            sign = self.vop2(Opcode::VXorB32, Scalar::Reg(sign), Scalar::Reg(x));
        }
        let sign = self.vop2(Opcode::VAndB32, Scalar::Const(0x8000_0000), Scalar::Reg(sign));
        self.vop2(Opcode::VXorB32, Scalar::Reg(value), Scalar::Reg(sign))
    }

    /// `x / (pi / 2)` of a number that is not negative: a whole number modulo four, and what is left, between
    /// -1/2 and 1/2, with a relative error of about 2^-50 however large `x` is (Payne and Hanek).
    /// `v_trig_preop_f64` gives 53 bits of 2 / pi, without those whose product with `x` is a multiple of
    /// four. An f32 has 24 bits, so two pieces leave 50 bits of the smallest rest, 2^-30.
    fn quarters(&mut self, x: Operand) -> (Operand, Operand) {
        let [first, second] =
            [0, 1].map(|piece| self.wide(Opcode::VTrigPreopF64, &[x, Operand::constant(piece)], 0));
        let high = self.wide_mul(x, first);
        let below_high = self.wide_fma([x, first, high], 0b100);
        let low = self.wide_mul(x, second);
        let below_low = self.wide_fma([x, second, low], 0b100);
        let turns = self.wide_scaled(high, 0.25);
        let turns = self.wide(Opcode::VRndneF64, &[turns], 0);
        let high = self.wide_fma([turns, Operand::constant((-4f32).to_bits()), high], 0);
        let sum = self.wide_add(high, below_high);
        let sum = self.wide_add(sum, low);
        let (nearest, whole) = self.wide_nearest(sum);
        // From the highest part down: what cancels is exact.
        let mut rest = self.wide_sub(high, nearest);
        for part in [below_high, low, below_low] {
            rest = self.wide_add(rest, part);
        }
        (whole, rest)
    }

    /// The angle of the point `(x, y)`, between -pi and pi.
    pub(crate) fn atan2(&mut self, y: Scalar, x: Scalar) -> Operand {
        let [y, x] = [y, x].map(|v| self.in_vector(v));
        let [wide_y, wide_x] = [y, x].map(|v| {
            let magnitude = self.magnitude(v);
            self.widened(magnitude)
        });
        let small = self.wide(Opcode::VMinF64, &[wide_x, wide_y], 0);
        let large = self.wide(Opcode::VMaxF64, &[wide_x, wide_y], 0);
        // Of two zeros the quotient is zero, of two infinities one, and of others with an infinity so small
        // that it does not count.
        let [least, most] = [2f64.powi(-500), 2f64.powi(500)].map(|bound| self.wide_constant(bound));
        let small = self.wide(Opcode::VMinF64, &[small, most], 0);
        let large = self.wide(Opcode::VMinF64, &[large, most], 0);
        let large = self.wide(Opcode::VMaxF64, &[large, least], 0);
        let reciprocal = self.wide_reciprocal(large);
        let quotient = self.wide_mul(small, reciprocal);
        let square = self.wide_mul(quotient, quotient);
        let factor = self.wide_polynomial(square, &ATAN);
        let angle = self.wide_mul(quotient, factor);
        // The other side of the diagonal, then of the vertical.
        let steep = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpLtF64, &[steep, wide_x, wide_y]);
        let right = self.wide_constant(std::f64::consts::FRAC_PI_2);
        let other = self.wide_sub(right, angle);
        let angle = self.wide_choose(steep, other, angle);
        let left = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpGtI32, &[left, Operand::ZERO, x]);
        let half_turn = self.wide_constant(std::f64::consts::PI);
        let other = self.wide_sub(half_turn, angle);
        let angle = self.wide_choose(left, other, angle);
        let result = self.rounded(angle);
        let result = self.signed_as(result, y);
        let nan = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpUF32, &[nan, x, y]);
        let sum = self.vop2(Opcode::VAddF32, Scalar::Reg(x), Scalar::Reg(y));
        self.choose(nan, Scalar::Reg(sum), Scalar::Reg(result))
    }
}
