//! Which registers hold values where control passes from block to block: live-in = reads | (live-out &
//! !kills), solved for one register after the other, from the blocks that read what they have not written
//! back to those that write it. The work grows with the places where registers are live, not with blocks
//! times registers.

use std::ops::Range;

use super::body::Body;

/// A register that is read or written in a block: its number among those that cross borders, the block, and
/// which of its parts.
pub(super) type Crossing = (u32, u32, u32);

/// Crossings grouped by their first field.
#[derive(Default)]
struct Groups {
    entries: Vec<Crossing>,
    ends: Vec<u32>,
}

impl Groups {
    /// Takes over a list, with each entry in the group of its first field, which is less than `count`.
    fn fill(&mut self, list: &[Crossing], count: usize) {
        let Groups { entries, ends } = self;
        ends.clear();
        ends.resize(count + 1, 0);
        for entry in list {
            ends[entry.0 as usize + 1] += 1;
        }
        let mut end = 0;
        for start in ends.iter_mut() {
            end += *start;
            *start = end;
        }
        entries.clear();
        entries.resize(list.len(), (0, 0, 0));
        for &entry in list {
            let place = &mut ends[entry.0 as usize];
            entries[*place as usize] = entry;
            *place += 1;
        }
    }

    /// Where those of a group are.
    fn of(&self, group: u32) -> Range<usize> {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        start as usize..self.ends[group as usize] as usize
    }
}

/// The problem, its solution and working memory.
#[derive(Default)]
pub(super) struct Flow {
    /// Parts that a block reads before it writes them.
    pub reads: Vec<Crossing>,
    /// Parts that a block writes. Registers that no block reads from before do not matter.
    pub kills: Vec<Crossing>,
    by_register: [Groups; 2],
    /// Edges between blocks, grouped by where they go to, and where they come from.
    edges: Vec<Crossing>,
    ways_in: Groups,
    /// Of the current register: its live parts at the start of each block, its parts written there, blocks
    /// where it is live, and blocks whose predecessors have not been told yet.
    live: Vec<u32>,
    killed: Vec<u32>,
    found: Vec<u32>,
    queue: Vec<u32>,
    /// Block, register, parts.
    all: Vec<Crossing>,
    live_in: Groups,
    /// How often blocks were looked at.
    pub steps: usize,
}

impl Flow {
    /// Forgets the reads and writes of the last body.
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.kills.clear();
    }

    /// Finds what is live at the start of each block. `registers` are those that cross borders, by their
    /// numbers.
    pub(super) fn solve(&mut self, body: &Body, registers: &[u32]) {
        let [mut reads, mut kills] = std::mem::take(&mut self.by_register);
        reads.fill(&self.reads, registers.len());
        kills.fill(&self.kills, registers.len());
        self.edges.clear();
        for (data, block) in body.blocks.iter().zip(0..) {
            self.edges.extend(data.successors.iter().flatten().map(|&next| (next, block, 0)));
        }
        self.ways_in.fill(&self.edges, body.blocks.len());
        for column in [&mut self.live, &mut self.killed] {
            column.clear();
            column.resize(body.blocks.len(), 0);
        }
        self.all.clear();
        self.steps = 0;
        for (&register, number) in registers.iter().zip(0..) {
            let kills = &kills.entries[kills.of(number)];
            for &(_, block, parts) in kills {
                self.killed[block as usize] |= parts;
            }
            for &(_, block, parts) in &reads.entries[reads.of(number)] {
                self.enter(block, parts);
            }
            while let Some(block) = self.queue.pop() {
                let live = self.live[block as usize];
                for at in self.ways_in.of(block) {
                    let before = self.ways_in.entries[at].1;
                    self.enter(before, live & !self.killed[before as usize]);
                }
            }
            for block in self.found.drain(..) {
                let parts = std::mem::take(&mut self.live[block as usize]);
                self.all.push((block, register, parts));
            }
            for &(_, block, _) in kills {
                self.killed[block as usize] = 0;
            }
        }
        self.live_in.fill(&self.all, body.blocks.len());
        self.by_register = [reads, kills];
    }

    /// Notes that parts of the current register are live at the start of a block.
    fn enter(&mut self, block: u32, parts: u32) {
        self.steps += 1;
        let live = &mut self.live[block as usize];
        if parts & !*live != 0 {
            if *live == 0 {
                self.found.push(block);
            }
            *live |= parts;
            self.queue.push(block);
        }
    }

    /// Where the entries of a block are.
    pub(super) fn live_at(&self, block: u32) -> Range<usize> {
        self.live_in.of(block)
    }

    /// An entry: register and parts.
    pub(super) fn entry(&self, at: usize) -> (u32, u32) {
        let (_, register, parts) = self.live_in.entries[at];
        (register, parts)
    }
}
