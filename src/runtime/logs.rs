//! Logs of a launch: the tensors that `debug_log` keeps values in, from before the launch until they are
//! looked at.

use std::fmt;

use super::buffer::Buffer;
use super::device::Device;
use super::executable::{BoundsCheck, Executable, Parameter, Size};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::Symbol;
use crate::ir::facts::BOUNDS_BIAS;
use crate::ir::interpreter::{Data, Tensor, unwritten};

/// What a kernel has logged.
#[derive(Clone, Debug)]
pub struct LoggedTensor {
    /// The author's name of the log.
    pub name: String,
    /// Where the author declares it.
    pub at: Option<Location>,
    /// The values: the first dimension is that of the slots, if the log has any, and the others are those of
    /// the value. Elements that no workgroup has logged are NaN, or 0 of integers.
    pub tensor: Tensor,
}

/// Rows of a log that are printed, and elements of each.
const PRINTED: [usize; 2] = [32, 12];

/// Digits of a printed float.
const DIGITS: usize = 6;

impl fmt::Display for LoggedTensor {
    /// The first rows, each with its place, and the first elements of each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, elements) = (self.tensor.shape(), self.tensor.data().len());
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        let at = self.at.as_ref().map(|at| format!("{}:{}: ", at.file, at.line)).unwrap_or_default();
        write!(f, "{at}{} = {} [{}]", self.name, self.tensor.dtype(), sizes.join(", "))?;
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let rows = elements / columns;
        for row in 0..rows.min(PRINTED[0]) {
            let mut place = Vec::new();
            let mut rest = row;
            for &size in shape.iter().rev().skip(1) {
                place.push((rest % size.max(1)).to_string());
                rest /= size.max(1);
            }
            place.reverse();
            let first = row * columns;
            let shown: Vec<String> =
                (first..first + columns.min(PRINTED[1])).map(|at| self.element(at)).collect();
            let place = if place.is_empty() { String::new() } else { format!("[{}]  ", place.join(", ")) };
            write!(f, "\n  {place}{}", shown.join("  "))?;
            if columns > PRINTED[1] {
                write!(f, "  ... {} more", columns - PRINTED[1])?;
            }
        }
        if rows > PRINTED[0] {
            write!(f, "\n  ... {} more rows", rows - PRINTED[0])?;
        }
        Ok(())
    }
}

impl LoggedTensor {
    /// An element as text; floats are rounded.
    fn element(&self, at: usize) -> String {
        if let Data::I64(elements) = self.tensor.data() {
            return elements.get(at).map_or(String::new(), i64::to_string);
        }
        let value = self.tensor.f64_of(at..at + 1).first().copied().unwrap_or_default();
        if !self.tensor.dtype().is_float() {
            return (value as i64).to_string();
        }
        let rounded = format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value);
        format!("{rounded:?}")
    }
}

/// Reads what checks of bounds have noted.
fn judge(checks: &[(BoundsCheck, Option<i64>)], noted: &Tensor) -> Result<(), Diagnostic> {
    let noted = noted.as_slice::<i64>().unwrap_or_default();
    let Some(((check, size), noted)) = checks.iter().zip(noted).find(|(_, noted)| **noted != 0) else {
        return Ok(());
    };
    let BoundsCheck { at, memory, dim, .. } = check;
    let size = size.map_or("?".to_owned(), |size| size.to_string());
    let text = format!("a coordinate of `{memory}` is {} along {dim}, which has {size}", noted - BOUNDS_BIAS);
    Err(Diagnostic::invalid(text)
        .at(at.clone())
        .note("of the coordinates outside, this is the largest one of the launch", None)
        .help("keep coordinates inside, or compile without checks of bounds: what is outside is then read as zero and not written"))
}

/// The logs of a launch that is about to run, in the order of the parameters.
pub(super) struct LaunchLogs(Vec<PendingLog>);

struct PendingLog {
    name: String,
    at: Option<Location>,
    /// What its elements are about, with sizes as numbers; none for logs of the author.
    checks: Vec<(BoundsCheck, Option<i64>)>,
    before: Tensor,
    buffer: Buffer,
}

impl LaunchLogs {
    /// Makes them on a device.
    pub(super) fn new(
        executable: &Executable,
        device: &Device,
        value: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<LaunchLogs, Diagnostic> {
        let mut logs = Vec::new();
        for parameter in executable.parameters() {
            let Parameter::Log { name, at, checks, dtype, shape, .. } = parameter else { continue };
            let sized = |check: &BoundsCheck| match check.size {
                Size::Static(size) => (check.clone(), Some(size.into())),
                Size::Dynamic(symbol) => (check.clone(), value(symbol)),
            };
            let checks = checks.iter().map(sized).collect();
            let size = |size: &Size| match *size {
                Size::Static(size) => Ok(size as usize),
                Size::Dynamic(symbol) => symbol
                    .value_where(value)
                    .and_then(|size| usize::try_from(size).ok())
                    .ok_or_else(|| Diagnostic::invalid(format!("log `{name}` needs the size {symbol}"))),
            };
            let shape = shape.iter().map(size).collect::<Result<Vec<_>, _>>()?;
            let before = unwritten(&shape, *dtype)?;
            let buffer = device.upload_tensor(&before)?;
            logs.push(PendingLog { name: name.to_string(), at: at.clone(), checks, before, buffer });
        }
        Ok(LaunchLogs(logs))
    }

    /// The addresses, in order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|log| log.buffer.address())
    }

    /// What the launch has logged.
    ///
    /// # Errors
    /// A coordinate that has left its memory, of a kernel that checks them.
    pub(super) fn read(self) -> Result<Vec<LoggedTensor>, Diagnostic> {
        let mut logs = Vec::new();
        for PendingLog { name, at, checks, before, buffer } in self.0 {
            let tensor = Tensor::from_bytes(before.shape(), before.dtype(), &buffer.read_bytes()?)?;
            match checks.is_empty() {
                true => logs.push(LoggedTensor { name, at, tensor }),
                false => judge(&checks, &tensor)?,
            }
        }
        Ok(logs)
    }
}
