//! The ready kernels as a table: name, what it computes, symbols with defaults, and how it is made.

use std::panic::Location as Caller;

use super::gemm::base;
use super::split_k::part_of;
use super::{
    Conv2d, Elementwise, Form, ImageLayout, MatrixShape, Norm, OperandShape, Rope, RopePairs, RowTile, Waves,
    block_scaled_gemm, chained_gemm, column_sum, copy, cumsum, cumsum_exclusive, gather, grouped_gemm,
    histogram, log_softmax, permute, row_argmax, row_max, row_sum, scatter_add, softmax, split_k,
    split_k_atomic, topk, transpose,
};
use crate::prelude::*;

/// The choices about a ready kernel in addition to its symbols; open ones take the kernel's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// Element type of the inputs.
    pub dtype: Option<DType>,
    /// Output tile of the matrix instruction.
    pub matrix: Option<MatrixShape>,
    /// Waves of a workgroup.
    pub waves: Option<Waves>,
}

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

/// A row of the table.
pub struct KernelEntry {
    /// Name in the program.
    pub name: &'static str,
    /// What it computes.
    pub description: &'static str,
    /// All symbols that must be bound.
    pub symbols: &'static [SymbolDefault],
    /// Element type of the inputs, unless chosen.
    pub dtype: DType,
    /// Waves of a workgroup, unless chosen; none where symbols say them.
    pub waves: Option<Waves>,
    /// Symbols whose defaults follow from those before them.
    derived: &'static [Derived],
    make: fn(DType, MatrixShape, Waves) -> Result<Kernel, Diagnostic>,
}

/// The name of a symbol, and its default for the values of the symbols before it.
type Derived = (&'static str, fn(&dyn Fn(&str) -> i64) -> i64);

impl KernelEntry {
    /// The values of all symbols where `given` has those that were chosen: open ones have their defaults,
    /// which may follow from the others, as the size of an output does.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::find;
    /// let conv = find("conv2d").expect("a ready kernel");
    /// let values = conv.values(&|name| (name == "H").then_some(12));
    /// assert!(values.contains(&("HO", 10)));
    /// ```
    pub fn values(&self, given: &dyn Fn(&str) -> Option<i64>) -> Vec<(&'static str, i64)> {
        let mut values: Vec<(&'static str, i64)> = Vec::with_capacity(self.symbols.len());
        for symbol in self.symbols {
            let before = |name: &str| values.iter().find(|value| value.0 == name).map_or(0, |value| value.1);
            let derived = self.derived.iter().find(|derived| derived.0 == symbol.name);
            let default = derived.map_or(symbol.value, |(_, of)| of(&before));
            values.push((symbol.name, given(symbol.name).unwrap_or(default)));
        }
        values
    }

    /// Makes the kernel.
    ///
    /// # Errors
    /// Choices that do not fit the kernel.
    #[track_caller]
    pub fn kernel(&self, choices: &Choices) -> Result<Kernel, Diagnostic> {
        let asked = Location::from(Caller::caller());
        let dtype = choices.dtype.unwrap_or(self.dtype);
        if choices.waves.is_some() && self.waves.is_none() {
            let text = format!("the waves of {} are not chosen by their number", self.name);
            let help =
                "set WAVE_M and WAVE_N, the rows and columns of one wave, as far as the kernel has them";
            return Err(Diagnostic::invalid(text).help(help).at(Some(asked)));
        }
        let waves = choices.waves.or(self.waves).unwrap_or(Waves::new(1, 1));
        (self.make)(dtype, choices.matrix.unwrap_or_default(), waves)
            .map(|kernel| {
                let kernel = match (choices.waves, self.waves) {
                    (Some(waves), _) => waves.told_in(kernel, "chosen here", Some(&asked)),
                    (None, Some(waves)) => waves.told_in(kernel, "the default", None),
                    (None, None) => kernel,
                };
                kernel.told_at(Some(asked.clone()))
            })
            .map_err(|fault| fault.at(Some(asked)))
    }
}

macro_rules! symbol_defaults {
    ($($name:ident = $value:literal $meaning:literal,)*) => {
        &[$(SymbolDefault { name: stringify!($name), value: $value, meaning: $meaning }),*]
    };
}

const COPY: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

const TRANSPOSE: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of A",
    N = 1024 "columns of A",
    BLOCK_M = 64 "rows of A per workgroup",
    BLOCK_N = 64 "columns of A per workgroup",
};

const GATHER: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of the result",
    N = 1024 "columns of the table",
    ROWS = 4096 "rows of the table",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

const SCATTER: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of X",
    N = 1024 "columns of the table",
    ROWS = 4096 "rows of the table",
    BLOCK_M = 16 "rows per workgroup",
    BLOCK_N = 256 "columns per workgroup",
};

const HISTOGRAM: &[SymbolDefault] = symbol_defaults! {
    N = 65536 "numbers",
    BINS = 256 "bins",
    BLOCK_N = 1024 "numbers per workgroup",
    WAVE_N = 256 "numbers per wave",
};

const PERMUTE: &[SymbolDefault] = symbol_defaults! {
    D0 = 4 "the first dimension of A",
    D1 = 512 "the second dimension of A",
    D2 = 16 "the third dimension of A",
    D3 = 128 "the last dimension of A",
    OTHERS = 64 "combinations of dimensions without tiles; follows from them",
    BLOCK_X = 64 "elements of D3 per workgroup",
    BLOCK_Y = 64 "elements of the other tiled dimension per workgroup",
};

const ROPE: &[SymbolDefault] = symbol_defaults! {
    T = 1024 "tokens",
    HEADS = 32 "heads",
    PAIRS = 64 "half of the elements of a head",
    BLOCK_T = 4 "tokens per workgroup",
    BLOCK_H = 8 "heads per workgroup",
    WAVE_P = 64 "PAIRS, rounded up to a power of two; follows from it",
};

const ROPE_DERIVED: &[Derived] = &[("WAVE_P", |of| {
    // No memory has more elements than this.
    let pairs = of("PAIRS").clamp(1, 1 << 40);
    pairs.unsigned_abs().next_power_of_two().cast_signed()
})];

const ROWS: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 4 "rows per workgroup; follows from N",
    WAVE_M = 1 "rows per wave; follows from N",
    WAVE_N = 1024 "columns per wave; follows from N",
};

const ROW_TILE: &[Derived] = &[
    ("BLOCK_M", |value| RowTile::of(value("N")).rows),
    ("WAVE_M", |value| RowTile::of(value("N")).wave_rows),
    ("WAVE_N", |value| RowTile::of(value("N")).wave_columns),
];

const COLUMNS: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows",
    N = 1024 "columns",
    BLOCK_M = 512 "rows per iteration",
    BLOCK_N = 64 "columns per workgroup",
    WAVE_M = 64 "rows per wave",
};

const GEMM: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 512 "what is summed over",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

const PERSISTENT: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 512 "what is summed over",
    WORKGROUPS = 304 "the most workgroups: the compute units of an MI300X",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

const BATCHED: &[SymbolDefault] = symbol_defaults! {
    B = 4 "matrices",
    M = 256 "rows of A and C",
    N = 256 "columns of C",
    K = 256 "what is summed over",
    BLOCK_M = 128 "rows of C per workgroup",
    BLOCK_N = 128 "columns of C per workgroup",
    BLOCK_K = 32 "K per iteration",
};

const SPLIT_K: &[SymbolDefault] = symbol_defaults! {
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

const SPLIT_K_DERIVED: &[Derived] =
    &[("PART", |of| part_of(of("K"), of("SPLITS"), of("BLOCK_K"))), ("PART_STRIDE", |of| of("PART"))];

const SPLIT_K_SUM: &[SymbolDefault] = symbol_defaults! {
    M = 64 "rows of C",
    N = 256 "columns of C",
    SPLITS = 8 "parts",
    BLOCK_M = 1 "rows of C per workgroup",
    BLOCK_N = 1024 "columns of C per workgroup",
    BLOCK_S = 8 "parts per iteration",
};

const GROUPED: &[SymbolDefault] = symbol_defaults! {
    BLOCKS = 8 "blocks of rows of A",
    ROWS = 64 "rows of a block",
    N = 256 "columns of C",
    K = 512 "what is summed over",
    EXPERTS = 4 "matrices B",
    BLOCK_N = 64 "columns of C per workgroup",
    BLOCK_K = 64 "K per iteration",
};

const CONV2D: &[SymbolDefault] = symbol_defaults! {
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
    BLOCK_K = 32 "K per iteration",
};

/// Saturating, since sizes may be anything.
const CONV2D_DERIVED: &[Derived] = &[
    ("HO", |of| of("H").saturating_sub(of("HF")).saturating_add(1)),
    ("WO", |of| of("W").saturating_sub(of("WF")).saturating_add(1)),
    ("M", |of| of("N").saturating_mul(of("HO")).saturating_mul(of("WO"))),
    ("K", |of| of("HF").saturating_mul(of("WF")).saturating_mul(of("C"))),
];

const CONV2D_GROUPED: &[SymbolDefault] = symbol_defaults! {
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
    BLOCK_K = 32 "K per iteration",
};

const CONV2D_GROUPED_DERIVED: &[Derived] = &[
    CONV2D_DERIVED[0],
    CONV2D_DERIVED[1],
    CONV2D_DERIVED[2],
    ("K", |of| of("HF").saturating_mul(of("WF")).saturating_mul(of("C") / 4)),
    ("NFG", |of| of("NF") / 4),
];

const DEPTHWISE: &[SymbolDefault] = symbol_defaults! {
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

const BLOCK_SCALED: &[SymbolDefault] = symbol_defaults! {
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

const BLOCK_SCALED_DERIVED: &[Derived] = &[
    ("BLOCKS", |of| {
        of("K").max(1).unsigned_abs().div_ceil(of("BLOCK_K").max(1).unsigned_abs()).cast_signed()
    }),
    ("ROWS", |of| of("N").max(1).unsigned_abs().div_ceil(of("SCALE_N").max(1).unsigned_abs()).cast_signed()),
];

const CHAINED: &[SymbolDefault] = symbol_defaults! {
    M = 1024 "rows of A and D",
    L = 1024 "rows of B, columns of C",
    N = 64 "rows of C, columns of D",
    K = 64 "columns of A and B",
    BLOCK_M = 128 "rows of D per workgroup",
    BLOCK_N = 64 "columns of D per workgroup",
    BLOCK_L = 32 "rows of B per iteration",
    WAVE_K = 64 "K, rounded up to a power of two; follows from it",
};

const CHAINED_DERIVED: &[Derived] = &[("WAVE_K", |of| {
    // No memory has more elements than this; no matrix instruction takes less of K.
    of("K").clamp(16, 1 << 40).unsigned_abs().next_power_of_two().cast_signed()
})];

const SQUARE: Waves = Waves::new(2, 2);

const ALL: &[KernelEntry] = &[
    KernelEntry {
        name: "copy",
        description: "B = A",
        symbols: COPY,
        dtype: F32,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| copy(dtype, waves),
    },
    KernelEntry {
        name: "transpose",
        description: "B = Aᵀ",
        symbols: TRANSPOSE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, _, waves| transpose(dtype, waves),
    },
    KernelEntry {
        name: "gather",
        description: "out[i] = table[ids[i]], zeros where the table has no such row",
        symbols: GATHER,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| gather(dtype, waves),
    },
    KernelEntry {
        name: "scatter_add",
        description: "table[ids[i]] += X[i], nothing where the table has no such row",
        symbols: SCATTER,
        dtype: F32,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| scatter_add(dtype, waves),
    },
    KernelEntry {
        name: "histogram",
        description: "counts[X[i]] += 1, for i32 X",
        symbols: HISTOGRAM,
        dtype: I32,
        waves: None,
        derived: &[],
        make: |dtype, _, _| match dtype {
            I32 => histogram(),
            _ => Err(Diagnostic::invalid(format!("histogram counts i32, not {dtype}"))
                .help("leave the dtype out, or choose i32")),
        },
    },
    KernelEntry {
        name: "permute",
        description: "B = A with dimensions 1 and 2 swapped, as heads and tokens",
        symbols: PERMUTE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[("OTHERS", |of| of("D0").saturating_mul(of("D2")))],
        make: |dtype, _, waves| permute(dtype, &[0, 2, 1, 3], waves),
    },
    KernelEntry {
        name: "permute_reversed",
        description: "B = A with its four dimensions in the opposite order",
        symbols: PERMUTE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[("OTHERS", |of| of("D1").saturating_mul(of("D2")))],
        make: |dtype, _, waves| permute(dtype, &[3, 2, 1, 0], waves),
    },
    KernelEntry {
        name: "add",
        description: "OUT = A + B",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| Elementwise::add(dtype, OperandShape::Matrix).waves(waves).kernel(),
    },
    KernelEntry {
        name: "add_columns",
        description: "OUT[i, j] = A[i, j] + B[j]",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| Elementwise::add(dtype, OperandShape::Columns).waves(waves).kernel(),
    },
    KernelEntry {
        name: "mul",
        description: "OUT = A * B, element by element",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| Elementwise::mul(dtype, OperandShape::Matrix).waves(waves).kernel(),
    },
    KernelEntry {
        name: "silu_mul",
        description: "OUT = silu(A) * B, the gate of SwiGLU",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| Elementwise::silu_mul(dtype).waves(waves).kernel(),
    },
    KernelEntry {
        name: "gelu",
        description: "OUT = gelu(A), by the error function",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: |dtype, _, waves| Elementwise::gelu(dtype).waves(waves).kernel(),
    },
    KernelEntry {
        name: "rope",
        description: "rotary embedding of pairs of halves, angles from tables",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: |dtype, _, _| Rope::new(dtype).kernel(),
    },
    KernelEntry {
        name: "rope_interleaved",
        description: "rotary embedding of neighbours, angles from tables",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: |dtype, _, _| Rope::new(dtype).pairs(RopePairs::Interleaved).kernel(),
    },
    KernelEntry {
        name: "rope_positions",
        description: "rotary embedding of pairs of halves, angles from positions",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: |dtype, _, _| Rope::new(dtype).positions(1e4).kernel(),
    },
    KernelEntry {
        name: "softmax",
        description: "B = e^A / sum of e^A, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| softmax(dtype),
    },
    KernelEntry {
        name: "log_softmax",
        description: "B = A - log(sum of e^A), over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| log_softmax(dtype),
    },
    KernelEntry {
        name: "layer_norm",
        description: "Y = (X - mean) / sqrt(variance + 1e-5) * weight + bias, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| Norm::layer(dtype).kernel(),
    },
    KernelEntry {
        name: "layer_norm_residual",
        description: "layer_norm of X + residual, and the sum itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| Norm::layer(dtype).residual().kernel(),
    },
    KernelEntry {
        name: "rms_norm",
        description: "Y = X / sqrt(mean of X² + 1e-5) * weight, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| Norm::rms(dtype).kernel(),
    },
    KernelEntry {
        name: "rms_norm_residual",
        description: "rms_norm of X + residual, and the sum itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| Norm::rms(dtype).residual().kernel(),
    },
    KernelEntry {
        name: "row_sum",
        description: "the sum of each row, in f32",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| row_sum(dtype),
    },
    KernelEntry {
        name: "row_max",
        description: "the largest element of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| row_max(dtype),
    },
    KernelEntry {
        name: "row_argmax",
        description: "the place of the largest element of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| row_argmax(dtype),
    },
    KernelEntry {
        name: "cumsum",
        description: "running sums of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| cumsum(dtype),
    },
    KernelEntry {
        name: "cumsum_exclusive",
        description: "running sums of each row, without the element itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| cumsum_exclusive(dtype),
    },
    KernelEntry {
        name: "topk",
        description: "the eight largest elements of each row, and their places",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: |dtype, _, _| topk(dtype, 8),
    },
    KernelEntry {
        name: "column_sum",
        description: "the sum of each column, in f32",
        symbols: COLUMNS,
        dtype: F16,
        waves: None,
        derived: &[],
        make: |dtype, _, _| column_sum(dtype),
    },
    KernelEntry {
        name: "gemm",
        description: "C = A Bᵀ",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).kernel(),
    },
    KernelEntry {
        name: "gemm_ab",
        description: "C = A B",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AB).kernel(),
    },
    KernelEntry {
        name: "gemm_atb",
        description: "C = Aᵀ B",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AtB).kernel(),
    },
    KernelEntry {
        name: "gemm_atbt",
        description: "C = Aᵀ Bᵀ",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AtBt).kernel(),
    },
    KernelEntry {
        name: "gemm_i8_scaled",
        description: "C = A Bᵀ * scale + bias, for i8 A and B, with an f32 scale and bias for each column",
        symbols: GEMM,
        dtype: I8,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).channel_scales().bias().kernel(),
    },
    KernelEntry {
        name: "gemm_bias_relu",
        description: "C = max(A Bᵀ + bias, 0)",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).bias().relu().kernel(),
    },
    KernelEntry {
        name: "gemm_residual",
        description: "C = A Bᵀ + residual",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).residual().kernel(),
    },
    KernelEntry {
        name: "batched_gemm",
        description: "C[i] = A[i] B[i]ᵀ for each matrix i of a batch",
        symbols: BATCHED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| base(dtype, matrix, waves).batched().kernel(),
    },
    KernelEntry {
        name: "persistent_gemm",
        description: "C = A Bᵀ by workgroups that share the tiles of C, in groups of 8 rows",
        symbols: PERSISTENT,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| {
            base(dtype, matrix, waves).grouped(8).persistent(Symbol::new("WORKGROUPS")).kernel()
        },
    },
    KernelEntry {
        name: "split_k_gemm",
        description: "parts[s] = A Bᵀ over part s of K",
        symbols: SPLIT_K,
        dtype: F16,
        waves: Some(SQUARE),
        derived: SPLIT_K_DERIVED,
        make: |dtype, _, waves| Ok(split_k(dtype, waves)?.product),
    },
    KernelEntry {
        name: "split_k_sum",
        description: "C = sum of parts[s], the second kernel of split_k_gemm",
        symbols: SPLIT_K_SUM,
        dtype: F16,
        waves: None,
        derived: &[],
        make: |dtype, _, waves| Ok(split_k(dtype, waves)?.sum),
    },
    KernelEntry {
        name: "split_k_gemm_atomic",
        description: "C += A Bᵀ, parts of K added by atomic updates",
        symbols: SPLIT_K,
        dtype: F16,
        waves: Some(SQUARE),
        derived: SPLIT_K_DERIVED,
        make: |dtype, _, waves| split_k_atomic(dtype, waves),
    },
    KernelEntry {
        name: "grouped_gemm",
        description: "C[i] = A[i] B[expert_of_block[i]]ᵀ for each block i of rows",
        symbols: GROUPED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, _, waves| grouped_gemm(dtype, waves),
    },
    KernelEntry {
        name: "gemm_f8_scaled",
        description: "C = A Bᵀ of 8-bit floats, as bf16, with a scale for each row and each column",
        symbols: GEMM,
        dtype: F8E4M3Fnuz,
        waves: Some(SQUARE),
        derived: &[],
        make: |dtype, matrix, waves| {
            base(dtype, matrix, waves).row_scales().channel_scales().output(Bf16).kernel()
        },
    },
    KernelEntry {
        name: "gemm_f8_blocks",
        description: "C = A Bᵀ of 8-bit floats, with scales for blocks of 1 x 128 of A and 128 x 128 of B",
        symbols: BLOCK_SCALED,
        dtype: F8E4M3Fnuz,
        waves: Some(SQUARE),
        derived: BLOCK_SCALED_DERIVED,
        make: |dtype, _, waves| block_scaled_gemm(dtype, waves),
    },
    KernelEntry {
        name: "chained_gemm",
        description: "D = (A Bᵀ) Cᵀ, the first product in registers",
        symbols: CHAINED,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: CHAINED_DERIVED,
        make: |dtype, _, waves| chained_gemm(dtype, waves),
    },
    KernelEntry {
        name: "conv2d",
        description: "y = x * filters, images with channels last, stride 1, no padding",
        symbols: CONV2D,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_DERIVED,
        make: |dtype, matrix, waves| Conv2d::new().inputs(dtype).matrix(matrix).waves(waves).kernel(),
    },
    KernelEntry {
        name: "conv2d_nchw",
        description: "y = x * filters, images with channels first, stride 1, no padding",
        symbols: CONV2D,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_DERIVED,
        make: |dtype, matrix, waves| {
            Conv2d::new().layout(ImageLayout::Nchw).inputs(dtype).matrix(matrix).waves(waves).kernel()
        },
    },
    KernelEntry {
        name: "conv2d_grouped",
        description: "conv2d of four groups of channels, each with filters of its own",
        symbols: CONV2D_GROUPED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_GROUPED_DERIVED,
        make: |dtype, matrix, waves| {
            Conv2d::new().groups(4).inputs(dtype).matrix(matrix).waves(waves).kernel()
        },
    },
    KernelEntry {
        name: "depthwise_conv2d",
        description: "each channel of y = that of x * its 3 x 3 filter, channels last, stride 1, no padding",
        symbols: DEPTHWISE,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[CONV2D_DERIVED[0], CONV2D_DERIVED[1], CONV2D_DERIVED[2]],
        make: |dtype, _, waves| Conv2d::new().inputs(dtype).waves(waves).depthwise([3, 3]),
    },
];

/// All ready kernels.
pub fn list() -> &'static [KernelEntry] {
    ALL
}

/// The ready kernel of that name.
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    ALL.iter().find(|entry| entry.name == name)
}
