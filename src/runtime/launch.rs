//! Launching: arguments are checked against the executable's parameters, laid out, and the grid is computed.

use std::fmt;

use smallvec::SmallVec;

use super::aliases::{self, TensorArgument};
use super::backend::{LaunchCounts, LaunchRequest};
use super::buffer::Buffer;
use super::device::Device;
use super::executable::{Executable, Parameter};
use super::logs::{LaunchLogs, LoggedTensor};
use super::placement::BufferPlacement;
#[cfg(feature = "compiler")]
use super::sim::time::{TimeOptions, TimeReport};
#[cfg(feature = "compiler")]
use super::sim::{CheckOptions, CheckReport, LaunchStats};
use super::stream::Stream;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::types::DType;

/// The value of a scalar argument. Numbers turn into it: `1.5f32`, `-3i32`, `0.1f64`, `7i64`.
#[derive(Copy, Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum ScalarValue {
    F32(f32),
    F64(f64),
    I32(i32),
    I64(i64),
}

impl ScalarValue {
    /// Its type.
    pub fn dtype(self) -> DType {
        match self {
            ScalarValue::F32(_) => DType::F32,
            ScalarValue::F64(_) => DType::F64,
            ScalarValue::I32(_) => DType::I32,
            ScalarValue::I64(_) => DType::I64,
        }
    }

    /// The bytes in the kernel argument segment.
    pub fn to_bytes(self) -> SmallVec<[u8; 8]> {
        match self {
            ScalarValue::F32(value) => SmallVec::from_slice(&value.to_le_bytes()),
            ScalarValue::F64(value) => SmallVec::from_slice(&value.to_le_bytes()),
            ScalarValue::I32(value) => SmallVec::from_slice(&value.to_le_bytes()),
            ScalarValue::I64(value) => SmallVec::from_slice(&value.to_le_bytes()),
        }
    }
}

impl fmt::Display for ScalarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarValue::F32(value) => write!(f, "{value:?}"),
            ScalarValue::F64(value) => write!(f, "{value:?}"),
            ScalarValue::I32(value) => write!(f, "{value}"),
            ScalarValue::I64(value) => write!(f, "{value}"),
        }
    }
}

impl From<f32> for ScalarValue {
    fn from(value: f32) -> ScalarValue {
        ScalarValue::F32(value)
    }
}

impl From<i32> for ScalarValue {
    fn from(value: i32) -> ScalarValue {
        ScalarValue::I32(value)
    }
}

impl From<f64> for ScalarValue {
    fn from(value: f64) -> ScalarValue {
        ScalarValue::F64(value)
    }
}

impl From<i64> for ScalarValue {
    fn from(value: i64) -> ScalarValue {
        ScalarValue::I64(value)
    }
}

/// A launch that is being put together.
pub struct Launch<'a> {
    device: &'a Device,
    executable: &'a Executable,
    buffers: SmallVec<[&'a Buffer; 8]>,
    scalars: SmallVec<[ScalarValue; 4]>,
    symbols: SmallVec<[(Symbol, i64); 8]>,
}

/// A launch that can run: its logs live until it has run.
struct Prepared {
    grid: [u32; 3],
    kernarg: Vec<u8>,
    logs: LaunchLogs,
}

/// The result of a finished launch.
#[derive(Clone, Debug)]
pub struct LaunchResult {
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Counts of the simulator; all zero on a GPU.
    #[cfg(feature = "compiler")]
    pub stats: LaunchStats,
    /// What the kernel has logged, in the order of its logs.
    pub logs: Vec<LoggedTensor>,
}

impl Device {
    /// Starts a launch of `executable`; add arguments in order, then [`Launch::run`].
    pub fn launch<'a>(&'a self, executable: &'a Executable) -> Launch<'a> {
        Launch::new(self, executable)
    }
}

impl<'a> Launch<'a> {
    pub(super) fn new(device: &'a Device, executable: &'a Executable) -> Launch<'a> {
        Launch {
            device,
            executable,
            buffers: SmallVec::new(),
            scalars: SmallVec::new(),
            symbols: SmallVec::new(),
        }
    }

    /// The next tensor argument, in the order in which the kernel declares its memories.
    #[must_use]
    pub fn buffer(mut self, buffer: &'a Buffer) -> Launch<'a> {
        self.buffers.push(buffer);
        self
    }

    /// The next scalar argument, in the order in which the kernel declares its scalars; buffers may stand
    /// between them or not.
    #[must_use]
    pub fn scalar(mut self, value: impl Into<ScalarValue>) -> Launch<'a> {
        self.scalars.push(value.into());
        self
    }

    /// Value of a dynamic symbol, given as such or by name: an integer of any type.
    #[must_use]
    pub fn set(mut self, symbol: impl Into<Symbol>, value: impl TryInto<i128>) -> Launch<'a> {
        // A value that does not fit is not a size, and is rejected like one that is too large or too small.
        let value = value.try_into().unwrap_or(i128::MAX).clamp(i64::MIN.into(), i64::MAX.into());
        self.symbols.push((symbol.into(), value as i64));
        self
    }

    /// Checks the arguments, launches, and waits for the end.
    ///
    /// # Errors
    /// A missing, extra, too small or wrongly typed argument, a missing size, or a fault of the kernel; with
    /// [`Options::bounds_check`](crate::prelude::Options::bounds_check) a coordinate that leaves its memory.
    pub fn run(&self) -> Result<LaunchResult, Diagnostic> {
        let Prepared { grid, mut kernarg, logs } = self.prepare()?;
        // Without workgroups there is nothing to run.
        let _counts = match grid.contains(&0) {
            true => LaunchCounts::default(),
            false => self.device.run(&self.request(grid), &mut kernarg)?,
        };
        Ok(LaunchResult {
            grid,
            #[cfg(feature = "compiler")]
            stats: _counts.stats,
            logs: logs.read()?,
        })
    }

    /// Enqueues the launch on a stream of the device and returns; the stream keeps the buffers. On the
    /// simulator the kernel has run then.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), as far as they are known before the kernel runs; a stream of another
    /// device; a kernel that logs, as somebody has to wait for what it logs.
    pub fn enqueue(&self, stream: &Stream) -> Result<(), Diagnostic> {
        if !std::sync::Arc::ptr_eq(&stream.device().shared, &self.device.shared) {
            return Err(Diagnostic::invalid("the stream is of another device than the launch")
                .help("use a stream of the device that launches"));
        }
        if self.executable.parameters().iter().any(|p| matches!(p, Parameter::Log { .. })) {
            let text = format!("`{}` has logs, which are read once it has run", self.executable.name());
            return Err(Diagnostic::invalid(text).help("launch it with `run`"));
        }
        let Prepared { grid, mut kernarg, .. } = self.prepare()?;
        if grid.contains(&0) {
            return Ok(());
        }
        self.device.enqueue(&self.request(grid), &mut kernarg, stream.hip())?;
        // Not before: who waits for the stream meanwhile lets go of what it keeps.
        stream.keep(self.buffers.iter().copied());
        Ok(())
    }

    /// Runs in check mode: the same work in an order that the seed decides, with every step judged.
    ///
    /// # Errors
    /// As [`run`](Self::run); findings are not errors.
    #[cfg(feature = "compiler")]
    pub fn check(&self, options: &CheckOptions) -> Result<CheckReport, Diagnostic> {
        let Prepared { grid, kernarg, logs } = self.prepare()?;
        let report = match grid.contains(&0) {
            true => CheckReport::of_nothing(self.executable.name(), options.seed),
            false => self.device.check(&self.request(grid), &kernarg, options)?.for_kernels(),
        };
        logs.read()?;
        Ok(report)
    }

    /// Runs in time mode: estimates how long the launch takes on a chip. Only simulated workgroups write
    /// their results.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[cfg(feature = "compiler")]
    pub fn time(&self, options: &TimeOptions) -> Result<TimeReport, Diagnostic> {
        let Prepared { grid, kernarg, logs } = self.prepare()?;
        if grid.contains(&0) {
            let text = format!("`{}` has no workgroup to time with these sizes", self.executable.name());
            return Err(Diagnostic::invalid(text).help("time it with sizes of 1 and more"));
        }
        let report = self.device.time(&self.request(grid), &kernarg, options)?;
        logs.read()?;
        Ok(report)
    }

    fn request(&self, grid: [u32; 3]) -> LaunchRequest<'a> {
        LaunchRequest {
            executable: self.executable,
            grid,
            #[cfg(feature = "compiler")]
            limits: self.device.limits,
            #[cfg(feature = "compiler")]
            order: self.device.order,
        }
    }

    /// Grid and kernel arguments, checked.
    fn prepare(&self) -> Result<Prepared, Diagnostic> {
        let executable = self.executable;
        let (target, device) = (executable.target_id(), self.device.target_id());
        if !target.runs_on(device) {
            let text =
                format!("`{}` was compiled for {target}, and the device is {device}", executable.name());
            return Err(Diagnostic::invalid(text).help("compile for the device's target"));
        }
        for (at, &(symbol, _)) in self.symbols.iter().enumerate() {
            let name = symbol.name();
            if self.symbols[..at].iter().any(|s| s.0 == symbol) {
                return Err(Diagnostic::invalid(format!("{name} is set twice")).help("set each symbol once"));
            }
            let known = |p: &Parameter| matches!(p, Parameter::Symbol { symbol: s, .. } if *s == symbol);
            if !executable.parameters().iter().any(known) {
                let text = format!("`{}` has no dynamic symbol {name}", executable.name());
                return Err(Diagnostic::invalid(text).help("set only symbols that were left dynamic"));
            }
        }
        let value = |symbol: Symbol| self.symbols.iter().find(|s| s.0 == symbol).map(|s| s.1);
        let grid = executable.grid(&value)?;
        let logs = LaunchLogs::new(executable, self.device, &value)?;
        let kernarg = self.kernarg(&value, &logs)?;
        Ok(Prepared { grid, kernarg, logs })
    }

    fn kernarg(
        &self,
        value: &impl Fn(Symbol) -> Option<i64>,
        logs: &LaunchLogs,
    ) -> Result<Vec<u8>, Diagnostic> {
        let executable = self.executable;
        let mut logs = logs.addresses();
        let mut kernarg = vec![0; executable.kernarg_bytes() as usize];
        let mut buffers = self.buffers.iter();
        let mut scalars = self.scalars.iter();
        let mut tensors: SmallVec<[TensorArgument; 8]> = SmallVec::new();
        for (number, parameter) in (0..).zip(executable.parameters()) {
            match parameter {
                Parameter::Buffer { name, .. } => {
                    let Some(buffer) = buffers.next() else {
                        return Err(
                            Diagnostic::invalid(format!("no argument for `{name}`")).help(ONE_BUFFER_EACH)
                        );
                    };
                    let placed = check_buffer(self.device, parameter, buffer, value)?;
                    tensors.extend(placed.map(|placed| TensorArgument { number, ..placed }));
                    put(&mut kernarg, parameter, &buffer.address().to_le_bytes());
                }
                Parameter::Log { .. } => {
                    let address = logs.next().ok_or_else(|| Diagnostic::bug("a log without buffer"))?;
                    put(&mut kernarg, parameter, &address.to_le_bytes());
                }
                Parameter::Scalar { name, dtype, .. } => {
                    let Some(scalar) = scalars.next() else {
                        return Err(Diagnostic::invalid(format!("no value for the scalar `{name}`"))
                            .help(ONE_SCALAR_EACH));
                    };
                    check_scalar(executable, name, *dtype, *scalar)?;
                    put(&mut kernarg, parameter, &scalar.to_bytes());
                }
                Parameter::Symbol { symbol, .. } => {
                    let size = value(*symbol).unwrap_or(0) as i32;
                    put(&mut kernarg, parameter, &size.to_le_bytes());
                }
            }
        }
        aliases::check(executable, &tensors)?;
        let too_many = |count: usize, what: &str, help: &str| {
            let name = executable.name();
            Err(Diagnostic::invalid(format!("`{name}` got {count} {what}, too many")).help(help))
        };
        if buffers.next().is_some() {
            return too_many(self.buffers.len(), "buffers", ONE_BUFFER_EACH);
        }
        if scalars.next().is_some() {
            return too_many(self.scalars.len(), "scalars", ONE_SCALAR_EACH);
        }
        Ok(kernarg)
    }
}

const ONE_BUFFER_EACH: &str = "pass one buffer for each memory, in order of declaration";
const ONE_SCALAR_EACH: &str = "pass one scalar for each that the kernel declares, in order of declaration";

/// Refuses a scalar of another type, and one of which too many iterations follow.
fn check_scalar(
    executable: &Executable,
    name: &str,
    dtype: DType,
    scalar: ScalarValue,
) -> Result<(), Diagnostic> {
    if scalar.dtype() != dtype {
        let text = format!("the scalar `{name}` is {dtype}, and its value is {}", scalar.dtype());
        let number = if dtype.is_float() { "1.0" } else { "1" };
        return Err(Diagnostic::invalid(text).help(format!("pass numbers like {number}{dtype}")));
    }
    match scalar {
        ScalarValue::I32(value) => executable.check_scalar(name, value.into()),
        _ => Ok(()),
    }
}

fn put(kernarg: &mut [u8], parameter: &Parameter, bytes: &[u8]) {
    let (Parameter::Buffer { offset, .. }
    | Parameter::Log { offset, .. }
    | Parameter::Scalar { offset, .. }
    | Parameter::Symbol { offset, .. }) = parameter;
    let at = *offset as usize;
    if let Some(slot) = kernarg.get_mut(at..at + bytes.len()) {
        slot.copy_from_slice(bytes);
    }
}

/// Where the elements of a tensor argument are, in a buffer that is large enough for them.
fn check_buffer<'p>(
    device: &Device,
    parameter: &'p Parameter,
    buffer: &Buffer,
    value: &impl Fn(Symbol) -> Option<i64>,
) -> Result<Option<TensorArgument<'p>>, Diagnostic> {
    let Parameter::Buffer { name, dtype, written, .. } = parameter else { return Ok(None) };
    if !std::sync::Arc::ptr_eq(&buffer.device().shared, &device.shared) {
        return Err(Diagnostic::invalid(format!("the buffer for `{name}` is on another device"))
            .help("upload to the device that launches"));
    }
    if let Some(own) = buffer.dtype()
        && own != *dtype
    {
        let text = format!("`{name}` is {dtype}, and the buffer holds {own}");
        return Err(Diagnostic::invalid(text).help("upload elements of the memory's dtype"));
    }
    let Some(placement) = BufferPlacement::of(parameter, value)? else { return Ok(None) };
    let sizes = &placement.sizes;
    let needed = placement.bytes(*dtype);
    let Some(bytes) = needed.filter(|&needed| needed <= buffer.bytes()) else {
        let shape: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let text = format!(
            "`{name}` is {} {dtype}{} and needs {} bytes, but its buffer has {}",
            shape.join(" x "),
            if placement.is_strided() { " with strides" } else { "" },
            needed.map_or("too many".to_string(), |n| n.to_string()),
            buffer.bytes()
        );
        return Err(Diagnostic::invalid(text).help("pass a buffer of the tensor's size"));
    };
    let written = *written;
    let element = dtype.bytes().into();
    Ok(Some(TensorArgument {
        number: 0,
        name,
        written,
        address: buffer.address(),
        bytes,
        element,
        placement,
    }))
}
