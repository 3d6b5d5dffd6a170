//! New tokens into the cache.

use groundswell::kernels::paged_append;
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::verified;

use super::cases::{Argument, Numbers, Pages, bound, launched};

/// New tokens, heads, elements of a head, tokens of a page, lengths after the tokens have joined.
type Shape = (usize, usize, usize, usize, &'static [usize]);

/// Among them sequences of fewer keys than there are new tokens, and of none.
const SHAPES: [Shape; 20] = [
    (1, 1, 128, 16, &[1]),
    (1, 8, 128, 64, &[65, 64, 1]),
    (1, 2, 64, 1, &[7, 9]),
    (5, 2, 128, 16, &[5, 20, 3]),
    (17, 1, 128, 16, &[17, 40, 0]),
    (16, 2, 80, 64, &[16, 100]),
    (3, 3, 88, 7, &[2, 1, 30]),
    (40, 2, 32, 128, &[129, 41]),
    (2, 1, 1, 1, &[2, 3, 0, 1]),
    (33, 1, 100, 5, &[33]),
    (1, 1, 256, 16, &[17, 16, 15]),
    (4, 4, 96, 3, &[10, 4]),
    (64, 1, 64, 64, &[64, 65, 63]),
    (6, 2, 192, 16, &[6, 7]),
    (2, 16, 16, 2, &[3, 2]),
    (31, 1, 128, 1, &[31, 32]),
    (8, 5, 24, 16, &[8, 1, 19]),
    (1, 2, 128, 128, &[128, 129]),
    (19, 1, 72, 4, &[20, 18]),
    (12, 3, 48, 16, &[0, 0]),
];

/// The numbers of a narrow cache: the nearest one to a quotient, to even, and not beyond the largest.
fn stored(dtype: DType, quotient: f64) -> f64 {
    let numbers: Vec<f64> = match dtype {
        I8 => (-128..=127).map(f64::from).collect(),
        F8E4M3Fnuz => (0..=255).map(|bits| f64::from(f8e4m3fnuz::from_bits(bits).to_f32())).collect(),
        F8E4M3Fn => (0..=255).map(|bits| f64::from(f8e4m3fn::from_bits(bits).to_f32())).collect(),
        F8E5M2 => (0..=255).map(|bits| f64::from(f8e5m2::from_bits(bits).to_f32())).collect(),
        _ => return quotient,
    };
    let finite = numbers.into_iter().enumerate().filter(|(_, number)| number.is_finite());
    let distance = |number: f64| (number - quotient).abs();
    // Codes of even numbers are even.
    let nearest =
        finite.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)).then((a.0 % 2).cmp(&(b.0 % 2))));
    nearest.expect("some number").1
}

fn judge((new, kv, dim, page, lengths): Shape, target: Target, [inputs, cache]: [DType; 2], number: usize) {
    let title = format!("{new} x {kv} x {dim}, pages of {page}, {lengths:?}, {inputs} {cache} on {target}");
    let mut numbers = Numbers(number as u64);
    let pages = Pages::new(lengths, page, &mut numbers);
    let count = lengths.len() * new * kv * dim;
    // Halves of the steps of i8, and some that are too large.
    let made = |numbers: &mut Numbers| -> Vec<f64> {
        (0..count).map(|_| ((numbers.next() % 601) as f64 - 300.0) / 2.0).collect()
    };
    let new_rows = [0, 1].map(|_| of_numbers(inputs, &[lengths.len(), new, kv, dim], &made(&mut numbers)));
    let new_tensors = new_rows.clone();
    let new_rows = new_rows.map(|rows| rows.to_f64());
    let scales: [Vec<f64>; 2] = match cache {
        I8 => [0, 1].map(|at| (0..kv).map(|h| f64::from(1 << ((h + at) % 2))).collect()),
        _ if cache == inputs => [vec![1.0], vec![1.0]],
        _ => [vec![0.25], vec![2.0]],
    };
    let row = kv * dim;
    let mut expected = [0, 1].map(|_| vec![1.0; pages.pages * page * row]);
    for (which, expected) in expected.iter_mut().enumerate() {
        for (b, &length) in lengths.iter().enumerate() {
            for token in new.saturating_sub(length)..new {
                let place = pages.place(b, length + token - new);
                for at in 0..row {
                    let scale = &scales[which];
                    let number = new_rows[which][(b * new + token) * row + at];
                    expected[place * row + at] = stored(cache, number / scale[at / dim % scale.len()]);
                }
            }
        }
    }
    let [table, of_lengths] = pages.tables();
    let mut arguments: Vec<Argument> =
        new_tensors.into_iter().map(Argument::from).chain([table, of_lengths].map(Argument::from)).collect();
    for scale in &scales {
        match cache {
            I8 => arguments.push(of_numbers(F32, &[kv], scale).into()),
            _ if cache == inputs => {}
            _ => arguments.push(Argument::Scalar(scale[0] as f32)),
        }
    }
    let ones = vec![1.0; pages.pages * page * row];
    arguments.extend([0, 1].map(|_| Argument::from(of_numbers(cache, &[pages.pages, page, kv, dim], &ones))));
    let fixed = [("NEW", new), ("KV", kv), ("D", dim), ("PAGE", page)];
    let options = fixed.iter().fold(Options::new(target), |o, &(name, size)| o.set(name, size as i64));
    let is_open = number.is_multiple_of(2);
    let (options, open) = bound(options, &pages.sizes(), is_open);
    let kernel = paged_append(inputs, cache).expect("a kernel");
    let executable = verified(&kernel, &options);
    let seed = number.is_multiple_of(4).then_some(number as u64);
    let after = launched(&title, &executable, &arguments, &open, seed);
    for (which, expected) in expected.iter().enumerate() {
        let found = after[after.len() - 2 + which].to_f64();
        assert_eq!(&found, expected, "{title}: cache {which}");
    }
}

#[test]
fn new_tokens_are_in_their_places() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        for inputs in [F16, Bf16] {
            judge(shape, Target::GFX942, [inputs; 2], number);
        }
    }
}

#[test]
fn narrow_caches_have_the_nearest_numbers() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let inputs = [F16, Bf16][number % 2];
        judge(shape, Target::GFX942, [inputs, F8E4M3Fnuz], number);
        judge(shape, Target::GFX950, [inputs, [F8E4M3Fn, F8E5M2][number % 2]], number);
        judge(shape, Target::ALL[number % 5], [inputs, I8], number);
    }
}
