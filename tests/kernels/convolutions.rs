//! Convolutions against plain loops: channels last and first, strides, paddings, dilations, groups, and a
//! filter for each channel.

use groundswell::kernels::{Conv2d, ImageLayout, Waves};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, ones, tensor};

/// The order in which check mode executes.
const SEED: u64 = 1;

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
    groups: Option<usize>,
}

/// The number of an element among those of a tensor of channels, rows and columns.
fn place(layout: ImageLayout) -> impl Fn([usize; 4], [usize; 3]) -> usize {
    move |[i, z, y, x], [c, h, w]| match layout {
        ImageLayout::Nhwc => ((i * h + y) * w + x) * c + z,
        ImageLayout::Nchw => ((i * c + z) * h + y) * w + x,
    }
}

fn shape(layout: ImageLayout) -> impl Fn(usize, [usize; 3]) -> [usize; 4] {
    move |n, [c, h, w]| match layout {
        ImageLayout::Nhwc => [n, h, w, c],
        ImageLayout::Nchw => [n, c, h, w],
    }
}

fn narrow(pair: [usize; 2]) -> [u32; 2] {
    pair.map(|x| x as u32)
}

impl Convolution {
    /// The builder, and the rows and columns of an output.
    fn builder(&self, dtype: DType, layout: ImageLayout) -> (Conv2d, [usize; 2]) {
        let conv = Conv2d::new()
            .inputs(dtype)
            .layout(layout)
            .stride(narrow(self.stride))
            .padding(narrow(self.padding))
            .dilation(narrow(self.dilation));
        let conv = self.groups.iter().fold(conv, |conv, &groups| conv.groups(groups as u32));
        let output = conv.output(narrow(self.image), narrow(self.filter)).expect("it fits");
        (conv, output.map(|x| x as usize))
    }

    /// The pixel of the image that an element of a filter meets; nothing in the padding.
    fn pixel(&self, output: [usize; 2], filter: [usize; 2]) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            (output[axis] * self.stride[axis] + filter[axis] * self.dilation[axis])
                .checked_sub(self.padding[axis])
                .filter(|&at| at < self.image[axis])
        };
        Some([along(0)?, along(1)?])
    }

    /// The case of a filter for each channel.
    fn check_depthwise(&self, dtype: DType, layout: ImageLayout, dynamic: &[&'static str]) {
        let Convolution { images, image: [h, width], c, filter: [hf, wf], .. } = *self;
        let (conv, [ho, wo]) = self.builder(dtype, layout);
        let (index, shape) = (place(layout), shape(layout));
        let sums = if dtype == I8 { I32 } else { F32 };
        let of_filters = match layout {
            ImageLayout::Nhwc => [hf, wf, c],
            ImageLayout::Nchw => [c, hf, wf],
        };
        let (x, filters) = (tensor(dtype, &shape(images, [c, h, width])), tensor(dtype, &of_filters));
        let (pixels, weights) = (x.to_f64(), filters.to_f64());
        let m = images * ho * wo;
        let mut expected = vec![0.0; m * c];
        for (i, p, q, z) in (0..m * c).map(|at| (at / c / wo / ho, at / c / wo % ho, at / c % wo, at % c)) {
            let taps = (0..hf * wf).map(|at| [at / wf, at % wf]);
            let of_tap = |[r, s]: [usize; 2]| {
                let [row, column] = self.pixel([p, q], [r, s])?;
                Some(
                    pixels[index([i, z, row, column], [c, h, width])]
                        * weights[index([0, z, r, s], [c, hf, wf])],
                )
            };
            expected[index([i, z, p, q], [c, ho, wo])] = taps.filter_map(of_tap).sum();
        }
        let kernel = conv.depthwise(narrow(self.filter)).expect("the options fit");
        let symbols = ["N", "H", "W", "C", "HF", "WF", "HO", "WO", "M", "BLOCK_M", "BLOCK_C"];
        let sizes = symbols.into_iter().zip([images, h, width, c, hf, wf, ho, wo, m, 16, 64]);
        let sizes: Vec<_> = sizes.map(|(name, size)| (name, size as i64)).collect();
        let options = conv
            .depthwise_options(
                Target::GFX942,
                images as u32,
                narrow(self.image),
                c as u32,
                narrow(self.filter),
            )
            .expect("it fits");
        for &(name, size) in &sizes {
            assert_eq!(options.value(Symbol::new(name)), Some(size), "{name}");
        }
        let inputs = vec![x, filters, ones(sums, &shape(images, [c, ho, wo]))];
        let name = format!("depthwise convolution {sizes:?} {dtype} {layout:?} dynamic {dynamic:?}");
        let (dynamic, schedule) = (dynamic.to_vec(), Schedule::None);
        Case { name, kernel, sizes, dynamic, schedule, inputs, expected }.check_in_order(Some(SEED));
    }

    /// The case of it; some tensors have channels first, others channels last.
    fn check(&self, dtype: DType, layout: ImageLayout, dynamic: &[&'static str]) {
        let Convolution { images, image: [h, width], c, nf, filter: [hf, wf], groups, .. } = *self;
        let (conv, [ho, wo]) = self.builder(dtype, layout);
        let (index, shape) = (place(layout), shape(layout));
        let sums = if dtype == I8 { I32 } else { F32 };
        // Channels and filters of a group.
        let (cg, nfg) = (c / groups.unwrap_or(1), nf / groups.unwrap_or(1));
        let (m, k) = (images * ho * wo, hf * wf * cg);
        let (x, filters) = (tensor(dtype, &shape(images, [c, h, width])), tensor(dtype, &[nf, k]));
        let (pixels, weights) = (x.to_f64(), filters.to_f64());
        let mut expected = vec![0.0; m * nf];
        for (i, p, q, f) in
            (0..m * nf).map(|at| (at / nf / wo / ho, at / nf / wo % ho, at / nf % wo, at % nf))
        {
            let mut sum = 0.0;
            for (r, s, z) in (0..k).map(|at| (at / cg / wf, at / cg % wf, at % cg)) {
                if let Some([row, column]) = self.pixel([p, q], [r, s]) {
                    sum += pixels[index([i, f / nfg * cg + z, row, column], [c, h, width])]
                        * weights[index([f, z, r, s], [cg, hf, wf])];
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
            ("BLOCK_K", 64),
        ];
        let of_groups = groups.map(|groups| [("G", groups), ("NFG", nfg)]);
        let sizes = sizes.into_iter().chain(of_groups.into_iter().flatten());
        let sizes: Vec<_> = sizes.map(|(name, size)| (name, size as i64)).collect();
        let options = conv
            .options(
                Target::GFX942,
                images as u32,
                narrow(self.image),
                c as u32,
                nf as u32,
                narrow(self.filter),
            )
            .expect("it fits");
        for &(name, size) in &sizes {
            assert_eq!(options.value(Symbol::new(name)), Some(size), "{name}");
        }
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
            let convolution =
                Convolution { images, image, c, nf, filter, stride, padding, dilation, groups: None };
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
fn grouped_and_depthwise_convolutions_equal_loops() {
    let mut number = 0;
    for (image, [c, nf, groups], filter) in [
        ([6, 6], [64, 64, 2], [3, 3]),
        ([5, 7], [24, 36, 4], [3, 2]),
        ([4, 6], [6, 9, 3], [1, 3]),
        ([8, 5], [8, 8, 8], [3, 3]),
        ([7, 7], [5, 5, 1], [2, 2]),
    ] {
        for (stride, padding, dilation) in [
            ([1, 1], [0, 0], [1, 1]),
            ([1, 1], [1, 1], [1, 1]),
            ([2, 1], [1, 2], [1, 1]),
            ([1, 2], [2, 1], [2, 1]),
        ] {
            let images = [1, 2, 3][number % 3];
            let groups = Some(groups);
            let convolution = Convolution { images, image, c, nf, filter, stride, padding, dilation, groups };
            let layout = if number % 2 == 0 { ImageLayout::Nhwc } else { ImageLayout::Nchw };
            let dtype = [F16, Bf16, I8, F32][number % 4];
            let dynamic: &[&str] = match number % 3 {
                0 => &[],
                1 => &["M", "N", "HO", "WO", "H", "W"],
                _ => &["N", "M"],
            };
            convolution.check(dtype, layout, dynamic);
            Convolution { groups: None, ..convolution }.check_depthwise(dtype, layout, dynamic);
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
    let options = |groups| Conv2d::new().groups(groups).options(Target::GFX942, 1, [8, 8], 6, 9, [3, 3]);
    assert!(options(3).is_ok());
    let fault = options(2).expect_err("nine filters");
    assert_eq!(fault.message, "9 filters are not divided by 2 groups");
    let fault = Conv2d::new().groups(0).kernel().expect_err("a fault");
    assert_eq!(fault.message, "no group of channels");
    let fault = Conv2d::new().depthwise([0, 3]).expect_err("a fault");
    assert_eq!(fault.message, "a filter of 0 x 3 pixels for each channel");
}
