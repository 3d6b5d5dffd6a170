//! Checking a device's result against the reference interpreter.

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::interpreter::{Interpreter, Tensor};
use crate::ir::kernel::Kernel;
use crate::ir::types::DType;

use super::device::Device;
use super::executable::{Executable, Parameter, Size};
use super::launch::LaunchResult;

/// How far a result is from the expected one.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The errors are within what the dtype allows.
    pub ok: bool,
    /// Largest difference of an element.
    pub max_abs_err: f64,
    /// Largest difference, as a part of the largest element of its row.
    pub max_rel_err: f64,
}

impl Comparison {
    /// Nothing compared: no error.
    pub const NONE: Comparison = Comparison { ok: true, max_abs_err: 0.0, max_rel_err: 0.0 };

    /// The worse of two.
    #[must_use]
    pub fn and(self, other: Comparison) -> Comparison {
        Comparison {
            ok: self.ok && other.ok,
            max_abs_err: self.max_abs_err.max(other.max_abs_err),
            max_rel_err: self.max_rel_err.max(other.max_rel_err),
        }
    }
}

/// Relative error that results of a dtype may have: sums may be added in another order, which may round to the neighbouring number.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        DType::I32 | DType::I8 | DType::I1 => 0.0,
    }
}

/// Compares tensors of one shape and dtype.
///
/// # Errors
/// Different shapes or dtypes.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// use groundswell::runtime::check::compare;
/// let expected = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let result = Tensor::from_slice(&[2, 2], &[1.0f32, 2.5, 3.0, 4.0])?;
/// let found = compare(&result, &expected)?;
/// assert!(!found.ok);
/// assert_eq!((found.max_abs_err, found.max_rel_err), (0.5, 0.25));
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn compare(result: &Tensor, expected: &Tensor) -> Result<Comparison, Diagnostic> {
    if result.shape() != expected.shape() || result.dtype() != expected.dtype() {
        return Err(Diagnostic::invalid("tensors of different shapes or dtypes cannot be compared"));
    }
    let mut found = Comparison::NONE;
    if result.data() == expected.data() {
        return Ok(found);
    }
    let row = expected.shape().last().copied().unwrap_or(1).max(1);
    let (result_values, expected_values) = (result.to_f64(), expected.to_f64());
    for (result, expected) in result_values.chunks(row).zip(expected_values.chunks(row)) {
        let magnitude = expected.iter().fold(0f64, |m, x| if x.is_finite() { m.max(x.abs()) } else { m });
        for (&r, &e) in result.iter().zip(expected) {
            if r == e || (r.is_nan() && e.is_nan()) {
                continue;
            }
            let error = (r - e).abs();
            let error = if error.is_nan() { f64::INFINITY } else { error };
            found.max_abs_err = found.max_abs_err.max(error);
            found.max_rel_err = found.max_rel_err.max(error / magnitude.max(f64::MIN_POSITIVE));
        }
    }
    found.ok = found.max_rel_err <= tolerance(result.dtype());
    Ok(found)
}

/// A checked run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The launch.
    pub launch: LaunchResult,
    /// Time from launch to result.
    pub elapsed: std::time::Duration,
    /// All written memories against the interpreter's.
    pub comparison: Comparison,
}

/// Runs an executable on random data and compares what it wrote with the interpreter's result for `kernel`, from which it was compiled.
/// `value` gives the symbols that the kernel was compiled for and those left dynamic.
///
/// # Errors
/// What the launch or the interpreter reports; a difference is no error but a [`Comparison`].
pub fn against_interpreter(
    kernel: &Kernel,
    executable: &Executable,
    device: &Device,
    value: &dyn Fn(Symbol) -> Option<i64>,
    seed: u64,
) -> Result<Checked, Diagnostic> {
    let mut inputs = Vec::new();
    let mut written_by_kernel = Vec::new();
    for parameter in executable.parameters() {
        let Parameter::Buffer { name, dtype, shape, written, .. } = parameter else { continue };
        let sizes = shape.iter().map(|&size| match size {
            Size::Static(n) => Ok(n as usize),
            Size::Dynamic(symbol) => value(symbol).and_then(|v| usize::try_from(v).ok()).ok_or_else(|| {
                Diagnostic::invalid(format!("`{name}` has the dynamic size {symbol}, which has no value"))
            }),
        });
        let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
        inputs.push(Tensor::random(&sizes, *dtype, seed.wrapping_add(inputs.len() as u64))?);
        written_by_kernel.push(*written);
    }
    let buffers = inputs.iter().map(|t| device.upload_tensor(t)).collect::<Result<Vec<_>, _>>()?;
    let mut launch = device.launch(executable);
    for buffer in &buffers {
        launch = launch.buffer(buffer);
    }
    for parameter in executable.parameters() {
        if let Parameter::Symbol { symbol, .. } = parameter
            && let Some(value) = value(*symbol)
        {
            launch = launch.set(*symbol, value);
        }
    }
    let start = std::time::Instant::now();
    let launch = launch.run()?;
    let elapsed = start.elapsed();
    let expected = Interpreter::run(kernel, value, &inputs)?;
    let mut comparison = Comparison::NONE;
    for ((buffer, expected), written) in buffers.iter().zip(&expected).zip(written_by_kernel) {
        if written {
            let result = Tensor::from_bytes(expected.shape(), expected.dtype(), &buffer.read_bytes()?)?;
            comparison = comparison.and(compare(&result, expected)?);
        }
    }
    Ok(Checked { launch, elapsed, comparison })
}
