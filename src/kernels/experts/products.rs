//! Products of blocks of rows with the matrices of their experts. A block has one expert, which a workgroup
//! reads once, so that the matrices go through LDS as those of any product do. A block without an expert has
//! no iterations.

use crate::prelude::*;

/// The rows of the first product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum GateRows {
    /// Those of blocks, which have been gathered.
    Gathered,
    /// Those of tokens, of which a table says which.
    OfTokens,
}

/// The destination of the second product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DownResults {
    /// Rows of blocks.
    Rows,
    /// Rows of tokens, to which they are added.
    Tokens,
}

/// What both products share.
#[derive(Copy, Clone)]
pub(super) struct ExpertProducts {
    pub(super) inputs: DType,
    pub(super) top_k: u32,
}

/// The dimensions of a product.
struct ExpertAxes {
    blocks: Symbol,
    rows: Symbol,
    n: Symbol,
    k: Symbol,
    experts: Symbol,
}

impl ExpertAxes {
    /// How a product is spread over the machine.
    fn distributed(w: &Tracer) -> ExpertAxes {
        let [blocks, rows, n, k, experts] = symbols(["BLOCKS", "ROWS", "N", "K", "EXPERTS"]);
        let [block_n, block_k, wave_r, wave_n] = symbols(["BLOCK_N", "BLOCK_K", "WAVE_R", "WAVE_N"]);
        w.distribute([
            workgroup(n, block_n, 0),
            workgroup(blocks, 1, 1),
            tile(k, block_k),
            iterations(k, 0, Symbol::new("COUNT")),
            wave(rows, wave_r),
            wave(n, wave_n),
        ]);
        w.mma_type(MatrixShape::M16x16);
        ExpertAxes { blocks, rows, n, k, experts }
    }

    /// The expert of the workgroup's block, which without one has no iterations.
    fn expert(&self, w: &Tracer, expert_of_block: MemoryRef) -> Value {
        let [block_k, count] = symbols(["BLOCK_K", "COUNT"]);
        let expert = w.read_at(expert_of_block, [w.workgroup_id(1)], []).tag("read_expert");
        let is_one = expert.greater_equal(0) & expert.less(w.size(self.experts));
        let all = w.apply_expr((Coordinate::from(w.size(self.k)) + (block_k - 1)) / block_k);
        w.set_symbol(count, w.select(is_one, all, 0));
        expert
    }

    /// The choice of each row of the workgroup's block.
    fn choices(&self, w: &Tracer, choice_of_place: MemoryRef) -> Value {
        w.read_at(choice_of_place, (w.workgroup_id(1), self.rows), [self.rows]).tag("read_choices")
    }
}

impl ExpertProducts {
    /// The first product with the gate in its epilogue.
    pub(super) fn gate_up(self, from: GateRows) -> Result<Kernel, Diagnostic> {
        let name = match from {
            GateRows::Gathered => "moe_gate_up_gathered",
            GateRows::OfTokens => "moe_gate_up",
        };
        Kernel::trace(name, |w| {
            let axes = ExpertAxes::distributed(w);
            let ExpertAxes { blocks, rows, n, k, experts } = axes;
            let x = match from {
                GateRows::Gathered => w.memory("x", [blocks, rows, k], Shared, self.inputs),
                GateRows::OfTokens => w.memory("x", [Symbol::new("T"), k], Global, self.inputs),
            };
            let weights = w.memory("w", [experts, 2.into(), n, k], Shared, self.inputs);
            let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
            let choices = match from {
                GateRows::Gathered => None,
                GateRows::OfTokens => Some(w.memory("choice_of_place", [blocks, rows], Global, I32)),
            };
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
        let name = match results {
            DownResults::Rows => "moe_down",
            DownResults::Tokens => "moe_down_atomic",
        };
        Kernel::trace(name, |w| {
            let axes = ExpertAxes::distributed(w);
            let ExpertAxes { blocks, rows, n, k, experts } = axes;
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
        let [t, top_k] = [Symbol::new("T"), Symbol::from(self.top_k)];
        let choice_of_place = w.memory("choice_of_place", [blocks, rows], Global, I32);
        let weights = w.memory("weights", [t, top_k], Global, F32);
        let out = w.memory("out", [t, n], Global, F32);
        let choice = axes.choices(w, choice_of_place);
        let top_k = self.top_k as i32;
        let (token, place) = (choice.floor_div(top_k), choice % top_k);
        let weight = w.read_at(weights, (token, place), [rows]).tag("read_weights");
        let weighted = (product(w) * weight).broadcast([blocks, rows, n]);
        w.atomic_at(AtomicOp::Add, weighted, out, (token, n));
    }
}
