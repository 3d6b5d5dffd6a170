//! Conversions of elements in registers.
//!
//! Elements of packed dtypes are widened to 32 bits, computed, and rounded back once. For f16 and bf16 that
//! gives the correctly rounded result of + - * and /, since f32 has more than twice their precision and two
//! bits to spare.

use smallvec::SmallVec;

use super::{ArithmeticLayer, float8};
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand, Sdwa, Select, Unused};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::Target;
use crate::float16::f16;
use crate::ir::types::DType;

/// How a 32-bit operation reads and writes elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum OperationFamily {
    Float,
    Integer,
}

pub(crate) fn family(dtype: DType) -> OperationFamily {
    if dtype.is_float() { OperationFamily::Float } else { OperationFamily::Integer }
}

impl ArithmeticLayer<'_> {
    pub(crate) fn widen(&mut self, register: Operand, bit: u32, dtype: DType) -> Operand {
        let source = Scalar::Reg(register);
        match dtype {
            DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => register,
            DType::F16 => {
                let wide = self.emitter.vgpr(1);
                let inst = Inst::new(Opcode::VCvtF32F16, &[wide, register]);
                // The second source, which there is none of, is zero as in LLVM's encoding.
                let upper = Sdwa { sources: [Select::Word1, Select::Byte0], ..Sdwa::default() };
                self.emitter.push(match bit {
                    0 => inst,
                    _ => inst.modifiers(Modifiers::new().sdwa()).imm(upper.to_imm()),
                });
                wide
            }
            DType::Bf16 => {
                let wide = self.emitter.vgpr(1);
                if bit == 0 {
                    self.emitter.with(Opcode::VLshlrevB32, wide, &[Scalar::Const(16), source]);
                } else {
                    self.emitter.with(Opcode::VAndB32, wide, &[Scalar::Const(0xffff_0000), source]);
                }
                wide
            }
            DType::I16 | DType::I8 => {
                let wide = self.emitter.vgpr(1);
                let width = i64::from(dtype.bits());
                let field = [source, Scalar::Const(i64::from(bit)), Scalar::Const(width)];
                self.emitter.with(Opcode::VBfeI32, wide, &field);
                wide
            }
            // `pack_small_floats` has made integers of them.
            DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => register,
            DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => {
                match float8::format_of(dtype) {
                    Some(format) => self.widen_float8(register, bit, dtype, format),
                    None => register,
                }
            }
        }
    }

    /// Rounds f32 elements to bf16 and packs them, where NaNs survive what rounds numbers.
    pub(crate) fn packed_plainly(&mut self, elements: &[Operand]) -> Operand {
        let value = self.emitter.vgpr(elements.len().div_ceil(2) as u32);
        for (pair, at) in elements.chunks(2).zip(0..) {
            let rounded: SmallVec<[Operand; 2]> = pair.iter().map(|&e| self.sum_of_rounding(e)).collect();
            match rounded[..] {
                [low, high] => self.upper_halves(value.offset(at), [low, high]),
                _ => {
                    let lower = [Scalar::Const(16), Scalar::Reg(rounded[0])];
                    self.emitter.with(Opcode::VLshrrevB32, value.offset(at), &lower);
                }
            }
        }
        value
    }

    /// Rounds 32-bit elements to `dtype` and packs them.
    pub(crate) fn packed(&mut self, elements: &[Operand], dtype: DType) -> Operand {
        if let Some(packed) = self.packed_float8(elements, dtype) {
            return packed;
        }
        let bytes = dtype.bytes();
        let per_register = (4 / bytes) as usize;
        let value = self.emitter.vgpr((elements.len() as u32 * bytes).div_ceil(4));
        let rounding = pair_rounding(self.target, dtype);
        for (at, group) in elements.chunks(per_register).enumerate() {
            let dst = value.offset(at as u32);
            if let Some(opcode) = rounding {
                let second = group.get(1).copied().unwrap_or(Operand::ZERO);
                self.emitter.op(opcode, &[dst, group[0], second]);
                continue;
            }
            match (dtype, group) {
                (DType::F16, &[low, high]) => {
                    self.pair_of_f16(dst, [low, high]);
                    continue;
                }
                (DType::Bf16, &[low, high]) => {
                    self.pair_of_bf16(dst, [low, high]);
                    continue;
                }
                _ => {}
            }
            let narrow: SmallVec<[Operand; 4]> = group.iter().map(|&e| self.narrow(e, dtype)).collect();
            match narrow[..] {
                [one] => self.emitter.op(Opcode::VMovB32, &[dst, one]),
                [low, high] => {
                    let shift = Operand::constant(bytes * 8);
                    self.emitter.op(Opcode::VLshlOrB32, &[dst, high, shift, low]);
                }
                _ => {
                    let pairs: SmallVec<[Operand; 2]> = narrow
                        .chunks(2)
                        .map(|pair| match *pair {
                            [low, high] => {
                                let joined = self.emitter.vgpr(1);
                                let operands = [joined, high, Operand::constant(8), low];
                                self.emitter.op(Opcode::VLshlOrB32, &operands);
                                joined
                            }
                            _ => pair[0],
                        })
                        .collect();
                    let operands = [dst, pairs[1], Operand::constant(16), pairs[0]];
                    self.emitter.op(Opcode::VLshlOrB32, &operands);
                }
            }
        }
        value
    }

    /// An f32 rounded to bf16, which is the upper half of the result; the lower one has any bits. NaNs keep
    /// their top bits and stay quiet.
    fn rounded_to_bf16(&mut self, element: Operand) -> Operand {
        let sum = self.sum_of_rounding(element);
        let quiet = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VOrB32, quiet, &[Scalar::Const(0x40_0000), Scalar::Reg(element)]);
        let nan = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpUF32, &[nan, element, element]);
        let chosen = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[chosen, sum, quiet, nan]);
        chosen
    }

    /// The same for numbers: round to nearest even by adding 0x7fff and the bit that will be the last.
    fn sum_of_rounding(&mut self, element: Operand) -> Operand {
        let (last, bias, sum) = (self.emitter.vgpr(1), self.constant_sgpr(0x7fff), self.emitter.vgpr(1));
        let field = [Scalar::Reg(element), Scalar::Const(16), Scalar::Const(1)];
        self.emitter.with(Opcode::VBfeU32, last, &field);
        self.emitter.op(Opcode::VAdd3U32, &[sum, element, last, bias]);
        sum
    }

    /// Two f32 as bf16 side by side.
    fn pair_of_bf16(&mut self, to: Operand, pair: [Operand; 2]) {
        let rounded = pair.map(|element| self.rounded_to_bf16(element));
        self.upper_halves(to, rounded);
    }

    /// The upper halves of two registers side by side, by one instruction (CDNA3 ISA guide, `V_PERM_B32`:
    /// bytes 0 to 3 are those of the last source).
    fn upper_halves(&mut self, to: Operand, [low, high]: [Operand; 2]) {
        let upper_halves = self.constant_sgpr(0x0706_0302);
        self.emitter.op(Opcode::VPermB32, &[to, high, low, upper_halves]);
    }

    /// Two f32 as f16 side by side. The second conversion writes the upper half and keeps the lower
    /// one (CDNA3 ISA guide, "SDWA"). There is no second source: zero as in LLVM's encoding.
    fn pair_of_f16(&mut self, to: Operand, [low, high]: [Operand; 2]) {
        let upper =
            Sdwa { dst: Select::Word1, unused: Unused::Preserve, sources: [Select::Dword, Select::Byte0] };
        self.emitter.op(Opcode::VCvtF16F32, &[to, low]);
        let inst = Inst::new(Opcode::VCvtF16F32, &[to, high]);
        self.emitter.push(inst.modifiers(Modifiers::new().sdwa()).imm(upper.to_imm()));
    }

    /// One element in the low bits, zeros above. A 16-bit result leaves zeros in the upper half on gfx9 (LLVM
    /// SIISelLowering, `zeroesHigh16BitsOfDest`).
    pub(crate) fn narrow(&mut self, element: Operand, dtype: DType) -> Operand {
        if let Some(format) = float8::format_of(dtype) {
            return self.narrow_float8(element, format);
        }
        let out = self.emitter.vgpr(1);
        match dtype {
            DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => return element,
            DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => {
                return element;
            }
            DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => {
                return element;
            }
            DType::F16 => self.emitter.op(Opcode::VCvtF16F32, &[out, element]),
            DType::Bf16 => {
                let rounded = Scalar::Reg(self.rounded_to_bf16(element));
                self.emitter.with(Opcode::VLshrrevB32, out, &[Scalar::Const(16), rounded]);
            }
            DType::I16 | DType::I8 => {
                let mask = Scalar::Const((1 << dtype.bits()) - 1);
                self.emitter.with(Opcode::VAndB32, out, &[mask, Scalar::Reg(element)])
            }
        }
        out
    }

    /// The nearest number that an integer dtype holds.
    pub(super) fn limited(&mut self, whole: Operand, to: DType) -> Operand {
        match to.bits() {
            32 => whole,
            bits => {
                let most = (1 << (bits - 1)) - 1;
                let ends = [Scalar::Const(-most - 1), Scalar::Const(most)];
                self.vop3(Opcode::VMed3I32, &[Scalar::Reg(whole), ends[0], ends[1]])
            }
        }
    }

    /// Numeric conversion between the 32-bit forms; rounding to a packed dtype comes with packing.
    pub(crate) fn cast(&mut self, x: Scalar, from: DType, to: DType) -> Operand {
        match (family(from), family(to)) {
            (OperationFamily::Float, OperationFamily::Integer) => {
                let whole = self.vop1(Opcode::VCvtI32F32, x);
                self.limited(whole, to)
            }
            (OperationFamily::Integer, OperationFamily::Float) => self.vop1(Opcode::VCvtF32I32, x),
            _ => self.in_vgpr(x),
        }
    }
}

/// What register number `at` of a constant holds.
pub(crate) fn constant_register(bits: u64, at: u32) -> Scalar {
    Scalar::Const(i64::from((bits >> (32 * (at % 2))) as u32))
}

/// The instruction that rounds two f32 to a 16-bit float, to nearest even, and packs them (gfx950; CDNA4 ISA
/// guide, `V_CVT_PK_F16_F32` and `V_CVT_PK_BF16_F32`): NaNs stay NaNs, denormals stay as they are.
fn pair_rounding(target: Target, dtype: DType) -> Option<Opcode> {
    let opcode = if dtype == DType::Bf16 {
        Opcode::VCvtPkBf16F32
    } else if dtype == DType::F16 {
        Opcode::VCvtPkF16F32
    } else {
        return None;
    };
    target.executes(opcode).then_some(opcode)
}

/// The 32-bit form of a packed constant.
pub(crate) fn widened_constant(bits: u32, dtype: DType) -> u32 {
    if let Some(format) = float8::format_of(dtype) {
        return format.decode(bits as u8).to_bits();
    }
    match dtype {
        DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => bits,
        DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => bits,
        DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => bits,
        DType::F16 => f16::from_bits(bits as u16).to_f32().to_bits(),
        DType::Bf16 => bits << 16,
        DType::I16 => (bits as u16 as i16) as i32 as u32,
        DType::I8 => (bits as u8 as i8) as i32 as u32,
    }
}
