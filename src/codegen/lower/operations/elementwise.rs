//! Element-wise operations, constants and casts.
//!
//! Elements of 64 bits are computed by `pairs`, those of f16 by `halves` where it has an instruction, and
//! everything else in 32 bits.

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::{Matching, ValuePlace};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Op, *};
use crate::ir::op::ElementWiseOp;
use crate::ir::types::DType;
use crate::passes::facts::RoundsPlainly;
use crate::passes::loops::expand::Expansion;

/// Lane masks that are there before the first of them chooses a number: gfx940 and later wait two
/// instructions for one (LLVM GCNHazardRecognizer.cpp, `VALUWriteSGPRVALUReadWaitstates`).
pub(super) const MASKS_AHEAD: u32 = 4;

/// An element-wise node whose elements are computed one by one.
#[derive(Copy, Clone)]
struct ElementwiseNode<'o> {
    logical: Entity,
    op: ElementWiseOp,
    operands: &'o [Entity],
    /// The dtypes of the numbers that it takes and gives.
    from: DType,
    to: DType,
}

impl<'o> ElementwiseNode<'o> {
    /// The operands whose elements are numbers: a condition is a mask of lanes.
    fn values(&self) -> &'o [Entity] {
        match self.op {
            ElementWiseOp::Select => &self.operands[1..],
            ElementWiseOp::Convert(Conversion::Cast) if self.from == DType::I1 => &[],
            ElementWiseOp::Unary(_)
            | ElementWiseOp::Binary(_)
            | ElementWiseOp::Ternary(_)
            | ElementWiseOp::Convert(_)
            | ElementWiseOp::Broadcast => self.operands,
            ElementWiseOp::Compare(_) | ElementWiseOp::Decode(_) | ElementWiseOp::Encode(_) => &[],
        }
    }

    /// The condition that chooses among its numbers, or that is its number.
    fn condition(&self) -> Option<Entity> {
        let is_cast = self.op == ElementWiseOp::Convert(Conversion::Cast);
        let chooses = self.op == ElementWiseOp::Select || (is_cast && self.from == DType::I1);
        self.operands.first().copied().filter(|_| chooses)
    }

    fn is_wide(&self) -> bool {
        self.from.bits() == 64 || self.to.bits() == 64
    }
}

impl OperationLayer<'_> {
    /// A constant. Type inference has judged it.
    pub(crate) fn register(
        &mut self,
        node: Entity,
        expansion: Expansion,
        constant: Constant,
    ) -> Result<(), Diagnostic> {
        let dtype = self.logical_dtype(expansion.logical)?;
        let bits = constant.bits(dtype)?;
        self.set_place(node, ValuePlace::Constant(repeated(bits, dtype)));
        Ok(())
    }

    /// One element-wise node.
    pub(crate) fn elementwise(
        &mut self,
        node: Entity,
        expansion: Expansion,
        (op, element_wise): (Op, ElementWiseOp),
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let dtype = self.logical_dtype(expansion.logical)?;
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
        if let (Op::Broadcast, &[operand]) = (op, operands)
            && self.repeated_registers(node, operand, elements)?
        {
            return Ok(());
        }
        let from = self.logical_dtype(
            *operands.last().ok_or_else(|| Diagnostic::bug("an operation without operands"))?,
        )?;
        let whole =
            ElementwiseNode { logical: expansion.logical, op: element_wise, operands, from, to: dtype };
        let beside_products = self.kernel.multiplies && !self.loops.is_empty();
        let pairs = !beside_products && self.may_pair_elements(op, [from, dtype], elements);
        let value = self.element_by_element(whole, elements, pairs)?;
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// The registers of a node, one element after the other; `pairs` says that neighbours may share
    /// instructions.
    fn element_by_element(
        &mut self,
        whole: ElementwiseNode,
        elements: u32,
        mut pairs: bool,
    ) -> Result<Operand, Diagnostic> {
        let values = whole.values();
        let matchings: Result<SmallVec<[Matching; 3]>, Diagnostic> =
            values.iter().map(|&operand| self.matching(whole.logical, operand)).collect();
        let matchings = matchings?;
        // Elements that fill a register are computed in place; others are packed at the end.
        let width = whole.to.bytes() / 4;
        let value = (width > 0).then(|| self.emitter.vgpr(width * elements));
        let mut results: SmallVec<[Operand; 16]> = SmallVec::new();
        if pairs {
            values.iter().for_each(|&operand| self.finish(operand));
        }
        let mut starts = [self.emitter.mark(); 2];
        let mut masks: SmallVec<[Operand; MASKS_AHEAD as usize]> = SmallVec::new();
        for at in 0..elements {
            if at % MASKS_AHEAD == 0 {
                masks = self.masks(&whole, at..elements.min(at + MASKS_AHEAD))?;
            }
            let mask = masks.get((at % MASKS_AHEAD) as usize).copied();
            let mark = self.emitter.mark();
            starts[at as usize % 2] = mark;
            let mut inputs: SmallVec<[Scalar; 3]> = SmallVec::new();
            for (&operand, matching) in values.iter().zip(&matchings) {
                inputs.push(self.element(operand, matching.element(at), whole.from)?);
            }
            // One operand of two-operand arithmetic may be an SGPR; everything else takes VGPRs.
            if !whole.is_wide() {
                let most_uniform = usize::from(matches!(whole.op, ElementWiseOp::Binary(_)));
                self.limit_uniform(&mut inputs, most_uniform);
            }
            let result = self.computed(&whole, mask, &inputs)?;
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
        let rounds_plainly = self.kernel.world.get::<RoundsPlainly>(whole.logical).is_some();
        Ok(match value {
            Some(value) => value,
            None if rounds_plainly && whole.to == DType::Bf16 => self.packed_plainly(&results),
            None => self.packed(&results, whole.to),
        })
    }

    /// The lane masks by which some elements of a node are chosen, if they are.
    fn masks(
        &mut self,
        whole: &ElementwiseNode,
        elements: Range<u32>,
    ) -> Result<SmallVec<[Operand; MASKS_AHEAD as usize]>, Diagnostic> {
        let Some(condition) = whole.condition() else { return Ok(SmallVec::new()) };
        let matching = self.matching(whole.logical, condition)?;
        elements.map(|at| self.mask(condition, matching.element(at))).collect()
    }

    /// One element of a node.
    fn computed(
        &mut self,
        whole: &ElementwiseNode,
        mask: Option<Operand>,
        inputs: &[Scalar],
    ) -> Result<Operand, Diagnostic> {
        let (is_wide, from, to) = (whole.is_wide(), whole.from, whole.to);
        if let Some(mask) = mask {
            let numbers = match *inputs {
                [yes, no] => [yes, no],
                _ => [one_of(to), Scalar::ZERO],
            };
            return Ok(self.select(mask, numbers, to));
        }
        Ok(match (whole.op, inputs) {
            (ElementWiseOp::Unary(op), &[x]) if is_wide => self.wide_unary(op, x, from)?,
            (ElementWiseOp::Unary(op), &[x]) => self.unary(op, x, from)?,
            (ElementWiseOp::Binary(op), &[a, b]) => self.binary(op, a, b, from)?,
            (ElementWiseOp::Ternary(op), &[a, b, c]) if is_wide => self.wide_ternary(op, [a, b, c]),
            (ElementWiseOp::Ternary(op), &[a, b, c]) => self.ternary(op, [a, b, c]),
            (ElementWiseOp::Convert(Conversion::Cast), &[x]) if is_wide => self.wide_cast(x, from, to),
            (ElementWiseOp::Convert(Conversion::Cast), &[x]) => self.cast(x, from, to),
            (ElementWiseOp::Broadcast, &[x]) => self.in_vectors(x, to),
            _ => return Err(Diagnostic::bug("an element-wise operation without its operands")),
        })
    }

    /// Lets the elements of a node be the registers of its operand, as often as each is repeated; false if
    /// they do not fill registers.
    fn repeated_registers(
        &mut self,
        node: Entity,
        operand: Entity,
        elements: u32,
    ) -> Result<bool, Diagnostic> {
        let logical = Expansion::at(self.kernel.world, node).logical;
        if self.logical_dtype(logical)?.bits() != 32 {
            return Ok(false);
        }
        self.finish(operand);
        let place = *self.place(operand)?;
        let matching = self.matching(logical, operand)?;
        let first = self.places.scattered.len() as u32;
        for at in 0..elements {
            let register = match place {
                ValuePlace::Registers(registers) => registers.offset(matching.element(at)),
                ValuePlace::Scattered(first) => {
                    self.places.scattered[(first + matching.element(at)) as usize]
                }
                ValuePlace::Constant(_)
                | ValuePlace::Uniform(_)
                | ValuePlace::Comparison(_)
                | ValuePlace::Flags(_) => return Ok(false),
            };
            self.places.scattered.push(register);
        }
        self.set_place(node, ValuePlace::Scattered(first));
        Ok(true)
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

/// The number of a condition that holds.
fn one_of(dtype: DType) -> Scalar {
    Scalar::Const(match (dtype.is_float(), dtype.bits()) {
        (true, 64) => 1f64.to_bits() as i64,
        (true, _) => i64::from(1f32.to_bits()),
        (false, _) => 1,
    })
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
