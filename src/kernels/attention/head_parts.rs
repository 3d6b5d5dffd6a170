//! The elements of heads of queries and keys, as the products take them: all at once, or in two parts whose
//! products are added.

use super::builder::Attention;
use super::tensors::Axes;
use crate::kernels::RopePairs;
use crate::prelude::*;

/// Elements of a head.
#[derive(Clone)]
pub(super) struct HeadPart {
    /// The dimension of the part.
    pub(super) dim: Symbol,
    /// The place of an element in the head, where the part is not the head.
    pub(super) place: Option<SymExpr>,
}

impl HeadPart {
    /// A whole head.
    pub(super) fn whole(dim: Symbol) -> HeadPart {
        HeadPart { dim, place: None }
    }

    /// The place of an element in the head.
    pub(super) fn coordinate(&self) -> SymExpr {
        self.place.clone().unwrap_or(self.dim.into())
    }
}

impl Attention {
    /// The parts of heads of queries and keys: the halves of pairs that are turned together, or the head.
    pub(super) fn head_parts(&self) -> Vec<HeadPart> {
        let (Some(pairs), Some(size)) = (self.rotary, self.heads.dim()) else {
            return vec![HeadPart::whole(Axes::of(self.heads).dim)];
        };
        let dim = Symbol::new("PAIRS");
        let place = |half: i64| match pairs {
            RopePairs::Halves => SymExpr::from(dim) + half * i64::from(size / 2),
            RopePairs::Interleaved => dim * 2 + half,
        };
        (0..2).map(|half| HeadPart { dim, place: Some(place(half)) }).collect()
    }

    /// The sizes of the parts.
    pub(super) fn parts_bound(&self) -> Option<(&'static str, u32)> {
        self.rotary.and(self.heads.dim()).map(|dim| ("PAIRS", dim / 2))
    }
}
