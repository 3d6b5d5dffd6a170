//! How kernels over rows are spread over the machine: each wave holds whole rows, or a part of one row, in
//! its registers, so that every element is read once.

use std::panic::Location as Caller;

use super::asked::asked_at;
use crate::prelude::*;

/// Columns that a wave holds of a longer row: sixteen elements per lane. Time mode finds fewer to spend more
/// on the exchange between waves, and more to compile longer without being faster.
const WAVE_COLUMNS: i64 = 1024;

/// Elements that a wave holds of short rows.
const WAVE_ELEMENTS: i64 = 512;

/// Rows of one wave at most: more would only make registers.
const WAVE_ROWS: i64 = 64;

/// Waves of a workgroup at most: 1024 work-items.
const WAVES: i64 = 16;

/// Waves that a workgroup has at least, of short rows.
const USUAL_WAVES: i64 = 4;

/// The tile of a kernel over rows of a given length.
///
/// Rows of up to 65536 elements stay in registers: sixteen waves with 64 elements per lane. Longer ones
/// spill to scratch memory.
///
/// # Example
/// ```
/// use groundswell::kernels::{RowTile, softmax};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 3);
/// let executable = softmax(F32)?.compile(&RowTile::of(3).set_in(options))?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 1.0, 1.0, 0.0, f32::NEG_INFINITY, f32::NEG_INFINITY])?;
/// let b = device.upload(&[0f32; 6])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0, 0.0, 0.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowTile {
    /// Rows per workgroup: `BLOCK_M`.
    pub rows: i64,
    /// Rows per wave: `WAVE_M`.
    pub wave_rows: i64,
    /// Columns per wave: `WAVE_N`.
    pub wave_columns: i64,
}

impl RowTile {
    /// The tile for rows of `columns` elements.
    pub fn of(columns: impl TryInto<i64>) -> RowTile {
        // A size that is no i64 is refused at compilation.
        let columns = columns.try_into().unwrap_or(i64::MAX).clamp(1, 1 << 40);
        let padded = columns.unsigned_abs().next_power_of_two().cast_signed();
        let wave_columns = padded.min(WAVE_COLUMNS).max(padded / WAVES);
        let wave_rows = (WAVE_ELEMENTS / wave_columns).clamp(1, WAVE_ROWS);
        let waves = (USUAL_WAVES * wave_columns / padded).max(1);
        RowTile { rows: wave_rows * waves, wave_rows, wave_columns }
    }

    /// The options with the symbols of the tile.
    #[must_use]
    pub fn set_in(self, options: Options) -> Options {
        self.symbols()
            .into_iter()
            .fold(options, |options, (name, value)| options.set(Symbol::new(name), value))
    }

    /// The symbols of the tile and their values.
    pub fn symbols(self) -> [(&'static str, i64); 3] {
        [("BLOCK_M", self.rows), ("WAVE_M", self.wave_rows), ("WAVE_N", self.wave_columns)]
    }
}

/// Spreads the rows of `[M, N]` over workgroups and waves by the symbols of a [`RowTile`].
pub(super) fn distribute_rows(w: &Tracer) -> [Symbol; 2] {
    let [m, n, block_m, wave_m, wave_n] = symbols(["M", "N", "BLOCK_M", "WAVE_M", "WAVE_N"]);
    w.distribute([workgroup(m, block_m, 0), wave(m, wave_m), wave(n, wave_n)]);
    [m, n]
}

/// A kernel over rows of `dtype` that `caller` asked for.
pub(super) fn row_kernel(
    name: &str,
    dtype: DType,
    caller: &'static Caller<'static>,
    trace: impl FnOnce(&Tracer),
) -> Result<Kernel, Diagnostic> {
    asked_at(caller, check_rows(dtype).and_then(|()| Kernel::trace(name, trace)))
}

/// Refuses elements that kernels over rows do not compute with.
pub(super) fn check_rows(dtype: DType) -> Result<(), Diagnostic> {
    match dtype {
        F16 | Bf16 | F32 => Ok(()),
        _ => Err(Diagnostic::invalid(format!("kernels over rows take f16, bf16 and f32, not {dtype}"))
            .help("convert the elements first")),
    }
}
