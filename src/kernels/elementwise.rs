//! Functions of each element of a matrix, and of what its row or column has.

use std::panic::Location as Caller;
use std::sync::Arc;

use super::Waves;
use crate::prelude::*;

/// The shape of an operand.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum OperandShape {
    /// `[M, N]`.
    Matrix,
    /// `[M]`: one element for each row.
    Rows,
    /// `[N]`: one element for each column.
    Columns,
}

/// The function of a kernel, of its operands in order.
type ElementFunction = Arc<dyn Fn(&[Value]) -> Value + Send + Sync>;

/// The type that a function is computed in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Precision {
    /// f32, for elements of fewer bits.
    AtLeastF32,
    /// That of the elements, unless the output has another one: for a single function, whose result is
    /// rounded in any case.
    OfElements,
}

/// Builder of kernels that compute `out[i, j]` from the elements of their operands for row i and column j.
///
/// The operands are memories `a`, `b` and so on; `out` of shape `[M, N]` comes after them. 16-bit floats are
/// computed with in f32 and rounded once. A workgroup has `BLOCK_M` x `BLOCK_N` elements. The reads have the
/// tags `read_a`, `read_b` and so on.
///
/// # Example
/// ```
/// use groundswell::kernels::{Elementwise, OperandShape};
/// use groundswell::prelude::*;
///
/// // out[i, j] = a[i, j] * b[i] + 1
/// let shapes = [OperandShape::Matrix, OperandShape::Rows];
/// let scaled = Elementwise::new("scaled", F32, shapes, |[a, b]| a * b + 1.0);
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 2);
/// let options = options.set("BLOCK_M", 16).set("BLOCK_N", 256);
/// let executable = scaled.kernel()?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 2.0, 3.0, 4.0])?;
/// let b = device.upload(&[10f32, 100.0])?;
/// let out = device.upload(&[0f32; 4])?;
/// device.launch(&executable).buffer(&a).buffer(&b).buffer(&out).run()?;
/// assert_eq!(out.download::<f32>()?, [11.0, 21.0, 301.0, 401.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct Elementwise {
    name: &'static str,
    dtype: DType,
    output: DType,
    shapes: Vec<OperandShape>,
    waves: Waves,
    function: ElementFunction,
    precision: Precision,
    caller: &'static Caller<'static>,
}

impl Elementwise {
    /// `function` of operands of these shapes, elements of `dtype`, with 4 x 1 waves. The first operand has
    /// to be a matrix: the result has its shape.
    #[track_caller]
    pub fn new<const N: usize>(
        name: &'static str,
        dtype: DType,
        shapes: [OperandShape; N],
        function: impl Fn([Value; N]) -> Value + Send + Sync + 'static,
    ) -> Elementwise {
        Elementwise {
            name,
            dtype,
            output: dtype,
            shapes: shapes.to_vec(),
            waves: Waves::new(4, 1),
            // As many as there are shapes.
            function: Arc::new(move |values| function(std::array::from_fn(|at| values[at]))),
            precision: Precision::AtLeastF32,
            caller: Caller::caller(),
        }
    }

    /// `a + b`, with `b` of a shape.
    #[track_caller]
    pub fn add(dtype: DType, b: OperandShape) -> Elementwise {
        Elementwise::new("add", dtype, [OperandShape::Matrix, b], |[a, b]| a + b).rounded_once()
    }

    /// `a * b`, with `b` of a shape.
    #[track_caller]
    pub fn mul(dtype: DType, b: OperandShape) -> Elementwise {
        Elementwise::new("mul", dtype, [OperandShape::Matrix, b], |[a, b]| a * b).rounded_once()
    }

    /// `silu(a) * b`: the gate of SwiGLU.
    #[track_caller]
    pub fn silu_mul(dtype: DType) -> Elementwise {
        Elementwise::new("silu_mul", dtype, [OperandShape::Matrix; 2], |[a, b]| a.silu() * b)
    }

    /// `gelu(a)`, by the error function; of 16-bit floats as accurate as 16 bits can be.
    #[track_caller]
    pub fn gelu(dtype: DType) -> Elementwise {
        Elementwise::new("gelu", dtype, [OperandShape::Matrix], |[a]| a.gelu()).rounded_once()
    }

    /// For a function of one operation, whose result is rounded in any case.
    fn rounded_once(self) -> Elementwise {
        Elementwise { precision: Precision::OfElements, ..self }
    }

    /// Element type of `out`; without this that of the operands.
    #[must_use]
    pub fn output(mut self, dtype: DType) -> Elementwise {
        self.output = dtype;
        self
    }

    /// Waves of a workgroup.
    #[must_use]
    pub fn waves(mut self, waves: Waves) -> Elementwise {
        self.waves = waves;
        self
    }

    /// Traces the kernel.
    ///
    /// # Errors
    /// A fault of the function, a first operand that is no matrix, or no wave along a dimension.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        self.waves.check().and_then(|waves| self.trace(waves)).map_err(|fault| match fault.location {
            None => fault.at(Some(Location::from(self.caller))),
            Some(_) => fault,
        })
    }

    fn trace(&self, waves: Waves) -> Result<Kernel, Diagnostic> {
        if self.shapes.first() != Some(&OperandShape::Matrix) {
            return Err(Diagnostic::invalid("the first operand has to be a matrix")
                .help("use OperandShape::Matrix for it: the result has its shape"));
        }
        let [m, n, block_m, block_n] = symbols(["M", "N", "BLOCK_M", "BLOCK_N"]);
        let narrow = self.dtype.is_float() && self.dtype.bits() < 32;
        let of_elements = self.precision == Precision::OfElements && self.dtype == self.output;
        let computed = if narrow && !of_elements { F32 } else { self.dtype };
        let kernel = Kernel::trace(self.name, |w| {
            w.distribute([
                workgroup(m, block_m, 0),
                workgroup(n, block_n, 1),
                wave(m, block_m / i64::from(waves.m)),
                wave(n, block_n / i64::from(waves.n)),
            ]);
            let operand = |(name, &shape): (char, &OperandShape)| {
                let (text, tag) = (name.to_string(), format!("read_{name}"));
                let memory = match shape {
                    OperandShape::Matrix => w.memory(&text, [m, n], Global, self.dtype),
                    OperandShape::Rows => w.memory(&text, [m], Global, self.dtype),
                    OperandShape::Columns => w.memory(&text, [n], Global, self.dtype),
                };
                w.read(memory).tag(&tag)
            };
            // All reads come first, so that their loads are under way together.
            let operands: Vec<Value> = ('a'..='z').zip(&self.shapes).map(operand).collect();
            let widened = |value: Value| if computed == self.dtype { value } else { value.cast(computed) };
            let operands: Vec<Value> = operands.into_iter().map(widened).collect();
            let out = w.memory("out", [m, n], Global, self.output);
            let result = (self.function)(&operands);
            w.write(if computed == self.output { result } else { result.cast(self.output) }, out);
        });
        kernel.map(|kernel| kernel.told_at(Some(Location::from(self.caller))))
    }
}
