.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  v_lshrrev_b32 v2, 6, v0
  s_nop 1
  v_readfirstlane_b32 s20, v2
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s24, s2
  v_mov_b32 v6, 0x8000
  v_mov_b32 v7, 1
  s_cmp_eq_u32 s24, 0
  s_cbranch_scc0 .Lcons
  v_add_u32 v3, 100, v0
  global_store_dword v1, v3, s[6:7]
  buffer_wbl2 sc1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_barrier
  s_cmp_eq_u32 s20, 0
  s_cbranch_scc0 .Lend_
  global_atomic_or v6, v7, s[6:7] sc1
  s_waitcnt vmcnt(0)
  s_branch .Lend_
.Lcons:
.Lspin:
  s_sleep 1
  v_mov_b32 v7, 0
  global_atomic_or v7, v6, v7, s[6:7] sc0 sc1
  s_waitcnt vmcnt(0)
  s_nop 1
  v_readfirstlane_b32 s25, v7
  s_cmp_eq_u32 s25, 0
  s_cbranch_scc1 .Lspin
  buffer_inv sc1
  global_load_dword v8, v1, s[6:7]
  s_waitcnt vmcnt(0)
  global_store_dword v1, v8, s[6:7] offset:1024
.Lend_:

  s_endpgm
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset 128
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 16
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_group_segment_fixed_size 0
  
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version:
  - 1
  - 2
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: 256
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - .size: 8
        .offset: 0
        .value_kind: global_buffer
        .address_space: global
      - .size: 8
        .offset: 8
        .value_kind: global_buffer
        .address_space: global

...
.end_amdgpu_metadata
