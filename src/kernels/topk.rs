//! The largest elements of rows, one after the other.

use std::panic::Location as Caller;

use super::asked::asked_at;
use super::row_tile::{check_rows, distribute_rows};
use crate::prelude::*;

/// The most elements of a row: each is an extremum of its own.
const MOST: u32 = 64;

/// The `count` largest elements of each row of `a`, of shape `[M, N]`, f16, bf16 or f32, in falling order:
/// `values`, of shape `[M, count]` and of a's dtype, and `places`, of the same shape and i32. Of equal
/// elements the first ones come first. NaNs come after all numbers: once only they are left in a row, or
/// nothing is, because it has fewer than `count` elements, values are NaN and places 0. Values that are zero
/// are plus zero.
///
/// Each element takes a pass over the row in registers, so this is for few of them. [`super::RowTile`] has
/// the symbols of the tile for a length of rows. The read is tagged `read_a`.
///
/// # Errors
/// Another dtype, or a count that is not from 1 to 64.
///
/// # Example
/// ```
/// use groundswell::kernels::{RowTile, topk};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 1).set("N", 4);
/// let executable = topk(F32, 2)?.compile(&RowTile::of(4).set_in(options))?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 7.0, 3.0, 7.0])?;
/// let values = device.upload(&[0f32; 2])?;
/// let places = device.upload(&[0i32; 2])?;
/// device.launch(&executable).buffer(&a).buffer(&values).buffer(&places).run()?;
/// assert_eq!(values.download::<f32>()?, [7.0, 7.0]);
/// assert_eq!(places.download::<i32>()?, [1, 3]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn topk(dtype: DType, count: u32) -> Result<Kernel, Diagnostic> {
    asked_at(Caller::caller(), trace(dtype, count))
}

fn trace(dtype: DType, count: u32) -> Result<Kernel, Diagnostic> {
    check_rows(dtype)?;
    if !(1..=MOST).contains(&count) {
        return Err(Diagnostic::invalid(format!("topk of {count} elements"))
            .help(format!("ask for 1 to {MOST} elements of each row")));
    }
    let of_count = Symbol::from(count);
    Kernel::trace("topk", |w| {
        let [m, n] = distribute_rows(w);
        let a = w.memory("a", [m, n], Global, dtype);
        let values = w.memory("values", [m, of_count], Global, dtype);
        let places = w.memory("places", [m, of_count], Global, I32);
        let found = w.read(a).tag("read_a").cast(F32).topk(n, count);
        for (at, element) in (0i64..).zip(found) {
            let at = || [m.into(), SymExpr::from(at)];
            w.write_at(element.value.cast(dtype), values, at());
            w.write_at(element.place, places, at());
        }
    })
}
