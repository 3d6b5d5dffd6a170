//! MODE: round modes, denormals, clamping, output modifiers.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::isa::{Arch, Modifiers, Omod, Opcode, Opcode::*};

use super::{Alu, MODE, half_bits};

const NONE: Modifiers = Modifiers::new();
const DX10: u32 = 0x100;
const IEEE: u32 = 0x200;

fn on() -> Alu {
    Alu::on(Arch::Gfx942)
}

/// Neighbour of an f32 in the direction of a round mode, given the nearest f32 and the exact value in f64 (or
/// the sign of what lies between).
fn directed(nearest: f32, error: f64, mode: u32) -> f32 {
    let too_low = error > 0.0;
    let too_high = error < 0.0;
    match mode {
        1 if too_low => nearest.next_up(),
        2 if too_high => nearest.next_down(),
        3 if too_low && nearest < 0.0 => nearest.next_up(),
        3 if too_high && nearest > 0.0 => nearest.next_down(),
        _ => nearest,
    }
}

fn random_float(rng: &mut StdRng) -> f32 {
    f32::from_bits(rng.random::<u32>() & 0x807f_ffff | rng.random_range(115u32..140) << 23)
}

#[test]
fn f32_rounds_in_all_directions() {
    let mut rng = StdRng::seed_from_u64(6);
    for _ in 0..60 {
        let (a, b) = (random_float(&mut rng), random_float(&mut rng));
        let (wide_a, wide_b) = (f64::from(a), f64::from(b));
        for mode in 0..4 {
            let alu = on().mode(MODE | mode);
            // Sums with exponents this close and products are exact in f64.
            let expected = directed(a + b, wide_a + wide_b - f64::from(a + b), mode);
            assert_eq!(alu.float(VAddF32, &[a, b]), expected, "{a} + {b}, mode {mode}");
            let expected = directed(a * b, wide_a * wide_b - f64::from(a * b), mode);
            assert_eq!(alu.float(VMulF32, &[a, b]), expected, "{a} * {b}, mode {mode}");
            let expected = directed(b - a, wide_b - wide_a - f64::from(b - a), mode);
            assert_eq!(alu.float(VSubrevF32, &[a, b]), expected, "{b} - {a}, mode {mode}");
            // With an addend that is a multiple of the product's last place the exact sum fits too.
            let c = (wide_a * wide_b) as f32;
            let exact = wide_a.mul_add(wide_b, -f64::from(c));
            let expected = directed(exact as f32, exact - f64::from(exact as f32), mode);
            assert_eq!(alu.float(VFmaF32, &[a, b, -c]), expected, "{a} * {b} - {c}, mode {mode}");
        }
    }
}

#[test]
fn conversions_round_in_all_directions() {
    for (mode, integer, negative, half, single) in [
        (0, 16_777_216.0f32, -16_777_216.0f32, 0x3c00, 1.0f32),
        (1, 16_777_218.0, -16_777_216.0, 0x3c01, 1.0 + f32::EPSILON),
        (2, 16_777_216.0, -16_777_218.0, 0x3c00, 1.0),
        (3, 16_777_216.0, -16_777_216.0, 0x3c00, 1.0),
    ] {
        let alu = on().mode(MODE | mode | mode << 2);
        assert_eq!(f32::from_bits(alu.word(VCvtF32U32, &[16_777_217])), integer);
        assert_eq!(f32::from_bits(alu.word(VCvtF32I32, &[-16_777_217i32 as u32])), negative);
        assert_eq!(alu.word(VCvtF16F32, &[1.0001f32.to_bits()]), half);
        let bits = (1.0f64 + 1e-9).to_bits();
        assert_eq!(f32::from_bits(alu.registers(VCvtF32F64, &[&super::pair(bits)])[0]), single);
        assert_eq!(alu.word(VCvtPkrtzF16F32, &[1.0009f32.to_bits(), 1.0009f32.to_bits()]), 0x3c00_3c00);
    }
}

#[test]
fn f16_and_f64_have_a_round_mode_of_their_own() {
    let third = |mode: u32, op: Opcode, sources: &[u32]| on().mode(MODE | mode << 2).word(op, sources);
    // 1 + 2^-11 lies half way between two f16.
    let sources = [half_bits(1.0), half_bits(2.0f32.powi(-11))];
    assert_eq!([0, 1, 2, 3].map(|mode| third(mode, VAddF16, &sources)), [0x3c00, 0x3c01, 0x3c00, 0x3c00]);
    let packed = [
        half_bits(1.0) | half_bits(-1.0) << 16,
        half_bits(2.0f32.powi(-12)) | half_bits(-2.0f32.powi(-12)) << 16,
    ];
    let expected = [0xbc00_3c00u32, 0xbc00_3c01, 0xbc01_3c00, 0xbc00_3c00];
    assert_eq!([0, 1, 2, 3].map(|mode| third(mode, VPkAddF16, &packed)), expected);
    let double = |mode: u32, op: Opcode, sources: &[f64]| on().mode(MODE | mode << 2).double(op, sources);
    let tiny = 2.0f64.powi(-60);
    assert_eq!([0, 1, 2, 3].map(|m| double(m, VAddF64, &[1.0, tiny])), [1.0, 1.0f64.next_up(), 1.0, 1.0]);
    let below = 1.0f64.next_down();
    assert_eq!([0, 1, 2, 3].map(|m| double(m, VAddF64, &[1.0, -tiny])), [1.0, 1.0, below, below]);
    let up = 1.0 + f64::EPSILON;
    let square = 1.0 + 2.0 * f64::EPSILON;
    assert_eq!([0, 1, 2].map(|m| double(m, VMulF64, &[up, up])), [square, square.next_up(), square]);
    let residue = 2.0 * f64::EPSILON;
    let fused = [0, 1, 2].map(|m| double(m, VFmaF64, &[up, up, -1.0]));
    assert_eq!(fused, [residue, residue.next_up(), residue]);
    // The f32 mode does not touch them, nor they f32.
    assert_eq!(on().mode(MODE | 1).double(VAddF64, &[1.0, tiny]), 1.0);
    assert_eq!(on().mode(MODE | 4).float(VAddF32, &[1.0, 1e-20]), 1.0);
    assert_eq!(on().mode(MODE | 1).float(VAddF32, &[1.0, 1e-20]), 1.0f32.next_up());
}

#[test]
fn packed_and_mixed_arithmetic_rounds_too() {
    let pair = |v: f32| [v.to_bits(), (-v).to_bits()];
    let sum = |mode: u32| {
        on().mode(MODE | mode)
            .registers(VPkAddF32, &[&pair(1.0), &pair(1e-20)])
            .into_iter()
            .map(f32::from_bits)
            .collect::<Vec<_>>()
    };
    assert_eq!(sum(1), [1.0f32.next_up(), -1.0]);
    assert_eq!(sum(2), [1.0, (-1.0f32).next_down()]);
    let mix = |mode: u32, op: Opcode| {
        on().mode(MODE | mode).word(op, &[1.0f32.to_bits(), 1.0f32.to_bits(), 1e-20f32.to_bits()])
    };
    assert_eq!(f32::from_bits(mix(1, VFmaMixF32)), 1.0f32.next_up());
    assert_eq!(mix(0b0101, VFmaMixloF16), 0x3c01, "both roundings go up");
    assert_eq!(mix(0b0100, VFmaMixhiF16), 0x3c00_0000);
    let clamped = on().modifiers(NONE.clamp()).word(VFmaMixloF16, &[2.0f32.to_bits(), 2.0f32.to_bits(), 0]);
    assert_eq!(clamped, 0x3c00);
}

#[test]
fn overflow_follows_the_direction() {
    let max = [f32::MAX, f32::MAX];
    let sums = [0, 1, 2, 3].map(|mode| on().mode(MODE | mode).float(VAddF32, &max));
    assert_eq!(sums, [f32::INFINITY, f32::INFINITY, f32::MAX, f32::MAX]);
    let half = [half_bits(65504.0); 2];
    assert_eq!(on().word(VAddF16, &half), 0x7c00);
    let saturating = on().mode(MODE | 1 << 23);
    assert_eq!(saturating.word(VAddF16, &half), 0x7bff);
    assert_eq!(saturating.word(VPkMulF16, &[0xfbff_7bff, 0x7bff_7bff]), 0xfbff_7bff);
    assert_eq!(saturating.word(VCvtF16F32, &[(-1e9f32).to_bits()]), 0xfbff);
    assert_eq!(saturating.word(VAddF16, &[0x7c00, 0x3c00]), 0x7c00, "true infinities stay");
    assert_eq!(on().mode(MODE | 12).word(VLdexpF32, &[1.0f32.to_bits(), 1000]), 0x7f80_0000);
    assert_eq!(on().mode(MODE | 3).word(VLdexpF32, &[1.0f32.to_bits(), 1000]), f32::MAX.to_bits());
}

#[test]
fn denormals_are_flushed_on_the_way_in_and_out() {
    let kept = 0x0000_0fff;
    let smallest = f32::MIN_POSITIVE.to_bits();
    for (bits, source, result) in
        [(0b00, 0, 0), (0b01, 2 * kept, 0), (0b10, 0, 1 << 22), (0b11, 2 * kept, 1 << 22)]
    {
        let alu = on().mode(MODE & !0x30 | bits << 4);
        // A normal result of denormal sources needs more than twice one: multiply.
        let product = alu.float(VMulF32, &[f32::from_bits(2 * kept), 2.0f32.powi(30)]);
        assert_eq!(product, f32::from_bits(source) * 2.0f32.powi(30), "sources, mode {bits:#b}");
        assert_eq!(alu.word(VMulF32, &[smallest, 0.5f32.to_bits()]), result, "results, mode {bits:#b}");
    }
    for (bits, source, result) in [(0b00, 0.0f32, 0), (0b01, 1.0, 0), (0b10, 0.0, 0x200), (0b11, 1.0, 0x200)]
    {
        let alu = on().mode(MODE & !0xc0 | bits << 6);
        assert_eq!(alu.word(VMulF16, &[0x0100, half_bits(2.0f32.powi(15))]), half_bits(0.5 * source));
        assert_eq!(alu.word(VMulF16, &[0x0400, half_bits(0.5)]), result);
        assert_eq!(alu.word(VPkMulF16, &[0x0400_0400, 0x3800_3800]), result | result << 16);
        let (tiny, large) = (f64::from_bits(1 << 51), 2.0f64.powi(1000));
        assert_eq!(alu.double(VMulF64, &[tiny, large]), tiny * f64::from(source) * large);
        let half = alu.double(VMulF64, &[f64::MIN_POSITIVE, 0.5]);
        assert_eq!(half.to_bits(), if result == 0 { 0 } else { 1 << 51 });
        assert_eq!(alu.word(VCvtF32F16, &[0x0100]), (2.0f32.powi(-16) * source).to_bits());
    }
}

#[test]
fn nan_is_clamped_to_zero_or_passes() {
    let nan = f32::NAN.to_bits();
    for (mode, single, half) in [(MODE | DX10, 0, 0), (MODE & !DX10, 0x7fc0_0000, 0x7e00)] {
        let alu = on().mode(mode).modifiers(NONE.clamp());
        assert_eq!(alu.word(VAddF32, &[nan, 0]) & 0x7fff_ffff, single);
        assert_eq!(alu.word(VMulF16, &[0x7e00, 0x3c00]), half);
    }
    let clamp = on().modifiers(NONE.clamp());
    assert_eq!([2.0f32, -1.0, 0.25].map(|v| clamp.float(VMulF32, &[v, 1.0])), [1.0, 0.0, 0.25]);
    assert_eq!([2.0f64, -1.0, 0.25].map(|v| clamp.double(VMulF64, &[v, 1.0])), [1.0, 0.0, 0.25]);
}

#[test]
fn output_modifiers_need_flushed_denormals_and_no_ieee_mode() {
    let scaled = |mode, omod| on().mode(mode).modifiers(NONE.omod(omod));
    let active = MODE & !IEEE & !0xf0;
    assert_eq!(scaled(active, Omod::Mul2).float(VAddF32, &[1.0, 2.0]), 6.0);
    assert_eq!(scaled(active, Omod::Div2).float(VAddF32, &[1.0, 2.0]), 1.5);
    assert_eq!(scaled(active, Omod::Mul4).word(VAddF16, &[half_bits(1.0), half_bits(2.0)]), half_bits(12.0));
    assert_eq!(scaled(active, Omod::Div2).double(VAddF64, &[1.0, 2.0]), 1.5);
    assert_eq!(
        scaled(active, Omod::Mul2).float(VMulF32, &[-1.0, 0.0]).to_bits(),
        0,
        "minus zero becomes zero"
    );
    for mode in [active | IEEE, active | 0xf0] {
        assert_eq!(scaled(mode, Omod::Mul2).float(VAddF32, &[1.0, 2.0]), 3.0);
        assert_eq!(scaled(mode, Omod::Mul2).double(VAddF64, &[1.0, 2.0]), 3.0);
        assert_eq!(scaled(mode, Omod::Mul2).word(VAddF16, &[half_bits(1.0), half_bits(2.0)]), half_bits(3.0));
    }
}
