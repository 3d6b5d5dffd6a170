//! The dimensions of products of experts, and how these are spread over the machine.

use crate::prelude::*;

/// The rows of the first product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum GateRows {
    /// Those of blocks, which have been gathered.
    Gathered,
    /// Those of tokens, of which a table says which.
    OfTokens,
}

impl GateRows {
    /// The name of the first product.
    pub(super) fn kernel(self) -> &'static str {
        match self {
            GateRows::Gathered => "moe_gate_up_gathered",
            GateRows::OfTokens => "moe_gate_up",
        }
    }
}

/// The destination of the second product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DownResults {
    /// Rows of blocks.
    Rows,
    /// Rows of tokens, to which they are added.
    Tokens,
}

impl DownResults {
    /// The name of the second product.
    pub(super) fn kernel(self) -> &'static str {
        match self {
            DownResults::Rows => "moe_down",
            DownResults::Tokens => "moe_down_atomic",
        }
    }
}

/// The dimensions of a product.
#[derive(Copy, Clone)]
pub(super) struct ExpertAxes {
    pub(super) blocks: Symbol,
    pub(super) rows: Symbol,
    /// Columns of the result, or of a block of them.
    pub(super) n: Symbol,
    pub(super) k: Symbol,
    pub(super) experts: Symbol,
    /// What an iteration has of K.
    block_k: Symbol,
}

impl ExpertAxes {
    /// Workgroups that take tiles of the columns.
    pub(super) fn of_columns(w: &Tracer) -> ExpertAxes {
        let [n, block_n, block_k] = symbols(["N", "BLOCK_N", "BLOCK_K"]);
        w.distribute([workgroup(n, block_n, 0)]);
        ExpertAxes::distributed(w, n, block_k)
    }

    /// Workgroups that take a block of `BLOCK_N` columns each, which it so has as a whole, of `N_BLOCKS`.
    pub(super) fn of_column_blocks(w: &Tracer, block_k: Symbol) -> ExpertAxes {
        w.distribute([workgroup(Symbol::new("N_BLOCKS"), 1, 0)]);
        ExpertAxes::distributed(w, Symbol::new("BLOCK_N"), block_k)
    }

    fn distributed(w: &Tracer, n: Symbol, block_k: Symbol) -> ExpertAxes {
        let [blocks, rows, k, experts] = symbols(["BLOCKS", "ROWS", "K", "EXPERTS"]);
        let [wave_r, wave_n] = symbols(["WAVE_R", "WAVE_N"]);
        w.distribute([
            workgroup(blocks, 1, 1),
            tile(k, block_k),
            iterations(k, 0, Symbol::new("COUNT")),
            wave(rows, wave_r),
            wave(n, wave_n),
        ]);
        w.mma_type(MatrixShape::M16x16);
        ExpertAxes { blocks, rows, n, k, experts, block_k }
    }

    /// The expert of the workgroup's block, which without one has no iterations.
    pub(super) fn expert(&self, w: &Tracer, expert_of_block: MemoryRef) -> Value {
        let count = Symbol::new("COUNT");
        let expert = w.read_at(expert_of_block, [w.workgroup_id(1)], []).tag("read_expert");
        let is_one = expert.greater_equal(0) & expert.less(w.size(self.experts));
        let block_k = self.block_k;
        let all = w.apply_expr((Coordinate::from(w.size(self.k)) + (block_k - 1)) / block_k);
        w.set_symbol(count, w.select(is_one, all, 0));
        expert
    }

    /// The choice of each row of the workgroup's block.
    pub(super) fn choices(&self, w: &Tracer, choice_of_place: MemoryRef) -> Value {
        w.read_at(choice_of_place, (w.workgroup_id(1), self.rows), [self.rows]).tag("read_choices")
    }

    /// The table of the choice of each row, if rows are read by it.
    pub(super) fn choice_table(&self, w: &Tracer, from: GateRows) -> Option<MemoryRef> {
        (from == GateRows::OfTokens)
            .then(|| w.memory("choice_of_place", [self.blocks, self.rows], Global, I32))
    }

    /// The tables of which token, with which weight, each row is added to.
    pub(super) fn weighted_tokens(&self, w: &Tracer, top_k: u32) -> WeightedTokens {
        let choices = w.memory("choice_of_place", [self.blocks, self.rows], Global, I32);
        let weights = w.memory("weights", [Symbol::new("T"), Symbol::from(top_k)], Global, F32);
        WeightedTokens { choices, weights, top_k: top_k as i32 }
    }
}

/// The tables of the tokens that rows are added to.
pub(super) struct WeightedTokens {
    choices: MemoryRef,
    weights: MemoryRef,
    top_k: i32,
}

impl WeightedTokens {
    /// The token of each row and its weight.
    pub(super) fn read(self, w: &Tracer, axes: &ExpertAxes) -> [Value; 2] {
        let choice = axes.choices(w, self.choices);
        let (token, place) = (choice.floor_div(self.top_k), choice % self.top_k);
        [token, w.read_at(self.weights, (token, place), [axes.rows]).tag("read_weights")]
    }
}
