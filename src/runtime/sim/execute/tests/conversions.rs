//! Conversions: 8-bit and smaller floats, scales, random rounding, normalised integers.

use half::{bf16, f16};

use crate::codegen::isa::{Arch, Inst, Modifiers, Opcode, Opcode::*, Sdwa, Select, Unused};

use super::{Alu, MODE, Machine, half_bits, v};

const NONE: Modifiers = Modifiers::new();
const OVERFLOW: u32 = MODE | 1 << 23;

fn gfx950() -> Alu {
    Alu::on(Arch::Gfx950)
}

/// Values of a small float by their definition: sign, exponent field, mantissa field.
fn by_definition(bits: u32, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f32 {
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 != 0 { -1.0 } else { 1.0 };
    let exponent = (bits >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
    let fraction = (bits & ((1 << mantissa_bits) - 1)) as f32 / (1 << mantissa_bits) as f32;
    match exponent {
        0 => sign * fraction * 2.0f32.powi(1 - bias),
        _ => sign * (1.0 + fraction) * 2.0f32.powi(exponent - bias),
    }
}

#[test]
fn eight_bit_floats_are_widened() {
    for (arch, op, exponent_bits, mantissa_bits, bias, infinity) in [
        (Arch::Gfx942, VCvtF32Fp8, 4, 3, 8, None),
        (Arch::Gfx942, VCvtF32Bf8, 5, 2, 16, None),
        (Arch::Gfx950, VCvtF32Fp8, 4, 3, 7, None),
        (Arch::Gfx950, VCvtF32Bf8, 5, 2, 15, Some(0x7c)),
    ] {
        for bits in 0..256 {
            let got = f32::from_bits(Alu::on(arch).word(op, &[bits | 0xabcd_ef00]));
            let magnitude = bits & 0x7f;
            let is_nan = match (arch, infinity) {
                (Arch::Gfx942, _) => bits == 0x80,
                (_, Some(infinity)) => magnitude > infinity,
                _ => magnitude == 0x7f,
            };
            let expected = match infinity {
                Some(infinity) if magnitude == infinity => {
                    f32::INFINITY * if bits > 0x7f { -1.0 } else { 1.0 }
                }
                _ => by_definition(bits, exponent_bits, mantissa_bits, bias),
            };
            let same = if is_nan { got.is_nan() } else { got.to_bits() == expected.to_bits() };
            assert!(same, "{arch} {} {bits:#x}: {got} {expected}", op.mnemonic());
        }
    }
    let both = Alu::on(Arch::Gfx942).registers(VCvtPkF32Fp8, &[&[0xffff_c040]]);
    assert_eq!(both.iter().map(|&v| f32::from_bits(v)).collect::<Vec<_>>(), [1.0, -1.0]);
}

#[test]
fn parts_of_registers_are_widened() {
    let mut m = Machine::new();
    m.wave.rows[2] = [0x4840_c030; 64];
    let select =
        |part| Sdwa { dst: Select::Dword, unused: Unused::Pad, sources: [part, Select::Dword] }.to_imm();
    let convert = |op, part| Inst::new(op, &[v(4), v(2)]).modifiers(NONE.sdwa()).imm(select(part));
    assert_eq!(f32::from_bits(m.row(convert(VCvtF32Fp8, Select::Byte3), 4)[0]), 2.0);
    assert_eq!(f32::from_bits(m.row(convert(VCvtPkF32Fp8, Select::Word1), 4)[0]), 1.0);
    assert_eq!(f32::from_bits(m.wave.rows[5][0]), 2.0);
}

#[test]
fn floats_are_narrowed_to_eight_bits() {
    let to = |arch, mode, value: f32| {
        Alu::on(arch).mode(mode).old(0x1111_1111).word(VCvtPkFp8F32, &[value.to_bits(), (-value).to_bits()])
    };
    assert_eq!(to(Arch::Gfx942, MODE, 1.0), 0x1111_c040);
    assert_eq!(to(Arch::Gfx950, MODE, 1.0), 0x1111_b838);
    assert_eq!(to(Arch::Gfx942, MODE, 1e6), 0x1111_8080, "overflow is NaN");
    assert_eq!(to(Arch::Gfx950, MODE, 1e6), 0x1111_ff7f);
    assert_eq!(to(Arch::Gfx942, OVERFLOW, 1e6), 0x1111_ff7f, "or the largest number");
    assert_eq!(to(Arch::Gfx950, OVERFLOW, 1e6), 0x1111_fe7e);
    assert_eq!(to(Arch::Gfx950, MODE, 2.0f32.powi(-9)), 0x1111_8101, "the least denormal");
    assert_eq!(to(Arch::Gfx950, MODE, 2.0f32.powi(-10)), 0x1111_8000, "a tie with zero");
    assert_eq!(to(Arch::Gfx942, MODE, f32::NAN) & 0xff, 0x80);
    let bf8 = |arch, value: f32| Alu::on(arch).word(VCvtPkBf8F32, &[value.to_bits(), 0]) & 0xff;
    assert_eq!((bf8(Arch::Gfx942, 1.75), bf8(Arch::Gfx950, 1.75)), (0x43, 0x3f));
    assert_eq!((bf8(Arch::Gfx942, f32::INFINITY), bf8(Arch::Gfx950, f32::INFINITY)), (0x80, 0x7c));
    let high = Alu::on(Arch::Gfx950).modifiers(NONE.op_sel(8)).old(0x2222_2222);
    assert_eq!(high.word(VCvtPkFp8F32, &[1.0f32.to_bits(), 2.0f32.to_bits()]), 0x4038_2222);
}

#[test]
fn random_bits_decide_about_rounding() {
    // Between 1 and 1.125: three quarters of the way.
    let value = (1.0f32 + 0.09375).to_bits();
    let at = |random: u32| Alu::on(Arch::Gfx950).word(VCvtSrFp8F32, &[value, random]);
    assert_eq!((at(0), at(0x3fff_ffff), at(0x4000_0000), at(u32::MAX)), (0x38, 0x38, 0x39, 0x39));
    let byte = |place: u32| Alu::on(Arch::Gfx942).modifiers(NONE.op_sel(place << 2)).old(0x1111_1111);
    assert_eq!(byte(2).word(VCvtSrBf8F32, &[1.0f32.to_bits(), u32::MAX]), 0x1140_1111);
    assert_eq!(byte(3).word(VCvtSrFp8F32, &[1.0f32.to_bits(), 0]), 0x4011_1111);
    // bf16 drops 16 bits, f16 13.
    let tail = 1.0f32.to_bits() | 0x8000;
    assert_eq!(gfx950().word(VCvtSrBf16F32, &[tail, 0x7fff_0000]), 0x3f80);
    assert_eq!(gfx950().word(VCvtSrBf16F32, &[tail, 0x8000_0000]), 0x3f81);
    assert_eq!(gfx950().word(VCvtSrF16F32, &[1.0f32.to_bits() | 0x1000, 0x7ff8_0000]), 0x3c00);
    assert_eq!(gfx950().word(VCvtSrF16F32, &[1.0f32.to_bits() | 0x1000, 0x8000_0000]), 0x3c01);
    let high = gfx950().modifiers(NONE.op_sel(8)).old(0x5555_5555);
    assert_eq!(high.word(VCvtSrF16F32, &[2.0f32.to_bits(), 0]), 0x4000_5555);
}

#[test]
fn pairs_are_narrowed_to_nearest() {
    for value in [1.0f32, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 65520.0, 3.4e38, -1e-40, 2.0f32.powi(-24)] {
        let bits = gfx950().mode(MODE | 0xf).word(VCvtPkF16F32, &[value.to_bits(), (-value).to_bits()]);
        let expected = f16::from_f32(value);
        assert_eq!(bits, u32::from(expected.to_bits()) | u32::from((-expected).to_bits()) << 16, "{value}");
        let bits = gfx950().word(VCvtPkBf16F32, &[value.to_bits(), (-value).to_bits()]);
        let expected = bf16::from_f32(value);
        assert_eq!(bits, u32::from(expected.to_bits()) | u32::from((-expected).to_bits()) << 16, "{value}");
    }
    assert_eq!(gfx950().float(VCvtF32Bf16, &[f32::from_bits(0xbfc0)]), -1.5);
}

#[test]
fn fractions_become_integers_and_integers_fractions() {
    let on = Alu::on(Arch::Gfx942);
    let pack = |op, a: f32, b: f32| on.word(op, &[a.to_bits(), b.to_bits()]);
    assert_eq!(pack(VCvtPknormI16F32, 1.0, -2.0), 0x8001_7fff);
    assert_eq!(pack(VCvtPknormU16F32, 0.5, -1.0), 0x0000_8000, "32767.5 goes to the even neighbour");
    assert_eq!(pack(VCvtPknormI16F32, f32::NAN, 0.25), 0x2000_0000);
    assert_eq!(on.word(VCvtPknormU16F16, &[half_bits(1.0), half_bits(0.25)]), 0x4000_ffff);
    assert_eq!(on.word(VCvtNormI16F16, &[half_bits(-0.5)]), 0xc000);
    assert_eq!(on.word(VCvtNormU16F16, &[half_bits(7.0)]), 0xffff);
    for nibble in 0..16u32 {
        let signed = if nibble < 8 { nibble as f32 } else { nibble as f32 - 16.0 };
        assert_eq!(f32::from_bits(on.word(VCvtOffF32I4, &[nibble | 0x50])), signed * 0.0625);
    }
    let round = |op: Opcode, value: f32| on.word(op, &[value.to_bits()]) as i32;
    assert_eq!(
        (round(VCvtRpiI32F32, 2.5), round(VCvtRpiI32F32, -2.5), round(VCvtRpiI32F32, -2.6)),
        (3, -2, -3)
    );
    assert_eq!((round(VCvtFlrI32F32, 2.9), round(VCvtFlrI32F32, -2.1)), (2, -3));
    assert_eq!((round(VCvtFlrI32F32, 1e20), round(VCvtFlrI32F32, f32::NAN)), (i32::MAX, 0));
    assert_eq!(on.word(VCvtPkU8F32, &[300.0f32.to_bits(), 2, 0x1111_1111]), 0x11ff_1111);
    assert_eq!(on.old(0x1111_1111).word(VCvtPkaccumU8F32, &[18.9f32.to_bits(), 7]), 0x1211_1111);
}

/// The scale 2^power as the instructions take it.
fn scale(power: i32) -> u32 {
    ((127 + power) as u32) << 23
}

#[test]
fn pairs_are_narrowed_and_widened_with_a_scale() {
    let float = |v: f32| v.to_bits();
    let old = gfx950().old(0x7777_7777);
    // Divided by the scale on the way down.
    assert_eq!(old.word(VCvtScalef32PkFp8F32, &[float(8.0), float(-4.0), scale(2)]), 0x7777_b840);
    assert_eq!(
        old.modifiers(NONE.op_sel(8)).word(VCvtScalef32PkBf8F32, &[float(1.0), float(2.0), scale(0)]),
        0x403c_7777
    );
    assert_eq!(
        old.modifiers(NONE.op_sel(4)).word(VCvtScalef32PkFp4F32, &[float(6.0), float(-0.5), scale(0)]),
        0x7777_9777
    );
    assert_eq!(
        old.word(VCvtScalef32PkFp4F32, &[float(1e9), float(-0.1), scale(0)]),
        0x7777_7787,
        "saturates"
    );
    let pair = half_bits(3.0) | half_bits(-12.0) << 16;
    assert_eq!(old.word(VCvtScalef32PkFp4F16, &[pair, scale(1)]), 0x7777_77f3);
    assert_eq!(old.word(VCvtScalef32PkFp8F16, &[pair, scale(0)]), 0x7777_d444);
    // Multiplied on the way up; op_sel names the half or the byte.
    let up = |op, op_sel, source: u32, power| {
        gfx950().modifiers(NONE.op_sel(op_sel)).registers(op, &[&[source], &[scale(power)]])
    };
    let floats = |bits: Vec<u32>| bits.into_iter().map(f32::from_bits).collect::<Vec<_>>();
    assert_eq!(floats(up(VCvtScalef32PkF32Fp8, 0, 0xb840_0000 | 0x3830, 3)), [4.0, 8.0]);
    assert_eq!(floats(up(VCvtScalef32PkF32Fp8, 1, 0xb840_0000 | 0x3830, 3)), [16.0, -8.0]);
    assert_eq!(floats(up(VCvtScalef32F32Fp8, 2, 0xb840_0000, -1)), [1.0]);
    assert_eq!(floats(up(VCvtScalef32PkF32Fp4, 3, 0x7900_0000, 0)), [-0.5, 6.0]);
    assert_eq!(up(VCvtScalef32PkF16Fp4, 1, 0x0000_7900, 1), [half_bits(-1.0) | half_bits(12.0) << 16]);
    assert_eq!(up(VCvtScalef32PkBf16Bf8, 0, 0x403c, 0), [0x4000_3f80]);
    let half = old.modifiers(NONE.op_sel(0b1001)).registers(VCvtScalef32F16Fp8, &[&[0x4000], &[scale(0)]]);
    assert_eq!(half, [half_bits(2.0) << 16 | 0x7777]);
    let nan = gfx950().registers(VCvtScalef32F32Fp8, &[&[0x38], &[255 << 23]]);
    assert!(f32::from_bits(nan[0]).is_nan(), "this scale is NaN");
}

#[test]
fn random_rounding_with_a_scale_steps_the_generator() {
    // 2.5 lies half way between the fp4 numbers 2 and 3.
    let values = [2.5f32.to_bits(), 2.5f32.to_bits()];
    let run = |seed: u32| gfx950().registers(VCvtScalef32SrPkFp4F32, &[&values, &[seed], &[scale(0)]])[0];
    for seed in [0u32, 1, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xc000_0000, 0xdead_beef] {
        let next = seed << 1 ^ if seed >> 31 != 0 { 197 } else { 0 };
        let nibble = |random: u32| if random >> 31 != 0 { 5 } else { 4 };
        assert_eq!(run(seed), nibble(seed) | nibble(next) << 4, "{seed:#x}");
    }
    let fp8 = gfx950().modifiers(NONE.op_sel(0b1100)).old(0x1111_1111);
    assert_eq!(fp8.word(VCvtScalef32SrFp8F32, &[2.0f32.to_bits(), 0, scale(1)]), 0x3811_1111);
    let f16_source = gfx950().registers(VCvtScalef32SrBf8F16, &[&[half_bits(1.0)], &[0], &[scale(0)]]);
    assert_eq!(f16_source[0], 0x3c);
}

/// Sixes of bits out of registers.
fn sixes(registers: &[u32]) -> Vec<u32> {
    let bit = |n: usize| registers[n / 32] >> (n % 32) & 1;
    (0..registers.len() * 32 / 6).map(|i| (0..6).fold(0, |v, b| v | bit(6 * i + b) << b)).collect()
}

#[test]
fn thirty_two_values_at_once() {
    // Every fp6 number there is without a sign, in order.
    let values: Vec<f32> = (0..32).map(|bits| by_definition(bits, 2, 3, 1)).collect();
    let words: Vec<u32> = values.iter().map(|v| (v * 4.0).to_bits()).collect();
    let (even, odd): (Vec<u32>, Vec<u32>) =
        (words.iter().step_by(2).copied().collect(), words.iter().skip(1).step_by(2).copied().collect());
    let packed = gfx950().registers(VCvtScalef32_2xpk16Fp6F32, &[&even, &odd, &[scale(2)]]);
    assert_eq!(sixes(&packed), (0..32).collect::<Vec<_>>());
    let back = gfx950().registers(VCvtScalef32Pk32F32Fp6, &[&packed, &[scale(2)]]);
    assert_eq!(back, words);
    let halves = gfx950().registers(VCvtScalef32Pk32F16Fp6, &[&packed, &[scale(0)]]);
    let expected: Vec<u32> = values.chunks(2).map(|p| half_bits(p[0]) | half_bits(p[1]) << 16).collect();
    assert_eq!(halves, expected);
    let again = gfx950().registers(VCvtScalef32Pk32Fp6F16, &[&halves, &[scale(0)]]);
    assert_eq!(again, packed);
    // Exact values do not care for random bits.
    let random = gfx950().registers(VCvtScalef32SrPk32Fp6F32, &[&words, &[0x1234_5678], &[scale(2)]]);
    assert_eq!(random, packed);
    let large: Vec<u32> = (0..16).map(|_| half_bits(-1000.0) | half_bits(0.25) << 16).collect();
    let bf6 = gfx950().registers(VCvtScalef32Pk32Bf6F16, &[&large, &[scale(0)]]);
    assert_eq!(sixes(&bf6)[..2], [0x3f, 0b000100]);
}
