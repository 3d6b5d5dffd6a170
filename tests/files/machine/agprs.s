; case accumulators go to AGPRs when VGPRs run out, without a copy in the loop
; run allocate
; limits vgprs=12
bb0:
    v_mov_b32 %0[0]:v4, 0
    v_mov_b32 %0[1], 0
    v_mov_b32 %0[2], 0
    v_mov_b32 %0[3], 0
    v_mov_b32 %1[0]:v4, 0
    v_mov_b32 %1[1], 0
    v_mov_b32 %1[2], 0
    v_mov_b32 %1[3], 0
bb1:
    ds_read_b64 %2:v2, v0
    ds_read_b64 %3:v2, v0 offset:8
    v_mfma_f32_16x16x16_f16 %0, %2, %3, %0
    v_mfma_f32_16x16x16_f16 %1, %3, %2, %1
    s_cbranch_scc1 bb1
bb2:
    global_store_dwordx4 v0, %0, s[0:1]
    v_cvt_f16_f32 %4:v1, %1[0]
    global_store_short v0, %4, s[0:1]
; ---
; sgprs 2, vgprs 10, agprs 4
; 4 to AGPRs; 0 instructions inserted; peak 12 VGPRs at line 12
bb0:
    v_accvgpr_write_b32 a0, 0
    v_accvgpr_write_b32 a1, 0
    v_accvgpr_write_b32 a2, 0
    v_accvgpr_write_b32 a3, 0
    v_mov_b32 v2, 0
    v_mov_b32 v3, 0
    v_mov_b32 v4, 0
    v_mov_b32 v5, 0
bb1:
    ds_read_b64 v[6:7], v0
    ds_read_b64 v[8:9], v0 offset:8
    v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[8:9], a[0:3]
    v_mfma_f32_16x16x16_f16 v[2:5], v[8:9], v[6:7], v[2:5]
    s_cbranch_scc1 bb1
bb2:
    global_store_dwordx4 v0, a[0:3], s[0:1]
    v_cvt_f16_f32 v1, v2
    global_store_short v0, v1, s[0:1]

; case A and B of a matrix instruction
; run allocate
; limits vgprs=6
bb0:
    ds_read_b64 %0:v2, v0
    ds_read_b64 %1:v2, v0
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %1, 0
    global_store_dwordx4 v0, %2, s[0:1]
    global_store_dwordx2 v0, %0, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 4
; 4 to AGPRs; 0 instructions inserted; peak 8 VGPRs at line 4
bb0:
    ds_read_b64 a[0:1], v0
    ds_read_b64 a[2:3], v0
    v_mfma_f32_16x16x16_f16 v[2:5], a[0:1], a[2:3], 0
    global_store_dwordx4 v0, v[2:5], s[0:1]
    global_store_dwordx2 v0, a[0:1], s[0:1]

; case what is loaded and stored needs no VGPR
; run allocate
; limits vgprs=2
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
    global_store_dwordx4 v0, %0, s[2:3]
    global_store_dwordx4 v0, %1, s[2:3] offset:16
; ---
; sgprs 4, vgprs 1, agprs 8
; 8 to AGPRs; 0 instructions inserted; peak 8 VGPRs at line 3
bb0:
    global_load_dwordx4 a[0:3], v0, s[0:1]
    global_load_dwordx4 a[4:7], v0, s[0:1] offset:16
    global_store_dwordx4 v0, a[0:3], s[2:3]
    global_store_dwordx4 v0, a[4:7], s[2:3] offset:16

; case D and C are in one file: C stays a VGPR, so D is written through one
; run allocate
; limits vgprs=12 scratch=0
bb0:
    v_mul_f32 %0[0]:v4, v0, v0
    v_mul_f32 %0[1], v0, v0
    v_mul_f32 %0[2], v0, v0
    v_mul_f32 %0[3], v0, v0
    v_mfma_f32_16x16x16_f16 %1:v4, v[0:1], v[2:3], %0
    v_pk_mul_f32 %2:v2, %0[0:1], %0[2:3]
    v_pk_mul_f32 %3:v2, %0[0:1], %2
    global_store_dwordx4 v0, %1, s[0:1]
    v_pk_mul_f32 %2, %2, %3
    v_pk_mul_f32 %0[0:1], %0[0:1], %2
    global_store_dwordx2 v0, %0[0:1], s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 4
; 4 to AGPRs; 4 instructions inserted; peak 10 VGPRs at line 8
bb0:
    v_mul_f32 v4, v0, v0
    v_mul_f32 v5, v0, v0
    v_mul_f32 v6, v0, v0
    v_mul_f32 v7, v0, v0
    v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]
    v_accvgpr_write_b32 a0, v8
    v_accvgpr_write_b32 a1, v9
    v_accvgpr_write_b32 a2, v10
    v_accvgpr_write_b32 a3, v11
    v_pk_mul_f32 v[6:7], v[4:5], v[6:7]
    v_pk_mul_f32 v[8:9], v[4:5], v[6:7]
    global_store_dwordx4 v0, a[0:3], s[0:1]
    v_pk_mul_f32 v[6:7], v[6:7], v[8:9]
    v_pk_mul_f32 v[4:5], v[4:5], v[6:7]
    global_store_dwordx2 v0, v[4:5], s[0:1]

; case data operands of one instruction are in one file
; run allocate
; limits vgprs=3 scratch=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    ds_write2_b32 v0, %0, %1 offset0:1 offset1:2
    v_add_u32 %1, %1, %2
    ds_write2_b32 v0, %1, %2 offset0:1 offset1:2
    v_add_u32 %1, %1, %2
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 3, agprs 2
; 2 to AGPRs; 2 instructions inserted; peak 3 VGPRs at line 4
bb0:
    ds_read_b32 a0, v0
    ds_read_b32 v1, v0
    ds_read_b32 a1, v0
    v_accvgpr_read_b32 v2, a0
    ds_write2_b32 v0, v2, v1 offset0:1 offset1:2
    v_accvgpr_read_b32 v2, a1
    v_add_u32 v1, v1, v2
    ds_write2_b32 v0, v1, v2 offset0:1 offset1:2
    v_add_u32 v1, v1, v2
    ds_write_b32 v0, a0

; case an operand that cannot be an AGPR gets a copy, outside of the loop if there is a choice
; run allocate
; limits vgprs=3
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    v_add_u32 %0, %0, v0
bb1:
    v_add_u32 %1, %1, v0
    v_add_u32 %2, %2, %1
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 %0, %0, %1
    v_add_u32 %0, %0, %2
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 3, agprs 2
; 2 to AGPRs; 8 instructions inserted; peak 3 VGPRs at line 4
bb0:
    ds_read_b32 a0, v0
    ds_read_b32 v1, v0
    ds_read_b32 a1, v0
    v_accvgpr_read_b32 v2, a0
    v_add_u32 v2, v2, v0
    v_accvgpr_write_b32 a0, v2
bb1:
    v_add_u32 v1, v1, v0
    v_accvgpr_read_b32 v2, a1
    v_add_u32 v2, v2, v1
    v_accvgpr_write_b32 a1, v2
    s_cbranch_scc1 bb1
bb2:
    v_accvgpr_read_b32 v2, a0
    v_add_u32 v2, v2, v1
    v_accvgpr_write_b32 a0, v2
    v_accvgpr_read_b32 v1, a1
    v_add_u32 v2, v2, v1
    v_accvgpr_write_b32 a0, v2
    ds_write_b32 v0, a0

; case while lanes may be off a write to an AGPR keeps the others
; run allocate
; limits vgprs=3 scratch=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_add_u32 %0, v0, v0
    v_add_u32 %2:v1, v0, %1
    v_add_u32 %2, %2, %1
    v_add_u32 %3:v1, %2, %1
    ds_write2_b32 v0, %3, %2 offset0:0 offset1:1
    s_mov_b64 exec, s[0:1]
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 2, vcc
; 2 to AGPRs; 3 instructions inserted; peak 3 VGPRs at line 3
bb0:
    ds_read_b32 a0, v0
    ds_read_b32 a1, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_accvgpr_read_b32 v2, a0
    v_add_u32 v2, v0, v0
    v_accvgpr_write_b32 a0, v2
    v_accvgpr_read_b32 v2, a1
    v_add_u32 v1, v0, v2
    v_add_u32 v1, v1, v2
    v_add_u32 v2, v1, v2
    ds_write2_b32 v0, v2, v1 offset1:1
    s_mov_b64 exec, s[0:1]
    ds_write_b32 v0, a0

; case VGPRs and AGPRs share what there is
; run allocate
; limits vectors=12
bb0:
    ds_read_b128 %0:v4, v0
    ds_read_b128 %1:v4, v0
    ds_read_b128 %2:v4, v0
    ds_write_b128 v0, %0
    ds_write_b128 v0, %1
    ds_write_b128 v0, %2
; ---
; sgprs 0, vgprs 10, agprs 0
; 8 to scratch, 32 bytes; 4 instructions inserted; peak 12 VGPRs at line 4
bb0:
    ds_read_b128 v[2:5], v0
    scratch_store_dwordx4 off, v[2:5], off
    ds_read_b128 v[2:5], v0
    scratch_store_dwordx4 off, v[2:5], off offset:16
    ds_read_b128 v[2:5], v0
    scratch_load_dwordx4 v[6:9], off, off
    ds_write_b128 v0, v[6:9]
    scratch_load_dwordx4 v[6:9], off, off offset:16
    ds_write_b128 v0, v[6:9]
    ds_write_b128 v0, v[2:5]

; case on gfx908 accumulators are AGPRs from the beginning, and are read where they are used
; run allocate
; target gfx908
bb0:
    v_mov_b32 %0[0]:v4, 0
    v_mov_b32 %0[1], 0
    v_mov_b32 %0[2], 0
    v_mov_b32 %0[3], v1
bb1:
    ds_read_b64 %1:v2, v0
    ds_read_b64 %2:v2, v0 offset:8
    v_mfma_f32_16x16x16_f16 %3:v4, %1, %2, %0
    v_mfma_f32_16x16x16_f16 %4:v4, %2, %1, %3
    v_mov_b32 %0[0], %4[0]
    v_mov_b32 %0[1], %4[1]
    v_mov_b32 %0[2], %4[2]
    v_mov_b32 %0[3], %4[3]
    s_cbranch_scc1 bb1
bb2:
    global_store_dwordx4 v0, %0, s[0:1]
    v_cvt_f16_f32 %5:v1, %0[0]
    global_store_short v0, %5, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 4
bb0:
    v_accvgpr_write_b32 a0, 0
    v_accvgpr_write_b32 a1, 0
    v_accvgpr_write_b32 a2, 0
    v_accvgpr_write_b32 a3, v1
bb1:
    ds_read_b64 v[2:3], v0
    ds_read_b64 v[4:5], v0 offset:8
    v_mfma_f32_16x16x16_f16 a[0:3], v[2:3], v[4:5], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[2:3], a[0:3]
    s_cbranch_scc1 bb1
bb2:
    v_accvgpr_read_b32 v2, a0
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_read_b32 v4, a2
    v_accvgpr_read_b32 v5, a3
    global_store_dwordx4 v0, v[2:5], s[0:1]
    v_accvgpr_read_b32 v2, a0
    v_cvt_f16_f32 v2, v2
    global_store_short v0, v2, s[0:1]

; case on gfx908 an accumulator that is still needed is copied by way of a VGPR
; run allocate
; target gfx908
bb0:
    global_load_dword %0:v1, v0, s[0:1]
    global_load_dword %1:v1, v0, s[0:1] offset:4
    v_mfma_f32_4x4x1_16b_f32 %2:v4, %0, %1, %2
    v_mfma_f32_4x4x1_16b_f32 %3:v4, %1, %0, %2
    v_mov_b32 %4[0]:v4, %2[0]
    v_mov_b32 %4[1], %2[1]
    v_mov_b32 %4[2], %2[2]
    v_mov_b32 %4[3], %2[3]
    v_mfma_f32_4x4x1_16b_f32 %4, %1, %0, %4
    global_store_dwordx4 v0, %2, s[0:1]
    global_store_dwordx4 v0, %3, s[0:1]
    global_store_dwordx4 v0, %4, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 12
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v2, v0, s[0:1] offset:4
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v1, v2, a[0:3]
    v_mfma_f32_4x4x1_16b_f32 a[4:7], v2, v1, a[0:3]
    v_accvgpr_read_b32 v3, a0
    v_accvgpr_write_b32 a8, v3
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_write_b32 a9, v3
    v_accvgpr_read_b32 v3, a2
    v_accvgpr_write_b32 a10, v3
    v_accvgpr_read_b32 v3, a3
    v_accvgpr_write_b32 a11, v3
    v_mfma_f32_4x4x1_16b_f32 a[8:11], v2, v1, a[8:11]
    v_accvgpr_read_b32 v2, a0
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_read_b32 v4, a2
    v_accvgpr_read_b32 v5, a3
    global_store_dwordx4 v0, v[2:5], s[0:1]
    v_accvgpr_read_b32 v2, a4
    v_accvgpr_read_b32 v3, a5
    v_accvgpr_read_b32 v4, a6
    v_accvgpr_read_b32 v5, a7
    global_store_dwordx4 v0, v[2:5], s[0:1]
    v_accvgpr_read_b32 v2, a8
    v_accvgpr_read_b32 v3, a9
    v_accvgpr_read_b32 v4, a10
    v_accvgpr_read_b32 v5, a11
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case on gfx908 VGPRs that do not fit wait in AGPRs, one copy each way
; run allocate
; target gfx908
; limits vgprs=6
bb0:
    ds_read_b128 %0:v4, v0
    ds_read_b128 %1:v4, v0 offset:16
    ds_write_b128 v0, %0 offset:32
    ds_write_b128 v0, %1 offset:48
; ---
; sgprs 0, vgprs 6, agprs 8
; 8 to AGPRs; 16 instructions inserted; peak 8 VGPRs at line 3
bb0:
    ds_read_b128 v[2:5], v0
    v_accvgpr_write_b32 a0, v2
    v_accvgpr_write_b32 a1, v3
    v_accvgpr_write_b32 a2, v4
    v_accvgpr_write_b32 a3, v5
    ds_read_b128 v[2:5], v0 offset:16
    v_accvgpr_write_b32 a4, v2
    v_accvgpr_write_b32 a5, v3
    v_accvgpr_write_b32 a6, v4
    v_accvgpr_write_b32 a7, v5
    v_accvgpr_read_b32 v2, a0
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_read_b32 v4, a2
    v_accvgpr_read_b32 v5, a3
    ds_write_b128 v0, v[2:5] offset:32
    v_accvgpr_read_b32 v2, a4
    v_accvgpr_read_b32 v3, a5
    v_accvgpr_read_b32 v4, a6
    v_accvgpr_read_b32 v5, a7
    ds_write_b128 v0, v[2:5] offset:48

; case on gfx908 an accumulator goes to scratch by way of VGPRs
; run allocate
; target gfx908
; limits vgprs=12 agprs=4
bb0:
    v_mov_b32 %0[0]:v4, 0
    v_mov_b32 %0[1], 0
    v_mov_b32 %0[2], 0
    v_mov_b32 %0[3], 0
    v_mov_b32 %1[0]:v4, 0
    v_mov_b32 %1[1], 0
    v_mov_b32 %1[2], 0
    v_mov_b32 %1[3], 0
    ds_read_b32 %2:v1, v0
    v_mfma_f32_16x16x4_f32 %0, %2, %2, %0
    v_mfma_f32_16x16x4_f32 %1, %2, %2, %1
    global_store_dwordx4 v0, %0, s[0:1]
    global_store_dwordx4 v0, %1, s[0:1]
; ---
; sgprs 3, vgprs 6, agprs 4
; 8 to scratch, 32 bytes; 64 instructions inserted; peak 4 VGPRs at line 13
bb0:
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:4
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:8
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:12
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:16
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:20
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:24
    v_accvgpr_write_b32 a0, 0
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v1, a0
    scratch_store_dword off, v1, s2 offset:28
    ds_read_b32 v1, v0
    s_mov_b32 s2, 0
    scratch_load_dwordx4 v[2:5], off, s2
    v_accvgpr_write_b32 a0, v2
    v_accvgpr_write_b32 a1, v3
    v_accvgpr_write_b32 a2, v4
    v_accvgpr_write_b32 a3, v5
    v_mfma_f32_16x16x4_f32 a[0:3], v1, v1, a[0:3]
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v2, a0
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_read_b32 v4, a2
    v_accvgpr_read_b32 v5, a3
    scratch_store_dwordx4 off, v[2:5], s2
    s_mov_b32 s2, 0
    scratch_load_dwordx4 v[2:5], off, s2 offset:16
    v_accvgpr_write_b32 a0, v2
    v_accvgpr_write_b32 a1, v3
    v_accvgpr_write_b32 a2, v4
    v_accvgpr_write_b32 a3, v5
    v_mfma_f32_16x16x4_f32 a[0:3], v1, v1, a[0:3]
    s_mov_b32 s2, 0
    v_accvgpr_read_b32 v2, a0
    v_accvgpr_read_b32 v3, a1
    v_accvgpr_read_b32 v4, a2
    v_accvgpr_read_b32 v5, a3
    scratch_store_dwordx4 off, v[2:5], s2 offset:16
    s_mov_b32 s2, 0
    scratch_load_dword v2, off, s2
    s_mov_b32 s2, 0
    scratch_load_dword v3, off, s2 offset:4
    s_mov_b32 s2, 0
    scratch_load_dword v4, off, s2 offset:8
    s_mov_b32 s2, 0
    scratch_load_dword v5, off, s2 offset:12
    global_store_dwordx4 v0, v[2:5], s[0:1]
    s_mov_b32 s2, 0
    scratch_load_dword v2, off, s2 offset:16
    s_mov_b32 s2, 0
    scratch_load_dword v3, off, s2 offset:20
    s_mov_b32 s2, 0
    scratch_load_dword v4, off, s2 offset:24
    s_mov_b32 s2, 0
    scratch_load_dword v5, off, s2 offset:28
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case on gfx908 lanes of an accumulator that are on can be read one by one
; run allocate
; target gfx908
bb0:
    v_mfma_f32_4x4x1_16b_f32 %0:v4, v0, v1, %0
    v_readlane_b32 %1:s1, %0[0], 3
    s_mov_b32 m0, %1
; ---
; sgprs 1, vgprs 3, agprs 4
bb0:
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]
    v_accvgpr_read_b32 v2, a0
    v_readlane_b32 s0, v2, 3
    s_mov_b32 m0, s0

; case on gfx908 lanes of an accumulator that are off cannot
; run allocate
; target gfx908
bb0:
    v_mfma_f32_4x4x1_16b_f32 %0:v4, v0, v1, %0
    s_and_saveexec_b64 %2:s2, vcc
    v_readlane_b32 %1:s1, %0[0], 3
    s_mov_b32 m0, %1
; ---
; error: instruction 2 looks at lanes of an accumulator that are off
