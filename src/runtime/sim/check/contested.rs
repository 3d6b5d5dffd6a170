//! Places in which unordered stores of several waves have left different values.
//!
//! That alone decides nothing yet. The stores of one wave to one place are in order, so what remains in the
//! end is the last store of one of the waves: a loop in which every wave stores the same sequence of values
//! leaves the same value whoever comes last. So a wave that stores again replaces its own store, and if then
//! all of them agree, the place holds that value. It is a race as soon as somebody looks at the place before
//! that, or if nobody stores there any more; and if a later store is ordered after some of them, they had
//! their say while they disagreed.

use std::collections::BTreeMap;

/// What a store leaves in a cell.
#[derive(Copy, Clone, Debug)]
pub(super) struct StoredCell {
    pub value: u32,
    /// The bits of it that are undefined.
    pub undefined: u32,
}

impl StoredCell {
    /// True if the same bits are undefined, and all others are equal.
    pub(super) fn is_same(self, other: StoredCell) -> bool {
        self.undefined == other.undefined && (self.value ^ other.value) & !self.undefined == 0
    }
}

/// The last store of a wave to a place; `mark` is how the shadow of its memory knows it.
#[derive(Copy, Clone, Debug)]
pub(super) struct LatestStore<M> {
    pub mark: M,
    pub wave: u32,
    pub stored: StoredCell,
}

struct Contest<M, C> {
    /// One of each wave.
    stores: Vec<LatestStore<M>>,
    /// The first two that differed.
    conflict: C,
}

/// What one more store makes of a contested place.
pub(super) enum ContestOutcome<M, C> {
    /// It stays contested.
    Contested,
    /// All waves have stored the same now: the stores of the others.
    Agreed(Vec<LatestStore<M>>),
    /// Too late: the conflict.
    Conflict(C),
}

/// The contested places of a memory, by `K`; `C` is a conflict between two stores.
pub(super) struct ContestedPlaces<K, M, C> {
    places: BTreeMap<K, Contest<M, C>>,
}

impl<K: Ord + Copy, M: Copy, C> ContestedPlaces<K, M, C> {
    /// None.
    pub(super) fn new() -> ContestedPlaces<K, M, C> {
        ContestedPlaces { places: BTreeMap::new() }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn holds(&self, place: K) -> bool {
        self.places.contains_key(&place)
    }

    /// A place becomes contested, between these stores.
    pub(super) fn add(&mut self, place: K, stores: Vec<LatestStore<M>>, conflict: C) {
        self.places.insert(place, Contest { stores, conflict });
    }

    /// The conflict at a place that somebody looks at, or that gets something unknown.
    pub(super) fn take(&mut self, place: K) -> Option<C> {
        self.places.remove(&place).map(|contest| contest.conflict)
    }

    /// A wave stores at a contested place; `is_before` says whether a store is ordered before that.
    pub(super) fn store(
        &mut self,
        place: K,
        new: LatestStore<M>,
        is_before: impl Fn(&LatestStore<M>) -> bool,
    ) -> ContestOutcome<M, C> {
        let Some(mut contest) = self.places.remove(&place) else { return ContestOutcome::Contested };
        contest.stores.retain(|store| store.wave != new.wave);
        if contest.stores.iter().any(is_before) {
            return ContestOutcome::Conflict(contest.conflict);
        }
        if contest.stores.iter().all(|store| store.stored.is_same(new.stored)) {
            return ContestOutcome::Agreed(contest.stores);
        }
        contest.stores.push(new);
        self.places.insert(place, contest);
        ContestOutcome::Contested
    }

    /// The conflicts at all places that are contested to the end, in their order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = C> {
        std::mem::take(&mut self.places).into_values().map(|contest| contest.conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(wave: u32, value: u32) -> LatestStore<u32> {
        LatestStore { mark: value, wave, stored: StoredCell { value, undefined: 0 } }
    }

    #[test]
    fn waves_agree_once_their_last_stores_do() {
        let mut places = ContestedPlaces::new();
        places.add(7, vec![store(0, 1), store(1, 2), store(2, 2)], "conflict");
        assert!(matches!(places.store(7, store(0, 3), |_| false), ContestOutcome::Contested));
        assert!(places.holds(7) && !places.holds(6));
        let ContestOutcome::Agreed(others) = places.store(7, store(0, 2), |_| false) else {
            panic!("contested")
        };
        assert_eq!(others.iter().map(|store| store.wave).collect::<Vec<_>>(), [1, 2]);
        assert!(places.is_empty());
    }

    #[test]
    fn an_ordered_store_and_a_look_come_too_late() {
        let mut places = ContestedPlaces::new();
        places.add(7, vec![store(0, 1), store(1, 2)], "conflict");
        let ordered = places.store(7, store(0, 2), |store| store.wave == 1);
        assert!(matches!(ordered, ContestOutcome::Conflict("conflict")));
        places.add(7, vec![store(0, 1), store(1, 2)], "conflict");
        assert_eq!((places.take(7), places.take(7)), (Some("conflict"), None));
        places.add(8, vec![store(0, 1), store(1, 2)], "to the end");
        assert_eq!(places.drain().collect::<Vec<_>>(), ["to the end"]);
        assert!(places.is_empty());
    }
}
