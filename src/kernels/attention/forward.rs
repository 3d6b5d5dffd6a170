//! The forward kernel: one loop over tiles of keys.

use super::choices::{Attention, AttentionLayout};
use super::heads::AttentionDims;
use super::places::WorkgroupSequence;
use super::rotary::Rotary;
use super::running::Running;
use super::scales::TensorScales;
use super::scores::Scores;
use crate::prelude::*;

/// Traces the kernel, whose loop carries the maximum, the sum, and as many parts of heads as there are.
pub(super) fn trace(attention: &Attention) -> Result<Kernel, Diagnostic> {
    Kernel::trace("attention", |w| match attention.value_parts().len() {
        1 => body::<3>(attention, w),
        _ => body::<4>(attention, w),
    })
}

/// Products of keys and queries, their softmax, and products of values and weights. Both products have keys
/// before queries, so that the first one's sums lie in the lanes in which the second one takes them.
fn body<const CARRIED: usize>(attention: &Attention, w: &Tracer) {
    let dims @ AttentionDims { batch, heads, queries, keys, .. } = AttentionDims::of(attention.heads);
    let (parts, value_parts) = (attention.head_parts(), attention.value_parts());
    distribute(attention, w);
    let [q, k, v] = attention.inputs_of(w);
    let sequence = WorkgroupSequence::of(attention, w, grid_axes(attention)[0]);
    let scales = TensorScales::of(attention, w);
    let scores = Scores::new(attention, w, sequence);
    let rotary = Rotary::of(attention, w);
    let read = |part| sequence.read_queries(attention, w, q, part).tag("read_q");
    let query = rotary.queries(w, parts.iter().map(read).collect(), sequence, dims);
    let start = Running::start(attention, w).carried::<CARRIED>();
    let all = w.iterate(keys, start, |w, before| {
        let zero = w.register([batch, heads, keys, queries], F32, 0.0);
        let read = |part| sequence.read_keys(attention, w, k, part).tag("read_k");
        let key = rotary.keys(w, parts.iter().map(read).collect(), dims);
        let of_parts = key.into_iter().zip(&query);
        let products = of_parts.fold(zero, |sum, (key, &query)| w.mma(key, query, sum).tag("scores"));
        let exponents = scores.exponents(w, products, scales.of_products(attention, w));
        let read = |part| sequence.read_keys(attention, w, v, part).tag("read_v");
        let values = value_parts.iter().map(read).collect();
        let values = (values, scales.of_values(attention, w));
        Running::of(before).with(attention, w, exponents, values).carried()
    });
    all[0].tag_loop("key_loop");
    let all = Running::of(all);
    let o = attention.output_of(w);
    for (mean, part) in all.mean(w).into_iter().zip(&value_parts) {
        let output = scales.of_all_values().map_or(mean, |scale| mean * scale);
        sequence.write_output(attention, w, o, (output, part));
    }
    if attention.softmax.log_sum_exp.is_some() {
        sequence.write_log_sum_exp(attention, w, all.log_sum_exp(attention));
    }
}

/// The axes of the grid of queries and of heads. Under masks, which leave queries as much work as their
/// places say, workgroups of all heads follow one another, so that dies and compute units get as much as each
/// other.
fn grid_axes(attention: &Attention) -> [u32; 2] {
    if attention.masks.is_empty() { [0, 1] } else { [1, 0] }
}

/// How the kernel is spread over the machine.
fn distribute(attention: &Attention, w: &Tracer) {
    let AttentionDims { batch, heads, queries, keys, kv_heads, .. } = AttentionDims::of(attention.heads);
    let [block_m, wave_m, block_n] = symbols(["BLOCK_M", "WAVE_M", "BLOCK_N"]);
    let is_packed = attention.tensors.layout == AttentionLayout::Packed;
    let [of_queries, of_heads] = grid_axes(attention);
    // Masks leave the last queries the most keys: their workgroups start first.
    if !attention.masks.is_empty() {
        w.distribute([reorder(of_queries, grid_size(of_queries) - 1 - workgroup_id(of_queries))]);
    }
    w.distribute([
        workgroup(queries, block_m, of_queries),
        workgroup(heads, 1, of_heads),
        workgroup(batch, 1, 2),
        tile(keys, block_n),
        wave(queries, wave_m),
    ]);
    w.distribute(attention.wave_of_values());
    w.mma_type(attention.choice().1);
    if let Some(group) = attention.heads.group().filter(|_| !is_packed) {
        w.follow(kv_heads, heads / group, [heads]);
    }
}
