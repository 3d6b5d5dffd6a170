//! Which rows of the tensors a workgroup has: those of its sequence.

use super::choices::{Attention, AttentionLayout};
use super::head_parts::HeadPart;
use super::heads::AttentionDims;
use super::places::{PackedSequence, WorkgroupSequence};
use crate::prelude::*;

impl WorkgroupSequence {
    /// Before the loop: offsets are read, and the loop gets as many tiles as the sequence has keys for.
    pub(super) fn of(attention: &Attention, w: &Tracer) -> WorkgroupSequence {
        if attention.tensors.layout != AttentionLayout::Packed {
            return WorkgroupSequence::Whole;
        }
        let axes = AttentionDims::of(attention.heads);
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
        WorkgroupSequence::Packed(PackedSequence { query_place, queries, first_key, keys })
    }

    /// Reads the queries.
    pub(super) fn read_queries(
        self,
        attention: &Attention,
        w: &Tracer,
        q: MemoryRef,
        of_head: &HeadPart,
    ) -> Value {
        let AttentionDims { batch, heads, queries, .. } = AttentionDims::of(attention.heads);
        let (dims, element) = ([batch, heads, queries, of_head.dim], of_head.coordinate());
        match self {
            WorkgroupSequence::Whole if of_head.place.is_none() => w.read(q),
            WorkgroupSequence::Whole => {
                w.read_at(q, attention.place([queries.into(), heads.into(), element]), dims)
            }
            WorkgroupSequence::Packed(part) => w.read_at(q, (part.query_place, heads, element), dims),
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
        let AttentionDims { batch, heads, keys, .. } = AttentionDims::of(attention.heads);
        let (dims, element) = ([batch, heads, keys, of_head.dim], of_head.coordinate());
        let head = attention.kv_head();
        match self {
            WorkgroupSequence::Whole if of_head.place.is_none() => w.read(memory),
            WorkgroupSequence::Whole => {
                w.read_at(memory, attention.place([keys.into(), head, element]), dims)
            }
            WorkgroupSequence::Packed(part) => {
                let last = Coordinate::from(part.keys) - 1;
                let place = Coordinate::from(part.first_key) + Coordinate::from(keys).min(last);
                w.read_at(memory, (place, head, element), dims)
            }
        }
    }

    /// Writes the output, or a part of each of its heads.
    pub(super) fn write_output(
        self,
        attention: &Attention,
        w: &Tracer,
        o: MemoryRef,
        (values, of_head): (Value, &HeadPart),
    ) {
        let AttentionDims { heads, queries, .. } = AttentionDims::of(attention.heads);
        let (values, element) = (values.cast(attention.output_dtype()), of_head.coordinate());
        match self {
            WorkgroupSequence::Whole if of_head.place.is_none() => w.write(values, o),
            WorkgroupSequence::Whole => {
                w.write_at(values, o, attention.place([queries.into(), heads.into(), element]));
            }
            WorkgroupSequence::Packed(part) => w.write_at(values, o, (part.query_place, heads, element)),
        }
    }

    /// Writes the logarithms of the sums.
    pub(super) fn write_log_sum_exp(self, attention: &Attention, w: &Tracer, rows: Value) {
        let (heads, memory) = (AttentionDims::of(attention.heads).heads, attention.log_sum_exp_of(w));
        match self {
            WorkgroupSequence::Whole => w.write(rows, memory),
            WorkgroupSequence::Packed(part) => w.write_at(rows, memory, (heads, part.query_place)),
        }
    }
}
