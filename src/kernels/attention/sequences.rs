//! Which rows of the tensors a workgroup has: those of its sequence.

use super::choices::{Attention, AttentionLayout};
use super::head_parts::HeadPart;
use super::heads::AttentionDims;
use super::places::{PackedSequence, WalkedRows, WorkgroupSequence};
use crate::prelude::*;

impl WorkgroupSequence {
    /// Before a loop over keys: offsets are read, and the loop gets as many tiles as the sequence has keys
    /// for. Workgroups divide the queries along an axis of the grid.
    pub(super) fn of(attention: &Attention, w: &Tracer, axis: u32) -> WorkgroupSequence {
        WorkgroupSequence::walking(attention, w, (WalkedRows::Keys, axis))
    }

    /// Before a loop over some of the rows, while workgroups divide the others along an axis: offsets are
    /// read, and the loop gets as many tiles as the sequence has rows for.
    pub(super) fn walking(
        attention: &Attention,
        w: &Tracer,
        (walked, axis): (WalkedRows, u32),
    ) -> WorkgroupSequence {
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
        let of_queries = (axes.queries, block_m, first_query, queries);
        let of_keys = (axes.keys, block_n, first_key, keys);
        let (own, other) = match walked {
            WalkedRows::Keys => (of_queries, of_keys),
            WalkedRows::Queries => (of_keys, of_queries),
        };
        let (own_rows, own_block, first_own, own_count) = own;
        let (walked_rows, walked_block, first_walked, walked_count) = other;
        w.distribute([iterations(walked_rows, 0, tiles)]);
        // Workgroups behind the last row of a short sequence have nothing to do.
        let has_rows = w.apply_expr(workgroup_id(axis) * own_block).less(own_count);
        let all = w.apply_expr(Coordinate::from(walked_count).ceil_div(walked_block));
        w.set_symbol(tiles, w.select(has_rows, all, 0));
        let row = w.self_index(own_rows);
        let own_place = w.select(row.less(own_count), row + first_own, -1);
        WorkgroupSequence::Packed(PackedSequence { own_place, first_walked, walked, queries, keys })
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
                w.read_at(q, attention.place([queries.into(), heads.into(), element.into()]), dims)
            }
            WorkgroupSequence::Packed(part) => w.read_at(q, (part.own_place, heads, element), dims),
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
                w.read_at(memory, attention.place([keys.into(), head.into(), element.into()]), dims)
            }
            WorkgroupSequence::Packed(part) => {
                let place = part.walked_place(AttentionDims::of(attention.heads));
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
                w.write_at(values, o, attention.place([queries.into(), heads.into(), element.into()]));
            }
            WorkgroupSequence::Packed(part) => w.write_at(values, o, (part.own_place, heads, element)),
        }
    }

    /// Writes the logarithms of the sums.
    pub(super) fn write_log_sum_exp(self, attention: &Attention, w: &Tracer, rows: Value) {
        let (heads, memory) = (AttentionDims::of(attention.heads).heads, attention.log_sum_exp_of(w));
        match self {
            WorkgroupSequence::Whole => w.write(rows, memory),
            WorkgroupSequence::Packed(part) => w.write_at(rows, memory, (heads, part.own_place)),
        }
    }
}
