//! Softmax and its logarithm over rows.

use std::f64::consts::LOG2_E;
use std::panic::Location as Caller;

use super::row_tile::{distribute_rows, row_kernel};
use crate::prelude::*;

/// `b[i, j] = e^a[i, j] / sum over j of e^a[i, j]` for tensors `a` and `b` of shape `[M, N]`, f16, bf16
/// or f32.
///
/// The largest element of a row is subtracted first, and all arithmetic is in f32. The results of a row that
/// is minus infinity throughout, or has a NaN or plus infinity, are NaN. [`super::RowTile`] has the symbols
/// of the tile for a length of rows, and an example.
///
/// # Errors
/// Another dtype.
#[track_caller]
pub fn softmax(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("softmax", dtype, Caller::caller(), |x, n| {
        let powers = powers(x - x.max(n));
        powers * powers.sum(n).reciprocal()
    })
}

/// `b[i, j] = a[i, j] - log(sum over j of e^a[i, j])`, as [`softmax`] otherwise.
///
/// # Errors
/// Another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::{RowTile, log_softmax};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 1).set("N", 2);
/// let executable = log_softmax(F32)?.compile(&RowTile::of(2).set_in(options))?;
///
/// let device = Device::open()?;
/// let [a, b] = [device.upload(&[500f32, 500.0])?, device.upload(&[0f32; 2])?];
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert!(b.download::<f32>()?.iter().all(|x| (x + 2f32.ln()).abs() < 1e-6));
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn log_softmax(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("log_softmax", dtype, Caller::caller(), |x, n| {
        let below = x - x.max(n);
        below - powers(below).sum(n).log()
    })
}

/// e to the power of numbers that are not positive. Two to the power of a rounded product is less exact for
/// numbers far below zero (2^-24 of the exponent), where the results hardly count, and much shorter.
fn powers(x: Value) -> Value {
    (x * LOG2_E).exp2()
}

fn over_rows(
    name: &str,
    dtype: DType,
    caller: &'static Caller<'static>,
    of_row: impl FnOnce(Value, Symbol) -> Value,
) -> Result<Kernel, Diagnostic> {
    row_kernel(name, dtype, caller, |w| {
        let [m, n] = distribute_rows(w);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, dtype);
        let x = w.read(a).tag("read_a").cast(F32);
        w.write(of_row(x, n).cast(dtype), b);
    })
}
