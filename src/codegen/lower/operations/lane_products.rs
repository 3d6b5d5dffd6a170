//! Products that lanes make one by one, on chips without matrix instructions: most are one instruction, and
//! bf16, which none multiplies, is widened to f32 first.

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;

/// Widened registers that are remembered: more than the rows and columns of one step of a wave's tile.
const MOST_WIDENED: usize = 64;

/// Two bf16 of a register as f32, the first one first.
#[derive(Copy, Clone)]
pub(crate) struct WidenedPair {
    pair: Operand,
    halves: [Operand; 2],
}

impl OperationLayer<'_> {
    /// A sum and the products of two pairs of bf16, each pair in a register: two fused ones of f32, in the
    /// order of the pair.
    pub(super) fn multiply_bf16(&mut self, a: Operand, b: Operand, mut sum: Operand) -> Operand {
        let (a, b) = (self.widened_pair(a), self.widened_pair(b));
        for (a, b) in a.into_iter().zip(b) {
            let next = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VFmaF32, &[next, a, b, sum]);
            sum = next;
        }
        sum
    }

    /// A row is multiplied with many columns: what has been widened is remembered until its region ends.
    fn widened_pair(&mut self, pair: Operand) -> [Operand; 2] {
        if let Some(known) = self.widened_pairs.iter().rev().find(|known| known.pair == pair) {
            return known.halves;
        }
        let halves = [self.emitter.vgpr(1), self.emitter.vgpr(1)];
        let source = Scalar::Reg(pair);
        self.emitter.with(Opcode::VLshlrevB32, halves[0], &[Scalar::Const(16), source]);
        self.emitter.with(Opcode::VAndB32, halves[1], &[Scalar::Const(0xffff_0000), source]);
        if self.widened_pairs.len() == MOST_WIDENED {
            self.widened_pairs.pop_front();
        }
        self.widened_pairs.push_back(WidenedPair { pair, halves });
        halves
    }
}
