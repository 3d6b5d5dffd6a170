//! Accesses: operations that read or write a memory. Their rows, and what each moves where: everything else
//! asks for that ([`DataMovement`]), so that another read or write is a row, a line here, and its
//! instructions.

use super::atomic::AtomicOp;
use super::row::{MemoryEffect, NodeRole, OpClass, OpRow, OpUnit, Purity, ROW, ResultType};
use super::{AccessOp, Op, OpFamily};

const ACCESS: OpRow = OpRow {
    class: OpClass::Access,
    takes: None,
    purity: Purity::Effect,
    memory: MemoryEffect::Writes,
    unit: OpUnit::Memory,
    ..ROW
};

pub(super) const READ: OpRow = OpRow {
    word: "read",
    takes: Some(&[NodeRole::Memory]),
    gives: NodeRole::Value,
    result: ResultType::OfOperand(0),
    purity: Purity::OfMemory,
    memory: MemoryEffect::Reads,
    doc: "The tile of a memory that the node's place in the distribution names.",
    ..ACCESS
};

pub(super) const WRITE: OpRow = OpRow {
    word: "write",
    takes: Some(&[NodeRole::Value, NodeRole::Memory]),
    doc: "Stores a value to a memory.",
    ..ACCESS
};

pub(super) const GLOBAL_TO_SHARED: OpRow = OpRow {
    word: "global_to_shared",
    takes: Some(&[NodeRole::Memory, NodeRole::Memory]),
    memory: MemoryEffect::Copies,
    doc: "Copies the tile of a memory to an LDS buffer through no register.",
    ..ACCESS
};

/// Accesses that bring elements of a memory into registers, as authors write them.
pub(crate) const LOADS: &[Op] = &[Op::Read];

/// Accesses that bring a value into a memory, as authors write them.
pub(crate) const STORES: &[Op] = &[Op::Write];

/// The elements that an access moves, and the place that they go to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum DataMovement {
    /// Elements of its memory into registers.
    Load,
    /// Its first operand, a value, into its memory.
    Store,
    /// Values into its memory, joined with what is there, and that into registers.
    Update(AtomicOp),
    /// Elements of its first operand, a memory, into its last.
    Copy,
}

impl AccessOp {
    /// The elements that it moves.
    pub(crate) const fn movement(self) -> DataMovement {
        match self {
            AccessOp::Read => DataMovement::Load,
            AccessOp::Write => DataMovement::Store,
            AccessOp::Atomic(op) => DataMovement::Update(op),
            AccessOp::GlobalToShared => DataMovement::Copy,
        }
    }
}

impl Op {
    /// The elements that an access moves; `None` for other operations.
    pub(crate) const fn movement(self) -> Option<DataMovement> {
        match self.family() {
            OpFamily::Access(access) => Some(access.movement()),
            _ => None,
        }
    }

    /// True for what brings elements of a memory into registers, and does nothing else.
    pub(crate) const fn loads(self) -> bool {
        matches!(self.movement(), Some(DataMovement::Load))
    }

    /// True for what brings a value into a memory, and does nothing else.
    pub(crate) const fn stores(self) -> bool {
        matches!(self.movement(), Some(DataMovement::Store))
    }

    /// True for what reads and writes a memory in one step.
    pub(crate) const fn updates(self) -> bool {
        matches!(self.row().memory, MemoryEffect::Updates)
    }

    /// True for what reads one memory, its first operand, and writes another one.
    pub(crate) const fn copies(self) -> bool {
        matches!(self.row().memory, MemoryEffect::Copies)
    }

    /// True for operations that read or write a memory: their last operand.
    pub(crate) fn is_access(self) -> bool {
        self.row().class == OpClass::Access
    }

    /// True for operations that write a memory: their last operand.
    pub fn is_write(self) -> bool {
        self.row().memory.writes()
    }

    /// How many values an access takes in front of those that its coordinates are made of.
    pub(crate) fn values_in_front(self) -> usize {
        let takes = self.row().takes.unwrap_or_default();
        takes.iter().filter(|role| **role == NodeRole::Value).count()
    }
}
