//! The modulo reservation table: which units are busy in which cycle of the steady state.
//!
//! An operation that is busy for `b` cycles occupies a unit in the slots of its cycle and the next `b - 1`,
//! counted modulo the interval; if `b` exceeds the interval, several iterations are under way at once and
//! each has its own unit. Units of a kind are alike and may change from one iteration to the next, so a table
//! of counts is exact.

use crate::passes::schedule::graph::resources::{Cost, RESOURCES, ResourceModel};

/// Busy units by resource and slot.
#[derive(Clone, Debug)]
pub(crate) struct Reservations {
    interval: usize,
    units: [u32; RESOURCES],
    /// Number of busy units, resource by resource.
    used: Vec<u32>,
    /// One bit per slot, set where all units are busy; `words` of them for each resource.
    full: Vec<u64>,
    words: usize,
    /// Starts are tried on multiples of this first, so that gaps remain usable; 1 where that gains nothing.
    grain: [usize; RESOURCES],
    /// Number of slots looked at, as the measure of the work.
    pub steps: u64,
}

impl Reservations {
    /// An empty table. `interval` is at least 1.
    pub(crate) fn new(model: &ResourceModel, interval: u32) -> Reservations {
        let interval = interval.max(1) as usize;
        let words = interval.div_ceil(64);
        Reservations {
            interval,
            units: model.units.map(u32::from),
            used: vec![0; RESOURCES * interval],
            full: vec![0; RESOURCES * words],
            words,
            grain: [1; RESOURCES],
            steps: 0,
        }
    }

    /// The same table with starts on multiples of these numbers where possible.
    pub(crate) fn with_grain(mut self, grain: [usize; RESOURCES]) -> Reservations {
        self.grain = grain.map(|grain| grain.clamp(1, self.interval));
        self
    }

    /// Units of a resource that are busy in a slot.
    pub(crate) fn used(&self, resource: usize, slot: usize) -> u32 {
        self.used[resource * self.interval + slot]
    }

    /// True if there are units for an operation that starts in that cycle.
    pub(crate) fn fits(&self, cost: &Cost, cycle: i64) -> bool {
        let slot = self.slot(cycle);
        needs(cost).all(|(resource, busy)| self.last_blocked(resource, busy, slot).is_none())
    }

    /// Occupies the units of an operation.
    pub(crate) fn take(&mut self, cost: &Cost, cycle: i64) {
        self.change(cost, cycle, |used| *used += 1);
    }

    /// Frees the units of an operation that has occupied them.
    pub(crate) fn free(&mut self, cost: &Cost, cycle: i64) {
        self.change(cost, cycle, |used| *used -= 1);
    }

    /// The first cycle in `from..=to` at which an operation fits; on a multiple of the grain if one is free.
    pub(crate) fn first_fit(&mut self, cost: &Cost, from: i64, to: i64) -> Option<i64> {
        let to = to.min(from.saturating_add(self.interval as i64 - 1));
        let grain = needs(cost).map(|(resource, _)| self.grain[resource]).max().unwrap_or(1);
        let aligned = (grain > 1).then(|| self.search(cost, from, to, grain)).flatten();
        aligned.or_else(|| self.search(cost, from, to, 1))
    }

    /// The last cycle in `from..=to` at which an operation fits.
    pub(crate) fn last_fit(&mut self, cost: &Cost, from: i64, to: i64) -> Option<i64> {
        let from = from.max(to.saturating_sub(self.interval as i64 - 1));
        let grain = needs(cost).map(|(resource, _)| self.grain[resource]).max().unwrap_or(1);
        let mut at = to;
        'places: while at >= from {
            let slot = self.slot(at);
            at -= (slot % grain) as i64;
            if at < from {
                break;
            }
            for (resource, busy) in needs(cost) {
                self.steps += 1;
                if let Some(blocked) = self.first_blocked(resource, busy, slot - slot % grain) {
                    let full = self.run_of_full_before(resource, self.wrap(slot - slot % grain + blocked));
                    at -= (busy.saturating_sub(blocked) + full).saturating_sub(1).max(1) as i64;
                    continue 'places;
                }
            }
            return Some(at);
        }
        None
    }

    /// The slot of a cycle.
    pub(crate) fn slot(&self, cycle: i64) -> usize {
        cycle.rem_euclid(self.interval as i64) as usize
    }

    /// True if an operation that starts in `cycle` takes up a slot in which another one, which starts in
    /// `other`, needs the same unit.
    pub(crate) fn overlap(&self, cost: &Cost, cycle: i64, with: &Cost, other: i64) -> bool {
        let distance = self.slot(other - cycle);
        (0..RESOURCES).any(|resource| {
            let (busy, others) = (usize::from(cost.busy[resource]), usize::from(with.busy[resource]));
            busy > 0 && others > 0 && (distance < busy || self.interval - distance < others)
        })
    }

    fn search(&mut self, cost: &Cost, from: i64, to: i64, grain: usize) -> Option<i64> {
        let (mut at, mut slot) = (from, self.slot(from));
        'places: loop {
            let pad = if grain > 1 { slot.next_multiple_of(grain).min(self.interval) - slot } else { 0 };
            at += pad as i64;
            slot = self.wrap(slot + pad);
            if at > to {
                return None;
            }
            for (resource, busy) in needs(cost) {
                self.steps += 1;
                if let Some(blocked) = self.last_blocked(resource, busy, slot) {
                    let skipped = blocked + self.run_of_full(resource, self.wrap(slot + blocked)).max(1);
                    at += skipped as i64;
                    slot = (slot + skipped) % self.interval;
                    continue 'places;
                }
            }
            return Some(at);
        }
    }

    /// A slot number that may exceed the interval by less than one interval, brought back into it.
    fn wrap(&self, slot: usize) -> usize {
        if slot >= self.interval { slot - self.interval } else { slot }
    }

    /// How far after `slot` the last slot lies that has too few units for `busy` cycles from `slot` on.
    fn last_blocked(&self, resource: usize, busy: usize, slot: usize) -> Option<usize> {
        match self.full_from(resource, busy, slot) {
            Some(full) => full.checked_ilog2().map(|offset| offset as usize),
            None => (0..busy.min(self.interval)).rev().find(|&at| self.is_blocked(resource, busy, slot, at)),
        }
    }

    /// The same for the first such slot.
    fn first_blocked(&self, resource: usize, busy: usize, slot: usize) -> Option<usize> {
        match self.full_from(resource, busy, slot) {
            Some(full) => (full != 0).then(|| full.trailing_zeros() as usize),
            None => (0..busy.min(self.interval)).find(|&at| self.is_blocked(resource, busy, slot, at)),
        }
    }

    /// Which of the next `busy` slots are full, a bit for each; none if they do not lie in one word.
    fn full_from(&self, resource: usize, busy: usize, slot: usize) -> Option<u64> {
        if busy > 63 || slot + busy > self.interval || busy == self.interval {
            return None;
        }
        let word = resource * self.words + slot / 64;
        let bit = slot % 64;
        let next = if bit + busy > 64 { self.full[word + 1] << (64 - bit) } else { 0 };
        Some((self.full[word] >> bit | next) & ((1 << busy) - 1))
    }

    fn is_blocked(&self, resource: usize, busy: usize, slot: usize, offset: usize) -> bool {
        let wanted = busy / self.interval + usize::from(offset < busy % self.interval);
        self.used(resource, self.wrap(slot + offset)) as usize + wanted > self.units[resource] as usize
    }

    /// Number of full slots from this one on.
    fn run_of_full(&mut self, resource: usize, slot: usize) -> usize {
        let full = &self.full[resource * self.words..(resource + 1) * self.words];
        let mut at = slot;
        // Twice around at most: from the slot to the end, then from the beginning.
        for _ in 0..2 * self.words + 2 {
            self.steps += 1;
            let free = !full[at / 64] >> (at % 64);
            if free != 0 {
                let next = at + free.trailing_zeros() as usize;
                if next < self.interval {
                    return (next + self.interval - slot) % self.interval;
                }
            }
            at = (at / 64 + 1) * 64;
            if at >= self.interval {
                at = 0;
            }
        }
        self.interval
    }

    /// Number of full slots that end with this one, within one word.
    fn run_of_full_before(&self, resource: usize, slot: usize) -> usize {
        let full = self.full[resource * self.words + slot / 64] << (63 - slot % 64);
        full.leading_ones() as usize
    }

    fn change(&mut self, cost: &Cost, cycle: i64, by: impl Fn(&mut u32)) {
        let slot = self.slot(cycle);
        for (resource, busy) in needs(cost) {
            let mut next = slot;
            for _ in 0..busy {
                let at = next;
                next = self.wrap(next + 1);
                let used = &mut self.used[resource * self.interval + at];
                by(used);
                let word = &mut self.full[resource * self.words + at / 64];
                let bit = 1 << (at % 64);
                if *used >= self.units[resource] { *word |= bit } else { *word &= !bit }
            }
        }
    }
}

/// The resources that an operation needs, with its busy cycles.
fn needs(cost: &Cost) -> impl Iterator<Item = (usize, usize)> {
    let busy = cost.busy;
    (0..RESOURCES).filter(move |&resource| busy[resource] > 0).map(move |r| (r, usize::from(busy[r])))
}
