//! Kernels whose loops take other iterations in each workgroup: their meaning is that of one workgroup after
//! the other, each of which has its tile of every dimension that is spread over workgroups.

use std::ops::Range;

use bevy_ecs::prelude::Entity;

use super::Interpreter;
use crate::ir::constraint::{Constraint, GridSymbol, MAX_AXES, SCALARS_OF_ITERATIONS, dim_of_iteration};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprArena, SymExpr, Symbol};
use crate::ir::facts::{Expressions, Geometry};
use crate::ir::kernel::{Constraints, DimTable};
use crate::ir::layout::Dim;
use crate::ir::node::{Body, Name, Op, Trip};
use crate::ir::walk;

/// The workgroup that runs.
#[derive(Copy, Clone, Default)]
pub(super) struct Workgroup {
    /// Its place along each axis of the grid.
    place: [i64; MAX_AXES],
    /// Workgroups along each axis.
    grid: [i64; MAX_AXES],
    /// Whether the kernel runs workgroup by workgroup, because they differ.
    alone: bool,
}

impl Workgroup {
    /// Its place along an axis.
    pub(super) fn along(&self, axis: u32) -> i64 {
        self.place.get(axis as usize).copied().unwrap_or(0)
    }

    /// What a symbol of the grid stands for.
    fn value(&self, symbol: Symbol) -> Option<i64> {
        Some(match GridSymbol::of(symbol)? {
            GridSymbol::Workgroup(axis) => self.place[axis as usize],
            GridSymbol::Size(axis) => self.grid[axis as usize],
        })
    }
}

/// A dimension that is spread over workgroups.
struct SpreadDim {
    dim: Dim,
    /// Grid axis.
    axis: u32,
    /// Elements per workgroup.
    tile: usize,
}

/// The most workgroups that run one after the other.
const MAX_WORKGROUPS: i64 = 1 << 16;

impl Interpreter<'_> {
    /// Runs the kernel's body: once on whole tensors or, if its loops differ, once for each workgroup.
    pub(super) fn body(&mut self, body: &[Entity]) -> Result<(), Diagnostic> {
        let is_chosen = |constraint: &Constraint| matches!(constraint, Constraint::Iterations { .. });
        let constraints = self.world.get::<Constraints>(self.root).map(|c| &c.0[..]).unwrap_or_default();
        let alone = self.differs();
        if !constraints.iter().any(|(constraint, _)| is_chosen(constraint)) && !alone {
            return self.region(body);
        }
        let spread = self.spread()?;
        let mut grid = [1; MAX_AXES];
        for &SpreadDim { dim, axis, tile } in &spread {
            grid[axis as usize] = (self.size(dim)?.div_ceil(tile) as i64).max(grid[axis as usize]);
        }
        self.workgroup = Workgroup { place: [0; MAX_AXES], grid, alone };
        if !alone {
            return self.region(body);
        }
        let count = grid.iter().try_fold(1i64, |all, &n| all.checked_mul(n)).unwrap_or(i64::MAX);
        if count > MAX_WORKGROUPS {
            let text = format!("{count} workgroups are too many to run one after the other");
            return Err(Diagnostic::new(Kind::Limit, text).help("use smaller sizes or larger tiles"));
        }
        for number in 0..count {
            let mut rest = number;
            let mut place = [0; MAX_AXES];
            for (along, &size) in place.iter_mut().zip(&grid) {
                (*along, rest) = (rest % size, rest / size);
            }
            self.workgroup = Workgroup { place, grid, alone };
            for &SpreadDim { dim, axis, tile } in &spread {
                let start = place[axis as usize] as usize * tile;
                self.enter(dim, start, tile)?;
            }
            self.region(body)?;
            self.loops.clear();
        }
        Ok(())
    }

    /// True if the iterations of some loop, or a value, depend on the workgroup.
    fn differs(&self) -> bool {
        let constraints = self.world.get::<Constraints>(self.root).map(|c| &c.0[..]).unwrap_or_default();
        let is_number = |node: &Entity| matches!(self.world.get::<Op>(*node), Some(Op::WorkgroupId(_)));
        let mut nodes = walk::nodes(self.world, self.root).into_iter();
        constraints.iter().any(|(constraint, _)| constraint.workgroup_axes() != 0)
            || nodes.any(|node| is_number(&node) || self.trip_differs(node))
    }

    /// True if the trips that a pass has given a loop depend on the workgroup.
    fn trip_differs(&self, node: Entity) -> bool {
        let Some(Trip { start, end }) = self.world.get::<Trip>(node) else { return false };
        let Some(expressions) = self.world.get::<Expressions>(self.root) else { return false };
        let is_number = |symbol: Symbol| matches!(GridSymbol::of(symbol), Some(GridSymbol::Workgroup(_)));
        [start, end].iter().any(|&&limit| expressions.0.symbols(limit).into_iter().any(is_number))
    }

    /// Dimensions that are spread over workgroups.
    fn spread(&self) -> Result<Vec<SpreadDim>, Diagnostic> {
        let mut spread = Vec::new();
        let dims = self.get::<DimTable>(self.root)?;
        for (constraint, _) in &self.get::<Constraints>(self.root)?.0 {
            let Constraint::Workgroup { dim, tile, axis } = constraint else { continue };
            let Some(dim) = dim.as_dimension().and_then(|symbol| dims.find(symbol)) else { continue };
            let bound = self.geometry(dim).and_then(|entry| entry.workgroup).map(|(_, tile)| tile as usize);
            let tile = match bound {
                Some(tile) => tile,
                None => {
                    usize::try_from(self.constant(tile)?).ok().filter(|&tile| tile > 0).ok_or_else(|| {
                        Diagnostic::invalid(format!(
                            "the workgroup tile of {} is not positive",
                            self.name(dim)
                        ))
                        .help("choose tiles of 1 and more elements")
                    })?
                }
            };
            if *axis as usize >= MAX_AXES {
                let fault = Diagnostic::invalid(format!("grid axis {axis} does not exist"));
                return Err(fault.help("use one of the axes 0 to 4"));
            }
            spread.push(SpreadDim { dim, axis: *axis, tile });
        }
        Ok(spread)
    }

    /// The value of an author's expression in the running workgroup.
    fn constant(&self, e: &SymExpr) -> Result<i64, Diagnostic> {
        let mut arena = ExprArena::new();
        let value = |symbol: Symbol| {
            let of_grid = self.workgroup.value(symbol).or_else(|| self.counted(symbol));
            of_grid.or_else(|| (self.sizes)(symbol))
        };
        let expr = e.intern(&mut arena).map_err(|error| error.to_string());
        let value = expr.and_then(|e| arena.evaluate(e, &value).map_err(|error| error.to_string()));
        value.map_err(|why| {
            Diagnostic::invalid(format!("{e} has no value: {why}")).help("give every symbol in it a value")
        })
    }

    /// Gives a symbol in the iterations of loops its value.
    pub(super) fn set_symbol(&mut self, symbol: Symbol, value: Entity) -> Result<(), Diagnostic> {
        let tensor = self.tensor(self.value(value)?)?;
        let &[number] = tensor.as_slice::<i32>().filter(|_| tensor.shape().is_empty()).unwrap_or_default()
        else {
            let text = format!("{symbol} is set to what is no i32 without dimensions");
            return Err(Diagnostic::invalid(text).help("iterations depend on it: set it to one number"));
        };
        let (least, most) = SCALARS_OF_ITERATIONS.into_inner();
        self.symbols.push((symbol, i64::from(number).clamp(least, most)));
        Ok(())
    }

    /// What a symbol stands for that is the name of a scalar, or the running iteration of a loop around.
    fn counted(&self, symbol: Symbol) -> Option<i64> {
        let dims = self.get::<DimTable>(self.root).ok()?;
        if dims.find(symbol).is_some() {
            return None;
        }
        if let Some(dim) = dim_of_iteration(symbol).and_then(|dim| dims.find(dim)) {
            let running = self.loops.iter().rev().find(|running| running.dim == dim)?;
            return i64::try_from(running.start / running.tile).ok();
        }
        if let Some(set) = self.symbols.iter().rev().find(|set| set.0 == symbol) {
            return Some(set.1);
        }
        let body = &self.get::<Body>(self.root).ok()?.0;
        let scalar = body.iter().find(|&&node| {
            self.world.get::<Op>(node) == Some(&Op::Scalar)
                && self.world.get::<Name>(node).is_some_and(|name| &*name.0 == symbol.name())
        })?;
        let value = self.tensor(self.value(*scalar).ok()?).ok()?;
        value.to_f64().first().map(|&value| value as i64)
    }

    /// The tiles that the loop `node` over `dim` takes, of `total`: from one to an end, and tiles from each
    /// to the next.
    pub(super) fn iterations(
        &self,
        node: Entity,
        dim: Dim,
        total: usize,
    ) -> Result<(Range<usize>, usize), Diagnostic> {
        if let Some(&Trip { start, end }) = self.world.get::<Trip>(node) {
            return self.bound_tiles(dim, (start, end));
        }
        let symbol = self.get::<DimTable>(self.root)?.0.get(dim).copied();
        let chosen =
            self.get::<Constraints>(self.root)?.0.iter().find_map(|(constraint, at)| match constraint {
                Constraint::Iterations { dim, first, count, step } if dim.as_dimension() == symbol => {
                    Some((first, count, step, *at))
                }
                _ => None,
            });
        let Some((first, count, step, at)) = chosen else { return Ok((0..total, 1)) };
        if let Some((tiles, step)) = self.bound_iterations(dim)? {
            return Ok((tiles.start.min(total)..tiles.end.min(total), step));
        }
        let anchored = |fault: Diagnostic| fault.at(self.locations().and_then(|all| all.get(at)));
        let first = self.constant(first).map_err(anchored)?;
        let end = first.saturating_add(self.constant(count).map_err(anchored)?);
        let by = self.constant(step).map_err(anchored)?;
        let steps = usize::try_from(by).ok().filter(|&step| step > 0).ok_or_else(|| {
            let fault = Diagnostic::invalid(format!("the step of loops over {} is {by}", self.name(dim)));
            anchored(fault.help("choose steps of 1 and more tiles"))
        })?;
        // Tiles before the first one that exists are steps as well.
        let first = if first < 0 { first.rem_euclid(by) } else { first };
        let first = first.min(total as i64) as usize;
        Ok((first..end.clamp(0, total as i64) as usize, steps))
    }

    /// The same as passes have bound it.
    fn bound_iterations(&self, dim: Dim) -> Result<Option<(Range<usize>, usize)>, Diagnostic> {
        let geometry = self.world.get::<Geometry>(self.root);
        let chosen = geometry.and_then(|geometry| geometry.dims.get(dim)?.iterations);
        chosen.map(|limits| self.bound_tiles(dim, limits)).transpose()
    }

    /// The tiles of iterations from one on and up to another one, as expressions of the kernel.
    fn bound_tiles(&self, dim: Dim, (first, end): (Expr, Expr)) -> Result<(Range<usize>, usize), Diagnostic> {
        let geometry = self.get::<Geometry>(self.root)?;
        let expressions = self.get::<Expressions>(self.root)?;
        // In the grid as it is unfolded here, workgroups with other numbers take other tiles: the expressions
        // ask for the numbers that the hardware gives the workgroup at this place.
        let numbers = match self.workgroup.alone {
            true => self.workgroup.numbers(geometry, expressions, self.sizes)?,
            false => [0; 3],
        };
        let value = |symbol: Symbol| match GridSymbol::of(symbol) {
            Some(GridSymbol::Workgroup(axis)) => numbers.get(axis as usize).copied(),
            Some(GridSymbol::Size(_)) | None => self.counted(symbol).or_else(|| (self.sizes)(symbol)),
        };
        let value = |e| {
            let value = expressions.0.evaluate(e, &value).ok().and_then(|value| usize::try_from(value).ok());
            value.ok_or_else(|| Diagnostic::bug("iterations that have no number"))
        };
        let (first, end) = (value(first)?, value(end)?);
        Ok(match geometry.dim(dim).step {
            None => (first..end, 1),
            Some((tile, step)) => {
                let (tile, step) = (value(tile)?, step as usize);
                (tile + first * step..tile + end * step, step)
            }
        })
    }
}

impl Workgroup {
    /// The numbers that the hardware gives the workgroup at this place.
    fn numbers(
        &self,
        geometry: &Geometry,
        expressions: &Expressions,
        sizes: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<[i64; 3], Diagnostic> {
        let [x, y, z, ..] = self.place;
        if geometry.places.is_empty() {
            return Ok([x, y, z]);
        }
        let rest: i64 = self.grid[2..].iter().product();
        let all = (0..rest).flat_map(|z| (0..self.grid[1]).map(move |y| (y, z)));
        let mut all = all.flat_map(|(y, z)| (0..self.grid[0]).map(move |x| [x, y, z]));
        let found = all.find(|numbers| {
            let value = |symbol: Symbol| match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) => numbers.get(axis as usize).copied(),
                Some(GridSymbol::Size(_)) | None => sizes(symbol),
            };
            let places = geometry.places.iter().zip(&self.place);
            places
                .into_iter()
                .all(|(&e, &at)| expressions.0.evaluate(e, &value).is_ok_and(|value| value == at))
        });
        found.ok_or_else(|| Diagnostic::bug("a place that no workgroup takes"))
    }
}
