//! The ready kernels as a table: name, what it computes, symbols with defaults, and how it is made.

use std::panic::Location as Caller;

use super::{Form, Gemm, MatrixShape, Waves, copy, gather, transpose};
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
    /// Waves of a workgroup, unless chosen.
    pub waves: Waves,
    make: fn(DType, MatrixShape, Waves) -> Result<Kernel, Diagnostic>,
}

impl KernelEntry {
    /// Makes the kernel.
    ///
    /// # Errors
    /// Choices that do not fit the kernel.
    #[track_caller]
    pub fn kernel(&self, choices: &Choices) -> Result<Kernel, Diagnostic> {
        let asked = Location::from(Caller::caller());
        let dtype = choices.dtype.unwrap_or(self.dtype);
        (self.make)(dtype, choices.matrix.unwrap_or_default(), choices.waves.unwrap_or(self.waves))
            .map(|kernel| {
                let kernel = match choices.waves {
                    Some(waves) => waves.told_in(kernel, "chosen here", Some(&asked)),
                    None => self.waves.told_in(kernel, "the default", None),
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

const GEMM: &[SymbolDefault] = symbol_defaults! {
    M = 512 "rows of A and C",
    N = 512 "columns of C",
    K = 512 "what is summed over",
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

const SQUARE: Waves = Waves::new(2, 2);

const ALL: &[KernelEntry] = &[
    KernelEntry {
        name: "copy",
        description: "B = A",
        symbols: COPY,
        dtype: F32,
        waves: Waves::new(4, 1),
        make: |dtype, _, waves| copy(dtype, waves),
    },
    KernelEntry {
        name: "transpose",
        description: "B = Aᵀ",
        symbols: TRANSPOSE,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, _, waves| transpose(dtype, waves),
    },
    KernelEntry {
        name: "gather",
        description: "out[i] = table[ids[i]], zeros where the table has no such row",
        symbols: GATHER,
        dtype: F16,
        waves: Waves::new(4, 1),
        make: |dtype, _, waves| gather(dtype, waves),
    },
    KernelEntry {
        name: "gemm",
        description: "C = A Bᵀ",
        symbols: GEMM,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, matrix, waves| base(dtype, matrix, waves).kernel(),
    },
    KernelEntry {
        name: "gemm_ab",
        description: "C = A B",
        symbols: GEMM,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AB).kernel(),
    },
    KernelEntry {
        name: "gemm_bias_relu",
        description: "C = max(A Bᵀ + bias, 0)",
        symbols: GEMM,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, matrix, waves| base(dtype, matrix, waves).bias().relu().kernel(),
    },
    KernelEntry {
        name: "gemm_residual",
        description: "C = A Bᵀ + residual",
        symbols: GEMM,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, matrix, waves| base(dtype, matrix, waves).residual().kernel(),
    },
    KernelEntry {
        name: "batched_gemm",
        description: "C[i] = A[i] B[i]ᵀ for each matrix i of a batch",
        symbols: BATCHED,
        dtype: F16,
        waves: SQUARE,
        make: |dtype, matrix, waves| base(dtype, matrix, waves).batched().kernel(),
    },
];

fn base(dtype: DType, matrix: MatrixShape, waves: Waves) -> Gemm {
    Gemm::any_shape().inputs(dtype).matrix(matrix).waves(waves)
}

/// All ready kernels.
pub fn list() -> &'static [KernelEntry] {
    ALL
}

/// The ready kernel of that name.
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    ALL.iter().find(|entry| entry.name == name)
}
