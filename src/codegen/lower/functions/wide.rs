//! Arithmetic in f64, in pairs of registers.
//!
//! The vector unit computes f64 sums and products at the rate of f32's (half of it on some chips), so a function
//! whose f32 result needs more bits than f32 has on the way is computed here and rounded once.

use smallvec::SmallVec;

use super::super::Lowering;
use super::super::emitter::Scalar;
use crate::codegen::isa::{Modifiers, Opcode, Operand};

impl Lowering<'_> {
    /// An instruction with an f64 result; `negated` has a bit for each source.
    pub(in crate::codegen::lower) fn wide(
        &mut self,
        op: Opcode,
        sources: &[Operand],
        negated: u32,
    ) -> Operand {
        let out = self.emitter.vgpr(2);
        let operands: SmallVec<[Operand; 4]> = [out].into_iter().chain(sources.iter().copied()).collect();
        self.emitter.modified(op, &operands, Modifiers::new().neg(negated));
        out
    }

    /// A constant in a pair of SGPRs: a literal would be the upper half alone.
    pub(in crate::codegen::lower) fn wide_constant(&mut self, value: f64) -> Operand {
        let bits = value.to_bits();
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
}
