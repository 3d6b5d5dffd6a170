.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
.altmacro
.noaltmacro
kern:
.altmacro
.macro pc x
 s_nop \x
.endm
pc %1+2
pc <3>
.noaltmacro
pc 4
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
