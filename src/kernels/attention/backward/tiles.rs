//! Tiles, waves and matrix instructions of the backward pass.

use super::super::heads::HeadSizes;
use super::kernels::BackwardKernel;
use crate::prelude::*;

/// How the rows of a gradient are spread: queries for dQ, keys for dK and dV.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct GradientTile {
    /// Rows of the gradient of a workgroup.
    pub rows: u32,
    /// Rows of the gradient of a wave.
    pub wave_rows: u32,
    /// Rows of the other side per iteration: keys for dQ, queries for dK and dV.
    pub walked: u32,
}

impl GradientTile {
    /// Workgroups of `rows` rows of a gradient, of which each wave has `wave_rows`, and `walked` rows of the
    /// other side per iteration.
    pub const fn new(rows: u32, wave_rows: u32, walked: u32) -> GradientTile {
        GradientTile { rows, wave_rows, walked }
    }

    /// The tile that suits heads on a chip, and the shape of its matrix instruction: eight waves of 32 rows,
    /// which read each tile from LDS in the time of its products, and of 16 where heads are too large for the
    /// sums of 32 rows. Of a head in two parts the second one may have 16 elements.
    pub(super) fn suiting(
        kernel: BackwardKernel,
        heads: HeadSizes,
        has_parts: HeadsInParts,
        chip: Target,
    ) -> (GradientTile, MatrixShape) {
        let is_gfx950 = chip == Target::GFX950;
        let (tile, matrix) = match (kernel, heads.largest_dim()) {
            (BackwardKernel::Bias, _) => (GradientTile::new(64, 16, 64), MatrixShape::M16x16),
            _ if chip == Target::GFX906 => (GradientTile::new(64, 16, 32), MatrixShape::M16x16),
            (_, 129..) => (GradientTile::new(128, 16, 32), MatrixShape::M16x16),
            (BackwardKernel::Values, 65..) if is_gfx950 => {
                (GradientTile::new(256, 32, 64), MatrixShape::M16x16)
            }
            (BackwardKernel::Keys | BackwardKernel::Queries, _) if is_gfx950 => {
                (GradientTile::new(256, 32, 32), MatrixShape::M32x32)
            }
            (BackwardKernel::KeysAndValues, 65..) => (GradientTile::new(128, 16, 32), MatrixShape::M16x16),
            _ => (GradientTile::new(256, 32, 32), MatrixShape::M16x16),
        };
        (tile, if has_parts == HeadsInParts::Two { MatrixShape::M16x16 } else { matrix })
    }

    /// Its symbols with their values.
    pub(super) fn bound(self, kernel: BackwardKernel) -> [(&'static str, u32); 3] {
        let GradientTile { rows, wave_rows, walked } = self;
        match kernel {
            BackwardKernel::Queries | BackwardKernel::Bias => {
                [("BLOCK_M", rows), ("WAVE_M", wave_rows), ("BLOCK_N", walked)]
            }
            _ => [("BLOCK_N", rows), ("WAVE_N", wave_rows), ("BLOCK_M", walked)],
        }
    }

    /// Fails unless waves divide the rows and the matrix instruction both.
    pub(super) fn check(self, matrix: MmaType) -> Result<(), Diagnostic> {
        let edge = matrix.edge();
        let is_whole = |size: u32, of: u32| size != 0 && of != 0 && size.is_multiple_of(of);
        let GradientTile { rows, wave_rows, walked } = self;
        if is_whole(rows, wave_rows) && is_whole(wave_rows, edge) && is_whole(walked, edge) {
            return Ok(());
        }
        let text = format!("{rows} rows by {walked}, {wave_rows} rows a wave, are no tile");
        let help = format!("use multiples of {edge}, and whole waves: 8 * {edge} rows, {edge} a wave");
        Err(Diagnostic::invalid(text).help(help))
    }
}

/// Whether heads are multiplied as a whole.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum HeadsInParts {
    /// They are.
    One,
    /// Those of keys or those of values in two parts.
    Two,
}
