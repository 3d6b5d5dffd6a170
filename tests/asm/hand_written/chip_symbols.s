.amdgcn_target "amdgcn-amd-amdhsa--gfx908"
.text
.globl kern
.p2align 8
.type kern,@function
.if (.amdgcn.gfx_generation_number == 9)
 .set GEN, 9
.else
 .set GEN, 0
.endif
.if .amdgcn.gfx_generation_minor == 0 && .amdgcn.gfx_generation_stepping == 8
 .set IS908, 1
.else
 .set IS908, 0
.endif
kern:
 s_mov_b32 s0, GEN
 s_mov_b32 s1, IS908
 s_mov_b32 s2, .amdgcn.gfx_generation_stepping
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
