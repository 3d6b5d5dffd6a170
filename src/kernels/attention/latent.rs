//! Decoding with latent attention: keys and values of all heads are one row for each token.

use std::f64::consts::LOG2_E;
use std::panic::Location as Caller;

use super::choices::LogSumExp;
use super::combine::{self, PartJoining};
use super::over_cache::{CacheLoop, InPage};
use super::paged::{CacheScale, KeyDivision, MOST_KEYS, PagedAxes, check_page, check_scale};
use super::partial::PartialMemories;
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Builder of latent decoding (MLA) over a paged cache: the key of a token is a row of `D` elements that all
/// heads share, 512 latent ones and 64 rotated ones unless chosen otherwise, and its value the first `DV` of
/// these.
///
/// - `q` is `[B, NEW, HQ, D]`: queries of the last `NEW` tokens, which have been multiplied with the matrix
///   that makes keys of latent rows
/// - `cache` is `[PAGES, PAGE, KV, D]` with `KV` = 1
/// - `page_table`, `lengths`: as [`super::PagedDecode`] has them
/// - `cache_scale`, with caches that have a scale ([`LatentDecode::cache`])
/// - `out` is `[B, NEW, HQ, DV]`
///
/// A row is read once for all heads of a workgroup, which share it through LDS, and for keys and values. The
/// results of parts are joined by [`LatentDecode::combine`]. The loop is tagged `key_loop`, the operations
/// `read_q`, `read_latent`, `read_rotated`, `scores` and `values`.
///
/// # Example
/// ```
/// use groundswell::kernels::LatentDecode;
/// use groundswell::prelude::*;
///
/// let decode = LatentDecode::new(32).page(64);
/// let options = decode.options(Target::GFX942, 1).set("PARTS", 4).set("B", 16);
/// let options = options.dynamic("PAGES").dynamic("MAX_PAGES");
/// let products = decode.kernel()?.compile(&options)?;
/// let combined = decode.combine()?.compile(&options)?;
/// // q, cache, page_table, lengths, sums, tops, weights; PAGES, MAX_PAGES
/// assert_eq!(products.parameters().len(), 7 + 2);
/// assert_eq!(combined.parameters().len(), 4); // the parts, out
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct LatentDecode {
    /// None where they are symbols.
    heads: Option<u32>,
    /// Latent and rotated elements of a row.
    latent: u32,
    rotated: u32,
    page: Option<u32>,
    inputs: DType,
    cache: Option<DType>,
    scale: Option<f64>,
    division: KeyDivision,
    log_sum_exp: Option<LogSumExp>,
    /// The caller who asked for the kernel.
    caller: &'static Caller<'static>,
}

/// The fewest keys of a part: one sequence of 8192 keys then has work for 256 compute units.
const FEWEST_KEYS: u64 = 32;

/// The fewest keys of a part where there are more parts than fill the device once: each begins with reading
/// queries, and ends with writing sums.
const LONG_PART: u64 = 1024;

/// Rows of a wave: its sums of values take half of the registers.
const WAVE_ROWS: i64 = 16;

/// The most rows of a workgroup: a wave for each SIMD, which needs all registers.
const MOST_ROWS: i64 = 64;

impl LatentDecode {
    /// Latent decoding of bf16 with `heads` heads and rows of 512 + 64 elements.
    #[track_caller]
    pub fn new(heads: u32) -> LatentDecode {
        LatentDecode { heads: Some(heads), ..LatentDecode::any_shape() }
    }

    /// The same with symbols for all sizes: `HQ`, `GROUP = HQ`, `R = NEW * HQ`, `D`, `DV` and `DR = D - DV`,
    /// too.
    #[track_caller]
    pub fn any_shape() -> LatentDecode {
        LatentDecode {
            heads: None,
            latent: 512,
            rotated: 64,
            page: None,
            inputs: Bf16,
            cache: None,
            scale: None,
            division: KeyDivision::Even,
            log_sum_exp: None,
            caller: Caller::caller(),
        }
    }

    /// Latent and rotated elements of a row.
    #[must_use]
    pub fn row(self, latent: u32, rotated: u32) -> LatentDecode {
        LatentDecode { latent, rotated, ..self }
    }

    /// Tokens of a page. Without this it is a symbol that the options have to bind.
    #[must_use]
    pub fn page(self, tokens: u32) -> LatentDecode {
        LatentDecode { page: Some(tokens), ..self }
    }

    /// Element type of the queries and of the output, in which products are taken: f16 or bf16.
    #[must_use]
    pub fn inputs(self, dtype: DType) -> LatentDecode {
        LatentDecode { inputs: dtype, ..self }
    }

    /// Element type of the cache, that of the queries unless chosen. Elements of 8-bit floats are multiplied
    /// with `cache_scale`, an f32 by value; those of i8 with the element of the memory `cache_scale`, `[KV]`
    /// of f32.
    #[must_use]
    pub fn cache(self, dtype: DType) -> LatentDecode {
        LatentDecode { cache: Some(dtype), ..self }
    }

    /// Scores are products of queries and keys times this positive number. Without it that is one over the
    /// root of `D`; models whose heads had another size before they were multiplied say theirs.
    #[must_use]
    pub fn scale(self, scale: f64) -> LatentDecode {
        LatentDecode { scale: Some(scale), ..self }
    }

    /// As [`super::PagedDecode::deterministic`].
    #[must_use]
    pub fn deterministic(self, keys: u32) -> LatentDecode {
        LatentDecode { division: KeyDivision::Keys(keys), ..self }
    }

    /// As [`super::PagedDecode::log_sum_exp`].
    #[must_use]
    pub fn log_sum_exp(self) -> LatentDecode {
        LatentDecode { log_sum_exp: Some(LogSumExp), ..self }
    }

    /// Parts that suit `sequences` sequences of at most `longest` keys on a device of so many compute units,
    /// of which each has four waves: as many workgroups as fill the device once, with no part of fewer than
    /// 32 keys, or, of long sequences, as fill it nearly two to four times. With a fixed number of keys in a
    /// part it is the number of these.
    #[must_use]
    pub fn parts(&self, sequences: u64, longest: u64, compute_units: u64) -> u32 {
        let parts = match self.division {
            KeyDivision::Keys(keys) => longest.div_ceil(u64::from(keys.max(1))),
            KeyDivision::Even => {
                let rows = i64::from(self.heads.unwrap_or(1)).max(1);
                let waves = rows.unsigned_abs().div_ceil(WAVE_ROWS.unsigned_abs());
                let whole = sequences.saturating_mul(waves).max(1);
                let places = compute_units.saturating_mul(4).max(1);
                let once = (places / whole).min(longest.div_ceil(FEWEST_KEYS)).max(1);
                let is_full = |parts: &u64| {
                    let used = whole.saturating_mul(*parts);
                    let all = used.div_ceil(places).saturating_mul(places);
                    used.saturating_mul(16) >= all.saturating_mul(15)
                };
                let most = (longest / LONG_PART).min(4 * once);
                (once..=most).find(is_full).unwrap_or(once)
            }
        };
        parts.clamp(1, 1 << 15) as u32
    }

    /// Options for both kernels that bind heads, pages and tiles, for `new` tokens of each sequence. `PARTS`,
    /// `B`, `PAGES` and `MAX_PAGES` are to be set, or to be left open for the launch.
    pub fn options(&self, target: impl Into<TargetId>, new: u32) -> Options {
        let heads = self.heads.unwrap_or(1);
        let (rows, row) = (new.saturating_mul(heads), self.latent.saturating_add(self.rotated));
        let of_row = [("D", row), ("DV", self.latent), ("DR", self.rotated.max(1))];
        let sizes = [("HQ", heads), ("GROUP", heads), ("KV", 1)].into_iter().chain(of_row);
        let by = SetBy::Call(self.caller);
        let all = sizes.chain([("NEW", new), ("R", rows)]).chain(self.page.map(|page| ("PAGE", page)));
        let options =
            all.fold(Options::new(target), |options, (name, size)| options.set_by(name, size, by.clone()));
        let tile = [("BLOCK_R", latent_rows(rows.into())), ("KEYS", MOST_KEYS)];
        tile.into_iter().fold(options, |options, (name, size)| options.set_by(name, size, SetBy::Default))
    }

    /// The kernel that leaves its results in parts.
    ///
    /// # Errors
    /// No heads, rows without latent elements or too large ones, dtypes that are not multiplied, a scale that
    /// is not positive, or a part of no whole iterations.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.check().and_then(|scale| self.trace(scale)))
    }

    /// The kernel that joins the parts: of `sums`, `tops` and `weights`, into `out`.
    ///
    /// # Errors
    /// Those of [`LatentDecode::kernel`].
    pub fn combine(&self) -> Result<Kernel, Diagnostic> {
        let joining = PartJoining {
            division: self.division,
            output: self.inputs,
            log_sum_exp: self.log_sum_exp,
            value_dim: PagedAxes::latent().value_dim,
        };
        asked_at(self.caller, self.check().and_then(|_| combine::trace(joining)))
    }

    fn check(&self) -> Result<CacheScale, Diagnostic> {
        self.division.check()?;
        if self.heads == Some(0) {
            return Err(Diagnostic::invalid("latent attention has no heads").help("use at least one head"));
        }
        let is_row = |elements: u32, most: u32| elements.is_multiple_of(64) && elements <= most;
        if self.latent == 0 || !is_row(self.latent, 512) || !is_row(self.rotated, 64) {
            let text =
                format!("rows of {} + {} elements are not kept in registers", self.latent, self.rotated);
            let help = "use multiples of 64: up to 512 latent and up to 64 rotated elements";
            return Err(Diagnostic::invalid(text).help(help));
        }
        check_scale(self.scale)?;
        check_page(self.page)?;
        CacheScale::of(self.cache.unwrap_or(self.inputs), self.inputs)
    }

    /// The parts of a row: the latent one, which is the value, and the rotated one, if there is one.
    fn row_parts(&self) -> Vec<RowPart> {
        let (latent, rotated) = (PagedAxes::latent().value_dim, Symbol::new("DR"));
        let mut parts = vec![RowPart { along: latent, place: latent.into(), tag: "read_latent" }];
        if self.rotated > 0 {
            parts.push(RowPart { along: rotated, place: latent + rotated, tag: "read_rotated" });
        }
        parts
    }

    fn trace(&self, of_cache: CacheScale) -> Result<Kernel, Diagnostic> {
        let axes @ PagedAxes { batch, kv, parts, rows, dim, keys, value_dim, .. } = PagedAxes::latent();
        let rotated = Symbol::new("DR");
        let row_parts = self.row_parts();
        Kernel::trace("latent_decode", |w| {
            w.distribute([
                workgroup(rows, Symbol::new("BLOCK_R"), 0),
                workgroup(batch, 1, 1),
                workgroup(parts, 1, 2),
                workgroup(kv, 1, 3),
                wave(rows, WAVE_ROWS),
                // Whole steps of the matrix instruction, and no power of two.
                wave(value_dim, value_dim),
                wave(rotated, rotated),
            ]);
            w.distribute(CacheLoop::constraints(LATENT_TILE));
            w.mma_type(MatrixShape::M16x16);
            let q = w.memory("q", [batch, axes.new, axes.heads, dim], Global, self.inputs);
            let cache = axes.cache(w, "cache", (Shared, self.cache.unwrap_or(self.inputs)));
            let [page_table, lengths] = axes.tables(w);
            let cache_scale = of_cache.read(w, kv, ["cache_scale"]).map(|[scale]| scale);
            let length = axes.length(w, lengths, w.workgroup_id(1));
            let read = |w: &Tracer, (page, token): InPage| {
                let key: Vec<Value> = row_parts
                    .iter()
                    .map(|part| {
                        let at = (page, token.clone(), kv, part.place.clone());
                        let rows = w.read_at(cache, at, [batch, kv, parts, keys, part.along]).tag(part.tag);
                        if cache_scale.is_some() { rows.cast(self.inputs) } else { rows }
                    })
                    .collect();
                let value = key[0];
                (key, value)
            };
            let queries: Vec<Value> = row_parts.iter().map(|part| part.query(w, q)).collect();
            let scale = match self.scale {
                Some(scale) => w.register([], F32, scale * LOG2_E),
                None => w.size(dim).cast(F32).rsqrt() * LOG2_E,
            };
            let of_keys = CacheLoop {
                axes,
                page_table,
                length,
                seen: axes.seen(w, length),
                iterations: self.division.iterations(w, length, w.workgroup_id(2), LATENT_TILE),
                queries: &queries,
                exponent: cache_scale.map_or(scale, |cache_scale| cache_scale * scale),
                read: &read,
                inputs: self.inputs,
            };
            let mut all = of_keys.run(w);
            if let Some(cache_scale) = cache_scale {
                all.sums *= cache_scale;
            }
            PartialMemories::new(w, value_dim).write(w, all);
        })
    }
}

/// A part of a row of the cache.
struct RowPart {
    /// The dimension along which its elements are.
    along: Symbol,
    /// Their place in the row.
    place: SymExpr,
    /// The tag of its reads.
    tag: &'static str,
}

impl RowPart {
    /// The same part of the queries.
    fn query(&self, w: &Tracer, q: MemoryRef) -> Value {
        let axes @ PagedAxes { batch, kv, parts, rows, .. } = PagedAxes::latent();
        let [sequence, new, head, _] = axes.query();
        let at = [sequence, new, head, self.place.clone()];
        w.read_at(q, at, [batch, kv, parts, rows, self.along]).tag("read_q")
    }
}

/// Keys per iteration: two lots of them, one that is multiplied and one that comes, have room in registers.
const LATENT_TILE: i64 = 16;

/// Rows of a workgroup for so many: all heads of a token together, as far as there are waves for them.
pub(in crate::kernels) fn latent_rows(rows: i64) -> i64 {
    rows.clamp(WAVE_ROWS, MOST_ROWS).unsigned_abs().next_power_of_two().cast_signed()
}
