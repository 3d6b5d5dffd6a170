//! Caches in pages, launches on them, and what attention gives, as plain loops in f64.

use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::of_numbers;

/// Numbers that look random, the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between -1 and 1, in steps that f16, bf16 and scaled 8-bit numbers hold.
    pub fn part(&mut self) -> f64 {
        (self.next() % 15) as f64 / 8.0 - 0.875
    }
}

/// The pages of sequences, in no order, with pages in between that nobody has.
pub struct Pages {
    pub lengths: Vec<usize>,
    pub page: usize,
    pub pages: usize,
    pub max_pages: usize,
    /// `[B, MAX_PAGES]`; what a sequence does not need is no page.
    pub table: Vec<i32>,
}

impl Pages {
    pub fn new(lengths: &[usize], page: usize, numbers: &mut Numbers) -> Pages {
        let needed: usize = lengths.iter().map(|length| length.div_ceil(page)).sum();
        let longest = lengths.iter().map(|length| length.div_ceil(page)).max().unwrap_or(0);
        let (pages, max_pages) = (needed + 3, longest + 1);
        let mut order: Vec<i32> = (0..pages as i32).collect();
        for at in (1..pages).rev() {
            order.swap(at, (numbers.next() % (at as u64 + 1)) as usize);
        }
        let mut free = order.into_iter();
        let mut table = Vec::new();
        for length in lengths {
            for number in 0..max_pages {
                table.push(match number < length.div_ceil(page) {
                    true => free.next().expect("enough pages"),
                    false => [i32::MIN, -1, 1 << 20][number % 3],
                });
            }
        }
        Pages { lengths: lengths.to_vec(), page, pages, max_pages, table }
    }

    /// Where in a cache key `n` of sequence `b` is, in tokens.
    pub fn place(&self, b: usize, n: usize) -> usize {
        self.table[b * self.max_pages + n / self.page] as usize * self.page + n % self.page
    }

    /// A cache of rows of `row` elements, and of what is no key the number `garbage`.
    pub fn cache(&self, row: usize, garbage: f64, mut of: impl FnMut() -> f64) -> Vec<f64> {
        let mut cache = vec![garbage; self.pages * self.page * row];
        for (b, &length) in self.lengths.iter().enumerate() {
            for n in 0..length {
                let at = self.place(b, n) * row;
                cache[at..at + row].fill_with(&mut of);
            }
        }
        cache
    }

    pub fn tables(&self) -> [Tensor; 2] {
        let table: Vec<f64> = self.table.iter().map(|&page| f64::from(page)).collect();
        let lengths: Vec<f64> = self.lengths.iter().map(|&length| length as f64).collect();
        let batch = self.lengths.len();
        [of_numbers(I32, &[batch, self.max_pages], &table), of_numbers(I32, &[batch], &lengths)]
    }

    /// The sizes that follow from it.
    pub fn sizes(&self) -> [(&'static str, i64); 3] {
        let sizes = [("B", self.lengths.len()), ("PAGES", self.pages), ("MAX_PAGES", self.max_pages)];
        sizes.map(|(name, size)| (name, size as i64))
    }
}

/// What a query gets, the sum of the sizes of what it is made of, and the logarithm of the sum of its powers.
pub struct Expected {
    pub row: Vec<f64>,
    pub size: Vec<f64>,
    pub log_sum_exp: f64,
}

/// `softmax(scale * query keys) values`, of keys with their values.
pub fn attention(query: &[f64], scale: f64, keys: &[(&[f64], &[f64])], value_dim: usize) -> Expected {
    let score = |key: &[f64]| query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.iter().map(|(key, _)| score(key)).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mean = |of: fn(f64) -> f64| {
        let weighted = |at: usize| weights.iter().zip(keys).map(|(w, key)| w * of(key.1[at])).sum::<f64>();
        (0..value_dim).map(|at| if keys.is_empty() { 0.0 } else { weighted(at) / sum }).collect()
    };
    Expected { row: mean(|x| x), size: mean(f64::abs), log_sum_exp: top + sum.ln() }
}

/// The half of the last bit of numbers of this dtype, as a part of them.
fn rounding(dtype: DType) -> f64 {
    if dtype == F16 { 2f64.powi(-11) } else { 2f64.powi(-8) }
}

/// A result is as near to the expected one as weights that are rounded once to the dtype, sums of f32 and a
/// rounded output allow.
pub fn assert_near(title: &str, found: &[f64], expected: &Expected, dtype: DType) {
    assert_eq!(found.len(), expected.row.len(), "{title}");
    for (at, &found) in found.iter().enumerate() {
        let (row, size) = (expected.row[at], expected.size[at]);
        // Rounded weights, scores and powers of f32, and the output.
        let bound = (rounding(dtype) + 2f64.powi(-15)) * size + 2.0 * rounding(dtype) * row.abs() + 1e-7;
        assert!((found - row).abs() <= bound, "{title}: {found} at {at}, not {row}: bound {bound}");
    }
}

/// The logarithm of the sum of powers of f32.
pub fn assert_log_near(title: &str, found: f64, expected: &Expected) {
    let log = expected.log_sum_exp;
    let is_near = found == log || (found - log).abs() <= 1e-5 * log.abs().max(1.0);
    assert!(is_near, "{title}: log-sum-exp {found}, not {log}");
}

/// An argument of a launch.
pub enum Argument {
    Tensor(Tensor),
    Scalar(f32),
}

impl From<Tensor> for Argument {
    fn from(tensor: Tensor) -> Argument {
        Argument::Tensor(tensor)
    }
}

/// Sizes by name.
pub type Sizes<'a> = &'a [(&'static str, i64)];

/// What the memories hold after a launch on a simulated device; with a seed in check mode, which finds
/// nothing.
pub fn launched(
    title: &str,
    executable: &Executable,
    arguments: &[Argument],
    open: Sizes<'_>,
    seed: Option<u64>,
) -> Vec<Tensor> {
    let device = Device::simulator(executable.target());
    let buffers: Vec<Option<Buffer>> = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Tensor(tensor) => Some(device.upload_tensor(tensor).expect("it fits")),
            Argument::Scalar(_) => None,
        })
        .collect();
    let mut launch = device.launch(executable);
    for (argument, buffer) in arguments.iter().zip(&buffers) {
        launch = match (argument, buffer) {
            (Argument::Scalar(scalar), _) => launch.scalar(*scalar),
            (_, Some(buffer)) => launch.buffer(buffer),
            (Argument::Tensor(_), None) => unreachable!("tensors have buffers"),
        };
    }
    for &(name, size) in open {
        launch = launch.set(name, size);
    }
    match seed {
        None => drop(launch.run().unwrap_or_else(|fault| panic!("{title}: {fault}"))),
        Some(seed) => {
            let report = launch.check(&CheckOptions { seed });
            let report = report.unwrap_or_else(|fault| panic!("{title}: {fault}"));
            assert!(report.findings.is_empty(), "{title}, seed {seed}: {}", report.findings[0]);
        }
    }
    let tensors = arguments.iter().zip(&buffers).filter_map(|(argument, buffer)| match (argument, buffer) {
        (Argument::Tensor(tensor), Some(buffer)) => {
            let bytes = buffer.read_bytes().expect("readable");
            Some(Tensor::from_bytes(tensor.shape(), tensor.dtype(), &bytes).expect("whole"))
        }
        _ => None,
    });
    tensors.collect()
}

/// The options with sizes that are set, or that are open, which are given back.
pub fn bound(options: Options, sizes: Sizes<'_>, is_open: bool) -> (Options, Vec<(&'static str, i64)>) {
    let with = |options: Options, &(name, size): &(&'static str, i64)| match is_open {
        true => options.dynamic(name),
        false => options.set(name, size),
    };
    (sizes.iter().fold(options, with), if is_open { sizes.to_vec() } else { Vec::new() })
}
