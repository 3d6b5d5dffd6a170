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
use super::allocation_error::AllocationError;
use super::body::{BlockId, InstId, MachineBody, MachineInst, RegisterFile};
use super::dataflow::{Dataflow, Walk};
use super::flow::{CrossingId, Flow};
use super::operands::VirtualOperands;
use crate::codegen::isa::{Implicit, Operand, VReg};
use crate::index::{Links, Neighbours, Stretches};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};
use std::iter::repeat_n;

/// A place between and in instructions where registers hold values.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Position(u32);
entity_impl!(Position, "");

impl Position {
    /// Before everything.
    pub(super) const START: Position = Position(0);

    /// The last one before an instruction: where the one in front of it writes.
    pub(super) fn ahead_of(inst: InstId) -> Position {
        Position(2 * inst.as_u32())
    }

    /// Where an instruction reads.
    pub(super) fn read(inst: InstId) -> Position {
        Position(2 * inst.as_u32() + 1)
    }

    /// Where an instruction writes.
    pub(super) fn write(inst: InstId) -> Position {
        Position(2 * inst.as_u32() + 2)
    }

    /// The last one of a body.
    pub(super) fn end(body: &MachineBody) -> Position {
        Position::ahead_of(body.insts.next_key())
    }

    /// The instruction that reads or writes here.
    pub(super) fn inst(self) -> InstId {
        InstId::from_u32(self.0.saturating_sub(1) / 2)
    }

    /// The one before it; the first has none.
    pub(super) fn back(self) -> Position {
        Position(self.0 - 1)
    }
}

/// The number of a segment among all of a body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SegmentId(u32);
entity_impl!(SegmentId, "");

/// A closed range of positions where the same parts of a register hold values, and the next such range of the
/// register.
#[derive(Copy, Clone, Debug)]
pub(super) struct LiveSegment {
    /// First position: that of a write, of the block start, or after the last read of a part.
    pub start: Position,
    /// Last position.
    pub end: Position,
    /// Parts that hold values, one bit each.
    pub parts: u32,
    /// The next later segment.
    pub next: PackedOption<SegmentId>,
}

/// Result and working memory of the analysis.
#[derive(Default)]
pub(super) struct Liveness {
    /// First segment of every register.
    pub first: SecondaryMap<VReg, PackedOption<SegmentId>>,
    /// All segments.
    pub segments: PrimaryMap<SegmentId, LiveSegment>,
    /// Registers that instructions name.
    pub operands: VirtualOperands,
    /// For every block start, then for every instruction, whether some lanes may be off; empty if EXEC is
    /// never written.
    masked_blocks: Dataflow<bool>,
    masked: PrimaryMap<InstId, bool>,
    /// Parts that two instructions write, or one in the case of an input; filled if EXEC is ever written.
    rewritten: SecondaryMap<VReg, u32>,
    written: SecondaryMap<VReg, RegisterWrites>,
    /// Registers that are live into some block, and what each block writes.
    crossing: PrimaryMap<CrossingId, VReg>,
    block_writes: Vec<(VReg, BlockId, u32)>,
    /// What crosses the borders of blocks.
    flow: Flow,
    /// Registers that are live at the end of the block being walked.
    live_out: Vec<VReg>,
    /// State of the backward walk.
    open: SecondaryMap<VReg, OpenSegment>,
}

/// What the walk forward knows of a register. One record, because it looks at all of it at once.
#[derive(Copy, Clone, Default)]
struct RegisterWrites {
    /// Parts written so far, in the block named next.
    parts: u32,
    block: PackedOption<BlockId>,
    /// Its number, if it is live into some block.
    number: PackedOption<CrossingId>,
}

/// What the walk backward knows of a register.
#[derive(Copy, Clone, Default)]
struct OpenSegment {
    /// Parts that hold values here.
    live: u32,
    /// Parts of the segment whose start is not known yet; none without one.
    parts: u32,
    /// Its last position.
    end: Position,
}

impl OpenSegment {
    /// From position `at` downwards, `parts` of the register hold values: the segment that starts after it.
    #[inline]
    fn change(&mut self, at: Position, parts: u32) -> Option<OpenSegment> {
        if self.parts == parts && parts != 0 && self.end >= at {
            return None;
        }
        let closed = *self;
        (self.parts, self.end) = (parts, at);
        (closed.parts != 0 && closed.end > at).then_some(closed)
    }
}

impl Liveness {
    /// Analyses `body`; `inputs` hold something at its start.
    ///
    /// # Errors
    /// An operand that does not lie in its register.
    pub(super) fn compute(
        &mut self,
        body: &MachineBody,
        inputs: &[(VReg, Operand)],
    ) -> Result<(), AllocationError> {
        let count = body.registers.len();
        self.operands.collect(body)?;
        self.find_masked(body);
        self.written.clear();
        self.written.resize(count);
        if !self.masked.is_empty() {
            self.find_rewritten(body, inputs);
            self.written.clear();
            self.written.resize(count);
        }
        self.summarise_blocks(body);
        self.flow.solve(body, &self.crossing);
        self.walk_backward(body);
        Ok(())
    }

    /// Segments of one register in program order.
    pub(super) fn of(&self, register: VReg) -> impl Iterator<Item = LiveSegment> + '_ {
        let mut next = self.first[register];
        std::iter::from_fn(move || {
            let segment = *self.segments.at(next)?;
            next = segment.next;
            Some(segment)
        })
    }

    fn find_masked(&mut self, body: &MachineBody) {
        self.masked.clear();
        let writes = &self.operands.exec_writes[..];
        if writes.is_empty() {
            return;
        }
        let mut masking = Masking { body, writes };
        self.masked_blocks.solve(body, &mut masking);
        for (block, &at_start) in self.masked_blocks.entries().iter() {
            let mut masked = at_start;
            for &write in masking.writes_in(block) {
                note_until(&mut self.masked, write.next(), masked);
                masked = masked_after(masked, &body.insts[write]);
            }
            note_until(&mut self.masked, body.blocks[block].end, masked);
        }
    }

    fn find_rewritten(&mut self, body: &MachineBody, inputs: &[(VReg, Operand)]) {
        self.rewritten.clear();
        self.rewritten.resize(body.registers.len());
        for &(id, _) in inputs {
            if self.written.get(id).is_some() {
                self.written[id].parts = u32::MAX;
            }
        }
        for index in body.insts.keys() {
            for &(id, parts) in self.operands.of(index).1 {
                let written = &mut self.written[id].parts;
                self.rewritten[id] |= *written & parts;
                *written |= parts;
            }
        }
    }

    /// The parts of `written` that lose their old value at instruction `index`.
    fn killed(&self, body: &MachineBody, index: InstId, id: VReg, written: u32) -> u32 {
        let partial = self.is_masked(index)
            && body.registers[id].file != RegisterFile::Sgpr
            && body.insts[index].inst.op.info().reads.contains(Implicit::EXEC);
        if partial { written & !self.rewritten[id] } else { written }
    }

    fn summarise_blocks(&mut self, body: &MachineBody) {
        self.crossing.clear();
        self.block_writes.clear();
        self.block_writes.reserve(body.registers.len());
        self.flow.clear();
        for (block, data) in body.blocks.iter() {
            let first_write = self.block_writes.len();
            for at in data.insts() {
                let (reads, writes) = self.operands.of(at);
                for &(id, parts) in reads {
                    let written = &mut self.written[id];
                    let here = if written.block == block.into() { written.parts } else { 0 };
                    let exposed = parts & !here;
                    if exposed == 0 {
                        continue;
                    }
                    let number = written.number.expand().unwrap_or_else(|| {
                        let number = self.crossing.push(id);
                        written.number = number.into();
                        number
                    });
                    self.flow.reads.push((number, block, exposed));
                }
                for &(id, parts) in writes {
                    let killed = self.killed(body, at, id, parts);
                    let written = &mut self.written[id];
                    if written.block != block.into() {
                        (written.block, written.parts) = (block.into(), 0);
                        self.block_writes.push((id, block, 0));
                    }
                    written.parts |= killed;
                }
            }
            for (id, _, parts) in &mut self.block_writes[first_write..] {
                *parts = self.written[*id].parts;
            }
        }
        let numbered = |&(id, block, parts): &(VReg, BlockId, u32)| {
            Some((self.written[id].number.expand()?, block, parts))
        };
        self.flow.kills.extend(self.block_writes.iter().filter_map(numbered));
    }

    fn walk_backward(&mut self, body: &MachineBody) {
        self.first.clear();
        self.first.resize(body.registers.len());
        self.open.clear();
        self.open.resize(body.registers.len());
        self.segments.clear();
        self.segments.reserve(2 * body.registers.len());
        let operands = std::mem::take(&mut self.operands);
        for (block, data) in body.blocks.iter().rev() {
            self.live_out.clear();
            for &successor in data.successors.iter().flatten() {
                for at in self.flow.live_at(successor) {
                    let (id, parts) = self.flow.entry(at);
                    let open = &mut self.open[id];
                    if open.live == 0 {
                        self.live_out.push(id);
                    }
                    open.live |= parts;
                }
            }
            for at in 0..self.live_out.len() {
                let id = self.live_out[at];
                self.change(id, Position::ahead_of(data.end), |live| live);
            }
            for index in data.insts().rev() {
                self.step_backward(body, &operands, index);
            }
            for at in self.flow.live_at(block) {
                let id = self.flow.entry(at).0;
                self.change(id, Position::ahead_of(data.start), |_| 0);
            }
        }
        self.operands = operands;
    }

    fn step_backward(&mut self, body: &MachineBody, operands: &VirtualOperands, index: InstId) {
        let inst = &body.insts[index].inst;
        let read = Position::read(index);
        let early = is_early_clobber(inst);
        let written = if early { read } else { Position::write(index) };
        let (reads, writes) = operands.of(index);
        for &(id, parts) in writes {
            let killed = self.killed(body, index, id, parts);
            let mut held = parts;
            if early {
                for other in reads {
                    held |= if other.0 == id { other.1 } else { 0 };
                }
            }
            let open = &mut self.open[id];
            if let Some(closed) = open.change(written, open.live | held) {
                self.close(id, closed, written);
            }
            self.change(id, written.back(), |live| live & !killed);
        }
        for &(id, parts) in reads {
            // An early result of the same register already has this position, together with everything that
            // is read in it.
            let taken = early && writes.iter().any(|other| other.0 == id);
            self.change(id, if taken { read.back() } else { read }, |live| live | parts);
        }
    }

    /// From position `at` downwards, other parts of the register are live.
    #[inline]
    fn change(&mut self, id: VReg, at: Position, live: impl Fn(u32) -> u32) {
        let open = &mut self.open[id];
        open.live = live(open.live);
        if let Some(closed) = open.change(at, open.live) {
            self.close(id, closed, at);
        }
    }

    /// Notes a segment of a register that starts after `before`, and joins it with the following one if they
    /// touch and hold the same parts.
    fn close(&mut self, id: VReg, closed: OpenSegment, before: Position) {
        let OpenSegment { parts, end, .. } = closed;
        let (start, next) = (before.next(), self.first[id]);
        if let Some(following) = self.segments.at_mut(next)
            && following.start == end.next()
            && following.parts == parts
        {
            following.start = start;
            return;
        }
        self.first[id] = self.segments.push(LiveSegment { start, end, parts, next }).into();
    }

    /// Renumbers the positions after instructions were removed that did not change which parts of which
    /// register hold values: instruction `i` is now number `numbers[i]`, which is that of the next one if it
    /// was removed. The last number is the new count.
    pub(super) fn renumber(&mut self, numbers: &PrimaryMap<InstId, InstId>) {
        self.operands.renumber(numbers);
        if !self.masked.is_empty() {
            // What is removed is overwritten by what stands in its place.
            for index in self.masked.keys() {
                self.masked[numbers[index]] = self.masked[index];
            }
            self.masked.truncate(numbers[self.masked.next_key()]);
        }
        // Whether an instruction was removed, and what stands in its place.
        let place = |position: Position| {
            let index = position.inst();
            (numbers[index] == numbers[index.next()], numbers[index])
        };
        let is_write = |position: Position| position == Position::write(position.inst());
        let moved = |position: Position, now| {
            if is_write(position) { Position::write(now) } else { Position::read(now) }
        };
        for first in self.first.values_mut() {
            let (mut next, mut last) = (std::mem::take(first), PackedOption::default());
            while let Some(&segment) = self.segments.at(next) {
                let start = match place(segment.start) {
                    (true, now) => Position::read(now),
                    (false, now) => moved(segment.start, now),
                };
                let end = match place(segment.end) {
                    (true, now) => Position::ahead_of(now),
                    (false, now) => moved(segment.end, now),
                };
                let at = std::mem::replace(&mut next, segment.next);
                if start > end {
                    continue;
                }
                match self.segments.at_mut(last) {
                    Some(before) if before.end.next() == start && before.parts == segment.parts => {
                        before.end = end;
                        continue;
                    }
                    Some(before) => before.next = at,
                    None => *first = at,
                }
                if let Some(own) = self.segments.at_mut(at) {
                    *own = LiveSegment { start, end, next: PackedOption::default(), ..segment };
                }
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
    pub(super) fn is_masked(&self, index: InstId) -> bool {
        self.masked.get(index).copied().unwrap_or(false)
    }
}

/// Where lanes may be off.
struct Masking<'a> {
    body: &'a MachineBody,
    /// Instructions that write EXEC.
    writes: &'a [InstId],
}

impl<'a> Masking<'a> {
    /// Those of a block.
    fn writes_in(&self, block: BlockId) -> &'a [InstId] {
        let data = &self.body.blocks[block];
        let [start, end] = [data.start, data.end].map(|at| self.writes.partition_point(|&write| write < at));
        &self.writes[start..end]
    }
}

impl Walk<bool> for Masking<'_> {
    fn through(&mut self, block: BlockId, entry: &bool, exit: &mut bool) {
        let insts = self.writes_in(block).iter().map(|&write| &self.body.insts[write]);
        *exit = insts.fold(*entry, masked_after);
    }
}

/// Notes the same for the instructions before `end` for which nothing was noted.
fn note_until(masked: &mut PrimaryMap<InstId, bool>, end: InstId, value: bool) {
    masked.extend(repeat_n(value, end.index() - masked.len()));
}

fn masked_after(masked: bool, i: &MachineInst) -> bool {
    match exec_write(&i.inst) {
        ExecWrite::None => masked,
        ExecWrite::All => false,
        ExecWrite::Some => true,
    }
}
