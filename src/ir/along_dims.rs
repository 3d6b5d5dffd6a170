//! What runs along a dimension that the result keeps, as authors trace it: scans and sorts.

use std::panic::Location as Caller;

use super::builder::Value;
use super::expr::Symbol;
use super::node::*;
use super::op::{scans, sorts};

macro_rules! scan_methods {
    ($($op:ident $word:literal $method:ident $joins:ident $takes:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                ///
                /// Floats of 16 bits are summed up in f32, and each sum is rounded once.
                #[track_caller]
                #[must_use]
                pub fn $method(self, dim: impl Into<Symbol>) -> Value {
                    let caller = Caller::caller();
                    let scan = |dim| Op::Scan(Scan { op: ScanOp::$op, dim, by_wave: None });
                    self.along(caller, dim.into(), scan)
                }
            )*
        }
    };
}
scans!(scan_methods);

macro_rules! sort_methods {
    ($($op:ident $word:literal $method:ident $result:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                ///
                /// A row of at most 1024 elements is sorted as a whole: the dimension is neither spread over
                /// workgroups nor divided by a loop. -0 is less than +0. The result has all dimensions of the
                /// value.
                #[track_caller]
                #[must_use]
                pub fn $method(self, dim: impl Into<Symbol>) -> Value {
                    let sort = |dim| Op::Sort(Sort { op: SortOp::$op, dim });
                    self.along(Caller::caller(), dim.into(), sort)
                }
            )*
        }
    };
}
sorts!(sort_methods);
