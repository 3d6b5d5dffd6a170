//! Labels in addition to an object's symbols: for places that its code branches to, and that it measures the
//! distance to. Code can branch to millions of places, so these are bits; a label's name follows from its
//! place.

use std::collections::BTreeSet;

/// Labels of a section.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    size: usize,
    branches: NumberSet,
    branch_prefix: String,
    distances: BTreeSet<usize>,
    distance_prefix: String,
}

impl Labels {
    /// No labels yet, in a section of this many bytes.
    pub(super) fn new(branch_prefix: String, distance_prefix: String, size: usize) -> Labels {
        let (branches, distances) = (NumberSet::default(), BTreeSet::new());
        Labels { size, branches, branch_prefix, distances, distance_prefix }
    }

    /// A branch goes to this offset.
    pub(super) fn branched_to(&mut self, offset: usize) {
        self.branches.insert(offset, self.size);
    }

    /// Some code uses its distance from this offset.
    pub(super) fn measured_to(&mut self, offset: usize) {
        self.distances.insert(offset);
    }

    pub(super) fn contains(&self, offset: usize) -> bool {
        self.branches.contains(offset) || self.distances.contains(&offset)
    }

    /// The first label at this offset or after it.
    pub(super) fn next(&self, offset: usize) -> Option<usize> {
        self.branches.next(offset).into_iter().chain(self.distances.range(offset..).next().copied()).min()
    }

    /// The label at an offset.
    pub(super) fn name(&self, offset: usize) -> Option<String> {
        let prefix = match (self.branches.contains(offset), self.distances.contains(&offset)) {
            (true, _) => &self.branch_prefix,
            (false, true) => &self.distance_prefix,
            (false, false) => return None,
        };
        Some(format!(".L{prefix}{offset:04x}"))
    }
}

/// A set of small numbers; it takes no memory as long as it is empty.
#[derive(Clone, Default, Debug)]
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    /// Puts in a number that is at most `most`.
    pub(super) fn insert(&mut self, number: usize, most: usize) {
        if self.0.is_empty() {
            self.0 = vec![0; most / 64 + 1];
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The least number that is at least this one.
    pub(super) fn next(&self, number: usize) -> Option<usize> {
        let first = number / 64;
        let masked = self.0.get(first)? & (u64::MAX << (number % 64));
        let rest = self.0.iter().copied().enumerate().skip(first + 1);
        let mut words = std::iter::once((first, masked)).chain(rest);
        words.find(|&(_, word)| word != 0).map(|(at, word)| 64 * at + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_a_set(numbers in prop::collection::btree_set(0usize..=300, 0..20), asked in 0usize..400) {
            let mut bits = NumberSet::default();
            for &number in &numbers {
                bits.insert(number, 300);
            }
            prop_assert_eq!(bits.contains(asked), numbers.contains(&asked));
            prop_assert_eq!(bits.next(asked), numbers.range(asked..).next().copied());
            let all: BTreeSet<usize> = std::iter::successors(bits.next(0), |at| bits.next(at + 1)).collect();
            prop_assert_eq!(all, numbers);
        }
    }
}
