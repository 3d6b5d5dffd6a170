.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text
.globl kern
.p2align 8
.type kern,@function
/******************************************/
/* Function Prefix                        */
/******************************************/
.set vgprBase, 0
.set vgprValuC, vgprBase+0
.set vgprValuA_X0_I0, vgprValuC+16
.set vgprSerial, 31
.set sgprKernArgAddress, 0
.set sgprWorkGroup0, 2
.set sgprLoopCounterL, 4
.set sgprTmp, 8
.set BufferLimit, 0xffffffff
.set BufferOOB, 0x80000000
.set MT0, 256
.set Srd127_96, 0x00020000
/* Global Offset A */
.macro GLOBAL_OFFSET_A vgprAddr:req, vgprOffsetL:req, vgprOffset0I:req, vgprTmp:req
v_mul_lo_u32 v[\vgprTmp+0], s[sgprTmp], v[\vgprOffset0I]   // mul d1 lower
v_add_co_u32 v[\vgprAddr+0], vcc, v[\vgprOffsetL], v[\vgprTmp+0] // accumulate K lower
v_add_u32 v[\vgprAddr+0], 0x8, v[\vgprAddr+0]              // add prepad for pointer shift
v_lshlrev_b32 v[\vgprAddr+0], 0x1, v[\vgprAddr+0]          // offset *= bytes/element
.endm
.macro V_MAGIC_DIV dstIdx, dividend, magicNumber, magicShift, magicA
    v_mul_hi_u32 v[\dstIdx+1], \dividend, \magicNumber
    v_mul_lo_u32 v[\dstIdx+0], \dividend, \magicA
    v_add_u32 v[\dstIdx+0], v[\dstIdx+0], v[\dstIdx+1]
    v_lshrrev_b32 v[\dstIdx+0], \magicShift, v[\dstIdx+0]
.endm
.macro PRINT val
.endm
kern:
label_ASM_Start:  /// Main body of the asm kernel
s_mov_b32 m0, 0x8400                               // LDS clamp at 33792 bytes
v_mov_b32 v[vgprSerial], v0                        // thread serial id
s_load_dwordx4 s[4:7], s[sgprKernArgAddress:sgprKernArgAddress+1], 0x0
s_waitcnt lgkmcnt(0)                               // wait for 224 bytes of kern args
v_and_b32 v1, 63, v[vgprSerial]                    // v1 = v[vgprSerial] % 64
GLOBAL_OFFSET_A vgprValuA_X0_I0,  1,  2,3
V_MAGIC_DIV 6, v1, s[sgprTmp], s9, s10
s_mul_i32 s[sgprTmp+0], s[sgprWorkGroup0], 256     // WorkGroup[01] * MT
s_mul_hi_u32 s[sgprTmp+1], s[sgprWorkGroup0], MT0
s_cmp_eq_u32 s[sgprLoopCounterL], 0
s_cbranch_scc1 label_LoopEndL
s_getpc_b64 s[12:13]
s_add_i32 s14, label_LoopEndL, 0x4
s_add_u32 s12, s12, s14
s_addc_u32 s13, s13, 0
s_setpc_b64 s[12:13]
label_LoopBeginL:
v_mfma_f32_32x32x8f16 a[0:15], v[vgprValuA_X0_I0+0:vgprValuA_X0_I0+0+1], v[vgprValuC+2:vgprValuC+2+1], a[0:15]
v_mfma_f32_32x32x8f16 v[vgprValuC:vgprValuC+15], v[vgprValuA_X0_I0+0:vgprValuA_X0_I0+1], v[16:17], v[vgprValuC+0:vgprValuC+15] cbsz:0 abid:0
s_sub_u32 s[sgprLoopCounterL], s[sgprLoopCounterL], 1
s_cmp_eq_i32 s[sgprLoopCounterL], 0x0
s_cbranch_scc0 label_LoopBeginL
label_LoopEndL:
buffer_store_dwordx4 v[0:3], v4, s[4:7], 0 offen offset:0 // store D
buffer_load_dwordx2 v[0:1], v4, s[4:7], 0 offen offset:0x10 glc slc
ds_write_b128 v5, v[0:3] offset:0x40+16
ds_read_u16_d16_hi v5, v6 offset:MT0
v_cndmask_b32 v1, v2, v3, s[34:35]
v_cmp_lt_u32 s[34:35], v0, s5
v_add3_u32 v1, v2, v3, v4
v_lshl_add_u32 v1, v2, 0x2, v3
s_nop 0
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
