//! Launches whose workgroups take different times, as those of causal attention do: a compute unit that is
//! simulated with the workgroups that it gets first says little about them.
//!
//! The work of a workgroup is the number of instructions that its first wave executes. It is found by
//! executing that wave alone, without matrix instructions and stores, on which no branch depends that takes
//! long; along the axes of the grid along which it differs, for each workgroup. A few workgroups from the
//! least to the most work are simulated, and the times of the others lie on the line through theirs. Then
//! workgroups are dealt out as the hardware does it: dies take turns, and in a die the first place that is
//! free takes the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::execute::{ExecutionContext, Lds, WidenedCache};
use super::super::wave::{Progress, Wave};
use super::WorkgroupSpread;
use super::address_slice::WaveWalk;
use super::costs::StepCost;
use super::record::WaveTime;
use crate::workers;

/// The most workgroups whose work is found one by one.
const MOST_WALKED: u64 = 1 << 12;
/// Instructions after which a wave is given up.
const MOST_INSTRUCTIONS: u64 = 1 << 22;

/// The work of each workgroup of a launch.
pub(super) struct UnevenWork {
    /// By the numbers of workgroups.
    instructions: Vec<u64>,
    /// The workgroups that are simulated first, which find no code in the cache: what they take is no measure
    /// of the others.
    cold: Vec<u64>,
}

impl UnevenWork {
    /// The work of the workgroups of a launch; nothing if all have as much, or if it is not known.
    pub(super) fn of(walk: WaveWalk<'_>, costs: &[StepCost]) -> Option<UnevenWork> {
        let launch = walk.launch;
        let grid = launch.grid();
        let number = |[x, y, z]: [u64; 3]| x + grid[0] * (y + grid[1] * z);
        let last = grid.map(|count| count.saturating_sub(1));
        // The middle and the end of each axis, and the last one of all.
        let mut seen = vec![[0; 3], last];
        for axis in 0..3 {
            for at in [last[axis] / 2, last[axis]] {
                let mut ids = [0; 3];
                ids[axis] = at;
                seen.push(ids);
            }
        }
        let walked = walk_all(walk, costs, &seen.iter().map(|&ids| number(ids)).collect::<Vec<_>>())?;
        let mut varies = [0, 1, 2].map(|axis| (0..2).any(|at| walked[2 + 2 * axis + at] != walked[0]));
        if varies == [false; 3] {
            if walked[1] == walked[0] {
                return None;
            }
            varies = [true; 3];
        }
        let [nx, ny, nz] = [0, 1, 2].map(|axis| if varies[axis] { grid[axis] } else { 1 });
        if nx * ny * nz > MOST_WALKED {
            return None;
        }
        let table: Vec<u64> = (0..nx * ny * nz).map(|n| number([n % nx, n / nx % ny, n / nx / ny])).collect();
        let table = walk_all(walk, costs, &table)?;
        let of = |workgroup: u64| {
            let [x, y, z] = launch.coordinates(workgroup).map(u64::from);
            table[(x % nx + nx * (y % ny + ny * (z % nz))) as usize]
        };
        let instructions = (0..launch.workgroups()).map(of).collect();
        Some(UnevenWork { instructions, cold: Vec::new() })
    }

    /// So many workgroups, from the one with the most work to the one with the least, after `resident` that
    /// bring the code into the cache, if the launch has as many more.
    pub(super) fn examples(&mut self, count: u64, resident: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..self.instructions.len() as u64).collect();
        order.sort_by_key(|&workgroup| Reverse(self.instructions[workgroup as usize]));
        if order.len() as u64 >= count + resident {
            self.cold = order.split_off(order.len() - resident as usize);
        }
        let last = order.len() as u64 - 1;
        let examples = (0..count).map(|n| order[(n * last / count.saturating_sub(1).max(1)) as usize]);
        self.cold.iter().copied().chain(examples).collect()
    }

    /// How often the work of those that ran is in that of all.
    pub(super) fn scale(&self, waves: &[WaveTime]) -> f64 {
        let first = waves.iter().filter(|wave| wave.wave == 0);
        let simulated: u64 = first.map(|wave| self.instructions[wave.workgroup as usize]).sum();
        self.instructions.iter().sum::<u64>() as f64 / simulated.max(1) as f64
    }

    /// Clk of the workgroups that ran: of those that came first, or of the others.
    fn taken(&self, waves: &[WaveTime], cold: bool) -> Vec<(u64, f64)> {
        let all = waves.iter().filter(|wave| wave.wave == 0).map(|wave| wave.workgroup);
        let taken = |workgroup: u64| {
            let own = waves.iter().filter(|wave| wave.workgroup == workgroup);
            let (start, end) = own.fold((u64::MAX, 0), |(s, e), w| (s.min(w.start), e.max(w.end)));
            (workgroup, end.saturating_sub(start) as f64)
        };
        all.filter(|workgroup| self.cold.contains(workgroup) == cold).map(taken).collect()
    }

    /// Clk that the first workgroups of a compute unit take more than others with as much work.
    pub(super) fn cold_clk(&self, waves: &[WaveTime], clk: &[f64]) -> f64 {
        let more = |(workgroup, taken): (u64, f64)| taken - clk[workgroup as usize];
        self.taken(waves, true).into_iter().map(more).fold(0.0, f64::max)
    }

    /// Clk that each workgroup takes, by those that ran.
    pub(super) fn clk(&self, waves: &[WaveTime]) -> Vec<f64> {
        let work_of = |(workgroup, taken): (u64, f64)| (self.instructions[workgroup as usize] as f64, taken);
        let points: Vec<(f64, f64)> = self.taken(waves, false).into_iter().map(work_of).collect();
        let count = points.len().max(1) as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let [work, clk] = [mean(|point| point.0), mean(|point| point.1)];
        let spread: f64 = points.iter().map(|point| (point.0 - work).powi(2)).sum();
        let joint: f64 = points.iter().map(|point| (point.0 - work) * (point.1 - clk)).sum();
        // One that ran stands for all, which take as much longer as they have more work.
        let slope = if spread > 0.0 { joint / spread } else { clk / work.max(1.0) };
        self.instructions.iter().map(|&own| (clk + slope * (own as f64 - work)).max(0.0)).collect()
    }
}

/// The least and the most of some numbers.
pub(super) fn least_and_most(numbers: &[f64]) -> Option<[f64; 2]> {
    let numbers = numbers.iter().copied();
    Some([numbers.clone().reduce(f64::min)?, numbers.reduce(f64::max)?])
}

/// The mean of some numbers.
pub(super) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Clk until the last workgroup has ended, each of which takes so many clk; `resident` of them share a
/// compute unit.
pub(super) fn dealt_out(clk: &[f64], spread: &WorkgroupSpread, resident: u64) -> f64 {
    let places = (spread.units_per_die * resident).max(1) as usize;
    let mut dies = vec![BinaryHeap::from(vec![Reverse(0u64); places]); spread.dies as usize];
    let mut end = 0;
    for (number, &clk) in clk.iter().enumerate() {
        let die = &mut dies[number % spread.dies as usize];
        if let Some(Reverse(free)) = die.pop() {
            let ended = free + clk.round() as u64;
            end = end.max(ended);
            die.push(Reverse(ended));
        }
    }
    end as f64
}

/// The work of some workgroups; nothing if that of one is not known.
fn walk_all(waves: WaveWalk<'_>, costs: &[StepCost], workgroups: &[u64]) -> Option<Vec<u64>> {
    let mut found = vec![None; workgroups.len()];
    workers::for_each(workgroups.iter().zip(&mut found), u64::MAX, |(&workgroup, found)| {
        *found = walk(waves, costs, workgroup);
    });
    found.into_iter().collect()
}

/// Instructions of the first wave of a workgroup; nothing if it stops at a fault or does not end.
fn walk(waves: WaveWalk<'_>, costs: &[StepCost], workgroup: u64) -> Option<u64> {
    let launch = waves.launch;
    let mut lds = Lds::default();
    lds.reset(launch.lds_bytes);
    let mut caches = <[WidenedCache; 2]>::default();
    let mut wave = Wave::new();
    waves.start(&mut wave, 0, launch.coordinates(workgroup));
    let mut context = ExecutionContext {
        program: launch.program,
        memory: launch.memory,
        lds: &mut lds,
        caches: &mut caches,
        budget: MOST_INSTRUCTIONS,
    };
    let mut count = 0;
    while wave.progress != Progress::Ended {
        wave.progress = Progress::Running;
        count += 1;
        if count > MOST_INSTRUCTIONS {
            return None;
        }
        if costs.get(wave.pc)?.moves_no_address() {
            wave.pc += 1;
        } else {
            waves.step(&mut wave, &mut context).ok()?;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::super::hierarchy::Active;
    use super::*;

    fn spread(dies: u64, units_per_die: u64) -> WorkgroupSpread {
        WorkgroupSpread { dies, units_per_die, active: Active { device: 1, die: 1 }, assigned: 1 }
    }

    #[test]
    fn the_first_free_place_of_a_die_takes_the_next_workgroup() {
        for (clk, spread, resident, end) in [
            (&[10.0; 4][..], spread(1, 2), 1, 20.0),
            (&[10.0; 4], spread(1, 2), 2, 10.0),
            (&[30.0, 10.0, 10.0, 10.0], spread(1, 2), 1, 30.0),
            (&[10.0, 10.0, 10.0, 30.0], spread(1, 2), 1, 40.0),
            (&[30.0, 1.0, 30.0, 1.0], spread(2, 1), 1, 60.0),
        ] {
            assert_eq!(dealt_out(clk, &spread, resident), end, "{clk:?} {spread:?}");
        }
    }

    fn wave(workgroup: u64, start: u64, end: u64) -> WaveTime {
        WaveTime { workgroup, wave: 0, simd: 0, start, end, instructions: 0 }
    }

    #[test]
    fn times_lie_on_the_line_through_those_that_ran() {
        let mut work = UnevenWork { instructions: vec![100, 200, 300, 400], cold: Vec::new() };
        assert_eq!(work.examples(4, 1), [3, 2, 1, 0]);
        let waves = [wave(3, 50, 950), wave(0, 1000, 1300)];
        assert_eq!(work.clk(&waves), [300.0, 500.0, 700.0, 900.0]);
        assert_eq!(work.scale(&waves), 2.0);
        assert_eq!(work.clk(&waves[..1]), [225.0, 450.0, 675.0, 900.0]);
        // The first one finds no code.
        assert_eq!(work.examples(2, 1), [0, 3, 1]);
        let waves = [wave(0, 0, 750), wave(3, 800, 1700), wave(1, 1700, 2200)];
        let clk = work.clk(&waves);
        assert_eq!(clk, [300.0, 500.0, 700.0, 900.0]);
        assert_eq!(work.cold_clk(&waves, &clk), 450.0);
    }
}
