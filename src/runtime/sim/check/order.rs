//! What is known to have happened before what: on how many of each wave's memory operations the others may
//! rely.
//!
//! A wave's operations are numbered by issue. At a barrier every wave brings how far its operations were
//! over, and leaves with what all others brought. LDS accesses count from the wait that covered them (which
//! covers reuse of LDS buffers as well as handing over data); accesses to device memory count from their
//! issue, because the waves of a workgroup share a first-level cache that keeps order. In tg_split mode they
//! do not share one: there accesses count from the wait, and for loads only once the cache has been
//! invalidated. Accesses of other workgroups count from the wait as well; stores also have to be written back
//! where there are several L2 (`model`).

use std::collections::BTreeMap;

use super::super::error::MemoryAccess;
use super::flight::{Flight, LGKM, VM};
use super::model::{CacheModel, SyncScope};

/// How far a wave has got.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Clock {
    /// Issued operations.
    pub issued: u32,
    /// Operations that were over, by vmcnt, by lgkmcnt.
    pub over: [u32; 2],
    /// Operations whose stores were written back from L2.
    pub back: u32,
}

impl Clock {
    /// The clock of a wave now, whose stores up to number `back` were written back.
    pub(super) fn of(flight: &Flight, back: u32) -> Clock {
        Clock { issued: flight.issued, over: flight.done, back }
    }

    /// The clock of a wave that has ended.
    pub(super) fn ended(back: u32) -> Clock {
        Clock { issued: u32::MAX, over: [u32::MAX; 2], back }
    }

    pub(super) fn join(&mut self, other: Clock) {
        self.issued = self.issued.max(other.issued);
        for counter in [VM, LGKM] {
            self.over[counter] = self.over[counter].max(other.over[counter]);
        }
        self.back = self.back.max(other.back);
    }
}

/// How many operations of a wave another workgroup may rely on.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Reach {
    /// Those that were over.
    pub over: u32,
    /// Those whose stores were written back.
    pub back: u32,
}

/// Waves of other workgroups, by number.
pub(super) type Foreign = BTreeMap<u32, Reach>;

/// What the waves of one workgroup know of each other and of other workgroups.
pub(super) struct KnownOrder {
    waves: usize,
    pub model: CacheModel,
    clocks: Vec<Clock>,
    /// In tg_split mode: how many operations of each other wave its loads see.
    fresh: Vec<u32>,
    /// For other workgroups, what each wave was handed, and how much of it its loads see.
    handed: Vec<Foreign>,
    handed_fresh: Vec<Foreign>,
}

/// How an access sees memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Sight {
    /// Through the caches of the wave, as loads do.
    Caches,
    /// Past them: stores, atomics, loads with scope bits.
    Memory,
}

impl Sight {
    /// That of an access of a scope, for waves of its workgroup and of its device: a load bypasses the caches
    /// as far as its scope reaches.
    pub(super) fn of(access: MemoryAccess, own: SyncScope) -> [Sight; 2] {
        let passes = |scope| access != MemoryAccess::Load || own >= scope;
        [SyncScope::Workgroup, SyncScope::Agent]
            .map(|scope| if passes(scope) { Sight::Memory } else { Sight::Caches })
    }
}

impl KnownOrder {
    /// No wave knows anything yet.
    pub(super) fn new(waves: usize, model: CacheModel) -> KnownOrder {
        KnownOrder {
            waves,
            model,
            clocks: vec![Clock::default(); waves * waves],
            fresh: vec![0; if model.is_split { waves * waves } else { 0 }],
            handed: vec![Foreign::new(); waves],
            handed_fresh: vec![Foreign::new(); waves],
        }
    }

    /// What `wave` knows of `other`.
    #[inline(always)]
    pub(super) fn of(&self, wave: usize, other: usize) -> Clock {
        self.clocks[wave * self.waves + other]
    }

    /// How many operations of `other` on device memory are ordered before an access of `wave`.
    #[inline(always)]
    pub(super) fn within(&self, wave: usize, other: usize, sight: Sight) -> u32 {
        let clock = self.of(wave, other);
        match sight {
            _ if !self.model.is_split => clock.issued,
            Sight::Caches => self.fresh[wave * self.waves + other],
            Sight::Memory => clock.over[VM],
        }
    }

    /// How many operations of a wave of another workgroup are ordered before an access of `wave`.
    pub(super) fn abroad(&self, wave: usize, other: u32, sight: Sight) -> Reach {
        let handed = match sight {
            Sight::Caches => &self.handed_fresh[wave],
            Sight::Memory => &self.handed[wave],
        };
        handed.get(&other).copied().unwrap_or_default()
    }

    /// What `wave` was handed by other workgroups.
    pub(super) fn handed(&self, wave: usize) -> &Foreign {
        &self.handed[wave]
    }

    /// A barrier has opened: every wave learns what each brought.
    pub(super) fn barrier(&mut self, brought: &[Clock]) {
        let mut brought = brought.to_vec();
        for (other, clock) in brought.iter_mut().enumerate() {
            // One wave may have written back the stores of others.
            let back = (0..self.waves).map(|wave| self.of(wave, other).back).max();
            clock.back = clock.back.max(back.unwrap_or(0));
        }
        for clocks in self.clocks.chunks_exact_mut(self.waves.max(1)) {
            clocks.iter_mut().zip(&brought).for_each(|(known, clock)| known.join(*clock));
        }
        share(&mut self.handed);
        // Only waves of one compute unit invalidate the same first-level cache.
        if !self.model.is_split {
            share(&mut self.handed_fresh);
        }
    }

    /// `wave` learns of operations of another wave of the workgroup.
    pub(super) fn learn(&mut self, wave: usize, other: usize, clock: Clock) {
        self.clocks[wave * self.waves + other].join(clock);
    }

    /// `wave` is handed operations of a wave of another workgroup.
    pub(super) fn hand(&mut self, wave: usize, other: u32, reach: Reach) {
        add(&mut self.handed[wave], other, reach);
    }

    /// `wave` invalidates its caches: it sees what it has been handed.
    pub(super) fn forget(&mut self, wave: usize, scope: SyncScope) {
        if scope >= SyncScope::Workgroup && self.model.is_split {
            for other in 0..self.waves {
                self.fresh[wave * self.waves + other] = self.of(wave, other).over[VM];
            }
        }
        if scope >= SyncScope::Agent {
            for (&other, &reach) in &self.handed[wave] {
                add(&mut self.handed_fresh[wave], other, reach);
            }
        }
    }

    /// Waves of the workgroup.
    #[inline(always)]
    pub(super) fn waves(&self) -> usize {
        self.waves
    }
}

/// Gives to all what any of them has.
fn share(all: &mut [Foreign]) {
    if all.iter().any(|one| !one.is_empty()) {
        let mut joined = Foreign::new();
        for (&wave, &reach) in all.iter().flatten() {
            add(&mut joined, wave, reach);
        }
        all.fill(joined);
    }
}

/// Keeps the later of the two.
pub(super) fn add(known: &mut Foreign, wave: u32, reach: Reach) {
    let known = known.entry(wave).or_default();
    *known = Reach { over: known.over.max(reach.over), back: known.back.max(reach.back) };
}
