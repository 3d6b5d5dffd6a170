//! Products of narrow floats with a scale for each block.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// `c[i, j]` is the sum over the blocks of K of `a_scale[block, i] * b_scale[j / SCALE_N, block]` times the
/// sum of `a[i, k] * b[j, k]` over the block: `a` is `[M, K]` and `b` `[N, K]` of `inputs`, `a_scale`
/// `[BLOCKS, M]` and `b_scale` `[ROWS, BLOCKS]` of f32, and `c` `[M, N]` of f32. A block is `BLOCK_K` of K
/// and, for B, `SCALE_N` rows: both are 128 in most 8-bit models.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of C and takes a block of K per iteration. The loop is
/// tagged `k_loop`, the operations `read_a`, `read_b`, `mma`, `read_a_scale` and `read_b_scale`.
///
/// # Errors
/// Inputs that no matrix instruction multiplies into f32, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, block_scaled_gemm};
/// use groundswell::prelude::*;
///
/// let sizes = [("M", 1), ("N", 1), ("K", 32), ("BLOCKS", 2), ("ROWS", 1), ("SCALE_N", 128)];
/// let sizes = sizes.into_iter().chain([("BLOCK_M", 16), ("BLOCK_N", 16), ("BLOCK_K", 16)]);
/// let options = sizes.fold(Options::new(Target::GFX942), |options, (name, size)| options.set(name, size));
/// let executable = block_scaled_gemm(F16, Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let (a, b) = (device.upload(&[f16::ONE; 32])?, device.upload(&[f16::ONE; 32])?);
/// let (a_scale, b_scale) = (device.upload(&[2f32, 3.0])?, device.upload(&[1f32, 10.0])?);
/// let c = device.upload(&[0f32])?;
/// let launch = device.launch(&executable).buffer(&a).buffer(&b).buffer(&a_scale).buffer(&b_scale);
/// launch.buffer(&c).run()?;
/// assert_eq!(c.download::<f32>()?, [16.0 * 2.0 + 16.0 * 30.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn block_scaled_gemm(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, waves))
}

fn trace(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let matrix = MmaType::default();
    if matrix.accumulator(inputs) != Some(F32) {
        return Err(Diagnostic::invalid(format!("no matrix instruction multiplies {inputs} into f32"))
            .help("use 8-bit floats, f16, bf16 or f32 inputs"));
    }
    let [m, n, k, blocks, rows] = symbols(["M", "N", "K", "BLOCKS", "ROWS"]);
    let [block_m, block_n, block_k, scale_n] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K", "SCALE_N"]);
    Kernel::trace("block_scaled_gemm", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            tile(k, block_k),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
            cached_order(),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Shared, inputs);
        let b = w.memory("b", [n, k], Shared, inputs);
        let a_scale = w.memory("a_scale", [blocks, m], Global, F32);
        let b_scale = w.memory("b_scale", [rows, blocks], Global, F32);
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let block = w.iteration(k);
            let product = w.mma(w.read(a).tag("read_a"), w.read(b).tag("read_b"), zero).tag("mma");
            let of_row = w.read_at(a_scale, (block, m), [m]).tag("read_a_scale");
            let of_column = w.read_at(b_scale, (n / scale_n, block), [n]).tag("read_b_scale");
            [product * of_row * of_column + sum]
        });
        w.write(sum.tag_loop("k_loop"), c);
    })
}
