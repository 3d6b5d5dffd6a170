    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    v_mov_b23 v0, v1                                         //! 5: no instruction is called `v_mov_b23`; there is `v_mov_b32`
    frobnicate v0, v1                                        //! 5: no instruction is called `frobnicate`
    v_madmk_f32 v0, v1, 1.0, v2                              //! 5: `v_madmk_f32` does not exist on gfx942, only on gfx906, gfx908, gfx90a
    v_bitop3_b32 v0, v1, v2, v3                              //! 5: `v_bitop3_b32` does not exist on gfx942, only on gfx950
    v_mov_b32 v0                                             //! 62: expected a register or a number, found the end of the line
    v_mov_b32                                                //! 62: expected a VGPR, found the end of the line
    v_mov_b32 v0, v1, v2                                     //! 23: `v2` is not a modifier
    v_mov_b32 v0, v256                                       //! 19: there is no register `v256`
    v_mov_b32 v0, v[0:1]                                     //! 19: `v_mov_b32` takes 1 of these registers, not 2
    v_mov_b32 s0, v1                                         //! 15: expected a VGPR, found `s0`
    v_mov_b32 v0, a1                                         //! 19: expected a register or a number, found `a1`
    v_mov_b32 v0, s102                                       //! 19: there is no register `s102`
    v_add_f64 v[1:2], v[2:3], v[4:5]                         //! 15: `v_add_f64`: operand 0, v1, is not aligned
    v_add_f64 v[0:1], v[2:3]                                 //! 62: expected a register or a number, found the end of the line
    v_add_f64 v[0:1], [v2,v4], v[4:5]                        //! 27: the registers of a list must follow each other
    v_add_f64 v[0:1], v[3:2], v[4:5]                         //! 23: there is no register `v[3:2]`
    s_load_dwordx4 s[2:5], s[0:1], 0                         //! 20: `s_load_dwordx4`: operand 0, s2, is not aligned
    s_load_dword s0, s[0:1]                                  //! 62: expected a scalar register or a number, found the end of the line
    s_load_dword s0, s[0:1], 0x100000                        //! 30: the offset goes from -1048576 to 1048575, 1048576 is outside
    s_load_dword s0, s[0:1], 1.5                             //! 30: expected a scalar register or a number, found `1.5`
    v_fma_f32 v0, v1, v2, 0x1234                             //! 27: `v_fma_f32`: no literal in the 64-bit encoding
    v_add_f32 v0, s1, s2                                     //! 5: `v_add_f32` reads more than one scalar value
    v_add_f32 v0, 0x123456789, v1                            //! 19: 4886718345 does not fit an operand of 32 bits
    v_add_f32 v0, 1.0e40, v1                                 //! 19: 1e40 does not fit an operand of 32 bits
    v_add_f16 v0, 70000.0, v1                                //! 19: 70000.0 does not fit an operand of 16 bits
    v_add_f16 v0, 0x12345, v1                                //! 19: 74565 does not fit an operand of 16 bits
    s_add_u32 s0, 0x1234, 0x5678                             //! 27: an instruction has room for one literal
    s_mov_b64 s[0:1], 1.5                                    //! 23: 1.5 does not fit an operand of 64 bits
    v_mov_b32 v0, 1/0                                        //! 19: division by zero
    v_mov_b32 v0, 09                                         //! 19: `09` is not a number
    v_mov_b32 v0, 99999999999999999999                       //! 19: `99999999999999999999` is not a number
    v_mov_b32 v0, (1+2                                       //! 62: expected `)`, found the end of the line
    v_mov_b32 v0, 1+                                         //! 62: expected a number or a symbol, found the end of the line
    v_mov_b32 v0, --1                                        //! 20: expected a number, or `neg(..)` around it, found `-`
    v_add_u32 v0, -v1, v2                                    //! 19: `v_add_u32` does not take the negation of this operand
    v_add_f32 v0, |v1, v2                                    //! 22: expected `|`, found `,`
    v_add_f32 v0, sext(v1), v2                               //! 19: `v_add_f32` does not take the sign extension of this operand
    v_fma_f32 v0, sext(v1), v2, v3                           //! 5: `v_fma_f32` has no _sdwa form with these operands and modifiers
    v_mov_b32_e32 v0, v1 row_shl:1                           //! 5: `v_mov_b32` has no _e32 form with these operands and modifiers
    v_add_f32_e32 v0, v1, s2                                 //! 5: `v_add_f32` has no _e32 form with these operands and modifiers
    s_mov_b32_e64 s0, s1                                     //! 5: `s_mov_b32` has no _e64 form with these operands and modifiers
    v_fma_f32_e32 v0, v1, v2, v3                             //! 5: `v_fma_f32` has no _e32 form with these operands and modifiers
    v_fma_f32_dpp v0, v1, v2, v3 row_shl:1                   //! 34: `v_fma_f32` does not have the modifier `row_shl`
    v_add_f32 v0, v1, v2 frob                                //! 26: `frob` is not a modifier
    v_add_f32 v0, v1, v2 offset:4                            //! 26: `v_add_f32` does not have the modifier `offset`
    v_add_f32 v0, v1, v2 clamp clamp                         //! 32: `clamp` is there twice
    v_add_f32 v0, v1, v2 mul:3                               //! 30: mul cannot be 3
    v_add_u32 v0, v1, v2 mul:2                               //! 26: `v_add_u32` does not have the modifier `mul`
    v_mov_b32_dpp v0, v1                                     //! 5: `v_mov_b32` has no _dpp form with these operands and modifiers
    v_mov_b32_dpp v0, v1 row_mask:0xf                        //! 62: expected a DPP control, found the end of the line
    v_mov_b32_dpp v0, v1 row_shl:16                          //! 26: row_shl cannot be 16
    v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,4]                 //! 43: the lane goes from 0 to 3, 4 is outside
    v_mov_b32_dpp v0, v1 row_shl:1 row_mirror                //! 36: `DPP control` is there twice
    v_mov_b32_dpp v0, s1 row_shl:1                           //! 23: `v_mov_b32`: operand 1 cannot be s1
    v_rcp_f64_dpp v[0:1], v[2:3] row_shl:1                   //! 34: `v_rcp_f64` does not have the modifier `row_shl`
    v_mov_b32_sdwa v0, v1 dst_sel:BYTE_4                     //! 35: expected `DWORD`, `BYTE_0` to `BYTE_3`, `WORD_0` or `WORD_1`, found `BYTE_4`
    v_mov_b32_sdwa v0, v1 src1_sel:DWORD                     //! 27: `v_mov_b32` does not have the modifier `src1_sel`
    v_pk_add_f16 v0, v1, v2 op_sel:[2,0]                     //! 37: each of the list goes from 0 to 1, 2 is outside
    v_pk_add_f16 v0, v1, v2 op_sel:[0,0,1]                   //! 29: op_sel goes from 0 to 3, 4 is outside
    v_mfma_f32_32x32x8_f16 v[0:14], v[16:17], v[18:19], v[0:15] //! 28: `v_mfma_f32_32x32x8_f16` takes 16 of these registers, not 15
    v_mfma_f32_32x32x8_f16 a[0:15], v[16:17], v[18:19], v[0:15] //! 57: `v_mfma_f32_32x32x8_f16`: operand 3, v0, is in another register file than the first
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15] cbsz:8 //! 70: cbsz goes from 0 to 7, 8 is outside
    ds_read_b32 v0, v1 offset:65536                          //! 31: the offset goes from 0 to 65535, 65536 is outside
    ds_read_b32 v0, v1 gds                                   //! 24: `gds` does not exist on gfx942, only on gfx906, gfx908
    ds_read2_b32 v[0:1], v2 offset:4                         //! 29: `ds_read2_b32` does not have the modifier `offset`
    ds_read2_b32 v[0:1], v2 offset0:256                      //! 37: the offset goes from 0 to 255, 256 is outside
    ds_swizzle_b32 v0, v1 offset:swizzle(TWIST,1)            //! 42: no swizzle mode is called `TWIST`
    ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"01x00") //! 55: expected five of `0`, `1`, `p` and `i` between quotes, found `"`
    buffer_load_dword v0, v1, s[0:3], 0                      //! 27: expected `off`, or `offen` or `idxen` after it, found `v1`
    buffer_load_dword v0, off, s[0:3], 0 offen               //! 27: expected a VGPR because of `offen` or `idxen`, found `off`
    buffer_load_dword v0, off, s[0:3], 0 offset:4096         //! 49: the offset goes from 0 to 4095, 4096 is outside
    buffer_load_dword v0, off, s[0:3], 65                    //! 40: expected a scalar register or an inline constant, found `65`
    buffer_load_dword v0, off, s[0:3], 0 glc                 //! 42: `glc` is called `sc0` on gfx942
    buffer_load_dword v0, off, s[1:4], 0                     //! 32: `buffer_load_dword`: operand 2, s1, is not aligned
    global_load_dword v0, v1, off                            //! 27: `global_load_dword` takes 2 of these registers, not 1
    global_load_dword v0, v[2:3], s[4:5]                     //! 27: `global_load_dword` takes 1 of these registers, not 2
    global_load_dword v0, v[2:3], off offset:4096            //! 46: the offset goes from -4096 to 4095, 4096 is outside
    global_load_dword v0, v[2:3]                             //! 62: expected SGPRs or `off`, found the end of the line
    s_waitcnt vmcnt(64)                                      //! 21: the count goes from 0 to 63, 64 is outside
    s_waitcnt vscnt(0)                                       //! 15: no counter is called `vscnt`
    s_waitcnt vmcnt(0                                        //! 62: expected `)`, found the end of the line
    s_getreg_b32 s0, hwreg(HW_REG_NOTHING)                   //! 28: no hardware register is called `HW_REG_NOTHING`
    s_getreg_b32 s0, hwreg(HW_REG_MODE, 32, 1)               //! 41: the first bit goes from 0 to 31, 32 is outside
    s_sendmsg sendmsg(MSG_NOTHING)                           //! 23: no message is called `MSG_NOTHING`
    s_set_gpr_idx_on s0, gpr_idx(SRC3)                       //! 34: expected `SRC0`, `SRC1`, `SRC2` or `DST`, found `SRC3`
    s_branch 0x10000                                         //! 14: the distance of a branch goes from -32768 to 65535, 65536 is outside
    s_movk_i32 s0, 0x10000                                   //! 20: the immediate goes from -32768 to 65535, 65536 is outside
    s_nop                                                    //! 62: expected a number or a symbol, found the end of the line
    .frobnicate 1                                            //! 5: `.frobnicate` is not a known directive
    v_mov_b32_dpp v0, 1.0 row_shl:1                          //! 23: `v_mov_b32`: operand 1 cannot be 1.0
    v_add_f32_sdwa v0, 0x1234, v1                            //! 24: `v_add_f32`: operand 1 cannot be a literal
    s_load_dword exec_lo, s[2:3], 0                            //! 18: `s_load_dword`: operand 0 cannot be exec_lo
    v_ceil_f64 v[0:1], neg(0x40490fdb)                       //! 24: `v_ceil_f64`: no literal in the 64-bit encoding
