//! Rows of scans: what joins the elements along a dimension in front of each. They say all that differs.

use super::arithmetic::{ELEMENT_WISE, family};
use super::reduction::ReductionOp;
use super::row::{DTypes, OpClass, OpRow, ResultType};
use super::traits::KernelTraits;
use crate::ir::constant::Constant;
use crate::ir::layout::Dim;
use crate::ir::types::DType;

/// Scans: variant, word, method of `Value`, the reduction that joins elements, whether an element itself
/// takes part (`Itself`) or only those in front of it (`Before`), doc line.
macro_rules! scans {
    ($then:ident) => {
        $then! {
            Inclusive "cumsum" cumsum Sum Itself "The sums along a dimension of each element and all before it.";
            Exclusive "cumsum_exclusive" cumsum_exclusive Sum Before "The sums along a dimension of all elements before each; the first is 0.";
        }
    };
}
pub(in crate::ir) use scans;

macro_rules! scan_family {
    ($($op:ident $word:literal $method:ident $joins:ident $takes:ident $doc:literal;)*) => {
        family! {
            /// Which elements a scan joins, and how.
            ScanOp: $($op $doc {
                word: $word,
                class: OpClass::Scan,
                takes: None,
                operands: DTypes::Numbers,
                exactness: ReductionOp::$joins.row().exactness,
                raises: KernelTraits::REDUCTIONS,
                result: ResultType::OfOperand(0),
            })*
        }

        impl ScanOp {
            /// The reduction that joins two elements.
            pub const fn joins(self) -> ReductionOp {
                match self {
                    $(ScanOp::$op => ReductionOp::$joins,)*
                }
            }

            /// True if it leaves the element itself out.
            pub const fn is_exclusive(self) -> bool {
                match self {
                    $(ScanOp::$op => scan_family!(@ $takes),)*
                }
            }
        }
    };
    (@ Itself) => { false };
    (@ Before) => { true };
}
scans!(scan_family);

impl ScanOp {
    /// The start of a scan: the element that changes nothing, which leaves the sign of a first negative zero
    /// as it is. Sums of nothing are shown, so they are a positive zero.
    pub(crate) fn start(self, dtype: DType) -> Constant {
        match (self.is_exclusive(), self.joins().identity(dtype)) {
            (true, Constant::Float(0.0)) => Constant::Float(0.0),
            (_, identity) => identity,
        }
    }
}

/// A scan along one dimension.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    /// What is summed up.
    pub op: ScanOp,
    /// The dimension.
    pub dim: Dim,
    /// If the waves of a workgroup hold different parts of the dimension: the dimension that counts these
    /// parts. A second operand has the sums of all of them. Made by passes.
    pub by_wave: Option<Dim>,
}
