//! The queue in front of a memory path of a compute unit.

use std::collections::VecDeque;

/// The first whole clk at or after this time.
#[inline]
pub(crate) fn whole(clk: f64) -> u64 {
    // The library's ceil is a call where the target has no instruction for it.
    let below = clk as u64;
    below + u64::from((below as f64) < clk)
}

/// The instructions that wait in front of a path: the first whole clk at which each one's place is free
/// again, in the order of issue.
#[derive(Default, Debug)]
pub(crate) struct PathQueue(VecDeque<u64>);

impl PathQueue {
    pub(crate) fn push(&mut self, free: f64) {
        let free = whole(free);
        self.0.push_back(self.0.back().map_or(free, |&last| last.max(free)));
    }

    /// When there is room for another one, if `room` instructions wait at `clk`.
    #[inline]
    pub(crate) fn full_until(&mut self, clk: u64, room: usize) -> Option<u64> {
        while self.0.front().is_some_and(|&free| free <= clk) {
            self.0.pop_front();
        }
        self.0.len().checked_sub(room).map(|index| self.0[index])
    }
}
