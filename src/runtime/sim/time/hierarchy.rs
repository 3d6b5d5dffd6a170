//! The caches and memory that a compute unit accesses: where a line comes from, when it arrives, and how much
//! shared bandwidth it takes.
//!
//! A level is a latency and a server that transfers so many bytes per clk. L1, the scalar cache and the lines
//! that the compute unit itself has brought into the shared levels are tags over addresses. All compute
//! units use the shared levels: each has its share of their size and bandwidth, and some of the lines that it
//! misses ([`Sharing`]) are brought by others. That costs it no bandwidth, but the line does not arrive any
//! sooner: a compute unit that brings a line asks for it at the same time as those that wait for it, and one
//! that is late catches up with the others while they wait. So the first access to a line always takes as
//! long as from memory, and company never makes a workgroup faster than it is alone.
//!
//! A launch is taken as one of many: the Infinity Cache has what an earlier one has left. That is everything
//! that the launch loads from if it is small enough, and nothing if it is much too large, because what comes
//! last displaces what comes first. What is only written takes no room there and goes to memory: the cache
//! has the contents of memory, and no lines that differ from it (CDNA 3 white paper, "cannot hold dirty
//! data"; GT: K = 16384 runs as fast as K = 8192, though its factors alone are as large as the cache).
//!
//! Vector caches and L2 run at the clock of the compute units. What lies below them does not: its latencies
//! and rates are those of the greatest clock, in time.

use super::cache::CacheTags;
use super::translation::TranslatedPages;
use crate::codegen::target::ParameterSet;
use crate::codegen::target::{DeviceModel, DeviceParameter, SCALAR_LINE, SHARED_LINE, SHARED_WAYS};

/// How much of what compute units read is the same.
#[derive(Copy, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Sharing {
    /// Distinct lines that a die reads, divided by the sum over its compute units.
    pub die: f64,
    /// Distinct lines that the device reads, divided by the sum over its dies.
    pub device: f64,
}

impl Sharing {
    /// No compute unit reads what another one reads.
    pub const NONE: Sharing = Sharing { die: 1.0, device: 1.0 };
}

/// How many compute units work at the same time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Active {
    pub device: u64,
    pub die: u64,
}

/// What a launch has around it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct LaunchSurroundings {
    /// Clock of the compute units, in MHz.
    pub clock: f64,
    /// Bytes of the memories that it loads from.
    pub bytes_read: u64,
}

/// Traffic of the compute unit.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Traffic {
    /// Bytes that lanes loaded.
    pub loaded: u64,
    /// Bytes that lanes stored.
    pub stored: u64,
    /// Lines that loads looked up in the vector cache.
    pub l1_lines: u64,
    /// Those of them that were there.
    pub l1_hits: u64,
    /// Bytes from L2, including those that L2 had to load.
    pub l2_bytes: u64,
    /// Bytes from the Infinity Cache.
    pub mall_bytes: u64,
    /// Bytes read from HBM.
    pub memory_read: u64,
    /// Bytes written to HBM.
    pub memory_written: u64,
}

impl Traffic {
    /// What has come since there was as much as `earlier`.
    pub(super) fn since(&self, earlier: &Traffic) -> Traffic {
        self.with(earlier, |now, before| now - before)
    }

    /// Adds other traffic.
    pub(super) fn join(&mut self, other: &Traffic) {
        *self = self.with(other, |one, another| one + another);
    }

    /// Adds what has come since there was as much as `earlier` again so many times.
    pub(super) fn repeat(&mut self, earlier: &Traffic, times: u64) {
        *self = self.with(earlier, |now, before| now + (now - before) * times);
    }

    fn with(&self, other: &Traffic, both: impl Fn(u64, u64) -> u64) -> Traffic {
        Traffic {
            loaded: both(self.loaded, other.loaded),
            stored: both(self.stored, other.stored),
            l1_lines: both(self.l1_lines, other.l1_lines),
            l1_hits: both(self.l1_hits, other.l1_hits),
            l2_bytes: both(self.l2_bytes, other.l2_bytes),
            mall_bytes: both(self.mall_bytes, other.mall_bytes),
            memory_read: both(self.memory_read, other.memory_read),
            memory_written: both(self.memory_written, other.memory_written),
        }
    }
}

/// Bytes per clk that a compute unit has of the levels below its own caches.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct LevelRates {
    pub l2: f64,
    pub l2_writes: f64,
    /// Where there is one.
    pub mall: Option<f64>,
    pub memory: f64,
    /// Times that a byte written to memory takes as long as one that is read.
    pub write_cost: f64,
}

/// Transfers this many bytes per clk.
#[derive(Debug)]
struct Server {
    rate: f64,
    free: f64,
}

impl Server {
    fn new(rate: f64) -> Server {
        Server { rate, free: 0.0 }
    }

    /// When the transfer starts.
    #[inline]
    fn transfer(&mut self, at: f64, bytes: u64) -> f64 {
        let start = at.max(self.free);
        self.free = start + bytes as f64 / self.rate;
        start
    }
}

/// Lines that a cache has and that are still on their way to it. Where two lines share a slot the older one
/// counts as arrived. `T` is a time: clk, or a part of it.
#[derive(Debug)]
pub(super) struct OnTheWay<T> {
    /// Number of a line, and when it arrives.
    slots: Vec<(u64, T)>,
}

impl<T: Copy + Default + PartialOrd> OnTheWay<T> {
    /// More than the lines that can be in flight.
    const SLOTS: usize = 1 << 13;

    /// Nothing is.
    pub(super) fn new() -> OnTheWay<T> {
        OnTheWay { slots: vec![(0, T::default()); OnTheWay::<T>::SLOTS] }
    }

    #[inline]
    fn slot(&mut self, line: u64) -> &mut (u64, T) {
        const SLOTS: usize = OnTheWay::<u64>::SLOTS;
        let page = line / SLOTS as u64;
        &mut self.slots[(line ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS]
    }

    /// A line has been asked for and will arrive then.
    #[inline]
    pub(super) fn note(&mut self, line: u64, there: T) {
        *self.slot(line) = (line, there);
    }

    /// When an access gets a line that the cache would answer at `answer` if it had arrived.
    #[inline]
    pub(super) fn wait(&mut self, line: u64, answer: T) -> T {
        let (noted, there) = *self.slot(line);
        if noted == line && there > answer { there } else { answer }
    }
}

/// The levels below the vector memory path and the scalar unit.
#[derive(Debug)]
pub(super) struct Hierarchy {
    l1: CacheTags,
    l1_line: u64,
    scalar: CacheTags,
    l2: CacheTags,
    pages: TranslatedPages,
    to_l1: OnTheWay<f64>,
    to_scalar: OnTheWay<f64>,
    to_l2: OnTheWay<f64>,
    written: CacheTags,
    mall: Option<CacheTags>,
    l2_server: Server,
    l2_writes: Server,
    /// The part of all lines that the Infinity Cache has from an earlier launch.
    resident: f64,
    mall_server: Server,
    memory: Server,
    /// Everything that L2 does not have passes here, as fast as if the compute unit were alone.
    beyond_l2: Server,
    write_cost: f64,
    /// From the end of the address path to the data.
    latency: Latency,
    sharing: Sharing,
    pub traffic: Traffic,
    pub used: ParameterSet,
}

#[derive(Debug)]
struct Latency {
    l1: f64,
    l2: f64,
    mall: f64,
    memory: f64,
    atomic: f64,
    scalar_hit: f64,
    scalar_miss: f64,
}

impl Hierarchy {
    /// Cold caches of one of `active` compute units.
    pub(super) fn new(
        device: &DeviceModel,
        active: Active,
        sharing: Sharing,
        launch: LaunchSurroundings,
    ) -> Hierarchy {
        let get = |parameter| device.at(parameter, launch.clock);
        let bytes = |parameter| device.count(parameter);
        let units = get(DeviceParameter::ComputeUnits);
        let (busy, in_die) = (active.device.max(1) as f64, active.die.max(1) as f64);
        let alone = get(DeviceParameter::L2RateAlone);
        let [reach, end] = [DeviceParameter::MallReach, DeviceParameter::MallEnd].map(get);
        let resident = if end > reach { (end - launch.bytes_read as f64) / (end - reach) } else { 0.0 };
        let alone_and_loaded =
            [DeviceParameter::MemoryLatency, DeviceParameter::MemoryLatencyLoaded].map(get);
        let load = if units > 1.0 { (busy - 1.0) / (units - 1.0) } else { 0.0 };
        let memory = alone_and_loaded[0] + load.min(1.0) * (alone_and_loaded[1] - alone_and_loaded[0]);
        let share = |all_busy: f64, others: f64, all: f64| (all_busy * all / others).min(alone).max(0.001);
        let die_units = units / get(DeviceParameter::Dies);
        // Lines that others read, too, come faster than those that nobody else wants.
        let [distinct, shared] = [DeviceParameter::L2Rate, DeviceParameter::L2RateShared].map(get);
        let l2_rate = 1.0 / (sharing.die / distinct + (1.0 - sharing.die) / shared);
        let l2_share = get(DeviceParameter::L2Bytes) / (in_die * sharing.die).max(1.0);
        let mall_share = get(DeviceParameter::MallBytes) / (busy * sharing.die * sharing.device).max(1.0);
        // A pointer chase includes the turn of the wait and the address path of one line.
        let beside = get(DeviceParameter::Turn) + get(DeviceParameter::VectorInterval);
        let l1_line = bytes(DeviceParameter::L1Line);
        let l1_ways = bytes(DeviceParameter::L1Bytes) / (l1_line * bytes(DeviceParameter::L1Sets)).max(1);
        Hierarchy {
            l1: CacheTags::new(bytes(DeviceParameter::L1Bytes), l1_line, l1_ways),
            l1_line,
            scalar: CacheTags::new(bytes(DeviceParameter::ScalarBytes), SCALAR_LINE, SHARED_WAYS),
            l2: CacheTags::new(l2_share as u64, SHARED_LINE, SHARED_WAYS),
            pages: TranslatedPages::new(device, launch.clock),
            to_l1: OnTheWay::new(),
            to_scalar: OnTheWay::new(),
            to_l2: OnTheWay::new(),
            written: CacheTags::new(l2_share as u64, SHARED_LINE, SHARED_WAYS),
            mall: (mall_share >= 1.0).then(|| CacheTags::new(mall_share as u64, SHARED_LINE, SHARED_WAYS)),
            l2_server: Server::new(share(l2_rate, in_die, die_units)),
            l2_writes: Server::new(share(get(DeviceParameter::L2WriteRate), in_die, die_units)),
            resident: resident.clamp(0.0, 1.0),
            mall_server: Server::new(share(get(DeviceParameter::MallRate), busy, units)),
            memory: Server::new(share(get(DeviceParameter::MemoryRate), busy, units)),
            beyond_l2: Server::new(share(get(DeviceParameter::MemoryRate), 1.0, units)),
            write_cost: get(DeviceParameter::MemoryRate) / get(DeviceParameter::MemoryWriteRate),
            latency: Latency {
                l1: get(DeviceParameter::L1Latency) - beside,
                l2: get(DeviceParameter::L2Latency) - beside,
                mall: get(DeviceParameter::MallLatency) - beside,
                memory: memory - beside,
                atomic: get(DeviceParameter::AtomicLatency) - beside,
                scalar_hit: get(DeviceParameter::ScalarHit) - get(DeviceParameter::Turn),
                scalar_miss: get(DeviceParameter::ScalarMiss) - get(DeviceParameter::Turn),
            },
            sharing,
            traffic: Traffic::default(),
            used: ParameterSet::default(),
        }
    }

    /// What the compute unit has of each level while the others take theirs.
    pub(super) fn rates(&self) -> LevelRates {
        LevelRates {
            l2: self.l2_server.rate,
            l2_writes: self.l2_writes.rate,
            mall: self.mall.as_ref().map(|_| self.mall_server.rate),
            memory: self.memory.rate,
            write_cost: self.write_cost,
        }
    }

    /// Bytes of a line of the vector cache.
    pub(super) fn line(&self) -> u64 {
        self.l1_line
    }

    /// Looks for vector cache line number `line`, which leaves the address path at `at`; returns when the
    /// data arrives, if the cache has it or waits for it.
    #[inline]
    pub(super) fn hit(&mut self, at: f64, line: u64, bypasses_l1: bool) -> Option<f64> {
        self.traffic.l1_lines += 1;
        if bypasses_l1 || !self.l1.touch(line) {
            return None;
        }
        self.traffic.l1_hits += 1;
        Some(self.to_l1.wait(line, at + self.latency.l1))
    }

    /// Loads a line that the vector cache does not have.
    #[inline]
    pub(super) fn fetch(&mut self, at: f64, line: u64, bypasses_l1: bool) -> f64 {
        self.used.join(L2);
        self.traffic.l2_bytes += self.l1_line;
        let start = self.l2_server.transfer(at, self.l1_line);
        let there =
            self.below(start, line.wrapping_mul(self.l1_line) / SHARED_LINE) + self.translate(at, line);
        if !bypasses_l1 {
            self.to_l1.note(line, there);
        }
        there
    }

    /// Clk for which line number `line` of the vector cache waits for the place of its page.
    #[inline]
    fn translate(&mut self, at: f64, line: u64) -> f64 {
        let wait = self.pages.wait(at, line.wrapping_mul(self.l1_line));
        if wait > 0.0 {
            self.used.join(TRANSLATION);
        }
        wait
    }

    /// A line of L2 or of the levels below it, asked for at `at`.
    fn below(&mut self, at: f64, line: u64) -> f64 {
        if self.l2.touch(line) {
            return self.to_l2.wait(line, at + self.latency.l2);
        }
        let there = self.below_l2(at, line);
        self.to_l2.note(line, there);
        there
    }

    /// A line that L2 does not have.
    fn below_l2(&mut self, at: f64, line: u64) -> f64 {
        let seen = self.mall.as_mut().is_some_and(|mall| mall.touch(line)) || self.is_resident(line);
        let latency = if seen { self.latency.mall } else { self.latency.memory };
        let at = self.beyond_l2.transfer(at, SHARED_LINE);
        if brought_by_others(line, self.sharing.die) {
            return at + latency;
        }
        if self.mall.is_some() && (seen || brought_by_others(!line, self.sharing.device)) {
            self.used.join(MALL);
            self.traffic.mall_bytes += SHARED_LINE;
            return self.mall_server.transfer(at, SHARED_LINE) + latency;
        }
        self.used.join(MEMORY);
        self.traffic.memory_read += SHARED_LINE;
        // What comes from memory takes the same way.
        let at = if self.mall.is_some() { self.mall_server.transfer(at, SHARED_LINE) } else { at };
        self.memory.transfer(at, SHARED_LINE) + self.latency.memory
    }

    /// Stores `bytes` bytes of a line; returns when the store is acknowledged.
    pub(super) fn store(&mut self, at: f64, line: u64, bytes: u32) -> f64 {
        let shared = line.wrapping_mul(self.l1_line) / SHARED_LINE;
        self.used.join(WRITE);
        let mut start = self.l2_writes.transfer(at, u64::from(bytes).next_multiple_of(WRITE_REQUEST));
        self.l2.touch(shared);
        if !self.written.touch(shared) {
            let cost = (SHARED_LINE as f64 * self.write_cost) as u64;
            self.used.join(MEMORY_WRITE);
            self.traffic.memory_written += SHARED_LINE;
            start = self.beyond_l2.transfer(start, cost);
            if self.mall.is_some() {
                // All that memory gets passes it.
                start = self.mall_server.transfer(start, cost);
            }
            start = self.memory.transfer(start, cost);
        }
        start + self.latency.l2 + self.translate(at, line)
    }

    /// Whether the Infinity Cache has a line from an earlier launch.
    fn is_resident(&self, line: u64) -> bool {
        self.resident > 0.0 && brought_by_others(line.rotate_left(32), 1.0 - self.resident)
    }

    /// An atomic operation on a line, in L2.
    pub(super) fn atomic(&mut self, at: f64, line: u64, bytes: u32) -> f64 {
        let there = self.store(at, line, bytes) - self.latency.l2;
        there + self.latency.atomic
    }

    /// A scalar load of bytes from an address on, or of none; returns when the registers are written.
    pub(super) fn scalar(&mut self, at: f64, range: Option<(u64, u64)>) -> f64 {
        let mut done: f64 = at + self.latency.scalar_hit;
        let Some((address, bytes)) = range else { return done };
        let last = address.saturating_add(bytes.max(1) - 1);
        for line in address / SCALAR_LINE..=last / SCALAR_LINE {
            if self.scalar.touch(line) {
                done = self.to_scalar.wait(line, done);
            } else {
                self.used.mark(DeviceParameter::ScalarMiss);
                let arrival = self.below(at, line * SCALAR_LINE / SHARED_LINE) - self.latency.l2;
                self.to_scalar.note(line, arrival + self.latency.scalar_miss);
                done = done.max(arrival + self.latency.scalar_miss);
            }
        }
        done
    }
}

const L2: ParameterSet =
    ParameterSet::of(&[DeviceParameter::L2Latency, DeviceParameter::L2Rate, DeviceParameter::L2RateShared]);
const MALL: ParameterSet = ParameterSet::of(&[
    DeviceParameter::MallReach,
    DeviceParameter::MallEnd,
    DeviceParameter::MallLatency,
    DeviceParameter::MallRate,
]);
const MEMORY: ParameterSet = ParameterSet::of(&[
    DeviceParameter::MemoryLatency,
    DeviceParameter::MemoryLatencyLoaded,
    DeviceParameter::MemoryRate,
]);
const TRANSLATION: ParameterSet =
    ParameterSet::of(&[DeviceParameter::TranslationPages, DeviceParameter::TranslationLatency]);
const WRITE: ParameterSet = ParameterSet::of(&[DeviceParameter::L2WriteRate]);
const MEMORY_WRITE: ParameterSet = ParameterSet::of(&[DeviceParameter::MemoryWriteRate]);

/// Bytes of a write to L2: a channel takes one per clk, however little of it is written (CDNA 3 white paper:
/// 64 bytes per clk and channel).
const WRITE_REQUEST: u64 = 64;

/// True for the part `1 - own` of all lines, always the same ones.
fn brought_by_others(line: u64, own: f64) -> bool {
    if own >= 1.0 {
        return false;
    }
    let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1u64 << 53) as f64 >= own
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Active = Active { device: 1, die: 1 };
    /// More than the Infinity Cache holds.
    const COLD: LaunchSurroundings = LaunchSurroundings { clock: 2100.0, bytes_read: 1 << 40 };

    /// Caches that know where the first page is.
    fn mi300x(active: Active, sharing: Sharing, launch: LaunchSurroundings) -> Hierarchy {
        let mut hierarchy = Hierarchy::new(DeviceModel::MI300X, active, sharing, launch);
        hierarchy.pages.wait(-1e6, 0);
        hierarchy
    }

    impl Hierarchy {
        fn load(&mut self, at: f64, line: u64, bypasses_l1: bool) -> f64 {
            self.hit(at, line, bypasses_l1).unwrap_or_else(|| self.fetch(at, line, bypasses_l1))
        }
    }

    #[test]
    fn memory_keeps_its_time_when_the_clock_falls() {
        let slow = |clock| {
            let around = LaunchSurroundings { clock, ..COLD };
            mi300x(ALONE, Sharing::NONE, around).load(0.0, 5, false)
        };
        // 200 clk in L2 and before it, the rest half as many.
        assert_eq!((slow(2100.0), slow(1050.0)), (857.0, 200.0 + 657.0 / 2.0));
    }

    #[test]
    fn what_fits_into_the_infinity_cache_is_there() {
        let latency = |bytes| {
            let around = LaunchSurroundings { bytes_read: bytes, ..COLD };
            let mut h = mi300x(ALONE, Sharing::NONE, around);
            (0..1000).map(|n| h.load(1e4 * n as f64, n, false) - 1e4 * n as f64).sum::<f64>() / 1000.0
        };
        assert_eq!((latency(1 << 20), latency(1 << 28)), (439.0, 857.0));
        let between = latency(203 << 20);
        assert!((620.0..680.0).contains(&between), "{between}");
    }

    #[test]
    fn levels_answer_after_their_latencies() {
        let mut h = mi300x(ALONE, Sharing::NONE, COLD);
        assert_eq!(h.load(0.0, 5, false), 857.0);
        assert_eq!(h.load(1000.0, 5, false), 1108.0);
        assert_eq!(h.load(2000.0, 5, true), 2200.0);
        assert_eq!((h.traffic.l1_lines, h.traffic.l1_hits, h.traffic.memory_read), (3, 1, 128));
    }

    #[test]
    fn a_line_on_its_way_is_waited_for() {
        let mut h = mi300x(ALONE, Sharing::NONE, COLD);
        let first = h.load(0.0, 5, false);
        assert_eq!(h.load(20.0, 5, false), first, "in L1");
        assert_eq!(h.load(20.0, 5, true), first, "in L2");
        let first = h.scalar(0.0, Some((1 << 20, 4)));
        assert_eq!(h.scalar(8.0, Some((1 << 20, 4))), first, "in the scalar cache");
    }

    #[test]
    fn what_others_bring_is_not_there_any_sooner() {
        let sharing = Sharing { die: 0.1, device: 0.1 };
        let (mut with_others, mut alone) =
            (mi300x(Active { device: 304, die: 38 }, sharing, COLD), mi300x(ALONE, Sharing::NONE, COLD));
        for line in 0..200 {
            let at = 10_000.0 * line as f64;
            assert!(with_others.load(at, line, false) >= alone.load(at, line, false), "line {line}");
        }
        assert!(with_others.traffic.memory_read < alone.traffic.memory_read / 10);
    }

    #[test]
    fn bandwidth_is_shared_by_those_who_work() {
        let stream = |active| {
            let mut h = mi300x(active, Sharing::NONE, COLD);
            (0..1000).map(|line| h.load(0.0, line, false)).fold(0.0, f64::max) - 857.0
        };
        let (all, few) = (stream(Active { device: 304, die: 38 }), stream(ALONE));
        assert!((all - 999.0 * 128.0 / 6.5).abs() < 30.0, "{all}");
        assert!((few - 999.0 * 128.0 / 64.0).abs() < 30.0, "{few}");
    }

    #[test]
    fn a_part_of_the_lines_is_brought_by_others() {
        let own = (0..10_000).filter(|&line| !brought_by_others(line, 0.25)).count();
        assert!((2300..2700).contains(&own), "{own}");
        assert!(!brought_by_others(7, 1.0));
    }
}
