//! Rows of reductions: what folds the elements of a value along a dimension.

use super::arithmetic::{ELEMENT_WISE, family};
use super::row::{DTypes, Exactness, OpClass, OpRow, ResultType};
use crate::ir::constant::Constant;
use crate::ir::layout::Dim;
use crate::ir::op::{BinaryOp, KernelTraits};
use crate::ir::types::DType;

/// Reductions: variant, word, method of `Value`, the arithmetic that joins two elements, dtypes of the
/// operand, exactness, doc line.
macro_rules! reductions {
    ($then:ident) => {
        $then! {
            Sum "reduce_sum" sum Add Numbers Ordered "The sum of the elements along a dimension.";
            Product "reduce_product" product Mul Numbers Ordered "The product of the elements along a dimension.";
            Min "reduce_min" min Min Numbers Exact "The smallest element along a dimension; NaNs count only if there is nothing else.";
            Max "reduce_max" max Max Numbers Exact "The largest element along a dimension; NaNs count only if there is nothing else.";
        }
    };
}
pub(in crate::ir) use reductions;

macro_rules! reduction_family {
    ($($op:ident $word:literal $method:ident $joins:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        family! {
            /// What joins the elements of a reduction.
            ReductionOp: $($op $doc {
                word: $word,
                class: OpClass::Reduction,
                operands: DTypes::$dtypes,
                exactness: Exactness::$exactness,
                raises: KernelTraits::REDUCTIONS,
                result: ResultType::Reduced,
            })*
        }

        impl ReductionOp {
            /// The arithmetic that joins two elements.
            pub const fn joins(self) -> BinaryOp {
                match self {
                    $(ReductionOp::$op => BinaryOp::$joins,)*
                }
            }
        }
    };
}
reductions!(reduction_family);

impl ReductionOp {
    /// The element that changes nothing: the result of a reduction over no elements.
    pub fn identity(self, dtype: DType) -> Constant {
        let least = i64::MIN >> (64 - dtype.bits());
        match (self, dtype.is_float()) {
            // -0.0 keeps the sign of a sum of negative zeros.
            (ReductionOp::Sum, true) => Constant::Float(-0.0),
            (ReductionOp::Sum, false) => Constant::Integer(0),
            (ReductionOp::Product, true) => Constant::Float(1.0),
            (ReductionOp::Product, false) => Constant::Integer(1),
            // The other operand is the result where one is NaN.
            (ReductionOp::Min | ReductionOp::Max, true) => Constant::Float(f64::NAN),
            (ReductionOp::Min, false) => Constant::Integer(-(least + 1)),
            (ReductionOp::Max, false) => Constant::Integer(least),
        }
    }
}

impl ReductionOp {
    /// Whether elements of a dtype give other bits in another order.
    pub fn depends_on_order(self, dtype: Option<DType>) -> bool {
        self.row().exactness == Exactness::Ordered && dtype.is_none_or(DType::is_float)
    }
}

/// A reduction along one dimension, which its result lacks.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduction {
    /// What joins the elements.
    pub op: ReductionOp,
    /// The dimension.
    pub dim: Dim,
    /// If lanes and waves hold different parts of the dimension and each only folds its own: the dimension
    /// that counts these parts, which the result has in addition. Its lanes and waves are digits of that
    /// dimension where parts are kept apart, and copies where they are joined. Made by passes.
    pub parts: Option<Dim>,
}
