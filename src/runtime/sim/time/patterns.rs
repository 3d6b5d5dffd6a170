//! Address patterns, which repeat from iteration to iteration, so that their costs are remembered per
//! instruction.

use super::super::execute::Footprint;
use super::super::wave::LANES;

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
