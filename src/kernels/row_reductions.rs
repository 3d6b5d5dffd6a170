//! One number for each row or column.

use std::panic::Location as Caller;

use super::row_tile::{distribute_rows, row_kernel};
use crate::prelude::*;

/// `b[i] = sum over j of a[i, j]` for `a` of shape `[M, N]`, f16, bf16 or f32; `b` is f32.
///
/// [`super::RowTile`] has the symbols of the tile for a length of rows.
///
/// # Errors
/// Another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::{RowTile, row_sum};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 3);
/// let executable = row_sum(F32)?.compile(&RowTile::of(3).set_in(options))?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = device.upload(&[0f32; 2])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [6.0, 15.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn row_sum(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("row_sum", dtype, F32, Caller::caller(), |x, n| x.cast(F32).sum(n))
}

/// `b[i] = max over j of a[i, j]`, of the dtype of `a`; NaNs count only where a row has nothing else. As
/// [`row_sum`] otherwise.
///
/// # Errors
/// Another dtype.
#[track_caller]
pub fn row_max(dtype: DType) -> Result<Kernel, Diagnostic> {
    over_rows("row_max", dtype, dtype, Caller::caller(), |x, n| x.max(n))
}

/// `b[i]` is the place of the largest element of row i of `a`, the first of equal ones, as [`Value::argmax`]
/// says; `b` is i32. As [`row_sum`] otherwise.
///
/// # Errors
/// Another dtype.
#[track_caller]
pub fn row_argmax(dtype: DType) -> Result<Kernel, Diagnostic> {
    // Elements are widened once, and not for each of the two reductions.
    over_rows("row_argmax", dtype, I32, Caller::caller(), |x, n| x.cast(F32).argmax(n))
}

fn over_rows(
    name: &str,
    dtype: DType,
    result: DType,
    caller: &'static Caller<'static>,
    of_row: impl FnOnce(Value, Symbol) -> Value,
) -> Result<Kernel, Diagnostic> {
    row_kernel(name, dtype, caller, |w| {
        let [m, n] = distribute_rows(w);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m], Global, result);
        w.write(of_row(w.read(a).tag("read_a"), n), b);
    })
}

/// `b[j] = sum over i of a[i, j]` for `a` of shape `[M, N]`, f16, bf16 or f32; `b` is f32.
///
/// A workgroup has `BLOCK_N` columns and takes `BLOCK_M` rows at a time, `WAVE_M` of them per wave; the loop
/// is tagged `row_loop`. Each lane adds up rows of its own, which are joined after the loop.
///
/// # Errors
/// Another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::column_sum;
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 3);
/// let options = options.set("BLOCK_M", 64).set("BLOCK_N", 64).set("WAVE_M", 16);
/// let executable = column_sum(F32)?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = device.upload(&[0f32; 3])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [5.0, 7.0, 9.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn column_sum(dtype: DType) -> Result<Kernel, Diagnostic> {
    row_kernel("column_sum", dtype, Caller::caller(), |w| {
        let [m, n, block_m, block_n, wave_m] = symbols(["M", "N", "BLOCK_M", "BLOCK_N", "WAVE_M"]);
        w.distribute([tile(m, block_m), workgroup(n, block_n, 0), wave(m, wave_m)]);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [n], Global, F32);
        let zero = w.register([n], F32, 0.0);
        let [sum] = w.iterate(m, [zero], |w, [sum]| [sum + w.read(a).tag("read_a").cast(F32).sum(m)]);
        w.write(sum.tag_loop("row_loop"), b);
    })
}
