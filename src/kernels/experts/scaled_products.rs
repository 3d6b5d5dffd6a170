//! Products of experts whose elements are narrow floats with scales. Rows of the first one's result get
//! scales of their own in its epilogue: of the largest element of a block, for which a workgroup has the
//! block as a whole.
//!
//! Sums are `[N, ROWS]`, so that a lane has neighbouring columns of a row: a row's scale is one register of
//! it, and results are stored several at a time.

use super::axes::{DownResults, ExpertAxes, GateRows};
use super::scaled_factors::{ExpertScales, ScaledColumns, ScaledRows};
use crate::prelude::*;

/// What both products share.
#[derive(Copy, Clone)]
pub(super) struct ScaledProducts {
    pub(super) scales: ExpertScales,
    pub(super) top_k: u32,
}

impl ScaledProducts {
    /// The first product with the gate in its epilogue, and the scales of what it gives.
    pub(super) fn gate_up(self, from: GateRows) -> Result<Kernel, Diagnostic> {
        Kernel::trace(from.kernel(), |w| {
            let axes = self.scales.axes(w);
            let x = ScaledRows::declared(w, self.scales, &axes, ("x", from));
            let weights = ScaledColumns::declared(w, self.scales, &axes, Some(2.into()));
            let expert_of_block = w.memory("expert_of_block", [axes.blocks], Global, I32);
            let choices = axes.choice_table(w, from);
            let write = self.scales.declare_hidden(w, &axes);
            let expert = axes.expert(w, expert_of_block);
            let token = choices.map(|choices| axes.choices(w, choices).floor_div(self.top_k as i32));
            let nothing = w.register([axes.n, axes.rows], F32, 0.0);
            let [gate, up] = w.iterate(axes.k, [nothing, nothing], |w, [gate, up]| {
                let row = x.read(w, &axes, token, ["read_x", "read_x_scale"]);
                let [gates, ups] = [0i64, 1].map(|half| weights.read(w, &axes, expert, Some(half)));
                [
                    self.scales.multiplied(w, gates, row, (gate, nothing), "mma_gate"),
                    self.scales.multiplied(w, ups, row, (up, nothing), "mma_up"),
                ]
            });
            write.write(w, &axes, gate.tag_loop("k_loop").silu() * up);
        })
    }

    /// The second product.
    pub(super) fn down(self, results: DownResults) -> Result<Kernel, Diagnostic> {
        Kernel::trace(results.kernel(), |w| {
            let axes = self.scales.axes(w);
            let ExpertAxes { blocks, rows, n, k, .. } = axes;
            let column_blocks = Symbol::new("N_BLOCKS");
            let h = ScaledRows::declared(w, self.scales, &axes, ("h", GateRows::Gathered));
            let weights = ScaledColumns::declared(w, self.scales, &axes, None);
            let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
            let expert = axes.expert(w, expert_of_block);
            let nothing = w.register([n, rows], F32, 0.0);
            let product = |w: &Tracer| {
                let [sum] = w.iterate(k, [nothing], |w, [sum]| {
                    let row = h.read(w, &axes, None, ["read_h", "read_h_scale"]);
                    let columns = weights.read(w, &axes, expert, None);
                    [self.scales.multiplied(w, columns, row, (sum, nothing), "mma")]
                });
                sum.tag_loop("k_loop")
            };
            match results {
                DownResults::Rows => {
                    let y = w.memory("y", [blocks, rows, column_blocks, n], Global, Bf16);
                    w.write(product(w).cast(Bf16).broadcast([blocks, rows, column_blocks, n]), y);
                }
                DownResults::Tokens => {
                    let tokens = axes.weighted_tokens(w, self.top_k);
                    let out = w.memory("out", [Symbol::new("T"), column_blocks, n], Global, F32);
                    let [token, weight] = tokens.read(w, &axes);
                    let weighted = (product(w) * weight).broadcast([blocks, rows, column_blocks, n]);
                    w.atomic_at(AtomicOp::Add, weighted, out, (token, column_blocks, n));
                }
            }
        })
    }
}
