//! What becomes of nodes in machine code, as far as schedules are compared by it. Lowering enters it
//! (`codegen/lower/measure`) before loops are scheduled by estimates.

use bevy_ecs::prelude::*;

use crate::codegen::target::CostKind;
use crate::ir::node_map::NodeMap;

/// An instruction that a node becomes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NodeInstruction {
    /// Its cost.
    pub kind: CostKind,
    /// Turns that issuing takes.
    pub turns: u32,
    /// Bytes of its code.
    pub bytes: u8,
    /// How many instructions before it, in the same node, the LDS instruction is whose result it waits for.
    pub after: Option<u32>,
}

/// The instructions that the nodes of a kernel become.
#[derive(Component, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct NodeCode {
    instructions: Vec<NodeInstruction>,
    /// The starts and ends of those of each node.
    nodes: NodeMap<[u32; 2]>,
    /// The same of what ends a trip of each loop.
    ends: NodeMap<[u32; 2]>,
}

impl NodeCode {
    /// Enters the instructions of a node.
    pub(crate) fn enter(&mut self, node: Entity, instructions: impl Iterator<Item = NodeInstruction>) {
        let range = self.extend(instructions);
        self.nodes.insert(node, range);
    }

    /// Enters the instructions that end a trip of a loop.
    pub(crate) fn end_loop(&mut self, node: Entity, instructions: impl Iterator<Item = NodeInstruction>) {
        let range = self.extend(instructions);
        self.ends.insert(node, range);
    }

    fn extend(&mut self, instructions: impl Iterator<Item = NodeInstruction>) -> [u32; 2] {
        let start = self.instructions.len() as u32;
        self.instructions.extend(instructions);
        [start, self.instructions.len() as u32]
    }

    /// The instructions of a node; none if it becomes nothing.
    pub(super) fn of(&self, node: Entity) -> &[NodeInstruction] {
        self.range(self.nodes.get(node))
    }

    /// The instructions that end a trip of a loop.
    pub(super) fn end_of(&self, node: Entity) -> &[NodeInstruction] {
        self.range(self.ends.get(node))
    }

    fn range(&self, range: Option<&[u32; 2]>) -> &[NodeInstruction] {
        range.map_or(&[], |&[start, end]| &self.instructions[start as usize..end as usize])
    }
}
