//! Products of block floats: OCP's MX formats.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// The order in which the scales of block floats lie in memory.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum ScaleOrder {
    /// `[K/256, ROWS, 8]`: eight scales of a row, those of 256 of K, and after them those of the next row, so
    /// that lanes of neighbouring rows load from one cache line. [`arrange_scales`] makes it of the other.
    #[default]
    SideBySide,
    /// `[ROWS, K/32]`: each row by itself, as quantisers write them. A row of a tile has a line of its own.
    Rows,
}

/// `c[i, j]` is the sum over k of `a[i, k] * a_scale[i, k / 32] * b[j, k] * b_scale[j, k / 32]`: `a` is `[M,
/// K]` and `b` `[N, K]`, of dtypes of their own, f4e2m1, f6e2m3, f6e3m2, f8e4m3fn or f8e5m2 (MXFP4, MXFP6 and
/// MXFP8), `a_scale` and `b_scale` are of f8e8m0 and lie in the order of `scales`, and `c` is `[M, N]` of
/// f32. Chips without such a product multiply the factors with their scales in bf16.
///
/// A workgroup computes `BLOCK_M` x `BLOCK_N` elements of C and takes `BLOCK_K` of K per iteration. The loop
/// is tagged `k_loop`, the operations `read_a`, `read_b`, `read_a_scale`, `read_b_scale` and `mma`.
///
/// # Errors
/// Inputs that no matrix instruction takes with scales, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{ScaleOrder, Waves, block_float_gemm};
/// use groundswell::prelude::*;
///
/// let sizes = [("M", 1), ("N", 1), ("K", 64), ("BLOCK_M", 16), ("BLOCK_N", 16), ("BLOCK_K", 128)];
/// let options = Options::new(Target::GFX950);
/// let options = sizes.into_iter().fold(options, |options, (name, size)| options.set(name, size));
/// let (matrix, waves) = (MatrixShape::M16x16.into(), Waves::new(1, 1));
/// let kernel = block_float_gemm([F4E2M1; 2], ScaleOrder::Rows, matrix, waves)?;
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
pub fn block_float_gemm(
    inputs: [DType; 2],
    scales: ScaleOrder,
    matrix: MmaType,
    waves: Waves,
) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, scales, matrix, waves))
}

fn trace(
    inputs: [DType; 2],
    scales: ScaleOrder,
    matrix: MmaType,
    waves: Waves,
) -> Result<Kernel, Diagnostic> {
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
            cached_order(),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Shared, inputs[0]);
        let b = w.memory("b", [n, k], Shared, inputs[1]);
        let (blocks, eight) = (k.scaled(SCALE_BLOCK), Symbol::from(8));
        let [a_scale, b_scale] = [("a_scale", m), ("b_scale", n)].map(|(name, rows)| match scales {
            ScaleOrder::SideBySide => {
                w.memory(name, [k.scaled(8 * SCALE_BLOCK), rows, eight], Shared, F8E8M0)
            }
            ScaleOrder::Rows => w.memory(name, [rows, blocks], Shared, F8E8M0),
        });
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let [x, y] = [w.read(a).tag("read_a"), w.read(b).tag("read_b")];
            let read_scale = |memory, rows| match scales {
                ScaleOrder::SideBySide => w.read_at(memory, side_by_side(rows, blocks), [rows, blocks]),
                ScaleOrder::Rows => w.read(memory),
            };
            let of_x = read_scale(a_scale, m).tag("read_a_scale");
            let of_y = read_scale(b_scale, n).tag("read_b_scale");
            [w.scaled_mma(x, of_x, y, of_y, sum).tag("mma")]
        });
        w.write(sum.tag_loop("k_loop"), c);
    })
}

/// Elements of a row that have one scale.
const SCALE_BLOCK: u32 = 32;

/// The place of the scale of a row and a block where scales lie [side by side](ScaleOrder::SideBySide).
fn side_by_side(rows: Symbol, blocks: Symbol) -> (SymExpr, Symbol, SymExpr) {
    (blocks / 8, rows, blocks % 8)
}

/// `b`, `[K/256, ROWS, 8]`, has the scales of `a`, `[ROWS, K/32]`, in the order in which products take them
/// ([`ScaleOrder::SideBySide`]): once for weights, when they are loaded. Both are of f8e8m0; where K is no
/// multiple of 256 the rest of each last group stays as it is. A workgroup takes `BLOCK_ROWS` rows and
/// `BLOCK_K` of K, of which a multiple of 256 is a good choice; the read is tagged `read_a`.
///
/// # Errors
/// No wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, arrange_scales};
/// use groundswell::prelude::*;
///
/// let sizes = [("ROWS", 2), ("K", 512), ("BLOCK_ROWS", 64), ("BLOCK_K", 256)];
/// let options = sizes.into_iter().fold(Options::new(Target::GFX950), |o, (name, size)| o.set(name, size));
/// let executable = arrange_scales(Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::simulator(Target::GFX950);
/// let rows: Vec<u8> = (100..132).collect();
/// let a = device.upload_tensor(&Tensor::from_bytes(&[2, 16], F8E8M0, &rows)?)?;
/// let b = device.upload_tensor(&Tensor::from_bytes(&[2, 2, 8], F8E8M0, &[0; 32])?)?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// // The first eight of each row, and then the others.
/// let arranged = b.read_bytes()?;
/// assert_eq!(arranged[..16], [&rows[..8], &rows[16..24]].concat());
/// assert_eq!(arranged[16..], [&rows[8..16], &rows[24..]].concat());
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn arrange_scales(waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| {
        let [rows, k, block_rows, block_k] = symbols(["ROWS", "K", "BLOCK_ROWS", "BLOCK_K"]);
        let (blocks, eight) = (k.scaled(SCALE_BLOCK), Symbol::from(8));
        Kernel::trace("arrange_scales", |w| {
            w.distribute([
                workgroup(k, block_k, 0),
                workgroup(rows, block_rows, 1),
                wave(rows, block_rows / i64::from(waves.m)),
                wave(k, block_k / i64::from(waves.n)),
            ]);
            let a = w.memory("a", [rows, blocks], Global, F8E8M0);
            let b = w.memory("b", [k.scaled(8 * SCALE_BLOCK), rows, eight], Global, F8E8M0);
            w.write_at(w.read(a).tag("read_a"), b, side_by_side(rows, blocks));
        })
    })
}
