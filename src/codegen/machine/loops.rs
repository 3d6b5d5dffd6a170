//! How deep in loops each block lies, which is the weight of its instructions.

use crate::index::Neighbours;
use std::ops::Range;

use super::body::{BlockId, MachineBody};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{SecondaryMap, iter_entity_range};

/// Loop depths of the blocks of a body.
#[derive(Default)]
pub(super) struct LoopDepths {
    depths: SecondaryMap<BlockId, u8>,
    /// Furthest block that goes back to each block.
    back: SecondaryMap<BlockId, PackedOption<BlockId>>,
}

impl LoopDepths {
    /// Finds the loops: a branch back makes everything from its target to itself a loop.
    pub(super) fn compute(&mut self, body: &MachineBody) {
        self.back.clear();
        self.back.resize(body.blocks.len());
        self.depths.clear();
        self.depths.resize(body.blocks.len());
        for (block, data) in body.blocks.iter() {
            for &target in data.successors.iter().flatten().filter(|target| **target <= block) {
                self.back[target] = block.into();
            }
        }
        for (header, back) in self.back.iter() {
            let Some(back) = back.expand() else { continue };
            for block in iter_entity_range(header..back.next()) {
                self.depths[block] = self.depths[block].saturating_add(1);
            }
        }
    }

    /// The blocks of each loop without a loop in it.
    pub(super) fn innermost(&self) -> impl Iterator<Item = Range<BlockId>> + '_ {
        self.back.iter().filter_map(|(header, back)| {
            let blocks = header..back.expand()?.next();
            let depth = self.depths[header];
            iter_entity_range(blocks.clone()).all(|other| self.depths[other] == depth).then_some(blocks)
        })
    }

    /// How often a block is assumed to run, relative to the rest.
    pub(super) fn weight(&self, block: BlockId) -> u32 {
        8u32.pow(u32::from(self.depths.get(block).copied().unwrap_or(0).min(6)))
    }
}
