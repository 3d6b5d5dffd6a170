//! The softmax of rows of which a tile of keys at a time is seen.

use std::f64::consts::{LN_2, LOG2_E};

use super::choices::Attention;
use super::head_parts::HeadPart;
use super::heads::AttentionDims;
use crate::prelude::*;

/// What a row has seen so far. The weight of a key is two to the power of what its score exceeds `top` by,
/// and lifted by a power of two where the weights are 8-bit floats: as far as those go.
pub(super) struct Running {
    /// The greatest score, or one that no score exceeds by more than the threshold.
    pub(super) top: Value,
    /// The sum of the weights.
    pub(super) sum: Value,
    /// The sum of the values times their weights, for each part of a head.
    pub(super) values: Vec<Value>,
}

impl Running {
    /// Of no keys. The maximum is the lowest finite number and not minus infinity, so that what scores of
    /// minus infinity exceed it by is minus infinity, too, and their weight zero. A sink is a key whose
    /// value is zero.
    pub(super) fn start(attention: &Attention, w: &Tracer) -> Running {
        let axes @ AttentionDims { batch, heads, queries, .. } = AttentionDims::of(attention.heads);
        let rows = axes.rows();
        let lowest = w.register(rows, F32, f64::from(f32::MIN));
        let none = |part: HeadPart| w.register([batch, heads, part.dim, queries], F32, 0.0);
        let values = attention.value_parts().into_iter().map(none).collect();
        if attention.softmax.sinks.is_none() {
            return Running { top: lowest, sum: w.register(rows, F32, 0.0), values };
        }
        let sink = w.read(w.memory("sinks", [heads], Global, F32)).tag("read_sinks") * LOG2_E;
        let top = lowest.maximum(sink);
        Running { top, sum: (sink.broadcast(rows) - base(attention, top)).exp2(), values }
    }

    /// The values that a loop carries: the maximum, the sum, and one for each part of a head.
    pub(super) fn carried<const N: usize>(&self) -> [Value; N] {
        std::array::from_fn(|at| match at {
            0 => self.top,
            1 => self.sum,
            _ => self.values[at - 2],
        })
    }

    /// Of the values that a loop carries.
    pub(super) fn of<const N: usize>(carried: [Value; N]) -> Running {
        let [top, sum] = [0, 1].map(|at| carried[at]);
        Running { top, sum, values: carried[2..].to_vec() }
    }

    /// With the keys of another tile: their scores, as exponents of two, and the parts of their values with
    /// the scale of these.
    pub(super) fn with(
        self,
        attention: &Attention,
        w: &Tracer,
        scores: Value,
        (values, scale): (Vec<Value>, Option<Value>),
    ) -> Running {
        let AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
        let top = self.top_with(attention.softmax.threshold, w, scores.max(keys));
        let base = base(attention, top);
        let inputs = attention.tensors.inputs;
        let JoinedTile { factor, sum, weights } =
            JoinedTile::of([self.top, self.sum], [top, base], (keys, scores), inputs);
        let added = |(part, (before, values)): (HeadPart, (Value, Value))| match scale {
            None => w.mma(values, weights, before * factor).tag("values"),
            Some(scale) => {
                let none = w.register([batch, heads, part.dim, queries], F32, 0.0);
                before * factor + w.mma(values, weights, none).tag("values") * scale
            }
        };
        let parts = attention.value_parts().into_iter().zip(self.values.into_iter().zip(values));
        Running { top, sum, values: parts.map(added).collect() }
    }

    fn top_with(&self, threshold: f64, w: &Tracer, here: Value) -> Value {
        if threshold == 0.0 {
            return self.top.maximum(here);
        }
        w.select(here.greater(self.top + threshold), here, self.top)
    }

    /// The mean of the values by their weights; of none it is zero.
    pub(super) fn mean(&self, w: &Tracer) -> Vec<Value> {
        let share = share(w, self.sum);
        self.values.iter().map(|&values| values * share).collect()
    }

    /// The natural logarithm of the sum of the powers of all scores; of none it is minus infinity.
    pub(super) fn log_sum_exp(&self, attention: &Attention) -> Value {
        natural_logarithm(base(attention, self.top), self.sum)
    }
}

/// A tile of keys that joins what rows have seen.
pub(super) struct JoinedTile {
    /// The factor of what was added up before the tile.
    pub(super) factor: Value,
    /// The sum of the weights with those of the tile.
    pub(super) sum: Value,
    /// The weights, as the product with values takes them.
    pub(super) weights: Value,
}

impl JoinedTile {
    /// Of rows with this maximum and sum before the tile, and this maximum with it, where scores along `keys`
    /// exceed `base` by the exponents of their weights.
    pub(super) fn of(
        [top_before, sum_before]: [Value; 2],
        [top, base]: [Value; 2],
        (keys, scores): (Symbol, Value),
        inputs: DType,
    ) -> JoinedTile {
        let weights = (scores - base).exp2();
        let factor = (top_before - top).exp2();
        let sum = sum_before * factor + weights.sum(keys);
        JoinedTile { factor, sum, weights: weights.cast(inputs) }
    }
}

/// The factor that makes a mean of a row's sum of values: of no keys it is zero.
pub(super) fn share(w: &Tracer, sum: Value) -> Value {
    w.select(sum.equal(0.0), 0.0, sum.reciprocal())
}

/// The natural logarithm of the sum of the powers of all scores, of `base` and the sum of the weights; of no
/// keys it is minus infinity.
pub(super) fn natural_logarithm(base: Value, sum: Value) -> Value {
    (base + sum.log2()) * LN_2
}

/// What scores exceed by the exponents of their weights.
fn base(attention: &Attention, top: Value) -> Value {
    match lift(attention.tensors.inputs, attention.softmax.threshold) {
        0.0 => top,
        lift => top - lift,
    }
}

/// The largest weight that a dtype holds, as a power of two. 16-bit floats hold all weights well enough.
pub(super) fn largest_weight(dtype: DType) -> f64 {
    match dtype {
        F16 => 65504f64.log2(),
        F8E4M3Fnuz => 240f64.log2(),
        F8E4M3Fn => 448f64.log2(),
        // Sums of many weights stay far from the end of f32.
        _ => 96.0,
    }
}

/// By which power of two weights are lifted.
fn lift(dtype: DType, threshold: f64) -> f64 {
    match dtype {
        F8E4M3Fnuz | F8E4M3Fn => (largest_weight(dtype) - threshold).floor(),
        _ => 0.0,
    }
}
