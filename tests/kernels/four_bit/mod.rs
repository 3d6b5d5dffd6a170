//! Products with weights of 4 bits, judged by f64 computations that are written here from what rows of
//! integers and of MXFP4 mean; weights come from rows by way of the kernels that arrange them.

mod halfwords;
mod refusals;

use groundswell::kernels::{FourBitGemm, arrange_int4, arrange_mxfp4, split_k};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::{assert_right, verified};

use crate::paged::cases::{Argument, Numbers, bound, launched};

/// Rows of weights with their scales, as quantisers write them.
struct Rows {
    /// Two weights in a byte, `[N, K/2]`.
    bytes: Tensor,
    /// `[N, K/group]`.
    scales: Tensor,
    zeros: Option<Tensor>,
    /// The weights as numbers, `[N, K]`.
    numbers: Vec<f64>,
    /// The largest number that is multiplied beside each weight, of which sums of f32 lose their last bits.
    size: f64,
}

/// The numbers of f4e2m1.
const MAGNITUDES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// `[K/32 or such, N]` of `[N, K/32]`.
fn turned(rows: &Tensor) -> Tensor {
    let (&[n, columns], numbers) = (rows.shape(), rows.to_f64()) else { unreachable!("a matrix") };
    let turned: Vec<f64> = (0..n * columns).map(|at| numbers[at % n * columns + at / n]).collect();
    of_numbers(rows.dtype(), &[columns, n], &turned)
}

fn integers([n, k]: [usize; 2], group: usize, dtype: DType, has_zeros: bool, numbers: &mut Numbers) -> Rows {
    let groups = k.div_ceil(group);
    let bytes: Vec<u8> = (0..n * k.div_ceil(2)).map(|_| numbers.next() as u8).collect();
    let scales =
        of_numbers(dtype, &[n, groups], &(0..n * groups).map(|_| numbers.part()).collect::<Vec<_>>());
    let zeros: Vec<f64> = (0..n * groups).map(|_| (numbers.next() % 16) as f64).collect();
    let zeros = of_numbers(I8, &[n, groups], &zeros);
    let (scale, zero) = (scales.to_f64(), zeros.to_f64());
    let number = |at: usize| {
        let (j, l) = (at / k, at % k);
        let both = bytes[j * k.div_ceil(2) + l / 2];
        let integer = f64::from(if l % 2 == 0 { both & 15 } else { both >> 4 });
        let of_group = j * groups + l / group;
        (integer - if has_zeros { zero[of_group] } else { 8.0 }) * scale[of_group]
    };
    let numbers = (0..n * k).map(number).collect();
    let size = if dtype == F16 { 1040.0 } else { 144.0 };
    let bytes = Tensor::from_bytes(&[n, k.div_ceil(2)], I8, &bytes).expect("whole");
    Rows { bytes, scales, zeros: has_zeros.then_some(zeros), numbers, size }
}

fn mxfp4([n, k]: [usize; 2], numbers: &mut Numbers) -> Rows {
    let blocks = k.div_ceil(32);
    let mut bytes: Vec<u8> = (0..n * k.div_ceil(2)).map(|_| numbers.next() as u8).collect();
    if k % 2 == 1 {
        bytes.iter_mut().skip(k / 2).step_by(k.div_ceil(2)).for_each(|byte| *byte &= 15);
    }
    let scales: Vec<u8> = (0..n * blocks).map(|_| 120 + (numbers.next() % 12) as u8).collect();
    let number = |at: usize| {
        let (j, l) = (at / k, at % k);
        let both = bytes[j * k.div_ceil(2) + l / 2];
        let code = if l % 2 == 0 { both & 15 } else { both >> 4 };
        let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
        let scale = 2f64.powi(i32::from(scales[j * blocks + l / 32]) - 127);
        sign * MAGNITUDES[usize::from(code & 7)] * scale
    };
    let numbers = (0..n * k).map(number).collect();
    let bytes = Tensor::from_bytes(&[n, k.div_ceil(2)], I8, &bytes).expect("whole");
    let scales = Tensor::from_bytes(&[n, blocks], F8E8M0, &scales).expect("whole");
    Rows { bytes, scales, zeros: None, numbers, size: 6.0 }
}

/// The weights and the scales in the order of the product, and its zeros.
fn arranged(target: Target, rows: &Rows, [n, k]: [usize; 2]) -> Vec<Tensor> {
    let sizes = [("N", n as i64), ("K", k as i64), ("BLOCK_N", 16)];
    let options = sizes.iter().fold(Options::new(target), |options, &(name, size)| options.set(name, size));
    let bytes = rows.bytes.clone();
    if rows.scales.dtype() != F8E8M0 {
        let kernel = arrange_int4().expect("a kernel");
        let executable = verified(&kernel, &options.set("HALFWORDS", 32));
        let to = of_numbers(I16, &[k.div_ceil(128), 4, n, 8], &vec![-1.0; k.div_ceil(128) * 32 * n]);
        let after = launched("arranged integers", &executable, &[bytes.into(), to.into()], &[], None);
        let tables = [Some(&rows.scales), rows.zeros.as_ref()].into_iter().flatten().map(turned);
        return [after[1].clone()].into_iter().chain(tables).collect();
    }
    let executable = verified(&arrange_mxfp4().expect("a kernel"), &options.set("BLOCK_K", 256));
    let (eights, scales) = (k.div_ceil(8), turned(&rows.scales));
    let to = Tensor::from_bytes(&[eights, n, 4], I8, &vec![0; eights * n * 4]).expect("whole");
    let to_scales = Tensor::from_bytes(scales.shape(), F8E8M0, &vec![0; k.div_ceil(32) * n]).expect("whole");
    let arguments = [bytes.into(), rows.scales.clone().into(), to.into(), to_scales.into()];
    let after = launched("arranged MXFP4", &executable, &arguments, &[], None);
    assert_eq!(after[3].to_bytes(), scales.to_bytes());
    let weights = Tensor::from_bytes(&[eights, n, 8], F4E2M1, &after[2].to_bytes()).expect("whole");
    vec![weights, after[3].clone()]
}

/// One product and how it is made.
#[derive(Copy, Clone)]
struct Trial {
    product: FourBitGemm,
    /// Integers in groups of so many; none for MXFP4.
    group: Option<usize>,
    has_zeros: bool,
    dtype: DType,
}

impl Trial {
    fn rows(&self, sizes: [usize; 2], numbers: &mut Numbers) -> Rows {
        match self.group {
            Some(group) => integers(sizes, group, self.dtype, self.has_zeros, numbers),
            None => mxfp4(sizes, numbers),
        }
    }

    /// The product of `[m, n, k]`, of so many parts if there are some, equals the definition and the
    /// interpreter.
    fn holds(&self, target: Target, sizes: [usize; 3], splits: Option<u32>, number: u64) {
        let [m, n, k] = sizes;
        let title = format!("{:?} {sizes:?} on {target}, parts {splits:?}", self.product);
        let mut numbers = Numbers(number);
        let rows = self.rows([n, k], &mut numbers);
        let a: Vec<f64> = (0..m * k).map(|_| numbers.part()).collect();
        let narrow = sizes.map(|size| size as u32);
        let (kernel, options) = match splits {
            None => (self.product.kernel(), self.product.options(target, narrow)),
            Some(splits) => (self.product.parts(), self.product.parts_options(target, narrow, splits)),
        };
        let kernel = kernel.expect("a kernel");
        let (options, open) = bound(options, &[("M", m as i64)], number % 2 == 1);
        let executable = verified(&kernel, &options);
        let mut arguments: Vec<Argument> = vec![of_numbers(self.dtype, &[m, k], &a).into()];
        arguments.extend(arranged(target, &rows, [n, k]).into_iter().map(Argument::from));
        let to = match splits {
            None => of_numbers(self.dtype, &[m, n], &vec![f64::NAN; m * n]),
            Some(splits) => {
                of_numbers(F32, &[splits as usize, m, n], &vec![f64::NAN; m * n * splits as usize])
            }
        };
        arguments.push(to.into());
        let after = launched(&title, &executable, &arguments, &open, None);
        let mut found = after.last().expect("a result").clone();
        if let Some(splits) = splits {
            found = added(target, &found, [m, n], splits);
        }
        self.judge(&title, &found.to_f64(), (&a, &rows), sizes);
        let value = |symbol: Symbol| options.value(symbol).or((symbol.name() == "M").then_some(m as i64));
        assert_right(&kernel, &executable, &value, number, &title);
        if number.is_multiple_of(7) {
            for seed in 0..5 {
                launched(&title, &executable, &arguments, &open, Some(seed));
            }
        }
    }

    /// Sums of f32 lose the last bits of what they are made of, and the output is rounded once.
    fn judge(&self, title: &str, found: &[f64], (a, rows): (&[f64], &Rows), [m, n, k]: [usize; 3]) {
        let rounding = if self.dtype == F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
        let scale = rows.scales.to_f64().iter().fold(0f64, |most, scale| most.max(scale.abs()));
        for at in 0..m * n {
            let (i, j) = (at / n, at % n);
            let parts = (0..k).map(|l| a[i * k + l] * rows.numbers[j * k + l]);
            let (expected, size) = (parts.sum::<f64>(), a[i * k..][..k].iter().map(|x| x.abs()).sum::<f64>());
            let bound = rounding * expected.abs() + 2f64.powi(-22) * rows.size * scale * size + 1e-30;
            let found = found[at];
            assert!((found - expected).abs() <= bound, "{title}: {found} at {at}, not {expected} +- {bound}");
        }
    }
}

/// The parts of a product added by the second kernel of `split_k`.
fn added(target: Target, parts: &Tensor, [m, n]: [usize; 2], splits: u32) -> Tensor {
    let kernel = split_k(Bf16, groundswell::kernels::Waves::new(2, 2)).expect("kernels").sum;
    let sizes = [("M", m as i64), ("N", n as i64), ("SPLITS", splits.into())];
    let tile = [("BLOCK_M", 1), ("BLOCK_N", 1024), ("BLOCK_S", 8)];
    let options = sizes.iter().chain(&tile).fold(Options::new(target), |o, &(name, size)| o.set(name, size));
    let to = of_numbers(F32, &[m, n], &vec![f64::NAN; m * n]);
    let arguments = [parts.clone().into(), to.into()];
    launched("sums of parts", &verified(&kernel, &options), &arguments, &[], None)[1].clone()
}

/// Rows, columns and K: whole blocks and ragged ones, single elements, fewer than a group, odd ones.
const SHAPES: [[usize; 3]; 20] = [
    [1, 64, 1024],
    [1, 1, 1],
    [2, 17, 128],
    [3, 80, 512],
    [4, 16, 130],
    [5, 33, 31],
    [8, 64, 640],
    [9, 48, 1000],
    [16, 64, 1024],
    [17, 40, 256],
    [24, 31, 96],
    [32, 64, 512],
    [33, 20, 700],
    [48, 32, 384],
    [64, 64, 512],
    [64, 5, 100],
    [1, 130, 2048],
    [7, 128, 64],
    [1, 16, 33],
    [40, 96, 128],
];

fn all_shapes(trial: Trial, targets: &[Target]) {
    for (number, &shape) in (0..).zip(&SHAPES) {
        trial.holds(targets[number as usize % targets.len()], shape, None, number);
    }
}

const CHIPS: [Target; 4] = [Target::GFX942, Target::GFX950, Target::GFX90A, Target::GFX908];

fn of_integers(group: u32, has_zeros: bool, dtype: DType) -> Trial {
    let product = FourBitGemm::int4(group).inputs(dtype);
    let product = if has_zeros { product.zeros() } else { product };
    Trial { product, group: Some(group as usize), has_zeros, dtype }
}

#[test]
fn integers_in_groups_of_128_equal_the_definition() {
    all_shapes(of_integers(128, false, Bf16), &CHIPS);
    all_shapes(of_integers(128, true, Bf16), &CHIPS[..2]);
}

#[test]
fn integers_in_groups_of_64_and_32_equal_the_definition() {
    all_shapes(of_integers(64, true, Bf16), &CHIPS[..2]);
    all_shapes(of_integers(32, true, F16), &CHIPS);
    all_shapes(of_integers(32, false, Bf16), &CHIPS[1..]);
}

#[test]
fn mxfp4_equals_the_definition() {
    let trial = Trial { product: FourBitGemm::mxfp4(), group: None, has_zeros: false, dtype: Bf16 };
    all_shapes(trial, &CHIPS[..2]);
    trial.holds(Target::GFX90A, [3, 40, 200], None, 20);
}

#[test]
fn parts_of_k_by_workgroups_of_their_own_equal_the_definition() {
    let mxfp4 = Trial { product: FourBitGemm::mxfp4(), group: None, has_zeros: false, dtype: Bf16 };
    for trial in [of_integers(128, true, Bf16), of_integers(32, false, Bf16), mxfp4] {
        for (number, &shape) in (0..).zip(&SHAPES).step_by(3) {
            trial.holds(CHIPS[number as usize % 2], shape, Some(1 + number as u32 % 4), number);
        }
    }
}
