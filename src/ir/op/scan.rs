//! Rows of scans: what sums up the elements along a dimension in front of each.

use super::arithmetic::{ELEMENT_WISE, family};
use super::row::{DTypes, Exactness, OpClass, OpRow, ResultType};
use super::traits::KernelTraits;
use crate::ir::layout::Dim;

/// Scans: variant, word, method of `Value`, doc line.
macro_rules! scans {
    ($then:ident) => {
        $then! {
            Inclusive "cumsum" cumsum "The sums along a dimension of each element and all before it.";
            Exclusive "cumsum_exclusive" cumsum_exclusive "The sums along a dimension of all elements before each; the first is 0.";
        }
    };
}
pub(in crate::ir) use scans;

macro_rules! scan_family {
    ($($op:ident $word:literal $method:ident $doc:literal;)*) => {
        family! {
            /// Which elements a sum of a scan takes.
            ScanOp: $($op $doc {
                word: $word,
                class: OpClass::Scan,
                takes: None,
                operands: DTypes::Numbers,
                exactness: Exactness::Ordered,
                raises: KernelTraits::REDUCTIONS,
                result: ResultType::OfOperand(0),
            })*
        }
    };
}
scans!(scan_family);

impl ScanOp {
    /// What the sums start with. An inclusive one leaves the sign of a first negative zero as it is.
    pub(crate) const fn start(self) -> f64 {
        match self {
            ScanOp::Inclusive => -0.0,
            ScanOp::Exclusive => 0.0,
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
