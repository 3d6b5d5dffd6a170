//! Rare forms of LDS instructions: operands from LDS, places that depend on M0 and the lane, transposing
//! loads.

use crate::codegen::isa::Calc;

use super::super::error::{MemoryAccess, Stopped};
use super::super::program::Step;
use super::super::wave::{LANES, M0, VectorRow, Wave};
use super::atomic::{self, AtomicOperation};
use super::lds::{Lds, addresses};

/// Bits of M0 that are an LDS address: as many as the largest LDS (gfx950: 160 KiB) needs.
const M0_ADDRESS: u32 = 0x3_ffff;

/// LDS address of M0 and the instruction's offset.
pub(super) fn m0_address(w: &Wave, s: &Step) -> u32 {
    (w.s[M0] & M0_ADDRESS).wrapping_add(s.imm)
}

/// Address of each lane when each has a place of `bytes` bytes, starting at the address in M0.
pub(super) fn own_addresses(w: &Wave, s: &Step, bytes: u32) -> VectorRow {
    let base = m0_address(w, s);
    std::array::from_fn(|l| base.wrapping_add(bytes * l as u32))
}

/// ds_read_addtid_b32.
pub(super) fn load_at_lane(w: &mut Wave, lds: &Lds, s: &Step) -> Result<(), Stopped> {
    let Some(result) = s.operands[0].row() else { return Ok(()) };
    let places = own_addresses(w, s, 4);
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Load, places[l], 4)?;
        w.rows[result][l] = lds.load(places[l], 4);
        Ok(())
    })
}

/// ds_write_addtid_b32.
pub(super) fn store_at_lane(w: &mut Wave, lds: &mut Lds, s: &Step) -> Result<(), Stopped> {
    let Some(data) = s.operands[0].row() else { return Ok(()) };
    let places = own_addresses(w, s, 4);
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Store, places[l], 4)?;
        lds.store(places[l], 4, w.rows[data][l]);
        Ok(())
    })
}

/// ds_append and ds_consume: one operation for the wave, whose former value all lanes get.
pub(super) fn count_lanes(w: &mut Wave, lds: &mut Lds, s: &Step, calc: Calc) -> Result<(), Stopped> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let operation = (calc, crate::codegen::isa::Element::U32);
    let count = u64::from(exec.count_ones());
    let first = exec.trailing_zeros() as usize;
    let old = lds.update(first, m0_address(w, s), false, |old| atomic::apply(operation, old, count, 0))?;
    w.set_lanes(s.operands[0], &[old as u32; LANES]);
    Ok(())
}

/// Where the forms with a source in LDS have their destination and their source: the distance in dwords is a
/// signed number of 15 bits in the offset, or, if the offset's top bit is set, in the upper bits of the
/// address (Vega ISA guide, "DS_ADD_SRC2_U32").
pub(super) fn two_places(w: &Wave, s: &Step) -> [VectorRow; 2] {
    const SIGN: u32 = 32 - 15;
    let signed = |distance: u32| (distance << SIGN) as i32 >> SIGN;
    let lanes = addresses(w, s, 0, 0);
    let in_address = s.imm >> 15 & 1 != 0;
    let base = |a: u32| if in_address { a & 0x1_ffff } else { a };
    let distance = |a: u32| if in_address { signed(a >> 17) } else { signed(s.imm) };
    [lanes.map(base), lanes.map(|a| base(a).wrapping_add_signed(4 * distance(a)))]
}

/// ds_*_src2_*: an atomic operation with the value of another place.
pub(super) fn atomic_from_lds(
    w: &mut Wave,
    lds: &mut Lds,
    s: &Step,
    operation: AtomicOperation,
) -> Result<(), Stopped> {
    let wide = operation.1.registers() == 2;
    let [to, from] = two_places(w, s);
    w.each_lane(|_, l| {
        let data = load(lds, l, from[l], if wide { 2 } else { 1 })?;
        lds.update(l, to[l], wide, |old| atomic::apply(operation, old, data, 0))?;
        Ok(())
    })
}

/// ds_write_src2_*: copies from another place.
pub(super) fn store_from_lds(w: &mut Wave, lds: &mut Lds, s: &Step, dwords: u8) -> Result<(), Stopped> {
    let [to, from] = two_places(w, s);
    w.each_lane(|_, l| {
        let data = load(lds, l, from[l], dwords.into())?;
        lds.check(l, MemoryAccess::Store, to[l], 4 * u32::from(dwords))?;
        for dword in 0..u32::from(dwords) {
            lds.store(to[l] + 4 * dword, 4, (data >> (32 * dword)) as u32);
        }
        Ok(())
    })
}

/// One or two dwords.
fn load(lds: &Lds, l: usize, address: u32, dwords: u32) -> Result<u64, Stopped> {
    lds.check(l, MemoryAccess::Load, address, 4 * dwords)?;
    let high = if dwords == 2 { u64::from(lds.load(address + 4, 4)) << 32 } else { 0 };
    Ok(u64::from(lds.load(address, 4)) | high)
}

/// ds_condxchg32_rtn_b64: stores those of the two dwords that have their top bit set, without that bit (Vega
/// ISA guide, "DS_CONDXCHG32_RTN_B64").
pub(super) fn conditional_exchange(w: &mut Wave, lds: &mut Lds, s: &Step) -> Result<(), Stopped> {
    const TOP: u32 = 1 << 31;
    let (Some(result), Some(data)) = (s.operands[0].row(), s.operands[2].row()) else { return Ok(()) };
    let places = addresses(w, s, 1, s.imm);
    w.each_lane(|w, l| {
        let data = atomic::operand(w, data, l, true);
        let old = lds.update(l, places[l], true, |old| {
            let chosen = |shift: u32| {
                let (new, old) = ((data >> shift) as u32, (old >> shift) as u32);
                u64::from(if new & TOP != 0 { new & !TOP } else { old }) << shift
            };
            Ok(chosen(0) | chosen(32))
        })?;
        atomic::put(w, result, l, true, old);
        Ok(())
    })
}

/// Lanes that transpose among themselves.
const GROUP: usize = 16;

/// Lane of the group and number of the element there that lane `lane` gets as its element `k`, lanes holding
/// `elements` elements each. Sixteen elements are a row, which `16 / elements` lanes load; a lane gets a
/// column.
fn transposed(lane: usize, k: usize, elements: usize) -> (usize, usize) {
    (k * (GROUP / elements) + lane / elements, lane % elements)
}

/// ds_read_b64_tr_* and ds_read_b96_tr_b6: each lane loads a part of a row, and gets a column of what its
/// sixteen lanes load (CDNA4 ISA guide, "LDS transpose loads").
pub(super) fn load_transposed(
    w: &mut Wave,
    lds: &Lds,
    s: &Step,
    bits: u8,
    registers: u8,
) -> Result<(), Stopped> {
    let Some(result) = s.operands[0].row() else { return Ok(()) };
    let places = addresses(w, s, 1, s.imm);
    let (bits, registers) = (usize::from(bits), usize::from(registers));
    let elements = 32 * registers / bits;
    let mut loaded = [0u128; LANES];
    w.each_lane(|_, l| {
        lds.check(l, MemoryAccess::Load, places[l], 4 * registers as u32)?;
        for dword in 0..registers {
            loaded[l] |= u128::from(lds.load(places[l] + 4 * dword as u32, 4)) << (32 * dword);
        }
        Ok(())
    })?;
    let element = |lane: usize, number: usize| loaded[lane] >> (bits * number) & ((1 << bits) - 1);
    w.each_lane(|w, l| {
        let mut value = 0;
        for k in 0..elements {
            let (lane, number) = transposed(l % GROUP, k, elements);
            value |= element(l / GROUP * GROUP + lane, number) << (bits * k);
        }
        for dword in 0..registers {
            w.rows[result + dword][l] = (value >> (32 * dword)) as u32;
        }
        Ok(())
    })
}
