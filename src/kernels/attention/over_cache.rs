//! The loop over keys that lie in the pages of a cache.

use super::paged::PagedAxes;
use super::partial::PartialAttention;
use crate::prelude::*;

/// Where a key is in the cache: its page, and its place there.
pub(super) type InPage = (Value, Coordinate);

/// The parts of keys, and the values, of a tile.
pub(super) type CacheRows = (Vec<Value>, Value);

/// What a loop over the keys of a sequence takes.
pub(super) struct CacheLoop<'a> {
    pub(super) axes: PagedAxes,
    pub(super) page_table: MemoryRef,
    /// The keys of the workgroup's sequence.
    pub(super) length: Value,
    /// How many of them a row sees.
    pub(super) seen: Value,
    /// The first iteration and the number of iterations.
    pub(super) iterations: [Value; 2],
    /// The parts of queries, whose products with those of keys are added up, and by what these sums are
    /// multiplied.
    pub(super) queries: &'a [Value],
    pub(super) exponent: Value,
    /// Reads the parts of keys, and values, at a place, as `[B, KV, PARTS, KEYS, ..]` of the queries' dtype.
    pub(super) read: &'a dyn Fn(&Tracer, InPage) -> CacheRows,
    pub(super) inputs: DType,
}

impl CacheLoop<'_> {
    /// The constraints that the loop needs, with so many keys per iteration.
    pub(super) fn constraints(keys_at_a_time: i64) -> [Constraint; 2] {
        let [keys, first, count] = symbols(["KEYS", "FIRST", "COUNT"]);
        [tile(keys, keys_at_a_time), iterations(keys, first, count)]
    }

    /// Products of the parts of keys and queries, added to `sum`.
    pub(super) fn products(&self, w: &Tracer, keys: &[Value], sum: Value, tag: &str) -> Value {
        keys.iter().zip(self.queries).fold(sum, |sum, (&key, &query)| w.mma(key, query, sum).tag(tag))
    }

    /// What rows have seen after the loop, which is tagged `key_loop`.
    pub(super) fn run(&self, w: &Tracer) -> PartialAttention {
        let PagedAxes { batch, kv, parts, rows, keys, page, value_dim, .. } = self.axes;
        w.set_symbol("FIRST", self.iterations[0]);
        w.set_symbol("COUNT", self.iterations[1]);
        let start = PartialAttention::start(w, [batch, kv, parts, rows], [batch, kv, parts, value_dim, rows]);
        let [top, weight, sums] = w.iterate(keys, [start.top, start.weight, start.sums], |w, before| {
            let [top, weight, sums] = before;
            let key = w.self_index(keys);
            // Behind the last key it is read again, so that what is there has no part in the results.
            let place = key.minimum(self.length - 1);
            let at = (batch, Coordinate::from(place) / page);
            let number = w.read_at(self.page_table, at, [batch, keys]).tag("read_page_table");
            let (key_rows, value_rows) = (self.read)(w, (number, Coordinate::from(place) % page));
            let zero = w.register([batch, kv, parts, keys, rows], F32, 0.0);
            let scores = self.products(w, &key_rows, zero, "scores") * self.exponent;
            let sees = key.broadcast([keys, rows]).less(self.seen);
            let sees = sees.broadcast([batch, kv, parts, keys, rows]);
            let scores = w.select(sees, scores, f64::NEG_INFINITY);
            let now = PartialAttention { top, weight, sums }.with(w, keys, scores, value_rows, self.inputs);
            [now.top, now.weight, now.sums]
        });
        PartialAttention { top, weight, sums: sums.tag_loop("key_loop") }
    }
}
