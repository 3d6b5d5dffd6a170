//! Element-wise operations, constants and casts.
//!
//! Elements of 64 bits are computed by `pairs`, those of f16 by `halves` where it has an instruction, and
//! everything else in 32 bits.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::{Matching, ValuePlace};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Op, *};
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

impl OperationLayer<'_> {
    /// One element-wise node.
    pub(crate) fn elementwise(
        &mut self,
        node: Entity,
        expansion: Expansion,
        op: Op,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let ty = self.get::<ValueType>(expansion.logical)?;
        let dtype = ty.dtype.ok_or_else(|| Diagnostic::bug("a value without dtype"))?;
        if let Op::Register(constant) = op {
            // Type inference has judged the constant.
            let bits = constant.bits(dtype)?;
            self.set_place(node, ValuePlace::Constant(repeated(bits, dtype)));
            return Ok(());
        }
        let elements = self.elements(expansion.logical);
        if self.in_halves(node, expansion.logical, (op, dtype), operands, elements)? {
            return Ok(());
        }
        if dtype == DType::I1 {
            return self.condition(node, op, operands, elements);
        }
        if self.in_pairs(node, expansion, (op, dtype), operands)? {
            return Ok(());
        }
        // Bytes that stay where they are need not be taken apart.
        if let (Op::Broadcast, 8, &[operand]) = (op, dtype.bits(), operands)
            && let Matching::Same = self.matching(expansion.logical, operand)?
        {
            return self.same_bits(node, operand, elements);
        }
        if let (Op::Convert(Conversion::Bitcast), &[operand]) = (op, operands) {
            return self.same_bits(node, operand, elements);
        }
        let from = self.logical_dtype(
            *operands.last().ok_or_else(|| Diagnostic::bug("an operation without operands"))?,
        )?;
        let values = match op {
            Op::Select => &operands[1..],
            Op::Convert(Conversion::Cast) if from == DType::I1 => &[],
            Op::Unary(_) | Op::Binary(_) | Op::Ternary(_) | Op::Convert(_) | Op::Broadcast => operands,
            Op::SelfIndex(_) | Op::Size(_) | Op::Rearrange | Op::Reduce(_) | Op::Scan(_) | Op::Sort(_) => &[],
            Op::WorkgroupId(_) | Op::Iteration(_) | Op::Decode(_) | Op::Encode(_) => &[],
            Op::Memory | Op::Scalar | Op::Allocate => &[],
            Op::Read | Op::Write | Op::Atomic(_) | Op::GlobalToShared | Op::Mma(_) | Op::ScaledMma(_) => &[],
            Op::Iterate(_) | Op::Pipeline(_) | Op::IterArg(_) | Op::LoopResult(_) => &[],
            Op::Conditional | Op::While => &[],
            Op::Register(_) | Op::Compare(_) | Op::Barrier | Op::Control(_) => &[],
            Op::SetSymbol(_) => &[],
        };
        let matchings: Result<SmallVec<[Matching; 3]>, Diagnostic> =
            values.iter().map(|&operand| self.matching(expansion.logical, operand)).collect();
        let matchings = matchings?;
        // Elements that fill a register are computed in place; others are packed at the end.
        let width = dtype.bytes() / 4;
        let value = (width > 0).then(|| self.emitter.vgpr(width * elements));
        let mut results: SmallVec<[Operand; 16]> = SmallVec::new();
        let beside_products = self.kernel.multiplies && !self.loops.is_empty();
        let mut pairs = !beside_products && self.may_pair_elements(op, [from, dtype], elements);
        if pairs {
            values.iter().for_each(|&operand| self.finish(operand));
        }
        let mut starts = [self.emitter.mark(); 2];
        for at in 0..elements {
            let mark = self.emitter.mark();
            starts[at as usize % 2] = mark;
            let mut inputs: SmallVec<[Scalar; 3]> = SmallVec::new();
            for (&operand, matching) in values.iter().zip(&matchings) {
                inputs.push(self.element(operand, matching.element(at), from)?);
            }
            // One operand of two-operand arithmetic may be an SGPR; everything else takes VGPRs.
            let most_uniform = usize::from(matches!(op, Op::Binary(_)));
            let is_wide = from.bits() == 64 || dtype.bits() == 64;
            if !is_wide {
                self.limit_uniform(&mut inputs, most_uniform);
            }
            let result = match (op, inputs.as_slice()) {
                (Op::Unary(op), &[x]) if is_wide => self.wide_unary(op, x, from)?,
                (Op::Unary(op), &[x]) => self.unary(op, x, from)?,
                (Op::Binary(op), &[a, b]) => self.binary(op, a, b, from)?,
                (Op::Ternary(op), &[a, b, c]) if is_wide => self.wide_ternary(op, [a, b, c]),
                (Op::Ternary(op), &[a, b, c]) => self.ternary(op, [a, b, c]),
                (Op::Convert(Conversion::Cast), &[x]) if is_wide => self.wide_cast(x, from, dtype),
                (Op::Convert(Conversion::Cast), &[x]) => self.cast(x, from, dtype),
                (Op::Broadcast, &[x]) => self.in_vectors(x, dtype),
                (Op::Convert(Conversion::Cast), &[]) => {
                    let mask = self.matching(expansion.logical, operands[0])?.element(at);
                    let one = match (dtype.is_float(), dtype.bits()) {
                        (true, 64) => 1f64.to_bits() as i64,
                        (true, _) => i64::from(1f32.to_bits()),
                        (false, _) => 1,
                    };
                    self.select(operands[0], mask, [Scalar::Const(one), Scalar::ZERO], dtype)?
                }
                (Op::Select, &[yes, no]) => {
                    let mask = self.matching(expansion.logical, operands[0])?.element(at);
                    self.select(operands[0], mask, [yes, no], dtype)?
                }
                _ => return Err(Diagnostic::bug("an element-wise operation without its operands")),
            };
            match value {
                Some(value) => {
                    // A copy of a uniform value is kept for its other uses.
                    let stays = self.vector_copies.iter().any(|copy| copy.1 == result);
                    let mark = if stays { self.emitter.mark() } else { mark };
                    self.emitter.deliver(mark, result, value.offset(at * width), width);
                }
                None => results.push(result),
            }
            if pairs && at % 2 == 1 {
                pairs = self.pair_elements(starts, elements / 2, results.last_mut());
            }
        }
        let value = value.unwrap_or_else(|| self.packed(&results, dtype));
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// A node whose registers are those of its operand.
    fn same_bits(&mut self, node: Entity, operand: Entity, elements: u32) -> Result<(), Diagnostic> {
        self.settle(operand)?;
        let place = *self.place(operand)?;
        if let ValuePlace::Registers(_) = place {
            let logical = Expansion::at(self.kernel.world, node).logical;
            let matching = self.matching(logical, operand)?;
            if (0..elements).any(|at| matching.element(at) != at) {
                return Err(Diagnostic::bug("a value seen as another dtype has another layout"));
            }
        }
        self.set_place(node, place);
        Ok(())
    }
}

/// An element repeated in all places of two registers that elements of its dtype have.
pub(crate) fn repeated(bits: u64, dtype: DType) -> u64 {
    match dtype.bytes() {
        4 => bits * 0x1_0000_0001,
        2 => bits * 0x0001_0001_0001_0001,
        1 if dtype != DType::I1 => bits * 0x0101_0101_0101_0101,
        _ => bits,
    }
}
