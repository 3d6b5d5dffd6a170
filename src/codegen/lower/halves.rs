//! Operations of f16 whose results f32 does not give: on both elements of a register at once.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::arithmetic::Matching;
use super::emitter::Scalar;
use super::{Lowering, ValuePlace};
use crate::codegen::isa::{Opcode, Operand};
use crate::ir::diagnostic::Diagnostic;

/// Where the elements of an operand are.
enum HalvesSource<'a> {
    /// The same element everywhere.
    Constant(Operand),
    /// In registers, in the order of `matching`.
    Registers(Operand, Matching<'a>),
}

impl Lowering<'_> {
    /// `a b + c`, rounded once: in f32 it would be rounded there and again.
    pub(super) fn fma_of_halves(
        &mut self,
        node: Entity,
        logical: Entity,
        operands: &[Entity],
        elements: u32,
    ) -> Result<(), Diagnostic> {
        let mut sources: SmallVec<[HalvesSource; 3]> = SmallVec::new();
        for &operand in operands {
            self.finish(operand);
            sources.push(match *self.place(operand)? {
                ValuePlace::Constant(bits) => {
                    HalvesSource::Constant(self.in_vgpr(Scalar::Const(i64::from(bits as u32))))
                }
                ValuePlace::Registers(registers) => {
                    HalvesSource::Registers(registers, self.matching(logical, operand)?)
                }
                ValuePlace::Uniform(_) | ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                    return Err(self.bug("a scalar or a condition is used as an f16"));
                }
            });
        }
        let value = self.emitter.vgpr(elements.div_ceil(2));
        for pair in 0..elements.div_ceil(2) {
            let [low, high] = [2 * pair, (2 * pair + 1).min(elements - 1)];
            let mut fused = [value.offset(pair); 4];
            for (slot, source) in fused[1..].iter_mut().zip(&sources) {
                *slot = match source {
                    HalvesSource::Constant(register) => *register,
                    HalvesSource::Registers(registers, matching) => {
                        self.two_halves(*registers, [low, high].map(|at| matching.element(at)))
                    }
                };
            }
            self.emitter.op(Opcode::VPkFmaF16, &fused);
        }
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Two elements of a value in one register.
    fn two_halves(&mut self, registers: Operand, [low, high]: [u32; 2]) -> Operand {
        let (first, second) = (registers.offset(low / 2), registers.offset(high / 2));
        if first == second && low % 2 == 0 && (high % 2 == 1 || low == high) {
            return first;
        }
        // Bytes 0 to 3 are those of the last source (CDNA3 ISA guide, V_PERM_B32).
        let bytes = |half: u32| (2 * half) | ((2 * half + 1) << 8);
        let selector = self.constant_sgpr(bytes(low % 2) | (bytes(2 + high % 2) << 16));
        let joined = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VPermB32, &[joined, second, first, selector]);
        joined
    }
}
