//! What is known to have happened before what: how much of each wave's memory operations the others may rely on.
//!
//! A wave's operations are numbered by issue. At a barrier every wave brings along how far its operations were over, and
//! leaves with what all others brought. LDS accesses count from the wait that covered them on (hazards of LDS buffers that
//! are used again as well as of data handed over); accesses to device memory count from their issue on, as the waves of a
//! workgroup share a first-level cache that keeps order (LLVM, "User Guide for AMDGPU Backend", memory models of gfx90a and
//! gfx942, workgroup scope).

use std::collections::BTreeMap;

use super::flight::{Flight, LGKM, VM};

/// How far a wave has come.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Clock {
    /// Issued operations.
    pub issued: u32,
    /// Operations that were over, by vmcnt, by lgkmcnt.
    pub over: [u32; 2],
}

impl Clock {
    /// A wave that has ended.
    const ENDED: Clock = Clock { issued: u32::MAX, over: [u32::MAX; 2] };

    /// Of a wave now.
    pub fn of(flight: &Flight) -> Clock {
        Clock { issued: flight.issued, over: flight.done }
    }

    fn join(&mut self, other: Clock) {
        self.issued = self.issued.max(other.issued);
        for counter in [VM, LGKM] {
            self.over[counter] = self.over[counter].max(other.over[counter]);
        }
    }
}

/// Waves of other workgroups, by number, and how many of their operations are visible.
pub(super) type Foreign = BTreeMap<u32, u32>;

/// What the waves of one workgroup know of each other.
pub(super) struct Known {
    waves: usize,
    clocks: Vec<Clock>,
    /// Of other workgroups; the same for all waves behind a barrier.
    pub foreign: Vec<Foreign>,
}

impl Known {
    /// Nobody knows anything.
    pub fn new(waves: usize) -> Known {
        Known { waves, clocks: vec![Clock::default(); waves * waves], foreign: vec![Foreign::new(); waves] }
    }

    /// What `wave` knows of `other`.
    #[inline(always)]
    pub fn of(&self, wave: usize, other: usize) -> Clock {
        self.clocks[wave * self.waves + other]
    }

    /// A barrier has opened: everybody knows what each brought; waves that ended brought everything.
    pub fn barrier(&mut self, brought: &[Option<Clock>]) {
        for wave in 0..self.waves {
            for (other, clock) in brought.iter().enumerate() {
                self.clocks[wave * self.waves + other].join(clock.unwrap_or(Clock::ENDED));
            }
        }
        if self.foreign.iter().any(|f| !f.is_empty()) {
            let mut all = Foreign::new();
            self.foreign.iter().for_each(|one| join(&mut all, one));
            self.foreign.fill(all);
        }
    }

    /// `wave` learns of operations of another wave of the workgroup.
    pub fn learn(&mut self, wave: usize, other: usize, number: u32) {
        let clock = &mut self.clocks[wave * self.waves + other];
        clock.issued = clock.issued.max(number);
    }
}

/// The later of both, wave by wave.
pub(super) fn join(own: &mut Foreign, other: &Foreign) {
    for (&wave, &number) in other {
        let known = own.entry(wave).or_default();
        *known = (*known).max(number);
    }
}

impl Known {
    /// Waves of the workgroup.
    #[inline(always)]
    pub fn waves(&self) -> usize {
        self.waves
    }
}
