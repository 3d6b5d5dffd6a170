//! Rows of matrix instructions. The columns are explained in the table.

macro_rules! matrix_rows {
    ([$next:ident $($rest:ident)*] $($rows:tt)*) => {
        $next! {
            [$($rest)*] $($rows)*
            VMfmaF32_16x16x8Xf32 "v_mfma_f32_16x16x8_xf32" Mai(0x3e) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 8, 1), Xf32, Xf32, F32), on(GFX942);
            VMfmaF32_32x32x4Xf32 "v_mfma_f32_32x32x4_xf32" Mai(0x3f) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 4, 1), Xf32, Xf32, F32), on(GFX942);
            VMfmaF32_32x32x1_2bF32 "v_mfma_f32_32x32x1_2b_f32" Mai(0x40) [mfma_d(32), mfma_a(1), mfma_b(1), mfma_c(32, F32)] Mfma(16) Mfma(shape(32, 32, 1, 2), F32, F32, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_32x32x1f32");
            VMfmaF32_16x16x1_4bF32 "v_mfma_f32_16x16x1_4b_f32" Mai(0x41) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, F32)] Mfma(8) Mfma(shape(16, 16, 1, 4), F32, F32, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_16x16x1f32");
            VMfmaF32_4x4x1_16bF32 "v_mfma_f32_4x4x1_16b_f32" Mai(0x42) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, F32)] Mfma(2) Mfma(shape(4, 4, 1, 16), F32, F32, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_4x4x1f32");
            VMfmaF32_32x32x2F32 "v_mfma_f32_32x32x2_f32" Mai(0x44) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, F32)] Mfma(16) Mfma(shape(32, 32, 2, 1), F32, F32, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_32x32x2f32");
            VMfmaF32_16x16x4F32 "v_mfma_f32_16x16x4_f32" Mai(0x45) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, F32)] Mfma(8) Mfma(shape(16, 16, 4, 1), F32, F32, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_16x16x4f32");
            VMfmaF32_32x32x4_2bF16 "v_mfma_f32_32x32x4_2b_f16" Mai(0x48) [mfma_d(32), mfma_a(2), mfma_b(2), mfma_c(32, F32)] Mfma(16) Mfma(shape(32, 32, 4, 2), F16, F16, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_32x32x4f16");
            VMfmaF32_16x16x4_4bF16 "v_mfma_f32_16x16x4_4b_f16" Mai(0x49) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(16, 16, 4, 4), F16, F16, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_16x16x4f16");
            VMfmaF32_4x4x4_16bF16 "v_mfma_f32_4x4x4_16b_f16" Mai(0x4a) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(2) Mfma(shape(4, 4, 4, 16), F16, F16, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_4x4x4f16");
            VMfmaF32_32x32x8F16 "v_mfma_f32_32x32x8_f16" Mai(0x4c) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 8, 1), F16, F16, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_32x32x8f16");
            VMfmaF32_16x16x16F16 "v_mfma_f32_16x16x16_f16" Mai(0x4d) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 16, 1), F16, F16, F32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_f32_16x16x16f16");
            VMfmaI32_32x32x4_2bI8 "v_mfma_i32_32x32x4_2b_i8" Mai(0x50) [mfma_d(32), mfma_a(1), mfma_b(1), mfma_c(32, I32)] Mfma(16) Mfma(shape(32, 32, 4, 2), I8, I8, I32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_i32_32x32x4i8");
            VMfmaI32_16x16x4_4bI8 "v_mfma_i32_16x16x4_4b_i8" Mai(0x51) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, I32)] Mfma(8) Mfma(shape(16, 16, 4, 4), I8, I8, I32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_i32_16x16x4i8");
            VMfmaI32_4x4x4_16bI8 "v_mfma_i32_4x4x4_16b_i8" Mai(0x52) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, I32)] Mfma(2) Mfma(shape(4, 4, 4, 16), I8, I8, I32), on(FROM_GFX908), alias(TO_GFX90A, "v_mfma_i32_4x4x4i8");
            VMfmaI32_32x32x8i8 "v_mfma_i32_32x32x8i8" Mai(0x54) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, I32)] Mfma(16) Mfma(shape(32, 32, 8, 1), I8, I8, I32), on(GFX908_GFX90A);
            VMfmaI32_16x16x16i8 "v_mfma_i32_16x16x16i8" Mai(0x55) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, I32)] Mfma(8) Mfma(shape(16, 16, 16, 1), I8, I8, I32), on(GFX908_GFX90A);
            VMfmaI32_32x32x16I8 "v_mfma_i32_32x32x16_i8" Mai(0x56) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, I32)] Mfma(8) Mfma(shape(32, 32, 16, 1), I8, I8, I32), on(FROM_GFX942);
            VMfmaI32_16x16x32I8 "v_mfma_i32_16x16x32_i8" Mai(0x57) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, I32)] Mfma(4) Mfma(shape(16, 16, 32, 1), I8, I8, I32), on(FROM_GFX942);
            VMfmaF32_32x32x4_2bBf16 "v_mfma_f32_32x32x4_2b_bf16" Mai(0x5d) [mfma_d(32), mfma_a(2), mfma_b(2), mfma_c(32, F32)] Mfma(16) Mfma(shape(32, 32, 4, 2), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_16x16x4_4bBf16 "v_mfma_f32_16x16x4_4b_bf16" Mai(0x5e) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(16, 16, 4, 4), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_4x4x4_16bBf16 "v_mfma_f32_4x4x4_16b_bf16" Mai(0x5f) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(2) Mfma(shape(4, 4, 4, 16), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_32x32x8Bf16 "v_mfma_f32_32x32x8_bf16" Mai(0x60) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 8, 1), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_16x16x16Bf16 "v_mfma_f32_16x16x16_bf16" Mai(0x61) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 16, 1), Bf16, Bf16, F32), on(FROM_GFX942);
            VSmfmacF32_16x16x32F16 "v_smfmac_f32_16x16x32_f16" Mai(0x62) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 32, 1), F16, F16, F32), on(FROM_GFX942);
            VMfmaF32_32x32x4bf16_1k "v_mfma_f32_32x32x4bf16_1k" Mai(0x63) [mfma_d(32), mfma_a(2), mfma_b(2), mfma_c(32, F32)] Mfma(16) Mfma(shape(32, 32, 4, 2), Bf16, Bf16, F32), on(GFX90A);
            VMfmaF32_16x16x4bf16_1k "v_mfma_f32_16x16x4bf16_1k" Mai(0x64) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(16, 16, 4, 4), Bf16, Bf16, F32), on(GFX90A);
            VSmfmacF32_32x32x16F16 "v_smfmac_f32_32x32x16_f16" Mai(0x64) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 16, 1), F16, F16, F32), on(FROM_GFX942);
            VMfmaF32_4x4x4bf16_1k "v_mfma_f32_4x4x4bf16_1k" Mai(0x65) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(2) Mfma(shape(4, 4, 4, 16), Bf16, Bf16, F32), on(GFX90A);
            VMfmaF32_32x32x8bf16_1k "v_mfma_f32_32x32x8bf16_1k" Mai(0x66) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(16) Mfma(shape(32, 32, 8, 1), Bf16, Bf16, F32), on(GFX90A);
            VSmfmacF32_16x16x32Bf16 "v_smfmac_f32_16x16x32_bf16" Mai(0x66) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 32, 1), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_16x16x16bf16_1k "v_mfma_f32_16x16x16bf16_1k" Mai(0x67) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(8) Mfma(shape(16, 16, 16, 1), Bf16, Bf16, F32), on(GFX90A);
            VMfmaF32_32x32x2bf16 "v_mfma_f32_32x32x2bf16" Mai(0x68) [mfma_d(32), mfma_a(1), mfma_b(1), mfma_c(32, F32)] Mfma(16) Mfma(shape(32, 32, 2, 2), Bf16, Bf16, F32), on(GFX908_GFX90A);
            VSmfmacF32_32x32x16Bf16 "v_smfmac_f32_32x32x16_bf16" Mai(0x68) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 16, 1), Bf16, Bf16, F32), on(FROM_GFX942);
            VMfmaF32_16x16x2bf16 "v_mfma_f32_16x16x2bf16" Mai(0x69) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, F32)] Mfma(8) Mfma(shape(16, 16, 2, 4), Bf16, Bf16, F32), on(GFX908_GFX90A);
            VSmfmacI32_16x16x64I8 "v_smfmac_i32_16x16x64_i8" Mai(0x6a) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 64, 1), I8, I8, I32), on(FROM_GFX942);
            VMfmaF32_4x4x2bf16 "v_mfma_f32_4x4x2bf16" Mai(0x6b) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, F32)] Mfma(2) Mfma(shape(4, 4, 2, 16), Bf16, Bf16, F32), on(GFX908_GFX90A);
            VMfmaF32_32x32x4bf16 "v_mfma_f32_32x32x4bf16" Mai(0x6c) [mfma_d(16), mfma_a(1), mfma_b(1), mfma_c(16, F32)] Mfma(16) Mfma(shape(32, 32, 4, 1), Bf16, Bf16, F32), on(GFX908_GFX90A);
            VSmfmacI32_32x32x32I8 "v_smfmac_i32_32x32x32_i8" Mai(0x6c) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 32, 1), I8, I8, I32), on(FROM_GFX942);
            VMfmaF32_16x16x8bf16 "v_mfma_f32_16x16x8bf16" Mai(0x6d) [mfma_d(4), mfma_a(1), mfma_b(1), mfma_c(4, F32)] Mfma(8) Mfma(shape(16, 16, 8, 1), Bf16, Bf16, F32), on(GFX908_GFX90A);
            VMfmaF64_16x16x4F64 "v_mfma_f64_16x16x4_f64" Mai(0x6e) [mfma_d(8), mfma_a(2), mfma_b(2), mfma_c(8, F64)] Mfma(8) Mfma(shape(16, 16, 4, 1), F64, F64, F64), on(FROM_GFX90A), alias(TO_GFX90A, "v_mfma_f64_16x16x4f64");
            VMfmaF64_4x4x4_4bF64 "v_mfma_f64_4x4x4_4b_f64" Mai(0x6f) [mfma_d(2), mfma_a(2), mfma_b(2), mfma_c(2, F64)] Mfma(4) Mfma(shape(4, 4, 4, 4), F64, F64, F64), on(FROM_GFX90A), alias(TO_GFX90A, "v_mfma_f64_4x4x4f64");
            VMfmaF32_16x16x32Bf8Bf8 "v_mfma_f32_16x16x32_bf8_bf8" Mai(0x70) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 32, 1), Bf8, Bf8, F32), on(FROM_GFX942);
            VMfmaF32_16x16x32Bf8Fp8 "v_mfma_f32_16x16x32_bf8_fp8" Mai(0x71) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 32, 1), Bf8, Fp8, F32), on(FROM_GFX942);
            VMfmaF32_16x16x32Fp8Bf8 "v_mfma_f32_16x16x32_fp8_bf8" Mai(0x72) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 32, 1), Fp8, Bf8, F32), on(FROM_GFX942);
            VMfmaF32_16x16x32Fp8Fp8 "v_mfma_f32_16x16x32_fp8_fp8" Mai(0x73) [mfma_d(4), mfma_a(2), mfma_b(2), mfma_c(4, F32)] Mfma(4) Mfma(shape(16, 16, 32, 1), Fp8, Fp8, F32), on(FROM_GFX942);
            VMfmaF32_32x32x16Bf8Bf8 "v_mfma_f32_32x32x16_bf8_bf8" Mai(0x74) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 16, 1), Bf8, Bf8, F32), on(FROM_GFX942);
            VMfmaF32_32x32x16Bf8Fp8 "v_mfma_f32_32x32x16_bf8_fp8" Mai(0x75) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 16, 1), Bf8, Fp8, F32), on(FROM_GFX942);
            VMfmaF32_32x32x16Fp8Bf8 "v_mfma_f32_32x32x16_fp8_bf8" Mai(0x76) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 16, 1), Fp8, Bf8, F32), on(FROM_GFX942);
            VMfmaF32_32x32x16Fp8Fp8 "v_mfma_f32_32x32x16_fp8_fp8" Mai(0x77) [mfma_d(16), mfma_a(2), mfma_b(2), mfma_c(16, F32)] Mfma(8) Mfma(shape(32, 32, 16, 1), Fp8, Fp8, F32), on(FROM_GFX942);
            VSmfmacF32_16x16x64Bf8Bf8 "v_smfmac_f32_16x16x64_bf8_bf8" Mai(0x78) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 64, 1), Bf8, Bf8, F32), on(FROM_GFX942);
            VSmfmacF32_16x16x64Bf8Fp8 "v_smfmac_f32_16x16x64_bf8_fp8" Mai(0x79) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 64, 1), Bf8, Fp8, F32), on(FROM_GFX942);
            VSmfmacF32_16x16x64Fp8Bf8 "v_smfmac_f32_16x16x64_fp8_bf8" Mai(0x7a) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 64, 1), Fp8, Bf8, F32), on(FROM_GFX942);
            VSmfmacF32_16x16x64Fp8Fp8 "v_smfmac_f32_16x16x64_fp8_fp8" Mai(0x7b) [smfmac_d(4), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(4) SparseMfma(shape(16, 16, 64, 1), Fp8, Fp8, F32), on(FROM_GFX942);
            VSmfmacF32_32x32x32Bf8Bf8 "v_smfmac_f32_32x32x32_bf8_bf8" Mai(0x7c) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 32, 1), Bf8, Bf8, F32), on(FROM_GFX942);
            VSmfmacF32_32x32x32Bf8Fp8 "v_smfmac_f32_32x32x32_bf8_fp8" Mai(0x7d) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 32, 1), Bf8, Fp8, F32), on(FROM_GFX942);
            VSmfmacF32_32x32x32Fp8Bf8 "v_smfmac_f32_32x32x32_fp8_bf8" Mai(0x7e) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 32, 1), Fp8, Bf8, F32), on(FROM_GFX942);
            VSmfmacF32_32x32x32Fp8Fp8 "v_smfmac_f32_32x32x32_fp8_fp8" Mai(0x7f) [smfmac_d(16), mfma_a(2), mfma_b(4), smfmac_index()] Mfma(8) SparseMfma(shape(32, 32, 32, 1), Fp8, Fp8, F32), on(FROM_GFX942);
        }
    };
}
