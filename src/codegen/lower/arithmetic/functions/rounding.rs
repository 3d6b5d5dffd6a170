//! Whole numbers near a float.

use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::ArithmeticLayer;
use crate::codegen::lower::emit::emitter::Scalar;

impl ArithmeticLayer<'_> {
    /// The nearest whole number, of two the one further from zero.
    pub(crate) fn round(&mut self, x: Scalar) -> Operand {
        let x = self.in_vector(x);
        let whole = self.vop1(Opcode::VTruncF32, Scalar::Reg(x));
        // The rest is exact, and the sum below, too: whole numbers have no neighbours that are closer.
        let rest = self.vop2(Opcode::VSubF32, Scalar::Reg(x), Scalar::Reg(whole));
        let (far, half) = (self.emitter.sgpr(2), Operand::constant(0.5f32.to_bits()));
        self.emitter.modified(Opcode::VCmpGeF32, &[far, rest, half], Modifiers::new().abs(1));
        let one = Scalar::Const(1f32.to_bits().into());
        let step = self.choose(far, one, Scalar::ZERO);
        // With the sign of x, so that the sum of zeros keeps it.
        let magnitude = self.constant_sgpr(0x7fff_ffff);
        let sources = [Scalar::Reg(magnitude), Scalar::Reg(step), Scalar::Reg(x)];
        let step = self.vop3(Opcode::VBfiB32, &sources);
        self.vop2(Opcode::VAddF32, Scalar::Reg(whole), Scalar::Reg(step))
    }
}
