//! Symbols that stand for places in the grid and for its sizes: for orders of workgroups, for iterations
//! and for launches.

use super::expr::Symbol;

/// The most axes of a grid. The hardware counts three: those from the third on share its third one.
pub(crate) const MAX_AXES: usize = 5;

/// The names of a workgroup's number and of the workgroups along each axis: every compilation asks for some.
const NAMES: [[&str; 2]; MAX_AXES] = [
    ["workgroup_0", "grid_0"],
    ["workgroup_1", "grid_1"],
    ["workgroup_2", "grid_2"],
    ["workgroup_3", "grid_3"],
    ["workgroup_4", "grid_4"],
];

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
        let (axis, what) = match self {
            GridSymbol::Workgroup(axis) => (axis, 0),
            GridSymbol::Size(axis) => (axis, 1),
        };
        match NAMES.get(axis as usize) {
            Some(names) => Symbol::new(names[what]),
            None => Symbol::new(&format!("{}_{axis}", ["workgroup", "grid"][what])),
        }
    }
}
