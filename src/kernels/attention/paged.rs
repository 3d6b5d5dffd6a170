//! What kernels over a paged cache share: heads and their dimensions, where a key of a sequence is in the
//! cache, how the keys of a sequence are divided into parts, and what a cache of narrow numbers is scaled by.
//!
//! A cache of keys (or values) is `[PAGES, PAGE, KV, D]`: pages of `PAGE` tokens with `KV` heads of `D`
//! elements. Key `n` of sequence `b` is token `n % PAGE` of page `page_table[b, n / PAGE]`, where
//! `page_table` is `[B, MAX_PAGES]` of i32; the sequence has `lengths[b]` keys, `[B]` of i32. A length is at
//! least 0 and at most what the table has room for: others count as the nearest of these. A number that is no
//! page is read as zeros, and not written; with `Options::bounds_check` it is an error of the launch.

use crate::prelude::*;

/// Keys per iteration. Parts of a fixed number of keys are whole iterations of these.
pub(super) const TILE: i64 = 32;

/// What `KEYS` is: more keys than any cache has.
pub(super) const MOST_KEYS: i64 = 1 << 28;

/// The dimensions of kernels over a paged cache.
#[derive(Copy, Clone)]
pub(super) struct PagedAxes {
    pub(super) batch: Symbol,
    /// New tokens of a sequence.
    pub(super) new: Symbol,
    /// Heads of queries, and of keys and values.
    pub(super) heads: Symbol,
    pub(super) kv: Symbol,
    /// Rows: the queries that share a head of keys, `group` for each new token.
    pub(super) rows: Symbol,
    pub(super) group: Symbol,
    pub(super) dim: Symbol,
    /// Elements of a value: those of a key, unless values are a part of the keys.
    pub(super) value_dim: Symbol,
    pub(super) keys: Symbol,
    pub(super) page: Symbol,
    pub(super) max_pages: Symbol,
    pub(super) parts: Symbol,
}

impl PagedAxes {
    pub(super) fn new() -> PagedAxes {
        let [batch, new, heads, kv, rows, group] = symbols(["B", "NEW", "HQ", "KV", "R", "GROUP"]);
        let [dim, keys, page, max_pages] = symbols(["D", "KEYS", "PAGE", "MAX_PAGES"]);
        let parts = Symbol::new("PARTS");
        PagedAxes { batch, new, heads, kv, rows, group, dim, value_dim: dim, keys, page, max_pages, parts }
    }

    /// Those of a cache of latent rows, whose first `DV` elements are the values.
    pub(super) fn latent() -> PagedAxes {
        PagedAxes { value_dim: Symbol::new("DV"), ..PagedAxes::new() }
    }

    /// A cache of keys or values.
    pub(super) fn cache(self, w: &Tracer, name: &str, (space, dtype): (AddressSpace, DType)) -> MemoryRef {
        w.memory(name, [Symbol::new("PAGES"), self.page, self.kv, self.dim], space, dtype)
    }

    /// The table of pages and the lengths of sequences.
    pub(super) fn tables(self, w: &Tracer) -> [MemoryRef; 2] {
        [
            w.memory("page_table", [self.batch, self.max_pages], Global, I32),
            w.memory("lengths", [self.batch], Global, I32),
        ]
    }

    /// The number of keys of a sequence, which the table has room for.
    pub(super) fn length(self, w: &Tracer, lengths: MemoryRef, sequence: Value) -> Value {
        let length = w.read_at(lengths, [sequence], []).tag("read_lengths");
        length.minimum(w.size(self.max_pages) * w.size(self.page)).maximum(0)
    }

    /// How many keys each row sees: the last new token all of them, and each one before it one less.
    pub(super) fn seen(self, w: &Tracer, length: Value) -> Value {
        let token = w.apply_expr(Coordinate::from(w.self_index(self.rows)) / self.group);
        token + (length - w.size(self.new) + 1)
    }

    /// The head of queries and the new token of a row, as coordinates of `[B, NEW, HQ, D]`.
    pub(super) fn query(self) -> [SymExpr; 4] {
        let PagedAxes { batch, rows, group, kv, dim, .. } = self;
        [batch.into(), rows / group, kv * group + rows % group, dim.into()]
    }
}

/// The heads of a kernel over a paged cache.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct PagedHeads {
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) dim: u32,
}

impl PagedHeads {
    /// Heads of queries for each head of keys.
    pub(super) fn group(self) -> u32 {
        self.heads / self.kv_heads.max(1)
    }

    /// Fails where there are no heads, or heads that do not divide into groups, or too large ones.
    pub(super) fn check(self) -> Result<(), Diagnostic> {
        let PagedHeads { heads, kv_heads, dim } = self;
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let text = format!("{heads} heads of queries do not divide among {kv_heads} heads of keys");
            let help = "use a number of heads of keys and values that divides that of queries";
            return Err(Diagnostic::invalid(text).help(help));
        }
        if !(1..=256).contains(&dim) {
            let text = format!("a head of {dim} elements is not kept in registers");
            return Err(Diagnostic::invalid(text).help("use heads of 1 to 256 elements"));
        }
        Ok(())
    }

    /// Options that bind the heads, the pages and the tile, for so many new tokens of a sequence.
    pub(super) fn options(
        self,
        target: impl Into<TargetId>,
        new: u32,
        page: Option<u32>,
        by: SetBy,
    ) -> Options {
        let PagedHeads { heads, kv_heads, dim } = self;
        let rows = new.saturating_mul(self.group());
        let sizes =
            [("HQ", heads), ("KV", kv_heads), ("GROUP", self.group()), ("D", dim), ("NEW", new), ("R", rows)];
        let sizes = sizes.into_iter().chain(page.map(|page| ("PAGE", page)));
        let options =
            sizes.fold(Options::new(target), |options, (name, size)| options.set_by(name, size, by.clone()));
        let [block, wave] = row_tile(rows.into());
        let tile = [("BLOCK_R", block), ("WAVE_R", wave), ("WAVE_D", wave_dim(dim.into()))];
        tile.into_iter().fold(options, |options, (name, size)| options.set_by(name, size, SetBy::Default))
    }
}

/// Rows of a workgroup and of a wave for so many rows: a wave has as few as the matrix instruction, or twice
/// as many, and what belongs to one head of keys stays together, so that these are read once.
pub(in crate::kernels) fn row_tile(rows: i64) -> [i64; 2] {
    let wave = if rows > 16 { 32 } else { 16 };
    [rows.clamp(wave, 256).unsigned_abs().next_power_of_two().cast_signed(), wave]
}

/// Elements of a head that a wave has: a power of two, so that lanes read neighbouring elements together.
pub(in crate::kernels) fn wave_dim(dim: i64) -> i64 {
    // No head is larger.
    dim.clamp(32, 1 << 16).unsigned_abs().next_power_of_two().cast_signed()
}

/// Fails unless the scale is a positive number: scores that are masked are minus infinity, and stay that.
pub(super) fn check_scale(scale: Option<f64>) -> Result<(), Diagnostic> {
    match scale {
        Some(scale) if !(scale.is_finite() && scale > 0.0) => {
            Err(Diagnostic::invalid(format!("a scale of {scale} is no positive number"))
                .help("use a positive scale, and negate the queries where the sign is to change"))
        }
        _ => Ok(()),
    }
}

/// Fails for pages without tokens.
pub(super) fn check_page(page: Option<u32>) -> Result<(), Diagnostic> {
    match page {
        Some(0) => Err(Diagnostic::invalid("pages have no tokens").help("use pages of at least one token")),
        _ => Ok(()),
    }
}

/// How the elements of a cache become those that are multiplied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CacheScale {
    /// As they are.
    None,
    /// An 8-bit float times a number of the tensor: an argument, such as `k_scale`.
    Tensor,
    /// An 8-bit integer times a number of its head: a memory, such as `k_scale`, `[KV]` of f32.
    Head,
}

impl CacheScale {
    /// That of a cache whose elements are multiplied as `inputs`.
    pub(super) fn of(cache: DType, inputs: DType) -> Result<CacheScale, Diagnostic> {
        match (cache, inputs) {
            (_, F16 | Bf16) if cache == inputs => Ok(CacheScale::None),
            (F8E4M3Fnuz | F8E4M3Fn | F8E5M2Fnuz | F8E5M2, F16 | Bf16) => Ok(CacheScale::Tensor),
            (I8, F16 | Bf16) => Ok(CacheScale::Head),
            _ => {
                let text = format!("a cache of {cache} is not multiplied with queries of {inputs}");
                let help = "use queries of f16 or bf16, and a cache of the same, of 8-bit floats or of i8";
                Err(Diagnostic::invalid(text).help(help))
            }
        }
    }

    /// The scales of keys and of values, if there are some.
    pub(super) fn of_keys_and_values(self, w: &Tracer, kv: Symbol) -> Option<[Value; 2]> {
        self.read(w, kv, ["k_scale", "v_scale"])
    }

    /// The scales with some names, if there are scales.
    pub(super) fn read<const N: usize>(self, w: &Tracer, kv: Symbol, names: [&str; N]) -> Option<[Value; N]> {
        match self {
            CacheScale::None => None,
            CacheScale::Tensor => Some(names.map(|name| w.scalar(name, F32))),
            CacheScale::Head => Some(names.map(|name| w.read(w.memory(name, [kv], Global, F32)))),
        }
    }
}

/// How the keys of a sequence are divided among workgroups.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum KeyDivision {
    /// Into `PARTS` parts of as many keys each.
    Even,
    /// Into parts of so many keys, of which there are at most `PARTS`.
    Keys(u32),
}

impl KeyDivision {
    /// Fails unless parts are whole iterations.
    pub(super) fn check(self) -> Result<(), Diagnostic> {
        match self {
            KeyDivision::Keys(keys) if keys == 0 || i64::from(keys) % TILE != 0 => {
                Err(Diagnostic::invalid(format!("{keys} keys are no part of whole iterations"))
                    .help(format!("use a multiple of {TILE}, such as 256")))
            }
            _ => Ok(()),
        }
    }

    /// The first iteration of part number `part` of a sequence of so many keys, and their number, which is
    /// not positive where the part has no keys. The last part has all that is left. An iteration has `tile`
    /// keys.
    pub(super) fn iterations(self, w: &Tracer, length: Value, part: Value, tile: i64) -> [Value; 2] {
        let parts = Symbol::new("PARTS");
        let all = w.apply_expr((Coordinate::from(length) + (tile - 1)) / tile);
        let each = match self {
            KeyDivision::Even => w.apply_expr((Coordinate::from(all) + (parts - 1)) / parts),
            KeyDivision::Keys(keys) => w.register([], I32, f64::from(keys) / tile as f64),
        };
        let first = part * each;
        let left = all - first;
        let is_last = (part + 1).equal(w.size(parts));
        [first, w.select(is_last, left, left.minimum(each))]
    }
}
