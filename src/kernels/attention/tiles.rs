//! Tile, waves and matrix instruction of attention.

use super::heads::HeadSizes;
use crate::prelude::*;

/// How the queries and keys of attention are spread.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct AttentionTile {
    /// Queries of a workgroup: `BLOCK_M`.
    pub queries: u32,
    /// Queries of a wave: `WAVE_M`.
    pub wave_queries: u32,
    /// Keys per iteration: `BLOCK_N`.
    pub keys: u32,
}

impl AttentionTile {
    /// Workgroups of `queries` queries, of which each wave has `wave_queries`, and `keys` keys per iteration.
    pub const fn new(queries: u32, wave_queries: u32, keys: u32) -> AttentionTile {
        AttentionTile { queries, wave_queries, keys }
    }

    /// The tile that suits heads on a chip, and the shape of its matrix instruction. Eight waves of 32
    /// queries read each tile of K and V from LDS in half of the time of its products; what a wave keeps of
    /// larger heads is too much for 32 queries beside 64 keys. gfx906, which has no matrix instructions, has
    /// neither the registers nor a gain from large ones.
    pub(super) fn suiting(heads: HeadSizes, chip: Target) -> (AttentionTile, MatrixShape) {
        let largest = heads.largest_dim();
        let is_gfx950 = chip == Target::GFX950;
        match largest {
            _ if chip == Target::GFX906 => (AttentionTile::new(64, 16, 32), MatrixShape::M16x16),
            ..=64 if is_gfx950 => (AttentionTile::new(256, 32, 128), MatrixShape::M32x32),
            ..=64 => (AttentionTile::new(128, 16, 64), MatrixShape::M16x16),
            65..=128 => (AttentionTile::new(256, 32, 64), MatrixShape::M32x32),
            129..=192 if heads.value_dim().is_some_and(|dim| dim <= 128) => {
                (AttentionTile::new(256, 32, 32), MatrixShape::M32x32)
            }
            _ if is_gfx950 => (AttentionTile::new(128, 16, 64), MatrixShape::M16x16),
            _ => (AttentionTile::new(128, 16, 32), MatrixShape::M16x16),
        }
    }

    /// The tile of kernels that turn queries and keys: what a wave turns of a tile stays in its registers.
    pub(super) fn of_turned(heads: HeadSizes) -> (AttentionTile, MatrixShape) {
        match heads.largest_dim() {
            ..=128 => (AttentionTile::new(128, 32, 16), MatrixShape::M16x16),
            _ => (AttentionTile::new(64, 16, 16), MatrixShape::M16x16),
        }
    }

    /// Its symbols with their values.
    pub(super) fn bound(self) -> [(&'static str, u32); 3] {
        [("BLOCK_M", self.queries), ("WAVE_M", self.wave_queries), ("BLOCK_N", self.keys)]
    }

    /// Fails unless waves divide the queries and the matrix instruction both.
    pub(super) fn check(self, matrix: MmaType) -> Result<(), Diagnostic> {
        let edge = matrix.edge();
        let is_whole = |size: u32, of: u32| size != 0 && of != 0 && size.is_multiple_of(of);
        let AttentionTile { queries, wave_queries, keys } = self;
        if is_whole(queries, wave_queries) && is_whole(wave_queries, edge) && is_whole(keys, edge) {
            return Ok(());
        }
        let text = format!("{queries} queries by {keys} keys, {wave_queries} queries a wave, are no tile");
        let help = format!("use multiples of {edge}, and whole waves: 8 * {edge} queries, {edge} a wave");
        Err(Diagnostic::invalid(text).help(help))
    }
}
