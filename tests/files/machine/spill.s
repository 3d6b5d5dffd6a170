; case what is used least in loops is spilled
; run allocate
; limits vgprs=4 agprs=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
bb1:
    v_add_u32 %1, %1, %2
    v_add_u32 %2, %2, %3
    v_add_u32 %3, %3, %1
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 %1, %1, %2
    v_add_u32 %1, %1, %3
    v_add_u32 %1, %1, %0
    ds_write_b32 v0, %1
; ---
; sgprs 0, vgprs 4, agprs 0
; 1 to scratch, 4 bytes; 2 instructions inserted; peak 4 VGPRs at line 5
bb0:
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
bb1:
    v_add_u32 v1, v1, v2
    v_add_u32 v2, v2, v3
    v_add_u32 v3, v3, v1
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 v1, v1, v2
    v_add_u32 v1, v1, v3
    scratch_load_dword v2, off, off
    v_add_u32 v1, v1, v2
    ds_write_b32 v0, v1

; case tuples in wide accesses
; run allocate
; limits vgprs=10 agprs=0
bb0:
    ds_read_b128 %0[0:3]:v7, v0
    ds_read_b64 %0[4:5], v0
    ds_read_b32 %0[6], v0
    ds_read_b128 %1[0:3]:v8, v0
    ds_read_b128 %1[4:7], v0
    v_mfma_f32_16x16x16_f16 %1[0:3], %1[4:5], %1[6:7], %1[0:3]
    ds_write_b128 v0, %1[0:3]
    ds_write_b128 v0, %0[0:3]
    ds_write_b96 v0, %0[4:6]
; ---
; sgprs 0, vgprs 10, agprs 0
; 7 to scratch, 28 bytes; 5 instructions inserted; peak 15 VGPRs at line 6
bb0:
    ds_read_b128 v[2:5], v0
    scratch_store_dwordx4 off, v[2:5], off
    ds_read_b64 v[2:3], v0
    scratch_store_dwordx2 off, v[2:3], off offset:16
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off offset:24
    ds_read_b128 v[2:5], v0
    ds_read_b128 v[6:9], v0
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[8:9], v[2:5]
    ds_write_b128 v0, v[2:5]
    scratch_load_dwordx4 v[2:5], off, off
    ds_write_b128 v0, v[2:5]
    scratch_load_dwordx3 v[2:4], off, off offset:16
    ds_write_b96 v0, v[2:4]

; case the accumulator of a matrix instruction in scratch is loaded and stored whole
; run allocate
; limits vgprs=10 agprs=0
bb0:
    ds_read_b128 %0:v4, v0
    ds_read_b128 %1:v4, v0
bb1:
    v_mfma_f32_16x16x16_f16 %0, v[0:1], v[2:3], %0
    v_mfma_f32_16x16x16_f16 %1, v[0:1], v[2:3], %1
    s_cbranch_scc1 bb1
bb2:
    ds_write_b128 v0, %0
    ds_write_b128 v0, %1
; ---
; sgprs 0, vgprs 8, agprs 0
; 8 to scratch, 32 bytes; 8 instructions inserted; peak 8 VGPRs at line 3
bb0:
    ds_read_b128 v[4:7], v0
    scratch_store_dwordx4 off, v[4:7], off
    ds_read_b128 v[4:7], v0
    scratch_store_dwordx4 off, v[4:7], off offset:16
bb1:
    scratch_load_dwordx4 v[4:7], off, off
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
    scratch_store_dwordx4 off, v[4:7], off
    scratch_load_dwordx4 v[4:7], off, off offset:16
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
    scratch_store_dwordx4 off, v[4:7], off offset:16
    s_cbranch_scc1 bb1
bb2:
    scratch_load_dwordx4 v[4:7], off, off
    ds_write_b128 v0, v[4:7]
    scratch_load_dwordx4 v[4:7], off, off offset:16
    ds_write_b128 v0, v[4:7]

; case a write of some lanes stores these lanes
; run allocate
; limits vgprs=3 agprs=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_add_u32 %0, v0, v0
    v_add_u32 %2:v1, v0, %1
    v_add_u32 %3:v1, %2, %1
    ds_write2_b32 v0, %3, %2 offset0:0 offset1:1
    s_mov_b64 exec, s[0:1]
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 0, vcc
; 1 to scratch, 4 bytes; 3 instructions inserted; peak 3 VGPRs at line 6
bb0:
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off
    ds_read_b32 v1, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_add_u32 v2, v0, v0
    scratch_store_dword off, v2, off
    v_add_u32 v2, v0, v1
    v_add_u32 v1, v2, v1
    ds_write2_b32 v0, v1, v2 offset1:1
    s_mov_b64 exec, s[0:1]
    scratch_load_dword v1, off, off
    ds_write_b32 v0, v1

; case what looks at all lanes while some may be off stays where it is
; run allocate
; limits vgprs=4 agprs=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_readlane_b32 s2, %0, 5
    v_readfirstlane_b32 s3, %1
    ds_write_b32 v0, %3
    ds_write_b32 v0, %2
    ds_write_b32 v0, %1
    ds_write_b32 v0, %0
; ---
; sgprs 4, vgprs 4, agprs 0, vcc
; 1 to scratch, 4 bytes; 2 instructions inserted; peak 4 VGPRs at line 5
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    scratch_store_dword off, v3, off
    ds_read_b32 v3, v0
    s_and_saveexec_b64 s[0:1], vcc
    v_readlane_b32 s2, v1, 5
    v_readfirstlane_b32 s3, v2
    ds_write_b32 v0, v3
    scratch_load_dword v3, off, off
    ds_write_b32 v0, v3
    ds_write_b32 v0, v2
    ds_write_b32 v0, v1

; case an instruction that updates its result
; run allocate
; limits vgprs=3 agprs=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    v_fmac_f32 %0, %1, %1
    v_fmac_f32 %1, %2, %2
    v_fmac_f32 %2, %1, %1
    ds_write_b32 v0, %0
    ds_write_b32 v0, %1
    ds_write_b32 v0, %2
; ---
; sgprs 0, vgprs 3, agprs 0
; 2 to scratch, 8 bytes; 8 instructions inserted; peak 3 VGPRs at line 4
bb0:
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    scratch_store_dword off, v2, off offset:4
    scratch_load_dword v2, off, off
    v_fmac_f32 v2, v1, v1
    scratch_store_dword off, v2, off
    scratch_load_dword v2, off, off offset:4
    v_fmac_f32 v1, v2, v2
    v_fmac_f32 v2, v1, v1
    scratch_store_dword off, v2, off offset:4
    scratch_load_dword v2, off, off
    ds_write_b32 v0, v2
    ds_write_b32 v0, v1
    scratch_load_dword v1, off, off offset:4
    ds_write_b32 v0, v1

; case copies to and from scratch need no register in between
; run allocate
; limits vgprs=3 agprs=0
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    v_mov_b32 %2:v1, %0
    ds_read_b32 %3:v1, v0
    v_add_u32 %0, %0, %3
    v_add_u32 %0, %0, %1
    v_mov_b32 %4:v1, %2
    v_add_u32 %4, %4, %0
    v_add_u32 %2, %2, %4
    ds_write_b32 v0, %4
    ds_write_b32 v0, %2
; ---
; sgprs 0, vgprs 3, agprs 0
; 2 to scratch, 8 bytes; 7 instructions inserted; peak 4 VGPRs at line 5
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    scratch_store_dword off, v2, off
    scratch_store_dword off, v1, off offset:4
    ds_read_b32 v2, v0
    v_add_u32 v1, v1, v2
    scratch_load_dword v2, off, off
    v_add_u32 v1, v1, v2
    scratch_load_dword v2, off, off offset:4
    v_add_u32 v2, v2, v1
    scratch_load_dword v1, off, off offset:4
    v_add_u32 v1, v1, v2
    scratch_store_dword off, v1, off offset:4
    ds_write_b32 v0, v2
    scratch_load_dword v1, off, off offset:4
    ds_write_b32 v0, v1

; case kernel inputs
; run allocate
; fixed %0=v0 %1=s[0:1]
; limits vgprs=2 agprs=0
bb0:
    v_mov_b32 %2:v1, 0
    ds_read_b32 %3:v1, %2
    v_add_u32 %3, %3, %2
    global_store_dword %2, %3, %1:s2
    v_add_u32 %2, %2, %3
    v_add_u32 %2, %2, %0:v1
    global_store_dword %2, %2, %1
; ---
; sgprs 2, vgprs 2, agprs 0
; 1 to scratch, 4 bytes; 2 instructions inserted; peak 3 VGPRs at line 3
bb0:
    scratch_store_dword off, v0, off
    v_mov_b32 v0, 0
    ds_read_b32 v1, v0
    v_add_u32 v1, v1, v0
    global_store_dword v0, v1, s[0:1]
    v_add_u32 v0, v0, v1
    scratch_load_dword v1, off, off
    v_add_u32 v0, v0, v1
    global_store_dword v0, v0, s[0:1]

; case what one instruction needs is not there
; run allocate
; limits vgprs=8 agprs=0
bb0:
    ds_read_b128 %0:v4, v0
    ds_read_b64 %1:v2, v0
    ds_read_b64 %2:v2, v0
    v_mfma_f32_16x16x16_f16 %0, %1, %2, %0
    ds_write_b128 v0, %0
; ---
; error: out of VGPRs: 9 are needed at once, 8 are available, at line 5

; case without scratch
; run allocate
; limits vgprs=4 agprs=0 scratch=0
bb0:
    ds_read_b128 %0:v4, v0
    ds_read_b32 %1:v1, v0
    ds_write_b32 v0, %1
    ds_write_b128 v0, %0
; ---
; error: out of VGPRs: 6 are needed at once, 4 are available, at line 3

; case scratch for one register where two have to leave
; run allocate
; limits vgprs=3 agprs=0 scratch=4
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
    ds_write_b32 v0, %3
    ds_write_b32 v0, %2
    ds_write_b32 v0, %1
    ds_write_b32 v0, %0
; ---
; error: out of VGPRs: 4 are needed at once, 3 are available, at line 5

; case scratch for both
; run allocate
; limits vgprs=3 agprs=0 scratch=8
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
    ds_write_b32 v0, %3
    ds_write_b32 v0, %2
    ds_write_b32 v0, %1
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 3, agprs 0
; 2 to scratch, 8 bytes; 4 instructions inserted; peak 4 VGPRs at line 5
bb0:
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off
    ds_read_b32 v1, v0
    scratch_store_dword off, v1, off offset:4
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_write_b32 v0, v2
    ds_write_b32 v0, v1
    scratch_load_dword v1, off, off offset:4
    ds_write_b32 v0, v1
    scratch_load_dword v1, off, off
    ds_write_b32 v0, v1

; case hazards and waits around spill code
; run allocate waits hazards
; limits vgprs=4 agprs=0 sgprs=4
bb0:
    s_load_dwordx2 %0:s2, s[0:1], 0x0
    s_load_dword %1:s1, s[0:1], 0x8
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
    ds_read_b32 %4:v1, v0
    v_add_u32 %2, %1, %2
    v_add_u32 %3, %2, %3
    v_add_u32 %4, %3, %4
    global_store_dword v0, %2, %0
    global_store_dword v0, %3, %0
    global_store_dword v0, %4, %0
; ---
; sgprs 4, vgprs 4, agprs 0
; 2 to lanes, 2 to scratch, 8 bytes; 12 instructions inserted; peak 3 SGPRs at line 3
bb0:
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    v_writelane_b32 v1, s2, 0
    v_writelane_b32 v1, s3, 1
    s_load_dword s2, s[0:1], 0x8
    ds_read_b32 v2, v0
    s_waitcnt lgkmcnt(0)
    scratch_store_dword off, v2, off
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    s_waitcnt lgkmcnt(0)
    scratch_store_dword off, v3, off offset:4
    s_nop 0
    scratch_load_dword v3, off, off
    s_waitcnt vmcnt(0)
    v_add_u32 v3, s2, v3
    scratch_store_dword off, v3, off
    v_add_u32 v2, v3, v2
    scratch_load_dword v3, off, off offset:4
    s_waitcnt vmcnt(0)
    v_add_u32 v3, v2, v3
    scratch_store_dword off, v3, off offset:4
    v_readlane_b32 s2, v1, 0
    v_readlane_b32 s3, v1, 1
    scratch_load_dword v1, off, off
    s_waitcnt vmcnt(0)
    s_nop 2
    global_store_dword v0, v1, s[2:3]
    global_store_dword v0, v2, s[2:3]
    s_nop 0
    scratch_load_dword v1, off, off offset:4
    s_waitcnt vmcnt(0)
    global_store_dword v0, v1, s[2:3]
