//! Sets of physical registers, a bit each: whether an instruction touches what many others do takes one look
//! at each of its registers.

use super::access::{Ranges, RegisterRange, TouchedRegisters};
use crate::codegen::isa::Operand;

/// Registers by operand number.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
struct RegisterSet([u64; Operand::END as usize / 64]);

/// Shows `see` the words of a set in which a range lies, and its bits there.
#[inline]
fn words(range: RegisterRange, mut see: impl FnMut(usize, u64)) {
    let (mut start, end) = (range.numbers().start, range.numbers().end);
    while start < end {
        let (word, bit) = (start / 64, start % 64);
        let count = (end - start).min(64 - bit);
        see(word, u64::MAX >> (64 - count) << bit);
        start += count;
    }
}

impl RegisterSet {
    fn add(&mut self, ranges: &Ranges) {
        for &range in ranges.as_slice() {
            words(range, |word, bits| self.0[word] |= bits);
        }
    }

    fn meets(&self, ranges: &Ranges) -> bool {
        ranges.as_slice().iter().any(|&range| {
            let mut met = 0;
            words(range, |word, bits| met |= self.0[word] & bits);
            met != 0
        })
    }

    fn join(&mut self, other: &RegisterSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}

/// Everything that some instructions read and write.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub(super) struct TouchedSet {
    uses: RegisterSet,
    defs: RegisterSet,
}

impl TouchedSet {
    /// Adds what an instruction touches.
    pub(super) fn add(&mut self, touched: &TouchedRegisters) {
        self.uses.add(&touched.uses);
        self.defs.add(&touched.defs);
    }

    /// Adds what other instructions touch.
    pub(super) fn join(&mut self, other: &TouchedSet) {
        self.uses.join(&other.uses);
        self.defs.join(&other.defs);
    }

    /// True if some instruction writes a register.
    pub(super) fn writes(&self) -> bool {
        self.defs != RegisterSet::default()
    }

    /// True if an instruction reads what one of these writes, or writes what one of them reads.
    pub(super) fn is_read_or_overwritten(&self, by: &TouchedRegisters) -> bool {
        self.defs.meets(&by.uses) || self.uses.meets(&by.defs)
    }

    /// True if an instruction may not change places with all of these.
    pub(super) fn is_needed_by(&self, other: &TouchedRegisters) -> bool {
        self.is_read_or_overwritten(other) || self.defs.meets(&other.defs)
    }
}
