# A file with what files have beside instructions. LLVM makes the same of it.
    .amdgcn_target "amdgcn-amd-amdhsa--TARGET"
    .amdhsa_code_object_version 5
    .set four, 4
    number = four * 2 + 1
    .equ later, end_of_table - table

    .text
    .globl first, second
    .protected first
    .protected second
    .p2align 8
    .type first,@function
first:                                  ; with a label
    s_load_dwordx2 s[0:1], s[0:1], four*2 /* a comment */
1:  s_sub_u32 s2, s2, number
    s_cmp_lg_u32 s2, 0
    s_cbranch_scc1 1b                   // back
    s_cbranch_scc0 1f
    /* a comment
       of two lines: s_nop 1 */ s_nop 2
1:  s_branch 2f
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, table@rel32@lo+4
    s_addc_u32 s5, s5, table@rel32@hi+12
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, second@rel32@lo+4
    s_addc_u32 s5, s5, second@rel32@hi+12
2:  s_waitcnt lgkmcnt(0)
    s_mov_b32 s3, four
    s_mov_b32 s3, end_of_table - table
    v_mov_b32 v0, end_of_table-table
    v_mov_b32 v40, number
    s_cbranch_execz .Lskip
    v_add_f32 v1, v2, v3
    .long 0xbf800000, four
.Lskip:
    s_endpgm
.Lfirst_end:
    .size first, .Lfirst_end-first

    .p2align 8
    .type second,@function
second:
"a quoted name":
    s_branch "a quoted name"
    s_branch first
    s_endpgm
    .size second, . - second
    .p2alignl 6, 3212836864
    .fill 256, 4, 3212836864

    .section .rodata,"a",@progbits
    .p2align 6, 0x0
    .amdhsa_kernel first
      .amdhsa_group_segment_fixed_size 1024
      .amdhsa_private_segment_fixed_size 16
      .amdhsa_kernarg_size 8
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_user_sgpr_dispatch_ptr 1
      .amdhsa_system_sgpr_workgroup_id_x 0
      .amdhsa_system_sgpr_workgroup_id_z 1
      .amdhsa_system_vgpr_workitem_id 2
      .amdhsa_next_free_vgpr .amdgcn.next_free_vgpr
      .amdhsa_next_free_sgpr .amdgcn.next_free_sgpr
      ACCUM 8
      .amdhsa_float_denorm_mode_32 3
      .amdhsa_float_round_mode_16_64 2
      .amdhsa_exception_int_div_zero 1
      .amdhsa_uses_dynamic_stack 1
    .end_amdhsa_kernel
    .amdhsa_kernel second
      .amdhsa_next_free_vgpr 33
      .amdhsa_next_free_sgpr number + 10
      ACCUM 4
      .amdhsa_reserve_vcc 0
      .amdhsa_user_sgpr_count 6
      .amdhsa_ieee_mode 0
      .amdhsa_dx10_clamp 0
      .amdhsa_fp16_overflow 1
    .end_amdhsa_kernel

    .p2align 4
table:
    .byte 1, 0xff, -1, 'a'
    .short 1, -2
    .2byte 5
    .p2align 2
    .long end_of_table - table, later, number
    .int -1, 0xffffffff
    .4byte 7
    .quad 0x123456789abcdef0, -1
    .8byte 1
    .ascii "abc", "d\n\t\"\\\101\x41"
    .asciz "e"
    .string "f;g//h"
    .zero 3
    .space 2, 0xaa
    .skip 1
    .fill 3, 2, 0x1234
    .fill 2
    .fill 2, 8, 0x11223344
    .balign 16
    .p2align 5, 0xcc
    .p2align 6, , 8
    .float 1.0, -2.5, 3
    .double 0.1
end_of_table:
    .section .other,"a"
    .byte 1
    .previous
    .byte 2
    .pushsection .other
    .byte 3
    .popsection
    .byte 4
    .section .strings,"MS",@progbits,1
    .asciz "one"
    .asciz "two"
    .data
    .globl value
    .type value,@object
    .p2align 2
value:
    .long 42
    .size value, 4
