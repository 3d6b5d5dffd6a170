//! LDS instructions: loads, stores, atomics.
//!
//! Accesses may have any alignment, as the amdhsa runtime configures the hardware. An access beyond the
//! workgroup's LDS is a fault here; hardware would read zero and drop writes, and no program relies on that.

use crate::codegen::isa::MemoryData;

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::program::Step;
use super::super::wave::{VectorRow, Wave};
use super::atomic::{self, AtomicOperation, AtomicRegisters};
use super::host;
use super::transfer::{clear_other_half, merge_loaded, store_value};

/// LDS of one workgroup.
#[derive(Clone, Debug)]
pub(in super::super) struct Lds {
    /// More than any chip has; of a power of two an index can be cut off, which is cheaper than checking it.
    words: Box<[u32; WORDS]>,
    bytes: u32,
    /// Words from there on have not been written.
    high: usize,
}

/// Words that there is room for: gfx950 has 160 KiB.
const WORDS: usize = 1 << 16;

impl Default for Lds {
    fn default() -> Lds {
        // Not from an array on the stack: what a kernel does not use shall take no memory.
        let words = vec![0; WORDS].into_boxed_slice().try_into();
        Lds { words: words.unwrap_or_else(|_| Box::new([0; WORDS])), bytes: 0, high: 0 }
    }
}

impl Lds {
    /// Zeroed LDS of this size; keeps its memory.
    pub(crate) fn reset(&mut self, bytes: u32) {
        self.words[..self.high.min(WORDS)].fill(0);
        self.high = 0;
        self.bytes = bytes.min(4 * WORDS as u32);
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

    /// The end of what the lanes access, if all lanes are active, and what they access is aligned and lies
    /// inside: the fast path.
    #[inline(always)]
    fn end_of_all(&self, w: &Wave, addresses: &VectorRow, bytes: u32) -> Option<u32> {
        if w.exec() != u64::MAX {
            return None;
        }
        let (bits, high) = host::highest(addresses);
        high.checked_add(bytes).filter(|end| bits % 4 == 0 && *end <= self.bytes)
    }

    /// Up to four bytes at a checked address.
    #[inline(always)]
    pub(in super::super) fn load(&self, address: u32, bytes: u32) -> u32 {
        let (index, shift) = ((address / 4) as usize, address % 4 * 8);
        let word = self.words[index % WORDS];
        if shift == 0 && bytes == 4 {
            return word;
        }
        let (low, high) = (u64::from(word), u64::from(self.words[(index + 1) % WORDS]));
        let both = if shift + bytes * 8 > 32 { low | high << 32 } else { low };
        (both >> shift) as u32 & (u32::MAX >> (32 - 8 * bytes))
    }

    /// Up to four bytes at a checked address.
    #[inline(always)]
    pub(super) fn store(&mut self, address: u32, bytes: u32, value: u32) {
        let (index, shift) = ((address / 4) as usize, address % 4 * 8);
        self.high = self.high.max(index + 2);
        let word = &mut self.words[index % WORDS];
        if shift == 0 && bytes == 4 {
            *word = value;
            return;
        }
        let mask = u64::from(u32::MAX >> (32 - 8 * bytes)) << shift;
        let bits = u64::from(value) << shift & mask;
        *word = *word & !(mask as u32) | bits as u32;
        if mask >> 32 != 0 {
            let (mask, bits) = ((mask >> 32) as u32, (bits >> 32) as u32);
            let next = &mut self.words[(index + 1) % WORDS];
            *next = *next & !mask | bits;
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
    clear_other_half(w, s, kind, first);
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
    if lds.end_of_all(w, addresses, bytes).is_some() {
        for (index, row) in w.rows[first..first + count].iter_mut().enumerate() {
            for (register, &address) in row.iter_mut().zip(addresses) {
                *register = lds.words[((address / 4) as usize + index) % WORDS];
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
    if let Some(end) = lds.end_of_all(w, addresses, bytes) {
        lds.high = lds.high.max((end / 4) as usize);
        let rows = &w.rows[first..first + usize::from(count)];
        if let [row] = rows {
            for (&value, &address) in row.iter().zip(addresses) {
                lds.words[(address / 4) as usize % WORDS] = value;
            }
            return Ok(());
        }
        // Lane by lane: where several lanes store to one place the last one wins, dword by dword.
        for (l, &address) in addresses.iter().enumerate() {
            for (index, row) in rows.iter().enumerate() {
                lds.words[((address / 4) as usize + index) % WORDS] = row[l];
            }
        }
        return Ok(());
    }
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
    let mut addresses = w.lanes(s.operands[operand]);
    addresses.iter_mut().for_each(|address| *address = address.wrapping_add(offset));
    addresses
}

/// Byte offset of element `number` (0 or 1) of a two-element access of `dwords` dwords per element.
pub(super) fn offset_of(s: &Step, number: u32, dwords: u8, scale: u8) -> u32 {
    (s.imm >> (8 * number) & 0xff) * u32::from(dwords) * 4 * u32::from(scale)
}

/// Loads two elements.
pub(super) fn load_two(w: &mut Wave, lds: &Lds, s: &Step, dwords: u8, scale: u8) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    // Both addresses are read before the first result, which may overwrite them.
    let low = addresses(w, s, 1, offset_of(s, 0, dwords, scale));
    let high = addresses(w, s, 1, offset_of(s, 1, dwords, scale));
    load_dwords(w, lds, first, dwords.into(), &low)?;
    load_dwords(w, lds, first + usize::from(dwords), dwords.into(), &high)
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
