//! Decoding: a few new queries of each sequence over all of its keys, which lie in pages.

use std::f64::consts::LOG2_E;
use std::panic::Location as Caller;

use super::choices::LogSumExp;
use super::combine::{self, PartJoining};
use super::over_cache::{CacheLoop, InPage};
use super::paged::{
    CacheScale, KeyDivision, MOST_KEYS, PagedAxes, PagedHeads, TILE, check_page, check_scale,
};
use super::partial::PartialMemories;
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Builder of decoding over a paged cache: attention of the last tokens of each sequence to all of its keys.
///
/// - `q` is `[B, NEW, HQ, D]`: `HQ` heads of the last `NEW` tokens of `B` sequences
/// - `k` and `v` are `[PAGES, PAGE, KV, D]`, caches that have the new tokens' keys and values already
/// - `page_table` is `[B, MAX_PAGES]` of i32: key `n` of sequence `b` is token `n % PAGE` of page
///   `page_table[b, n / PAGE]`; a number that is no page is read as zeros
/// - `lengths` is `[B]` of i32: keys of each sequence, the new ones among them; what is below 0 or above
///   `MAX_PAGES * PAGE` counts as that
/// - `k_scale` and `v_scale` stand here if the cache is narrow ([`PagedDecode::cache`])
/// - `out` is `[B, NEW, HQ, D]`
///
/// The last new token sees all keys, and each one before it one less. A query without keys becomes zeros, and
/// its log-sum-exp minus infinity. Scores and sums are f32; weights are rounded to the queries' dtype before
/// they are multiplied with values.
///
/// A workgroup has all queries that share a head of keys, `R = NEW * HQ / KV` of them, and one of `PARTS`
/// parts of a sequence's keys, so that the device has work for all of its compute units. It leaves three f32
/// memories: `sums`, `[B, KV, PARTS, R, D]`, and `tops` and `weights`, `[B, KV, PARTS, R]`, which
/// [`PagedDecode::combine`] joins. With [`PagedDecode::whole`] one workgroup has all keys and writes `out`
/// itself. The loop is tagged `key_loop`, the operations `read_q`, `read_k`, `read_v`, `scores` and `values`.
///
/// # Example
/// ```
/// use groundswell::kernels::PagedDecode;
/// use groundswell::prelude::*;
///
/// // 8 heads of queries for each of 8 heads of keys, pages of 64 tokens.
/// let decode = PagedDecode::new(64, 8, 128).page(64);
/// let parts = decode.parts(64, 4096, 304);
/// assert_eq!(parts, 8);
/// let options = decode.options(Target::GFX942, 1).set("PARTS", parts);
/// let options = ["B", "PAGES", "MAX_PAGES"].iter().fold(options, |options, &name| options.dynamic(name));
/// let products = decode.kernel()?.compile(&options)?;
/// let combined = decode.combine()?.compile(&options)?;
/// assert_eq!(products.parameters().len(), 8 + 3); // q to lengths, sums, tops, weights; B, PAGES, MAX_PAGES
/// assert_eq!(combined.parameters().len(), 4 + 1); // sums, tops, weights, out; B
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct PagedDecode {
    /// None where they are symbols.
    heads: Option<PagedHeads>,
    page: Option<u32>,
    inputs: DType,
    cache: Option<DType>,
    scale: Option<f64>,
    division: KeyDivision,
    log_sum_exp: Option<LogSumExp>,
    /// The caller who asked for the kernel.
    caller: &'static Caller<'static>,
}

/// The destination of a workgroup's results.
#[derive(Copy, Clone, PartialEq, Eq)]
enum DecodeResults {
    /// Into memories for the combining kernel.
    Parts,
    /// Into the output.
    Output,
}

/// Waves that keep the memory of a compute unit busy, each with the keys and values of an iteration under
/// way: as many as have their registers at a time.
const WAVES_OF_UNIT: u64 = 12;

/// The fewest keys for which a part's own results are little beside what it reads.
const FEWEST_KEYS: u64 = 128;

impl PagedDecode {
    /// Decoding of bf16, with `heads` heads of queries for `kv_heads` heads of keys and values, of `head_dim`
    /// elements each.
    #[track_caller]
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32) -> PagedDecode {
        PagedDecode { heads: Some(PagedHeads { heads, kv_heads, dim: head_dim }), ..PagedDecode::any_shape() }
    }

    /// The same with symbols for all sizes: `HQ`, `KV`, `GROUP = HQ / KV`, `R = NEW * GROUP` and `D`, too.
    #[track_caller]
    pub fn any_shape() -> PagedDecode {
        PagedDecode {
            heads: None,
            page: None,
            inputs: Bf16,
            cache: None,
            scale: None,
            division: KeyDivision::Even,
            log_sum_exp: None,
            caller: Caller::caller(),
        }
    }

    /// Tokens of a page. Without this it is a symbol that the options have to bind.
    #[must_use]
    pub fn page(self, tokens: u32) -> PagedDecode {
        PagedDecode { page: Some(tokens), ..self }
    }

    /// Element type of the queries and of the output, in which products are taken: f16 or bf16.
    #[must_use]
    pub fn inputs(self, dtype: DType) -> PagedDecode {
        PagedDecode { inputs: dtype, ..self }
    }

    /// Element type of the cache, that of the queries unless chosen. Elements of 8-bit floats are multiplied
    /// with the scalars `k_scale` and `v_scale`, those of i8 with those of their head: memories `k_scale` and
    /// `v_scale`, `[KV]` of f32.
    #[must_use]
    pub fn cache(self, dtype: DType) -> PagedDecode {
        PagedDecode { cache: Some(dtype), ..self }
    }

    /// Scores are products of queries and keys times this positive number; without it `1 / sqrt(D)`.
    #[must_use]
    pub fn scale(self, scale: f64) -> PagedDecode {
        PagedDecode { scale: Some(scale), ..self }
    }

    /// A part has `keys` keys, a multiple of 32, instead of an even share: then the bits of a result depend
    /// on its own sequence alone, not on the batch and on how many parts there are. The last part has all
    /// keys that are left, so `PARTS * keys` is to be at least the longest length. The combining kernel takes
    /// `lengths`, too, after `weights`.
    #[must_use]
    pub fn deterministic(self, keys: u32) -> PagedDecode {
        PagedDecode { division: KeyDivision::Keys(keys), ..self }
    }

    /// Writes the natural logarithm of the sum of each query's powers to `log_sum_exp`, `[B, NEW, HQ]` of
    /// f32, which comes last.
    #[must_use]
    pub fn log_sum_exp(self) -> PagedDecode {
        PagedDecode { log_sum_exp: Some(LogSumExp), ..self }
    }

    /// Parts that suit `sequences` sequences of at most `longest` keys on a device of so many compute units:
    /// so many that each unit has the waves that keep its memory busy, with no part of fewer than 128 keys.
    /// With a fixed number of keys in a part it is the number of these.
    #[must_use]
    pub fn parts(&self, sequences: u64, longest: u64, compute_units: u64) -> u32 {
        let parts = match self.division {
            KeyDivision::Keys(keys) => longest.div_ceil(u64::from(keys.max(1))),
            KeyDivision::Even => {
                let heads = self.heads.map_or(1, |heads| u64::from(heads.kv_heads));
                let whole = sequences.saturating_mul(heads).max(1);
                let busy = compute_units.saturating_mul(WAVES_OF_UNIT).div_ceil(whole);
                busy.min(longest.div_ceil(FEWEST_KEYS))
            }
        };
        parts.clamp(1, 1 << 15) as u32
    }

    /// Options for the kernels that bind heads, pages and tiles, for `new` tokens of each sequence. `PARTS`,
    /// `B`, `PAGES` and `MAX_PAGES` are to be set, or to be left open for the launch.
    pub fn options(&self, target: impl Into<TargetId>, new: u32) -> Options {
        let heads = self.heads.unwrap_or(PagedHeads { heads: 1, kv_heads: 1, dim: 128 });
        let options = heads.options(target, new, self.page, SetBy::Call(self.caller));
        options.set_by("KEYS", MOST_KEYS, SetBy::Default)
    }

    /// The kernel that leaves its results in parts.
    ///
    /// # Errors
    /// Heads that are none or that do not divide into groups, dtypes that are not multiplied, a scale that is
    /// not positive, or a part of no whole iterations.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.check().and_then(|scales| self.trace(scales, DecodeResults::Parts)))
    }

    /// The same in one part, as small launches are best: it writes the output itself. `PARTS` is 1.
    ///
    /// # Errors
    /// Those of [`PagedDecode::kernel`], and the log-sum-exp, which the combining kernel writes.
    pub fn whole(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.check().and_then(|scales| self.trace(scales, DecodeResults::Output)))
    }

    /// The kernel that joins the parts: of `sums`, `tops` and `weights`, into `out`.
    ///
    /// # Errors
    /// Those of [`PagedDecode::kernel`].
    pub fn combine(&self) -> Result<Kernel, Diagnostic> {
        let joining = PartJoining {
            division: self.division,
            output: self.inputs,
            log_sum_exp: self.log_sum_exp,
            value_dim: PagedAxes::new().value_dim,
        };
        asked_at(self.caller, self.check().and_then(|_| combine::trace(joining)))
    }

    fn check(&self) -> Result<CacheScale, Diagnostic> {
        self.heads.map_or(Ok(()), PagedHeads::check)?;
        self.division.check()?;
        check_scale(self.scale)?;
        check_page(self.page)?;
        CacheScale::of(self.cache.unwrap_or(self.inputs), self.inputs)
    }

    fn trace(&self, scales: CacheScale, results: DecodeResults) -> Result<Kernel, Diagnostic> {
        let axes @ PagedAxes { batch, kv, parts, rows, dim, keys, .. } = PagedAxes::new();
        let name = if results == DecodeResults::Parts { "paged_decode" } else { "paged_decode_whole" };
        Kernel::trace(name, |w| {
            distribute(w);
            let q = w.memory("q", [batch, axes.new, axes.heads, dim], Global, self.inputs);
            let cache = self.cache.unwrap_or(self.inputs);
            let [k, v] = ["k", "v"].map(|name| axes.cache(w, name, (Global, cache)));
            let [page_table, lengths] = axes.tables(w);
            let scales = scales.of_keys_and_values(w, kv);
            let length = axes.length(w, lengths, w.workgroup_id(1));
            let read = |w: &Tracer, (page, token): InPage| {
                let [key, value] = [(k, "read_k"), (v, "read_v")].map(|(cache, tag)| {
                    let at = (page, token.clone(), kv, dim);
                    let rows = w.read_at(cache, at, [batch, kv, parts, keys, dim]).tag(tag);
                    if scales.is_some() { rows.cast(self.inputs) } else { rows }
                });
                (vec![key], value)
            };
            let exponent = exponent(w, self.scale, self.heads);
            let of_cache = CacheLoop {
                axes,
                page_table,
                length,
                seen: axes.seen(w, length),
                iterations: self.division.iterations(w, length, w.workgroup_id(3), TILE),
                queries: &[w.read_at(q, axes.query(), [batch, kv, parts, rows, dim]).tag("read_q")],
                exponent: scales.map_or(exponent, |[k_scale, _]| k_scale * exponent),
                read: &read,
                inputs: self.inputs,
            };
            let mut all = of_cache.run(w);
            if let Some([_, v_scale]) = scales {
                all.sums *= v_scale;
            }
            match results {
                DecodeResults::Parts => PartialMemories::new(w, dim).write(w, all),
                DecodeResults::Output => {
                    let out = w.memory("out", [batch, axes.new, axes.heads, dim], Global, self.inputs);
                    w.write_at(all.mean(w).cast(self.inputs), out, axes.query());
                }
            }
        })
    }
}

/// By what products of queries and keys are multiplied to become exponents of two: the scale that was given,
/// or one over the root of the elements of a head.
pub(super) fn exponent(w: &Tracer, scale: Option<f64>, heads: Option<PagedHeads>) -> Value {
    match scale.or(heads.map(|heads| 1.0 / f64::from(heads.dim).sqrt())) {
        Some(scale) => w.register([], F32, scale * LOG2_E),
        None => w.size(PagedAxes::new().dim).cast(F32).rsqrt() * LOG2_E,
    }
}

/// How the kernel is spread over the machine. Workgroups that follow one another have the heads of the same
/// keys, which lie side by side.
fn distribute(w: &Tracer) {
    let PagedAxes { batch, kv, parts, rows, dim, .. } = PagedAxes::new();
    let [block_r, wave_r, wave_d] = symbols(["BLOCK_R", "WAVE_R", "WAVE_D"]);
    w.distribute([
        workgroup(kv, 1, 0),
        workgroup(batch, 1, 1),
        workgroup(rows, block_r, 2),
        workgroup(parts, 1, 3),
        wave(rows, wave_r),
        wave(dim, wave_d),
    ]);
    w.distribute(CacheLoop::constraints(TILE));
    w.mma_type(MatrixShape::M16x16);
}
