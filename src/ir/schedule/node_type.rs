//! Kinds of nodes that a schedule tells apart.

use std::fmt;

use crate::ir::node::{BinaryOp, Op, UnaryOp};

/// A kind of node.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum NodeType {
    /// Reads of memory, global and shared.
    Read,
    /// Writes to memory, global and shared.
    Write,
    /// Loads from global memory straight into LDS.
    GlobalToShared,
    /// Matrix products.
    Mma,
    /// Loops.
    Iterate,
    /// Constants.
    Register,
    /// Arithmetic on one value.
    Unary(UnaryOp),
    /// Arithmetic on two values.
    Binary(BinaryOp),
    /// Comparisons.
    Compare,
    /// Choices between two values.
    Select,
    /// Conversions.
    Cast,
}

/// Those that are no rows of a table of names.
const NAMES: &[(NodeType, &str)] = &[
    (NodeType::Read, "read"),
    (NodeType::Write, "write"),
    (NodeType::GlobalToShared, "global_to_shared"),
    (NodeType::Mma, "mma"),
    (NodeType::Iterate, "iterate"),
    (NodeType::Register, "register"),
    (NodeType::Compare, "compare"),
    (NodeType::Select, "select"),
    (NodeType::Cast, "cast"),
];

impl NodeType {
    /// All of them with their names in the text form.
    pub fn all() -> impl Iterator<Item = (NodeType, &'static str)> {
        let unary = UnaryOp::NAMES.iter().map(|&(op, name)| (NodeType::Unary(op), name));
        let binary = BinaryOp::NAMES.iter().map(|&(op, name)| (NodeType::Binary(op), name));
        NAMES.iter().copied().chain(unary).chain(binary)
    }

    /// The name in the text form: that of the operation.
    pub fn name(self) -> &'static str {
        NodeType::all().find(|row| row.0 == self).map_or("?", |row| row.1)
    }

    /// The kind of a node that does `op`, if schedules speak of such nodes.
    pub fn of(op: Op) -> Option<NodeType> {
        Some(match op {
            Op::Read => NodeType::Read,
            Op::Write => NodeType::Write,
            Op::GlobalToShared => NodeType::GlobalToShared,
            Op::Mma(_) => NodeType::Mma,
            Op::Iterate(_) => NodeType::Iterate,
            Op::Register(_) => NodeType::Register,
            Op::Unary(op) => NodeType::Unary(op),
            Op::Binary(op) => NodeType::Binary(op),
            Op::Compare(_) => NodeType::Compare,
            Op::Select => NodeType::Select,
            Op::Cast => NodeType::Cast,
            Op::Memory
            | Op::Scalar
            | Op::Allocate
            | Op::Pipeline(_)
            | Op::IterArg(_)
            | Op::LoopResult(_)
            | Op::Barrier
            | Op::Control(_) => return None,
        })
    }
}

impl fmt::Display for NodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
