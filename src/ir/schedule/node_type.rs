//! Kinds of nodes that a schedule tells apart.

use std::fmt;

use crate::ir::layout::Dim;
use crate::ir::node::{
    AtomicOp, BinaryOp, Constant, Conversion, MmaChoice, Op, Predicate, ReductionOp, ScanOp, TernaryOp,
    UnaryOp,
};
use crate::ir::op::{AlongDimOp, ConstantOp, DataMovement, ElementWiseOp, OpFamily};

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
        match op.family() {
            OpFamily::Access(op) => Some(NodeType::of_movement(op.movement())),
            OpFamily::ElementWise(op) => NodeType::of_element_wise(op),
            OpFamily::Constant(op) => Some(NodeType::of_constant(op)),
            OpFamily::Contraction(_) => Some(NodeType::Mma),
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => Some(NodeType::Reduce(reduction.op)),
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => Some(NodeType::Scan(scan.op)),
            OpFamily::Region(_) if op.over_tiles().is_some() => Some(NodeType::Iterate),
            OpFamily::Region(_)
            | OpFamily::AlongDim(AlongDimOp::Sort(_))
            | OpFamily::Declaration(_)
            | OpFamily::Rearrangement(_)
            | OpFamily::Carried(_)
            | OpFamily::Order(_) => None,
        }
    }

    fn of_movement(movement: DataMovement) -> NodeType {
        match movement {
            DataMovement::Load => NodeType::Read,
            DataMovement::Store => NodeType::Write,
            DataMovement::Update(op) => NodeType::Atomic(op),
            DataMovement::Copy => NodeType::GlobalToShared,
        }
    }

    fn of_element_wise(op: ElementWiseOp) -> Option<NodeType> {
        match op {
            ElementWiseOp::Unary(op) => Some(NodeType::Unary(op)),
            ElementWiseOp::Binary(op) => Some(NodeType::Binary(op)),
            ElementWiseOp::Ternary(op) => Some(NodeType::Ternary(op)),
            ElementWiseOp::Compare(_) => Some(NodeType::Compare),
            ElementWiseOp::Select => Some(NodeType::Select),
            ElementWiseOp::Convert(op) => Some(NodeType::Convert(op)),
            ElementWiseOp::Broadcast => Some(NodeType::Broadcast),
            ElementWiseOp::Decode(_) | ElementWiseOp::Encode(_) => None,
        }
    }

    fn of_constant(op: ConstantOp) -> NodeType {
        match op {
            ConstantOp::Register(_) => NodeType::Register,
            ConstantOp::SelfIndex(_) => NodeType::SelfIndex,
            ConstantOp::Size(_) => NodeType::Size,
            ConstantOp::WorkgroupId(_) => NodeType::WorkgroupId,
            ConstantOp::Iteration(_) => NodeType::Iteration,
        }
    }
}

impl fmt::Display for NodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
