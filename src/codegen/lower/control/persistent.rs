//! Workgroups that share the tiles of a grid: a loop around the whole kernel, in which the number of the
//! running tile stands for the numbers that the hardware gives a workgroup.
//!
//! The constraint `persistent` is a number in the geometry (`Geometry::persistent`) that two places read:
//! the launch, whose grid is that number, or the tiles if these are fewer, and this file. Orders, loops and
//! schedules see places as ever. A barrier ends a tile if waves share LDS. The interpreter runs tiles.

use super::ControlLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::machine::BlockId;
use crate::index::Neighbours;
use crate::ir::constraint::GridSymbol;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprError, Symbol};

/// The loop over tiles.
#[derive(Copy, Clone)]
pub(super) struct OpenTiles {
    /// Number of the running tile.
    tile: Operand,
    /// One more than the last one.
    end: Operand,
    /// Tiles from one to the next.
    step: u32,
    block: BlockId,
}

/// No author can write it.
const TILE: &str = "%tile";

impl ControlLayer<'_> {
    /// Opens the loop, in a workgroup that has a number; finds the numbers along the axes that are asked for.
    pub(super) fn open_tiles(&mut self, number: Operand, axes: [bool; 3]) -> Result<(), Diagnostic> {
        let Some(step) = self.kernel.geometry.persistent else { return Ok(()) };
        let all = self.product(&self.kernel.geometry.grid.clone())?;
        let end = self.scalar(all)?;
        let end = self.emitter.in_sgpr(end);
        let tile = self.emitter.sgpr(1);
        self.emitter.op(Opcode::SMovB32, &[tile, number]);
        let block = self.emitter.next_block(None);
        self.emitter.out.loops.bodies.push(block..block.next());
        self.whiles += 1;
        self.tiles = Some(OpenTiles { tile, end, step, block });
        let symbol = Symbol::new(TILE);
        self.arena.assume_range(symbol, 0..=i64::from(i32::MAX)).map_err(bad)?;
        self.symbols.push((symbol, tile));
        let mut rest = self.arena.symbol(symbol);
        for axis in 0..3u32 {
            let count = self.kernel.geometry.grid[axis as usize];
            // All axes from the third on are one of the hardware.
            let along = if axis == 2 { rest } else { self.arena.modulo(rest, count).map_err(bad)? };
            rest = self.arena.floor_div(rest, count).map_err(bad)?;
            if axes[axis as usize] {
                let along = self.scalar(along)?;
                let place = self.emitter.in_sgpr(along);
                self.workgroup[axis as usize] = place;
                self.symbols.push((GridSymbol::Workgroup(axis).symbol(), place));
            }
        }
        Ok(())
    }

    fn product(&mut self, counts: &[Expr]) -> Result<Expr, Diagnostic> {
        counts.iter().try_fold(Expr::ONE, |all, &count| self.arena.mul(all, count).map_err(bad))
    }

    /// Goes on with the next tile. Waves that are behind may still read the LDS of this one.
    pub(super) fn close_tiles(&mut self) {
        let Some(OpenTiles { tile, end, step, block }) = self.tiles.take() else { return };
        if self.kernel.lds_bytes > 0 && self.kernel.geometry.wave_count() > 1 {
            self.emitter.barrier(None, 0);
        }
        self.emitter.with(Opcode::SAddU32, tile, &[Scalar::Reg(tile), Scalar::Const(i64::from(step))]);
        self.emitter.op(Opcode::SCmpLtU32, &[tile, end]);
        self.emitter.push(Inst::new(Opcode::SCbranchScc1, &[]).imm(block.as_u32()));
        self.emitter.next_block(Some(block));
        self.whiles -= 1;
    }
}

pub(super) fn bad(error: ExprError) -> Diagnostic {
    Diagnostic::new(Kind::Bug, format!("the number of a tile: {error}"))
}
