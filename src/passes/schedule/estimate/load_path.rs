//! The way of loads and stores: the address path of memory, the vector cache, and the levels after it, which
//! have so many bytes per clk while other compute units load. Which of them has a line follows from the rows
//! of tiles.

use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use super::program::{LoadWork, TripProgram};
use crate::codegen::target::{DeviceModel, DeviceParameter, LANES, PathQueue};

/// The path of a compute unit.
pub(super) struct LoadPath {
    /// When it takes the next instruction, and when it is done with those that it has.
    accepts: u64,
    free: f64,
    waiting: PathQueue,
    /// When the level after the vector cache has sent what it is asked for, and taken what is stored.
    level: f64,
    stores: f64,
    /// When lines arrive that are on their way from there, and their bytes.
    flight: VecDeque<[f64; 2]>,
    in_flight: f64,
    numbers: PathNumbers,
}

/// Fixed numbers in the form in which the path uses them.
struct PathNumbers {
    interval: f64,
    queue: usize,
    /// Bytes per clk to the registers, and those of loads of two dwords per lane.
    rates: [f64; 2],
    /// Clk for each byte of the lines of a load, and the least for a load straight into LDS.
    of_lines: f64,
    direct: f64,
    /// The most bytes on their way.
    most: f64,
    /// Bytes per clk from the level after the vector cache, and to it.
    level_rates: [f64; 2],
    /// Clk until a line is there that the vector cache has, that L2 has, and that neither has.
    latency: [f64; 3],
    /// For loads whose rows belong in so many sets of the vector cache, one more than the place in the list:
    /// the part of their lines that it keeps from one trip to the next.
    kept: SmallVec<[f64; 4]>,
}

impl LoadPath {
    /// An idle path for so many waves that run a program while so many compute units are busy.
    pub(super) fn new(program: &TripProgram, waves: u32, busy_units: u32, device: &DeviceModel) -> LoadPath {
        let get = |parameter| device.get(parameter);
        let far = match get(DeviceParameter::MallLatency) {
            0.0 => get(DeviceParameter::MemoryLatency),
            cached => cached,
        };
        // A pointer chase includes the turn of the wait and the address path of one line.
        let beside = get(DeviceParameter::Turn) + get(DeviceParameter::VectorInterval);
        let chases = [get(DeviceParameter::L1Latency), get(DeviceParameter::L2Latency), far];
        let numbers = PathNumbers {
            interval: get(DeviceParameter::VectorInterval),
            queue: get(DeviceParameter::VectorQueue) as usize,
            rates: [get(DeviceParameter::VectorBytes), get(DeviceParameter::VectorBytesPair)],
            of_lines: get(DeviceParameter::VectorLine) / get(DeviceParameter::L1Line),
            direct: get(DeviceParameter::DirectLds),
            most: get(DeviceParameter::VectorFlight),
            level_rates: [l2_share(busy_units, device), get(DeviceParameter::L2WriteRate)],
            latency: chases.map(|clk| clk - beside),
            kept: kept_lines(program, waves, device),
        };
        LoadPath {
            accepts: 0,
            free: 0.0,
            waiting: PathQueue::default(),
            level: 0.0,
            stores: 0.0,
            flight: VecDeque::new(),
            in_flight: 0.0,
            numbers,
        }
    }

    /// When it accepts an instruction, if it does not at `clk`.
    pub(super) fn full_until(&mut self, clk: u64) -> Option<u64> {
        if self.accepts > clk {
            return Some(self.accepts);
        }
        self.waiting.full_until(clk, self.numbers.queue)
    }

    /// A load to registers, issued at `clk` in a trip of its wave: when its data are there.
    pub(super) fn load(&mut self, clk: u64, load: LoadWork, trip: u32) -> f64 {
        self.bring(clk, load, trip, self.numbers.interval)
    }

    /// A load straight into LDS: when its data are there.
    pub(super) fn load_to_lds(&mut self, clk: u64, load: LoadWork, trip: u32) -> f64 {
        self.bring(clk, load, trip, self.numbers.direct)
    }

    /// A load that takes the path for so many clk at least.
    fn bring(&mut self, clk: u64, load: LoadWork, trip: u32, least: f64) -> f64 {
        let LoadWork { bytes, lines, lasts, sets } = load;
        let PathNumbers { rates, of_lines, most, level_rates, latency, .. } = self.numbers;
        let rate = rates[usize::from(bytes == 8)];
        let bytes = f64::from(LANES * bytes);
        let line_bytes = bytes * f64::from(lines);
        let service = (bytes / rate).max(least).max(line_bytes * of_lines);
        let is_new = trip.is_multiple_of(lasts);
        let kept = self.numbers.kept.get(sets as usize - 1).copied().filter(|_| !is_new).unwrap_or(0.0);
        let fetched = line_bytes * (1.0 - kept);
        self.accepts = clk + self.numbers.interval as u64;
        let mut start = (clk as f64).max(self.free);
        let mut done = start + service + latency[0];
        if fetched > 0.0 {
            while self.in_flight + fetched > most
                && let Some([there, bytes]) = self.flight.pop_front()
            {
                start = start.max(there);
                self.in_flight -= bytes;
            }
            self.level = self.level.max(start) + fetched / level_rates[0];
            done = (start + service).max(self.level) + latency[1 + usize::from(is_new)];
            self.flight.push_back([done, fetched]);
            self.in_flight += fetched;
        }
        self.waiting.push(start);
        self.free = start + service;
        done
    }

    /// A store of so many bytes per lane: when the level after the vector cache has it.
    pub(super) fn store(&mut self, clk: u64, bytes: u32) -> f64 {
        let bytes = f64::from(LANES * bytes);
        self.accepts = clk + self.numbers.interval as u64;
        let start = (clk as f64).max(self.free);
        self.waiting.push(start);
        self.free = start + bytes / self.numbers.rates[0];
        self.stores = self.stores.max(start) + bytes / self.numbers.level_rates[1];
        self.stores
    }
}

/// Bytes per clk that a compute unit has of L2 while so many of the device are busy.
pub(super) fn l2_share(busy_units: u32, device: &DeviceModel) -> f64 {
    let get = |parameter| device.get(parameter);
    let (units, dies) = (get(DeviceParameter::ComputeUnits), get(DeviceParameter::Dies));
    let busy_of_a_die = (f64::from(busy_units).clamp(1.0, units) / dies).ceil();
    let share = get(DeviceParameter::L2Rate) * units / dies / busy_of_a_die;
    share.min(get(DeviceParameter::L2RateAlone))
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
