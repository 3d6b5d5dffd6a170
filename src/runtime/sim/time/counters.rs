//! Wait counters of one wave: when each of its outstanding operations will be done.

use std::collections::VecDeque;

use smallvec::SmallVec;

/// vmcnt: operations complete in the order in which they were issued.
#[derive(Debug, Default)]
pub(super) struct InOrder(VecDeque<u64>);

impl InOrder {
    /// Largest count (CDNA3 ISA guide, "VM_CNT").
    pub(super) const MOST: u32 = 63;

    /// One more operation, done at `clk` unless an earlier one is done later. Returns when it is really done.
    pub(super) fn push(&mut self, clk: u64) -> u64 {
        let clk = self.0.back().map_or(clk, |&last| last.max(clk));
        self.0.push_back(clk);
        clk
    }

    /// When at most `count` operations are outstanding, if that is later than `now`.
    pub(super) fn reaches(&mut self, count: u32, now: u64) -> u64 {
        while self.0.front().is_some_and(|&clk| clk <= now) {
            self.0.pop_front();
        }
        match self.0.len().checked_sub(count as usize + 1) {
            Some(index) => self.0[index],
            None => now,
        }
    }

    /// When all are done.
    pub(super) fn drained(&self, now: u64) -> u64 {
        self.0.back().map_or(now, |&last| last.max(now))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// lgkmcnt: scalar loads complete in any order, LDS in its own.
#[derive(Debug, Default)]
pub(super) struct AnyOrder(SmallVec<[u64; 16]>);

impl AnyOrder {
    /// Largest count (CDNA3 ISA guide, "LGKM_CNT").
    pub(super) const MOST: u32 = 15;

    /// One more operation, done at `clk`.
    pub(super) fn push(&mut self, clk: u64) {
        let place = self.0.partition_point(|&other| other <= clk);
        self.0.insert(place, clk);
    }

    /// When at most `count` operations are outstanding, if that is later than `now`.
    pub(super) fn reaches(&mut self, count: u32, now: u64) -> u64 {
        let done = self.0.partition_point(|&clk| clk <= now);
        self.0.drain(..done);
        match self.0.len().checked_sub(count as usize + 1) {
            Some(index) => self.0[index],
            None => now,
        }
    }

    /// When all are done.
    pub(super) fn drained(&self, now: u64) -> u64 {
        self.0.last().map_or(now, |&last| last.max(now))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_in_order_wait_for_each_other() {
        let mut vm = InOrder::default();
        assert_eq!((vm.push(100), vm.push(50), vm.push(200)), (100, 100, 200));
        assert_eq!((vm.reaches(3, 10), vm.reaches(2, 10), vm.reaches(0, 10)), (10, 100, 200));
        assert_eq!((vm.reaches(1, 100), vm.drained(0)), (100, 200));
    }

    #[test]
    fn operations_in_any_order_count_by_when_they_end() {
        let mut lgkm = AnyOrder::default();
        lgkm.push(300);
        lgkm.push(100);
        assert_eq!((lgkm.reaches(1, 0), lgkm.reaches(0, 0), lgkm.reaches(0, 400)), (100, 300, 400));
    }
}
