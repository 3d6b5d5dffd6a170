//! The dtype of the sums of a product, or why no matrix instruction makes them.

use crate::prelude::*;

/// The dtype of sums of products of `inputs`.
pub(super) fn sums_of(matrix: MmaType, inputs: DType) -> Result<DType, Diagnostic> {
    matrix.accumulator(inputs).ok_or_else(|| {
        Diagnostic::invalid(format!("no matrix instruction multiplies {inputs}"))
            .help("use f16, bf16, f32, f64 or i8 inputs")
    })
}
