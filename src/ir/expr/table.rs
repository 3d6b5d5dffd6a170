//! An open-addressing index from content hash to number: the arenas and lists hold the content, and this
//! table 8 bytes for each entry.

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use smallvec::{SmallVec, smallvec};

/// Slots before the first growth, which need no memory of their own.
const SLOTS: usize = 64;

/// Hashes and the numbers of what has them.
#[derive(Clone, Debug)]
pub(crate) struct InternTable<I: EntityRef + ReservedValue> {
    slots: SmallVec<[(u32, PackedOption<I>); SLOTS]>,
    len: usize,
}

impl<I: EntityRef + ReservedValue> Default for InternTable<I> {
    fn default() -> InternTable<I> {
        InternTable { slots: SmallVec::new(), len: 0 }
    }
}

impl<I: EntityRef + ReservedValue> InternTable<I> {
    /// Forgets every entry and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots.fill((0, PackedOption::default()));
        self.len = 0;
    }

    /// The number whose content has this hash and satisfies `equal`.
    pub(crate) fn find(&self, hash: u32, mut equal: impl FnMut(I) -> bool) -> Option<I> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (seen, number) = self.slots[slot];
            let number = number.expand()?;
            if seen == hash && equal(number) {
                return Some(number);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Enters a number that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, number: I) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let larger = smallvec![(0, PackedOption::default()); (self.slots.len() * 2).max(SLOTS)];
            for (hash, number) in std::mem::replace(&mut self.slots, larger) {
                if !number.is_none() {
                    self.place(hash, number);
                }
            }
        }
        self.place(hash, number.into());
        self.len += 1;
    }

    fn place(&mut self, hash: u32, number: PackedOption<I>) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while !self.slots[slot].1.is_none() {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = (hash, number);
    }
}
