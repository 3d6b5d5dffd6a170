//! Checking a device's result against the reference interpreter.

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::interpreter::{InterpretedRun, Interpreter, Tensor};
use crate::ir::kernel::Kernel;
use crate::ir::types::DType;

use super::buffer::Buffer;
use super::device::Device;
use super::executable::{Executable, Parameter, Size};
use super::launch::{Launch, LaunchResult, ScalarValue};
use super::logs::LoggedTensor;
use super::placement::BufferPlacement;
use super::sim::time::{Fidelity, TimeOptions, TimeReport};
use super::sim::{CheckOptions, CheckReport};

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

/// Relative error that results of a dtype may have: sums may be added in another order, which may round to
/// the neighbouring number.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 | DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        DType::F8E4M3Fnuz | DType::F8E4M3Fn => 0.125,
        DType::F8E5M2Fnuz | DType::F8E5M2 => 0.25,
        // The neighbours are twice and half of a number.
        DType::F8E8M0 => 1.0,
        // 4 and 6.
        DType::F4E2M1 => 0.5,
        DType::F6E2M3 => 0.125,
        DType::F6E3M2 => 0.25,
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::I1 => 0.0,
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
/// use groundswell::check::compare;
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
    let count = expected.data().len();
    for start in (0..count).step_by(row) {
        let of_row = start..count.min(start + row);
        let (result, expected) = (result.f64_of(of_row.clone()), expected.f64_of(of_row));
        let magnitude = expected.iter().fold(0f64, |m, x| if x.is_finite() { m.max(x.abs()) } else { m });
        for (&r, &e) in result.iter().zip(&expected) {
            if r == e || (r.is_nan() && e.is_nan()) {
                continue;
            }
            let error = (r - e).abs();
            let error = if error.is_nan() { f64::INFINITY } else { error };
            found.max_abs_err = found.max_abs_err.max(error);
            found.max_rel_err = found.max_rel_err.max(error / magnitude.max(f64::MIN_POSITIVE));
        }
    }
    // Different integers of 64 bits may be the same f64.
    found.ok = found.max_rel_err <= tolerance(result.dtype()) && result.dtype() != DType::I64;
    Ok(found)
}

/// A checked run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The launch.
    pub launch: LaunchResult,
    /// Time from launch to result.
    pub elapsed: std::time::Duration,
    /// The scalar arguments by name, given and random ones.
    pub scalars: Vec<(String, ScalarValue)>,
    /// All written memories against the interpreter's.
    pub comparison: Comparison,
}

/// The inputs of a run: random tensors, and scalars that are random unless given. A seed alone is enough.
#[derive(Copy, Clone, Debug)]
pub struct Inputs<'a> {
    /// Seed of the random values.
    pub seed: u64,
    /// Scalar arguments by name.
    pub scalars: &'a [(String, ScalarValue)],
}

impl From<u64> for Inputs<'_> {
    fn from(seed: u64) -> Self {
        Inputs { seed, scalars: &[] }
    }
}

/// Runs an executable on random data and compares what it wrote with the interpreter's result for `kernel`,
/// from which it was compiled. `value` gives the symbols that the kernel was compiled for and those left
/// dynamic.
///
/// # Errors
/// The faults of the launch or of the interpreter; a difference is not an error but a [`Comparison`].
pub fn against_interpreter<'a>(
    kernel: &Kernel,
    executable: &Executable,
    device: &Device,
    value: &dyn Fn(Symbol) -> Option<i64>,
    inputs: impl Into<Inputs<'a>>,
) -> Result<Checked, Diagnostic> {
    let arguments = LaunchArguments::random(executable, device, value, inputs.into())?;
    let start = std::time::Instant::now();
    let launch = arguments.launch(executable, device, value).run()?;
    let elapsed = start.elapsed();
    let scalars = arguments.scalars.clone();
    let comparison = arguments.compare(kernel, executable, value, &launch.logs)?;
    Ok(Checked { launch, elapsed, scalars, comparison })
}

/// The same in check mode: finds what the kernel does that hardware need not tolerate, and whether the
/// results are right all the same. The seed also decides the order of execution.
///
/// # Errors
/// The faults of the launch or of the interpreter; findings and differences are not errors.
pub fn with_findings<'a>(
    kernel: &Kernel,
    executable: &Executable,
    device: &Device,
    value: &dyn Fn(Symbol) -> Option<i64>,
    inputs: impl Into<Inputs<'a>>,
) -> Result<(CheckReport, Comparison), Diagnostic> {
    let inputs = inputs.into();
    let seed = inputs.seed;
    let arguments = LaunchArguments::random(executable, device, value, inputs)?;
    let report = arguments.launch(executable, device, value).check(&CheckOptions { seed })?;
    Ok((report, arguments.compare(kernel, executable, value, &[])?))
}

/// Estimates how long an executable takes on random data. A [sample](Fidelity::Sampled) is taken without
/// data, which costs the host neither time nor memory, unless its addresses or branches depend on them.
///
/// # Errors
/// What the launch reports.
pub fn timed<'a>(
    executable: &Executable,
    device: &Device,
    value: &dyn Fn(Symbol) -> Option<i64>,
    inputs: impl Into<Inputs<'a>>,
    options: &TimeOptions,
) -> Result<TimeReport, Diagnostic> {
    let time = |arguments: LaunchArguments| arguments.launch(executable, device, value).time(options);
    let inputs = inputs.into();
    if options.fidelity == Fidelity::Sampled {
        let report = time(LaunchArguments::without_data(executable, device, value, inputs)?)?;
        if report.extent.fidelity == Fidelity::Sampled && !report.extent.reads_memory {
            return Ok(report);
        }
    }
    time(LaunchArguments::random(executable, device, value, inputs)?)
}

/// The arguments of a launch: tensors with their places on the device, and scalars.
struct LaunchArguments {
    /// For the interpreter.
    inputs: Vec<Tensor>,
    buffers: Vec<Buffer>,
    /// Of each buffer, if its memory has strides.
    placements: Vec<Option<BufferPlacement>>,
    scalars: Vec<(String, ScalarValue)>,
}

impl LaunchArguments {
    fn random(
        executable: &Executable,
        device: &Device,
        value: &dyn Fn(Symbol) -> Option<i64>,
        given: Inputs<'_>,
    ) -> Result<LaunchArguments, Diagnostic> {
        let (mut inputs, mut buffers, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
        let mut placements = Vec::new();
        check_names(executable, given.scalars)?;
        for parameter in executable.parameters() {
            let seed = given.seed.wrapping_add(inputs.len() as u64);
            let (name, dtype, shape) = match parameter {
                Parameter::Buffer { name, dtype, shape, .. } => (name, dtype, shape),
                Parameter::Scalar { name, dtype, .. } => {
                    let scalar = given_or_random(given, name, *dtype, seed)?;
                    inputs.push(scalar.to_tensor());
                    scalars.push((name.to_string(), scalar));
                    continue;
                }
                Parameter::Symbol { .. } | Parameter::Log { .. } => continue,
            };
            let sizes = shape.iter().map(|&size| match size {
                Size::Static(n) => Ok(n as usize),
                Size::Dynamic(symbol) => {
                    symbol.value_where(&value).and_then(|v| usize::try_from(v).ok()).ok_or_else(|| {
                        let text = format!("`{name}` has the dynamic size {symbol}, which has no value");
                        Diagnostic::invalid(text)
                    })
                }
            });
            let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
            let tensor = Tensor::random(&sizes, *dtype, seed)?;
            let placement = BufferPlacement::of(parameter, &value)?.filter(BufferPlacement::is_strided);
            buffers.push(match &placement {
                None => device.upload_tensor(&tensor)?,
                Some(placement) => {
                    let bytes = placement.spread(&tensor)?;
                    let buffer = device.allocate(bytes.len() as u64)?;
                    buffer.write_bytes(&bytes)?;
                    buffer.typed(*dtype)
                }
            });
            placements.push(placement);
            inputs.push(tensor);
        }
        Ok(LaunchArguments { inputs, buffers, placements, scalars })
    }

    /// Memory of the right sizes that nothing has been written to; for the interpreter there is nothing.
    fn without_data(
        executable: &Executable,
        device: &Device,
        value: &dyn Fn(Symbol) -> Option<i64>,
        given: Inputs<'_>,
    ) -> Result<LaunchArguments, Diagnostic> {
        let (mut buffers, mut scalars, mut placements) = (Vec::new(), Vec::new(), Vec::new());
        check_names(executable, given.scalars)?;
        for parameter in executable.parameters() {
            match parameter {
                Parameter::Buffer { name, dtype, .. } => {
                    let placement = BufferPlacement::of(parameter, value)?;
                    let bytes = placement.as_ref().and_then(|placement| placement.bytes(*dtype));
                    let too_large =
                        || Diagnostic::invalid(format!("the bytes of `{name}` do not fit 64 bits"));
                    buffers.push(device.allocate(bytes.ok_or_else(too_large)?)?.typed(*dtype));
                    placements.push(placement);
                }
                Parameter::Scalar { name, dtype, .. } => {
                    let seed = given.seed.wrapping_add((buffers.len() + scalars.len()) as u64);
                    scalars.push((name.to_string(), given_or_random(given, name, *dtype, seed)?));
                }
                Parameter::Symbol { .. } | Parameter::Log { .. } => {}
            }
        }
        Ok(LaunchArguments { inputs: Vec::new(), buffers, placements, scalars })
    }

    fn launch<'a>(
        &'a self,
        executable: &'a Executable,
        device: &'a Device,
        value: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Launch<'a> {
        let launch = device.launch(executable);
        let launch = self.buffers.iter().fold(launch, |launch, buffer| launch.buffer(buffer));
        let launch = self.scalars.iter().fold(launch, |launch, scalar| launch.scalar(scalar.1));
        executable.parameters().iter().fold(launch, |launch, parameter| match parameter {
            Parameter::Symbol { symbol, .. } => match value(*symbol) {
                Some(value) => launch.set(*symbol, value),
                None => launch,
            },
            Parameter::Buffer { .. } | Parameter::Scalar { .. } | Parameter::Log { .. } => launch,
        })
    }

    /// Compares the memories that the device has written with the interpreter's result. Large tensors are
    /// never held more often than needed: the interpreter takes the inputs, and a result is copied from the
    /// device only if it differs.
    fn compare(
        self,
        kernel: &Kernel,
        executable: &Executable,
        value: &dyn Fn(Symbol) -> Option<i64>,
        logs: &[LoggedTensor],
    ) -> Result<Comparison, Diagnostic> {
        let InterpretedRun { arguments: expected, logs: expected_logs } =
            Interpreter::run_logged(kernel, value, self.inputs)?;
        // The interpreter has a tensor for each scalar, too.
        let written = executable.parameters().iter().filter_map(|parameter| match parameter {
            Parameter::Buffer { written, .. } => Some(Some(*written)),
            Parameter::Scalar { .. } => Some(None),
            Parameter::Symbol { .. } | Parameter::Log { .. } => None,
        });
        let tensors = expected.iter().zip(written).filter_map(|(tensor, written)| Some((tensor, written?)));
        let mut comparison = Comparison::NONE;
        let buffers = self.buffers.iter().zip(&self.placements);
        for ((buffer, placement), (expected, written)) in buffers.zip(tensors) {
            if let Some(placement) = placement {
                comparison = comparison.and(compare_strided(buffer, placement, expected)?);
            } else if written && !buffer.equals(expected)? {
                let result = Tensor::from_bytes(expected.shape(), expected.dtype(), &buffer.read_bytes()?)?;
                comparison = comparison.and(compare(&result, expected)?);
            }
        }
        for (expected, LoggedTensor { tensor, .. }) in expected_logs.iter().zip(logs) {
            if let Some(expected) = expected {
                comparison = comparison.and(compare(tensor, expected)?);
            }
        }
        Ok(comparison)
    }
}

/// Compares the elements of a memory with strides, and what lies between them: nothing may have been written
/// there.
fn compare_strided(
    buffer: &Buffer,
    placement: &BufferPlacement,
    expected: &Tensor,
) -> Result<Comparison, Diagnostic> {
    let bytes = buffer.read_bytes()?;
    let result = placement.gathered(expected, &bytes)?;
    let mut comparison = compare(&result, expected)?;
    comparison.ok &= placement.spread(&result)? == bytes;
    Ok(comparison)
}

/// The scalar that is given for a parameter, or a random one.
fn given_or_random(
    given: Inputs<'_>,
    name: &str,
    dtype: DType,
    seed: u64,
) -> Result<ScalarValue, Diagnostic> {
    match given.scalars.iter().find(|scalar| scalar.0 == name) {
        Some((_, value)) => Ok(*value),
        None => random_scalar(dtype, seed),
    }
}

/// A number like those of random tensors.
fn random_scalar(dtype: DType, seed: u64) -> Result<ScalarValue, Diagnostic> {
    let tensor = Tensor::random(&[], dtype, seed)?;
    ScalarValue::of_tensor(&tensor)
        .ok_or_else(|| Diagnostic::new(Kind::Bug, format!("no random scalar is {dtype}")))
}

/// Checks that the kernel has scalars of the given names, each once.
fn check_names(executable: &Executable, given: &[(String, ScalarValue)]) -> Result<(), Diagnostic> {
    for (at, (name, _)) in given.iter().enumerate() {
        let known = |p: &Parameter| matches!(p, Parameter::Scalar { name: own, .. } if **own == **name);
        if !executable.parameters().iter().any(known) {
            let text = format!("`{}` has no scalar argument `{name}`", executable.name());
            return Err(Diagnostic::invalid(text).help("give values to scalars that the kernel declares"));
        }
        if given[..at].iter().any(|earlier| earlier.0 == *name) {
            return Err(Diagnostic::invalid(format!("the scalar `{name}` is given twice"))
                .help("give each scalar once"));
        }
    }
    Ok(())
}
