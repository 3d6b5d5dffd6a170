//! The builder of mixtures of experts.

use std::panic::Location as Caller;

use super::axes::{DownResults, GateRows};
use super::products::ExpertProducts;
use super::routing::{ExpertGroups, Renormalised, RouterScores, Routing, SelectionBias};
use super::scaled_factors::ExpertScales;
use super::scaled_products::ScaledProducts;
use super::{combining, sorting};
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Builder of the kernels of a mixture of experts, for `T` tokens of which each has `TOPK` experts: with
/// `x` of shape `[T, K]`, an expert gives `(silu(x Wgᵀ) * (x Wuᵀ)) Wdᵀ`, and a token what its experts give,
/// times their weights. The kernels, in the order in which they run:
///
/// 1. [`MixtureOfExperts::route`]: of logits `[T, EXPERTS]` the experts of each token, `ids`, and their
///    `weights`, both `[T, TOPK]`, the best expert first
/// 2. [`MixtureOfExperts::sort`]: choices by expert in blocks of `ROWS` rows: for each row its choice, and
///    for each block its expert
/// 3. [`MixtureOfExperts::gate_up`]: the first product, which gathers the rows of tokens itself, as is best
///    for few of them; or [`super::super::gather`] and [`MixtureOfExperts::gate_up_gathered`]
/// 4. [`MixtureOfExperts::down`], and [`MixtureOfExperts::combine`], whose sums have the same bits in every
///    launch; or [`MixtureOfExperts::down_atomic`], which adds to the rows of tokens itself
///
/// Rows of an expert are filled up to whole blocks; a block that nobody needs has the expert -1, and costs no
/// product. [`MixtureOfExperts::blocks`] says how many blocks are enough.
///
/// # Scales
/// Tokens and matrices of narrow floats ([`MixtureOfExperts::inputs`]) have scales, which come after them as
/// `x_scale`, `h_scale` and `w_scale`. Hidden rows get theirs in the epilogue of the first product, so that
/// the second one takes `h` and `h_scale` as they are. Matrices have their columns in blocks, `w` is
/// `[EXPERTS, 2, N_BLOCKS, BLOCK_N, K]` (`[EXPERTS, N_BLOCKS, BLOCK_N, K]`), of which a workgroup takes
/// one; `h` and `y` are `[BLOCKS, ROWS, N_BLOCKS, BLOCK_N]`, and `y` is of bf16. `BLOCK_N` is 128.
///
/// Of f8e4m3fnuz (gfx942) and f8e4m3fn (gfx950) a row of tokens or hidden rows has a scale of f32 for each
/// 128 of K, which are an iteration, and a matrix one for each 128 x 128:
///
/// | scales | shape |
/// | --- | --- |
/// | `x_scale` of tokens | `[K/128, T]` |
/// | `x_scale` and `h_scale` of blocks | `[K/128, BLOCKS, ROWS]` |
/// | `w_scale` | `[EXPERTS, 2, N_BLOCKS, K/128]`, `[EXPERTS, N_BLOCKS, K/128]` |
/// | `h_scale` as it is written | `[N_BLOCKS, BLOCKS, ROWS]` |
///
/// Of f4e2m1, which is MXFP4 and multiplied by gfx950, rows and columns have one of f8e8m0 for each 32 of K,
/// and an iteration has `BLOCK_K`, such as 256. Here `N_GROUPS` is N / 256, rounded up:
///
/// | scales | shape |
/// | --- | --- |
/// | `x_scale` of tokens | `[K/256, T, 8]` |
/// | `x_scale` and `h_scale` of blocks | `[K/256, BLOCKS, ROWS, 8]` |
/// | `w_scale` | `[K/256, EXPERTS, 2, N_BLOCKS, BLOCK_N, 8]`, or without the 2 |
/// | `h_scale` as it is written | `[N_GROUPS, BLOCKS, ROWS, 8]` |
///
/// [`super::super::arrange_scales`] makes scales of 4-bit floats of rows of them: those of all matrices are
/// rows of one tensor. [`super::super::gather`] gathers rows of scales, too.
///
/// # Example
/// ```
/// use groundswell::kernels::MixtureOfExperts;
/// use groundswell::prelude::*;
///
/// let experts = MixtureOfExperts::new(8, 2).renormalised();
/// // 16 tokens choose 32 times, and each of 8 experts may leave 15 rows of its last block empty.
/// assert_eq!(experts.blocks(16, 16), 9);
///
/// let options = Options::new(Target::GFX942).set("T", 1).set("EXPERTS", 8).set("BLOCK_T", 4);
/// let route = experts.route()?.compile(&options)?;
/// let device = Device::open()?;
/// let logits = device.upload(&[0f32, 1.0, 0.0, 3.0, 0.0, 0.0, 3.0, 0.0])?;
/// let (ids, weights) = (device.upload(&[0i32; 2])?, device.upload(&[0f32; 2])?);
/// device.launch(&route).buffer(&logits).buffer(&ids).buffer(&weights).run()?;
/// assert_eq!(ids.download::<i32>()?, [3, 6]);
/// assert_eq!(weights.download::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct MixtureOfExperts {
    routing: Routing,
    inputs: DType,
    /// The caller who asked for the kernels.
    caller: &'static Caller<'static>,
}

impl MixtureOfExperts {
    /// `top_k` of `experts` experts for each token, of bf16, chosen and weighted by the softmax of all
    /// logits.
    #[track_caller]
    pub fn new(experts: u32, top_k: u32) -> MixtureOfExperts {
        let routing = Routing {
            experts,
            top_k,
            scores: RouterScores::Softmax,
            bias: None,
            groups: None,
            renormalised: None,
            scale: 1.0,
        };
        MixtureOfExperts { routing, inputs: Bf16, caller: Caller::caller() }
    }

    fn with(self, routing: Routing) -> MixtureOfExperts {
        MixtureOfExperts { routing, ..self }
    }

    /// Element type of tokens and of the experts' matrices: bf16, unless it is f16, or f8e4m3fnuz, f8e4m3fn
    /// or f4e2m1 with [scales](MixtureOfExperts#scales).
    #[must_use]
    pub fn inputs(self, dtype: DType) -> MixtureOfExperts {
        MixtureOfExperts { inputs: dtype, ..self }
    }

    /// The score of an expert is the sigmoid of its own logit.
    #[must_use]
    pub fn sigmoid(self) -> MixtureOfExperts {
        self.with(Routing { scores: RouterScores::Sigmoid, ..self.routing })
    }

    /// A bias is added to scores for the choice, and not to weights: `bias`, `[EXPERTS]` of f32, which comes
    /// after `logits`.
    #[must_use]
    pub fn bias(self) -> MixtureOfExperts {
        self.with(Routing { bias: Some(SelectionBias), ..self.routing })
    }

    /// Experts are in `groups` groups of neighbours, of which each token keeps the best `kept`. A group
    /// counts as its best expert, or with a bias as the sum of its best two.
    #[must_use]
    pub fn groups(self, groups: u32, kept: u32) -> MixtureOfExperts {
        self.with(Routing { groups: Some(ExpertGroups { groups, kept }), ..self.routing })
    }

    /// The weights of a token are divided by their sum (and 1e-20).
    #[must_use]
    pub fn renormalised(self) -> MixtureOfExperts {
        self.with(Routing { renormalised: Some(Renormalised), ..self.routing })
    }

    /// Weights are multiplied by this number.
    #[must_use]
    pub fn scale(self, scale: f64) -> MixtureOfExperts {
        self.with(Routing { scale, ..self.routing })
    }

    /// Blocks of `rows` rows that are enough for so many tokens, whichever experts they choose.
    #[must_use]
    pub fn blocks(&self, tokens: u32, rows: u32) -> u32 {
        let choices = u64::from(tokens) * u64::from(self.routing.top_k);
        let experts = u64::from(self.routing.experts).min(choices);
        let rows = u64::from(rows.max(1));
        u32::try_from((choices + experts * (rows - 1)) / rows).unwrap_or(u32::MAX)
    }

    /// Chooses experts: of f32 `logits`, `[T, EXPERTS]`, i32 `ids` and f32 `weights`, `[T, TOPK]`; of equal
    /// scores the first ones are chosen. With [`MixtureOfExperts::groups`] `GROUPS` and `GROUP` are the
    /// numbers of groups and of experts in each. A workgroup has `BLOCK_T` tokens. The reads are tagged
    /// `read_logits` and `read_bias`.
    ///
    /// # Errors
    /// More choices than experts, or than 32, or groups that do not divide them or have too few of them.
    pub fn route(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.routing.check().and_then(|()| self.routing.trace()))
    }

    /// Sorts choices by expert: of `ids`, `[CHOICES]` of i32, where choice `t * TOPK + j` is the j-th of
    /// token t, the `choice_of_place` of each row, `[PLACES]`, `place_of_choice`, `[CHOICES]`, and
    /// `expert_of_block`, `[BLOCKS]`, all of i32. `PLACES` is `BLOCKS * ROWS` and `OTHERS` is `EXPERTS`. The
    /// rows of an expert are in the order of choices; rows that nobody has are -1, as are places of numbers
    /// that are no expert, and experts of blocks that are not needed. Rows beyond `PLACES` are lost. The
    /// reads are tagged `read_ids`.
    ///
    /// # Errors
    /// None of its own; they are a `Result` as those of the other kernels.
    pub fn sort(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, sorting::trace())
    }

    /// The first product: `h[b, r] = silu(x[t] Wgᵀ) * (x[t] Wuᵀ)` for the token t of row r of block b: `x` is
    /// `[T, K]`, `w` `[EXPERTS, 2, N, K]`, gates before ups, `expert_of_block` `[BLOCKS]` and
    /// `choice_of_place` `[BLOCKS, ROWS]` of i32, and `h` `[BLOCKS, ROWS, N]`. Rows without a token become
    /// zeros. A workgroup has a block by `BLOCK_N` columns, a wave `WAVE_R` x `WAVE_N`, and an iteration
    /// `BLOCK_K` of K. The loop is tagged `k_loop`, the operations `read_expert`, `read_choices`, `read_x`,
    /// `read_w`, `mma_gate` and `mma_up`.
    ///
    /// # Errors
    /// Inputs of another dtype.
    pub fn gate_up(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.first(GateRows::OfTokens))
    }

    /// The same of rows that have been gathered: `x` is `[BLOCKS, ROWS, K]`, and goes through LDS; there is
    /// no `choice_of_place`.
    ///
    /// # Errors
    /// Those of [`MixtureOfExperts::gate_up`].
    pub fn gate_up_gathered(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.first(GateRows::Gathered))
    }

    /// The second product: `y[b, r] = h[b, r] Wdᵀ`: `h` is `[BLOCKS, ROWS, K]`, `w` `[EXPERTS, N, K]`,
    /// `expert_of_block` `[BLOCKS]`, and `y` `[BLOCKS, ROWS, N]`, as the first one otherwise.
    ///
    /// # Errors
    /// Those of [`MixtureOfExperts::gate_up`].
    pub fn down(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.second(DownResults::Rows))
    }

    /// The second product, weighted and added to the rows of tokens by atomic updates: after
    /// `expert_of_block` come `choice_of_place`, `[BLOCKS, ROWS]`, `weights`, `[T, TOPK]` of f32, and `out`,
    /// `[T, N]` of f32, which the caller sets to zero. The order of additions may differ from one launch to
    /// the next.
    ///
    /// # Errors
    /// Those of [`MixtureOfExperts::gate_up`].
    pub fn down_atomic(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.second(DownResults::Tokens))
    }

    /// `out[t] = sum over j of weights[t, j] * y[place_of_choice[t, j]]`, in the order of choices: `y` is
    /// `[PLACES, N]`, `place_of_choice` and `weights` are `[T, TOPK]`, and `out` is `[T, N]`; `y` and `out`
    /// are of the inputs' dtype, or of bf16 where inputs have scales. A place that is none, such as -1, adds
    /// nothing. A workgroup has `BLOCK_T` x `BLOCK_N` elements. The reads are tagged `read_places`,
    /// `read_weights` and `read_y`.
    ///
    /// # Errors
    /// Those of [`MixtureOfExperts::gate_up`].
    pub fn combine(&self) -> Result<Kernel, Diagnostic> {
        asked_at(
            self.caller,
            self.products().and_then(|products| {
                let rows = match products {
                    Products::Plain(plain) => plain.inputs,
                    Products::Scaled(_) => Bf16,
                };
                combining::trace(rows, self.routing.top_k)
            }),
        )
    }

    fn first(&self, from: GateRows) -> Result<Kernel, Diagnostic> {
        match self.products()? {
            Products::Plain(plain) => plain.gate_up(from),
            Products::Scaled(scaled) => scaled.gate_up(from),
        }
    }

    fn second(&self, results: DownResults) -> Result<Kernel, Diagnostic> {
        match self.products()? {
            Products::Plain(plain) => plain.down(results),
            Products::Scaled(scaled) => scaled.down(results),
        }
    }

    fn products(&self) -> Result<Products, Diagnostic> {
        self.routing.check()?;
        let top_k = self.routing.top_k;
        if let Some(scales) = ExpertScales::of(self.inputs) {
            return Ok(Products::Scaled(ScaledProducts { scales, top_k }));
        }
        match self.inputs {
            F16 | Bf16 => Ok(Products::Plain(ExpertProducts { inputs: self.inputs, top_k })),
            other => Err(Diagnostic::invalid(format!("experts of {other}")).help(
                "use tokens and matrices of bf16 or f16, or with scales of f8e4m3fnuz, f8e4m3fn or f4e2m1",
            )),
        }
    }
}

/// The products of experts by what their elements are.
enum Products {
    /// 16-bit floats.
    Plain(ExpertProducts),
    /// Narrow floats with scales.
    Scaled(ScaledProducts),
}
