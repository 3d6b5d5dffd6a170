; case results of XDL 2 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 0
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 2 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 2 passes: A, VALU, memory, overwritten, C overwritten, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 0
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 2 passes into C: the same, same start, overlapping, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 2 passes: A, VALU, memory, overwritten, C overwritten, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 0
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 2 passes into C: the same, same start, overlapping, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 3
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 3
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 3
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 4 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 6
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 2
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 4 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 4
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 8 passes: A, VALU, memory, overwritten, C overwritten, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 10
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 10
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 8 passes into C: the same, same start, overlapping, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 4 passes: A, VALU, memory, overwritten, C overwritten, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 7
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[100:103]
+   s_nop 2
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 4 passes into C: the same, same start, overlapping, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
+   s_nop 5
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 8 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 10
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[100:115]
+   s_nop 6
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 8 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 16 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[100:131]
+   s_nop 14
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 16 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 16 passes: A, VALU, memory, overwritten, C overwritten, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 2
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[100:131]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 16 passes into C: the same, same start, overlapping, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of XDL 16 passes: A, VALU, memory, overwritten, C overwritten, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 3
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[100:131]
+   s_nop 14
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case XDL 16 passes into C: the same, same start, overlapping, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[128:129], v[132:133], v[64:95]
+   s_nop 15
+   s_nop 1
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of SGEMM 2 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 3
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[100:103]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case SGEMM 2 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 1
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of SGEMM 8 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[100:103]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case SGEMM 8 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of SGEMM 8 passes: A, VALU, memory, overwritten, C overwritten, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 10
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[100:103]
+   s_nop 10
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case SGEMM 8 passes into C: the same, same start, overlapping, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of SGEMM 8 passes: A, VALU, memory, overwritten, C overwritten, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 9
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[100:103]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case SGEMM 8 passes into C: the same, same start, overlapping, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
+   s_nop 7
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of SGEMM 16 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
+   s_nop 1
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[100:115]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case SGEMM 16 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f32_32x32x2_f32 v[64:79], v128, v132, v[64:79]
+   s_nop 15
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of DGEMM 4 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 8
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 5
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[100:101]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case DGEMM 4 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 3
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 3
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 3
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 3
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
+   s_nop 3
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of DGEMM 8 passes: A, VALU, memory, overwritten, C overwritten
; run hazards
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 1
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[100:107]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case DGEMM 8 passes into C: the same, same start, overlapping
; run hazards
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of DGEMM 8 passes: A, VALU, memory, overwritten, C overwritten, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 1
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 10
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[100:107]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case DGEMM 8 passes into C: the same, same start, overlapping, gfx90a
; run hazards
; target gfx90a
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 8
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case results of DGEMM 16 passes: A, VALU, memory, overwritten, C overwritten, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x16_f16 v[96:99], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    v_mfma_f32_16x16x4_f32 v[96:99], v64, v132, 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    v_mfma_f64_16x16x4_f64 v[96:103], v[64:65], v[132:133], 0
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    v_mov_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 1
    ds_write_b32 v150, v65
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 2
    ds_read_b32 v65, v150
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[100:107]
    v_mov_b32 v101, v150
    s_nop 15
    s_nop 7

; case DGEMM 16 passes into C: the same, same start, overlapping, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_4x4x4_16b_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[64:67], v[128:129], v[132:133], v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_16x16x16_f16 v[66:69], v[128:129], v[132:133], v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[64:79], v[128:129], v[132:133], v[64:79]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f32_32x32x8_f16 v[66:81], v[128:129], v[132:133], v[66:81]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_4x4x1_16b_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x4_f32 v[64:67], v128, v132, v[64:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_16x16x4_f32 v[66:69], v128, v132, v[66:69]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[64:65], v[128:129], v[132:133], v[64:65]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_4x4x4_4b_f64 v[66:67], v[128:129], v[132:133], v[66:67]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
    s_nop 15
    s_nop 7
    v_mfma_f64_16x16x4_f64 v[64:71], v[128:129], v[132:133], v[64:71]
+   s_nop 15
+   s_nop 0
    v_mfma_f64_16x16x4_f64 v[66:73], v[128:129], v[132:133], v[66:73]
    s_nop 15
    s_nop 7

; case another opcode of the same passes on one accumulator: not forwarded
; run hazards
; target gfx942
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
+   s_nop 4
    v_mfma_f32_16x16x16_bf16 v[64:67], v[4:5], v[6:7], v[64:67]

; case another opcode of the same passes on one accumulator: not forwarded, gfx950
; run hazards
; target gfx950
bb0:
    v_mfma_f32_16x16x32_f16 v[64:67], v[0:3], v[4:7], v[64:67]
+   s_nop 5
    v_mfma_f32_16x16x16_f16 v[64:67], v[4:5], v[6:7], v[64:67]

; case another opcode of the same passes on one accumulator: forwarded before gfx942
; run hazards
; target gfx908
bb0:
-   v_mfma_f32_16x16x16f16 a[64:67], v[0:1], v[2:3], a[64:67]
+   v_mfma_f32_16x16x16_f16 a[64:67], v[0:1], v[2:3], a[64:67]
    v_mfma_i32_16x16x16i8 a[64:67], v4, v6, a[64:67]

; case another opcode of the same passes on one accumulator: forwarded on gfx90a
; run hazards
; target gfx90a
bb0:
-   v_mfma_f32_16x16x16f16 v[64:67], v[0:1], v[2:3], v[64:67]
+   v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
    v_mfma_f32_16x16x16bf16_1k v[64:67], v[4:5], v[6:7], v[64:67]

; case sparse and dense on one accumulator: not forwarded
; run hazards
; target gfx942
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
+   s_nop 4
    v_smfmac_f32_16x16x32_f16 v[64:67], v[4:5], v[6:9], v10

; case F32 and XDL of the same passes on one accumulator: not forwarded
; run hazards
; target gfx942
bb0:
    v_mfma_f32_32x32x1_2b_f32 v[64:95], v0, v2, v[64:95]
+   s_nop 15
    v_mfma_f32_32x32x4_2b_f16 v[64:95], v[4:5], v[6:7], v[64:95]
+   s_nop 15
+   s_nop 0
    v_mfma_f32_32x32x1_2b_f32 v[64:95], v0, v2, v[64:95]

; case one opcode in two forms stays forwarded
; run hazards
; target gfx942 gfx950
bb0:
    v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
    v_mfma_f32_16x16x16_f16 v[64:67], v[4:5], v[6:7], v[64:67] cbsz:1 abid:1

; case another opcode on one accumulator after a join: the shortest way counts
; run hazards
; target gfx942
bb0:
    s_cbranch_scc1 bb2
bb1:
    v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
    s_branch bb3
bb2:
    v_mfma_f32_16x16x16_bf16 v[64:67], v[0:1], v[2:3], v[64:67]
bb3:
+   s_nop 4
    v_mfma_f32_16x16x16_f16 v[64:67], v[4:5], v[6:7], v[64:67]
    s_endpgm

; case two opcodes on one accumulator around a loop
; run hazards
; target gfx942
bb0:
+   s_nop 3
    v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[2:3], v[64:67]
    s_nop 15
    v_mfma_f32_16x16x16_bf16 v[64:67], v[4:5], v[6:7], v[64:67]
    s_cbranch_scc1 bb0
bb1:
    s_endpgm
