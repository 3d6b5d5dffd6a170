//! Where virtual registers are live: live segments per register, exact to the instruction and to every 32-bit
//! part of a tuple, with holes between a last read and the next write. A tuple that is built or consumed in
//! parts holds only the parts that carry a value.
//!
//! Positions: instruction `i` reads at `2 i + 1` and writes at `2 i + 2`, so a result may take the register
//! of a source that ends there; a result that must not (see [`is_early_clobber`]) is written at `2 i + 1`. A
//! block of instructions `s..e` covers the positions `2 s + 1 ..= 2 e`.
//!
//! Virtual registers may be written many times and in parts. A vector write while lanes are switched off
//! leaves the other lanes as they were, so it ends no lifetime, unless it is the only instruction that writes
//! that part at all and nothing is there from the start (then there is no older value to keep: lanes that
//! only an earlier iteration has written are not read).

use super::access::{ExecWrite, exec_write, is_early_clobber};
use super::allocate::AllocationError;
use super::body::{Body, MachineInst, RegisterFile};
use super::flow::{Crossing, Flow};
use super::operands::Operands;
use crate::codegen::isa::{Implicit, Operand};

/// No segment, no register, no index.
pub(super) const NONE: u32 = u32::MAX;

/// A closed range of positions where the same parts of a register hold values, and the next such range of the
/// register.
#[derive(Copy, Clone, Debug)]
pub(super) struct Segment {
    /// First position: that of a write, of the block start, or after the last read of a part.
    pub start: u32,
    /// Last position.
    pub end: u32,
    /// Parts that hold values, one bit each.
    pub parts: u32,
    /// Index of the next later segment, or [`NONE`].
    pub next: u32,
}

/// Result and working memory of the analysis.
#[derive(Default)]
pub(super) struct Liveness {
    /// First segment of every register, or [`NONE`].
    pub first: Vec<u32>,
    /// All segments.
    pub segments: Vec<Segment>,
    /// Registers that instructions name.
    pub operands: Operands,
    /// For every block start, then for every instruction, whether some lanes may be off; empty if EXEC is
    /// never written.
    masked_blocks: Vec<bool>,
    masked: Vec<bool>,
    /// Parts that two instructions write, or one in the case of an input; filled if EXEC is ever written.
    rewritten: Vec<u32>,
    written: Vec<u32>,
    /// Parts written so far in the block named by `written_in`.
    written_in: Vec<u32>,
    /// Number of each register that is live into some block, those registers, and what each block writes.
    number: Vec<u32>,
    crossing: Vec<u32>,
    block_writes: Vec<Crossing>,
    /// What crosses the borders of blocks.
    flow: Flow,
    /// Registers that are live at the end of the block being walked.
    live_out: Vec<u32>,
    /// State of the backward walk: live parts, and parts and end of the open segment.
    live: Vec<u32>,
    open_parts: Vec<u32>,
    open_end: Vec<u32>,
}

fn refill<T: Clone>(column: &mut Vec<T>, len: usize, value: T) {
    column.clear();
    column.resize(len, value);
}

impl Liveness {
    /// Analyses `body`; `inputs` hold something at its start.
    ///
    /// # Errors
    /// An operand that does not lie in its register.
    pub(super) fn compute(&mut self, body: &Body, inputs: &[(u32, Operand)]) -> Result<(), AllocationError> {
        let registers = body.registers.len();
        self.operands.collect(body)?;
        self.find_masked(body);
        refill(&mut self.written, registers, 0);
        if !self.masked.is_empty() {
            self.find_rewritten(body, inputs);
            refill(&mut self.written, registers, 0);
        }
        self.summarise_blocks(body);
        self.flow.solve(body, &self.crossing);
        self.walk_backward(body);
        Ok(())
    }

    /// Segments of one register in program order.
    pub(super) fn of(&self, register: usize) -> impl Iterator<Item = Segment> + '_ {
        let mut next = self.first[register];
        std::iter::from_fn(move || {
            let segment = *self.segments.get(next as usize)?;
            next = segment.next;
            Some(segment)
        })
    }

    fn find_masked(&mut self, body: &Body) {
        self.masked.clear();
        if !self.operands.writes_exec {
            return;
        }
        refill(&mut self.masked_blocks, body.blocks.len(), false);
        let mut changed = true;
        while changed {
            changed = false;
            for (index, block) in body.blocks.iter().enumerate() {
                let out = body.block(index).iter().fold(self.masked_blocks[index], masked_after);
                for successor in block.successors.iter().flatten() {
                    let entry = &mut self.masked_blocks[*successor as usize];
                    changed |= out && !*entry;
                    *entry |= out;
                }
            }
        }
        for (index, &at_start) in self.masked_blocks.iter().enumerate() {
            let mut masked = at_start;
            for i in body.block(index) {
                self.masked.push(masked);
                masked = masked_after(masked, i);
            }
        }
    }

    fn find_rewritten(&mut self, body: &Body, inputs: &[(u32, Operand)]) {
        refill(&mut self.rewritten, body.registers.len(), 0);
        for &(id, _) in inputs {
            if let Some(written) = self.written.get_mut(id as usize) {
                *written = u32::MAX;
            }
        }
        for index in 0..body.insts.len() as u32 {
            for &(id, parts) in self.operands.of(index).1 {
                self.rewritten[id as usize] |= self.written[id as usize] & parts;
                self.written[id as usize] |= parts;
            }
        }
    }

    /// The parts of `written` that lose their old value at instruction `index`.
    fn killed(&self, body: &Body, index: u32, id: usize, written: u32) -> u32 {
        let partial = self.is_masked(index as usize)
            && body.registers[id].file != RegisterFile::Sgpr
            && body.insts[index as usize].inst.op.info().reads.contains(Implicit::EXEC);
        if partial { written & !self.rewritten[id] } else { written }
    }

    fn summarise_blocks(&mut self, body: &Body) {
        refill(&mut self.written_in, body.registers.len(), NONE);
        refill(&mut self.number, body.registers.len(), NONE);
        self.crossing.clear();
        self.block_writes.clear();
        self.flow.clear();
        for (block, data) in body.blocks.iter().enumerate() {
            let first_write = self.block_writes.len();
            for at in data.start..data.end {
                let (reads, writes) = self.operands.of(at);
                for &(id, parts) in reads {
                    let index = id as usize;
                    let here = if self.written_in[index] == block as u32 { self.written[index] } else { 0 };
                    let exposed = parts & !here;
                    if exposed == 0 {
                        continue;
                    }
                    if self.number[index] == NONE {
                        self.number[index] = self.crossing.len() as u32;
                        self.crossing.push(id);
                    }
                    self.flow.reads.push((self.number[index], block as u32, exposed));
                }
                for &(id, parts) in writes {
                    let index = id as usize;
                    let killed = self.killed(body, at, index, parts);
                    if self.written_in[index] != block as u32 {
                        self.written_in[index] = block as u32;
                        self.written[index] = 0;
                        self.block_writes.push((id, block as u32, 0));
                    }
                    self.written[index] |= killed;
                }
            }
            for (id, _, parts) in &mut self.block_writes[first_write..] {
                *parts = self.written[*id as usize];
            }
        }
        let numbered =
            self.block_writes.iter().map(|write| (self.number[write.0 as usize], write.1, write.2));
        self.flow.kills.extend(numbered.filter(|write| write.0 != NONE));
    }

    fn walk_backward(&mut self, body: &Body) {
        let registers = body.registers.len();
        refill(&mut self.first, registers, NONE);
        refill(&mut self.live, registers, 0);
        refill(&mut self.open_parts, registers, 0);
        refill(&mut self.open_end, registers, 0);
        self.segments.clear();
        let operands = std::mem::take(&mut self.operands);
        for (block, data) in body.blocks.iter().enumerate().rev() {
            self.live_out.clear();
            for &successor in data.successors.iter().flatten() {
                for at in self.flow.live_at(successor) {
                    let (id, parts) = self.flow.entry(at);
                    if self.live[id as usize] == 0 {
                        self.live_out.push(id);
                    }
                    self.live[id as usize] |= parts;
                }
            }
            for at in 0..self.live_out.len() {
                let id = self.live_out[at] as usize;
                self.change(id, 2 * data.end, self.live[id]);
            }
            for index in (data.start..data.end).rev() {
                self.step_backward(body, &operands, index);
            }
            for at in self.flow.live_at(block as u32) {
                let id = self.flow.entry(at).0 as usize;
                self.change(id, 2 * data.start, 0);
                self.live[id] = 0;
            }
        }
        self.operands = operands;
    }

    fn step_backward(&mut self, body: &Body, operands: &Operands, index: u32) {
        let inst = &body.insts[index as usize].inst;
        let read = 2 * index + 1;
        let early = is_early_clobber(inst);
        let written = if early { read } else { read + 1 };
        let (reads, writes) = operands.of(index);
        for (n, &(id, mut parts)) in writes.iter().enumerate() {
            // Several results in one register count as one write.
            if writes[..n].iter().any(|other| other.0 == id) {
                continue;
            }
            for other in &writes[n + 1..] {
                parts |= if other.0 == id { other.1 } else { 0 };
            }
            let id = id as usize;
            let mut held = self.live[id] | parts;
            if early {
                for other in reads {
                    held |= if other.0 as usize == id { other.1 } else { 0 };
                }
            }
            self.change(id, written, held);
            self.live[id] &= !self.killed(body, index, id, parts);
            self.change(id, written - 1, self.live[id]);
        }
        for &(id, parts) in reads {
            let id = id as usize;
            self.live[id] |= parts;
            // An early result of the same register already has this position, together with everything that
            // is read in it.
            let taken = early && writes.iter().any(|other| other.0 as usize == id);
            self.change(id, read - u32::from(taken), self.live[id]);
        }
    }

    /// From position `at` downwards, `parts` of the register hold values.
    fn change(&mut self, id: usize, at: u32, parts: u32) {
        let (open, end) = (self.open_parts[id], self.open_end[id]);
        if open == parts && parts != 0 && end >= at {
            return;
        }
        if open != 0 && end > at {
            self.close(id, at + 1);
        }
        self.open_parts[id] = parts;
        self.open_end[id] = at;
    }

    /// Ends the open segment of a register at its start, and joins it with the following one if they touch
    /// and hold the same parts.
    fn close(&mut self, id: usize, start: u32) {
        let (parts, end) = (self.open_parts[id], self.open_end[id]);
        let next = self.first[id];
        if let Some(following) = self.segments.get_mut(next as usize)
            && following.start == end + 1
            && following.parts == parts
        {
            following.start = start;
            return;
        }
        self.first[id] = self.segments.len() as u32;
        self.segments.push(Segment { start, end, parts, next });
    }

    /// Renumbers the positions after instructions were removed that did not change which parts of which
    /// register hold values: instruction `i` is now number `numbers[i]`, which is that of the next one if it
    /// was removed. The last number is the new count.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        self.operands.renumber(numbers);
        if !self.masked.is_empty() {
            let mut index = 0;
            self.masked.retain(|_| {
                index += 1;
                numbers[index - 1] != numbers[index]
            });
        }
        // Whether an instruction was removed, and the position before the first one of what stands in its
        // place.
        let place = |position: u32| {
            let (index, write) = ((position as usize - 1) / 2, (position - 1) % 2);
            let gone = numbers[index] == numbers[index + 1];
            (gone, 2 * numbers[index], write)
        };
        for first in &mut self.first {
            let (mut next, mut last) = (std::mem::replace(first, NONE), NONE);
            while let Some(&segment) = self.segments.get(next as usize) {
                let start = match place(segment.start) {
                    (true, before, _) => before + 1,
                    (false, before, write) => before + 1 + write,
                };
                let end = match place(segment.end) {
                    (true, before, _) => before,
                    (false, before, write) => before + 1 + write,
                };
                let at = std::mem::replace(&mut next, segment.next);
                if start > end {
                    continue;
                }
                match self.segments.get_mut(last as usize) {
                    Some(before) if before.end + 1 == start && before.parts == segment.parts => {
                        before.end = end;
                        continue;
                    }
                    Some(before) => before.next = at,
                    None => *first = at,
                }
                self.segments[at as usize] = Segment { start, end, next: NONE, ..segment };
                last = at;
            }
        }
    }

    /// Steps that it took to find the registers that are live from block to block.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.flow.steps
    }

    /// True if some lanes may be off when instruction `index` executes.
    pub(super) fn is_masked(&self, index: usize) -> bool {
        self.masked.get(index).copied().unwrap_or(false)
    }
}

fn masked_after(masked: bool, i: &MachineInst) -> bool {
    match exec_write(&i.inst) {
        ExecWrite::None => masked,
        ExecWrite::All => false,
        ExecWrite::Some => true,
    }
}
