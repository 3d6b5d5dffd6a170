//! An open-addressing index from content hash to position: the arenas and lists hold the content, and this
//! table 8 bytes for each entry.

use smallvec::{SmallVec, smallvec};

/// Slots before the first growth, which need no memory of their own.
const SLOTS: usize = 64;

/// Slots of (hash, position + 1); a zero position is an empty slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct InternTable {
    slots: SmallVec<[(u32, u32); SLOTS]>,
    len: usize,
}

impl InternTable {
    /// Forgets every entry and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.len = 0;
    }

    /// The position whose content has this hash and satisfies `equal`.
    pub(crate) fn find(&self, hash: u32, mut equal: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (seen, position) = self.slots[slot];
            if position == 0 {
                return None;
            }
            if seen == hash && equal(position - 1) {
                return Some(position - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Enters a position that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, position: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let larger = smallvec![(0, 0); (self.slots.len() * 2).max(SLOTS)];
            for (hash, position) in std::mem::replace(&mut self.slots, larger) {
                if position != 0 {
                    self.place(hash, position);
                }
            }
        }
        self.place(hash, position + 1);
        self.len += 1;
    }

    fn place(&mut self, hash: u32, position: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot].1 != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = (hash, position);
    }
}
