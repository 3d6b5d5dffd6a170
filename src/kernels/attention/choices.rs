//! What an author chooses of attention.

use std::panic::Location as Caller;

use super::biases::BiasShape;
use super::heads::HeadSizes;
use super::places::{PreparedStep, ScoreChoice, SeenKeys};
use super::tiles::AttentionTile;
use crate::kernels::RopePairs;
use crate::prelude::*;

/// How the tensors of attention lie in memory. Sequences are outermost and the elements of a head innermost
/// in each.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum AttentionLayout {
    /// `[B, H, M, D]`: the tokens of a head side by side.
    #[default]
    Bhsd,
    /// `[B, M, H, D]`: the heads of a token side by side.
    Bshd,
    /// `[TOTAL_M, H, D]`: the tokens of all sequences one after the other ([`Attention::packed`]).
    Packed,
}

/// The number of elements that all strides of tensors are multiples of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct StrideMultiple(pub(super) u32);

/// Which elements of a tensor have a scale in common.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum AttentionScales {
    /// All: `q_scale`, `k_scale` and `v_scale` are `[1]`.
    Tensor,
    /// Those of a head of a sequence: `q_scale` is `[B, H]`, `k_scale` and `v_scale` are `[B, KV]`.
    Head,
    /// So many keys of a head, and all queries of one: `q_scale` is `[B, H]`, `k_scale` and `v_scale` are
    /// `[B, KV, KEY_BLOCKS]`, where `KEY_BLOCKS` is as many as `N` keys have blocks.
    Block(u32),
}

/// The factor of products of queries and keys.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Scale {
    /// A number.
    Given(f64),
    /// `1 / sqrt(D)` where the size of `D` is a symbol.
    OfSize,
    /// An argument of the kernel.
    Argument,
}

/// That the logarithms of the sums are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LogSumExp;

/// That each head has a logit that takes part in the sums.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sinks;

/// The variant of the softmax.
#[derive(Copy, Clone, Debug)]
pub(super) struct SoftmaxChoice {
    /// By how much, in powers of two, scores may exceed the maximum that the powers are taken from.
    pub(super) threshold: f64,
    pub(super) sinks: Option<Sinks>,
    pub(super) log_sum_exp: Option<LogSumExp>,
}

/// The tensors of queries, keys, values and output.
#[derive(Copy, Clone, Debug)]
pub(super) struct TensorChoice {
    pub(super) inputs: DType,
    pub(super) output: Option<DType>,
    pub(super) layout: AttentionLayout,
    pub(super) strides: Option<StrideMultiple>,
    pub(super) scales: Option<AttentionScales>,
}

/// How the kernel is spread over the machine, as far as it is chosen.
#[derive(Clone, Debug)]
pub(super) struct SpreadChoice {
    pub(super) tile: Option<(AttentionTile, &'static Caller<'static>)>,
    pub(super) matrix: Option<MmaType>,
    pub(super) schedule: Option<Schedule>,
    /// The chip that the tile is chosen for.
    pub(super) chip: Target,
}

/// Builder of attention: `o = softmax(scale * q kᵀ) v`, for each head of each sequence of a batch.
///
/// - `q` is `[B, H, M, D]`: `H` heads of `D` elements for each of `M` queries
/// - `k` is `[B, KV, N, D]` and `v` is `[B, KV, N, DV]`, for `N` keys; `KV` is `H` and `DV` is `D` unless
///   [`Attention::kv_heads`] and [`Attention::value_dim`] say otherwise
/// - `o` is `[B, H, M, DV]`
///
/// Arguments are q, k and v; `cu_seqlens_q` and `cu_seqlens_k`; the scales; `scale`; what functions of scores
/// bring, and then masks; `cos` and `sin`; `sinks`; o and `log_sum_exp`: as many of them as are chosen. Sums
/// and the softmax are f32; the weights are rounded to the inputs' dtype before
/// they are multiplied with V. A row without keys, because there are none or because all are masked, is 0,
/// and its log-sum-exp minus infinity.
///
/// A workgroup has `BLOCK_M` queries of a head and takes `BLOCK_N` keys per iteration, which go through LDS;
/// a wave has `WAVE_M` of its queries. `B`, `M` and `N` are symbols that the options of the compilation bind
/// or leave open, unless [`Attention::sizes`] says them. The loop is tagged `key_loop`, the operations
/// `read_q`, `read_k`, `read_v`, `scores` and `values`.
///
/// # Example
/// ```
/// use groundswell::kernels::Attention;
/// use groundswell::prelude::*;
///
/// // 32 heads of queries for 8 of keys, of 128 elements, with any number of sequences, queries and keys.
/// let attention = Attention::new(32, 128).kv_heads(8).causal().log_sum_exp();
/// let executable = attention.compile(Target::GFX942)?;
/// assert_eq!(executable.parameters().len(), 5 + 3); // q, k, v, o, log_sum_exp, and B, M, N
/// # Ok::<(), Diagnostic>(())
/// ```
///
/// Scores and masks of the author's own are traced like any kernel, and may bring memories:
/// ```
/// use groundswell::kernels::Attention;
/// use groundswell::prelude::*;
///
/// // The first 16 keys are seen by every query, others by those that come after them.
/// let prefix = Attention::new(4, 64)
///     .score(|_, score, _, _| (score / 30.0).tanh() * 30.0)
///     .mask(|_, query, key| key.less(16) | key.less_equal(query))
///     .sizes(1, 100, 100);
/// prefix.compile(Target::GFX942)?;
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct Attention {
    pub(super) heads: HeadSizes,
    /// Sequences, queries and keys, unless they are left to the options.
    pub(super) sizes: Option<[i128; 3]>,
    pub(super) tensors: TensorChoice,
    pub(super) scale: Scale,
    /// Which elements of a head are turned together, if queries and keys are turned.
    pub(super) rotary: Option<RopePairs>,
    pub(super) softmax: SoftmaxChoice,
    pub(super) scores: Vec<ScoreChoice>,
    pub(super) masks: Vec<PreparedStep<SeenKeys>>,
    pub(super) spread: SpreadChoice,
    /// The caller who asked for the kernel.
    pub(super) caller: &'static Caller<'static>,
}

impl Attention {
    /// The number of the step that adds a bias, among functions of scores, and the shape of that.
    pub(super) fn bias_step(&self) -> Option<(usize, BiasShape)> {
        self.scores.iter().enumerate().find_map(|(number, choice)| match choice {
            ScoreChoice::Bias(shape, _) => Some((number, *shape)),
            _ => None,
        })
    }

    /// Tile and matrix instruction: those that were given, and suitable ones for the rest.
    pub(super) fn choice(&self) -> (AttentionTile, MmaType) {
        let (tile, matrix) = match self.rotary {
            None => AttentionTile::suiting(self.heads, self.spread.chip),
            Some(_) => AttentionTile::of_turned(self.heads),
        };
        (self.spread.tile.map_or(tile, |(tile, _)| tile), self.spread.matrix.unwrap_or(matrix.into()))
    }
}
