.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 s_getpc_b64 s[0:1]
 s_add_u32 s0, s0, table@rel32@lo+4
 s_addc_u32 s1, s1, table@rel32@hi+12
 s_add_u32 s2, s2, lab2-lab1
 s_cmp_eq_u32 s2, lab2-lab1
lab1:
 s_nop 0
lab2:
 s_setpc_b64 s[0:1]
.set later, 100
.section .tab,"a",@progbits
.p2align 2
table:
 .long lab1-table, lab2-table
 .long lab2-lab1
 .quad lab2-lab1
 .short lab2-lab1
 .byte lab2-lab1
 .long later
.text
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
