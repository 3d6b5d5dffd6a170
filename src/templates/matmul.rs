//! Products of matrices as a template.

use crate::codegen::target::{DeviceModel, DeviceParameter, TargetId};
use crate::kernels::{Form, Gemm, SplitK, Waves, split_k_into};
use crate::prelude::*;
use crate::tuning::{ChoiceValue, InstanceKernel, Point, SearchLevel, Template, TuningSpace};

/// C = A B for one shape, in the forms and dtypes of [`Gemm`].
///
/// Its choices are the tile of a workgroup, the waves along its rows and columns, the schedule of the loop
/// over K, the order of workgroups, and into how many parts K is divided. A point with the tile `model` is
/// what [`Gemm::new`] takes without being tuned.
#[derive(Clone, Debug)]
pub struct Matmul {
    size: [i64; 3],
    batches: Option<i64>,
    inputs: DType,
    output: Option<DType>,
    form: Form,
}

/// Rows, columns, and bytes of K of the tiles of each level.
const USUAL_TILES: [[i64; 3]; 22] = [
    [256, 256, 128],
    [224, 256, 128],
    [256, 192, 128],
    [192, 192, 128],
    [192, 128, 128],
    [256, 128, 128],
    [128, 256, 128],
    [256, 128, 64],
    [128, 128, 128],
    [128, 128, 64],
    [128, 64, 128],
    [64, 128, 128],
    [64, 64, 256],
    [64, 64, 128],
    [64, 32, 256],
    [32, 128, 256],
    [32, 64, 256],
    [32, 32, 512],
    [16, 64, 256],
    [16, 64, 512],
    [16, 32, 512],
    [16, 16, 512],
];

/// All sides of tiles, and all bytes of K.
const SIDES: [i64; 9] = [256, 224, 192, 160, 128, 96, 64, 32, 16];
const K_BYTES: [i64; 5] = [32, 64, 128, 256, 512];
/// Orders of workgroups: that which suits the grid, and such that make neighbours share what they read.
const ORDERS: [&str; 4] = ["usual", "grouped4", "grouped8", "dies-grouped4"];
/// Dtypes of products in parts.
const IN_PARTS: [DType; 3] = [DType::F16, DType::Bf16, DType::F32];
/// Parts into which K may be divided.
const SPLITS: [i64; 5] = [2, 4, 8, 16, 32];
/// Accumulators of a lane that leave room for what else a wave needs.
const MOST_ACCUMULATORS: i64 = 256;

impl Matmul {
    /// A Bᵀ of f16 into f32, of `[m, n, k]`.
    pub fn new(size: [i64; 3]) -> Matmul {
        Matmul { size, batches: None, inputs: F16, output: None, form: Form::ABt }
    }

    /// Element type of A and B, as [`Gemm::inputs`].
    #[must_use]
    pub fn inputs(mut self, dtype: DType) -> Matmul {
        self.inputs = dtype;
        self
    }

    /// Element type of C, as [`Gemm::output`].
    #[must_use]
    pub fn output(mut self, dtype: DType) -> Matmul {
        self.output = Some(dtype);
        self
    }

    /// How A and B lie in memory, as [`Gemm::form`].
    #[must_use]
    pub fn form(mut self, form: Form) -> Matmul {
        self.form = form;
        self
    }

    /// So many products of that size.
    #[must_use]
    pub fn batch(mut self, count: i64) -> Matmul {
        self.batches = Some(count);
        self
    }

    /// The executable of a point that is one kernel.
    ///
    /// # Errors
    /// A point of several kernels, for which there is [`Template::instantiate`]; what compiling reports.
    pub fn compile(&self, target: impl Into<TargetId>, point: &Point) -> Result<Executable, Diagnostic> {
        match self.instantiate(target.into(), point)?.as_slice() {
            [InstanceKernel { kernel, options, .. }] => kernel.compile(options),
            kernels => Err(Diagnostic::invalid(format!("{point} is {} kernels", kernels.len()))
                .help("compile those of `Template::instantiate` one by one")),
        }
    }

    /// The product with the choices of a point that divides nothing.
    fn gemm(&self, target: TargetId, point: &Point) -> Result<Gemm, Diagnostic> {
        let [m, n, k] = self.size;
        let gemm = Gemm::new(m, n, k).inputs(self.inputs).form(self.form).chosen_for(target);
        let gemm = self.output.map_or(gemm.clone(), |output| gemm.output(output));
        let gemm = self.batches.map_or(gemm.clone(), |count| gemm.batch(count));
        let Some([m, n, k]) = self.tile(point)? else { return Ok(gemm) };
        let gemm = gemm.tile(m, n, k).waves(waves(point)?);
        let gemm = match point.word("schedule") {
            Some(word) => gemm.schedule(Schedule::from_name(word)?),
            None => gemm,
        };
        let dies = DeviceModel::nearest(target.target()).get(DeviceParameter::Dies) as u32;
        match point.word("order").unwrap_or("usual") {
            "usual" => Ok(gemm),
            "grouped4" => Ok(gemm.grouped(4)),
            "grouped8" => Ok(gemm.grouped(8)),
            "dies-grouped4" => Ok(gemm.xcd(dies).grouped(4)),
            order => Err(Diagnostic::invalid(format!("no product takes its tiles in the order `{order}`"))
                .help(format!("orders are {}", ORDERS.join(", ")))),
        }
    }

    /// Rows, columns and elements of K of the tile; none if the model chooses.
    fn tile(&self, point: &Point) -> Result<Option<[u32; 3]>, Diagnostic> {
        if point.word("tile") == Some("model") {
            return Ok(None);
        }
        let tile = point.numbers::<3>("tile").and_then(|tile| {
            let [m, n, k] = tile.map(|side| u32::try_from(side).ok());
            Some([m?, n?, k?])
        });
        tile.map(Some).ok_or_else(|| missing(point, "tile", "256x256x64"))
    }

    /// Workgroups of a point without parts.
    fn tiles(&self, [m, n]: [i64; 2]) -> i64 {
        let along =
            |size: i64, side: i64| size.max(1).div_euclid(side.max(1)) + i64::from(size % side.max(1) != 0);
        along(self.size[0], m)
            .saturating_mul(along(self.size[1], n))
            .saturating_mul(self.batches.unwrap_or(1))
    }

    /// The values of K's parts: for tiles that leave more than half of the compute units idle.
    fn splits(&self, point: &Point, units: i64) -> Vec<ChoiceValue> {
        let alone = vec![ChoiceValue::from(1)];
        let in_parts = self.form == Form::ABt
            && self.batches.is_none()
            && self.output.is_none_or(|output| IN_PARTS.contains(&output))
            && IN_PARTS.contains(&self.inputs);
        let Some([m, n, k]) = point.numbers::<3>("tile").filter(|_| in_parts) else { return alone };
        let (tiles, steps) = (self.tiles([m, n]), self.size[2] / k.max(1));
        let fills = |&splits: &i64| tiles.saturating_mul(splits) <= 2 * units && splits * 2 <= steps;
        alone.into_iter().chain(SPLITS.into_iter().filter(fills).map(ChoiceValue::from)).collect()
    }
}

/// Multiplications and additions that the matrix cores of a compute unit do in a clk. A pass is four clk, and
/// there are four matrix cores; without any, vector ALUs take their place.
fn matrix_rate(target: Target, inputs: DType) -> f64 {
    let rate = |mma: Mma| {
        let passes = target.matrix_instruction(mma)?.passes;
        Some(f64::from(mma.m() * mma.n() * mma.k()) / f64::from(passes))
    };
    let rates = MatrixShape::ALL.into_iter().flat_map(|shape| shape.instructions([inputs; 2]));
    rates.filter_map(rate).fold(128.0, f64::max)
}

/// The fault of a point that lacks a choice.
fn missing(point: &Point, name: &str, example: &str) -> Diagnostic {
    Diagnostic::invalid(format!("`{point}` has no {name}")).help(format!("give it one, as {name}={example}"))
}

fn waves(point: &Point) -> Result<Waves, Diagnostic> {
    let waves =
        point.numbers::<2>("waves").and_then(|[m, n]| Some((u32::try_from(m).ok()?, u32::try_from(n).ok()?)));
    let (m, n) = waves.ok_or_else(|| missing(point, "waves", "2x2"))?;
    Ok(Waves::new(m, n))
}

/// Waves along rows and columns of a tile: of 16 rows and columns each at least.
fn waves_of_tile(point: &Point, level: SearchLevel) -> Vec<ChoiceValue> {
    let Some([m, n, _]) = point.numbers::<3>("tile") else { return vec!["model".into()] };
    let all = [[1, 1], [1, 2], [2, 1], [1, 4], [2, 2], [4, 1], [2, 4], [4, 2], [8, 1], [1, 8]];
    let fits = |&[along_m, along_n]: &[i64; 2]| {
        let [rows, columns] = [m / along_m, n / along_n];
        let whole = rows * along_m == m && columns * along_n == n && rows % 16 == 0 && columns % 16 == 0;
        let accumulators = rows * columns / 64;
        // Waves with little to do pay for what they load, and those of the largest tiles are eight.
        let usual = match m * n {
            area if area >= 128 * 256 => along_m * along_n == 8 && along_m > 1 && along_n > 1,
            area if area >= 64 * 64 => along_m * along_n == 4 && rows >= 32 && columns >= 32,
            _ => along_m * along_n <= 4 && (along_m * along_n == 4 || rows * columns <= 16 * 32),
        };
        whole && accumulators <= MOST_ACCUMULATORS && (usual || level == SearchLevel::Two)
    };
    all.into_iter().filter(fits).map(ChoiceValue::from).collect()
}

/// Schedules for so many waves.
fn schedules(point: &Point, level: SearchLevel) -> Vec<ChoiceValue> {
    let Some([along_m, along_n]) = point.numbers::<2>("waves") else { return vec!["model".into()] };
    let words: &[&str] = match (level, along_m * along_n) {
        (SearchLevel::Two, 8) => &["prefetch", "modulo", "interleaved", "pingpong", "quadrants"],
        (SearchLevel::Two, _) => &["none", "prefetch", "modulo", "interleaved"],
        (_, 8) => &["pingpong", "quadrants", "interleaved"],
        _ => &["prefetch", "interleaved"],
    };
    words.iter().map(|&word| word.into()).collect()
}

impl Template for Matmul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn task(&self) -> String {
        let [m, n, k] = self.size;
        let batches = self.batches.map_or(String::new(), |count| format!("{count}x"));
        let output = self.output.map_or("sums".to_owned(), |output| output.to_string());
        format!("{},{output}:{}:{batches}{m}x{n}x{k}", self.inputs, format!("{:?}", self.form).to_lowercase())
    }

    fn space(&self, target: Target, level: SearchLevel) -> Result<TuningSpace, Diagnostic> {
        let bytes = i64::from(self.inputs.bytes());
        let tiles: Vec<[i64; 3]> = match level {
            SearchLevel::Zero => Vec::new(),
            SearchLevel::One => USUAL_TILES.to_vec(),
            SearchLevel::Two => SIDES
                .into_iter()
                .flat_map(|m| SIDES.into_iter().map(move |n| [m, n]))
                .flat_map(|[m, n]| K_BYTES.into_iter().map(move |k| [m, n, k]))
                .collect(),
        };
        let tiles = tiles.into_iter().map(|[m, n, k]| ChoiceValue::from([m, n, k / bytes]));
        let (size, lds) = (self.size, i64::from(target.max_lds_per_workgroup));
        let units = DeviceModel::nearest(target).get(DeviceParameter::ComputeUnits) as i64;
        let this = self.clone();
        let orders: &[&str] = match level {
            SearchLevel::Two => &ORDERS,
            SearchLevel::Zero | SearchLevel::One => &ORDERS[..1],
        };
        Ok(TuningSpace::new()
            .choice("tile", std::iter::once("model".into()).chain(tiles))
            .constraint("a tile that is less than twice as large as C", move |point| {
                let Some([m, n, _]) = point.numbers::<3>("tile") else { return true };
                let fits = |side: i64, size: i64| side / 2 < size.max(1) || side <= 16;
                fits(m, size[0]) && fits(n, size[1])
            })
            .constraint("a step of A and B that fits into LDS", move |point| {
                point.numbers::<3>("tile").is_none_or(|[m, n, k]| (m + n) * k * bytes <= lds)
            })
            .constraint("16 elements of K at least", move |point| {
                point.numbers::<3>("tile").is_none_or(|[_, _, k]| k >= 16)
            })
            .dependent_choice("waves", move |point| waves_of_tile(point, level))
            .dependent_choice("schedule", move |point| schedules(point, level))
            .dependent_choice("split_k", move |point| this.splits(point, units))
            .dependent_choice("order", move |point| {
                let has_orders = point.number("split_k") == Some(1) && point.numbers::<3>("tile").is_some();
                let all = if has_orders { orders } else { &ORDERS[..1] };
                all.iter().map(|&order| order.into()).collect()
            }))
    }

    fn instantiate(&self, target: TargetId, point: &Point) -> Result<Vec<InstanceKernel>, Diagnostic> {
        let splits = point.number("split_k").unwrap_or(1);
        if splits == 1 {
            let gemm = self.gemm(target, point)?;
            let options = gemm.options(target);
            // What spills is slow; what is taken without tuning stays what it is.
            let options = if self.tile(point)?.is_some() { options.deny(Deny::Spills) } else { options };
            let kernel = gemm.kernel()?;
            return Ok(vec![InstanceKernel { kernel, options, sizes: Vec::new() }]);
        }
        let tile = self.tile(point)?.ok_or_else(|| missing(point, "tile", "64x64x64"))?;
        let fits = |number: i64| u32::try_from(number).ok();
        let [m, n, k] = self.size.map(fits);
        let sizes = m.zip(n).zip(k).map(|((m, n), k)| [m, n, k]).zip(fits(splits));
        let (sizes, splits) = sizes.ok_or_else(|| {
            Diagnostic::invalid(format!("{:?} in {splits} parts is too large", self.size))
                .help("products in parts have sizes below 2^32")
        })?;
        let kernels = split_k_into(self.inputs, self.output.unwrap_or(F32), waves(point)?)?;
        let (product, sum) = SplitK::tiled_options(target, sizes, splits, tile);
        let product = product.deny(Deny::Spills);
        let product = match point.word("schedule") {
            Some(word) => product.schedule(Schedule::from_name(word)?),
            None => product,
        };
        let instance = |kernel, options| InstanceKernel { kernel, options, sizes: Vec::new() };
        Ok(vec![instance(kernels.product, product), instance(kernels.sum, sum)])
    }

    /// The longest of what matrix cores, LDS and memory need in the rounds of workgroups that there are, and
    /// what comes before and after the loop.
    fn expected(&self, device: &DeviceModel, point: &Point) -> Option<f64> {
        let [m, n, k] = point.numbers::<3>("tile")?.map(|side| side as f64);
        let splits = point.number("split_k").unwrap_or(1) as f64;
        let number = |parameter| device.get(parameter);
        let bytes = f64::from(self.inputs.bytes());
        let units = number(DeviceParameter::ComputeUnits);
        let tiles = self.tiles([m as i64, n as i64]) as f64 * splits;
        let steps = (self.size[2] as f64 / splits / k).ceil();
        let per_clk = matrix_rate(device.target, self.inputs);
        let matrix = m * n * k / per_clk;
        let loaded = (m + n) * k * bytes;
        let (l2, lds) = (loaded / number(DeviceParameter::L2Rate), loaded / 64.0);
        // A step of one workgroup alone waits for memory unless there is much to compute.
        let waits = 600.0 / (1.0 + matrix / 512.0);
        let resident = (f64::from(device.target.lds_bytes) / loaded).clamp(1.0, 2.0).floor();
        let rounds = (tiles / units / resident).ceil();
        let step = resident * matrix.max(l2).max(lds) + waits;
        let ends = 4000.0 + m * n * 4.0 / 16.0;
        let launches = if splits > 1.0 { 2.0 } else { 1.0 };
        let clk = rounds * (steps * step + ends);
        Some(
            clk / number(DeviceParameter::SustainedClock)
                + launches * number(DeviceParameter::LaunchOverhead),
        )
    }
}
