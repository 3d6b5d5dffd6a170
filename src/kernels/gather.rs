//! Rows of a table, chosen by a list of numbers: the look-up of an embedding.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// `out[i] = table[ids[i]]` for the rows of a tensor `table` of shape `[ROWS, N]`, i32 numbers `ids` of shape
/// `[M]`, and `out` of shape `[M, N]`; a workgroup brings `BLOCK_M` x `BLOCK_N` elements. A number that is
/// no row of the table, be it negative or too large, gives a row of zeros.
///
/// The reads are tagged `read_ids` and `read_table`.
///
/// # Errors
/// No wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, gather};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942)
///     .set("M", 4)
///     .set("N", 2)
///     .set("ROWS", 3)
///     .set("BLOCK_M", 16)
///     .set("BLOCK_N", 64);
/// let executable = gather(F32, Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let table = device.upload(&[0.5f32, 0.25, 1.5, 1.25, 2.5, 2.25])?;
/// let ids = device.upload(&[2i32, 0, 3, -1])?;
/// let out = device.upload(&[9f32; 8])?;
/// device.launch(&executable).buffer(&table).buffer(&ids).buffer(&out).run()?;
/// assert_eq!(out.download::<f32>()?, [2.5, 2.25, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn gather(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(dtype, waves))
}

fn trace(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let [m, n, rows, block_m, block_n] = symbols(["M", "N", "ROWS", "BLOCK_M", "BLOCK_N"]);
    Kernel::trace("gather", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        let table = w.memory("table", [rows, n], Global, dtype);
        let ids = w.memory("ids", [m], Global, I32);
        let out = w.memory("out", [m, n], Global, dtype);
        let row = w.read(ids).tag("read_ids");
        w.write(w.read_at(table, (row, n), [m, n]).tag("read_table"), out);
    })
}
