//! Operations on both elements of a register at once: arithmetic of f16 and i16 by packed instructions, and
//! elements of 16 bits that only change places.
//!
//! Sums, differences and products are those that f32 would give: it has more than twice the precision of f16
//! and two bits to spare, so that rounding its result again changes nothing. A fused product is rounded once
//! here, and would be rounded twice there. Integers wrap in either.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::{Matching, ValuePlace};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::types::DType;

/// How both elements of a register are computed.
#[derive(Copy, Clone)]
enum HalvesCode {
    /// An instruction, and the sources that it negates.
    Packed(Opcode, u32),
    /// The same with the sources in the other order.
    Reversed(Opcode),
    /// An instruction for 32 bits, of the sources.
    Whole(Opcode),
    /// An instruction for 32 bits, of this constant and the source.
    Bits(Opcode, u32),
    /// The elements stay as they are.
    Places,
}

/// Bits of the signs of two elements.
const SIGNS: u32 = 0x8000_8000;

/// The arithmetic of f16 on both elements of a register; the rest is done element by element.
const F16_CODE: [(Op, HalvesCode); 8] = [
    (Op::Binary(BinaryOp::Add), HalvesCode::Packed(Opcode::VPkAddF16, 0)),
    (Op::Binary(BinaryOp::Sub), HalvesCode::Packed(Opcode::VPkAddF16, 0b10)),
    (Op::Binary(BinaryOp::Mul), HalvesCode::Packed(Opcode::VPkMulF16, 0)),
    (Op::Binary(BinaryOp::Min), HalvesCode::Packed(Opcode::VPkMinF16, 0)),
    (Op::Binary(BinaryOp::Max), HalvesCode::Packed(Opcode::VPkMaxF16, 0)),
    (Op::Ternary(TernaryOp::Fma), HalvesCode::Packed(Opcode::VPkFmaF16, 0)),
    (Op::Unary(UnaryOp::Neg), HalvesCode::Bits(Opcode::VXorB32, SIGNS)),
    (Op::Unary(UnaryOp::Abs), HalvesCode::Bits(Opcode::VAndB32, !SIGNS)),
];

/// That of i16. Shifts look at four bits of the count (CDNA3 ISA guide, V_PK_LSHLREV_B16).
const I16_CODE: [(Op, HalvesCode); 11] = [
    (Op::Binary(BinaryOp::Add), HalvesCode::Packed(Opcode::VPkAddU16, 0)),
    (Op::Binary(BinaryOp::Sub), HalvesCode::Packed(Opcode::VPkSubU16, 0)),
    (Op::Binary(BinaryOp::Mul), HalvesCode::Packed(Opcode::VPkMulLoU16, 0)),
    (Op::Binary(BinaryOp::Min), HalvesCode::Packed(Opcode::VPkMinI16, 0)),
    (Op::Binary(BinaryOp::Max), HalvesCode::Packed(Opcode::VPkMaxI16, 0)),
    (Op::Binary(BinaryOp::ShiftLeft), HalvesCode::Reversed(Opcode::VPkLshlrevB16)),
    (Op::Binary(BinaryOp::ShiftRight), HalvesCode::Reversed(Opcode::VPkAshrrevI16)),
    (Op::Binary(BinaryOp::And), HalvesCode::Whole(Opcode::VAndB32)),
    (Op::Binary(BinaryOp::Or), HalvesCode::Whole(Opcode::VOrB32)),
    (Op::Binary(BinaryOp::Xor), HalvesCode::Whole(Opcode::VXorB32)),
    (Op::Unary(UnaryOp::Not), HalvesCode::Bits(Opcode::VXorB32, !0)),
];

fn halves_code(op: Op, dtype: DType) -> Option<HalvesCode> {
    match (op, dtype) {
        (Op::Broadcast, dtype) if dtype.bits() == 16 => Some(HalvesCode::Places),
        (op, DType::F16) => F16_CODE.iter().find(|(known, _)| *known == op).map(|(_, code)| *code),
        (op, DType::I16) => I16_CODE.iter().find(|(known, _)| *known == op).map(|(_, code)| *code),
        _ => None,
    }
}

/// Where the elements of an operand are.
enum HalvesSource<'a> {
    /// The same element everywhere.
    Constant(u32),
    /// In registers, in the order of `matching`.
    Registers(Operand, Matching<'a>),
}

impl<'a> OperationLayer<'a> {
    /// Computes both elements of each register at once where that can be done; false if it cannot.
    pub(super) fn in_halves(
        &mut self,
        node: Entity,
        logical: Entity,
        (op, dtype): (Op, DType),
        operands: &[Entity],
        elements: u32,
    ) -> Result<bool, Diagnostic> {
        let Some(code) = halves_code(op, dtype) else { return Ok(false) };
        for &operand in operands {
            if let ValuePlace::Uniform(_) = self.place(operand)? {
                return Ok(false);
            }
        }
        let mut sources: SmallVec<[HalvesSource; 3]> = SmallVec::new();
        for &operand in operands {
            sources.push(self.source_of_halves(logical, operand)?);
        }
        if let HalvesCode::Packed(Opcode::VPkMinF16 | Opcode::VPkMaxF16, _) = code {
            self.emitter.out.float_extremum = true;
        }
        let constants = self.constants_of_halves(code, &sources);
        let value = self.emitter.vgpr(elements.div_ceil(2));
        for pair in 0..elements.div_ceil(2) {
            let result = value.offset(pair);
            let mark = self.emitter.mark();
            let mut inputs: SmallVec<[Operand; 3]> = SmallVec::new();
            for (source, constant) in sources.iter().zip(&constants) {
                inputs.push(match source {
                    HalvesSource::Constant(_) => *constant,
                    HalvesSource::Registers(registers, matching) => {
                        let low = matching.element(2 * pair);
                        let high = (2 * pair + 1 < elements).then(|| matching.element(2 * pair + 1));
                        self.two_halves(*registers, low, high)
                    }
                });
            }
            let is_constant = matches!(sources.last(), Some(HalvesSource::Constant(_)));
            match (code, &inputs[..]) {
                // The second source of such an instruction is a vector register.
                (HalvesCode::Whole(opcode), &[one, constant]) if is_constant => {
                    self.emitter.op(opcode, &[result, constant, one]);
                }
                (HalvesCode::Places, &[input]) => self.emitter.deliver(mark, input, result, 1),
                (code, inputs) => self.pair_of_halves(code, result, inputs)?,
            }
        }
        self.set_place(node, ValuePlace::Registers(value));
        Ok(true)
    }

    /// Registers of the sources that are constants: scalar ones, of which an instruction takes one, where the
    /// others are vectors.
    fn constants_of_halves(
        &mut self,
        code: HalvesCode,
        sources: &[HalvesSource<'_>],
    ) -> SmallVec<[Operand; 3]> {
        let has_vector = sources.iter().any(|source| matches!(source, HalvesSource::Registers(..)));
        let is_scalar = has_vector && matches!(code, HalvesCode::Reversed(_) | HalvesCode::Whole(_));
        let register = |source: &HalvesSource<'_>| match *source {
            HalvesSource::Registers(..) => Operand::ZERO,
            HalvesSource::Constant(bits) if is_scalar => self.constant_sgpr(bits),
            HalvesSource::Constant(bits) => self.in_vgpr(Scalar::Const(i64::from(bits))),
        };
        sources.iter().map(register).collect()
    }

    /// The instruction for both elements of a register.
    fn pair_of_halves(
        &mut self,
        code: HalvesCode,
        result: Operand,
        inputs: &[Operand],
    ) -> Result<(), Diagnostic> {
        match (code, inputs) {
            (HalvesCode::Packed(opcode, negated), inputs) => {
                let mut all: SmallVec<[Operand; 4]> = SmallVec::new();
                all.push(result);
                all.extend_from_slice(inputs);
                let modifiers = match negated {
                    0 => Modifiers::new(),
                    _ => Modifiers::new().neg_lo(negated).neg_hi(negated),
                };
                self.emitter.push(Inst::new(opcode, &all).modifiers(modifiers));
            }
            (HalvesCode::Reversed(opcode), &[value, count]) => {
                self.emitter.push(Inst::new(opcode, &[result, count, value]));
            }
            (HalvesCode::Whole(opcode), &[one, other]) => self.emitter.op(opcode, &[result, one, other]),
            (HalvesCode::Bits(opcode, constant), &[input]) => {
                let mask = self.constant_sgpr(constant);
                self.emitter.op(opcode, &[result, mask, input]);
            }
            _ => return Err(Diagnostic::bug("an operation on halves without its operand")),
        }
        Ok(())
    }

    fn source_of_halves(&mut self, logical: Entity, operand: Entity) -> Result<HalvesSource<'a>, Diagnostic> {
        self.finish(operand);
        match *self.place(operand)? {
            ValuePlace::Constant(bits) => Ok(HalvesSource::Constant(bits as u32)),
            ValuePlace::Registers(registers) => {
                Ok(HalvesSource::Registers(registers, self.matching(logical, operand)?))
            }
            ValuePlace::Scattered(_)
            | ValuePlace::Uniform(_)
            | ValuePlace::Comparison(_)
            | ValuePlace::Flags(_) => {
                Err(Diagnostic::bug("a scalar or a condition is used as a value of 16 bits"))
            }
        }
    }

    /// Two elements of a value in one register; if there is no second one, its half may hold anything.
    fn two_halves(&mut self, registers: Operand, low: u32, high: Option<u32>) -> Operand {
        let first = registers.offset(low / 2);
        let second = high.map_or(first, |high| registers.offset(high / 2));
        if low.is_multiple_of(2) && first == second && high.is_none_or(|high| high % 2 == 1) {
            return first;
        }
        // Bytes 0 to 3 are those of the last source (CDNA3 ISA guide, V_PERM_B32).
        let bytes = |half: u32| (2 * half) | ((2 * half + 1) << 8);
        let selector = self.constant_sgpr(bytes(low % 2) | (bytes(2 + high.unwrap_or(1) % 2) << 16));
        let joined = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VPermB32, &[joined, second, first, selector]);
        joined
    }
}
