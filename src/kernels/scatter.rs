//! Updates of places that the data choose: counts of numbers, and rows added to those of a table.

use std::panic::Location as Caller;

use super::Waves;
use super::asked::asked_at;
use crate::prelude::*;

/// Adds to `counts[x[i]]` one for each i, for i32 numbers `x` of shape `[N]` and i32 `counts` of shape
/// `[BINS]`, which the caller sets to zero; a workgroup takes `BLOCK_N` numbers, a wave `WAVE_N`. A number
/// that is no bin, be it negative or too large, is not counted.
///
/// The read is tagged `read_x`.
///
/// # Errors
/// None of its own; they are a `Result` as those of the other kernels.
///
/// # Example
/// ```
/// use groundswell::kernels::histogram;
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("N", 6).set("BINS", 3);
/// let executable = histogram()?.compile(&options.set("BLOCK_N", 256).set("WAVE_N", 64))?;
///
/// let device = Device::open()?;
/// let x = device.upload(&[2i32, 0, 2, 3, -1, 2])?;
/// let counts = device.upload(&[0i32; 3])?;
/// device.launch(&executable).buffer(&x).buffer(&counts).run()?;
/// assert_eq!(counts.download::<i32>()?, [1, 0, 3]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn histogram() -> Result<Kernel, Diagnostic> {
    let kernel = Kernel::trace("histogram", |w| {
        let [n, bins, block_n, wave_n] = symbols(["N", "BINS", "BLOCK_N", "WAVE_N"]);
        w.distribute([workgroup(n, block_n, 0), wave(n, wave_n)]);
        let x = w.memory("x", [n], Global, I32);
        let counts = w.memory("counts", [bins], Global, I32);
        let bin = w.read(x).tag("read_x");
        w.atomic_at(AtomicOp::Add, w.register([n], I32, 1.0), counts, [bin]);
    });
    asked_at(Caller::caller(), kernel)
}

/// Adds row i of `x`, of shape `[M, N]`, to row `ids[i]` of `table`, of shape `[ROWS, N]`, for i32 numbers
/// `ids` of shape `[M]`; x and the table are f32 or i32. A workgroup adds `BLOCK_M` x `BLOCK_N` elements. A
/// number that is no row of the table, be it negative or too large, adds nothing.
///
/// Rows that go to one place are added in any order, so sums of f32 may differ in their last bits from one
/// launch to the next. The reads are tagged `read_ids` and `read_x`.
///
/// # Errors
/// Another dtype, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, scatter_add};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942)
///     .set("M", 3)
///     .set("N", 2)
///     .set("ROWS", 2)
///     .set("BLOCK_M", 16)
///     .set("BLOCK_N", 64);
/// let executable = scatter_add(F32, Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let ids = device.upload(&[1i32, -1, 1])?;
/// let x = device.upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let table = device.upload(&[0.5f32; 4])?;
/// device.launch(&executable).buffer(&ids).buffer(&x).buffer(&table).run()?;
/// assert_eq!(table.download::<f32>()?, [0.5, 0.5, 6.5, 8.5]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn scatter_add(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace_scatter_add(dtype, waves))
}

fn trace_scatter_add(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    if !matches!(dtype, F32 | I32) {
        return Err(Diagnostic::invalid(format!("scatter_add adds f32 and i32, not {dtype}"))
            .help("convert the elements first"));
    }
    let [m, n, rows, block_m, block_n] = symbols(["M", "N", "ROWS", "BLOCK_M", "BLOCK_N"]);
    Kernel::trace("scatter_add", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        let ids = w.memory("ids", [m], Global, I32);
        let x = w.memory("x", [m, n], Global, dtype);
        let table = w.memory("table", [rows, n], Global, dtype);
        let row = w.read(ids).tag("read_ids");
        w.atomic_at(AtomicOp::Add, w.read(x).tag("read_x"), table, (row, n));
    })
}
