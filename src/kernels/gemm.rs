//! Matrix products: one builder for the forms, dtypes, matrix instructions and epilogues.

use std::panic::Location as Caller;
use std::sync::Arc;

use super::sums::sums_of;
use super::{Tile, Waves};
use crate::choice::{MatrixProduct, ProductChoice, choose};
use crate::prelude::*;

/// Waves of a kernel for any shape.
const DEFAULT_WAVES: Waves = Waves::new(2, 2);

/// Tile, waves and schedule of a product.
#[derive(Clone)]
struct ShapeChoices {
    tile: Tile,
    waves: Waves,
    schedule: Schedule,
}

/// How A and B lie in memory.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Form {
    /// C = A Bᵀ: A is `[M, K]` and B `[N, K]`.
    #[default]
    ABt,
    /// C = A B: A is `[M, K]` and B `[K, N]`.
    AB,
    /// C = Aᵀ B: A is `[K, M]` and B `[K, N]`.
    AtB,
    /// C = Aᵀ Bᵀ: A is `[K, M]` and B `[N, K]`.
    AtBt,
}

impl Form {
    /// How many of the two factors lie across the dimension that is summed over.
    fn turned_factors(self) -> u32 {
        match self {
            Form::ABt => 0,
            Form::AB | Form::AtBt => 1,
            Form::AtB => 2,
        }
    }
}

/// The operation on the sums before they are written.
type Epilogue = Arc<dyn Fn(&Tracer, Value) -> Value + Send + Sync>;

/// Builder of matrix product kernels: C = A Bᵀ, with `a` as `[M, K]`, `b` as `[N, K]` and `c` as `[M, N]`; in
/// other [`Form`]s A or B are the other way round.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of C and takes `BLOCK_K` of K per iteration. A and B
/// go through LDS. The loop is tagged `k_loop`, the operations `read_a`, `read_b` and `mma`.
///
/// # Example
/// ```
/// use groundswell::kernels::Gemm;
/// use groundswell::prelude::*;
///
/// // Tile, waves and schedule are chosen for the shape, unless they are given.
/// let executable = Gemm::new(4096, 4096, 1000).inputs(Bf16).bias().relu().compile(Target::GFX942)?;
/// let small = Gemm::new(100, 60, 500).tile(32, 32, 64).compile(Target::GFX942)?;
/// assert_eq!(small.parameters().len(), 3); // a, b, c
/// # Ok::<(), Diagnostic>(())
/// ```
///
/// A kernel for any shape leaves the symbols to the options. An epilogue is traced like any kernel, and may
/// bring its own memories, which come after `c`:
/// ```
/// use groundswell::kernels::{Gemm, Waves};
/// use groundswell::prelude::*;
///
/// let [m, n] = symbols(["M", "N"]);
/// let gemm = Gemm::any_shape()
///     .inputs(F16)
///     .matrix(MatrixShape::M32x32)
///     .waves(Waves::new(2, 2))
///     .epilogue(move |w, sum| sum * w.read(w.memory("gate", [m, n], Global, F32)))
///     .kernel()?;
/// assert!(gemm.to_string().contains("mma 32x32"));
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct Gemm {
    inputs: DType,
    form: Form,
    matrix: MmaType,
    /// M, N and K, unless they are left to the options.
    size: Option<[i128; 3]>,
    tile: Option<(Tile, &'static Caller<'static>)>,
    waves: Option<(Waves, &'static Caller<'static>)>,
    schedule: Option<Schedule>,
    /// The chip that the choices for the shape are for.
    chip: Target,
    output: Option<DType>,
    /// Whether the sums have been multiplied by scales, which makes them f32.
    scaled: bool,
    batch: Option<Symbol>,
    batches: Option<i128>,
    /// What leading dimensions are multiples of, if rows have some of their own.
    strided: Option<u32>,
    /// In which order workgroups take tiles, and how many there are.
    grid: Vec<Constraint>,
    epilogue: Vec<Epilogue>,
    /// Where the kernel was asked for.
    caller: &'static Caller<'static>,
}

impl Default for Gemm {
    /// [`Gemm::any_shape`].
    #[track_caller]
    fn default() -> Gemm {
        Gemm::any_shape()
    }
}

impl Gemm {
    /// C = A Bᵀ of f16 into f32, of `m` x `n` elements that are sums of `k`. Tile, waves and schedule are
    /// those that time mode finds good for the shape, unless they are chosen.
    #[track_caller]
    pub fn new(m: impl TryInto<i128>, n: impl TryInto<i128>, k: impl TryInto<i128>) -> Gemm {
        // Only a u128 can fail to be an i128. An invalid size is rejected at compilation.
        let size = [m.try_into().ok(), n.try_into().ok(), k.try_into().ok()];
        Gemm { size: Some(size.map(|size| size.unwrap_or(i128::MAX))), ..Gemm::any_shape() }
    }

    /// C = A Bᵀ of f16 into f32 with 16 x 16 matrix instructions and, unless chosen otherwise, 2 x 2 waves.
    /// `M`, `N`, `K`, `BLOCK_M`, `BLOCK_N` and `BLOCK_K` are symbols that the options of its compilation bind
    /// or leave open.
    #[track_caller]
    pub fn any_shape() -> Gemm {
        Gemm {
            inputs: F16,
            form: Form::ABt,
            matrix: MmaType::default(),
            size: None,
            tile: None,
            waves: None,
            schedule: None,
            chip: Target::USUAL,
            output: None,
            scaled: false,
            batch: None,
            batches: None,
            strided: None,
            grid: Vec::new(),
            epilogue: Vec::new(),
            caller: Caller::caller(),
        }
    }

    /// Element type of A and B: f16, bf16, f32, f64, i8, or an 8-bit float that the chip multiplies.
    #[must_use]
    pub fn inputs(mut self, dtype: DType) -> Gemm {
        self.inputs = dtype;
        self
    }

    /// Elements of C that a workgroup computes (`m` x `n`), and of K that it takes per iteration.
    #[must_use]
    #[track_caller]
    pub fn tile(mut self, m: u32, n: u32, k: u32) -> Gemm {
        self.tile = Some((Tile { m, n, k }, Caller::caller()));
        self
    }

    /// Tile, waves and schedule, unless they are given, are those that time mode finds good on this chip
    /// ([`Gemm::compile`] says so itself). Without it [`Gemm::kernel`] and [`Gemm::options`] have those of an
    /// MI300X, on any chip.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Gemm;
    /// use groundswell::prelude::*;
    ///
    /// let gemm = Gemm::new(4096, 4096, 4096).chosen_for(Target::GFX950);
    /// let executable = gemm.kernel()?.compile(&gemm.options(Target::GFX950))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn chosen_for(mut self, chip: impl Into<TargetId>) -> Gemm {
        self.chip = chip.into().target();
        self
    }

    /// How the loop over K is scheduled.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Gemm {
        self.schedule = Some(schedule);
        self
    }

    /// How A and B lie in memory. Where K is not the last dimension, tiles are turned on their way through
    /// LDS, which takes narrower accesses.
    #[must_use]
    pub fn form(mut self, form: Form) -> Gemm {
        self.form = form;
        self
    }

    /// Output tile of the matrix instruction, for which each chip has its best one, or an instruction.
    #[must_use]
    pub fn matrix(mut self, matrix: impl Into<MmaType>) -> Gemm {
        self.matrix = matrix.into();
        self
    }

    /// Waves of a workgroup.
    #[must_use]
    #[track_caller]
    pub fn waves(mut self, waves: Waves) -> Gemm {
        self.waves = Some((waves, Caller::caller()));
        self
    }

    /// Element type of C; without this that of the sums: f32, f64 for f64 inputs, or i32 for i8 inputs. They
    /// are converted after the last step of the epilogue; sums of floats become integers by rounding to the
    /// nearest one, of two to the even one, and what is too large becomes the largest.
    #[must_use]
    pub fn output(mut self, dtype: DType) -> Gemm {
        self.output = Some(dtype);
        self
    }

    /// One product per element of a batch: all tensors get a first dimension `B`, which is grid axis 2. The
    /// options of the compilation say how many there are.
    #[must_use]
    pub fn batched(mut self) -> Gemm {
        self.batch = Some(Symbol::new("B"));
        self
    }

    /// [`Gemm::batched`] with `count` products.
    #[must_use]
    pub fn batch(self, count: impl TryInto<i128>) -> Gemm {
        Gemm { batches: Some(count.try_into().unwrap_or(i128::MAX)), ..self.batched() }
    }

    /// Workgroups take the tiles of C in groups of `rows` rows, column after column, so that those that run
    /// at a time share what they read in the cache. Orders are composed as those of [`grouped_order`] and
    /// [`xcd_order`]; without any the grid has the one that suits it ([`cached_order`]).
    #[must_use]
    pub fn grouped(mut self, rows: u32) -> Gemm {
        self.grid.push(grouped_order(rows));
        self
    }

    /// Workgroups of one die, of `dies` that take turns, take tiles that follow one another ([`xcd_order`]).
    #[must_use]
    pub fn xcd(mut self, dies: u32) -> Gemm {
        self.grid.push(xcd_order(dies));
        self
    }

    /// At most `workgroups` workgroups share the tiles of C ([`persistent`]): as many as run at a time.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Gemm;
    /// use groundswell::prelude::*;
    ///
    /// // 16 tiles for three workgroups.
    /// let gemm = Gemm::new(64, 64, 32).tile(16, 16, 32).xcd(2).grouped(2).persistent(3);
    /// let executable = gemm.compile(Target::GFX942)?;
    /// let device = Device::open()?;
    /// let [a, b] = [f16::from_f64(1.0), f16::from_f64(0.5)].map(|x| device.upload(&[x; 64 * 32]));
    /// let c = device.upload(&[0f32; 64 * 64])?;
    /// device.launch(&executable).buffer(&a?).buffer(&b?).buffer(&c).run()?;
    /// assert_eq!(c.download::<f32>()?, [16.0; 64 * 64]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn persistent(mut self, workgroups: impl Into<SymExpr>) -> Gemm {
        self.grid.push(crate::prelude::persistent(workgroups));
        self
    }

    /// A, B and C are parts of larger matrices: `LDA`, `LDB` and `LDC` are the elements from one row of each
    /// to the next, and, for a batch, `STRIDE_A`, `STRIDE_B` and `STRIDE_C` those from a matrix to the next.
    /// The options of the compilation bind them or leave them open; all of them are multiples of `multiple`.
    /// Accesses are wide where it is certain that rows begin at whole dwords, so 16-bit inputs with strides
    /// that are left open take a multiple of 2; 1 assumes nothing.
    ///
    /// # Example
    /// The left upper quarter of a matrix times the lower half of another one:
    /// ```
    /// use groundswell::kernels::Gemm;
    /// use groundswell::prelude::*;
    ///
    /// let gemm = Gemm::new(16, 16, 32).inputs(F32).tile(16, 16, 16).leading_dimensions(1);
    /// let options = gemm.options(Target::GFX942).dynamic("LDA").set("LDB", 32).set("LDC", 16);
    /// let executable = gemm.kernel()?.compile(&options)?;
    ///
    /// let device = Device::open()?;
    /// let a = device.upload(&[1.0f32; 32 * 64])?;
    /// let b = device.upload(&[2.0f32; 16 * 32])?;
    /// let c = device.upload(&[0.0f32; 16 * 16])?;
    /// device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).set("LDA", 64).run()?;
    /// assert_eq!(c.download::<f32>()?, [64.0; 256]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn leading_dimensions(mut self, multiple: u32) -> Gemm {
        self.strided = Some(multiple);
        self
    }

    /// Adds a step between the sums and the write. Steps run in the order in which they are added.
    #[must_use]
    pub fn epilogue(mut self, step: impl Fn(&Tracer, Value) -> Value + Send + Sync + 'static) -> Gemm {
        self.epilogue.push(Arc::new(step));
        self
    }

    /// Epilogue step: every sum times `factor`.
    #[must_use]
    pub fn scale(self, factor: f64) -> Gemm {
        self.epilogue(move |_, sum| sum * factor)
    }

    /// Epilogue step: every sum, as f32, times the element of a memory `scale` of f32 and of shape `[N]`
    /// for its column. Steps after it, and C unless [`Gemm::output`] says otherwise, are f32, too.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::Gemm;
    /// use groundswell::prelude::*;
    ///
    /// let gemm = Gemm::new(2, 2, 2).inputs(I8).tile(16, 16, 32).channel_scales().output(I8);
    /// let executable = gemm.compile(Target::GFX942)?;
    ///
    /// let device = Device::open()?;
    /// let a = device.upload(&[1i8, 2, 3, 4])?;
    /// let b = device.upload(&[10i8, 20, 30, 40])?;
    /// let c = device.upload(&[0i8; 4])?;
    /// let scale = device.upload(&[0.25f32, 1.0])?;
    /// device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).buffer(&scale).run()?;
    /// // Sums are 50, 110, 110 and 250: a quarter of the first column, and no number above 127.
    /// assert_eq!(c.download::<i8>()?, [12, 110, 28, 127]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn channel_scales(self) -> Gemm {
        let n = Symbol::new("N");
        let gemm = self.epilogue(move |w, sum| {
            let scale = w.memory("scale", [n], Global, F32);
            sum.cast(F32) * w.read(scale).tag("read_scale")
        });
        Gemm { scaled: true, ..gemm }
    }

    /// Epilogue step: every sum, as f32, times the element of a memory `row_scale` of f32 and of shape `[M]`
    /// for its row, as the quantised tokens of 8-bit products have one. Steps after it, and C unless
    /// [`Gemm::output`] says otherwise, are f32, too.
    #[must_use]
    pub fn row_scales(self) -> Gemm {
        let m = Symbol::new("M");
        let gemm = self.epilogue(move |w, sum| {
            let scale = w.memory("row_scale", [m], Global, F32);
            sum.cast(F32) * w.read(scale).tag("read_row_scale")
        });
        Gemm { scaled: true, ..gemm }
    }

    /// Epilogue step: adds a memory `bias` of shape `[N]`, of the sums' dtype, to each row.
    #[must_use]
    pub fn bias(self) -> Gemm {
        let (n, dtype) = (Symbol::new("N"), self.sums());
        self.epilogue(move |w, sum| {
            let bias = w.memory("bias", [n], Global, dtype);
            sum + w.read(bias).tag("read_bias")
        })
    }

    /// Epilogue step: negative sums become zero.
    #[must_use]
    pub fn relu(self) -> Gemm {
        let dtype = self.sums();
        self.epilogue(move |_, sum| if dtype.is_float() { sum.maximum(0.0) } else { sum.maximum(0) })
    }

    /// Epilogue step: adds a memory `residual` of C's shape and of the sums' dtype.
    #[must_use]
    pub fn residual(self) -> Gemm {
        let (batch, dtype) = (self.batch, self.sums());
        self.epilogue(move |w, sum| {
            let [m, n] = symbols(["M", "N"]);
            let residual = tensor(w, "residual", batch, [m, n], Global, dtype);
            sum + w.read(residual).tag("read_residual")
        })
    }

    /// Element type of what the inputs and steps chosen so far give.
    fn sums(&self) -> DType {
        match self.matrix.accumulator(self.inputs) {
            Some(sums) if !self.scaled => sums,
            _ => F32,
        }
    }

    /// Name of the kernel.
    fn name(&self) -> &'static str {
        if self.batch.is_some() { "batched_gemm" } else { "gemm" }
    }

    /// Tile, waves and schedule: those that were given, and suitable ones for the rest.
    fn choice(&self) -> ShapeChoices {
        let chosen = match (self.size, self.tile) {
            (_, Some((tile, _))) => {
                let schedule = self.size.map_or(Schedule::None, |_| Schedule::Prefetch);
                let waves = self.size.map_or(DEFAULT_WAVES, |_| waves_for(tile, self.matrix.edge()));
                ShapeChoices { tile, waves, schedule }
            }
            (Some(size), None) => {
                let product = MatrixProduct {
                    size,
                    batches: self.batches.unwrap_or(1),
                    inputs: self.inputs,
                    matrix: self.matrix,
                    turned: self.form.turned_factors(),
                };
                let ProductChoice { tile: [m, n, k], waves, schedule } = choose(product, self.chip);
                ShapeChoices { tile: Tile { m, n, k }, waves: Waves::new(waves[0], waves[1]), schedule }
            }
            (None, None) => ShapeChoices {
                tile: Tile { m: 0, n: 0, k: 0 },
                waves: DEFAULT_WAVES,
                schedule: Schedule::None,
            },
        };
        ShapeChoices {
            waves: self.waves.map_or(chosen.waves, |(waves, _)| waves),
            schedule: self.schedule.clone().unwrap_or(chosen.schedule),
            ..chosen
        }
    }

    /// Options that bind the known parts of the shape and the tile, with the schedule.
    pub fn options(&self, target: impl Into<TargetId>) -> Options {
        let choice = self.choice();
        let mut options = Options::new(target).schedule(choice.schedule);
        let sizes = self.size.iter().flatten().zip(["M", "N", "K"]);
        for (&size, name) in sizes.chain(self.batches.iter().map(|count| (count, "B"))) {
            options = options.set_by(name, size, SetBy::Call(self.caller));
        }
        let by = self.tile.map_or(SetBy::Default, |(_, caller)| SetBy::Call(caller));
        if self.tile.is_some() || self.size.is_some() {
            let Tile { m, n, k } = choice.tile;
            for (name, value) in [("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k)] {
                options = options.set_by(name, value, by.clone());
            }
        }
        options
    }

    /// Compiles the kernel for its shape, with the tile, waves and schedule that suit the chip
    /// ([`Gemm::chosen_for`]).
    ///
    /// # Errors
    /// Those of [`Gemm::kernel`], and of its compilation.
    pub fn compile(&self, target: impl Into<TargetId>) -> Result<Executable, Diagnostic> {
        let target = target.into();
        let gemm = self.clone().chosen_for(target);
        gemm.kernel()?.compile(&gemm.options(target))
    }

    /// Traces the kernel. It is the same for all shapes: its sizes and tiles are symbols ([`Gemm::options`]
    /// binds them).
    ///
    /// # Errors
    /// Inputs that no matrix instruction takes, no wave along a dimension, or a fault of an epilogue step.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        let asked = Some(Location::from(self.caller));
        match self.trace() {
            Ok(kernel) => {
                let waves = self.choice().waves;
                let kernel = match self.waves {
                    Some((_, caller)) => waves.told_in(kernel, "set here", Some(&caller.into())),
                    None => waves.told_in(kernel, "the default", None),
                };
                Ok(kernel.told_at(asked))
            }
            Err(fault) if fault.location.is_none() => Err(fault.at(asked)),
            Err(fault) => Err(fault),
        }
    }

    fn trace(&self) -> Result<Kernel, Diagnostic> {
        let waves = self.choice().waves.check()?;
        let sums = sums_of(self.matrix, self.inputs)?;
        let [m, n, k] = symbols(["M", "N", "K"]);
        let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        let batch = self.batch;
        let output = self.output.unwrap_or(self.sums());
        Kernel::trace(self.name(), |w| {
            w.distribute([
                workgroup(m, block_m, 0),
                workgroup(n, block_n, 1),
                tile(k, block_k),
                wave(m, block_m / i64::from(waves.m)),
                wave(n, block_n / i64::from(waves.n)),
            ]);
            w.distribute(batch.map(|b| workgroup(b, 1, 2)));
            let is_ordered = self.grid.iter().any(|own| matches!(own, Constraint::Reorder(_)));
            w.distribute((!is_ordered).then(cached_order));
            w.distribute(self.grid.iter().cloned());
            w.mma_type(self.matrix);
            let (a_shape, b_shape) = match self.form {
                Form::ABt => ([m, k], [n, k]),
                Form::AB => ([m, k], [k, n]),
                Form::AtB => ([k, m], [k, n]),
                Form::AtBt => ([k, m], [n, k]),
            };
            let a = self.tensor(w, "a", a_shape, Shared, self.inputs);
            let b = self.tensor(w, "b", b_shape, Shared, self.inputs);
            let c = self.tensor(w, "c", [m, n], Global, output);
            let zero = match batch {
                Some(batch) => w.register([batch, m, n], sums, 0.0),
                None => w.register([m, n], sums, 0.0),
            };
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                [w.mma(w.read(a).tag("read_a"), w.read(b).tag("read_b"), sum).tag("mma")]
            });
            let sum = self.epilogue.iter().fold(sum.tag_loop("k_loop"), |sum, step| step(w, sum));
            let result = match output {
                I8 | I32 if self.sums().is_float() => sum.round_even().cast(output),
                // A cast of integers keeps the lowest bits.
                I8 => sum.maximum(-128).minimum(127).cast(I8),
                _ if output == self.sums() => sum,
                _ => sum.cast(output),
            };
            w.write(result, c);
        })
    }
}

/// The product that ready ones are made of.
pub(super) fn base(dtype: DType, matrix: MmaType, waves: Waves) -> Gemm {
    Gemm::any_shape().inputs(dtype).matrix(matrix).waves(waves)
}

impl Gemm {
    /// A memory of a matrix, or of a batch of them, with the strides that are named after it.
    fn tensor(
        &self,
        w: &Tracer,
        name: &str,
        [rows, columns]: [Symbol; 2],
        space: AddressSpace,
        dtype: DType,
    ) -> MemoryRef {
        let Some(multiple) = self.strided else {
            return tensor(w, name, self.batch, [rows, columns], space, dtype);
        };
        let upper = name.to_uppercase();
        let [leading, stride] = [format!("LD{upper}"), format!("STRIDE_{upper}")];
        let [leading, stride] = symbols([&leading, &stride]);
        let open = [leading].into_iter().chain(self.batch.map(|_| stride));
        w.distribute(open.filter(|_| multiple != 1).map(|elements| assume_divisible(elements, multiple)));
        match self.batch {
            Some(batch) => {
                let layout = MemoryLayout::strides([stride, leading]);
                w.memory_in(name, [batch, rows, columns], &layout, space, dtype)
            }
            None => w.memory_in(name, [rows, columns], &MemoryLayout::strides([leading]), space, dtype),
        }
    }
}

/// Waves for a tile that the author chose: up to two along each side, as many as cover whole matrix
/// instructions; a large one has up to four along N.
fn waves_for(tile: Tile, edge: u32) -> Waves {
    let along = |size: u32, most: u32| if size.is_multiple_of(most * edge) { most } else { 1 };
    match u64::from(tile.m) * u64::from(tile.n) {
        0..0x4000 => Waves::new(along(tile.m, 2), along(tile.n, 2)),
        _ => Waves::new(along(tile.m, 2), along(tile.n, 4)),
    }
}

/// A memory of a matrix, or of a batch of them.
fn tensor(
    w: &Tracer,
    name: &str,
    batch: Option<Symbol>,
    [rows, columns]: [Symbol; 2],
    space: AddressSpace,
    dtype: DType,
) -> MemoryRef {
    match batch {
        Some(batch) => w.memory(name, [batch, rows, columns], space, dtype),
        None => w.memory(name, [rows, columns], space, dtype),
    }
}
