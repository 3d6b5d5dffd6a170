//! LDS instructions: loads, stores, atomics.
//!
//! Accesses may have any alignment, as the amdhsa runtime configures the hardware. An access beyond the
//! workgroup's LDS is a fault here; hardware would read zero and drop writes, and no program relies on that.

use crate::codegen::isa::MemoryData;

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::program::Step;
use super::super::wave::{VectorRow, Wave};
use super::atomic::{self, AtomicOperation, AtomicRegisters};
use super::transfer::{merge_loaded, store_value};

/// LDS of one workgroup.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Lds {
    words: Vec<u32>,
    bytes: u32,
}

impl Lds {
    /// Zeroed LDS of this size; keeps its memory.
    pub(crate) fn reset(&mut self, bytes: u32) {
        self.words.clear();
        self.words.resize(bytes.div_ceil(4) as usize, 0);
        self.bytes = bytes;
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// A fault of lane `l` unless `bytes` bytes from `address` on lie inside.
    #[inline(always)]
    pub(super) fn check(
        &self,
        l: usize,
        access: MemoryAccess,
        address: u32,
        bytes: u32,
    ) -> Result<(), Stopped> {
        if u64::from(address) + u64::from(bytes) <= u64::from(self.bytes) {
            return Ok(());
        }
        Err(Stopped::lane(l, FaultKind::Lds { access, address, size: self.bytes }))
    }

    /// Up to four bytes at a checked address.
    #[inline(always)]
    pub(super) fn load(&self, address: u32, bytes: u32) -> u32 {
        let (index, shift) = ((address / 4) as usize, address % 4 * 8);
        if shift == 0 && bytes == 4 {
            return self.words[index];
        }
        let low = u64::from(self.words[index]);
        let both = if shift + bytes * 8 > 32 { low | u64::from(self.words[index + 1]) << 32 } else { low };
        (both >> shift) as u32 & (u32::MAX >> (32 - 8 * bytes))
    }

    /// Up to four bytes at a checked address.
    #[inline(always)]
    pub(super) fn store(&mut self, address: u32, bytes: u32, value: u32) {
        let (index, shift) = ((address / 4) as usize, address % 4 * 8);
        if shift == 0 && bytes == 4 {
            self.words[index] = value;
            return;
        }
        let mask = u64::from(u32::MAX >> (32 - 8 * bytes)) << shift;
        let bits = u64::from(value) << shift & mask;
        self.words[index] = self.words[index] & !(mask as u32) | bits as u32;
        if mask >> 32 != 0 {
            let (mask, bits) = ((mask >> 32) as u32, (bits >> 32) as u32);
            self.words[index + 1] = self.words[index + 1] & !mask | bits;
        }
    }

    /// Replaces an aligned place of four or (`wide`) eight bytes for lane `l` and returns what it held.
    pub(super) fn update(
        &mut self,
        l: usize,
        address: u32,
        wide: bool,
        new: impl FnOnce(u64) -> Result<u64, Stopped>,
    ) -> Result<u64, Stopped> {
        let bytes = if wide { 8 } else { 4 };
        self.check(l, MemoryAccess::Atomic, address, bytes)?;
        if !address.is_multiple_of(bytes) {
            return Err(Stopped::lane(l, FaultKind::Misaligned { address: address.into() }));
        }
        let high = if wide { u64::from(self.load(address + 4, 4)) << 32 } else { 0 };
        let old = u64::from(self.load(address, 4)) | high;
        let new = new(old)?;
        self.store(address, 4, new as u32);
        if wide {
            self.store(address + 4, 4, (new >> 32) as u32);
        }
        Ok(old)
    }
}

/// Loads from `addresses` into operand 0.
pub(super) fn load(
    w: &mut Wave,
    lds: &Lds,
    s: &Step,
    kind: MemoryData,
    addresses: &VectorRow,
) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    if let MemoryData::Dwords(count) = kind {
        return load_dwords(w, lds, first, count.into(), addresses);
    }
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Load, addresses[l], kind.bytes())?;
        let value = lds.load(addresses[l], kind.bytes());
        let register = &mut w.rows[first][l];
        *register = merge_loaded(kind, *register, value);
        Ok(())
    })
}

fn load_dwords(
    w: &mut Wave,
    lds: &Lds,
    first: usize,
    count: usize,
    addresses: &VectorRow,
) -> Result<(), Stopped> {
    let bytes = 4 * count as u32;
    let together = addresses.iter().fold(0, |all, a| all | a) % 4 == 0 && w.exec() == u64::MAX;
    if together
        && addresses.iter().max().is_some_and(|&a| u64::from(a) + u64::from(bytes) <= lds.bytes.into())
    {
        let starts = addresses.map(|a| (a / 4) as usize);
        for (index, row) in w.rows[first..first + count].iter_mut().enumerate() {
            let words = &lds.words[index..];
            for (register, &start) in row.iter_mut().zip(&starts) {
                *register = words[start];
            }
        }
        return Ok(());
    }
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Load, addresses[l], bytes)?;
        for index in 0..count {
            w.rows[first + index][l] = lds.load(addresses[l] + 4 * index as u32, 4);
        }
        Ok(())
    })
}

/// Stores operand `data` to `addresses`.
pub(super) fn store(
    w: &mut Wave,
    lds: &mut Lds,
    s: &Step,
    data: usize,
    kind: MemoryData,
    addresses: &VectorRow,
) -> Result<(), Stopped> {
    let Some(first) = s.operands[data].row() else { return Ok(()) };
    let bytes = kind.bytes();
    let MemoryData::Dwords(count) = kind else {
        return w.each_lane(|w, l| {
            lds.check(l, MemoryAccess::Store, addresses[l], bytes)?;
            lds.store(addresses[l], bytes, store_value(kind, w.rows[first][l]));
            Ok(())
        });
    };
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Store, addresses[l], bytes)?;
        for index in 0..usize::from(count) {
            lds.store(addresses[l] + 4 * index as u32, 4, w.rows[first + index][l]);
        }
        Ok(())
    })
}

/// Address operand plus offset.
pub(super) fn addresses(w: &Wave, s: &Step, operand: usize, offset: u32) -> VectorRow {
    w.lanes(s.operands[operand]).map(|a| a.wrapping_add(offset))
}

/// Byte offset of element `number` (0 or 1) of a two-element access of `dwords` dwords per element.
pub(super) fn offset_of(s: &Step, number: u32, dwords: u8, scale: u8) -> u32 {
    (s.imm >> (8 * number) & 0xff) * u32::from(dwords) * 4 * u32::from(scale)
}

/// Loads two elements.
pub(super) fn load_two(w: &mut Wave, lds: &Lds, s: &Step, dwords: u8, scale: u8) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    // Both addresses are read before the first result, which may overwrite them.
    let both = [0, 1].map(|n| addresses(w, s, 1, offset_of(s, n, dwords, scale)));
    for (number, addresses) in both.iter().enumerate() {
        load_dwords(w, lds, first + number * usize::from(dwords), dwords.into(), addresses)?;
    }
    Ok(())
}

/// Stores two elements.
pub(super) fn store_two(w: &mut Wave, lds: &mut Lds, s: &Step, dwords: u8, scale: u8) -> Result<(), Stopped> {
    for number in 0..2 {
        let addresses = addresses(w, s, 0, offset_of(s, number, dwords, scale));
        store(w, lds, s, 1 + number as usize, MemoryData::Dwords(dwords), &addresses)?;
    }
    Ok(())
}

/// Exchanges two elements between registers and LDS.
pub(super) fn exchange_two(
    w: &mut Wave,
    lds: &mut Lds,
    s: &Step,
    dwords: u8,
    scale: u8,
) -> Result<(), Stopped> {
    let (Some(result), Some(a), Some(b)) = (s.operands[0].row(), s.operands[2].row(), s.operands[3].row())
    else {
        return Ok(());
    };
    let count = usize::from(dwords);
    let both = [0, 1].map(|n| addresses(w, s, 1, offset_of(s, n, dwords, scale)));
    w.each_lane(|w, l| {
        let data = [a, b].map(|row| atomic::operand(w, row, l, count == 2));
        for number in 0..2 {
            let address = both[number][l];
            lds.check(l, MemoryAccess::Atomic, address, 4 * count as u32)?;
            for dword in 0..count {
                let at = address + 4 * dword as u32;
                w.rows[result + number * count + dword][l] = lds.load(at, 4);
                lds.store(at, 4, (data[number] >> (32 * dword)) as u32);
            }
        }
        Ok(())
    })
}

/// Atomic operation.
pub(super) fn atomic(
    w: &mut Wave,
    lds: &mut Lds,
    operation: AtomicOperation,
    registers: AtomicRegisters,
    addresses: &VectorRow,
) -> Result<(), Stopped> {
    let wide = operation.1.registers() == 2;
    w.each_lane(|w, l| {
        let [data, second] = [registers.data, registers.second].map(|row| atomic::operand(w, row, l, wide));
        let old = lds.update(l, addresses[l], wide, |old| atomic::apply(operation, old, data, second))?;
        if let Some(row) = registers.result {
            atomic::put(w, row, l, wide, old);
        }
        Ok(())
    })
}
