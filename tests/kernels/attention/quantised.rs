//! 8-bit floats with scales, positions as they are read, and tensors with strides.

use groundswell::kernels::{Attention, AttentionLayout, AttentionScales, Diagonal, RopePairs};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;

use super::definition::{Definition, Place, Sizes};
use super::forward::{LENGTHS, causal, open};
use super::trial::Trial;

#[test]
fn eight_bit_floats_with_scales_are_their_definition() {
    for (number, [queries, keys]) in LENGTHS.into_iter().enumerate() {
        let (inputs, target) = [(F8E4M3Fnuz, Target::GFX942), (F8E4M3Fn, Target::GFX950)][number % 2];
        let dim = [64, 128][number / 2 % 2];
        let sizes = Sizes { batch: 2, heads: 2, kv_heads: 1, queries, keys, dim, value_dim: dim };
        let attention = Attention::new(2, dim as u32).kv_heads(1).inputs(inputs).log_sum_exp().causal();
        let blocks = keys.div_ceil(128);
        // Scales of queries, of keys and of values, by sequence and head, and by block.
        let scale =
            move |which: usize, head: usize, block: usize| 0.25 * (1 + (which + head * 3 + block) % 5) as f64;
        let kind = number % 3;
        let (attention, shapes) = match kind {
            0 => (attention.scales(AttentionScales::Tensor), [vec![1], vec![1]]),
            1 => (attention.scales(AttentionScales::Head), [vec![2, 2], vec![2, 1]]),
            _ => (attention.scales(AttentionScales::Block(128)), [vec![2, 2], vec![2, 1, blocks]]),
        };
        let of = move |which: usize, at: Place| match (kind, which) {
            (0, _) => scale(which, 0, 0),
            (_, 0) => scale(which, at.batch * 2 + at.head, 0),
            (1, _) => scale(which, at.batch, 0),
            _ => scale(which, at.batch, at.key / 128),
        };
        let threshold = [0.0, 4.0][number % 2];
        let definition = Definition {
            sees: causal(Diagonal::BottomRight),
            score: Box::new(move |at, score| score * of(0, at) * of(1, at)),
            value_scale: Box::new(move |at| of(2, at)),
            ..Definition::plain(dim)
        };
        let mut trial = Trial::new("fp8", attention.threshold(threshold), sizes, definition);
        for (which, name) in ["q_scale", "k_scale", "v_scale"].into_iter().enumerate() {
            let shape = &shapes[which.min(1)];
            let elements: Vec<f64> = (0..shape.iter().product())
                .map(|at: usize| match kind {
                    2 if which > 0 => scale(which, at / blocks, at % blocks),
                    _ => scale(which, at, 0),
                })
                .collect();
            trial.others.insert(name, of_numbers(F32, shape, &elements));
        }
        Trial { inputs, open: open(number), ..trial }.holds_on(target);
    }
}

/// Pairs that are turned by their positions.
#[test]
fn positions_turn_queries_and_keys() {
    for (number, [queries, keys]) in LENGTHS.into_iter().enumerate() {
        let pairs = [RopePairs::Halves, RopePairs::Interleaved][number % 2];
        let layout = [AttentionLayout::Bhsd, AttentionLayout::Bshd][number / 2 % 2];
        let dim = [64, 128, 80][number % 3];
        let sizes = Sizes { batch: 1, heads: 2, kv_heads: 1, queries, keys, dim, value_dim: dim };
        let attention = Attention::new(2, dim as u32).kv_heads(1).layout(layout).causal().rope(pairs);
        let definition = Definition { sees: causal(Diagonal::BottomRight), ..Definition::plain(dim) };
        let trial = Trial::new("rope", attention.log_sum_exp(), sizes, definition);
        let target = [Target::GFX942, Target::GFX90A, Target::GFX950][number % 3];
        Trial { rope: Some(pairs), layout, open: open(number), ..trial }.holds_on(target);
    }
}

/// The three are parts of one tensor `[B, S, 3, H, D]`, and so is O of a wider one.
#[test]
fn strides_are_those_of_larger_tensors() {
    let (queries, heads, dim) = (70usize, 2usize, 64usize);
    for layout in [AttentionLayout::Bshd, AttentionLayout::Bhsd] {
        let attention = Attention::new(heads as u32, dim as u32).layout(layout).strided(8);
        let kernel = attention.kernel().expect("the options fit");
        let [of_b, of_h, of_s] = match layout {
            AttentionLayout::Bhsd => [3 * heads * queries * dim, 3 * queries * dim, dim],
            _ => [queries * 3 * heads * dim, dim, 3 * heads * dim],
        };
        let strides: Vec<(String, i64)> = ["Q", "K", "V", "O"]
            .into_iter()
            .flat_map(|name| {
                let rows = if matches!(name, "K" | "V") { "N" } else { "M" };
                [("B", of_b), ("H", of_h), (rows, of_s)]
                    .map(|(along, of)| (format!("{name}_{along}"), of as i64))
            })
            .collect();
        for is_open in [false, true] {
            let sizes = [("B", 2), ("M", queries as i64), ("N", queries as i64)];
            let options =
                sizes.iter().fold(attention.options(Target::GFX942), |o, &(name, size)| o.set(name, size));
            let options = strides.iter().fold(options, |options, (name, size)| match is_open {
                true => options.dynamic(&name[..]),
                false => options.set(&name[..], *size),
            });
            let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{fault}\n{kernel}"));
            assert!(executable.report().split_accesses.is_empty(), "{}", executable.report());
            let tile = attention.options(Target::GFX942);
            let value = |symbol: Symbol| {
                let known = sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
                let stride = strides.iter().find(|stride| stride.0 == symbol.name()).map(|stride| stride.1);
                known.or(stride).or_else(|| tile.value(symbol))
            };
            for seed in 0..2 {
                groundswell_testing::judged::assert_right(&kernel, &executable, &value, seed, "strides");
            }
        }
    }
}
