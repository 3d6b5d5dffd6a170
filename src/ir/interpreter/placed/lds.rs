//! The LDS of a workgroup: its bytes, which of them are defined, and which waves touched them since the last
//! barrier.

use bevy_ecs::prelude::*;

use super::{Machine, bug};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::facts::{LdsBytes, Synchronised};
use crate::ir::node::Op;
use crate::ir::node_map::NodeMap;
use crate::ir::walk;

/// Most bytes of all buffers together while they have no places.
const MAX_BYTES: u32 = 1 << 28;

/// The waves that touched a byte since the last barrier, a bit for each.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
struct TouchingWaves {
    /// The number of barriers before.
    epoch: u32,
    /// The waves that wrote what is there.
    written: u16,
    /// The waves that read what is there.
    read: u16,
    /// The waves that read what was there before.
    read_before: u16,
    /// The waves that updated it atomically.
    updated: u16,
    /// Something else was there at the last barrier.
    is_new: bool,
}

/// How a wave touches a byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum LdsTouch {
    Read,
    Write,
    /// Writes what is there: waves that hold the same elements may all write them, in any order.
    WriteAgain,
    /// An atomic update, which others may update before or after.
    Update,
}

/// The LDS of a workgroup; see the module.
pub(super) struct WorkgroupLds {
    bytes: Vec<u8>,
    defined: Vec<bool>,
    touched: Vec<TouchingWaves>,
    /// Where buffers begin as long as no pass has placed them.
    first: NodeMap<u32>,
    epoch: u32,
    /// Whether accesses of different waves are checked against each other.
    judged: bool,
}

impl WorkgroupLds {
    pub(super) fn new(machine: &Machine<'_>) -> Result<WorkgroupLds, Diagnostic> {
        let mut first = NodeMap::default();
        let mut size = 0u32;
        match machine.world.get::<LdsBytes>(machine.root) {
            Some(&LdsBytes(bytes)) => size = bytes,
            None => {
                for node in walk::nodes(machine.world, machine.root) {
                    if machine.world.get::<Op>(node) == Some(&Op::Allocate) {
                        first.insert(node, size);
                        size = size.saturating_add(machine.buffer(node)?.all_bytes());
                    }
                }
            }
        }
        if size > MAX_BYTES {
            return Err(Diagnostic::new(Kind::Limit, format!("the tiles take {size} bytes of LDS")));
        }
        let judged = machine.world.get::<Synchronised>(machine.root).is_some();
        let count = size as usize;
        Ok(WorkgroupLds {
            bytes: vec![0; count],
            defined: vec![false; count],
            touched: vec![TouchingWaves::default(); if judged { count } else { 0 }],
            first,
            epoch: 1,
            judged,
        })
    }

    /// Where a buffer's bytes are counted from.
    pub(super) fn base(&self, allocation: Entity) -> u32 {
        self.first.get(allocation).copied().unwrap_or(0)
    }

    /// All waves have met a barrier.
    pub(super) fn barrier(&mut self) {
        self.epoch += 1;
    }

    /// The bits of an element, if they are defined.
    pub(super) fn read(&mut self, at: u32, count: u32, wave: u32) -> Result<Option<u64>, Diagnostic> {
        let range = self.range(at, count)?;
        self.touch(range.clone(), wave, LdsTouch::Read)?;
        let mut word = [0; 8];
        word[..count as usize].copy_from_slice(&self.bytes[range.clone()]);
        Ok(self.defined[range].iter().all(|&defined| defined).then_some(u64::from_le_bytes(word)))
    }

    /// Writes an element; `None` stands for an undefined one.
    pub(super) fn write(
        &mut self,
        at: u32,
        count: u32,
        bits: Option<u64>,
        wave: u32,
    ) -> Result<(), Diagnostic> {
        let range = self.range(at, count)?;
        let new = &bits.unwrap_or(0).to_le_bytes()[..count as usize];
        let is_there = &self.bytes[range.clone()] == new
            && self.defined[range.clone()].iter().all(|&defined| defined == bits.is_some());
        let touch = if is_there { LdsTouch::WriteAgain } else { LdsTouch::Write };
        self.touch(range.clone(), wave, touch)?;
        self.bytes[range.clone()].copy_from_slice(new);
        self.defined[range].fill(bits.is_some());
        Ok(())
    }

    /// Updates an element atomically, and gives the bits that it had, if they are defined.
    pub(super) fn update(
        &mut self,
        at: u32,
        count: u32,
        new: impl FnOnce(u64) -> Option<u64>,
        wave: u32,
    ) -> Result<Option<u64>, Diagnostic> {
        let range = self.range(at, count)?;
        self.touch(range.clone(), wave, LdsTouch::Update)?;
        if !self.defined[range.clone()].iter().all(|&defined| defined) {
            return Ok(None);
        }
        let mut word = [0; 8];
        word[..count as usize].copy_from_slice(&self.bytes[range.clone()]);
        let old = u64::from_le_bytes(word);
        let new = new(old).ok_or_else(|| bug("no such atomic update"))?;
        self.bytes[range].copy_from_slice(&new.to_le_bytes()[..count as usize]);
        Ok(Some(old))
    }

    fn range(&self, at: u32, count: u32) -> Result<std::ops::Range<usize>, Diagnostic> {
        let range = at as usize..at as usize + count as usize;
        match range.end <= self.bytes.len() && count <= 8 {
            true => Ok(range),
            false => Err(bug(&format!("an access is at byte {at} of {} bytes of LDS", self.bytes.len()))),
        }
    }

    fn touch(&mut self, range: std::ops::Range<usize>, wave: u32, touch: LdsTouch) -> Result<(), Diagnostic> {
        if !self.judged {
            return Ok(());
        }
        let (own, epoch) = (1u16 << (wave % 16), self.epoch);
        for touched in &mut self.touched[range] {
            if touched.epoch != epoch {
                *touched = TouchingWaves { epoch, ..TouchingWaves::default() };
            }
            let updated = if touch == LdsTouch::Update { 0 } else { touched.updated };
            let others =
                !own & match touch {
                    // It finds what it wrote itself, or what was there at the barrier, whoever writes that
                    // again.
                    LdsTouch::Read if !touched.is_new || touched.written & own != 0 => 0,
                    LdsTouch::Read => touched.written,
                    LdsTouch::Write => touched.written | touched.read | touched.read_before,
                    LdsTouch::WriteAgain => touched.read_before,
                    LdsTouch::Update => touched.written | touched.read | touched.read_before,
                } | !own & updated;
            let writes = touch != LdsTouch::Read;
            if others != 0 {
                let what = match (writes, (touched.written | touched.updated) & !own) {
                    (false, _) => "reads what wave",
                    (true, 0) => "writes over what wave",
                    (true, _) => "writes what wave",
                };
                let text = format!(
                    "wave {wave} {what} {} touches, with no barrier between them",
                    others.trailing_zeros()
                );
                return Err(Diagnostic::invalid(text));
            }
            match touch {
                LdsTouch::Read => touched.read |= own,
                LdsTouch::WriteAgain => touched.written |= own,
                LdsTouch::Update => touched.updated |= own,
                LdsTouch::Write => {
                    touched.read_before |= touched.read;
                    (touched.written, touched.read, touched.is_new) = (own, 0, true);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step: wave and value of a write, wave of a read, a barrier.
    #[derive(Copy, Clone)]
    enum Step {
        Write(u32, u32),
        Read(u32),
        Barrier,
    }
    use Step::{Barrier, Read, Write};

    fn is_ordered(steps: &[Step]) -> bool {
        let mut lds = WorkgroupLds {
            bytes: vec![0; 4],
            defined: vec![false; 4],
            touched: vec![TouchingWaves::default(); 4],
            first: NodeMap::default(),
            epoch: 1,
            judged: true,
        };
        steps.iter().all(|step| match *step {
            Write(wave, value) => lds.write(0, 4, Some(value.into()), wave).is_ok(),
            Read(wave) => lds.read(0, 4, wave).is_ok(),
            Barrier => {
                lds.barrier();
                true
            }
        })
    }

    #[test]
    fn waves_that_write_the_same_may_read_it() {
        let right: &[&[Step]] = &[
            &[Write(0, 7), Write(1, 7), Read(0), Read(1)],
            &[Write(0, 7), Read(0), Write(1, 7), Read(1)],
            &[Write(0, 7), Barrier, Read(1), Write(0, 7), Read(1)],
            &[Write(0, 7), Barrier, Write(0, 7), Read(1)],
            &[Write(0, 7), Read(0), Barrier, Write(0, 8), Read(0), Write(1, 8), Read(1)],
        ];
        let wrong: &[&[Step]] = &[
            &[Write(0, 7), Read(1)],
            &[Write(0, 7), Write(1, 7), Read(2)],
            &[Write(0, 7), Write(1, 8)],
            &[Write(0, 7), Write(1, 7), Write(1, 8)],
            &[Read(0), Write(0, 7), Write(1, 7)],
            &[Write(0, 7), Barrier, Read(0), Write(1, 8)],
            &[Write(0, 7), Barrier, Read(0), Write(0, 8), Write(1, 8)],
            &[Write(0, 7), Barrier, Write(0, 8), Read(1)],
        ];
        for (number, steps) in right.iter().enumerate() {
            assert!(is_ordered(steps), "right, number {number}");
        }
        for (number, steps) in wrong.iter().enumerate() {
            assert!(!is_ordered(steps), "wrong, number {number}");
        }
    }
}
