; case a sum stays where its accumulator was
; run allocate
bb0:
    global_load_dwordx2 %0:v2, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %0, %1
    v_mfma_f32_16x16x16_f16 %3:v4, %0, %0, %2
    global_store_dwordx4 v0, %3, s[0:1]
; ---
; sgprs 2, vgprs 8, agprs 0
bb0:
    global_load_dwordx2 v[6:7], v0, s[0:1]
    global_load_dwordx4 v[2:5], v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], v[2:5]
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], v[2:5]
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case an accumulator that is read afterwards is not overwritten
; run allocate
bb0:
    global_load_dwordx2 %0:v2, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %0, %1
    v_mfma_f32_16x16x16_f16 %3:v4, %0, %0, %1
    global_store_dwordx4 v0, %2, s[0:1]
    global_store_dwordx4 v0, %3, s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 0
bb0:
    global_load_dwordx2 v[10:11], v0, s[0:1]
    global_load_dwordx4 v[2:5], v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[6:9], v[10:11], v[10:11], v[2:5]
    v_mfma_f32_16x16x16_f16 v[2:5], v[10:11], v[10:11], v[2:5]
    global_store_dwordx4 v0, v[6:9], s[0:1]
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case a loop carries its sum in one place
; run allocate
bb0:
    global_load_dwordx2 %0:v2, v0, s[0:1]
    v_mov_b32 %1[0]:v4, 0
    v_mov_b32 %1[1], 0
    v_mov_b32 %1[2], 0
    v_mov_b32 %1[3], 0
    s_waitcnt vmcnt(0)
bb1:
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %0, %1
    v_mfma_f32_16x16x16_f16 %3:v4, %0, %0, %2
    v_mov_b32 %1[0], %3[0]
    v_mov_b32 %1[1], %3[1]
    v_mov_b32 %1[2], %3[2]
    v_mov_b32 %1[3], %3[3]
    s_cbranch_scc0 bb1
bb2:
    global_store_dwordx4 v0, %1, s[0:1]
; ---
; sgprs 2, vgprs 8, agprs 0
bb0:
    global_load_dwordx2 v[6:7], v0, s[0:1]
    v_mov_b32 v2, 0
    v_mov_b32 v3, 0
    v_mov_b32 v4, 0
    v_mov_b32 v5, 0
    s_waitcnt vmcnt(0)
bb1:
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], v[2:5]
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], v[2:5]
    s_cbranch_scc0 bb1
bb2:
    global_store_dwordx4 v0, v[2:5], s[0:1]

; case what a loop takes from outside survives every pass
; run allocate
+; sgprs 2, vgprs 12, agprs 0
bb0:
-   global_load_dwordx2 %0:v2, v0, s[0:1]
-   global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
+   global_load_dwordx2 v[10:11], v0, s[0:1]
+   global_load_dwordx4 v[2:5], v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
bb1:
-   v_mfma_f32_16x16x16_f16 %2:v4, %0, %0, %1
-   global_store_dwordx4 v0, %2, s[0:1]
+   v_mfma_f32_16x16x16_f16 v[6:9], v[10:11], v[10:11], v[2:5]
+   global_store_dwordx4 v0, v[6:9], s[0:1]
    s_cbranch_scc0 bb1
bb2:
    s_endpgm

; case a sum that two carried values take is copied for one of them
; run allocate
bb0:
    global_load_dwordx2 %0:v2, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
    global_load_dwordx4 %2:v4, v0, s[0:1] offset:32
    s_waitcnt vmcnt(0)
bb1:
    v_mfma_f32_16x16x16_f16 %3:v4, %0, %0, %1
    v_mfma_f32_16x16x16_f16 %4:v4, %0, %0, %2
    global_store_dwordx4 v0, %4, s[0:1]
    v_mov_b32 %1[0], %3[0]
    v_mov_b32 %1[1], %3[1]
    v_mov_b32 %1[2], %3[2]
    v_mov_b32 %1[3], %3[3]
    v_mov_b32 %2[0], %3[0]
    v_mov_b32 %2[1], %3[1]
    v_mov_b32 %2[2], %3[2]
    v_mov_b32 %2[3], %3[3]
    s_cbranch_scc0 bb1
bb2:
    global_store_dwordx4 v0, %1, s[0:1]
    global_store_dwordx4 v0, %2, s[0:1]
; ---
; sgprs 2, vgprs 16, agprs 0
bb0:
    global_load_dwordx2 v[14:15], v0, s[0:1]
    global_load_dwordx4 v[2:5], v0, s[0:1] offset:16
    global_load_dwordx4 v[6:9], v0, s[0:1] offset:32
    s_waitcnt vmcnt(0)
bb1:
    v_mfma_f32_16x16x16_f16 v[10:13], v[14:15], v[14:15], v[2:5]
    v_mfma_f32_16x16x16_f16 v[6:9], v[14:15], v[14:15], v[6:9]
    global_store_dwordx4 v0, v[6:9], s[0:1]
    v_mov_b32 v2, v10
    v_mov_b32 v3, v11
    v_mov_b32 v4, v12
    v_mov_b32 v5, v13
    v_mov_b32 v6, v10
    v_mov_b32 v7, v11
    v_mov_b32 v8, v12
    v_mov_b32 v9, v13
    s_cbranch_scc0 bb1
bb2:
    global_store_dwordx4 v0, v[2:5], s[0:1]
    global_store_dwordx4 v0, v[6:9], s[0:1]

; case an accumulator that is read afterwards is not overwritten by a result that nobody reads
; run allocate
bb0:
    global_load_dwordx2 %0:v2, v0, s[0:1]
    global_load_dwordx4 %1:v4, v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %2:v4, %0, %0, %1
    v_mfma_f32_16x16x16_f16 %3:v4, %0, %0, %1
    global_store_dwordx4 v0, %3, s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 0
bb0:
    global_load_dwordx2 v[6:7], v0, s[0:1]
    global_load_dwordx4 v[2:5], v0, s[0:1] offset:16
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[8:11], v[6:7], v[6:7], v[2:5]
    v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], v[2:5]
    global_store_dwordx4 v0, v[2:5], s[0:1]
