; case a load is waited for where its result is used
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    v_add_u32 v2, v0, v0
    v_add_u32 v3, v1, v1
    s_endpgm
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    v_add_u32 v2, v0, v0
    s_waitcnt vmcnt(0)
    v_add_u32 v3, v1, v1
    s_endpgm

; case loads are waited for by number, oldest first
; run waits
bb0:
    global_load_dwordx4 v[4:7], v0, s[0:1]
    global_load_dwordx4 v[8:11], v0, s[0:1] offset:16
    global_load_dwordx4 v[12:15], v0, s[0:1] offset:32
    v_add_u32 v1, v4, v5
    v_add_u32 v1, v6, v7
    v_add_u32 v1, v9, v9
    v_add_u32 v1, v15, v15
; ---
bb0:
    global_load_dwordx4 v[4:7], v0, s[0:1]
    global_load_dwordx4 v[8:11], v0, s[0:1] offset:16
    global_load_dwordx4 v[12:15], v0, s[0:1] offset:32
    s_waitcnt vmcnt(2)
    v_add_u32 v1, v4, v5
    v_add_u32 v1, v6, v7
    s_waitcnt vmcnt(1)
    v_add_u32 v1, v9, v9
    s_waitcnt vmcnt(0)
    v_add_u32 v1, v15, v15

; case stores count in vmcnt
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_store_dword v0, v2, s[2:3]
    global_store_dword v0, v3, s[2:3]
    v_mov_b32 v2, v1
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    global_store_dword v0, v2, s[2:3]
    global_store_dword v0, v3, s[2:3]
    s_waitcnt vmcnt(2)
    v_mov_b32 v2, v1

; case lds reads are waited for by number, both counters in one wait
; run waits
bb0:
    ds_read_b64 v[2:3], v0
    ds_read_b64 v[4:5], v0 offset:8
    ds_read_b64 v[6:7], v0 offset:16
    buffer_load_dword v1, off, s[4:7], 0
    v_add_f32 v8, v1, v3
    v_add_f32 v8, v4, v6
; ---
bb0:
    ds_read_b64 v[2:3], v0
    ds_read_b64 v[4:5], v0 offset:8
    ds_read_b64 v[6:7], v0 offset:16
    buffer_load_dword v1, off, s[4:7], 0
    s_waitcnt vmcnt(0) lgkmcnt(2)
    v_add_f32 v8, v1, v3
    s_waitcnt lgkmcnt(0)
    v_add_f32 v8, v4, v6

; case scalar loads only know zero, and take the lds reads along
; run waits
bb0:
    ds_read_b32 v1, v0
    s_load_dwordx2 s[4:5], s[0:1], 0x10
    ds_read_b32 v2, v0 offset:4
    v_mov_b32 v3, v1
    s_add_u32 s4, s4, s5
    v_mov_b32 v3, v2
; ---
bb0:
    ds_read_b32 v1, v0
    s_load_dwordx2 s[4:5], s[0:1], 0x10
    ds_read_b32 v2, v0 offset:4
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v1
    s_add_u32 s4, s4, s5
    v_mov_b32 v3, v2

; case a flat load needs both counters at zero
; run waits
bb0:
    flat_load_dword v2, v[0:1]
    global_load_dword v3, v0, s[0:1]
    v_mov_b32 v4, v2
    v_mov_b32 v4, v3
; ---
bb0:
    flat_load_dword v2, v[0:1]
    global_load_dword v3, v0, s[0:1]
    s_waitcnt vmcnt(0) lgkmcnt(0)
    v_mov_b32 v4, v2
    v_mov_b32 v4, v3

; case overwriting what a load will write
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v1, v0, s[0:1] offset:4
    ds_read_b32 v2, v0
    ds_read_b32 v2, v0 offset:4
    v_mov_b32 v1, 0
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v1, v0, s[0:1] offset:4
    ds_read_b32 v2, v0
    s_waitcnt lgkmcnt(0)
    ds_read_b32 v2, v0 offset:4
    s_waitcnt vmcnt(0)
    v_mov_b32 v1, 0

; case addresses and store data may be overwritten at once
; run waits
bb0:
    global_store_dword v0, v1, s[0:1]
    ds_write_b32 v0, v1
    s_load_dword s4, s[0:1], 0x0
    v_mov_b32 v0, 0
    v_mov_b32 v1, 0
    s_mov_b32 s0, 0
; ---
bb0:
    global_store_dword v0, v1, s[0:1]
    ds_write_b32 v0, v1
    s_load_dword s4, s[0:1], 0x0
    v_mov_b32 v0, 0
    v_mov_b32 v1, 0
    s_mov_b32 s0, 0

; case a prefetch in flight around the loop
; run waits
bb0:
    global_load_dwordx2 v[2:3], v0, s[0:1]
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
bb1:
    ds_write_b64 v1, v[2:3]
    global_load_dwordx2 v[2:3], v0, s[0:1]
    ds_write_b64 v1, v[4:5] offset:8
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
    s_barrier
    ds_read_b64 v[6:7], v1
    v_add_f32 v8, v6, v7
    s_barrier
    s_cbranch_scc1 bb1
bb2:
    s_endpgm
; ---
bb0:
    global_load_dwordx2 v[2:3], v0, s[0:1]
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
bb1:
    s_waitcnt vmcnt(1)
    ds_write_b64 v1, v[2:3]
    global_load_dwordx2 v[2:3], v0, s[0:1]
    s_waitcnt vmcnt(1)
    ds_write_b64 v1, v[4:5] offset:8
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b64 v[6:7], v1
    s_waitcnt lgkmcnt(0)
    v_add_f32 v8, v6, v7
    s_barrier
    s_cbranch_scc1 bb1
bb2:
    s_endpgm

; case the back edge brings a load that the first turn does not have
; run waits
bb0:
    v_mov_b32 v2, 0
bb1:
    v_add_u32 v3, v2, v2
    global_load_dword v2, v0, s[0:1]
    global_load_dword v4, v0, s[0:1] offset:4
    s_cbranch_scc1 bb1
bb2:
    v_mov_b32 v3, v2
; ---
bb0:
    v_mov_b32 v2, 0
bb1:
    s_waitcnt vmcnt(1)
    v_add_u32 v3, v2, v2
    global_load_dword v2, v0, s[0:1]
    global_load_dword v4, v0, s[0:1] offset:4
    s_cbranch_scc1 bb1
bb2:
    s_waitcnt vmcnt(1)
    v_mov_b32 v3, v2

; case both sides of a branch: the younger load decides
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    s_cbranch_scc1 bb2
bb1:
    global_load_dword v2, v0, s[0:1]
    global_load_dword v3, v0, s[0:1]
bb2:
    v_mov_b32 v4, v1
    v_mov_b32 v4, v1
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    s_cbranch_scc1 bb2
bb1:
    global_load_dword v2, v0, s[0:1]
    global_load_dword v3, v0, s[0:1]
bb2:
    s_waitcnt vmcnt(0)
    v_mov_b32 v4, v1
    v_mov_b32 v4, v1

; case a wait on one side only
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    s_cbranch_scc1 bb2
bb1:
    v_mov_b32 v2, v1
bb2:
    v_mov_b32 v3, v1
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    s_cbranch_scc1 bb2
bb1:
    s_waitcnt vmcnt(0)
    v_mov_b32 v2, v1
bb2:
    s_waitcnt vmcnt(0)
    v_mov_b32 v3, v1

; case barriers wait for lds, not for memory
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    ds_write_b32 v0, v2
    s_barrier
    ds_read_b32 v3, v0
    s_barrier
    s_barrier
    v_mov_b32 v4, v3
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    ds_write_b32 v0, v2
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v3, v0
    s_waitcnt lgkmcnt(0)
    s_barrier
    s_barrier
    v_mov_b32 v4, v3

; case a barrier that hands nothing over gets no wait
; run waits
bb0:
    ds_read_b32 v3, v0
    s_barrier nowait
    v_mov_b32 v4, v3
; ---
bb0:
    ds_read_b32 v3, v0
    s_barrier
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v4, v3

; case a load to lds is waited for at the barrier
; run waits
bb0:
    s_mov_b32 m0, 0
    buffer_load_dword v0, s[4:7], 0 offen lds
    global_load_dword v1, v0, s[0:1]
    s_barrier
    ds_read_b32 v3, v0
; ---
bb0:
    s_mov_b32 m0, 0
    buffer_load_dword v0, s[4:7], 0 offen lds
    global_load_dword v1, v0, s[0:1]
    s_waitcnt vmcnt(1)
    s_barrier
    ds_read_b32 v3, v0

; case cross-lane permutes do not hold up a barrier
; run waits
bb0:
    ds_bpermute_b32 v1, v0, v2
    s_barrier
    v_mov_b32 v3, v1
; ---
bb0:
    ds_bpermute_b32 v1, v0, v2
    s_barrier
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v1

; case waits in the text are believed
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v2, v0, s[0:1]
    s_waitcnt vmcnt(1)
    v_mov_b32 v3, v1
    v_mov_b32 v3, v2
; ---
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v2, v0, s[0:1]
    s_waitcnt vmcnt(1)
    v_mov_b32 v3, v1
    s_waitcnt vmcnt(0)
    v_mov_b32 v3, v2

; case atomics with and without result
; run waits
bb0:
    global_atomic_add_f32 v0, v1, s[0:1]
    global_atomic_pk_add_f16 v2, v0, v1, s[0:1] sc0
    v_mov_b32 v1, 0
    v_mov_b32 v3, v2
; ---
bb0:
    global_atomic_add_f32 v0, v1, s[0:1]
    global_atomic_pk_add_f16 v2, v0, v1, s[0:1] sc0
    v_mov_b32 v1, 0
    s_waitcnt vmcnt(0)
    v_mov_b32 v3, v2

; case at most fifteen lds reads can be told apart
; run waits
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    ds_read_b32 v4, v0
    ds_read_b32 v5, v0
    ds_read_b32 v6, v0
    ds_read_b32 v7, v0
    ds_read_b32 v8, v0
    ds_read_b32 v9, v0
    ds_read_b32 v10, v0
    ds_read_b32 v11, v0
    ds_read_b32 v12, v0
    ds_read_b32 v13, v0
    ds_read_b32 v14, v0
    ds_read_b32 v15, v0
    ds_read_b32 v16, v0
    ds_read_b32 v17, v0
    v_mov_b32 v20, v1
    v_mov_b32 v20, v4
; ---
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    ds_read_b32 v4, v0
    ds_read_b32 v5, v0
    ds_read_b32 v6, v0
    ds_read_b32 v7, v0
    ds_read_b32 v8, v0
    ds_read_b32 v9, v0
    ds_read_b32 v10, v0
    ds_read_b32 v11, v0
    ds_read_b32 v12, v0
    ds_read_b32 v13, v0
    ds_read_b32 v14, v0
    ds_read_b32 v15, v0
    ds_read_b32 v16, v0
    ds_read_b32 v17, v0
    s_waitcnt lgkmcnt(14)
    v_mov_b32 v20, v1
    s_waitcnt lgkmcnt(13)
    v_mov_b32 v20, v4
