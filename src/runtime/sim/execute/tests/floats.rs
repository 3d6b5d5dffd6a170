//! Float instructions apart from plain arithmetic: parts of numbers, cube maps, trigonometry, NaN rules,
//! legacy products.

use crate::codegen::isa::{Arch, Inst, Modifiers, Opcode, Opcode::*};

use super::{Alu, MODE, half_bits, pair};

const NONE: Modifiers = Modifiers::new();
const SIGNALLING: u32 = 0x7f80_0001;

fn on() -> Alu {
    Alu::on(Arch::Gfx942)
}

#[test]
fn parts_of_numbers() {
    for value in [1.0f32, -0.75, 3.0e38, 1.0e-40, -1.4e-45, 0.1, 65504.0] {
        let exponent = on().word(VFrexpExpI32F32, &[value.to_bits()]) as i32;
        let mantissa = on().float(VFrexpMantF32, &[value]);
        assert!((0.5..1.0).contains(&mantissa.abs()), "{value}: {mantissa}");
        assert_eq!(f64::from(mantissa) * 2.0f64.powi(exponent), f64::from(value));
        let wide = f64::from(value) * 2.0f64.powi(-900);
        let exponent = on().registers(VFrexpExpI32F64, &[&pair(wide.to_bits())])[0] as i32;
        assert_eq!(on().double(VFrexpMantF64, &[wide]) * 2.0f64.powi(exponent + 900), f64::from(value));
    }
    let special = [0.0f32, -0.0, f32::INFINITY, f32::NEG_INFINITY];
    for value in special {
        assert_eq!(on().word(VFrexpExpI32F32, &[value.to_bits()]), 0);
        assert_eq!(on().float(VFrexpMantF32, &[value]).to_bits(), value.to_bits());
    }
    assert_eq!(on().word(VFrexpExpI16F16, &[half_bits(6.0)]), 3);
    assert_eq!(on().word(VFrexpMantF16, &[half_bits(-6.0)]), half_bits(-0.75));
    assert_eq!(on().word(VFrexpExpI16F16, &[1]), -23i16 as u16 as u32, "a denormal");
    assert_eq!(on().float(VFractF32, &[-1.25]), 0.75);
    assert_eq!(on().word(VFractF32, &[(-1e-20f32).to_bits()]), 0x3f7f_ffff, "never one");
    assert!(on().float(VFractF32, &[f32::INFINITY]).is_nan());
    assert_eq!(on().double(VFractF64, &[-0.25]), 0.75);
}

#[test]
fn examples_of_the_isa_guide() {
    let table: [(Opcode, u32, u32); 22] = [
        (VExpF32, 0xff80_0000, 0),
        (VExpF32, 0x8000_0000, 0x3f80_0000),
        (VLogF32, 0x8000_0000, 0xff80_0000),
        (VLogF32, 0x3f80_0000, 0),
        (VRcpF32, 0xc000_0000, 0xbf00_0000),
        (VRcpF32, 0x8000_0000, 0xff80_0000),
        (VRsqF32, 0x4080_0000, 0x3f00_0000),
        (VRsqF32, 0x8000_0000, 0xff80_0000),
        (VSqrtF32, 0x8000_0000, 0x8000_0000),
        (VSinF32, 0xff7f_ffff, 0),
        (VSinF32, 0x8000_0000, 0x8000_0000),
        (VSinF32, 0x3e80_0000, 0x3f80_0000),
        (VCosF32, 0xff7f_ffff, 0x3f80_0000),
        (VCosF32, 0x3e80_0000, 0),
        (VRcpF16, 0xc000, 0xb800),
        (VSqrtF16, 0x4400, 0x4000),
        (VSinF16, 0x3400, 0x3c00),
        (VCosF16, 0x3400, 0),
        (VFfbhI32, 0xffff_0000, 16),
        (VFfbhU32, 0x100000ff, 3),
        (VFfblB32, 0xff00_0008, 3),
        (VExpLegacyF32, 0x4000_0000, 0x4080_0000),
    ];
    for (op, source, expected) in table {
        assert_eq!(on().word(op, &[source]), expected, "{} {source:#x}", op.mnemonic());
    }
    for (op, source) in
        [(VLogF32, 0xbf80_0000), (VSqrtF32, 0xff80_0000), (VSinF32, 0x7f80_0000), (VCosF32, 0x7f80_0000)]
    {
        assert!(f32::from_bits(on().word(op, &[source])).is_nan());
    }
    for step in 0..400 {
        let turns = (step as f32 - 200.0) * 0.0173;
        let angle = f64::from(turns) * std::f64::consts::TAU;
        assert!((f64::from(on().float(VSinF32, &[turns])) - angle.sin()).abs() < 2e-7);
        assert!((f64::from(on().float(VCosF32, &[turns])) - angle.cos()).abs() < 2e-7);
    }
}

#[test]
fn faces_of_cube_maps() {
    let cube = |v: [f32; 3]| [VCubeidF32, VCubescF32, VCubetcF32, VCubemaF32].map(|op| on().float(op, &v));
    // Face, s, t, twice the major axis.
    assert_eq!(cube([3.0, 1.0, 2.0]), [0.0, -2.0, -1.0, 6.0]);
    assert_eq!(cube([-3.0, 1.0, 2.0]), [1.0, 2.0, -1.0, -6.0]);
    assert_eq!(cube([1.0, 3.0, 2.0]), [2.0, 1.0, 2.0, 6.0]);
    assert_eq!(cube([1.0, -3.0, 2.0]), [3.0, 1.0, -2.0, -6.0]);
    assert_eq!(cube([1.0, 2.0, 3.0]), [4.0, 1.0, -2.0, 6.0]);
    assert_eq!(cube([1.0, 2.0, -3.0]), [5.0, -1.0, -2.0, -6.0]);
    assert_eq!(cube([2.0, 2.0, 2.0])[0], 4.0, "z wins ties, then y");
}

#[test]
fn segments_of_two_over_pi() {
    let segment = |a: f64, n: u32| {
        let result = on().registers(VTrigPreopF64, &[&pair(a.to_bits()), &[n]]);
        f64::from_bits(u64::from(result[0]) | u64::from(result[1]) << 32)
    };
    let sum = segment(1.0, 0) + segment(1.0, 1);
    assert_eq!(sum, std::f64::consts::FRAC_2_PI);
    assert!(segment(1.0, 0) <= std::f64::consts::FRAC_2_PI && segment(1.0, 1).abs() < 2.0f64.powi(-52));
    // An argument of 2^60 (exponent field 1083) starts six bits further on.
    let later = segment(2.0f64.powi(60), 0);
    let bits = (std::f64::consts::FRAC_2_PI * 64.0).fract() / 64.0;
    assert!((later - bits).abs() < 2.0f64.powi(-52));
    let far = segment(2.0f64.powi(1000), 0);
    assert!(far < 2.0f64.powi(-818) && far > 2.0f64.powi(-840), "scaled by 2^128");
}

#[test]
fn minimum_and_maximum_with_nans() {
    let quiet = SIGNALLING | 1 << 22;
    let ieee = on();
    let plain = on().mode(MODE & !0x200);
    let one = 1.0f32.to_bits();
    for op in [VMinF32, VMaxF32] {
        assert_eq!(ieee.word(op, &[SIGNALLING, one]), quiet);
        assert_eq!(ieee.word(op, &[one, SIGNALLING]), quiet);
        assert_eq!(ieee.word(op, &[quiet, one]), one);
        assert_eq!(plain.word(op, &[SIGNALLING, one]), one);
        assert_eq!(plain.word(op, &[one, SIGNALLING]), one);
    }
    assert_eq!(ieee.word(VMinF16, &[0x7c01, 0x3c00]), 0x7e01);
    assert_eq!(plain.word(VMaxF16, &[0x3c00, 0x7c01]), 0x3c00);
    assert_eq!(plain.double(VMinF64, &[f64::NAN, 2.0]), 2.0);
    assert_eq!(on().float(VMed3F32, &[3.0, -1.0, 2.0]), 2.0);
    assert_eq!(on().float(VMed3F32, &[3.0, f32::NAN, 2.0]), 2.0, "the least");
    assert_eq!(on().float(VMax3F32, &[3.0, 5.0, 2.0]), 5.0);
    let gfx950 = Alu::on(Arch::Gfx950);
    assert!(gfx950.float(VMinimum3F32, &[3.0, f32::NAN, 2.0]).is_nan());
    assert_eq!(gfx950.float(VMaximum3F32, &[-0.0, -1.0, 0.0]).to_bits(), 0);
    let packed = gfx950.word(VPkMinimum3F16, &[0x7e00_3c00, 0x3c00_4000, 0x4000_c000]);
    assert_eq!(packed & 0xffff, 0xc000);
    assert!(packed >> 16 & 0x7fff > 0x7c00);
}

#[test]
fn zero_times_anything_is_zero_for_legacy_products() {
    for (arch, op) in [(Arch::Gfx906, VMulLegacyF32Short), (Arch::Gfx942, VMulLegacyF32)] {
        assert_eq!(Alu::on(arch).float(op, &[0.0, f32::INFINITY]), 0.0);
        assert_eq!(Alu::on(arch).float(op, &[f32::NAN, -0.0]), 0.0);
        assert_eq!(Alu::on(arch).float(op, &[3.0, -2.0]), -6.0);
    }
    assert_eq!(Alu::on(Arch::Gfx906).float(VMadLegacyF32, &[0.0, f32::NAN, 5.0]), 5.0);
    assert!(Alu::on(Arch::Gfx906).float(VMadF32, &[0.0, f32::NAN, 5.0]).is_nan());
}

#[test]
fn unfused_multiply_add_rounds_twice_and_flushes() {
    let (a, c) = (1.0 + f32::EPSILON, -1.0 - 2.0 * f32::EPSILON);
    let gfx908 = Alu::on(Arch::Gfx908);
    assert_eq!(gfx908.float(VMadF32, &[a, a, c]), 0.0);
    assert_eq!(gfx908.float(VFmaF32, &[a, a, c]), f32::EPSILON * f32::EPSILON);
    assert_eq!(gfx908.float(VMadF32, &[1e-40, 1.0, 0.0]), 0.0, "denormals count as zero");
    let half = 1.0 + 2.0f32.powi(-10);
    let sources = [half_bits(half), half_bits(half), half_bits(-1.0 - 2.0f32.powi(-9))];
    assert_eq!(gfx908.word(VMadF16, &sources), 0);
    assert_eq!(gfx908.word(VFmaF16, &sources), half_bits(2.0f32.powi(-20)));
}

#[test]
fn sixteen_bit_quotients_are_put_right() {
    let fixup = |q: f32, d: f32, n: f32| on().word(VDivFixupF16, &[half_bits(q), half_bits(d), half_bits(n)]);
    assert_eq!(fixup(3.0, -2.0, 6.0), half_bits(-3.0));
    assert_eq!(fixup(3.0, 0.0, -6.0), half_bits(f32::NEG_INFINITY));
    assert_eq!(fixup(3.0, f32::INFINITY, 6.0), 0);
    assert_eq!(fixup(1e-6, 65504.0, 6e-8), half_bits(1e-6), "no limit of exponents");
    assert_eq!(fixup(0.0, 0.0, 0.0) & 0x7e00, 0x7e00);
}

#[test]
fn classes_see_denormals_whatever_the_mode() {
    let mut m = super::Machine::new();
    m.wave.mode = 0;
    m.wave.rows[1] = [0x8000_0001; 64];
    m.wave.rows[2] = [1 << 4; 64];
    let inst = Inst::new(VCmpClassF32, &[super::s(0), super::v(1), super::v(2)]);
    m.run(&[inst]).expect("a classification");
    assert_eq!(m.wave.pair(0), u64::MAX);
    m.wave.set_pair(super::EXEC, 0xff);
    let inst = Inst::new(VCmpxClassF32, &[super::s(0), super::v(1), super::v(2)]);
    m.run(&[inst.modifiers(NONE.neg(1))]).expect("a classification");
    assert_eq!((m.wave.pair(0), m.wave.exec()), (0, 0), "negated it is a positive denormal");
}

#[test]
fn float_dot_products_flush_denormals() {
    let pair = |low: f32, high: f32| half_bits(low) | half_bits(high) << 16;
    let (a, b) = (pair(2.0, -3.0), pair(0.5, 4.0));
    assert_eq!(f32::from_bits(on().word(VDot2F32F16, &[a, b, 1.0f32.to_bits()])), -10.0);
    let negated = on().modifiers(NONE.neg_lo(1).neg_hi(1));
    assert_eq!(f32::from_bits(negated.word(VDot2F32F16, &[a, b, 1.0f32.to_bits()])), 12.0);
    assert_eq!(on().word(VDot2F32F16, &[1, pair(1.0, 0.0), 0]), 0, "an f16 denormal counts as zero");
    assert_eq!(on().word(VDot2F32F16, &[0, 0, 1]), 0);
    assert_eq!(f32::from_bits(on().old(1.0f32.to_bits()).word(VDot2cF32F16, &[a, b])), -10.0);
    let bf16 = |low: f32, high: f32| low.to_bits() >> 16 | high.to_bits() & 0xffff_0000;
    let gfx950 = Alu::on(Arch::Gfx950);
    let sum = gfx950.word(VDot2F32Bf16, &[bf16(2.0, -3.0), bf16(0.5, 4.0), 1.0f32.to_bits()]);
    assert_eq!(f32::from_bits(sum), -10.0);
    let sum = gfx950.old(1.0f32.to_bits()).word(VDot2cF32Bf16, &[bf16(2.0, -3.0), bf16(0.5, 4.0)]);
    assert_eq!(f32::from_bits(sum), -10.0);
}

#[test]
fn approximations_take_denormals_for_zeros() {
    const ZERO: u32 = 0;
    const MINUS_ZERO: u32 = 1 << 31;
    const INFINITY: u32 = 0x7f80_0000;
    const DENORMAL: u32 = 0x0040_0000;
    let table = [
        (VExpF32, (-126.5f32).to_bits(), ZERO),
        (VExpF32, (-126.0f32).to_bits(), 0x0080_0000),
        (VExpF32, DENORMAL, 1f32.to_bits()),
        (VLogF32, DENORMAL, INFINITY | MINUS_ZERO),
        (VLogF32, DENORMAL | MINUS_ZERO, INFINITY | MINUS_ZERO),
        (VSqrtF32, DENORMAL, ZERO),
        (VSqrtF32, DENORMAL | MINUS_ZERO, MINUS_ZERO),
        (VRcpF32, DENORMAL, INFINITY),
        (VRcpF32, 2f32.powi(127).to_bits() | MINUS_ZERO, MINUS_ZERO),
        (VRcpIflagF32, DENORMAL, INFINITY),
        (VRsqF32, DENORMAL, INFINITY),
        (VExpLegacyF32, (-126.5f32).to_bits(), ZERO),
        (VLogLegacyF32, DENORMAL, INFINITY | MINUS_ZERO),
    ];
    for (op, source, result) in table {
        assert_eq!(on().word(op, &[source]), result, "{} of {source:#x}", op.mnemonic());
    }
    // f16 keeps them.
    assert_eq!(on().word(VExpF16, &[half_bits(-15.0)]), 1 << 9);
    assert_eq!(on().word(VLogF16, &[1]), half_bits(-24.0));
    assert_eq!(on().word(VSqrtF16, &[1]), half_bits(2f32.powi(-12)));
}

#[test]
fn conversions_quiet_signalling_nans() {
    assert_eq!(on().word(VCvtF32F16, &[0x7c01]), 0x7fc0_2000);
    assert_eq!(on().word(VCvtF32F16, &[0xfc01]), 0xffc0_2000);
    assert_eq!(on().word(VCvtF32F16, &[0x7e01]), 0x7fc0_2000);
    assert_eq!(on().word(VCvtF32F16, &[0x7c00]), 0x7f80_0000);
    assert_eq!(on().word(VCvtF16F32, &[SIGNALLING]), 0x7e00);
    assert_eq!(Alu::on(Arch::Gfx950).word(VCvtF32Bf16, &[0x7f81]), 0x7fc1_0000);
}
