.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
.altmacro
.macro fn a, b
l1: s_nop a
 s_branch l2
l2: s_nop b
 s_branch l1
.endm
.macro val x
 s_nop \x
.endm
kern:
 fn 1, 2
 val %(1+2*3)
 .set q, 4
 val %q
 val <5>
 .irp z, 1, 2
 s_nop z
 .endr
 .noaltmacro
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
