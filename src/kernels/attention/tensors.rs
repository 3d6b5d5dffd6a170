//! Queries, keys, values and output in memory.

use super::choices::{Attention, AttentionLayout, StrideMultiple};
use super::heads::AttentionDims;
use crate::prelude::*;

/// One of queries, keys, values and output: its name, its rows, and its heads with their elements.
#[derive(Copy, Clone)]
struct RowsOfHeads {
    name: &'static str,
    /// Queries or keys.
    rows: Symbol,
    heads: Symbol,
    dim: Symbol,
}

impl RowsOfHeads {
    /// Declares it.
    fn declared(self, attention: &Attention, w: &Tracer, space: AddressSpace, dtype: DType) -> MemoryRef {
        let RowsOfHeads { name, rows, heads, dim } = self;
        let batch = AttentionDims::of(attention.heads).batch;
        let shape = match attention.tensors.layout {
            AttentionLayout::Bhsd => [batch, heads, rows, dim],
            AttentionLayout::Bshd => [batch, rows, heads, dim],
            AttentionLayout::Packed => {
                let total = Symbol::new(&format!("TOTAL_{}", rows.name()));
                return w.memory(name, [total, heads, dim], space, dtype);
            }
        };
        let Some(StrideMultiple(multiple)) = attention.tensors.strides else {
            return w.memory(name, shape, space, dtype);
        };
        let outer = [shape[0], shape[1], shape[2]];
        // The heads of keys have the name of those of queries.
        let along = outer.map(|dim| if dim == heads { "H" } else { dim.name() });
        let strides = along.map(|along| Symbol::new(&format!("{}_{along}", name.to_uppercase())));
        w.distribute(strides.map(|stride| assume_divisible(stride, multiple)));
        w.memory_in(name, shape, &MemoryLayout::strides(strides), space, dtype)
    }
}

impl Attention {
    /// Queries, keys and values, of which keys and values come through LDS.
    pub(super) fn inputs_of(&self, w: &Tracer) -> [MemoryRef; 3] {
        [self.queries_in(w, Global), self.keys_in(w, Shared), self.values_in(w, Shared)]
    }

    pub(super) fn queries_in(&self, w: &Tracer, space: AddressSpace) -> MemoryRef {
        let AttentionDims { heads, queries, dim, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "q", rows: queries, heads, dim }.declared(self, w, space, self.tensors.inputs)
    }

    pub(super) fn keys_in(&self, w: &Tracer, space: AddressSpace) -> MemoryRef {
        let AttentionDims { keys, dim, kv_heads: heads, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "k", rows: keys, heads, dim }.declared(self, w, space, self.tensors.inputs)
    }

    pub(super) fn values_in(&self, w: &Tracer, space: AddressSpace) -> MemoryRef {
        let AttentionDims { keys, value_dim: dim, kv_heads: heads, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "v", rows: keys, heads, dim }.declared(self, w, space, self.tensors.inputs)
    }

    /// The output.
    pub(super) fn output_of(&self, w: &Tracer) -> MemoryRef {
        let AttentionDims { heads, queries, value_dim, .. } = AttentionDims::of(self.heads);
        let o = RowsOfHeads { name: "o", rows: queries, heads, dim: value_dim };
        o.declared(self, w, Global, self.output_dtype())
    }

    /// The gradient of the output.
    pub(super) fn output_gradient_of(&self, w: &Tracer, space: AddressSpace) -> MemoryRef {
        let AttentionDims { heads, queries, value_dim, .. } = AttentionDims::of(self.heads);
        let of_output = RowsOfHeads { name: "do", rows: queries, heads, dim: value_dim };
        of_output.declared(self, w, space, self.tensors.inputs)
    }

    /// The gradient of the queries.
    pub(super) fn query_gradient_of(&self, w: &Tracer, dtype: DType) -> MemoryRef {
        let AttentionDims { heads, queries, dim, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "dq", rows: queries, heads, dim }.declared(self, w, Global, dtype)
    }

    /// The gradient of the keys.
    pub(super) fn key_gradient_of(&self, w: &Tracer, dtype: DType) -> MemoryRef {
        let AttentionDims { keys, dim, kv_heads: heads, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "dk", rows: keys, heads, dim }.declared(self, w, Global, dtype)
    }

    /// The gradient of the values.
    pub(super) fn value_gradient_of(&self, w: &Tracer, dtype: DType) -> MemoryRef {
        let AttentionDims { keys, value_dim: dim, kv_heads: heads, .. } = AttentionDims::of(self.heads);
        RowsOfHeads { name: "dv", rows: keys, heads, dim }.declared(self, w, Global, dtype)
    }

    /// The logarithms of the sums, which have no strides.
    pub(super) fn log_sum_exp_of(&self, w: &Tracer) -> MemoryRef {
        let axes = AttentionDims::of(self.heads);
        match self.tensors.layout {
            AttentionLayout::Packed => {
                w.memory("log_sum_exp", [axes.heads, Symbol::new("TOTAL_M")], Global, F32)
            }
            _ => w.memory("log_sum_exp", axes.rows(), Global, F32),
        }
    }

    /// The coordinates of an element of a tensor with sequences of one length: of a row, a head and a place
    /// in it.
    pub(super) fn place(&self, [row, head, element]: [Coordinate; 3]) -> [Coordinate; 4] {
        let batch = Coordinate::from(AttentionDims::of(self.heads).batch);
        match self.tensors.layout {
            AttentionLayout::Bhsd => [batch, head, row, element],
            _ => [batch, row, head, element],
        }
    }

    /// The head of keys and values that belongs to a head of queries.
    pub(super) fn kv_head(&self) -> SymExpr {
        let heads = AttentionDims::of(self.heads).heads;
        self.heads.group().map_or(heads.into(), |group| heads / group)
    }

    /// Element type of the output.
    pub(super) fn output_dtype(&self) -> DType {
        self.tensors.output.unwrap_or(match self.tensors.inputs {
            F16 => F16,
            _ => Bf16,
        })
    }
}
