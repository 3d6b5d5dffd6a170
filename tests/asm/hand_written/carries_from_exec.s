.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 s_mov_b64 s[0:1], exec
 v_add_co_u32 v0, vcc, v1, v2
 v_addc_co_u32 v0, vcc, v1, v2, vcc
 v_addc_co_u32_e64 v0, s[2:3], v1, v2, s[4:5]
 v_subbrev_co_u32 v0, vcc, v1, v2, vcc
 v_cndmask_b32_e64 v0, v1, v2, exec
 v_addc_co_u32_e64 v0, s[2:3], v1, v2, exec
 v_subb_co_u32 v0, exec, v1, v2, exec
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
