//! Rare forms of memory instructions, each against what its manual says.

use crate::codegen::isa::{Arch, BufferFormat, Inst, Modifiers, Opcode, Opcode::*, Operand};

use super::super::super::error::FaultKind;
use super::super::super::wave::{EXEC, LANES, M0, PRIVATE_APERTURE, SHARED_APERTURE};
use super::super::private::{FLAT_SCRATCH, SCRATCH_OF_WAVES, SCRATCH_WINDOW, private_descriptor};
use super::{Machine, int, s, v};

/// LDS whose dwords hold their numbers.
fn numbered(arch: Arch) -> Machine {
    let mut m = Machine::on(arch);
    (0..1024).for_each(|n| m.lds.store(4 * n, 4, n));
    m
}

fn dword(m: &Machine, n: u32) -> u32 {
    m.lds.load(4 * n, 4)
}

#[test]
fn lds_atomics_with_two_data_operands() {
    let one = |op: Opcode, old: u32, a: u32, b: u32| {
        let mut m = Machine::new();
        m.wave.set_pair(EXEC, 1);
        m.lds.store(8, 4, old);
        (m.wave.rows[1], m.wave.rows[2], m.wave.rows[3]) = ([8; LANES], [a; LANES], [b; LANES]);
        let operands = [v(4), v(1), v(2), v(3)];
        let count = op.info().operands.len();
        m.run(&[Inst::new(op, &operands[..count])]).expect("inside");
        assert_eq!(m.wave.rows[4][0], old, "{}", op.mnemonic());
        dword(&m, 2)
    };
    assert_eq!(one(DsMskorRtnB32, 0b1111, 0b0110, 0b1_0000), 0b1_1001);
    assert_eq!(one(DsCmpstRtnB32, 5, 5, 9), 9);
    assert_eq!(one(DsCmpstRtnB32, 5, 6, 9), 5);
    assert_eq!(one(DsCmpstRtnF32, 0, 0x8000_0000, 9), 9, "zeros of both signs are equal");
    assert_eq!((one(DsWrapRtnB32, 7, 5, 100), one(DsWrapRtnB32, 3, 5, 100)), (2, 103));
    assert_eq!((one(DsIncRtnU32, 5, 5, 0), one(DsIncRtnU32, 4, 5, 0)), (0, 5));
    assert_eq!((one(DsDecRtnU32, 0, 5, 0), one(DsDecRtnU32, 9, 5, 0), one(DsDecRtnU32, 4, 5, 0)), (5, 5, 3));
    assert_eq!(one(DsRsubRtnU32, 3, 10, 0), 7);
    assert_eq!(one(DsPkAddRtnF16, 0x3c00_4000, 0x3c00_3c00, 0), 0x4000_4200);
    assert_eq!(one(DsPkAddRtnBf16, 0x3f80_4000, 0x3f80_3f80, 0), 0x4000_4040);
}

#[test]
fn lds_exchanges_two_elements() {
    let mut m = numbered(Arch::Gfx942);
    m.wave.set_pair(EXEC, 1 << 3);
    m.wave.rows[1] = [16; LANES];
    for r in 8..12 {
        m.wave.rows[r] = [100 + r as u32; LANES];
    }
    let exchange = Inst::new(DsWrxchg2RtnB64, &[v(4), v(1), v(8), v(10)]).imm(1 | 3 << 8);
    m.run(&[exchange]).expect("inside");
    let got: Vec<u32> = (4..8).map(|r| m.wave.rows[r][3]).collect();
    assert_eq!(got, [6, 7, 10, 11]);
    assert_eq!([6, 7, 8, 10, 11].map(|n| dword(&m, n)), [108, 109, 8, 110, 111]);
    assert_eq!(m.wave.rows[4][2], 0, "an inactive lane");
}

#[test]
fn lds_forms_with_a_source_in_lds() {
    let mut m = numbered(Arch::Gfx906);
    m.wave.set_pair(EXEC, 1);
    m.wave.rows[1] = [40; LANES];
    m.run(&[
        // Five dwords on, then two back; the distance in the address, too.
        Inst::new(DsAddSrc2U32, &[v(1)]).imm(5),
        Inst::new(DsWriteSrc2B32, &[v(1)]).imm(0x7ffe),
    ])
    .expect("inside");
    assert_eq!(dword(&m, 10), 8);
    m.wave.rows[1] = [40 | 3 << 17; LANES];
    m.run(&[Inst::new(DsMaxSrc2U32, &[v(1)]).imm(0x8000)]).expect("inside");
    assert_eq!(dword(&m, 10), 13);
}

#[test]
fn lds_conditional_exchange() {
    let mut m = numbered(Arch::Gfx90a);
    m.wave.set_pair(EXEC, 1);
    m.wave.rows[1] = [8; LANES];
    (m.wave.rows[2], m.wave.rows[3]) = ([77; LANES], [0x8000_0063; LANES]);
    m.run(&[Inst::new(DsCondxchg32RtnB64, &[v(4), v(1), v(2)])]).expect("inside");
    assert_eq!((m.wave.rows[4][0], m.wave.rows[5][0]), (2, 3));
    assert_eq!((dword(&m, 2), dword(&m, 3)), (2, 99));
}

#[test]
fn lds_places_from_m0_on() {
    let mut m = numbered(Arch::Gfx942);
    m.wave.s[M0] = 64;
    m.run(&[
        Inst::new(DsReadAddtidB32, &[v(1)]).imm(16),
        Inst::new(DsWriteAddtidB32, &[v(0)]).imm(512),
        Inst::new(DsAppend, &[v(2)]).imm(4),
        Inst::new(DsConsume, &[v(3)]).imm(8),
    ])
    .expect("inside");
    assert_eq!(m.wave.rows[1], std::array::from_fn(|l| 20 + l as u32));
    assert_eq!(dword(&m, 144 + 5), 5);
    assert_eq!((m.wave.rows[2], m.wave.rows[3]), ([17; LANES], [18; LANES]));
    assert_eq!((dword(&m, 17), dword(&m, 18)), (17 + 64, 18u32.wrapping_sub(64)));
}

/// A tile of 16 columns whose elements hold `row * 16 + column`, packed; the load gives a lane a column.
#[test]
fn transposing_loads_give_columns() {
    for (op, bits, registers) in
        [(DsReadB64TrB16, 16, 2), (DsReadB64TrB8, 8, 2), (DsReadB64TrB4, 4, 2), (DsReadB96TrB6, 6, 3)]
    {
        let mut m = Machine::on(Arch::Gfx950);
        let elements = 32 * registers / bits;
        let value = |group: usize, row: usize, column: usize| {
            ((group * 5 + row * 16 + column * 7) as u128) & ((1 << bits) - 1)
        };
        for group in 0..4 {
            for row in 0..elements {
                for column in 0..16 {
                    let bit = (group * elements * 16 + row * 16 + column) * bits;
                    for b in (0..bits).filter(|b| value(group, row, column) >> b & 1 != 0) {
                        let at = ((bit + b) / 8) as u32;
                        let byte = m.lds.load(at, 1) | 1 << ((bit + b) % 8);
                        m.lds.store(at, 1, byte);
                    }
                }
            }
        }
        m.wave.rows[2] = std::array::from_fn(|l| 4 * registers as u32 * l as u32);
        m.run(&[Inst::new(op, &[v(4), v(2)])]).expect("inside");
        for l in 0..LANES {
            let got =
                (0..registers).fold(0u128, |all, r| all | u128::from(m.wave.rows[4 + r][l]) << (32 * r));
            for k in 0..elements {
                let element = got >> (bits * k) & ((1 << bits) - 1);
                assert_eq!(element, value(l / 16, k, l % 16), "{}, lane {l}, element {k}", op.mnemonic());
            }
        }
    }
}

/// A device buffer of dwords that hold their numbers, with its descriptor in s[0:3].
fn buffer(arch: Arch, dwords: u32) -> (Machine, u64) {
    let mut m = Machine::on(arch);
    let base = m.memory.allocate((4 * dwords).into()).expect("small");
    let data: Vec<u8> = (0..dwords).flat_map(u32::to_le_bytes).collect();
    m.memory.write(base, &data).expect("just allocated");
    m.wave.s[..4].copy_from_slice(&[base as u32, (base >> 32) as u32, 4 * dwords, 0x0002_7fac]);
    (m, base)
}

fn device(m: &Machine, address: u64) -> u32 {
    let mut bytes = [0; 4];
    m.memory.read(address, &mut bytes).expect("inside");
    u32::from_le_bytes(bytes)
}

#[test]
fn formatted_loads_and_stores() {
    let (mut m, base) = buffer(Arch::Gfx942, 64);
    // 8_8_8_8 unorm.
    m.wave.s[3] = 10 << 15 | 0xfac;
    m.memory.write(base, &[0, 255, 51, 102]).expect("inside");
    m.wave.rows[1] = [0; LANES];
    let access = |op: Opcode, data: u32| {
        Inst::new(op, &[v(data), v(1), s(0), int(0)]).modifiers(Modifiers::new().offen())
    };
    m.run(&[
        access(BufferLoadFormatXyzw, 4),
        access(BufferLoadFormatD16Xyz, 8),
        access(BufferStoreFormatXyzw, 4).imm(8),
        access(BufferStoreFormatD16Xyzw, 8).imm(12),
    ])
    .expect("inside");
    let got: Vec<f32> = (4..8).map(|r| f32::from_bits(m.wave.rows[r][9])).collect();
    assert_eq!(got, [0.0, 1.0, 0.2, 0.4]);
    assert_eq!((m.wave.rows[8][9], m.wave.rows[9][9]), (0x3c00_0000, 0x3266));
    assert_eq!((device(&m, base + 8), device(&m, base + 12)), (0x6633_ff00, 0x0033_ff00));
    // The last element does not fit: zero as a whole.
    m.wave.s[2] = 7;
    m.wave.rows[4] = [1; LANES];
    m.run(&[access(BufferLoadFormatXyzw, 4).imm(4)]).expect("out of range is no fault");
    assert_eq!((m.wave.rows[4][0], m.wave.rows[7][0]), (0, 0));
    m.wave.s[3] = 0;
    let stopped = m.run(&[access(BufferLoadFormatX, 4)]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Unsupported("this format of a buffer"));
}

/// The format is the instruction's, and not the descriptor's, which says 32 bits here.
#[test]
fn typed_loads_and_stores() {
    let (mut m, base) = buffer(Arch::Gfx942, 64);
    m.memory.write(base, &[0, 255, 51, 102]).expect("inside");
    m.wave.rows[1] = [0; LANES];
    let access = |op: Opcode, data: u32, format: u32| {
        let usual = BufferFormat::USUAL.to_bits();
        let modifiers = Modifiers::new().offen().format_flip(format ^ usual);
        Inst::new(op, &[v(data), v(1), s(0), int(0)]).modifiers(modifiers)
    };
    // 8_8_8_8 unorm and 16_16 uint.
    let (bytes, halves) = (10, 5 | 4 << 4);
    m.run(&[
        access(TbufferLoadFormatXyzw, 4, bytes),
        access(TbufferLoadFormatXy, 8, halves),
        access(TbufferLoadFormatD16Xyz, 10, bytes),
        access(TbufferStoreFormatXyzw, 4, bytes).imm(8),
        access(TbufferStoreFormatXy, 8, halves).imm(12),
    ])
    .expect("inside");
    let got: Vec<f32> = (4..8).map(|r| f32::from_bits(m.wave.rows[r][9])).collect();
    assert_eq!(got, [0.0, 1.0, 0.2, 0.4]);
    assert_eq!((m.wave.rows[8][9], m.wave.rows[9][9]), (0xff00, 0x6633));
    assert_eq!((m.wave.rows[10][9], m.wave.rows[11][9]), (0x3c00_0000, 0x3266));
    assert_eq!((device(&m, base + 8), device(&m, base + 12)), (0x6633_ff00, 0x6633_ff00));
    let stopped = m.run(&[access(TbufferLoadFormatX, 4, 0)]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Unsupported("this format of a buffer"));
}

#[test]
fn without_an_index_records_are_bytes() {
    let (mut m, _) = buffer(Arch::Gfx942, 64);
    m.wave.s[1] |= 16 << 16;
    m.wave.s[2] = 20;
    m.wave.rows[1] = std::array::from_fn(|l| 4 * l as u32);
    let load = Inst::new(BufferLoadDword, &[v(4), v(1), s(0), int(0)]).modifiers(Modifiers::new().offen());
    m.run(&[load]).expect("out of range is no fault");
    assert_eq!(m.wave.rows[4][..7], [0, 1, 2, 3, 4, 0, 0]);
}

#[test]
fn swizzled_buffers_put_elements_of_lanes_side_by_side() {
    let (mut m, _) = buffer(Arch::Gfx942, 256);
    // Stride 16; eight indices side by side.
    m.wave.s[1] |= 16 << 16 | 1 << 31;
    m.wave.s[2] = 64;
    m.wave.rows[1] = m.wave.rows[0];
    let indexed =
        Inst::new(BufferLoadDwordx2, &[v(4), v(1), s(0), int(0)]).modifiers(Modifiers::new().idxen()).imm(8);
    let by_lane = Inst::new(BufferLoadDwordx2, &[v(4), Operand::NONE, s(0), int(0)]).imm(8);
    // Without the lane's number in the index nothing is swizzled.
    m.run(&[indexed]).expect("inside");
    assert_eq!((m.wave.rows[4][11], m.wave.rows[5][11]), (11 * 4 + 2, 11 * 4 + 3));
    // The bits of the data format are bits of the stride here.
    m.wave.s[3] = m.wave.s[3] & !(0xf << 15) | 1 << 23;
    m.run(&[by_lane]).expect("inside");
    // Index 11: second group of eight (128 bytes), third dword of eight, fourth in it.
    assert_eq!((m.wave.rows[4][11], m.wave.rows[5][11]), (32 + 2 * 8 + 3, 32 + 3 * 8 + 3));
    // Nor is there a range check.
    m.wave.s[2] = 0;
    m.run(&[by_lane]).expect("inside");
    assert_eq!(m.wave.rows[4][11], 32 + 2 * 8 + 3);
}

#[test]
fn offsets_of_buffers_wrap_at_32_bits() {
    let (mut m, base) = buffer(Arch::Gfx942, 256);
    m.wave.rows[1] = [-4i32 as u32; LANES];
    m.wave.rows[2] = [7; LANES];
    m.wave.set_pair(EXEC, 1);
    let store = Inst::new(BufferStoreDword, &[v(2), v(1), s(0), int(0)]);
    let offen = Modifiers::new().offen();
    m.run(&[store.modifiers(offen).imm(4), store.modifiers(offen)]).expect("out of range is no fault");
    assert_eq!(device(&m, base), 7);
    // The scalar offset is added after that.
    m.wave.s[6] = 8;
    let at_scalar = Inst::new(BufferStoreDword, &[v(2), v(1), s(0), s(6)]).modifiers(offen);
    m.run(&[at_scalar, at_scalar.imm(8)]).expect("out of range is no fault");
    assert_eq!((device(&m, base + 4), device(&m, base + 12)), (1, 7));
}

#[test]
fn private_memory_is_one_through_buffers_flat_and_scratch() {
    let mut m = Machine::on(Arch::Gfx90a);
    (m.wave.private_words, m.wave.private) = (16, vec![0; 16 * LANES]);
    m.wave.s[..4].copy_from_slice(&private_descriptor(SCRATCH_WINDOW));
    // A stack pointer of 16 bytes of every lane.
    m.wave.s[6] = 16 * 64;
    m.wave.s[7] = 20;
    m.wave.set_pair(8, SCRATCH_WINDOW);
    m.wave.rows[1] = [8; LANES];
    (m.wave.rows[2], m.wave.rows[3]) = ([24; LANES], [PRIVATE_APERTURE; LANES]);
    m.run(&[
        Inst::new(BufferStoreDword, &[v(0), v(1), s(0), s(6)]).modifiers(Modifiers::new().offen()),
        Inst::new(FlatLoadDword, &[v(4), v(2)]),
        Inst::new(ScratchLoadDword, &[v(5), Operand::NONE, s(7)]).imm(4),
        Inst::new(FlatStoreByte, &[v(2), v(1)]).imm(5),
        Inst::new(BufferLoadUbyte, &[v(6), Operand::NONE, s(0), s(6)]).imm(13),
        Inst::new(SScratchLoadDwordx2, &[s(12), s(8), Operand::NONE]).imm(24 / 4 * 256 + 5 * 4),
    ])
    .expect("inside");
    let lanes = std::array::from_fn(|l| l as u32);
    assert_eq!((m.wave.rows[4], m.wave.rows[5], m.wave.rows[6]), (lanes, lanes, [8; LANES]));
    assert_eq!(m.wave.s[12..14], [5, 6]);
    let far = Inst::new(BufferLoadUbyte, &[v(6), Operand::NONE, s(0), s(6)]).imm(48);
    assert!(matches!(m.run(&[far]).unwrap_err().kind, FaultKind::Memory { address: 64, bytes: 1, .. }));
}

#[test]
fn scratch_of_other_waves_is_not_reached() {
    for (arch, is_stopped) in [(Arch::Gfx90a, true), (Arch::Gfx942, false)] {
        let mut m = Machine::on(arch);
        (m.wave.private_words, m.wave.private) = (4, vec![0; 4 * LANES]);
        m.wave.set_pair(FLAT_SCRATCH, SCRATCH_OF_WAVES);
        let load = Inst::new(ScratchLoadDword, &[v(5), Operand::NONE, s(7)]);
        m.wave.s[7] = 0;
        let stopped = m.run(&[load]).is_err_and(|fault| matches!(fault.kind, FaultKind::Unsupported(_)));
        assert_eq!(stopped, is_stopped, "{arch:?}");
    }
}

#[test]
fn flat_atomics_find_lds_and_private_memory() {
    let (mut m, base) = buffer(Arch::Gfx942, 64);
    (m.wave.private_words, m.wave.private) = (4, vec![40; 4 * LANES]);
    m.lds.store(12, 4, 30);
    let places = [base + 12, u64::from(SHARED_APERTURE) << 32 | 12, u64::from(PRIVATE_APERTURE) << 32 | 12];
    for (l, place) in places.into_iter().enumerate() {
        (m.wave.rows[2][l], m.wave.rows[3][l]) = (place as u32, (place >> 32) as u32);
    }
    m.wave.set_pair(EXEC, 7);
    m.wave.rows[4] = [5; LANES];
    m.run(&[Inst::new(FlatAtomicAddRtn, &[v(5), v(2), v(4)]), Inst::new(FlatAtomicUmax, &[v(2), v(0)])])
        .expect("inside");
    assert_eq!(m.wave.rows[5][..4], [3, 30, 40, 0]);
    assert_eq!((device(&m, base + 12), dword(&m, 3), m.wave.private[2 * 4 + 3]), (8, 35, 45));
}

#[test]
fn compare_and_swap_takes_the_new_value_first() {
    let (mut m, base) = buffer(Arch::Gfx942, 64);
    m.wave.set_pair(EXEC, 1);
    m.wave.rows[1] = [8; LANES];
    let data = [500, 0, 2, 3];
    (0..4).for_each(|r| m.wave.rows[4 + r] = [data[r]; LANES]);
    m.run(&[Inst::new(GlobalAtomicCmpswapX2Rtn, &[v(8), v(1), v(4), s(0)])]).expect("inside");
    assert_eq!((m.wave.rows[8][0], m.wave.rows[9][0]), (2, 3));
    assert_eq!((device(&m, base + 8), device(&m, base + 12)), (500, 0));
    (m.wave.rows[4], m.wave.rows[5]) = ([7; LANES], [501; LANES]);
    m.run(&[
        Inst::new(BufferAtomicCmpswapRtn, &[v(4), v(1), s(0), int(0)]).modifiers(Modifiers::new().offen())
    ])
    .expect("inside");
    assert_eq!((m.wave.rows[4][0], device(&m, base + 8)), (500, 500));
}

#[test]
fn loads_to_lds_of_every_width() {
    let (mut m, base) = buffer(Arch::Gfx950, 512);
    m.wave.s[M0] = 64;
    m.wave.set_pair(6, base);
    m.wave.rows[1] = std::array::from_fn(|l| 16 * l as u32);
    let offen = Modifiers::new().offen();
    m.run(&[Inst::new(BufferLoadDwordx4Lds, &[v(1), s(0), int(0)]).modifiers(offen)]).expect("inside");
    assert!((0..256).all(|n| dword(&m, 16 + n) == n));
    m.run(&[Inst::new(GlobalLoadLdsDwordx3, &[v(1), s(6)]).imm(8)]).expect("inside");
    assert_eq!([0, 1, 2, 3].map(|n| dword(&m, 18 + 3 * 5 + n)), [22, 23, 24, 26]);
    m.memory.write(base + 3, &[0xfe]).expect("inside");
    m.run(&[Inst::new(GlobalLoadLdsSbyte, &[v(1), s(6)]).imm(3)]).expect("inside");
    // The offset counts in LDS, too: three bytes on.
    assert_eq!(m.lds.load(67, 4), 0xffff_fffe);
    let (mut m, base) = buffer(Arch::Gfx90a, 64);
    m.wave.set_pair(6, base);
    m.wave.rows[1] = std::array::from_fn(|l| 4 * (l as u32 ^ 1));
    m.run(&[Inst::new(GlobalLoadDwordLds, &[v(1), s(6)])]).expect("inside");
    assert_eq!([0, 1, 2].map(|n| dword(&m, n)), [1, 0, 3]);
    // And back: the descriptor adds the lane.
    m.wave.s[..4].copy_from_slice(&[base as u32, (base >> 32) as u32 | 4 << 16, 256, 1 << 23]);
    m.run(&[Inst::new(BufferStoreLdsDword, &[s(0), int(0)])]).expect("inside");
    assert_eq!([0, 4, 8].map(|at| device(&m, base + at)), [1, 0, 3]);
}

#[test]
fn scalar_stores_and_atomics() {
    let (mut m, base) = buffer(Arch::Gfx90a, 64);
    m.wave.set_pair(6, base);
    m.wave.s[8..12].copy_from_slice(&[10, 11, 12, 13]);
    m.wave.s[12] = 4;
    m.run(&[
        Inst::new(SStoreDwordx4, &[s(8), s(6), s(12)]).imm(4),
        Inst::new(SBufferStoreDwordx2, &[s(8), s(0), Operand::NONE]).imm(252),
        Inst::new(SAtomicAdd, &[s(9), s(6), Operand::NONE]).imm(32).modifiers(Modifiers::new().sc0()),
        Inst::new(SBufferAtomicUmin, &[s(12), s(0), Operand::NONE]).imm(40),
        Inst::new(SDcacheWb, &[]),
    ])
    .expect("inside");
    assert_eq!([8, 12, 16, 20].map(|at| device(&m, base + at)), [10, 11, 12, 13]);
    assert_eq!(device(&m, base + 252), 10, "the second dword is out of range");
    assert_eq!((device(&m, base + 32), m.wave.s[9]), (19, 8));
    assert_eq!((device(&m, base + 40), m.wave.s[12]), (4, 4));
}

#[test]
fn what_is_not_simulated_says_its_name() {
    let mut m = Machine::on(Arch::Gfx908);
    let stopped = m.run(&[Inst::new(DsGwsBarrier, &[v(1)])]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Unsupported("global wave sync"));
    let gds = Inst::new(DsReadB32, &[v(2), v(1)]).modifiers(Modifiers::new().gds());
    assert_eq!(m.run(&[gds]).unwrap_err().kind, FaultKind::Unsupported("the global data share"));
    // buffer_load_dword v[1:2], off, s[8:11], s0 tfe (llvm-mc-19 -mcpu=gfx908).
    let stopped = m.run_words(&[0xe050_0000, 0x0082_0100], 100).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Unsupported("texture fail enable"));
    // image_load v5, v6, s[8:15] dmask:0x1, and image_gather4 v[4:7], v6, s[8:15], s[16:19] dmask:0x1.
    for words in [[0xf000_0100, 0x0002_0506], [0xf100_0100, 0x0082_0406]] {
        let stopped = m.run_words(&words, 100).unwrap_err();
        assert_eq!(stopped.kind, FaultKind::Unsupported("image instructions"));
    }
    // v_interp_p2_f16 v5, v2, attr0.x, v3, and v_screen_partition_4se_b32 v5, s1.
    for words in [&[0xd277_0005, 0x040e_0400][..], &[0x7e0a_6e01][..]] {
        let stopped = m.run_words(words, 100).unwrap_err();
        assert_eq!(stopped.kind, FaultKind::Unsupported("instructions of graphics pipelines"));
    }
}
