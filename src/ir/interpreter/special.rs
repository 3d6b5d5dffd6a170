//! Functions that Rust does not have, in f64 with a relative error below 2^-40.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// Where the series gives way to the continued fraction.
const SERIES: f64 = 2.5;

pub(super) fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude >= SERIES { (1.0 - tail(magnitude)).copysign(x) } else { series(x) }
}

/// `1 - erf x`, with all bits where it is small.
fn erfc(x: f64) -> f64 {
    if x >= SERIES { tail(x) } else { 1.0 - erf(x) }
}

/// `2 / sqrt(pi) e^(-x²) (x + 2 x³ / 3 + 4 x⁵ / 15 + ..)`: all terms have one sign.
fn series(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    let mut odd = 1.0;
    while term.abs() > sum.abs() * 1e-18 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// `1 - erf x` by its continued fraction, from the last of a hundred terms.
fn tail(x: f64) -> f64 {
    let fraction = (1..=100).rev().fold(x, |below, term| x + f64::from(term) / 2.0 / below);
    (-x * x).exp() / (PI.sqrt() * fraction)
}

pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A number times a weight that goes to zero faster than the number goes to minus infinity.
pub(super) fn weighted(x: f64, weight: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x * weight }
}

pub(super) fn gelu(x: f64) -> f64 {
    weighted(x, erfc(-x * FRAC_1_SQRT_2) / 2.0)
}

pub(super) fn gelu_tanh(x: f64) -> f64 {
    // (1 + tanh u) / 2 is the sigmoid of 2 u.
    weighted(x, sigmoid((8.0 / PI).sqrt() * (x + 0.044715 * x * x * x)))
}
