//! Attention as plain loops in f64, which know nothing of the kernels.

use groundswell::prelude::*;

/// How many there are of everything.
#[derive(Copy, Clone, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub dim: usize,
    pub value_dim: usize,
}

impl Sizes {
    /// The size that a kernel calls so.
    pub fn of(self, name: &str) -> Option<usize> {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self;
        Some(match name {
            "B" => batch,
            "H" => heads,
            "KV" => kv_heads,
            "GROUP" => heads / kv_heads,
            "M" => queries,
            "N" => keys,
            "D" => dim,
            "DV" => value_dim,
            _ => return None,
        })
    }
}

/// A score's place, and the lengths of its sequence.
#[derive(Copy, Clone, Debug)]
pub struct Place {
    pub batch: usize,
    pub head: usize,
    pub query: usize,
    pub key: usize,
    pub queries: usize,
    pub keys: usize,
}

impl Place {
    /// How far the key is to the right of the query, where the last of both stand side by side.
    pub fn beyond(self) -> i64 {
        self.key as i64 - self.query as i64 - (self.keys as i64 - self.queries as i64)
    }
}

/// What a variant means: the scale, a function of scores, which keys are seen, and the logit of each head.
pub struct Definition {
    pub scale: f64,
    pub score: Box<dyn Fn(Place, f64) -> f64>,
    pub sees: Box<dyn Fn(Place) -> bool>,
    pub sinks: Vec<f64>,
    /// What the values of a key are multiplied with.
    pub value_scale: Box<dyn Fn(Place) -> f64>,
}

impl Definition {
    /// Attention without more.
    pub fn plain(dim: usize) -> Definition {
        let scale = 1.0 / (dim as f64).sqrt();
        Definition {
            scale,
            score: Box::new(|_, s| s),
            sees: Box::new(|_| true),
            sinks: Vec::new(),
            value_scale: Box::new(|_| 1.0),
        }
    }
}

/// The result of a row, and how exact it has to be.
pub struct Row {
    /// Elements of the output.
    pub values: Vec<f64>,
    /// For each the mean of the magnitudes of what it is the mean of.
    pub magnitudes: Vec<f64>,
    pub log_sum_exp: f64,
    /// By how much rounding may change the exponents, in natural units.
    pub exponent_error: f64,
}

/// Rows of a head: `count` of them, each of `dim` elements.
pub type Rows<'a> = &'a dyn Fn(usize) -> &'a [f64];

/// A row of a head: the query against all keys.
pub fn row(definition: &Definition, at: Place, query: &[f64], keys: Rows<'_>, values: Rows<'_>) -> Row {
    let value_dim = if at.keys == 0 { 0 } else { values(0).len() };
    let mut exponents = Vec::new();
    let mut exponent_error: f64 = 0.0;
    for key in 0..at.keys {
        let place = Place { key, ..at };
        let products = query.iter().zip(keys(key)).map(|(a, b)| a * b);
        let (sum, size) = products.fold((0.0, 0f64), |(sum, size), x| (sum + x, size + x.abs()));
        let score = (definition.score)(place, sum * definition.scale);
        if (definition.sees)(place) {
            exponents.push((key, score));
            let rounded = size * definition.scale * (query.len() + 8) as f64 + score.abs() * 16.0;
            exponent_error = exponent_error.max(rounded * 2f64.powi(-24));
        }
    }
    let sink = definition.sinks.get(at.head).copied().unwrap_or(f64::NEG_INFINITY);
    let top = exponents.iter().fold(sink, |top, &(_, score)| top.max(score));
    if top == f64::NEG_INFINITY {
        let none = vec![0.0; value_dim];
        return Row { values: none.clone(), magnitudes: none, log_sum_exp: top, exponent_error: 0.0 };
    }
    let total = (sink - top).exp() + exponents.iter().map(|&(_, score)| (score - top).exp()).sum::<f64>();
    let mut result = vec![0.0; value_dim];
    let mut magnitudes = vec![0.0; value_dim];
    for &(key, score) in &exponents {
        let weight = (score - top).exp() / total * (definition.value_scale)(Place { key, ..at });
        for (at, &value) in values(key).iter().enumerate() {
            result[at] += weight * value;
            magnitudes[at] += (weight * value).abs();
        }
    }
    Row { values: result, magnitudes, log_sum_exp: top + total.ln(), exponent_error }
}

/// By how much rounding to a dtype changes a number, as a part of it.
pub fn precision(dtype: DType) -> f64 {
    match dtype {
        F16 => 2f64.powi(-11),
        Bf16 => 2f64.powi(-8),
        F32 => 2f64.powi(-23),
        _ => 2f64.powi(-4),
    }
}

/// Two units in the last place of a result, the rounding of weights, which is one half of a unit in theirs,
/// and that of the exponents, twice: of the weights and of their sum. The least weights of f16 are denormal,
/// or zeros on chips that multiply none.
pub fn allowed(row: &Row, at: usize, inputs: DType, output: DType) -> f64 {
    let exact = row.values[at].abs();
    let ulp = |bits: i32, least: i32| match exact {
        0.0 => 2f64.powi(least),
        _ => 2f64.powi((exact.log2().floor() as i32 - bits).max(least)),
    };
    let unit = match output {
        F16 => ulp(10, -24),
        Bf16 => ulp(7, -133),
        _ => ulp(23, -149),
    };
    let relative = precision(inputs) + 4.0 * row.exponent_error + 2f64.powi(-20);
    let lost = match inputs {
        F16 => 2f64.powi(-13),
        Bf16 => 2f64.powi(-40),
        // Lifted by 2^7 or 2^8, weights below 2^-6 are denormal.
        _ => 2f64.powi(-9),
    };
    2.0 * unit + relative * row.magnitudes[at] + lost
}
