//! The gradients of the logits of sinks.

use std::f64::consts::LOG2_E;

use super::super::choices::{Attention, AttentionLayout};
use super::super::heads::AttentionDims;
use super::tensors::{minus_delta, minus_log_sum_exp};
use crate::prelude::*;

/// Queries of an iteration.
const QUERIES: u32 = 1024;

/// Traces the kernel: a sink is a key with a value of zero, so that the gradient of its score is its weight
/// times minus delta, and `dsinks` is the sum of that over all rows of a head.
pub(super) fn trace(attention: &Attention) -> Result<Kernel, Diagnostic> {
    Kernel::trace("attention_backward_sinks", |w| {
        let axes @ AttentionDims { batch, heads, queries, .. } = AttentionDims::of(attention.heads);
        w.distribute([workgroup(heads, 1, 0)]);
        let exponent = w.read(w.memory("sinks", [heads], Global, F32)) * LOG2_E;
        let [sums, deltas] = [minus_log_sum_exp(attention, w, Global), minus_delta(attention, w, Global)];
        let weighted = |w: &Tracer, weights: Value| (w.read(sums) + weights).exp2() * w.read(deltas);
        let zero = w.register([heads], F32, 0.0);
        let [all] = match attention.tensors.layout {
            AttentionLayout::Packed => {
                let rows = Symbol::new("TOTAL_M");
                w.distribute([tile(rows, QUERIES)]);
                w.iterate(rows, [zero], |w, [sum]| {
                    [sum + weighted(w, exponent.broadcast([heads, rows])).sum(rows)]
                })
            }
            AttentionLayout::Bhsd | AttentionLayout::Bshd => {
                w.distribute([tile(batch, 1), tile(queries, QUERIES)]);
                w.iterate(batch, [zero], |w, before| {
                    w.iterate(queries, before, |w, [sum]| {
                        [sum + weighted(w, exponent.broadcast(axes.rows())).sum(queries).sum(batch)]
                    })
                })
            }
        };
        w.write(all, w.memory("dsinks", [heads], Global, F32));
    })
}
