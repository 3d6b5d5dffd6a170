//! Rows of sorts: the elements along a dimension in order, or the places that they come from. The pass
//! `sort_rows` makes other operations of them.

use super::arithmetic::{ELEMENT_WISE, family};
use super::row::{DTypes, NodeRole, OpClass, OpRow, ResultType, Sizes};
use super::traits::KernelTraits;
use crate::ir::layout::Dim;

/// Sorts: variant, word, method of `Value`, which has an i32 result or that of its operand, doc line.
macro_rules! sorts {
    ($then:ident) => {
        $then! {
            Ascending "sort" sort Elements "The elements along a dimension, the least first; NaNs last.";
            Descending "sort_descending" sort_descending Elements "The elements along a dimension, the greatest first; NaNs last.";
            AscendingPlaces "argsort" argsort Places "The places of the elements along a dimension, i32, of the least first; of equal ones the first place first.";
            DescendingPlaces "argsort_descending" argsort_descending Places "The places of the elements along a dimension, i32, of the greatest first; of equal ones the first place first.";
        }
    };
}
pub(in crate::ir) use sorts;

macro_rules! sort_family {
    ($($op:ident $word:literal $method:ident $result:ident $doc:literal;)*) => {
        family! {
            /// In which order the elements come, and whether they or their places are asked for.
            SortOp: $($op $doc {
                word: $word,
                class: OpClass::Rearrangement,
                takes: Some(&[NodeRole::Value]),
                operands: DTypes::Numbers,
                raises: KernelTraits::REDUCTIONS.union(KernelTraits::SORTS),
                result: sort_family!(@ $result),
            })*
        }
    };
    (@ Elements) => { ResultType::OfOperand(0) };
    (@ Places) => { ResultType::Converted(Sizes::AnySize) };
}
sorts!(sort_family);

impl SortOp {
    /// Whether the greatest elements come first.
    pub const fn is_descending(self) -> bool {
        matches!(self, SortOp::Descending | SortOp::DescendingPlaces)
    }

    /// Whether the result are places.
    pub const fn gives_places(self) -> bool {
        matches!(self, SortOp::AscendingPlaces | SortOp::DescendingPlaces)
    }
}

/// A sort along one dimension.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sort {
    /// Which.
    pub op: SortOp,
    /// The dimension.
    pub dim: Dim,
}
