//! Products of block floats: OCP's MX formats.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// `c[i, j]` is the sum over k of `a[i, k] * a_scale[i, k / 32] * b[j, k] * b_scale[j, k / 32]`: `a` is `[M,
/// K]` and `b` `[N, K]`, of dtypes of their own, f4e2m1, f6e2m3, f6e3m2, f8e4m3fn or f8e5m2 (MXFP4, MXFP6 and
/// MXFP8), `a_scale` `[M, K/32]` and `b_scale` `[N, K/32]` of f8e8m0, and `c` `[M, N]` of f32. Chips
/// without such a product multiply the factors with their scales in bf16.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of C and takes `BLOCK_K` of K per iteration. The loop
/// is tagged `k_loop`, the operations `read_a`, `read_b`, `read_a_scale`, `read_b_scale` and `mma`.
///
/// # Errors
/// Inputs that no matrix instruction takes with scales, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, block_float_gemm};
/// use groundswell::prelude::*;
///
/// let sizes = [("M", 1), ("N", 1), ("K", 64), ("BLOCK_M", 16), ("BLOCK_N", 16), ("BLOCK_K", 128)];
/// let options = Options::new(Target::GFX950);
/// let options = sizes.into_iter().fold(options, |options, (name, size)| options.set(name, size));
/// let kernel = block_float_gemm([F4E2M1; 2], MatrixShape::M16x16.into(), Waves::new(1, 1))?;
/// let executable = kernel.compile(&options)?;
///
/// let device = Device::simulator(Target::GFX950);
/// let upload = |dtype: DType, columns: usize, bytes: &[u8]| {
///     device.upload_tensor(&Tensor::from_bytes(&[1, columns], dtype, bytes)?)
/// };
/// // Two numbers in a byte: 64 times 1.5, and 32 times 1 before 32 times 2.
/// let a = upload(F4E2M1, 64, &[0x33; 32])?;
/// let b = upload(F4E2M1, 64, &[[0x22; 16], [0x44; 16]].concat())?;
/// // Powers of two: of 127 is 2 to the 0.
/// let [a_scale, b_scale] = [upload(F8E8M0, 2, &[127, 127])?, upload(F8E8M0, 2, &[126, 124])?];
/// let c = device.upload(&[0f32])?;
/// let launch = device.launch(&executable).buffer(&a).buffer(&b).buffer(&a_scale).buffer(&b_scale);
/// launch.buffer(&c).run()?;
/// assert_eq!(c.download::<f32>()?, [32.0 * 1.5 * 1.0 / 2.0 + 32.0 * 1.5 * 2.0 / 8.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn block_float_gemm(inputs: [DType; 2], matrix: MmaType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, matrix, waves))
}

fn trace(inputs: [DType; 2], matrix: MmaType, waves: Waves) -> Result<Kernel, Diagnostic> {
    if !Mma::all().any(|mma| mma.has_scales() && mma.inputs() == inputs) {
        let [left, right] = inputs;
        let factors = if left == right { left.to_string() } else { format!("{left} and {right}") };
        return Err(Diagnostic::invalid(format!("no matrix instruction multiplies {factors} with scales"))
            .help("use f4e2m1, f6e2m3, f6e3m2, f8e4m3fn or f8e5m2 inputs"));
    }
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    Kernel::trace("block_float_gemm", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            tile(k, block_k),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
            emulate(Bf16),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Shared, inputs[0]);
        let b = w.memory("b", [n, k], Shared, inputs[1]);
        let a_scale = w.memory("a_scale", [m, k.scaled(32)], Shared, F8E8M0);
        let b_scale = w.memory("b_scale", [n, k.scaled(32)], Shared, F8E8M0);
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let [x, y] = [w.read(a).tag("read_a"), w.read(b).tag("read_b")];
            let of_x = w.read(a_scale).tag("read_a_scale");
            let of_y = w.read(b_scale).tag("read_b_scale");
            [w.scaled_mma(x, of_x, y, of_y, sum).tag("mma")]
        });
        w.write(sum.tag_loop("k_loop"), c);
    })
}
