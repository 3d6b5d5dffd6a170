//! LDS of a compute unit: a queue for each pair of SIMDs, a bus for each pair and direction, and banks that
//! all share.
//!
//! A queue is in order. A write holds its wave until its data have left the registers, after whatever the
//! queue has before it; a read does not. Loads from memory to LDS use the port of writes and go first (GT,
//! gemm/intra_wave): a write waits until none of them arrives.

use std::collections::VecDeque;

use crate::codegen::target::{DeviceModel, DeviceParameter, LDS_PAIR, Target};

use super::super::execute::Footprint;
use super::banks::Grouping;
use super::patterns::{PathQueue, Patterns};
use crate::codegen::target::LdsKind;

/// The course of an LDS instruction.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct LdsCourse {
    /// When its service starts and ends.
    pub start: f64,
    pub end: f64,
    /// When its wave may go on.
    pub held: f64,
    /// When its data is in registers, or in LDS.
    pub done: f64,
    /// Clk of its bus.
    pub bus: f64,
    /// Clk of the banks, and how many of them conflicts have added.
    pub banks: f64,
    pub conflicts: u32,
}

/// A pair of SIMDs: when it accepts an instruction, when the next one of its queue may start, and when its
/// buses are free.
#[derive(Default, Debug)]
struct SimdPair {
    accepts: u64,
    next: f64,
    reads: f64,
    writes: f64,
    waiting: PathQueue,
}

/// LDS of a compute unit.
#[derive(Debug)]
pub(super) struct LdsPath {
    target: Target,
    pairs: [SimdPair; 2],
    banks: f64,
    next: f64,
    /// Times in which data of loads from memory arrive, in order.
    arrivals: VecDeque<[f64; 2]>,
    patterns: Patterns<(u32, u32)>,
    turn: f64,
    port_read: f64,
    port_write: f64,
    interval: f64,
    pair_interval: u64,
    write_issue: f64,
    atomic_factor: f64,
    queue: usize,
    /// Clk for which a read of four dwords keeps its place after it has been served.
    hold: f64,
    latency: [f64; 2],
}

impl LdsPath {
    pub(super) fn new(device: &DeviceModel, steps: usize) -> LdsPath {
        let get = |parameter| device.get(parameter);
        let port_read = get(DeviceParameter::LdsPortRead);
        LdsPath {
            target: device.target,
            pairs: Default::default(),
            banks: 0.0,
            next: 0.0,
            arrivals: VecDeque::new(),
            patterns: Patterns::new(steps),
            turn: get(DeviceParameter::Turn),
            port_read,
            port_write: get(DeviceParameter::LdsPortWrite),
            interval: get(DeviceParameter::LdsInterval),
            pair_interval: device.count(DeviceParameter::LdsPairInterval),
            write_issue: get(DeviceParameter::LdsWriteIssue),
            atomic_factor: get(DeviceParameter::LdsAtomicFactor),
            queue: (get(DeviceParameter::LdsQueue) as usize).max(1),
            hold: (get(DeviceParameter::LdsQueueHold) - 1024.0 / port_read).max(0.0),
            latency: [get(DeviceParameter::LdsLatency), get(DeviceParameter::LdsLatencyWide)],
        }
    }

    /// When the pair of a SIMD accepts an instruction, if it does not at `clk`: its queue has room, and no
    /// addresses come from its other SIMD.
    #[inline]
    pub(super) fn full_until(&mut self, clk: u64, simd: usize) -> Option<u64> {
        let pair = &mut self.pairs[LDS_PAIR[simd]];
        let room = pair.waiting.full_until(clk, self.queue);
        room.max((pair.accepts > clk).then_some(pair.accepts))
    }

    /// A load to LDS has `bytes` bytes to put there, the last of them at `done`.
    pub(super) fn arrival(&mut self, done: f64, bytes: u32) {
        let start = done - f64::from(bytes) / self.port_write;
        let place = self.arrivals.partition_point(|arrival| arrival[0] <= start);
        self.arrivals.insert(place, [start, done]);
    }

    /// The first time from `at` on at which no load arrives.
    fn no_arrival(&mut self, now: f64, at: f64) -> f64 {
        while self.arrivals.front().is_some_and(|arrival| arrival[1] <= now) {
            self.arrivals.pop_front();
        }
        let mut at = at;
        for &[start, end] in &self.arrivals {
            if start > at {
                break;
            }
            at = at.max(end);
        }
        at
    }

    /// Serves an instruction of step `step` issued at `clk` by a SIMD.
    pub(super) fn access(
        &mut self,
        clk: u64,
        simd: usize,
        (kind, dwords): (LdsKind, u32),
        step: usize,
        footprints: &[Footprint],
    ) -> LdsCourse {
        let writes = kind == LdsKind::Write;
        let port = if writes { self.port_write } else { self.port_read };
        // Three dwords are as slow as four, at 16 bytes per clk (ROCR).
        let data = if dwords == 3 { 16.0 } else { f64::from(256 * dwords) / port };
        let (mut bank_clk, mut ideal) = (0, 0);
        // Whether four dwords are aligned matters.
        let phase = if dwords == 4 { 16 } else { 4 };
        let grouping = Grouping::of(self.target, kind, dwords);
        for (number, f) in footprints.iter().enumerate().filter(|(_, f)| f.lanes != 0) {
            let compute = || grouping.busy(f.lanes, &f.address, dwords);
            let (busy, least) = *self.patterns.cost(step, number, f, phase, compute);
            bank_clk += busy;
            ideal += least;
        }
        let accesses = footprints.len().max(1) as f64;
        let factor = if kind == LdsKind::Atomic { self.atomic_factor } else { 1.0 };
        let bus = factor * (data * accesses).max(self.turn);
        // Banks and the rate of instructions are shared in the order of issue, whichever pair an instruction
        // comes from.
        let now = clk as f64;
        let turn = now.max(self.next);
        self.next = turn + self.interval;
        self.banks = now.max(self.banks) + factor * f64::from(bank_clk);
        let pair = &mut self.pairs[LDS_PAIR[simd]];
        let mut start = turn.max(pair.next).max(if writes { pair.writes } else { pair.reads });
        if writes {
            start = self.no_arrival(now, start);
        }
        let end = (start + bus).max(self.banks);
        let pair = &mut self.pairs[LDS_PAIR[simd]];
        pair.accepts = clk + self.pair_interval;
        pair.next = start + self.interval;
        let part = (f64::from(dwords.clamp(1, 4)) - 1.0) / 3.0;
        let held = if writes {
            pair.writes = end;
            pair.waiting.push(end);
            end.max(now + self.write_issue + 4.0 * f64::from(dwords))
        } else {
            pair.reads = end;
            // Measured for four dwords. Reads of one dword follow each other every four clk (PYHIP), which
            // places that are held as long would not allow.
            pair.waiting.push(end + self.hold * part);
            now
        };
        let chase = self.latency[0] + part * (self.latency[1] - self.latency[0]);
        let served = data.max(if writes { self.write_issue + 4.0 * f64::from(dwords) } else { self.turn });
        LdsCourse {
            start,
            end,
            held,
            // A pointer chase includes the turn of its wait, and one access without conflicts.
            done: end + (chase - self.turn - served).max(0.0),
            bus,
            banks: factor * f64::from(bank_clk),
            conflicts: bank_clk - ideal.min(bank_clk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::error::MemoryAccess;
    use super::super::super::execute::MemorySpace;
    use super::super::super::wave::LANES;
    use super::*;

    fn wide(lds: &mut LdsPath, clk: u64, simd: usize, kind: LdsKind) -> LdsCourse {
        let f = Footprint {
            space: MemorySpace::Lds,
            access: MemoryAccess::Load,
            lanes: u64::MAX,
            address: std::array::from_fn(|lane| 16 * lane as u64),
            bytes: [16; LANES],
        };
        lds.access(clk, simd, (kind, 4), 0, &[f])
    }

    #[test]
    fn a_write_waits_for_reads_before_it_and_lets_its_wave_go_after_its_data() {
        let mut lds = LdsPath::new(DeviceModel::MI300X, 1);
        assert_eq!(wide(&mut lds, 0, 0, LdsKind::Write).held, 20.0, "alone");
        let (read, write) = (wide(&mut lds, 100, 0, LdsKind::Read), wide(&mut lds, 104, 2, LdsKind::Read));
        assert_eq!((read.held, write.held), (100.0, 104.0));
        let held = wide(&mut lds, 108, 0, LdsKind::Write).held;
        assert!(held > 128.0, "in the queue of its pair: {held}");
    }

    #[test]
    fn loads_to_lds_go_before_writes() {
        let mut lds = LdsPath::new(DeviceModel::MI355X, 1);
        for load in 0..25 {
            lds.arrival(116.0 + 16.0 * f64::from(load), 1024);
        }
        assert_eq!(wide(&mut lds, 104, 0, LdsKind::Write).start, 500.0);
        assert_eq!(wide(&mut lds, 600, 0, LdsKind::Write).start, 600.0);
        assert!(lds.arrivals.is_empty());
    }
}
