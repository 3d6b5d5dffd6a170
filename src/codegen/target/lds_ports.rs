//! LDS of a compute unit: a queue for each pair of SIMDs, a bus for each pair and direction, and banks that
//! all share. Which banks an access needs is the caller's affair.
//!
//! A queue is in order. A write holds its wave until its data have left the registers, after whatever the
//! queue has before it; a read does not. Two SIMDs of a pair that write at once have the bus in turns: both
//! waves are let go when both writes are over (GT, gemm/gfx942/intra_wave: 30.4 clk for each). Loads from
//! memory to LDS use the port of writes and go first (GT, gemm/intra_wave): a write waits until none of them
//! arrives.

use std::collections::VecDeque;

use super::compute_unit::LDS_PAIR;
use super::device_model::DeviceModel;
use super::instruction_costs::LdsKind;
use super::parameters::DeviceParameter;
use super::path_queue::PathQueue;

/// The course of an LDS instruction.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct LdsCourse {
    /// When its service starts and ends.
    pub start: f64,
    pub end: f64,
    /// When its wave may go on.
    pub held: f64,
    /// When its data is in registers, or in LDS.
    pub done: f64,
    /// Clk of its bus, and of the banks.
    pub bus: f64,
    pub banks: f64,
    /// Of a write, the other SIMD of the pair if it still writes: both have the bus in turns, so that it lets
    /// its wave go at the same time.
    pub shares_bus_with: Option<usize>,
}

/// The demand of an LDS instruction.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LdsDemand {
    pub kind: LdsKind,
    /// Dwords per lane of each access, of which there may be two.
    pub dwords: u32,
    pub accesses: usize,
    /// Clk that these keep the banks busy.
    pub bank_clk: u32,
}

/// A pair of SIMDs: when it accepts an instruction, when the next one of its queue may start, and when its
/// buses are free.
#[derive(Default, Debug)]
struct SimdPair {
    accepts: u64,
    next: f64,
    reads: f64,
    writes: f64,
    last_write: LastWrite,
    waiting: PathQueue,
}

/// The write that a pair of SIMDs served last.
#[derive(Copy, Clone, Default, Debug)]
struct LastWrite {
    simd: usize,
    end: f64,
    /// It shares the bus with the one before it.
    is_second: bool,
}

/// LDS of a compute unit.
#[derive(Debug)]
pub(crate) struct LdsPorts {
    pairs: [SimdPair; 2],
    /// When the banks are free, and LDS takes the next instruction.
    banks: f64,
    next: f64,
    /// Times in which data of loads from memory arrive, in order.
    arrivals: VecDeque<[f64; 2]>,
    numbers: LdsNumbers,
}

/// Fixed numbers in the form in which the ports use them.
#[derive(Debug)]
struct LdsNumbers {
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

impl LdsPorts {
    /// Idle ports.
    pub(crate) fn new(device: &DeviceModel) -> LdsPorts {
        let get = |parameter| device.get(parameter);
        let port_read = get(DeviceParameter::LdsPortRead);
        let numbers = LdsNumbers {
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
        };
        let (pairs, arrivals) = (Default::default(), VecDeque::new());
        LdsPorts { pairs, banks: 0.0, next: 0.0, arrivals, numbers }
    }

    /// When the pair of a SIMD accepts an instruction, if it does not at `clk`: its queue has room, and no
    /// addresses come from its other SIMD.
    #[inline]
    pub(crate) fn full_until(&mut self, clk: u64, simd: usize) -> Option<u64> {
        let pair = &mut self.pairs[LDS_PAIR[simd]];
        let room = pair.waiting.full_until(clk, self.numbers.queue);
        room.max((pair.accepts > clk).then_some(pair.accepts))
    }

    /// A load to LDS has `bytes` bytes to put there, the last of them at `done`.
    pub(crate) fn arrival(&mut self, done: f64, bytes: u32) {
        let start = done - f64::from(bytes) / self.numbers.port_write;
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

    /// Serves an instruction issued at `clk` by a SIMD.
    pub(crate) fn serve(&mut self, clk: u64, simd: usize, demand: LdsDemand) -> LdsCourse {
        let LdsDemand { kind, dwords, accesses, bank_clk } = demand;
        let LdsNumbers { turn, port_read, port_write, interval, write_issue, hold, latency, .. } =
            self.numbers;
        let writes = kind == LdsKind::Write;
        let port = if writes { port_write } else { port_read };
        // Three dwords are as slow as four, at 16 bytes per clk (ROCR).
        let data = if dwords == 3 { 16.0 } else { f64::from(256 * dwords) / port };
        let factor = if kind == LdsKind::Atomic { self.numbers.atomic_factor } else { 1.0 };
        let bus = factor * (data * accesses.max(1) as f64).max(turn);
        let banks = factor * f64::from(bank_clk);
        // Banks and the rate of instructions are shared in the order of issue, whichever pair an instruction
        // comes from.
        let now = clk as f64;
        let first = now.max(self.next);
        self.next = first + interval;
        self.banks = now.max(self.banks) + banks;
        let pair = &self.pairs[LDS_PAIR[simd]];
        let mut start = first.max(pair.next).max(if writes { pair.writes } else { pair.reads });
        if writes {
            start = self.no_arrival(now, start);
        }
        let end = (start + bus).max(self.banks);
        let pair = &mut self.pairs[LDS_PAIR[simd]];
        pair.accepts = clk + self.numbers.pair_interval;
        pair.next = start + interval;
        let part = (f64::from(dwords.clamp(1, 4)) - 1.0) / 3.0;
        let issue = write_issue + 4.0 * f64::from(dwords);
        let last = pair.last_write;
        let shares_bus = writes && last.simd != simd && last.end > now && !last.is_second;
        let held = if writes {
            pair.writes = end;
            pair.last_write = LastWrite { simd, end, is_second: shares_bus };
            pair.waiting.push(end);
            end.max(now + issue)
        } else {
            pair.reads = end;
            // Measured for four dwords. Reads of one dword follow each other every four clk (PYHIP), which
            // places that are held as long would not allow.
            pair.waiting.push(end + hold * part);
            now
        };
        let chase = latency[0] + part * (latency[1] - latency[0]);
        let served = data.max(if writes { issue } else { turn });
        // A pointer chase includes the turn of its wait, and one access without conflicts.
        let done = end + (chase - turn - served).max(0.0);
        let shares_bus_with = shares_bus.then_some(last.simd);
        LdsCourse { start, end, held, done, bus, banks, shares_bus_with }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four dwords per lane, side by side.
    fn wide(lds: &mut LdsPorts, clk: u64, simd: usize, kind: LdsKind) -> LdsCourse {
        lds.serve(clk, simd, LdsDemand { kind, dwords: 4, accesses: 1, bank_clk: 8 })
    }

    #[test]
    fn a_write_waits_for_reads_before_it_and_lets_its_wave_go_after_its_data() {
        let mut lds = LdsPorts::new(DeviceModel::MI300X);
        assert_eq!(wide(&mut lds, 0, 0, LdsKind::Write).held, 20.0, "alone");
        let (read, write) = (wide(&mut lds, 100, 0, LdsKind::Read), wide(&mut lds, 104, 2, LdsKind::Read));
        assert_eq!((read.held, write.held), (100.0, 104.0));
        let held = wide(&mut lds, 108, 0, LdsKind::Write).held;
        assert!(held > 128.0, "in the queue of its pair: {held}");
    }

    #[test]
    fn two_writes_of_a_pair_end_together() {
        let mut lds = LdsPorts::new(DeviceModel::MI300X);
        let [first, second, third] =
            [(0, 0), (4, 2), (32, 0)].map(|(clk, simd)| wide(&mut lds, clk, simd, LdsKind::Write));
        assert_eq!((first.shares_bus_with, second.shares_bus_with), (None, Some(0)));
        assert_eq!((second.held, third.shares_bus_with), (32.0, None));
        assert_eq!(wide(&mut lds, 36, 1, LdsKind::Write).shares_bus_with, None, "the other pair");
    }

    #[test]
    fn loads_to_lds_go_before_writes() {
        let mut lds = LdsPorts::new(DeviceModel::MI355X);
        for load in 0..25 {
            lds.arrival(116.0 + 16.0 * f64::from(load), 1024);
        }
        assert_eq!(wide(&mut lds, 104, 0, LdsKind::Write).start, 500.0);
        assert_eq!(wide(&mut lds, 600, 0, LdsKind::Write).start, 600.0);
        assert!(lds.arrivals.is_empty());
    }
}
