//! The address path of vector memory, in front of the caches, and the lines that the vector cache may have on
//! their way: an instruction that would be one too many waits, and those after it wait in the queue.

use std::collections::VecDeque;

use crate::codegen::target::{DeviceModel, DeviceParameter};

use super::super::execute::Footprint;
use super::hierarchy::Hierarchy;
use super::lanes::{AccessShape, shape};
use super::patterns::Patterns;
use crate::codegen::target::PathQueue;
use crate::codegen::target::VectorKind;

/// The course of a vector memory instruction.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct VectorAccess {
    /// When the address path starts with it and when it is done.
    pub start: f64,
    pub end: f64,
    /// When its data is in registers or its store acknowledged.
    pub done: f64,
    /// Clk of the address path, without those for which lines had no room.
    pub service: f64,
    /// Lines that it touched, and bytes.
    pub lines: u32,
    pub bytes: u32,
    /// Its lanes are scattered, which has its own rule of cost.
    pub scattered: bool,
}

impl VectorAccess {
    /// One that touches nothing so far.
    fn starting(start: f64) -> VectorAccess {
        VectorAccess { start, end: start, done: start, service: 0.0, lines: 0, bytes: 0, scattered: false }
    }
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
    /// Clk for each line of a load.
    per_line: f64,
    flight: LinesInFlight,
}

/// Lines that the vector cache has on their way, in the order in which they were asked for: that in which
/// they make room.
#[derive(Debug)]
struct LinesInFlight {
    arrivals: VecDeque<f64>,
    most: usize,
}

impl LinesInFlight {
    /// When there is room for another line that is asked for at `at`.
    #[inline]
    fn room(&mut self, at: f64) -> f64 {
        if self.arrivals.len() < self.most {
            return at;
        }
        self.arrivals.pop_front().map_or(at, |arrival| at.max(arrival))
    }

    /// A line has been asked for and arrives then.
    #[inline]
    fn push(&mut self, arrival: f64) {
        self.arrivals.push_back(self.arrivals.back().map_or(arrival, |&last| arrival.max(last)));
    }
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
            per_line: get(DeviceParameter::VectorLine),
            flight: LinesInFlight {
                arrivals: VecDeque::new(),
                most: (device.count(DeviceParameter::VectorFlight)
                    / device.count(DeviceParameter::L1Line).max(1))
                .max(1) as usize,
            },
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
        (kind, bypasses_l1): (VectorKind, bool),
        step: usize,
        footprints: &[Footprint],
        caches: &mut Hierarchy,
    ) -> VectorAccess {
        self.next = clk + self.interval;
        let start = (clk as f64).max(self.free);
        let mut access = VectorAccess::starting(start);
        let line = caches.line();
        let loads = matches!(kind, VectorKind::Load | VectorKind::LoadToLds);
        // Clk of service, and clk for which lines had no room.
        let (mut clk, mut waited) = (0.0, 0.0);
        for (number, f) in footprints.iter().enumerate().filter(|(_, f)| f.lanes != 0) {
            let found =
                self.patterns.cost(step, number, f, line, || shape(f.lanes, &f.address, &f.bytes, line));
            let first = f.lanes.trailing_zeros() as usize;
            let rate = if loads && f.bytes[first] == 8 { self.bytes_pair } else { self.bytes };
            let gather = if found.scattered { self.gather } else { 1.0 };
            let lines = if loads { self.per_line * found.lines.len() as f64 } else { 0.0 };
            let service = (found.clk as f64 * gather).max(found.bytes as f64 / rate).max(lines);
            access.scattered |= found.scattered;
            access.lines += found.lines.len() as u32;
            access.bytes += found.bytes as u32;
            let base = (f.address[first] / line) as i64;
            let (begin, share) = (start + clk, service / found.lines.len() as f64);
            for (index, &(number, bytes)) in found.lines.iter().enumerate() {
                // Latencies count from the end of an access of four clk.
                let at = begin + waited + (share * (index + 1) as f64).max(self.interval as f64);
                let number = base.wrapping_add(number) as u64;
                let done = match kind {
                    VectorKind::Store => caches.store(at, number, bytes),
                    VectorKind::Atomic => caches.atomic(at, number, bytes),
                    _ => caches.hit(at, number, bypasses_l1).unwrap_or_else(|| {
                        let room = self.flight.room(at);
                        waited += room - at;
                        let done = caches.fetch(room, number, bypasses_l1);
                        self.flight.push(done);
                        done
                    }),
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
        access.service = clk.max(least);
        access.end = start + waited + access.service;
        access.done = access.done.max(access.end);
        self.free = access.end;
        self.waiting.push(start + waited);
        access
    }
}
