//! The gradient of a bias.

use super::super::biases::BiasShape;
use super::super::heads::AttentionDims;
use super::super::places::{HeadsOfScores, WorkgroupSequence};
use super::super::scores::Scores;
use super::choices::AttentionBackward;
use super::kernels::BackwardKernel;
use super::tensors::{RowsOfValue, minus_delta, minus_log_sum_exp};
use crate::prelude::*;

/// Traces the kernel: a workgroup has a tile of queries and keys, of which it computes the gradients of
/// scores. What a bias is broadcast over, sequences or heads, it walks along, and adds up; `step` is the
/// number of the function of scores that adds the bias.
pub(super) fn trace(
    backward: &AttentionBackward,
    (step, shape): (usize, BiasShape),
) -> Result<Kernel, Diagnostic> {
    Kernel::trace("attention_backward_bias", |w| {
        let attention = &backward.attention;
        let axes @ AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
        distribute(axes, w, shape);
        if let Some((_, matrix)) = backward.choice(BackwardKernel::Bias) {
            w.distribute(attention.waves_of_parts(matrix.edge()));
            w.mma_type(matrix);
        }
        let scores = ScoreGradients::new(backward, w, step);
        let zero = |dims: &[Symbol]| match *dims {
            [outer] => w.register([outer, queries, keys], F32, 0.0),
            _ => w.register([queries, keys], F32, 0.0),
        };
        let sum = match shape {
            BiasShape::Own => scores.of_tile(w),
            BiasShape::OfHeads => {
                let [sum] =
                    w.iterate(batch, [zero(&[heads])], |w, [sum]| [sum + scores.of_tile(w).sum(batch)]);
                sum
            }
            BiasShape::OfSequences => {
                let [sum] =
                    w.iterate(heads, [zero(&[batch])], |w, [sum]| [sum + scores.of_tile(w).sum(heads)]);
                sum
            }
            BiasShape::One => {
                let [sum] = w.iterate(batch, [zero(&[])], |w, before| {
                    w.iterate(heads, before, |w, [sum]| [sum + scores.of_tile(w).sum(heads).sum(batch)])
                });
                sum
            }
        };
        let dtype = backward.output_dtype();
        w.write(sum.cast(dtype), shape.declared(w, axes, ("dbias", dtype)));
    })
}

/// Tensors and choices of which the gradients of scores are made.
struct ScoreGradients<'a> {
    backward: &'a AttentionBackward,
    /// Queries, keys, values, and the gradient of the output.
    tensors: [MemoryRef; 4],
    /// Numbers of each row: the negated logarithm of the sum, and minus delta.
    terms: [MemoryRef; 2],
    scores: Scores,
    /// The step after which the derivative counts.
    step: usize,
}

impl<'a> ScoreGradients<'a> {
    fn new(backward: &'a AttentionBackward, w: &Tracer, step: usize) -> ScoreGradients<'a> {
        let attention = &backward.attention;
        let [q, k, v] = attention.inputs_of(w);
        let of_output = attention.output_gradient_of(w, Global);
        ScoreGradients {
            backward,
            tensors: [q, k, v, of_output],
            terms: [minus_log_sum_exp(attention, w, Global), minus_delta(attention, w, Global)],
            scores: Scores::new(attention, w, WorkgroupSequence::Whole),
            step,
        }
    }

    /// Those of a tile.
    fn of_tile(&self, w: &Tracer) -> Value {
        let attention = &self.backward.attention;
        let AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
        let (parts, value_parts) = (attention.head_parts(), attention.value_parts());
        let shared = attention.heads.group().map(|_| Coordinate::from(attention.kv_head()));
        let of_keys = RowsOfValue::walked(attention, WorkgroupSequence::Whole, [keys, heads], shared);
        let of_queries = RowsOfValue::own(WorkgroupSequence::Whole, queries, heads);
        let [q, k, v, of_output] = self.tensors;
        let zero = w.register([batch, heads, queries, keys], F32, 0.0);
        let product = |sum, (of_query, of_key): (Value, Value)| w.mma(of_query, of_key, sum);
        let query = of_queries.read(attention, w, q, (&parts, "read_q"));
        let key = of_keys.read(attention, w, k, (&parts, "read_k"));
        let products = query.into_iter().zip(key).fold(zero, product).tag("scores");
        let (exponents, slope) = self.scores.with_derivative(w, products, HeadsOfScores::Along, self.step);
        let [sums, deltas] = self.terms.map(|memory| of_queries.read_terms(attention, w, memory));
        let gradient = of_queries.read(attention, w, of_output, (&value_parts, "read_do"));
        let value = of_keys.read(attention, w, v, (&value_parts, "read_v"));
        let of_weights = gradient.into_iter().zip(value).fold(zero, product).tag("weights");
        let of_scores = (exponents + sums).exp2() * (of_weights + deltas);
        slope.map_or(of_scores, |slope| of_scores * slope)
    }
}

/// How the kernel is spread over the machine.
fn distribute(axes: AttentionDims, w: &Tracer, shape: BiasShape) {
    let AttentionDims { batch, heads, queries, keys, .. } = axes;
    let [block_m, wave_m, block_n] = symbols(["BLOCK_M", "WAVE_M", "BLOCK_N"]);
    w.distribute([workgroup(queries, block_m, 0), workgroup(keys, block_n, 1), wave(queries, wave_m)]);
    w.distribute(match shape {
        BiasShape::Own => [workgroup(heads, 1, 2), workgroup(batch, 1, 3)],
        BiasShape::OfHeads => [workgroup(heads, 1, 2), tile(batch, 1)],
        BiasShape::OfSequences => [tile(heads, 1), workgroup(batch, 1, 2)],
        BiasShape::One => [tile(heads, 1), tile(batch, 1)],
    });
}
