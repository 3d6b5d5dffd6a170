//! Logarithms to other bases than two.

use super::{Care, constant};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::types::DType;

/// ln 2 as the sum of two positive f32: where the logarithm to base two is infinite, both products are the
/// same infinity. The first one is the f32 below ln 2.
pub(super) const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7217), 5.769_999e-8];

/// The logarithm of 2 to base 10, in the same way.
const LOG10_2: [f32; 2] = [0.301_029_98, 1.548_133_4e-8];

/// Classes of numbers of v_cmp_class_f32 (CDNA3 ISA guide): NaN, negative, zero, plus infinity.
const HAS_NO_LOGARITHM: u32 = 0x27f;

impl ArithmeticLayer<'_> {
    pub(crate) fn log(&mut self, x: Scalar, dtype: DType) -> Operand {
        self.logarithm(x, dtype, LN_2)
    }

    pub(crate) fn log10(&mut self, x: Scalar, dtype: DType) -> Operand {
        self.logarithm(x, dtype, LOG10_2)
    }

    fn logarithm(&mut self, x: Scalar, dtype: DType, [high, low]: [f32; 2]) -> Operand {
        let base_two = self.log2(x, dtype);
        if self.care(dtype) != Care::Precision {
            return self.vop2(Opcode::VMulF32, constant(high), Scalar::Reg(base_two));
        }
        let rest = self.vop2(Opcode::VMulF32, constant(low), Scalar::Reg(base_two));
        let high = self.constant_sgpr(high.to_bits());
        self.fma([base_two, high, rest], 0)
    }

    /// In f64, where the sum is off by at most 2^-53 of itself; what it has lost, over the sum, is added to
    /// the logarithm.
    pub(crate) fn log1p(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let wide = self.widened(x);
        let sum = self.wide_add(wide, super::wide::one());
        let added = self.wide_sub(sum, super::wide::one());
        let lost = self.wide_sub(wide, added);
        let logarithm = self.wide_log(sum);
        let narrow = self.vop2(Opcode::VAddF32, constant(1.0), Scalar::Reg(x));
        let reciprocal = self.vop1(Opcode::VRcpF32, Scalar::Reg(narrow));
        let reciprocal = self.widened(reciprocal);
        let logarithm = self.wide_fma([lost, reciprocal, logarithm], 0);
        let result = self.rounded(logarithm);
        let result = self.signed_as(result, x);
        // Of numbers that are not above -1 and of infinity the instruction gives what is right.
        let other = self.vop1(Opcode::VLogF32, Scalar::Reg(narrow));
        let special = self.is_of_class(narrow, HAS_NO_LOGARITHM);
        self.choose(special, Scalar::Reg(other), Scalar::Reg(result))
    }
}
