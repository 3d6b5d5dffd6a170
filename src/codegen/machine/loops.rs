//! How deep in loops each block lies, which is the weight of its instructions.

use super::body::Body;

/// Loop depths of the blocks of a body.
#[derive(Default)]
pub(super) struct Loops {
    depths: Vec<u8>,
    /// Furthest block that goes back to each block.
    back: Vec<u32>,
}

impl Loops {
    /// Finds the loops: a branch back makes everything from its target to itself a loop.
    pub(super) fn compute(&mut self, body: &Body) {
        self.back.clear();
        self.back.resize(body.blocks.len(), 0);
        self.depths.clear();
        self.depths.resize(body.blocks.len(), 0);
        for (index, block) in body.blocks.iter().enumerate() {
            for &target in block.successors.iter().flatten().filter(|target| **target as usize <= index) {
                self.back[target as usize] = index as u32 + 1;
            }
        }
        for (header, &end) in self.back.iter().enumerate().filter(|(_, end)| **end > 0) {
            for depth in &mut self.depths[header..end as usize] {
                *depth = depth.saturating_add(1);
            }
        }
    }

    /// How often a block is assumed to run, relative to the rest.
    pub(super) fn weight(&self, block: usize) -> u64 {
        8u64.pow(u32::from(self.depths.get(block).copied().unwrap_or(0).min(6)))
    }
}
