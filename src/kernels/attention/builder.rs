//! The builder of attention: what an author says, and the kernel that comes of it.

use std::panic::Location as Caller;
use std::rc::Rc;
use std::sync::Arc;

use crate::kernels::RopePairs;

use super::biases::BiasShape;
use super::choices::{
    Attention, AttentionLayout, AttentionScales, LogSumExp, Scale, Sinks, SoftmaxChoice, SpreadChoice,
    StrideMultiple, TensorChoice,
};
use super::heads::HeadSizes;
use super::places::{ScoreChoice, ScoreFunction, ScoreStep, SeenKeys};
use super::tiles::AttentionTile;
use super::{checks, forward};
use crate::prelude::*;

impl Attention {
    /// Attention of bf16 with `heads` heads of `head_dim` elements. Tile, waves and schedule are those that
    /// suit head and chip, unless they are chosen.
    #[track_caller]
    pub fn new(heads: u32, head_dim: u32) -> Attention {
        Attention::of(HeadSizes::new(heads, head_dim), Scale::Given(1.0 / f64::from(head_dim).sqrt()))
    }

    /// The same, where `H`, `D` and the tile are symbols, too, which the options of the compilation bind. The
    /// scale is computed from the size of `D`.
    #[track_caller]
    pub fn any_shape() -> Attention {
        Attention::of(HeadSizes::any(), Scale::OfSize)
    }

    #[track_caller]
    fn of(heads: HeadSizes, scale: Scale) -> Attention {
        Attention {
            heads,
            sizes: None,
            tensors: TensorChoice {
                inputs: Bf16,
                output: None,
                layout: AttentionLayout::default(),
                strides: None,
                scales: None,
            },
            scale,
            rotary: None,
            softmax: SoftmaxChoice { threshold: 0.0, sinks: None, log_sum_exp: None },
            scores: Vec::new(),
            masks: Vec::new(),
            spread: SpreadChoice { tile: None, matrix: None, schedule: None, chip: Target::USUAL },
            caller: Caller::caller(),
        }
    }

    /// Heads of keys and values, which `heads / kv_heads` heads of queries share each: grouped-query
    /// attention, or multi-query attention with one.
    #[must_use]
    pub fn kv_heads(mut self, kv_heads: u32) -> Attention {
        self.heads.share(kv_heads);
        self
    }

    /// Groups of `GROUP` heads of queries share the `KV` heads of keys and values: symbols, which the options
    /// bind.
    #[must_use]
    pub fn grouped(mut self) -> Attention {
        self.heads.share_any();
        self
    }

    /// Elements of a head of V and of the output.
    #[must_use]
    pub fn value_dim(mut self, value_dim: u32) -> Attention {
        self.heads.values(value_dim);
        self
    }

    /// Sequences of the batch, and queries and keys of each.
    #[must_use]
    pub fn sizes(
        mut self,
        batch: impl TryInto<i128>,
        queries: impl TryInto<i128>,
        keys: impl TryInto<i128>,
    ) -> Attention {
        // Only a u128 can fail to be an i128. An invalid size is rejected at compilation.
        let sizes = [batch.try_into().ok(), queries.try_into().ok(), keys.try_into().ok()];
        self.sizes = Some(sizes.map(|size| size.unwrap_or(i128::MAX)));
        self
    }

    /// Element type of Q, K and V: f16, bf16, or the 8-bit floats that the chip multiplies: f8e4m3fnuz on
    /// gfx942, f8e4m3fn on gfx950. Weights of 8 bits are lifted as far as the dtype goes.
    #[must_use]
    pub fn inputs(mut self, dtype: DType) -> Attention {
        self.tensors.inputs = dtype;
        self
    }

    /// Q, K and V have scales, of f32: an element is what is stored times its scale.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::{Attention, AttentionScales};
    /// use groundswell::prelude::*;
    ///
    /// let attention = Attention::new(8, 128).inputs(F8E4M3Fn).scales(AttentionScales::Block(128));
    /// let executable = attention.sizes(1, 1000, 1000).compile(Target::GFX950)?;
    /// assert_eq!(executable.parameters().len(), 7); // q, k, v, q_scale, k_scale, v_scale, o
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn scales(mut self, scales: AttentionScales) -> Attention {
        self.tensors.scales = Some(scales);
        self
    }

    /// Element type of the output; without this that of the inputs, and bf16 for 8-bit ones.
    #[must_use]
    pub fn output(mut self, dtype: DType) -> Attention {
        self.tensors.output = Some(dtype);
        self
    }

    /// How tensors lie in memory; [`Attention::packed`] is a layout, too.
    #[must_use]
    pub fn layout(mut self, layout: AttentionLayout) -> Attention {
        self.tensors.layout = layout;
        self
    }

    /// Sequences lie one after the other, each with lengths of its own: q is `[TOTAL_M, H, D]`, k and v are
    /// `[TOTAL_N, KV, D]` and `[TOTAL_N, KV, DV]`, o is `[TOTAL_M, H, DV]`, the log-sum-exp `[H, TOTAL_M]`.
    /// `cu_seqlens_q` and `cu_seqlens_k`, `[ENDS]` of i32, say where each of the `B` sequences begins, and
    /// last where the last one ends: `ENDS` is `B + 1`. `M` and `N` are the lengths of
    /// the longest sequence, or more. Sequences may be empty; nothing outside of them is read or written.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Attention;
    /// use groundswell::prelude::*;
    ///
    /// let executable = Attention::new(1, 16).inputs(F16).packed().compile(Target::GFX942)?;
    /// let device = Device::open()?;
    /// // Three sequences of 1, 0 and 2 tokens. Keys of zero weigh the same.
    /// let ends = device.upload(&[0i32, 1, 1, 3])?;
    /// let upload = |numbers: [f32; 48]| device.upload(&numbers.map(f16::from_f32));
    /// let (q, k) = (upload([0.0; 48])?, upload([0.0; 48])?);
    /// let v = upload(std::array::from_fn(|at| [1.0, 2.0, 4.0][at / 16]))?;
    /// let o = upload([7.0; 48])?;
    /// let launch = device.launch(&executable).buffer(&q).buffer(&k).buffer(&v).buffer(&ends).buffer(&ends);
    /// let sizes = [("B", 3), ("M", 2), ("N", 2), ("ENDS", 4), ("TOTAL_M", 3), ("TOTAL_N", 3)];
    /// sizes.into_iter().fold(launch.buffer(&o), |launch, (name, size)| launch.set(name, size)).run()?;
    /// let o = o.download::<f16>()?;
    /// assert_eq!([o[0], o[16], o[32]].map(f32::from), [1.0, 3.0, 3.0]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn packed(mut self) -> Attention {
        self.tensors.layout = AttentionLayout::Packed;
        self
    }

    /// Q, K, V and O are parts of larger tensors: `Q_B`, `Q_H` and `Q_M` are the elements from a sequence, a
    /// head and a query to the next; `K_B`, `K_H`, `K_N`, `V_B`, `V_H`, `V_N`, `O_B`, `O_H` and `O_M` are
    /// those of the others. The options of the compilation bind them or leave them open; all are multiples of
    /// `multiple`, 8 for the widest accesses of 16-bit elements. Packed sequences have none.
    #[must_use]
    pub fn strided(mut self, multiple: u32) -> Attention {
        self.tensors.strides = Some(StrideMultiple(multiple));
        self
    }

    /// Scores are products of queries and keys times this positive number; without it `1 / sqrt(D)`.
    #[must_use]
    pub fn scale(mut self, scale: f64) -> Attention {
        self.scale = Scale::Given(scale);
        self
    }

    /// The scale is an argument of the kernel, `scale`, a positive f32.
    #[must_use]
    pub fn scale_argument(mut self) -> Attention {
        self.scale = Scale::Argument;
        self
    }

    /// Turns pairs of elements of queries and keys by the angles of their positions, as
    /// [`Rope`](crate::kernels::Rope) does, before they are multiplied: `cos` and `sin` are
    /// `[POSITIONS, D/2]` of f32. The position of a key is its place, that of a query its place among the
    /// keys, where the last query stands at the last key; positions that the tables do not have make zeros.
    /// Every wave turns each tile of keys anew: for long sequences it is faster to turn the keys once, by a
    /// kernel of their own or as they come into a cache.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::{Attention, RopePairs};
    /// use groundswell::prelude::*;
    ///
    /// let attention = Attention::new(8, 128).rope(RopePairs::Halves).sizes(1, 100, 200);
    /// let options = attention.options(Target::GFX942).set("POSITIONS", 4096);
    /// assert_eq!(attention.kernel()?.compile(&options)?.parameters().len(), 6); // q, k, v, cos, sin, o
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn rope(mut self, pairs: RopePairs) -> Attention {
        self.rotary = Some(pairs);
        self
    }

    /// Writes the natural logarithm of the sum of each row's powers to `log_sum_exp`, `[B, H, M]` of f32: a
    /// backward pass needs it, and partial results are joined by it.
    #[must_use]
    pub fn log_sum_exp(mut self) -> Attention {
        self.softmax.log_sum_exp = Some(LogSumExp);
        self
    }

    /// The maximum that powers are taken from follows the scores only where they exceed it by more than
    /// `threshold`, in powers of two: fewer tiles change the scale of what has been summed up. Weights are
    /// then as large as `2^threshold`, which the inputs' dtype has to hold. 0, the default, is the maximum
    /// itself.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Attention {
        self.softmax.threshold = threshold;
        self
    }

    /// Each head has a logit that joins the sum of every row, as a key with a value of zero would: `sinks`,
    /// `[H]` of f32. The log-sum-exp contains it.
    #[must_use]
    pub fn sinks(mut self) -> Attention {
        self.softmax.sinks = Some(Sinks);
        self
    }

    /// Adds a function of scores: of the score, which has been scaled and is f32, and of the places of its
    /// query and its key, as i32. Functions follow one another in the order in which they are added. The
    /// head is `w.self_index("H")`, the sequence `w.self_index("B")`.
    #[must_use]
    pub fn score(
        self,
        of: impl Fn(&Tracer, Value, Value, Value) -> Value + Clone + Send + Sync + 'static,
    ) -> Attention {
        self.score_from(move |_| of.clone())
    }

    /// [`Attention::score`] of a function that reads memories: `prepare` declares them, before the loop over
    /// keys, and gives the function.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Attention;
    /// use groundswell::prelude::*;
    ///
    /// // Each key has a number that is added to all of its scores.
    /// let weighted = Attention::new(4, 64).sizes(1, 100, 100).score_from(|w| {
    ///     let importance = w.memory("importance", [Symbol::new("N")], Global, F32);
    ///     move |w, score, _, _| score + w.read(importance)
    /// });
    /// assert_eq!(weighted.compile(Target::GFX942)?.parameters().len(), 5); // q, k, v, importance, o
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn score_from<F>(self, prepare: impl Fn(&Tracer) -> F + Send + Sync + 'static) -> Attention
    where
        F: Fn(&Tracer, Value, Value, Value) -> Value + 'static,
    {
        self.chosen_score(ScoreChoice::Opaque(Arc::new(move |w| {
            let of = prepare(w);
            Box::new(move |w, score, at| at.with_heads(score, |score| of(w, score, at.query, at.key)))
        })))
    }

    /// [`Attention::score`] of a function that gives the score and its derivative, by the score that it is
    /// given: what a [backward pass](Attention::backward) needs.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::{Attention, BackwardKernel};
    /// use groundswell::prelude::*;
    ///
    /// let squares = Attention::new(4, 64).sizes(1, 100, 100);
    /// let squares = squares.score_with_derivative(|_, score, _, _| (score * score, score * 2.0));
    /// squares.compile(Target::GFX942)?;
    /// squares.backward().compile(BackwardKernel::Queries, Target::GFX942)?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn score_with_derivative(
        self,
        of: impl Fn(&Tracer, Value, Value, Value) -> (Value, Value) + Clone + Send + Sync + 'static,
    ) -> Attention {
        self.score_with_derivative_from(move |_| of.clone())
    }

    /// [`Attention::score_with_derivative`] of a function that reads memories, which `prepare` declares
    /// before the loop.
    #[must_use]
    pub fn score_with_derivative_from<F>(
        self,
        prepare: impl Fn(&Tracer) -> F + Send + Sync + 'static,
    ) -> Attention
    where
        F: Fn(&Tracer, Value, Value, Value) -> (Value, Value) + 'static,
    {
        self.score_step(move |w| {
            let of = Rc::new(prepare(w));
            let derivative = Rc::clone(&of);
            ScoreStep {
                function: Box::new(move |w, score, at| {
                    at.with_heads(score, |score| of(w, score, at.query, at.key).0)
                }),
                derivative: Some(Box::new(move |w, score, at| {
                    at.with_heads(score, |score| derivative(w, score, at.query, at.key).1)
                })),
            }
        })
    }

    fn chosen_score(mut self, choice: ScoreChoice) -> Attention {
        self.scores.push(choice);
        self
    }

    /// Adds a function of scores whose derivative is known.
    pub(super) fn score_step(self, step: impl Fn(&Tracer) -> ScoreStep + Send + Sync + 'static) -> Attention {
        self.chosen_score(ScoreChoice::Differentiable(Arc::new(step)))
    }

    /// Adds a bias.
    pub(super) fn score_bias(
        self,
        shape: BiasShape,
        step: impl Fn(&Tracer) -> ScoreFunction + Send + Sync + 'static,
    ) -> Attention {
        self.chosen_score(ScoreChoice::Bias(shape, Arc::new(step)))
    }

    /// Adds a function of scores that adds something to them.
    pub(super) fn score_shift(
        self,
        step: impl Fn(&Tracer) -> ScoreFunction + Send + Sync + 'static,
    ) -> Attention {
        self.chosen_score(ScoreChoice::Shift(Arc::new(step)))
    }

    /// Adds a mask: the query at one place sees the key at another one where the function, and every other
    /// mask, holds.
    #[must_use]
    pub fn mask(
        self,
        sees: impl Fn(&Tracer, Value, Value) -> Value + Clone + Send + Sync + 'static,
    ) -> Attention {
        self.mask_from(move |_| sees.clone())
    }

    /// [`Attention::mask`] of a function that reads memories, which `prepare` declares before the loop.
    #[must_use]
    pub fn mask_from<F>(self, prepare: impl Fn(&Tracer) -> F + Send + Sync + 'static) -> Attention
    where
        F: Fn(&Tracer, Value, Value) -> Value + 'static,
    {
        self.mask_step(move |w| {
            let sees = prepare(w);
            Box::new(move |w, at| at.seen_with_heads(w, sees(w, at.query, at.key)))
        })
    }

    pub(super) fn mask_step(
        mut self,
        step: impl Fn(&Tracer) -> SeenKeys + Send + Sync + 'static,
    ) -> Attention {
        self.masks.push(Arc::new(step));
        self
    }

    /// Queries of a workgroup and of a wave, and keys per iteration.
    #[must_use]
    #[track_caller]
    pub fn tile(mut self, tile: AttentionTile) -> Attention {
        self.spread.tile = Some((tile, Caller::caller()));
        self
    }

    /// Output tile of the matrix instruction, or the instruction.
    #[must_use]
    pub fn matrix(mut self, matrix: impl Into<MmaType>) -> Attention {
        self.spread.matrix = Some(matrix.into());
        self
    }

    /// How the loop over keys is scheduled; without this by what takes the fewest clocks.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Attention {
        self.spread.schedule = Some(schedule);
        self
    }

    /// Tile and matrix instruction, unless they are given, are those that suit this chip
    /// ([`Attention::compile`] says so itself).
    #[must_use]
    pub fn chosen_for(mut self, chip: impl Into<TargetId>) -> Attention {
        self.spread.chip = chip.into().target();
        self
    }

    /// Options that bind the heads and the tile, and the sizes that are known, with the schedule. They still
    /// have to bind the others, or to leave them open.
    pub fn options(&self, target: impl Into<TargetId>) -> Options {
        let options = self.options_of_sizes(target.into());
        let by = self.spread.tile.map_or(SetBy::Default, |(_, caller)| SetBy::Call(caller));
        let bound = self.choice().0.bound();
        bound.into_iter().fold(options, |options, (name, size)| options.set_by(name, size, by.clone()))
    }

    /// The same without a tile.
    pub(super) fn options_of_sizes(&self, target: TargetId) -> Options {
        let mut options =
            Options::new(target).schedule(self.spread.schedule.clone().unwrap_or(Schedule::Automatic));
        let by = SetBy::Call(self.caller);
        for (name, size) in self.heads.bound().into_iter().chain(self.parts_bound()) {
            options = options.set_by(name, size, by.clone());
        }
        for (size, name) in self.sizes.into_iter().flatten().zip(["B", "M", "N"]) {
            options = options.set_by(name, size, by.clone());
        }
        if let (Some(AttentionScales::Block(size)), Some([.., keys])) = (self.tensors.scales, self.sizes) {
            let blocks = keys.max(0).unsigned_abs().div_ceil(u128::from(size.max(1))).cast_signed();
            options = options.set_by("KEY_BLOCKS", blocks, by.clone());
        }
        if let (AttentionLayout::Packed, Some([batch, ..])) = (self.tensors.layout, self.sizes) {
            options = options.set_by("ENDS", batch.saturating_add(1), by);
        }
        options
    }

    /// Compiles the kernel with tile, matrix instruction and schedule that suit the chip. Sizes that
    /// [`Attention::sizes`] does not say are left open until the launch.
    ///
    /// # Errors
    /// Those of [`Attention::kernel`], and of its compilation.
    pub fn compile(&self, target: impl Into<TargetId>) -> Result<Executable, Diagnostic> {
        let target = target.into();
        let attention = self.clone().chosen_for(target);
        let options = attention.options(target);
        let options = attention.open_sizes().into_iter().fold(options, Options::dynamic);
        attention.kernel()?.compile(&options)
    }

    /// Symbols that [`Attention::compile`] leaves open: sizes and strides that nothing binds.
    fn open_sizes(&self) -> Vec<Symbol> {
        let mut open: Vec<Symbol> = self.rotary.map(|_| Symbol::new("POSITIONS")).into_iter().collect();
        if self.sizes.is_none() {
            open.extend(symbols(["B", "M", "N"]));
        }
        if self.sizes.is_none() && matches!(self.tensors.scales, Some(AttentionScales::Block(_))) {
            open.push(Symbol::new("KEY_BLOCKS"));
        }
        if self.tensors.layout == AttentionLayout::Packed {
            open.extend(self.sizes.is_none().then(|| Symbol::new("ENDS")));
            open.extend(symbols(["TOTAL_M", "TOTAL_N"]));
        } else if self.tensors.strides.is_some() {
            open.extend(symbols(["Q_B", "Q_H", "Q_M", "K_B", "K_H", "K_N"]));
            open.extend(symbols(["V_B", "V_H", "V_N", "O_B", "O_H", "O_M"]));
        }
        open
    }

    /// Traces the kernel. Sizes and tile are symbols ([`Attention::options`] binds them).
    ///
    /// # Errors
    /// Heads that are none or that do not divide into groups, inputs that are not multiplied, a threshold
    /// that they do not hold, a scale that is not positive, or a fault of a score or mask.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        let asked = Some(Location::from(self.caller));
        match checks::check(self).and_then(|()| forward::trace(self)) {
            Ok(kernel) => Ok(kernel.told_at(asked)),
            Err(fault) if fault.location.is_none() => Err(fault.at(asked)),
            Err(fault) => Err(fault),
        }
    }
}
