//! Functions of scores and masks that are ready.

use super::biases::BiasShape;
use super::choices::Attention;
use super::heads::AttentionDims;
use super::places::{HeadsOfScores, ScorePlace, ScoreStep};
use crate::prelude::*;

/// Which key stands where a query stands, if there are not as many of one as of the other.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Diagonal {
    /// The first query stands at the first key.
    TopLeft,
    /// The last query stands at the last key, as in the continuation of a text whose keys are all there.
    #[default]
    BottomRight,
}

impl ScorePlace {
    /// The place of the query among the keys.
    fn among_keys(self, w: &Tracer, diagonal: Diagonal) -> Value {
        match diagonal {
            Diagonal::TopLeft => self.query,
            Diagonal::BottomRight => self.query + self.sequence.more_keys(w, self.axes),
        }
    }
}

impl Attention {
    /// Mask: queries see the key at their own place and those before it. The last query stands at the last
    /// key.
    #[must_use]
    pub fn causal(self) -> Attention {
        self.causal_along(Diagonal::BottomRight)
    }

    /// [`Attention::causal`] along a diagonal.
    #[must_use]
    pub fn causal_along(self, diagonal: Diagonal) -> Attention {
        self.mask_step(move |_| Box::new(move |w, at| at.key.less_equal(at.among_keys(w, diagonal))))
    }

    /// Mask: queries see as many keys to the left of their own place as `left` says, to the right as `right`
    /// says, and that at their own place. A number or a symbol, which the options of the compilation bind or
    /// leave open until the launch. The last query stands at the last key.
    ///
    /// # Example
    /// A query sees its own key and the 127 before it:
    /// ```
    /// use groundswell::kernels::Attention;
    /// use groundswell::prelude::*;
    ///
    /// let sliding = Attention::new(8, 64).window(127, 0).sizes(1, 1000, 1000);
    /// sliding.compile(Target::GFX942)?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn window(self, left: impl Into<SymExpr>, right: impl Into<SymExpr>) -> Attention {
        self.window_along(Diagonal::BottomRight, left, right)
    }

    /// [`Attention::window`] along a diagonal.
    #[must_use]
    pub fn window_along(
        self,
        diagonal: Diagonal,
        left: impl Into<SymExpr>,
        right: impl Into<SymExpr>,
    ) -> Attention {
        let (left, right) = (left.into(), right.into());
        self.mask_step(move |w| {
            let left = w.apply_expr(left.clone());
            Box::new(move |w, at| at.key.greater_equal(at.among_keys(w, diagonal) - left))
        })
        .mask_step(move |w| {
            let right = w.apply_expr(right.clone());
            Box::new(move |w, at| at.key.less_equal(at.among_keys(w, diagonal) + right))
        })
    }

    /// Function of scores: adds `bias`, of the inputs' dtype and of a shape that may be broadcast.
    #[must_use]
    pub fn bias(self, shape: BiasShape) -> Attention {
        let dtype = self.tensors.inputs;
        let axes @ AttentionDims { batch, queries, keys, .. } = AttentionDims::of(self.heads);
        self.score_bias(shape, move |w| {
            let bias = shape.declared(w, axes, ("bias", dtype));
            Box::new(move |w, score, at| {
                let own = match (at.heads, shape) {
                    (HeadsOfScores::Walked(head), BiasShape::Own) => {
                        w.read_at(bias, (batch, head, queries, keys), [batch, queries, keys])
                    }
                    (HeadsOfScores::Walked(head), BiasShape::OfHeads) => {
                        w.read_at(bias, (head, queries, keys), [queries, keys])
                    }
                    _ => w.read(bias),
                };
                score + own.tag("read_bias").cast(F32)
            })
        })
    }

    /// Function of scores: subtracts the distance of query and key times the head's slope, of `slopes`, `[H]`
    /// of f32 (ALiBi). The last query stands at the last key.
    #[must_use]
    pub fn alibi(self) -> Attention {
        self.alibi_along(Diagonal::BottomRight)
    }

    /// [`Attention::alibi`] along a diagonal.
    #[must_use]
    pub fn alibi_along(self, diagonal: Diagonal) -> Attention {
        let AttentionDims { heads, queries, keys, .. } = AttentionDims::of(self.heads);
        self.score_shift(move |w| {
            let slopes = w.memory("slopes", [heads], Global, F32);
            Box::new(move |w, score, at| {
                let distance = (at.among_keys(w, diagonal) - at.key).abs().cast(F32);
                score
                    - match at.heads {
                        HeadsOfScores::Along => {
                            let slope = w.read(slopes).tag("read_slopes");
                            distance.broadcast([heads, keys, queries]) * slope
                        }
                        HeadsOfScores::Walked(head) => {
                            distance * w.read_at(slopes, [head], []).tag("read_slopes")
                        }
                    }
            })
        })
    }

    /// Function of scores: `cap * tanh(score / cap)`, which stays between `-cap` and `cap`.
    #[must_use]
    pub fn soft_cap(self, cap: f64) -> Attention {
        self.score_step(move |_| ScoreStep {
            function: Box::new(move |_, score, _| (score * (1.0 / cap)).tanh() * cap),
            derivative: Some(Box::new(move |_, score, _| {
                let part = (score * (1.0 / cap)).tanh();
                -(part * part) + 1.0
            })),
        })
    }
}
