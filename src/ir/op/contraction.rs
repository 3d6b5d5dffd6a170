//! Contractions: products of matrices. Their rows, and what they have in common.

use super::row::{Exactness, NodeRole, OpClass, OpRow, OpUnit, Purity, ROW, ResultType};
use super::traits::KernelTraits;
use super::{ContractionOp, Op, OpFamily};
use crate::ir::layout::{MatrixShape, Mma, MmaType};

const CONTRACTION: OpRow = OpRow {
    class: OpClass::Contraction,
    takes: Some(&[NodeRole::Value; 3]),
    gives: NodeRole::Value,
    result: ResultType::OfOperand(2),
    purity: Purity::Pure,
    unit: OpUnit::Matrix,
    exactness: Exactness::Ordered,
    raises: KernelTraits::PRODUCTS,
    ..ROW
};

pub(super) const MMA: OpRow = OpRow {
    word: "mma",
    doc: "`acc + lhs . rhs` over the elements that exist of the dimension that lhs and rhs share and acc lacks.",
    ..CONTRACTION
};

pub(super) const SCALED_MMA: OpRow = OpRow {
    word: "scaled_mma",
    takes: Some(&[NodeRole::Value; 5]),
    raises: KernelTraits::PRODUCTS.union(KernelTraits::SCALED_PRODUCTS),
    doc: "`mma` of factors with a scale for each 32 elements: lhs, its scales, rhs, its scales, acc.",
    ..CONTRACTION
};

/// All of them, as a choice of an instruction makes them.
pub(crate) const PRODUCTS: &[fn(MmaChoice) -> Op] = &[Op::Mma, Op::ScaledMma];

/// Which matrix instruction an `mma` node uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MmaChoice {
    /// The kernel's default.
    Kernel,
    /// The chip's own of this shape, chosen for the node alone.
    Shape(MatrixShape),
    /// This one, chosen for the node alone or because the kernel says its shape.
    Explicit(Mma),
}

impl From<MmaType> for MmaChoice {
    fn from(ty: MmaType) -> MmaChoice {
        match ty {
            MmaType::Instruction(mma) => MmaChoice::Explicit(mma),
            MmaType::Shape(shape) => MmaChoice::Shape(shape),
        }
    }
}

impl Op {
    /// The choice of a matrix instruction that a product has made.
    pub(crate) const fn product(self) -> Option<MmaChoice> {
        match self.family() {
            OpFamily::Contraction(op) => Some(op.choice()),
            _ => None,
        }
    }

    /// A product with this matrix instruction; other operations as they are.
    pub(crate) fn with_instruction(self, choice: MmaChoice) -> Op {
        match self.family() {
            OpFamily::Contraction(op) => op.with(choice),
            _ => self,
        }
    }

    /// True for products of matrices.
    pub(crate) const fn is_product(self) -> bool {
        matches!(self.row().class, OpClass::Contraction)
    }

    /// True for products whose factors have scales.
    pub(crate) const fn takes_scales(self) -> bool {
        self.row().raises.contains(KernelTraits::SCALED_PRODUCTS)
    }
}

impl ContractionOp {
    /// Its choice of a matrix instruction.
    pub(crate) const fn choice(self) -> MmaChoice {
        match self {
            ContractionOp::Mma(choice) | ContractionOp::ScaledMma(choice) => choice,
        }
    }

    /// The same with another one.
    const fn with(self, choice: MmaChoice) -> Op {
        match self {
            ContractionOp::Mma(_) => Op::Mma(choice),
            ContractionOp::ScaledMma(_) => Op::ScaledMma(choice),
        }
    }
}
