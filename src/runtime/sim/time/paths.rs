//! The two memory paths of a compute unit, LDS and vector memory, as servers with queues.
//!
//! Address patterns repeat from iteration to iteration, so their costs are remembered per instruction.

use std::collections::VecDeque;

use crate::codegen::target::{DeviceModel, DeviceParameter, SIMDS, Target};

use super::super::execute::Footprint;
use super::super::wave::LANES;
use super::banks::Grouping;
use super::costs::{LdsKind, VectorKind};
use super::hierarchy::Hierarchy;
use super::lanes::{AccessShape, shape};

/// The first whole clk at or after this time.
#[inline]
pub(super) fn whole(clk: f64) -> u64 {
    // The library's ceil is a call where the target has no instruction for it.
    let below = clk as u64;
    below + u64::from((below as f64) < clk)
}

/// The instructions that wait in front of a path: the first whole clk at which each has started.
#[derive(Default, Debug)]
struct PathQueue(VecDeque<u64>);

impl PathQueue {
    fn push(&mut self, start: f64) {
        self.0.push_back(whole(start));
    }

    /// When there is room for another one, if `room` instructions wait at `clk`.
    #[inline]
    fn full_until(&mut self, clk: u64, room: usize) -> Option<u64> {
        while self.0.front().is_some_and(|&start| start <= clk) {
            self.0.pop_front();
        }
        self.0.len().checked_sub(room).map(|index| self.0[index])
    }
}

/// The cost of an address pattern when it last occurred.
#[derive(Debug)]
struct Remembered<T> {
    lanes: u64,
    /// Address of the first lane modulo `phase`, and the distances of the others from it.
    phase: u64,
    distance: [u64; LANES],
    bytes: u16,
    cost: T,
}

/// Patterns by step; an instruction with two accesses has two.
#[derive(Debug)]
pub(super) struct Patterns<T>(Vec<[Option<Box<Remembered<T>>>; 2]>);

impl<T> Patterns<T> {
    pub(super) fn new(steps: usize) -> Patterns<T> {
        Patterns((0..steps).map(|_| [None, None]).collect())
    }

    /// The cost of a pattern; shifting all addresses by a multiple of `phase` does not change it.
    fn cost(
        &mut self,
        step: usize,
        number: usize,
        f: &Footprint,
        phase: u64,
        compute: impl FnOnce() -> T,
    ) -> &T {
        let first = f.address[f.lanes.trailing_zeros() as usize % LANES];
        let bytes = f.bytes[f.lanes.trailing_zeros() as usize % LANES];
        let even = f.bytes.iter().fold(0, |all, &b| all | b ^ bytes) == 0;
        let entry = &mut self.0[step][number % 2];
        let same = entry.as_ref().is_some_and(|e| {
            let moved = f.address.iter().zip(&e.distance);
            even && e.lanes == f.lanes
                && e.phase == first % phase
                && e.bytes == bytes
                && moved.fold(0, |all, (&a, &d)| all | a.wrapping_sub(first) ^ d) == 0
        });
        if !same {
            *entry = None;
        }
        &entry
            .get_or_insert_with(|| {
                Box::new(Remembered {
                    lanes: f.lanes,
                    phase: first % phase,
                    distance: f.address.map(|a| a.wrapping_sub(first)),
                    bytes,
                    cost: compute(),
                })
            })
            .cost
    }
}

/// The course of an LDS instruction.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct LdsCourse {
    /// When its service starts and when the port is free again.
    pub start: f64,
    pub end: f64,
    /// When its data is in registers, or in LDS.
    pub done: f64,
    /// Clk of the banks, and how many of them conflicts have added.
    pub banks: f64,
    pub conflicts: u32,
}

/// LDS of a compute unit: a port per pair of SIMDs, and banks that all share.
#[derive(Debug)]
pub(super) struct LdsPath {
    target: Target,
    ports: [f64; 2],
    banks: f64,
    next: f64,
    /// When the waiting instructions start, by SIMD: each has its share of the queue.
    waiting: [PathQueue; SIMDS],
    patterns: Patterns<(u32, u32)>,
    turn: f64,
    port_read: f64,
    port_write: f64,
    interval: f64,
    write_issue: f64,
    atomic_factor: f64,
    queue: usize,
    latency: [f64; 2],
}

impl LdsPath {
    pub(super) fn new(device: &DeviceModel, steps: usize) -> LdsPath {
        let get = |parameter| device.get(parameter);
        LdsPath {
            target: device.target,
            ports: [0.0; 2],
            banks: 0.0,
            next: 0.0,
            waiting: Default::default(),
            patterns: Patterns::new(steps),
            turn: get(DeviceParameter::Turn),
            port_read: get(DeviceParameter::LdsPortRead),
            port_write: get(DeviceParameter::LdsPortWrite),
            interval: get(DeviceParameter::LdsInterval),
            write_issue: get(DeviceParameter::LdsWriteIssue),
            atomic_factor: get(DeviceParameter::LdsAtomicFactor),
            queue: (get(DeviceParameter::LdsQueue) as usize / SIMDS).max(1),
            latency: [get(DeviceParameter::LdsLatency), get(DeviceParameter::LdsLatencyWide)],
        }
    }

    /// When the queue has room for a SIMD, if there is none at `clk`.
    #[inline]
    pub(super) fn full_until(&mut self, clk: u64, simd: usize) -> Option<u64> {
        self.waiting[simd].full_until(clk, self.queue)
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
        let port = if kind == LdsKind::Write { self.port_write } else { self.port_read };
        // Three dwords are as slow as four, at 16 bytes per clk (ROCR).
        let data = if dwords == 3 { 16.0 } else { f64::from(256 * dwords) / port };
        let issue = match kind {
            LdsKind::Write => self.write_issue + 4.0 * f64::from(dwords),
            _ => 4.0,
        };
        let (mut bank_clk, mut ideal) = (0, 0);
        for (number, f) in footprints.iter().enumerate().filter(|(_, f)| f.lanes != 0) {
            let grouping = Grouping::of(self.target, kind, dwords);
            let (busy, least) =
                *self.patterns.cost(step, number, f, 4, || grouping.busy(f.lanes, &f.address, dwords));
            bank_clk += busy;
            ideal += least;
        }
        let accesses = footprints.len().max(1) as f64;
        let factor = if kind == LdsKind::Atomic { self.atomic_factor } else { 1.0 };
        let unhindered = issue.max(data * accesses);
        // Banks and the rate of instructions are shared in the order of issue, whichever port an instruction
        // waits for.
        let now = clk as f64;
        let pair = simd / 2;
        let turn = now.max(self.next);
        self.next = turn + self.interval;
        self.banks = now.max(self.banks) + factor * f64::from(bank_clk);
        let start = turn.max(self.ports[pair]);
        let end = (start + factor * unhindered).max(self.banks);
        self.ports[pair] = end;
        self.waiting[simd].push(start);
        let part = (f64::from(dwords.clamp(1, 4)) - 1.0) / 3.0;
        let chase = self.latency[0] + part * (self.latency[1] - self.latency[0]);
        LdsCourse {
            start,
            end,
            // A pointer chase includes the turn of its wait, and one access without conflicts.
            done: end + (chase - self.turn - issue.max(data)).max(0.0),
            banks: factor * f64::from(bank_clk),
            conflicts: bank_clk - ideal.min(bank_clk),
        }
    }
}

/// The course of a vector memory instruction.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct VectorAccess {
    /// When the address path starts with it and when it is done.
    pub start: f64,
    pub end: f64,
    /// When its data is in registers or its store acknowledged.
    pub done: f64,
    /// Lines that it touched.
    pub lines: u32,
    /// Its lanes are scattered, which has its own rule of cost.
    pub scattered: bool,
}

/// The address path of vector memory, in front of the caches.
#[derive(Debug)]
pub(super) struct VectorPath {
    free: f64,
    next: u64,
    waiting: PathQueue,
    patterns: Patterns<AccessShape>,
    interval: u64,
    bytes: f64,
    bytes_pair: f64,
    gather: f64,
    direct: f64,
    queue: usize,
}

impl VectorPath {
    pub(super) fn new(device: &DeviceModel, steps: usize) -> VectorPath {
        let get = |parameter| device.get(parameter);
        VectorPath {
            free: 0.0,
            next: 0,
            waiting: PathQueue::default(),
            patterns: Patterns::new(steps),
            interval: device.count(DeviceParameter::VectorInterval),
            bytes: get(DeviceParameter::VectorBytes),
            bytes_pair: get(DeviceParameter::VectorBytesPair),
            gather: get(DeviceParameter::Gather),
            direct: get(DeviceParameter::DirectLds),
            queue: get(DeviceParameter::VectorQueue) as usize,
        }
    }

    /// When the next instruction is accepted, if none is at `clk`.
    #[inline]
    pub(super) fn full_until(&mut self, clk: u64) -> Option<u64> {
        if self.next > clk {
            return Some(self.next);
        }
        self.waiting.full_until(clk, self.queue)
    }

    /// Serves an instruction of step `step` issued at `clk`. `footprints` are those in device or private
    /// memory, the latter with addresses of their own.
    pub(super) fn access(
        &mut self,
        clk: u64,
        kind: VectorKind,
        bypasses_l1: bool,
        step: usize,
        footprints: &[Footprint],
        caches: &mut Hierarchy,
    ) -> VectorAccess {
        self.next = clk + self.interval;
        let start = (clk as f64).max(self.free);
        let mut access = VectorAccess { start, end: start, done: start, lines: 0, scattered: false };
        let line = caches.line();
        let mut clk = 0.0;
        for (number, f) in footprints.iter().enumerate().filter(|(_, f)| f.lanes != 0) {
            let found =
                self.patterns.cost(step, number, f, line, || shape(f.lanes, &f.address, &f.bytes, line));
            let first = f.lanes.trailing_zeros() as usize;
            let pair = f.bytes[first] == 8;
            let rate = if pair { self.bytes_pair } else { self.bytes };
            let gather = if found.scattered { self.gather } else { 1.0 };
            let service = (found.clk as f64 * gather).max(found.bytes as f64 / rate);
            access.scattered |= found.scattered;
            access.lines += found.lines.len() as u32;
            let base = (f.address[first] / line) as i64;
            let (begin, share) = (start + clk, service / found.lines.len() as f64);
            for (index, &(number, bytes)) in found.lines.iter().enumerate() {
                // Latencies count from the end of an access of four clk.
                let at = begin + (share * (index + 1) as f64).max(self.interval as f64);
                let number = base.wrapping_add(number) as u64;
                let done = match kind {
                    VectorKind::Store => caches.store(at, number, bytes),
                    VectorKind::Atomic => caches.atomic(at, number, bytes),
                    _ => caches.load(at, number, bypasses_l1),
                };
                access.done = access.done.max(done);
            }
            match kind {
                VectorKind::Store | VectorKind::Atomic => caches.traffic.stored += found.bytes,
                _ => caches.traffic.loaded += found.bytes,
            }
            clk += service;
        }
        let least = if kind == VectorKind::LoadToLds { self.direct } else { self.interval as f64 };
        access.end = start + clk.max(least);
        access.done = access.done.max(access.end);
        self.free = access.end;
        self.waiting.push(start);
        access
    }
}
