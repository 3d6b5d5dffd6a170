//! B = Aᵀ: a tile is turned in LDS, so that both sides move 16 bytes per lane.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// B = Aᵀ for two-dimensional tensors `a` of shape `[M, N]` and `b` of shape `[N, M]`; a workgroup turns
/// `BLOCK_M` x `BLOCK_N` elements of `a`.
///
/// With 64 x 64 elements and 2 x 2 waves, each lane loads and stores 16 bytes at a time, unless the rows end
/// elsewhere. The read is tagged `read_a`.
///
/// # Errors
/// No wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, transpose};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 3).set("N", 5).set("BLOCK_M", 64).set("BLOCK_N", 64);
/// let executable = transpose(I32, Waves::new(2, 2))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&(0..15).collect::<Vec<i32>>())?;
/// let b = device.upload(&[0i32; 15])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<i32>()?, [0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn transpose(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(dtype, waves))
}

fn trace(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let [m, n, block_m, block_n] = symbols(["M", "N", "BLOCK_M", "BLOCK_N"]);
    // A read of narrow elements is turned in LDS by the conversion of its layout to that of the write. For
    // elements of four bytes the conversion would cost more than narrow loads, which read short pieces of
    // many rows; as a tile in LDS, they come in whole rows as well.
    let space = if dtype.bytes() < 4 { Global } else { Shared };
    Kernel::trace("transpose", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        let a = w.memory("a", [m, n], space, dtype);
        let b = w.memory("b", [n, m], Global, dtype);
        w.write(w.read(a).tag("read_a"), b);
    })
}
