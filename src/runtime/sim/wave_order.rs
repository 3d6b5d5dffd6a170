//! In which order the waves of a workgroup go on in run mode. Correct kernels leave the same whatever the
//! order; one that does not has a race, and check mode says where.
//!
//! Hardware issues for its waves in turn, so they stay within a few instructions of each other until
//! something holds one up. Turns of a few instructions are nearest to that: what waves in lock step agree on
//! comes out as on a chip.

use std::fmt;
use std::str::FromStr;

use super::random::Random;

/// Instructions of a turn where nothing else is asked for: fewer than kernels have between a barrier and the
/// next use of what was read after it, and as many as cost next to nothing.
const USUAL_TURN: u32 = 32;
/// The most instructions of a turn in random order.
const LONGEST_RANDOM: u64 = 64;

/// The order of the waves of a workgroup in run mode.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaveOrder {
    /// One after the other, each for that many instructions.
    RoundRobin {
        /// Instructions of a turn.
        turn: u32,
    },
    /// Each goes as far as it can before the next one does.
    FirstToLast,
    /// The same from the last wave on.
    LastToFirst,
    /// In random turns of random lengths.
    Random {
        /// What decides them.
        seed: u64,
    },
}

impl Default for WaveOrder {
    fn default() -> WaveOrder {
        WaveOrder::RoundRobin { turn: USUAL_TURN }
    }
}

impl fmt::Display for WaveOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaveOrder::RoundRobin { turn } => write!(f, "round-robin:{turn}"),
            WaveOrder::FirstToLast => f.write_str("first-to-last"),
            WaveOrder::LastToFirst => f.write_str("last-to-first"),
            WaveOrder::Random { seed } => write!(f, "random:{seed}"),
        }
    }
}

impl FromStr for WaveOrder {
    type Err = String;

    /// Reads the name of an order, with the instructions of a turn or the seed after a colon if wanted.
    fn from_str(text: &str) -> Result<WaveOrder, String> {
        let unknown = || {
            format!(
                "`{text}` is not round-robin, round-robin:TURN, first-to-last, last-to-first, random:SEED"
            )
        };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse::<u64>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        match (name, number) {
            ("round-robin", None) => Ok(WaveOrder::default()),
            ("round-robin", Some(turn)) => match u32::try_from(turn) {
                Ok(turn) if turn > 0 => Ok(WaveOrder::RoundRobin { turn }),
                _ => Err(unknown()),
            },
            ("first-to-last", None) => Ok(WaveOrder::FirstToLast),
            ("last-to-first", None) => Ok(WaveOrder::LastToFirst),
            ("random", seed) => Ok(WaveOrder::Random { seed: seed.unwrap_or(0) }),
            _ => Err(unknown()),
        }
    }
}

/// The turns of one workgroup's waves.
#[derive(Debug, Default)]
pub(super) struct WaveTurns {
    order: WaveOrder,
    random: Random,
    /// The waves in the order of this pass.
    waves: Vec<usize>,
}

impl WaveTurns {
    /// Begins a workgroup of so many waves.
    pub(super) fn begin(&mut self, order: WaveOrder, workgroup: u64, waves: usize) {
        let seed = if let WaveOrder::Random { seed } = order { seed } else { 0 };
        (self.order, self.random) = (order, Random::new(seed, workgroup.wrapping_add(1)));
        self.waves.clear();
        self.waves.extend(0..waves);
        if order == WaveOrder::LastToFirst {
            self.waves.reverse();
        }
    }

    /// Every wave has had a turn.
    pub(super) fn next_pass(&mut self) {
        if let WaveOrder::Random { .. } = self.order {
            for last in (1..self.waves.len()).rev() {
                self.waves.swap(last, self.random.below(last as u64 + 1) as usize);
            }
        }
    }

    /// The wave at a place of this pass.
    pub(super) fn wave(&self, place: usize) -> usize {
        self.waves[place]
    }

    /// Instructions of the next turn.
    pub(super) fn length(&mut self) -> u64 {
        match self.order {
            WaveOrder::RoundRobin { turn } => turn.into(),
            WaveOrder::FirstToLast | WaveOrder::LastToFirst => u64::MAX,
            WaveOrder::Random { .. } => 1 + self.random.below(LONGEST_RANDOM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_names() {
        for name in ["round-robin:7", "first-to-last", "last-to-first", "random:9"] {
            assert_eq!(name.parse::<WaveOrder>().map(|order| order.to_string()), Ok(name.to_owned()));
        }
        assert_eq!("round-robin".parse(), Ok(WaveOrder::default()));
        assert_eq!("random".parse(), Ok(WaveOrder::Random { seed: 0 }));
        for wrong in ["", "round-robin:0", "round-robin:4294967296", "first-to-last:1", "random:x", "sorted"]
        {
            assert!(
                wrong.parse::<WaveOrder>().is_err_and(|reason| reason.contains("random:SEED")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn every_wave_has_a_turn_in_each_pass() {
        for order in [WaveOrder::default(), WaveOrder::LastToFirst, WaveOrder::Random { seed: 3 }] {
            let (mut turns, mut again) = (WaveTurns::default(), WaveTurns::default());
            turns.begin(order, 5, 16);
            again.begin(order, 5, 16);
            for _ in 0..20 {
                turns.next_pass();
                again.next_pass();
                let waves = |turns: &WaveTurns| (0..16).map(|place| turns.wave(place)).collect::<Vec<_>>();
                assert_eq!((waves(&turns), turns.length()), (waves(&again), again.length()));
                let mut all = waves(&turns);
                all.sort_unstable();
                assert_eq!(all, (0..16).collect::<Vec<_>>());
            }
        }
    }
}
