//! Constraints: how the dimensions of a kernel are spread over the machine, kept apart from what the kernel
//! computes.

use super::expr::SymExpr;
use super::layout::Mma;

/// One distribution constraint, hardware fact or assumption, as the author states it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constraint {
    /// A workgroup covers `tile` elements of `dim`; tiles go along grid axis `axis` (0 to 2).
    Workgroup {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per workgroup.
        tile: SymExpr,
        /// Grid axis.
        axis: u32,
    },
    /// Loops over `dim` take `tile` elements per iteration.
    Tiling {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per iteration.
        tile: SymExpr,
    },
    /// A wave covers `tile` elements of `dim` inside its workgroup's tile.
    Wave {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per wave.
        tile: SymExpr,
    },
    /// The matrix instruction of `mma` nodes that do not choose their own.
    MmaType(Mma),
    /// A symbol is a multiple of a constant.
    Divisible {
        /// The symbol.
        symbol: SymExpr,
        /// What divides it.
        by: u32,
    },
    /// A symbol is at least a constant.
    AtLeast {
        /// The symbol.
        symbol: SymExpr,
        /// Its smallest value.
        least: i64,
    },
}

/// A workgroup covers `tile` elements of `dim` along grid axis `axis`. A dimension whose size is a number is
/// named by it, here and in the other constraints: `workgroup(64, 32, 0)` spreads the 64 of a shape `[M,
/// 64]`.
///
/// A memory without `dim` belongs to all workgroups along it, whatever their number: they may all store the
/// same value to it, once, but not update it, and no `mma` may sum over `dim`. Making a kernel that does is
/// an error.
pub fn workgroup(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>, axis: u32) -> Constraint {
    Constraint::Workgroup { dim: dim.into(), tile: tile.into(), axis }
}

/// Loops over `dim` take `tile` elements per iteration.
pub fn tile(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>) -> Constraint {
    Constraint::Tiling { dim: dim.into(), tile: tile.into() }
}

/// A wave covers `tile` elements of `dim`.
pub fn wave(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>) -> Constraint {
    Constraint::Wave { dim: dim.into(), tile: tile.into() }
}

/// `symbol` is a multiple of `by`.
pub fn assume_divisible(symbol: impl Into<SymExpr>, by: u32) -> Constraint {
    Constraint::Divisible { symbol: symbol.into(), by }
}

/// `symbol` is at least `least`.
pub fn assume_at_least(symbol: impl Into<SymExpr>, least: i64) -> Constraint {
    Constraint::AtLeast { symbol: symbol.into(), least }
}
