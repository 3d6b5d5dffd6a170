//! B = A: the smallest kernel that moves data.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// B = A for two-dimensional tensors `a` and `b` of shape `[M, N]`; a workgroup copies `BLOCK_M` x `BLOCK_N`
/// elements.
///
/// # Errors
/// No wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 3).set("N", 70).set("BLOCK_M", 2).set("BLOCK_N", 64);
/// let executable = copy(F32, Waves::new(2, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&(0..210).map(|x| x as f32).collect::<Vec<_>>())?;
/// let b = device.upload(&[0f32; 210])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, a.download::<f32>()?);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn copy(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(dtype, waves))
}

fn trace(dtype: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let [m, n, block_m, block_n] = symbols(["M", "N", "BLOCK_M", "BLOCK_N"]);
    Kernel::trace("copy", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, dtype);
        w.write(w.read(a).tag("read_a"), b);
    })
}

/// As [`copy`], of parts of larger matrices: from one row to the next, `a` has `LDA` elements and `b` has
/// `LDB`. Both may be left open until the launch. Accesses are wide where it is certain that rows begin at
/// whole dwords: f32 always, other dtypes if the strides are known or multiples of `multiple`, which the
/// kernel assumes of them; 1 assumes nothing.
///
/// # Errors
/// No wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, copy_strided};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 2).set("N", 3).set("BLOCK_M", 2).set("BLOCK_N", 64);
/// let options = options.dynamic("LDA").set("LDB", 3);
/// let executable = copy_strided(I32, Waves::new(1, 1), 1)?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1, 2, 3, -1, -1, 4, 5, 6])?;
/// let b = device.upload(&[0; 6])?;
/// device.launch(&executable).buffer(&a).buffer(&b).set("LDA", 5).run()?;
/// assert_eq!(b.download::<i32>()?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn copy_strided(dtype: DType, waves: Waves, multiple: u32) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace_strided(dtype, waves, multiple))
}

fn trace_strided(dtype: DType, waves: Waves, multiple: u32) -> Result<Kernel, Diagnostic> {
    let [m, n, block_m, block_n, lda, ldb] = symbols(["M", "N", "BLOCK_M", "BLOCK_N", "LDA", "LDB"]);
    Kernel::trace("copy_strided", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        if multiple != 1 {
            w.distribute([assume_divisible(lda, multiple), assume_divisible(ldb, multiple)]);
        }
        let a = w.memory_in("a", [m, n], &MemoryLayout::strides([lda]), Global, dtype);
        let b = w.memory_in("b", [m, n], &MemoryLayout::strides([ldb]), Global, dtype);
        w.write(w.read(a).tag("read_a"), b);
    })
}
