//! DPP, SDWA, VGPR indexing, skipping, and moves between lanes.

use crate::codegen::isa::{Arch, Dpp, Inst, Modifiers, Opcode::*, Operand, Sdwa, Select, Unused};

use super::super::super::wave::{EXEC, LANES, M0, VectorRow};
use super::{MODE, Machine, int, s, v};

/// `v_mov_b32 v1, v0` with that control, v0 holding lane numbers and v1 1000 everywhere.
fn moved(dpp: Dpp, exec: u64) -> VectorRow {
    let mut m = Machine::new();
    m.wave.rows[1] = [1000; LANES];
    m.wave.set_pair(EXEC, exec);
    m.row(Inst::new(VMovB32, &[v(1), v(0)]).modifiers(Modifiers::new().dpp()).imm(dpp.to_imm()), 1)
}

fn control(name: &str, argument: u32) -> u32 {
    Dpp::control(name, argument).expect("a control")
}

#[test]
fn dpp_takes_other_lanes() {
    let mirror = moved(Dpp::new(control("row_mirror", 0)), u64::MAX);
    assert_eq!(mirror, std::array::from_fn(|l| (l / 16 * 16 + 15 - l % 16) as u32));
    let shifted = moved(Dpp::new(control("row_shr", 3)), u64::MAX);
    assert_eq!(shifted, std::array::from_fn(|l| if l % 16 < 3 { 1000 } else { l as u32 - 3 }));
    let bound = moved(Dpp::new(control("row_shr", 3)).bound(), u64::MAX);
    assert_eq!(bound, std::array::from_fn(|l| if l % 16 < 3 { 0 } else { l as u32 - 3 }));
    let rotated = moved(Dpp::new(control("wave_ror", 1)), u64::MAX);
    assert_eq!(rotated, std::array::from_fn(|l| (l as u32 + 63) % 64));
}

#[test]
fn dpp_masks_leave_lanes_as_they_are() {
    let mut dpp = Dpp::new(control("row_bcast", 15));
    dpp.row_mask = 0xa;
    dpp.bank_mask = 0x7;
    let row = moved(dpp, u64::MAX);
    for l in 0..LANES {
        let written = l / 16 % 2 == 1 && l / 4 % 4 != 3;
        assert_eq!(row[l], if written { (l / 16 * 16) as u32 - 1 } else { 1000 }, "lane {l}");
    }
}

#[test]
fn dpp_treats_lanes_that_are_off_like_lanes_that_do_not_exist() {
    let exec = !(1 << 5);
    let row = moved(Dpp::new(control("row_shl", 1)), exec);
    assert_eq!((row[3], row[4], row[5], row[6]), (4, 1000, 1000, 7));
    assert_eq!(moved(Dpp::new(control("row_shl", 1)).bound(), exec)[4], 0);
}

#[test]
fn dpp_applies_signs_and_works_on_both_halves_of_a_pair() {
    let mut m = Machine::new();
    m.wave.rows[2] = std::array::from_fn(|l| (l as f32).to_bits());
    m.wave.rows[3] = [0.5f32.to_bits(); LANES];
    let quad = Dpp::new(Dpp::quad_perm([1, 0, 3, 2])).to_imm();
    let modifiers = Modifiers::new().dpp().neg(1).abs(2);
    let row = m.row(Inst::new(VAddF32, &[v(4), v(2), v(3)]).modifiers(modifiers).imm(quad), 4);
    assert_eq!(row.map(f32::from_bits), std::array::from_fn(|l| 0.5 - (l ^ 1) as f32));
    // Pairs from lane 3 of each row.
    m.wave.rows[6] = std::array::from_fn(|l| l as u32);
    m.wave.rows[7] = std::array::from_fn(|l| 0x4000_0000 + l as u32);
    let broadcast = Dpp::new(control("row_newbcast", 3)).to_imm();
    let inst = Inst::new(VMovB64, &[v(8), v(6)]).modifiers(Modifiers::new().dpp()).imm(broadcast);
    m.run(&[inst]).expect("a move");
    let expected: VectorRow = std::array::from_fn(|l| (l / 16 * 16 + 3) as u32);
    assert_eq!((m.wave.rows[8], m.wave.rows[9]), (expected, expected.map(|v| v + 0x4000_0000)));
}

#[test]
fn dpp_accumulates_and_carries() {
    let mut m = Machine::new();
    m.wave.rows[1] = [1.0f32.to_bits(); LANES];
    m.wave.rows[2] = std::array::from_fn(|l| (l as f32).to_bits());
    m.wave.rows[3] = [2.0f32.to_bits(); LANES];
    let imm = Dpp::new(control("row_half_mirror", 0)).to_imm();
    let row = m.row(Inst::new(VFmacF32, &[v(1), v(2), v(3)]).modifiers(Modifiers::new().dpp()).imm(imm), 1);
    assert_eq!(f32::from_bits(row[0]), 1.0 + 7.0 * 2.0);
    m.wave.rows[4] = [u32::MAX; LANES];
    let imm = Dpp::new(control("row_shr", 1)).to_imm();
    let add = Inst::new(VAddCoU32, &[v(5), Operand::VCC, v(0), v(4)]);
    m.run(&[add.modifiers(Modifiers::new().dpp()).imm(imm)]).expect("a sum");
    // Lanes without a source carry nothing, nor do those whose neighbour holds zero.
    assert_eq!(m.vcc() & 0xf_ffff, 0xe_fffc);
}

fn sdwa(dst: Select, unused: Unused, sources: [Select; 2]) -> u32 {
    Sdwa { dst, unused, sources }.to_imm()
}

#[test]
fn sdwa_selects_parts() {
    use Select::*;
    for (dst, unused, sources, sign_extend, expected) in [
        (Dword, Unused::Pad, [Byte1, Word1], 0, 0x83 + 0x0001),
        (Dword, Unused::Pad, [Byte1, Word1], 1, 0xffff_ff83 + 0x0001),
        (Byte2, Unused::Pad, [Byte0, Byte0], 0, 0x0084_0000),
        (Byte2, Unused::SignExtend, [Byte0, Byte0], 0, 0xff84_0000),
        (Byte2, Unused::Preserve, [Byte0, Byte0], 0, 0x5584_5555),
        (Word1, Unused::Preserve, [Dword, Byte3], 0, 0x8382_5555),
        (Word0, Unused::SignExtend, [Word0, Byte0], 0, 0xffff_8384),
    ] {
        let mut m = Machine::new();
        m.wave.rows[1] = [0x8080_8382; LANES];
        m.wave.rows[2] = [0x0001_0002; LANES];
        m.wave.rows[3] = [0x5555_5555; LANES];
        m.wave.set_pair(EXEC, !1);
        let modifiers = Modifiers::new().sdwa().sign_extend(sign_extend);
        let imm = sdwa(dst, unused, sources);
        let row = m.row(Inst::new(VAddU32, &[v(3), v(1), v(2)]).modifiers(modifiers).imm(imm), 3);
        assert_eq!((row[0], row[1]), (0x5555_5555, expected), "{dst:?} {unused:?} {sources:?}");
    }
}

#[test]
fn sdwa_on_halves_with_modifiers_scalars_and_masks() {
    let mut m = Machine::new();
    let half = super::half_bits;
    m.wave.rows[1] = [half(2.0) << 16; LANES];
    m.wave.s[0] = half(0.25);
    let modifiers = Modifiers::new().sdwa().neg(1).clamp();
    let imm = sdwa(Select::Word1, Unused::Pad, [Select::Word1, Select::Word0]);
    let row = m.row(Inst::new(VMulF16, &[v(3), v(1), s(0)]).modifiers(modifiers).imm(imm), 3);
    assert_eq!(row[0], 0, "minus a half is clamped to zero");
    let row =
        m.row(Inst::new(VMulF16, &[v(3), v(1), s(0)]).modifiers(Modifiers::new().sdwa().neg(1)).imm(imm), 3);
    assert_eq!(row[0], half(-0.5) << 16);
    m.wave.rows[1] = std::array::from_fn(|l| (l as u32) << 8);
    let imm = sdwa(Select::Dword, Unused::Pad, [Select::Byte1, Select::Dword]);
    let compare = Inst::new(VCmpLtU32, &[s(4), v(1), v(2)]).modifiers(Modifiers::new().sdwa()).imm(imm);
    m.wave.rows[2] = [10; LANES];
    m.run(&[compare]).expect("a comparison");
    assert_eq!(m.wave.pair(4), 0x3ff);
}

#[test]
fn indices_move_the_registers_of_vector_instructions() {
    let mut m = Machine::new();
    m.wave.rows.resize(256 + 6, [0; LANES]);
    for r in 1..40 {
        m.wave.rows[r] = [100 + r as u32; LANES];
    }
    m.wave.s[0] = 5;
    let on = |which| Inst::new(SSetGprIdxOn, &[s(0)]).imm(which);
    let program = [
        on(0b0001),
        Inst::new(VMovB32, &[v(50), v(2)]),
        Inst::new(SSetGprIdxMode, &[]).imm(0b1000),
        Inst::new(VMovB32, &[v(50), v(2)]),
        Inst::new(SSetGprIdxIdx, &[int(3)]),
        Inst::new(VAddU32, &[v(60), v(1), v(2)]),
        Inst::new(SSetGprIdxMode, &[]).imm(0b0010),
        Inst::new(VAddU32, &[v(61), v(1), v(2)]),
        Inst::new(SSetGprIdxOff, &[]),
        Inst::new(VMovB32, &[v(51), v(2)]),
    ];
    m.run(&program).expect("indexed moves");
    let first = |r: usize| m.wave.rows[r][0];
    assert_eq!((first(50), first(55), first(51)), (107, 102, 102));
    assert_eq!((first(63), first(60), first(61)), (203, 0, 101 + 105));
    assert_eq!(m.wave.s[M0] & 0xf0ff, 0x2003);
    assert_eq!(m.wave.mode, MODE);
    // Beyond the last register: sources are v0, results are dropped.
    m.wave.s[0] = 250;
    m.run(&[on(0b0001), Inst::new(VMovB32, &[v(52), v(20)]), Inst::new(SSetGprIdxOff, &[])]).expect("moves");
    assert_eq!(m.wave.rows[52], m.wave.rows[0]);
    m.run(&[on(0b1000), Inst::new(VMovB32, &[v(20), v(1)]), Inst::new(SSetGprIdxOff, &[])]).expect("moves");
    assert_eq!(m.wave.rows[20][0], 120);
}

#[test]
fn skipped_vector_instructions_do_nothing() {
    let mut m = Machine::new();
    m.wave.s[0] = 0b100;
    let program = [
        Inst::new(SSetvskip, &[s(0), int(2)]),
        Inst::new(VMovB32, &[v(1), int(1)]),
        Inst::new(SMovB32, &[s(2), int(1)]),
        Inst::new(SSetvskip, &[s(0), int(1)]),
        Inst::new(VMovB32, &[v(2), int(1)]),
    ];
    m.run_on(Arch::Gfx906, &program).expect("moves");
    assert_eq!((m.wave.rows[1][0], m.wave.s[2], m.wave.rows[2][0]), (0, 1, 1));
}

#[test]
fn rows_change_places() {
    for (op, row) in [(VPermlane16SwapB32, 16), (VPermlane32SwapB32, 32)] {
        let mut m = Machine::new();
        m.wave.rows[1] = std::array::from_fn(|l| l as u32);
        m.wave.rows[2] = std::array::from_fn(|l| 100 + l as u32);
        m.run_on(Arch::Gfx950, &[Inst::new(op, &[v(1), v(2)])]).expect("a swap");
        let odd = |l: usize| l / row % 2 == 1;
        assert_eq!(m.wave.rows[1], std::array::from_fn(|l| (if odd(l) { 100 + l - row } else { l }) as u32));
        assert_eq!(m.wave.rows[2], std::array::from_fn(|l| (if odd(l) { 100 + l } else { l + row }) as u32));
    }
    let mut m = Machine::new();
    m.wave.rows[1] = [1; LANES];
    m.wave.rows[2] = [2; LANES];
    m.wave.set_pair(EXEC, 0xffff_0000);
    let swap = |modifiers| Inst::new(VPermlane16SwapB32, &[v(1), v(2)]).modifiers(modifiers);
    m.run_on(Arch::Gfx950, &[swap(Modifiers::new())]).expect("a swap");
    assert_eq!((m.wave.rows[1][16], m.wave.rows[2][0]), (1, 2), "the other side is off");
    m.run_on(Arch::Gfx950, &[swap(Modifiers::new().op_sel(0b10))]).expect("a swap");
    assert_eq!((m.wave.rows[1][16], m.wave.rows[2][0]), (0, 2));
    m.run_on(Arch::Gfx950, &[swap(Modifiers::new().op_sel(0b01))]).expect("a swap");
    assert_eq!((m.wave.rows[1][16], m.wave.rows[2][0]), (2, 2));
}

#[test]
fn halves_of_registers_are_selected_and_kept() {
    let mut m = Machine::new();
    m.wave.rows[1] = [0x0007_0005; LANES];
    m.wave.rows[2] = [0x0100_0200; LANES];
    let run = |m: &mut Machine, op, operands: &[Operand], op_sel| {
        m.wave.rows[3] = [0x1234_5678; LANES];
        m.row(Inst::new(op, operands).modifiers(Modifiers::new().op_sel(op_sel)), 3)[0]
    };
    let two = [v(3), v(1), v(2)];
    assert_eq!(run(&mut m, VAddI16, &two, 0), 0x1234_0205);
    assert_eq!(run(&mut m, VAddI16, &two, 0b1001), 0x0207_5678);
    let three = [v(3), v(1), v(2), v(1)];
    assert_eq!(run(&mut m, VMadU16, &three, 0b0110), 0x1234_0000 + 5 * 0x100 + 7);
    assert_eq!(run(&mut m, VMadU32U16, &three, 0b0001), 7 * 0x200 + 0x0007_0005);
    assert_eq!(run(&mut m, VMax3U16, &three, 0b1100), 0x0200_5678);
    assert_eq!(run(&mut m, VMadLegacyU16, &three, 0), 5 * 0x200 + 5, "the legacy form clears the other half");
    let half = super::half_bits;
    m.wave.rows[1] = [half(3.0) | half(-2.0) << 16; LANES];
    assert_eq!(run(&mut m, VPackB32F16, &[v(3), v(1), v(1)], 0b01), half(-2.0) | half(3.0) << 16);
    assert_eq!(run(&mut m, VMin3F16, &[v(3), v(1), v(1), v(1)], 0b1010), half(-2.0) << 16 | 0x5678);
}
