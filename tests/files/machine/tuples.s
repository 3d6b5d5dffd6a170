; case a tuple that is consumed part by part gives its parts back
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_cvt_f64_f32 %1:v2, %0[3]
    v_cvt_f64_f32 %2:v2, %0[2]
    ds_write_b64 v0, %1
    ds_write_b64 v0, %2
    v_add_f32 %3:v1, %0[0], %0[1]
    ds_write_b32 v0, %3
; ---
; sgprs 2, vgprs 8, agprs 0
bb0:
    global_load_dwordx4 v[2:5], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_cvt_f64_f32 v[6:7], v5
    v_cvt_f64_f32 v[4:5], v4
    ds_write_b64 v0, v[6:7]
    ds_write_b64 v0, v[4:5]
    v_add_f32 v1, v2, v3
    ds_write_b32 v0, v1

; case a tuple that is built part by part takes its registers one by one
; run allocate
bb0:
    ds_read_b32 %0:v1, v0
    ds_read_b32 %1:v1, v0
    ds_read_b32 %2:v1, v0
    s_waitcnt lgkmcnt(0)
    v_add_u32 %3[0]:v4, %0, 1
    v_add_u32 %3[1], %1, 1
    v_add_u32 %3[2], %2, 1
    v_mul_f32 %3[3], v0, v0
    ds_write_b128 v0, %3
; ---
; sgprs 0, vgprs 6, agprs 0
bb0:
    ds_read_b32 v1, v0
    ds_read_b32 v3, v0
    ds_read_b32 v4, v0
    s_waitcnt lgkmcnt(0)
    v_add_u32 v2, v1, 1
    v_add_u32 v3, v3, 1
    v_add_u32 v4, v4, 1
    v_mul_f32 v5, v0, v0
    ds_write_b128 v0, v[2:5]

; case a part is read and written while the others live through
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    v_add_u32 %1:v1, v0, 9
bb1:
    v_add_u32 %0[1], %0[1], %1
    v_add_u32 %2:v1, %0[1], v0
    ds_write_b32 v0, %2
    s_cbranch_scc1 bb1
bb2:
    ds_write_b128 v0, %0
; ---
; sgprs 2, vgprs 7, agprs 0
bb0:
    global_load_dwordx4 v[2:5], v0, s[0:1]
    v_add_u32 v1, v0, 9
bb1:
    v_add_u32 v3, v3, v1
    v_add_u32 v6, v3, v0
    ds_write_b32 v0, v6
    s_cbranch_scc1 bb1
bb2:
    ds_write_b128 v0, v[2:5]

; case one part only crosses the loop
; run allocate
bb0:
    global_load_dwordx4 %0:v4, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_add_u32 %1:v1, %0[0], %0[1]
    v_add_u32 %1, %0[3], %1
bb1:
    ds_read_b32 %2:v1, v0
    ds_read_b32 %3:v1, v0
    s_waitcnt lgkmcnt(0)
    v_add_u32 %1, %2, %1
    v_add_u32 %1, %3, %1
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 %1, %0[2], %1
    ds_write_b32 v0, %1
; ---
; sgprs 2, vgprs 6, agprs 0
bb0:
    global_load_dwordx4 v[2:5], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_add_u32 v1, v2, v3
    v_add_u32 v1, v5, v1
bb1:
    ds_read_b32 v5, v0
    ds_read_b32 v2, v0
    s_waitcnt lgkmcnt(0)
    v_add_u32 v1, v5, v1
    v_add_u32 v1, v2, v1
    s_cbranch_scc1 bb1
bb2:
    v_add_u32 v1, v4, v1
    ds_write_b32 v0, v1

; case a matrix result in a part of a tuple whose other part is C
; run allocate
bb0:
    global_load_dwordx4 %0[4:7]:v8, v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 %0[0:3], v[0:1], v[2:3], %0[4:7]
    global_store_dwordx4 v0, %0[0:3], s[0:1]
; ---
; sgprs 2, vgprs 12, agprs 0
bb0:
    global_load_dwordx4 v[8:11], v0, s[0:1]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[8:11]
    global_store_dwordx4 v0, v[4:7], s[0:1]

; case a part written on one side of a branch
; run allocate
+; sgprs 0, vgprs 4, agprs 0
bb0:
-   ds_read_b64 %0:v2, v0
+   ds_read_b64 v[2:3], v0
    s_cbranch_scc1 bb2
bb1:
-   v_add_u32 %0[1], v0, 3
+   v_add_u32 v3, v0, 3
bb2:
-   ds_write_b64 v0, %0
+   ds_write_b64 v0, v[2:3]
