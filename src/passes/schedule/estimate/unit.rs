//! A compute unit that runs a few trips: its waves issue their instructions in order, each SIMD has a matrix
//! core and a vector unit, and all share LDS and the way to the caches.
//!
//! It is time mode in small (`runtime/sim/time`) and does what that does with the same numbers and the same
//! LDS, except that it knows no addresses. Of waves that are ready at the same time one of the highest
//! priority comes first, the oldest of these.

use std::collections::VecDeque;

use super::load_path::LoadPath;
use super::program::{MatrixWork, TripInstruction, TripProgram, UnitWork, VectorWork};
use super::steps::{TripControl, WaveHalves};
use crate::codegen::target::{
    DeviceModel, DeviceParameter, LANES, LdsDemand, LdsKind, LdsPorts, SIMDS, TURN, WAVE_ORDER, whole,
};

/// The least trips before the ones that are counted, of one workgroup and of several: pipelines fill, and
/// waves find their places, first those of a workgroup and then workgroups among each other.
const WARM_TRIPS: [u32; 2] = [1, 2];

/// The most trips that are counted.
const MOST_COUNTED: u32 = 6;

/// Trips are alike if they differ by this part, and then no more are run.
const ALIKE: f64 = 100.0;

/// The waves of a compute unit.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Residents {
    /// Workgroups.
    pub workgroups: u32,
    /// Waves of each.
    pub waves: u32,
    /// How the halves of a workgroup's waves run.
    pub halves: WaveHalves,
    /// Compute units of the device that have workgroups.
    pub busy_units: u32,
}

/// When a wave may try its next instruction, and what it wins by then: in that order the least comes first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NextTurn(u64);

impl NextTurn {
    /// Of a wave that waits at a barrier.
    const NEVER: NextTurn = NextTurn(u64::MAX);

    fn new(clk: u64, priority: u8, wave: usize) -> NextTurn {
        NextTurn(clk << 24 | u64::from(u8::MAX - priority) << 16 | wave as u64)
    }

    /// The sooner one. A minimum of two is three instructions, the library's of a list many more.
    fn or_sooner(self, other: NextTurn) -> NextTurn {
        if other.0 < self.0 { other } else { self }
    }

    fn clk(self) -> u64 {
        self.0 >> 24
    }

    fn wave(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

struct ResidentWave {
    workgroup: usize,
    simd: usize,
    /// The number of its next instruction.
    next: usize,
    priority: u8,
    trip: u32,
    /// Barriers that it meets before its first trip.
    barriers_before: u32,
    /// When each instruction's results of the last trips are there.
    results: Vec<u64>,
    /// When its loads are over, in their order.
    loads: VecDeque<u64>,
    /// When its accesses of LDS are over, and its loads into LDS.
    lds: u64,
    direct: u64,
}

/// When the units of a SIMD take the next instruction.
#[derive(Default)]
struct SimdUnits {
    matrix: u64,
    vector: u64,
    /// The wave whose vector instructions keep the unit busy.
    owner: usize,
    /// When vector instructions may stand beside the matrix instruction, and accesses of memory.
    beside: u64,
    memory: u64,
    /// When those end that share turns with the ones that keep the vector unit busy, if these may share.
    second: Option<u64>,
    /// The turns in which LDS, memory and scalar instructions may issue.
    lds: u64,
    loads: u64,
    scalar: u64,
}

impl SimdUnits {
    /// Vector instructions of a wave from `clk` on, beside those of another one if both may share turns.
    fn take_vector(&mut self, wave: usize, clk: u64, work: VectorWork) {
        match &mut self.second {
            Some(second) if clk < self.vector => *second = clk + work.clk,
            second => {
                *second = work.pairs.then_some(clk);
                (self.vector, self.owner) = (clk + work.clk, wave);
            }
        }
    }

    /// An access of LDS or of memory takes its turn, or that of both.
    fn take_memory(&mut self, is_lds: bool, is_one_port: bool, clk: u64) {
        let next = clk + TURN;
        if is_lds || is_one_port {
            self.lds = self.lds.max(next);
        }
        if !is_lds || is_one_port {
            self.loads = self.loads.max(next);
        }
    }
}

/// Fixed numbers of the device in the form in which the unit uses them.
struct TripNumbers {
    /// LDS and memory take instructions from a SIMD through one port.
    is_one_port: bool,
    lds_banks: u32,
    /// Clk of a taken branch after its turn, and from the last wave's barrier until all go on.
    branch: u64,
    release: u64,
}

/// The compute unit.
struct TripUnit<'a> {
    program: &'a TripProgram,
    numbers: TripNumbers,
    /// Waves of a workgroup.
    of_a_workgroup: usize,
    /// The time, and trips that waves have finished.
    now: u64,
    trips: u32,
    waves: Vec<ResidentWave>,
    /// When each of them may try its next instruction; never while it waits at a barrier.
    next: Vec<NextTurn>,
    /// The least of these for every fourth wave, which are those of a SIMD.
    soonest: [NextTurn; SIMDS],
    /// Waves of each workgroup that wait at a barrier.
    waiting: Vec<Vec<usize>>,
    simds: [SimdUnits; SIMDS],
    lds: LdsPorts,
    loads: LoadPath,
}

/// Clk of a trip of one workgroup in the steady state of all; nothing if waves wait for each other in vain.
/// Once a trip has taken more than `enough`, no others are run, and waves may still be finding their places.
pub(crate) fn trip_clk(
    program: &TripProgram,
    residents: Residents,
    device: &'static DeviceModel,
    enough: f64,
) -> Option<f64> {
    if program.instructions.is_empty() {
        return Some(0.0);
    }
    let mut unit = TripUnit::new(program, residents, device);
    let warm = WARM_TRIPS[usize::from(residents.workgroups > 1)].max(program.longest);
    // Trips between which lines of L2 make a difference are counted together.
    let together = program.line_trips();
    let from = unit.after(warm)?;
    // All waves of a workgroup make one trip of it.
    let clk =
        |from: [f64; 2], to: [f64; 2]| (to[0] - from[0]) * f64::from(residents.waves) / (to[1] - from[1]);
    let (mut before, mut last, mut counted) = (from, f64::INFINITY, 0);
    loop {
        counted += together;
        let to = unit.after(warm + counted)?;
        let own = clk(before, to);
        let is_settled = (own - last).abs() * ALIKE <= own;
        if is_settled || own > enough || counted >= MOST_COUNTED.max(2 * together) {
            // Several workgroups take turns that repeat after a few trips only.
            return Some(clk(from, to));
        }
        (before, last) = (to, own);
    }
}

impl<'a> TripUnit<'a> {
    fn new(program: &'a TripProgram, residents: Residents, device: &'static DeviceModel) -> TripUnit<'a> {
        let Residents { workgroups, waves, halves, busy_units } = residents;
        let all = workgroups * waves;
        let engines = device.get(DeviceParameter::EnginesPerDie) * device.get(DeviceParameter::Dies);
        let per_engine = device.get(DeviceParameter::ComputeUnits) / engines;
        let launch = device.get(DeviceParameter::LaunchInterval) * per_engine;
        let apart = device.get(DeviceParameter::WaveInterval);
        let start = |number: u32| {
            let (workgroup, own) = (number / waves, number % waves);
            let clk = whole(launch * f64::from(workgroup) + apart * f64::from(own));
            NextTurn::new(clk.next_multiple_of(TURN), 0, number as usize)
        };
        let wave = |number: u32| {
            let (workgroup, own) = (number / waves, number % waves);
            let is_late = halves == WaveHalves::Staggered && own >= waves / 2;
            ResidentWave {
                workgroup: workgroup as usize,
                simd: WAVE_ORDER[number as usize % SIMDS],
                // Workgroups get out of step; these begin so.
                next: program.instructions.len() * workgroup as usize / workgroups as usize,
                priority: 0,
                trip: 0,
                barriers_before: u32::from(is_late),
                results: vec![0; program.place(program.instructions.len() as u32, 0)],
                loads: VecDeque::new(),
                lds: 0,
                direct: 0,
            }
        };
        let mut unit = TripUnit {
            program,
            numbers: TripNumbers {
                is_one_port: device.count(DeviceParameter::OneMemoryPort) != 0,
                lds_banks: device.count(DeviceParameter::LdsBanks) as u32,
                branch: device.count(DeviceParameter::TakenBranch).saturating_sub(TURN),
                release: device.count(DeviceParameter::BarrierRelease),
            },
            of_a_workgroup: waves as usize,
            now: 0,
            trips: 0,
            waves: (0..all).map(wave).collect(),
            next: vec![NextTurn::NEVER; all as usize],
            soonest: [NextTurn::NEVER; SIMDS],
            waiting: vec![Vec::new(); workgroups as usize],
            simds: Default::default(),
            lds: LdsPorts::new(device),
            loads: LoadPath::new(program, all, busy_units, device),
        };
        for number in 0..all {
            unit.set_next(number as usize, start(number));
        }
        unit
    }

    /// Runs until as many trips are over as all waves together make in so many each, and returns the time and
    /// these trips, with parts of those that waves are in.
    fn after(&mut self, trips: u32) -> Option<[f64; 2]> {
        // Waves that others overtake for ever do not hold up the count.
        while self.trips < trips * self.waves.len() as u32 {
            let next = self.earliest()?;
            self.now = next.clk();
            self.issue(next.wave());
        }
        let parts: usize = self.waves.iter().map(|wave| wave.next).sum();
        let parts = parts as f64 / self.program.instructions.len() as f64;
        Some([self.now as f64, f64::from(self.trips) + parts])
    }

    /// The wave that comes next: of those that are ready first one of the highest priority, the oldest.
    fn earliest(&self) -> Option<NextTurn> {
        let [first, second, third, fourth] = self.soonest;
        let least = first.or_sooner(second).or_sooner(third.or_sooner(fourth));
        (least != NextTurn::NEVER).then_some(least)
    }

    /// Notes when a wave tries its next instruction, and which of its SIMD comes first then.
    fn set_next(&mut self, wave: usize, next: NextTurn) {
        self.next[wave] = next;
        let group = wave % SIMDS;
        let (mut least, mut other) = (NextTurn::NEVER, group);
        while let Some(&next) = self.next.get(other) {
            (least, other) = (least.or_sooner(next), other + SIMDS);
        }
        self.soonest[group] = least;
    }

    /// Lets a wave try its next instruction at `clk`.
    fn try_at(&mut self, wave: usize, clk: u64) {
        self.set_next(wave, NextTurn::new(clk, self.waves[wave].priority, wave));
    }

    /// True if a wave wins arbitration against another one.
    fn goes_before(&self, wave: usize, other: usize) -> bool {
        let rank = |wave: usize| NextTurn::new(0, self.waves[wave].priority, wave);
        rank(wave) < rank(other)
    }

    /// Issues the next instruction of a wave, or finds out when it can be issued.
    fn issue(&mut self, wave: usize) {
        if self.waves[wave].barriers_before > 0 {
            self.waves[wave].barriers_before -= 1;
            return self.meet(wave);
        }
        let program = self.program;
        let number = self.waves[wave].next;
        let work = &program.instructions[number].work;
        let clk = self.accepted(wave, work).next_multiple_of(TURN);
        if clk > self.now {
            return self.try_at(wave, clk);
        }
        let (mut held, done) = self.execute(wave, work);
        let own = &mut self.waves[wave];
        own.results[program.place(number as u32, own.trip)] = done;
        own.next += 1;
        if own.next == program.instructions.len() {
            // The turn of the branch itself is among the instructions.
            held += self.numbers.branch;
            self.trips += 1;
            (own.next, own.trip) = (0, own.trip + 1);
        }
        if work.is_barrier() { self.meet(wave) } else { self.prepare(wave, held) }
    }

    /// The first time from now on at which a unit takes an instruction of a wave.
    fn accepted(&mut self, wave: usize, work: &UnitWork) -> u64 {
        let now = self.now;
        let own = &self.waves[wave];
        let units = &self.simds[own.simd];
        match *work {
            UnitWork::Matrix(_) => {
                let clk = now.max(units.matrix);
                // A wave that goes first comes between instructions that were taken together.
                let goes_first = clk < units.vector && self.goes_before(wave, units.owner);
                if goes_first { clk } else { clk.max(units.vector) }
            }
            UnitWork::Vector(VectorWork { pairs, overlaps, .. }) => {
                let clk = now.max(if overlaps { units.beside } else { units.matrix });
                match units.second.filter(|_| pairs) {
                    Some(second) => clk.max(units.vector.min(second)),
                    None => clk.max(units.vector).max(units.second.unwrap_or(0)),
                }
            }
            UnitWork::Turns(_) => now.max(units.scalar),
            UnitWork::Lds { kind, .. } => {
                // Others wait at barriers for what has been loaded, a wave that is alone before it reads.
                let is_alone = self.of_a_workgroup == 1 && kind == LdsKind::Read;
                let loaded = if is_alone { own.direct } else { 0 };
                let clk = now.max(units.memory).max(units.lds).max(loaded);
                self.lds.full_until(clk, own.simd).unwrap_or(clk)
            }
            UnitWork::Load(_) | UnitWork::LoadToLds(_) | UnitWork::Store(_) => {
                let clk = now.max(units.memory).max(units.loads);
                self.loads.full_until(clk).unwrap_or(clk)
            }
            UnitWork::Control(_) => now,
        }
    }

    /// Executes an instruction now: when the wave may go on, and when the result is there.
    fn execute(&mut self, wave: usize, work: &UnitWork) -> (u64, u64) {
        let now = self.now;
        let next = now + TURN;
        let TripNumbers { is_one_port, lds_banks, .. } = self.numbers;
        let own = &mut self.waves[wave];
        let units = &mut self.simds[own.simd];
        match *work {
            UnitWork::Matrix(work) => self.multiply(wave, work),
            UnitWork::Vector(work) => {
                units.take_vector(wave, now, work);
                (now + work.clk, now + work.clk)
            }
            UnitWork::Turns(turns) => {
                units.scalar = next;
                (now + TURN * u64::from(turns), now)
            }
            UnitWork::Lds { kind, dwords } => {
                units.take_memory(true, is_one_port, now);
                // Permutations take the path of LDS without its banks.
                let bank_clk = if kind == LdsKind::Permute { 0 } else { LANES * dwords / lds_banks };
                let demand = LdsDemand { kind, dwords, accesses: 1, bank_clk };
                let course = self.lds.serve(now, own.simd, demand);
                let done = whole(course.done);
                own.lds = own.lds.max(done);
                (next.max(whole(course.held)), done)
            }
            UnitWork::Load(load) => {
                units.take_memory(false, is_one_port, now);
                (next, own.loaded(whole(self.loads.load(now, load, own.trip))))
            }
            UnitWork::LoadToLds(load) => {
                units.take_memory(false, is_one_port, now);
                let done = self.loads.load_to_lds(now, load, own.trip);
                self.lds.arrival(done, LANES * load.bytes);
                let done = own.loaded(whole(done));
                own.direct = own.direct.max(done);
                (next, done)
            }
            UnitWork::Store(bytes) => {
                units.take_memory(false, is_one_port, now);
                (next, whole(self.loads.store(now, bytes)))
            }
            UnitWork::Control(control) => {
                if let TripControl::Priority(level) = control {
                    own.priority = level;
                }
                (next, now)
            }
        }
    }

    /// Executes a matrix instruction, which may come between vector instructions of another wave.
    fn multiply(&mut self, wave: usize, work: MatrixWork) -> (u64, u64) {
        let MatrixWork { occupancy, issue, blocks, memory, results } = work;
        let now = self.now;
        let units = &mut self.simds[self.waves[wave].simd];
        units.matrix = now + occupancy;
        let (owner, is_between) = (units.owner, now < units.vector);
        units.vector = if is_between { units.vector + issue } else { now + issue };
        units.second = None;
        units.beside = now + blocks;
        units.memory = units.memory.max(now + memory);
        if is_between && self.next[owner] != NextTurn::NEVER {
            self.try_at(owner, self.next[owner].clk() + issue);
        }
        (now + issue, now + results[0])
    }

    /// Finds when a wave that may go on at `held` may try its next instruction.
    fn prepare(&mut self, wave: usize, held: u64) {
        let instruction = &self.program.instructions[self.waves[wave].next];
        let own = &self.waves[wave];
        let mut clk = own.ready(self.program, instruction, held);
        if let UnitWork::Control(control) = instruction.work {
            clk = clk.max(own.passed(control));
        }
        let turns = u32::from(instruction.waits) + instruction.refills;
        clk = clk.next_multiple_of(TURN) + TURN * u64::from(turns);
        // A matrix core that is busy now is so until then at least.
        if let UnitWork::Matrix(_) = instruction.work {
            clk = clk.max(self.simds[own.simd].matrix).next_multiple_of(TURN);
        }
        self.try_at(wave, clk);
    }

    /// A wave has come to a barrier.
    fn meet(&mut self, wave: usize) {
        let workgroup = self.waves[wave].workgroup;
        self.set_next(wave, NextTurn::NEVER);
        self.waiting[workgroup].push(wave);
        if self.waiting[workgroup].len() == self.of_a_workgroup {
            let release = self.now + self.numbers.release;
            for wave in std::mem::take(&mut self.waiting[workgroup]) {
                self.prepare(wave, release);
            }
        }
    }
}

impl ResidentWave {
    /// When an instruction's operands are there, if the wave may go on at `held`.
    fn ready(&self, program: &TripProgram, instruction: &TripInstruction, held: u64) -> u64 {
        let made = instruction.operands.iter().filter_map(|operand| {
            let trip = self.trip.checked_sub(operand.trips)?;
            Some(self.results[program.place(operand.from, trip)] + operand.late)
        });
        made.fold(held, u64::max)
    }

    /// When it is past what a control makes it wait for, other waves aside.
    fn passed(&self, control: TripControl) -> u64 {
        match control {
            TripControl::SharedMemoryBarrier => self.lds.max(self.direct),
            TripControl::WorkgroupBarrier
            | TripControl::Priority(_)
            | TripControl::Interleave
            | TripControl::SkipUnitFactors => 0,
            TripControl::WaitForShared => self.lds,
            TripControl::WaitForLoads(under_way) => {
                let over = self.loads.len().checked_sub(1 + under_way as usize);
                over.and_then(|over| self.loads.get(over)).copied().unwrap_or(0)
            }
        }
    }

    /// Notes a load; its data are there after those of the loads before it.
    fn loaded(&mut self, done: u64) -> u64 {
        let done = self.loads.back().map_or(done, |&before| before.max(done));
        self.loads.push_back(done);
        done
    }
}
