//! Mixtures of experts of narrow floats with scales: both products, of the interpreter and of machine code,
//! are judged by f64 computations of what the numbers and their scales stand for. Hidden rows are judged by
//! the nearest number of their format.

use groundswell::kernels::MixtureOfExperts;
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::verified;

use crate::paged::cases::{Argument, Numbers, launched};

/// Columns of a block.
const COLUMNS: usize = 128;

/// Elements with their scales, in the order in which kernels take them.
#[derive(Clone)]
struct Scaled {
    elements: Tensor,
    scales: Tensor,
    /// What they stand for.
    values: Vec<f64>,
}

/// Sizes of a mixture: the last block of an expert is not full, and the last expert of five has no tokens.
#[derive(Copy, Clone, Debug)]
struct Sizes {
    dtype: DType,
    experts: usize,
    top_k: usize,
    tokens: usize,
    /// K of the first product.
    hidden: usize,
    /// Blocks of columns between both products.
    between: usize,
    rows: usize,
}

/// Who computes.
#[derive(Copy, Clone, Debug)]
enum Computed {
    Interpreter,
    /// With a seed in check mode.
    Chip(Target, Option<u64>),
}

impl Sizes {
    fn is_of_powers(self) -> bool {
        self.dtype == F4E2M1
    }

    /// Rows of `k` elements, whose scales lie where those of K come first and then those of rows; `group`
    /// rows share scales.
    fn scaled(self, numbers: &mut Numbers, [rows, k, group]: [usize; 3]) -> Scaled {
        let codes: Vec<f64> = (0..rows * k).map(|_| numbers.part() * 4.0).collect();
        let elements = of_numbers(self.dtype, &[rows, k], &codes);
        let codes = elements.to_f64();
        let scale = |numbers: &mut Numbers| [0.25, 0.5, 0.125, 1.0][(numbers.next() % 4) as usize];
        if self.is_of_powers() {
            let groups = k.div_ceil(256);
            let scales: Vec<f64> = (0..groups * rows * 8).map(|_| scale(numbers)).collect();
            let of = |at: usize| scales[(at % k / 256 * rows + at / k) * 8 + at % k / 32 % 8];
            let values = codes.iter().enumerate().map(|(at, code)| code * of(at)).collect();
            return Scaled { elements, scales: of_numbers(F8E8M0, &[groups, rows, 8], &scales), values };
        }
        let (blocks, groups) = (k.div_ceil(128), rows / group);
        let scales: Vec<f64> = (0..blocks * groups).map(|_| scale(numbers) * 1.25).collect();
        // Scales of matrices have K last.
        let place = |row: usize, block: usize| match group {
            1 => block * groups + row,
            _ => row / group * blocks + block,
        };
        let values = codes.iter().enumerate().map(|(at, code)| code * scales[place(at / k, at % k / 128)]);
        let values = values.collect();
        Scaled { elements, scales: of_numbers(F32, &[scales.len()], &scales), values }
    }

    fn shaped(tensor: &Tensor, shape: &[usize]) -> Tensor {
        Tensor::from_bytes(shape, tensor.dtype(), &tensor.to_bytes()).expect("as many elements")
    }
}

/// A mixture, its tables and its numbers.
struct Mixture {
    sizes: Sizes,
    kernels: MixtureOfExperts,
    computed: Computed,
    x: Scaled,
    gate_up: Scaled,
    down: Scaled,
    /// The expert of each choice, `[T, TOPK]`.
    ids: Vec<usize>,
    weights: Vec<f64>,
    /// The choice of each row, or -1.
    choice_of_place: Vec<f64>,
    expert_of_block: Vec<f64>,
}

impl Mixture {
    fn new(sizes: Sizes, computed: Computed) -> Mixture {
        let Sizes { dtype, experts, top_k, tokens, hidden, between, rows } = sizes;
        let mut numbers = Numbers((tokens * 31 + experts + hidden) as u64);
        let kernels = MixtureOfExperts::new(experts as u32, top_k as u32).inputs(dtype);
        // The last expert has no tokens unless each token has all.
        let others = experts.saturating_sub(usize::from(top_k < experts));
        let first: Vec<usize> = (0..tokens).map(|_| numbers.next() as usize % others).collect();
        let ids: Vec<usize> =
            first.iter().flat_map(|first| (0..top_k).map(move |at| (first + at) % others)).collect();
        let weights = (0..ids.len()).map(|_| numbers.part()).collect();
        let blocks = kernels.blocks(tokens as u32, rows as u32) as usize;
        let (mut choice_of_place, mut expert_of_block) = (Vec::new(), Vec::new());
        for expert in 0..experts {
            let own = ids.iter().enumerate().filter(|(_, id)| **id == expert);
            choice_of_place.extend(own.map(|(choice, _)| choice as f64));
            choice_of_place.resize(choice_of_place.len().next_multiple_of(rows), -1.0);
            expert_of_block.resize(choice_of_place.len() / rows, expert as f64);
        }
        choice_of_place.resize(blocks * rows, -1.0);
        expert_of_block.resize(blocks, -1.0);
        let columns = between * COLUMNS;
        let x = sizes.scaled(&mut numbers, [tokens, hidden, 1]);
        let gate_up = sizes.scaled(&mut numbers, [experts * 2 * columns, hidden, COLUMNS]);
        let down = sizes.scaled(&mut numbers, [experts * COLUMNS, columns, COLUMNS]);
        Mixture { sizes, kernels, computed, x, gate_up, down, ids, weights, choice_of_place, expert_of_block }
    }

    fn title(&self) -> String {
        format!("{:?} by {:?}", self.sizes, self.computed)
    }

    fn run(
        &self,
        kernel: Result<Kernel, Diagnostic>,
        [blocks, k]: [usize; 2],
        arguments: Vec<Tensor>,
    ) -> Vec<Tensor> {
        let kernel = kernel.expect("a kernel");
        let Sizes { experts, tokens, rows, .. } = self.sizes;
        let sizes = [
            ("BLOCKS", self.expert_of_block.len()),
            ("ROWS", rows),
            ("K", k),
            ("EXPERTS", experts),
            ("N_BLOCKS", blocks),
            ("N_GROUPS", blocks.div_ceil(2)),
            ("BLOCK_N", COLUMNS),
            ("BLOCK_K", 256),
            ("WAVE_R", rows.clamp(16, 32)),
            ("WAVE_N", 64),
            ("T", tokens),
        ];
        let text = kernel.to_string();
        let is_known =
            |name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        let sizes: Vec<(&str, usize)> = sizes.into_iter().filter(|size| is_known(size.0)).collect();
        match self.computed {
            Computed::Interpreter => {
                let value = |symbol: Symbol| {
                    sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1 as i64)
                };
                Interpreter::run(&kernel, &value, &arguments)
                    .unwrap_or_else(|fault| panic!("{}: {fault}", self.title()))
            }
            Computed::Chip(target, seed) => {
                let options = Options::new(target).schedule(Schedule::Prefetch);
                let options =
                    sizes.iter().fold(options, |options, &(name, size)| options.set(name, size as i64));
                let arguments: Vec<Argument> = arguments.into_iter().map(Argument::from).collect();
                launched(&self.title(), &verified(&kernel, &options), &arguments, &[], seed)
            }
        }
    }

    fn tables(&self) -> [Tensor; 2] {
        let blocks = self.expert_of_block.len();
        [
            of_numbers(I32, &[blocks], &self.expert_of_block),
            of_numbers(I32, &[blocks, self.sizes.rows], &self.choice_of_place),
        ]
    }

    /// The token and the expert of a row, if it has one.
    fn row(&self, row: usize) -> Option<(usize, usize)> {
        let choice = self.choice_of_place[row];
        (choice >= 0.0).then(|| (choice as usize / self.sizes.top_k, self.ids[choice as usize]))
    }

    /// The hidden rows and their scales, of tokens and of rows that have been gathered, which are the same.
    fn hidden(&self) -> [Tensor; 2] {
        let Sizes { dtype, experts, tokens, hidden, between, rows, .. } = self.sizes;
        let (blocks, is_of_powers) = (self.expert_of_block.len(), self.sizes.is_of_powers());
        let places = blocks * rows;
        let [of_block, choices] = self.tables();
        let w = Sizes::shaped(&self.gate_up.elements, &[experts, 2, between, COLUMNS, hidden]);
        let (k_groups, groups) = (hidden.div_ceil(256), between.div_ceil(2));
        let k_blocks = hidden.div_ceil(128);
        let (w_shape, x_shape, h_shape): (Vec<usize>, Vec<usize>, Vec<usize>) = match is_of_powers {
            true => (
                vec![k_groups, experts, 2, between, COLUMNS, 8],
                vec![k_groups, tokens, 8],
                vec![groups, blocks, rows, 8],
            ),
            false => {
                (vec![experts, 2, between, k_blocks], vec![k_blocks, tokens], vec![between, blocks, rows])
            }
        };
        let w_scale = Sizes::shaped(&self.gate_up.scales, &w_shape);
        let h = of_numbers(dtype, &[blocks, rows, between, COLUMNS], &vec![1.0; places * between * COLUMNS]);
        let scale_dtype = self.x.scales.dtype();
        let h_scale = of_numbers(scale_dtype, &h_shape, &vec![1.0; h_shape.iter().product()]);
        let x_scale = Sizes::shaped(&self.x.scales, &x_shape);
        let arguments =
            [self.x.elements.clone(), x_scale, w.clone(), w_scale.clone(), of_block.clone(), choices];
        let arguments = arguments.into_iter().chain([h.clone(), h_scale.clone()]).collect();
        let after = self.run(self.kernels.gate_up(), [between, hidden], arguments);

        let (elements, scales) = (self.x.elements.to_f64(), self.x.scales.to_f64());
        let token = |row: usize| self.row(row).map(|(token, _)| token);
        let gathered: Vec<f64> = (0..places * hidden)
            .map(|at| token(at / hidden).map_or(0.0, |token| elements[token * hidden + at % hidden]))
            .collect();
        let side = if is_of_powers { 8 } else { 1 };
        let parts = scales.len() / tokens / side;
        let of_scale = |at: usize| {
            let (part, row, place) = (at / side / places, at / side % places, at % side);
            token(row).map_or(1.0, |token| scales[(part * tokens + token) * side + place])
        };
        let gathered_scales: Vec<f64> = (0..parts * places * side).map(of_scale).collect();
        let mut shape = vec![parts, blocks, rows];
        shape.extend(is_of_powers.then_some(8));
        let arguments = vec![
            of_numbers(dtype, &[blocks, rows, hidden], &gathered),
            of_numbers(scale_dtype, &shape, &gathered_scales),
            w,
            w_scale,
            of_block,
            h,
            h_scale,
        ];
        let of_gathered = self.run(self.kernels.gate_up_gathered(), [between, hidden], arguments);
        let ours = [after[6].clone(), after[7].clone()];
        for (ours, gathered) in ours.iter().zip(&of_gathered[5..]) {
            assert_eq!(ours.to_bytes(), gathered.to_bytes(), "{}: gathered rows", self.title());
        }
        ours
    }

    /// What the hidden rows stand for, after they have been compared with what they should be.
    fn judged(&self, [h, scales]: &[Tensor; 2]) -> Vec<f64> {
        let Sizes { hidden, between, rows, .. } = self.sizes;
        let (places, columns) = (self.expert_of_block.len() * rows, between * COLUMNS);
        let (codes, scales) = (h.to_f64(), scales.to_f64());
        let mut values = Vec::new();
        for place in 0..places {
            let exact: Vec<f64> = (0..columns).map(|column| self.exact(place, column, hidden)).collect();
            for (column, &exact_one) in exact.iter().enumerate() {
                let block = if self.sizes.is_of_powers() { 32 } else { COLUMNS };
                let most = exact[column / block * block..][..block]
                    .iter()
                    .fold(1e-30, |most: f64, x| most.max(x.abs()));
                let scale = match self.sizes.is_of_powers() {
                    true => scales[(column / 256 * places + place) * 8 + column / 32 % 8],
                    false => scales[column / COLUMNS * places + place],
                };
                let title = || format!("{}: row {place}, column {column}", self.title());
                match self.sizes.is_of_powers() {
                    // Where the largest element is at the edge both powers will do.
                    true => {
                        let times = most / scale;
                        assert!((3.4999..7.0001).contains(&times), "{}: {most} with {scale}", title());
                    }
                    false => {
                        let largest = if self.sizes.dtype == F8E4M3Fnuz { 240.0 } else { 448.0 };
                        let is_near = (scale * largest / most - 1.0).abs() < 2f64.powi(-16);
                        assert!(is_near, "{}: {scale} for {most}", title());
                    }
                }
                let (code, wanted) = (codes[place * columns + column], exact_one / scale);
                let nearest = of_numbers(self.sizes.dtype, &[1], &[wanted]).to_f64()[0];
                let bound = (nearest - wanted).abs() + 1e-4 * wanted.abs().max(1.0);
                assert!((code - wanted).abs() <= bound, "{}: {code}, not {wanted}", title());
                values.push(code * scale);
            }
        }
        values
    }

    /// An element of the hidden rows.
    fn exact(&self, place: usize, column: usize, k: usize) -> f64 {
        let Some((token, expert)) = self.row(place) else { return 0.0 };
        let x = &self.x.values[token * k..][..k];
        let columns = self.sizes.between * COLUMNS;
        let [gate, up] = [0, 1].map(|half| {
            let row = &self.gate_up.values[((expert * 2 + half) * columns + column) * k..][..k];
            x.iter().zip(row).map(|(x, w)| x * w).sum::<f64>()
        });
        gate / (1.0 + (-gate).exp()) * up
    }

    fn holds(&self) {
        let Sizes { experts, top_k, tokens, between, rows, .. } = self.sizes;
        let hidden = self.hidden();
        let values = self.judged(&hidden);
        let (blocks, k) = (self.expert_of_block.len(), between * COLUMNS);
        let [of_block, choices] = self.tables();
        let h = Sizes::shaped(&hidden[0], &[blocks, rows, k]);
        let h_scale = hidden[1].clone();
        let w = Sizes::shaped(&self.down.elements, &[experts, 1, COLUMNS, k]);
        let w_scale = match self.sizes.is_of_powers() {
            true => Sizes::shaped(&self.down.scales, &[k.div_ceil(256), experts, 1, COLUMNS, 8]),
            false => Sizes::shaped(&self.down.scales, &[experts, 1, between]),
        };
        let y = of_numbers(Bf16, &[blocks, rows, 1, COLUMNS], &vec![f64::NAN; blocks * rows * COLUMNS]);
        let arguments = vec![h.clone(), h_scale.clone(), w.clone(), w_scale.clone(), of_block.clone(), y];
        let y = self.run(self.kernels.down(), [1, k], arguments).pop().expect("a result").to_f64();
        let weights = of_numbers(F32, &[tokens, top_k], &self.weights);
        let sums = of_numbers(F32, &[tokens, 1, COLUMNS], &vec![0.0; tokens * COLUMNS]);
        let arguments = vec![h, h_scale, w, w_scale, of_block, choices, weights, sums];
        let sums = self.run(self.kernels.down_atomic(), [1, k], arguments).pop().expect("a result").to_f64();
        let (mut of_tokens, mut sizes) = (vec![0.0; sums.len()], vec![0.0; sums.len()]);
        for place in 0..blocks * rows {
            let row = self.row(place);
            for column in 0..COLUMNS {
                let (mut sum, mut size) = (0.0, 0.0);
                if let Some((_, expert)) = row {
                    let w = &self.down.values[(expert * COLUMNS + column) * k..][..k];
                    let parts = || values[place * k..][..k].iter().zip(w).map(|(h, w)| h * w);
                    (sum, size) = (parts().sum::<f64>(), parts().map(f64::abs).sum::<f64>());
                    let weight = self.weights[self.choice_of_place[place] as usize];
                    let at = row.map_or(0, |(token, _)| token) * COLUMNS + column;
                    of_tokens[at] += weight * sum;
                    sizes[at] += size * weight.abs();
                }
                let (found, bound) = (y[place * COLUMNS + column], 2f64.powi(-8) * sum.abs() + 1e-6 * size);
                let is_near = (found - sum).abs() <= bound;
                assert!(is_near, "{}: {found} in row {place}, column {column}, not {sum}", self.title());
            }
        }
        for (at, found) in sums.iter().enumerate() {
            let (sum, bound) = (of_tokens[at], 1e-6 * sizes[at] + 1e-30);
            assert!((found - sum).abs() <= bound, "{}: {found} at {at}, not {sum}", self.title());
        }
    }
}

const SHAPES: [[usize; 6]; 7] = [
    // Experts, choices, tokens, K, blocks of columns, rows.
    [5, 2, 20, 256, 2, 16],
    [3, 1, 1, 128, 1, 16],
    [4, 2, 33, 200, 1, 32],
    [2, 2, 5, 32, 3, 16],
    [6, 3, 9, 300, 2, 16],
    [1, 1, 40, 384, 1, 32],
    [8, 1, 2, 640, 2, 16],
];

fn sizes(dtype: DType, [experts, top_k, tokens, hidden, between, rows]: [usize; 6]) -> Sizes {
    Sizes { dtype, experts, top_k, tokens, hidden, between, rows }
}

fn every_shape(dtype: DType, target: Target) {
    for shape in SHAPES {
        Mixture::new(sizes(dtype, shape), Computed::Interpreter).holds();
        Mixture::new(sizes(dtype, shape), Computed::Chip(target, None)).holds();
    }
    for seed in 0..3 {
        let shape = SHAPES[seed as usize * 2];
        Mixture::new(sizes(dtype, shape), Computed::Chip(target, Some(seed))).holds();
    }
}

#[test]
fn mixtures_with_scales_of_blocks_equal_the_definition() {
    every_shape(F8E4M3Fnuz, Target::GFX942);
    every_shape(F8E4M3Fn, Target::GFX950);
}

#[test]
fn mixtures_of_mxfp4_equal_the_definition() {
    every_shape(F4E2M1, Target::GFX950);
}

/// A row whose hidden elements are all zero has zeros, and its scale is a number.
#[test]
fn rows_of_zeros_become_zeros() {
    for (dtype, target) in
        [(F8E4M3Fnuz, Target::GFX942), (F8E4M3Fn, Target::GFX950), (F4E2M1, Target::GFX950)]
    {
        let mut mixture = Mixture::new(sizes(dtype, SHAPES[0]), Computed::Chip(target, None));
        let zeros = vec![0.0; mixture.x.values.len()];
        mixture.x.elements = of_numbers(dtype, mixture.x.elements.shape(), &zeros);
        mixture.x.values = zeros;
        let [h, scales] = mixture.hidden();
        assert!(h.to_f64().iter().all(|&x| x == 0.0), "{dtype}");
        assert!(scales.to_f64().iter().all(|&x| x > 0.0 && x < 1e-29 || x == 1.0), "{dtype}");
    }
}

/// The tiles of an expert go from memory to the matrix core as bytes of two numbers.
#[test]
fn four_bit_tiles_of_experts_stay_packed() {
    let sizes = [("BLOCKS", 2), ("ROWS", 64), ("K", 512), ("EXPERTS", 2), ("N_BLOCKS", 2), ("BLOCK_N", 128)];
    let tiles = [("BLOCK_K", 256), ("WAVE_R", 32), ("WAVE_N", 64)];
    let options = Options::new(Target::GFX950);
    let options =
        sizes.into_iter().chain(tiles).fold(options, |options, (name, size)| options.set(name, size));
    let kernel = MixtureOfExperts::new(2, 1).inputs(F4E2M1).down().expect("a kernel");
    let executable = kernel.compile(&options).expect("it compiles");
    let assembly = executable.assembly().expect("a listing");
    assert!(assembly.contains("v_mfma_scale_f32_16x16x128_f8f6f4"), "{assembly}");
    assert!(!assembly.contains("ds_read_u8") && !assembly.contains("ds_write_b8"), "{assembly}");
}
