//! Joins the parts of decoding: each row's maximum, weight and sums of all parts that have keys.

use super::choices::LogSumExp;
use super::paged::{KeyDivision, MOST_KEYS, PagedAxes};
use super::partial::{PartialAttention, PartialMemories};
use crate::prelude::*;

/// Parts that are joined at a time.
const PARTS_AT_A_TIME: u32 = 8;

/// The variant of the second kernel.
#[derive(Copy, Clone)]
pub(super) struct PartJoining {
    pub(super) division: KeyDivision,
    /// Element type of the output, `out` of `[B, NEW, HQ, D]`.
    pub(super) output: DType,
    /// Present if the logarithms of the sums are written, too.
    pub(super) log_sum_exp: Option<LogSumExp>,
    /// Elements of a row of the output.
    pub(super) value_dim: Symbol,
}

impl PartJoining {
    /// The parts of the workgroup's sequence that are joined. Of parts of a fixed length most may have no
    /// keys.
    fn parts_with_keys(self, w: &Tracer) -> Value {
        let PagedAxes { batch, parts, .. } = PagedAxes::new();
        match self.division {
            KeyDivision::Even => w.size(parts),
            KeyDivision::Keys(keys) => {
                let lengths = w.memory("lengths", [batch], Global, I32);
                let length = w.read_at(lengths, [w.workgroup_id(2)], []).tag("read_lengths");
                let keys = i64::from(keys);
                // Sums of lengths stay within 32 bits.
                let length = length.minimum(MOST_KEYS as i32).maximum(0);
                w.apply_expr((Coordinate::from(length) + (keys - 1)) / keys).minimum(w.size(parts))
            }
        }
    }
}

/// Traces the kernel: a wave has one row of the output, and joins its parts in their order, so that the bits
/// follow from the parts alone. Parts without keys are not read.
pub(super) fn trace(joining: PartJoining) -> Result<Kernel, Diagnostic> {
    let PagedAxes { batch, new, heads, group, parts, .. } = PagedAxes::new();
    let dim = joining.value_dim;
    Kernel::trace("paged_decode_combine", |w| {
        let used = Symbol::new("USED");
        w.distribute([
            workgroup(heads, 1, 0),
            workgroup(new, 1, 1),
            workgroup(batch, 1, 2),
            tile(parts, PARTS_AT_A_TIME),
            iterations(parts, 0, used),
        ]);
        let memories = PartialMemories::new(w, dim);
        let with_keys = joining.parts_with_keys(w);
        let tiles = w.apply_expr((Coordinate::from(with_keys) + (PARTS_AT_A_TIME - 1)) / PARTS_AT_A_TIME);
        w.set_symbol(used, tiles);
        let row = [batch, new, heads];
        let start = PartialAttention::start(w, row, [batch, new, heads, dim]);
        let [top, weight, sums] = w.iterate(parts, [start.top, start.weight, start.sums], |w, before| {
            let [top, weight, sums] = before;
            let at = || [batch.into(), heads / group, parts.into(), new * group + heads % group];
            let place = w.self_index(parts);
            let has_keys = place.less(with_keys).broadcast([batch, new, heads, parts]);
            let of_row = |memory, tag| w.read_at(memory, at(), [batch, new, heads, parts]).tag(tag);
            let values_at = at().into_iter().chain([dim.into()]).collect::<Vec<SymExpr>>();
            let values =
                w.read_at(memories.sums, values_at, [batch, new, heads, parts, dim]).tag("read_sums");
            let other = PartialAttention {
                top: w.select(has_keys, of_row(memories.tops, "read_tops"), f64::from(f32::MIN)),
                weight: w.select(has_keys, of_row(memories.weights, "read_weights"), 0.0),
                sums: w.select(has_keys.broadcast([batch, new, heads, parts, dim]), values, 0.0),
            };
            let now = PartialAttention { top, weight, sums }.joined(parts, other);
            [now.top, now.weight, now.sums]
        });
        let all = PartialAttention { top, weight, sums: sums.tag_loop("part_loop") };
        let out = w.memory("out", [batch, new, heads, dim], Global, joining.output);
        w.write(all.mean(w).cast(joining.output), out);
        if joining.log_sum_exp.is_some() {
            w.write(all.log_sum_exp(), w.memory("log_sum_exp", [batch, new, heads], Global, F32));
        }
    })
}
