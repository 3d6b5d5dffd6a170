//! The symbols of the ready kernels with their defaults.

use super::RowTile;
use super::attention::{latent_rows, row_tile, wave_dim};
use super::four_bit::part_of_wave;
use super::split_k::part_of;

/// A symbol of a ready kernel and its default value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SymbolDefault {
    /// Name of the symbol.
    pub name: &'static str,
    /// Its default.
    pub value: i64,
    /// What it means.
    pub meaning: &'static str,
}

/// The name of a symbol, and its default for the values of the symbols before it.
pub(super) type Derived = (&'static str, fn(&dyn Fn(&str) -> i64) -> i64);

macro_rules! symbol_defaults {
    ($($name:ident = $value:literal $meaning:literal,)*) => {
        &[$(SymbolDefault { name: stringify!($name), value: $value, meaning: $meaning }),*]
    };
}

pub(super) const COPY: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

pub(super) const COPY_STRIDED: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    LDA = 1024 "elements from one row of A to the next; N, unless chosen",
    LDB = 1024 "elements from one row of B to the next; N, unless chosen",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

pub(super) const TRANSPOSE: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of A",
    N = 1024 "columns of A",
    BLOCK_M = 64 "rows of A per workgroup",
    BLOCK_N = 64 "columns of A per workgroup",
};

pub(super) const GATHER: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of the result",
    N = 1024 "columns of the table",
    ROWS = 4096 "rows of the table",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

pub(super) const SCATTER: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of X",
    N = 1024 "columns of the table",
    ROWS = 4096 "rows of the table",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

pub(super) const HISTOGRAM: &[SymbolDefault] = symbol_defaults! {
    N = 65536 "numbers",
    BINS = 256 "bins",
    BLOCK_N = 1024 "numbers per workgroup",
    WAVE_N = 256 "numbers per wave",
};

pub(super) const PERMUTE: &[SymbolDefault] = symbol_defaults! {
    D0 = 4 "the first dimension of A",
    D1 = 512 "the second dimension of A",
    D2 = 16 "the third dimension of A",
    D3 = 128 "the last dimension of A",
    OTHERS = 64 "combinations of dimensions without tiles; follows from them",
    BLOCK_X = 64 "elements of D3 per workgroup",
    BLOCK_Y = 64 "elements of the other tiled dimension per workgroup",
};

pub(super) const ROPE: &[SymbolDefault] = symbol_defaults! {
    T = 1024 "tokens",
    HEADS = 32 "heads",
    PAIRS = 64 "half of the elements of a head",
    BLOCK_T = 4 "tokens per workgroup",
    BLOCK_H = 8 "heads per workgroup",
    WAVE_P = 64 "PAIRS, rounded up to a power of two; follows from it",
};

pub(super) const ROPE_DERIVED: &[Derived] = &[("WAVE_P", |of| {
    // No memory has more elements than this.
    let pairs = of("PAIRS").clamp(1, 1 << 40);
    pairs.unsigned_abs().next_power_of_two().cast_signed()
})];

pub(super) const ROWS: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 4 "rows per workgroup; follows from N",
    WAVE_M = 1 "rows per wave; follows from N",
    WAVE_N = 1024 "columns per wave; follows from N",
};

pub(super) const ROW_TILE: &[Derived] = &[
    ("BLOCK_M", |value| RowTile::of(value("N")).rows),
    ("WAVE_M", |value| RowTile::of(value("N")).wave_rows),
    ("WAVE_N", |value| RowTile::of(value("N")).wave_columns),
];

pub(super) const COLUMNS: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 128 "rows per iteration",
    BLOCK_N = 64 "columns per workgroup",
    WAVE_M = 16 "rows per wave",
};

pub(super) const GEMM: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 512 "what is summed over",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

pub(super) const PERSISTENT: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 512 "what is summed over",
    WORKGROUPS = 304 "the most workgroups: the compute units of an MI300X",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

pub(super) const BATCHED: &[SymbolDefault] = symbol_defaults! {
    B = 4 "matrices",
    M = 256 "rows of A and C",
    N = 256 "columns of C",
    K = 256 "what is summed over",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

pub(super) const SPLIT_K: &[SymbolDefault] = symbol_defaults! {
    M = 64 "rows of A and C",
    N = 256 "columns of C",
    K = 4096 "what is summed over",
    SPLITS = 8 "parts of K",
    BLOCK_M = 64 "rows of C per workgroup",
    BLOCK_N = 64 "columns of C per workgroup",
    BLOCK_K = 64 "K per iteration",
    PART = 512 "elements of a part; follows from K, SPLITS and BLOCK_K",
    PART_STRIDE = 512 "elements from one part to the next: PART",
};

pub(super) const SPLIT_K_DERIVED: &[Derived] =
    &[("PART", |of| part_of(of("K"), of("SPLITS"), of("BLOCK_K"))), ("PART_STRIDE", |of| of("PART"))];

pub(super) const SPLIT_K_SUM: &[SymbolDefault] = symbol_defaults! {
    M = 64 "rows of C",
    N = 256 "columns of C",
    SPLITS = 8 "parts",
    BLOCK_M = 1 "rows of C per workgroup",
    BLOCK_N = 1024 "columns of C per workgroup",
    BLOCK_S = 8 "parts per iteration",
};

pub(super) const STREAM_K: &[SymbolDefault] = symbol_defaults! {
    M = 192 "rows of A and C",
    N = 192 "columns of C",
    K = 512 "what is summed over",
    WORKERS = 8 "workgroups: as many as run at a time",
    BLOCK_M = 64 "rows of a tile of C",
    BLOCK_N = 64 "columns of a tile of C",
    BLOCK_K = 64 "K per iteration",
    STEPS = 8 "iterations of a tile; follows from K",
    COLUMN_TILES = 3 "tiles along N; follows from it",
    SHARE = 9 "iterations of a worker; follows from the others",
    SEGMENTS = 2 "tiles that a worker touches; follows from the others",
    TILE_M = 64 "rows of a part: BLOCK_M",
    TILE_N = 64 "columns of a part: BLOCK_N",
};

pub(super) const STREAM_K_DERIVED: &[Derived] = &[
    ("STEPS", |of| parts_of(of("K"), of("BLOCK_K"))),
    STREAM_K_SUM_DERIVED[0],
    STREAM_K_SUM_DERIVED[1],
    STREAM_K_SUM_DERIVED[2],
    STREAM_K_SUM_DERIVED[4],
    STREAM_K_SUM_DERIVED[5],
];

pub(super) const STREAM_K_SUM: &[SymbolDefault] = symbol_defaults! {
    M = 192 "rows of C",
    N = 192 "columns of C",
    STEPS = 8 "iterations of a tile along K",
    WORKERS = 8 "workgroups of the first kernel",
    BLOCK_M = 64 "rows of a tile of C, a multiple of 16",
    BLOCK_N = 64 "columns of a tile of C",
    COLUMN_TILES = 3 "tiles along N; follows from it",
    SHARE = 9 "iterations of a worker; follows from the others",
    SEGMENTS = 2 "tiles that a worker touches; follows from the others",
    CONTRIBUTIONS = 2 "workers that a tile has parts of; follows from the others",
    TILE_M = 64 "rows of a part: BLOCK_M",
    TILE_N = 64 "columns of a part: BLOCK_N",
};

pub(super) const STREAM_K_SUM_DERIVED: &[Derived] = &[
    ("COLUMN_TILES", |of| parts_of(of("N"), of("BLOCK_N"))),
    ("SHARE", |of| {
        let tiles = parts_of(of("M"), of("BLOCK_M")).saturating_mul(of("COLUMN_TILES"));
        parts_of(tiles.saturating_mul(of("STEPS")), of("WORKERS"))
    }),
    ("SEGMENTS", |of| most_touched(of("SHARE"), of("STEPS"))),
    ("CONTRIBUTIONS", |of| most_touched(of("STEPS"), of("SHARE"))),
    ("TILE_M", |of| of("BLOCK_M")),
    ("TILE_N", |of| of("BLOCK_N")),
];

/// `ceil(a / b)`, for a size and a count.
fn parts_of(a: i64, b: i64) -> i64 {
    let (a, b) = (a.max(1), b.max(1));
    a / b + i64::from(a % b != 0)
}

/// The most runs of `other` consecutive numbers that a run of `length` touches, where both kinds of runs
/// follow each other from zero on.
fn most_touched(length: i64, other: i64) -> i64 {
    let (length, other) = (length.max(1), other.max(1));
    let (mut divisor, mut rest) = (length, other);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    // A run begins at a multiple of the common divisor, at the latest so far before the end of another one.
    (other - divisor).saturating_add(length - 1) / other + 1
}

pub(super) const SORT: &[SymbolDefault] = symbol_defaults! {
    M = 256 "rows",
    N = 256 "elements of a row, at most 1024",
    BLOCK_M = 1 "rows per wave",
};

pub(super) const GROUPED: &[SymbolDefault] = symbol_defaults! {
    BLOCKS = 8 "blocks of rows of A",
    ROWS = 64 "rows of a block",
    N = 256 "columns of C",
    K = 512 "what is summed over",
    EXPERTS = 4 "matrices B",
    BLOCK_N = 64 "columns of C per workgroup",
    BLOCK_K = 64 "K per iteration",
};

pub(super) const CONV2D: &[SymbolDefault] = symbol_defaults! {
    N = 2 "images",
    H = 32 "rows of an image",
    W = 32 "columns of an image",
    C = 64 "channels of an image",
    NF = 64 "filters",
    HF = 3 "rows of a filter",
    WF = 3 "columns of a filter",
    HO = 30 "rows of an output: H - HF + 1",
    WO = 30 "columns of an output: W - WF + 1",
    M = 1800 "pixels of all outputs: N * HO * WO",
    K = 576 "elements of a filter: HF * WF * C",
    BLOCK_M = 64 "pixels per workgroup",
    BLOCK_N = 64 "filters per workgroup",
    BLOCK_K = 64 "K per iteration",
};

/// Saturating, since sizes may be anything.
pub(super) const CONV2D_DERIVED: &[Derived] = &[
    ("HO", |of| of("H").saturating_sub(of("HF")).saturating_add(1)),
    ("WO", |of| of("W").saturating_sub(of("WF")).saturating_add(1)),
    ("M", |of| of("N").saturating_mul(of("HO")).saturating_mul(of("WO"))),
    ("K", |of| of("HF").saturating_mul(of("WF")).saturating_mul(of("C"))),
];

pub(super) const CONV2D_GROUPED: &[SymbolDefault] = symbol_defaults! {
    N = 2 "images",
    H = 32 "rows of an image",
    W = 32 "columns of an image",
    C = 256 "channels",
    NF = 256 "filters",
    HF = 3 "rows of a filter",
    WF = 3 "columns of a filter",
    G = 4 "groups",
    NFG = 64 "filters of a group; follows from the others",
    HO = 30 "rows of an output; follows from the others",
    WO = 30 "columns of an output; follows from the others",
    M = 1800 "pixels of all outputs; follows from the others",
    K = 576 "elements of a filter; follows from the others",
    BLOCK_M = 64 "pixels per workgroup",
    BLOCK_N = 64 "filters per workgroup",
    BLOCK_K = 64 "K per iteration",
};

pub(super) const CONV2D_GROUPED_DERIVED: &[Derived] = &[
    CONV2D_DERIVED[0],
    CONV2D_DERIVED[1],
    CONV2D_DERIVED[2],
    ("K", |of| of("HF").saturating_mul(of("WF")).saturating_mul(of("C") / 4)),
    ("NFG", |of| of("NF") / 4),
];

pub(super) const DEPTHWISE: &[SymbolDefault] = symbol_defaults! {
    N = 2 "images",
    H = 32 "rows of an image",
    W = 32 "columns of an image",
    C = 256 "channels",
    HF = 3 "rows of a filter",
    WF = 3 "columns of a filter",
    HO = 30 "rows of an output; follows from the others",
    WO = 30 "columns of an output; follows from the others",
    M = 1800 "pixels of all outputs; follows from the others",
    BLOCK_M = 16 "pixels per workgroup",
    BLOCK_C = 64 "channels per workgroup",
};

pub(super) const BLOCK_FLOAT: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 1024 "what is summed over",
    BLOCK_M = 32 "rows of C per workgroup",
    BLOCK_N = 32 "columns of C per workgroup",
    BLOCK_K = 256 "K per iteration",
};

pub(super) const BLOCK_FLOAT_ROWS: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 1024 "what is summed over",
    BLOCK_M = 64 "rows of C per workgroup",
    BLOCK_N = 64 "columns of C per workgroup",
    BLOCK_K = 128 "K per iteration",
};

pub(super) const ARRANGED_SCALES: &[SymbolDefault] = symbol_defaults! {
    ROWS = 512 "rows that have scales",
    K = 1024 "elements of a row, of which 32 have one scale",
    BLOCK_ROWS = 64 "rows per workgroup",
    BLOCK_K = 1024 "elements of a row per workgroup",
};

pub(super) const BLOCK_SCALED: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 1024 "what is summed over",
    SCALE_N = 128 "columns of C with a scale in common",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 128 "K with a scale in common, and per iteration",
    BLOCKS = 8 "blocks of K; follows from K and BLOCK_K",
    ROWS = 4 "blocks of N; follows from N and SCALE_N",
};

pub(super) const BLOCK_SCALED_DERIVED: &[Derived] = &[
    ("BLOCKS", |of| {
        of("K").max(1).unsigned_abs().div_ceil(of("BLOCK_K").max(1).unsigned_abs()).cast_signed()
    }),
    ("ROWS", |of| of("N").max(1).unsigned_abs().div_ceil(of("SCALE_N").max(1).unsigned_abs()).cast_signed()),
];

pub(super) const MOE_ROUTE: &[SymbolDefault] = symbol_defaults! {
    T = 64 "tokens",
    EXPERTS = 8 "experts",
    BLOCK_T = 4 "tokens per workgroup",
};

pub(super) const MOE_ROUTE_GROUPS: &[SymbolDefault] = symbol_defaults! {
    T = 64 "tokens",
    BLOCK_T = 4 "tokens per workgroup",
    GROUP = 4 "experts of a group",
    GROUPS = 4 "groups",
    EXPERTS = 16 "experts; follows from them",
};

pub(super) const MOE_ROUTE_GROUPS_DERIVED: &[Derived] =
    &[("EXPERTS", |of| of("GROUP").saturating_mul(of("GROUPS")))];

pub(super) const MOE_SORT: &[SymbolDefault] = symbol_defaults! {
    CHOICES = 128 "choices: tokens times experts of each",
    EXPERTS = 8 "experts",
    OTHERS = 8 "EXPERTS; follows from it",
    BLOCKS = 16 "blocks of rows",
    ROWS = 16 "rows of a block",
    PLACES = 256 "rows of all blocks; follows from them",
};

pub(super) const MOE_SORT_DERIVED: &[Derived] =
    &[("OTHERS", |of| of("EXPERTS")), ("PLACES", |of| of("BLOCKS").saturating_mul(of("ROWS")))];

pub(super) const MOE_PRODUCT: &[SymbolDefault] = symbol_defaults! {
    BLOCKS = 8 "blocks of rows",
    ROWS = 32 "rows of a block: a power of two",
    N = 128 "columns of the result",
    K = 128 "what is summed over",
    EXPERTS = 8 "experts",
    BLOCK_N = 64 "columns of the result per workgroup",
    BLOCK_K = 32 "K per iteration",
    WAVE_R = 16 "rows of a wave",
    WAVE_N = 32 "columns of a wave",
};

pub(super) const MOE_GATE_UP: &[SymbolDefault] = symbol_defaults! {
    T = 64 "tokens",
    BLOCKS = 8 "blocks of rows",
    ROWS = 32 "rows of a block: a power of two",
    N = 128 "columns of the result",
    K = 128 "what is summed over",
    EXPERTS = 8 "experts",
    BLOCK_N = 64 "columns of the result per workgroup",
    BLOCK_K = 32 "K per iteration",
    WAVE_R = 16 "rows of a wave",
    WAVE_N = 32 "columns of a wave",
};

pub(super) const MOE_PRODUCT_F8: &[SymbolDefault] = symbol_defaults! {
    BLOCKS = 4 "blocks of rows",
    ROWS = 32 "rows of a block: a power of two",
    K = 256 "what is summed over, 128 per iteration",
    EXPERTS = 8 "experts",
    N_BLOCKS = 2 "blocks of columns of the result",
    BLOCK_N = 128 "columns of a block, which a workgroup has",
    WAVE_R = 16 "rows of a wave",
    WAVE_N = 64 "columns of a wave",
};

pub(super) const MOE_COMBINE: &[SymbolDefault] = symbol_defaults! {
    T = 64 "tokens",
    N = 256 "columns of the result",
    PLACES = 256 "rows of all blocks",
    BLOCK_T = 4 "tokens per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

pub(super) const INT4: &[SymbolDefault] = symbol_defaults! {
    M = 4 "rows of A and C",
    N = 256 "columns of C",
    K = 2048 "what is summed over",
    WAVES = 4 "waves of a workgroup that share K",
    PART = 512 "K of each wave; follows from K and WAVES",
    HALFWORDS = 128 "a quarter of PART; follows from it",
    BLOCK_M = 16 "rows of C per workgroup",
    BLOCK_N = 16 "columns of C per workgroup",
};

pub(super) const INT4_PARTS: &[SymbolDefault] = symbol_defaults! {
    M = 4 "rows of A and C",
    N = 256 "columns of C",
    K = 1024 "what is summed over",
    SPLITS = 2 "parts of K",
    WAVES = 4 "waves of a workgroup that share K",
    PART = 128 "K of each wave; follows from K, SPLITS and WAVES",
    SPLIT = 512 "K of each workgroup; follows from them",
    HALFWORDS = 32 "a quarter of PART; follows from it",
    BLOCK_M = 16 "rows of C per workgroup",
    BLOCK_N = 16 "columns of C per workgroup",
};

pub(super) const INT4_DERIVED: &[Derived] =
    &[("PART", |of| part_of_wave(of("K"), of("WAVES"))), ("HALFWORDS", |of| of("PART") / 4)];

pub(super) const INT4_PARTS_DERIVED: &[Derived] = &[
    ("PART", |of| part_of_wave(of("K"), of("SPLITS").saturating_mul(of("WAVES")))),
    ("SPLIT", |of| of("PART").saturating_mul(of("WAVES"))),
    ("HALFWORDS", |of| of("PART") / 4),
];

pub(super) const MXFP4: &[SymbolDefault] = symbol_defaults! {
    M = 4 "rows of A and C",
    N = 256 "columns of C",
    K = 1024 "what is summed over",
    WAVES = 4 "waves of a workgroup that share K",
    PART = 256 "K of each wave; follows from K and WAVES",
    ELEMENTS = 256 "PART; follows from it",
    EIGHT = 8 "weights of a row that lie together",
    BLOCK_M = 16 "rows of C per workgroup",
    BLOCK_N = 16 "columns of C per workgroup",
    BLOCK_K = 256 "K per iteration",
};

pub(super) const MXFP4_DERIVED: &[Derived] =
    &[("PART", |of| part_of_wave(of("K"), of("WAVES"))), ("ELEMENTS", |of| of("PART"))];

pub(super) const ARRANGED_INT4: &[SymbolDefault] = symbol_defaults! {
    N = 256 "rows of weights",
    K = 1024 "columns of weights",
    HALFWORDS = 32 "halfwords of a block of 128 elements",
    BLOCK_N = 16 "rows per workgroup",
};

pub(super) const ARRANGED_MXFP4: &[SymbolDefault] = symbol_defaults! {
    N = 256 "rows of weights",
    K = 1024 "columns of weights",
    BLOCK_N = 16 "rows per workgroup",
    BLOCK_K = 256 "columns per workgroup",
};

pub(super) const CHAINED: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of A and D",
    L = 1024 "rows of B, columns of C",
    N = 64 "rows of C, columns of D",
    K = 64 "columns of A and B",
    BLOCK_M = 128 "rows of D per workgroup",
    BLOCK_N = 64 "columns of D per workgroup",
    BLOCK_L = 32 "rows of B per iteration",
    WAVE_K = 64 "K, rounded up to a power of two; follows from it",
};

pub(super) const CHAINED_DERIVED: &[Derived] = &[("WAVE_K", |of| {
    // No memory has more elements than this; no matrix instruction takes less of K.
    of("K").clamp(16, 1 << 40).unsigned_abs().next_power_of_two().cast_signed()
})];

pub(super) const ATTENTION: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    H = 4 "heads",
    M = 256 "queries",
    N = 256 "keys",
    D = 64 "elements of a head",
    BLOCK_M = 256 "queries per workgroup; follows from M and D",
    WAVE_M = 32 "queries per wave",
    BLOCK_N = 64 "keys per iteration; follows from D",
};

pub(super) const ATTENTION_TILE: &[Derived] = &[
    ("BLOCK_M", |of| {
        let most = if of("D") > 192 { 128 } else { 256 };
        of("M").clamp(32, most).unsigned_abs().next_power_of_two().cast_signed()
    }),
    ("BLOCK_N", |of| if of("D") > 128 { 32 } else { 64 }),
];

pub(super) const ATTENTION_GROUPED: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    KV = 2 "heads of keys and values",
    GROUP = 4 "heads of queries for each of them",
    H = 8 "heads of queries: KV * GROUP",
    M = 256 "queries",
    N = 512 "keys",
    D = 64 "elements of a head",
    BLOCK_M = 256 "queries per workgroup; follows from M and D",
    WAVE_M = 32 "queries per wave",
    BLOCK_N = 64 "keys per iteration; follows from D",
};

pub(super) const ATTENTION_GROUPED_DERIVED: &[Derived] =
    &[("H", |of| of("KV").saturating_mul(of("GROUP"))), ATTENTION_TILE[0], ATTENTION_TILE[1]];

pub(super) const ATTENTION_BACKWARD_ROWS: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    H = 4 "heads",
    M = 256 "queries",
    D = 64 "elements of a head",
};

pub(super) const ATTENTION_BACKWARD_QUERIES: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    H = 4 "heads",
    M = 256 "queries",
    N = 256 "keys",
    D = 64 "elements of a head",
    BLOCK_M = 128 "queries per workgroup",
    WAVE_M = 32 "queries per wave",
    BLOCK_N = 32 "keys per iteration",
};

pub(super) const ATTENTION_BACKWARD_KEYS: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    H = 4 "heads",
    M = 256 "queries",
    N = 256 "keys",
    D = 64 "elements of a head",
    BLOCK_N = 128 "keys per workgroup",
    WAVE_N = 32 "keys per wave",
    BLOCK_M = 32 "queries per iteration",
};

pub(super) const ATTENTION_BACKWARD_GROUPED: &[SymbolDefault] = symbol_defaults! {
    B = 1 "sequences",
    KV = 2 "heads of keys and values",
    GROUP = 2 "heads of queries for each of them",
    H = 4 "heads of queries: KV * GROUP",
    M = 256 "queries",
    N = 256 "keys",
    D = 64 "elements of a head",
    BLOCK_N = 128 "keys per workgroup",
    WAVE_N = 32 "keys per wave",
    BLOCK_M = 32 "queries per iteration",
};

pub(super) const ATTENTION_BACKWARD_SINKS: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    H = 4 "heads",
    M = 1000 "queries",
};

pub(super) const PAGED_DECODE: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    NEW = 1 "new tokens of each sequence",
    KV = 2 "heads of keys and values",
    GROUP = 8 "heads of queries for each of them",
    HQ = 16 "heads of queries; KV * GROUP",
    R = 8 "queries that share a head of keys; NEW * GROUP",
    D = 64 "elements of a head",
    PAGES = 128 "pages of the cache",
    PAGE = 32 "tokens of a page",
    MAX_PAGES = 24 "pages of a sequence at most",
    PARTS = 2 "parts of the keys of a sequence",
    KEYS = 268435456 "more keys than a sequence has",
    BLOCK_R = 16 "queries per workgroup; follows from R",
    WAVE_R = 16 "queries per wave; follows from R",
    WAVE_D = 64 "elements of a head per wave; follows from D",
};

pub(super) const PAGED_DECODE_DERIVED: &[Derived] = &[
    ("HQ", |of| of("KV").saturating_mul(of("GROUP"))),
    ("R", |of| of("NEW").saturating_mul(of("GROUP"))),
    ("BLOCK_R", |of| row_tile(of("R"))[0]),
    ("WAVE_R", |of| row_tile(of("R"))[1]),
    ("WAVE_D", |of| wave_dim(of("D"))),
];

pub(super) const PAGED_DECODE_COMBINE: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    NEW = 1 "new tokens of each sequence",
    KV = 2 "heads of keys and values",
    GROUP = 8 "heads of queries for each of them",
    HQ = 16 "heads of queries; KV * GROUP",
    R = 8 "queries that share a head of keys; NEW * GROUP",
    D = 64 "elements of a head",
    PARTS = 2 "parts of the keys of a sequence",
};

pub(super) const PAGED_APPEND: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    NEW = 5 "new tokens of each sequence",
    KV = 2 "heads of keys and values",
    D = 128 "elements of a head",
    PAGES = 64 "pages of the cache",
    PAGE = 16 "tokens of a page",
    MAX_PAGES = 12 "pages of a sequence at most",
};

pub(super) const LATENT_DECODE: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    NEW = 1 "new tokens of each sequence",
    KV = 1 "heads of keys",
    HQ = 16 "heads of queries",
    GROUP = 16 "heads of queries for each row of the cache; HQ",
    R = 16 "queries of a sequence; NEW * HQ",
    D = 192 "elements of a row of the cache",
    DV = 128 "elements of a value: the first ones of a row",
    DR = 64 "rotated elements, the last ones of a row; D - DV",
    PAGES = 128 "pages of the cache",
    PAGE = 32 "tokens of a page",
    MAX_PAGES = 48 "pages of a sequence at most",
    PARTS = 2 "parts of the keys of a sequence",
    KEYS = 268435456 "more keys than a sequence has",
    BLOCK_R = 16 "queries per workgroup; follows from R",
};

pub(super) const LATENT_DECODE_DERIVED: &[Derived] = &[
    ("GROUP", |of| of("HQ")),
    ("R", |of| of("NEW").saturating_mul(of("HQ"))),
    ("DR", |of| of("D").saturating_sub(of("DV"))),
    ("BLOCK_R", |of| latent_rows(of("R"))),
];

pub(super) const PAGED_EXTEND: &[SymbolDefault] = symbol_defaults! {
    B = 2 "sequences",
    NEW = 40 "the most new tokens of a sequence",
    KV = 2 "heads of keys and values",
    GROUP = 4 "heads of queries for each of them",
    HQ = 8 "heads of queries; KV * GROUP",
    R = 160 "queries that share a head of keys; NEW * GROUP",
    D = 64 "elements of a head",
    PAGES = 128 "pages of the cache",
    PAGE = 32 "tokens of a page",
    MAX_PAGES = 24 "pages of a sequence at most",
    PARTS = 1 "parts of the keys of a sequence: one",
    KEYS = 268435456 "more keys than a sequence has",
    BLOCK_R = 256 "queries per workgroup; follows from R",
    WAVE_R = 32 "queries per wave; follows from R",
    WAVE_D = 64 "elements of a head per wave; follows from D",
};
