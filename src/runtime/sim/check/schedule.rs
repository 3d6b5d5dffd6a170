//! Which wave goes on next, and how late memory operations take effect: everything that a seed decides.

use std::ops::Range;

use super::super::random::Random;
use super::super::wave::LANES;

/// Order in which the waves of a workgroup go on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Turns {
    /// One instruction each.
    RoundRobin,
    /// Slices of random lengths.
    Random,
    /// One wave runs as far as it can, then the others.
    OneAhead,
    /// One wave waits until no other can go on.
    OneLate,
}

/// The most slices that a wave gets in a row while others could go on.
const MOST_SLICES: u32 = 8;

/// When memory operations take effect.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Lateness {
    /// At once.
    Early,
    /// When a wait covers them.
    Late,
    /// Anywhere between.
    Mixed,
}

/// Plan of one workgroup.
pub(super) struct Plan {
    random: Random,
    turns: Turns,
    lateness: Lateness,
    favourite: usize,
    last: usize,
    /// Slices that the last wave has had in a row.
    streak: u32,
}

impl Plan {
    /// A plan for a workgroup of this many waves.
    pub(super) fn new(seed: u64, workgroup: u64, waves: usize) -> Plan {
        let mut random = Random::new(seed, workgroup + 1);
        let turns = match random.below(8) {
            0 => Turns::RoundRobin,
            1 | 2 => Turns::OneAhead,
            3 | 4 => Turns::OneLate,
            _ => Turns::Random,
        };
        let lateness = match random.below(4) {
            0 => Lateness::Early,
            1 => Lateness::Late,
            _ => Lateness::Mixed,
        };
        let favourite = random.below(waves as u64) as usize;
        Plan { random, turns, lateness, favourite, last: favourite, streak: 0 }
    }

    /// The wave that goes on (one of `ready`, which is not empty) and for how many instructions.
    pub(super) fn next(&mut self, ready: u64) -> (usize, u32) {
        let favourite = ready >> self.favourite & 1 != 0;
        let others = ready & !(1 << self.favourite);
        let after = |last: usize| {
            let rotated = ready.rotate_right((last as u32 + 1) % LANES as u32);
            (rotated.trailing_zeros() as usize + last + 1) % LANES
        };
        // A wave that waits for another one's memory would wait for ever.
        let turns = if self.streak < MOST_SLICES { self.turns } else { Turns::Random };
        let (wave, length) = match turns {
            Turns::RoundRobin => (after(self.last), 1),
            Turns::OneAhead if favourite => (self.favourite, 4096),
            Turns::OneLate if others == 0 => (self.favourite, 64),
            Turns::OneLate => (others.trailing_zeros() as usize, 64),
            _ => {
                let skip = self.random.below(ready.count_ones().into());
                let chosen = (0..skip).fold(ready, |left, _| left & (left - 1));
                (chosen.trailing_zeros() as usize, 1 + self.random.below(96) as u32)
            }
        };
        self.streak = if wave == self.last { self.streak + 1 } else { 0 };
        self.last = wave;
        (wave, length)
    }

    /// Whether an operation that is issued now is delayed.
    pub(super) fn defers(&mut self) -> bool {
        match self.lateness {
            Lateness::Early => false,
            Lateness::Late => true,
            Lateness::Mixed => self.random.next() & 1 != 0,
        }
    }

    /// How many waiting operations take effect now.
    pub(super) fn due(&mut self) -> usize {
        match self.lateness {
            Lateness::Mixed => self.random.below(4) as usize,
            _ => 0,
        }
    }
}

/// The most workgroups of a run.
const LONGEST_RUN: u64 = 64;
/// Launches of fewer workgroups than that many for each of a run's have shorter runs.
const LEAST_RUNS: u64 = 256;

/// Order of the workgroups of a launch: runs of neighbours, since these use the same memory, whose shadow is
/// then still in the caches. The seed decides the order of the runs.
#[derive(Copy, Clone)]
pub(super) struct WorkgroupOrder {
    count: u64,
    /// Workgroups of a run.
    length: u64,
    /// Runs of that length.
    whole: u64,
    stride: u64,
    start: u64,
}

impl WorkgroupOrder {
    /// An order of this many workgroups.
    pub(super) fn new(seed: u64, count: u64) -> WorkgroupOrder {
        let length = (count / LEAST_RUNS).clamp(1, LONGEST_RUN);
        let whole = count / length;
        let mut random = Random::new(seed, 0);
        let mut stride = 1 + random.below(whole);
        while divisor(stride, whole) != 1 {
            stride -= 1;
        }
        WorkgroupOrder { count, length, whole, stride, start: random.below(whole) }
    }

    /// How many runs there are.
    pub(super) fn runs(&self) -> u64 {
        self.count.div_ceil(self.length)
    }

    /// The workgroups that start as number `run`, one after the other. The last run may be shorter.
    pub(super) fn run(&self, run: u64) -> Range<u64> {
        let place = match run < self.whole {
            true => {
                let product = u128::from(run) * u128::from(self.stride) + u128::from(self.start);
                (product % u128::from(self.whole)) as u64
            }
            false => run,
        };
        place * self.length..((place + 1) * self.length).min(self.count)
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workgroup_has_its_turn() {
        for (seed, count) in [(0, 1), (1, 2), (2, 7), (3, 64), (4, 100), (5, 1_000), (6, 1_025), (7, 16_399)]
        {
            let order = WorkgroupOrder::new(seed, count);
            let mut all: Vec<u64> = (0..order.runs()).flat_map(|run| order.run(run)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_chosen_wave_is_ready() {
        for seed in 0..100 {
            let mut plan = Plan::new(seed, 3, 8);
            for ready in [1u64, 0x80, 0xff, 0x55, 0x0c] {
                for _ in 0..20 {
                    let (wave, length) = plan.next(ready);
                    assert!(ready >> wave & 1 != 0 && length > 0);
                }
            }
        }
    }
}
