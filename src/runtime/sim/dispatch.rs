//! Run mode: all workgroups of a launch, in parallel.
//!
//! The waves of a workgroup take turns on one host thread (`turns`, `wave_order`). A barrier opens when all
//! waves that have not ended wait at it, as on hardware (CDNA3 ISA guide, S_BARRIER). A workgroup usually
//! runs to its end before the thread starts the next one. Only one whose waves all wait for memory to change,
//! or that takes very long, is put aside: then others start, and those that were put aside get turns, as many
//! at a time as the device could hold. So workgroups may wait for each other, at a barrier of the whole grid
//! for instance.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::codegen::target::Target;
use crate::workers;

use super::error::{FaultKind, SimError, Stopped, StoppedWave};
use super::execute::{ExecutionContext, Lds, WidenedCache};
use super::launch_config::LaunchConfig;
use super::memory::DeviceMemory;
use super::module::Module;
use super::start::{LaunchContext, Segments, occupancy};
use super::stats::LaunchStats;
use super::turns::{Pace, Probe, TurnEnd};
use super::wave::{LANES, Progress, Wave};
use super::wave_order::WaveTurns;

/// Instructions of all waves after which a workgroup is put aside; those that were put aside before get less
/// and less.
const LONGEST_TURN: u64 = 1 << 22;
const SHORTEST_TURN: u64 = 1 << 16;
/// How long all workgroups may wait for memory that nothing changes. The host might still do so.
const STANDSTILL: Duration = Duration::from_secs(10);
/// Bytes of the host for workgroups that are put aside.
const MOST_BYTES: u64 = 1 << 30;
/// Turns in vain after which a thread sleeps between two of them, and for how long.
const IDLE: u64 = 256;
const NAP: Duration = Duration::from_micros(20);

/// A workgroup that has started.
#[derive(Default)]
struct StartedGroup {
    number: u64,
    waves: Vec<Wave>,
    paces: Vec<Pace>,
    turns: WaveTurns,
    lds: Lds,
    /// Instructions of its next turn.
    turn: u64,
    state: GroupState,
}

/// What a workgroup has done so far.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
enum GroupState {
    /// It has not been put aside yet.
    #[default]
    Fresh,
    /// It has used up its last turn.
    Busy,
    /// All its waves have waited at the end of its last turn.
    Waiting,
}

/// The state of a host thread.
#[derive(Default)]
struct RunWorker {
    caches: [WidenedCache; 2],
    probe: Probe,
    stats: LaunchStats,
    aside: VecDeque<StartedGroup>,
    /// How many of them could go on.
    busy: u64,
    /// Those that have ended, for the sake of their memory.
    spare: Vec<StartedGroup>,
    /// Turns in vain, one after the other.
    idle: u64,
    failure: Option<StoppedWave>,
}

/// How a workgroup has left its turn.
#[derive(Copy, Clone, PartialEq, Eq)]
enum GroupTurnEnd {
    Ended,
    UsedUp,
    /// All its waves wait; some of them have got further before.
    Waits,
    /// All its waves wait where they waited before.
    WaitsStill,
}

/// A launch at work.
struct Dispatcher<'a> {
    launch: &'a LaunchContext<'a>,
    /// The next workgroup to start.
    next: AtomicU64,
    /// Workgroups that are put aside, and as many as may be.
    aside: AtomicU64,
    most: u64,
    /// Workgroups from this number on need not be worked on any more.
    end: AtomicU64,
    /// Turns that were not in vain, except those of workgroups after which others have started.
    progress: AtomicU64,
    /// All of them waited for too long.
    stands_still: AtomicBool,
    outcome: Mutex<(LaunchStats, Option<StoppedWave>)>,
}

/// Runs a kernel to its end.
pub(super) fn launch(
    memory: &DeviceMemory,
    target: Target,
    module: &Module,
    name: &str,
    config: LaunchConfig,
    arguments: &[u8],
) -> Result<LaunchStats, SimError> {
    let kernel = module.kernel(name).ok_or_else(|| SimError::NoKernel(name.to_owned()))?;
    let segments = Segments::new(target, kernel, &config, arguments)?;
    let mut view = segments.view(memory);
    view.forgive_past_end();
    view.with_rendezvous();
    let launch = LaunchContext::new(target, module, kernel, config, &segments, &view)?;
    // Run mode does not follow which memory is written.
    view.define_all();
    let result = all(&launch, target).map_err(|stopped| {
        let mut fault = launch.fault(module, stopped);
        fault.kind = fault.kind.or_freed(|address| memory.freed(address));
        SimError::Fault(Box::new(fault))
    });
    result.map(|stats| LaunchStats { past_end: view.past_end(), ..stats })
}

/// Runs all workgroups. They start in order, and those before one that fails are worked on for as long as
/// they get anywhere, so that the first of several that fail is always the one reported.
fn all(launch: &LaunchContext<'_>, target: Target) -> Result<LaunchStats, StoppedWave> {
    let workgroups = launch.workgroups();
    launch.begins(workgroups);
    let dispatcher = Dispatcher {
        launch,
        next: AtomicU64::new(0),
        aside: AtomicU64::new(0),
        // Those of a cooperative launch wait for each other, so all of them have to start.
        most: match workgroups {
            0 | 1 => 1,
            _ if launch.config.grid_sync != 0 => workgroups,
            _ => resident(launch, target),
        },
        end: AtomicU64::new(workgroups),
        progress: AtomicU64::new(0),
        stands_still: AtomicBool::new(false),
        outcome: Mutex::default(),
    };
    workers::run(workgroups, || dispatcher.work());
    let (stats, failure) = dispatcher.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(stats), Err)
}

/// How many workgroups may be put aside: what the device holds, and the host has memory for.
fn resident(launch: &LaunchContext<'_>, target: Target) -> u64 {
    let fits = occupancy(target, launch.kernel, launch).workgroups_per_compute_unit;
    let lane = 4 * launch.program.rows() as u64 + u64::from(launch.private_bytes);
    let bytes = launch.waves as u64 * LANES as u64 * lane + u64::from(launch.lds_bytes);
    // A few have to make progress together whatever they need.
    (u64::from(fits) * u64::from(target.compute_units())).min(MOST_BYTES / bytes.max(1)).max(8)
}

impl Dispatcher<'_> {
    /// What each thread does.
    fn work(&self) {
        let mut worker = RunWorker::default();
        self.run_all(&mut worker);
        // A poisoned lock means that another thread panicked, which `workers::run` passes on.
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let (stats, first) = &mut *outcome;
        stats.merge(&worker.stats);
        if let Some(new) = worker.failure
            && first.as_ref().is_none_or(|first| new.workgroup < first.workgroup)
        {
            *first = Some(new);
        }
    }

    /// Starts workgroups and lets those go on that were put aside, until there are none left, or one has
    /// failed and those before it wait for ever.
    fn run_all(&self, worker: &mut RunWorker) {
        let mut quiet = None;
        loop {
            // The first one that could go on gets every second turn, so that it comes to its end.
            if let Some(group) = worker.first_busy() {
                self.turn(worker, group, LONGEST_TURN);
            }
            let new = self.start(worker);
            let is_new = new.is_some();
            if let Some(group) = new {
                self.turn(worker, group, LONGEST_TURN);
            }
            if let Some(group) = worker.aside.pop_front() {
                let turn = group.turn;
                self.turn(worker, group, turn);
            } else if self.all_started() {
                return;
            } else if !is_new {
                std::thread::sleep(NAP);
            }
            if is_new || worker.idle <= worker.aside.len() as u64 {
                quiet = None;
            } else if !self.idle(worker, &mut quiet) {
                return;
            }
        }
    }

    /// The next workgroup before its first instruction, if there is one and it may start.
    fn start(&self, worker: &mut RunWorker) -> Option<StartedGroup> {
        if self.aside.load(Relaxed) >= self.most || self.all_started() {
            return None;
        }
        let number = self.next.fetch_add(1, Relaxed);
        if number >= self.end.load(Relaxed) {
            return None;
        }
        let mut group = worker.spare.pop().unwrap_or_default();
        (group.number, group.turn, group.state) = (number, LONGEST_TURN, GroupState::Fresh);
        group.waves.resize_with(self.launch.waves, Wave::new);
        group.paces.clear();
        group.paces.resize_with(self.launch.waves, Pace::default);
        group.turns.begin(self.launch.config.order, number, self.launch.waves);
        group.lds.reset(self.launch.lds_bytes);
        let ids = self.launch.coordinates(number);
        for (index, wave) in group.waves.iter_mut().enumerate() {
            self.launch.start(wave, index, ids);
        }
        Some(group)
    }

    fn all_started(&self) -> bool {
        self.next.load(Relaxed) >= self.end.load(Relaxed)
    }

    /// Gives a workgroup a turn of about this many instructions.
    fn turn(&self, worker: &mut RunWorker, mut group: StartedGroup, instructions: u64) {
        worker.busy -= u64::from(group.state == GroupState::Busy);
        if group.number >= self.end.load(Relaxed) {
            self.ends(worker, group);
            return;
        }
        let was_aside = group.state != GroupState::Fresh;
        let outcome = self.advance(worker, &mut group, instructions);
        let is_in_vain = matches!(outcome, Ok(GroupTurnEnd::WaitsStill));
        worker.idle = if is_in_vain { worker.idle + 1 } else { 0 };
        // As long as others start, that shows in their number.
        if !is_in_vain && (was_aside || self.all_started()) {
            self.progress.fetch_add(1, Relaxed);
        }
        match outcome {
            Ok(GroupTurnEnd::Ended) => {
                self.launch.workgroup_ended();
                for wave in &mut group.waves {
                    worker.stats.waves += 1;
                    worker.stats.add(&std::mem::take(&mut wave.counts));
                }
                self.ends(worker, group);
            }
            Ok(outcome) => {
                group.state = match outcome {
                    GroupTurnEnd::UsedUp => GroupState::Busy,
                    _ => GroupState::Waiting,
                };
                group.turn = (group.turn / 2).max(SHORTEST_TURN);
                worker.busy += u64::from(group.state == GroupState::Busy);
                if !was_aside {
                    self.aside.fetch_add(1, Relaxed);
                }
                worker.aside.push_back(group);
            }
            Err(failure) => {
                self.fail(worker, failure);
                self.ends(worker, group);
            }
        }
    }

    /// A workgroup is not worked on any more.
    fn ends(&self, worker: &mut RunWorker, group: StartedGroup) {
        if group.state != GroupState::Fresh {
            self.aside.fetch_sub(1, Relaxed);
        }
        worker.spare.push(group);
    }

    fn fail(&self, worker: &mut RunWorker, failure: StoppedWave) {
        self.end.fetch_min(failure.workgroup, Relaxed);
        // Only workgroups before it are worked on after it.
        worker.failure = Some(failure);
    }

    /// To be called when all workgroups of a thread wait, and no other can start: gives the host and other
    /// threads time, and is false if there is no use in waiting any longer.
    fn idle(&self, worker: &mut RunWorker, quiet: &mut Option<(u64, Instant)>) -> bool {
        let has_failed = self.end.load(Relaxed) < self.launch.workgroups();
        let progress = self.progress.load(Relaxed) + self.next.load(Relaxed);
        let since = quiet.filter(|since| since.0 == progress).map_or_else(Instant::now, |since| since.1);
        *quiet = Some((progress, since));
        let is_limited = self.launch.config.time_limit.is_some();
        if !has_failed && !is_limited && since.elapsed() >= STANDSTILL {
            self.stands_still.store(true, Relaxed);
        }
        if self.stands_still.load(Relaxed) {
            let first = worker.aside.iter().min_by_key(|group| group.number);
            if let Some(group) = first.filter(|group| group.number < self.end.load(Relaxed)) {
                let running = group.waves.iter().position(|wave| wave.progress == Progress::Running);
                let wave = running.unwrap_or(0);
                let stopped = Stopped::wave(FaultKind::Standstill(STANDSTILL));
                let (workgroup, step) = (group.number, group.waves[wave].pc);
                self.fail(worker, StoppedWave { workgroup, wave, step, stopped });
            }
            return false;
        }
        if worker.idle < IDLE {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        !has_failed
    }

    /// Lets the waves of a workgroup go on, for about this many instructions.
    fn advance(
        &self,
        worker: &mut RunWorker,
        group: &mut StartedGroup,
        instructions: u64,
    ) -> Result<GroupTurnEnd, StoppedWave> {
        let StartedGroup { number, waves, paces, turns, lds, .. } = group;
        let mut context = ExecutionContext {
            program: self.launch.program,
            memory: self.launch.memory,
            lds,
            caches: &mut worker.caches,
            budget: self.launch.config.instruction_budget,
        };
        let failure = |wave: usize, step: usize, stopped: Stopped| StoppedWave {
            workgroup: *number,
            wave,
            step,
            stopped,
        };
        let (mut left, mut still) = (instructions, GroupTurnEnd::WaitsStill);
        while left > 0 {
            let (mut moved, mut stopped) = (false, true);
            // Each of the waves that can go on has one turn, in pieces.
            let mut going = begin_turns(waves, paces);
            while going != 0 {
                let first = going.trailing_zeros() as usize;
                self.launch.check_time().map_err(|stopped| failure(first, waves[first].pc, stopped))?;
                turns.next_pass();
                for place in 0..waves.len() {
                    let index = turns.wave(place);
                    if going >> index & 1 == 0 {
                        continue;
                    }
                    let wave = &mut waves[index];
                    let length = if going.is_power_of_two() { u64::MAX } else { turns.length() };
                    let before = wave.executed;
                    let end = paces[index].go_on(wave, length, &mut worker.probe, &mut context);
                    let end = end.map_err(|stopped| failure(index, wave.pc, stopped))?;
                    left = left.saturating_sub(wave.executed - before);
                    if let Some(end) = end {
                        going &= !(1 << index);
                        moved |= end != TurnEnd::WaitsStill;
                        stopped &= end == TurnEnd::Stopped;
                    }
                }
            }
            if stopped {
                let waiting = waves.iter_mut().filter(|wave| wave.progress == Progress::AtBarrier);
                if waiting.map(|wave| wave.progress = Progress::Running).count() == 0 {
                    return Ok(GroupTurnEnd::Ended);
                }
            }
            if !moved {
                return Ok(still);
            }
            still = GroupTurnEnd::Waits;
        }
        Ok(GroupTurnEnd::UsedUp)
    }
}

impl RunWorker {
    /// The first workgroup that was put aside though it could go on.
    fn first_busy(&mut self) -> Option<StartedGroup> {
        if self.busy == 0 {
            return None;
        }
        let busy = self.aside.iter().enumerate().filter(|(_, group)| group.state == GroupState::Busy);
        let (index, _) = busy.min_by_key(|(_, group)| group.number)?;
        self.aside.remove(index)
    }
}

/// Begins the turns of all waves that can go on; returns which these are.
fn begin_turns(waves: &[Wave], paces: &mut [Pace]) -> u64 {
    let mut going = 0u64;
    for (index, (wave, pace)) in waves.iter().zip(paces).enumerate() {
        if wave.progress == Progress::Running {
            pace.begin(wave);
            going |= 1 << index;
        }
    }
    going
}
