//! What reductions accept as their dimensions.
//!
//! A reduction over several dimensions is one after the other, made by the builder and by the text's reader.

use smallvec::{SmallVec, smallvec};

use super::expr::Symbol;

/// The dimensions of a reduction: one, or an array of several, which are folded in its order. Each of them is
/// a reduction of its own, so floats of 16 bits are rounded after each; cast them to f32 first to round once.
pub trait ReducedDims {
    /// The dimensions in the order in which they are folded.
    #[doc(hidden)]
    fn symbols(self) -> SmallVec<[Symbol; 4]>;
}

impl ReducedDims for Symbol {
    fn symbols(self) -> SmallVec<[Symbol; 4]> {
        smallvec![self]
    }
}

impl ReducedDims for &str {
    fn symbols(self) -> SmallVec<[Symbol; 4]> {
        smallvec![self.into()]
    }
}

impl ReducedDims for u32 {
    fn symbols(self) -> SmallVec<[Symbol; 4]> {
        smallvec![self.into()]
    }
}

impl ReducedDims for &[Symbol] {
    fn symbols(self) -> SmallVec<[Symbol; 4]> {
        SmallVec::from_slice(self)
    }
}

impl<const N: usize> ReducedDims for [Symbol; N] {
    fn symbols(self) -> SmallVec<[Symbol; 4]> {
        SmallVec::from_slice(&self)
    }
}
