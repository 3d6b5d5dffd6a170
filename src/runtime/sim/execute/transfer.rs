//! How loads change a register and which bits stores take from one: the same for LDS and memory.

use super::super::program::Step;
use super::super::wave::{LANES, Wave};
use crate::codegen::isa::MemoryData;

/// Prepares the register that a load writes half of, if the chip does not keep the other half: that is zero
/// then.
#[inline(always)]
pub(super) fn clear_other_half(w: &mut Wave, s: &Step, kind: MemoryData, first: usize) {
    if kind.is_half() && !s.keeps_other_half {
        let exec = w.exec();
        (0..LANES).filter(|l| exec >> l & 1 != 0).for_each(|l| w.rows[first][l] = 0);
    }
}

/// The register after a load of `value` (the bytes in memory, zero-extended) into it.
#[inline(always)]
pub(in super::super) fn merge_loaded(kind: MemoryData, register: u32, value: u32) -> u32 {
    let signed_byte = i32::from(value as i8) as u32;
    match kind {
        MemoryData::Byte | MemoryData::Short | MemoryData::Dwords(_) => value,
        MemoryData::SignedByte => signed_byte,
        MemoryData::SignedShort => i32::from(value as i16) as u32,
        MemoryData::ByteLow | MemoryData::ShortLow => register & 0xffff_0000 | value,
        MemoryData::SignedByteLow => register & 0xffff_0000 | signed_byte & 0xffff,
        MemoryData::ByteHigh | MemoryData::ShortHigh => register & 0xffff | value << 16,
        MemoryData::SignedByteHigh => register & 0xffff | signed_byte << 16,
    }
}

/// The bits of the register that a store of less than a dword writes, in the low bits.
#[inline(always)]
pub(in super::super) fn store_value(kind: MemoryData, register: u32) -> u32 {
    match kind {
        MemoryData::ByteHigh | MemoryData::ShortHigh | MemoryData::SignedByteHigh => register >> 16,
        _ => register,
    }
}
