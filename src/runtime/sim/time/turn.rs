//! A turn of a SIMD, what is issued in it, and what keeps a wave from having one: what it waits for before it
//! may try.

use std::ops::Range;

use super::costs::StepCost;
use super::record::{Busy, Pipe, Record, Stall, Wait};
use super::resident::{NEVER, PendingResult};
use crate::codegen::target::{CLASSES, IssueClass};

/// The turn of a SIMD.
#[derive(Copy, Clone)]
pub(super) struct Turn {
    /// Of the SIMD's waves in the order of arbitration, the next to look at.
    pub place: usize,
    /// Classes of which an instruction has been issued.
    pub taken: [bool; CLASSES],
    /// When memory paths that have been found full are open again: the same for all its waves.
    pub full: [u64; CLASSES],
    /// Whether the VALU instruction lets a second one in.
    pub pair: bool,
    /// Whether priorities have changed.
    pub sorts: bool,
    /// When the first of its waves that do not issue may try again.
    pub next: u64,
}

impl Turn {
    /// Whether an instruction of LDS or vector memory has been issued.
    pub(super) fn memory(&self) -> bool {
        self.taken[IssueClass::Lds as usize] || self.taken[IssueClass::Vector as usize]
    }
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { place: 0, taken: [false; CLASSES], full: [0; CLASSES], pair: false, sorts: false, next: NEVER }
    }
}

/// What keeps an instruction from being tried, one reason after the other.
pub(super) struct Delay<'a> {
    pub record: &'a mut Record,
    pub wave: u32,
    pub step: u32,
    pub at: u64,
    pub last: Option<Stall>,
}

impl Delay<'_> {
    /// It has to wait until then.
    pub(super) fn until(&mut self, clk: u64, stall: Stall) {
        if clk > self.at {
            self.record.wait(Wait { wave: self.wave, step: self.step, start: self.at, end: clk, stall });
            self.at = clk;
            self.last = Some(stall);
        }
    }
}

/// A step that a wave issues at `clk`.
#[derive(Copy, Clone)]
pub(super) struct IssuedStep<'a> {
    pub slot: usize,
    pub simd: usize,
    /// The wave, as records number them.
    pub wave: u32,
    pub step: usize,
    pub cost: &'a StepCost,
    pub clk: u64,
}

impl IssuedStep<'_> {
    pub(super) fn wait(&self, start: u64, end: u64, stall: Stall) -> Wait {
        Wait { wave: self.wave, step: self.step as u32, start, end, stall }
    }

    pub(super) fn busy(&self, pipe: Pipe, unit: usize, clk: Range<u64>) -> Busy {
        let Range { start, end } = clk;
        Busy { pipe, unit: unit as u8, start, end, step: self.step as u32, wave: self.wave }
    }

    /// One clk of a unit that all waves share.
    pub(super) fn busy_for_a_clk(&self, pipe: Pipe) -> Busy {
        self.busy(pipe, 0, self.clk..self.clk + 1)
    }
}

/// When an instruction may issue as far as a matrix result is concerned.
pub(super) fn dependency(pending: &PendingResult, cost: &StepCost) -> u64 {
    let mut until = 0;
    if cost.rows.iter().any(|rows| rows.overlaps(pending.rows)) {
        until = pending.readable;
    }
    for rows in [cost.addend, cost.result].into_iter().flatten() {
        if rows == pending.rows && cost.opcode == pending.opcode {
            until = until.max(pending.accumulable);
        } else if rows.overlaps(pending.rows) {
            until = until.max(pending.readable);
        }
    }
    until
}
