//! The product with OCP's 4-bit floats, which have a power of two for each 32 of K.
//!
//! Eight elements of a row lie side by side with those of the next row, so that the lanes of a matrix
//! instruction, of which neighbours have neighbouring rows, load from one cache line. gfx950 widens two
//! elements with their scale in one instruction; other chips compute with their bits.

use super::parts::{FourBitAxes, FourBitResults};
use crate::prelude::*;

/// Elements with one scale.
const SCALE_BLOCK: u32 = 32;

/// Elements of a row that lie together.
const TOGETHER: u32 = 8;

pub(super) fn trace(inputs: DType, results: FourBitResults) -> Result<Kernel, Diagnostic> {
    let name = match results {
        FourBitResults::Whole => "mxfp4_gemm",
        FourBitResults::Parts => "mxfp4_gemm_parts",
    };
    let axes @ FourBitAxes { m, n, k, splits, waves, .. } = FourBitAxes::new(results);
    let [elements, eight, block_k] = symbols(["ELEMENTS", "EIGHT", "BLOCK_K"]);
    Kernel::trace(name, |w| {
        axes.distribute(w);
        w.distribute([tile(elements, block_k)]);
        let a = w.memory("a", [m, k], Global, inputs);
        let weights = w.memory("w", [k.scaled(TOGETHER), n, eight], Global, F4E2M1);
        let scales = w.memory("scales", [k.scaled(SCALE_BLOCK), n], Global, F8E8M0);
        let nothing = w.register([splits, waves, m, n], F32, 0.0);
        let [sums] = w.iterate(elements, [nothing], |w, [sums]| {
            let together = i64::from(TOGETHER);
            let place = axes.start(together) + elements / together;
            let dims = [splits, waves, n, elements];
            let codes = w.read_at(weights, [place, n.into(), elements % together], dims).tag("read_w");
            let blocks = elements.scaled(SCALE_BLOCK);
            let place = axes.start(i64::from(SCALE_BLOCK)) + blocks;
            let scale = w.read_at(scales, [place, n.into()], [splits, waves, n, blocks]).tag("read_scales");
            let place = axes.start(1) + elements;
            let rows = w.read_at(a, [m.into(), place], [splits, waves, m, elements]).tag("read_a");
            [w.mma(rows, codes.cast(Bf16) * scale.cast(Bf16), sums).tag("mma")]
        });
        axes.write(w, sums.tag_loop("k_loop"), inputs);
    })
}
