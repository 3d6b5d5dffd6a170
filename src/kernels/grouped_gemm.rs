//! Products of blocks of rows with matrices that a table chooses: the experts of a mixture.

use std::panic::Location as Caller;

use super::Waves;
use super::sums::sums_of;
use crate::prelude::*;

/// `c[i] = a[i] b[expert_of_block[i]]ᵀ` for each block i of `ROWS` rows: `a` is `[BLOCKS, ROWS, K]`, `b`
/// `[EXPERTS, N, K]`, `expert_of_block` `[BLOCKS]` of i32, and `c` `[BLOCKS, ROWS, N]` of f32, or i32 for
/// i8 inputs.
///
/// The rows are those of tokens, sorted by expert, where the rows of each expert are filled up to whole
/// blocks. A block whose number is no expert, such as -1 for one that is not used, becomes zeros. A
/// workgroup computes a block by `BLOCK_N` columns, and takes `BLOCK_K` of K per iteration; `ROWS` is a
/// power of two, from 16 for each wave along it. The loop is tagged `k_loop`.
///
/// # Errors
/// Inputs that no matrix instruction takes, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, grouped_gemm};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("BLOCKS", 2).set("ROWS", 16).set("N", 1).set("K", 1);
/// let options = options.set("EXPERTS", 3).set("BLOCK_N", 16).set("BLOCK_K", 16);
/// let executable = grouped_gemm(F32, Waves::new(1, 1))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[2f32; 32])?;
/// let b = device.upload(&[1f32, 10.0, 100.0])?;
/// let expert_of_block = device.upload(&[2i32, 0])?;
/// let c = device.upload(&[0f32; 32])?;
/// device.launch(&executable).buffer(&a).buffer(&b).buffer(&expert_of_block).buffer(&c).run()?;
/// assert_eq!(c.download::<f32>()?, [[200f32; 16], [2.0; 16]].concat());
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn grouped_gemm(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, waves))
}

fn trace(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let matrix = MmaType::default();
    let sums = sums_of(matrix, inputs)?;
    let [blocks, rows, n, k, experts] = symbols(["BLOCKS", "ROWS", "N", "K", "EXPERTS"]);
    let [block_n, block_k] = symbols(["BLOCK_N", "BLOCK_K"]);
    Kernel::trace("grouped_gemm", |w| {
        w.distribute([
            workgroup(blocks, 1, 0),
            workgroup(n, block_n, 1),
            tile(k, block_k),
            wave(rows, rows / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [blocks, rows, k], Shared, inputs);
        let b = w.memory("b", [experts, n, k], Shared, inputs);
        let expert_of_block = w.memory("expert_of_block", [blocks], Global, I32);
        let c = w.memory("c", [blocks, rows, n], Global, sums);
        let expert = w.read(expert_of_block).tag("read_expert");
        let zero = w.register([blocks, rows, n], sums, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let columns = w.read_at(b, (expert, n, k), [blocks, n, k]).tag("read_b");
            [w.mma(w.read(a).tag("read_a"), columns, sum).tag("mma")]
        });
        w.write(sum.tag_loop("k_loop"), c);
    })
}
