//! Which registers hold values where control passes from block to block: live-in = reads | (live-out &
//! !kills), solved for one register after the other, from the blocks that read what they have not written
//! back to those that write it. The work grows with the places where registers are live, not with blocks
//! times registers.

use std::ops::Range;

use super::body::{BlockId, MachineBody};
use crate::codegen::isa::VReg;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};

/// The number of a register among those that are live at the start of some block.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CrossingId(u32);
entity_impl!(CrossingId, "");

/// A register that is read or written in a block, the block, and which of its parts.
pub(super) type Crossing = (CrossingId, BlockId, u32);

/// Triples grouped by their first field.
struct Groups<G, M> {
    entries: Vec<(G, M, u32)>,
    ends: Vec<usize>,
}

impl<G, M> Default for Groups<G, M> {
    fn default() -> Groups<G, M> {
        Groups { entries: Vec::new(), ends: Vec::new() }
    }
}

impl<G: EntityRef, M: EntityRef> Groups<G, M> {
    /// Takes over a list, with each entry in the group of its first field, which is one of `groups`.
    fn fill<T>(&mut self, list: &[(G, M, u32)], groups: &PrimaryMap<G, T>) {
        let Groups { entries, ends } = self;
        ends.clear();
        ends.resize(groups.len() + 1, 0);
        for entry in list {
            ends[entry.0.index() + 1] += 1;
        }
        let mut end = 0;
        for start in ends.iter_mut() {
            end += *start;
            *start = end;
        }
        entries.clear();
        entries.resize(list.len(), (G::new(0), M::new(0), 0));
        for &entry in list {
            let place = &mut ends[entry.0.index()];
            entries[*place] = entry;
            *place += 1;
        }
    }

    /// Where those of a group are.
    fn of(&self, group: G) -> Range<usize> {
        let start = group.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[group.index()]
    }
}

/// The problem, its solution and working memory.
#[derive(Default)]
pub(super) struct Flow {
    /// Parts that a block reads before it writes them.
    pub reads: Vec<Crossing>,
    /// Parts that a block writes. Registers that no block reads from before do not matter.
    pub kills: Vec<Crossing>,
    by_register: [Groups<CrossingId, BlockId>; 2],
    /// Edges between blocks, grouped by where they go to, and where they come from.
    edges: Vec<(BlockId, BlockId, u32)>,
    ways_in: Groups<BlockId, BlockId>,
    /// Of the current register: its live parts at the start of each block, its parts written there, blocks
    /// where it is live, and blocks whose predecessors have not been told yet.
    live: SecondaryMap<BlockId, u32>,
    killed: SecondaryMap<BlockId, u32>,
    found: Vec<BlockId>,
    queue: Vec<BlockId>,
    /// Block, register, parts.
    all: Vec<(BlockId, VReg, u32)>,
    live_in: Groups<BlockId, VReg>,
    /// How often blocks were looked at.
    pub steps: usize,
}

impl Flow {
    /// Forgets the reads and writes of the last body.
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.kills.clear();
    }

    /// Finds what is live at the start of each block. `registers` are those that cross borders.
    pub(super) fn solve(&mut self, body: &MachineBody, registers: &PrimaryMap<CrossingId, VReg>) {
        let [mut reads, mut kills] = std::mem::take(&mut self.by_register);
        reads.fill(&self.reads, registers);
        kills.fill(&self.kills, registers);
        self.edges.clear();
        for (block, data) in body.blocks.iter() {
            self.edges.extend(data.successors.iter().flatten().map(|&next| (next, block, 0)));
        }
        self.ways_in.fill(&self.edges, &body.blocks);
        for column in [&mut self.live, &mut self.killed] {
            column.clear();
            column.resize(body.blocks.len());
        }
        self.all.clear();
        self.steps = 0;
        for (number, &register) in registers.iter() {
            let kills = &kills.entries[kills.of(number)];
            for &(_, block, parts) in kills {
                self.killed[block] |= parts;
            }
            for &(_, block, parts) in &reads.entries[reads.of(number)] {
                self.enter(block, parts);
            }
            while let Some(block) = self.queue.pop() {
                let live = self.live[block];
                for at in self.ways_in.of(block) {
                    let before = self.ways_in.entries[at].1;
                    self.enter(before, live & !self.killed[before]);
                }
            }
            for block in self.found.drain(..) {
                let parts = std::mem::take(&mut self.live[block]);
                self.all.push((block, register, parts));
            }
            for &(_, block, _) in kills {
                self.killed[block] = 0;
            }
        }
        self.live_in.fill(&self.all, &body.blocks);
        self.by_register = [reads, kills];
    }

    /// Notes that parts of the current register are live at the start of a block.
    fn enter(&mut self, block: BlockId, parts: u32) {
        self.steps += 1;
        let live = &mut self.live[block];
        if parts & !*live != 0 {
            if *live == 0 {
                self.found.push(block);
            }
            *live |= parts;
            self.queue.push(block);
        }
    }

    /// Where the entries of a block are.
    pub(super) fn live_at(&self, block: BlockId) -> Range<usize> {
        self.live_in.of(block)
    }

    /// An entry: register and parts.
    pub(super) fn entry(&self, at: usize) -> (VReg, u32) {
        let (_, register, parts) = self.live_in.entries[at];
        (register, parts)
    }
}
