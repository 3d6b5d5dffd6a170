//! The forward kernel: one loop over tiles of keys.

use super::builder::Attention;
use super::running::Running;
use super::scores::Scores;
use super::tensors::Axes;
use crate::prelude::*;

/// Traces the kernel: products of keys and queries, their softmax, and products of values and weights. Both
/// products have keys before queries, so that the first one's sums lie in the lanes in which the second one
/// takes them.
pub(super) fn trace(attention: &Attention) -> Result<Kernel, Diagnostic> {
    let axes = Axes::of(attention.heads);
    let Axes { batch, heads, queries, keys, .. } = axes;
    Kernel::trace("attention", |w| {
        distribute(attention, w);
        let [q, k, v] = attention.inputs_of(w);
        let scores = Scores::new(attention, w);
        let query = w.read(q).tag("read_q");
        let start = Running::start(attention, w);
        let [top, sum, values] = w.iterate(keys, [start.top, start.sum, start.values], |w, before| {
            let [top, sum, values] = before;
            let zero = w.register([batch, heads, keys, queries], F32, 0.0);
            let products = w.mma(w.read(k).tag("read_k"), query, zero).tag("scores");
            let exponents = scores.exponents(w, products);
            let value = w.read(v).tag("read_v");
            let now = Running { top, sum, values }.with(attention, w, exponents, value);
            [now.top, now.sum, now.values]
        });
        let all = Running { top, sum, values: values.tag_loop("key_loop") };
        attention.write_output(w, all.mean(w));
        if attention.softmax.log_sum_exp.is_some() {
            w.write(all.log_sum_exp(), w.memory("log_sum_exp", axes.rows(), Global, F32));
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
    if let Some(group) = attention.heads.group() {
        w.follow(kv_heads, heads / group, [heads]);
    }
}
