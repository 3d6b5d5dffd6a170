//! Running sums of rows.

use std::panic::Location as Caller;

use super::row_tile::{distribute_rows, row_kernel};
use crate::prelude::*;

/// `b[i, j] = sum of a[i, 0] to a[i, j]` for tensors `a` and `b` of shape `[M, N]`, f16, bf16 or f32.
///
/// Sums are taken in f32, and each is rounded once. [`super::RowTile`] has the symbols of the tile for a
/// length of rows. The read is tagged `read_a`.
///
/// # Errors
/// Another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::{RowTile, cumsum};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 3);
/// let executable = cumsum(F32)?.compile(&RowTile::of(3).set_in(options))?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = device.upload(&[0f32; 6])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn cumsum(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("cumsum", dtype, Caller::caller(), |x, n| x.cumsum(n))
}

/// `b[i, j] = sum of a[i, 0] to a[i, j - 1]`, which is 0 for the first one; as [`cumsum`] otherwise.
///
/// # Errors
/// Another dtype.
#[track_caller]
pub fn cumsum_exclusive(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("cumsum_exclusive", dtype, Caller::caller(), |x, n| x.cumsum_exclusive(n))
}

fn over_rows(
    name: &str,
    dtype: DType,
    caller: &'static Caller<'static>,
    sums: impl FnOnce(Value, Symbol) -> Value,
) -> Result<Kernel, Diagnostic> {
    row_kernel(name, dtype, caller, |w| {
        let [m, n] = distribute_rows(w);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, dtype);
        let x = w.read(a).tag("read_a").cast(F32);
        w.write(sums(x, n).cast(dtype), b);
    })
}
