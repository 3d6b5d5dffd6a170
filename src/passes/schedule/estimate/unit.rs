//! A compute unit that runs a few trips: its waves issue their instructions in order, each SIMD has a matrix
//! core and a vector unit, pairs of SIMDs share a port of LDS, and all of them LDS, the way to the caches and
//! the levels after these, which have so many bytes per clk while other compute units load.
//!
//! It is time mode in small (`runtime/sim/time`) and does what that does with the same numbers, except that
//! it knows no addresses: there are no bank conflicts, and which cache has a line follows from the rows of
//! tiles. Of waves that are ready at the same time the oldest comes first.

use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use super::program::{LoadWork, MatrixWork, TripInstruction, TripProgram, UnitWork, VectorWork};
use super::steps::{TripFence, WaveHalves};
use crate::codegen::target::{
    DeviceModel, DeviceParameter, LANES, LDS_PAIR, LDS_PORTS, SIMDS, TURN, WAVE_ORDER,
};

/// The least trips before the ones that are counted: pipelines fill, and waves find their places.
const WARM_TRIPS: u32 = 1;

/// The most trips that are counted.
const MOST_COUNTED: u32 = 6;

/// Trips are alike if they differ by this part, and then no more are run.
const ALIKE: f64 = 100.0;

const TURN_CLK: f64 = TURN as f64;

/// Bytes of a dword of each lane.
const WAVE_DWORD: f64 = 4.0 * LANES as f64;

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

/// What a compute unit has of the levels after its vector cache.
#[derive(Clone, Debug)]
struct SharedLevels {
    /// Bytes per clk.
    rate: f64,
    /// Clk until a line is there that L2 has, and until one is there that it has not.
    latency: [f64; 2],
    /// Clk until a line is there that the vector cache has.
    kept_latency: f64,
    /// For loads whose rows belong in so many of its sets, one more than the place in the list: the part of
    /// lines that it keeps from one trip to the next.
    kept: SmallVec<[f64; 4]>,
}

/// Bytes per clk that a compute unit has of L2 while so many of the device are busy.
pub(super) fn l2_share(busy_units: u32, device: &DeviceModel) -> f64 {
    let get = |parameter| device.get(parameter);
    let (units, dies) = (get(DeviceParameter::ComputeUnits), get(DeviceParameter::Dies));
    let busy_of_a_die = (f64::from(busy_units).clamp(1.0, units) / dies).ceil();
    let share = get(DeviceParameter::L2Rate) * units / dies / busy_of_a_die;
    share.min(get(DeviceParameter::L2RateAlone))
}

impl SharedLevels {
    fn of(program: &TripProgram, residents: Residents, device: &DeviceModel) -> SharedLevels {
        let get = |parameter| device.get(parameter);
        let rate = l2_share(residents.busy_units, device);
        let far = match get(DeviceParameter::MallLatency) {
            0.0 => get(DeviceParameter::MemoryLatency),
            cached => cached,
        };
        // A pointer chase includes the turn of the wait and the address path of one line.
        let beside = get(DeviceParameter::Turn) + get(DeviceParameter::VectorInterval);
        SharedLevels {
            rate,
            latency: [get(DeviceParameter::L2Latency) - beside, far - beside],
            kept_latency: get(DeviceParameter::L1Latency) - beside,
            kept: kept_lines(program, residents.workgroups * residents.waves, device),
        }
    }
}

/// Of loads whose rows belong in one set of the vector cache, in two, and so on, the part of lines that it
/// still has a trip later, while so many waves load.
fn kept_lines(program: &TripProgram, waves: u32, device: &DeviceModel) -> SmallVec<[f64; 4]> {
    let get = |parameter| device.get(parameter);
    let sets = device.count(DeviceParameter::L1Sets) as usize;
    let ways = get(DeviceParameter::L1Bytes) / get(DeviceParameter::L1Line) / sets as f64;
    // Lines that belong in each set.
    let mut lines: SmallVec<[f64; 4]> = smallvec![0.0; sets];
    for load in program.loads() {
        let all = f64::from(LANES * load.bytes * load.lines * waves) / get(DeviceParameter::L1Line);
        for lines in lines.iter_mut().take(load.sets as usize) {
            *lines += all / f64::from(load.sets);
        }
    }
    let kept = |of: usize| lines[..of].iter().filter(|&&lines| lines <= ways).count() as f64 / of as f64;
    (1..=sets).map(kept).collect()
}

/// The instructions in front of a path: when each of them leaves it, in order.
#[derive(Default)]
struct IssueQueue(VecDeque<f64>);

impl IssueQueue {
    /// The first time from `at` on at which fewer than `most` are in it.
    fn room(&mut self, at: f64, most: usize) -> f64 {
        while self.0.front().is_some_and(|&end| end <= at) {
            self.0.pop_front();
        }
        let over = self.0.len().checked_sub(most).and_then(|over| self.0.get(over));
        over.map_or(at, |&end| at.max(end))
    }

    fn push(&mut self, end: f64) {
        self.0.push_back(self.0.back().map_or(end, |&last| end.max(last)));
    }
}

/// When a wave may try its next instruction, and what it wins by then: in that order the least comes first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NextTurn(u64);

impl NextTurn {
    /// Of a wave that waits at a barrier.
    const NEVER: NextTurn = NextTurn(u64::MAX);

    fn new(at: f64, priority: u8, wave: usize) -> NextTurn {
        NextTurn((at as u64) << 24 | u64::from(u8::MAX - priority) << 16 | wave as u64)
    }

    fn at(self) -> f64 {
        (self.0 >> 24) as f64
    }

    fn wave(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

struct ResidentWave {
    workgroup: usize,
    simd: usize,
    next: usize,
    priority: u8,
    trip: u32,
    /// Barriers that it meets before its first trip.
    barriers_before: u32,
    /// When each instruction's results of the last trips are there.
    results: Vec<f64>,
    /// When its loads are over, in their order.
    loads: VecDeque<f64>,
    /// When its accesses of LDS are over, and its loads into LDS.
    shared: f64,
    direct: f64,
}

/// When the units of a SIMD take the next instruction.
#[derive(Default)]
struct SimdUnits {
    matrix: f64,
    vector: f64,
    /// The wave whose vector instructions keep the unit busy.
    owner: usize,
    /// When vector instructions may stand beside the matrix instruction, and accesses of memory.
    beside: f64,
    memory: f64,
    /// When those end that share turns with the ones that keep the vector unit busy, if these may share.
    second: Option<f64>,
    /// The turns in which LDS, memory and scalar instructions may issue.
    lds: f64,
    loads: f64,
    scalar: f64,
}

impl SimdUnits {
    /// Vector instructions of a wave from `at` on, beside those of another one if both may share turns.
    fn take_vector(&mut self, wave: usize, at: f64, work: VectorWork) {
        match &mut self.second {
            Some(second) if at < self.vector => *second = at + work.clk,
            second => {
                *second = work.pairs.then_some(at);
                (self.vector, self.owner) = (at + work.clk, wave);
            }
        }
    }
}

/// A port of LDS: when it accepts an instruction, when the next one of its queue starts, and when its buses
/// are free.
#[derive(Default)]
struct LdsPort {
    accepts: f64,
    next: f64,
    reads: f64,
    writes: f64,
    queue: IssueQueue,
}

/// What all SIMDs share: when each takes the next instruction.
#[derive(Default)]
struct SharedPaths {
    /// LDS, and its banks.
    lds: f64,
    banks: f64,
    /// The address path of memory, and the instructions in front of it.
    path: f64,
    path_accepts: f64,
    path_queue: IssueQueue,
    /// The level after the vector cache, and what is on its way from there: when it arrives, and bytes.
    level: f64,
    flight: VecDeque<[f64; 2]>,
    in_flight: f64,
    stores: f64,
}

/// The compute unit.
struct TripUnit<'a> {
    program: &'a TripProgram,
    device: &'static DeviceModel,
    levels: SharedLevels,
    /// Waves of a workgroup.
    of_a_workgroup: usize,
    /// The time, and trips that waves have finished.
    now: f64,
    trips: u32,
    waves: Vec<ResidentWave>,
    /// When each of them may try its next instruction; never while it waits at a barrier.
    next: Vec<NextTurn>,
    /// Waves of each workgroup that wait at a barrier.
    waiting: Vec<Vec<usize>>,
    simds: [SimdUnits; SIMDS],
    ports: [LdsPort; LDS_PORTS as usize],
    paths: SharedPaths,
}

/// Clk of a trip of one workgroup in the steady state of all; nothing if waves wait for each other in vain.
pub(crate) fn trip_clk(
    program: &TripProgram,
    residents: Residents,
    device: &'static DeviceModel,
) -> Option<f64> {
    if program.instructions.is_empty() {
        return Some(0.0);
    }
    let mut unit = TripUnit::new(program, residents, device);
    let warm = WARM_TRIPS.max(program.longest + 1);
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
        if is_settled || counted >= MOST_COUNTED.max(2 * together) {
            // Several workgroups take turns that repeat after a few trips only.
            return Some(clk(from, to));
        }
        (before, last) = (to, own);
    }
}

impl<'a> TripUnit<'a> {
    fn new(program: &'a TripProgram, residents: Residents, device: &'static DeviceModel) -> TripUnit<'a> {
        let Residents { workgroups, waves, halves, .. } = residents;
        let engines = device.get(DeviceParameter::EnginesPerDie) * device.get(DeviceParameter::Dies);
        let per_engine = device.get(DeviceParameter::ComputeUnits) / engines;
        let launch = device.get(DeviceParameter::LaunchInterval) * per_engine;
        let apart = device.get(DeviceParameter::WaveInterval);
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
                results: vec![0.0; program.place(program.instructions.len() as u32, 0)],
                loads: VecDeque::new(),
                shared: 0.0,
                direct: 0.0,
            }
        };
        let start = |number: u32| {
            let (workgroup, own) = (number / waves, number % waves);
            let at = aligned(launch * f64::from(workgroup) + apart * f64::from(own));
            NextTurn::new(at, 0, number as usize)
        };
        TripUnit {
            program,
            device,
            next: (0..workgroups * waves).map(start).collect(),
            levels: SharedLevels::of(program, residents, device),
            of_a_workgroup: waves as usize,
            now: 0.0,
            trips: 0,
            waves: (0..workgroups * waves).map(wave).collect(),
            waiting: vec![Vec::new(); workgroups as usize],
            simds: Default::default(),
            ports: Default::default(),
            paths: SharedPaths::default(),
        }
    }

    /// Runs until as many trips are over as all waves together make in so many each, and returns the time and
    /// these trips, with parts of those that waves are in.
    fn after(&mut self, trips: u32) -> Option<[f64; 2]> {
        // Waves that others overtake for ever do not hold up the count.
        while self.trips < trips * self.waves.len() as u32 {
            let next = self.earliest()?;
            self.now = next.at();
            self.issue(next.wave());
        }
        Some(self.progress())
    }

    /// The wave that comes next: of those that are ready first one of the highest priority, the oldest.
    fn earliest(&self) -> Option<NextTurn> {
        self.next.iter().copied().min().filter(|&next| next != NextTurn::NEVER)
    }

    /// Lets a wave try its next instruction at `at`.
    fn try_at(&mut self, wave: usize, at: f64) {
        self.next[wave] = NextTurn::new(at, self.waves[wave].priority, wave);
    }

    /// True if a wave wins arbitration against another one.
    fn goes_before(&self, wave: usize, other: usize) -> bool {
        let rank = |wave: usize| (u8::MAX - self.waves[wave].priority, wave);
        rank(wave) < rank(other)
    }

    #[inline]
    fn get(&self, parameter: DeviceParameter) -> f64 {
        self.device.get(parameter)
    }

    /// When an instruction's operands are there, for a wave that may go on at `held`.
    fn ready(&self, wave: usize, instruction: &TripInstruction, held: f64) -> f64 {
        let own = &self.waves[wave];
        let made = instruction.operands.iter().filter_map(|operand| {
            let trip = own.trip.checked_sub(operand.trips)?;
            let made = own.results[self.program.place(operand.from, trip)];
            // The next matrix instruction with the same accumulator follows at once.
            let maker = self.program.instructions[operand.from as usize].work;
            Some(match (maker, instruction.work) {
                (UnitWork::Matrix(_), UnitWork::Matrix(_)) => made,
                (UnitWork::Matrix(work), _) => made + work.results[1] - work.results[0],
                _ => made,
            })
        });
        made.fold(held, f64::max)
    }

    /// When a unit takes an instruction that is ready at `at`.
    fn accepted(&mut self, wave: usize, work: UnitWork, at: f64) -> f64 {
        let simd = self.waves[wave].simd;
        let units = &self.simds[simd];
        match work {
            UnitWork::Matrix(_) => {
                let at = at.max(units.matrix);
                // A wave that goes first comes between instructions that were taken together.
                let goes_first = at < units.vector && self.goes_before(wave, units.owner);
                if goes_first { at } else { at.max(units.vector) }
            }
            UnitWork::Vector(VectorWork { pairs, overlaps, .. }) => {
                let at = at.max(if overlaps { units.beside } else { units.matrix });
                match units.second.filter(|_| pairs) {
                    Some(second) => at.max(units.vector.min(second)),
                    None => at.max(units.vector).max(units.second.unwrap_or(at)),
                }
            }
            UnitWork::Turns(_) => at.max(units.scalar),
            // Others wait at barriers for what has been loaded, a wave that is alone before it reads.
            UnitWork::ReadShared(_) if self.of_a_workgroup == 1 && self.waves[wave].direct > at => {
                self.waves[wave].direct
            }
            UnitWork::ReadShared(_) | UnitWork::WriteShared(_) => {
                let most = self.device.count(DeviceParameter::LdsQueue) as usize;
                let at = at.max(units.memory).max(units.lds);
                let port = &mut self.ports[LDS_PAIR[simd]];
                port.queue.room(at.max(port.accepts), most)
            }
            UnitWork::Load(_) | UnitWork::LoadToShared(_) | UnitWork::Store(_) => {
                let most = self.device.count(DeviceParameter::VectorQueue) as usize;
                let at = at.max(units.memory).max(units.loads).max(self.paths.path_accepts);
                self.paths.path_queue.room(at, most)
            }
            UnitWork::TripFence(_) => at,
        }
    }

    /// When a wave is past what a fence makes it wait for, other waves aside.
    fn passed(&self, wave: usize, fence: TripFence, at: f64) -> f64 {
        let own = &self.waves[wave];
        match fence {
            TripFence::SharedMemoryBarrier => at.max(own.shared).max(own.direct),
            TripFence::WorkgroupBarrier | TripFence::Priority(_) => at,
            TripFence::Shared => at.max(own.shared),
            TripFence::Loads(under_way) => {
                let over = own.loads.len().checked_sub(1 + under_way as usize);
                over.and_then(|over| own.loads.get(over)).map_or(at, |&done| at.max(done))
            }
        }
    }

    /// Issues the next instruction of a wave, or finds out when it can be issued.
    fn issue(&mut self, wave: usize) {
        if self.waves[wave].barriers_before > 0 {
            self.waves[wave].barriers_before -= 1;
            return self.meet(wave, self.now);
        }
        let program = self.program;
        let number = self.waves[wave].next;
        let work = program.instructions[number].work;
        let at = aligned(self.accepted(wave, work, self.now));
        if at > self.now {
            return self.try_at(wave, at);
        }
        let (held, done) = self.execute(wave, work, at);
        let own = &mut self.waves[wave];
        own.results[program.place(number as u32, own.trip)] = done;
        own.next += 1;
        let mut held = held;
        if own.next == program.instructions.len() {
            // The turn of the branch itself is among the instructions.
            held += self.device.get(DeviceParameter::TakenBranch) - TURN_CLK;
            self.trips += 1;
            (own.next, own.trip) = (0, own.trip + 1);
        }
        if let UnitWork::TripFence(TripFence::SharedMemoryBarrier | TripFence::WorkgroupBarrier) = work {
            self.meet(wave, at);
        } else {
            self.prepare(wave, held);
        }
    }

    /// Finds when a wave that may go on at `held` may try its next instruction.
    fn prepare(&mut self, wave: usize, held: f64) {
        let instruction = &self.program.instructions[self.waves[wave].next];
        let ready = self.ready(wave, instruction, held);
        let over = if let UnitWork::TripFence(fence) = instruction.work {
            self.passed(wave, fence, ready)
        } else {
            ready
        };
        let turns = u32::from(instruction.waits) + instruction.refills;
        let at = aligned(over) + TURN_CLK * f64::from(turns);
        // A matrix core that is busy now is so until then at least.
        let units = &self.simds[self.waves[wave].simd];
        let is_matrix = matches!(instruction.work, UnitWork::Matrix(_));
        let at = if is_matrix { at.max(units.matrix) } else { at };
        self.try_at(wave, aligned(at));
    }

    /// When the wave may go on, and when the result is there.
    fn execute(&mut self, wave: usize, work: UnitWork, at: f64) -> (f64, f64) {
        let units = &mut self.simds[self.waves[wave].simd];
        match work {
            UnitWork::Matrix(MatrixWork { occupancy, issue, blocks, memory, results }) => {
                units.matrix = at + occupancy;
                if at < units.vector {
                    units.vector += issue;
                    let (owner, next) = (units.owner, self.next[units.owner]);
                    if next != NextTurn::NEVER {
                        self.next[owner] =
                            NextTurn::new(next.at() + issue, self.waves[owner].priority, owner);
                    }
                }
                units.vector = units.vector.max(at + issue);
                units.second = None;
                units.beside = at + blocks;
                units.memory = units.memory.max(at + memory);
                (at + issue, at + results[0])
            }
            UnitWork::Vector(work) => {
                units.take_vector(wave, at, work);
                (at + work.clk, at + work.clk)
            }
            UnitWork::Turns(turns) => {
                units.scalar = at + TURN_CLK;
                (at + TURN_CLK * f64::from(turns), at)
            }
            UnitWork::ReadShared(dwords) => (at + TURN_CLK, self.read(wave, at, dwords)),
            UnitWork::WriteShared(dwords) => self.write(wave, at, dwords),
            UnitWork::Load(load) => {
                let least = self.get(DeviceParameter::VectorInterval);
                (at + TURN_CLK, self.load(wave, at, load, least))
            }
            UnitWork::LoadToShared(load) => {
                let least = self.get(DeviceParameter::DirectLds);
                let done = self.load(wave, at, load, least);
                self.waves[wave].direct = self.waves[wave].direct.max(done);
                (at + TURN_CLK, done)
            }
            UnitWork::Store(bytes) => (at + TURN_CLK, self.store(wave, at, bytes)),
            UnitWork::TripFence(fence) => {
                if let TripFence::Priority(level) = fence {
                    self.waves[wave].priority = level;
                }
                (at + TURN_CLK, at)
            }
        }
    }

    /// A store of so many bytes per lane: when the level after the vector cache has it.
    fn store(&mut self, wave: usize, at: f64, bytes: u32) -> f64 {
        self.take_load_turn(wave, at);
        let bytes = f64::from(LANES * bytes);
        let [rate, of_level] =
            [DeviceParameter::VectorBytes, DeviceParameter::L2WriteRate].map(|parameter| self.get(parameter));
        let paths = &mut self.paths;
        paths.path = paths.path.max(at) + bytes / rate;
        paths.path_queue.push(paths.path);
        paths.stores = paths.stores.max(at) + bytes / of_level;
        paths.stores
    }

    /// An access of LDS takes its turn: when it may start.
    fn take_lds_turn(&mut self, wave: usize, at: f64) -> f64 {
        let [interval, of_port] =
            [DeviceParameter::LdsInterval, DeviceParameter::LdsPairInterval].map(|p| self.get(p));
        let is_one_port = self.get(DeviceParameter::OneMemoryPort) != 0.0;
        let simd = self.waves[wave].simd;
        let units = &mut self.simds[simd];
        units.lds = at + TURN_CLK;
        if is_one_port {
            units.loads = units.loads.max(at + TURN_CLK);
        }
        let turn = at.max(self.paths.lds);
        self.paths.lds = turn + interval;
        let port = &mut self.ports[LDS_PAIR[simd]];
        port.accepts = at + of_port;
        let start = turn.max(port.next);
        port.next = start + interval;
        start
    }

    /// A read of LDS: when its data are there.
    fn read(&mut self, wave: usize, at: f64, dwords: u32) -> f64 {
        let start = self.take_lds_turn(wave, at);
        let (clk, part) = (self.port_clk(dwords, DeviceParameter::LdsPortRead), part(dwords));
        let hold = self.get(DeviceParameter::LdsQueueHold) - self.port_clk(4, DeviceParameter::LdsPortRead);
        let banks = self.banks(at, dwords);
        let port = &mut self.ports[LDS_PAIR[self.waves[wave].simd]];
        let end = (start.max(port.reads) + clk.max(TURN_CLK)).max(banks);
        port.reads = end;
        // It keeps its place after it has been served.
        port.queue.push(end + hold.max(0.0) * part);
        let done = end + (self.chase(part) - TURN_CLK - clk.max(TURN_CLK)).max(0.0);
        let own = &mut self.waves[wave];
        own.shared = own.shared.max(done);
        done
    }

    /// A write to LDS: until when it holds its wave, and when others see it.
    fn write(&mut self, wave: usize, at: f64, dwords: u32) -> (f64, f64) {
        let start = self.take_lds_turn(wave, at);
        let clk = self.port_clk(dwords, DeviceParameter::LdsPortWrite);
        let issue = self.get(DeviceParameter::LdsWriteIssue) + TURN_CLK * f64::from(dwords);
        let banks = self.banks(at, dwords);
        let port = &mut self.ports[LDS_PAIR[self.waves[wave].simd]];
        let end = (start.max(port.writes) + clk.max(TURN_CLK)).max(banks);
        port.writes = end;
        port.queue.push(end);
        let done = end + (self.chase(part(dwords)) - TURN_CLK - clk.max(issue)).max(0.0);
        let own = &mut self.waves[wave];
        own.shared = own.shared.max(done);
        (end.max(at + issue), done)
    }

    /// Clk of a port for an access of so many dwords per lane.
    fn port_clk(&self, dwords: u32, port: DeviceParameter) -> f64 {
        WAVE_DWORD * f64::from(dwords) / self.get(port)
    }

    /// Takes the banks for an access without conflicts: when they are free again.
    fn banks(&mut self, at: f64, dwords: u32) -> f64 {
        let clk = WAVE_DWORD * f64::from(dwords) / (4.0 * self.get(DeviceParameter::LdsBanks));
        self.paths.banks = at.max(self.paths.banks) + clk;
        self.paths.banks
    }

    /// Clk of a pointer chase in LDS.
    fn chase(&self, part: f64) -> f64 {
        let narrow = self.get(DeviceParameter::LdsLatency);
        narrow + part * (self.get(DeviceParameter::LdsLatencyWide) - narrow)
    }

    /// An access of memory takes its turn.
    fn take_load_turn(&mut self, wave: usize, at: f64) {
        let is_one_port = self.get(DeviceParameter::OneMemoryPort) != 0.0;
        let units = &mut self.simds[self.waves[wave].simd];
        units.loads = at + TURN_CLK;
        if is_one_port {
            units.lds = units.lds.max(at + TURN_CLK);
        }
        self.paths.path_accepts = at + self.device.get(DeviceParameter::VectorInterval);
    }

    /// A load: when its data are there. Loads of a wave come back in their order.
    fn load(&mut self, wave: usize, at: f64, load: LoadWork, least: f64) -> f64 {
        let LoadWork { bytes, lines, lasts, sets } = load;
        self.take_load_turn(wave, at);
        let rate = match bytes {
            8 => self.get(DeviceParameter::VectorBytesPair),
            _ => self.get(DeviceParameter::VectorBytes),
        };
        let bytes = f64::from(LANES * bytes);
        let of_lines = bytes * f64::from(lines);
        let per_line = self.get(DeviceParameter::VectorLine) / self.get(DeviceParameter::L1Line);
        let clk = (bytes / rate).max(least).max(of_lines * per_line);
        let most = self.get(DeviceParameter::VectorFlight);
        let SharedLevels { rate: level_rate, latency: [near, far], kept_latency, ref kept } = self.levels;
        let is_new = self.waves[wave].trip.is_multiple_of(lasts);
        let kept = if is_new { 0.0 } else { kept.get(sets as usize - 1).copied().unwrap_or(0.0) };
        let fetched = of_lines * (1.0 - kept);
        let paths = &mut self.paths;
        let mut start = at.max(paths.path);
        let arrival = match fetched > 0.0 {
            false => start + clk + kept_latency,
            true => {
                while paths.in_flight + fetched > most
                    && let Some([there, bytes]) = paths.flight.pop_front()
                {
                    start = start.max(there);
                    paths.in_flight -= bytes;
                }
                paths.level = paths.level.max(start) + fetched / level_rate;
                let arrival = (start + clk).max(paths.level) + if is_new { far } else { near };
                paths.flight.push_back([arrival, fetched]);
                paths.in_flight += fetched;
                arrival
            }
        };
        paths.path_queue.push(start);
        paths.path = start + clk;
        let own = &mut self.waves[wave];
        let done = own.loads.back().map_or(arrival, |&before| arrival.max(before));
        own.loads.push_back(done);
        done
    }

    /// A wave has come to a barrier.
    fn meet(&mut self, wave: usize, at: f64) {
        let workgroup = self.waves[wave].workgroup;
        self.next[wave] = NextTurn::NEVER;
        self.waiting[workgroup].push(wave);
        if self.waiting[workgroup].len() == self.of_a_workgroup {
            let release = at + self.get(DeviceParameter::BarrierRelease);
            for wave in std::mem::take(&mut self.waiting[workgroup]) {
                self.prepare(wave, release);
            }
        }
    }

    /// The time, and trips of all waves until then, with the parts of those that they are in.
    fn progress(&self) -> [f64; 2] {
        let length = self.program.instructions.len().max(1) as f64;
        let parts: usize = self.waves.iter().map(|wave| wave.next).sum();
        [self.now, f64::from(self.trips) + parts as f64 / length]
    }
}

/// The first turn from `at` on.
#[inline]
fn aligned(at: f64) -> f64 {
    let below = (at / TURN_CLK) as u64 as f64 * TURN_CLK;
    if below < at { below + TURN_CLK } else { below }
}

/// How far an access of so many dwords per lane is on the way from the narrowest to the widest.
fn part(dwords: u32) -> f64 {
    (f64::from(dwords.clamp(1, 4)) - 1.0) / 3.0
}
