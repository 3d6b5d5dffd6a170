//! The scales of 8-bit queries, keys and values.

use super::choices::{Attention, AttentionScales};
use super::heads::AttentionDims;
use crate::prelude::*;

/// The scales of a kernel. What does not change from tile to tile is read before the loop.
#[derive(Copy, Clone)]
pub(super) enum TensorScales {
    None,
    /// That of products of queries and keys, and that of values.
    Fixed {
        products: Value,
        values: Value,
    },
    /// The scale of queries, and the memories of those of keys and values, for blocks of so many keys.
    Blocks {
        queries: Value,
        keys: MemoryRef,
        values: MemoryRef,
        size: u32,
    },
}

impl TensorScales {
    /// Declares them.
    pub(super) fn of(attention: &Attention, w: &Tracer) -> TensorScales {
        let AttentionDims { batch, heads, kv_heads, .. } = AttentionDims::of(attention.heads);
        let names = ["q_scale", "k_scale", "v_scale"];
        match attention.tensors.scales {
            None => TensorScales::None,
            Some(AttentionScales::Tensor) => {
                let scale = |name| w.read_at(w.memory(name, [Symbol::from(1u32)], Global, F32), [0], []);
                let [q, k, v] = names.map(scale);
                TensorScales::Fixed { products: q * k, values: v }
            }
            Some(AttentionScales::Head) => {
                let of_heads = |name, all, head: SymExpr| {
                    let scale = w.memory(name, [batch, all], Global, F32);
                    w.read_at(scale, (batch, head), [batch, heads])
                };
                let q = of_heads(names[0], heads, heads.into());
                let [k, v] = [names[1], names[2]].map(|name| of_heads(name, kv_heads, attention.kv_head()));
                TensorScales::Fixed { products: q * k, values: v }
            }
            Some(AttentionScales::Block(size)) => {
                let queries = w.read(w.memory(names[0], [batch, heads], Global, F32));
                let shape = [batch, kv_heads, Symbol::new("KEY_BLOCKS")];
                let [keys, values] = [names[1], names[2]].map(|name| w.memory(name, shape, Global, F32));
                TensorScales::Blocks { queries, keys, values, size }
            }
        }
    }

    /// What the products of a tile are multiplied with.
    pub(super) fn of_products(self, attention: &Attention, w: &Tracer) -> Option<Value> {
        match self {
            TensorScales::None => None,
            TensorScales::Fixed { products, .. } => Some(products),
            TensorScales::Blocks { queries, keys, size, .. } => {
                Some(queries * of_tile(attention, w, keys, size))
            }
        }
    }

    /// What the values of a tile are multiplied with, if it is not the same for all tiles.
    pub(super) fn of_values(self, attention: &Attention, w: &Tracer) -> Option<Value> {
        match self {
            TensorScales::Blocks { values, size, .. } => Some(of_tile(attention, w, values, size)),
            _ => None,
        }
    }

    /// What the values of all tiles are multiplied with.
    pub(super) fn of_all_values(self) -> Option<Value> {
        match self {
            TensorScales::Fixed { values, .. } => Some(values),
            _ => None,
        }
    }
}

/// The scale of the block of keys that has the tile of the running iteration.
fn of_tile(attention: &Attention, w: &Tracer, scales: MemoryRef, size: u32) -> Value {
    let AttentionDims { batch, heads, keys, .. } = AttentionDims::of(attention.heads);
    let first = Coordinate::from(w.iteration(keys)) * Symbol::new("BLOCK_N");
    w.read_at(scales, (batch, attention.kv_head(), first / i64::from(size)), [batch, heads])
}
