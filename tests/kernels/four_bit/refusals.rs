//! What cannot be made is a diagnostic with the way out, at the line that asked for it.

use groundswell::kernels::FourBitGemm;
use groundswell::prelude::*;

use crate::refused::refused;

#[test]
fn groups_and_dtypes_that_are_not_multiplied_are_refused() {
    for group in [0, 16, 96, 256] {
        let text = "a scale for each 32, 64 or 128 of K";
        refused(FourBitGemm::int4(group).kernel(), text, "repeat their scales");
        refused(FourBitGemm::int4(group).zeros().parts(), text, "repeat their scales");
    }
    for dtype in [F32, I8, F8E4M3Fn] {
        let text = format!("weights of 4 bits are not multiplied with {dtype}");
        refused(FourBitGemm::int4(128).inputs(dtype).kernel(), &text, "bf16 or f16");
    }
    for dtype in [F16, F32, F8E4M3Fn] {
        let text = format!("MXFP4 is not multiplied with {dtype}");
        refused(FourBitGemm::mxfp4().inputs(dtype).parts(), &text, "block_float_gemm");
    }
}
