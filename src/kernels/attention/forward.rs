//! The forward kernel: one loop over tiles of keys.

use super::builder::Attention;
use super::head_parts::HeadPart;
use super::rotary::Rotary;
use super::running::Running;
use super::scales::TensorScales;
use super::scores::Scores;
use super::sequences::Sequence;
use super::tensors::{AttentionLayout, Axes};
use crate::prelude::*;

/// Traces the kernel: products of keys and queries, their softmax, and products of values and weights. Both
/// products have keys before queries, so that the first one's sums lie in the lanes in which the second one
/// takes them.
pub(super) fn trace(attention: &Attention) -> Result<Kernel, Diagnostic> {
    let axes @ Axes { batch, heads, queries, keys, value_dim, .. } = Axes::of(attention.heads);
    let (parts, of_values) = (attention.head_parts(), HeadPart::whole(value_dim));
    Kernel::trace("attention", |w| {
        distribute(attention, w);
        let [q, k, v] = attention.inputs_of(w);
        let sequence = Sequence::of(attention, w);
        let scales = TensorScales::of(attention, w);
        let scores = Scores::new(attention, w, sequence);
        let rotary = Rotary::of(attention, w);
        let read = |part| sequence.read_queries(attention, w, q, part).tag("read_q");
        let query = rotary.queries(w, parts.iter().map(read).collect(), sequence, axes);
        let start = Running::start(attention, w);
        let [top, sum, values] = w.iterate(keys, [start.top, start.sum, start.values], |w, before| {
            let [top, sum, values] = before;
            let zero = w.register([batch, heads, keys, queries], F32, 0.0);
            let read = |part| sequence.read_keys(attention, w, k, part).tag("read_k");
            let key = rotary.keys(w, parts.iter().map(read).collect(), axes);
            let of_parts = key.into_iter().zip(&query);
            let products = of_parts.fold(zero, |sum, (key, &query)| w.mma(key, query, sum).tag("scores"));
            let exponents = scores.exponents(w, products, scales.of_products(attention, w));
            let value = sequence.read_keys(attention, w, v, &of_values).tag("read_v");
            let value = (value, scales.of_values(attention, w));
            let now = Running { top, sum, values }.with(attention, w, exponents, value);
            [now.top, now.sum, now.values]
        });
        let all = Running { top, sum, values: values.tag_loop("key_loop") };
        let mean = all.mean(w);
        let output = scales.of_all_values().map_or(mean, |scale| mean * scale);
        sequence.write_output(attention, w, output);
        if attention.softmax.log_sum_exp.is_some() {
            sequence.write_log_sum_exp(attention, w, all.log_sum_exp(attention));
        }
    })
}

/// How the kernel is spread over the machine.
fn distribute(attention: &Attention, w: &Tracer) {
    let Axes { batch, heads, queries, keys, kv_heads, .. } = Axes::of(attention.heads);
    let [block_m, wave_m, block_n] = symbols(["BLOCK_M", "WAVE_M", "BLOCK_N"]);
    w.distribute([
        workgroup(queries, block_m, 0),
        workgroup(heads, 1, 1),
        workgroup(batch, 1, 2),
        tile(keys, block_n),
        wave(queries, wave_m),
    ]);
    w.mma_type(attention.choice().1);
    let is_followed = attention.tensors.layout != AttentionLayout::Packed;
    if let Some(group) = attention.heads.group().filter(|_| is_followed) {
        w.follow(kv_heads, heads / group, [heads]);
    }
}
