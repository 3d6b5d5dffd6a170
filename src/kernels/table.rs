//! The ready kernels as a table: name, what it computes, symbols with defaults, and how it is made.

use std::panic::Location as Caller;

use super::gemm::base;
use super::table_symbols::*;
use super::{
    Attention, BackwardKernel, Conv2d, Elementwise, Form, Gemm, ImageLayout, LatentDecode, Norm,
    OperandShape, PagedDecode, PagedExtend, Rope, RopePairs, ScaleOrder, SortOrder, Waves, arrange_scales,
    block_float_gemm, block_scaled_gemm, chained_gemm, column_sum, copy, copy_strided, cumsum,
    cumsum_exclusive, gather, grouped_gemm, histogram, log_softmax, paged_append, permute, row_argmax,
    row_max, row_sum, scatter_add, softmax, sort, split_k, split_k_atomic, stream_k, topk, transpose,
};
use crate::prelude::*;

/// The choices about a ready kernel in addition to its symbols; open ones take the kernel's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// Element type of the inputs.
    pub dtype: Option<DType>,
    /// Element type of the output of a product.
    pub output: Option<DType>,
    /// Output tile of the matrix instruction, or the instruction.
    pub matrix: Option<MmaType>,
    /// Waves of a workgroup.
    pub waves: Option<Waves>,
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
    make: Make,
}

/// How a kernel is made from the dtype of its inputs, its matrix instruction or the shape of it, and its
/// waves.
enum Make {
    /// As it is.
    Kernel(fn(DType, MmaType, Waves) -> Result<Kernel, Diagnostic>),
    /// A product, whose output may have a dtype of its own.
    Product(fn(DType, MmaType, Waves) -> Gemm),
    /// Attention, whose output may have a dtype of its own and whose waves follow from symbols.
    Attention(fn(Attention) -> Attention),
    /// A kernel of the backward pass of attention, likewise.
    Backward(fn(Attention) -> Attention, BackwardKernel),
}

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
        let matrix = choices.matrix.unwrap_or_default();
        let kernel = match (&self.make, choices.output) {
            (Make::Kernel(_), Some(output)) => {
                let text = format!("{} has no output whose dtype is chosen, as {output}", self.name);
                let help = "leave the dtype of the output out, or choose that of the inputs";
                return Err(Diagnostic::invalid(text).help(help).at(Some(asked)));
            }
            (Make::Kernel(make), None) => make(dtype, matrix, waves),
            (Make::Product(make), None) => make(dtype, matrix, waves).kernel(),
            (Make::Product(make), Some(output)) => make(dtype, matrix, waves).output(output).kernel(),
            (Make::Attention(make), output) => {
                let attention = make(Attention::any_shape().inputs(dtype));
                let attention = output.map_or(attention.clone(), |output| attention.output(output));
                choices.matrix.map_or(attention.clone(), |matrix| attention.matrix(matrix)).kernel()
            }
            (Make::Backward(make, kernel), output) => {
                let backward = make(Attention::any_shape().inputs(dtype)).backward();
                let backward = output.map_or(backward.clone(), |output| backward.output(output));
                let chosen = choices.matrix.map_or(backward.clone(), |matrix| backward.matrix(matrix));
                chosen.kernel(*kernel)
            }
        };
        kernel
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

const SQUARE: Waves = Waves::new(2, 2);

const ALL: &[KernelEntry] = &[
    KernelEntry {
        name: "copy",
        description: "B = A",
        symbols: COPY,
        dtype: F32,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| copy(dtype, waves)),
    },
    KernelEntry {
        name: "copy_strided",
        description: "B = A, both parts of larger matrices",
        symbols: COPY_STRIDED,
        dtype: F32,
        waves: Some(Waves::new(4, 1)),
        derived: &[("LDA", |of| of("N")), ("LDB", |of| of("N"))],
        make: Make::Kernel(|dtype, _, waves| copy_strided(dtype, waves, 1)),
    },
    KernelEntry {
        name: "transpose",
        description: "B = Aᵀ",
        symbols: TRANSPOSE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| transpose(dtype, waves)),
    },
    KernelEntry {
        name: "gather",
        description: "out[i] = table[ids[i]], zeros where the table has no such row",
        symbols: GATHER,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| gather(dtype, waves)),
    },
    KernelEntry {
        name: "scatter_add",
        description: "table[ids[i]] += X[i], nothing where the table has no such row",
        symbols: SCATTER,
        dtype: F32,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| scatter_add(dtype, waves)),
    },
    KernelEntry {
        name: "histogram",
        description: "counts[X[i]] += 1, for i32 X",
        symbols: HISTOGRAM,
        dtype: I32,
        waves: None,
        derived: &[],
        make: Make::Kernel(|dtype, _, _| match dtype {
            I32 => histogram(),
            _ => Err(Diagnostic::invalid(format!("histogram counts i32, not {dtype}"))
                .help("leave the dtype out, or choose i32")),
        }),
    },
    KernelEntry {
        name: "permute",
        description: "B = A with dimensions 1 and 2 swapped, as heads and tokens",
        symbols: PERMUTE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[("OTHERS", |of| of("D0").saturating_mul(of("D2")))],
        make: Make::Kernel(|dtype, _, waves| permute(dtype, &[0, 2, 1, 3], waves)),
    },
    KernelEntry {
        name: "permute_reversed",
        description: "B = A with its four dimensions in the opposite order",
        symbols: PERMUTE,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[("OTHERS", |of| of("D1").saturating_mul(of("D2")))],
        make: Make::Kernel(|dtype, _, waves| permute(dtype, &[3, 2, 1, 0], waves)),
    },
    KernelEntry {
        name: "add",
        description: "OUT = A + B",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| {
            Elementwise::add(dtype, OperandShape::Matrix).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "add_columns",
        description: "OUT[i, j] = A[i, j] + B[j]",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| {
            Elementwise::add(dtype, OperandShape::Columns).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "mul",
        description: "OUT = A * B, element by element",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| {
            Elementwise::mul(dtype, OperandShape::Matrix).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "silu_mul",
        description: "OUT = silu(A) * B, the gate of SwiGLU",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| Elementwise::silu_mul(dtype).waves(waves).kernel()),
    },
    KernelEntry {
        name: "gelu",
        description: "OUT = gelu(A), by the error function",
        symbols: COPY,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| Elementwise::gelu(dtype).waves(waves).kernel()),
    },
    KernelEntry {
        name: "rope",
        description: "rotary embedding of pairs of halves, angles from tables",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: Make::Kernel(|dtype, _, _| Rope::new(dtype).kernel()),
    },
    KernelEntry {
        name: "rope_interleaved",
        description: "rotary embedding of neighbours, angles from tables",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: Make::Kernel(|dtype, _, _| Rope::new(dtype).pairs(RopePairs::Interleaved).kernel()),
    },
    KernelEntry {
        name: "rope_positions",
        description: "rotary embedding of pairs of halves, angles from positions",
        symbols: ROPE,
        dtype: F16,
        waves: None,
        derived: ROPE_DERIVED,
        make: Make::Kernel(|dtype, _, _| Rope::new(dtype).positions(1e4).kernel()),
    },
    KernelEntry {
        name: "softmax",
        description: "B = e^A / sum of e^A, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| softmax(dtype)),
    },
    KernelEntry {
        name: "log_softmax",
        description: "B = A - log(sum of e^A), over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| log_softmax(dtype)),
    },
    KernelEntry {
        name: "layer_norm",
        description: "Y = (X - mean) / sqrt(variance + 1e-5) * weight + bias, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| Norm::layer(dtype).kernel()),
    },
    KernelEntry {
        name: "layer_norm_residual",
        description: "layer_norm of X + residual, and the sum itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| Norm::layer(dtype).residual().kernel()),
    },
    KernelEntry {
        name: "rms_norm",
        description: "Y = X / sqrt(mean of X² + 1e-5) * weight, over each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| Norm::rms(dtype).kernel()),
    },
    KernelEntry {
        name: "rms_norm_residual",
        description: "rms_norm of X + residual, and the sum itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| Norm::rms(dtype).residual().kernel()),
    },
    KernelEntry {
        name: "row_sum",
        description: "the sum of each row, in f32",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| row_sum(dtype)),
    },
    KernelEntry {
        name: "row_max",
        description: "the largest element of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| row_max(dtype)),
    },
    KernelEntry {
        name: "row_argmax",
        description: "the place of the largest element of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| row_argmax(dtype)),
    },
    KernelEntry {
        name: "cumsum",
        description: "running sums of each row",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| cumsum(dtype)),
    },
    KernelEntry {
        name: "cumsum_exclusive",
        description: "running sums of each row, without the element itself",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| cumsum_exclusive(dtype)),
    },
    KernelEntry {
        name: "topk",
        description: "the eight largest elements of each row, and their places",
        symbols: ROWS,
        dtype: F16,
        waves: None,
        derived: ROW_TILE,
        make: Make::Kernel(|dtype, _, _| topk(dtype, 8)),
    },
    KernelEntry {
        name: "sort",
        description: "rows in ascending order",
        symbols: SORT,
        dtype: F16,
        waves: None,
        derived: &[],
        make: Make::Kernel(|dtype, _, _| sort(dtype, SortOrder::Ascending)),
    },
    KernelEntry {
        name: "column_sum",
        description: "the sum of each column, in f32",
        symbols: COLUMNS,
        dtype: F16,
        waves: None,
        derived: &[],
        make: Make::Kernel(|dtype, _, _| column_sum(dtype)),
    },
    KernelEntry {
        name: "gemm",
        description: "C = A Bᵀ",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(base),
    },
    KernelEntry {
        name: "gemm_ab",
        description: "C = A B",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AB)),
    },
    KernelEntry {
        name: "gemm_atb",
        description: "C = Aᵀ B",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AtB)),
    },
    KernelEntry {
        name: "gemm_atbt",
        description: "C = Aᵀ Bᵀ",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).form(Form::AtBt)),
    },
    KernelEntry {
        name: "gemm_i8_scaled",
        description: "C = A Bᵀ * scale + bias, for i8 A and B, with an f32 scale and bias for each column",
        symbols: GEMM,
        dtype: I8,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).channel_scales().bias()),
    },
    KernelEntry {
        name: "gemm_bias_relu",
        description: "C = max(A Bᵀ + bias, 0)",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).bias().relu()),
    },
    KernelEntry {
        name: "gemm_residual",
        description: "C = A Bᵀ + residual",
        symbols: GEMM,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).residual()),
    },
    KernelEntry {
        name: "batched_gemm",
        description: "C[i] = A[i] B[i]ᵀ for each matrix i of a batch",
        symbols: BATCHED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| base(dtype, matrix, waves).batched()),
    },
    KernelEntry {
        name: "persistent_gemm",
        description: "C = A Bᵀ by workgroups that share the tiles of C",
        symbols: PERSISTENT,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| {
            base(dtype, matrix, waves).persistent(Symbol::new("WORKGROUPS"))
        }),
    },
    KernelEntry {
        name: "split_k_gemm",
        description: "parts[s] = A Bᵀ over part s of K",
        symbols: SPLIT_K,
        dtype: F16,
        waves: Some(SQUARE),
        derived: SPLIT_K_DERIVED,
        make: Make::Kernel(|dtype, _, waves| Ok(split_k(dtype, waves)?.product)),
    },
    KernelEntry {
        name: "split_k_sum",
        description: "C = sum of parts[s], the second kernel of split_k_gemm",
        symbols: SPLIT_K_SUM,
        dtype: F16,
        waves: None,
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| Ok(split_k(dtype, waves)?.sum)),
    },
    KernelEntry {
        name: "split_k_gemm_atomic",
        description: "C += A Bᵀ, parts of K added by atomic updates",
        symbols: SPLIT_K,
        dtype: F16,
        waves: Some(SQUARE),
        derived: SPLIT_K_DERIVED,
        make: Make::Kernel(|dtype, _, waves| split_k_atomic(dtype, waves)),
    },
    KernelEntry {
        name: "stream_k_gemm",
        description: "parts of C = A Bᵀ, the same number of iterations by each workgroup",
        symbols: STREAM_K,
        dtype: F16,
        waves: Some(SQUARE),
        derived: STREAM_K_DERIVED,
        make: Make::Kernel(|dtype, _, waves| Ok(stream_k(dtype, waves)?.product)),
    },
    KernelEntry {
        name: "stream_k_sum",
        description: "C from its parts, the second kernel of stream_k_gemm",
        symbols: STREAM_K_SUM,
        dtype: F32,
        waves: None,
        derived: STREAM_K_SUM_DERIVED,
        make: Make::Kernel(|dtype, _, waves| Ok(stream_k(dtype, waves)?.sum)),
    },
    KernelEntry {
        name: "grouped_gemm",
        description: "C[i] = A[i] B[expert_of_block[i]]ᵀ for each block i of rows",
        symbols: GROUPED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Kernel(|dtype, _, waves| grouped_gemm(dtype, waves)),
    },
    KernelEntry {
        name: "gemm_f8_scaled",
        description: "C = A Bᵀ of 8-bit floats, as bf16, with a scale for each row and each column",
        symbols: GEMM,
        dtype: F8E4M3Fnuz,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Product(|dtype, matrix, waves| {
            base(dtype, matrix, waves).row_scales().channel_scales().output(Bf16)
        }),
    },
    KernelEntry {
        name: "gemm_f8_blocks",
        description: "C = A Bᵀ of 8-bit floats, with scales for blocks of 1 x 128 of A and 128 x 128 of B",
        symbols: BLOCK_SCALED,
        dtype: F8E4M3Fnuz,
        waves: Some(SQUARE),
        derived: BLOCK_SCALED_DERIVED,
        make: Make::Kernel(|dtype, _, waves| block_scaled_gemm(dtype, waves)),
    },
    KernelEntry {
        name: "gemm_mx",
        description: "C = A Bᵀ of 4-, 6- or 8-bit floats with a power of two for each 32 of K: MXFP4, MXFP6, MXFP8",
        symbols: BLOCK_FLOAT,
        dtype: F4E2M1,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Kernel(|dtype, mma, waves| {
            block_float_gemm([dtype; 2], ScaleOrder::SideBySide, mma, waves)
        }),
    },
    KernelEntry {
        name: "gemm_mx_w4",
        description: "the same of 8-bit, 6-bit or 4-bit A and 4-bit B: weights in MXFP4",
        symbols: BLOCK_FLOAT,
        dtype: F8E4M3Fn,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Kernel(|dtype, mma, waves| {
            block_float_gemm([dtype, F4E2M1], ScaleOrder::SideBySide, mma, waves)
        }),
    },
    KernelEntry {
        name: "gemm_mx_rows",
        description: "gemm_mx with rows of scales, as quantisers write them",
        symbols: BLOCK_FLOAT_ROWS,
        dtype: F4E2M1,
        waves: Some(SQUARE),
        derived: &[],
        make: Make::Kernel(|dtype, mma, waves| block_float_gemm([dtype; 2], ScaleOrder::Rows, mma, waves)),
    },
    KernelEntry {
        name: "arrange_scales",
        description: "the scales of gemm_mx in its order, of rows: b[k / 8, i, k % 8] = a[i, k]",
        symbols: ARRANGED_SCALES,
        dtype: F8E8M0,
        waves: Some(Waves::new(4, 1)),
        derived: &[],
        make: Make::Kernel(|_, _, waves| arrange_scales(waves)),
    },
    KernelEntry {
        name: "chained_gemm",
        description: "D = (A Bᵀ) Cᵀ, the first product in registers",
        symbols: CHAINED,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: CHAINED_DERIVED,
        make: Make::Kernel(|dtype, _, waves| chained_gemm(dtype, waves)),
    },
    KernelEntry {
        name: "attention",
        description: "O = softmax(Q Kᵀ / sqrt(D)) V for each head",
        symbols: ATTENTION,
        dtype: Bf16,
        waves: None,
        derived: ATTENTION_TILE,
        make: Make::Attention(|attention| attention),
    },
    KernelEntry {
        name: "attention_causal",
        description: "attention of queries to keys at their own place and before, and the log-sum-exp",
        symbols: ATTENTION,
        dtype: Bf16,
        waves: None,
        derived: ATTENTION_TILE,
        make: Make::Attention(|attention| attention.causal().log_sum_exp()),
    },
    KernelEntry {
        name: "attention_grouped",
        description: "attention whose heads of keys and values are shared by groups of heads of queries",
        symbols: ATTENTION_GROUPED,
        dtype: Bf16,
        waves: None,
        derived: ATTENTION_GROUPED_DERIVED,
        make: Make::Attention(Attention::grouped),
    },
    KernelEntry {
        name: "attention_backward_rows",
        description: "what the gradients of attention need of each row: its sum and that of dO O, negated",
        symbols: ATTENTION_BACKWARD_ROWS,
        dtype: Bf16,
        waves: None,
        derived: &[],
        make: Make::Backward(|attention| attention, BackwardKernel::Rows),
    },
    KernelEntry {
        name: "attention_backward_queries",
        description: "the gradient of the queries of attention",
        symbols: ATTENTION_BACKWARD_QUERIES,
        dtype: Bf16,
        waves: None,
        derived: &[],
        make: Make::Backward(|attention| attention, BackwardKernel::Queries),
    },
    KernelEntry {
        name: "attention_backward_keys",
        description: "the gradient of the keys of attention",
        symbols: ATTENTION_BACKWARD_KEYS,
        dtype: Bf16,
        waves: None,
        derived: &[],
        make: Make::Backward(|attention| attention, BackwardKernel::Keys),
    },
    KernelEntry {
        name: "attention_backward_values",
        description: "the gradient of the values of attention",
        symbols: ATTENTION_BACKWARD_KEYS,
        dtype: Bf16,
        waves: None,
        derived: &[],
        make: Make::Backward(|attention| attention, BackwardKernel::Values),
    },
    KernelEntry {
        name: "attention_backward_keys_and_values",
        description: "both gradients of attention whose heads of keys are shared by groups of heads",
        symbols: ATTENTION_BACKWARD_GROUPED,
        dtype: Bf16,
        waves: None,
        derived: &[("H", |of| of("KV").saturating_mul(of("GROUP")))],
        make: Make::Backward(Attention::grouped, BackwardKernel::KeysAndValues),
    },
    KernelEntry {
        name: "attention_backward_sinks",
        description: "the gradients of the logits of attention's sinks",
        symbols: ATTENTION_BACKWARD_SINKS,
        dtype: Bf16,
        waves: None,
        derived: &[],
        make: Make::Backward(Attention::sinks, BackwardKernel::Sinks),
    },
    KernelEntry {
        name: "paged_decode",
        description: "attention of new tokens over keys in pages, in parts: sums, maxima and weights",
        symbols: PAGED_DECODE,
        dtype: F16,
        waves: None,
        derived: PAGED_DECODE_DERIVED,
        make: Make::Kernel(|dtype, _, _| PagedDecode::any_shape().inputs(dtype).kernel()),
    },
    KernelEntry {
        name: "paged_decode_combine",
        description: "the parts of paged_decode joined, and the log-sum-exp",
        symbols: PAGED_DECODE_COMBINE,
        dtype: F16,
        waves: None,
        derived: &[PAGED_DECODE_DERIVED[0], PAGED_DECODE_DERIVED[1]],
        make: Make::Kernel(|dtype, _, _| PagedDecode::any_shape().inputs(dtype).log_sum_exp().combine()),
    },
    KernelEntry {
        name: "paged_append",
        description: "new keys and values into the pages of a cache",
        symbols: PAGED_APPEND,
        dtype: F16,
        waves: None,
        derived: &[],
        make: Make::Kernel(|dtype, _, _| paged_append(dtype, dtype)),
    },
    KernelEntry {
        name: "latent_decode",
        description: "paged_decode of heads that share rows of keys, whose beginnings are the values (MLA)",
        symbols: LATENT_DECODE,
        dtype: F16,
        waves: None,
        derived: LATENT_DECODE_DERIVED,
        make: Make::Kernel(|dtype, _, _| LatentDecode::any_shape().inputs(dtype).kernel()),
    },
    KernelEntry {
        name: "paged_extend",
        description: "attention of new tokens over keys in pages and over each other",
        symbols: PAGED_EXTEND,
        dtype: F16,
        waves: None,
        derived: PAGED_DECODE_DERIVED,
        make: Make::Kernel(|dtype, _, _| PagedExtend::any_shape().inputs(dtype).kernel()),
    },
    KernelEntry {
        name: "conv2d",
        description: "y = x * filters, images with channels last, stride 1, no padding",
        symbols: CONV2D,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_DERIVED,
        make: Make::Kernel(|dtype, matrix, waves| {
            Conv2d::new().inputs(dtype).matrix(matrix).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "conv2d_nchw",
        description: "y = x * filters, images with channels first, stride 1, no padding",
        symbols: CONV2D,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_DERIVED,
        make: Make::Kernel(|dtype, matrix, waves| {
            Conv2d::new().layout(ImageLayout::Nchw).inputs(dtype).matrix(matrix).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "conv2d_grouped",
        description: "conv2d of four groups of channels, each with filters of its own",
        symbols: CONV2D_GROUPED,
        dtype: F16,
        waves: Some(SQUARE),
        derived: CONV2D_GROUPED_DERIVED,
        make: Make::Kernel(|dtype, matrix, waves| {
            Conv2d::new().groups(4).inputs(dtype).matrix(matrix).waves(waves).kernel()
        }),
    },
    KernelEntry {
        name: "depthwise_conv2d",
        description: "each channel of y = that of x * its 3 x 3 filter, channels last, stride 1, no padding",
        symbols: DEPTHWISE,
        dtype: F16,
        waves: Some(Waves::new(4, 1)),
        derived: &[CONV2D_DERIVED[0], CONV2D_DERIVED[1], CONV2D_DERIVED[2]],
        make: Make::Kernel(|dtype, _, waves| Conv2d::new().inputs(dtype).waves(waves).depthwise([3, 3])),
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
