; case A1: VALU writes an SGPR, VMEM reads it: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_readfirstlane_b32 s4, v0
+   s_nop 4
    buffer_load_dword v1, off, s[8:11], s4

; case A1: carry-out to VCC, VMEM reads it as an address: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_add_co_u32 v0, vcc, v1, v2
+   s_nop 4
    global_load_dword v3, v4, vcc

; case A1: VALU writes FLAT_SCRATCH by its number, a flat access needs it: 5
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_readfirstlane_b32 flat_scratch_lo, v0
+   s_nop 4
    flat_load_dword v1, v[2:3]

; case A2: VALU writes M0, a load to LDS reads it: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_readfirstlane_b32 m0, v0
+   s_nop 4
    buffer_load_dword off, s[8:11], 0 lds

; case A3: VALU writes EXEC, VMEM: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 4
    global_load_dword v3, v2, s[0:1]

; case A3: VALU writes EXEC, LDS: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    ds_read_b32 v3, v2

; case A4: VALU writes an SGPR, lane select: 4
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_readfirstlane_b32 s4, v0
+   s_nop 3
    v_readlane_b32 s5, v1, s4

; case A4: VALU writes M0, lane select: 4
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_readfirstlane_b32 m0, v0
+   s_nop 3
    v_writelane_b32 v1, s5, m0

; case A5: VALU writes VCC, v_div_fmas: 4
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmp_eq_u32 vcc, v0, v1
+   s_nop 3
    v_div_fmas_f32 v2, v3, v4, v5

; case A5: v_div_scale, v_div_fmas: 4
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_div_scale_f32 v6, vcc, v3, v4, v5
+   s_nop 3
    v_div_fmas_f32 v2, v3, v4, v5

; case A6: VALU writes VCC, VALU reads VCCZ: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmp_eq_u32 vcc, v0, v1
+   s_nop 4
    v_mov_b32 v2, src_vccz

; case A6: VALU writes EXEC, VALU reads EXECZ: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 s[4:5], v0, v1
+   s_nop 4
    v_mov_b32 v2, src_execz

; case A6: VALU writes VCC, a branch on VCCZ: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmp_eq_u32 vcc, v0, v1
    s_cbranch_vccz bb0

; case A7: VALU writes a VGPR, DPP reads it: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v0, v5
+   s_nop 1
    v_add_u32_dpp v1, v0, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf

; case A7: VALU writes a VGPR, second source of DPP: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v0, v5
+   s_nop 1
    v_add_u32_dpp v1, v2, v0 row_mirror row_mask:0xf bank_mask:0xf

; case A7: VALU writes a VGPR, DPP keeps lanes of it: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v1, v5
+   s_nop 1
    v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf

; case A8: VALU writes EXEC, DPP: 5
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 4
    v_mov_b32_dpp v2, v3 row_bcast:15 row_mask:0xa bank_mask:0xf

; case A8: SALU writes EXEC, DPP: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b64 exec, s[0:1]
    v_mov_b32_dpp v2, v3 row_ror:4 row_mask:0xf bank_mask:0xf

; case A9: VALU writes an SGPR, VALU reads it: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_readfirstlane_b32 s4, v0
    v_add_u32 v1, s4, v1

; case A9: VALU writes an SGPR, VALU reads it: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_readfirstlane_b32 s4, v0
+   s_nop 1
    v_add_u32 v1, s4, v1

; case A10: VALU writes VCC, carry-in: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_add_co_u32 v0, vcc, v1, v2
    v_addc_co_u32 v3, vcc, v4, v5, vcc

; case A10: VALU writes VCC, carry-in: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_add_co_u32 v0, vcc, v1, v2
+   s_nop 1
    v_addc_co_u32 v3, vcc, v4, v5, vcc

; case A10: VALU writes VCC, select in the SDWA form: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_cmp_eq_u32 vcc, v0, v1
    v_cndmask_b32_sdwa v3, v4, v5, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD

; case A10: VALU writes VCC, select in the SDWA form: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_cmp_eq_u32 vcc, v0, v1
+   s_nop 1
    v_cndmask_b32_sdwa v3, v4, v5, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD

; case A11: VALU writes a VGPR, v_readfirstlane: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_mov_b32 v0, v5
    v_readfirstlane_b32 s4, v0

; case A11: VALU writes a VGPR, v_readfirstlane: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_mov_b32 v0, v5
+   s_nop 0
    v_readfirstlane_b32 s4, v0

; case A11: VALU writes a VGPR, v_readlane: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_mov_b32 v0, v5
    v_readlane_b32 s4, v0, 3

; case A11: VALU writes a VGPR, v_readlane: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_mov_b32 v0, v5
+   s_nop 0
    v_readlane_b32 s4, v0, 3

; case A12: VALU writes EXEC, v_readlane: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    v_readlane_b32 s4, v2, 3

; case A12: VALU writes EXEC, v_readlane: 4
; run hazards
; target gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 3
    v_readlane_b32 s4, v2, 3

; case A12: VALU writes EXEC, v_writelane: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    v_writelane_b32 v2, 1, 3

; case A12: VALU writes EXEC, v_writelane: 4
; run hazards
; target gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 3
    v_writelane_b32 v2, 1, 3

; case A13: VALU writes EXEC, VALU reads it as a number: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    v_mov_b32 v2, exec_lo

; case A13: VALU writes EXEC, VALU reads it as a number: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 1
    v_mov_b32 v2, exec_lo

; case A13: VALU writes EXEC, VALU under it: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    v_mov_b32 v2, v3

; case A14: transcendental result, VALU reads it: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_exp_f16 v0, v1
    v_mul_f16 v2, v0, v0

; case A14: transcendental result, VALU reads it: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_exp_f16 v0, v1
+   s_nop 0
    v_mul_f16 v2, v0, v0

; case A14: transcendental result, another one reads it: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_rcp_f32 v0, v1
    v_sqrt_f32 v2, v0

; case A14: transcendental result, VALU overwrites it: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_rcp_f32 v0, v1
    v_mov_b32 v0, v2

; case A15: SDWA result in a part, VALU reads it: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD
    v_mov_b32 v3, v0

; case A15: SDWA result in a part, VALU reads it: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD
+   s_nop 0
    v_mov_b32 v3, v0

; case A15: SDWA result in a part, VALU overwrites it: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD
    v_mov_b32 v0, v3

; case A15: SDWA result in a part, VALU overwrites it: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD
+   s_nop 0
    v_mov_b32 v0, v3

; case A15: SDWA whole result: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
    v_mov_b32 v3, v0

; case A15: SDWA result in a part, memory reads it: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD
    ds_write_b32 v3, v0

; case A15: op_sel result in the high half: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_mad_f16 v0, v1, v2, v3 op_sel:[0,0,0,1]
    v_mov_b32 v4, v0

; case A15: op_sel result in the high half: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_mad_f16 v0, v1, v2, v3 op_sel:[0,0,0,1]
+   s_nop 0
    v_mov_b32 v4, v0

; case A15: op_sel of a source alone: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_mad_f16 v0, v1, v2, v3 op_sel:[1,0,0,0]
    v_mov_b32 v4, v0

; case A15: mixed FMA to the high half: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    v_fma_mixhi_f16 v0, v1, v2, v3
    v_mov_b32 v4, v0

; case A15: mixed FMA to the high half: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_fma_mixhi_f16 v0, v1, v2, v3
+   s_nop 0
    v_mov_b32 v4, v0

; case A15: conversion to byte 2: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,0,1]
+   s_nop 0
    v_mov_b32 v4, v0

; case A15: stochastic conversion to FP4, every form: 1
; run hazards
; target gfx950
bb0:
    v_cvt_scalef32_sr_pk_fp4_f16 v0, v1, v2, v3
+   s_nop 0
    v_mov_b32 v4, v0

; case A16: conversions to both halves of one VGPR: 1
; run hazards
; target gfx942 gfx950
bb0:
    v_cvt_pk_fp8_f32 v0, v1, v2
+   s_nop 0
    v_cvt_pk_fp8_f32 v0, v3, v4 op_sel:[0,0,1]

; case A16: conversions to two VGPRs: 0
; run hazards
; target gfx942 gfx950
bb0:
    v_cvt_pk_fp8_f32 v0, v1, v2
    v_cvt_pk_fp8_f32 v5, v3, v4 op_sel:[0,0,1]

; case A17: wide store, VALU overwrites the data: 1
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
+   s_nop 0
    v_mov_b32 v3, v9

; case A17: wide store, VALU overwrites the data: 2
; run hazards
; target gfx942 gfx950
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
+   s_nop 1
    v_mov_b32 v3, v9

; case A17: wide compare and swap, VALU overwrites the data: 1
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    flat_atomic_cmpswap_x2 v[8:9], v[0:3]
+   s_nop 0
    v_mov_b32 v3, v9

; case A17: wide compare and swap, VALU overwrites the data: 2
; run hazards
; target gfx942 gfx950
bb0:
    flat_atomic_cmpswap_x2 v[8:9], v[0:3]
+   s_nop 1
    v_mov_b32 v3, v9

; case A17: wide formatted store, VALU overwrites the data: 1
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    buffer_store_format_xyz v[0:2], off, s[4:7], 0
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide formatted store, VALU overwrites the data: 2
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_format_xyz v[0:2], off, s[4:7], 0
+   s_nop 1
    v_mov_b32 v2, v9

; case A17: wide store, a load overwrites the data: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
+   s_nop 0
    ds_read_b32 v1, v8

; case A17: wide store with a scalar offset: 0
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
    v_mov_b32 v2, v9

; case A17: wide store with a scalar offset: 1
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide store with m0 as its offset: 1
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx3 v[0:2], v9, s[4:7], m0 offen
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide formatted store with a scalar offset: 1
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_format_xyzw v[0:3], off, s[4:7], s8
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide store with a scalar offset, a matrix result over its data: 1
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
+   s_nop 0
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0

; case A17: wide store with a scalar offset, a load over its data: 1
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
+   s_nop 0
    ds_read_b32 v1, v8

; case A17: wide store with a scalar offset, EXEC changes before the data: the change counts as one
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
    s_mov_b64 exec, s[10:11]
    v_mov_b32 v2, v9

; case A17: wide store with a constant offset, EXEC changes before the data: one more
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], 0
    s_mov_b64 exec, s[10:11]
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide store with a scalar offset before a branch, which counts as one
; run hazards
; target gfx942 gfx950
bb0:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
    s_cbranch_scc1 bb2
bb1:
    s_nop 3
bb2:
    v_mov_b32 v2, v9

; case A17: wide store with a scalar offset at the end of a block that falls through
; run hazards
; target gfx942 gfx950
bb0:
    s_cbranch_scc1 bb2
bb1:
    buffer_store_dwordx4 v[0:3], off, s[4:7], s8
bb2:
+   s_nop 0
    v_mov_b32 v2, v9

; case A17: wide store around a loop, whose branch counts as one
; run hazards
; target gfx942 gfx950
bb0:
+   s_nop 0
    v_mov_b32 v2, v9
    buffer_store_dwordx4 v[0:3], off, s[4:7], 0
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case A17: LDS store: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    ds_write_b128 v8, v[0:3]
    v_mov_b32 v2, v9

; case A17: a store of 64 bits: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    global_store_dwordx2 v8, v[0:1], s[0:1]
    v_mov_b32 v1, v9

; case A17: wide store, the address overwritten: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
    v_mov_b32 v8, v9

; case A18: SALU writes M0, message: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
-   s_sendmsg 1
+   s_nop 0
+   s_sendmsg sendmsg(MSG_INTERRUPT)

; case A18: SALU writes M0, trace: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    s_ttracedata

; case A19: SALU writes M0, global data share: 1
; run hazards
; target gfx906 gfx908
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    ds_read_b32 v1, v0 gds

; case A19: SALU writes M0, GWS: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    ds_gws_barrier v0 gds

; case A19: SALU writes M0, LDS: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
    ds_read_b32 v1, v0

; case A20: SALU writes M0, LDS at the lane's place: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    ds_read_addtid_b32 v0

; case A20: SALU writes M0, buffer load to LDS: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    buffer_load_dword off, s[8:11], 0 lds

; case A20: SALU writes M0, global load to LDS: 1
; run hazards
; target gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    global_load_lds_dword v0, s[0:1]

; case A20: SALU writes M0, global load to LDS: 1
; run hazards
; target gfx90a
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    global_load_dword v0, s[0:1] lds

; case A20: SALU writes M0, store from LDS: 1
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    buffer_store_lds_dword s[8:11], 0 lds

; case A21: SALU writes M0, relative move: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    s_movrels_b32 s1, s2

; case A21: SALU writes M0, relative move: 1
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_mov_b32 m0, s0
+   s_nop 0
    s_movreld_b64 s[4:5], s[2:3]

; case A22: s_setreg, s_getreg of the same register: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_setreg_b32 0x1801, s0
    s_getreg_b32 s1, 0x801
; ---
bb0:
    s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0
    s_nop 1
    s_getreg_b32 s1, hwreg(HW_REG_MODE, 0, 2)

; case A22: s_setreg, s_getreg of another register: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_setreg_b32 0x1801, s0
    s_getreg_b32 s1, 0x802
; ---
bb0:
    s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0
    s_getreg_b32 s1, hwreg(HW_REG_STATUS, 0, 2)

; case A23: s_setreg, s_setreg of the same register: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_setreg_imm32_b32 0x1801, 3
    s_setreg_b32 0x801, s1
; ---
bb0:
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3
    s_nop 1
    s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s1

; case A24: s_setreg of TRAPSTS, s_rfe: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
-   s_setreg_b32 0x1803, s0
+   s_setreg_b32 hwreg(HW_REG_TRAPSTS, 0, 4), s0
+   s_nop 1
    s_rfe_b64 s[2:3]

; case A25: s_setvskip, s_getreg of MODE: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_setvskip s0, s1
-   s_getreg_b32 s1, 0x801
+   s_nop 1
+   s_getreg_b32 s1, hwreg(HW_REG_MODE, 0, 2)

; case A25: s_setvskip, s_getreg of another register: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    s_setvskip s0, s1
-   s_getreg_b32 s1, 0x802
+   s_getreg_b32 s1, hwreg(HW_REG_STATUS, 0, 2)

; case A26: s_setreg of MODE.vskip, a vector instruction: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
-   s_setreg_b32 0x701, s0
+   s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s0
+   s_nop 1
    v_mov_b32 v0, v1

; case A26: s_setreg of MODE.vskip, LDS: 2
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
-   s_setreg_b32 0xff01, s0
+   s_setreg_b32 hwreg(HW_REG_MODE, 28, 32), s0
+   s_nop 1
    ds_read_b32 v0, v1

; case A26: s_setreg of other bits of MODE: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
-   s_setreg_b32 0x1801, s0
+   s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0
    v_mov_b32 v0, v1

; case A27: VALU writes a VGPR, rows are swapped: 2
; run hazards
; target gfx950
bb0:
    v_mov_b32 v0, v5
+   s_nop 1
    v_permlane32_swap_b32 v1, v0

; case A28: VALU writes EXEC, rows are swapped: 4
; run hazards
; target gfx950
bb0:
    v_cmpx_eq_u32 vcc, v2, v3
+   s_nop 3
    v_permlane16_swap_b32 v1, v0

; case A29: VALU writes a VGPR, DGEMM, memory reads it: 1
; run hazards
; target gfx90a
bb0:
    v_mov_b32 v20, v5
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[6:7], v[0:1]
+   s_nop 0
    ds_write_b32 v21, v20

; case A29: VALU writes a VGPR, DGEMM, memory reads it: 0
; run hazards
; target gfx942 gfx950
bb0:
    v_mov_b32 v20, v5
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[6:7], v[0:1]
    ds_write_b32 v21, v20

; case A30: DGEMM, F64 FMA: 2
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], v[0:1]
+   s_nop 1
    v_fmac_f64 v[6:7], v[8:9], v[8:9]

; case A30: DGEMM, F64 sum: 0
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], v[0:1]
    v_add_f64 v[6:7], v[8:9], v[8:9]

; case A31: dot product, the same adds to it: 0
; run hazards
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    v_dot2_f32_f16 v0, v3, v4, v0

; case A32: dot product, the same multiplies it: 0
; run hazards
; target gfx906 gfx908
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    v_dot2_f32_f16 v5, v0, v4, v5

; case A32: dot product, the same multiplies it: 3
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    v_dot2_f32_f16 v5, v0, v4, v5

; case A33: dot product, another one adds to it: 0
; run hazards
; target gfx906 gfx908
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    v_dot4_i32_i8 v0, v3, v4, v0

; case A33: dot product, another one adds to it: 3
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    v_dot4_i32_i8 v0, v3, v4, v0

; case A33: dot product, memory reads it: 0
; run hazards
; target gfx906 gfx908
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    ds_write_b32 v3, v0

; case A33: dot product, memory reads it: 3
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    ds_write_b32 v3, v0

; case A33: dot product, a load overwrites it: 0
; run hazards
; target gfx906 gfx908
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    ds_read_b32 v0, v3

; case A33: dot product, a load overwrites it: 3
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    ds_read_b32 v0, v3

; case A33: dot product, matrix instruction reads it: 2
; run hazards
; target gfx908
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 1
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]

; case A33: dot product, matrix instruction reads it: 3
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]

; case 908: VALU writes a VGPR, matrix instruction reads it: 2
; run hazards
; target gfx908
bb0:
    v_mov_b32 v0, v5
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]

; case 908: VALU writes a VGPR, v_accvgpr_write reads it: 2
; run hazards
; target gfx908
bb0:
    v_mov_b32 v0, v5
+   s_nop 1
    v_accvgpr_write_b32 a0, v0

; case 908: VALU writes EXEC, matrix instruction: 4
; run hazards
; target gfx908
bb0:
    v_cmpx_eq_u32 vcc, v2, v3
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]

; case 908: VALU writes EXEC, v_accvgpr_write: 4
; run hazards
; target gfx908
bb0:
    v_cmpx_eq_u32 vcc, v2, v3
+   s_nop 3
    v_accvgpr_write_b32 a0, v0

; case 908: VALU writes EXEC, v_accvgpr_read: 0
; run hazards
; target gfx908
bb0:
    v_cmpx_eq_u32 vcc, v2, v3
    v_accvgpr_read_b32 v0, a0

; case 908: matrix instruction of 2 passes, the same C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[16:19]
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[16:19]

; case 908: matrix instruction of 2 passes, an overlapping C: 2
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 a[18:21], v[0:1], v[2:3], a[18:21]

; case 908: matrix instruction of 2 passes, A of another: 4
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 a[0:3], a16, v1, a[0:3]

; case 908: matrix instruction of 2 passes, v_accvgpr_read: 4
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 3
    v_accvgpr_read_b32 v9, a17

; case 908: matrix instruction of 2 passes, v_accvgpr_write over D: 1
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 0
    v_accvgpr_write_b32 a17, v9

; case 908: matrix instruction of 2 passes, v_accvgpr_write over C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
    v_accvgpr_write_b32 a49, v9

; case 908: matrix instruction of 2 passes, VALU over A: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
    v_mov_b32 v0, v9

; case 908: matrix instruction of 2 passes, another over C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_4x4x4_16b_f16 a[16:19], v[0:1], v[2:3], a[48:51]
    v_mfma_f32_4x4x4_16b_f16 a[48:51], v[0:1], v[2:3], a[64:67]

; case 908: matrix instruction of 8 passes, the same C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[16:19]
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[16:19]

; case 908: matrix instruction of 8 passes, an overlapping C: 2
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 1
    v_mfma_f32_16x16x16_f16 a[18:21], v[0:1], v[2:3], a[18:21]

; case 908: matrix instruction of 8 passes, A of another: 4
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 a[0:3], a16, v1, a[0:3]

; case 908: matrix instruction of 8 passes, v_accvgpr_read: 10
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 9
    v_accvgpr_read_b32 v9, a17

; case 908: matrix instruction of 8 passes, v_accvgpr_write over D: 7
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 6
    v_accvgpr_write_b32 a17, v9

; case 908: matrix instruction of 8 passes, v_accvgpr_write over C: 5
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
+   s_nop 4
    v_accvgpr_write_b32 a49, v9

; case 908: matrix instruction of 8 passes, VALU over A: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
    v_mov_b32 v0, v9

; case 908: matrix instruction of 8 passes, another over C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[2:3], a[48:51]
    v_mfma_f32_16x16x16_f16 a[48:51], v[0:1], v[2:3], a[64:67]

; case 908: matrix instruction of 16 passes, the same C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[16:31]
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[16:31]

; case 908: matrix instruction of 16 passes, an overlapping C: 2
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
+   s_nop 1
    v_mfma_f32_32x32x8_f16 a[18:33], v[0:1], v[2:3], a[18:33]

; case 908: matrix instruction of 16 passes, A of another: 4
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 a[0:3], a16, v1, a[0:3]

; case 908: matrix instruction of 16 passes, v_accvgpr_read: 18
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
+   s_nop 15
+   s_nop 1
    v_accvgpr_read_b32 v9, a17

; case 908: matrix instruction of 16 passes, v_accvgpr_write over D: 15
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
+   s_nop 14
    v_accvgpr_write_b32 a17, v9

; case 908: matrix instruction of 16 passes, v_accvgpr_write over C: 13
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
+   s_nop 12
    v_accvgpr_write_b32 a49, v9

; case 908: matrix instruction of 16 passes, VALU over A: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
    v_mov_b32 v0, v9

; case 908: matrix instruction of 16 passes, another over C: 0
; run hazards
; target gfx908
bb0:
    v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[2:3], a[48:63]
    v_mfma_f32_32x32x8_f16 a[48:63], v[0:1], v[2:3], a[64:79]

; case 908: v_accvgpr_write, C: 1
; run hazards
; target gfx908
bb0:
    v_accvgpr_write_b32 a1, v9
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]

; case 908: v_accvgpr_write, A: 3
; run hazards
; target gfx908
bb0:
    v_accvgpr_write_b32 a9, v9
+   s_nop 2
    v_mfma_f32_4x4x1_16b_f32 a[0:3], a9, v1, a[0:3]

; case 908: v_accvgpr_write, v_accvgpr_read: 3
; run hazards
; target gfx908
bb0:
    v_accvgpr_write_b32 a9, v9
+   s_nop 2
    v_accvgpr_read_b32 v1, a9

; case 908: v_accvgpr_read, VALU: 0
; run hazards
; target gfx908
bb0:
    v_accvgpr_read_b32 v1, a9
    v_mov_b32 v2, v1

; case 908: v_accvgpr_read, A: 2
; run hazards
; target gfx908
bb0:
    v_accvgpr_read_b32 v1, a9
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v1, v2, a[0:3]

; case 908: v_accvgpr_read, v_accvgpr_write: 2
; run hazards
; target gfx908
bb0:
    v_accvgpr_read_b32 v1, a9
+   s_nop 1
    v_accvgpr_write_b32 a8, v1

; case 908: v_accvgpr_read, memory reads it: 2
; run hazards
; target gfx908
bb0:
    v_accvgpr_read_b32 v1, a9
+   s_nop 1
    ds_write_b32 v2, v1

; case 908: VALU, v_accvgpr_read, memory reads the result of the first: 1
; run hazards
; target gfx908
bb0:
    v_mov_b32 v1, v5
    v_accvgpr_read_b32 v6, a9
+   s_nop 0
    ds_write_b32 v2, v1

; case M1: VALU writes a VGPR, C: 2
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v0, v9
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[0:3], v5, v6, v[0:3]

; case M1: v_accvgpr_write, C: 2
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_accvgpr_write_b32 a0, v9
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 a[0:3], v5, v6, a[0:3]

; case M1: VALU writes a VGPR, index of a sparse instruction: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_mov_b32 v20, v9
+   s_nop 1
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20

; case M1: VALU writes a VGPR, accumulator of a sparse instruction: 2
; run hazards
; target gfx942 gfx950
bb0:
    v_mov_b32 v3, v9
+   s_nop 1
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20

; case M1: VALU writes a VGPR, a scale: 2
; run hazards
; target gfx950
bb0:
    v_mov_b32 v20, v9
-   v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[24:31], v[32:39], v[0:3], v20, v21
+   s_nop 1
+   v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[24:31], v[32:39], v[0:3], v20, v21 op_sel_hi:[0,0,0]

; case M1: VALU writes the seventh register of a 6-bit matrix: 0
; run hazards
; target gfx950
bb0:
    v_mov_b32 v30, v9
    v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[24:29], v[32:39], v[0:3] cbsz:2

; case M2: VALU writes EXEC, matrix instruction: 4
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v12, v13
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 v[0:3], v5, v6, v[0:3]

; case M2: VALU writes EXEC, sparse matrix instruction: 4
; run hazards
; target gfx942 gfx950
bb0:
    v_cmpx_eq_u32 vcc, v12, v13
+   s_nop 3
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20

; case M3: VALU writes a VGPR, D: 0
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v0, v9
    v_mfma_f32_4x4x1_16b_f32 v[0:3], v5, v6, 0

; case M4: A of a matrix instruction, VALU overwrites it: 0
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
    v_mov_b32 v4, v9

; case M4: index of a sparse instruction, VALU overwrites it: 0
; run hazards
; target gfx942 gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
    v_mov_b32 v20, v9

; case M5: D twice: 0
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
    v_mfma_f32_16x16x16_f16 v[0:3], v[14:15], v[6:7], 0

; case M5: D over an earlier C: 0
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[20:23]
    v_mfma_f32_16x16x16_f16 v[20:23], v[14:15], v[6:7], 0

; case SMFMAC: the same accumulator: 0
; run hazards
; target gfx942 gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v21

; case SMFMAC: result as an overlapping C: 5
; run hazards
; target gfx942
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[2:5], v[24:25], v[26:27], v[2:5]

; case SMFMAC: result as an overlapping C: 6
; run hazards
; target gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 5
    v_mfma_f32_16x16x16_f16 v[2:5], v[24:25], v[26:27], v[2:5]

; case SMFMAC: result as the index of another: 7
; run hazards
; target gfx942
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 6
    v_smfmac_f32_16x16x32_f16 v[24:27], v[14:15], v[16:19], v3

; case SMFMAC: result as the index of another: 8
; run hazards
; target gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 7
    v_smfmac_f32_16x16x32_f16 v[24:27], v[14:15], v[16:19], v3

; case SMFMAC: result read by VALU: 7
; run hazards
; target gfx942
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 6
    v_mov_b32 v30, v3

; case SMFMAC: result read by VALU: 8
; run hazards
; target gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 7
    v_mov_b32 v30, v3

; case SMFMAC: result of 8 passes read by memory: 11
; run hazards
; target gfx942
bb0:
    v_smfmac_f32_32x32x16_f16 v[32:47], v[4:5], v[6:9], v20
+   s_nop 10
    ds_write_b32 v50, v47

; case SMFMAC: result of 8 passes read by memory: 12
; run hazards
; target gfx950
bb0:
    v_smfmac_f32_32x32x16_f16 v[32:47], v[4:5], v[6:9], v20
+   s_nop 11
    ds_write_b32 v50, v47

; case SMFMAC: matrix result as the index: 7
; run hazards
; target gfx942
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
+   s_nop 6
    v_smfmac_f32_16x16x32_f16 v[24:27], v[14:15], v[16:19], v3

; case SMFMAC: matrix result as the index: 8
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
+   s_nop 7
    v_smfmac_f32_16x16x32_f16 v[24:27], v[14:15], v[16:19], v3

; case SMFMAC: matrix result as the accumulator, other passes: 3
; run hazards
; target gfx942
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0
+   s_nop 2
    v_smfmac_f32_16x16x32_f16 v[0:3], v[14:15], v[16:19], v20

; case SMFMAC: matrix result as the accumulator, other passes: 4
; run hazards
; target gfx950
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0
+   s_nop 3
    v_smfmac_f32_16x16x32_f16 v[0:3], v[14:15], v[16:19], v20

; case SMFMAC: F32 result as the accumulator: 8
; run hazards
; target gfx942
bb0:
    v_mfma_f32_16x16x4_f32 v[0:3], v4, v6, 0
+   s_nop 7
    v_smfmac_f32_16x16x32_f16 v[0:3], v[14:15], v[16:19], v20

; case SMFMAC: F32 result as the accumulator: 0
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x4_f32 v[0:3], v4, v6, 0
    v_smfmac_f32_16x16x32_f16 v[0:3], v[14:15], v[16:19], v20

; case SMFMAC: VALU overwrites the accumulator: 7
; run hazards
; target gfx942
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 6
    v_mov_b32 v3, v30

; case SMFMAC: VALU overwrites the accumulator: 8
; run hazards
; target gfx950
bb0:
    v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v20
+   s_nop 7
    v_mov_b32 v3, v30

; case F8F6F4: 8 passes with an 8-bit matrix: 12
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:21], 0 cbsz:1 blgp:2
+   s_nop 11
    v_mov_b32 v40, v0

; case F8F6F4: 4 passes without: 8
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:21], 0 cbsz:4 blgp:2
+   s_nop 7
    v_mov_b32 v40, v0

; case F8F6F4: 16 passes with an 8-bit matrix: 20
; run hazards
; target gfx950
bb0:
    v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[8:15], v[16:21], 0 blgp:2
+   s_nop 15
+   s_nop 3
    v_mov_b32 v40, v64

; case F8F6F4: result as a scale: 8
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], 0
-   v_mfma_scale_f32_16x16x128_f8f6f4 v[16:19], v[24:31], v[32:39], v[16:19], v3, v21
+   s_nop 7
+   v_mfma_scale_f32_16x16x128_f8f6f4 v[16:19], v[24:31], v[32:39], v[16:19], v3, v21 op_sel_hi:[0,0,0]
