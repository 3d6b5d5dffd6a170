//! How deep in loops each block lies, which is the weight of its instructions.

use std::ops::Range;

use super::body::{BlockId, MachineBody};
use crate::index::{IndexVec, Packed};

/// Loop depths of the blocks of a body.
#[derive(Default)]
pub(super) struct LoopDepths {
    depths: IndexVec<BlockId, u8>,
    /// Furthest block that goes back to each block.
    back: IndexVec<BlockId, Packed<BlockId>>,
}

impl LoopDepths {
    /// Finds the loops: a branch back makes everything from its target to itself a loop.
    pub(super) fn compute(&mut self, body: &MachineBody) {
        self.back.refill(body.blocks.next_id(), Packed::NONE);
        self.depths.refill(body.blocks.next_id(), 0);
        for (block, data) in body.blocks.enumerated() {
            for &target in data.successors.iter().flatten().filter(|target| **target <= block) {
                self.back[target] = block.into();
            }
        }
        for (header, back) in self.back.enumerated() {
            let Some(back) = back.get() else { continue };
            for depth in &mut self.depths[header..back.next()] {
                *depth = depth.saturating_add(1);
            }
        }
    }

    /// The blocks of each loop without a loop in it.
    pub(super) fn innermost(&self) -> impl Iterator<Item = Range<BlockId>> + '_ {
        self.back.enumerated().filter_map(|(header, back)| {
            let blocks = header..back.get()?.next();
            let depth = self.depths[header];
            self.depths[blocks.clone()].iter().all(|other| *other == depth).then_some(blocks)
        })
    }

    /// How often a block is assumed to run, relative to the rest.
    pub(super) fn weight(&self, block: BlockId) -> u32 {
        8u32.pow(u32::from(self.depths.get(block).copied().unwrap_or(0).min(6)))
    }
}
