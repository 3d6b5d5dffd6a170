.amdgcn_target "amdgcn-amd-amdhsa--gfx908"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 v_accvgpr_write_b32 a0, 1.0
 v_accvgpr_write a1, v3
 v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31] cbsz:3 abid:2 blgp:7
 v_mfma_f32_32x32x2bf16 a[0:31], v0, a1, a[0:31]
 v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0] neg_lo:[1,0,0]
 v_dot4_i32_i8 v0, v1, v2, v3 clamp
 v_dot8_u32_u4 v0, v1, v2, v3
 v_dot2c_i32_i16 v0, v1, v2
 v_dot4c_i32_i8_dpp v0, v1, v2 row_shr:1
 v_fmac_f32 v0, v1, v2
 v_pk_fmac_f16 v0, v1, v2
 tbuffer_load_format_xyzw v[0:3], off, s[4:7], 0 format:[BUF_DATA_FORMAT_32_32_32_32,BUF_NUM_FORMAT_FLOAT]
 tbuffer_load_format_x v0, v1, s[4:7], dfmt:4, nfmt:7, s8 offen offset:16
 tbuffer_store_format_xy v[0:1], off, s[4:7], 0 format:33
 buffer_load_format_xyzw v[0:3], v1, s[4:7], 0 idxen
 buffer_load_dword v[0:1], off, s[4:7], s0 tfe
 buffer_load_dword off, s[4:7], s8 offset:4 lds
 buffer_store_lds_dword s[4:7], s8 offset:4 lds
 global_atomic_add_f32 v[0:1], v2, off
 global_atomic_pk_add_f16 v0, v1, s[2:3] offset:4
 ds_add_f32 v0, v1 gds
 ds_gws_barrier v0 gds
 ds_gws_sema_v gds
 ds_ordered_count v0, v1 offset:4 gds
 ds_append v0 offset:8
 ds_consume v0 gds
 s_atomic_add s0, s[2:3], 0x4 glc
 s_scratch_load_dword s0, s[2:3], 0
 s_store_dword s0, s[2:3], m0
 s_buffer_load_dwordx16 s[16:31], s[4:7], 0x100
 s_buffer_store_dword s0, s[4:7], s8 glc
 s_load_dword s0, s[2:3], s4
 s_load_dword s0, s[2:3], s4 offset:0x10
 s_load_dword s0, s[2:3], -0x10
 s_dcache_discard s[2:3], 0x10
 s_memtime s[0:1]
 s_memrealtime s[0:1]
 s_dcache_wb
 s_atc_probe 0x7, s[4:5], 0x64
 s_atc_probe_buffer 0x1, s[8:11], s0
 buffer_wbinvl1
 buffer_wbinvl1_vol
 s_cbranch_g_fork s[0:1], s[2:3]
 s_cbranch_i_fork s[0:1], 8
 s_set_gpr_idx_on s0, gpr_idx(SRC0,DST)
 s_set_gpr_idx_mode gpr_idx(SRC1)
 s_set_gpr_idx_off
 s_set_gpr_idx_idx s0
 s_set_gpr_idx_on s0, 0xf
 s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 0)
 s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)
 s_sendmsg sendmsg(MSG_SAVEWAVE)
 s_sendmsg sendmsg(4)
 s_sendmsg sendmsg(2, 1, 0)
 s_sendmsghalt 3
 s_ttracedata
 s_trap 2
 s_rfe_b64 s[0:1]
 s_icache_inv
 s_incperflevel 3
 s_waitcnt vmcnt(3) expcnt(2) lgkmcnt(1)
 s_waitcnt vmcnt(3), expcnt(2), lgkmcnt(1)
 s_waitcnt vmcnt_sat(100)
 s_waitcnt lgkmcnt_sat(100) & vmcnt(1)
 s_endpgm_saved
 v_mov_b32 v0, src_lds_direct
 v_add_f32 v0, lds_direct, v1
 exp mrt0 v0, v1, v2, v3
 exp pos0 v0, off, v2, off done
 exp null off, off, off, off done vm
 exp mrtz v0, v0, v1, v1 compr
 v_interp_p1_f32 v0, v1, attr0.x
 v_interp_p2_f32 v0, v1, attr3.w
 v_interp_mov_f32 v0, p10, attr0.y
 s_setreg_imm32_b32 hwreg(1), 0xbf800000
 s_endpgm
.Lend:
.size kern, .Lend-kern
.rodata
.p2align 6
.amdhsa_kernel kern
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 64
.end_amdhsa_kernel
