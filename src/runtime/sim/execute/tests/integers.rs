//! Integer vector instructions: bytes, saturation, truth tables, dot products, packed halves.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::isa::{Arch, Modifiers, Opcode, Opcode::*};

use super::{Alu, pair};

const NONE: Modifiers = Modifiers::new();

fn on() -> Alu {
    Alu::on(Arch::Gfx942)
}

#[test]
fn sums_of_absolute_differences() {
    let (a, b, c) = (0x10_ff_00_05, 0x20_00_03_05, 100);
    assert_eq!(on().word(VSadU8, &[a, b, c]), 100 + 0x10 + 0xff + 3);
    assert_eq!(on().word(VSadHiU8, &[a, b, c]), 100 + ((0x10 + 0xff + 3) << 16));
    assert_eq!(on().word(VMsadU8, &[a, b, c]), 100 + 0x10 + 3, "bytes that are zero in b do not count");
    assert_eq!(on().word(VSadU16, &[a, b, c]), 100 + (0x2000 - 0x10ff) + (0x305 - 5));
    assert_eq!(on().word(VSadU32, &[1, 5, c]), 104);
    assert_eq!(on().word(VSadU32, &[0, u32::MAX, 2]), 1);
    assert_eq!(on().modifiers(NONE.clamp()).word(VSadU32, &[0, u32::MAX, 2]), u32::MAX);
    assert_eq!(on().word(VLerpU8, &[0x00_05_ff_01, 0x01_06_ff_03, 0x01_00_01_00]), 0x01_05_ff_02);
}

#[test]
fn four_sums_at_rising_offsets() {
    let (a, b) = (0x0807_0605_0403_0201u64, 0x0000_0201u32);
    let addends = 0x0400_0300_0200_0100u64;
    // |a[i..i+4] - (1, 2, 0, 0)| summed, with and without the bytes that b has zero.
    let all: Vec<u64> = (0..4u64).map(|i| i + i + (3 + i) + (4 + i)).collect();
    let masked: Vec<u64> = (0..4u64).map(|i| i + i).collect();
    let packed = |sums: &[u64]| (0..4).map(|i| (sums[i as usize] + 0x100 * (i + 1)) << (16 * i)).sum::<u64>();
    let run = |op| on().registers(op, &[&pair(a), &[b], &pair(addends)]);
    assert_eq!(run(VQsadPkU16U8), pair(packed(&all)));
    assert_eq!(run(VMqsadPkU16U8), pair(packed(&masked)));
    let result = on().registers(VMqsadU32U8, &[&pair(a), &[b], &[10, 20, 30, u32::MAX]]);
    assert_eq!(result, [10, 22, 34, 5]);
    let result =
        on().modifiers(NONE.clamp()).registers(VMqsadU32U8, &[&pair(a), &[b], &[10, 20, 30, u32::MAX]]);
    assert_eq!(result[3], u32::MAX);
}

#[test]
fn results_saturate_with_clamp() {
    let (least, largest) = (i32::MIN as u32, i32::MAX as u32);
    let minus = |n: i32| n.wrapping_neg() as u32;
    let table: [(Opcode, &[u32], u32, u32); 14] = [
        (VAddI32, &[largest, 1], least, largest),
        (VSubI32, &[least, 1], largest, least),
        (VAddI32, &[5, minus(6)], minus(1), minus(1)),
        (VAddU32, &[u32::MAX, 2], 1, u32::MAX),
        (VSubrevU32, &[2, 1], u32::MAX, 0),
        (VAddI16, &[0x7fff, 1], 0x8000, 0x7fff),
        (VSubI16, &[0x8000, 1], 0x7fff, 0x8000),
        (VAddU16, &[0xffff, 2], 1, 0xffff),
        (VMadU16, &[0x100, 0x100, 7], 7, 0xffff),
        (VMadI16, &[0x100, 0xff00, 7], 7, 0x8000),
        (VMulU32U24, &[0xff_ffff, 0xff_ffff], 0xfe00_0001, u32::MAX),
        (VMulI32I24, &[0x80_0000, 0x7f_ffff], 0x0080_0000, least),
        (VMadI32I24, &[0x7f_ffff, 0x7f_ffff, minus(1)], 0xff00_0000, largest),
        (VMadU32U16, &[0xffff, 0xffff, 0x2_0000], 1, u32::MAX),
    ];
    for (op, sources, wrapped, clamped) in table {
        assert_eq!(on().word(op, sources), wrapped, "{}", op.mnemonic());
        assert_eq!(on().modifiers(NONE.clamp()).word(op, sources), clamped, "{} clamp", op.mnemonic());
    }
    let wide = |op, c: u64| on().modifiers(NONE.clamp()).registers(op, &[&[u32::MAX], &[u32::MAX], &pair(c)]);
    assert_eq!(wide(VMadU64U32, u64::MAX), pair(u64::MAX));
    assert_eq!(wide(VMadI64I32, i64::MAX as u64), pair(i64::MAX as u64));
    assert_eq!(wide(VMadI64I32, 5), pair(6));
}

#[test]
fn truth_tables() {
    let gfx950 = |table| Alu::on(Arch::Gfx950).modifiers(NONE.bitop3(table));
    let (a, b, c) = (0xf0f0_1234, 0xcccc_5678, 0xaaaa_9abc);
    // Tables of the ISA guide.
    for (table, expected) in [
        (0x40, a & b & !c),
        (0xea, a & b | c),
        (0xfe, a | b | c),
        (0x96, a ^ b ^ c),
        (0x01, !(a | b | c)),
        (0xca, a & b | !a & c),
        (0x00, 0),
        (0xff, u32::MAX),
    ] {
        assert_eq!(gfx950(table).word(VBitop3B32, &[a, b, c]), expected, "{table:#x}");
        assert_eq!(gfx950(table).word(VBitop3B16, &[a, b, c]), expected & 0xffff, "{table:#x}");
    }
    let high = Alu::on(Arch::Gfx950).modifiers(NONE.bitop3(0x96).op_sel(0b1111)).old(0x7777_7777);
    assert_eq!(high.word(VBitop3B16, &[a, b, c]), (a ^ b ^ c) & 0xffff_0000 | 0x7777);
}

#[test]
fn bytes_are_saturated_and_packed() {
    let gfx950 = Alu::on(Arch::Gfx950);
    assert_eq!(on().word(VSatPkU8I16, &[0x0123_ffff]), 0xff00);
    assert_eq!(on().word(VSatPkU8I16, &[0x0012_00ff]), 0x12ff);
    assert_eq!(gfx950.word(VAshrPkI8I32, &[0x7fff_0000, -256i32 as u32, 4]), 0xf07f);
    assert_eq!(gfx950.word(VAshrPkU8I32, &[0x0000_0ff0, -256i32 as u32, 4]), 0x00ff);
    let high = gfx950.modifiers(NONE.op_sel(8)).old(0x1111_1111);
    assert_eq!(high.word(VAshrPkU8I32, &[0x120, 0x340, 4]), 0x3412_1111);
    assert_eq!(gfx950.word(VPrngB32, &[0x8000_0001]), 2 ^ 197);
    assert_eq!(gfx950.word(VPrngB32, &[0x4000_0001]), 0x8000_0002);
    assert_eq!(on().word(VBcntU32B32, &[0xff, 5]), 13);
    let shift = |by| on().registers(VLshlAddU64, &[&pair(3), &[by], &pair(5)]);
    assert_eq!((shift(4), shift(5)), (pair(53).to_vec(), pair(8).to_vec()), "shifts beyond four are none");
}

/// Elements of `bits` bits, signed or not.
fn elements(value: u32, bits: u32, signed: bool) -> Vec<i128> {
    (0..32 / bits)
        .map(|i| {
            let part = i128::from(value >> (i * bits)) & ((1 << bits) - 1);
            if signed && part >> (bits - 1) != 0 { part - (1 << bits) } else { part }
        })
        .collect()
}

#[test]
fn dot_products_of_all_widths() {
    let mut rng = StdRng::seed_from_u64(5);
    let table = [
        (VDot2I32I16, 16, true),
        (VDot2U32U16, 16, false),
        (VDot4I32I8, 8, true),
        (VDot4U32U8, 8, false),
        (VDot8I32I4, 4, true),
        (VDot8U32U4, 4, false),
    ];
    for (op, bits, signed) in table {
        for round in 0..50 {
            let (a, b): (u32, u32) = (rng.random(), rng.random());
            let c: u32 = if round % 2 == 0 { rng.random() } else { 0x7fff_ffff };
            let start = if signed { i128::from(c as i32) } else { i128::from(c) };
            let products = elements(a, bits, signed).into_iter().zip(elements(b, bits, signed));
            let sum = products.fold(start, |sum, (x, y)| sum + x * y);
            let (least, largest) =
                if signed { (i32::MIN.into(), i32::MAX.into()) } else { (0, i128::from(u32::MAX)) };
            assert_eq!(on().word(op, &[a, b, c]), sum as u32, "{}", op.mnemonic());
            let clamped = on().modifiers(NONE.clamp()).word(op, &[a, b, c]);
            assert_eq!(clamped, sum.clamp(least, largest) as u32, "{} clamp", op.mnemonic());
        }
    }
    assert_eq!(on().old(7).word(VDot4cI32I8, &[0x01ff_0203, 0x0102_0304]), 7 + 17);
    assert_eq!(on().old(7).word(VDot8cI32I4, &[0x0000_00f1, 0x0000_0023]), 7 + 3 - 2);
    assert_eq!(on().old(7).word(VDot2cI32I16, &[0xffff_0002, 0x0003_0004]), 7 - 3 + 8);
}

#[test]
fn packed_integers_saturate_with_clamp() {
    let packed = |low: i32, high: i32| low as u32 & 0xffff | (high as u32) << 16;
    let clamp = on().modifiers(NONE.clamp());
    let (a, b) = (packed(0x7000, -0x7000), packed(0x7000, -0x7000));
    assert_eq!(clamp.word(VPkAddI16, &[a, b]), packed(0x7fff, -0x8000));
    assert_eq!(on().word(VPkAddI16, &[a, b]), packed(0xe000, 0x2000));
    assert_eq!(clamp.word(VPkSubU16, &[packed(1, 5), packed(2, 3)]), packed(0, 2));
    assert_eq!(clamp.word(VPkMadI16, &[a, b, packed(1, 1)]), packed(0x7fff, 0x7fff));
    assert_eq!(clamp.word(VPkMadU16, &[packed(0x100, 2), packed(0x100, 3), packed(0, 1)]), packed(0xffff, 7));
    assert_eq!(on().word(VPkMadU16, &[packed(0x100, 2), packed(0x100, 3), packed(5, 1)]), packed(5, 7));
    assert_eq!(on().word(VPkAshrrevI16, &[packed(4, 17), packed(-16, 8)]), packed(-1, 4));
}
