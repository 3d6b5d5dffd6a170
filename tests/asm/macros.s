// Macros, repetitions and conditions in every form that LLVM's assembler has.
.macro ADDSHIFT dst:req a:req b:req
  v_add_u32 v[\dst+0], \a, \b
  v_lshrrev_b32 v[\dst+0], 3, v[\dst+0]
.endm
.macro defaults a=1, b = 2 c=(3 + 4)
  .long \a, \b, \c
.endm
.macro rest first, others:vararg
  .long \first
  .ifnb \others
  .long \others
  .endif
.endm
.macro counted
counted_\@:
  s_branch counted_\@
.endm
.macro joined name
\name\()_suffix:
  s_nop \@
.endm
.macro outer n
  .macro inner_\n x
    .long \n * 100 + \x
  .endm
  inner_\n 1
  inner_\n 2
.endm
.macro early n
  .if \n > 2
    .long 7
    .exitm
  .endif
  .long 8
.endm
.macro down n
  .if \n
    .long \n
    down "(\n-1)"
  .endif
.endm
.macro nothing
.endm
.macro text s
  .ascii "\s"
.endm
.macro waits vm=63 lgkm=15
  s_waitcnt vmcnt(\vm) & lgkmcnt(\lgkm)
.endmacro

f:
  ADDSHIFT 4, v1, v2
  ADDSHIFT 4 v1 v2
  ADDSHIFT b=v3, dst=5, a=s7
  defaults
  defaults 5
  defaults 5 6 7
  defaults , 6
  defaults c=9, a=8
  defaults 1 + 2 3 - 1, -4
  rest 1
  rest 1, 2, 3
  rest 1 2+2, 3
  counted
  counted
  joined abc
  joined def
  outer 1
  outer 2
  early 1
  early 3
  down 3
  nothing
  text abcd
  text "a  b"
  waits
  waits 3
  waits lgkm=0
label: waits 1, 2

  .rept 3
  s_nop 1
  .rept 2
  s_nop 2
  .endr
  .endr
  .irp r, 1, 2, 3 + 4
  v_mov_b32 v[\r], \r
  .endr
  .irpc d, 159
  .long \d
  .endr
  .set i, 0
  .rept 4
  v_mov_b32 v[i], i
  .set i, i + 1
  .endr

  .set one, 1
  .if one == 1
  .long 10
  .elseif one == 2
  .long 11
  .else
  .long 12
  .endif
  .if one == 0
  .long 10
  .if 1
  .long 13
  .else
  .long 14
  .endif
  .elseif one == 1
  .long 11
  .else
  .long 12
  .endif
  .ifeq one - 1
  .long 20
  .endif
  .ifne one
  .long 21
  .endif
  .ifge one - 2
  .long 22
  .endif
  .ifgt one
  .long 23
  .endif
  .ifle one - 1
  .long 24
  .endif
  .iflt one - 2
  .long 25
  .endif
  .ifdef one
  .long 26
  .endif
  .ifdef two
  .long 27
  .endif
  .ifndef two
  .long 28
  .endif
  .ifnotdef f
  .long 29
  .endif
  .ifb
  .long 30
  .endif
  .ifnb x
  .long 31
  .endif
  .ifc a b, a b
  .long 32
  .endif
  .ifnc a, b
  .long 33
  .endif
  .ifeqs "a,b", "a,b"
  .long 34
  .endif
  .ifnes "a", "a"
  .long 35
  .endif
  .purgem nothing
  .macro nothing
  .long 40
  .endm
  nothing
  .long .amdgcn.gfx_generation_number, .amdgcn.gfx_generation_minor, .amdgcn.gfx_generation_stepping
  .long .amdgcn.next_free_vgpr
  s_endpgm
  .end
  this is not read
