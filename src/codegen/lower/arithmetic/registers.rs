//! Values in VGPRs and SGPRs: how an instruction's sources get where it takes them, and small arithmetic on
//! them.

use smallvec::SmallVec;

use super::ArithmeticLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::{MOST_DIVIDED, Scalar, magic_divisor};
use crate::codegen::machine::RegisterFile;

impl ArithmeticLayer<'_> {
    /// Leaves the first `most` of the sources that are SGPRs, and copies the others to VGPRs.
    pub(crate) fn limit_uniform(&mut self, sources: &mut [Scalar], most: usize) {
        let mut left = most;
        for source in sources {
            if !self.is_uniform(*source) {
                continue;
            }
            if left == 0 {
                *source = Scalar::Reg(self.in_vector(*source));
            }
            left = left.saturating_sub(1);
        }
    }

    pub(crate) fn is_uniform(&self, value: Scalar) -> bool {
        matches!(value, Scalar::Reg(register) if self.emitter.file(register) == RegisterFile::Sgpr)
    }

    /// The scalar in a VGPR, wherever it is now. An SGPR is copied once for all its uses here.
    pub(crate) fn in_vector(&mut self, value: Scalar) -> Operand {
        let Scalar::Reg(register) = value else { return self.in_vgpr(value) };
        if !self.is_uniform(value) {
            return register;
        }
        self.vector_copy(value)
    }

    /// A uniform value in a VGPR that is kept for its other uses.
    pub(crate) fn vector_copy(&mut self, value: Scalar) -> Operand {
        if let Some(&(_, copy)) = self.vector_copies.iter().find(|copy| copy.0 == value) {
            return copy;
        }
        let copy = self.add_uniform(None, value);
        self.vector_copies.push((value, copy));
        copy
    }

    /// The scalar in a VGPR.
    pub(crate) fn in_vgpr(&mut self, value: Scalar) -> Operand {
        match value {
            Scalar::Reg(register) => register,
            Scalar::Const(_) => self.add_uniform(None, value),
        }
    }

    /// A two-operand VOP2 instruction; only its first source may be a constant.
    pub(crate) fn vop2(&mut self, op: Opcode, a: Scalar, b: Scalar) -> Operand {
        // An SGPR as the second source takes the VOP3 encoding, which has no room for a literal.
        let is_literal = a.source().0 == Operand::LITERAL;
        let b = if is_literal && self.is_uniform(b) { self.in_vector(b) } else { self.in_vgpr(b) };
        let out = self.emitter.vgpr(1);
        self.emitter.with(op, out, &[a, Scalar::Reg(b)]);
        out
    }

    pub(super) fn vop1(&mut self, op: Opcode, a: Scalar) -> Operand {
        let out = self.emitter.vgpr(1);
        self.emitter.with(op, out, &[a]);
        out
    }

    /// A VOP3 instruction.
    pub(crate) fn vop3(&mut self, op: Opcode, sources: &[Scalar]) -> Operand {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_slice(&[Operand::NONE]);
        operands.extend(sources.iter().map(|&source| self.vop3_source(source)));
        operands[0] = self.emitter.vgpr(1);
        self.emitter.op(op, &operands);
        operands[0]
    }

    /// A source of a VOP3 instruction, which takes no literals (CDNA3 ISA guide, "VOP3"): such a constant is
    /// in a VGPR that is kept for its other uses.
    pub(crate) fn vop3_source(&mut self, source: Scalar) -> Operand {
        match source.source().0 {
            Operand::LITERAL => self.vector_copy(source),
            operand => operand,
        }
    }

    /// `value / divisor` of a small vector value.
    pub(crate) fn vector_divide(&mut self, value: Operand, divisor: u32) -> Operand {
        if divisor == 1 {
            return value;
        }
        let quotient = self.emitter.vgpr(1);
        if divisor.is_power_of_two() {
            let shift = Scalar::Const(i64::from(divisor.ilog2()));
            self.emitter.with(Opcode::VLshrrevB32, quotient, &[shift, Scalar::Reg(value)]);
            return quotient;
        }
        let (magic, shift) = magic_divisor(divisor, MOST_DIVIDED);
        let magic = self.constant_sgpr(magic);
        let high = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VMulHiU32, &[high, magic, value]);
        self.emitter.with(
            Opcode::VLshrrevB32,
            quotient,
            &[Scalar::Const(i64::from(shift)), Scalar::Reg(high)],
        );
        quotient
    }

    /// A constant in an SGPR, for instructions that take no literal.
    pub(crate) fn constant_sgpr(&mut self, bits: u32) -> Operand {
        if let Some(&(_, register)) = self.constants.iter().chain(&self.constant_pairs).find(|c| c.0 == bits)
        {
            return register;
        }
        let register = self.emitter.sgpr(1);
        self.emitter.with(Opcode::SMovB32, register, &[Scalar::Const(i64::from(bits))]);
        self.constants.push((bits, register));
        register
    }

    /// `value * factor`, low 32 bits, in a VGPR.
    pub(crate) fn scaled(&mut self, value: Operand, factor: Scalar) -> Operand {
        let product = match factor {
            Scalar::Const(1) => return value,
            Scalar::Const(_) | Scalar::Reg(_) => self.emitter.vgpr(1),
        };
        match factor {
            Scalar::Const(f) if f > 0 && (f as u64).is_power_of_two() => {
                let shift = Scalar::Const(i64::from(f.trailing_zeros()));
                self.emitter.with(Opcode::VLshlrevB32, product, &[shift, Scalar::Reg(value)]);
            }
            Scalar::Const(f) => {
                let factor = match Operand::inline_integer(f as i32) {
                    Some(inline) => inline,
                    None => self.constant_sgpr(f as u32),
                };
                self.emitter.op(Opcode::VMulLoU32, &[product, value, factor]);
            }
            Scalar::Reg(factor) => self.emitter.op(Opcode::VMulLoU32, &[product, value, factor]),
        }
        product
    }

    /// `sum + value * factor`, in a VGPR.
    pub(crate) fn add_scaled(&mut self, sum: Option<Operand>, value: Operand, factor: Scalar) -> Operand {
        let Some(sum) = sum else { return self.scaled(value, factor) };
        let total = self.emitter.vgpr(1);
        match factor {
            Scalar::Const(f) if f > 0 && (f as u64).is_power_of_two() => {
                let shift = Scalar::Const(i64::from(f.trailing_zeros()));
                let parts = [Scalar::Reg(value), shift, Scalar::Reg(sum)];
                self.emitter.with(Opcode::VLshlAddU32, total, &parts);
            }
            Scalar::Const(_) | Scalar::Reg(_) => {
                let product = self.scaled(value, factor);
                self.emitter.op(Opcode::VAddU32, &[total, product, sum]);
            }
        }
        total
    }

    /// `vector + scalar` in a VGPR; the vector may be missing (zero).
    pub(crate) fn add_uniform(&mut self, vector: Option<Operand>, scalar: Scalar) -> Operand {
        match (vector, scalar) {
            (Some(vector), Scalar::Const(0)) => vector,
            (Some(vector), _) => {
                let sum = self.emitter.vgpr(1);
                self.emitter.with(Opcode::VAddU32, sum, &[scalar, Scalar::Reg(vector)]);
                sum
            }
            (None, _) => {
                let copy = self.emitter.vgpr(1);
                self.emitter.with(Opcode::VMovB32, copy, &[scalar]);
                copy
            }
        }
    }

    /// A mask (SGPR pair) of the lanes where `coordinate < limit`, signed; a missing coordinate is zero.
    pub(crate) fn below(&mut self, coordinate: Option<Operand>, limit: Scalar) -> Operand {
        let mask = self.emitter.sgpr(2);
        let coordinate = self.add_uniform(coordinate, Scalar::ZERO);
        let limit = match limit {
            Scalar::Const(value) => match Operand::inline_integer(value as i32) {
                Some(inline) => inline,
                None => self.constant_sgpr(value as u32),
            },
            Scalar::Reg(register) => register,
        };
        self.emitter.op(Opcode::VCmpGtI32, &[mask, limit, coordinate]);
        mask
    }

    pub(crate) fn copy_registers(&mut self, to: Operand, from: Operand, width: u32) {
        for at in 0..width {
            self.emitter.op(Opcode::VMovB32, &[to.offset(at), from.offset(at)]);
        }
    }
}
