//! Which rows of the tensors a workgroup has: those of its sequence.

use super::builder::Attention;
use super::head_parts::HeadPart;
use super::tensors::{AttentionLayout, Axes};
use crate::prelude::*;

/// The sequence of a workgroup.
#[derive(Copy, Clone)]
pub(super) enum Sequence {
    /// Each is as long as the dimensions.
    Whole,
    /// A part of the tokens of all sequences.
    Part(Part),
}

/// A sequence among the tokens of all.
#[derive(Copy, Clone)]
pub(super) struct Part {
    /// The place of each query among those of all sequences, and -1 beyond the last one.
    query_place: Value,
    queries: Value,
    /// Where its keys begin.
    first_key: Value,
    keys: Value,
}

impl Sequence {
    /// Before the loop: offsets are read, and the loop gets as many tiles as the sequence has keys for.
    pub(super) fn of(attention: &Attention, w: &Tracer) -> Sequence {
        if attention.tensors.layout != AttentionLayout::Packed {
            return Sequence::Whole;
        }
        let axes = Axes::of(attention.heads);
        let batch = w.workgroup_id(2);
        let bounds = |name| {
            let offsets = w.memory(name, [Symbol::new("ENDS")], Global, I32);
            let first = w.read_at(offsets, [batch], []);
            (first, w.read_at(offsets, [Coordinate::from(batch) + 1], []) - first)
        };
        let (first_query, queries) = bounds("cu_seqlens_q");
        let (first_key, keys) = bounds("cu_seqlens_k");
        let [block_m, block_n, tiles] = symbols(["BLOCK_M", "BLOCK_N", "TILES"]);
        w.distribute([iterations(axes.keys, 0, tiles)]);
        // Workgroups behind the last query of a short sequence have nothing to do.
        let has_queries = w.apply_expr(workgroup_id(0) * block_m).less(queries);
        let all = w.apply_expr(Coordinate::from(keys).ceil_div(block_n));
        w.set_symbol(tiles, w.select(has_queries, all, 0));
        let query = w.self_index(axes.queries);
        let query_place = w.select(query.less(queries), query + first_query, -1);
        Sequence::Part(Part { query_place, queries, first_key, keys })
    }

    /// How many keys there are more than queries.
    pub(super) fn more_keys(self, w: &Tracer, axes: Axes) -> Value {
        match self {
            Sequence::Whole => w.size(axes.keys) - w.size(axes.queries),
            Sequence::Part(Part { queries, keys, .. }) => keys - queries,
        }
    }

    /// Whether the sequence has a key, where it does not have all that the tile has.
    pub(super) fn has(self, key: Value) -> Option<Value> {
        match self {
            Sequence::Whole => None,
            Sequence::Part(Part { keys, .. }) => Some(key.less(keys)),
        }
    }

    /// Reads the queries.
    pub(super) fn read_queries(
        self,
        attention: &Attention,
        w: &Tracer,
        q: MemoryRef,
        of_head: &HeadPart,
    ) -> Value {
        let Axes { batch, heads, queries, .. } = Axes::of(attention.heads);
        let (dims, element) = ([batch, heads, queries, of_head.dim], of_head.coordinate());
        match self {
            Sequence::Whole if of_head.place.is_none() => w.read(q),
            Sequence::Whole => w.read_at(q, attention.place([queries.into(), heads.into(), element]), dims),
            Sequence::Part(part) => w.read_at(q, (part.query_place, heads, element), dims),
        }
    }

    /// Reads a tile of keys or values, a part of each head or all of it. What the tile has beyond the last
    /// key of the sequence is that key.
    pub(super) fn read_keys(
        self,
        attention: &Attention,
        w: &Tracer,
        memory: MemoryRef,
        of_head: &HeadPart,
    ) -> Value {
        let Axes { batch, heads, keys, .. } = Axes::of(attention.heads);
        let (dims, element) = ([batch, heads, keys, of_head.dim], of_head.coordinate());
        let head = attention.kv_head();
        match self {
            Sequence::Whole if of_head.place.is_none() => w.read(memory),
            Sequence::Whole => w.read_at(memory, attention.place([keys.into(), head, element]), dims),
            Sequence::Part(part) => {
                let last = Coordinate::from(part.keys) - 1;
                let place = Coordinate::from(part.first_key) + Coordinate::from(keys).min(last);
                w.read_at(memory, (place, head, element), dims)
            }
        }
    }

    /// Writes the output.
    pub(super) fn write_output(self, attention: &Attention, w: &Tracer, values: Value) {
        let Axes { heads, value_dim, .. } = Axes::of(attention.heads);
        let (values, o) = (values.cast(attention.output_dtype()), attention.output_of(w));
        match self {
            Sequence::Whole => w.write(values, o),
            Sequence::Part(part) => w.write_at(values, o, (part.query_place, heads, value_dim)),
        }
    }

    /// Writes the logarithms of the sums.
    pub(super) fn write_log_sum_exp(self, attention: &Attention, w: &Tracer, rows: Value) {
        let (heads, memory) = (Axes::of(attention.heads).heads, attention.log_sum_exp_of(w));
        match self {
            Sequence::Whole => w.write(rows, memory),
            Sequence::Part(part) => w.write_at(rows, memory, (heads, part.query_place)),
        }
    }
}
