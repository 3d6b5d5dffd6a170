//! What the experts of a token give, weighted and added in the order of its choices.

use crate::prelude::*;

pub(super) fn trace(inputs: DType, top_k: u32) -> Result<Kernel, Diagnostic> {
    let [t, n, places, block_t, block_n] = symbols(["T", "N", "PLACES", "BLOCK_T", "BLOCK_N"]);
    let count = Symbol::from(top_k);
    Kernel::trace("moe_combine", |w| {
        w.distribute([workgroup(t, block_t, 0), workgroup(n, block_n, 1), wave(t, 1)]);
        let y = w.memory("y", [places, n], Global, inputs);
        let place_of_choice = w.memory("place_of_choice", [t, count], Global, I32);
        let weights = w.memory("weights", [t, count], Global, F32);
        let out = w.memory("out", [t, n], Global, inputs);
        // All loads come before the first use, so that a token waits for its rows once.
        let rows: Vec<(Value, Value)> = (0..i64::from(top_k))
            .map(|at| {
                let choice = || [t.into(), SymExpr::from(at)];
                let place = w.read_at(place_of_choice, choice(), [t]).tag("read_places");
                let weight = w.read_at(weights, choice(), [t]).tag("read_weights");
                (w.read_at(y, (place, n), [t, n]).tag("read_y"), weight)
            })
            .collect();
        let mut sum = w.register([t, n], F32, 0.0);
        for (row, weight) in rows {
            sum = row.cast(F32).fma(weight, sum);
        }
        w.write(sum.cast(inputs), out);
    })
}
