//! The gradients of keys and values: a loop over tiles of queries, of each head that shares the keys.

use super::super::choices::Attention;
use super::super::head_parts::HeadPart;
use super::super::heads::AttentionDims;
use super::super::places::{HeadsOfScores, WalkedRows, WorkgroupSequence};
use super::super::scores::Scores;
use super::choices::AttentionBackward;
use super::kernels::BackwardKernel;
use super::tensors::{RowsOfValue, minus_delta, minus_log_sum_exp};
use crate::prelude::*;

/// Traces the kernel of the gradients that are asked for, whose loop carries a sum for each part of a head of
/// each of them.
pub(super) fn trace(backward: &AttentionBackward, which: BackwardKernel) -> Result<Kernel, Diagnostic> {
    let name = match which {
        BackwardKernel::Keys => "attention_backward_keys",
        BackwardKernel::Values => "attention_backward_values",
        _ => "attention_backward_keys_and_values",
    };
    Kernel::trace(name, |w| {
        let of_keys = KeyGradients::new(backward, w, which);
        match of_keys.keys.len() + of_keys.values.len() {
            1 => of_keys.body::<1>(w),
            2 => of_keys.body::<2>(w),
            3 => of_keys.body::<3>(w),
            _ => of_keys.body::<4>(w),
        }
    })
}

/// What is declared and read before the loop. Where a gradient is not asked for, there are no parts of it.
struct KeyGradients<'a> {
    backward: &'a AttentionBackward,
    /// Parts of heads of the gradient of K.
    keys: Vec<HeadPart>,
    /// Parts of heads of the gradient of V.
    values: Vec<HeadPart>,
    q: MemoryRef,
    of_output: MemoryRef,
    sums: MemoryRef,
    deltas: Option<MemoryRef>,
    scores: Scores,
    sequence: WorkgroupSequence,
    /// Parts of the keys of the workgroup, and of its values.
    key: Vec<Value>,
    value: Vec<Value>,
}

impl<'a> KeyGradients<'a> {
    fn new(backward: &'a AttentionBackward, w: &Tracer, which: BackwardKernel) -> KeyGradients<'a> {
        let attention = &backward.attention;
        let (parts, value_parts) = (attention.head_parts(), attention.value_parts());
        distribute(attention, w);
        if let Some((_, matrix)) = backward.choice(which) {
            w.distribute(attention.waves_of_parts(matrix.edge()));
            w.mma_type(matrix);
        }
        let has_keys = which != BackwardKernel::Values;
        let q = attention.queries_in(w, Shared);
        let k = attention.keys_in(w, Global);
        let v = has_keys.then(|| attention.values_in(w, Global));
        let of_output = attention.output_gradient_of(w, Shared);
        let sums = minus_log_sum_exp(attention, w, Shared);
        let deltas = has_keys.then(|| minus_delta(attention, w, Shared));
        let sequence = WorkgroupSequence::walking(attention, w, (WalkedRows::Queries, 0));
        let own = own_rows(attention, sequence);
        let key = own.read(attention, w, k, (&parts, "read_k"));
        let value = v.map(|v| own.read(attention, w, v, (&value_parts, "read_v"))).unwrap_or_default();
        KeyGradients {
            backward,
            keys: if has_keys { parts } else { Vec::new() },
            values: if which == BackwardKernel::Keys { Vec::new() } else { value_parts },
            q,
            of_output,
            sums,
            deltas,
            scores: Scores::new(attention, w, sequence),
            sequence,
            key,
            value,
        }
    }

    fn body<const SUMS: usize>(self, w: &Tracer) {
        let attention = &self.backward.attention;
        let AttentionDims { batch, heads, keys, kv_heads, .. } = AttentionDims::of(attention.heads);
        let parts: Vec<&HeadPart> = self.keys.iter().chain(&self.values).collect();
        let none: [Value; SUMS] =
            std::array::from_fn(|at| w.register([batch, kv_heads, parts[at].dim, keys], F32, 0.0));
        let all = match attention.heads.group() {
            None => self.walk(w, none, HeadsOfScores::Along),
            Some(_) => w.iterate(heads, none, |w, before| {
                let head = HeadsOfScores::Walked(w.iteration(heads));
                self.walk(w, before, head)
            }),
        };
        let (dtype, own) = (self.backward.output_dtype(), own_rows(attention, self.sequence));
        let (of_keys, of_values) = all.split_at(self.keys.len());
        if !self.keys.is_empty() {
            let memory = attention.key_gradient_of(w, dtype);
            for (&sum, part) in of_keys.iter().zip(&self.keys) {
                own.write(attention, w, memory, (self.scores.of_products(sum).cast(dtype), part));
            }
        }
        if !self.values.is_empty() {
            let memory = attention.value_gradient_of(w, dtype);
            for (sum, part) in of_values.iter().zip(&self.values) {
                own.write(attention, w, memory, (sum.cast(dtype), part));
            }
        }
    }

    /// The loop over the queries of a head. All products have queries before keys, so that weights and
    /// gradients of scores lie in the lanes in which the products that sum over queries take them. Queries
    /// and gradients of the output are read twice, by rows and turned; tags keep the reads apart.
    fn walk<const SUMS: usize>(
        &self,
        w: &Tracer,
        before: [Value; SUMS],
        heads: HeadsOfScores,
    ) -> [Value; SUMS] {
        let attention = &self.backward.attention;
        let AttentionDims { batch, queries, keys, kv_heads, .. } = AttentionDims::of(attention.heads);
        let inputs = attention.tensors.inputs;
        let head = match heads {
            HeadsOfScores::Along => None,
            HeadsOfScores::Walked(head) => Some(head.into()),
        };
        let walked = RowsOfValue::walked(attention, self.sequence, [queries, kv_heads], head);
        let all = w.iterate(queries, before, |w, before| {
            let read = |memory, parts: &[HeadPart], tag| walked.read(attention, w, memory, (parts, tag));
            let scores = [batch, kv_heads, queries, keys];
            let zero = w.register(scores, F32, 0.0);
            let product = |sum, (of_query, &of_key): (Value, &Value)| w.mma(of_query, of_key, sum);
            let query = read(self.q, &attention.head_parts(), "read_q");
            let products = query.into_iter().zip(&self.key).fold(zero, product).tag("scores");
            let (exponents, slope) = self.scores.with_derivative(w, products, heads, 0);
            let weights = (exponents + walked.read_terms(attention, w, self.sums)).exp2();
            let (of_keys, of_values) = before.split_at(self.keys.len());
            let turned = read(self.of_output, &self.values, "read_do_turned");
            let rounded = weights.cast(inputs);
            let add = |(&sum, turned): (&Value, Value)| w.mma(turned, rounded, sum).tag("values");
            let of_values: Vec<Value> = of_values.iter().zip(turned).map(add).collect();
            let of_keys: Vec<Value> = match self.deltas {
                None => Vec::new(),
                Some(deltas) => {
                    let delta = walked.read_terms(attention, w, deltas).broadcast(scores);
                    let gradient = read(self.of_output, &attention.value_parts(), "read_do");
                    let of_weights = gradient.into_iter().zip(&self.value).fold(delta, product);
                    let of_scores = weights * of_weights.tag("weights");
                    let of_scores = slope.map_or(of_scores, |slope| of_scores * slope).cast(inputs);
                    let turned = read(self.q, &self.keys, "read_q_turned");
                    let add = |(&sum, turned): (&Value, Value)| w.mma(turned, of_scores, sum).tag("keys");
                    of_keys.iter().zip(turned).map(add).collect()
                }
            };
            std::array::from_fn(|at| of_keys.iter().chain(&of_values).copied().nth(at).unwrap_or(before[at]))
        });
        all[0].tag_loop("query_loop");
        all
    }
}

/// Rows of keys and values of a workgroup.
fn own_rows(attention: &Attention, sequence: WorkgroupSequence) -> RowsOfValue {
    let AttentionDims { keys, kv_heads, .. } = AttentionDims::of(attention.heads);
    RowsOfValue::own(sequence, keys, kv_heads)
}

/// How the kernel is spread over the machine. Heads of queries that share keys are walked through one after
/// the other.
fn distribute(attention: &Attention, w: &Tracer) {
    let AttentionDims { batch, heads, queries, keys, kv_heads, .. } = AttentionDims::of(attention.heads);
    let [block_n, wave_n, block_m] = symbols(["BLOCK_N", "WAVE_N", "BLOCK_M"]);
    w.distribute([workgroup(keys, block_n, 0), workgroup(kv_heads, 1, 1), workgroup(batch, 1, 2)]);
    w.distribute([tile(queries, block_m), wave(keys, wave_n)]);
    if let Some(group) = attention.heads.group() {
        w.distribute([tile(heads, 1), iterations(heads, workgroup_id(1) * group.clone(), group)]);
    }
}
