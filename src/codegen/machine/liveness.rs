//! Where virtual registers are live: live segments per register, exact to the instruction and to every 32-bit part of
//! a tuple, with holes between a last read and the next write.
//!
//! Positions: instruction `i` reads at `2 i + 1` and writes at `2 i + 2`, so a result may take the register of a source
//! that ends there; a result that must not (see [`is_early_clobber`]) is written at `2 i + 1`. A block of instructions
//! `s..e` covers the positions `2 s + 1 ..= 2 e`.
//!
//! Virtual registers may be written many times and in parts. A vector write while lanes are switched off leaves the
//! other lanes as they were, so it ends no lifetime, unless it is the only instruction that writes that part at all
//! (then there is nothing older to keep).

use super::access::{Access, ExecWrite, accesses, as_copy, exec_write, is_early_clobber};
use super::body::{Body, MachineInst, RegisterFile};
use crate::codegen::isa::{Implicit, MAX_OPERANDS};

/// No segment, no register, no index.
pub(super) const NONE: u32 = u32::MAX;

/// A closed range of positions where a register holds a value, and the next such range of the same register.
#[derive(Copy, Clone, Debug)]
pub(super) struct Segment {
    /// Position of the write (or of the block start).
    pub start: u32,
    /// Position of the last read (or of the block end).
    pub end: u32,
    /// Index of the next later segment, or [`NONE`].
    pub next: u32,
}

/// Another register whose place would make a copy unnecessary: own place = place of `other` + `offset`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hint {
    /// The register, or [`NONE`].
    pub other: u32,
    /// Difference of the places.
    pub offset: i32,
}

/// A register and some of its 32-bit parts, one bit each.
type Parts = (u32, u32);

/// Result and working memory of the analysis.
#[derive(Default)]
pub(super) struct Liveness {
    /// First segment of every register, or [`NONE`].
    pub first: Vec<u32>,
    /// All segments.
    pub segments: Vec<Segment>,
    /// One wish per register.
    pub hints: Vec<Hint>,
    /// Virtual operands of all instructions, reads before writes, and where those of each instruction end.
    operands: Vec<Parts>,
    operand_ends: Vec<(u32, u32)>,
    /// For every block start, then for every instruction, whether some lanes may be off; empty if EXEC is never written.
    masked_blocks: Vec<bool>,
    masked: Vec<bool>,
    /// Parts that two instructions write; filled if EXEC is ever written.
    rewritten: Vec<u32>,
    written: Vec<u32>,
    /// Parts written so far in the block named by `written_in`.
    written_in: Vec<u32>,
    /// Dense number of each register that is live into some block.
    global: Vec<u32>,
    globals: Vec<u32>,
    block_reads: Vec<Parts>,
    block_writes: Vec<Parts>,
    /// Ends of each block's part of the two lists.
    block_ends: Vec<(u32, u32)>,
    /// Blocks by globals: parts live at the start; parts written.
    live_in: Vec<u32>,
    kills: Vec<u32>,
    /// State of the backward walk: live parts and the end of the open segment.
    live: Vec<u32>,
    open_end: Vec<u32>,
}

fn parts(access: &Access, first: u32) -> u32 {
    (((1u64 << access.width) - 1) << first) as u32
}

fn refill<T: Clone>(column: &mut Vec<T>, len: usize, value: T) {
    column.clear();
    column.resize(len, value);
}

impl Liveness {
    /// Analyses `body`, whose operands lie within their registers.
    pub fn compute(&mut self, body: &Body) {
        let registers = body.registers.len();
        self.collect_operands(body);
        self.find_masked(body);
        refill(&mut self.written, registers, 0);
        if !self.masked.is_empty() {
            self.find_rewritten(body);
            refill(&mut self.written, registers, 0);
        }
        self.summarise_blocks(body);
        self.propagate(body);
        self.walk_backward(body);
    }

    /// Segments of one register in program order.
    pub fn of(&self, register: usize) -> impl Iterator<Item = Segment> + '_ {
        let mut next = self.first[register];
        std::iter::from_fn(move || {
            let segment = *self.segments.get(next as usize)?;
            next = segment.next;
            Some(segment)
        })
    }

    fn collect_operands(&mut self, body: &Body) {
        self.operands.clear();
        self.operand_ends.clear();
        for i in &body.insts {
            let mut writes = [(0, 0); MAX_OPERANDS];
            let mut count = 0;
            for access in accesses(&i.inst) {
                let Some((id, first)) = access.operand.as_virtual() else { continue };
                let parts = (id, parts(&access, first));
                if access.reads() {
                    self.operands.push(parts);
                }
                if access.writes() {
                    writes[count] = parts;
                    count += 1;
                }
            }
            let reads_end = self.operands.len() as u32;
            self.operands.extend_from_slice(&writes[..count]);
            self.operand_ends.push((reads_end, self.operands.len() as u32));
        }
    }

    /// Where the reads of an instruction start, where its writes start, and where they end.
    fn operands_of(&self, index: u32) -> (usize, usize, usize) {
        let start = index.checked_sub(1).map_or(0, |before| self.operand_ends[before as usize].1);
        let (reads_end, end) = self.operand_ends[index as usize];
        (start as usize, reads_end as usize, end as usize)
    }

    fn find_masked(&mut self, body: &Body) {
        self.masked.clear();
        if body.insts.iter().all(|i| exec_write(&i.inst) == ExecWrite::None) {
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

    fn find_rewritten(&mut self, body: &Body) {
        refill(&mut self.rewritten, body.registers.len(), 0);
        for index in 0..body.insts.len() as u32 {
            let (_, start, end) = self.operands_of(index);
            for &(id, parts) in &self.operands[start..end] {
                self.rewritten[id as usize] |= self.written[id as usize] & parts;
                self.written[id as usize] |= parts;
            }
        }
    }

    /// The parts of `written` that lose their old value at instruction `index`.
    fn killed(&self, body: &Body, index: u32, id: usize, written: u32) -> u32 {
        let partial = self.masked.get(index as usize).copied().unwrap_or(false)
            && body.registers[id].file != RegisterFile::Sgpr
            && body.insts[index as usize].inst.op.info().reads.contains(Implicit::EXEC);
        if partial { written & !self.rewritten[id] } else { written }
    }

    fn summarise_blocks(&mut self, body: &Body) {
        refill(&mut self.written_in, body.registers.len(), NONE);
        refill(&mut self.global, body.registers.len(), NONE);
        self.globals.clear();
        self.block_reads.clear();
        self.block_writes.clear();
        self.block_ends.clear();
        for (block, data) in body.blocks.iter().enumerate() {
            let first_write = self.block_writes.len();
            for at in data.start..data.end {
                let (reads, writes, end) = self.operands_of(at);
                for &(id, parts) in &self.operands[reads..writes] {
                    let index = id as usize;
                    let here = if self.written_in[index] == block as u32 { self.written[index] } else { 0 };
                    let exposed = parts & !here;
                    if exposed == 0 {
                        continue;
                    }
                    if self.global[index] == NONE {
                        self.global[index] = self.globals.len() as u32;
                        self.globals.push(id);
                    }
                    self.block_reads.push((id, exposed));
                }
                for n in writes..end {
                    let (id, parts) = self.operands[n];
                    let index = id as usize;
                    let killed = self.killed(body, at, index, parts);
                    if self.written_in[index] != block as u32 {
                        self.written_in[index] = block as u32;
                        self.written[index] = 0;
                        self.block_writes.push((id, 0));
                    }
                    self.written[index] |= killed;
                }
            }
            for (id, parts) in &mut self.block_writes[first_write..] {
                *parts = self.written[*id as usize];
            }
            self.block_ends.push((self.block_reads.len() as u32, self.block_writes.len() as u32));
        }
    }

    /// Solves live-in = reads | (live-out & !kills) for the registers that cross block borders.
    fn propagate(&mut self, body: &Body) {
        let (blocks, globals) = (body.blocks.len(), self.globals.len());
        refill(&mut self.live_in, blocks * globals, 0);
        refill(&mut self.kills, blocks * globals, 0);
        let (mut read, mut write) = (0, 0);
        for (block, &(reads_end, writes_end)) in self.block_ends.iter().enumerate() {
            for &(id, parts) in &self.block_reads[read..reads_end as usize] {
                self.live_in[block * globals + self.global[id as usize] as usize] |= parts;
            }
            for &(id, parts) in &self.block_writes[write..writes_end as usize] {
                if self.global[id as usize] != NONE {
                    self.kills[block * globals + self.global[id as usize] as usize] |= parts;
                }
            }
            (read, write) = (reads_end as usize, writes_end as usize);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (block, data) in body.blocks.iter().enumerate().rev() {
                for &successor in data.successors.iter().flatten() {
                    let (own, other) = (block * globals, successor as usize * globals);
                    for g in 0..globals {
                        let live = self.live_in[other + g] & !self.kills[own + g];
                        changed |= live & !self.live_in[own + g] != 0;
                        self.live_in[own + g] |= live;
                    }
                }
            }
        }
    }

    fn walk_backward(&mut self, body: &Body) {
        let registers = body.registers.len();
        refill(&mut self.first, registers, NONE);
        refill(&mut self.hints, registers, Hint { other: NONE, offset: 0 });
        refill(&mut self.live, registers, 0);
        refill(&mut self.open_end, registers, 0);
        self.segments.clear();
        let globals = self.globals.len();
        for data in body.blocks.iter().rev() {
            for g in 0..globals {
                let mut live = 0;
                for &successor in data.successors.iter().flatten() {
                    live |= self.live_in[successor as usize * globals + g];
                }
                let id = self.globals[g] as usize;
                self.live[id] = live;
                self.open_end[id] = 2 * data.end;
            }
            for index in (data.start..data.end).rev() {
                self.step_backward(body, index);
            }
            for g in 0..globals {
                let id = self.globals[g] as usize;
                if self.live[id] != 0 {
                    self.close(id, 2 * data.start + 1);
                    self.live[id] = 0;
                }
            }
        }
    }

    fn step_backward(&mut self, body: &Body, index: u32) {
        let inst = &body.insts[index as usize].inst;
        let read = 2 * index + 1;
        let written = if is_early_clobber(inst) { read } else { read + 1 };
        let (reads, writes, end) = self.operands_of(index);
        for n in writes..end {
            let (id, parts) = self.operands[n];
            let id = id as usize;
            let before = self.live[id];
            self.live[id] = before & !self.killed(body, index, id, parts);
            if before == 0 {
                self.open_end[id] = written;
            }
            if self.live[id] == 0 {
                self.close(id, written);
            }
        }
        for n in reads..writes {
            let (id, parts) = self.operands[n];
            let id = id as usize;
            if self.live[id] == 0 {
                self.open_end[id] = read;
            }
            self.live[id] |= parts;
        }
        if let Some((to, from)) = as_copy(inst)
            && let (Some((to, to_first)), Some((from, from_first))) = (to.as_virtual(), from.as_virtual())
            && body.registers[to as usize].file == body.registers[from as usize].file
        {
            let offset = from_first as i32 - to_first as i32;
            for (own, other, offset) in [(to, from, offset), (from, to, -offset)] {
                let hint = &mut self.hints[own as usize];
                if hint.other == NONE {
                    *hint = Hint { other, offset };
                }
            }
        }
    }

    /// Ends the open segment of a register at its start, and joins it to the following one if they touch.
    fn close(&mut self, id: usize, start: u32) {
        let end = self.open_end[id];
        let next = self.first[id];
        if let Some(following) = self.segments.get_mut(next as usize)
            && following.start <= end + 1
        {
            following.start = start;
            return;
        }
        // Live through a block without instructions: no position to hold.
        if start > end {
            return;
        }
        self.first[id] = self.segments.len() as u32;
        self.segments.push(Segment { start, end, next });
    }
}

fn masked_after(masked: bool, i: &MachineInst) -> bool {
    match exec_write(&i.inst) {
        ExecWrite::None => masked,
        ExecWrite::All => false,
        ExecWrite::Some => true,
    }
}
