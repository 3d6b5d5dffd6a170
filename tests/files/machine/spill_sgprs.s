; case scalar registers go to lanes of a VGPR
; run allocate
; limits sgprs=6
bb0:
    s_load_dwordx2 %0:s2, s[0:1], 0x0
    s_load_dwordx2 %1:s2, s[0:1], 0x8
    s_load_dwordx2 %2:s2, s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_add_u32 %1[0], %1[0], %2[0]
    s_addc_u32 %1[1], %1[1], %2[1]
    v_mov_b32 %3:v1, %1[0]
    global_store_dword v0, %3, %2
    global_store_dword v0, %3, %0
; ---
; sgprs 6, vgprs 3, agprs 0
; 2 to lanes; 4 instructions inserted; peak 6 SGPRs at line 4
bb0:
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_writelane_b32 v1, s2, 0
    v_writelane_b32 v1, s3, 1
    s_load_dwordx2 s[2:3], s[0:1], 0x8
    s_load_dwordx2 s[4:5], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_add_u32 s2, s2, s4
    s_addc_u32 s3, s3, s5
    v_mov_b32 v2, s2
    global_store_dword v0, v2, s[4:5]
    v_readlane_b32 s2, v1, 0
    v_readlane_b32 s3, v1, 1
    global_store_dword v0, v2, s[2:3]

; case what the loop does not read
; run allocate
; limits sgprs=6
bb0:
    s_load_dword %0:s1, s[0:1], 0x0
    s_load_dword %1:s1, s[0:1], 0x4
    s_load_dword %2:s1, s[0:1], 0x8
    s_load_dword %3:s1, s[0:1], 0xc
    s_load_dword %4:s1, s[0:1], 0x10
bb1:
    s_add_u32 %1, %1, %2
    s_add_u32 %2, %2, %3
    s_cmp_lt_u32 %1, %4
    s_cbranch_scc1 bb1
bb2:
    s_add_u32 %1, %1, %0
    v_mov_b32 v0, %1
; ---
; sgprs 6, vgprs 2, agprs 0
; 1 to lanes; 2 instructions inserted; peak 5 SGPRs at line 6
bb0:
    s_load_dword s2, s[0:1], 0x0
    v_writelane_b32 v1, s2, 0
    s_load_dword s2, s[0:1], 0x4
    s_load_dword s3, s[0:1], 0x8
    s_load_dword s4, s[0:1], 0xc
    s_load_dword s5, s[0:1], 0x10
bb1:
    s_add_u32 s2, s2, s3
    s_add_u32 s3, s3, s4
    s_cmp_lt_u32 s2, s5
    s_cbranch_scc1 bb1
bb2:
    v_readlane_b32 s3, v1, 0
    s_add_u32 s2, s2, s3
    v_mov_b32 v0, s2

; case a mask saved across other masks: lanes are read and written whatever EXEC is
; run allocate
; limits sgprs=4
bb0:
    ds_read_b32 %0:v1, v0
    s_and_saveexec_b64 %1:s2, vcc
    s_load_dwordx2 %2:s2, s[0:1], 0x0
    s_and_saveexec_b64 %3:s2, vcc
    v_add_u32 %0, %0, v0
    s_mov_b64 exec, %3
    global_store_dword v0, %0, %2
    s_mov_b64 exec, %1
    ds_write_b32 v0, %0
; ---
; sgprs 4, vgprs 3, agprs 0, vcc
; 4 to lanes; 8 instructions inserted; peak 6 SGPRs at line 5
bb0:
    ds_read_b32 v2, v0
    s_and_saveexec_b64 s[2:3], vcc
    v_writelane_b32 v1, s2, 0
    v_writelane_b32 v1, s3, 1
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_writelane_b32 v1, s2, 2
    v_writelane_b32 v1, s3, 3
    s_and_saveexec_b64 s[2:3], vcc
    v_add_u32 v2, v2, v0
    s_mov_b64 exec, s[2:3]
    v_readlane_b32 s2, v1, 2
    v_readlane_b32 s3, v1, 3
    global_store_dword v0, v2, s[2:3]
    v_readlane_b32 s2, v1, 0
    v_readlane_b32 s3, v1, 1
    s_mov_b64 exec, s[2:3]
    ds_write_b32 v0, v2

; case inputs of the kernel
; run allocate
; fixed %0=s[0:1] %1=s2
; limits sgprs=8
bb0:
    s_load_dwordx4 %2:s4, %0:s2, 0x0
    s_load_dwordx4 %3:s4, %0, 0x10
    s_waitcnt lgkmcnt(0)
    s_add_u32 %2[0], %2[0], %3[0]
    s_add_u32 %2[0], %2[0], %3[3]
    s_add_u32 %2[0], %2[0], %1:s1
    v_mov_b32 v0, %2[0]
    s_load_dword %4:s1, %0, 0x20
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, %4
; ---
; sgprs 6, vgprs 3, agprs 0
; 5 to lanes; 10 instructions inserted; peak 8 SGPRs at line 3
bb0:
    s_mov_b32 s4, s0
    s_mov_b32 s5, s1
    v_writelane_b32 v2, s2, 0
    s_load_dwordx4 s[0:3], s[4:5], 0x0
    v_writelane_b32 v2, s0, 1
    v_writelane_b32 v2, s1, 2
    v_writelane_b32 v2, s2, 3
    v_writelane_b32 v2, s3, 4
    s_load_dwordx4 s[0:3], s[4:5], 0x10
    s_waitcnt lgkmcnt(0)
    v_readlane_b32 s1, v2, 1
    s_add_u32 s1, s1, s0
    v_writelane_b32 v2, s1, 1
    s_add_u32 s1, s1, s3
    v_writelane_b32 v2, s1, 1
    v_readlane_b32 s0, v2, 0
    s_add_u32 s1, s1, s0
    v_writelane_b32 v2, s1, 1
    v_mov_b32 v0, s1
    s_load_dword s0, s[4:5], 0x20
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, s0
