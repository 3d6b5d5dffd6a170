//! The gradients of attention as plain loops in f64, and by how much kernels may miss them.

use super::definition::{Definition, Place, Sizes, precision};
use super::trial::Numbers;
use groundswell::prelude::*;

/// What attention means, and the derivative of its function of scores by the score that has been scaled.
pub struct Differentiable {
    pub definition: Definition,
    pub slope: Box<dyn Fn(Place, f64) -> f64>,
}

impl Differentiable {
    /// Scores as they are, or with something added.
    pub fn shifted(definition: Definition) -> Differentiable {
        Differentiable { definition, slope: Box::new(|_, _| 1.0) }
    }
}

/// Numbers, and by how much each of them may be off.
#[derive(Clone)]
pub struct Bounded {
    pub exact: Vec<f64>,
    pub bound: Vec<f64>,
}

impl Bounded {
    fn zeros(count: usize) -> Bounded {
        Bounded { exact: vec![0.0; count], bound: vec![0.0; count] }
    }

    fn add(&mut self, at: usize, exact: f64, error: f64) {
        self.exact[at] += exact;
        // Sums of f32, whatever their order.
        self.bound[at] += error + exact.abs() * 2f64.powi(-19);
    }

    /// After multiplication with a number, and rounding to a dtype: two units in the last place.
    pub fn stored(mut self, dtype: DType) -> Bounded {
        let least = if dtype == F16 { 2f64.powi(-23) } else { 2f64.powi(-120) };
        for (exact, bound) in self.exact.iter().zip(&mut self.bound) {
            *bound += 2.0 * precision(dtype) * (exact.abs() + *bound) + least;
        }
        self
    }
}

/// Everything that the backward pass has or computes, heads before tokens.
pub struct Gradients {
    /// The output of the forward pass, rounded to its dtype, and the logarithms of the sums.
    pub o: Vec<f64>,
    pub log_sum_exp: Vec<f64>,
    /// Minus the sum of each row of `do` times `o`.
    pub minus_delta: Bounded,
    pub dq: Bounded,
    pub dk: Bounded,
    pub dv: Bounded,
    pub dsinks: Bounded,
    /// The gradient of each score, `[B, H, M, N]`.
    pub scores: Bounded,
}

/// The dtypes of inputs, of the forward output, and of the gradients.
#[derive(Copy, Clone, Debug)]
pub struct Dtypes {
    pub inputs: DType,
    pub output: DType,
    pub gradients: DType,
}

/// The gradients of `sum(do * o)`. Weights and gradients of scores are rounded once each to the inputs'
/// dtype; delta has the rounding of `o`.
pub fn gradients(
    of: &Differentiable,
    sizes: Sizes,
    dtypes: Dtypes,
    numbers: &Numbers,
    of_o: &[f64],
) -> Gradients {
    let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = sizes;
    let definition = &of.definition;
    let rows = batch * heads * queries;
    let mut all = Gradients {
        o: vec![0.0; rows * value_dim],
        log_sum_exp: vec![f64::NEG_INFINITY; rows],
        minus_delta: Bounded::zeros(rows),
        dq: Bounded::zeros(rows * dim),
        dk: Bounded::zeros(batch * kv_heads * keys * dim),
        dv: Bounded::zeros(batch * kv_heads * keys * value_dim),
        dsinks: Bounded::zeros(heads),
        scores: Bounded::zeros(rows * keys),
    };
    let rounding = precision(dtypes.inputs);
    // What is denormal in f16 is rounded to its last bit, or to zero.
    let lost = if dtypes.inputs == F16 { 2f64.powi(-14) } else { 0.0 };
    for at in 0..rows {
        let (sequence, head, query) = (at / queries / heads, at / queries % heads, at % queries);
        let first = (sequence * kv_heads + head / (heads / kv_heads)) * keys;
        let q = &numbers.q[at * dim..][..dim];
        let of_row = &of_o[at * value_dim..][..value_dim];
        let sink = definition.sinks.get(head).copied().unwrap_or(f64::NEG_INFINITY);
        let mut seen = Vec::new();
        let mut error: f64 = 0.0;
        for key in 0..keys {
            let place = Place { batch: sequence, head, query, key, queries, keys };
            let k = &numbers.k[(first + key) * dim..][..dim];
            let (sum, size) =
                q.iter().zip(k).fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()));
            let scaled = sum * definition.scale;
            let score = (definition.score)(place, scaled);
            if (definition.sees)(place) {
                seen.push((key, score, (of.slope)(place, scaled)));
                let rounded = size * definition.scale * (dim + 8) as f64 + score.abs() * 32.0;
                error = error.max(rounded * 2f64.powi(-24));
            }
        }
        let top = seen.iter().fold(sink, |top, seen| top.max(seen.1));
        if top == f64::NEG_INFINITY {
            continue;
        }
        let total = (sink - top).exp() + seen.iter().map(|seen| (seen.1 - top).exp()).sum::<f64>();
        all.log_sum_exp[at] = top + total.ln();
        // The logarithm is rounded to f32, and its power approximated.
        let error = 2.0 * error + (all.log_sum_exp[at].abs() + 16.0) * 2f64.powi(-23);
        let weights: Vec<f64> = seen.iter().map(|seen| (seen.1 - all.log_sum_exp[at]).exp()).collect();
        let value = |key: usize| &numbers.v[(first + key) * value_dim..][..value_dim];
        for (&(key, ..), weight) in seen.iter().zip(&weights) {
            for (e, v) in value(key).iter().enumerate() {
                all.o[at * value_dim + e] += weight * v;
            }
        }
        let o = &all.o[at * value_dim..][..value_dim];
        let delta: f64 = of_row.iter().zip(o).map(|(a, b)| a * b).sum();
        let of_delta: f64 = of_row.iter().zip(o).map(|(a, b)| (a * b).abs()).sum();
        let of_delta = of_delta * (precision(dtypes.output) + value_dim as f64 * 2f64.powi(-23));
        all.minus_delta.add(at, -delta, of_delta);
        if sink != f64::NEG_INFINITY {
            let weight = (sink - all.log_sum_exp[at]).exp();
            all.dsinks.add(head, -weight * delta, weight * (of_delta + error * delta.abs()));
        }
        for (&(key, _, slope), weight) in seen.iter().zip(&weights) {
            let (mut of_weight, mut size) = (0.0, 0.0);
            for (e, (a, b)) in of_row.iter().zip(value(key)).enumerate() {
                of_weight += a * b;
                size += (a * b).abs();
                let rounded = weight * (rounding + error) + lost;
                all.dv.add((first + key) * value_dim + e, weight * a, rounded * a.abs());
            }
            let of_score = weight * (of_weight - delta) * slope;
            let of_sums = of_delta + (size + delta.abs()) * (value_dim + 8) as f64 * 2f64.powi(-24);
            let off = weight * of_sums * slope.abs()
                + weight * (of_weight - delta).abs() * 2f64.powi(-19)
                + of_score.abs() * (rounding + error)
                + lost;
            all.scores.add(at * keys + key, of_score, off);
            let scale = definition.scale;
            for (e, (q, k)) in q.iter().zip(&numbers.k[(first + key) * dim..][..dim]).enumerate() {
                all.dq.add(at * dim + e, scale * of_score * k, scale * off * k.abs());
                all.dk.add((first + key) * dim + e, scale * of_score * q, scale * off * q.abs());
            }
        }
    }
    let Gradients { dq, dk, dv, .. } = all;
    let [dq, dk, dv] = [dq, dk, dv].map(|gradient| gradient.stored(dtypes.gradients));
    Gradients { dq, dk, dv, ..all }
}
