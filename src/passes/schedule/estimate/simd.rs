//! A SIMD that runs a few trips: the waves of a compute unit that it holds issue their instructions in
//! order, and share its matrix core, its vector unit, and a quarter of what four SIMDs have in common, which
//! are LDS and the way to the caches, and of the level after them, which has so many bytes per clk while all
//! compute units load.
//!
//! It is time mode in small: the other SIMDs do the same at the same time, and it knows no addresses, so
//! there are no bank conflicts and no hits in the vector cache. Of waves that are ready at the same time the
//! oldest comes first.

use std::collections::VecDeque;

use super::program::{LoadWork, TripInstruction, TripProgram, UnitWork, VectorWork};
use super::steps::{TripFence, WaveHalves};
use crate::codegen::target::{DeviceModel, DeviceParameter, LANES, LDS_PORTS, SIMDS};

/// Trips before the ones that are counted: pipelines fill, and waves find their places.
const WARM_TRIPS: u32 = 3;

/// SIMDs at a port of LDS.
const SIMDS_OF_A_PORT: usize = SIMDS / LDS_PORTS as usize;

/// Trips that are counted.
const COUNTED_TRIPS: u32 = 4;

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

/// Where the lines come from that a trip brings into L2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LoadSource {
    /// The level after L2, which has enough bytes per clk.
    Beyond,
    /// The same, while all compute units load and half of their lines come from there.
    HalfBeyond,
}

/// What a compute unit has of the levels after its vector cache.
#[derive(Copy, Clone, Debug)]
struct SharedLevels {
    /// Bytes per clk.
    rate: f64,
    /// Clk until a line is there that L2 has, and until one is there that it has not.
    latency: [f64; 2],
    /// Clk until a line is there that the vector cache has, if it keeps what a trip loads until the next.
    kept: Option<f64>,
}

impl SharedLevels {
    fn of(
        program: &TripProgram,
        residents: Residents,
        source: LoadSource,
        device: &DeviceModel,
    ) -> SharedLevels {
        let get = |parameter| device.get(parameter);
        let (units, dies) = (get(DeviceParameter::ComputeUnits), get(DeviceParameter::Dies));
        let busy = f64::from(residents.busy_units).clamp(1.0, units);
        let busy_of_a_die = (busy / dies).ceil();
        let alone = get(DeviceParameter::L2RateAlone);
        let share = |all_busy: f64, others: f64, all: f64| (all_busy * all / others).min(alone);
        let rate = share(get(DeviceParameter::L2Rate), busy_of_a_die, units / dies);
        let (beyond, latency) = match get(DeviceParameter::MallLatency) {
            0.0 => (get(DeviceParameter::MemoryRate), get(DeviceParameter::MemoryLatency)),
            cached => (get(DeviceParameter::MallRate), cached),
        };
        let (rate, far) = match source {
            LoadSource::Beyond => (rate, latency),
            LoadSource::HalfBeyond => {
                let rate = get(DeviceParameter::L2Rate).min(2.0 * beyond);
                (rate, latency.max(get(DeviceParameter::MemoryLatencyLoaded)))
            }
        };
        // A pointer chase includes the turn of the wait and the address path of one line.
        let beside = get(DeviceParameter::Turn) + get(DeviceParameter::VectorInterval);
        let waves = f64::from(residents.workgroups * residents.waves);
        // Rows of a tensor lie a multiple of all sets apart, so that all lines of a tile belong in one.
        let of_a_set = get(DeviceParameter::L1Bytes) / get(DeviceParameter::L1Sets);
        let is_kept = f64::from(program.loaded_lines()) * waves <= of_a_set;
        SharedLevels {
            rate,
            latency: [get(DeviceParameter::L2Latency) - beside, far - beside],
            kept: is_kept.then(|| get(DeviceParameter::L1Latency) - beside),
        }
    }
}

/// A queue of instructions in front of a path.
#[derive(Default)]
struct IssueQueue {
    /// When each of them leaves it.
    waiting: VecDeque<f64>,
}

impl IssueQueue {
    /// The first time from `at` on at which fewer than `most` are in it.
    fn room(&mut self, at: f64, most: usize) -> f64 {
        while self.waiting.front().is_some_and(|&end| end <= at) {
            self.waiting.pop_front();
        }
        match self.waiting.len().checked_sub(most) {
            Some(over) => self.waiting.get(over).map_or(at, |&end| at.max(end)),
            None => at,
        }
    }
}

struct ResidentWave {
    workgroup: usize,
    /// When it may issue its next instruction; never while it waits at a barrier.
    at: f64,
    next: usize,
    /// It is past the wait in front of that.
    waited: bool,
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

/// The SIMD.
struct TripSimd<'a> {
    program: &'a TripProgram,
    residents: Residents,
    /// The time, and trips that waves have finished.
    now: f64,
    trips: u32,
    device: &'static DeviceModel,
    /// Whether a workgroup has no other waves.
    one_wave: bool,
    /// Trips whose results are kept.
    depth: usize,
    waves: Vec<ResidentWave>,
    /// Waves of each workgroup that wait at a barrier.
    waiting: Vec<Vec<usize>>,
    /// When its units take the next instruction.
    matrix: f64,
    vector: f64,
    memory: f64,
    /// When vector instructions may stand beside the matrix instruction.
    beside: f64,
    /// When those end that share turns with the ones that keep the vector unit busy, if these may share.
    second: Option<f64>,
    /// When LDS does, and when its buses are free.
    lds: f64,
    lds_reads: f64,
    lds_writes: f64,
    lds_queue: IssueQueue,
    vector_path: f64,
    vector_queue: IssueQueue,
    /// The level after the vector cache, its bytes per clk and latency, and what is on its way from there:
    /// when it arrives, and bytes.
    level: f64,
    levels: SharedLevels,
    flight: VecDeque<[f64; 2]>,
    in_flight: f64,
    stores: f64,
}

/// Clk of a trip of one workgroup in the steady state of all; nothing if waves wait for each other in vain.
pub(crate) fn trip_clk(
    program: &TripProgram,
    residents: Residents,
    source: LoadSource,
    device: &'static DeviceModel,
) -> Option<f64> {
    let mut simd = TripSimd::new(program, residents, source, device);
    let waves = simd.waves.len() as u32;
    let mut from = None;
    // Waves that others overtake for ever do not hold up the count.
    let warm = WARM_TRIPS.max(program.longest + 1);
    let counted = COUNTED_TRIPS.next_multiple_of(program.line_trips());
    while simd.trips < (warm + counted) * waves {
        let wave = simd.earliest()?;
        simd.issue(wave);
        if from.is_none() && simd.trips >= warm * waves {
            from = Some(simd.progress());
        }
    }
    let ([from, before], [to, after]) = (from?, simd.progress());
    // All waves of a workgroup make one trip of it.
    let waves_of_a_workgroup = f64::from(residents.waves) / SIMDS as f64;
    Some((to - from) * waves_of_a_workgroup / (after - before))
}

impl<'a> TripSimd<'a> {
    fn new(
        program: &'a TripProgram,
        residents: Residents,
        source: LoadSource,
        device: &'static DeviceModel,
    ) -> TripSimd<'a> {
        let Residents { workgroups, waves, halves, .. } = residents.on_a_simd();
        let depth = program.longest as usize + 1;
        let engines = device.get(DeviceParameter::EnginesPerDie) * device.get(DeviceParameter::Dies);
        let per_engine = device.get(DeviceParameter::ComputeUnits) / engines;
        let launch = device.get(DeviceParameter::LaunchInterval) * per_engine;
        let wave = |number: u32| {
            let (workgroup, own) = (number / waves, number % waves);
            let is_late = halves == WaveHalves::Staggered && own >= waves / 2;
            ResidentWave {
                workgroup: workgroup as usize,
                at: launch * f64::from(workgroup),
                next: 0,
                waited: false,
                trip: 0,
                barriers_before: u32::from(is_late),
                results: vec![0.0; program.instructions.len() * depth],
                loads: VecDeque::new(),
                shared: 0.0,
                direct: 0.0,
            }
        };
        TripSimd {
            program,
            residents: residents.on_a_simd(),
            one_wave: residents.waves == 1,
            now: 0.0,
            trips: 0,
            device,
            depth,
            waves: (0..workgroups * waves).map(wave).collect(),
            waiting: vec![Vec::new(); workgroups as usize],
            matrix: 0.0,
            vector: 0.0,
            memory: 0.0,
            beside: 0.0,
            second: None,
            lds: 0.0,
            lds_reads: 0.0,
            lds_writes: 0.0,
            lds_queue: IssueQueue::default(),
            vector_path: 0.0,
            vector_queue: IssueQueue::default(),
            level: 0.0,
            levels: SharedLevels::of(program, residents, source, device),
            flight: VecDeque::new(),
            in_flight: 0.0,
            stores: 0.0,
        }
    }

    /// The wave that comes next: the oldest of those that are ready first.
    fn earliest(&self) -> Option<usize> {
        let ready = self.waves.iter().enumerate().filter(|(_, wave)| wave.at.is_finite());
        ready.min_by(|one, another| one.1.at.total_cmp(&another.1.at)).map(|(wave, _)| wave)
    }

    fn get(&self, parameter: DeviceParameter) -> f64 {
        self.device.get(parameter)
    }

    /// When an instruction's operands are there.
    fn ready(&self, wave: usize, instruction: &TripInstruction) -> f64 {
        let own = &self.waves[wave];
        let made = instruction.operands.iter().filter_map(|operand| {
            let trip = own.trip.checked_sub(operand.trips)?;
            let made = own.results[operand.from as usize * self.depth + trip as usize % self.depth];
            // The next matrix instruction with the same accumulator follows at once.
            let maker = self.program.instructions[operand.from as usize].work;
            Some(match (maker, instruction.work) {
                (UnitWork::Matrix(_), UnitWork::Matrix(_)) => made,
                (UnitWork::Matrix(work), _) => made + work.results[1] - work.results[0],
                _ => made,
            })
        });
        made.fold(own.at, f64::max)
    }

    /// When a unit takes an instruction that is ready at `at`.
    fn accepted(&mut self, wave: usize, work: UnitWork, at: f64) -> f64 {
        match work {
            UnitWork::Matrix(_) => at.max(self.matrix).max(self.vector),
            UnitWork::Vector(VectorWork { pairs, overlaps, .. }) => {
                let at = at.max(if overlaps { self.beside } else { self.matrix });
                match self.second.filter(|_| pairs) {
                    Some(second) => at.max(self.vector.min(second)),
                    None => at.max(self.vector).max(self.second.unwrap_or(at)),
                }
            }
            UnitWork::Turns(_) => at,
            // Others wait at barriers for what has been loaded, a wave that is alone before it reads.
            UnitWork::ReadShared(_) if self.one_wave && self.waves[wave].direct > at => {
                self.waves[wave].direct
            }
            UnitWork::ReadShared(_) | UnitWork::WriteShared(_) => {
                let most = self.device.count(DeviceParameter::LdsQueue) as usize / SIMDS_OF_A_PORT;
                self.lds_queue.room(at.max(self.memory), most)
            }
            UnitWork::Load(_) | UnitWork::LoadToShared(_) | UnitWork::Store(_) => {
                let most = self.device.count(DeviceParameter::VectorQueue) as usize / SIMDS;
                self.vector_queue.room(at.max(self.memory), most)
            }
            UnitWork::TripFence(fence) => self.passed(wave, fence, at),
        }
    }

    /// When a wave is past what a fence makes it wait for, other waves aside.
    fn passed(&self, wave: usize, fence: TripFence, at: f64) -> f64 {
        let own = &self.waves[wave];
        match fence {
            TripFence::SharedMemoryBarrier => at.max(own.shared).max(own.direct),
            TripFence::WorkgroupBarrier => at,
            TripFence::Shared => at.max(own.shared),
            TripFence::Loads(under_way) => {
                let over = own.loads.len().checked_sub(1 + under_way as usize);
                over.and_then(|over| own.loads.get(over)).map_or(at, |&done| at.max(done))
            }
        }
    }

    /// Issues the next instruction of a wave, or finds out when it can be issued.
    fn issue(&mut self, wave: usize) {
        self.now = self.waves[wave].at;
        if self.waves[wave].barriers_before > 0 {
            self.waves[wave].barriers_before -= 1;
            let at = self.waves[wave].at;
            return self.meet(wave, at);
        }
        let program = self.program;
        let number = self.waves[wave].next;
        let Some(instruction) = program.instructions.get(number) else {
            let branch = self.get(DeviceParameter::TakenBranch);
            let own = &mut self.waves[wave];
            self.trips += 1;
            (own.next, own.trip, own.at) = (0, own.trip + 1, own.at + branch);
            return;
        };
        let ready = self.ready(wave, instruction);
        if instruction.waits && !self.waves[wave].waited {
            let fence = match instruction.work {
                UnitWork::TripFence(fence) => self.passed(wave, fence, ready),
                _ => ready,
            };
            let turn = self.get(DeviceParameter::Turn);
            let own = &mut self.waves[wave];
            (own.waited, own.at) = (true, fence + turn);
            return;
        }
        let at = self.accepted(wave, instruction.work, ready);
        if at > self.waves[wave].at {
            self.waves[wave].at = at;
            return;
        }
        let (held, done) = self.execute(wave, instruction.work, at);
        let own = &mut self.waves[wave];
        own.results[number * self.depth + own.trip as usize % self.depth] = done;
        own.next += 1;
        own.waited = false;
        own.at = held;
        if let UnitWork::TripFence(TripFence::SharedMemoryBarrier | TripFence::WorkgroupBarrier) =
            instruction.work
        {
            self.meet(wave, held);
        }
    }

    /// When the wave may go on, and when the result is there.
    fn execute(&mut self, wave: usize, work: UnitWork, at: f64) -> (f64, f64) {
        let turn = self.get(DeviceParameter::Turn);
        match work {
            UnitWork::Matrix(work) => {
                self.matrix = at + work.occupancy;
                self.vector = self.vector.max(at + work.issue);
                self.second = None;
                self.beside = at + work.blocks;
                self.memory = self.memory.max(at + work.memory);
                (at + work.issue, at + work.results[0])
            }
            UnitWork::Vector(VectorWork { clk, pairs, .. }) => {
                match &mut self.second {
                    Some(second) if at < self.vector => *second = at + clk,
                    second => {
                        self.vector = at + clk;
                        *second = pairs.then_some(at);
                    }
                }
                (at + clk, at + clk)
            }
            UnitWork::Turns(turns) => (at + turn * f64::from(turns), at),
            UnitWork::ReadShared(dwords) => {
                let done = self.shared(wave, at, dwords, DeviceParameter::LdsPortRead);
                (at + turn, done)
            }
            UnitWork::WriteShared(dwords) => {
                let held = at + self.get(DeviceParameter::LdsWriteIssue) + turn * f64::from(dwords);
                let done = self.shared(wave, at, dwords, DeviceParameter::LdsPortWrite);
                (held.max(self.lds_writes), done)
            }
            UnitWork::Load(load) => {
                let done = self.load(wave, at, load, self.get(DeviceParameter::VectorInterval));
                (at + turn, done)
            }
            UnitWork::LoadToShared(load) => {
                let done = self.load(wave, at, load, self.get(DeviceParameter::DirectLds));
                self.waves[wave].direct = self.waves[wave].direct.max(done);
                (at + turn, done)
            }
            UnitWork::Store(dwords) => {
                let bytes = of_all(dwords);
                self.memory = at + turn;
                self.vector_path = self.vector_path.max(at) + bytes / self.get(DeviceParameter::VectorBytes);
                self.vector_queue.waiting.push_back(self.vector_path);
                self.stores = self.stores.max(at) + bytes / self.get(DeviceParameter::L2WriteRate);
                (at + turn, self.stores)
            }
            UnitWork::TripFence(_) => (at + turn, at),
        }
    }

    /// An access of LDS: when it is over.
    fn shared(&mut self, wave: usize, at: f64, dwords: u32, port: DeviceParameter) -> f64 {
        let clk = of_all(dwords) / (f64::from(LDS_PORTS) * self.get(port));
        let writes = port == DeviceParameter::LdsPortWrite;
        let turn = self.get(DeviceParameter::Turn);
        let part = (f64::from(dwords.clamp(1, 4)) - 1.0) / 3.0;
        let latency = match writes {
            true => self.get(DeviceParameter::LdsWriteLatency),
            false => {
                let narrow = self.get(DeviceParameter::LdsLatency);
                narrow + part * (self.get(DeviceParameter::LdsLatencyWide) - narrow)
            }
        };
        let hold = self.get(DeviceParameter::LdsQueueHold);
        self.memory = at + turn;
        let start = at.max(self.lds);
        self.lds = start + self.get(DeviceParameter::LdsInterval) * SIMDS as f64;
        let bus = if writes { &mut self.lds_writes } else { &mut self.lds_reads };
        let end = start.max(*bus) + clk;
        *bus = end;
        // A read keeps its place after it has been served.
        let place = if writes { end } else { end + (hold - clk).max(0.0) * part };
        self.lds_queue.waiting.push_back(place);
        let done = end + (latency - clk - turn).max(0.0);
        let own = &mut self.waves[wave];
        own.shared = own.shared.max(done);
        done
    }

    /// A load of a wave on each SIMD, one after the other: when its data are there. Loads come back in their
    /// order.
    fn load(&mut self, wave: usize, at: f64, load: LoadWork, least: f64) -> f64 {
        let LoadWork { dwords, lines, lasts } = load;
        let bytes = f64::from(4 * LANES * dwords);
        let rate = match dwords {
            2 => self.get(DeviceParameter::VectorBytesPair),
            _ => self.get(DeviceParameter::VectorBytes),
        };
        let (clk, bytes) = ((bytes / rate).max(least), bytes * f64::from(lines));
        self.memory = at + self.get(DeviceParameter::Turn);
        let SharedLevels { rate: level_rate, latency: [near, far], kept } = self.levels;
        let is_new = self.waves[wave].trip.is_multiple_of(lasts);
        let latency = if is_new { far } else { near };
        let kept = kept.filter(|_| !is_new);
        let most = self.get(DeviceParameter::VectorFlight);
        let mut arrival = at;
        for number in 0..SIMDS {
            let mut start = at.max(self.vector_path);
            if let Some(latency) = kept {
                if number == 0 {
                    self.vector_queue.waiting.push_back(start);
                }
                self.vector_path = start + clk;
                arrival = start + clk + latency;
                continue;
            }
            while self.in_flight + bytes > most
                && let Some([there, bytes]) = self.flight.pop_front()
            {
                start = start.max(there);
                self.in_flight -= bytes;
            }
            if number == 0 {
                self.vector_queue.waiting.push_back(start);
            }
            self.vector_path = start + clk;
            arrival = (start + clk).max(self.level) + latency;
            self.level = self.level.max(start) + bytes / level_rate;
            self.flight.push_back([arrival, bytes]);
            self.in_flight += bytes;
        }
        let own = &mut self.waves[wave];
        let done = own.loads.back().map_or(arrival, |&before| arrival.max(before));
        own.loads.push_back(done);
        done
    }

    /// A wave has come to a barrier.
    fn meet(&mut self, wave: usize, at: f64) {
        let workgroup = self.waves[wave].workgroup;
        self.waves[wave].at = f64::INFINITY;
        self.waiting[workgroup].push(wave);
        if self.waiting[workgroup].len() == self.residents.waves as usize {
            let release = at + self.get(DeviceParameter::BarrierRelease);
            for wave in std::mem::take(&mut self.waiting[workgroup]) {
                self.waves[wave].at = release;
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

impl Residents {
    /// Those of one SIMD of four. Workgroups of fewer waves than SIMDs are spread over these.
    fn on_a_simd(self) -> Residents {
        let Residents { workgroups, waves, .. } = self;
        let simds = SIMDS as u32;
        match waves < simds {
            true => Residents { workgroups: (workgroups * waves).div_ceil(simds), waves: 1, ..self },
            false => Residents { waves: waves.div_ceil(simds), ..self },
        }
    }
}

/// Bytes of an access of so many dwords per lane, by a wave on each SIMD.
fn of_all(dwords: u32) -> f64 {
    f64::from(4 * LANES * dwords) * SIMDS as f64
}
