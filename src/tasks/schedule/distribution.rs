//! How the dimensions of a planned kernel are spread over the machine: by the class of what it computes.

use std::collections::BTreeSet;

use super::super::element::{ElementId, ElementNode};
use super::expand::KernelPlan;
use crate::kernels::RowTile;
use crate::prelude::*;

/// Longest rows that stay in registers.
const MAX_ROW: i64 = 65536;

/// Elements of a workgroup of kernels that reduce nothing.
const TILE: i64 = 4096;

/// Waves of these.
const WAVES: i64 = 4;

/// Columns of these where there are several rows.
const COLUMNS: i64 = 256;

/// Rows and columns of a tile that is turned.
const TURNED: i64 = 64;

/// Elements of a row that a loop takes at a time.
const LOOP_ROW: i64 = 1024;

/// Rows that a loop over rows takes at a time, those of a wave, and columns of a workgroup.
const LOOP_COLUMNS: (i64, i64, i64) = (128, 16, 64);

/// Grid axes that there are.
const AXES: usize = 5;

/// The part of a kernel that comes before its values.
pub(super) struct Distribution {
    pub(super) constraints: Vec<Constraint>,
    /// Dimensions that loops go through, the outermost first. Without any, what is reduced is in registers.
    pub(super) loops: Vec<Symbol>,
    /// The reads of memories that are turned on their way.
    pub(super) turned: Option<Symbol>,
}

/// How the kept dimensions are cut, the last one apart from the others.
struct Grid {
    kept: Vec<Symbol>,
    constraints: Vec<Constraint>,
}

impl Grid {
    /// Tiles of a dimension, and what a wave has of them, along the next axis.
    fn cut(&mut self, dim: Symbol, tile: i64, of_wave: Option<i64>) {
        let axis = self.kept.len() as u32;
        self.kept.push(dim);
        self.constraints.push(workgroup(dim, tile, axis));
        self.constraints.extend(of_wave.map(|of_wave| wave(dim, of_wave)));
    }
}

impl KernelPlan<'_> {
    /// The distribution of the plan's class.
    ///
    /// # Errors
    /// A plan of no class, with the reason.
    pub(super) fn distribution(
        &self,
        size: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<Distribution, Diagnostic> {
        let reduced = self.reduced();
        let written = self.outputs.iter().flat_map(|(_, dims, _)| dims.iter().copied());
        let mut kept: Vec<Symbol> = Vec::new();
        for dim in written.filter(|dim| !reduced.contains(dim)) {
            if !kept.contains(&dim) {
                kept.push(dim);
            }
        }
        if kept.len() > AXES {
            let text = format!("the outputs have {} dimensions; a grid has at most {AXES}", kept.len());
            return Err(Diagnostic::invalid(text));
        }
        let extent = |dim: Symbol| self.extent(dim).and_then(|extent| extent.value(&|symbol| size(symbol)));
        match &reduced[..] {
            [] => Ok(self.without_reductions(&kept, &extent)),
            &[row] if self.is_innermost(row) && extent(row).is_some_and(|extent| extent <= MAX_ROW) => {
                Ok(of_rows(&kept, row, extent(row).unwrap_or(1)))
            }
            _ => {
                self.check_one_pass(&reduced)?;
                Ok(self.of_loops(&kept, reduced))
            }
        }
    }

    /// The dimensions that reductions go over.
    pub(super) fn reduced(&self) -> Vec<Symbol> {
        let mut reduced: Vec<Symbol> = Vec::new();
        for element in self.used() {
            match self.elements.node(element) {
                ElementNode::Reduce { axes, .. } => reduced.extend(axes.iter().map(|axis| axis.index)),
                ElementNode::ArgReduce { axis, .. } => reduced.push(axis.index),
                _ => {}
            }
        }
        let order = |dim: &Symbol| self.dims.iter().position(|own| own.index == *dim);
        reduced.sort_by_key(order);
        reduced.dedup();
        reduced
    }

    /// True if memories have a dimension last wherever they have it.
    fn is_innermost(&self, dim: Symbol) -> bool {
        self.reads().into_iter().all(|(tensor, indices)| {
            let dims = self.plain_indices(tensor, indices);
            !dims.contains(&Some(dim)) || dims.last() == Some(&Some(dim))
        })
    }

    /// A dimension that some memory has last, while it has the last dimension of the output before.
    fn turned(&self, last: Symbol) -> Option<Symbol> {
        self.reads().into_iter().find_map(|(tensor, indices)| {
            let dims = self.plain_indices(tensor, indices);
            let innermost = (*dims.last()?)?;
            (innermost != last && dims.contains(&Some(last))).then_some(innermost)
        })
    }

    fn without_reductions(&self, kept: &[Symbol], extent: &dyn Fn(Symbol) -> Option<i64>) -> Distribution {
        let mut grid = Grid { kept: Vec::new(), constraints: Vec::new() };
        let padded = |dim: Symbol| {
            extent(dim).map(|extent| extent.max(1).unsigned_abs().next_power_of_two().cast_signed())
        };
        let turned = kept.last().and_then(|&last| self.turned(last));
        match (kept, turned) {
            ([.., last], Some(turned)) => {
                grid.cut(turned, TURNED, Some(TURNED / 2));
                grid.cut(*last, TURNED, Some(TURNED / 2));
            }
            ([.., row, last], None) => {
                let columns = padded(*last).map_or(COLUMNS, |padded| padded.min(COLUMNS));
                grid.cut(*row, TILE / columns, Some(TILE / columns / WAVES));
                grid.cut(*last, columns, Some(columns));
            }
            ([last], None) => {
                let tile = padded(*last).map_or(TILE, |padded| padded.clamp(64 * WAVES, TILE));
                grid.cut(*last, tile, Some(tile / WAVES));
            }
            ([], _) => {}
        }
        let others: Vec<Symbol> = kept.iter().copied().filter(|dim| !grid.kept.contains(dim)).collect();
        others.into_iter().for_each(|dim| grid.cut(dim, 1, None));
        Distribution { constraints: grid.constraints, loops: Vec::new(), turned }
    }

    /// True if everything that is reduced is reduced once, over all the dimensions, by one pass.
    fn check_one_pass(&self, reduced: &[Symbol]) -> Result<(), Diagnostic> {
        let refused =
            |why: &str| Diagnostic::invalid(format!("a loop over what is reduced does not do: {why}"));
        let uses = |e: &SymExpr| {
            let mut found = false;
            e.visit(&mut |symbol| found |= reduced.contains(&symbol));
            found
        };
        let dims_of = self.dims_of_all();
        let mut outside: Vec<ElementId> = self.outputs.iter().map(|output| output.2).collect();
        let mut seen = BTreeSet::new();
        while let Some(element) = outside.pop() {
            if !seen.insert(element) {
                continue;
            }
            let is_reduction = |node: &ElementNode| {
                matches!(node, ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. })
            };
            match self.elements.node(element) {
                ElementNode::Reduce { axes, body, .. } => {
                    let all = reduced.iter().all(|dim| axes.iter().any(|axis| axis.index == *dim));
                    if !all || self.elements.any(*body, &mut { is_reduction }) {
                        return Err(refused("reductions go over different dimensions, or over one another"));
                    }
                }
                ElementNode::ArgReduce { axis, body, .. } => {
                    if *reduced != [axis.index] || self.elements.any(*body, &mut { is_reduction }) {
                        return Err(refused("reductions go over different dimensions, or over one another"));
                    }
                }
                ElementNode::Index(e) if uses(e) => {
                    return Err(refused("an output has a dimension that is reduced"));
                }
                node => {
                    if dims_of[&element].iter().any(|dim| reduced.contains(dim)) {
                        return Err(refused("an output has a dimension that is reduced"));
                    }
                    node.operands(|operand| outside.push(operand));
                }
            }
        }
        let written = self.outputs.iter().any(|(_, dims, _)| dims.iter().any(|dim| reduced.contains(dim)));
        if written { Err(refused("an output has a dimension that is reduced")) } else { Ok(()) }
    }

    fn of_loops(&self, kept: &[Symbol], reduced: Vec<Symbol>) -> Distribution {
        let mut grid = Grid { kept: Vec::new(), constraints: Vec::new() };
        let innermost = reduced.iter().copied().find(|&dim| self.is_innermost(dim) && self.is_read(dim));
        let (step, of_wave, columns) = LOOP_COLUMNS;
        // The dimension of which a tile has many elements.
        let long = innermost.or(reduced.last().copied());
        match (innermost, kept) {
            (Some(row), [.., last]) => {
                grid.cut(*last, WAVES, Some(1));
                grid.constraints.extend([tile(row, LOOP_ROW), wave(row, LOOP_ROW)]);
            }
            (Some(row), []) => grid.constraints.extend([tile(row, LOOP_ROW), wave(row, LOOP_ROW / WAVES)]),
            (None, [.., last]) => {
                grid.cut(*last, columns, None);
                grid.constraints
                    .extend(long.into_iter().flat_map(|long| [tile(long, step), wave(long, of_wave)]));
            }
            (None, []) => grid.constraints.extend(long.map(|long| tile(long, step))),
        }
        let others: Vec<Symbol> = kept.iter().copied().filter(|dim| !grid.kept.contains(dim)).collect();
        others.into_iter().for_each(|dim| grid.cut(dim, 1, None));
        let outer = reduced.iter().copied().filter(|dim| Some(*dim) != long);
        grid.constraints.extend(outer.clone().map(|dim| tile(dim, 1)));
        Distribution { constraints: grid.constraints, loops: outer.chain(long).collect(), turned: None }
    }

    /// True if some memory has this dimension.
    fn is_read(&self, dim: Symbol) -> bool {
        self.reads()
            .into_iter()
            .any(|(tensor, indices)| self.plain_indices(tensor, indices).contains(&Some(dim)))
    }
}

/// Whole rows in the registers of waves.
fn of_rows(kept: &[Symbol], row: Symbol, extent: i64) -> Distribution {
    let rows = RowTile::of(extent);
    let mut grid = Grid { kept: Vec::new(), constraints: Vec::new() };
    if let Some(&last) = kept.last() {
        grid.cut(last, rows.rows, Some(rows.wave_rows));
    }
    grid.constraints.push(wave(row, rows.wave_columns));
    kept.iter().rev().skip(1).for_each(|&dim| grid.cut(dim, 1, None));
    Distribution { constraints: grid.constraints, loops: Vec::new(), turned: None }
}
