//! Symbols that stand for places in the grid and for its sizes: for orders of workgroups, for iterations
//! and for launches.

use super::expr::Symbol;

/// The most axes of a grid. The hardware counts three: those from the third on share its third one.
pub(crate) const MAX_AXES: usize = 5;

/// What a symbol stands for in the expressions of an order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum GridSymbol {
    /// The number of the workgroup along an axis.
    Workgroup(u32),
    /// Workgroups along an axis.
    Size(u32),
}

impl GridSymbol {
    /// What a symbol stands for, if it is one of the grid.
    pub(crate) fn of(symbol: Symbol) -> Option<GridSymbol> {
        let (what, axis) = symbol.name().rsplit_once('_')?;
        let axis = axis.parse().ok().filter(|&axis| (axis as usize) < MAX_AXES)?;
        let grid = match what {
            "workgroup" => GridSymbol::Workgroup(axis),
            "grid" => GridSymbol::Size(axis),
            _ => return None,
        };
        Some(grid).filter(|grid| grid.symbol() == symbol)
    }

    /// Its symbol.
    pub(crate) fn symbol(self) -> Symbol {
        Symbol::new(&match self {
            GridSymbol::Workgroup(axis) => format!("workgroup_{axis}"),
            GridSymbol::Size(axis) => format!("grid_{axis}"),
        })
    }
}
