; case a constant is made again where it is read
; run allocate
; limits vgprs=4
bb0:
    v_mov_b32 %0:v1, 0x12345
    ds_read_b64 %1:v2, v0
    ds_read_b32 %2:v1, v0
    s_waitcnt lgkmcnt(0)
    v_pk_mul_f32 %1, %1, %1
    v_xor_b32 %1[0], %1[0], %1[1]
    v_xor_b32 %1[1], %1[0], %0
    ds_write_b64 v0, %1
    ds_write_b32 v0, %0
    ds_write_b32 v0, %2
; ---
; sgprs 0, vgprs 4, agprs 1
; 1 to AGPRs; 0 instructions inserted; peak 4 VGPRs at line 4
bb0:
    v_mov_b32 v1, 0x12345
    ds_read_b64 v[2:3], v0
    ds_read_b32 a0, v0
    s_waitcnt lgkmcnt(0)
    v_pk_mul_f32 v[2:3], v[2:3], v[2:3]
    v_xor_b32 v2, v2, v3
    v_xor_b32 v3, v2, v1
    ds_write_b64 v0, v[2:3]
    ds_write_b32 v0, v1
    ds_write_b32 v0, a0

; case not in the loop if something else can leave
; run allocate
; limits vgprs=3 agprs=0 scratch=0
bb0:
    v_mov_b32 %0:v1, 0x111
    v_mov_b32 %1:v1, 0x222
    ds_read_b32 %2:v1, v0
bb1:
    v_add_u32 %2, %2, %0
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 %2, %2, %1
    ds_write_b32 v0, %2
; ---
; sgprs 0, vgprs 3, agprs 0
; 1 rematerialised; 1 instructions inserted; peak 3 VGPRs at line 4
bb0:
    v_mov_b32 v1, 0x111
    ds_read_b32 v2, v0
bb1:
    v_add_u32 v2, v2, v1
    s_cbranch_scc1 bb1
bb2:
    v_mov_b32 v1, 0x222
    v_add_u32 v2, v2, v1
    ds_write_b32 v0, v2

; case scalar constants
; run allocate
; limits sgprs=6
bb0:
    s_mov_b32 %0:s1, 0x10000
    s_movk_i32 %1:s1, -5
    s_mov_b64 %2:s2, -1
    s_load_dwordx2 %3:s2, s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_add_u32 %3[0], %3[0], %0
    s_add_u32 %3[1], %3[1], %1
    s_and_b64 %3, %3, %2
    s_add_u32 %3[0], %3[0], %1
    s_mov_b64 vcc, %3
; ---
; sgprs 6, vgprs 0, agprs 0, vcc
; 3 rematerialised; 3 instructions inserted; peak 0 VGPRs at line 2
bb0:
    s_mov_b32 s4, 0x10000
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_add_u32 s2, s2, s4
    s_movk_i32 s4, 0xfffb
    s_add_u32 s3, s3, s4
    s_mov_b64 s[4:5], -1
    s_and_b64 s[2:3], s[2:3], s[4:5]
    s_movk_i32 s4, 0xfffb
    s_add_u32 s2, s2, s4
    s_mov_b64 vcc, s[2:3]

; case a register with two writes is no constant
; run allocate
; limits vgprs=2 agprs=0
bb0:
    v_mov_b32 %0:v1, 1
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 %0, 2
bb2:
    ds_read_b32 %1:v1, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 v0, %1
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 2, agprs 0
; 1 to scratch, 4 bytes; 3 instructions inserted; peak 2 VGPRs at line 7
bb0:
    v_mov_b32 v1, 1
    scratch_store_dword off, v1, off
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 v1, 2
    scratch_store_dword off, v1, off
bb2:
    ds_read_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 v0, v1
    scratch_load_dword v1, off, off
    ds_write_b32 v0, v1

; case what a matrix instruction reads while lanes may be off is not made again
; run allocate
; limits vgprs=6 agprs=0
bb0:
    v_mov_b32 %0:v1, 0x3f800000
    s_and_saveexec_b64 s[0:1], vcc
    ds_read_b32 %1:v1, v0
    v_mfma_f32_4x4x1_16b_f32 v[0:3], %0, %0, 0
    ds_write_b32 v0, %1
; ---
; sgprs 2, vgprs 6, agprs 0, vcc
bb0:
    v_mov_b32 v4, 1.0
    s_and_saveexec_b64 s[0:1], vcc
    ds_read_b32 v5, v0
    v_mfma_f32_4x4x1_16b_f32 v[0:3], v4, v4, 0
    ds_write_b32 v0, v5

; case a register XORed with a constant is made again of it
; run allocate
; limits vgprs=5 agprs=0 scratch=0
bb0:
    v_lshlrev_b32 %0:v1, 4, v0
    v_xor_b32 %1:v1, 16, %0
    v_xor_b32 %2:v1, 32, %0
    v_xor_b32 %3:v1, 48, %0
    ds_read_b64 %4:v2, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 %0, %4[0]
    ds_write_b32 %1, %4[0]
    ds_write_b32 %2, %4[1]
    ds_write_b32 %3, %4[1]
    ds_write_b32 %0, %4[1]
; ---
; sgprs 0, vgprs 5, agprs 0
; 3 rematerialised; 3 instructions inserted; peak 6 VGPRs at line 6
bb0:
    v_lshlrev_b32 v1, 4, v0
    ds_read_b64 v[2:3], v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 v1, v2
    v_xor_b32 v4, 16, v1
    ds_write_b32 v4, v2
    v_xor_b32 v2, 32, v1
    ds_write_b32 v2, v3
    v_xor_b32 v2, 48, v1
    ds_write_b32 v2, v3
    ds_write_b32 v1, v3

; case not of a base that holds nothing any more
; run allocate
; limits vgprs=4 agprs=0
bb0:
    v_lshlrev_b32 %0:v1, 4, v0
    v_xor_b32 %1:v1, 16, %0
    v_xor_b32 %2:v1, 32, %0
    v_xor_b32 %3:v1, 48, %0
    ds_read_b64 %4:v2, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 %1, %4[0]
    ds_write_b32 %2, %4[1]
    ds_write_b32 %3, %4[1]
; ---
; sgprs 0, vgprs 4, agprs 0
; 3 to scratch, 12 bytes; 6 instructions inserted; peak 5 VGPRs at line 6
bb0:
    v_lshlrev_b32 v1, 4, v0
    v_xor_b32 v2, 16, v1
    scratch_store_dword off, v2, off
    v_xor_b32 v2, 32, v1
    scratch_store_dword off, v2, off offset:4
    v_xor_b32 v1, 48, v1
    scratch_store_dword off, v1, off offset:8
    ds_read_b64 v[2:3], v0
    s_waitcnt lgkmcnt(0)
    scratch_load_dword v1, off, off
    ds_write_b32 v1, v2
    scratch_load_dword v1, off, off offset:4
    ds_write_b32 v1, v3
    scratch_load_dword v1, off, off offset:8
    ds_write_b32 v1, v3

; case not of a base that is written again
; run allocate
; limits vgprs=4 agprs=0
bb0:
    v_lshlrev_b32 %0:v1, 4, v0
    v_xor_b32 %1:v1, 16, %0
    v_xor_b32 %2:v1, 32, %0
    v_add_u32 %0, 1, %0
    ds_read_b64 %4:v2, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 %0, %4[0]
    ds_write_b32 %1, %4[0]
    ds_write_b32 %2, %4[1]
    ds_write_b32 %0, %4[1]
; ---
; sgprs 0, vgprs 4, agprs 0
; 4 to scratch, 16 bytes; 8 instructions inserted; peak 5 VGPRs at line 6
bb0:
    v_lshlrev_b32 v1, 4, v0
    v_xor_b32 v2, 16, v1
    scratch_store_dword off, v2, off
    v_xor_b32 v2, 32, v1
    scratch_store_dword off, v2, off offset:4
    v_add_u32 v1, 1, v1
    ds_read_b64 v[2:3], v0
    scratch_store_dwordx2 off, v[2:3], off offset:8
    s_waitcnt lgkmcnt(0)
    scratch_load_dword v2, off, off offset:8
    ds_write_b32 v1, v2
    scratch_load_dword v2, off, off
    scratch_load_dword v3, off, off offset:8
    ds_write_b32 v2, v3
    scratch_load_dword v2, off, off offset:4
    scratch_load_dword v3, off, off offset:12
    ds_write_b32 v2, v3
    ds_write_b32 v1, v3

; case an XOR is made again right where it was
; run allocate
; limits vgprs=4 agprs=0 scratch=0
bb0:
    v_lshlrev_b32 %0:v1, 2, v0
    v_xor_b32 %1:v1, 64, %0
    ds_read_b32 %2:v1, %1
    v_xor_b32 %3:v1, 32, %0
    ds_read_b32 %4:v1, %3
    s_waitcnt lgkmcnt(0)
    v_add_u32 %4, %2, %4
    ds_write_b32 %1, %4
    ds_write_b32 %3, %4
    ds_write_b32 %0, %4
; ---
; sgprs 0, vgprs 4, agprs 0
; 2 rematerialised; 4 instructions inserted; peak 5 VGPRs at line 6
bb0:
    v_lshlrev_b32 v1, 2, v0
    v_xor_b32 v2, 64, v1
    ds_read_b32 v2, v2
    v_xor_b32 v3, 32, v1
    ds_read_b32 v3, v3
    s_waitcnt lgkmcnt(0)
    v_add_u32 v3, v2, v3
    v_xor_b32 v2, 64, v1
    ds_write_b32 v2, v3
    v_xor_b32 v2, 32, v1
    ds_write_b32 v2, v3
    ds_write_b32 v1, v3
