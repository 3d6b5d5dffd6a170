//! Global memory of the simulated device.
//!
//! Every allocation has a stable 64-bit device address; between two allocations lies a gap that belongs to
//! neither, so an access that runs past an end is noticed. Contents are 32-bit atomic words that are accessed
//! with relaxed ordering: workgroups run on several host threads, and a program that races gets some value,
//! as on hardware, instead of undefined behaviour. On x86 and AArch64 a relaxed load or store of a word costs
//! as much as a plain one. Stores of less than a word are a compare-and-swap of the word that holds them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use super::error::SimError;
use super::lazy_copy::LazyCopy;
use super::words::DeviceWords;

/// First device address that is handed out.
pub(super) const FIRST_ADDRESS: u64 = 0x1_0000_0000;
/// Allocations start at multiples of this.
pub(super) const ALIGNMENT: u64 = 256;
/// The least number of unused bytes between two allocations.
pub(super) const GUARD: u64 = 0x1_0000;
/// Below this address lie what a launch has of its own, and the windows of scratch.
const LEAST_LENT: u64 = 0x1_0000_0000;
/// The most bytes that lanes share a lookup for where what lies between them is copied.
const MOST_AROUND: u64 = 1 << 16;
/// The most freed allocations that are remembered, for what is said of accesses to them.
const MOST_FREED: usize = 1 << 14;

/// A piece of device memory.
#[derive(Debug)]
pub(super) struct DeviceAllocation {
    base: u64,
    bytes: u64,
    /// Bytes up to the end of its last page, where that is known: as many as hardware lets a kernel access.
    room: u64,
    words: DeviceWords,
    /// The words are a copy, of which only what is used is there.
    lazy: Option<Box<LazyCopy>>,
    written: Mutex<WrittenBytes>,
}

/// Which bytes of an allocation have been written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WrittenBytes {
    /// All.
    All,
    /// These ranges, in rising order and without touching each other.
    Ranges(Vec<(u64, u64)>),
}

impl WrittenBytes {
    /// Adds bytes `start` to `end - 1`.
    fn add(&mut self, start: u64, end: u64) {
        let WrittenBytes::Ranges(ranges) = self else { return };
        let first = ranges.partition_point(|range| range.1 < start);
        let past = ranges.partition_point(|range| range.0 <= end);
        if first == past {
            ranges.insert(first, (start, end));
            return;
        }
        let joined = (start.min(ranges[first].0), end.max(ranges[past - 1].1));
        ranges.splice(first..past, [joined]);
    }

    /// Takes bytes `start` to `end - 1` out again. Where all counts as written, somebody else may write there
    /// without being asked, and it stays so.
    fn remove(&mut self, start: u64, end: u64) {
        let WrittenBytes::Ranges(ranges) = self else { return };
        let first = ranges.partition_point(|range| range.1 <= start);
        let past = ranges.partition_point(|range| range.0 < end);
        if first < past {
            let rest = [(ranges[first].0, start), (end, ranges[past - 1].1)];
            ranges.splice(first..past, rest.into_iter().filter(|range| range.0 < range.1));
        }
    }

    /// True if all bytes from `start` to `end - 1` have been written.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        let WrittenBytes::Ranges(ranges) = self else { return true };
        let index = ranges.partition_point(|range| range.0 <= start);
        index > 0 && ranges[index - 1].1 >= end
    }
}

impl DeviceAllocation {
    /// Zeroed memory at a given place.
    pub(super) fn new(base: u64, bytes: u64) -> Result<DeviceAllocation, SimError> {
        let count = usize::try_from(bytes.div_ceil(4)).ok();
        let words = count.and_then(DeviceWords::zeroed).ok_or(SimError::OutOfMemory { bytes })?;
        Ok(DeviceAllocation::of(words, base, bytes))
    }

    fn of(words: DeviceWords, base: u64, bytes: u64) -> DeviceAllocation {
        let written = Mutex::new(WrittenBytes::Ranges(Vec::new()));
        DeviceAllocation { base, bytes, room: bytes, words, lazy: None, written }
    }

    /// The same memory with the same contents, in which all of this one's words may be changed. What is the
    /// host's is copied when it is used; the simulator's own, which is little where the host lends memory, at
    /// once.
    fn copied(&self) -> Option<DeviceAllocation> {
        let (lazy, words) = match &self.words {
            DeviceWords::Lent(words) => {
                LazyCopy::new(words).map(|(lazy, words)| (Some(Box::new(lazy)), words))?
            }
            DeviceWords::Owned(words) => {
                self.fetch(0, 4 * words.len() as u64);
                (None, self.words.copied()?)
            }
        };
        Some(DeviceAllocation { room: self.room, lazy, ..DeviceAllocation::of(words, self.base, self.bytes) })
    }

    /// Has the words of `bytes` bytes from byte `offset` on, if it is a copy that has only what is used.
    #[inline(always)]
    fn fetch(&self, offset: u64, bytes: u64) {
        if let Some(lazy) = &self.lazy {
            lazy.fetch(self.words(), (offset / 4) as usize, (offset + bytes).div_ceil(4) as usize);
        }
    }

    /// Memory at a given place with given contents.
    pub(super) fn with_contents(base: u64, contents: &[u8]) -> Result<DeviceAllocation, SimError> {
        let it = DeviceAllocation::new(base, contents.len() as u64)?;
        it.write(0, contents);
        it.define();
        Ok(it)
    }

    /// The same, followed by bytes that count as never written, up to a multiple of `line` bytes.
    pub(super) fn in_lines(base: u64, contents: &[u8], line: u64) -> Result<DeviceAllocation, SimError> {
        let bytes = contents.len() as u64;
        let it = DeviceAllocation::new(base, bytes.next_multiple_of(line))?;
        it.write(0, contents);
        it.written().add(0, bytes);
        Ok(it)
    }

    /// What counts as written.
    fn written(&self) -> MutexGuard<'_, WrittenBytes> {
        // A poisoned lock guards ranges that are complete before and after each change.
        self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// All of it counts as written from now on.
    fn define(&self) {
        *self.written() = WrittenBytes::All;
    }

    /// Byte offset of `address` if all `bytes` bytes from there on lie inside.
    #[inline(always)]
    pub(super) fn offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset <= self.bytes && bytes <= self.bytes - offset).then_some(offset)
    }

    /// The same for what lies past its end, and still in its last page.
    fn offset_in_room(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset <= self.room && bytes <= self.room - offset).then_some(offset)
    }

    /// The words.
    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU32] {
        self.words.all()
    }

    /// A little-endian value of `bytes` (1 to 4) bytes at any byte offset, which the caller has checked.
    #[inline]
    pub(super) fn load(&self, offset: u64, bytes: u32) -> u32 {
        let (index, shift) = ((offset / 4) as usize, (offset % 4) as u32 * 8);
        let words = self.words();
        let low = words[index].load(Relaxed) >> shift;
        let both =
            if shift + bytes * 8 > 32 { low | words[index + 1].load(Relaxed) << (32 - shift) } else { low };
        both & mask(bytes)
    }

    /// Stores the low `bytes` (1 to 4) bytes of `value` at any byte offset, which the caller has checked.
    #[inline]
    pub(super) fn store(&self, offset: u64, bytes: u32, value: u32) {
        let (index, shift) = ((offset / 4) as usize, (offset % 4) as u32 * 8);
        if shift == 0 && bytes == 4 {
            self.words()[index].store(value, Relaxed);
            return;
        }
        let mask = mask(bytes);
        self.merge(index, mask << shift, (value & mask) << shift);
        if shift + bytes * 8 > 32 {
            self.merge(index + 1, mask >> (32 - shift), (value & mask) >> (32 - shift));
        }
    }

    fn merge(&self, index: usize, mask: u32, bits: u32) {
        self.update(index, |old| old & !mask | bits);
    }

    /// Atomically replaces word `index` and returns what it was.
    pub(super) fn update(&self, index: usize, f: impl Fn(u32) -> u32) -> u32 {
        let word = &self.words()[index];
        let mut old = word.load(Relaxed);
        loop {
            match word.compare_exchange_weak(old, f(old), Relaxed, Relaxed) {
                Ok(old) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// Copies bytes in, from byte `offset` on; the caller has checked the range.
    fn write(&self, offset: u64, data: &[u8]) {
        self.fetch(offset, data.len() as u64);
        let whole = if offset.is_multiple_of(4) { data.len() / 4 } else { 0 };
        let (words, rest) = data.split_at(4 * whole);
        let first = (offset / 4) as usize;
        for (word, bytes) in
            self.words()[first.min(self.words().len())..].iter().zip(words.as_chunks::<4>().0)
        {
            word.store(u32::from_le_bytes(*bytes), Relaxed);
        }
        let (mut at, mut rest) = (offset + words.len() as u64, rest);
        while !rest.is_empty() {
            let bytes = (4 - at % 4).min(rest.len() as u64) as usize;
            let mut word = [0; 4];
            word[..bytes].copy_from_slice(&rest[..bytes]);
            self.store(at, bytes as u32, u32::from_le_bytes(word));
            at += bytes as u64;
            rest = &rest[bytes..];
        }
    }

    /// Copies bytes out, from byte `offset` on; the caller has checked the range.
    fn read(&self, offset: u64, data: &mut [u8]) {
        self.fetch(offset, data.len() as u64);
        let whole = if offset.is_multiple_of(4) { data.len() / 4 } else { 0 };
        let (words, mut rest) = data.split_at_mut(4 * whole);
        let first = (offset / 4) as usize;
        for (word, bytes) in
            self.words()[first.min(self.words().len())..].iter().zip(words.as_chunks_mut::<4>().0)
        {
            *bytes = word.load(Relaxed).to_le_bytes();
        }
        let mut at = offset + words.len() as u64;
        while !rest.is_empty() {
            let bytes = (4 - at % 4).min(rest.len() as u64) as usize;
            let (now, later) = rest.split_at_mut(bytes);
            now.copy_from_slice(&self.load(at, bytes as u32).to_le_bytes()[..bytes]);
            at += bytes as u64;
            rest = later;
        }
    }
}

fn mask(bytes: u32) -> u32 {
    u32::MAX >> (32 - 8 * bytes.clamp(1, 4))
}

/// All memory of one simulated device.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    /// In order of their addresses.
    allocations: Vec<DeviceAllocation>,
    /// Sizes of freed allocations by their addresses.
    freed: BTreeMap<u64, u64>,
    next: u64,
    /// Held by 64-bit atomics, and by loads and stores that see or change several words at once: the host
    /// exchanges one word at a time.
    wide_atomics: Mutex<()>,
}

impl DeviceMemory {
    /// No memory yet.
    pub(super) fn new() -> DeviceMemory {
        DeviceMemory {
            allocations: Vec::new(),
            freed: BTreeMap::new(),
            next: FIRST_ADDRESS,
            wide_atomics: Mutex::new(()),
        }
    }

    /// Zeroed memory; returns its address.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64, SimError> {
        let base = self.next;
        // Device addresses have 48 bits; those in the upper half are never handed out.
        let end =
            base.checked_add(bytes).filter(|&end| end < 1 << 46).ok_or(SimError::OutOfMemory { bytes })?;
        let index = self.allocations.partition_point(|a| a.base < base);
        if self.allocations.get(index).is_some_and(|lent| lent.base < end + GUARD) {
            return Err(SimError::OutOfMemory { bytes });
        }
        self.allocations.insert(index, DeviceAllocation::new(base, bytes)?);
        self.next = (end + GUARD).next_multiple_of(ALIGNMENT);
        Ok(base)
    }

    /// Memory of the host becomes a part of the device's, at its own address, until it is given back by
    /// [`free`](Self::free). All of it counts as written, as the host writes it without being asked. It has
    /// `room` bytes, of which those after the first `bytes` belong to nobody.
    ///
    /// # Errors
    /// Its address is not that of a word, or is used by the device already.
    ///
    /// # Safety
    /// As [`DeviceWords::lent`].
    #[allow(unsafe_code)]
    pub(super) unsafe fn lend(&mut self, address: *mut u8, bytes: u64, room: u64) -> Result<(), SimError> {
        let base = address as u64;
        let room = room.max(bytes);
        let refuse = |reason: &str| SimError::Lent { address: base, reason: reason.to_owned() };
        let end = base.checked_add(room).filter(|&end| base >= LEAST_LENT && end < 1 << 47);
        let end = end.ok_or_else(|| refuse("the device has its own memory at that address"))?;
        let index = self.allocations.partition_point(|a| a.base < base);
        let before = index.checked_sub(1).map(|i| &self.allocations[i]);
        if before.is_some_and(|a| a.base + a.room > base)
            || self.allocations.get(index).is_some_and(|a| a.base < end || a.base == base)
        {
            return Err(refuse("it overlaps memory that the device has already"));
        }
        // SAFETY: the caller vouches for it.
        let words = unsafe { DeviceWords::lent(address, room) }?;
        let allocation = DeviceAllocation { room, ..DeviceAllocation::of(words, base, bytes) };
        allocation.define();
        self.allocations.insert(index, allocation);
        Ok(())
    }

    /// Gives memory back; its address is not used again.
    pub(super) fn free(&mut self, address: u64) -> Result<(), SimError> {
        let index = self
            .allocations
            .binary_search_by_key(&address, |a| a.base)
            .map_err(|_| SimError::NotAllocated { address })?;
        let gone = self.allocations.remove(index);
        self.freed.insert(gone.base, gone.bytes);
        if self.freed.len() > MOST_FREED {
            self.freed.pop_first();
        }
        Ok(())
    }

    /// Copies bytes to the device.
    pub(super) fn write(&self, address: u64, data: &[u8]) -> Result<(), SimError> {
        let (allocation, offset) = self.host_range(address, data.len() as u64)?;
        allocation.write(offset, data);
        allocation.written().add(offset, offset + data.len() as u64);
        Ok(())
    }

    /// All of the allocation that starts there counts as written from now on.
    pub(super) fn define(&self, address: u64) {
        if let Ok(index) = self.allocations.binary_search_by_key(&address, |a| a.base) {
            self.allocations[index].define();
        }
    }

    /// Nothing of the allocation that starts there counts as written any more.
    pub(super) fn forget_contents(&self, address: u64) -> Result<(), SimError> {
        let index = self
            .allocations
            .binary_search_by_key(&address, |a| a.base)
            .map_err(|_| SimError::NotAllocated { address })?;
        *self.allocations[index].written() = WrittenBytes::Ranges(Vec::new());
        Ok(())
    }

    /// Memory with the same contents at the same addresses. What the host has lent is copied as it is used;
    /// if `shares` names it by its address, it is no copy and belongs to both.
    pub(super) fn copy(&self, shares: impl Fn(u64) -> bool) -> Result<DeviceMemory, SimError> {
        let copy = |allocation: &DeviceAllocation| {
            let (base, bytes) = (allocation.base, allocation.bytes);
            let copy = match &allocation.words {
                DeviceWords::Lent(words) if shares(base) => DeviceAllocation {
                    room: allocation.room,
                    ..DeviceAllocation::of(DeviceWords::Lent(words), base, bytes)
                },
                DeviceWords::Lent(_) | DeviceWords::Owned(_) => {
                    allocation.copied().ok_or(SimError::OutOfMemory { bytes })?
                }
            };
            *copy.written() = allocation.written().clone();
            Ok(copy)
        };
        let allocations = self.allocations.iter().map(copy).collect::<Result<_, SimError>>()?;
        let freed = self.freed.clone();
        Ok(DeviceMemory { allocations, freed, next: self.next, wide_atomics: Mutex::new(()) })
    }

    /// Copies bytes from the device.
    pub(super) fn read(&self, address: u64, data: &mut [u8]) -> Result<(), SimError> {
        let (allocation, offset) = self.host_range(address, data.len() as u64)?;
        allocation.read(offset, data);
        Ok(())
    }

    /// True if all of `bytes` bytes from `address` on lie in one allocation and count as written.
    pub(super) fn is_written(&self, address: u64, bytes: u64) -> bool {
        let found = self.host_range(address, bytes).ok();
        found.is_some_and(|(allocation, offset)| allocation.written().holds(offset, offset + bytes))
    }

    /// Start and size of the allocation that an address lies in.
    pub(super) fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        self.host_range(address, 1).ok().map(|(allocation, _)| (allocation.base, allocation.bytes))
    }

    /// Start and size of the freed allocation that an address lies in.
    pub(super) fn freed(&self, address: u64) -> Option<(u64, u64)> {
        let (&base, &bytes) = self.freed.range(..=address).next_back()?;
        (address - base < bytes && self.allocation_of(address).is_none()).then_some((base, bytes))
    }

    /// The allocation that holds all of `bytes` bytes from `address` on, and the offset inside it.
    pub(super) fn host_range(&self, address: u64, bytes: u64) -> Result<(&DeviceAllocation, u64), SimError> {
        let index = self.allocations.partition_point(|a| a.base <= address);
        index
            .checked_sub(1)
            .and_then(|i| Some((&self.allocations[i], self.allocations[i].offset(address, bytes)?)))
            .ok_or(SimError::BadAddress { address, bytes })
    }

    /// What a launch sees: this memory and `extra` allocations of its own, which lie below all others in
    /// address order.
    pub(super) fn view<'a>(&'a self, extra: &'a [DeviceAllocation]) -> MemoryView<'a> {
        let mut allocations: Vec<&DeviceAllocation> = extra.iter().chain(&self.allocations).collect();
        allocations.sort_by_key(|a| a.base);
        MemoryView { allocations, memory: self, past_end: None, rendezvous: None }
    }
}

/// Memory as the waves of one launch see it.
#[derive(Debug)]
pub(super) struct MemoryView<'a> {
    allocations: Vec<&'a DeviceAllocation>,
    memory: &'a DeviceMemory,
    /// Where accesses past an end are forgiven within the last page: the lowest address of an allocation of
    /// which there was one.
    past_end: Option<AtomicU64>,
    /// Where waves of the whole grid meet, if all of its workgroups make progress together.
    rendezvous: Option<Mutex<Rendezvous>>,
}

/// A barrier of a whole grid.
#[derive(Debug, Default)]
pub(super) struct Rendezvous {
    arrived: u32,
    /// How often it has opened.
    opened: u64,
}

impl Rendezvous {
    /// A wave arrives, or comes back to see whether the barrier has opened since it did; true if it has.
    /// `count` waves open it.
    pub(super) fn meet(&mut self, arrived_at: &mut Option<u64>, count: u32) -> bool {
        match *arrived_at {
            Some(opened) if opened == self.opened => return false,
            Some(_) => *arrived_at = None,
            None if self.arrived + 1 < count => {
                self.arrived += 1;
                *arrived_at = Some(self.opened);
                return false;
            }
            None => {
                self.arrived = 0;
                self.opened += 1;
            }
        }
        true
    }
}

impl<'a> MemoryView<'a> {
    /// The allocation that holds all of `bytes` bytes from `address` on, and the offset inside it. `hint` is
    /// where the last access of the caller went: almost always the right place. The words of these bytes are
    /// there.
    #[inline]
    pub(super) fn find(
        &self,
        hint: &mut usize,
        address: u64,
        bytes: u64,
    ) -> Option<(&'a DeviceAllocation, u64)> {
        let found = self.locate(hint, address, bytes);
        if let Some((allocation, offset)) = found {
            allocation.fetch(offset, bytes);
        }
        found
    }

    /// The same for whoever accesses some of the bytes and can do without an answer: there is none where all
    /// that lies between them would have to be copied.
    #[inline]
    pub(super) fn find_around(
        &self,
        hint: &mut usize,
        address: u64,
        bytes: u64,
    ) -> Option<(&'a DeviceAllocation, u64)> {
        let (allocation, offset) = self.locate(hint, address, bytes)?;
        if allocation.lazy.is_some() && bytes > MOST_AROUND {
            return None;
        }
        allocation.fetch(offset, bytes);
        Some((allocation, offset))
    }

    #[inline(always)]
    fn locate(&self, hint: &mut usize, address: u64, bytes: u64) -> Option<(&'a DeviceAllocation, u64)> {
        if let Some(allocation) = self.allocations.get(*hint)
            && let Some(offset) = allocation.offset(address, bytes)
        {
            return Some((allocation, offset));
        }
        let index = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        let allocation = self.allocations[index];
        let offset =
            allocation.offset(address, bytes).or_else(|| self.offset_past_end(allocation, address, bytes))?;
        *hint = index;
        Some((allocation, offset))
    }

    /// From now on an access past the end of an allocation is forgiven if it stays in the last page, as pages
    /// are what hardware protects.
    pub(super) fn forgive_past_end(&mut self) {
        self.past_end = Some(AtomicU64::new(u64::MAX));
    }

    /// From now on the waves of a grid can meet.
    pub(super) fn with_rendezvous(&mut self) {
        self.rendezvous = Some(Mutex::default());
    }

    /// Where they meet.
    pub(super) fn rendezvous(&self) -> Option<&Mutex<Rendezvous>> {
        self.rendezvous.as_ref()
    }

    /// Start and size of the lowest allocation of which an access past its end was forgiven.
    pub(super) fn past_end(&self) -> Option<(u64, u64)> {
        let base = self.past_end.as_ref()?.load(Relaxed);
        self.allocations.iter().find(|a| a.base == base).map(|a| (a.base, a.bytes))
    }

    #[cold]
    fn offset_past_end(&self, allocation: &DeviceAllocation, address: u64, bytes: u64) -> Option<u64> {
        let past_end = self.past_end.as_ref()?;
        let offset = allocation.offset_in_room(address, bytes)?;
        past_end.fetch_min(allocation.base, Relaxed);
        Some(offset)
    }

    /// Start and size of each allocation.
    pub(super) fn extents(&self) -> impl Iterator<Item = (u64, u64)> {
        self.allocations.iter().map(|a| (a.base, a.bytes))
    }

    /// What of each allocation was written.
    pub(super) fn written(&self) -> Vec<WrittenBytes> {
        self.allocations.iter().map(|a| a.written().clone()).collect()
    }

    /// Bytes `start` to `end - 1` of an allocation count as written from now on.
    pub(super) fn note_written(&self, allocation: usize, start: u64, end: u64) {
        let allocation = self.allocations[allocation];
        allocation.written().add(start, end.min(allocation.bytes));
    }

    /// Bytes `start` to `end - 1` of an allocation count as never written from now on, unless all of it
    /// always counts as written.
    pub(super) fn note_unwritten(&self, allocation: usize, start: u64, end: u64) {
        self.allocations[allocation].written().remove(start, end);
    }

    /// Everything counts as written from now on.
    pub(super) fn define_all(&self) {
        self.allocations.iter().for_each(|a| a.define());
    }

    /// Start and size of the allocation nearest below an address, or the first one.
    pub(super) fn nearest(&self, address: u64) -> (u64, u64) {
        let index = self.allocations.partition_point(|a| a.base <= address).saturating_sub(1);
        self.allocations.get(index).map_or((0, 0), |a| (a.base, a.bytes))
    }

    /// Start and size of the freed allocation that an address lies in.
    pub(super) fn freed(&self, address: u64) -> Option<(u64, u64)> {
        self.memory.freed(address)
    }

    /// For as long as the guard is held, no 64-bit atomic and nobody else who has called this is between two
    /// words.
    pub(super) fn keep_whole(&self) -> MutexGuard<'_, ()> {
        // A poisoned lock guards no data that could be inconsistent.
        self.memory.wide_atomics.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Replaces two words and returns what they were, at once for all who [keep](Self::keep_whole) words
    /// whole.
    pub(super) fn update_wide(
        &self,
        allocation: &DeviceAllocation,
        index: usize,
        f: impl Fn(u64) -> u64,
    ) -> u64 {
        let _whole = self.keep_whole();
        let [low, high] = [&allocation.words()[index], &allocation.words()[index + 1]];
        let old = u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32;
        let new = f(old);
        low.store(new as u32, Relaxed);
        high.store((new >> 32) as u32, Relaxed);
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_aligned_stable_and_apart() {
        let mut memory = DeviceMemory::new();
        let [a, b] = [100, 5].map(|n| memory.allocate(n).expect("small"));
        assert_eq!((a % ALIGNMENT, b % ALIGNMENT), (0, 0));
        assert!(b >= a + 100 + GUARD);
        memory.free(a).expect("allocated above");
        assert_eq!(memory.free(a), Err(SimError::NotAllocated { address: a }));
        assert!(memory.allocate(1).expect("small") > b);
    }

    #[test]
    fn bytes_come_back_at_any_alignment() {
        let mut memory = DeviceMemory::new();
        let base = memory.allocate(64).expect("small");
        let data: Vec<u8> = (1..=23).collect();
        for offset in 0..8 {
            memory.write(base + offset, &data).expect("inside");
            let mut back = vec![0; data.len()];
            memory.read(base + offset, &mut back).expect("inside");
            assert_eq!(back, data);
        }
        assert!(memory.write(base + 60, &data).is_err());
        assert!(memory.read(base - 1, &mut [0]).is_err());
    }

    #[test]
    fn parts_of_words_leave_the_rest_alone() {
        let memory = DeviceAllocation::with_contents(0x1000, &[0xff; 12]).expect("small");
        memory.store(3, 2, 0xabcd_1234);
        assert_eq!(memory.load(0, 4), 0x34ff_ffff);
        assert_eq!(memory.load(4, 4), 0xffff_ff12);
        assert_eq!(memory.load(3, 2), 0x1234);
        assert_eq!(memory.load(2, 4), 0xff12_34ff);
    }

    #[test]
    fn a_view_finds_what_lies_inside_and_nothing_else() {
        let mut memory = DeviceMemory::new();
        let base = memory.allocate(10).expect("small");
        let extra = [DeviceAllocation::new(0x1000, 16).expect("small")];
        let view = memory.view(&extra);
        let mut hint = 7;
        assert_eq!(view.find(&mut hint, base + 6, 4).map(|f| f.1), Some(6));
        assert_eq!(view.find(&mut hint, 0x1008, 8).map(|f| f.1), Some(8));
        assert!(view.find(&mut hint, base + 7, 4).is_none());
        assert!(view.find(&mut hint, 0, 4).is_none());
        assert!(view.find(&mut hint, u64::MAX, 4).is_none());
    }

    #[test]
    fn written_ranges_join_where_they_touch() {
        let mut written = WrittenBytes::Ranges(Vec::new());
        for (start, end) in [(8, 12), (20, 24), (0, 4), (12, 16), (3, 9)] {
            written.add(start, end);
        }
        assert_eq!(written, WrittenBytes::Ranges(vec![(0, 16), (20, 24)]));
        assert!(written.holds(2, 16) && !written.holds(2, 17) && !written.holds(16, 18));
        written.add(0, 30);
        assert_eq!(written, WrittenBytes::Ranges(vec![(0, 30)]));
        written.remove(4, 8);
        written.remove(20, 40);
        written.remove(8, 8);
        assert_eq!(written, WrittenBytes::Ranges(vec![(0, 4), (8, 20)]));
        written.remove(0, 10);
        assert_eq!(written, WrittenBytes::Ranges(vec![(10, 20)]));
    }

    #[test]
    #[allow(unsafe_code)]
    fn lent_memory_is_the_host_s_and_overlaps_nothing() {
        let mut memory = DeviceMemory::new();
        let mut words = vec![0u32; 8];
        let start: *mut u8 = words.as_mut_ptr().cast();
        let lend = |memory: &mut DeviceMemory, offset: usize, bytes| {
            // SAFETY: all of it lies in `words`, which outlives the memory and is only read after it is given
            // back.
            unsafe { memory.lend(start.wrapping_add(offset), bytes, bytes) }
        };
        lend(&mut memory, 4, 10).expect("it is aligned");
        for (offset, bytes) in [(0, 5), (4, 4), (8, 2), (12, 4), (1, 2)] {
            assert!(
                matches!(lend(&mut memory, offset, bytes), Err(SimError::Lent { .. })),
                "{offset} {bytes}"
            );
        }
        lend(&mut memory, 16, 16).expect("it lies after the other");
        let base = start as u64;
        memory.write(base + 5, &[1, 2]).expect("inside");
        assert!(memory.write(base + 13, &[1, 2]).is_err());
        assert_eq!(memory.allocation_of(base + 31), Some((base + 16, 16)));
        memory.free(base + 4).expect("lent above");
        memory.free(base + 16).expect("lent above");
        assert_eq!(words, [0, 0x0002_0100, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_line_of_arguments_ends_with_bytes_that_nobody_wrote() {
        let allocation = DeviceAllocation::in_lines(0x1000, &[7; 36], 64).expect("small");
        assert_eq!((allocation.offset(0x1000, 64), allocation.offset(0x1001, 64)), (Some(0), None));
        assert!(allocation.written().holds(0, 36) && !allocation.written().holds(35, 37));
    }

    #[test]
    fn impossible_sizes_are_errors() {
        let mut memory = DeviceMemory::new();
        assert!(memory.allocate(u64::MAX).is_err());
        assert!(memory.allocate(1 << 60).is_err());
    }
}
