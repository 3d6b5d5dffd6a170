//! Convolution of images as a matrix product whose A is a view of the images: no copy of their windows is
//! made.

use std::panic::Location as Caller;

use super::Waves;
use super::asked::asked_at;
use super::sums::sums_of;
use crate::prelude::*;

/// The order of the dimensions of images, filters and outputs.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum ImageLayout {
    /// Channels last: images `[N, H, W, C]`, filters `[NF, HF, WF, C]`, outputs `[N, HO, WO, NF]`.
    #[default]
    Nhwc,
    /// Channels first: images `[N, C, H, W]`, filters `[NF, C, HF, WF]`, outputs `[N, NF, HO, WO]`.
    Nchw,
}

/// Builder of convolution kernels: `y[i, p, q, f]` is the sum over r, s and c of
/// `x[i, p * stride + r * dilation - padding, q * stride + s * dilation - padding, c] * filters[f, r, s, c]`,
/// where pixels outside of an image are zero. Strides, dilations and paddings are pairs, of rows and columns.
///
/// It is a product of matrices: M counts the pixels of all outputs, K the elements of a filter in the order
/// in which they lie in memory, so that `filters` is a matrix `[NF, K]`. A workgroup computes `BLOCK_M`
/// pixels of `BLOCK_N` filters and takes `BLOCK_K` of K per iteration. Both operands go through LDS. The loop
/// is tagged `k_loop`, the operations `read_x`, `read_filters` and `mma`.
///
/// The sizes are symbols: `N`, `H`, `W`, `C`, `NF`, `HF`, `WF`, and those that follow from them and from the
/// options of the builder, `HO`, `WO`, `M` and `K`. [`Conv2d::options`] binds all of them.
///
/// # Example
/// ```
/// use groundswell::kernels::Conv2d;
/// use groundswell::prelude::*;
///
/// // A 3 x 3 filter that sums the neighbours of each pixel of a 2 x 3 image.
/// let conv = Conv2d::new().inputs(F32).padding([1, 1]);
/// let options = conv.options(Target::GFX942, 1, [2, 3], 1, 1, [3, 3])?;
/// let executable = conv.kernel()?.compile(&options)?;
///
/// let device = Device::open()?;
/// let x = device.upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let filters = device.upload(&[1f32; 9])?;
/// let y = device.upload(&[0f32; 6])?;
/// device.launch(&executable).buffer(&x).buffer(&filters).buffer(&y).run()?;
/// assert_eq!(y.download::<f32>()?, [12.0, 21.0, 16.0, 12.0, 21.0, 16.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Conv2d {
    pub(super) inputs: DType,
    pub(super) layout: ImageLayout,
    matrix: MmaType,
    pub(super) waves: Waves,
    pub(super) stride: [u32; 2],
    pub(super) padding: [u32; 2],
    pub(super) dilation: [u32; 2],
    groups: Option<u32>,
    pub(super) caller: &'static Caller<'static>,
}

impl Default for Conv2d {
    /// [`Conv2d::new`].
    #[track_caller]
    fn default() -> Conv2d {
        Conv2d::new()
    }
}

impl Conv2d {
    /// Convolution of f16 images into f32, channels last, with stride and dilation 1, without padding, with
    /// 2 x 2 waves.
    #[track_caller]
    pub fn new() -> Conv2d {
        Conv2d {
            inputs: F16,
            layout: ImageLayout::Nhwc,
            matrix: MmaType::default(),
            waves: Waves::new(2, 2),
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: None,
            caller: Caller::caller(),
        }
    }

    /// Element type of images and filters: f16, bf16, f32, f64 or i8. Outputs are f32, f64 for f64, or i32
    /// for i8.
    #[must_use]
    pub fn inputs(mut self, dtype: DType) -> Conv2d {
        self.inputs = dtype;
        self
    }

    /// The order of the dimensions.
    #[must_use]
    pub fn layout(mut self, layout: ImageLayout) -> Conv2d {
        self.layout = layout;
        self
    }

    /// Output tile of the matrix instruction, for which each chip has its best one, or an instruction.
    #[must_use]
    pub fn matrix(mut self, matrix: impl Into<MmaType>) -> Conv2d {
        self.matrix = matrix.into();
        self
    }

    /// Waves of a workgroup along M and NF.
    #[must_use]
    pub fn waves(mut self, waves: Waves) -> Conv2d {
        self.waves = waves;
        self
    }

    /// Rows and columns from one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: [u32; 2]) -> Conv2d {
        self.stride = stride;
        self
    }

    /// Rows of zeros above and below an image, and columns on either side of it.
    #[must_use]
    pub fn padding(mut self, padding: [u32; 2]) -> Conv2d {
        self.padding = padding;
        self
    }

    /// Rows and columns from one pixel of a window to the next.
    #[must_use]
    pub fn dilation(mut self, dilation: [u32; 2]) -> Conv2d {
        self.dilation = dilation;
        self
    }

    /// Divides the channels and the filters into so many groups: the filters of a group see its channels
    /// alone, so K is the `groups`th part. A workgroup, which grid axis 2 counts, computes for one group;
    /// `G` is their number and `NFG` that of the filters of one, which [`Conv2d::options`] binds, too.
    #[must_use]
    pub fn groups(mut self, groups: u32) -> Conv2d {
        self.groups = Some(groups);
        self
    }

    /// Rows and columns of the output for an image and a filter.
    ///
    /// # Errors
    /// A stride or dilation of zero, or a filter that is empty or does not fit into the padded image.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Conv2d;
    /// let conv = Conv2d::new().stride([2, 1]).padding([1, 0]);
    /// assert_eq!(conv.output([8, 9], [3, 3])?, [4, 7]);
    /// # Ok::<(), groundswell::prelude::Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn output(&self, image: [u32; 2], filter: [u32; 2]) -> Result<[u32; 2], Diagnostic> {
        self.checked_output(image, filter).map_err(|fault| fault.at(Some(Location::from(Caller::caller()))))
    }

    fn checked_output(&self, image: [u32; 2], filter: [u32; 2]) -> Result<[u32; 2], Diagnostic> {
        self.check()?;
        let mut output = [0; 2];
        for (axis, rows) in output.iter_mut().enumerate() {
            let reach = u64::from(self.dilation[axis]) * u64::from(filter[axis].saturating_sub(1)) + 1;
            let padded = u64::from(image[axis]) + 2 * u64::from(self.padding[axis]);
            let Some(room) = padded.checked_sub(reach).filter(|_| filter[axis] > 0) else {
                let text = format!(
                    "a filter of {} pixels with dilation {} does not fit into {padded} pixels",
                    filter[axis], self.dilation[axis]
                );
                return Err(
                    Diagnostic::invalid(text).help("use a smaller filter that is not empty, or padding")
                );
            };
            let count = room / u64::from(self.stride[axis]) + 1;
            *rows = u32::try_from(count)
                .map_err(|_| Diagnostic::invalid(format!("an output of {count} pixels is too large")))?;
        }
        Ok(output)
    }

    /// Options that bind all symbols: for `n` images of some rows and columns with `c` channels each, and
    /// `nf` filters of some rows and columns. The tile is 64 x 64 x 64 unless the options are given other
    /// values of `BLOCK_M`, `BLOCK_N` and `BLOCK_K`; the loop is prefetched.
    ///
    /// # Errors
    /// Those of [`Conv2d::output`].
    #[track_caller]
    pub fn options(
        &self,
        target: impl Into<TargetId>,
        n: u32,
        image: [u32; 2],
        c: u32,
        nf: u32,
        filter: [u32; 2],
    ) -> Result<Options, Diagnostic> {
        let pixels = self.pixels(n, image, filter)?;
        let groups = self.groups.unwrap_or(1);
        for (what, count) in [("channels", c), ("filters", nf)] {
            if count % groups != 0 {
                let text = format!("{count} {what} are not divided by {groups} groups");
                return Err(Diagnostic::invalid(text)
                    .at(Some(Location::from(Caller::caller())))
                    .help("use a number of groups that divides both channels and filters"));
            }
        }
        let sizes = [
            ("C", c.into()),
            ("NF", nf.into()),
            ("HF", filter[0].into()),
            ("WF", filter[1].into()),
            ("K", product([filter[0], filter[1], c / groups])),
        ];
        let of_groups = self.groups.map(|groups| [("G", groups.into()), ("NFG", (nf / groups).into())]);
        let sizes = pixels.into_iter().chain(sizes).chain(of_groups.into_iter().flatten());
        let options = Options::new(target).schedule(Schedule::Prefetch);
        let options = sizes.fold(options, |options, (name, size)| options.set(name, size));
        Ok(TILE.into_iter().fold(options, |options, (name, size)| options.set_by(name, size, SetBy::Default)))
    }

    /// The symbols of images and outputs with their sizes.
    #[track_caller]
    pub(super) fn pixels(
        &self,
        n: u32,
        image: [u32; 2],
        filter: [u32; 2],
    ) -> Result<[(&'static str, i128); 6], Diagnostic> {
        let [ho, wo] = self.output(image, filter)?;
        let [h, w] = image;
        let sizes =
            [("N", n), ("H", h), ("W", w), ("HO", ho), ("WO", wo)].map(|(name, size)| (name, size.into()));
        let [a, b, c, d, e] = sizes;
        Ok([a, b, c, d, e, ("M", product([n, ho, wo]))])
    }

    /// Traces the kernel. It is the same for all sizes.
    ///
    /// # Errors
    /// Inputs that no matrix instruction takes, no wave along a dimension, a stride or dilation of zero.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.trace())
    }

    pub(super) fn check(&self) -> Result<(), Diagnostic> {
        if self.groups == Some(0) {
            return Err(Diagnostic::invalid("no group of channels").help("use at least one group"));
        }
        for (name, [rows, columns]) in [("stride", self.stride), ("dilation", self.dilation)] {
            if rows == 0 || columns == 0 {
                let text = format!("a {name} of {rows} rows and {columns} columns does not move");
                return Err(
                    Diagnostic::invalid(text).help(format!("use a {name} of at least 1 along each axis"))
                );
            }
        }
        Ok(())
    }

    fn trace(&self) -> Result<Kernel, Diagnostic> {
        self.check()?;
        let waves = self.waves.check()?;
        let sums = sums_of(self.matrix, self.inputs)?;
        let [n, h, width, c, nf, hf, wf] = symbols(["N", "H", "W", "C", "NF", "HF", "WF"]);
        let [ho, wo, m, k] = symbols(["HO", "WO", "M", "K"]);
        let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        // Which image, and which pixel of the output, a row of the product is.
        let (image, p, q) = (m / (ho * wo), m / wo % ho, m % wo);
        // Which row, column and channel of a filter an element of K is.
        let [g, nfg] = symbols(["G", "NFG"]);
        let (channels, filters_of_group) = match self.groups {
            None => (c.into(), nf.into()),
            Some(groups) => (c / i64::from(groups), nf / i64::from(groups)),
        };
        let (r, s, channel) = match self.layout {
            ImageLayout::Nhwc => (k / (wf * &channels), k / &channels % wf, k % &channels),
            ImageLayout::Nchw => (k / wf % hf, k % wf, k / (hf * wf)),
        };
        // The filter of an element of the product, and the channel of the whole image.
        let (filter, channel): (SymExpr, SymExpr) = match self.groups {
            None => (nf.into(), channel),
            Some(_) => (g * filters_of_group + nfg, g * channels + channel),
        };
        let columns = if self.groups.is_some() { nfg } else { nf };
        let pixel = |axis: usize, output: &SymExpr, filter: SymExpr| {
            output * self.stride[axis] + filter * self.dilation[axis] - self.padding[axis]
        };
        let (row, column) = (pixel(0, &p, r), pixel(1, &q, s));
        Kernel::trace("conv2d", |w| {
            w.distribute([
                workgroup(m, block_m, 0),
                workgroup(columns, block_n, 1),
                tile(k, block_k),
                wave(m, block_m / i64::from(waves.m)),
                wave(columns, block_n / i64::from(waves.n)),
                // A symbol of every convolution, also where K says enough.
                assume_at_least(hf, 1),
                cached_order(),
            ]);
            w.distribute(self.groups.map(|_| workgroup(g, 1, 2)));
            w.mma_type(self.matrix);
            let (input, output, at, to) = match self.layout {
                ImageLayout::Nhwc => (
                    [n, h, width, c],
                    [n, ho, wo, nf],
                    [image.clone(), row, column, channel],
                    [image, p, q, filter.clone()],
                ),
                ImageLayout::Nchw => (
                    [n, c, h, width],
                    [n, nf, ho, wo],
                    [image.clone(), channel, row, column],
                    [image, filter.clone(), p, q],
                ),
            };
            let x = w.memory("x", input, Shared, self.inputs);
            let filters = w.memory("filters", [nf, k], Shared, self.inputs);
            let y = w.memory("y", output, Global, sums);
            let zero = match self.groups {
                None => w.register([m, nf], sums, 0.0),
                Some(_) => w.register([g, m, nfg], sums, 0.0),
            };
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let (window, filters) = match self.groups {
                    None => (w.read_at(x, at, [m, k]), w.read(filters)),
                    Some(_) => (w.read_at(x, at, [g, m, k]), w.read_at(filters, (filter, k), [g, nfg, k])),
                };
                [w.mma(window.tag("read_x"), filters.tag("read_filters"), sum).tag("mma")]
            });
            w.write_at(sum.tag_loop("k_loop"), y, to);
        })
    }
}

/// Three factors of 32 bits fit in 96.
fn product(factors: [u32; 3]) -> i128 {
    factors.into_iter().map(i128::from).product()
}

/// The tile that [`Conv2d::options`] chooses.
const TILE: [(&str, i64); 3] = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 64)];
