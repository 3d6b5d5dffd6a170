//! Forward dataflow over the blocks of a body: what holds at the start of each block, found by following
//! every path until nothing changes, and code that is written anew under way.
//!
//! Blocks are walked in layout order; where the end of a loop brings something new to a block before it, the
//! walk goes back there. So every block has been walked last with all that can reach it, or the pass has said
//! that what has come since changes nothing.
//!
//! Waits, hazards and masked lanes are each a state of this one engine, which says how it joins where paths
//! meet. The judges in `check` have walks of their own: a fault of the engine must not hide from them.

use std::ops::Range;

use super::body::{BlockId, InstId, MachineBody, MachineInst};
use crate::index::{Neighbours, Stretches};
use cranelift_entity::{EntityRef, PrimaryMap};

/// What has come to the state of a block that is joined with that of another path.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing.
    None,
    /// Something that the code made of the block may bear as it is.
    MayHold,
    /// Something that the block has to be walked again for.
    Anew,
}

/// What may hold at a point of a body, joined where paths meet.
pub(super) trait State: Default {
    /// Makes it what holds where nothing has happened yet, and keeps its memory.
    fn clear(&mut self);

    /// Adds what holds on another path.
    fn join(&mut self, other: &Self) -> News;
}

/// Whether something may be.
impl State for bool {
    fn clear(&mut self) {
        *self = false;
    }

    fn join(&mut self, other: &bool) -> News {
        let news = *other && !*self;
        *self |= other;
        if news { News::Anew } else { News::None }
    }
}

/// What makes the state at the end of a block from that at its start.
pub(super) trait Walk<S> {
    /// Goes through a block; leaves the state at its end in `exit`.
    fn through(&mut self, block: BlockId, entry: &S, exit: &mut S);

    /// True if a block that has been walked need not be walked again for what is newly in its state.
    fn still_holds(&mut self, _: BlockId, _: &S) -> bool {
        false
    }
}

/// A pass that writes the code of every block anew.
pub(super) trait Rewrite<S> {
    /// Appends to `out` what becomes of the instructions of a block; leaves the state at its end in `exit`.
    fn rewrite(
        &mut self,
        insts: &[MachineInst],
        entry: &S,
        exit: &mut S,
        out: &mut PrimaryMap<InstId, MachineInst>,
    );

    /// True if what has been made of a block bears what is newly in its state, and the state at its end would
    /// be the same.
    fn still_holds(&mut self, _: &[MachineInst], _: &S) -> bool {
        false
    }
}

/// The states at the starts of all blocks, and working memory, which is reused from body to body.
#[derive(Default)]
pub(super) struct Dataflow<S> {
    entries: PrimaryMap<BlockId, S>,
    exit: S,
    /// New ranges of the blocks, where code is written anew.
    ranges: PrimaryMap<BlockId, Range<InstId>>,
}

impl<S: State> Dataflow<S> {
    /// Finds the state at the start of every block.
    pub(super) fn solve(&mut self, body: &MachineBody, walk: &mut impl Walk<S>) {
        self.entries.truncate(body.blocks.next_key());
        self.entries.values_mut().for_each(S::clear);
        while self.entries.len() < body.blocks.len() {
            self.entries.push(S::default());
        }
        let mut next = BlockId::new(0);
        while let Some(data) = body.blocks.get(next) {
            let block = next;
            walk.through(block, &self.entries[block], &mut self.exit);
            next = block.next();
            for &successor in data.successors.iter().flatten() {
                let entry = &mut self.entries[successor];
                let news = entry.join(&self.exit);
                if successor < next
                    && news != News::None
                    && (news == News::Anew || !walk.still_holds(successor, entry))
                {
                    next = successor;
                }
            }
        }
    }

    /// Writes the code of every block anew.
    pub(super) fn rewrite(&mut self, body: &mut MachineBody, pass: &mut impl Rewrite<S>) {
        let (mut out, mut ranges) = (std::mem::take(&mut body.spare), std::mem::take(&mut self.ranges));
        out.clear();
        // Room for what is inserted, too.
        out.reserve(body.insts.len() + body.insts.len() / 4);
        ranges.clear();
        let mut writer = BodyWriter { body, pass, out, ranges };
        self.solve(body, &mut writer);
        (out, ranges) = (writer.out, writer.ranges);
        for (block, range) in body.blocks.values_mut().zip(ranges.values()) {
            (block.start, block.end) = (range.start, range.end);
        }
        self.ranges = ranges;
        body.spare = std::mem::replace(&mut body.insts, out);
    }

    /// The states at the starts of the blocks.
    pub(super) fn entries(&self) -> &PrimaryMap<BlockId, S> {
        &self.entries
    }
}

/// A pass and the code that it has written.
struct BodyWriter<'a, P> {
    body: &'a MachineBody,
    pass: &'a mut P,
    out: PrimaryMap<InstId, MachineInst>,
    ranges: PrimaryMap<BlockId, Range<InstId>>,
}

impl<S, P: Rewrite<S>> Walk<S> for BodyWriter<'_, P> {
    fn through(&mut self, block: BlockId, entry: &S, exit: &mut S) {
        self.ranges.truncate(block);
        let start = self.ranges.last().map_or(InstId::new(0), |(_, range)| range.end);
        self.out.truncate(start);
        self.pass.rewrite(self.body.block(block), entry, exit, &mut self.out);
        self.ranges.push(start..self.out.next_key());
    }

    fn still_holds(&mut self, block: BlockId, entry: &S) -> bool {
        self.pass.still_holds(self.out.range(self.ranges[block].clone()), entry)
    }
}
