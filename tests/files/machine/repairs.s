; case half of VCC is written, VCCZ is stale
; run hazards
bb0:
    s_mov_b32 vcc_lo, s0
+   s_mov_b64 vcc, vcc
    s_cbranch_vccz bb0
bb1:
    s_cbranch_vccnz bb0
bb2:
    s_endpgm

; case all of VCC is written
; run hazards
bb0:
    s_mov_b32 vcc_hi, 0
    s_mov_b64 vcc, s[0:1]
    s_cbranch_vccz bb0
bb1:
    v_readfirstlane_b32 vcc_lo, v0
    v_cmp_eq_u32 vcc, v0, v1
    s_cbranch_vccnz bb0
bb2:
    s_endpgm

; case half of VCC is written on one path
; run hazards
bb0:
    s_cbranch_scc1 bb2
bb1:
    s_load_dword vcc_hi, s[0:1], 0x0
bb2:
+   s_mov_b64 vcc, vcc
    s_cbranch_vccz bb0
bb3:
    s_endpgm

; case VCCZ as a number
; run hazards
bb0:
    s_mov_b32 vcc_lo, s0
+   s_mov_b64 vcc, vcc
    v_mov_b32 v0, src_vccz
    v_mov_b32 v1, src_vccz

; case a relative move may have written half of VCC
; run hazards
bb0:
    s_movreld_b32 s4, s0
+   s_mov_b64 vcc, vcc
    s_cbranch_vccz bb0
bb1:
    s_endpgm

; case a 64-bit shift by the last VGPR of eight
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_lshlrev_b64 v[0:1], v7, v[2:3]
    v_lshrrev_b64 v[6:7], v7, v[4:5]
    v_ashrrev_i64 v[0:1], v7, v[6:7]
    v_lshlrev_b64 v[0:1], v6, v[2:3]
    v_lshlrev_b64 v[0:1], 3, v[2:3]
; ---
bb0:
    s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    v_swap_b32 v4, v6
    v_swap_b32 v5, v7
    v_lshlrev_b64 v[0:1], v5, v[2:3]
    v_swap_b32 v4, v6
    v_swap_b32 v5, v7
    s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    v_swap_b32 v0, v6
    v_swap_b32 v1, v7
    v_lshrrev_b64 v[0:1], v1, v[4:5]
    v_swap_b32 v0, v6
    v_swap_b32 v1, v7
    s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    v_swap_b32 v2, v6
    v_swap_b32 v3, v7
    v_ashrrev_i64 v[0:1], v3, v[2:3]
    v_swap_b32 v2, v6
    v_swap_b32 v3, v7
    v_lshlrev_b64 v[0:1], v6, v[2:3]
    v_lshlrev_b64 v[0:1], 3, v[2:3]

; case the last VGPR of all
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_mov_b32 v255, v9
    v_lshlrev_b64 v[0:1], v255, v[2:3]
; ---
bb0:
    v_mov_b32 v255, v9
    s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    v_swap_b32 v4, v254
    v_swap_b32 v5, v255
    v_lshlrev_b64 v[0:1], v5, v[2:3]
    v_swap_b32 v4, v254
    v_swap_b32 v5, v255

; case a 64-bit shift by a VGPR that is not the last, or on another chip
; run hazards
; target gfx90a gfx942 gfx950
bb0:
    v_lshlrev_b64 v[0:1], v7, v[2:3]
    v_mov_b32 v8, 0

; case the chips without this bug
; run hazards
; target gfx906 gfx908
bb0:
    v_lshlrev_b64 v[0:1], v7, v[2:3]

; case without XNACK there is no replay
; run hazards
; promise no-xnack
; target gfx906 gfx908 gfx90a gfx942 gfx950
bb0:
    global_load_dword v1, v[2:3], off
    global_load_dwordx2 v[2:3], v[4:5], off
    global_store_dword v0, v7, s[0:1]
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_load_dwordx2 s[0:1], s[4:5], 0x0

; case with XNACK stores of every kind begin a run of their own
; run hazards
; target gfx906 gfx908 gfx90a
bb0:
    s_load_dword s8, s[0:1], 0x0
+   s_nop 0
    s_store_dword s4, s[0:1], 0x0
    s_store_dword s5, s[0:1], 0x4
    buffer_load_dword v0, off, s[4:7], 0
+   s_nop 0
    buffer_store_format_x v1, off, s[4:7], 0
    buffer_load_dword v2, off, s[4:7], 0
+   s_nop 0
    buffer_load_dword off, s[4:7], 0 lds

; case at the border to unknown code nothing is pending
; run hazards
bb0:
    v_cmp_eq_u32 vcc, v0, v1
+   s_nop 4
    s_swappc_b64 s[30:31], s[4:5]
    v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], 0
+   s_nop 10
    s_setpc_b64 s[30:31]

; case an indexed register may be any that follows
; run hazards
bb0:
-   s_set_gpr_idx_on s4, 8
+   s_set_gpr_idx_on s4, gpr_idx(DST)
    v_mov_b32 v0, v1
    s_set_gpr_idx_off
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 v[40:43], v30, v31, 0

; case what stands between on one path
; run hazards
; target gfx90a
bb0:
    v_mov_b32 v20, v5
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 v20, v6
    v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[6:7], v[0:1]
bb2:
+   s_nop 0
    ds_write_b32 v21, v20

; case vector instructions do not fill while they may be skipped
; run hazards
bb0:
-   s_setreg_b32 0x701, s0
+   s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s0
+   s_mov_b32 s5, s6
+   s_nop 0
    v_mov_b32 v0, v1
    v_mov_b32 v2, v3
-   s_mov_b32 s5, s6
