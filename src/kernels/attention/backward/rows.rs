//! What the other kernels need of each row.

use std::f64::consts::LOG2_E;

use super::super::choices::{Attention, AttentionLayout};
use super::super::heads::AttentionDims;
use super::tensors::{minus_delta, minus_log_sum_exp};
use crate::prelude::*;

/// Queries of a workgroup, and of a wave.
const QUERIES: [u32; 2] = [64, 16];

/// Traces the kernel: `minus_log_sum_exp`, as exponents of two, and `minus_delta`. A row without keys gets
/// zero instead of an infinity: its scores are minus infinity, and so stay that when it is added.
pub(super) fn trace(attention: &Attention) -> Result<Kernel, Diagnostic> {
    Kernel::trace("attention_backward_rows", |w| {
        let AttentionDims { batch, heads, queries, value_dim, .. } = AttentionDims::of(attention.heads);
        let [of_workgroup, of_wave] = QUERIES;
        let rows = match attention.tensors.layout {
            AttentionLayout::Packed => Symbol::new("TOTAL_M"),
            AttentionLayout::Bhsd | AttentionLayout::Bshd => {
                w.distribute([workgroup(batch, 1, 2)]);
                queries
            }
        };
        w.distribute([workgroup(rows, of_workgroup, 0), workgroup(heads, 1, 1), wave(rows, of_wave)]);
        let o = w.read(attention.output_of(w)).cast(F32);
        let of_output = w.read(attention.output_gradient_of(w, Global)).cast(F32);
        let sums = w.read(attention.log_sum_exp_of(w));
        let negated = w.select(sums.equal(f64::NEG_INFINITY), 0.0, sums * -LOG2_E);
        w.write(negated, minus_log_sum_exp(attention, w, Global));
        w.write(-(o * of_output).sum(value_dim), minus_delta(attention, w, Global));
    })
}
