//! Two products one after the other, of which the first never leaves the registers.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// `d = (a bᵀ) cᵀ`: `a` is `[M, K]`, `b` `[L, K]` and `c` `[N, L]` of floats, `d` `[M, N]` of f32. The sums
/// of the first product are rounded to the inputs' dtype.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of D and takes `BLOCK_L` rows of B per iteration, with
/// all of K at once: `WAVE_K` is K, rounded up to a power of two that is at least 16. The first product is
/// written with L before M: so its sums lie in the lanes in which the second product takes them. The loop is
/// tagged `l_loop`, the operations `read_a`, `read_b`, `read_c`, `first` and `second`.
///
/// # Errors
/// Inputs that are no floats or that no matrix instruction takes, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, chained_gemm};
/// use groundswell::prelude::*;
///
/// let sizes = [("M", 1), ("L", 2), ("N", 1), ("K", 2), ("WAVE_K", 16)];
/// let sizes = sizes.into_iter().chain([("BLOCK_M", 16), ("BLOCK_N", 16), ("BLOCK_L", 16)]);
/// let options = sizes.fold(Options::new(Target::GFX942), |o, (name, size)| o.set(name, size));
/// let executable = chained_gemm(F16, Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let upload = |numbers: &[f32]| {
///     device.upload(&numbers.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())
/// };
/// let (a, b, c) = (upload(&[1.0, 2.0])?, upload(&[3.0, 4.0, 5.0, 6.0])?, upload(&[10.0, 100.0])?);
/// let d = device.upload(&[0f32])?;
/// device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).buffer(&d).run()?;
/// // 1 * 3 + 2 * 4 is 11, 1 * 5 + 2 * 6 is 17.
/// assert_eq!(d.download::<f32>()?, [11.0 * 10.0 + 17.0 * 100.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn chained_gemm(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, waves))
}

fn trace(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let matrix = MmaType::default();
    if matrix.accumulator(inputs) != Some(F32) {
        return Err(Diagnostic::invalid(format!("no chain of matrix instructions multiplies {inputs}"))
            .help("use f16, bf16 or f32 inputs"));
    }
    let [m, l, n, k] = symbols(["M", "L", "N", "K"]);
    let [block_m, block_n, block_l, wave_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_L", "WAVE_K"]);
    Kernel::trace("chained_gemm", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            tile(l, block_l),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
            wave(k, wave_k),
            cached_order(),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Global, inputs);
        let b = w.memory("b", [l, k], Shared, inputs);
        let c = w.memory("c", [n, l], Shared, inputs);
        let d = w.memory("d", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(l, [zero], |w, [sum]| {
            let zero = w.register([l, m], F32, 0.0);
            let first = w.mma(w.read(b).tag("read_b"), w.read(a).tag("read_a"), zero).tag("first");
            [w.mma(first.cast(inputs), w.read(c).tag("read_c"), sum).tag("second")]
        });
        w.write(sum.tag_loop("l_loop"), d);
    })
}
