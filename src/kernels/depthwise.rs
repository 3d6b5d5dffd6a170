//! Convolution of each channel with a filter of its own.

use super::asked::asked_at;
use super::conv2d::{Conv2d, ImageLayout};
use crate::prelude::*;

impl Conv2d {
    /// Traces the kernel in which every channel has one filter of `filter` rows and columns, which the kernel
    /// knows: channels last, images are `[N, H, W, C]`, filters `[HF, WF, C]` and outputs `[N, HO, WO, C]`;
    /// channels first, `[N, C, H, W]`, `[C, HF, WF]` and `[N, C, HO, WO]`. Sums are f32, or i32 for i8.
    ///
    /// No product of matrices can share its factors here: a workgroup computes `BLOCK_M` pixels of `BLOCK_C`
    /// channels by plain arithmetic. M counts the pixels of all outputs. [`Conv2d::depthwise_options`] binds
    /// all symbols.
    ///
    /// # Errors
    /// No wave along a dimension, a stride or dilation of zero, an empty filter or one of more than 1024
    /// pixels.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::{Conv2d, Waves};
    /// use groundswell::prelude::*;
    ///
    /// // Differences of neighbours in the first channel, sums in the second one.
    /// let conv = Conv2d::new().inputs(F32).waves(Waves::new(1, 1));
    /// let options = conv.depthwise_options(Target::GFX942, 1, [1, 3], 2, [1, 2])?;
    /// let executable = conv.depthwise([1, 2])?.compile(&options)?;
    ///
    /// let device = Device::open()?;
    /// let x = device.upload(&[1f32, 10.0, 3.0, 30.0, 7.0, 70.0])?;
    /// let filters = device.upload(&[-1f32, 1.0, 1.0, 1.0])?;
    /// let y = device.upload(&[0f32; 4])?;
    /// device.launch(&executable).buffer(&x).buffer(&filters).buffer(&y).run()?;
    /// assert_eq!(y.download::<f32>()?, [2.0, 40.0, 4.0, 100.0]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    pub fn depthwise(&self, filter: [u32; 2]) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.trace_depthwise(filter))
    }

    /// Options that bind all symbols of [`Conv2d::depthwise`]: for `n` images of some rows and columns with
    /// `c` channels each, and filters of some rows and columns. The tile is 16 pixels of 64 channels.
    ///
    /// # Errors
    /// Those of [`Conv2d::output`].
    #[track_caller]
    pub fn depthwise_options(
        &self,
        target: impl Into<TargetId>,
        n: u32,
        image: [u32; 2],
        c: u32,
        filter: [u32; 2],
    ) -> Result<Options, Diagnostic> {
        let pixels = self.pixels(n, image, filter)?;
        let sizes = [("C", c), ("HF", filter[0]), ("WF", filter[1])].map(|(name, size)| (name, size.into()));
        let options = pixels
            .into_iter()
            .chain(sizes)
            .fold(Options::new(target), |options, (name, size)| options.set(name, size));
        Ok(DEPTHWISE_TILE
            .into_iter()
            .fold(options, |options, (name, size)| options.set_by(name, size, SetBy::Default)))
    }

    fn trace_depthwise(&self, [rows, columns]: [u32; 2]) -> Result<Kernel, Diagnostic> {
        self.check()?;
        let waves = self.waves.check()?;
        let pixels = u64::from(rows) * u64::from(columns);
        if pixels == 0 || pixels > LARGEST_FILTER {
            let text = format!("a filter of {rows} x {columns} pixels for each channel");
            return Err(
                Diagnostic::invalid(text).help(format!("use a filter of 1 to {LARGEST_FILTER} pixels"))
            );
        }
        let sums = if self.inputs.is_float() { F32 } else { I32 };
        let [n, h, width, c, ho, wo, m] = symbols(["N", "H", "W", "C", "HO", "WO", "M"]);
        let [hf, wf, block_m, block_c] = symbols(["HF", "WF", "BLOCK_M", "BLOCK_C"]);
        let (image, p, q) = (m / (ho * wo), m / wo % ho, m % wo);
        let (input, shape, output) = match self.layout {
            ImageLayout::Nhwc => ([n, h, width, c], [hf, wf, c], [n, ho, wo, c]),
            ImageLayout::Nchw => ([n, c, h, width], [c, hf, wf], [n, c, ho, wo]),
        };
        // The place of a pixel in an image or output, and that of an element of a filter.
        let place = |row: SymExpr, column: SymExpr| match self.layout {
            ImageLayout::Nhwc => [image.clone(), row, column, c.into()],
            ImageLayout::Nchw => [image.clone(), c.into(), row, column],
        };
        let element = |r: u32, s: u32| -> [SymExpr; 3] {
            match self.layout {
                ImageLayout::Nhwc => [r.into(), s.into(), c.into()],
                ImageLayout::Nchw => [c.into(), r.into(), s.into()],
            }
        };
        Kernel::trace("depthwise_conv2d", |w| {
            w.distribute([
                workgroup(m, block_m, 0),
                workgroup(c, block_c, 1),
                wave(m, block_m / i64::from(waves.m)),
                wave(c, block_c / i64::from(waves.n)),
            ]);
            let x = w.memory("x", input, Global, self.inputs);
            let filters = w.memory("filters", shape, Global, self.inputs);
            let y = w.memory("y", output, Global, sums);
            let mut sum = w.register([m, c], sums, 0.0);
            for (r, s) in (0..rows).flat_map(|r| (0..columns).map(move |s| (r, s))) {
                let pixel = |axis: usize, output: &SymExpr, at: u32| {
                    output * self.stride[axis] + i64::from(at) * i64::from(self.dilation[axis])
                        - self.padding[axis]
                };
                let window = w.read_at(x, place(pixel(0, &p, r), pixel(1, &q, s)), [m, c]).cast(sums);
                let weight = w.read_at(filters, element(r, s), [c]).cast(sums);
                sum = if sums.is_float() { window.fma(weight, sum) } else { window * weight + sum };
            }
            w.write_at(sum, y, place(p.clone(), q.clone()));
        })
    }
}

/// The tile that [`Conv2d::depthwise_options`] chooses.
const DEPTHWISE_TILE: [(&str, i64); 2] = [("BLOCK_M", 16), ("BLOCK_C", 64)];

/// Pixels of a filter: each is an operation of the kernel.
const LARGEST_FILTER: u64 = 1024;
