.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
.set A, 10
.set B, A*2+1
.equ C, (A<<3)|(B&0xf)^1
.equiv D, 7
E = 5
kern:
s_mov_b32 s0, A
s_mov_b32 s1, A+B
s_mov_b32 s2, -A
s_mov_b32 s3, ~A
s_mov_b32 s4, !A
s_mov_b32 s5, A-B*2
s_mov_b32 s6, (A+B)*2
s_mov_b32 s7, 0x7fffffff
s_mov_b32 s8, 0xffffffff
s_mov_b32 s9, 0b1010
s_mov_b32 s10, 017
s_mov_b32 s11, A==10
s_mov_b32 s12, A>B
s_mov_b32 s13, A%3
s_mov_b32 s14, C/3
s_mov_b32 s15, D
s_mov_b32 s16, 'a'
s_mov_b32 s17, 1.0
s_mov_b32 s18, 0.5
s_mov_b32 s19, -4.0
s_mov_b32 s20, 3.14
s_mov_b32 s21, 1e3
s_mov_b64 s[22:23], A
s_mov_b64 s[22:23], -1
s_mov_b64 s[22:23], 0x3ff0000000000000
v_mov_b32 v0, 0x3f800000
v_mov_b32 v1, 1.0
v_mov_b32 v2, -1
v_mov_b32 v[A], v[B]
v_mov_b32 v[A+1], s[E]
v_add_f16 v1, 1.0, v2
v_add_f16 v1, 0x3c00, v2
v_add_f16 v1, 3.0, v2
v_add_f64 v[2:3], 1.0, v[4:5]
v_add_f64 v[2:3], v[4:5], 0.5
v_cvt_f64_f32 v[2:3], 1.0
v_mul_f32 v1, 0.15915494, v2
v_mul_f32 v1, 0x3e22f983, v2
v_pk_add_f16 v1, 1.0, v2
v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel_hi:[0,1,1]
s_add_u32 s[A], s[A+1], s[B]
s_movk_i32 s0, -1
s_movk_i32 s0, 0xffff
s_movk_i32 s0, A*3
s_addk_i32 s1, 0x8000
s_nop A-3
s_sleep 0x7f
s_setprio 3
s_waitcnt vmcnt(A) & lgkmcnt(3)
s_waitcnt vmcnt(63), expcnt(0)
s_waitcnt 0
s_waitcnt 0xf70
s_sendmsg sendmsg(MSG_INTERRUPT)
s_sendmsg 1
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
