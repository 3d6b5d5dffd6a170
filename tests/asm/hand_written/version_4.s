.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl kern
.p2align 8
.type kern,@function
.amdhsa_code_object_version 4
kern:
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
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
- .name: kern
  .symbol: kern.kd
  .kernarg_segment_size: 8
  .group_segment_fixed_size: 0
  .private_segment_fixed_size: 0
  .kernarg_segment_align: 8
  .wavefront_size: 64
  .sgpr_count: 8
  .vgpr_count: 8
  .max_flat_workgroup_size: 64
  .args: []
.end_amdgpu_metadata
