.amdgcn_target "amdgcn-amd-amdhsa--gfx906"
.text
.globl kern
.p2align 8
.type kern,@function
// MIOpen-like register allocation
.set .AVAILABLE_VGPRS, 0
.set .AVAILABLE_SGPRS, 0
.set .SGPR_NEXT_FREE, 0
.set .VGPR_NEXT_FREE, 0
.set __auto_gpr_count_guard, 1
.macro .GPR_ALLOC_BEGIN
   .set .SGPR_NEXT_FREE, 0
   .set .VGPR_NEXT_FREE, 0
   .set .AUTO_VGPR_COUNT, 0
   .set .AVAILABLE_VGPRS, 256
   .set .AVAILABLE_SGPRS, 102
.endm
.macro .VGPR_ALLOC __vgpr_name, __vgpr_count=1
   .set \__vgpr_name, .VGPR_NEXT_FREE
   .set .VGPR_NEXT_FREE, .VGPR_NEXT_FREE + \__vgpr_count
   .if .VGPR_NEXT_FREE > .AVAILABLE_VGPRS
      .error "Error: out of free vector registers. .AVAILABLE_VGPRS must be in bounds [0:256]. Check your code"
      .end
   .endif
.endm
.macro .SGPR_ALLOC __sgpr_number_name, __sgpr_number=1, __sgpr_alignment=1, __sgpr_no_alignment_warning=0
   .if .SGPR_NEXT_FREE % \__sgpr_alignment != 0
      .if \__sgpr_no_alignment_warning == 0
        .warning "SGPR"
      .endif
      .set .SGPR_NEXT_FREE, ((.SGPR_NEXT_FREE + \__sgpr_alignment - 1) / \__sgpr_alignment) * \__sgpr_alignment
   .endif
   .set \__sgpr_number_name, .SGPR_NEXT_FREE
   .set .SGPR_NEXT_FREE, .SGPR_NEXT_FREE + \__sgpr_number
.endm
.macro default symbol, value
   .ifnotdef \symbol
      \symbol = \value
   .endif
.endm
.macro static_assert fufufu
   .if !\fufufu
      .error "\fufufu is false"
      .end
   .endif
.endm
.macro log2 lg2, num, max_bits=8
   .set \lg2, 0
   .set .Lnn, \num
   .rept \max_bits
     .if .Lnn > 1
       .set .Lnn, .Lnn >> 1
       \lg2 = \lg2 + 1
     .endif
   .endr
.endm
default batch_size, 16
default batch_size, 17
maxU24 = 1 << 24
invalid_addr_lit = 0x7FFFFFFF
static_assert (batch_size == 16)
log2 lgb, batch_size
.GPR_ALLOC_BEGIN
.SGPR_ALLOC s_in_ptr, 2
.SGPR_ALLOC s_one
.SGPR_ALLOC s_desc, 4, 4, 1
.VGPR_ALLOC v_tid
.VGPR_ALLOC v_acc, batch_size
.macro fma_row acc, k
  .set .Li, 0
  .rept 4
    v_fma_f32 v[\acc+.Li], v[v_tid], s[s_desc+.Li], v[\acc+.Li]
    .if (.Li & 1) && (\k > 2)
       v_mac_f32 v[\acc+.Li], s[s_one], v[v_tid]
    .endif
    .set .Li, .Li + 1
  .endr
.endm
.macro m_loop count
loop_begin_\@:
  s_sub_u32 s[s_one], s[s_one], 1
  s_cmp_gt_i32 s[s_one], \count
  s_cbranch_scc1 loop_begin_\@
.endm
kern:
  s_load_dwordx2 s[s_in_ptr:s_in_ptr+1], s[0:1], 0x0
  s_mov_b32 s[s_desc+3], 0x00027000
  s_mov_b32 s[s_one], maxU24
  s_mov_b32 s[s_one], invalid_addr_lit
  fma_row v_acc, 3
  fma_row v_acc+4, 2
  m_loop 4
  m_loop (lgb*2)
  v_mul_u32_u24 v[v_acc], 0+batch_size*4, v[v_tid]
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
