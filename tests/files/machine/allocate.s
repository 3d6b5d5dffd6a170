; case dead sources give their register to the result
; run allocate
bb0:
    v_mov_b32 %0:v1, 1
    v_add_u32 %1:v1, %0, %0
    v_add_u32 %2:v1, %1, %1
    global_store_dword %2, %2, s[0:1]
; ---
; sgprs 2, vgprs 1, agprs 0
bb0:
    v_mov_b32 v0, 1
    v_add_u32 v0, v0, v0
    v_add_u32 v0, v0, v0
    global_store_dword v0, v0, s[0:1]

; case kernel inputs have their place
; run allocate
; fixed %0=s[0:1] %1=s2 %2=v0
bb0:
    s_load_dwordx4 %3:s4, %0:s2, 0x0
    s_lshl_b32 %4:s1, %1:s1, 8
    v_add_u32 %5:v1, %4, %2:v1
    s_waitcnt lgkmcnt(0)
    global_load_dword %6:v1, %5, %3[0:1]
    s_waitcnt vmcnt(0)
    global_store_dword %5, %6, %3[2:3]
    s_endpgm
; ---
; sgprs 8, vgprs 2, agprs 0
bb0:
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_lshl_b32 s0, s2, 8
    v_add_u32 v0, s0, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v1, v0, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dword v0, v1, s[6:7]
    s_endpgm

; case tuples are aligned, singles fill the gaps
; run allocate
bb0:
    v_mov_b32 %0:v1, 0
    global_load_dwordx3 %1:v3, %0, s[0:1]
    v_mov_b32 %2:v1, 1
    global_load_dwordx2 %3:v2, %0, s[0:1]
    v_add_u32 %4:v1, %1[2], %2
    v_add_u32 %4, %3[0], %4
    v_add_u32 %4, %3[1], %4
    global_store_dword %1[0], %4, s[0:1]
    global_store_dword %1[1], %0, s[0:1]
; ---
; sgprs 2, vgprs 7, agprs 0
bb0:
    v_mov_b32 v3, 0
    global_load_dwordx3 v[0:2], v3, s[0:1]
    v_mov_b32 v6, 1
    global_load_dwordx2 v[4:5], v3, s[0:1]
    v_add_u32 v2, v2, v6
    v_add_u32 v2, v4, v2
    v_add_u32 v2, v5, v2
    global_store_dword v0, v2, s[0:1]
    global_store_dword v1, v3, s[0:1]

; case scalar tuples
; run allocate
bb0:
    s_mov_b32 %0:s1, 0
    s_load_dwordx2 %1:s2, s[0:1], 0x0
    s_load_dwordx4 %2:s4, s[0:1], 0x10
    s_load_dwordx8 %3:s8, s[0:1], 0x20
    s_add_u32 %0, %0, %1[0]
    s_add_u32 %0, %1[1], %2[3]
    s_add_u32 %0, %2[0], %3[7]
    v_mov_b32 v0, %0
; ---
; sgprs 17, vgprs 1, agprs 0
bb0:
    s_mov_b32 s16, 0
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_load_dwordx4 s[12:15], s[0:1], 0x10
    s_load_dwordx8 s[4:11], s[0:1], 0x20
    s_add_u32 s16, s16, s2
    s_add_u32 s16, s3, s15
    s_add_u32 s16, s12, s11
    v_mov_b32 v0, s16

; case accumulators through a loop are tied and stay at the bottom
; run allocate
bb0:
    v_mov_b32 %0:v1, 0
    v_mov_b32 %1[0]:v4, 0
    v_mov_b32 %1[1], 0
    v_mov_b32 %1[2], 0
    v_mov_b32 %1[3], 0
bb1:
    ds_read_b64 %2:v2, %0
    ds_read_b64 %3:v2, %0 offset:8
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_16x16x16_f16 %1, %2, %3, %1
    s_cbranch_scc1 bb1
bb2:
    global_store_dwordx4 %0, %1, s[0:1]
; ---
; sgprs 2, vgprs 9, agprs 0
bb0:
    v_mov_b32 v8, 0
    v_mov_b32 v0, 0
    v_mov_b32 v1, 0
    v_mov_b32 v2, 0
    v_mov_b32 v3, 0
bb1:
    ds_read_b64 v[4:5], v8
    ds_read_b64 v[6:7], v8 offset:8
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
    s_cbranch_scc1 bb1
bb2:
    global_store_dwordx4 v8, v[0:3], s[0:1]

; case a matrix result does not fall on A or B although they die
; run allocate
bb0:
    ds_read_b64 %0:v2, v0
    ds_read_b64 %1:v2, v0
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %1, 0
    global_store_dwordx4 v0, %2, s[0:1]
; ---
; sgprs 2, vgprs 10, agprs 0
bb0:
    ds_read_b64 v[6:7], v0
    ds_read_b64 v[8:9], v0
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[8:9], 0
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case AGPR accumulators
; run allocate
bb0:
    v_accvgpr_write_b32 %0[0]:a4, 0
    v_accvgpr_write_b32 %0[1], 0
    v_accvgpr_write_b32 %0[2], 0
    v_accvgpr_write_b32 %0[3], 0
    v_mfma_f32_16x16x16_f16 %0, v[0:1], v[2:3], %0
    v_accvgpr_read_b32 %1:v1, %0[2]
    global_store_dword v4, %1, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 4
bb0:
    v_accvgpr_write_b32 a0, 0
    v_accvgpr_write_b32 a1, 0
    v_accvgpr_write_b32 a2, 0
    v_accvgpr_write_b32 a3, 0
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
    v_accvgpr_read_b32 v5, a2
    global_store_dword v4, v5, s[0:1]

; case a copy disappears when both sides can share
; run allocate
bb0:
    global_load_dword %0:v1, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mov_b32 %1:v1, %0
    v_add_u32 %1, %1, v0
    s_mov_b32 %2:s1, s2
    s_mov_b32 %3:s1, %2
    v_add_u32 %1, %3, %1
    global_store_dword v0, %1, s[0:1]
; ---
; sgprs 4, vgprs 2, agprs 0
bb0:
    global_load_dword v1, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_add_u32 v1, v1, v0
    s_mov_b32 s3, s2
    v_add_u32 v1, s3, v1
    global_store_dword v0, v1, s[0:1]

; case a copy stays when the source lives on
; run allocate
bb0:
    global_load_dword %0:v1, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mov_b32 %1:v1, %0
    v_add_u32 %1, %1, v0
    v_add_u32 %1, %1, %0
    global_store_dword v0, %1, s[0:1]
; ---
; sgprs 2, vgprs 3, agprs 0
bb0:
    global_load_dword v1, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mov_b32 v2, v1
    v_add_u32 v2, v2, v0
    v_add_u32 v2, v2, v1
    global_store_dword v0, v2, s[0:1]

; case a rotating value whose copies would overlap keeps its copy
; run allocate
bb0:
    global_load_dword %0:v1, v0, s[0:1]
bb1:
    global_load_dword %1:v1, v0, s[0:1] offset:64
    s_waitcnt vmcnt(1)
    ds_write_b32 v0, %0
    v_mov_b32 %0, %1
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 0
bb0:
    global_load_dword v1, v0, s[0:1]
bb1:
    global_load_dword v2, v0, s[0:1] offset:64
    s_waitcnt vmcnt(1)
    ds_write_b32 v0, v1
    v_mov_b32 v1, v2
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, v1

; case a rotating value whose copies follow each other loses the copy
; run allocate
bb0:
    global_load_dword %0:v1, v0, s[0:1]
bb1:
    s_waitcnt vmcnt(0)
    ds_write_b32 v0, %0
    global_load_dword %1:v1, v0, s[0:1] offset:64
    v_mov_b32 %2:v1, 0
    ds_write_b32 v0, %2
    v_mov_b32 %0, %1
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 0
bb0:
    global_load_dword v1, v0, s[0:1]
bb1:
    s_waitcnt vmcnt(0)
    ds_write_b32 v0, v1
    global_load_dword v1, v0, s[0:1] offset:64
    v_mov_b32 v2, 0
    ds_write_b32 v0, v2
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, v1

; case the hole of a reloaded register is used
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
bb1:
    s_waitcnt vmcnt(0)
    ds_write_b128 v0, %0
    ds_read_b128 %1:v4, v0
    s_waitcnt lgkmcnt(0)
    v_add_f32 %2:v1, %1[0], %1[1]
    v_add_f32 %2, %1[2], %2
    ds_write_b32 v0, %2 offset:64
    global_load_dwordx4 %0, v0, s[0:1]
    s_cbranch_scc1 bb1
bb2:
    s_endpgm
; ---
; sgprs 2, vgprs 6, agprs 0
bb0:
    global_load_dwordx4 v[2:5], v0, s[0:1]
bb1:
    s_waitcnt vmcnt(0)
    ds_write_b128 v0, v[2:5]
    ds_read_b128 v[2:5], v0
    s_waitcnt lgkmcnt(0)
    v_add_f32 v1, v2, v3
    v_add_f32 v1, v4, v1
    ds_write_b32 v0, v1 offset:64
    global_load_dwordx4 v[2:5], v0, s[0:1]
    s_cbranch_scc1 bb1
bb2:
    s_endpgm

; case a value written on one side of a branch keeps its place on the other
; run allocate
bb0:
    v_mov_b32 %0:v1, 1
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 %1:v1, 2
    v_add_u32 %0, %1, %1
    s_branch bb3
bb2:
    v_mov_b32 %2:v1, 3
    ds_write_b32 v0, %2
bb3:
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 3, agprs 0
bb0:
    v_mov_b32 v1, 1
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 v1, 2
    v_add_u32 v1, v1, v1
    s_branch bb3
bb2:
    v_mov_b32 v2, 3
    ds_write_b32 v0, v2
bb3:
    ds_write_b32 v0, v1

; case lanes that are off keep the old value
; run allocate
bb0:
    v_mov_b32 %0:v1, 1
    s_and_saveexec_b64 %1:s2, vcc
    v_mov_b32 %2:v1, 2
    v_add_u32 %3:v1, %2, %2
    v_mov_b32 %0, %3
    s_mov_b64 exec, %1
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 0, vcc
bb0:
    v_mov_b32 v1, 1
    s_and_saveexec_b64 s[0:1], vcc
    v_mov_b32 v2, 2
    v_add_u32 v2, v2, v2
    v_mov_b32 v1, v2
    s_mov_b64 exec, s[0:1]
    ds_write_b32 v0, v1

; case out of VGPRs
; run allocate
; limits vgprs=8
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    global_store_dwordx4 v0, %0, s[0:1]
    global_store_dwordx4 v0, %1, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 4
; 4 to AGPRs; 0 instructions inserted; peak 8 VGPRs at line 3
bb0:
    global_load_dwordx4 a[0:3], v0, s[0:1]
    global_load_dwordx4 v[2:5], v0, s[0:1]
    s_waitcnt vmcnt(0)
    global_store_dwordx4 v0, a[0:3], s[0:1]
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case out of SGPRs
; run allocate
; limits sgprs=12
bb0:
    s_load_dwordx8 %0:s8, s[0:1], 0x0
    s_load_dwordx8 %1:s8, s[0:1], 0x20
    s_waitcnt lgkmcnt(0)
    s_add_u32 %0[0], %0[0], %1[7]
    s_add_u32 %0[0], %0[0], %0[7]
; ---
; sgprs 12, vgprs 1, agprs 0
; 8 to lanes; 12 instructions inserted; peak 10 SGPRs at line 3
bb0:
    s_load_dwordx8 s[4:11], s[0:1], 0x0
    v_writelane_b32 v0, s4, 0
    v_writelane_b32 v0, s5, 1
    v_writelane_b32 v0, s6, 2
    v_writelane_b32 v0, s7, 3
    v_writelane_b32 v0, s8, 4
    v_writelane_b32 v0, s9, 5
    v_writelane_b32 v0, s10, 6
    v_writelane_b32 v0, s11, 7
    s_load_dwordx8 s[4:11], s[0:1], 0x20
    s_waitcnt lgkmcnt(0)
    v_readlane_b32 s10, v0, 0
    s_add_u32 s10, s10, s11
    v_writelane_b32 v0, s10, 0
    v_readlane_b32 s11, v0, 7
    s_add_u32 s10, s10, s11
    v_writelane_b32 v0, s10, 0

; case VGPRs and AGPRs share one limit
; run allocate
; limits vectors=8
bb0:
    v_mov_b32 %0:v1, 0
    v_mov_b32 %1[0]:v4, 0
    v_mov_b32 %1[1], 0
    v_mov_b32 %1[2], 0
    v_mov_b32 %1[3], 0
    v_accvgpr_write_b32 %2:a1, %0
    global_store_dwordx4 %0, %1, s[0:1]
    global_store_dword %0, %2, s[0:1]
; ---
; error: out of VGPRs: 5 are needed at once, 4 are available, at line 8

; case two inputs in one place
; run allocate
; fixed %0=s[0:1] %1=s1
bb0:
    s_add_u32 %0[0]:s2, %1:s1, %0[1]
    s_mov_b32 m0, %0[0]
; ---
; error: %1 cannot be placed at s1

; case an input keeps the lanes that its only write leaves out
; run allocate
; fixed %0=v0 %1=s[0:1]
bb0:
    s_mov_b64 exec, %1:s2
    v_mov_b32 %2:v1, 1.0
    global_store_dword %2, %2, s[4:5]
    v_mov_b32 %0:v1, 2.0
    s_mov_b64 exec, -1
    global_store_dword %0, %0, s[4:5]
; ---
; sgprs 6, vgprs 2, agprs 0
bb0:
    s_mov_b64 exec, s[0:1]
    v_mov_b32 v1, 1.0
    global_store_dword v1, v1, s[4:5]
    v_mov_b32 v0, 2.0
    s_mov_b64 exec, -1
    global_store_dword v0, v0, s[4:5]
