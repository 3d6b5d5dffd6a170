//! Loops that all waves of the compute unit go round at a steady pace. Once two stretches of trips have taken
//! the same time, most of those that are left are not simulated: waves walk through them without time
//! passing, so that their registers are what they would be, and what was recorded of the last stretches
//! counts again for each as many trips.
//!
//! The clock of the model does not jump; what is left out is added to the times that are reported.

use std::ops::RangeInclusive;

use super::super::execute::{ExecutionContext, Lds, WidenedCache};
use super::super::wave::{Progress, Wave};
use super::address_slice::WaveWalk;
use super::hierarchy::Traffic;
use super::record::{Counters, LoopTotals, Pipe, Record};
use super::resident::{Simd, WaveSlot};

/// Trips of a stretch, and before the first one: caches and queues fill up.
const STRETCH: usize = 8;
const BEFORE: usize = 8;
/// By how much two stretches may differ, and by how many times as much after many of them: paces that follow
/// from who comes first at a cache never settle.
const TOLERANCE: f64 = 0.005;
const MOST_TOLERATED: f64 = 4.0;
/// Trips that a wave is walked through at once.
const MOST_TRIPS: u64 = 1 << 20;

/// The loop that a wave goes round, which stands for all waves, and what had been recorded at two times.
#[derive(Default)]
pub(super) struct SteadyLoop {
    /// The step of its branch, and the wave, by the order of launches.
    of: Option<(usize, u64)>,
    /// When the wave went back.
    backs: Vec<u64>,
    /// The records at the beginnings of the last two stretches.
    earlier: [Option<Box<RecordedLoop>>; 2],
    /// Clk that were left out.
    pub skipped: u64,
}

/// The record of a loop at one time.
struct RecordedLoop {
    counters: Vec<Counters>,
    busy_clk: [f64; Pipe::ALL.len()],
    operations: u64,
    traffic: Traffic,
    of_loop: LoopTotals,
}

impl SteadyLoop {
    /// A workgroup has started or ended.
    pub(super) fn forget(&mut self) {
        self.of = None;
    }

    /// A wave has left the loop whose branch is `step`.
    pub(super) fn leaves(&mut self, step: usize) {
        if self.of.is_some_and(|(own, _)| own == step) {
            self.forget();
        }
    }

    /// Notes that a wave goes back. True at the end of a stretch.
    fn counts(&mut self, step: usize, wave: u64, clk: u64) -> bool {
        match self.of {
            Some((own, _)) if own != step => self.forget(),
            Some((_, own)) if own != wave => return false,
            _ => {}
        }
        if self.of.is_none() {
            self.of = Some((step, wave));
            self.backs.clear();
            self.earlier = [None, None];
        }
        self.backs.push(clk);
        (self.backs.len() - 1).checked_sub(BEFORE).is_some_and(|trips| trips.is_multiple_of(STRETCH))
    }

    /// Clk of the last two stretches, if they took the same time.
    fn pace(&self) -> Option<u64> {
        let back =
            |stretches: usize| self.backs.len().checked_sub(1 + stretches * STRETCH).map(|at| self.backs[at]);
        let [before, middle, now] = [back(2)?, back(1)?, back(0)?];
        let [one, another] = [(middle - before) as f64, (now - middle) as f64];
        let stretches = (self.backs.len() / STRETCH) as f64;
        let tolerance = TOLERANCE * (stretches / 4.0).clamp(1.0, MOST_TOLERATED);
        ((one - another).abs() <= tolerance * one).then_some(now - before)
    }
}

/// A compute unit whose waves go round a loop.
pub(super) struct LoopingUnit<'a> {
    pub walk: WaveWalk<'a>,
    /// The steps of the loop, the last of which is its branch.
    pub body: RangeInclusive<usize>,
    pub simds: &'a [Simd],
    pub slots: &'a mut [WaveSlot],
    pub record: &'a mut Record,
    pub traffic: &'a mut Traffic,
    /// No other workgroup is about to start.
    pub is_full: bool,
}

impl SteadyLoop {
    /// A wave, by the order of launches, has gone back. If all waves of the compute unit go round the loop at
    /// a steady pace, leaves most of their trips out.
    pub(super) fn goes_back(&mut self, wave: u64, clk: u64, mut unit: LoopingUnit<'_>) {
        if !self.counts(*unit.body.end(), wave, clk) {
            return;
        }
        let Some(recorded) = unit.recorded() else { return self.forget() };
        if let Some(pace) = self.pace()
            && let Some(before) = self.earlier[0].take()
            && unit.is_in_step(&before, &recorded)
            && let Some(times) = unit.walk_on()
        {
            unit.repeat(&before, times);
            self.skipped += times * pace;
            return self.forget();
        }
        self.earlier.swap(0, 1);
        self.earlier[1] = Some(Box::new(recorded));
    }
}

impl LoopingUnit<'_> {
    /// The record of the loop so far.
    fn recorded(&self) -> Option<RecordedLoop> {
        let Record { counters, busy_clk, operations, .. } = &*self.record;
        Some(RecordedLoop {
            counters: counters[self.body.clone()].to_vec(),
            busy_clk: *busy_clk,
            operations: *operations,
            traffic: *self.traffic,
            of_loop: self.record.loop_of_branch(*self.body.end())?.totals(),
        })
    }

    /// True if all waves of the compute unit have made the trips of the last two stretches.
    fn is_in_step(&self, before: &RecordedLoop, now: &RecordedLoop) -> bool {
        let waves: u64 = self.simds.iter().map(|simd| simd.order.len() as u64).sum();
        let trips = now.of_loop.taken - before.of_loop.taken;
        self.is_full && trips.abs_diff(waves * 2 * STRETCH as u64) <= waves
    }

    /// Walks all waves on by the same number of trips, and returns how many pairs of stretches that are;
    /// nothing if one of them is not in the loop for as long.
    fn walk_on(&mut self) -> Option<u64> {
        let alive: Vec<usize> = self.simds.iter().flat_map(|simd| simd.order.iter().copied()).collect();
        let (mut lds, mut caches) = (Lds::default(), <[WidenedCache; 2]>::default());
        let mut body = LoopWalk {
            walk: self.walk,
            body: self.body.clone(),
            context: ExecutionContext {
                program: self.walk.launch.program,
                memory: self.walk.launch.memory,
                // The slice reads nothing of LDS.
                lds: &mut lds,
                caches: &mut caches,
                budget: u64::MAX,
            },
        };
        let mut left = MOST_TRIPS;
        for &slot in &alive {
            left = left.min(body.walk(&mut self.slots[slot].wave.clone(), left));
        }
        let pair = 2 * STRETCH as u64;
        // The last trips are simulated, as what comes after them depends on where each wave is.
        let times = left.saturating_sub(STRETCH as u64) / pair;
        if times == 0 {
            return None;
        }
        let mut walked = Vec::with_capacity(alive.len());
        for &slot in &alive {
            let from = &self.slots[slot].wave;
            let mut wave = from.clone();
            if body.walk(&mut wave, times * pair) < times * pair || !body.walk_to(&mut wave, from.pc) {
                return None;
            }
            wave.progress = from.progress;
            walked.push(wave);
        }
        for (slot, wave) in alive.into_iter().zip(walked) {
            self.slots[slot].wave = wave;
        }
        Some(times)
    }

    /// Counts what has been recorded since `before` again so many times.
    fn repeat(&mut self, before: &RecordedLoop, times: u64) {
        let record = &mut *self.record;
        for (counters, before) in record.counters[self.body.clone()].iter_mut().zip(&before.counters) {
            counters.repeat(before, times);
        }
        for (clk, before) in record.busy_clk.iter_mut().zip(before.busy_clk) {
            *clk += (*clk - before) * times as f64;
        }
        record.operations += (record.operations - before.operations) * times;
        record.repeat_loop(*self.body.end(), &before.of_loop, times);
        self.traffic.repeat(&before.traffic, times);
    }
}

/// A loop through which waves are walked without time passing.
struct LoopWalk<'a> {
    walk: WaveWalk<'a>,
    /// Its steps, the last of which is its branch.
    body: RangeInclusive<usize>,
    context: ExecutionContext<'a>,
}

impl LoopWalk<'_> {
    /// Lets a wave go round up to `most` times; returns how often it has gone back before it left.
    fn walk(&mut self, wave: &mut Wave, most: u64) -> u64 {
        let mut trips = 0;
        while trips < most {
            let at = wave.pc;
            if !self.advance(wave) {
                break;
            }
            trips += u64::from(at == *self.body.end() && wave.pc <= at);
        }
        trips
    }

    /// Lets a wave go on to a step of the loop; false if it does not come there before it has gone back
    /// twice.
    fn walk_to(&mut self, wave: &mut Wave, step: usize) -> bool {
        let mut backs = 0;
        while wave.pc != step {
            backs += usize::from(wave.pc == *self.body.end());
            if backs > 1 || !self.advance(wave) {
                return false;
            }
        }
        true
    }

    /// Moves a wave over one step of the loop; false if it cannot go on or leaves the loop.
    fn advance(&mut self, wave: &mut Wave) -> bool {
        let went_on = self.walk.step(wave, &mut self.context).is_ok() && wave.progress != Progress::Ended;
        wave.progress = Progress::Running;
        went_on && self.body.contains(&wave.pc)
    }
}
