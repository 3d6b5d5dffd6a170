//! The order of workgroups that suits a grid and a chip: which of those that are known brings the fewest
//! elements into the L2 of a die.
//!
//! Tiles along grid axis 0 are rows, and those along axis 1 columns. What the workgroups of a die read at a
//! time are the rows and the columns of their tiles, each once, because L2 keeps it while they run. The
//! hardware deals workgroups to dies in turns, so that a die has few rows where their number is a multiple of
//! the dies', and nearly all of them where it is odd: 31 x 31 tiles of 256 x 256 x 64 bring 39 rows and
//! columns on MI355X then and 12 in groups of four rows, which is 2316 and 2072 clk a trip in time mode.

use smallvec::SmallVec;

use crate::codegen::target::{DeviceModel, DeviceParameter, Target};
use crate::ir::expr::ExprArena;
use crate::passes::facts::Geometry;

/// The hardware's order stays unless it brings more than so many halves of what another one does: places cost
/// a workgroup some hundred clk of scalar arithmetic before its first load. With three rows and columns for
/// two (16 x 16 tiles on eight dies) that is more than the order gains.
const HALVES: u64 = 3;

/// The largest group that is tried.
const MOST_ROWS: u64 = 32;

/// An order that suits better than the hardware's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct SuitableOrder {
    /// Dies that take turns.
    pub(super) dies: u32,
    /// Rows of a group.
    pub(super) rows: u32,
}

/// Workgroups that run at the same time, and what they read.
struct RunningWorkgroups {
    /// Rows and columns of tiles.
    grid: [u64; 2],
    /// Elements of a tile along both.
    tile: [u64; 2],
    count: u64,
    dies: u64,
}

/// The order that suits the grid on a chip, unless it is the hardware's, or the grid is not known.
pub(super) fn suitable_order(
    geometry: &Geometry,
    arena: &ExprArena,
    target: Target,
) -> Option<SuitableOrder> {
    let sizes: Option<SmallVec<[u64; 3]>> =
        geometry.grid.iter().map(|&count| u64::try_from(arena.as_integer(count)?).ok()).collect();
    let sizes = sizes?;
    let (&[rows, columns], others) = sizes.split_first_chunk::<2>()?;
    let device = DeviceModel::nearest(target);
    let [units, dies] =
        [DeviceParameter::ComputeUnits, DeviceParameter::Dies].map(|parameter| device.count(parameter));
    let in_plane = rows * columns;
    let at_once = units.min(geometry.persistent.map_or(u64::MAX, u64::from));
    // Workgroups of several planes share nothing, and a plane begins with the first die in all orders.
    let is_one_plane =
        others.iter().product::<u64>() == 1 || in_plane >= at_once && in_plane.is_multiple_of(dies.max(1));
    let along = |axis: u32| {
        let tiles = geometry.dims.values().filter_map(|dim| dim.workgroup);
        tiles.filter(|tile| tile.0 == axis).map(|tile| u64::from(tile.1)).product()
    };
    let running = RunningWorkgroups {
        grid: [rows, columns],
        tile: [along(0), along(1)],
        count: at_once.min(in_plane),
        dies: dies.max(1),
    };
    is_one_plane.then(|| running.suitable_order()).flatten()
}

impl RunningWorkgroups {
    fn suitable_order(&self) -> Option<SuitableOrder> {
        let sizes = (0..=MOST_ROWS.ilog2()).map(|power| 1 << power).filter(|&rows| rows <= self.grid[0]);
        let rows = sizes.min_by_key(|&rows| self.in_groups(rows))?;
        let gains = 2 * self.in_turns() > HALVES * self.in_groups(rows);
        gains.then_some(SuitableOrder { dies: self.dies as u32, rows: rows as u32 })
    }

    /// Elements of rows and columns of so many tiles.
    fn elements(&self, rows: u64, columns: u64) -> u64 {
        rows * self.tile[0] + columns * self.tile[1]
    }

    /// Elements that a die brings which has tiles in groups of so many rows.
    fn in_groups(&self, rows: u64) -> u64 {
        let tiles = self.count.div_ceil(self.dies);
        let groups = tiles.div_ceil(rows * self.grid[1]);
        self.elements((groups * rows).min(self.grid[0]), tiles.div_ceil(rows).min(self.grid[1]))
    }

    /// Elements that the first die brings in the hardware's order.
    fn in_turns(&self) -> u64 {
        let (mut rows, mut columns) = (SmallVec::<[u64; 64]>::new(), 0);
        let mut last = None;
        for number in (0..self.count).step_by(self.dies as usize) {
            let (row, column) = (number % self.grid[0], number / self.grid[0]);
            if !rows.contains(&row) {
                rows.push(row);
            }
            columns += u64::from(last != Some(column));
            last = Some(column);
        }
        self.elements(rows.len() as u64, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(grid: [u64; 2], count: u64, dies: u64) -> Option<u32> {
        let running = RunningWorkgroups { grid, tile: [256, 256], count, dies };
        running.suitable_order().map(|order| order.rows)
    }

    #[test]
    fn the_hardware_deals_rows_well_where_they_are_a_multiple_of_the_dies() {
        assert_eq!(order([32, 32], 256, 8), None);
        assert_eq!(order([16, 16], 256, 8), None);
        assert_eq!(order([31, 31], 256, 8), Some(4));
        assert_eq!(order([33, 33], 304, 8), Some(8));
        // Few workgroups share nothing that another order would let them share.
        assert_eq!(order([4, 4], 16, 8), None);
    }

    #[test]
    fn one_die_takes_groups_of_a_tall_grid() {
        assert_eq!(order([200, 20], 104, 1), Some(8));
        assert_eq!(order([10, 200], 104, 1), None);
    }

    #[test]
    fn rows_that_are_taller_than_columns_are_wide_come_in_smaller_groups() {
        let running = RunningWorkgroups { grid: [31, 31], tile: [256, 64], count: 256, dies: 8 };
        assert_eq!(running.suitable_order(), Some(SuitableOrder { dies: 8, rows: 2 }));
    }
}
