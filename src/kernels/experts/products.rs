//! Products of blocks of rows with the matrices of their experts. A block has one expert, which a workgroup
//! reads once, so that the matrices go through LDS as those of any product do. A block without an expert has
//! no iterations.

use super::axes::{DownResults, ExpertAxes, GateRows};
use crate::prelude::*;

/// What both products share.
#[derive(Copy, Clone)]
pub(super) struct ExpertProducts {
    pub(super) inputs: DType,
    pub(super) top_k: u32,
}

impl ExpertProducts {
    /// The first product with the gate in its epilogue.
    pub(super) fn gate_up(self, from: GateRows) -> Result<Kernel, Diagnostic> {
        Kernel::trace(from.kernel(), |w| {
            let axes = ExpertAxes::of_columns(w);
            let ExpertAxes { blocks, rows, n, k, experts, .. } = axes;
            let x = match from {
                GateRows::Gathered => w.memory("x", [blocks, rows, k], Shared, self.inputs),
                GateRows::OfTokens => w.memory("x", [Symbol::new("T"), k], Global, self.inputs),
            };
            let weights = w.memory("w", [experts, 2.into(), n, k], Shared, self.inputs);
            let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
            let choices = axes.choice_table(w, from);
            let h = w.memory("h", [blocks, rows, n], Global, self.inputs);
            let expert = axes.expert(w, expert_of_block);
            let token = choices.map(|choices| axes.choices(w, choices).floor_div(self.top_k as i32));
            let nothing = w.register([rows, n], F32, 0.0);
            let [gate, up] = w.iterate(k, [nothing, nothing], |w, [gate, up]| {
                let row = match token {
                    None => w.read_at(x, (w.workgroup_id(1), rows, k), [rows, k]),
                    Some(token) => w.read_at(x, (token, k), [rows, k]),
                };
                let row = row.tag("read_x");
                let [gates, ups] = [0i64, 1].map(|half| {
                    let half = SymExpr::from(half);
                    w.read_at(weights, (expert, half, n, k), [n, k]).tag("read_w")
                });
                [w.mma(row, gates, gate).tag("mma_gate"), w.mma(row, ups, up).tag("mma_up")]
            });
            let gated = gate.tag_loop("k_loop").silu() * up;
            w.write(gated.cast(self.inputs).broadcast([blocks, rows, n]), h);
        })
    }

    /// The second product.
    pub(super) fn down(self, results: DownResults) -> Result<Kernel, Diagnostic> {
        Kernel::trace(results.kernel(), |w| {
            let axes = ExpertAxes::of_columns(w);
            let ExpertAxes { blocks, rows, n, k, experts, .. } = axes;
            let h = w.memory("h", [blocks, rows, k], Shared, self.inputs);
            let weights = w.memory("w", [experts, n, k], Shared, self.inputs);
            let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
            let expert = axes.expert(w, expert_of_block);
            let nothing = w.register([rows, n], F32, 0.0);
            let product = |w: &Tracer| {
                let [sum] = w.iterate(k, [nothing], |w, [sum]| {
                    let row = w.read_at(h, (w.workgroup_id(1), rows, k), [rows, k]).tag("read_h");
                    let columns = w.read_at(weights, (expert, n, k), [n, k]).tag("read_w");
                    [w.mma(row, columns, sum).tag("mma")]
                });
                sum.tag_loop("k_loop")
            };
            match results {
                DownResults::Rows => {
                    let y = w.memory("y", [blocks, rows, n], Global, self.inputs);
                    w.write(product(w).cast(self.inputs).broadcast([blocks, rows, n]), y);
                }
                DownResults::Tokens => self.add(w, &axes, product),
            }
        })
    }

    /// Adds rows, weighted, to those of their tokens.
    fn add(self, w: &Tracer, axes: &ExpertAxes, product: impl FnOnce(&Tracer) -> Value) {
        let ExpertAxes { blocks, rows, n, .. } = *axes;
        let tokens = axes.weighted_tokens(w, self.top_k);
        let out = w.memory("out", [Symbol::new("T"), n], Global, F32);
        let [token, weight] = tokens.read(w, axes);
        let weighted = (product(w) * weight).broadcast([blocks, rows, n]);
        w.atomic_at(AtomicOp::Add, weighted, out, (token, n));
    }
}
