//! From products of queries and keys to scores.

use std::f64::consts::LOG2_E;

use super::choices::{Attention, Scale};
use super::heads::AttentionDims;
use super::places::{ScoreFunction, ScorePlace, SeenKeys, WorkgroupSequence};
use crate::prelude::*;

/// A positive factor.
#[derive(Copy, Clone)]
enum ScoreFactor {
    Number(f64),
    Value(Value),
}

impl ScoreFactor {
    fn times(self, x: Value) -> Value {
        match self {
            ScoreFactor::Number(factor) => x * factor,
            ScoreFactor::Value(factor) => x * factor,
        }
    }
}

/// What makes scores of products.
pub(super) struct Scores {
    axes: AttentionDims,
    sequence: WorkgroupSequence,
    scale: ScoreFactor,
    functions: Vec<ScoreFunction>,
    masks: Vec<SeenKeys>,
}

impl Scores {
    /// Before the loop: the scale and what steps read are declared.
    pub(super) fn new(attention: &Attention, w: &Tracer, sequence: WorkgroupSequence) -> Scores {
        let axes = AttentionDims::of(attention.heads);
        let scale = match attention.scale {
            Scale::Given(scale) => ScoreFactor::Number(scale),
            Scale::OfSize => ScoreFactor::Value(w.size(axes.dim).cast(F32).rsqrt()),
            Scale::Argument => ScoreFactor::Value(w.scalar("scale", F32)),
        };
        let scale = match scale {
            // Without functions of scores one factor is the scale and the base of the powers.
            ScoreFactor::Number(scale) if attention.scores.is_empty() => ScoreFactor::Number(scale * LOG2_E),
            ScoreFactor::Value(scale) if attention.scores.is_empty() => ScoreFactor::Value(scale * LOG2_E),
            scale => scale,
        };
        let functions = attention.scores.iter().map(|step| step(w)).collect();
        let masks = attention.masks.iter().map(|step| step(w)).collect();
        Scores { axes, sequence, scale, functions, masks }
    }

    /// The scores of `products`, as exponents of two: minus infinity where a query does not see a key.
    /// Products of 8-bit tensors have a scale of their own.
    pub(super) fn exponents(&self, w: &Tracer, products: Value, scale: Option<Value>) -> Value {
        let axes = self.axes;
        let scale = scale.map_or(self.scale, |scale| ScoreFactor::Value(self.scale.times(scale)));
        let at = ScorePlace {
            query: w.self_index(axes.queries).broadcast([axes.keys, axes.queries]),
            key: w.self_index(axes.keys),
            axes,
            sequence: self.sequence,
        };
        let (scores, factor) = match &self.functions[..] {
            [] => (products, scale),
            steps => {
                let scaled = scale.times(products);
                (steps.iter().fold(scaled, |score, step| step(w, score, at)), ScoreFactor::Number(LOG2_E))
            }
        };
        factor.times(self.masked(w, scores, at))
    }

    fn masked(&self, w: &Tracer, scores: Value, at: ScorePlace) -> Value {
        let AttentionDims { keys, queries, .. } = self.axes;
        let exists = self.sequence.has(at.key).map(|exists| exists.broadcast([keys, queries]));
        let seen = exists.into_iter().chain(self.masks.iter().map(|sees| sees(w, at)));
        seen.fold(scores, |scores, sees| w.select(sees, scores, f64::NEG_INFINITY))
    }
}
