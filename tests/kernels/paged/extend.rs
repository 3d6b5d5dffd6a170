//! New tokens over a prefix in pages and over each other.

use groundswell::check::compare;
use groundswell::kernels::PagedExtend;
use groundswell::prelude::*;
use groundswell_testing::exact_case::{of_numbers, zeros};
use groundswell_testing::judged::verified;

use super::cases::{Argument, Numbers, Pages, assert_near, attention, bound, launched};

/// Heads of queries and keys, elements of a head; the most new tokens; tokens of a page; for each sequence
/// its prefix and its new tokens.
type Shape = ([usize; 3], usize, usize, &'static [[usize; 2]]);

const SHAPES: [Shape; 20] = [
    ([4, 1, 128], 1, 16, &[[1, 1]]),
    ([8, 2, 128], 33, 16, &[[100, 33], [0, 20]]),
    ([2, 2, 64], 64, 64, &[[65, 64], [64, 1], [1, 0]]),
    ([4, 4, 128], 40, 1, &[[0, 40]]),
    ([8, 1, 128], 17, 128, &[[129, 17], [5, 16]]),
    ([3, 1, 80], 32, 16, &[[31, 32], [33, 31]]),
    ([4, 2, 96], 50, 7, &[[20, 50]]),
    ([2, 1, 256], 16, 16, &[[40, 16]]),
    ([6, 3, 88], 5, 16, &[[0, 5], [0, 0], [9, 3]]),
    ([1, 1, 128], 100, 64, &[[130, 100]]),
    ([16, 2, 64], 9, 1, &[[7, 9], [64, 2]]),
    ([5, 5, 32], 31, 3, &[[50, 31]]),
    ([2, 2, 128], 129, 16, &[[3, 129]]),
    ([4, 1, 100], 12, 5, &[[32, 12], [31, 1]]),
    ([8, 8, 16], 20, 16, &[[1, 20]]),
    ([4, 2, 192], 8, 64, &[[63, 8], [0, 8]]),
    ([7, 1, 64], 10, 16, &[[12, 10]]),
    ([2, 1, 128], 64, 128, &[[128, 64], [127, 63]]),
    ([32, 4, 64], 4, 16, &[[33, 4]]),
    ([1, 1, 1], 70, 2, &[[70, 70]]),
];

fn judge((heads, new, page, sequences): Shape, target: Target, inputs: DType, number: usize) {
    let title = format!("{heads:?} x {new}, pages of {page}, {sequences:?}, {inputs} on {target}");
    let [heads, kv, dim] = heads;
    let batch = sequences.len();
    let prefixes: Vec<usize> = sequences.iter().map(|sequence| sequence[0]).collect();
    let mut numbers = Numbers(number as u64);
    let pages = Pages::new(&prefixes, page, &mut numbers);
    let mut made =
        |count: usize, factor: f64| -> Vec<f64> { (0..count).map(|_| numbers.part() * factor).collect() };
    let q = made(batch * new * heads * dim, 2.0);
    let news = [0, 1].map(|_| made(batch * new * kv * dim, 1.0));
    let caches = [0, 1].map(|_| pages.cache(kv * dim, f64::NAN, || numbers.part()));
    let extend = PagedExtend::new(heads as u32, kv as u32, dim as u32).page(page as u32).inputs(inputs);
    let kernel = extend.kernel().expect("a kernel");
    let is_open = number % 2 == 1;
    let (options, open) = bound(extend.options(target, new as u32), &pages.sizes(), is_open);
    let executable = verified(&kernel, &options);
    let new_lengths: Vec<f64> = sequences.iter().map(|sequence| sequence[1] as f64).collect();
    let [table, lengths] = pages.tables();
    let tensors: Vec<Tensor> = [of_numbers(inputs, &[batch, new, heads, dim], &q)]
        .into_iter()
        .chain(news.each_ref().map(|rows| of_numbers(inputs, &[batch, new, kv, dim], rows)))
        .chain(caches.each_ref().map(|rows| of_numbers(inputs, &[pages.pages, page, kv, dim], rows)))
        .chain([table, lengths, of_numbers(I32, &[batch], &new_lengths)])
        .chain([zeros(inputs, &[batch, new, heads, dim])])
        .collect();
    let arguments: Vec<Argument> = tensors.iter().cloned().map(Argument::from).collect();
    let seed = number.is_multiple_of(4).then_some(number as u64);
    let found = launched(&title, &executable, &arguments, &open, seed).pop().expect("written");
    if number.is_multiple_of(3) {
        let sizes = pages.sizes();
        let value = |symbol: Symbol| {
            let own = sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
            own.or_else(|| options.value(symbol))
        };
        let after =
            Interpreter::run(&kernel, &value, &tensors).unwrap_or_else(|fault| panic!("{title}: {fault}"));
        let meant = after.last().expect("written");
        assert!(compare(&found, meant).expect("one shape").ok, "{title}: not what the interpreter gives");
    }
    let out = found.to_f64();
    for (b, &[prefix, count]) in sequences.iter().enumerate() {
        for token in 0..new {
            for head in 0..heads {
                let of_keys = head / (heads / kv);
                let in_pages = |cache: usize, n: usize| {
                    &caches[cache][(pages.place(b, n) * kv + of_keys) * dim..][..dim]
                };
                let among_new =
                    |which: usize, n: usize| &news[which][((b * new + n) * kv + of_keys) * dim..][..dim];
                let is_there = token < count;
                let prefix_rows = (0..prefix).map(|n| (in_pages(0, n), in_pages(1, n)));
                let new_rows = (0..=token).map(|n| (among_new(0, n), among_new(1, n)));
                let rows: Vec<_> = prefix_rows.chain(new_rows).filter(|_| is_there).collect();
                let at = ((b * new + token) * heads + head) * dim;
                let expected = attention(&q[at..at + dim], 1.0 / (dim as f64).sqrt(), &rows, dim);
                let title = format!("{title}: sequence {b}, token {token}, head {head}");
                assert_near(&title, &out[at..at + dim], &expected, inputs);
            }
        }
    }
}

#[test]
fn extending_gives_what_plain_loops_give() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let target = [Target::GFX942, Target::GFX950, Target::GFX942, Target::GFX90A][number % 4];
        judge(shape, target, [F16, Bf16][number % 2], number);
    }
}
