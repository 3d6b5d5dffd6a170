.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 s_nop 0
 . = . + 8
 s_nop 1
 . = kern + 0x20
 s_nop 2
 v_mov_b32 v0, 0XFF
 v_mov_b32 v0, 0B101
 v_mov_b32 v0, '\n'
 v_mov_b32 v0, '\\'
 v_mov_b32 v0, ' '
 v_mov_b32 v0, -'a'
 s_mov_b32 s0, 1<<31
 s_mov_b32 s0, 0xffffffff & ~0xf
 s_mov_b32 s0, (1<<4)-1
 s_mov_b32 s0, 10/3*3
 s_mov_b32 s0, -10/3
 s_mov_b32 s0, -10%3
 s_mov_b32 s0, 1 == 1
 s_mov_b32 s0, 3 <> 4
 s_mov_b32 s0, 3 >= 4
 s_mov_b32 s0, !0
 s_mov_b32 s0, 5 ^ 1
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
