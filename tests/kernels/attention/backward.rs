//! The backward pass: every kernel against the gradients of the definition in f64.

use groundswell::kernels::{
    Attention, AttentionBackward, AttentionLayout, BackwardKernel, BiasShape, Diagonal, GradientTile,
    RopePairs,
};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::backward_trial::BackwardTrial;
use super::definition::{Definition, Place, Sizes};
use super::forward::{LENGTHS, causal, open};
use super::gradients::{Differentiable, Dtypes};
use super::trial::random;

const TARGETS: [Target; 3] = [Target::GFX942, Target::GFX950, Target::GFX90A];

fn sizes([queries, keys]: [usize; 2], [heads, kv_heads]: [usize; 2], dim: usize) -> Sizes {
    Sizes { batch: 1, heads, kv_heads, queries, keys, dim, value_dim: dim }
}

#[test]
fn gradients_of_every_head_dim_are_those_of_the_definition() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let dim = [64, 128, 96, 80, 40][number % 5];
        let inputs = [Bf16, F16][number % 2];
        let sizes = Sizes { batch: 1 + number % 2, ..sizes(lengths, [2, 2], dim) };
        let attention = Attention::new(2, dim as u32).inputs(inputs);
        let meaning = Differentiable::shifted(Definition::plain(dim));
        let dtypes = Dtypes { inputs, output: inputs, gradients: [inputs, F32][number / 2 % 2] };
        let trial = BackwardTrial::new("plain", attention, sizes, meaning);
        let trial = BackwardTrial { dtypes, open: open(number), ..trial };
        trial.holds_on(TARGETS[number % 3]);
        if number % 8 == 3 {
            trial.is_clean_on(TARGETS[number % 3]);
        }
    }
}

#[test]
fn gradients_of_large_heads_are_those_of_the_definition() {
    for (number, lengths) in [[70, 50], [33, 130], [1, 1], [100, 7]].into_iter().enumerate() {
        let [dim, value_dim] = [[256, 256], [192, 128], [64, 32], [40, 72]][number];
        let sizes = Sizes { value_dim, ..sizes(lengths, [1, 1], dim) };
        let attention = Attention::new(1, dim as u32).value_dim(value_dim as u32).causal();
        let definition = Definition { sees: causal(Diagonal::BottomRight), ..Definition::plain(dim) };
        let trial = BackwardTrial::new("large", attention, sizes, Differentiable::shifted(definition));
        BackwardTrial { open: open(number), ..trial }.holds_on(TARGETS[number % 3]);
    }
}

/// Rows that see no key have no part in any gradient, and heads that share keys add to the same gradients.
#[test]
fn gradients_of_causal_and_grouped_attention_are_those_of_the_definition() {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let heads = [[4, 2], [3, 1], [2, 2]][number % 3];
        let diagonal = [Diagonal::TopLeft, Diagonal::BottomRight][number % 2];
        let dim = if number % 7 == 3 { 128 } else { 64 };
        let attention =
            Attention::new(heads[0] as u32, dim as u32).kv_heads(heads[1] as u32).causal_along(diagonal);
        let definition = Definition { sees: causal(diagonal), ..Definition::plain(dim) };
        let meaning = Differentiable::shifted(definition);
        let trial = BackwardTrial::new("causal", attention, sizes(lengths, heads, dim), meaning);
        let trial = BackwardTrial { open: open(number), ..trial };
        trial.holds_on(TARGETS[number % 3]);
        if number % 9 == 0 {
            trial.is_clean_on(TARGETS[number % 2]);
        }
    }
}

/// Each length with a trial by its number.
fn each(
    title: &str,
    shapes: &[BiasShape],
    of: impl Fn(usize, Sizes) -> (Attention, Differentiable, Vec<(&'static str, Tensor)>),
) {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let sizes = Sizes { batch: 1 + number % 2, ..sizes(lengths, [2, 1 + number / 2 % 2], 64) };
        let (attention, meaning, others) = of(number, sizes);
        let trial = BackwardTrial::new(title, attention.kv_heads(sizes.kv_heads as u32), sizes, meaning);
        let bias = shapes.get(number % shapes.len().max(1)).copied();
        let trial = BackwardTrial { open: open(number), others: others.into_iter().collect(), bias, ..trial };
        trial.holds_on(if number % 4 == 1 { Target::GFX950 } else { Target::GFX942 });
        if number == 5 {
            trial.is_clean_on(Target::GFX942);
        }
    }
}

#[test]
fn gradients_within_windows_are_those_of_the_definition() {
    each("window", &[], |number, _| {
        let [left, right] = [[0, 0], [5, 0], [0, 3], [20, 10], [200, 200], [63, 1]][number % 6];
        let sees = move |at: Place| (-left..=right).contains(&at.beyond());
        let definition = Definition { sees: Box::new(sees), ..Definition::plain(64) };
        (Attention::new(2, 64).window(left, right), Differentiable::shifted(definition), Vec::new())
    });
}

#[test]
fn gradients_by_way_of_slopes_and_caps_are_those_of_the_definition() {
    each("functions", &[], |number, _| {
        let attention = Attention::new(2, 64);
        let plain = Definition::plain(64);
        let slopes = [0.5, 0.03125];
        if number % 2 == 0 {
            let score = move |at: Place, s: f64| s - slopes[at.head] * at.beyond().abs() as f64;
            let others = vec![("slopes", of_numbers(F32, &[2], &slopes))];
            let definition = Definition { score: Box::new(score), ..plain };
            return (attention.alibi(), Differentiable::shifted(definition), others);
        }
        let score = |_, s: f64| 2.0 * (s / 2.0).tanh();
        let slope = |_, s: f64| 1.0 - (s / 2.0).tanh().powi(2);
        let definition = Definition { score: Box::new(score), ..plain };
        (attention.soft_cap(2.0), Differentiable { definition, slope: Box::new(slope) }, Vec::new())
    });
}

const SHAPES: [BiasShape; 4] = [BiasShape::Own, BiasShape::OfHeads, BiasShape::OfSequences, BiasShape::One];

/// Biases of every shape, whose own gradients are summed up over what they are broadcast over.
#[test]
fn gradients_of_biases_are_those_of_the_definition() {
    each("bias", &SHAPES, |number, sizes| {
        let Sizes { batch, heads, queries, keys, .. } = sizes;
        let shape = SHAPES[number % 4];
        let dims = match shape {
            BiasShape::Own => vec![batch, heads, queries, keys],
            BiasShape::OfHeads => vec![heads, queries, keys],
            BiasShape::OfSequences => vec![batch, queries, keys],
            BiasShape::One => vec![queries, keys],
        };
        let numbers = random(Bf16, dims.iter().product(), 4.0, &mut StdRng::seed_from_u64(number as u64));
        let bias = of_numbers(Bf16, &dims, &numbers);
        let added = move |at: Place, s: f64| {
            let outer = match shape {
                BiasShape::Own => at.batch * heads + at.head,
                BiasShape::OfHeads => at.head,
                BiasShape::OfSequences => at.batch,
                BiasShape::One => 0,
            };
            s + numbers[(outer * queries + at.query) * keys + at.key]
        };
        let attention = Attention::new(2, 64).bias(shape);
        let plain = Definition::plain(64);
        if number % 8 < 4 {
            let definition = Definition { score: Box::new(added), ..plain };
            return (attention, Differentiable::shifted(definition), vec![("bias", bias)]);
        }
        let again = added.clone();
        let score = move |at: Place, s: f64| 2.0 * (added(at, s) / 2.0).tanh();
        let slope = move |at: Place, s: f64| 1.0 - (again(at, s) / 2.0).tanh().powi(2);
        let definition = Definition { score: Box::new(score), ..plain };
        let meaning = Differentiable { definition, slope: Box::new(slope) };
        (attention.soft_cap(2.0), meaning, vec![("bias", bias)])
    });
}

/// Functions and masks of the author's, which ask for the head, too, with every ready step and sinks.
#[test]
fn gradients_of_all_steps_together_are_those_of_the_definition() {
    each("together", &[], |number, _| {
        let (slopes, sinks) = ([0.25, 0.125], [[0.5, 2.0], [f64::NEG_INFINITY, 20.0]][number % 2]);
        let own = Attention::new(2, 64)
            .score_with_derivative_from(|w| {
                let factors = w.memory("factors", [Symbol::new("N")], Global, F32);
                move |w, score, query, key| {
                    let of_head = w.self_index("H").cast(F32) * 0.5;
                    let more = w.read(factors) + ((query + key) % 3).cast(F32);
                    (score * score * 0.25 + score + more + of_head, score * 0.5 + 1.0)
                }
            })
            .mask(|_, query, key| key.less(16) | key.less_equal(query));
        let all = own.soft_cap(3.0).alibi().causal().window(50, 4).sinks().threshold(6.0);
        let factor = |key: usize| (key % 5) as f64 / 4.0;
        let first = move |at: Place, s: f64| {
            s * s * 0.25 + s + factor(at.key) + ((at.query + at.key) % 3) as f64 + at.head as f64 * 0.5
        };
        let score = move |at: Place, s: f64| {
            3.0 * (first(at, s) / 3.0).tanh() - slopes[at.head] * at.beyond().abs() as f64
        };
        let slope = move |at: Place, s: f64| (1.0 - (first(at, s) / 3.0).tanh().powi(2)) * (s * 0.5 + 1.0);
        let below = causal(Diagonal::BottomRight);
        let sees = move |at: Place| (at.key < 16 || at.key <= at.query) && below(at) && at.beyond() >= -50;
        let definition = Definition {
            score: Box::new(score),
            sees: Box::new(sees),
            sinks: sinks.to_vec(),
            ..Definition::plain(64)
        };
        let keys = LENGTHS[number][1];
        let others = vec![
            ("slopes", of_numbers(F32, &[2], &slopes)),
            ("sinks", of_numbers(F32, &[2], &sinks)),
            ("factors", of_numbers(F32, &[keys], &(0..keys).map(factor).collect::<Vec<_>>())),
        ];
        (all, Differentiable { definition, slope: Box::new(slope) }, others)
    });
}

#[test]
fn every_chip_layout_and_kernel_is_the_definition() {
    for (number, target) in TARGETS.into_iter().enumerate() {
        for (variant, layout) in [AttentionLayout::Bhsd, AttentionLayout::Bshd].into_iter().enumerate() {
            let dtype = [F16, Bf16][(number + variant) % 2];
            let dim = [64, 128][variant];
            let attention = Attention::new(2, dim as u32).inputs(dtype).kv_heads(1).causal().layout(layout);
            let attention = if number == 0 { attention.scale_argument() } else { attention };
            let sizes = Sizes { batch: 2, ..sizes([70, 90], [2, 1], dim) };
            let definition = Definition { sees: causal(Diagonal::BottomRight), ..Definition::plain(dim) };
            let scale = of_numbers(F32, &[], &[f64::from(definition.scale as f32)]);
            let trial = BackwardTrial::new("chip", attention, sizes, Differentiable::shifted(definition));
            let trial = BackwardTrial {
                dtypes: Dtypes { inputs: dtype, output: dtype, gradients: dtype },
                layout,
                open: open(number + variant),
                others: [("scale", scale)].into_iter().collect(),
                kernels: Some(vec![
                    BackwardKernel::Rows,
                    BackwardKernel::Queries,
                    BackwardKernel::Keys,
                    BackwardKernel::Values,
                    BackwardKernel::KeysAndValues,
                ]),
                ..trial
            };
            trial.holds_on(target);
            trial.is_clean_on(target);
        }
    }
}

/// Tensors that are parts of larger ones, compiled with all sizes open.
#[test]
fn strides_are_left_open() {
    let backward = Attention::new(4, 64).kv_heads(2).strided(8).sinks().backward();
    for kernel in backward.kernels(Target::GFX942) {
        let executable = backward.compile(kernel, Target::GFX942).expect("compiles");
        let parameters = match kernel {
            BackwardKernel::Rows => 5 + 2 + 2 * 3,
            BackwardKernel::Queries => 7 + 3 + 5 * 3,
            BackwardKernel::Sinks => 4 + 2,
            _ => 8 + 3 + 6 * 3,
        };
        assert_eq!(executable.parameters().len(), parameters, "{kernel:?}");
    }
}

#[track_caller]
fn refused(backward: AttentionBackward, kernel: BackwardKernel, message: &str, help: &str) {
    let fault = backward.kernel(kernel).expect_err("no such kernel");
    assert_eq!(fault.message, message);
    assert!(fault.to_string().contains(help), "{fault}");
    assert!(fault.to_string().contains("backward.rs"), "{fault}");
}

#[test]
fn what_cannot_be_made_is_said_with_the_way_out() {
    let attention = Attention::new(2, 64);
    let keys = BackwardKernel::Keys;
    let opaque = attention.clone().score(|_, score, _, _| score * 2.0);
    let message = "a function of scores comes without its derivative";
    refused(opaque.backward(), keys, message, "use `score_with_derivative`");
    let narrow = attention.clone().inputs(F8E4M3Fn);
    let message = "the backward pass of attention takes no scaled f8e4m3fn";
    refused(narrow.backward(), keys, message, "use f16 or bf16");
    let turned = attention.clone().rope(RopePairs::Halves);
    refused(turned.backward(), keys, "the backward pass turns no queries and keys", "`sin` negated");
    let packed = attention.clone().packed().bias(BiasShape::One).backward();
    let message = "packed sequences have no gradient of a bias";
    refused(packed, BackwardKernel::Bias, message, "one length");
    let message = "attention without `sinks` has no gradient of it";
    refused(attention.backward(), BackwardKernel::Sinks, message, "choose `sinks`");
    let message = "attention without `bias` has no gradient of it";
    refused(attention.backward(), BackwardKernel::Bias, message, "choose `bias`");
    let message = "100 rows by 32, 32 rows a wave, are no tile";
    let tiled = attention.backward().matrix(MatrixShape::M32x32).tile(GradientTile::new(100, 32, 32));
    refused(tiled, keys, message, "use multiples of 32");
    let message = "6 heads of queries do not divide among 4 heads of keys";
    refused(Attention::new(6, 64).kv_heads(4).backward(), keys, message, "divides that of queries");
}
