//! 8-bit floats: widened to f32 and rounded back. Chips convert the formats that their matrix instructions
//! take; the others are taken apart and put together by integer arithmetic, with the same results.

use super::ArithmeticLayer;
use crate::codegen::isa::{Generation, Inst, Modifiers, Opcode, Operand, Sdwa, Select};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::Target;
use crate::float8::{self, Float8Format, Float8Specials};
use crate::ir::types::DType;

/// Bits of an f32 without its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;

/// The format of a dtype, if it is an 8-bit float.
pub(super) const fn format_of(dtype: DType) -> Option<Float8Format> {
    match dtype {
        DType::F8E4M3Fnuz => Some(float8::E4M3FNUZ),
        DType::F8E5M2Fnuz => Some(float8::E5M2FNUZ),
        DType::F8E4M3Fn => Some(float8::E4M3FN),
        DType::F8E5M2 => Some(float8::E5M2),
        DType::F8E8M0 => Some(float8::E8M0),
        DType::F64 | DType::I64 | DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => None,
        DType::F32 | DType::F16 | DType::Bf16 | DType::I32 | DType::I16 | DType::I8 | DType::I1 => None,
    }
}

/// Instructions that convert a format: to f32, and two f32 to it.
#[derive(Copy, Clone)]
pub(super) struct Conversions {
    widen: Opcode,
    pack: Opcode,
}

/// Those of a chip; none if it does not know the format.
pub(super) fn conversions(target: Target, dtype: DType) -> Option<Conversions> {
    let is_ocp = matches!(dtype, DType::F8E4M3Fn | DType::F8E5M2);
    let (widen, pack) = match dtype {
        DType::F8E4M3Fnuz | DType::F8E4M3Fn => (Opcode::VCvtF32Fp8, Opcode::VCvtPkFp8F32),
        DType::F8E5M2Fnuz | DType::F8E5M2 => (Opcode::VCvtF32Bf8, Opcode::VCvtPkBf8F32),
        DType::F64
        | DType::I64
        | DType::F32
        | DType::F16
        | DType::Bf16
        | DType::I32
        | DType::I16
        | DType::I8
        | DType::I1
        | DType::F8E8M0
        | DType::F4E2M1
        | DType::F6E2M3
        | DType::F6E3M2 => return None,
    };
    let has = [widen, pack].iter().all(|&op| target.executes(op));
    (has && target.arch.has_ocp_floats() == is_ocp).then_some(Conversions { widen, pack })
}

impl ArithmeticLayer<'_> {
    /// The element at bit `bit` of a register, as f32.
    pub(super) fn widen_float8(
        &mut self,
        register: Operand,
        bit: u32,
        dtype: DType,
        format: Float8Format,
    ) -> Operand {
        let source = Scalar::Reg(register);
        if let Some(Conversions { widen, .. }) = conversions(self.target, dtype) {
            let wide = self.emitter.vgpr(1);
            let inst = Inst::new(widen, &[wide, register]);
            let byte = [Select::Byte0, Select::Byte1, Select::Byte2, Select::Byte3][(bit / 8 % 4) as usize];
            let parts = Sdwa { sources: [byte, Select::Dword], ..Sdwa::default() };
            // In the VOP1 encoding CDNA3 converts unreliably (LLVM, FeatureCvtFP8Vop1Bug).
            let is_short = bit == 0 && self.target.arch.generation() != Generation::Cdna3;
            self.emitter.push(match is_short {
                true => inst,
                false => inst.modifiers(Modifiers::new().sdwa()).imm(parts.to_imm()),
            });
            return wide;
        }
        let field = |width| [source, Scalar::Const(i64::from(bit)), Scalar::Const(width)];
        if format.specials == Float8Specials::Infinities {
            // It is an f16 that has lost its lower half.
            let byte = self.vop3(Opcode::VBfeU32, &field(8));
            let half = self.vop2(Opcode::VLshlrevB32, Scalar::Const(8), Scalar::Reg(byte));
            return self.vop1(Opcode::VCvtF32F16, Scalar::Reg(half));
        }
        if format.specials == Float8Specials::UnsignedNan {
            let exponent = self.vop3(Opcode::VBfeU32, &field(8));
            let shifted = self.vop2(Opcode::VLshlrevB32, Scalar::Const(23), Scalar::Reg(exponent));
            // The smallest scale is a denormal f32.
            let value = self.vop2(Opcode::VMaxU32, Scalar::Const(1 << 22), Scalar::Reg(shifted));
            return self.nan_where_equal(exponent, 0xff, value);
        }
        let magnitude = self.vop3(Opcode::VBfeU32, &field(7));
        let shift = Scalar::Const(i64::from(23 - format.fraction));
        let unscaled = self.vop2(Opcode::VLshlrevB32, shift, Scalar::Reg(magnitude));
        let scale = self.constant_sgpr((254 - format.bias) << 23);
        let value = self.vop2(Opcode::VMulF32, Scalar::Reg(scale), Scalar::Reg(unscaled));
        let top = self.vop2(Opcode::VLshlrevB32, Scalar::Const(i64::from(24 - bit)), source);
        let mask = self.constant_sgpr(MAGNITUDE);
        let signed = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VBfiB32, &[signed, mask, value, top]);
        let (bits, nan) = match format.specials {
            Float8Specials::NegativeZero => (self.vop3(Opcode::VBfeU32, &field(8)), 0x80),
            Float8Specials::SignedNan | Float8Specials::Infinities | Float8Specials::UnsignedNan => {
                (magnitude, 0x7f)
            }
        };
        self.nan_where_equal(bits, nan, signed)
    }

    /// A NaN in the lanes where `bits` are `nan`, and `value` in the others.
    fn nan_where_equal(&mut self, bits: Operand, nan: u32, value: Operand) -> Operand {
        let is_nan = self.emitter.sgpr(2);
        let nan = self.constant_sgpr(nan);
        self.emitter.op(Opcode::VCmpEqU32, &[is_nan, nan, bits]);
        let quiet = self.in_vgpr(Scalar::Const(i64::from(f32::NAN.to_bits())));
        self.chosen(is_nan, quiet, value)
    }

    /// An f32 rounded to a scale, in the low bits.
    fn narrow_scale(&mut self, element: Operand) -> Operand {
        // Half of what the leading one stands for is added, so that a carry counts the exponent up. The
        // leading one of a denormal is bit 22 if it is not below the smallest scale. Without its last bit,
        // which decides nothing, no sum overflows.
        let normal = self.constant_sgpr(1 << 23);
        let is_denormal = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpGtU32, &[is_denormal, normal, element]);
        let [below, above] = [20, 21].map(|bit| self.in_vgpr(Scalar::Const(1 << bit)));
        let half = self.chosen(is_denormal, below, above);
        let halved = self.vop2(Opcode::VLshrrevB32, Scalar::Const(1), Scalar::Reg(element));
        let sum = self.vop2(Opcode::VAddU32, Scalar::Reg(halved), Scalar::Reg(half));
        let exponent = self.vop2(Opcode::VLshrrevB32, Scalar::Const(22), Scalar::Reg(sum));
        let bits = self.vop2(Opcode::VMinU32, Scalar::Const(0xff), Scalar::Reg(exponent));
        // A negative zero is a zero; all that is larger as a number without sign is negative.
        let zero = self.constant_sgpr(1 << 31);
        let is_zero = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpEqU32, &[is_zero, zero, element]);
        let smallest = self.in_vgpr(Scalar::ZERO);
        self.chosen(is_zero, smallest, bits)
    }

    /// f32 elements rounded and packed by the chip's instructions, if it has them.
    pub(super) fn packed_float8(&mut self, elements: &[Operand], dtype: DType) -> Option<Operand> {
        let Conversions { pack, .. } = conversions(self.target, dtype)?;
        let value = self.emitter.vgpr(elements.len().div_ceil(4) as u32);
        for (at, group) in (0..).zip(elements.chunks(4)) {
            let dst = value.offset(at);
            // The instruction leaves the other half of the register as it is.
            self.emitter.with(Opcode::VMovB32, dst, &[Scalar::ZERO]);
            for (pair, op_sel) in group.chunks(2).zip([0, 8]) {
                let second = pair.get(1).copied().unwrap_or(Operand::ZERO);
                let inst = Inst::new(pack, &[dst, pair[0], second]);
                self.emitter.push(inst.modifiers(Modifiers::new().op_sel(op_sel)));
            }
        }
        Some(value)
    }

    /// An f32 rounded to a format, in the low bits.
    pub(super) fn narrow_float8(&mut self, element: Operand, format: Float8Format) -> Operand {
        let Float8Format { fraction, bias, specials } = format;
        if specials == Float8Specials::UnsignedNan {
            return self.narrow_scale(element);
        }
        let source = Scalar::Reg(element);
        let magnitude = self.vop2(Opcode::VAndB32, Scalar::Const(i64::from(MAGNITUDE)), source);
        // Denormals: the last bit of a sum with a larger number is the last bit of the format.
        let anchor = (127 + 24 - bias - fraction) << 23;
        let anchored = self.constant_sgpr(anchor);
        let sum = self.vop2(Opcode::VAddF32, Scalar::Reg(anchored), Scalar::Reg(magnitude));
        let denormal = self.vop2(Opcode::VSubrevU32, Scalar::Reg(anchored), Scalar::Reg(sum));
        // Others: half of the last bit is added, less one if that bit is zero.
        let dropped = 23 - fraction;
        let field = [Scalar::Reg(magnitude), Scalar::Const(i64::from(dropped)), Scalar::Const(1)];
        let last = self.vop3(Opcode::VBfeU32, &field);
        let offset = ((1u32 << (dropped - 1)) - 1).wrapping_sub((127 - bias) << 23);
        let offset = self.constant_sgpr(offset);
        let moved = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VAdd3U32, &[moved, magnitude, last, offset]);
        let shift = Scalar::Const(i64::from(dropped));
        let normal = self.vop2(Opcode::VLshrrevB32, shift, Scalar::Reg(moved));
        let least = self.constant_sgpr((128 - bias) << 23);
        let is_small = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpGtF32, &[is_small, least, magnitude]);
        let nearest = self.chosen(is_small, denormal, normal);
        let overflow = Scalar::Const(i64::from(format.overflow()));
        let mut bits = self.vop2(Opcode::VMinU32, overflow, Scalar::Reg(nearest));
        if specials == Float8Specials::Infinities {
            let is_nan = self.emitter.sgpr(2);
            self.emitter.op(Opcode::VCmpUF32, &[is_nan, element, element]);
            let nan = self.in_vgpr(Scalar::Const(0x7e));
            bits = self.chosen(is_nan, nan, bits);
        }
        let sign = self.vop2(Opcode::VLshrrevB32, Scalar::Const(24), source);
        let mask = self.constant_sgpr(0x80);
        let signed = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VAndOrB32, &[signed, sign, mask, bits]);
        if specials != Float8Specials::NegativeZero {
            return signed;
        }
        // Neither zero nor the NaN has a sign.
        let number = self.vop2(Opcode::VAddU32, Scalar::Const(-1), Scalar::Reg(bits));
        let is_signed = self.emitter.sgpr(2);
        let limit = self.constant_sgpr(0x7f);
        self.emitter.op(Opcode::VCmpGtU32, &[is_signed, limit, number]);
        self.chosen(is_signed, signed, bits)
    }

    /// `yes` in the lanes of a mask, and `no` in the others.
    pub(crate) fn chosen(&mut self, mask: Operand, yes: Operand, no: Operand) -> Operand {
        let out = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[out, no, yes, mask]);
        out
    }
}
