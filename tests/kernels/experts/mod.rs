//! Mixtures of experts from logits to tokens, judged by f64 computations that are written here from what a
//! mixture means, and routing by itself.

mod refusals;
mod routing;
mod scaled;

use groundswell::kernels::{MixtureOfExperts, Waves, gather};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::verified;
use groundswell_testing::ready_references::experts::best;

use crate::paged::cases::{Argument, Numbers, launched};

/// A mixture and its tokens.
struct Mixture {
    experts: usize,
    top_k: usize,
    tokens: usize,
    hidden: usize,
    between: usize,
    /// Rows of a block.
    rows: usize,
    dtype: DType,
    /// `[T, EXPERTS]`.
    logits: Vec<f64>,
    x: Vec<f64>,
    /// `[EXPERTS, 2, between, hidden]`, and `[EXPERTS, hidden, between]`.
    gate_up: Vec<f64>,
    down: Vec<f64>,
}

/// What the tokens get, and the sum of the sizes of what that is made of.
struct Expected {
    out: Vec<f64>,
    size: Vec<f64>,
}

impl Mixture {
    fn new(
        [experts, top_k, tokens]: [usize; 3],
        [hidden, between, rows]: [usize; 3],
        dtype: DType,
        logit: impl Fn(&mut Numbers, usize, usize) -> f64,
    ) -> Mixture {
        let mut numbers = Numbers((tokens * 31 + experts) as u64);
        let logits =
            (0..tokens * experts).map(|at| logit(&mut numbers, at / experts, at % experts)).collect();
        let mut some = |count: usize| (0..count).map(|_| numbers.part()).collect::<Vec<_>>();
        Mixture {
            experts,
            top_k,
            tokens,
            hidden,
            between,
            rows,
            dtype,
            logits,
            x: some(tokens * hidden),
            gate_up: some(experts * 2 * between * hidden),
            down: some(experts * hidden * between),
        }
    }

    /// The experts of a token and their weights.
    fn chosen(&self, token: usize) -> Vec<(usize, f64)> {
        let row = &self.logits[token * self.experts..][..self.experts];
        let chosen = best(row, self.top_k);
        let top = row[chosen[0]];
        let sum: f64 = chosen.iter().map(|&expert| (row[expert] - top).exp()).sum();
        chosen.into_iter().map(|expert| (expert, (row[expert] - top).exp() / sum)).collect()
    }

    fn expected(&self) -> Expected {
        let Mixture { hidden, between, .. } = *self;
        let (mut out, mut size) = (vec![0.0; self.tokens * hidden], vec![0.0; self.tokens * hidden]);
        for token in 0..self.tokens {
            let x = &self.x[token * hidden..][..hidden];
            for (expert, weight) in self.chosen(token) {
                let product = |half: usize, n: usize| {
                    let row = &self.gate_up[((expert * 2 + half) * between + n) * hidden..][..hidden];
                    x.iter().zip(row).map(|(x, w)| x * w).sum::<f64>()
                };
                let h = |n: usize| {
                    let gate = product(0, n);
                    gate / (1.0 + (-gate).exp()) * product(1, n)
                };
                let h: Vec<f64> = (0..between).map(h).collect();
                for j in 0..hidden {
                    let row = &self.down[(expert * hidden + j) * between..][..between];
                    let parts = || h.iter().zip(row).map(|(h, w)| h * w * weight);
                    out[token * hidden + j] += parts().sum::<f64>();
                    size[token * hidden + j] += parts().map(f64::abs).sum::<f64>();
                }
            }
        }
        Expected { out, size }
    }

    fn tensor(&self, shape: &[usize], numbers: &[f64]) -> Tensor {
        of_numbers(self.dtype, shape, numbers)
    }
}

/// The launches of a mixture on a chip, in check mode if there is a seed.
struct Launches<'a> {
    mixture: &'a Mixture,
    kernels: MixtureOfExperts,
    target: Target,
    seed: Option<u64>,
    title: String,
    blocks: usize,
}

impl Launches<'_> {
    /// What a kernel leaves in its memories.
    fn run(
        &self,
        kernel: Result<Kernel, Diagnostic>,
        sizes: &[(&'static str, usize)],
        arguments: Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.run_in_order(self.seed, kernel, sizes, arguments)
    }

    fn run_in_order(
        &self,
        seed: Option<u64>,
        kernel: Result<Kernel, Diagnostic>,
        sizes: &[(&'static str, usize)],
        arguments: Vec<Tensor>,
    ) -> Vec<Tensor> {
        let kernel = kernel.expect("a kernel");
        let options = Options::new(self.target).schedule(Schedule::Prefetch);
        let options = sizes.iter().fold(options, |options, &(name, size)| options.set(name, size as i64));
        let arguments: Vec<Argument> = arguments.into_iter().map(Argument::from).collect();
        launched(&self.title, &verified(&kernel, &options), &arguments, &[], seed)
    }

    /// The sizes of a product into so many columns.
    fn product(&self, n: usize, k: usize) -> Vec<(&'static str, usize)> {
        let wave = self.mixture.rows.clamp(16, 32);
        vec![
            ("BLOCKS", self.blocks),
            ("ROWS", self.mixture.rows),
            ("N", n),
            ("K", k),
            ("EXPERTS", self.mixture.experts),
            ("BLOCK_N", 64),
            ("BLOCK_K", 32),
            ("WAVE_R", wave),
            ("WAVE_N", 32),
        ]
    }

    /// Routing and sorting: the experts and weights, and the tables of sorting.
    fn sorted(&self) -> ([Tensor; 2], [Tensor; 3]) {
        let Mixture { experts, top_k, tokens, rows, .. } = *self.mixture;
        let (choices, places) = (tokens * top_k, self.blocks * rows);
        let logits = of_numbers(F32, &[tokens, experts], &self.mixture.logits);
        let ids = of_numbers(I32, &[tokens, top_k], &vec![-9.0; choices]);
        let weights = of_numbers(F32, &[tokens, top_k], &vec![f64::NAN; choices]);
        let sizes = [("T", tokens), ("EXPERTS", experts), ("BLOCK_T", 4)];
        let [_, ids, weights] =
            self.run(self.kernels.route(), &sizes, vec![logits, ids, weights]).try_into().expect("three");
        let flat = of_numbers(I32, &[choices], &ids.to_f64());
        let tables = [places, choices, self.blocks].map(|size| of_numbers(I32, &[size], &vec![-9.0; size]));
        let sizes = [
            ("CHOICES", choices),
            ("EXPERTS", experts),
            ("OTHERS", experts),
            ("BLOCKS", self.blocks),
            ("ROWS", rows),
            ("PLACES", places),
        ];
        let arguments = [flat].into_iter().chain(tables).collect();
        // Its waves store the same in places, of which check mode tells; the sweep of all kernels checks it.
        let after = self.run_in_order(None, self.kernels.sort(), &sizes, arguments);
        let [_, tables @ ..]: [Tensor; 4] = after.try_into().expect("four");
        ([ids, weights], tables)
    }

    /// The tokens of the whole mixture, by the sums of a second kernel and by atomic updates.
    fn whole(&self) -> [Vec<f64>; 2] {
        let Mixture { experts, top_k, tokens, hidden, between, rows, .. } = *self.mixture;
        let ([ids, weights], [choices, of_choice, of_block]) = self.sorted();
        for token in 0..tokens {
            let expected: Vec<f64> =
                self.mixture.chosen(token).iter().map(|&(expert, _)| expert as f64).collect();
            assert_eq!(ids.to_f64()[token * top_k..][..top_k], expected, "{}: token {token}", self.title);
        }
        let places = self.blocks * rows;
        let choices_of_blocks = of_numbers(I32, &[self.blocks, rows], &choices.to_f64());
        let x = self.mixture.tensor(&[tokens, hidden], &self.mixture.x);
        let w = self.mixture.tensor(&[experts, 2, between, hidden], &self.mixture.gate_up);
        let h = self.mixture.tensor(&[self.blocks, rows, between], &vec![f64::NAN; places * between]);
        let mut sizes = self.product(between, hidden);
        let gathered = self.gathered(&x, &choices);
        let arguments = vec![gathered, w.clone(), of_block.clone(), h.clone()];
        let of_gathered = self.run(self.kernels.gate_up_gathered(), &sizes, arguments);
        sizes.push(("T", tokens));
        let arguments = vec![x, w, of_block.clone(), choices_of_blocks.clone(), h];
        let h = self.run(self.kernels.gate_up(), &sizes, arguments).pop().expect("a result");
        assert_eq!(of_gathered[3].to_bytes(), h.to_bytes(), "{}: gathered rows", self.title);

        let w = self.mixture.tensor(&[experts, hidden, between], &self.mixture.down);
        let mut sizes = self.product(hidden, between);
        let y = self.mixture.tensor(&[self.blocks, rows, hidden], &vec![f64::NAN; places * hidden]);
        let arguments = vec![h.clone(), w.clone(), of_block.clone(), y];
        let y = self.run(self.kernels.down(), &sizes, arguments).pop().expect("a result");
        sizes.push(("T", tokens));
        let sums = of_numbers(F32, &[tokens, hidden], &vec![0.0; tokens * hidden]);
        let arguments = vec![h, w, of_block, choices_of_blocks, weights.clone(), sums];
        let sums = self.run(self.kernels.down_atomic(), &sizes, arguments).pop().expect("a result");

        let y = Tensor::from_bytes(&[places, hidden], self.mixture.dtype, &y.to_bytes()).expect("whole");
        let of_choice = of_numbers(I32, &[tokens, top_k], &of_choice.to_f64());
        let out = self.mixture.tensor(&[tokens, hidden], &vec![f64::NAN; tokens * hidden]);
        let sizes = [("T", tokens), ("N", hidden), ("PLACES", places), ("BLOCK_T", 4), ("BLOCK_N", 256)];
        let out = self.run(self.kernels.combine(), &sizes, vec![y, of_choice, weights, out]);
        [out.last().expect("a result").to_f64(), sums.to_f64()]
    }

    /// The rows of tokens by blocks.
    fn gathered(&self, x: &Tensor, choices: &Tensor) -> Tensor {
        let Mixture { top_k, tokens, hidden, rows, dtype, .. } = *self.mixture;
        let places = self.blocks * rows;
        let tokens_of: Vec<f64> =
            choices.to_f64().iter().map(|choice| (choice / top_k as f64).floor()).collect();
        let ids = of_numbers(I32, &[places], &tokens_of);
        let to = of_numbers(dtype, &[places, hidden], &vec![f64::NAN; places * hidden]);
        let sizes = [("M", places), ("N", hidden), ("ROWS", tokens), ("BLOCK_M", 16), ("BLOCK_N", 256)];
        let after = self.run(gather(dtype, Waves::new(4, 1)), &sizes, vec![x.clone(), ids, to]);
        Tensor::from_bytes(&[self.blocks, rows, hidden], dtype, &after[2].to_bytes()).expect("whole")
    }
}

/// Every launch of a mixture gives what it means: h, y and the output are rounded once each.
fn holds(mixture: &Mixture, target: Target, seed: Option<u64>) {
    let Mixture { experts, top_k, tokens, hidden, rows, dtype, .. } = *mixture;
    let kernels = MixtureOfExperts::new(experts as u32, top_k as u32).renormalised().inputs(dtype);
    let title =
        format!("{tokens} tokens, {top_k} of {experts} experts, rows {rows} on {target}, seed {seed:?}");
    let blocks = kernels.blocks(tokens as u32, rows as u32) as usize;
    let launches = Launches { mixture, kernels, target, seed, title, blocks };
    let rounding = if dtype == F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
    let (expected, found) = (mixture.expected(), launches.whole());
    for at in 0..tokens * hidden {
        let bound = rounding * (expected.size[at] * 2.0 + expected.out[at].abs()) + 1e-5;
        for (found, way) in found.iter().zip(["combined", "added"]) {
            let error = (found[at] - expected.out[at]).abs();
            let title = &launches.title;
            assert!(
                error <= bound,
                "{title}: {way} {} at {at}, not {} +- {bound}",
                found[at],
                expected.out[at]
            );
        }
    }
}

/// Logits with ties.
fn some(numbers: &mut Numbers, _: usize, _: usize) -> f64 {
    numbers.part()
}

#[test]
fn mixtures_equal_the_definition() {
    let shapes: [([usize; 3], [usize; 3]); 20] = [
        ([8, 2, 40], [64, 64, 16]),
        ([4, 1, 1], [64, 32, 16]),
        ([4, 2, 3], [33, 40, 16]),
        ([16, 4, 20], [96, 64, 16]),
        ([3, 3, 17], [64, 70, 32]),
        ([1, 1, 50], [40, 64, 32]),
        ([60, 5, 7], [64, 16, 16]),
        ([8, 2, 100], [128, 64, 64]),
        ([5, 2, 33], [65, 33, 32]),
        ([32, 8, 16], [64, 32, 16]),
        ([2, 1, 64], [64, 64, 64]),
        ([7, 3, 29], [100, 48, 16]),
        ([9, 9, 5], [32, 32, 16]),
        ([128, 6, 12], [32, 32, 16]),
        ([8, 1, 90], [64, 96, 32]),
        ([6, 2, 2], [256, 32, 16]),
        ([4, 4, 31], [48, 128, 16]),
        ([12, 2, 60], [72, 24, 32]),
        ([8, 3, 21], [64, 64, 128]),
        ([2, 2, 1], [16, 16, 16]),
    ];
    let chips = [Target::GFX942, Target::GFX950, Target::GFX90A, Target::GFX908, Target::GFX906];
    for (number, (counts, sizes)) in shapes.into_iter().enumerate() {
        let dtype = if number % 4 == 3 { F16 } else { Bf16 };
        holds(&Mixture::new(counts, sizes, dtype, some), chips[number % chips.len()], None);
    }
}

#[test]
fn experts_without_tokens_and_with_all_of_them_are_right() {
    let all_at_one = |_: &mut Numbers, _: usize, expert: usize| if expert == 5 { 4.0 } else { 0.0 };
    let ties = |_: &mut Numbers, _: usize, _: usize| 1.0;
    for target in [Target::GFX942, Target::GFX950] {
        holds(&Mixture::new([8, 1, 50], [64, 48, 16], Bf16, all_at_one), target, None);
        holds(&Mixture::new([8, 2, 50], [64, 48, 32], Bf16, ties), target, None);
        let last = |_: &mut Numbers, _: usize, expert: usize| expert as f64 / 8.0;
        holds(&Mixture::new([24, 1, 19], [64, 48, 16], Bf16, last), target, None);
    }
}

#[test]
fn check_mode_finds_nothing_in_five_orders() {
    for seed in 0..5 {
        holds(&Mixture::new([6, 2, 23], [64, 48, 16], Bf16, some), Target::GFX942, Some(seed));
        holds(&Mixture::new([6, 2, 9], [40, 32, 16], Bf16, some), Target::GFX950, Some(seed));
    }
}
