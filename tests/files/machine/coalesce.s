; case values made apart become parts of the tuple that takes them together
; run allocate
bb0:
    v_add_u32 %0:v1, v0, v0
    v_add_u32 %1:v1, v0, 1
    v_add_u32 %2:v1, v0, 2
    v_add_u32 %3:v1, v0, 3
    v_mov_b32 %4[0]:v4, %0
    v_mov_b32 %4[1], %1
    v_mov_b32 %4[2], %2
    v_mov_b32 %4[3], %3
    global_store_dwordx4 v0, %4, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 0
bb0:
    v_add_u32 v2, v0, v0
    v_add_u32 v3, v0, 1
    v_add_u32 v4, v0, 2
    v_add_u32 v5, v0, 3
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case in any order, and a part that is not copied
; run allocate
bb0:
    v_add_u32 %0:v1, v0, v0
    v_add_u32 %1:v1, v0, 1
    v_mov_b32 %4[3]:v4, %1
    v_mov_b32 %4[1], %0
    v_mov_b32 %4[0], 7
    v_mul_u32_u24 %4[2], v0, v0
    global_store_dwordx4 v0, %4, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 0
bb0:
    v_add_u32 v3, v0, v0
    v_add_u32 v5, v0, 1
    v_mov_b32 v2, 7
    v_mul_u32_u24 v4, v0, v0
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case parts leave a tuple where they are
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mov_b32 %1:v1, %0[1]
    v_mov_b32 %2:v1, %0[3]
    v_add_u32 %3:v1, %0[0], %0[2]
    v_add_u32 %1, %1, v0
    v_add_u32 %2, %2, v0
    global_store_dword v0, %1, s[0:1]
    global_store_dword v0, %2, s[0:1]
    global_store_dword v0, %3, s[0:1]
; ---
; sgprs 2, vgprs 6, agprs 0
bb0:
    global_load_dwordx4 v[2:5], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_add_u32 v1, v2, v4
    v_add_u32 v3, v3, v0
    v_add_u32 v5, v5, v0
    global_store_dword v0, v3, s[0:1]
    global_store_dword v0, v5, s[0:1]
    global_store_dword v0, v1, s[0:1]

; case from one tuple into another: the pair that is moved together
; run allocate
bb0:
    ds_read_b64 %0:v2, v0
    ds_read_b64 %1:v2, v0 offset:8
    s_waitcnt lgkmcnt(0)
    v_mov_b64 %2[0:1]:v4, %1
    v_mov_b32 %2[2], %0[0]
    v_mov_b32 %2[3], %0[1]
    ds_write_b128 v0, %2
; ---
; sgprs 0, vgprs 6, agprs 0
bb0:
    ds_read_b64 v[4:5], v0
    ds_read_b64 v[2:3], v0 offset:8
    s_waitcnt lgkmcnt(0)
    ds_write_b128 v0, v[2:5]

; case a part that is needed again later keeps its copy
; run allocate
bb0:
    v_add_u32 %0:v1, v0, v0
    v_mov_b32 %1[0]:v2, %0
    v_add_u32 %1[1], v0, 1
    v_add_u32 %1[0], %1[0], 5
    ds_write_b64 v0, %1
    ds_write_b32 v0, %0
; ---
; sgprs 0, vgprs 4, agprs 0
bb0:
    v_add_u32 v1, v0, v0
    v_mov_b32 v2, v1
    v_add_u32 v3, v0, 1
    v_add_u32 v2, v2, 5
    ds_write_b64 v0, v[2:3]
    ds_write_b32 v0, v1

; case one value in two parts: one copy is needed
; run allocate
bb0:
    v_add_u32 %0:v1, v0, v0
    v_mov_b32 %1[0]:v2, %0
    v_mov_b32 %1[1], %0
    ds_write_b64 v0, %1
; ---
; sgprs 0, vgprs 4, agprs 0
bb0:
    v_add_u32 v3, v0, v0
    v_mov_b32 v2, v3
    ds_write_b64 v0, v[2:3]

; case a misaligned pair cannot be part of a tuple
; run allocate
bb0:
    ds_read_b64 %0:v2, v0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 %1[1]:v4, %0[0]
    v_mov_b32 %1[2], %0[1]
    v_mov_b32 %1[0], 0
    v_mov_b32 %1[3], 0
    ds_write_b128 v0, %1
; ---
; sgprs 0, vgprs 6, agprs 0
bb0:
    ds_read_b64 v[4:5], v0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v4
    v_mov_b32 v4, v5
    v_mov_b32 v2, 0
    v_mov_b32 v5, 0
    ds_write_b128 v0, v[2:5]

; case scalar tuples: a descriptor put together
; run allocate
; fixed %0=s[2:3]
bb0:
    s_load_dwordx2 %1:s2, %0:s2, 0x0
    s_waitcnt lgkmcnt(0)
    s_mov_b64 %2[0:1]:s4, %1
    s_mov_b32 %2[2], 0x1000
    s_mov_b32 %2[3], 0x20000
    buffer_load_dword %3:v1, v0, %2, 0 offen
    s_waitcnt vmcnt(0)
    ds_write_b32 v0, %3
; ---
; sgprs 4, vgprs 2, agprs 0
bb0:
    s_load_dwordx2 s[0:1], s[2:3], 0x0
    s_waitcnt lgkmcnt(0)
    s_mov_b32 s2, 0x1000
    s_mov_b32 s3, 0x20000
    buffer_load_dword v1, v0, s[0:3], 0 offen
    s_waitcnt vmcnt(0)
    ds_write_b32 v0, v1

; case inner loops first: the copy in the loop goes, the one before it stays
; run allocate
bb0:
    v_add_u32 %0:v1, v0, v0
    v_mov_b32 %1:v1, %0
bb1:
    v_add_u32 %2:v1, %1, %0
    v_mov_b32 %1, %2
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, %1
; ---
; sgprs 0, vgprs 3, agprs 0
bb0:
    v_add_u32 v1, v0, v0
    v_mov_b32 v2, v1
bb1:
    v_add_u32 v2, v2, v1
    s_cbranch_scc1 bb1
bb2:
    ds_write_b32 v0, v2

; case C and D of a matrix instruction are tied
; run allocate
bb0:
    v_mov_b32 %0[0]:v4, 0
    v_mov_b32 %0[1], 0
    v_mov_b32 %0[2], 0
    v_mov_b32 %0[3], 0
    v_mfma_f32_16x16x16_f16 %1:v4, v[0:1], v[2:3], %0
    v_mfma_f32_16x16x16_f16 %2:v4, v[0:1], v[2:3], %1
    global_store_dwordx4 v0, %2, s[0:1]
; ---
; sgprs 2, vgprs 8, agprs 0
bb0:
    v_mov_b32 v4, 0
    v_mov_b32 v5, 0
    v_mov_b32 v6, 0
    v_mov_b32 v7, 0
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
    global_store_dwordx4 v0, v[4:7], s[0:1]

; case C that lives on is not tied to D
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %1:v4, v[0:1], v[2:3], %0
    global_store_dwordx4 v0, %0, s[0:1]
    global_store_dwordx4 v0, %1, s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 0
bb0:
    global_load_dwordx4 v[4:7], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]
    global_store_dwordx4 v0, v[4:7], s[0:1]
    global_store_dwordx4 v0, v[8:11], s[0:1]

; case C that is A as well is not tied to D
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %1:v4, %0[0:1], v[2:3], %0
    global_store_dwordx4 v0, %1, s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 0
bb0:
    global_load_dwordx4 v[4:7], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[2:3], v[4:7]
    global_store_dwordx4 v0, v[8:11], s[0:1]

; case a source that is also the result is one register
; run allocate
bb0:
    ds_read_b32 %0:v1, v0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 %1:v1, %0
    v_fmac_f32 %1, v0, v0
    v_mov_b32 %2:v1, %1
    ds_write_b32 v0, %2
; ---
; sgprs 0, vgprs 2, agprs 0
bb0:
    ds_read_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    v_fmac_f32 v1, v0, v0
    ds_write_b32 v0, v1

; case a copy of some lanes only keeps what the others hold
; run allocate
bb0:
    v_add_u32 %0:v1, v0, 1
    v_add_u32 %1:v1, v0, 2
    s_and_saveexec_b64 %2:s2, vcc
    v_mov_b32 %0, %1
    s_mov_b64 exec, %2
    ds_write_b32 v0, %0
; ---
; sgprs 2, vgprs 3, agprs 0, vcc
bb0:
    v_add_u32 v1, v0, 1
    v_add_u32 v2, v0, 2
    s_and_saveexec_b64 s[0:1], vcc
    v_mov_b32 v1, v2
    s_mov_b64 exec, s[0:1]
    ds_write_b32 v0, v1
