    .amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
    v_mov_b64 v[0:1], v[2:3]                                 //! 5: `v_mov_b64` does not exist on gfx90a, only on gfx942, gfx950
    buffer_load_dword v0, off, s[0:3], 0 sc0                 //! 42: `sc0` is called `glc` on gfx90a
    scratch_load_dword v0, v1, s2                            //! 32: `scratch_load_dword`: operand 2 cannot be s2
    s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)                    //! 28: `HW_REG_XCC_ID` does not exist on gfx90a, only on gfx942, gfx950
    ds_read_b32 v0, v1 gds                                   //! 24: `gds` does not exist on gfx90a, only on gfx906, gfx908
    s_load_dword s0, s[0:1], 8 offset:4                      //! 32: `offset` is there twice
    v_add_f32 v0, v1, v2 mul:2 div:2                         //! 32: `output modifier` is there twice
    s_waitcnt vmcnt(0) &                                     //! 62: expected a counter, found the end of the line
    .byte 256                                                //! 11: 256 does not fit an operand of 8 bits
    .short 1,                                                //! 62: expected something after the comma, found the end of the line
    .long "a                                                 //! 11: expected a closing quote, found `"`
    .ascii "abc                                              //! 12: expected a string with a closing quote, found `"`
    .ascii abc                                               //! 12: expected a string in quotes, found `abc`
    .fill -1                                                 //! 11: the number goes from 0 to 9223372036854775807, -1 is outside
    .zero 0x7fffffff                                         //! 11: the sections of a text hold 64 MiB at most together
    .fill 0x7fffffff, 8, 1                                   //! 11: the sections of a text hold 64 MiB at most together
    .zero x                                                  //! 11: `x` is not defined
    .p2align 17                                              //! 14: the number goes from 0 to 16, 17 is outside
    .balign 3                                                //! 13: an alignment is a power of two
    .section                                                 //! 62: expected the name of a section, found the end of the line
    .section .x,"q"                                          //! 17: expected flags of `a`, `w`, `x`, `M`, `S`, `G` and `R`, found `"`
    .section .text,"aw",@progbits                            //! 14: section `.text` had other flags before
    .popsection                                              //! 5: `.popsection` without `.pushsection`
    .type a,@frob                                            //! 14: expected `@function`, `@object` or `@notype`, found `frob`
    .size a                                                  //! 62: expected `,`, found the end of the line
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"               //! 20: the target is gfx942 here and gfx90a before
    .amdgcn_target "r600"                                    //! 20: expected a target that begins with `amdgcn-amd-amdhsa--`, found `"`
    .amdhsa_code_object_version 3                            //! 33: the code object version cannot be 3
    .amdhsa_next_free_vgpr 4                                 //! 5: `.amdhsa_next_free_vgpr` is not a known directive
    .set                                                     //! 62: expected the name of a symbol, found the end of the line
    .set x                                                   //! 62: expected `,`, found the end of the line
    .globl                                                   //! 62: expected the name of a symbol, found the end of the line
    s_branch 1b                                              //! 14: there is no label `1` before this
    + 1                                                      //! 5: expected a label, a directive or an instruction, found `+`
    .text
a:
a:                                                           //! 1: `a` is defined twice
    .set a, 1                                                //! 13: `a` is a label
    .amdhsa_kernel k
      .amdhsa_frob 1                                         //! 7: `.amdhsa_frob` is not a directive of a kernel descriptor
      .amdhsa_next_free_vgpr 513                             //! 30: the value goes from 0 to 512, 513 is outside
      .amdhsa_next_free_vgpr 4                               //! 7: `.amdhsa_next_free_vgpr` is there twice
      .amdhsa_enable_private_segment 1                       //! 7: gfx90a has no `.amdhsa_enable_private_segment`
      .amdhsa_ieee_mode 2                                    //! 25: the value goes from 0 to 1, 2 is outside
      .amdhsa_ieee_mode 1                                    //! 7: `.amdhsa_ieee_mode` is there twice
      .amdhsa_system_vgpr_workitem_id 3                      //! 39: the value goes from 0 to 2, 3 is outside
      .amdhsa_reserve_xnack_mask 0                           //! 34: the target id gfx90a says otherwise
      v_mov_b32 v0, v1                                       //! 7: `v_mov_b32` is not a directive of a kernel descriptor
    .end_amdhsa_kernel                                       //! 5: `.amdhsa_next_free_vgpr` is missing
