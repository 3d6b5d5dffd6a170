//! Matrix products: one builder for the forms, dtypes, matrix instructions and epilogues.

use std::sync::Arc;

use super::Waves;
use crate::prelude::*;

/// How B lies in memory.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Form {
    /// C = A Bᵀ: B is `[N, K]`.
    #[default]
    ABt,
    /// C = A B: B is `[K, N]`.
    AB,
}

/// Output tile of one matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum MatrixShape {
    /// 16 x 16.
    #[default]
    M16x16,
    /// 32 x 32.
    M32x32,
}

impl MatrixShape {
    const fn edge(self) -> u32 {
        match self {
            MatrixShape::M16x16 => 16,
            MatrixShape::M32x32 => 32,
        }
    }

    /// The matrix instruction of this shape for inputs of `dtype`, if there is one.
    pub fn instruction(self, dtype: DType) -> Option<Mma> {
        Mma::all().find(|mma| mma.input() == dtype && mma.m() == self.edge())
    }
}

/// What is done to the sums before they are written.
type Epilogue = Arc<dyn Fn(&Tracer, Value) -> Value + Send + Sync>;

/// Builder of matrix product kernels: C = A Bᵀ (or A B), with `a` as `[M, K]`, `b` as `[N, K]` (or `[K, N]`) and `c` as `[M, N]`.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of C and takes `BLOCK_K` of K per iteration. A and B go through LDS. The loop is
/// tagged `k_loop`, the operations `read_a`, `read_b` and `mma`.
///
/// # Example
/// ```
/// use groundswell::kernels::{Gemm, MatrixShape, Waves};
/// use groundswell::prelude::*;
///
/// // An epilogue is traced like any kernel, and may bring its own memories, which come after `c`.
/// let [m, n] = symbols(["M", "N"]);
/// let gemm = Gemm::new()
///     .inputs(F16)
///     .matrix(MatrixShape::M32x32)
///     .waves(Waves::new(2, 2))
///     .epilogue(move |w, sum| {
///         let gate = w.memory("gate", [m, n], Global, F32);
///         sum * w.read(gate)
///     })
///     .kernel()?;
/// assert!(gemm.to_string().contains("f32_32x32x8_f16"));
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct Gemm {
    inputs: DType,
    form: Form,
    shape: MatrixShape,
    waves: Waves,
    output: Option<DType>,
    batch: Option<Symbol>,
    epilogue: Vec<Epilogue>,
}

impl Default for Gemm {
    fn default() -> Gemm {
        Gemm::new()
    }
}

impl Gemm {
    /// C = A Bᵀ of f16 into f32 with 16 x 16 matrix instructions and 2 x 2 waves.
    pub fn new() -> Gemm {
        Gemm {
            inputs: F16,
            form: Form::ABt,
            shape: MatrixShape::M16x16,
            waves: Waves::new(2, 2),
            output: None,
            batch: None,
            epilogue: Vec::new(),
        }
    }

    /// Element type of A and B: f16, bf16, f32 or i8.
    #[must_use]
    pub fn inputs(mut self, dtype: DType) -> Gemm {
        self.inputs = dtype;
        self
    }

    /// How B lies in memory.
    #[must_use]
    pub fn form(mut self, form: Form) -> Gemm {
        self.form = form;
        self
    }

    /// Output tile of the matrix instruction.
    #[must_use]
    pub fn matrix(mut self, shape: MatrixShape) -> Gemm {
        self.shape = shape;
        self
    }

    /// Waves of a workgroup.
    #[must_use]
    pub fn waves(mut self, waves: Waves) -> Gemm {
        self.waves = waves;
        self
    }

    /// Element type of C; without this that of the sums: f32, or i32 for i8 inputs.
    #[must_use]
    pub fn output(mut self, dtype: DType) -> Gemm {
        self.output = Some(dtype);
        self
    }

    /// One product per element of a batch: all tensors get a first dimension `B`, which is grid axis 2.
    #[must_use]
    pub fn batched(mut self) -> Gemm {
        self.batch = Some(Symbol::new("B"));
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

    /// Element type of the sums that the inputs chosen so far give.
    fn sums(&self) -> DType {
        if self.inputs.is_float() { F32 } else { I32 }
    }

    /// Name of the kernel.
    fn name(&self) -> &'static str {
        if self.batch.is_some() { "batched_gemm" } else { "gemm" }
    }

    /// Traces the kernel.
    ///
    /// # Errors
    /// Inputs that no matrix instruction takes, no wave along a dimension, or a fault of an epilogue step.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        let waves = self.waves.check()?;
        let Some(mma) = self.shape.instruction(self.inputs) else {
            return Err(Diagnostic::invalid(format!("no matrix instruction multiplies {}", self.inputs))
                .help("use f16, bf16, f32 or i8 inputs"));
        };
        let [m, n, k] = symbols(["M", "N", "K"]);
        let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        let (batch, sums) = (self.batch, mma.accumulator());
        let output = self.output.unwrap_or(sums);
        Kernel::trace(self.name(), |w| {
            w.distribute([
                workgroup(m, block_m, 0),
                workgroup(n, block_n, 1),
                tile(k, block_k),
                wave(m, block_m / i64::from(waves.m)),
                wave(n, block_n / i64::from(waves.n)),
            ]);
            w.distribute(batch.map(|b| workgroup(b, 1, 2)));
            w.mma_type(mma);
            let b_shape = match self.form {
                Form::ABt => [n, k],
                Form::AB => [k, n],
            };
            let a = tensor(w, "a", batch, [m, k], Shared, self.inputs);
            let b = tensor(w, "b", batch, b_shape, Shared, self.inputs);
            let c = tensor(w, "c", batch, [m, n], Global, output);
            let zero = match batch {
                Some(batch) => w.register([batch, m, n], sums, 0.0),
                None => w.register([m, n], sums, 0.0),
            };
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                [w.mma(w.read(a).tag("read_a"), w.read(b).tag("read_b"), sum).tag("mma")]
            });
            let sum = self.epilogue.iter().fold(sum.tag_loop("k_loop"), |sum, step| step(w, sum));
            w.write(if output == sums { sum } else { sum.cast(output) }, c);
        })
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
