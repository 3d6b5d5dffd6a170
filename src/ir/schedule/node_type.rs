//! Kinds of nodes that a schedule tells apart.

use std::fmt;

use crate::ir::layout::Dim;
use crate::ir::node::{
    AtomicOp, BinaryOp, Constant, Conversion, MmaChoice, Op, Predicate, ReductionOp, ScanOp, TernaryOp,
    UnaryOp,
};

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
    /// Arithmetic on three values.
    Ternary(TernaryOp),
    /// Comparisons.
    Compare,
    /// Choices between two values.
    Select,
    /// Changes of dtype.
    Convert(Conversion),
    /// Places of elements along a dimension.
    SelfIndex,
    /// Number of the workgroup.
    WorkgroupId,
    /// Number of the iteration.
    Iteration,
    /// Numbers of elements of a dimension.
    Size,
    /// Values repeated along dimensions.
    Broadcast,
    /// Reductions along a dimension.
    Reduce(ReductionOp),
    /// A scan.
    Scan(ScanOp),
    /// Atomic updates of memories.
    Atomic(AtomicOp),
}

/// Types that are not families of operations, each with an operation of its kind, whose word is its name.
const SINGLE: &[(NodeType, Op)] = &[
    (NodeType::Read, Op::Read),
    (NodeType::Write, Op::Write),
    (NodeType::GlobalToShared, Op::GlobalToShared),
    (NodeType::Mma, Op::Mma(MmaChoice::Kernel)),
    (NodeType::Iterate, Op::Iterate(Dim(0))),
    (NodeType::Register, Op::Register(Constant::Integer(0))),
    (NodeType::Compare, Op::Compare(Predicate::Eq)),
    (NodeType::Select, Op::Select),
    (NodeType::SelfIndex, Op::SelfIndex(Dim(0))),
    (NodeType::Size, Op::Size(Dim(0))),
    (NodeType::WorkgroupId, Op::WorkgroupId(0)),
    (NodeType::Iteration, Op::Iteration(Dim(0))),
    (NodeType::Broadcast, Op::Broadcast),
];

impl NodeType {
    /// All of them with their names in the text form.
    pub fn all() -> impl Iterator<Item = (NodeType, &'static str)> {
        let single = SINGLE.iter().map(|(kind, op)| (*kind, op.row().word));
        let conversions = Conversion::ALL.iter().map(|&op| (NodeType::Convert(op), op.row().word));
        let unary = UnaryOp::ALL.iter().map(|&op| (NodeType::Unary(op), op.row().word));
        let binary = BinaryOp::ALL.iter().map(|&op| (NodeType::Binary(op), op.row().word));
        let ternary = TernaryOp::ALL.iter().map(|&op| (NodeType::Ternary(op), op.row().word));
        let reductions = ReductionOp::ALL.iter().map(|&op| (NodeType::Reduce(op), op.row().word));
        let scans = ScanOp::ALL.iter().map(|&op| (NodeType::Scan(op), op.row().word));
        let atomics = AtomicOp::ALL.iter().map(|&op| (NodeType::Atomic(op), op.row().word));
        let arithmetic = conversions.chain(unary).chain(binary).chain(ternary);
        single.chain(arithmetic).chain(reductions).chain(scans).chain(atomics)
    }

    /// The name in the text form: that of the operation.
    pub fn name(self) -> &'static str {
        NodeType::all().find(|row| row.0 == self).map_or("?", |row| row.1)
    }

    /// The kind of a node that does `op`, if schedules can name such nodes.
    pub fn of(op: Op) -> Option<NodeType> {
        Some(match op {
            Op::Read => NodeType::Read,
            Op::Write => NodeType::Write,
            Op::GlobalToShared => NodeType::GlobalToShared,
            Op::Mma(_) | Op::ScaledMma(_) => NodeType::Mma,
            Op::Iterate(_) => NodeType::Iterate,
            Op::Register(_) => NodeType::Register,
            Op::Unary(op) => NodeType::Unary(op),
            Op::Binary(op) => NodeType::Binary(op),
            Op::Ternary(op) => NodeType::Ternary(op),
            Op::Compare(_) => NodeType::Compare,
            Op::Select => NodeType::Select,
            Op::Convert(op) => NodeType::Convert(op),
            Op::SelfIndex(_) => NodeType::SelfIndex,
            Op::Size(_) => NodeType::Size,
            Op::WorkgroupId(_) => NodeType::WorkgroupId,
            Op::Iteration(_) => NodeType::Iteration,
            Op::Broadcast => NodeType::Broadcast,
            Op::Reduce(reduction) => NodeType::Reduce(reduction.op),
            Op::Scan(scan) => NodeType::Scan(scan.op),
            Op::Atomic(op) => NodeType::Atomic(op),
            Op::Memory
            | Op::Scalar
            | Op::Allocate
            | Op::Pipeline(_)
            | Op::Conditional
            | Op::While
            | Op::Rearrange
            | Op::Decode(_)
            | Op::Encode(_)
            | Op::Sort(_)
            | Op::IterArg(_)
            | Op::LoopResult(_)
            | Op::Barrier
            | Op::SetSymbol(_)
            | Op::Control(_) => return None,
        })
    }
}

impl fmt::Display for NodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
