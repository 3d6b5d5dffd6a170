//! From products of queries and keys to scores.

use std::f64::consts::LOG2_E;

use super::choices::{Attention, Scale};
use super::heads::AttentionDims;
use super::places::{HeadsOfScores, ScorePlace, ScoreStep, SeenKeys, WorkgroupSequence};
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
    /// The scale as the author says it.
    given: ScoreFactor,
    /// The factor of products.
    scale: ScoreFactor,
    functions: Vec<ScoreStep>,
    masks: Vec<SeenKeys>,
}

impl Scores {
    /// Before the loop: the scale and what steps read are declared.
    pub(super) fn new(attention: &Attention, w: &Tracer, sequence: WorkgroupSequence) -> Scores {
        let axes = AttentionDims::of(attention.heads);
        let given = match attention.scale {
            Scale::Given(scale) => ScoreFactor::Number(scale),
            Scale::OfSize => ScoreFactor::Value(w.size(axes.dim).cast(F32).rsqrt()),
            Scale::Argument => ScoreFactor::Value(w.scalar("scale", F32)),
        };
        let scale = match given {
            // Without functions of scores one factor is the scale and the base of the powers.
            ScoreFactor::Number(scale) if attention.scores.is_empty() => ScoreFactor::Number(scale * LOG2_E),
            ScoreFactor::Value(scale) if attention.scores.is_empty() => ScoreFactor::Value(scale * LOG2_E),
            scale => scale,
        };
        let functions = attention.scores.iter().map(|step| step.prepared(w)).collect();
        let masks = attention.masks.iter().map(|step| step(w)).collect();
        Scores { axes, sequence, given, scale, functions, masks }
    }

    /// The scores of `products`, as exponents of two: minus infinity where a query does not see a key.
    /// Products of 8-bit tensors have a scale of their own.
    pub(super) fn exponents(&self, w: &Tracer, products: Value, scale: Option<Value>) -> Value {
        let scale = scale.map_or(self.scale, |scale| ScoreFactor::Value(self.scale.times(scale)));
        let at = self.place(w, HeadsOfScores::Along);
        let (scores, factor) = match &self.functions[..] {
            [] => (products, scale),
            steps => {
                let scaled = scale.times(products);
                let apply = |score, step: &ScoreStep| (step.function)(w, score, at);
                (steps.iter().fold(scaled, apply), ScoreFactor::Number(LOG2_E))
            }
        };
        factor.times(self.masked(w, scores, at))
    }

    /// The exponents of products with heads of queries, and the derivative of scores by what the step of
    /// number `from` is given: of the first one, by products that have been scaled. It is one if there is
    /// none.
    pub(super) fn with_derivative(
        &self,
        w: &Tracer,
        products: Value,
        heads: HeadsOfScores,
        from: usize,
    ) -> (Value, Option<Value>) {
        let at = self.place(w, heads);
        if self.functions.is_empty() {
            return (self.scale.times(self.masked(w, products, at)), None);
        }
        let (mut score, mut slope) = (self.scale.times(products), None);
        for (number, step) in self.functions.iter().enumerate() {
            if let Some(derivative) = step.derivative.as_ref().filter(|_| number >= from) {
                let of_step = derivative(w, score, at);
                slope = Some(slope.map_or(of_step, |slope: Value| slope * of_step));
            }
            score = (step.function)(w, score, at);
        }
        (self.masked(w, score, at) * LOG2_E, slope)
    }

    /// Sums of derivatives by products that have been scaled, as derivatives by products.
    pub(super) fn of_products(&self, sums: Value) -> Value {
        self.given.times(sums)
    }

    fn place(&self, w: &Tracer, heads: HeadsOfScores) -> ScorePlace {
        let axes = self.axes;
        ScorePlace {
            heads,
            query: w.self_index(axes.queries).broadcast([axes.keys, axes.queries]),
            key: w.self_index(axes.keys),
            axes,
            sequence: self.sequence,
        }
    }

    fn masked(&self, w: &Tracer, scores: Value, at: ScorePlace) -> Value {
        let AttentionDims { keys, queries, .. } = self.axes;
        let exists = self.sequence.has(at.query, at.key).map(|exists| exists.broadcast([keys, queries]));
        let seen = exists.into_iter().chain(self.masks.iter().map(|sees| sees(w, at)));
        seen.fold(scores, |scores, sees| w.select(sees, scores, f64::NEG_INFINITY))
    }
}
