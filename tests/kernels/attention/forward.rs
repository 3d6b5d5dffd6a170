//! The plain kernel, causal masks, groups of heads, scales, thresholds and dtypes.

use groundswell::kernels::{Attention, AttentionLayout, Diagonal};
use groundswell::prelude::*;

use super::definition::{Definition, Place, Sizes};
use super::trial::{Numbers, Trial};

/// Queries and keys: whole tiles, ragged ones, single elements, fewer keys than queries and more.
pub const LENGTHS: [[usize; 2]; 20] = [
    [1, 1],
    [64, 64],
    [65, 63],
    [1, 100],
    [100, 1],
    [33, 130],
    [130, 33],
    [128, 128],
    [7, 5],
    [5, 7],
    [31, 64],
    [64, 31],
    [96, 160],
    [2, 2],
    [17, 257],
    [129, 65],
    [32, 32],
    [3, 191],
    [63, 127],
    [40, 88],
];

/// What is left open, by the number of the case.
pub fn open(number: usize) -> Vec<&'static str> {
    [vec![], vec!["B", "M", "N"], vec!["N"], vec!["M"]][number % 4].clone()
}

fn sizes([queries, keys]: [usize; 2], [heads, kv_heads]: [usize; 2], dim: usize) -> Sizes {
    Sizes { batch: 1, heads, kv_heads, queries, keys, dim, value_dim: dim }
}

/// A causal mask.
pub fn causal(diagonal: Diagonal) -> Box<dyn Fn(Place) -> bool> {
    match diagonal {
        Diagonal::TopLeft => Box::new(|at| at.key <= at.query),
        Diagonal::BottomRight => Box::new(|at| at.beyond() <= 0),
    }
}

#[test]
fn plain_attention_of_every_head_dim_is_its_definition() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let dim = [64, 80, 88, 96, 128][number % 5];
        for dtype in [Bf16, F16] {
            let sizes = Sizes { batch: 1 + number % 2, ..sizes(lengths, [2, 2], dim) };
            let attention = Attention::new(2, dim as u32).inputs(dtype).log_sum_exp();
            let trial = Trial::new("plain", attention, sizes, Definition::plain(dim));
            Trial { inputs: dtype, output: dtype, open: open(number), ..trial }.holds_on(Target::GFX942);
        }
    }
}

#[test]
fn large_heads_and_values_of_another_size_are_their_definition() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let [dim, value_dim] = [[256, 256], [192, 128], [64, 32], [40, 72]][number % 4];
        let sizes = Sizes { value_dim, ..sizes(lengths, [1, 1], dim) };
        let attention = Attention::new(1, dim as u32).value_dim(value_dim as u32).causal();
        let definition = Definition { sees: causal(Diagonal::BottomRight), ..Definition::plain(dim) };
        let target = if number % 3 == 0 { Target::GFX950 } else { Target::GFX942 };
        Trial { open: open(number), ..Trial::new("large", attention, sizes, definition) }.holds_on(target);
    }
}

#[test]
fn causal_and_grouped_attention_is_its_definition() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let heads = [[4, 2], [3, 1], [2, 2]][number % 3];
        let diagonal = [Diagonal::TopLeft, Diagonal::BottomRight][number % 2];
        let attention = Attention::new(heads[0] as u32, 64).kv_heads(heads[1] as u32).causal_along(diagonal);
        let attention = attention.log_sum_exp();
        let definition = Definition { sees: causal(diagonal), ..Definition::plain(64) };
        let trial = Trial::new("causal", attention, sizes(lengths, heads, 64), definition);
        let trial = Trial { open: open(number), ..trial };
        trial.holds_on(Target::GFX942);
        if number % 5 == 0 {
            trial.is_clean_on(Target::GFX942);
        }
    }
}

#[test]
fn every_chip_and_layout_is_the_definition() {
    let targets = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX942, Target::GFX950];
    for (number, target) in targets.into_iter().enumerate() {
        for (variant, layout) in [AttentionLayout::Bhsd, AttentionLayout::Bshd].into_iter().enumerate() {
            let dtype = [F16, Bf16][(number + variant) % 2];
            let dim = [64, 128][variant];
            let attention = Attention::new(2, dim as u32).inputs(dtype).kv_heads(1).causal().layout(layout);
            let sizes = sizes([70, 90], [2, 1], dim);
            let definition = Definition { sees: causal(Diagonal::BottomRight), ..Definition::plain(dim) };
            let trial = Trial::new("chip", attention.log_sum_exp(), Sizes { batch: 2, ..sizes }, definition);
            let open = open(number + variant);
            let trial = Trial { inputs: dtype, output: dtype, layout, open, ..trial };
            trial.holds_on(target);
            trial.is_clean_on(target);
        }
    }
}

#[test]
fn scales_outputs_and_thresholds_are_as_chosen() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let sizes = sizes(lengths, [2, 2], 64);
        let threshold = [0.0, 4.0, 8.0, 15.5][number % 4];
        let attention = Attention::new(2, 64).inputs(F16).output(F32).threshold(threshold);
        let attention = match number % 2 {
            0 => attention.scale(0.5),
            _ => attention.scale_argument(),
        };
        let definition = Definition { scale: 0.5, ..Definition::plain(64) };
        let mut trial = Trial::new("scale", attention.log_sum_exp(), sizes, definition);
        let scale = Tensor::from_slice(&[], &[0.5f32]).expect("a number");
        trial.others.insert("scale", scale);
        Trial { inputs: F16, output: F32, open: open(number), ..trial }.holds_on(Target::GFX942);
    }
}

/// One score that towers over all, equal scores, maxima that grow from key to key, and denormal numbers.
#[test]
fn adversarial_numbers_are_within_the_bounds() {
    let sizes = sizes([40, 200], [1, 1], 64);
    let rows = |count: usize, of: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..count * 64).map(|at| of(at / 64, at % 64)).collect()
    };
    let values = rows(200, &|key, at| ((key * 5 + at) % 17) as f64 / 8.0 - 1.0);
    let first = |x: f64| move |at: usize| if at == 0 { x } else { 0.0 };
    let kinds: [(&str, Vec<f64>); 4] = [
        ("tower", rows(200, &|key, at| first(if key == 77 { 512.0 } else { 1.0 })(at))),
        ("equal", rows(200, &|_, at| first(3.0)(at))),
        ("growing", rows(200, &|key, at| first(key as f64)(at))),
        ("denormal", rows(200, &|key, at| 2f64.powi(-20) * ((key + at) % 3) as f64)),
    ];
    for (name, k) in kinds {
        for dtype in [F16, Bf16] {
            for threshold in [0.0, 8.0] {
                let attention = Attention::new(1, 64).inputs(dtype).log_sum_exp().threshold(threshold);
                let trial = Trial::new(name, attention, sizes, Definition::plain(64));
                let trial = Trial { inputs: dtype, output: dtype, ..trial };
                let q = rows(40, &|query, at| first(1.0 + query as f64 / 4.0)(at));
                let numbers = Numbers { q, k: k.clone(), v: values.clone() };
                trial.holds_with(Target::GFX942, &numbers);
                trial.holds_with(Target::GFX950, &numbers);
            }
        }
    }
}
