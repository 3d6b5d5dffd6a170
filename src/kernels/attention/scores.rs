//! From products of queries and keys to scores.

use std::f64::consts::LOG2_E;
use std::sync::Arc;

use super::builder::Attention;
use super::sequences::Sequence;
use super::tensors::Axes;
use crate::prelude::*;

/// What products of queries and keys are multiplied with.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Scale {
    /// A number.
    Given(f64),
    /// `1 / sqrt(D)` where the size of `D` is a symbol.
    OfSize,
    /// An argument of the kernel.
    Argument,
}

/// Where scores are.
#[derive(Copy, Clone)]
pub(super) struct Places {
    /// The place of the query, along queries and keys.
    pub(super) query: Value,
    /// The place of the key.
    pub(super) key: Value,
    pub(super) axes: Axes,
    /// The sequence, which has so many queries and keys.
    pub(super) sequence: Sequence,
}

/// A function of scores.
pub(super) type Score = Box<dyn Fn(&Tracer, Value, Places) -> Value>;

/// Which keys a query sees.
pub(super) type Mask = Box<dyn Fn(&Tracer, Places) -> Value>;

/// Declares what a function of scores or a mask reads, before the loop, and gives the function.
pub(super) type Step<T> = Arc<dyn Fn(&Tracer) -> T + Send + Sync>;

/// A positive factor.
#[derive(Copy, Clone)]
enum Factor {
    Number(f64),
    Value(Value),
}

impl Factor {
    fn times(self, x: Value) -> Value {
        match self {
            Factor::Number(factor) => x * factor,
            Factor::Value(factor) => x * factor,
        }
    }
}

/// What makes scores of products.
pub(super) struct Scores {
    axes: Axes,
    sequence: Sequence,
    scale: Factor,
    functions: Vec<Score>,
    masks: Vec<Mask>,
}

impl Scores {
    /// Before the loop: the scale and what steps read are declared.
    pub(super) fn new(attention: &Attention, w: &Tracer, sequence: Sequence) -> Scores {
        let axes = Axes::of(attention.heads);
        let scale = match attention.scale {
            Scale::Given(scale) => Factor::Number(scale),
            Scale::OfSize => Factor::Value(w.size(axes.dim).cast(F32).rsqrt()),
            Scale::Argument => Factor::Value(w.scalar("scale", F32)),
        };
        let scale = match scale {
            // Without functions of scores one factor is the scale and the base of the powers.
            Factor::Number(scale) if attention.scores.is_empty() => Factor::Number(scale * LOG2_E),
            Factor::Value(scale) if attention.scores.is_empty() => Factor::Value(scale * LOG2_E),
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
        let scale = scale.map_or(self.scale, |scale| Factor::Value(self.scale.times(scale)));
        let at = Places {
            query: w.self_index(axes.queries).broadcast([axes.keys, axes.queries]),
            key: w.self_index(axes.keys),
            axes,
            sequence: self.sequence,
        };
        let (scores, factor) = match &self.functions[..] {
            [] => (products, scale),
            steps => {
                let scaled = scale.times(products);
                (steps.iter().fold(scaled, |score, step| step(w, score, at)), Factor::Number(LOG2_E))
            }
        };
        factor.times(self.masked(w, scores, at))
    }

    fn masked(&self, w: &Tracer, scores: Value, at: Places) -> Value {
        let Axes { keys, queries, .. } = self.axes;
        let exists = self.sequence.has(at.key).map(|exists| exists.broadcast([keys, queries]));
        let seen = exists.into_iter().chain(self.masks.iter().map(|sees| sees(w, at)));
        seen.fold(scores, |scores, sees| w.select(sees, scores, f64::NEG_INFINITY))
    }
}
