//! What an author chooses of the backward pass.

use std::panic::Location as Caller;

use super::super::choices::Attention;
use super::kernels::BackwardKernel;
use super::tiles::{GradientTile, HeadsInParts};
use crate::prelude::*;

/// Builder of the backward pass of attention ([`Attention::backward`]): a kernel for each [`BackwardKernel`],
/// with the heads, dtypes, layout, strides, masks and functions of scores of the forward pass.
///
/// - `do`, the gradient of the output, is `[B, H, M, DV]` of the inputs' dtype
/// - `dq` is `[B, H, M, D]`, `dk` is `[B, KV, N, D]` and `dv` is `[B, KV, N, DV]`, of the inputs' dtype
///   unless [`AttentionBackward::output`] says otherwise
/// - `log_sum_exp` is that of the forward pass, and o its output
///
/// All lie as the forward tensors do; strides of do are `DO_B` and so on. For packed sequences numbers of
/// rows are `[H, TOTAL_M]`, as `log_sum_exp` is. Arguments are in the order in which [`BackwardKernel`] has
/// them; then follow `cu_seqlens_q` and `cu_seqlens_k`, `scale`, what functions of scores bring, and then
/// masks, as in the forward pass, and the results last. Sums are f32 and in one order: every launch gives the
/// same bits. The sums of keys and values run over all heads of queries that share them. Rows without keys
/// have no part in any gradient, and a dQ of zero.
///
/// A function of scores is asked for its derivative ([`Attention::score_with_derivative`]); those that are
/// ready have theirs.
///
/// # Example
/// ```
/// use groundswell::kernels::{Attention, BackwardKernel};
/// use groundswell::prelude::*;
///
/// let forward = Attention::new(8, 64).kv_heads(2).causal().log_sum_exp();
/// let backward = forward.backward();
/// for kernel in backward.kernels(Target::GFX942) {
///     let executable = backward.compile(kernel, Target::GFX942)?;
///     let arguments = match kernel {
///         BackwardKernel::Rows => 3 + 2, // o, do, log_sum_exp; minus_log_sum_exp, minus_delta
///         BackwardKernel::Queries => 6 + 1,
///         _ => 6 + 2, // q, k, v, do, minus_log_sum_exp, minus_delta; dk, dv
///     };
///     let sizes = if kernel == BackwardKernel::Rows { 2 } else { 3 }; // B, M, N
///     assert_eq!(executable.parameters().len(), arguments + sizes);
/// }
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct AttentionBackward {
    pub(super) attention: Attention,
    pub(super) output: Option<DType>,
    pub(super) tile: Option<(GradientTile, &'static Caller<'static>)>,
    pub(super) caller: &'static Caller<'static>,
}

impl AttentionBackward {
    /// Element type of the gradients.
    pub(super) fn output_dtype(&self) -> DType {
        self.output.unwrap_or(self.attention.tensors.inputs)
    }

    /// Tile and matrix instruction of a kernel of products: those that were given, and suitable ones for the
    /// rest.
    pub(super) fn choice(&self, kernel: BackwardKernel) -> Option<(GradientTile, MmaType)> {
        if matches!(kernel, BackwardKernel::Rows | BackwardKernel::Sinks) {
            return None;
        }
        let attention = &self.attention;
        let parts = match (attention.head_parts().len(), attention.value_parts().len()) {
            (1, 1) => HeadsInParts::One,
            _ => HeadsInParts::Two,
        };
        let (tile, matrix) = GradientTile::suiting(kernel, attention.heads, parts, attention.spread.chip);
        let matrix = attention.spread.matrix.unwrap_or(matrix.into());
        Some((self.tile.map_or(tile, |(tile, _)| tile), matrix))
    }
}
