; case vector work comes between products, which have the longer way to the end
; run interleave
bb0:
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    v_exp_f32 v20, v20
+   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
    v_exp_f32 v21, v21
+   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_exp_f32 v22, v22
    v_exp_f32 v23, v23
+   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case a body without products stays as it is
; run interleave
bb0:
    ds_read_b32 v1, v0
    v_exp_f32 v2, v1
    v_exp_f32 v20, v20
    v_exp_f32 v21, v21
    v_exp_f32 v22, v22
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case a body that runs once stays as it is
; run interleave
bb0:
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    v_exp_f32 v20, v20
    v_exp_f32 v21, v21
    v_exp_f32 v22, v22
    v_exp_f32 v23, v23
    s_endpgm

; case waves that compete by priorities issue when their schedule says
; run interleave
bb0:
    s_setprio 1
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    v_exp_f32 v20, v20
    v_exp_f32 v21, v21
    v_exp_f32 v22, v22
    v_exp_f32 v23, v23
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case nothing passes a barrier
; run interleave
bb0:
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_exp_f32 v20, v20
+   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
    v_exp_f32 v21, v21
+   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    s_barrier
-   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    v_exp_f32 v22, v22
    v_exp_f32 v23, v23
+   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case other work comes into the time of a move between lanes
; run interleave
bb0:
    ds_bpermute_b32 v21, v0, v20
-   v_max_f32 v22, v21, v20
-   v_exp_f32 v23, v22
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
+   v_exp_f32 v24, v24
    v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
+   v_exp_f32 v25, v25
    v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
-   v_exp_f32 v24, v24
-   v_exp_f32 v25, v25
+   v_max_f32 v22, v21, v20
+   v_exp_f32 v23, v22
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case reads of lds stay on their sides of a write, and accesses of memory in their order
; run interleave
bb0:
-   v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
-   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
-   ds_read_b32 v20, v30
    global_store_dword v31, v21, s[0:1]
+   ds_read_b32 v20, v30
    ds_write_b32 v30, v22
    ds_read_b32 v23, v30 offset:4
    global_load_dword v24, v31, s[0:1]
+   v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
+   v_exp_f32 v28, v28
+   v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
+   v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
+   v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
    v_exp_f32 v25, v20
    v_exp_f32 v26, v23
    v_exp_f32 v27, v24
-   v_exp_f32 v28, v28
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case what takes the place of a value in the next trip is made after the last read of that
; run interleave
bb0:
-   v_mfma_f32_16x16x16_f16 %0:a4, %1:v2, %2:v2, %0
-   v_mfma_f32_16x16x16_f16 %0, %1, %3:v2, %0
-   v_mfma_f32_16x16x16_f16 %0, %4:v2, %2, %0
-   v_mfma_f32_16x16x16_f16 %0, %4, %3, %0
    v_exp_f32 %5:v1, %5
    v_exp_f32 %6:v1, %6
    v_exp_f32 %7:v1, %7
    v_exp_f32 %8:v1, %8
+   v_mfma_f32_16x16x16_f16 %0:a4, %1:v2, %2:v2, %0
+   v_mfma_f32_16x16x16_f16 %0, %1, %3:v2, %0
    ds_read_b64 %9:v2, %10:v1
+   v_mfma_f32_16x16x16_f16 %0, %4:v2, %2, %0
+   v_mfma_f32_16x16x16_f16 %0, %4, %3, %0
    v_mov_b32 %1[0], %9[0]
    v_mov_b32 %1[1], %9[1]
    s_cbranch_scc1 bb0
bb1:
    s_endpgm

; case nothing passes a change of the rounding mode
; run interleave
bb0:
    v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
+   v_exp_f32 v20, v20
    v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]
+   v_exp_f32 v21, v21
    v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]
    v_mfma_f32_16x16x16_f16 a[0:3], v[12:13], v[14:15], a[0:3]
-   v_exp_f32 v20, v20
-   v_exp_f32 v21, v21
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3
    v_exp_f32 v22, v22
    v_exp_f32 v23, v23
    s_cbranch_scc1 bb0
bb1:
    s_endpgm
