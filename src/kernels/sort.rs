//! Rows in order.

use std::panic::Location as Caller;

use super::row_tile::row_kernel;
use crate::prelude::*;

/// Which elements of a sorted row come first.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum SortOrder {
    /// The least ones.
    Ascending,
    /// The greatest ones.
    Descending,
}

/// The elements of each row in order: for `a` of shape `[M, N]`, f16, bf16 or f32, and `b` of the same shape
/// and dtype. NaNs come after all numbers in both orders, and -0 is less than +0. A row has at most 1024
/// elements; a wave holds all of it. A workgroup sorts `BLOCK_M` rows. The read is tagged `read_a`.
///
/// # Errors
/// Another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::{SortOrder, sort};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 1).set("N", 5).set("BLOCK_M", 1);
/// let executable = sort(F32, SortOrder::Ascending)?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 7.0, -3.0, 7.0, 0.5])?;
/// let b = device.upload(&[0f32; 5])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [-3.0, 0.5, 1.0, 7.0, 7.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn sort(dtype: DType, order: SortOrder) -> Result<Kernel, Diagnostic> {
    let [m, n] = symbols(["M", "N"]);
    row_kernel("sort", dtype, Caller::caller(), |w| {
        w.distribute([workgroup(m, Symbol::new("BLOCK_M"), 0)]);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, dtype);
        let x = w.read(a).tag("read_a");
        let sorted = match order {
            SortOrder::Ascending => x.sort(n),
            SortOrder::Descending => x.sort_descending(n),
        };
        w.write(sorted, b);
    })
}
