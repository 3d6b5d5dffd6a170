; case VALU writes VCC, VMEM does not read it: 0
; run hazards
bb0:
    v_cmp_eq_u32 vcc, v0, v1
    buffer_load_dword v1, off, s[8:11], s4

; case VALU writes EXEC, any VMEM: 5, LDS: 0
; run hazards
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    ds_read_b32 v2, v0
+   s_nop 3
    global_load_dword v3, v0, s[0:1]

; case v_div_scale writes VCC, v_div_fmas: 4, what is between counts
; run hazards
bb0:
    v_div_scale_f32 v6, vcc, v3, v4, v5
    v_mul_f32 v7, v6, v6
+   s_nop 2
    v_div_fmas_f32 v2, v7, v4, v5

; case VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ: 5
; run hazards
bb0:
    v_cmp_eq_u32 vcc, v0, v1
+   s_nop 4
    v_mov_b32 v2, src_vccz
    v_cmpx_eq_u32 s[4:5], v0, v1
+   s_nop 4
    v_mov_b32 v2, src_execz

; case VALU writes an SGPR, SALU and SMEM read it: 0
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
    v_readfirstlane_b32 s5, v0
    s_add_u32 s6, s4, s4
    s_load_dword s8, s[4:5], 0x0

; case VALU writes VCC, carry in and select: 2
; run hazards
bb0:
    v_add_co_u32 v0, vcc, v1, v2
+   s_nop 1
    v_addc_co_u32 v3, vcc, v4, v5, vcc
+   s_nop 1
    v_cndmask_b32 v6, v7, v8, vcc

; case SALU writes VCC, VALU reads it: 0
; run hazards
bb0:
    s_mov_b64 vcc, s[0:1]
    v_cndmask_b32 v6, v7, v8, vcc

; case VALU writes a VGPR, v_readfirstlane and v_readlane: 1
; run hazards
bb0:
    v_mov_b32 v0, 1
-   v_readfirstlane_b32 s4, v0
    v_mov_b32 v1, 1
+   v_readfirstlane_b32 s4, v0
    v_readlane_b32 s5, v1, 3

; case VALU writes EXEC, lane instructions: 4
; run hazards
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 3
    v_readfirstlane_b32 s4, v2

; case SALU writes EXEC, lane instructions: 0
; run hazards
bb0:
    s_mov_b64 exec, -1
    v_readfirstlane_b32 s4, v2
    v_mov_b32 v3, v4

; case VALU writes EXEC, VALU reads it as a number: 2, as the mask: 0
; run hazards
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
    v_mov_b32 v3, v4
+   s_nop 0
    v_mov_b32 v2, exec_lo

; case transcendental result, VALU reads it: 1, another one: 0
; run hazards
bb0:
    v_rcp_f32 v0, v1
    v_sqrt_f32 v2, v0
+   s_nop 0
    v_mul_f32 v3, v2, v2

; case wide store, VALU overwrites the data: 2, a load: 1
; run hazards
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
+   s_nop 1
    v_mov_b32 v3, 0
    global_store_dwordx4 v8, v[0:3], s[0:1]
+   s_nop 0
    ds_read_b32 v1, v8

; case wide store, what is exempt: address, 64 bits, scalar offset
; run hazards
bb0:
    global_store_dwordx4 v8, v[0:3], s[0:1]
    v_mov_b32 v8, 0
    global_store_dwordx2 v9, v[4:5], s[0:1]
    v_mov_b32 v4, 0
    buffer_store_dwordx4 v[10:13], off, s[4:7], s8
+   s_nop 0
    v_mov_b32 v10, 0
    ds_write_b128 v9, v[20:23]
    v_mov_b32 v20, 0

; case SALU writes M0, message and load to LDS: 1
; run hazards
bb0:
    s_mov_b32 m0, s0
-   s_sendmsg 1
+   s_nop 0
+   s_sendmsg sendmsg(MSG_INTERRUPT)
    s_mov_b32 m0, s1
+   s_nop 0
    buffer_load_dword off, s[8:11], 0 lds

; case s_setreg, the same hardware register: 2, another one: 0
; run hazards
bb0:
    s_setreg_b32 0x1801, s0
    s_getreg_b32 s1, 0x802
    s_getreg_b32 s1, 0x801
    s_setreg_b32 0x1802, s0
    s_setreg_b32 0x1802, s1
; ---
bb0:
    s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0
    s_getreg_b32 s1, hwreg(HW_REG_STATUS, 0, 2)
    s_nop 0
    s_getreg_b32 s1, hwreg(HW_REG_MODE, 0, 2)
    s_setreg_b32 hwreg(HW_REG_STATUS, 0, 4), s0
    s_nop 1
    s_setreg_b32 hwreg(HW_REG_STATUS, 0, 4), s1

; case DGEMM, f64 FMA: 2
; run hazards
bb0:
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], v[0:1]
+   s_nop 1
    v_fma_f64 v[6:7], v[8:9], v[8:9], v[8:9]

; case VALU result read by memory with a DGEMM between, gfx90a: 2
; run hazards
; target gfx90a
bb0:
    v_mov_b32 v20, 0
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], v[0:1]
+   s_nop 0
    ds_write_b32 v21, v20

; case dot product: same opcode C 0, A or B 3, anything else 3
; run hazards
bb0:
    v_dot2_f32_f16 v0, v1, v2, v0
    v_dot2_f32_f16 v0, v1, v2, v0
+   s_nop 2
    v_dot2_f32_f16 v3, v0, v2, v3
+   s_nop 2
    v_mov_b32 v4, v3

; case VALU result into a matrix instruction: 2
; run hazards
bb0:
    v_mov_b32 v0, 0
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]

; case VALU result into C in AGPRs: 2, overwritten D: 0
; run hazards
bb0:
    v_accvgpr_write_b32 a3, 0
-   v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
    v_mov_b32 v8, 0
    v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], 0
+   v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]

; case VALU writes EXEC, matrix instruction: 4
; run hazards
bb0:
    v_cmpx_eq_u32 vcc, v0, v1
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]

; case a replay must not read what the run has overwritten
; run hazards
bb0:
    global_load_dword v1, v[2:3], off
+   s_nop 0
    global_load_dwordx2 v[2:3], v[4:5], off
    s_load_dwordx2 s[2:3], s[0:1], 0x0
+   s_nop 0
    s_load_dwordx2 s[0:1], s[4:5], 0x0

; case a store does not follow a load in one run
; run hazards
bb0:
    global_load_dword v1, v0, s[0:1]
+   s_nop 0
    global_store_dword v0, v2, s[0:1]
    global_store_dword v0, v2, s[0:1] offset:4

; case the shortest way counts
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
    s_cbranch_scc1 bb2
bb1:
    s_nop 3
bb2:
+   s_nop 3
    buffer_load_dword v1, off, s[8:11], s4

; case a hazard around the loop
; run hazards
bb0:
    v_mov_b32 v0, 0
bb1:
-   v_add_u32 v1, s4, v0
    v_mul_f32 v2, v2, v2
+   v_add_u32 v1, s4, v0
+   s_nop 0
    v_readfirstlane_b32 s4, v1
    s_cbranch_scc1 bb1
bb2:
    s_endpgm

; case a matrix result around the loop
; run hazards
bb0:
    v_mov_b32 v8, 0
bb1:
+   s_nop 5
    ds_write_b128 v8, v[0:3]
    s_nop 7
    s_nop 3
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
    s_cbranch_scc1 bb1
bb2:
    v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], 0
    s_cbranch_scc1 bb2
bb3:
    s_endpgm

; case an independent instruction goes into the gap
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
-   v_add_u32 v1, s4, v1
    v_mul_f32 v2, v3, v3
    s_add_u32 s8, s9, s10
+   v_add_u32 v1, s4, v1
    v_mul_f32 v5, v6, v6
    s_endpgm

; case what depends on the waiting one or on what it passes stays
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
+   v_mov_b32 v8, v9
+   s_nop 0
    v_add_u32 v1, s4, v1
    v_mul_f32 v2, v1, v1
    v_mul_f32 v3, v2, v2
    v_mov_b32 v1, 0
-   v_mov_b32 v8, v9
    s_endpgm

; case nothing passes a wait, a barrier or a write of EXEC
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
+   s_nop 1
    v_add_u32 v1, s4, v1
    s_waitcnt vmcnt(0)
    v_mul_f32 v2, v3, v3
    v_readfirstlane_b32 s4, v0
+   s_nop 1
    v_add_u32 v1, s4, v1
    s_mov_b64 exec, s[6:7]
    v_mul_f32 v2, v3, v3
    v_readfirstlane_b32 s4, v0
+   s_nop 1
    v_add_u32 v1, s4, v1
    s_barrier
    v_mul_f32 v2, v3, v3

; case memory instructions keep their order
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
-   v_add_u32 v1, s4, v1
-   ds_read_b32 v2, v3
    v_mul_f32 v5, v6, v6
    v_mul_f32 v7, v6, v6
+   v_add_u32 v1, s4, v1
+   ds_read_b32 v2, v3

; case an instruction that would be a hazard itself does not fill
; run hazards
bb0:
    v_readfirstlane_b32 s4, v0
+   v_mul_f32 v5, v6, v6
+   s_nop 0
    v_add_u32 v1, s4, v1
    v_add_u32 v2, s4, v2
-   v_mul_f32 v5, v6, v6

; case matrix instructions fill too
; run hazards
bb0:
    v_mfma_f32_16x16x16_f16 v[0:3], v[20:21], v[22:23], v[0:3]
    v_mfma_f32_32x32x8_f16 v[64:79], v[20:21], v[22:23], v[64:79]
-   ds_write_b128 v24, v[0:3]
    v_mfma_f32_16x16x16_f16 v[4:7], v[20:21], v[22:23], v[4:7]
    v_mfma_f32_16x16x16_f16 v[8:11], v[20:21], v[22:23], v[8:11]
+   s_nop 3
+   ds_write_b128 v24, v[0:3]
    s_endpgm
