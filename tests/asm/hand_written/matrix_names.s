.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 v_mfma_f32_32x32x4_2b_bf16 a[0:31], v[2:3], v[4:5], a[0:31]
 v_mfma_f32_32x32x4bf16_1k a[0:31], v[2:3], v[4:5], a[0:31]
 v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
 v_mfma_f32_32x32x8f16 v[0:15], v[16:17], v[18:19], v[0:15]
 v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[16:17], v[18:19], v[0:3]
 v_mfma_f32_16x16x8_xf32 v[0:3], v[16:17], v[18:19], v[0:3]
 v_mfma_f32_16x16x8xf32 v[0:3], v[16:17], v[18:19], v[0:3]
 v_mfma_i32_32x32x16_i8 v[0:15], v[16:17], v[18:19], v[0:15]
 v_mfma_i32_32x32x16i8 v[0:15], v[16:17], v[18:19], v[0:15]
 v_mfma_f64_16x16x4_f64 v[0:7], v[16:17], v[18:19], v[0:7] neg:[1,0,1]
 v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], v12 cbsz:1 abid:2
 v_smfmac_f32_32x32x32_fp8_fp8 a[0:15], v[4:5], a[8:11], v12
 v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]
 v_cvt_f32_fp8 v0, v1
 v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_2
 v_cvt_pk_f32_fp8 v[0:1], v2
 v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,1]
 v_accvgpr_write_b32 a0, 0
 v_accvgpr_write a0, s1
 v_accvgpr_read v0, a1
 v_accvgpr_mov_b32 a0, a1
 v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]
 v_mov_b64 v[0:1], v[2:3]
 v_lshl_add_u64 v[0:1], v[2:3], 2, v[4:5]
 global_load_lds_dword v[0:1], off offset:16
 global_load_lds_dword v0, s[0:1]
 buffer_load_dword v0, s[0:3], s4 offen lds
 buffer_load_ushort v0, s[0:3], s4 offen offset:8 sc0 sc1 nt lds
 global_atomic_pk_add_bf16 v[0:1], v2, off
 global_atomic_add_f32 v0, v[0:1], v2, off sc0
 global_load_dwordx4 v[0:3], v[4:5], off sc0 sc1 nt
 flat_load_dword v0, v[0:1] nt
 scratch_load_dword v0, v1, s1 offset:-4
 scratch_store_dwordx4 off, v[0:3], off offset:16
 buffer_wbl2 sc0 sc1
 buffer_inv sc1
 buffer_inv
 s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)
 s_getreg_b32 s0, hwreg(HW_REG_SQ_PERF_SNAPSHOT_DATA)
 s_getreg_b32 s0, hwreg(HW_REG_SH_MEM_BASES, 0, 32)
 v_dot4_i32_i8 v0, v1, v2, v3
 v_dot2c_f32_f16 v0, v1, v2
 s_endpgm
.Lend:
.size kern, .Lend-kern
.rodata
.p2align 6
.amdhsa_kernel kern
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 64
  .amdhsa_accum_offset 32
.end_amdhsa_kernel
