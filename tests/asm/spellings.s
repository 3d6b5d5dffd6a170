// Spellings that LLVM's assembler takes. Lines after `// on:` are for these chips.

// on: gfx906 gfx908 gfx90a gfx942 gfx950
// Registers
v_mov_b32 v0, v1
v_mov_b32 v[0], v[1]
v_mov_b32 v[0:0], [v1]
v_mov_b32 v[1+1], v[2*3]
v_mov_b32 v255, s101
v_mov_b32 v0, s[7]
v_mov_b32 v0, [s7]
v_mov_b32 v0, ttmp3
v_mov_b32 v0, ttmp[3]
v_mov_b32 v0, [ttmp3]
v_mov_b32 v0, m0
v_mov_b32 v0, vcc_lo
v_mov_b32 v0, vcc_hi
v_mov_b32 v0, exec_lo
v_mov_b32 v0, exec_hi
v_mov_b32 v0, flat_scratch_lo
v_mov_b32 v0, flat_scratch_hi
v_mov_b32 v0, xnack_mask_lo
v_mov_b32 v0, xnack_mask_hi
v_mov_b32 v0, src_shared_base
v_mov_b32 v0, shared_base
v_mov_b32 v0, src_shared_limit
v_mov_b32 v0, shared_limit
v_mov_b32 v0, src_private_base
v_mov_b32 v0, private_base
v_mov_b32 v0, src_private_limit
v_mov_b32 v0, private_limit
v_mov_b32 v0, src_pops_exiting_wave_id
v_mov_b32 v0, pops_exiting_wave_id
v_mov_b32 v0, src_vccz
v_mov_b32 v0, vccz
v_mov_b32 v0, src_execz
v_mov_b32 v0, execz
v_mov_b32 v0, src_scc
v_mov_b32 v0, scc
s_mov_b64 s[0:1], vcc
s_mov_b64 vcc, s[2:3]
s_mov_b64 [s4,s5], [vcc_lo,vcc_hi]
s_mov_b64 [s4, s5], [exec_lo, exec_hi]
s_mov_b64 exec, -1
s_mov_b64 flat_scratch, 0
s_mov_b64 xnack_mask, s[100:101]
s_mov_b64 ttmp[0:1], ttmp[14:15]
s_mov_b64 s[0:1], src_shared_base
s_mov_b32 m0, s0
s_mov_b32 s0, src_private_limit
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dwordx4 [s4,s5,s6,s7], [s0,s1], 0x0
s_load_dwordx8 s[8:15], s[0:1], 0
s_load_dwordx16 s[16:31], s[0:1], 0
v_add_f64 v[0:1], v[2:3], v[4:5]
v_add_f64 v[0:1], [v2,v3], [v4,v5]
v_add_f64 v[0:1], vcc, v[4:5]
v_add_f64 v[0:1], s[2:3], s[2:3]
v_readfirstlane_b32 s0, v1
v_readlane_b32 s0, v1, s2
v_readlane_b32 s0, v1, 3
v_readlane_b32 vcc_lo, v1, m0
v_writelane_b32 v0, 7, s2
v_writelane_b32 v0, s1, m0
v_writelane_b32 v0, s1, s1
v_writelane_b32 v0, m0, m0
v_writelane_b32 v0, 1, 0
// Suffixes
v_mov_b32_e32 v0, v1
v_mov_b32_e64 v0, v1
v_mov_b32_e64 v0, s1
v_add_f32_e32 v0, v1, v2
v_add_f32_e64 v0, v1, v2
v_add_f32_e64 v0, s1, v2
v_add_f32 v0, v1, s2
v_add_f32 v0, s1, v2
v_add_u32 v0, v1, v2
v_add_u32 v0, v1, 1
v_add_u32 v0, 1, v1
v_add_u32_e64 v0, 1, v1
v_fma_f32_e64 v0, v1, v2, v3
v_fma_f32 v0, v1, v2, v3
v_pk_add_f16_e64 v0, v1, v2
v_nop_e32
v_nop
s_mov_b32_e32 s0, s1
v_readfirstlane_b32_e32 s0, v1
v_cmp_lt_f32 vcc, v0, v1
v_cmp_lt_f32_e32 vcc, v0, v1
v_cmp_lt_f32_e64 vcc, v0, v1
v_cmp_lt_f32 s[0:1], v0, v1
v_cmp_lt_f32 vcc, v0, s1
v_cmp_class_f32 vcc, v0, v1
v_cmp_class_f32 s[0:1], v0, 3
v_cmpx_eq_u32 vcc, 0, v1
v_cmpx_eq_u32_e64 s[0:1], 0, v1
v_cndmask_b32 v0, v1, v2, vcc
v_cndmask_b32_e32 v0, v1, v2, vcc
v_cndmask_b32_e64 v0, v1, v2, vcc
v_cndmask_b32 v0, v1, v2, s[0:1]
v_cndmask_b32 v0, -v1, |v2|, vcc
v_add_co_u32 v0, vcc, v1, v2
v_add_co_u32_e32 v0, vcc, v1, v2
v_add_co_u32_e64 v0, vcc, v1, v2
v_add_co_u32 v0, s[0:1], v1, v2
v_addc_co_u32 v0, vcc, v1, v2, vcc
v_addc_co_u32 v0, s[0:1], v1, v2, s[2:3]
v_subrev_co_u32 v0, vcc, 1, v2
v_div_scale_f32 v0, vcc, v1, v2, v3
v_div_scale_f64 v[0:1], s[2:3], v[2:3], v[4:5], v[6:7]
v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]
// Signs
v_add_f32 v0, -v1, v2
v_add_f32 v0, - v1, v2
v_add_f32 v0, |v1|, v2
v_add_f32 v0, | v1 |, v2
v_add_f32 v0, -|v1|, v2
v_add_f32 v0, neg(v1), v2
v_add_f32 v0, abs(v1), v2
v_add_f32 v0, neg(abs(v1)), v2
v_add_f32 v0, neg(|v1|), v2
v_add_f32 v0, -abs(v1), v2
v_add_f32 v0, v1, -s2
v_add_f32 v0, |1.0|, v2
v_add_f32 v0, |-1.0|, v2
v_add_f32 v0, -|1.0|, v2
v_add_f32 v0, neg(1.0), v2
v_add_f32 v0, neg(|1.0|), v2
v_add_f32 v0, |-1|, v2
v_add_f32 v0, neg(1), v2
v_add_f32_e64 v0, |1.0|, v2
v_add_f32_e64 v0, neg(1.0), v2
v_add_f32_e32 v0, |-1.0|, v2
v_add_f32 v0, v1, neg(1.0)
v_add_f32 v0, neg(2.0), |v1|
v_fma_f32 v0, -1.0, |v1|, neg(0.5)
v_fma_f32 v0, |2|, v1, v2
v_rcp_f64 v[0:1], -v[2:3]
v_rcp_f64 v[0:1], |-4.0|
v_rcp_f16 v0, neg(1.0)
v_rcp_f16 v0, |v1|
v_max_f32 v0, -m0, v1
v_cmp_gt_f32 vcc, |v0|, v1
v_cmp_gt_f32 s[0:1], -v0, -|v1|
// Numbers
v_mov_b32 v0, 0
v_mov_b32 v0, 64
v_mov_b32 v0, 65
v_mov_b32 v0, -16
v_mov_b32 v0, -17
v_mov_b32 v0, 0x10
v_mov_b32 v0, 0X1f
v_mov_b32 v0, 010
v_mov_b32 v0, 0b101
v_mov_b32 v0, 0xffffffff
v_mov_b32 v0, 0xfffffff0
v_mov_b32 v0, -0x80000000
v_mov_b32 v0, 4294967295
v_mov_b32 v0, 1+2
v_mov_b32 v0, (1<<4)|3
v_mov_b32 v0, 1<<4|3
v_mov_b32 v0, ~0
v_mov_b32 v0, ~0x10
v_mov_b32 v0, -(3)
v_mov_b32 v0, +7
v_mov_b32 v0, !0
v_mov_b32 v0, 7*9
v_mov_b32 v0, 100/7%5
v_mov_b32 v0, 1<2
v_mov_b32 v0, 3==3
v_mov_b32 v0, 3!=3
v_mov_b32 v0, 2&&0
v_mov_b32 v0, 2||0
v_mov_b32 v0, 6&3^1
v_mov_b32 v0, 0xff>>4
v_mov_b32 v0, 'a'
v_mov_b32 v0, 1.0
v_mov_b32 v0, -1.0
v_mov_b32 v0, 0.5
v_mov_b32 v0, .5
v_mov_b32 v0, 1.
v_mov_b32 v0, 1e0
v_mov_b32 v0, 1.0e1
v_mov_b32 v0, 5e-1
v_mov_b32 v0, 0x1p1
v_mov_b32 v0, 0x1.8p1
v_mov_b32 v0, 0.15915494
v_mov_b32 v0, 0.15915494309189532
v_mov_b32 v0, 3.14159274
v_mov_b32 v0, -0.1
v_mov_b32 v0, 0x3f800000
v_mov_b32 v0, 0xbf800000
v_mov_b32 v0, 0x3e22f983
v_mov_b32 v0, 0.0
v_mov_b32 v0, -0.0
s_mov_b32 s0, 0x3f800000
s_mov_b32 s0, 1.0
s_mov_b32 s0, 2.5
s_mov_b32 s0, -4.0
s_mov_b64 s[0:1], 1.0
s_mov_b64 s[0:1], 0x3ff0000000000000
s_mov_b64 s[0:1], 0xffffffffffffffff
s_mov_b64 s[0:1], 0x7fffffff
s_mov_b64 s[0:1], 0xffffffff
s_mov_b64 s[0:1], -17
s_mov_b64 s[0:1], 0x3f800000
s_and_b64 s[0:1], s[2:3], 64
s_add_u32 s0, 0x12345, 0x12345
s_add_u32 s0, s1, 0xffff
s_cmp_eq_u32 s0, 0x10000
s_cmp_lg_u64 s[0:1], 0
s_bfe_u32 s0, s1, 0x80010
v_add_f16 v0, 1.0, v1
v_add_f16 v0, 0x3c00, v1
v_add_f16 v0, 3.0, v1
v_add_f16 v0, 0.1, v1
v_add_f16 v0, 65504.0, v1
v_add_f16 v0, 0xffff, v1
v_add_f16 v0, -1, v1
v_add_f16 v0, 0x1234, v1
v_add_f16 v0, 0.15915494, v1
v_add_u16 v0, 1, v1
v_add_u16 v0, -16, v1
v_add_u16 v0, 1.0, v1
v_add_u16 v0, 0x3c00, v1
v_add_u16 v0, 0xffff, v1
v_add_u16 v0, -4.0, v1
v_add_u32 v0, 1.0, v1
v_add_u32 v0, 0x3f800000, v1
v_pk_add_f16 v0, 1.0, v1
v_pk_add_f16 v0, 0x3c00, v1
v_pk_add_f16 v0, -1, v1
v_pk_add_f16 v0, v1, 0.5
v_pk_add_i16 v0, 1.0, v1
v_pk_add_i16 v0, 0x3f800000, v1
v_pk_add_i16 v0, 0xfffffff0, v1
v_pk_mul_lo_u16 v0, 3, v1
v_rcp_f64 v[0:1], 1.5
v_rcp_f64 v[0:1], 1.0
v_rcp_f64 v[0:1], 0x3ff00000
v_rcp_f64 v[0:1], 0x3f800000
v_rcp_f64 v[0:1], 0xffffffff
v_rcp_f64 v[0:1], 0xfffffff0
v_rcp_f64 v[0:1], 0x3ff0000000000000
v_rcp_f64 v[0:1], -1
v_rcp_f64 v[0:1], 0x12345678
v_fma_f64 v[0:1], v[2:3], 0.5, -16
v_cvt_f64_i32 v[0:1], 0x1234
v_lshlrev_b64 v[0:1], 3, v[2:3]
v_madak_f16 v0, v1, v2, 1.0
v_madak_f16 v0, v1, v2, 0x1234
v_madmk_f16 v0, v1, 0x4200, v2
v_madmk_f16 v0, v1, 3.0, v2
v_cmp_eq_u16 vcc, 0x1234, v1
v_cmp_eq_u16 vcc, 2.0, v1
v_cmp_lt_f16 vcc, 0.1, v1
// Output modifiers
v_add_f32 v0, v1, v2 clamp
v_add_f32 v0, v1, v2 mul:2
v_add_f32 v0, v1, v2 mul:4
v_add_f32 v0, v1, v2 div:2
v_add_f32 v0, v1, v2 mul:1
v_add_f32 v0, v1, v2 div:1
v_add_f32 v0, v1, v2 clamp mul:2
v_add_f32_e64 v0, v1, v2 clamp div:2
v_fma_f32 v0, v1, v2, v3 clamp
v_max_i16 v0, v1, v2
v_mad_u16 v0, v1, v2, v3 op_sel:[1,0,0,1]
v_mad_u16 v0, v1, v2, v3 op_sel:[1]
v_mad_i16 v0, v1, v2, v3 op_sel:[0,1] clamp
v_add_i16 v0, v1, v2 op_sel:[1,1,1]
v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]
v_pk_add_f16 v0, v1, v2 op_sel:[1,0]
v_pk_add_f16 v0, v1, v2 op_sel_hi:[0,1]
v_pk_add_f16 v0, v1, v2 op_sel_hi:[0]
v_pk_add_f16 v0, v1, v2 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,0] neg_hi:[0,1] clamp
v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]
v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[0,0,1]
v_pk_mad_u16 v0, v1, s2, v3 op_sel:[0,0,1] clamp
v_fma_mix_f32 v0, v1, v2, v3
v_fma_mix_f32 v0, -v1, |v2|, -|v3|
v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
v_fma_mixlo_f16 v0, abs(v1), neg(v2), v3 op_sel_hi:[1,0,1] clamp
v_fma_mixhi_f16 v0, v1, 1.0, v3
v_dot2_f32_f16 v0, v1, v2, v3
v_dot4_i32_i8 v0, v1, v2, 5 clamp
// DPP
v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,3]
v_mov_b32 v0, v1 quad_perm:[3,2,1,0]
v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,3] row_mask:0xa bank_mask:0x5
v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,3] row_mask:10 bank_mask:5 bound_ctrl:0
v_mov_b32_dpp v0, v1 row_shl:1
v_mov_b32_dpp v0, v1 row_shr:15 bound_ctrl:1
v_mov_b32_dpp v0, v1 row_ror:0x8
v_mov_b32_dpp v0, v1 wave_shl:1
v_mov_b32_dpp v0, v1 wave_rol:1
v_mov_b32_dpp v0, v1 wave_shr:1
v_mov_b32_dpp v0, v1 wave_ror:1
v_mov_b32_dpp v0, v1 row_mirror
v_mov_b32_dpp v0, v1 row_half_mirror
v_mov_b32_dpp v0, v1 row_bcast:15
v_mov_b32_dpp v0, v1 row_bcast:31
v_add_f32 v0, -v1, |v2| row_shl:2
v_add_f32_dpp v0, v1, v2 row_shr:3 row_mask:0x3
v_add_u32_dpp v0, v1, v2 row_ror:4
v_addc_co_u32 v0, vcc, v1, v2, vcc row_shl:1
v_cndmask_b32_dpp v0, v1, v2, vcc row_shl:1
v_cvt_f32_u32 v0, v1 row_mirror
// SDWA
v_mov_b32_sdwa v0, v1
v_mov_b32 v0, sext(v1)
v_mov_b32 v0, v1 src0_sel:BYTE_0
v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:WORD_1
v_mov_b32_sdwa v0, s1 dst_sel:WORD_0
v_mov_b32_sdwa v0, 1 dst_unused:UNUSED_PAD
v_add_f32_sdwa v0, v1, v2
v_add_f32_sdwa v0, -v1, |v2| src0_sel:WORD_0 src1_sel:WORD_1
v_add_f32_sdwa v0, v1, v2 clamp mul:2 dst_sel:DWORD
v_add_u32_sdwa v0, sext(v1), sext(v2) src1_sel:BYTE_3
v_add_u32 v0, v1, v2 dst_sel:BYTE_0 src0_sel:BYTE_1
v_cmp_eq_u32_sdwa vcc, v0, v1
v_cmp_eq_u32_sdwa s[0:1], v0, v1 src0_sel:BYTE_0
v_cmp_lt_f32_sdwa vcc, -v0, |v1| src1_sel:WORD_1
v_cndmask_b32_sdwa v0, v1, v2, vcc dst_sel:WORD_1
v_add_co_u32_sdwa v0, vcc, v1, v2 src0_sel:WORD_1
v_cvt_f32_f16_sdwa v0, v1 src0_sel:WORD_1
// Program control
s_nop 0
s_nop 0x7
s_endpgm
s_endpgm 1
s_barrier
s_sleep 10
s_setprio 3
s_trap 2
s_sethalt 1
s_branch 4
s_branch -1
s_branch 0xffff
s_cbranch_scc0 -32768
s_cbranch_vccnz 10+10
s_waitcnt 0
s_waitcnt 0x0f70
s_waitcnt vmcnt(0)
s_waitcnt lgkmcnt(0)
s_waitcnt expcnt(0)
s_waitcnt vmcnt(0) lgkmcnt(0)
s_waitcnt vmcnt(0) & lgkmcnt(0)
s_waitcnt vmcnt(0), lgkmcnt(0)
s_waitcnt vmcnt(63) & expcnt(7) & lgkmcnt(15)
s_waitcnt vmcnt(1+1)
s_waitcnt vmcnt_sat(100) lgkmcnt_sat(99)
s_sendmsg 1
s_sendmsg sendmsg(MSG_INTERRUPT)
s_sendmsg sendmsg(1)
s_sendmsg sendmsg(MSG_SAVEWAVE)
s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 1)
s_sendmsg sendmsg(2, 1, 3)
s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)
s_sendmsg sendmsg(MSG_SYSMSG, SYSMSG_OP_TTRACE_PC)
s_sendmsghalt sendmsg(MSG_GET_DOORBELL)
s_icache_inv
s_wakeup
s_ttracedata
s_set_gpr_idx_on s0, gpr_idx(SRC0)
s_set_gpr_idx_on s0, gpr_idx(SRC0,SRC1,SRC2,DST)
s_set_gpr_idx_on s0, gpr_idx(DST, SRC0)
s_set_gpr_idx_on s0, gpr_idx()
s_set_gpr_idx_on s0, 9
s_set_gpr_idx_mode gpr_idx(SRC2)
s_set_gpr_idx_mode 3
s_set_gpr_idx_off
s_set_gpr_idx_idx s0
s_movk_i32 s0, 0x1234
s_movk_i32 s0, -1
s_movk_i32 s0, 0xffff
s_movk_i32 s0, -0x8000
s_cmpk_eq_u32 s0, 65535
s_addk_i32 vcc_lo, 5
s_call_b64 s[0:1], 4
s_getreg_b32 s0, hwreg(HW_REG_MODE)
s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 32)
s_getreg_b32 s0, hwreg(HW_REG_STATUS, 4, 2)
s_getreg_b32 s0, hwreg(1)
s_getreg_b32 s0, hwreg(5, 1, 31)
s_getreg_b32 s0, 0x801
s_getreg_b32 s0, {id: 1, offset: 2, size: 4}
s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s0
s_setreg_b32 0x1801, s0
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0xff
s_setreg_imm32_b32 hwreg(HW_REG_MODE), 1
s_setpc_b64 s[0:1]
s_swappc_b64 s[0:1], s[2:3]
s_getpc_b64 vcc
// Scalar memory
s_load_dword s0, s[2:3], 0
s_load_dword s0, s[2:3], 0x10
s_load_dword s0, s[2:3], 4*4
s_load_dword s0, s[2:3], -4
s_load_dword s0, s[2:3], 0xfffff
s_load_dword s0, s[2:3], s4
s_load_dword s0, s[2:3], m0
s_load_dword s0, s[2:3], 0 glc
s_load_dword s0, s[2:3], s4 offset:0x10
s_load_dword s0, s[2:3], s4 offset:-4 glc
s_load_dwordx2 vcc, s[2:3], 0x8
s_buffer_load_dword s0, s[4:7], 0x10
s_buffer_load_dwordx2 s[0:1], s[4:7], s8
s_buffer_load_dword s0, s[4:7], s8 offset:12
s_memtime s[0:1]
s_dcache_inv
s_dcache_wb
// LDS
ds_read_b32 v0, v1
ds_read_b32 v0, v1 offset:16
ds_read_b32 v0, v1 offset:0xffff
ds_read_b64 v[0:1], v2
ds_read2_b32 v[0:1], v2
ds_read2_b32 v[0:1], v2 offset0:1
ds_read2_b32 v[0:1], v2 offset1:255
ds_read2st64_b64 v[0:3], v4 offset0:1 offset1:2
ds_write_b32 v0, v1 offset:4+4
ds_write2_b64 v0, v[2:3], v[4:5] offset0:0x10 offset1:0x20
ds_add_u32 v0, v1
ds_add_rtn_u32 v0, v1, v2 offset:8
ds_bpermute_b32 v0, v1, v2
ds_swizzle_b32 v0, v1 offset:0
ds_swizzle_b32 v0, v1 offset:0x8000
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM, 3, 2, 1, 0)
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,2,1)
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,32,31)
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)
ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,8)
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"01pi0")
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM, "ppppi")
ds_nop
// Buffers
buffer_load_dword v0, off, s[0:3], 0
buffer_load_dword v0, off, s[0:3], s4
buffer_load_dword v0, off, s[0:3], m0
buffer_load_dword v0, off, s[0:3], 64
buffer_load_dword v0, off, s[0:3], 1.0
buffer_load_dword v0, off, s[0:3], 0x3f800000
buffer_load_dword v0, off, s[0:3], 0 offset:4095
buffer_load_dword v0, v1, s[0:3], 0 offen
buffer_load_dword v0, v1, s[0:3], 0 idxen
buffer_load_dword v0, v[2:3], s[0:3], 0 idxen offen
buffer_load_dword v0, v[2:3], s[0:3], s4 idxen offen offset:0x10
buffer_load_dwordx2 v[0:1], off, s[4:7], 0
buffer_load_dwordx4 v[4:7], v1, ttmp[0:3], 0 offen
buffer_load_dword off, s[0:3], 0 lds
buffer_load_dword v1, s[0:3], s4 offen offset:4 lds
buffer_store_dword v0, off, s[0:3], 0
buffer_store_short v0, v1, s[0:3], 0 offen
buffer_load_format_x v0, off, s[0:3], 0
buffer_atomic_add v0, off, s[0:3], 0
buffer_atomic_cmpswap v[0:1], v2, s[0:3], 0 offen
// Flat
flat_load_dword v0, v[2:3]
flat_load_dword v0, v[2:3] offset:16
flat_load_dword v0, v[2:3] offset:4095
flat_store_dwordx2 v[0:1], v[2:3]
flat_atomic_add v[0:1], v2
global_load_dword v0, v[2:3], off
global_load_dword v0, v[2:3], off offset:-4096
global_load_dword v0, v[2:3], off offset:4095
global_load_dword v0, v2, s[4:5]
global_load_dword v0, v2, vcc offset:-1
global_load_dwordx4 v[4:7], v[2:3], off
global_store_dword v[0:1], v2, off
global_store_dword v0, v2, s[4:5] offset:8
global_atomic_add v[0:1], v2, off
global_atomic_add v0, v2, s[4:5]
scratch_load_dword v0, v1, off
scratch_load_dword v0, off, s1
scratch_load_dword v0, off, s1 offset:-8
scratch_store_dword v0, v1, off offset:4
scratch_store_dword off, v1, s1
// Separators and cases
v_add_f32 v0 , v1 , v2
v_add_f32   v0,v1,v2
v_add_f32 v0 v1 v2
ds_read_b32 v0, v1, offset:16
v_add_f32 v0, v1, v2, clamp

// on: gfx906 gfx908 gfx90a gfx942
v_add_u16 v0, -17, v1
v_readfirstlane_b32 m0, v1

// on: gfx906 gfx908 gfx90a
buffer_wbinvl1
v_mac_f32 v0, v1, v2
v_mac_f32 v0, |v1|, v2
v_mad_f32 v0, v1, -v2, v3
v_madak_f32 v0, v1, v2, 1.0
v_madak_f32 v0, 0x1234, v2, 0x1234
v_madmk_f32 v0, v1, 0x3f800000, v2
v_madmk_f32 v0, v1, 3.0, v2
buffer_load_dword v0, off, s[0:3], 0 glc
buffer_load_dword v0, off, s[0:3], 0 slc
buffer_load_dword v0, off, s[0:3], 0 glc slc
buffer_load_dword v0, off, s[0:3], 0 slc glc
buffer_load_dword v0, off, s[0:3], 0 noglc
buffer_atomic_add v0, off, s[0:3], 0 glc
flat_load_dword v0, v[2:3] glc slc
flat_atomic_add v0, v[2:3], v4 glc
global_atomic_add v0, v[2:3], v4, off glc
global_atomic_cmpswap v0, v2, v[4:5], s[6:7] offset:4 glc slc
global_load_dword v[2:3], off lds
global_load_dword v2, s[4:5] offset:16 lds
scratch_load_dword v0, off lds
ds_gws_barrier v0 gds
ds_gws_init v0 offset:3 gds
ds_gws_sema_v gds
v_dot2_i32_i16 v0, v1, v2, v3

// on: gfx906 gfx908
ds_read_b32 v0, v1 gds
ds_write_b32 v0, v1 offset:4 gds
v_mul_legacy_f32 v0, v1, v2
ds_add_src2_u32 v0 offset:4

// on: gfx908 gfx90a
v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]
v_mfma_f32_4x4x4f16 a[0:3], v[0:1], v[2:3], a[4:7]
v_mfma_f32_16x16x8bf16 a[0:3], v0, v1, acc[0:3]
v_accvgpr_read_b32 v0, a1
v_accvgpr_read_b32 v0, acc1
v_accvgpr_write_b32 a0, v1
v_accvgpr_write_b32 a0, 1.0
v_accvgpr_write_b32 acc[0], -3
v_pk_fmac_f16 v0, v1, v2

// on: gfx90a gfx942 gfx950
v_mov_b32_dpp v0, v1 row_newbcast:3
v_rcp_f64_dpp v[0:1], v[2:3] row_newbcast:1
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]
v_pk_fma_f32 v[0:1], 1.0, v[4:5], s[6:7]
v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]
v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[1,1] neg_hi:[1,1]
v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]
v_fmac_f64 v[0:1], v[2:3], v[4:5]
v_accvgpr_mov_b32 a0, a1
ds_read_b128 a[0:3], v4
ds_write_b64 v0, a[2:3] offset:8
buffer_load_dword a0, off, s[0:3], 0
global_load_dwordx4 a[0:3], v[4:5], off
flat_store_dword v[0:1], a2
ds_add_f64 v0, v[2:3]
global_atomic_add_f64 v[0:1], v[2:3], off

// on: gfx90a
v_mfma_i32_16x16x16i8 a[0:3], v0, v1, 2
v_mfma_f32_32x32x1f32 a[0:31], v0, v1, -2 cbsz:1 abid:2 blgp:3
v_mfma_f32_32x32x1f32 a[0:31], v0, v1, 1.0
v_mfma_f32_32x32x1f32 v[0:31], v32, v33, v[0:31]
v_mfma_f32_16x16x4f32 v[0:3], a0, v5, 0
v_mfma_f32_32x32x8bf16_1k a[0:15], v[0:1], v[2:3], a[0:15]
v_mfma_f64_16x16x4f64 a[0:7], v[0:1], v[2:3], a[0:7]
v_mfma_f64_4x4x4f64 v[0:1], v[2:3], v[4:5], 1.0 cbsz:1
buffer_load_dword v0, off, s[0:3], 0 scc
global_load_dword v0, v[2:3], off glc slc scc
buffer_wbl2
buffer_invl2

// on: gfx942 gfx950
v_fmaak_f32 v0, v1, v2, 1.0
v_fmaak_f32 v0, 0x1234, v2, 0x1234
v_fmamk_f32 v0, v1, 3.0, v2
v_mov_b64 v[0:1], 1.0
v_mov_b64 v[0:1], s[2:3]
v_mov_b64 v[0:1], 0x1234
v_lshl_add_u64 v[0:1], v[2:3], 3, v[4:5]
v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v1, a[0:31]
v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]
v_mfma_f32_32x32x8_f16 v[0:15], a[0:1], v[2:3], 0
v_mfma_f32_32x32x8f16 v[0:15], a[0:1], v[2:3], 0
v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3] cbsz:1 abid:1 blgp:4
v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[0:3]
v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], 1.0 neg:[1,0,0]
v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7] neg:[1,1,1]
v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[4:5], v[6:7], v[0:3]
v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], v12 cbsz:1 abid:2
v_smfmac_i32_32x32x32_i8 a[0:15], v[2:3], a[4:7], v1
v_cvt_pk_fp8_f32 v0, v1, -v2
v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]
v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,1]
v_cvt_f32_fp8 v0, v1
v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_2
v_cvt_pk_f32_bf8_sdwa v[0:1], v2 src0_sel:WORD_1
v_cvt_f32_fp8_dpp v0, v1 row_shl:1
buffer_load_dword v0, off, s[0:3], 0 sc0
buffer_load_dword v0, off, s[0:3], 0 nt
buffer_load_dword v0, off, s[0:3], 0 sc1
buffer_load_dword v0, off, s[0:3], 0 sc1 nt sc0
buffer_load_dword v0, off, s[0:3], 0 nosc0
buffer_atomic_add v0, off, s[0:3], 0 sc0
buffer_wbl2 sc0 sc1
buffer_inv sc1
flat_load_dword v0, v[2:3] sc0 nt
global_atomic_add v0, v[2:3], v4, off sc0
global_atomic_pk_add_bf16 v0, v[2:3], v4, off sc0 sc1
global_load_lds_dword v[2:3], off
global_load_lds_ubyte v2, s[4:5] offset:16 nt
scratch_load_dword v0, v1, s2
scratch_load_dword v0, off, off
scratch_store_dword v1, v2, s3 offset:12
s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)
s_getreg_b32 s0, hwreg(HW_REG_SQ_PERF_SNAPSHOT_DATA, 0, 8)
ds_pk_add_f16 v0, v1
ds_pk_add_rtn_bf16 v0, v1, v2 offset:4

// on: gfx950
v_bitop3_b32 v0, v1, v2, v3 bitop3:0x12
v_bitop3_b16 v0, v1, v2, v3 bitop3:255 op_sel:[1,0,0,1]
v_bitop3_b32 v0, v1, s2, 1
v_prng_b32 v0, v1
v_permlane16_swap_b32 v0, v1
v_permlane32_swap_b32_e64 v0, v1 bound_ctrl:1 fi:1
v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:15], v[0:3] cbsz:2 blgp:4
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[20:23], v24, v25
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[20:23], v24, v25 op_sel:[1,0,0] op_sel_hi:[0,1,0]
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]
v_cvt_pk_f16_f32 v0, -v1, |v2|
v_minimum3_f32 v0, v1, -v2, |v3|
buffer_load_dwordx4 off, s[0:3], 0 lds
global_load_lds_dwordx4 v[2:3], off
// Integers with signs before 64 bits.
// on: gfx906 gfx908 gfx90a gfx942 gfx950
v_cvt_i32_f64 v0, neg(1)
v_cvt_i32_f64 v0, neg(1.0)
v_cvt_i32_f64 v0, abs(-1)
v_ceil_f64 v[0:1], -|2|
v_ceil_f64_e32 v[0:1], neg(2.0)
v_ceil_f64_e32 v[0:1], -|3.5|
v_ceil_f64_e64 v[0:1], neg(0)
v_cmp_eq_f64 vcc, neg(1), v[2:3]
v_cmp_eq_f64 vcc, neg(3.5), v[2:3]
v_frexp_exp_i32_f64 v0, -|3|
// Names and operands that may be left away or written otherwise.
// on: gfx908 gfx90a gfx942 gfx950
v_accvgpr_write a1, v2
v_accvgpr_read v3, a1
v_accvgpr_write acc1, v2
v_accvgpr_write_b32 acc[1], 1
// on: gfx906 gfx908 gfx90a gfx942 gfx950
v_cmp_lt_u32 v0, v1
v_cmp_lt_u32_e32 v0, v1
v_cmpx_lt_u32 v0, v1
v_cmpx_lt_u32_e32 s2, v1
v_cmpx_class_f32 v0, v1
v_cmp_eq_f64 v[0:1], v[2:3]
v_cmpx_lt_u32 exec, v0, v1
v_cmpx_lt_u32 vcc, v0, v1
v_cmpx_lt_u32 s[2:3], v0, v1
v_cmpx_lt_u32_e64 exec, v0, v1
v_cmp_lt_u32 exec, v0, v1
v_cmp_lt_u64 ttmp[0:1], v[0:1], v[2:3]
v_cmp_lt_u32_sdwa exec, v0, v1 src0_sel:DWORD src1_sel:DWORD
v_add_co_u32 v0, exec, v1, v2
v_div_scale_f32 v0, exec, v1, v2, v3
v_cndmask_b32_e32 v0, v1, v2
tbuffer_load_format_x v1, v2, s[4:7], s8 format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT] idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], s8 format:[BUF_NUM_FORMAT_FLOAT, BUF_DATA_FORMAT_32] idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], s8, format:7 idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], dfmt:4, nfmt:7, s8 idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], nfmt:7, dfmt:4, s8 idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], nfmt:7, s8 idxen offset:4
tbuffer_load_format_x v1, v2, s[4:7], s8 format:[BUF_NUM_FORMAT_FLOAT] idxen
tbuffer_store_format_xyzw v[4:7], v[2:3], s[4:7], s8 format:127 idxen offen
tbuffer_load_format_x v1, off, s[4:7], 0
tbuffer_load_format_x v1, off, s[4:7], 0 format:0
tbuffer_load_format_d16_xyz v[2:3], off, s[4:7], s8 format:[BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_UNORM]
// on: gfx906 gfx908
tbuffer_load_format_d16_xyz v[2:3], off, s[4:7], s8 format:[BUF_DATA_FORMAT_INVALID] glc slc
buffer_load_format_d16_xyz v[1:3], off, s[4:7], s8 tfe
buffer_load_ubyte_d16 v[1:2], off, s[4:7], s8 tfe
buffer_load_dword v[0:1], off, s[4:7], s0 tfe
buffer_load_dwordx2 v[0:2], off, s[4:7], s0 offset:8 glc tfe
buffer_load_format_x v[0:1], v2, s[4:7], s0 idxen tfe
// on: gfx906 gfx908 gfx90a
v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[0,1,0]
v_dot2_f32_f16 v0, v1, v2, v3 op_sel_hi:[0,1,0]
v_dot4_i32_i8 v0, v1, v2, v3 op_sel:[0,1,0]
v_dot8_u32_u4 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[0,1,0] clamp
v_dot2_i32_i16 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[0,1,1]
// on: gfx906 gfx908 gfx90a gfx942
v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[1,0,0]
v_dot4_i32_i8 v0, v1, v2, v3 neg_lo:[0,1,0] neg_hi:[0,1,0]
// on: gfx950
v_permlane16_swap_b32 v1, v2 bound_ctrl:0
v_permlane32_swap_b32 v1, v2 bound_ctrl:0 fi:1
v_permlane16_swap_b32_e64 v1, v2
// Images: addresses of any width, data of the width that components, halves and the status make.
// on: gfx906 gfx908 gfx90a
image_load v5, v[6:7], s[8:15] dmask:1
image_load v5, v[6:9], s[8:15] dmask:0x1 unorm
image_load v5, [v6,v7], s[8:15] dmask:1
image_load v5 v6 s[92:99] dmask:1, glc
image_load v5, v6, ttmp[8:15] noglc
image_load v[4:6], v6, s[8:15] dmask:7
image_load v[4:5], v6, s[8:15] dmask:7 d16
image_load v4, v6, s[8:15] dmask:0x1 unorm glc slc a16 lwe da d16
image_load_pck_sgn v4, v255, s[8:15] dmask:8
image_load_mip_pck v[4:5], v[254:255], s[8:15] dmask:9
image_store v[4:5], v6, s[4:11] dmask:0xf d16
image_store_mip_pck v[4:7], v[6:8], s[4:11] dmask:0xf da
image_atomic_add v4, v6, s[8:15] dmask:0x1
image_atomic_add v[4:5], v6, s[8:15] dmask:0x3 glc
image_atomic_cmpswap v[4:5], v6, s[8:15] dmask:0x3
image_atomic_cmpswap v[4:7], v6, s[8:15] dmask:0xf glc slc
image_get_resinfo v[4:6], v6, s[8:15] dmask:0xe
image_sample v[4:7], v[6:8], s[8:15], s[16:19] dmask:0xf
image_sample v5, v6, s[8:15], ttmp[4:7] dmask:1
// on: gfx906 gfx908
image_load v[5:6], v[7:9], s[8:15] dmask:3
image_load v[4:6], v6, s[8:15] dmask:0xf tfe d16
image_load v[4:5], v6, s[8:15] tfe lwe
image_store v[4:6], v6, s[8:15] dmask:3 tfe
image_atomic_add v[4:6], v6, s[8:15] dmask:0x3 tfe
image_atomic_cmpswap v[4:8], v6, s[8:15] dmask:0xf glc tfe
image_sample_d v5, v[6:14], s[8:15], s[16:19] dmask:1
image_sample_c_d_cl_o v[5:6], v[6:17], s[8:15], s[16:19] dmask:5
image_sample_b_cl v5, v[6:13], s[8:15], s[16:19] dmask:1
image_sample_c_cd_cl v[5:7], v[6:8], s[8:15], s[16:19] dmask:7 unorm
image_gather4 v[4:7], v6, s[8:15], s[16:19] dmask:0x8
image_gather4_c_b_cl_o v[4:8], v[6:13], s[8:15], s[16:19] dmask:0x2 tfe
image_gather4h v[4:5], v[6:7], s[8:15], s[16:19] dmask:0x1 d16
image_get_lod v[4:5], v[6:9], s[8:15], s[16:19] dmask:3
// on: gfx90a
image_load a[6:7], v8, s[8:15] dmask:3
image_store a5, v[8:9], s[8:15] dmask:1 scc
image_atomic_cmpswap a[4:5], v8, s[8:15] dmask:3 glc
image_sample a[4:6], v[8:10], s[8:15], s[16:19] dmask:7
// Interpolation in the long form, and with halves.
// on: gfx906 gfx908
v_interp_p1_f32_e64 v5, v2, attr0.x
v_interp_p1_f32_e64 v5, |v2|, attr32.w
v_interp_p1_f32 v5, -v2, attr31.w clamp mul:4
v_interp_p1_f32 v5, v2, attr32.x
v_interp_p2_f32_e64 v5, -v2, attr0.z clamp div:2
v_interp_p2_f32 v5, v2, attr0.x clamp
v_interp_mov_f32_e64 v5, p10, attr0.y
v_interp_mov_f32 v5, p0, attr3.y clamp mul:2
v_interp_p1ll_f16 v5, v2, attr0.x
v_interp_p1ll_f16_e64 v5, -|v2|, attr0.x high clamp mul:2
v_interp_p1lv_f16 v5, -v2, attr0.x, |v3| high clamp mul:2
v_interp_p2_legacy_f16 v5, -v2, attr0.x, |v3| high clamp
v_interp_p2_f16 v5, v2, attr0.x, v3
v_interp_p2_f16_e64 v5, v2, attr31.w, -v3 high
// on: gfx906 gfx908 gfx90a gfx942
v_screen_partition_4se_b32 v5, s1
v_screen_partition_4se_b32 v5, 0x1234
v_screen_partition_4se_b32_e64 v5, v1
v_screen_partition_4se_b32_dpp v5, v1 row_shl:1
v_screen_partition_4se_b32_sdwa v5, v1 clamp dst_sel:BYTE_0
s_endpgm_ordered_ps_done
// The classes are the bits of a number of 32, whatever the number that they are of.
// on: gfx906 gfx908 gfx90a gfx942 gfx950
v_cmp_class_f16 s[0:1], v1, 0x3f800000
v_cmpx_class_f16 s[0:1], v1, 0xbf800000
v_cmp_class_f16 s[0:1], v1, 1.0
v_cmp_class_f16 vcc, 1.0, v1
