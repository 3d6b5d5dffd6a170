//! Scalar and vector ALU.

use crate::codegen::isa::{Inst, Modifiers, Omod, Opcode::*, Operand};

use super::super::super::error::FaultKind;
use super::super::super::wave::{EXEC, LANES, VCC};
use super::{MODE, Machine, int, s, v};

/// Runs one scalar instruction on s0 and s1; returns s2 and SCC.
fn scalar(op: crate::codegen::isa::Opcode, a: u32, b: u32) -> (u32, bool) {
    let mut m = Machine::new();
    (m.wave.s[0], m.wave.s[1]) = (a, b);
    m.run(&[Inst::new(op, &[s(2), s(0), s(1)])]).expect("a plain scalar instruction");
    (m.wave.s[2], m.wave.scc)
}

#[test]
fn scalar_sums_set_scc() {
    assert_eq!(scalar(SAddU32, u32::MAX, 2), (1, true));
    assert_eq!(scalar(SAddI32, i32::MAX as u32, 1), (1 << 31, true));
    assert_eq!(scalar(SAddI32, u32::MAX, 2), (1, false));
    assert_eq!(scalar(SSubU32, 1, 2), (u32::MAX, true));
    assert_eq!(scalar(SSubI32, 1, 2), (u32::MAX, false));
    assert_eq!(scalar(SMinI32, u32::MAX, 2), (u32::MAX, true));
    assert_eq!(scalar(SMaxU32, u32::MAX, 2), (u32::MAX, true));
    assert_eq!(scalar(SLshl3AddU32, 0x2000_0001, 5), (13, true));
}

#[test]
fn scalar_bits() {
    assert_eq!(scalar(SBfeU32, 0xabcd_1234, 8 | 8 << 16), (0x12, true));
    assert_eq!(scalar(SBfeI32, 0x0000_8000, 8 | 8 << 16), (0xffff_ff80, true));
    assert_eq!(scalar(SBfmB32, 5, 3), (0xf8, false));
    assert_eq!(scalar(SAshrI32, 0x8000_0000, 31), (u32::MAX, true));
    assert_eq!(scalar(SAndn2B32, 0xff, 0x0f), (0xf0, true));
    assert_eq!(scalar(SPackLhB32B16, 0x1111_2222, 0x3333_4444), (0x3333_2222, false));
    assert_eq!(scalar(SMulHiI32, u32::MAX, 5), (u32::MAX, false));
}

#[test]
fn carries_chain_through_scc() {
    let mut m = Machine::new();
    m.wave.s[..4].copy_from_slice(&[u32::MAX, 1, 1, 2]);
    m.run(&[Inst::new(SAddU32, &[s(4), s(0), s(2)]), Inst::new(SAddcU32, &[s(5), s(1), s(3)])])
        .expect("plain sums");
    assert_eq!(m.wave.pair(4), 0x1_ffff_ffffu64.wrapping_add(0x2_0000_0001));
}

#[test]
fn saveexec_and_branches() {
    let mut m = Machine::new();
    m.wave.set_pair(0, 0xf0);
    // Skips the move because EXEC is not empty.
    let program = [
        Inst::new(SAndSaveexecB64, &[s(2), s(0)]),
        Inst::new(SCbranchExecnz, &[]).imm(1),
        Inst::new(SMovB32, &[s(4), int(1)]),
        Inst::new(VMovB32, &[v(1), int(7)]),
    ];
    m.run(&program).expect("a forward branch");
    assert_eq!((m.wave.pair(2), m.wave.exec(), m.wave.s[4], m.wave.scc), (u64::MAX, 0xf0, 0, true));
    let expected: [u32; LANES] = std::array::from_fn(|l| if (4..8).contains(&l) { 7 } else { 0 });
    assert_eq!(m.wave.rows[1], expected);
}

#[test]
fn branches_into_nowhere_are_faults() {
    let mut m = Machine::new();
    let stopped = m.run(&[Inst::new(SBranch, &[]).imm(100)]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::ProgramCounter { target: 404 });
}

#[test]
fn immediates_are_sign_extended() {
    let mut m = Machine::new();
    m.run(&[Inst::new(SMovkI32, &[s(0)]).imm(0xffff), Inst::new(SAddkI32, &[s(0)]).imm(0xfffe)])
        .expect("plain SOPK");
    assert_eq!(m.wave.s[0] as i32, -3);
    m.run(&[Inst::new(SCmpkLtI32, &[s(0)]).imm(0xfffe)]).expect("plain SOPK");
    assert!(m.wave.scc);
}

#[test]
fn inactive_lanes_keep_their_values() {
    let mut m = Machine::new();
    m.wave.set_pair(EXEC, 0xaaaa_aaaa_aaaa_aaaa);
    let row = m.row(Inst::new(VLshlrevB32, &[v(0), int(4), v(0)]), 0);
    assert_eq!(row, std::array::from_fn(|l| if l % 2 == 1 { 16 * l as u32 } else { l as u32 }));
}

#[test]
fn source_and_output_modifiers() {
    let mut m = Machine::new();
    m.wave.rows[1] = [(-3.0f32).to_bits(); LANES];
    let add = |modifiers| {
        Inst::new(VAddF32, &[v(2), v(1), Operand::constant(1.0f32.to_bits())]).modifiers(modifiers)
    };
    let value = |m: &mut Machine, modifiers| f32::from_bits(m.row(add(modifiers), 2)[0]);
    let none = Modifiers::new();
    assert_eq!(value(&mut m, none), -2.0);
    assert_eq!(value(&mut m, none.abs(1)), 4.0);
    assert_eq!(value(&mut m, none.abs(1).neg(1)), -2.0);
    assert_eq!(value(&mut m, none.neg(3)), 2.0);
    assert_eq!(value(&mut m, none.clamp()), 0.0);
    assert_eq!(value(&mut m, none.omod(Omod::Mul4)), -2.0, "ignored where denormals are kept");
    m.wave.mode = MODE & !0x230;
    assert_eq!(value(&mut m, none.omod(Omod::Mul4)), -8.0);
}

#[test]
fn f32_denormals_follow_the_mode() {
    let mut m = Machine::new();
    m.wave.rows[1] = [0x0000_1000; LANES];
    let double = Inst::new(VAddF32, &[v(2), v(1), v(1)]);
    assert_eq!(m.row(double, 2)[0], 0x0000_2000);
    m.wave.mode = MODE & !0x30;
    assert_eq!(m.row(double, 2)[0], 0);
}

#[test]
fn fused_multiply_add_rounds_once() {
    let mut m = Machine::new();
    let a = 1.0 + f32::EPSILON;
    m.wave.rows[1] = [a.to_bits(); LANES];
    m.wave.rows[2] = [(-1.0f32 - 2.0 * f32::EPSILON).to_bits(); LANES];
    let row = m.row(Inst::new(VFmaF32, &[v(3), v(1), v(1), v(2)]), 3);
    assert_eq!(f32::from_bits(row[0]), f32::EPSILON * f32::EPSILON);
    let row = m.row(Inst::new(VFmacF32, &[v(2), v(1), v(1)]), 2);
    assert_eq!(f32::from_bits(row[0]), f32::EPSILON * f32::EPSILON);
}

#[test]
fn carries_of_lanes_go_to_a_mask() {
    let mut m = Machine::new();
    m.wave.rows[1] = [u32::MAX - 9; LANES];
    m.wave.set_pair(EXEC, u64::MAX >> 1);
    let add = Inst::new(VAddCoU32, &[v(2), Operand::VCC, v(0), v(1)]);
    let high = Inst::new(VAddcCoU32, &[v(3), s(0), int(0), int(0), Operand::VCC]);
    m.run(&[add, high]).expect("plain sums");
    assert_eq!(m.vcc(), (u64::MAX >> 1) & !0x3ff);
    assert_eq!(m.wave.rows[3], std::array::from_fn(|l| u32::from((10..63).contains(&l))));
}

#[test]
fn comparisons_make_masks_of_active_lanes() {
    let mut m = Machine::new();
    m.wave.set_pair(EXEC, 0xffff);
    m.run(&[Inst::new(VCmpGtU32, &[Operand::VCC, int(8), v(0)])]).expect("a comparison");
    assert_eq!(m.vcc(), 0xff);
    m.run(&[Inst::new(VCmpxLtI32, &[Operand::VCC, int(3), v(0)])]).expect("a comparison");
    assert_eq!((m.vcc(), m.wave.exec()), (0xfff0, 0xfff0));
}

#[test]
fn unordered_operands_satisfy_the_negated_conditions_alone() {
    let mut m = Machine::new();
    m.wave.rows[1] = [f32::NAN.to_bits(); LANES];
    for (op, expected) in
        [(VCmpLtF32, 0), (VCmpNltF32, u64::MAX), (VCmpLgF32, 0), (VCmpNeqF32, u64::MAX), (VCmpUF32, u64::MAX)]
    {
        m.run(&[Inst::new(op, &[Operand::VCC, v(1), v(0)])]).expect("a comparison");
        assert_eq!(m.vcc(), expected, "{}", op.mnemonic());
    }
}

#[test]
fn classes_of_floats() {
    let mut m = Machine::new();
    let values = [
        0x7f80_0001,
        0x7fc0_0000,
        0xff80_0000,
        0xbf80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        1,
        0x3f80_0000,
        0x7f80_0000,
    ];
    m.wave.rows[1] = std::array::from_fn(|l| values[l % 10]);
    for bit in 0..10 {
        m.wave.rows[2] = [1 << bit; LANES];
        m.run(&[Inst::new(VCmpClassF32, &[Operand::VCC, v(1), v(2)])]).expect("a classification");
        assert_eq!(m.vcc() & 0x3ff, 1 << bit);
    }
}

#[test]
fn selects_and_lane_moves() {
    let mut m = Machine::new();
    m.wave.set_pair(VCC, 0b10);
    let row = m.row(Inst::new(VCndmaskB32, &[v(1), int(5), v(0), Operand::VCC]), 1);
    assert_eq!(&row[..4], [5, 1, 5, 5]);
    m.wave.set_pair(EXEC, 0xf00);
    let program = [
        Inst::new(VReadfirstlaneB32, &[s(0), v(0)]),
        Inst::new(VReadlaneB32, &[s(1), v(0), int(63)]),
        Inst::new(VWritelaneB32, &[v(2), s(1), int(3)]),
        Inst::new(VMbcntLoU32B32, &[v(3), int(-1), int(0)]),
    ];
    m.run(&program).expect("lane moves");
    assert_eq!((m.wave.s[0], m.wave.s[1], m.wave.rows[2][3]), (8, 63, 63));
    assert_eq!(m.wave.rows[3][8..12], [8, 9, 10, 11]);
}

#[test]
fn halves_of_registers() {
    let mut m = Machine::new();
    let half = |x: f32| u32::from(half::f16::from_f32(x).to_bits());
    m.wave.rows[1] = [half(2.0) | half(3.0) << 16; LANES];
    m.wave.rows[2] = [half(10.0) | half(20.0) << 16; LANES];
    let add = |modifiers| Inst::new(VPkAddF16, &[v(3), v(1), v(2)]).modifiers(modifiers);
    let none = Modifiers::new();
    assert_eq!(m.row(add(none), 3)[0], half(12.0) | half(23.0) << 16);
    assert_eq!(m.row(add(none.op_sel(1)), 3)[0], half(13.0) | half(23.0) << 16);
    assert_eq!(m.row(add(none.op_sel_hi_flip(2)), 3)[0], half(12.0) | half(13.0) << 16);
    assert_eq!(m.row(add(none.neg_lo(2)), 3)[0], half(-8.0) | half(23.0) << 16);
    // 16-bit results clear the other half.
    m.wave.rows[3] = [u32::MAX; LANES];
    assert_eq!(m.row(Inst::new(VMulF16, &[v(3), v(1), v(2)]), 3)[0], half(20.0));
    // Mixed widths: source 0 is the high half of v1, the others are f32.
    m.wave.rows[4] = [0.5f32.to_bits(); LANES];
    let mix = Inst::new(VFmaMixF32, &[v(5), v(1), v(4), v(4)]).modifiers(none.op_sel(1).op_sel_hi_flip(1));
    assert_eq!(f32::from_bits(m.row(mix, 5)[0]), 2.0);
}

/// A source that op_sel_hi makes an f16 has the constant of an f16 in its low half, one that is an f32 that
/// of an f32.
#[test]
fn constants_of_mixed_widths() {
    let mut m = Machine::new();
    m.wave.rows[1] = [2.0f32.to_bits(); LANES];
    m.wave.rows[2] = [half::f16::from_f32(1.5).to_bits().into(); LANES];
    let one = Operand::constant(1f32.to_bits());
    let mix = |op, sources: [Operand; 3], halves: u32| {
        let modifiers = Modifiers::new().op_sel_hi_flip(halves);
        Inst::new(op, &[v(5), sources[0], sources[1], sources[2]]).modifiers(modifiers)
    };
    let mut single = |inst| f32::from_bits(m.row(inst, 5)[0]);
    assert_eq!(single(mix(VFmaMixF32, [v(1), one, one], 0b010)), 3.0);
    assert_eq!(single(mix(VFmaMixF32, [v(2), one, int(0)], 0b011)), 1.5);
    assert_eq!(single(mix(VFmaMixF32, [v(2), one, one], 0b101)), 2.5);
    let high = mix(VFmaMixF32, [v(2), one, int(0)], 0b011);
    let high = Inst { modifiers: high.modifiers.op_sel(0b010), ..high };
    assert_eq!(single(high), 0.0, "there is nothing in the high half");
    m.wave.rows[5] = [0; LANES];
    assert_eq!(m.row(mix(VFmaMixloF16, [v(1), one, int(0)], 0b010), 5)[0], 0x4000);
    assert_eq!(m.row(mix(VFmaMixhiF16, [v(1), one, int(0)], 0b010), 5)[0], 0x4000_4000);
}

#[test]
fn packed_f32_takes_pairs() {
    let mut m = Machine::new();
    for (register, value) in [(2, 1.0f32), (3, 2.0), (4, 10.0), (5, 20.0)] {
        m.wave.rows[register] = [value.to_bits(); LANES];
    }
    m.run(&[Inst::new(VPkAddF32, &[v(6), v(2), v(4)])]).expect("a packed sum");
    let lane = |m: &Machine, r: usize| f32::from_bits(m.wave.rows[r][9]);
    assert_eq!((lane(&m, 6), lane(&m, 7)), (11.0, 22.0));
    let crossed = Modifiers::new().op_sel(1).op_sel_hi_flip(1);
    m.run(&[Inst::new(VPkMulF32, &[v(6), v(2), v(4)]).modifiers(crossed)]).expect("a packed product");
    assert_eq!((lane(&m, 6), lane(&m, 7)), (20.0, 20.0));
}

#[test]
fn conversions_saturate_and_truncate() {
    let mut m = Machine::new();
    let values = [1.9f32, -1.9, 3e9, 1e10, -1e10, f32::NAN];
    m.wave.rows[1] = std::array::from_fn(|l| values[l % 6].to_bits());
    let row = m.row(Inst::new(VCvtI32F32, &[v(2), v(1)]), 2);
    assert_eq!(
        row[..6].iter().map(|&v| v as i32).collect::<Vec<_>>(),
        [1, -1, i32::MAX, i32::MAX, i32::MIN, 0]
    );
    let row = m.row(Inst::new(VCvtU32F32, &[v(2), v(1)]), 2);
    assert_eq!(row[..6], [1, 0, 3_000_000_000, u32::MAX, 0, 0]);
    m.wave.rows[1] = [0x0403_0201; LANES];
    assert_eq!(f32::from_bits(m.row(Inst::new(VCvtF32Ubyte2, &[v(2), v(1)]), 2)[0]), 3.0);
}

#[test]
fn byte_permutation() {
    let mut m = Machine::new();
    m.wave.rows[1] = [0x8765_4321; LANES];
    m.wave.rows[2] = [0x0fed_cba9; LANES];
    m.wave.rows[3] = [0x0c_0b_04_00; LANES];
    assert_eq!(m.row(Inst::new(VPermB32, &[v(4), v(1), v(2), v(3)]), 4)[0], 0x00ff_21a9);
}

#[test]
fn dot_products() {
    let mut m = Machine::new();
    m.wave.rows[1] = [0x01ff_0203; LANES];
    m.wave.rows[2] = [0x0102_0304; LANES];
    let dot = |op| Inst::new(op, &[v(3), v(1), v(2), int(1)]);
    // 1 + 1 * 1 - 1 * 2 + 2 * 3 + 3 * 4, and the same with 255 for -1.
    assert_eq!(m.row(dot(VDot4I32I8), 3)[0], 18);
    assert_eq!(m.row(dot(VDot4U32U8), 3)[0], 530);
}
