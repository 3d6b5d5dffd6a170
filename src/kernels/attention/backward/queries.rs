//! The gradient of the queries: a loop over tiles of keys, as that of the forward kernel.

use super::super::choices::Attention;
use super::super::heads::AttentionDims;
use super::super::places::{HeadsOfScores, WorkgroupSequence};
use super::super::scores::Scores;
use super::choices::AttentionBackward;
use super::kernels::BackwardKernel;
use super::tensors::{RowsOfValue, minus_delta, minus_log_sum_exp};
use crate::prelude::*;

/// Traces the kernel, whose loop carries as many sums as heads have parts.
pub(super) fn trace(backward: &AttentionBackward) -> Result<Kernel, Diagnostic> {
    Kernel::trace("attention_backward_queries", |w| match backward.attention.head_parts().len() {
        1 => body::<1>(backward, w),
        _ => body::<2>(backward, w),
    })
}

/// All products have keys before queries, so that the gradients of scores lie in the lanes in which the last
/// product takes them, and a lane has what there is once for each row. Keys are read twice, by rows and
/// turned; tags keep the two reads apart.
fn body<const PARTS: usize>(backward: &AttentionBackward, w: &Tracer) {
    let attention = &backward.attention;
    let AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
    let (parts, value_parts) = (attention.head_parts(), attention.value_parts());
    distribute(attention, w);
    if let Some((_, matrix)) = backward.choice(BackwardKernel::Queries) {
        w.distribute(attention.waves_of_parts(matrix.edge()));
        w.mma_type(matrix);
    }
    let [q, k, v] = attention.inputs_of(w);
    let of_output = attention.output_gradient_of(w, Global);
    let terms = [minus_log_sum_exp(attention, w, Global), minus_delta(attention, w, Global)];
    let sequence = WorkgroupSequence::of(attention, w, 0);
    let scores = Scores::new(attention, w, sequence);
    let own = RowsOfValue::own(sequence, queries, heads);
    let shared = attention.heads.group().map(|_| Coordinate::from(attention.kv_head()));
    let walked = RowsOfValue::walked(attention, sequence, [keys, heads], shared);
    let query = own.read(attention, w, q, (&parts, "read_q"));
    let gradient = own.read(attention, w, of_output, (&value_parts, "read_do"));
    let [sum, delta] = terms.map(|memory| own.read_terms(attention, w, memory));
    let none: [Value; PARTS] =
        std::array::from_fn(|at| w.register([batch, heads, parts[at].dim, queries], F32, 0.0));
    let all = w.iterate(keys, none, |w, before| {
        let zero = w.register([batch, heads, keys, queries], F32, 0.0);
        let product = |sum, (of_key, &of_query): (Value, &Value)| w.mma(of_key, of_query, sum);
        let key = walked.read(attention, w, k, (&parts, "read_k"));
        let products = key.into_iter().zip(&query).fold(zero, product).tag("scores");
        let (exponents, slope) = scores.with_derivative(w, products, HeadsOfScores::Along, 0);
        let weights = (exponents + sum).exp2();
        let value = walked.read(attention, w, v, (&value_parts, "read_v"));
        let of_weights = value.into_iter().zip(&gradient).fold(zero, product).tag("weights");
        let of_scores = weights * (of_weights + delta);
        let of_scores = slope.map_or(of_scores, |slope| of_scores * slope).cast(attention.tensors.inputs);
        let turned = walked.read(attention, w, k, (&parts, "read_k_turned"));
        std::array::from_fn(|at| w.mma(turned[at], of_scores, before[at]).tag("queries"))
    });
    all[0].tag_loop("key_loop");
    let dtype = backward.output_dtype();
    let memory = attention.query_gradient_of(w, dtype);
    for (sum, part) in all.into_iter().zip(&parts) {
        own.write(attention, w, memory, (scores.of_products(sum).cast(dtype), part));
    }
}

/// How the kernel is spread over the machine.
fn distribute(attention: &Attention, w: &Tracer) {
    let AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
    let [block_m, wave_m, block_n] = symbols(["BLOCK_M", "WAVE_M", "BLOCK_N"]);
    w.distribute([workgroup(queries, block_m, 0), workgroup(heads, 1, 1), workgroup(batch, 1, 2)]);
    w.distribute([tile(keys, block_n), wave(queries, wave_m)]);
}
