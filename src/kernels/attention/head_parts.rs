//! The elements of heads as the products take them: all at once, or in two parts.
//!
//! What a wave has of a head is a power of two: 96 elements would be 128, and so they are 64 and 32. Queries
//! and keys that are turned by their positions come in two parts, too: the halves of pairs.

use crate::kernels::RopePairs;

use super::choices::Attention;
use super::heads::AttentionDims;
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

/// The least that a matrix instruction takes of what it sums over, on most chips.
const LEAST_PART: u32 = 16;

/// The sizes of the parts of a head of `size` elements, if two of them take less than one.
fn sizes_of_parts(size: u32) -> Option<[u32; 2]> {
    let whole = size.checked_next_power_of_two()?;
    let [first, rest] = [whole / 2, size.checked_sub(whole / 2)?];
    let taken = first + rest.next_power_of_two().max(LEAST_PART);
    (rest != 0 && first >= LEAST_PART && taken < whole).then_some([first, rest])
}

/// The parts of a head whose dimension is `whole`: their symbols begin with `name`.
fn parts_of(size: Option<u32>, whole: Symbol, name: &str) -> Vec<HeadPart> {
    let Some([first, _]) = size.and_then(sizes_of_parts) else { return vec![HeadPart::whole(whole)] };
    let [one, other] = [0, 1].map(|part| Symbol::new(&format!("{name}{part}")));
    vec![
        HeadPart { dim: one, place: Some(one.into()) },
        HeadPart { dim: other, place: Some(SymExpr::from(other) + i64::from(first)) },
    ]
}

impl Attention {
    /// The parts of heads of queries and keys.
    pub(super) fn head_parts(&self) -> Vec<HeadPart> {
        let (Some(pairs), Some(size)) = (self.rotary, self.heads.dim()) else {
            return parts_of(self.heads.dim(), AttentionDims::of(self.heads).dim, "D");
        };
        let dim = Symbol::new("PAIRS");
        let place = |half: i64| match pairs {
            RopePairs::Halves => SymExpr::from(dim) + half * i64::from(size / 2),
            RopePairs::Interleaved => dim * 2 + half,
        };
        (0..2).map(|half| HeadPart { dim, place: Some(place(half)) }).collect()
    }

    /// The parts of heads of values and of the output.
    pub(super) fn value_parts(&self) -> Vec<HeadPart> {
        parts_of(self.heads.value_dim(), AttentionDims::of(self.heads).value_dim, "DV")
    }

    /// What a wave takes of the second part of values: a whole matrix instruction, however small the part.
    pub(super) fn wave_of_values(&self) -> Option<Constraint> {
        let [_, rest] = self.heads.value_dim().and_then(sizes_of_parts)?;
        Some(wave(Symbol::new("DV1"), rest.next_power_of_two().max(MatrixShape::M32x32.edge())))
    }

    /// What a wave takes of second parts of heads, of keys and of values: at least a whole matrix instruction
    /// with this edge.
    pub(super) fn waves_of_parts(&self, edge: u32) -> impl Iterator<Item = Constraint> {
        let of_part = move |name: &str, size: Option<u32>| {
            let [_, rest] = size.and_then(sizes_of_parts)?;
            Some(wave(Symbol::new(name), rest.next_power_of_two().max(edge)))
        };
        of_part("D1", self.heads.dim()).into_iter().chain(of_part("DV1", self.heads.value_dim()))
    }

    /// The sizes of the parts.
    pub(super) fn parts_bound(&self) -> Vec<(&'static str, u32)> {
        let of_keys = match self.rotary.and(self.heads.dim()) {
            Some(dim) => vec![("PAIRS", dim / 2)],
            None => bound(["D0", "D1"], self.heads.dim()),
        };
        of_keys.into_iter().chain(bound(["DV0", "DV1"], self.heads.value_dim())).collect()
    }
}

fn bound(names: [&'static str; 2], size: Option<u32>) -> Vec<(&'static str, u32)> {
    size.and_then(sizes_of_parts).map_or(Vec::new(), |sizes| names.into_iter().zip(sizes).collect())
}
