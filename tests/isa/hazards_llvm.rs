//! Wait states between pairs of instructions, compared with those that LLVM's hazard recognizer inserts (llc
//! 19, which knows gfx906 to gfx942). Where we deliberately ask for more, [`deliberate`] says why.

use std::fmt::Write;

use groundswell::internals::machine::hazards::HazardResolver;
use groundswell::internals::machine::text;
use groundswell::isa::Arch;
use groundswell::isa::Arch::*;
use groundswell::isa::Opcode;
use groundswell_testing::oracle::Workspace;

/// Chips that LLVM 19 knows.
const CHIPS: [Arch; 4] = [Gfx906, Gfx908, Gfx90a, Gfx942];
const ALL: &[Arch] = &CHIPS;
const UNIFIED: &[Arch] = &[Gfx90a, Gfx942];
const NEW: &[Arch] = &[Gfx942];
const CDNA1: &[Arch] = &[Gfx908];

/// An instruction as LLVM's machine IR and as machine text; `{v4:2}` is a register tuple in both.
type Side = (&'static str, &'static str);

const fn same(mir: &'static str, text: &'static str) -> Side {
    (mir, text)
}

const MOV: Side = same("{v0} = V_MOV_B32_e32 {v5}, implicit $exec", "v_mov_b32 {v0}, {v5}");
const MOV_FROM: Side = same("{v6} = V_MOV_B32_e32 {v0}, implicit $exec", "v_mov_b32 {v6}, {v0}");
const CMP: Side =
    same("V_CMP_EQ_U32_e32 {v0}, {v1}, implicit-def $vcc, implicit $exec", "v_cmp_eq_u32 vcc, {v0}, {v1}");
const CMPX: Side = same(
    "V_CMPX_EQ_U32_e32 {v2}, {v3}, implicit-def $exec, implicit-def $vcc, implicit $exec",
    "v_cmpx_eq_u32 vcc, {v2}, {v3}",
);
const FIRSTLANE: Side =
    same("{s4} = V_READFIRSTLANE_B32 {v0}, implicit $exec", "v_readfirstlane_b32 {s4}, {v0}");
const FIRSTLANE_M0: Side =
    same("$m0 = V_READFIRSTLANE_B32 {v0}, implicit $exec", "v_readfirstlane_b32 m0, {v0}");
const S_MOV_M0: Side = same("$m0 = S_MOV_B32 {s0}", "s_mov_b32 m0, {s0}");
const LDS_READ: Side = same("{v1} = DS_READ_B32_gfx9 {v0}, 0, 0, implicit $exec", "ds_read_b32 {v1}, {v0}");
const LDS_WRITE: Side = same("DS_WRITE_B32_gfx9 {v9}, {v0}, 0, 0, implicit $exec", "ds_write_b32 {v9}, {v0}");
const GLOBAL_LOAD: Side = same(
    "{v1} = GLOBAL_LOAD_DWORD_SADDR {s0:2}, {v0}, 0, 0, implicit $exec",
    "global_load_dword {v1}, {v0}, {s0:2}",
);
const BUFFER_LOAD: Side = same(
    "{v1} = BUFFER_LOAD_DWORD_OFFSET {s8:4}, {s4}, 0, 0, 0, implicit $exec",
    "buffer_load_dword {v1}, off, {s8:4}, {s4}",
);
const LDS_DMA: Side = same(
    "BUFFER_LOAD_DWORD_LDS_OFFSET {s8:4}, 0, 0, 0, 0, implicit $exec, implicit $m0",
    "buffer_load_dword off, {s8:4}, 0 lds",
);
const WIDE_STORE: Side = same(
    "GLOBAL_STORE_DWORDX4_SADDR {v8}, {v0:4}, {s0:2}, 0, 0, implicit $exec",
    "global_store_dwordx4 {v8}, {v0:4}, {s0:2}",
);
const SCALAR_OFFSET_STORE: Side = same(
    "BUFFER_STORE_DWORDX4_OFFSET {v0:4}, {s8:4}, {s4}, 0, 0, 0, implicit $exec",
    "buffer_store_dwordx4 {v0:4}, off, {s8:4}, {s4}",
);
const READLANE: Side = same("{s5} = V_READLANE_B32 {v0}, 3", "v_readlane_b32 {s5}, {v0}, 3");
const LANE_SELECT: Side = same("{s5} = V_READLANE_B32 {v1}, {s4}", "v_readlane_b32 {s5}, {v1}, {s4}");
const WRITELANE: Side = same("{v1} = V_WRITELANE_B32 1, {s4}, {v1}", "v_writelane_b32 {v1}, 1, {s4}");
const DPP: Side = same(
    "{v1} = V_MOV_B32_dpp {v1}, {v0}, 27, 15, 15, 0, implicit $exec",
    "v_mov_b32_dpp {v1}, {v0} quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
);
const DPP_OVER: Side = same(
    "{v0} = V_MOV_B32_dpp {v0}, {v6}, 273, 15, 15, 0, implicit $exec",
    "v_mov_b32_dpp {v0}, {v6} row_shr:1 row_mask:0xf bank_mask:0xf",
);
const RCP: Side = same("{v0} = V_RCP_F32_e32 {v1}, implicit $mode, implicit $exec", "v_rcp_f32 {v0}, {v1}");
const SQRT_OF: Side =
    same("{v2} = V_SQRT_F32_e32 {v0}, implicit $mode, implicit $exec", "v_sqrt_f32 {v2}, {v0}");
const SDWA: Side = same(
    "{v0} = V_ADD_F16_sdwa 0, {v1}, 0, {v2}, 0, 0, 5, 0, 6, 6, implicit $mode, implicit $exec",
    "v_add_f16_sdwa {v0}, {v1}, {v2} dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
);
const SDWA_WHOLE: Side = same(
    "{v0} = V_ADD_F16_sdwa 0, {v1}, 0, {v2}, 0, 0, 6, 0, 5, 6, implicit $mode, implicit $exec",
    "v_add_f16_sdwa {v0}, {v1}, {v2} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD",
);
const OP_SEL: Side = same(
    "{v0} = V_MAD_F16_gfx9_e64 8, {v1}, 0, {v2}, 0, {v3}, 0, 0, 0, implicit $mode, implicit $exec",
    "v_mad_f16 {v0}, {v1}, {v2}, {v3} op_sel:[0,0,0,1]",
);
const FP8_LOW: Side = same(
    "{v0} = V_CVT_PK_FP8_F32_e64 0, {v1}, 0, {v2}, {v0}, 0, implicit $mode, implicit $exec",
    "v_cvt_pk_fp8_f32 {v0}, {v1}, {v2}",
);
const FP8_HIGH: Side = same(
    "{v0} = V_CVT_PK_FP8_F32_e64 8, {v1}, 0, {v2}, {v0}, 0, implicit $mode, implicit $exec",
    "v_cvt_pk_fp8_f32 {v0}, {v1}, {v2} op_sel:[0,0,1]",
);
const DOT: Side = same(
    "{v0} = V_DOT2_F32_F16 8, {v1}, 8, {v2}, 8, {v0}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    "v_dot2_f32_f16 {v0}, {v1}, {v2}, {v0}",
);
const DOT_FACTOR: Side = same(
    "{v5} = V_DOT2_F32_F16 8, {v0}, 8, {v2}, 8, {v5}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    "v_dot2_f32_f16 {v5}, {v0}, {v2}, {v5}",
);
const DOT_OTHER: Side = same(
    "{v0} = V_DOT4_I32_I8 8, {v1}, 8, {v2}, 8, {v0}, 0, 0, 0, 0, 0, implicit $exec",
    "v_dot4_i32_i8 {v0}, {v1}, {v2}, {v0}",
);
const PACKED: Side = same(
    "{v0} = V_PK_ADD_F16 8, {v1}, 8, {v2}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    "v_pk_add_f16 {v0}, {v1}, {v2}",
);
const SETREG: Side =
    same("S_SETREG_B32 {s0}, 6145, implicit-def $mode, implicit $mode", "s_setreg_b32 0x1801, {s0}");
const ACC_WRITE: Side =
    same("{a0} = V_ACCVGPR_WRITE_B32_e64 {v0}, implicit $exec", "v_accvgpr_write_b32 {a0}, {v0}");
const ACC_READ: Side =
    same("{v0} = V_ACCVGPR_READ_B32_e64 {a0}, implicit $exec", "v_accvgpr_read_b32 {v0}, {a0}");
const SMALL_MFMA: Side = same(
    "{a8:4} = V_MFMA_F32_4X4X1F32_e64 {v0}, {v1}, {a8:4}, 0, 0, 0, implicit $mode, implicit $exec",
    "v_mfma_f32_4x4x1_16b_f32 {a8:4}, {v0}, {v1}, {a8:4}",
);
const SMALL_MFMA_C: Side = same(
    "{a0:4} = V_MFMA_F32_4X4X1F32_e64 {v6}, {v1}, {a0:4}, 0, 0, 0, implicit $mode, implicit $exec",
    "v_mfma_f32_4x4x1_16b_f32 {a0:4}, {v6}, {v1}, {a0:4}",
);
const SMALL_MFMA_A: Side = same(
    "{a8:4} = V_MFMA_F32_4X4X1F32_e64 {a0}, {v1}, {a8:4}, 0, 0, 0, implicit $mode, implicit $exec",
    "v_mfma_f32_4x4x1_16b_f32 {a8:4}, {a0}, {v1}, {a8:4}",
);
const DGEMM: Side = same(
    "{v20:2} = V_MFMA_F64_4X4X4F64_vgprcd_e64 {v22:2}, {v24:2}, {v20:2}, 0, 0, 0, implicit $mode, implicit $exec",
    "v_mfma_f64_4x4x4_4b_f64 {v20:2}, {v22:2}, {v24:2}, {v20:2}",
);
const SMFMAC: Side = same(
    "{v40:4} = V_SMFMAC_F32_16X16X32_F16_e64 {v44:2}, {v46:4}, {v0}, 0, 0, {v40:4}, implicit $mode, implicit $exec",
    "v_smfmac_f32_16x16x32_f16 {v40:4}, {v44:2}, {v46:4}, {v0}",
);

/// Everything but results of matrix instructions; instructions between them are third, if there are any.
#[rustfmt::skip]
const PLAIN: &[(Side, Side, Option<Side>, &[Arch])] = &[
    (FIRSTLANE, BUFFER_LOAD, None, ALL),
    (FIRSTLANE_M0, LDS_DMA, None, ALL),
    (CMP, BUFFER_LOAD, None, ALL),
    (CMP, same("{v1} = GLOBAL_LOAD_DWORD_SADDR $vcc, {v0}, 0, 0, implicit $exec", "global_load_dword {v1}, {v0}, vcc"), None, ALL),
    (CMPX, GLOBAL_LOAD, None, ALL),
    (CMPX, LDS_READ, None, ALL),
    (FIRSTLANE, LANE_SELECT, None, ALL),
    (FIRSTLANE, WRITELANE, None, ALL),
    (FIRSTLANE_M0, same("{v1} = V_WRITELANE_B32 1, $m0, {v1}", "v_writelane_b32 {v1}, 1, m0"), None, ALL),
    (CMP, same("{v2} = V_DIV_FMAS_F32_e64 0, {v3}, 0, {v4}, 0, {v5}, 0, 0, implicit $mode, implicit $vcc, implicit $exec", "v_div_fmas_f32 {v2}, {v3}, {v4}, {v5}"), None, ALL),
    (MOV, DPP, None, ALL),
    (MOV, DPP_OVER, None, ALL),
    (MOV, same("{v1} = V_ADD_U32_dpp {v1}, {v6}, {v0}, 27, 15, 15, 0, implicit $exec", "v_add_u32_dpp {v1}, {v6}, {v0} quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf"), None, ALL),
    (CMPX, DPP, None, ALL),
    (same("$exec = S_MOV_B64 {s0:2}", "s_mov_b64 exec, {s0:2}"), DPP, None, ALL),
    (FIRSTLANE, same("{v1} = V_ADD_U32_e32 {s4}, {v1}, implicit $exec", "v_add_u32 {v1}, {s4}, {v1}"), None, ALL),
    (CMP, same("{v3}, $vcc = V_ADDC_U32_e64 {v4}, {v5}, $vcc, 0, implicit $exec", "v_addc_co_u32 {v3}, vcc, {v4}, {v5}, vcc"), None, ALL),
    (same("{v3}, $vcc = V_ADD_CO_U32_e64 {v4}, {v5}, 0, implicit $exec", "v_add_co_u32 {v3}, vcc, {v4}, {v5}"), same("{v6} = V_CNDMASK_B32_e64 0, {v7}, 0, {v8}, $vcc, implicit $exec", "v_cndmask_b32 {v6}, {v7}, {v8}, vcc"), None, ALL),
    (FIRSTLANE, same("{s6} = S_ADD_U32 {s4}, {s5}, implicit-def $scc", "s_add_u32 {s6}, {s4}, {s5}"), None, ALL),
    (MOV, FIRSTLANE, None, ALL),
    (MOV, READLANE, None, ALL),
    (CMPX, READLANE, None, ALL),
    (CMPX, FIRSTLANE, None, ALL),
    (CMPX, WRITELANE, None, ALL),
    (CMPX, same("{v6} = V_MOV_B32_e32 $exec_lo, implicit $exec", "v_mov_b32 {v6}, exec_lo"), None, ALL),
    (CMPX, MOV, None, ALL),
    (RCP, MOV_FROM, None, ALL),
    (RCP, SQRT_OF, None, ALL),
    (RCP, MOV, None, ALL),
    (RCP, LDS_WRITE, None, ALL),
    (SDWA, MOV_FROM, None, ALL),
    (SDWA, MOV, None, ALL),
    (SDWA, LDS_WRITE, None, ALL),
    (SDWA_WHOLE, MOV_FROM, None, ALL),
    (OP_SEL, MOV_FROM, None, ALL),
    (FP8_HIGH, MOV_FROM, None, NEW),
    (FP8_HIGH, FP8_LOW, None, NEW),
    (FP8_LOW, FP8_HIGH, None, NEW),
    (PACKED, MOV_FROM, None, ALL),
    (WIDE_STORE, MOV, None, ALL),
    (WIDE_STORE, same("{v8} = V_MOV_B32_e32 {v9}, implicit $exec", "v_mov_b32 {v8}, {v9}"), None, ALL),
    (WIDE_STORE, LDS_READ, None, ALL),
    (WIDE_STORE, ACC_READ, None, UNIFIED),
    (SCALAR_OFFSET_STORE, MOV, None, ALL),
    (SCALAR_OFFSET_STORE, LDS_READ, None, ALL),
    (same("BUFFER_STORE_DWORDX4_OFFSET {v0:4}, {s8:4}, 0, 0, 0, 0, implicit $exec", "buffer_store_dwordx4 {v0:4}, off, {s8:4}, 0"), MOV, None, ALL),
    (same("BUFFER_STORE_FORMAT_XYZ_OFFSET {v0:3}, {s8:4}, 0, 0, 0, 0, implicit $exec", "buffer_store_format_xyz {v0:3}, off, {s8:4}, 0"), MOV, None, ALL),
    (same("FLAT_ATOMIC_CMPSWAP_X2 {v8:2}, {v0:4}, 0, 0, implicit $exec, implicit $flat_scr", "flat_atomic_cmpswap_x2 {v8:2}, {v0:4}"), MOV, None, ALL),
    (same("GLOBAL_STORE_DWORDX2_SADDR {v8}, {v0:2}, {s0:2}, 0, 0, implicit $exec", "global_store_dwordx2 {v8}, {v0:2}, {s0:2}"), MOV, None, ALL),
    (S_MOV_M0, same("S_SENDMSG 1, implicit $exec, implicit $m0", "s_sendmsg 1"), None, ALL),
    (S_MOV_M0, same("S_TTRACEDATA implicit $m0", "s_ttracedata"), None, ALL),
    (S_MOV_M0, same("DS_GWS_BARRIER {v0}, 0, implicit $m0, implicit $exec", "ds_gws_barrier {v0} gds"), None, ALL),
    (S_MOV_M0, same("{v0} = DS_READ_ADDTID_B32 0, 0, implicit $m0, implicit $exec", "ds_read_addtid_b32 {v0}"), None, ALL),
    (S_MOV_M0, LDS_DMA, None, ALL),
    (S_MOV_M0, LDS_READ, None, ALL),
    (S_MOV_M0, same("{s1} = S_MOVRELS_B32 {s2}, implicit $m0", "s_movrels_b32 {s1}, {s2}"), None, ALL),
    (SETREG, same("{s1} = S_GETREG_B32 2049, implicit $mode", "s_getreg_b32 {s1}, 0x801"), None, ALL),
    (SETREG, same("{s1} = S_GETREG_B32 2050, implicit $mode", "s_getreg_b32 {s1}, 0x802"), None, ALL),
    (SETREG, SETREG, None, ALL),
    (DGEMM, same("{v6:2} = V_FMA_F64_e64 0, {v8:2}, 0, {v8:2}, 0, {v8:2}, 0, 0, implicit $mode, implicit $exec", "v_fma_f64 {v6:2}, {v8:2}, {v8:2}, {v8:2}"), None, UNIFIED),
    (DGEMM, same("{v6:2} = V_FMAC_F64_e32 {v8:2}, {v8:2}, {v6:2}, implicit $mode, implicit $exec", "v_fmac_f64 {v6:2}, {v8:2}, {v8:2}"), None, UNIFIED),
    (MOV, LDS_WRITE, Some(DGEMM), UNIFIED),
    (MOV, LDS_WRITE, None, ALL),
    (DOT, DOT, None, ALL),
    (DOT, DOT_FACTOR, None, ALL),
    (DOT, DOT_OTHER, None, ALL),
    (DOT, MOV_FROM, None, ALL),
    (DOT, MOV, None, ALL),
    (DOT, LDS_WRITE, None, ALL),
    (DOT, same("{v0} = DS_READ_B32_gfx9 {v6}, 0, 0, implicit $exec", "ds_read_b32 {v0}, {v6}"), None, ALL),
    (DOT, SMALL_MFMA, None, &[Gfx908, Gfx90a, Gfx942]),
    (MOV, SMALL_MFMA, None, &[Gfx908, Gfx90a, Gfx942]),
    (CMPX, SMALL_MFMA, None, &[Gfx908, Gfx90a, Gfx942]),
    (MOV, SMFMAC, None, NEW),
    (CMPX, SMFMAC, None, NEW),
    (ACC_WRITE, SMALL_MFMA_C, None, &[Gfx908, Gfx90a, Gfx942]),
    (ACC_WRITE, SMALL_MFMA_A, None, &[Gfx908, Gfx90a, Gfx942]),
    (ACC_WRITE, same("{v6} = V_ACCVGPR_READ_B32_e64 {a0}, implicit $exec", "v_accvgpr_read_b32 {v6}, {a0}"), None, &[Gfx908, Gfx90a, Gfx942]),
    (ACC_READ, SMALL_MFMA, None, CDNA1),
    (ACC_READ, same("{a6} = V_ACCVGPR_WRITE_B32_e64 {v0}, implicit $exec", "v_accvgpr_write_b32 {a6}, {v0}"), None, CDNA1),
    (ACC_READ, LDS_WRITE, None, &[Gfx908, Gfx90a, Gfx942]),
    (ACC_READ, MOV_FROM, None, CDNA1),
    (MOV, ACC_WRITE, None, CDNA1),
    (CMPX, ACC_WRITE, None, CDNA1),
    (CMPX, ACC_READ, None, CDNA1),
    (MOV, LDS_WRITE, Some(same("{v6} = V_ACCVGPR_READ_B32_e64 {a0}, implicit $exec", "v_accvgpr_read_b32 {v6}, {a0}")), CDNA1),
    // Replays of memory instructions.
    (same("{v1} = GLOBAL_LOAD_DWORD {v2:2}, 0, 0, implicit $exec", "global_load_dword {v1}, {v2:2}, off"), same("{v2:2} = GLOBAL_LOAD_DWORDX2 {v4:2}, 0, 0, implicit $exec", "global_load_dwordx2 {v2:2}, {v4:2}, off"), None, ALL),
    (GLOBAL_LOAD, WIDE_STORE, None, ALL),
    (same("{s2:2} = S_LOAD_DWORDX2_IMM {s0:2}, 0, 0", "s_load_dwordx2 {s2:2}, {s0:2}, 0x0"), same("{s0:2} = S_LOAD_DWORDX2_IMM {s4:2}, 0, 0", "s_load_dwordx2 {s0:2}, {s4:2}, 0x0"), None, ALL),
];

/// A matrix instruction: opcodes, registers of D and C and of A and B, passes on gfx908 and gfx90a and on
/// gfx942.
struct Matrix {
    mir: &'static str,
    opcode: Opcode,
    d: u32,
    ab: [u32; 2],
    passes: [u32; 2],
    chips: &'static [Arch],
}

const MATRICES: &[Matrix] = &{
    const CDNA: &[Arch] = &[Gfx908, Gfx90a, Gfx942];
    const fn of(
        mir: &'static str,
        opcode: Opcode,
        d: u32,
        ab: [u32; 2],
        passes: [u32; 2],
        chips: &'static [Arch],
    ) -> Matrix {
        Matrix { mir, opcode, d, ab, passes, chips }
    }
    [
        of("MFMA_F32_4X4X4F16", Opcode::VMfmaF32_4x4x4_16bF16, 4, [2, 2], [2, 2], CDNA),
        of("MFMA_F32_16X16X16F16", Opcode::VMfmaF32_16x16x16F16, 4, [2, 2], [8, 4], CDNA),
        of("MFMA_F32_16X16X4F16", Opcode::VMfmaF32_16x16x4_4bF16, 16, [2, 2], [8, 8], CDNA),
        of("MFMA_F32_32X32X8F16", Opcode::VMfmaF32_32x32x8F16, 16, [2, 2], [16, 8], CDNA),
        of("MFMA_F32_32X32X4F16", Opcode::VMfmaF32_32x32x4_2bF16, 32, [2, 2], [16, 16], CDNA),
        of("MFMA_F32_4X4X1F32", Opcode::VMfmaF32_4x4x1_16bF32, 4, [1, 1], [2, 2], CDNA),
        of("MFMA_F32_16X16X4F32", Opcode::VMfmaF32_16x16x4F32, 4, [1, 1], [8, 8], CDNA),
        of("MFMA_F32_32X32X2F32", Opcode::VMfmaF32_32x32x2F32, 16, [1, 1], [16, 16], CDNA),
        of("MFMA_F32_16X16X8XF32", Opcode::VMfmaF32_16x16x8Xf32, 4, [2, 2], [0, 4], NEW),
        of("MFMA_F64_4X4X4F64", Opcode::VMfmaF64_4x4x4_4bF64, 2, [2, 2], [4, 4], UNIFIED),
        of("MFMA_F64_16X16X4F64", Opcode::VMfmaF64_16x16x4F64, 8, [2, 2], [8, 8], UNIFIED),
        of("SMFMAC_F32_16X16X32_F16", Opcode::VSmfmacF32_16x16x32F16, 4, [2, 4], [0, 4], NEW),
        of("SMFMAC_F32_32X32X16_F16", Opcode::VSmfmacF32_32x32x16F16, 16, [2, 4], [0, 8], NEW),
    ]
};

/// Pipes of the matrix unit.
#[derive(PartialEq, Eq)]
enum Pipe {
    Xdl,
    Sgemm,
    Dgemm,
}

impl Matrix {
    fn is_sparse(&self) -> bool {
        self.mir.starts_with('S')
    }

    fn pipe(&self, arch: Arch) -> Pipe {
        match self.mir {
            mir if mir.contains("F64") => Pipe::Dgemm,
            mir if mir.ends_with("F32") && !mir.ends_with("XF32") && arch == Gfx942 => Pipe::Sgemm,
            _ => Pipe::Xdl,
        }
    }

    fn passes(&self, arch: Arch) -> u32 {
        self.passes[usize::from(arch == Gfx942)]
    }

    /// Both forms, with D, A and B from these registers on, C too (of a sparse one D), and an index at v250.
    fn sides(&self, file: char, [d, a, b, c]: [u32; 4]) -> [String; 2] {
        let (width, [wide_a, wide_b]) = (self.d, self.ab);
        // A and B are named with their file.
        let factor = |at: u32, width| match at {
            1000.. => format!("{{{file}{}:{width}}}", at - 1000),
            _ => format!("{{v{at}:{width}}}"),
        };
        let (d, c) = (format!("{{{file}{d}:{width}}}"), format!("{{{file}{c}:{width}}}"));
        let (a, b) = (factor(a, wide_a), factor(b, wide_b));
        let form = if file == 'v' && !self.is_sparse() { "_vgprcd_e64" } else { "_e64" };
        let (tail, mir) = ("implicit $mode, implicit $exec", self.mir);
        let name = self.opcode.mnemonic();
        if self.is_sparse() {
            return [
                format!("{d} = V_{mir}{form} {a}, {b}, {{v250}}, 0, 0, {d}, {tail}"),
                format!("{name} {d}, {a}, {b}, {{v250}}"),
            ];
        }
        [format!("{d} = V_{mir}{form} {a}, {b}, {c}, 0, 0, 0, {tail}"), format!("{name} {d}, {a}, {b}, {c}")]
    }
}

/// Two instructions, perhaps with one between, in both forms.
struct Pair {
    arch: Arch,
    mir: Vec<String>,
    text: Vec<String>,
    /// Why we ask for more than LLVM (of packed results for less).
    deliberate: Option<&'static str>,
}

fn render(template: &str, registers: fn(char, u32, u32) -> String) -> String {
    let mut pieces = template.split(['{', '}']);
    let mut out = String::from(pieces.next().unwrap_or(""));
    while let (Some(register), Some(rest)) = (pieces.next(), pieces.next()) {
        let (first, width) = register[1..].split_once(':').unwrap_or((&register[1..], "1"));
        let number = |text: &str| text.parse().expect("a number");
        out += &registers(register.chars().next().expect("a file"), number(first), number(width));
        out += rest;
    }
    out
}

fn mir_registers(file: char, first: u32, width: u32) -> String {
    let file = match file {
        'v' => "vgpr",
        'a' => "agpr",
        _ => "sgpr",
    };
    let names: Vec<String> = (first..first + width).map(|n| format!("{file}{n}")).collect();
    format!("${}", names.join("_"))
}

fn text_registers(file: char, first: u32, width: u32) -> String {
    match width {
        1 => format!("{file}{first}"),
        _ => format!("{file}[{first}:{}]", first + width - 1),
    }
}

fn pair(arch: Arch, sides: &[[&str; 2]], deliberate: Option<&'static str>) -> Pair {
    let mir = sides.iter().map(|side| render(side[0], mir_registers)).collect();
    let text = sides.iter().map(|side| render(side[1], text_registers)).collect();
    Pair { arch, mir, text, deliberate }
}

const VALU_OVER_C: &str = "gfx90a, VALU over C: MI200 guide 7.2 has p + 3, LLVM p - 1";
const SGEMM_TO_XDL: &str = "gfx942, F32 result as overlapping C of XDL: CDNA3 guide 7.5 has p, LLVM 0";
const XDL_TO_OTHER: &str =
    "XDL result as the same C of another pipe: the guides have no exemption, LLVM forwards it";
const OTHER_PASSES: &str =
    "the same C with other passes: the guides want equal passes, LLVM compares registers alone";
const OTHER_OPCODE: &str = "gfx942, the same C with another opcode: not forwarded (llvm-project issue 218363), LLVM compares registers alone";
const SCALAR_OFFSET: &str =
    "gfx942, wide store with a scalar offset: 1 (llvm-project issue 197267), LLVM up to 22 has none";
const DOT_TO_MATRIX: &str = "dot product to matrix instruction: another opcode, 3 in the guides, 2 in LLVM";
const FP8_HALVES: &str = "conversions to both halves: CDNA3 guide 7.2 has 1, LLVM only after the high half";
const LATE_STORE: &str = "a load over the data of a wide store: 1 in the guides, none in LLVM";
const SHIFTED_OVERWRITTEN: &str =
    "shifted result overwritten: 1 in the guide and from LLVM 20 on, none in LLVM 19";
/// The only one where LLVM asks for more: it takes op_sel_hi for the bit of a shifted result.
const PACKED_RESULT: &str = "packed result to VALU: LLVM asks for 1 on gfx942, the guide for none";

fn plain_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for &(first, then, between, chips) in PLAIN {
        let both = [&first, &then].map(|side| side.1);
        let is = |a: Side, b: Side| both == [a.1, b.1];
        for &arch in chips {
            let deliberate = if is(WIDE_STORE, LDS_READ) {
                Some(LATE_STORE)
            } else if both[0] == SCALAR_OFFSET_STORE.1 && arch == Gfx942 {
                Some(SCALAR_OFFSET)
            } else if is(DOT, SMALL_MFMA) && arch >= Gfx90a {
                Some(DOT_TO_MATRIX)
            } else if is(FP8_LOW, FP8_HIGH) {
                Some(FP8_HALVES)
            } else if (is(PACKED, MOV_FROM) || is(DOT, DOT)) && arch == Gfx942 {
                Some(PACKED_RESULT)
            } else if is(SDWA, MOV) && arch == Gfx942 {
                Some(SHIFTED_OVERWRITTEN)
            } else {
                None
            };
            let sides: Vec<[&str; 2]> =
                [Some(first), between, Some(then)].into_iter().flatten().map(|(a, b)| [a, b]).collect();
            pairs.push(pair(arch, &sides, deliberate));
        }
    }
    pairs
}

/// What VALU and memory do with D, which begins at v64, and with C at v96.
const USES: &[(Side, bool)] = &[
    (same("{v0} = V_MOV_B32_e32 {v65}, implicit $exec", "v_mov_b32 {v0}, {v65}"), false),
    (same("{v65} = V_MOV_B32_e32 {v0}, implicit $exec", "v_mov_b32 {v65}, {v0}"), false),
    (same("{v97} = V_MOV_B32_e32 {v0}, implicit $exec", "v_mov_b32 {v97}, {v0}"), true),
    (same("DS_WRITE_B32_gfx9 {v0}, {v65}, 0, 0, implicit $exec", "ds_write_b32 {v0}, {v65}"), false),
    (same("{v0} = DS_READ_B32_gfx9 {v65}, 0, 0, implicit $exec", "ds_read_b32 {v0}, {v65}"), false),
    (
        same(
            "GLOBAL_STORE_DWORD_SADDR {v0}, {v65}, {s0:2}, 0, 0, implicit $exec",
            "global_store_dword {v0}, {v65}, {s0:2}",
        ),
        false,
    ),
    (
        same(
            "{v65} = GLOBAL_LOAD_DWORD_SADDR {s0:2}, {v0}, 0, 0, implicit $exec",
            "global_load_dword {v65}, {v0}, {s0:2}",
        ),
        false,
    ),
];

/// The same with AGPRs of gfx908.
const ACC_USES: &[Side] = &[
    same("{v0} = V_ACCVGPR_READ_B32_e64 {a65}, implicit $exec", "v_accvgpr_read_b32 {v0}, {a65}"),
    same("{a65} = V_ACCVGPR_WRITE_B32_e64 {v0}, implicit $exec", "v_accvgpr_write_b32 {a65}, {v0}"),
    same("{a97} = V_ACCVGPR_WRITE_B32_e64 {v0}, implicit $exec", "v_accvgpr_write_b32 {a97}, {v0}"),
];

fn matrix_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for arch in [Gfx908, Gfx90a, Gfx942] {
        let file = if arch == Gfx908 { 'a' } else { 'v' };
        for first in MATRICES.iter().filter(|m| m.chips.contains(&arch)) {
            let (p, from) = (first.passes(arch), first.pipe(arch));
            let producer = first.sides(file, [64, 180, 184, 96]);
            let producer = [producer[0].as_str(), producer[1].as_str()];
            if arch == Gfx908 {
                pairs.extend(ACC_USES.iter().map(|&(a, b)| pair(arch, &[producer, [a, b]], None)));
            } else {
                for &((mir, text), over_c) in USES {
                    let war = over_c && arch == Gfx90a && from == Pipe::Xdl && p > 2;
                    pairs.push(pair(arch, &[producer, [mir, text]], war.then_some(VALU_OVER_C)));
                }
            }
            for then in MATRICES.iter().filter(|m| m.chips.contains(&arch)) {
                let to = then.pipe(arch);
                let factor = if arch == Gfx908 { 1064 } else { 64 };
                for (role, registers) in [
                    ("C", [64, 190, 194, 64]),
                    ("C", [66, 190, 194, 66]),
                    ("A", [140, factor, 194, 140]),
                    ("B", [140, 190, factor, 140]),
                ] {
                    let consumer = then.sides(file, registers);
                    let same_registers = registers[0] == 64 && then.d == first.d;
                    let deliberate = if role != "C" {
                        None
                    } else if from == Pipe::Sgemm && to == Pipe::Xdl {
                        Some(SGEMM_TO_XDL)
                    } else if !same_registers {
                        None
                    } else if from == Pipe::Xdl && to != Pipe::Xdl {
                        Some(XDL_TO_OTHER)
                    } else if p != then.passes(arch) {
                        Some(OTHER_PASSES)
                    } else if arch == Gfx942 && first.opcode != then.opcode {
                        Some(OTHER_OPCODE)
                    } else {
                        None
                    };
                    let consumer = [consumer[0].as_str(), consumer[1].as_str()];
                    pairs.push(pair(arch, &[producer, consumer], deliberate));
                }
            }
        }
    }
    pairs
}

/// Wait states that LLVM puts into each pair.
fn llvm(workspace: &Workspace, arch: Arch, pairs: &[&Pair]) -> Vec<u32> {
    let mut file = String::new();
    for (index, pair) in pairs.iter().enumerate() {
        write!(file, "---\nname: p{index}\nbody: |\n  bb.0:\n    {}\n...\n", pair.mir.join("\n    "))
            .unwrap();
    }
    workspace.write("pairs.mir", file);
    workspace.run(&format!(
        "llc-19 -mtriple=amdgcn-amd-amdhsa -mcpu={arch} -run-pass=post-RA-hazard-rec -o out.mir pairs.mir"
    ));
    let out = String::from_utf8(workspace.read("out.mir")).unwrap();
    let mut waits = Vec::new();
    for line in out.lines() {
        if line.starts_with("name:") {
            waits.push(0);
        }
        if let Some(states) = line.trim().strip_prefix("S_NOP ") {
            *waits.last_mut().expect("an instruction is in a function") += states.parse::<u32>().unwrap() + 1;
        }
    }
    waits
}

/// Wait states that we put into a pair.
fn ours(pair: &Pair) -> u32 {
    let mut body = text::parse(&pair.text.join("\n")).unwrap_or_else(|e| panic!("{e}: {:?}", pair.text));
    HazardResolver::new(pair.arch).resolve(&mut body);
    let nops = body.insts.values().filter(|i| i.inst.op == Opcode::SNop);
    nops.map(|i| i.inst.imm + 1).sum()
}

fn compare(pairs: &[Pair]) {
    let Some(workspace) = Workspace::with_tools(&["llc-19"]) else { return };
    let (mut faults, mut seen) = (Vec::new(), Vec::new());
    for arch in CHIPS {
        let here: Vec<&Pair> = pairs.iter().filter(|pair| pair.arch == arch).collect();
        if here.is_empty() {
            continue;
        }
        let expected = llvm(&workspace, arch, &here);
        assert_eq!(expected.len(), here.len());
        for (pair, &llvm) in here.iter().zip(&expected) {
            let ours = ours(pair);
            let less_by_one = pair.deliberate == Some(PACKED_RESULT) && ours + 1 == llvm;
            let right = match pair.deliberate {
                None => ours == llvm,
                Some(_) => ours >= llvm || less_by_one,
            };
            if !right {
                faults.push(format!("{arch}: {}: LLVM {llvm}, here {ours}", pair.text.join("; ")));
            }
            seen.extend(pair.deliberate.filter(|_| ours != llvm));
        }
        println!("{arch}: {} pairs", here.len());
    }
    for reason in pairs.iter().filter_map(|pair| pair.deliberate) {
        if !seen.contains(&reason) {
            faults.push(format!("no difference any more: {reason}"));
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn plain_hazards_have_llvms_wait_states() {
    compare(&plain_pairs());
}

#[test]
fn matrix_results_have_llvms_wait_states() {
    let pairs = matrix_pairs();
    assert!(pairs.len() > 1000, "{}", pairs.len());
    compare(&pairs);
}
