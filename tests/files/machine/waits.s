; case a load is waited for where its result is used
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    v_add_u32 v2, v0, v0
+   s_waitcnt vmcnt(0)
    v_add_u32 v3, v1, v1
    s_endpgm

; case loads are waited for by number, oldest first
; run waits
bb0:
    global_load_dwordx4 v[4:7], v0, s[0:1]
    global_load_dwordx4 v[8:11], v0, s[0:1] offset:16
    global_load_dwordx4 v[12:15], v0, s[0:1] offset:32
+   s_waitcnt vmcnt(2)
    v_add_u32 v1, v4, v5
    v_add_u32 v1, v6, v7
+   s_waitcnt vmcnt(1)
    v_add_u32 v1, v9, v9
+   s_waitcnt vmcnt(0)
    v_add_u32 v1, v15, v15

; case stores count in vmcnt
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_store_dword v0, v2, s[2:3]
    global_store_dword v0, v3, s[2:3]
+   s_waitcnt vmcnt(2)
    v_mov_b32 v2, v1

; case lds reads are waited for by number, both counters in one wait
; run waits
bb0:
    ds_read_b64 v[2:3], v0
    ds_read_b64 v[4:5], v0 offset:8
    ds_read_b64 v[6:7], v0 offset:16
    buffer_load_dword v1, off, s[4:7], 0
+   s_waitcnt vmcnt(0) lgkmcnt(2)
    v_add_f32 v8, v1, v3
+   s_waitcnt lgkmcnt(0)
    v_add_f32 v8, v4, v6

; case scalar loads only know zero, and take the lds reads along
; run waits
bb0:
    ds_read_b32 v1, v0
    s_load_dwordx2 s[4:5], s[0:1], 0x10
    ds_read_b32 v2, v0 offset:4
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v1
    s_add_u32 s4, s4, s5
    v_mov_b32 v3, v2

; case a flat load needs both counters at zero
; run waits
bb0:
    flat_load_dword v2, v[0:1]
    global_load_dword v3, v0, s[0:1]
+   s_waitcnt vmcnt(0) lgkmcnt(0)
    v_mov_b32 v4, v2
    v_mov_b32 v4, v3

; case overwriting what a load will write
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v1, v0, s[0:1] offset:4
    ds_read_b32 v2, v0
+   s_waitcnt lgkmcnt(0)
    ds_read_b32 v2, v0 offset:4
+   s_waitcnt vmcnt(0)
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

; case a prefetch in flight around the loop
; run waits
bb0:
    global_load_dwordx2 v[2:3], v0, s[0:1]
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
bb1:
+   s_waitcnt vmcnt(1)
    ds_write_b64 v1, v[2:3]
    global_load_dwordx2 v[2:3], v0, s[0:1]
+   s_waitcnt vmcnt(1)
    ds_write_b64 v1, v[4:5] offset:8
    global_load_dwordx2 v[4:5], v0, s[0:1] offset:8
+   s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b64 v[6:7], v1
+   s_waitcnt lgkmcnt(0)
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
+   s_waitcnt vmcnt(1)
    v_add_u32 v3, v2, v2
    global_load_dword v2, v0, s[0:1]
    global_load_dword v4, v0, s[0:1] offset:4
    s_cbranch_scc1 bb1
bb2:
+   s_waitcnt vmcnt(1)
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
+   s_waitcnt vmcnt(0)
    v_mov_b32 v4, v1
    v_mov_b32 v4, v1

; case a wait on one side only
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    s_cbranch_scc1 bb2
bb1:
+   s_waitcnt vmcnt(0)
    v_mov_b32 v2, v1
bb2:
+   s_waitcnt vmcnt(0)
    v_mov_b32 v3, v1

; case barriers wait for lds, not for memory
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    ds_write_b32 v0, v2
+   s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v3, v0
+   s_waitcnt lgkmcnt(0)
    s_barrier
    s_barrier
    v_mov_b32 v4, v3

; case a barrier that hands nothing over gets no wait
; run waits
bb0:
    ds_read_b32 v3, v0
-   s_barrier nowait
+   s_barrier
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v4, v3

; case a load to lds is waited for at the barrier
; run waits
bb0:
    s_mov_b32 m0, 0
    buffer_load_dword v0, s[4:7], 0 offen lds
    global_load_dword v1, v0, s[0:1]
+   s_waitcnt vmcnt(1)
    s_barrier
    ds_read_b32 v3, v0

; case cross-lane permutes do not hold up a barrier
; run waits
bb0:
    ds_bpermute_b32 v1, v0, v2
    s_barrier
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v1

; case waits in the text are believed
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v2, v0, s[0:1]
    s_waitcnt vmcnt(1)
    v_mov_b32 v3, v1
+   s_waitcnt vmcnt(0)
    v_mov_b32 v3, v2

; case atomics with and without result
; run waits
bb0:
    global_atomic_add_f32 v0, v1, s[0:1]
    global_atomic_pk_add_f16 v2, v0, v1, s[0:1] sc0
    v_mov_b32 v1, 0
+   s_waitcnt vmcnt(0)
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
+   s_waitcnt lgkmcnt(14)
    v_mov_b32 v20, v1
+   s_waitcnt lgkmcnt(13)
    v_mov_b32 v20, v4

; case an LDS instruction waits for the loads to LDS before it
; run waits
bb0:
    buffer_load_dword v0, s[4:7], 0 offen lds
    global_load_dword v1, v0, s[0:1]
+   s_waitcnt vmcnt(1)
    ds_read_b32 v3, v0
    ds_bpermute_b32 v4, v0, v2

; case the same, promised to come after barriers
; run waits
; promise lds-after-barriers
bb0:
    buffer_load_dword v0, s[4:7], 0 offen lds
    ds_read_b32 v3, v0
    buffer_load_dword v0, s[4:7], 0 offen lds
+   s_waitcnt vmcnt(0) lgkmcnt(0)
    s_barrier

; case a load to LDS waits for the LDS instructions before it
; run waits
bb0:
    ds_read_b32 v3, v0
    ds_bpermute_b32 v4, v0, v2
+   s_waitcnt lgkmcnt(1)
    global_load_lds_dword v0, s[0:1]
    global_load_lds_dword v0, s[0:1] offset:4

; case a store from LDS waits for what was written there, and is waited for before that is overwritten
; run waits
; target gfx90a
bb0:
    ds_write_b32 v0, v1
+   s_waitcnt lgkmcnt(0)
    buffer_store_lds_dword s[4:7], 0 lds
+   s_waitcnt vmcnt(0)
    ds_write_b32 v0, v2

; case a flat access may touch LDS
; run waits
bb0:
    buffer_load_dword v0, s[4:7], 0 offen lds
+   s_waitcnt vmcnt(0)
    flat_store_dword v[2:3], v4
+   s_waitcnt lgkmcnt(0)
    s_barrier

; case a flat store may be overtaken by nothing that only zero tells
; run waits
bb0:
    global_load_dword v1, v0, s[0:1]
    global_load_dword v2, v0, s[0:1]
    flat_store_dword v[4:5], v6
+   s_waitcnt vmcnt(0)
    v_mov_b32 v3, v1
    v_mov_b32 v3, v2

; case flat atomics, with and without result
; run waits
bb0:
    flat_atomic_add v[2:3], v4
    v_mov_b32 v4, 0
    flat_atomic_add v5, v[2:3], v4 sc0
+   s_waitcnt vmcnt(0) lgkmcnt(0)
    v_mov_b32 v6, v5

; case registers of the global data share are locked until it has read them
; run waits
; target gfx906 gfx908
bb0:
    ds_write_b32 v0, v1 gds
    v_mov_b32 v2, v1
+   s_waitcnt expcnt(0)
    v_mov_b32 v1, 0
    v_mov_b32 v0, 0
    ds_write_b32 v0, v1 gds
+   s_waitcnt expcnt(0)
    s_mov_b64 exec, s[0:1]

; case LDS and the global data share are not in order
; run waits
; target gfx906 gfx908
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0 offset:4
+   s_waitcnt lgkmcnt(1)
    v_mov_b32 v3, v1
    ds_read_b32 v4, v0 gds
    ds_read_b32 v5, v0
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v4

; case after GWS everything is waited for
; run waits
; target gfx908 gfx90a gfx942
bb0:
    global_load_dword v1, v0, s[0:1]
    ds_gws_barrier v2 gds
+   s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
    v_mov_b32 v3, v1

; case messages and LDS instructions are not in order
; run waits
bb0:
    ds_read_b32 v1, v0
-   s_sendmsg 1
+   s_sendmsg sendmsg(MSG_INTERRUPT)
    ds_read_b32 v2, v0
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v3, v1

; case scalar stores are written back at the end
; run waits
; target gfx906 gfx908 gfx90a
bb0:
    s_store_dword s4, s[0:1], 0x0
    s_mov_b32 s4, 0
+   s_dcache_wb
    s_endpgm

; case scalar stores on one path
; run waits
; target gfx906 gfx908 gfx90a
bb0:
    s_cbranch_scc1 bb2
bb1:
    s_atomic_add s4, s[0:1], 0x0
bb2:
+   s_dcache_wb
    s_endpgm

; case scalar stores that the text writes back
; run waits
; target gfx906 gfx908 gfx90a
bb0:
    s_store_dword s4, s[0:1], 0x0
    s_dcache_wb
    s_endpgm

; case scalar atomics, without and with result
; run waits
; target gfx906 gfx908 gfx90a
bb0:
    s_atomic_add s4, s[0:1], 0x0
    s_add_u32 s5, s4, s4
    s_atomic_add s6, s[0:1], 0x0 glc
+   s_waitcnt lgkmcnt(0)
    s_add_u32 s5, s6, s6
    s_dcache_wb

; case scalar loads that reach beyond VCCZ and relative moves
; run waits
bb0:
    s_load_dwordx2 vcc, s[0:1], 0x0
+   s_waitcnt lgkmcnt(0)
    v_mov_b32 v0, src_vccz
    s_load_dwordx2 s[20:21], s[0:1], 0x0
+   s_waitcnt lgkmcnt(0)
    s_movrels_b32 s4, s8
    s_load_dwordx2 s[20:21], s[0:1], 0x0
    s_movreld_b32 s24, s8
+   s_waitcnt lgkmcnt(0)
    s_movreld_b32 s16, s8

; case caches are written back before the next store, and forgotten after the loads
; run waits
; target gfx942 gfx950
bb0:
    global_store_dword v0, v1, s[0:1]
    buffer_wbl2 sc1
    global_load_dword v2, v0, s[0:1]
+   s_waitcnt vmcnt(1)
    global_store_dword v0, v3, s[0:1]
    global_load_dword v4, v0, s[0:1]
    global_store_dword v0, v3, s[0:1]
+   s_waitcnt vmcnt(1)
    buffer_inv sc1
    v_mov_b32 v5, v4

; case caches are written back before a barrier and a message
; run waits
; target gfx942 gfx950
bb0:
    buffer_wbl2 sc1
    s_barrier nowait
    buffer_wbl2 sc1
    s_sendmsg 1
; ---
bb0:
    buffer_wbl2 sc1
    s_waitcnt vmcnt(0)
    s_barrier
    buffer_wbl2 sc1
    s_waitcnt vmcnt(0)
    s_sendmsg sendmsg(MSG_INTERRUPT)

; case up to gfx908 every barrier waits for everything
; run waits
; target gfx906 gfx908
bb0:
    s_barrier
    global_store_dword v0, v1, s[0:1]
-   s_barrier nowait
+   s_waitcnt vmcnt(0)
+   s_barrier
    s_load_dword s4, s[0:1], 0x0
+   s_waitcnt lgkmcnt(0)
    s_barrier

; case later a barrier waits for LDS alone
; run waits
; target gfx90a gfx942 gfx950
bb0:
    s_barrier
    global_store_dword v0, v1, s[0:1]
-   s_barrier nowait
+   s_barrier
    s_load_dword s4, s[0:1], 0x0
    s_barrier

; case at the border to unknown code nothing is in flight
; run waits
bb0:
    global_store_dword v0, v1, s[0:1]
    ds_read_b32 v2, v0
+   s_waitcnt vmcnt(0) lgkmcnt(0)
    s_swappc_b64 s[30:31], s[4:5]
    v_mov_b32 v3, v2
    global_load_dword v4, v0, s[0:1]
+   s_waitcnt vmcnt(0)
    s_setpc_b64 s[30:31]

; case an index of a sparse matrix instruction, both registers of a swap, lanes that DPP keeps
; run waits
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    ds_read_b32 v4, v0
+   s_waitcnt lgkmcnt(3)
    v_smfmac_f32_16x16x32_f16 v[20:23], v[24:25], v[26:29], v1
+   s_waitcnt lgkmcnt(2)
    v_swap_b32 v2, v10
+   s_waitcnt lgkmcnt(1)
    v_swap_b32 v10, v3
+   s_waitcnt lgkmcnt(0)
    v_mov_b32_dpp v4, v10 row_shr:1 row_mask:0xf bank_mask:0xf

; case an indexed register may be any that follows
; run waits
bb0:
    global_load_dword v8, v0, s[0:1]
    global_load_dword v9, v0, s[0:1]
-   s_set_gpr_idx_on s4, 1
+   s_set_gpr_idx_on s4, gpr_idx(SRC0)
    v_mov_b32 v10, v12
+   s_waitcnt vmcnt(0)
    v_mov_b32 v2, v3
    s_set_gpr_idx_off
    global_load_dword v9, v0, s[0:1]
    v_mov_b32 v2, v3

; case an instruction that does nothing counts nothing
; run waits
bb0:
    ds_read_b32 v1, v0
    ds_nop
    ds_read_b32 v2, v0
+   s_waitcnt lgkmcnt(1)
    v_mov_b32 v3, v1

; case what an image instruction loads is waited for, with the status after it
; run waits
; target gfx908
bb0:
    image_load v[4:5], v0, s[8:15] dmask:0x1 tfe
    image_sample v[6:8], v[0:1], s[8:15], s[16:19] dmask:0x7
    image_gather4 v[12:15], v[0:2], s[8:15], s[16:19] dmask:0x1
+   s_waitcnt vmcnt(2)
    v_mov_b32 v1, v5
+   s_waitcnt vmcnt(1)
    v_mov_b32 v2, v8
+   s_waitcnt vmcnt(0)
    v_mov_b32 v3, v15

; case every register of an image's address and of the data that it stores is waited for
; run waits
; target gfx908
bb0:
    global_load_dword v3, v0, s[0:1]
    global_load_dword v7, v0, s[0:1]
+   s_waitcnt vmcnt(1)
    image_store v4, v[1:3], s[8:15] dmask:0x1
+   s_waitcnt vmcnt(1)
    image_store v[4:7], v0, s[8:15] dmask:0xf

; case an image atomic returns the former value if it is asked to
; run waits
; target gfx90a
bb0:
    image_atomic_add v4, v0, s[8:15] dmask:0x1 glc
+   s_waitcnt vmcnt(0)
    v_mov_b32 v2, v4
    image_atomic_add v4, v0, s[8:15] dmask:0x1
    v_mov_b32 v3, v4
