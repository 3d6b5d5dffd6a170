//! What the two memory paths of a compute unit have in common: a queue in front of each, and address
//! patterns, which repeat from iteration to iteration, so that their costs are remembered per instruction.

use std::collections::VecDeque;

use super::super::execute::Footprint;
use super::super::wave::LANES;

/// The first whole clk at or after this time.
#[inline]
pub(super) fn whole(clk: f64) -> u64 {
    // The library's ceil is a call where the target has no instruction for it.
    let below = clk as u64;
    below + u64::from((below as f64) < clk)
}

/// The instructions that wait in front of a path: the first whole clk at which each one's place is free
/// again, in the order of issue.
#[derive(Default, Debug)]
pub(super) struct PathQueue(VecDeque<u64>);

impl PathQueue {
    pub(super) fn push(&mut self, free: f64) {
        let free = whole(free);
        self.0.push_back(self.0.back().map_or(free, |&last| last.max(free)));
    }

    /// When there is room for another one, if `room` instructions wait at `clk`.
    #[inline]
    pub(super) fn full_until(&mut self, clk: u64, room: usize) -> Option<u64> {
        while self.0.front().is_some_and(|&free| free <= clk) {
            self.0.pop_front();
        }
        self.0.len().checked_sub(room).map(|index| self.0[index])
    }
}

/// The cost of an address pattern when it last occurred.
#[derive(Debug)]
struct Remembered<T> {
    lanes: u64,
    /// Address of the first lane modulo `phase`, and the distances of the others from it.
    phase: u64,
    distance: [u64; LANES],
    bytes: u16,
    cost: T,
}

/// Patterns by step; an instruction with two accesses has two.
#[derive(Debug)]
pub(super) struct Patterns<T>(Vec<[Option<Box<Remembered<T>>>; 2]>);

impl<T> Patterns<T> {
    pub(super) fn new(steps: usize) -> Patterns<T> {
        Patterns((0..steps).map(|_| [None, None]).collect())
    }

    /// The cost of a pattern; shifting all addresses by a multiple of `phase` does not change it.
    pub(super) fn cost(
        &mut self,
        step: usize,
        number: usize,
        f: &Footprint,
        phase: u64,
        compute: impl FnOnce() -> T,
    ) -> &T {
        let first = f.address[f.lanes.trailing_zeros() as usize % LANES];
        let bytes = f.bytes[f.lanes.trailing_zeros() as usize % LANES];
        let even = f.bytes.iter().fold(0, |all, &b| all | b ^ bytes) == 0;
        let entry = &mut self.0[step][number % 2];
        let same = entry.as_ref().is_some_and(|e| {
            let moved = f.address.iter().zip(&e.distance);
            even && e.lanes == f.lanes
                && e.phase == first % phase
                && e.bytes == bytes
                && moved.fold(0, |all, (&a, &d)| all | a.wrapping_sub(first) ^ d) == 0
        });
        if !same {
            *entry = None;
        }
        &entry
            .get_or_insert_with(|| {
                Box::new(Remembered {
                    lanes: f.lanes,
                    phase: first % phase,
                    distance: f.address.map(|a| a.wrapping_sub(first)),
                    bytes,
                    cost: compute(),
                })
            })
            .cost
    }
}
