//! Extending sequences: many new tokens over keys that lie in pages, and over each other.

use std::panic::Location as Caller;

use super::decode::exponent;
use super::over_cache::{CacheLoop, InPage};
use super::paged::{CacheScale, MOST_KEYS, PagedAxes, PagedHeads, TILE, check_page, check_scale};
use super::partial::PartialAttention;
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Builder of attention of new tokens to a paged prefix and to each other: prefill of sequences of which a
/// cache has the beginning.
///
/// - `q` is `[B, NEW, HQ, D]`, and `k_new` and `v_new` are `[B, NEW, KV, D]`: the new tokens of each
///   sequence, of which `new_lengths[b]` are there
/// - `k` and `v` are `[PAGES, PAGE, KV, D]` caches, `page_table` is `[B, MAX_PAGES]` and `lengths` `[B]`, as
///   [`super::PagedDecode`] has them, but of the keys before the new ones alone
/// - `new_lengths` is `[B]` of i32: what is below 0 or above `NEW` counts as that
/// - `out` is `[B, NEW, HQ, D]`
///
/// New token `i` sees the whole prefix, and the new tokens up to itself. What is behind the last new token of
/// a sequence becomes zeros. Scores and sums are f32; weights are rounded to the inputs' dtype before they
/// are multiplied with values.
///
/// A workgroup has `BLOCK_R` of the `NEW * HQ / KV` queries that share a head of keys, of consecutive tokens,
/// and takes no new keys behind these. The loops are tagged `key_loop` and `new_key_loop`.
///
/// # Example
/// ```
/// use groundswell::kernels::PagedExtend;
/// use groundswell::prelude::*;
///
/// let extend = PagedExtend::new(32, 8, 128).page(64);
/// let options = extend.options(Target::GFX942, 512).set("B", 4).dynamic("PAGES").dynamic("MAX_PAGES");
/// let executable = extend.kernel()?.compile(&options)?;
/// // q, k_new, v_new, k, v, page_table, lengths, new_lengths, out; PAGES, MAX_PAGES
/// assert_eq!(executable.parameters().len(), 9 + 2);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct PagedExtend {
    /// None where they are symbols.
    heads: Option<PagedHeads>,
    page: Option<u32>,
    inputs: DType,
    scale: Option<f64>,
    /// The caller who asked for the kernel.
    caller: &'static Caller<'static>,
}

impl PagedExtend {
    /// Extending of bf16, with `heads` heads of queries for `kv_heads` heads of keys and values, of
    /// `head_dim` elements each.
    #[track_caller]
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32) -> PagedExtend {
        PagedExtend { heads: Some(PagedHeads { heads, kv_heads, dim: head_dim }), ..PagedExtend::any_shape() }
    }

    /// The same with symbols for all sizes: `HQ`, `KV`, `GROUP = HQ / KV`, `R = NEW * GROUP` and `D`, too.
    #[track_caller]
    pub fn any_shape() -> PagedExtend {
        PagedExtend { heads: None, page: None, inputs: Bf16, scale: None, caller: Caller::caller() }
    }

    /// Tokens of a page. Without this it is a symbol that the options have to bind.
    #[must_use]
    pub fn page(self, tokens: u32) -> PagedExtend {
        PagedExtend { page: Some(tokens), ..self }
    }

    /// Element type of queries, keys, values, cache and output: f16 or bf16.
    #[must_use]
    pub fn inputs(self, dtype: DType) -> PagedExtend {
        PagedExtend { inputs: dtype, ..self }
    }

    /// Scores are products of queries and keys times this positive number; without it `1 / sqrt(D)`.
    #[must_use]
    pub fn scale(self, scale: f64) -> PagedExtend {
        PagedExtend { scale: Some(scale), ..self }
    }

    /// Options that bind heads, pages and tiles, for at most `new` new tokens of each sequence. `B`, `PAGES`
    /// and `MAX_PAGES` are to be set, or to be left open for the launch.
    pub fn options(&self, target: impl Into<TargetId>, new: u32) -> Options {
        let heads = self.heads.unwrap_or(PagedHeads { heads: 1, kv_heads: 1, dim: 128 });
        let options = heads.options(target, new, self.page, SetBy::Call(self.caller));
        [("KEYS", MOST_KEYS), ("PARTS", 1)]
            .into_iter()
            .fold(options, |options, (name, size)| options.set_by(name, size, SetBy::Default))
    }

    /// The kernel.
    ///
    /// # Errors
    /// Heads that are none or that do not divide into groups, dtypes that are not multiplied, or a scale that
    /// is not positive.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.check().and_then(|()| self.trace()))
    }

    fn check(&self) -> Result<(), Diagnostic> {
        self.heads.map_or(Ok(()), PagedHeads::check)?;
        check_scale(self.scale)?;
        check_page(self.page)?;
        CacheScale::of(self.inputs, self.inputs).map(|_| ())
    }

    fn trace(&self) -> Result<Kernel, Diagnostic> {
        let axes @ PagedAxes { batch, new, heads, kv, parts, rows, group, dim, keys, .. } = PagedAxes::new();
        Kernel::trace("paged_extend", |w| {
            distribute(w);
            let q = w.memory("q", [batch, new, heads, dim], Global, self.inputs);
            let news =
                ["k_new", "v_new"].map(|name| w.memory(name, [batch, new, kv, dim], Shared, self.inputs));
            let [k, v] = ["k", "v"].map(|name| axes.cache(w, name, (Global, self.inputs)));
            let [page_table, lengths] = axes.tables(w);
            let length = axes.length(w, lengths, w.workgroup_id(2));
            let new_lengths = w.memory("new_lengths", [batch], Global, I32);
            let new_length = w.read_at(new_lengths, [w.workgroup_id(2)], []).tag("read_new_lengths");
            let new_length = new_length.minimum(w.size(new)).maximum(0);
            let token = w.apply_expr(Coordinate::from(w.self_index(rows)) / group);
            let read = |w: &Tracer, (page, token): InPage| {
                let [key, value] = [(k, "read_k"), (v, "read_v")].map(|(cache, tag)| {
                    let at = (page, token.clone(), kv, dim);
                    w.read_at(cache, at, [batch, kv, parts, keys, dim]).tag(tag)
                });
                (vec![key], value)
            };
            let iterations = w.apply_expr((Coordinate::from(length) + (TILE - 1)) / TILE);
            let of_cache = CacheLoop {
                axes,
                page_table,
                length,
                seen: length,
                iterations: [w.register([], I32, 0.0), iterations],
                queries: &[w.read_at(q, axes.query(), [batch, kv, parts, rows, dim]).tag("read_q")],
                exponent: exponent(w, self.scale, self.heads),
                read: &read,
                inputs: self.inputs,
            };
            let prefix = of_cache.run(w);
            let all = of_cache.with_new(w, prefix, news, [token, new_length]);
            let is_there = token.less(new_length).broadcast([batch, kv, parts, rows]);
            let out = w.memory("out", [batch, new, heads, dim], Global, self.inputs);
            let sums = all.mean(w);
            let there = w.select(is_there.broadcast([batch, kv, parts, dim, rows]), sums, 0.0);
            w.write_at(there.cast(self.inputs), out, axes.query());
        })
    }
}

impl CacheLoop<'_> {
    /// What rows have seen after a loop over the new keys up to their own token, too.
    fn with_new(
        &self,
        w: &Tracer,
        prefix: PartialAttention,
        news: [MemoryRef; 2],
        [token, new_length]: [Value; 2],
    ) -> PartialAttention {
        let PagedAxes { batch, new, kv, parts, rows, dim, group, .. } = self.axes;
        // No row of the workgroup sees more than its last one.
        let behind = (workgroup_id(0) + 1) * Symbol::new("BLOCK_R") - 1;
        let most = w.apply_expr(behind / group + 1).minimum(new_length);
        w.set_symbol("NEW_COUNT", w.apply_expr((Coordinate::from(most) + (TILE - 1)) / TILE));
        let [top, weight, sums] = w.iterate(new, [prefix.top, prefix.weight, prefix.sums], |w, before| {
            let [top, weight, sums] = before;
            let [key_rows, value_rows] = [(news[0], "read_k_new"), (news[1], "read_v_new")]
                .map(|(memory, tag)| w.read(memory).tag(tag).broadcast([batch, kv, parts, new, dim]));
            let zero = w.register([batch, kv, parts, new, rows], F32, 0.0);
            let scores = self.products(w, &[key_rows], zero, "new_scores") * self.exponent;
            let key = w.self_index(new).broadcast([new, rows]);
            let sees = key.less_equal(token) & key.less(new_length);
            let sees = sees.broadcast([batch, kv, parts, new, rows]);
            let scores = w.select(sees, scores, f64::NEG_INFINITY);
            let now = PartialAttention { top, weight, sums }.with(w, new, scores, value_rows, self.inputs);
            [now.top, now.weight, now.sums]
        });
        PartialAttention { top, weight, sums: sums.tag_loop("new_key_loop") }
    }
}

/// How the kernel is spread over the machine.
fn distribute(w: &Tracer) {
    let PagedAxes { batch, new, kv, parts, rows, dim, .. } = PagedAxes::new();
    let [block_r, wave_r, wave_d, new_count] = symbols(["BLOCK_R", "WAVE_R", "WAVE_D", "NEW_COUNT"]);
    w.distribute([
        workgroup(rows, block_r, 0),
        workgroup(kv, 1, 1),
        workgroup(batch, 1, 2),
        workgroup(parts, 1, 3),
        wave(rows, wave_r),
        wave(dim, wave_d),
        tile(new, TILE),
        iterations(new, 0, new_count),
    ]);
    w.distribute(CacheLoop::constraints(TILE));
    w.mma_type(MatrixShape::M16x16);
}
