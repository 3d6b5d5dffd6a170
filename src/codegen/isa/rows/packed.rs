//! Rows of VOP3P. The columns are explained in the table.

macro_rules! packed_rows {
    ([$next:ident $($rest:ident)*] $($rows:tt)*) => {
        $next! {
            [$($rest)*] $($rows)*
            VPkMadI16 "v_pk_mad_i16" Vop3p(0x00) [vdst(I16x2), src0(I16x2), src1(I16x2), src2(I16x2)] Valu Packed(MulAdd, I16);
            VPkMulLoU16 "v_pk_mul_lo_u16" Vop3p(0x01) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Mul, U16);
            VPkAddI16 "v_pk_add_i16" Vop3p(0x02) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Add, I16);
            VPkSubI16 "v_pk_sub_i16" Vop3p(0x03) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Sub, I16);
            VPkLshlrevB16 "v_pk_lshlrev_b16" Vop3p(0x04) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(ShiftLeftRev, B16);
            VPkLshrrevB16 "v_pk_lshrrev_b16" Vop3p(0x05) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(ShiftRightRev, U16);
            VPkAshrrevI16 "v_pk_ashrrev_i16" Vop3p(0x06) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(ShiftRightRev, I16);
            VPkMaxI16 "v_pk_max_i16" Vop3p(0x07) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Max, I16);
            VPkMinI16 "v_pk_min_i16" Vop3p(0x08) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Min, I16);
            VPkMadU16 "v_pk_mad_u16" Vop3p(0x09) [vdst(I16x2), src0(I16x2), src1(I16x2), src2(I16x2)] Valu Packed(MulAdd, U16);
            VPkAddU16 "v_pk_add_u16" Vop3p(0x0a) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Add, U16);
            VPkSubU16 "v_pk_sub_u16" Vop3p(0x0b) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Sub, U16);
            VPkMaxU16 "v_pk_max_u16" Vop3p(0x0c) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Max, U16);
            VPkMinU16 "v_pk_min_u16" Vop3p(0x0d) [vdst(I16x2), src0(I16x2), src1(I16x2)] Valu Packed(Min, U16);
            VPkFmaF16 "v_pk_fma_f16" Vop3p(0x0e) [vdst(F16x2), src0(F16x2), src1(F16x2), src2(F16x2)] Valu Packed(Fma, F16);
            VPkAddF16 "v_pk_add_f16" Vop3p(0x0f) [vdst(F16x2), src0(F16x2), src1(F16x2)] Valu Packed(Add, F16);
            VPkMulF16 "v_pk_mul_f16" Vop3p(0x10) [vdst(F16x2), src0(F16x2), src1(F16x2)] Valu Packed(Mul, F16);
            VPkMinF16 "v_pk_min_f16" Vop3p(0x11) [vdst(F16x2), src0(F16x2), src1(F16x2)] Valu Packed(Min, F16);
            VPkMaxF16 "v_pk_max_f16" Vop3p(0x12) [vdst(F16x2), src0(F16x2), src1(F16x2)] Valu Packed(Max, F16);
            VDot2F32Bf16 "v_dot2_f32_bf16" Vop3p(0x1a) [vdst(F32), src0(Bf16x2), src1(Bf16x2), src2(F32)] Valu Dot(Bf16), on(GFX950);
            VPkMinimum3F16 "v_pk_minimum3_f16" Vop3p(0x1b) [vdst(F16x2), src0(F16x2), src1(F16x2), src2(F16x2)] Valu Packed(Minimum3, F16), on(GFX950);
            VPkMaximum3F16 "v_pk_maximum3_f16" Vop3p(0x1c) [vdst(F16x2), src0(F16x2), src1(F16x2), src2(F16x2)] Valu Packed(Maximum3, F16), on(GFX950);
            VFmaMixF32 "v_fma_mix_f32" Vop3pMix(0x20) [vdst(F32), src0(F32), src1(F32), src2(F32)] Valu FmaMix(F32);
            VFmaMixloF16 "v_fma_mixlo_f16" Vop3pMix(0x21) [vdst_use(F16), src0(F32), src1(F32), src2(F32)] Valu FmaMix(F16);
            VFmaMixhiF16 "v_fma_mixhi_f16" Vop3pMix(0x22) [vdst_use(F16), src0(F32), src1(F32), src2(F32)] Valu FmaMixHigh;
            VDot2F32F16 "v_dot2_f32_f16" Vop3p(0x23) [vdst(F32), src0(F16x2), src1(F16x2), src2(F32)] Valu Dot(F16);
            VDot2I32I16 "v_dot2_i32_i16" Vop3p(0x26) [vdst(I32), src0(I16x2), src1(I16x2), src2(I32)] Valu Dot(I16);
            VDot2U32U16 "v_dot2_u32_u16" Vop3p(0x27) [vdst(U32), src0(I16x2), src1(I16x2), src2(U32)] Valu Dot(U16);
            VDot4I32I8 "v_dot4_i32_i8" Vop3p(0x28) [vdst(I32), src0(B32), src1(B32), src2(I32)] Valu Dot(I8);
            VDot4U32U8 "v_dot4_u32_u8" Vop3p(0x29) [vdst(U32), src0(B32), src1(B32), src2(U32)] Valu Dot(U8);
            VDot8I32I4 "v_dot8_i32_i4" Vop3p(0x2a) [vdst(I32), src0(B32), src1(B32), src2(I32)] Valu Dot(I4);
            VDot8U32U4 "v_dot8_u32_u4" Vop3p(0x2b) [vdst(U32), src0(B32), src1(B32), src2(U32)] Valu Dot(U4);
            VPkFmaF32 "v_pk_fma_f32" Vop3p(0x30) [vdst(F32x2), src0(F32x2), src1(F32x2), src2(F32x2)] Valu Packed(Fma, F32), on(FROM_GFX90A);
            VPkMulF32 "v_pk_mul_f32" Vop3p(0x31) [vdst(F32x2), src0(F32x2), src1(F32x2)] Valu Packed(Mul, F32), on(FROM_GFX90A);
            VPkAddF32 "v_pk_add_f32" Vop3p(0x32) [vdst(F32x2), src0(F32x2), src1(F32x2)] Valu Packed(Add, F32), on(FROM_GFX90A);
            VPkMovB32 "v_pk_mov_b32" Vop3p(0x33) [vdst(B32x2), src0(B32x2), src1(B32x2)] Valu PackedMove, on(FROM_GFX90A);
            VAccvgprReadB32 "v_accvgpr_read_b32" Vop3p(0x58) [vdst(B32), acc_src()] Valu Vector(Mov, B32), on(FROM_GFX908);
            VAccvgprWriteB32 "v_accvgpr_write_b32" Vop3p(0x59) [acc_dst(), src0_vgpr_or_inline(B32)] Valu Vector(Mov, B32), on(FROM_GFX908);
        }
    };
}
