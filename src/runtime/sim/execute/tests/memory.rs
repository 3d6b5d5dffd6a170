//! LDS, buffers, global and scalar memory.

use crate::codegen::isa::{Arch, Inst, Modifiers, Opcode::*, Operand};

use super::super::super::error::{FaultKind, MemoryAccess};
use super::super::super::wave::{EXEC, LANES, M0};
use super::{Machine, int, s, v};

/// A buffer of `bytes` bytes that hold their dwords' numbers, with its descriptor in s[0:3].
fn with_buffer(bytes: u32) -> (Machine, u64) {
    let mut m = Machine::new();
    let base = m.memory.allocate(bytes.into()).expect("small");
    let data: Vec<u8> = (0..bytes.div_ceil(4)).flat_map(u32::to_le_bytes).take(bytes as usize).collect();
    m.memory.write(base, &data).expect("just allocated");
    m.wave.s[..4].copy_from_slice(&[base as u32, (base >> 32) as u32, bytes, 0x0002_7000]);
    (m, base)
}

fn buffer(op: crate::codegen::isa::Opcode, data: u32, soffset: Operand) -> Inst {
    Inst::new(op, &[v(data), v(1), s(0), soffset]).modifiers(Modifiers::new().offen())
}

#[test]
fn buffer_loads_are_checked_per_dword() {
    let (mut m, _) = with_buffer(256);
    m.wave.rows[1] = std::array::from_fn(|l| 4 * l as u32);
    m.run(&[buffer(BufferLoadDwordx4, 4, int(0)).imm(8)]).expect("out of range is no fault");
    for (component, row) in m.wave.rows[4..8].iter().enumerate() {
        for (l, &value) in row.iter().enumerate() {
            let dword = l + 2 + component;
            assert_eq!(value as usize, if dword < 64 { dword } else { 0 }, "lane {l}, dword {component}");
        }
    }
}

#[test]
fn the_scalar_offset_narrows_the_range() {
    let (mut m, _) = with_buffer(256);
    m.wave.rows[1] = std::array::from_fn(|l| 4 * l as u32);
    m.wave.s[4] = 128;
    m.run(&[buffer(BufferLoadDword, 4, s(4))]).expect("out of range is no fault");
    assert_eq!(m.wave.rows[4], std::array::from_fn(|l| if l < 32 { l as u32 + 32 } else { 0 }));
    m.wave.s[4] = 1 << 20;
    m.run(&[buffer(BufferLoadDword, 4, s(4))]).expect("out of range is no fault");
    assert_eq!(m.wave.rows[4], [0; LANES]);
}

#[test]
fn buffer_stores_out_of_range_are_dropped() {
    let (mut m, base) = with_buffer(100);
    m.wave.s[2] = 40;
    m.wave.rows[1] = std::array::from_fn(|l| 8 * l as u32);
    m.wave.rows[4] = [100; LANES];
    m.wave.rows[5] = [200; LANES];
    m.run(&[buffer(BufferStoreDwordx2, 4, int(0)).imm(4)]).expect("out of range is no fault");
    let mut data = [0; 100];
    m.memory.read(base, &mut data).expect("all of it");
    let dwords: Vec<u8> = data.chunks(4).map(|d| d[0]).collect();
    assert_eq!(dwords[..12], [0, 100, 200, 100, 200, 100, 200, 100, 200, 100, 10, 11]);
}

#[test]
fn structured_buffers_check_the_index() {
    let (mut m, _) = with_buffer(256);
    // Stride 16, three records.
    m.wave.s[1] |= 16 << 16;
    m.wave.s[2] = 3;
    m.wave.rows[1] = m.wave.rows[0];
    let load =
        Inst::new(BufferLoadDword, &[v(4), v(1), s(0), int(0)]).modifiers(Modifiers::new().idxen()).imm(4);
    m.run(&[load]).expect("out of range is no fault");
    assert_eq!(m.wave.rows[4][..5], [1, 5, 9, 0, 0]);
}

#[test]
fn narrow_accesses_keep_or_extend() {
    let (mut m, base) = with_buffer(256);
    m.memory.write(base, &[0x80, 0xff, 0x34, 0x12]).expect("inside");
    m.wave.rows[4] = [0xaaaa_bbbb; LANES];
    let load = |op| Inst::new(op, &[v(4), v(1), s(0), int(0)]).modifiers(Modifiers::new().offen());
    for (op, kept, cleared) in [
        (BufferLoadUbyte, 0x80, 0x80),
        (BufferLoadSbyte, 0xffff_ff80, 0xffff_ff80),
        (BufferLoadSshort, 0xffff_ff80, 0xffff_ff80),
        (BufferLoadShortD16Hi, 0xff80_bbbb, 0xff80_0000),
        (BufferLoadSbyteD16, 0xaaaa_ff80, 0xff80),
    ] {
        // Chips with SRAM ECC write the whole register.
        for (arch, expected) in [(Arch::Gfx908, kept), (Arch::Gfx90a, cleared), (Arch::Gfx942, cleared)] {
            m.arch = arch;
            m.wave.rows[4] = [0xaaaa_bbbb; LANES];
            assert_eq!(m.row(load(op), 4)[7], expected, "{} on {}", op.mnemonic(), arch.name());
        }
    }
    m.wave.rows[4] = [0x1234_5678; LANES];
    m.run(&[load(BufferStoreByteD16Hi).imm(1), load(BufferStoreShort).imm(2)]).expect("inside");
    let mut data = [0; 4];
    m.memory.read(base, &mut data).expect("inside");
    assert_eq!(data, [0x80, 0x34, 0x78, 0x56]);
}

#[test]
fn buffers_load_to_lds() {
    let (mut m, _) = with_buffer(256);
    m.wave.s[M0] = 512;
    m.wave.rows[1] = std::array::from_fn(|l| 4 * (63 - l as u32));
    let load = Inst::new(BufferLoadDwordLds, &[v(1), s(0), int(0)]).modifiers(Modifiers::new().offen());
    m.wave.rows[2] = std::array::from_fn(|l| 4 * l as u32);
    m.run(&[load, Inst::new(DsReadB32, &[v(3), v(2)]).imm(512)]).expect("inside");
    assert_eq!(m.wave.rows[3], std::array::from_fn(|l| 63 - l as u32));
}

#[test]
fn global_accesses_with_and_without_scalar_base() {
    let (mut m, base) = with_buffer(512);
    m.wave.rows[1] = std::array::from_fn(|l| 8 * l as u32);
    m.wave.rows[2] = std::array::from_fn(|l| base as u32 + 4 * l as u32);
    m.wave.rows[3] = [(base >> 32) as u32; LANES];
    m.run(&[
        Inst::new(GlobalLoadDwordx2, &[v(4), v(1), s(0)]),
        Inst::new(GlobalLoadDword, &[v(6), v(2), Operand::NONE]).imm(16),
    ])
    .expect("inside");
    assert_eq!((m.wave.rows[4][5], m.wave.rows[5][5], m.wave.rows[6][5]), (10, 11, 9));
    let stopped = m.run(&[Inst::new(GlobalLoadDwordx2, &[v(4), v(1), s(0)]).imm(8)]).unwrap_err();
    let expected = FaultKind::Memory { access: MemoryAccess::Load, address: base + 512, bytes: 8 };
    assert_eq!((stopped.lane, stopped.kind), (Some(63), expected));
}

#[test]
fn unaligned_global_accesses() {
    let (mut m, _) = with_buffer(64);
    m.wave.rows[1] = [3; LANES];
    m.wave.set_pair(EXEC, 1);
    m.run(&[
        Inst::new(GlobalLoadDword, &[v(4), v(1), s(0)]),
        Inst::new(GlobalStoreDword, &[v(1), v(4), s(0)]).imm(7),
    ])
    .expect("inside");
    assert_eq!(m.wave.rows[4][0], 0x0000_0100);
    let row = m.row(Inst::new(GlobalLoadDwordx2, &[v(6), v(1), s(0)]).imm(5), 6);
    assert_eq!((row[0], m.wave.rows[7][0]), (0x0100_0002, 0));
}

#[test]
fn atomics_return_the_former_value_lane_by_lane() {
    let (mut m, base) = with_buffer(64);
    m.wave.rows[1] = [8; LANES];
    m.wave.rows[4] = [3; LANES];
    let row = m.row(Inst::new(GlobalAtomicAddRtn, &[v(5), v(1), v(4), s(0)]), 5);
    assert_eq!(row, std::array::from_fn(|l| 2 + 3 * l as u32));
    m.wave.rows[4] = [1.5f32.to_bits(); LANES];
    m.memory.write(base + 8, &1.0f32.to_le_bytes()).expect("inside");
    m.run(&[Inst::new(GlobalAtomicAddF32, &[v(1), v(4), s(0)])]).expect("inside");
    let mut data = [0; 4];
    m.memory.read(base + 8, &mut data).expect("inside");
    assert_eq!(f32::from_le_bytes(data), 97.0);
    m.wave.rows[1] = [2; LANES];
    let stopped = m.run(&[Inst::new(GlobalAtomicAdd, &[v(1), v(4), s(0)])]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Misaligned { address: base + 2 });
}

#[test]
fn lds_widths_and_pairs() {
    let mut m = Machine::new();
    m.wave.rows[1] = std::array::from_fn(|l| 16 * l as u32);
    for r in 0..4 {
        m.wave.rows[4 + r] = std::array::from_fn(|l| 4 * l as u32 + r as u32);
    }
    m.run(&[
        Inst::new(DsWriteB128, &[v(1), v(4)]),
        Inst::new(DsReadB128, &[v(8), v(1)]),
        Inst::new(DsRead2B32, &[v(12), v(1)]).imm(1 | 3 << 8),
        Inst::new(DsRead2st64B64, &[v(14), v(1)]).imm(1 << 8),
        Inst::new(DsReadU16, &[v(18), v(1)]).imm(6),
    ])
    .expect("inside");
    assert_eq!(m.wave.rows[8..12], m.wave.rows[4..8].to_vec());
    assert_eq!((m.wave.rows[12][9], m.wave.rows[13][9]), (37, 39));
    // The second element lies 512 bytes on: what lane 41 wrote.
    assert_eq!((m.wave.rows[14][9], m.wave.rows[16][9], m.wave.rows[17][9]), (36, 164, 165));
    assert_eq!(m.wave.rows[18][9], 0);
}

#[test]
fn lds_accesses_of_any_alignment() {
    let mut m = Machine::new();
    m.wave.set_pair(EXEC, 1);
    m.wave.rows[1] = [5; LANES];
    m.wave.rows[2] = [0x4433_2211; LANES];
    m.run(&[Inst::new(DsWriteB32, &[v(1), v(2)]), Inst::new(DsReadB64, &[v(4), v(0)]).imm(4)])
        .expect("inside");
    assert_eq!((m.wave.rows[4][0], m.wave.rows[5][0]), (0x3322_1100, 0x0000_0044));
}

#[test]
fn lds_beyond_its_end_is_a_fault() {
    let mut m = Machine::new();
    m.wave.rows[1] = std::array::from_fn(|l| 64 * l as u32);
    m.run(&[Inst::new(DsReadB64, &[v(4), v(1)]).imm(56)]).expect("the last bytes");
    let stopped = m.run(&[Inst::new(DsReadB64, &[v(4), v(1)]).imm(60)]).unwrap_err();
    let kind = FaultKind::Lds { access: MemoryAccess::Load, address: 4092, size: 4096 };
    assert_eq!((stopped.lane, stopped.kind), (Some(63), kind));
}

#[test]
fn lds_atomics() {
    let mut m = Machine::new();
    m.wave.rows[1] = [16; LANES];
    m.wave.rows[2] = [2; LANES];
    let row = m.row(Inst::new(DsAddRtnU32, &[v(3), v(1), v(2)]), 3);
    assert_eq!(row, std::array::from_fn(|l| 2 * l as u32));
}

#[test]
fn lane_permutations() {
    let mut m = Machine::new();
    m.wave.rows[1] = std::array::from_fn(|l| 4 * ((l as u32 + 1) % 64));
    let row = m.row(Inst::new(DsBpermuteB32, &[v(2), v(1), v(0)]), 2);
    assert_eq!(row, std::array::from_fn(|l| (l as u32 + 1) % 64));
    let row = m.row(Inst::new(DsPermuteB32, &[v(2), v(1), v(0)]), 2);
    assert_eq!(row, std::array::from_fn(|l| (l as u32 + 63) % 64));
    // Exchange neighbours: and 31, xor 1.
    let row = m.row(Inst::new(DsSwizzleB32, &[v(2), v(0)]).imm(0x1f | 1 << 10), 2);
    assert_eq!(row, std::array::from_fn(|l| l as u32 ^ 1));
    // Reverse each four.
    let row = m.row(Inst::new(DsSwizzleB32, &[v(2), v(0)]).imm(0x8000 | 0b00_01_10_11), 2);
    assert_eq!(row, std::array::from_fn(|l| l as u32 ^ 3));
}

#[test]
fn scalar_loads() {
    let (mut m, base) = with_buffer(64);
    m.wave.set_pair(6, base);
    m.wave.s[2] = 20;
    m.run(&[
        Inst::new(SLoadDwordx2, &[s(8), s(6), Operand::NONE]).imm(12),
        Inst::new(SBufferLoadDwordx4, &[s(12), s(0), Operand::NONE]).imm(8),
    ])
    .expect("inside");
    assert_eq!(m.wave.s[8..10], [3, 4]);
    assert_eq!(m.wave.s[12..16], [2, 3, 4, 0]);
}
