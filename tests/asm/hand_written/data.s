.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
kern:
 s_endpgm
.Lend:
.size kern, .Lend-kern
.data
.p2align 4
tbl:
.byte 1, -1, 255, 'a', 0b101, 0x7f, 017
.2byte 0x1234, -2
.short 9
.4byte 1, 2
.long tblend-tbl, . - tbl
.int 4
.8byte 0x123456789abcdef0
.quad -1
.float 1.5, -2, 1e10, 0x1.8p3
.single 2.5
.double 3.141592653589793, 1e-300
.ascii "hello\n\t\"q\"\\ \101\x41"
.asciz "a", "b"
.string "abc", "def"
.zero 5
.skip 3, 0xaa
.space 2
.fill 3, 2, 0x1234
.fill 2, 8, 0x11223344
.fill 4
.balign 8
.align 16
.p2align 3, 0xff
.balignw 4, 0x1234
tblend:
.octa 0x123456789abcdef0fedcba9876543210
.uleb128 624485, 0, 127, 128
.sleb128 -123456, 63, 64, -64, -65
.org 0x200
.byte 1
.org tbl + 0x210, 0x55
.byte 2
.bss
.zero 64
.section .mydata,"aw",@progbits
.long 1
.section .comment,"MS",@progbits,1
.asciz "mine"
.rodata
.p2align 6
.amdhsa_kernel kern
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 64
  .amdhsa_accum_offset 32
.end_amdhsa_kernel
