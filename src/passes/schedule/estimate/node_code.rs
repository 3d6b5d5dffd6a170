//! What becomes of nodes in machine code, as far as schedules are compared by it. Lowering enters it
//! (`codegen/lower/measure`) before loops are scheduled by estimates.

use std::ops::Range;

use bevy_ecs::prelude::*;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use smallvec::SmallVec;

use crate::codegen::target::CostKind;
use crate::ir::node_map::NodeMap;

/// The number of an instruction of a kernel's nodes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct CodeId(u32);
entity_impl!(CodeId, "code");

/// An instruction that a node becomes.
#[derive(Clone, Debug)]
pub(crate) struct NodeInstruction {
    /// Its cost.
    pub kind: CostKind,
    /// Turns that issuing takes.
    pub turns: u32,
    /// Bytes of its code.
    pub bytes: u8,
    /// Vector registers of a result that takes no other's.
    pub registers: u8,
    /// It keeps its place among its neighbours.
    pub is_fixed: bool,
    /// The results that it reads, of instructions of the same loop.
    pub operands: SmallVec<[CodeOperand; 3]>,
}

/// A result that an instruction reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodeOperand {
    /// The instruction that makes it.
    pub from: CodeId,
    /// Trips between the two.
    pub trips: u32,
    /// A matrix instruction accumulates on it.
    pub accumulates: bool,
}

/// The instructions that the nodes of a kernel become.
#[derive(Component, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct NodeCode {
    instructions: PrimaryMap<CodeId, NodeInstruction>,
    /// Those of each node.
    nodes: NodeMap<Range<CodeId>>,
    /// The same of what ends a trip of each loop.
    ends: NodeMap<Range<CodeId>>,
}

impl NodeCode {
    /// Adds an instruction.
    pub(crate) fn push(&mut self, instruction: NodeInstruction) -> CodeId {
        self.instructions.push(instruction)
    }

    /// The number of the next instruction.
    pub(crate) fn next(&self) -> CodeId {
        self.instructions.next_key()
    }

    /// Enters the instructions from `first` on as those of a node.
    pub(crate) fn enter(&mut self, node: Entity, first: CodeId) {
        self.nodes.insert(node, first..self.next());
    }

    /// Enters the instructions from `first` on as those that end a trip of a loop.
    pub(crate) fn end_loop(&mut self, node: Entity, first: CodeId) {
        self.ends.insert(node, first..self.next());
    }

    /// An instruction reads a result, which it may read several times.
    pub(crate) fn read(&mut self, reader: CodeId, operand: CodeOperand) {
        let operands = &mut self.instructions[reader].operands;
        if !operands.contains(&operand) {
            operands.push(operand);
        }
    }

    /// Number of instructions of all nodes.
    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// An instruction.
    pub(super) fn instruction(&self, id: CodeId) -> &NodeInstruction {
        &self.instructions[id]
    }

    /// The instructions of a node; none if it becomes nothing.
    pub(super) fn of(&self, node: Entity) -> Range<CodeId> {
        self.nodes.get(node).cloned().unwrap_or(CodeId::new(0)..CodeId::new(0))
    }

    /// The instructions that end a trip of a loop.
    pub(super) fn end_of(&self, node: Entity) -> Range<CodeId> {
        self.ends.get(node).cloned().unwrap_or(CodeId::new(0)..CodeId::new(0))
    }
}
