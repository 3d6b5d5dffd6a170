//! Rows of the table of ready kernels: attention, its backward pass, and attention over pages.

use super::table_entry::{KernelEntry, Make};
use super::table_symbols::*;
use super::{Attention, BackwardKernel, LatentDecode, PagedDecode, PagedExtend, paged_append};
use crate::prelude::*;

pub(super) const ATTENTION_ROW: KernelEntry = KernelEntry {
    name: "attention",
    description: "O = softmax(Q Kᵀ / sqrt(D)) V for each head",
    symbols: ATTENTION,
    dtype: Bf16,
    waves: None,
    derived: ATTENTION_TILE,
    make: Make::Attention(|attention| attention),
};

pub(super) const ATTENTION_CAUSAL_ROW: KernelEntry = KernelEntry {
    name: "attention_causal",
    description: "attention of queries to keys at their own place and before, and the log-sum-exp",
    symbols: ATTENTION,
    dtype: Bf16,
    waves: None,
    derived: ATTENTION_TILE,
    make: Make::Attention(|attention| attention.causal().log_sum_exp()),
};

pub(super) const ATTENTION_GROUPED_ROW: KernelEntry = KernelEntry {
    name: "attention_grouped",
    description: "attention whose heads of keys and values are shared by groups of heads of queries",
    symbols: ATTENTION_GROUPED,
    dtype: Bf16,
    waves: None,
    derived: ATTENTION_GROUPED_DERIVED,
    make: Make::Attention(Attention::grouped),
};

pub(super) const ATTENTION_BACKWARD_ROWS_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_rows",
    description: "what the gradients of attention need of each row: its sum and that of dO O, negated",
    symbols: ATTENTION_BACKWARD_ROWS,
    dtype: Bf16,
    waves: None,
    derived: &[],
    make: Make::Backward(|attention| attention, BackwardKernel::Rows),
};

pub(super) const ATTENTION_BACKWARD_QUERIES_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_queries",
    description: "the gradient of the queries of attention",
    symbols: ATTENTION_BACKWARD_QUERIES,
    dtype: Bf16,
    waves: None,
    derived: &[],
    make: Make::Backward(|attention| attention, BackwardKernel::Queries),
};

pub(super) const ATTENTION_BACKWARD_KEYS_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_keys",
    description: "the gradient of the keys of attention",
    symbols: ATTENTION_BACKWARD_KEYS,
    dtype: Bf16,
    waves: None,
    derived: &[],
    make: Make::Backward(|attention| attention, BackwardKernel::Keys),
};

pub(super) const ATTENTION_BACKWARD_VALUES_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_values",
    description: "the gradient of the values of attention",
    symbols: ATTENTION_BACKWARD_KEYS,
    dtype: Bf16,
    waves: None,
    derived: &[],
    make: Make::Backward(|attention| attention, BackwardKernel::Values),
};

pub(super) const ATTENTION_BACKWARD_KEYS_AND_VALUES_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_keys_and_values",
    description: "both gradients of attention whose heads of keys are shared by groups of heads",
    symbols: ATTENTION_BACKWARD_GROUPED,
    dtype: Bf16,
    waves: None,
    derived: &[("H", |of| of("KV").saturating_mul(of("GROUP")))],
    make: Make::Backward(Attention::grouped, BackwardKernel::KeysAndValues),
};

pub(super) const ATTENTION_BACKWARD_SINKS_ROW: KernelEntry = KernelEntry {
    name: "attention_backward_sinks",
    description: "the gradients of the logits of attention's sinks",
    symbols: ATTENTION_BACKWARD_SINKS,
    dtype: Bf16,
    waves: None,
    derived: &[],
    make: Make::Backward(Attention::sinks, BackwardKernel::Sinks),
};

pub(super) const PAGED_DECODE_ROW: KernelEntry = KernelEntry {
    name: "paged_decode",
    description: "attention of new tokens over keys in pages, in parts: sums, maxima and weights",
    symbols: PAGED_DECODE,
    dtype: F16,
    waves: None,
    derived: PAGED_DECODE_DERIVED,
    make: Make::Kernel(|dtype, _, _| PagedDecode::any_shape().inputs(dtype).kernel()),
};

pub(super) const PAGED_DECODE_COMBINE_ROW: KernelEntry = KernelEntry {
    name: "paged_decode_combine",
    description: "the parts of paged_decode joined, and the log-sum-exp",
    symbols: PAGED_DECODE_COMBINE,
    dtype: F16,
    waves: None,
    derived: &[PAGED_DECODE_DERIVED[0], PAGED_DECODE_DERIVED[1]],
    make: Make::Kernel(|dtype, _, _| PagedDecode::any_shape().inputs(dtype).log_sum_exp().combine()),
};

pub(super) const PAGED_APPEND_ROW: KernelEntry = KernelEntry {
    name: "paged_append",
    description: "new keys and values into the pages of a cache",
    symbols: PAGED_APPEND,
    dtype: F16,
    waves: None,
    derived: &[],
    make: Make::Kernel(|dtype, _, _| paged_append(dtype, dtype)),
};

pub(super) const LATENT_DECODE_ROW: KernelEntry = KernelEntry {
    name: "latent_decode",
    description: "paged_decode of heads that share rows of keys, whose beginnings are the values (MLA)",
    symbols: LATENT_DECODE,
    dtype: F16,
    waves: None,
    derived: LATENT_DECODE_DERIVED,
    make: Make::Kernel(|dtype, _, _| LatentDecode::any_shape().inputs(dtype).kernel()),
};

pub(super) const PAGED_EXTEND_ROW: KernelEntry = KernelEntry {
    name: "paged_extend",
    description: "attention of new tokens over keys in pages and over each other",
    symbols: PAGED_EXTEND,
    dtype: F16,
    waves: None,
    derived: PAGED_DECODE_DERIVED,
    make: Make::Kernel(|dtype, _, _| PagedExtend::any_shape().inputs(dtype).kernel()),
};
