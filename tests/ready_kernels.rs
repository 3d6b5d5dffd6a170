//! Ready kernels that move data or convolve images, against plain loops: whole tiles and ragged ones, static
//! and dynamic sizes. The interpreter and the machine code have to give what the loop gives, check mode has
//! to find nothing, and the text of each kernel reads back as itself. All numbers are small integers.

mod common;

use common::exact_case::{Case, of_numbers, ones, tensor};
use groundswell::kernels::{Choices, Conv2d, ImageLayout, Waves, gather, list, transpose};
use groundswell::prelude::*;

/// Check mode with this order of execution.
const SEED: u64 = 7;

/// Instructions of an executable whose name begins with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    let listing = executable.assembly().expect("a listing");
    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn the_text_of_every_ready_kernel_reads_back_as_itself() {
    for entry in list() {
        let text = entry.kernel(&Choices::default()).expect("the defaults fit").to_string();
        let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(again.to_string(), text);
    }
}

#[test]
fn transpose_equals_a_loop() {
    let shapes =
        [[64, 64], [128, 192], [65, 66], [1, 1], [1, 100], [100, 1], [77, 130], [16, 8], [63, 200], [8, 64]];
    for (number, [m, n]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = transpose(dtype, Waves::new(2, 2)).expect("the options fit");
            let a = tensor(dtype, &[m, n]);
            let numbers = a.to_f64();
            let mut expected = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    expected[j * m + i] = numbers[i * n + j];
                }
            }
            let dynamic: &[&str] = if (number + variant) % 2 == 0 { &[] } else { &["M", "N"] };
            let executable = Case {
                name: format!("transpose {m}x{n} {dtype} dynamic {dynamic:?}"),
                kernel,
                schedule: Schedule::None,
                sizes: vec![("M", m as i64), ("N", n as i64), ("BLOCK_M", 64), ("BLOCK_N", 64)],
                dynamic: dynamic.to_vec(),
                inputs: vec![a, ones(dtype, &[n, m])],
                expected,
            }
            .check_in_order(Some(SEED));
            if m % 64 == 0 && n % 64 == 0 && dynamic.is_empty() {
                // 256 lanes with 16 bytes each.
                let wide = 64 * 64 * dtype.bytes() as usize / (256 * 16);
                for (prefix, expected) in [
                    ("buffer_load_dwordx4", wide),
                    ("buffer_load", wide),
                    ("buffer_store_dwordx4", wide),
                    ("buffer_store", wide),
                ] {
                    assert_eq!(count(&executable, prefix), expected, "{prefix} of {dtype}");
                }
            }
        }
    }
}

#[test]
fn gather_equals_a_loop() {
    let shapes =
        [[16, 256, 40], [33, 75, 9], [5, 130, 64], [64, 8, 100], [1, 1, 1], [17, 513, 3], [48, 64, 1000]];
    for (number, [m, n, rows]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = gather(dtype, Waves::new(4, 1)).expect("the options fit");
            let table = tensor(dtype, &[rows, n]);
            let numbers = table.to_f64();
            // Some of them are outside, on either side.
            let mut ids: Vec<f64> = (0..m).map(|i| ((i * 29) % (rows + 4)) as f64 - 2.0).collect();
            if let [first, .., last] = &mut ids[..] {
                (*first, *last) = (f64::from(i32::MIN), f64::from(i32::MAX));
            }
            let of = |i: usize, j: usize| match (0.0..rows as f64).contains(&ids[i]) {
                true => numbers[ids[i] as usize * n + j],
                false => 0.0,
            };
            let expected = (0..m * n).map(|at| of(at / n, at % n)).collect();
            let dynamic: &[&str] = match (number + variant) % 3 {
                0 => &[],
                1 => &["M", "N", "ROWS"],
                _ => &["ROWS"],
            };
            Case {
                name: format!("gather {m}x{n} of {rows} {dtype} dynamic {dynamic:?}"),
                kernel,
                schedule: Schedule::None,
                sizes: vec![
                    ("M", m as i64),
                    ("N", n as i64),
                    ("ROWS", rows as i64),
                    ("BLOCK_M", 16),
                    ("BLOCK_N", 256),
                ],
                dynamic: dynamic.to_vec(),
                inputs: vec![table, of_numbers(I32, &[m], &ids), ones(dtype, &[m, n])],
                expected,
            }
            .check_in_order(Some(SEED));
        }
    }
}

/// Image, channels, filters and the size of a filter, with stride, padding and dilation.
struct Convolution {
    images: usize,
    image: [usize; 2],
    c: usize,
    nf: usize,
    filter: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Convolution {
    /// The case of it; some tensors have channels first, others channels last.
    fn check(&self, dtype: DType, layout: ImageLayout, dynamic: &[&'static str]) {
        let Convolution { images, image: [h, width], c, nf, filter: [hf, wf], stride, padding, dilation } =
            *self;
        let narrow = |pair: [usize; 2]| pair.map(|x| x as u32);
        let conv = Conv2d::new()
            .inputs(dtype)
            .layout(layout)
            .stride(narrow(stride))
            .padding(narrow(padding))
            .dilation(narrow(dilation));
        let [ho, wo] =
            conv.output(narrow(self.image), narrow(self.filter)).expect("it fits").map(|x| x as usize);
        let index = |[i, z, y, x]: [usize; 4], [c, h, w]: [usize; 3]| match layout {
            ImageLayout::Nhwc => ((i * h + y) * w + x) * c + z,
            ImageLayout::Nchw => ((i * c + z) * h + y) * w + x,
        };
        let shape = |n: usize, [c, h, w]: [usize; 3]| match layout {
            ImageLayout::Nhwc => [n, h, w, c],
            ImageLayout::Nchw => [n, c, h, w],
        };
        let sums = if dtype == I8 { I32 } else { F32 };
        let (m, k) = (images * ho * wo, hf * wf * c);
        let (x, filters) = (tensor(dtype, &shape(images, [c, h, width])), tensor(dtype, &[nf, k]));
        let (pixels, weights) = (x.to_f64(), filters.to_f64());
        let mut expected = vec![0.0; m * nf];
        for (i, p, q, f) in
            (0..m * nf).map(|at| (at / nf / wo / ho, at / nf / wo % ho, at / nf % wo, at % nf))
        {
            let mut sum = 0.0;
            for (r, s, z) in (0..k).map(|at| (at / c / wf, at / c % wf, at % c)) {
                let row = (p * stride[0] + r * dilation[0]).checked_sub(padding[0]).filter(|&row| row < h);
                let column = (q * stride[1] + s * dilation[1]).checked_sub(padding[1]).filter(|&x| x < width);
                if let (Some(row), Some(column)) = (row, column) {
                    sum += pixels[index([i, z, row, column], [c, h, width])]
                        * weights[index([f, z, r, s], [c, hf, wf])];
                }
            }
            expected[index([i, f, p, q], [nf, ho, wo])] = sum;
        }
        let kernel = conv.kernel().expect("the options fit");
        let sizes = [
            ("N", images),
            ("H", h),
            ("W", width),
            ("C", c),
            ("NF", nf),
            ("HF", hf),
            ("WF", wf),
            ("HO", ho),
            ("WO", wo),
            ("M", m),
            ("K", k),
            ("BLOCK_M", 64),
            ("BLOCK_N", 64),
            ("BLOCK_K", 32),
        ];
        let sizes = sizes.into_iter().map(|(name, size)| (name, size as i64)).collect();
        let inputs = vec![x, filters, ones(sums, &shape(images, [nf, ho, wo]))];
        let name = format!("convolution {sizes:?} {dtype} {layout:?} dynamic {dynamic:?}");
        let (dynamic, schedule) = (dynamic.to_vec(), Schedule::None);
        Case { name, kernel, sizes, dynamic, schedule, inputs, expected }.check_in_order(Some(SEED));
    }
}

#[test]
fn convolutions_equal_loops() {
    let mut number = 0;
    for (image, c, filter) in [
        ([6, 6], 64, [3, 3]),
        ([5, 7], 32, [3, 3]),
        ([6, 11], 8, [3, 2]),
        ([9, 5], 24, [1, 3]),
        ([8, 8], 3, [5, 5]),
        ([5, 6], 40, [1, 1]),
    ] {
        for (stride, padding, dilation) in [
            ([1, 1], [0, 0], [1, 1]),
            ([1, 1], [1, 1], [1, 1]),
            ([2, 2], [1, 1], [1, 1]),
            ([1, 3], [2, 1], [2, 1]),
        ] {
            let (images, nf) = ([1, 2, 3][number % 3], [64, 33, 80][number % 3]);
            let convolution = Convolution { images, image, c, nf, filter, stride, padding, dilation };
            let layout = if number % 2 == 0 { ImageLayout::Nhwc } else { ImageLayout::Nchw };
            let dtype = [F16, F16, Bf16, I8, F32][number % 5];
            let dynamic: &[&str] = match number % 4 {
                0 | 1 => &[],
                2 => &["M", "N", "HO", "WO", "H", "W"],
                _ => &["N", "M"],
            };
            convolution.check(dtype, layout, dynamic);
            number += 1;
        }
    }
    assert!(number >= 20);
}

#[test]
fn convolutions_that_cannot_be_made_say_why() {
    let message = |result: Result<[u32; 2], Diagnostic>| result.err().map(|fault| fault.message);
    assert_eq!(
        [
            message(Conv2d::new().stride([0, 1]).output([8, 8], [3, 3])),
            message(Conv2d::new().dilation([1, 0]).output([8, 8], [3, 3])),
            message(Conv2d::new().dilation([4, 1]).output([8, 8], [3, 3])),
            message(Conv2d::new().output([8, 8], [3, 0])),
            message(Conv2d::new().output([u32::MAX, 8], [u32::MAX, 8])),
        ]
        .map(Option::unwrap_or_default),
        [
            "a stride of 0 rows and 1 columns does not move",
            "a dilation of 1 rows and 0 columns does not move",
            "a filter of 3 pixels with dilation 4 does not fit into 8 pixels",
            "a filter of 0 pixels with dilation 1 does not fit into 8 pixels",
            "",
        ]
    );
    let fault = Conv2d::new().inputs(I32).kernel().expect_err("a fault");
    assert_eq!(fault.message, "no matrix instruction multiplies i32");
    assert!(Conv2d::new().waves(Waves::new(0, 1)).kernel().is_err());
}
