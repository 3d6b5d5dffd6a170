//! Attention to a part of the keys: what rows have seen so far, and how a tile of keys joins it.

use super::paged::PagedAxes;
use super::running::{JoinedTile, natural_logarithm, share};
use crate::prelude::*;

/// What a row has seen so far. The weight of a key is two to the power of what its score exceeds `top` by.
#[derive(Copy, Clone)]
pub(super) struct PartialAttention {
    /// The greatest score.
    pub(super) top: Value,
    /// The sum of the weights.
    pub(super) weight: Value,
    /// The sum of the values times their weights.
    pub(super) sums: Value,
}

impl PartialAttention {
    /// Of no keys. The maximum is the lowest finite number and not minus infinity, so that what scores of
    /// minus infinity exceed it by is minus infinity, too, and their weight zero. `dims` are those of a row,
    /// with which a row of values is `sums`.
    pub(super) fn start<const N: usize, const M: usize>(
        w: &Tracer,
        dims: [Symbol; N],
        sums: [Symbol; M],
    ) -> PartialAttention {
        PartialAttention {
            top: w.register(dims, F32, f64::from(f32::MIN)),
            weight: w.register(dims, F32, 0.0),
            sums: w.register(sums, F32, 0.0),
        }
    }

    /// With more keys: their scores, as exponents of two, and their values, along `keys`.
    pub(super) fn with(
        self,
        w: &Tracer,
        keys: Symbol,
        scores: Value,
        values: Value,
        inputs: DType,
    ) -> PartialAttention {
        let top = self.top.maximum(scores.max(keys));
        let JoinedTile { factor, sum, weights } =
            JoinedTile::of([self.top, self.weight], [top, top], (keys, scores), inputs);
        PartialAttention { top, weight: sum, sums: w.mma(values, weights, self.sums * factor).tag("values") }
    }

    /// With the parts along `parts`.
    pub(super) fn joined(self, parts: Symbol, other: PartialAttention) -> PartialAttention {
        let top = self.top.maximum(other.top.max(parts));
        let factors = (other.top - top).exp2();
        let factor = (self.top - top).exp2();
        PartialAttention {
            top,
            weight: self.weight * factor + (other.weight * factors).sum(parts),
            sums: self.sums * factor + (other.sums * factors).sum(parts),
        }
    }

    /// The mean of the values by their weights; of none it is zero.
    pub(super) fn mean(self, w: &Tracer) -> Value {
        self.sums * share(w, self.weight)
    }

    /// The natural logarithm of the sum of the powers of all scores; of none it is minus infinity.
    pub(super) fn log_sum_exp(self) -> Value {
        natural_logarithm(self.top, self.weight)
    }
}

/// The memories of the results of parts: `sums`, `[B, KV, PARTS, R, D]`, `tops` and `weights`,
/// `[B, KV, PARTS, R]`, all f32.
pub(super) struct PartialMemories {
    pub(super) sums: MemoryRef,
    pub(super) tops: MemoryRef,
    pub(super) weights: MemoryRef,
}

impl PartialMemories {
    pub(super) fn new(w: &Tracer, dim: Symbol) -> PartialMemories {
        let PagedAxes { batch, kv, parts, rows, .. } = PagedAxes::new();
        PartialMemories {
            sums: w.memory("sums", [batch, kv, parts, rows, dim], Global, F32),
            tops: w.memory("tops", [batch, kv, parts, rows], Global, F32),
            weights: w.memory("weights", [batch, kv, parts, rows], Global, F32),
        }
    }

    pub(super) fn write(self, w: &Tracer, partial: PartialAttention) {
        w.write(partial.sums, self.sums);
        w.write(partial.top, self.tops);
        w.write(partial.weight, self.weights);
    }
}
