; case branches to the next block go away, the others get offsets
; run branches
+; 16 bytes, blocks at [0, 0, 12, 12, 12]
+; 7e0002ff 00012345 bf85fffd bf810000
bb0:
-   s_branch bb1
bb1:
    v_mov_b32 v0, 0x12345
    s_cbranch_scc1 bb1
bb2:
-   s_cbranch_vccz bb4
bb3:
-   s_branch bb4
bb4:
    s_endpgm

; case forward and backward offsets count from the end of the branch
; run branches
+; 20 bytes, blocks at [0, 4, 16]
+; bf840003 d1010000 00020501 bf82fffc bf810000
bb0:
    s_cbranch_scc0 bb2
bb1:
    v_add_f32_e64 v0, v1, v2
    s_branch bb0
bb2:
    s_endpgm

; case a virtual register has no code
; run branches
bb0:
    v_mov_b32 %0:v1, 0
; ---
; error: instruction 0: `v_mov_b32`: operand 0 is a virtual register

; case a branch that goes is no wait state
; run drop-branches hazards
bb0:
    v_readfirstlane_b32 s4, v0
-   s_branch bb1
bb1:
+   s_nop 4
    buffer_load_dword v1, off, s[8:11], s4
