//! Which of the tiles of a dimension its loops take, where the author says so: the first one and how many, as
//! far as there are so many, as expressions of what is known when a workgroup starts.
//!
//! The constraint `iterations` becomes the first and the end of a loop's trips (`DimGeometry::iterations`).
//! `peel_remainders` divides them between the loop and its remainder; from there on they are a `Trip` like
//! any other, so that all schedules take them. The interpreter of whole tensors runs such a kernel workgroup
//! by workgroup, each as if it stood in loops over what is spread.
//!
//! A scalar in them is a symbol of its name, and the running iteration of a loop around is the symbol
//! `iteration_M` (`constraint::iteration_symbol`). Lowering gives both their registers, and a launch refuses
//! scalars of which sums would not fit into 32 bits (`LaunchExpressions::counted`). A value that such a
//! symbol is set to is `Op::SetSymbol`, a node in its place, at which the interpreter and lowering note the
//! number (`v_readfirstlane`, limited as scalars are).
//!
//! With a step iterations are counted, and `DimGeometry::step` says which tile each takes. Trips, schedules
//! and copies of LDS know nothing of it: only offsets and places ask for tiles.

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::binder::{Binder, plain_symbol};
use crate::ir::constraint::{Constraint, GridSymbol, SCALARS_OF_ITERATIONS, dim_of_iteration};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprArena, ExprError, NumberBounds, SymExpr, Symbol};
use crate::ir::kernel::MAX_SIZE;
use crate::ir::layout::Dim;
use crate::ir::node::{Body, Op};
use crate::passes::facts::Geometry;

/// Tiles from one iteration to the next.
const STEPS: std::ops::RangeInclusive<i64> = 1..=1 << 20;

/// Binds the expressions of `iterations` constraints, for a geometry whose workgroups have their places.
/// `scalars` are the symbols that get their numbers while the kernel runs.
pub(super) fn bind_iterations(
    binder: &mut Binder,
    geometry: &mut Geometry,
    scalars: &[Symbol],
) -> Result<(), Diagnostic> {
    for (constraint, origin) in binder.constraints {
        let Constraint::Iterations { dim, first, count, step } = constraint else { continue };
        let at = binder.locations.get(*origin);
        let symbol = plain_symbol(dim, at.clone())?;
        let mut chosen = Chosen { symbol, at, scalars, geometry: &*geometry, binder: &mut *binder };
        let (dim, tile) = chosen.loop_tile()?;
        chosen.assume_scalars(first)?;
        chosen.assume_scalars(count)?;
        let (first, count, step) = (chosen.bound(first)?, chosen.bound(count)?, chosen.bound(step)?);
        let steps = chosen.known_step(step)?;
        let size = geometry.dim(dim).size;
        let limits = limits(chosen.binder.arena, (size, tile), (first, count), (step, steps));
        let (start, end, step) = limits.map_err(|error| chosen.not_computed(error))?;
        chosen.check_range(&[start, end, step.map_or(start, |(first, _)| first)])?;
        geometry.dims[dim].iterations = Some((start, end));
        geometry.dims[dim].step = step;
    }
    Ok(())
}

/// The iterations that a constraint chooses, while they are bound.
struct Chosen<'a, 'b> {
    /// The dimension of the loops.
    symbol: Symbol,
    /// The place of the constraint.
    at: Option<Location>,
    scalars: &'a [Symbol],
    geometry: &'a Geometry,
    binder: &'a mut Binder<'b>,
}

impl Chosen<'_, '_> {
    fn invalid(&self, text: String) -> Diagnostic {
        Diagnostic::invalid(text).at(self.at.clone())
    }

    fn not_computed(&self, error: ExprError) -> Diagnostic {
        self.invalid(format!("the iterations over {} cannot be computed: {error}", self.symbol))
            .help("divide by what is not zero, and use smaller numbers or shorter expressions")
    }

    /// The dimension, and its elements per iteration.
    fn loop_tile(&self) -> Result<(Dim, u32), Diagnostic> {
        let symbol = self.symbol;
        let known = self.binder.dims.find(symbol);
        let tiled = known.and_then(|dim| Some((dim, self.geometry.dim(dim).tiling?)));
        let Some((dim, tile)) = tiled else {
            let text =
                format!("the iterations of loops over {symbol} are chosen, and {symbol} has no loop tile");
            return Err(self.invalid(text).help(format!("add tile({symbol}, elements per iteration)")));
        };
        if self.geometry.dim(dim).iterations.is_some() {
            let text = format!("the iterations of loops over {symbol} are chosen twice");
            return Err(self.invalid(text).help("keep one of the constraints"));
        }
        Ok((dim, tile))
    }

    /// Assumes the range of the scalars in an expression.
    fn assume_scalars(&mut self, expr: &SymExpr) -> Result<(), Diagnostic> {
        let mut assumed = Ok(());
        expr.visit(&mut |symbol| {
            if self.scalars.contains(&symbol) && assumed.is_ok() {
                assumed = self.binder.arena.assume_range(symbol, SCALARS_OF_ITERATIONS);
            }
        });
        assumed.map_err(|error| self.not_computed(error))
    }

    /// An expression of what is known when a workgroup starts.
    fn bound(&mut self, expr: &SymExpr) -> Result<Expr, Diagnostic> {
        let raw = expr.intern(self.binder.arena).map_err(|error| self.not_computed(error))?;
        let geometry = self.geometry;
        let mut values: SmallVec<[(Symbol, Expr); 8]> = SmallVec::new();
        for symbol in self.binder.arena.symbols(raw) {
            let value = match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) if geometry.places.is_empty() && axis < 3 => continue,
                Some(GridSymbol::Workgroup(axis)) => geometry.places.get(axis as usize).copied(),
                Some(GridSymbol::Size(axis)) => {
                    Some(geometry.grid.get(axis as usize).copied().unwrap_or(Expr::ONE))
                }
                None if self.runs(symbol) => continue,
                None => match self.binder.options.value(symbol) {
                    Some(value) => Some(self.binder.arena.int(value)),
                    None if geometry.dynamic.contains(&symbol) => continue,
                    None => {
                        let text = format!("{expr} depends on {symbol}, which has no value");
                        return Err(self.invalid(text).help(format!(
                            "bind it with set({symbol}, ..), or leave a dimension of this name open"
                        )));
                    }
                },
            };
            values.push((symbol, value.unwrap_or(Expr::ZERO)));
        }
        let value = |s: Symbol| values.iter().find(|v| v.0 == s).map(|v| v.1);
        let bound = self.binder.arena.substitute(raw, &mut |s: Symbol| value(s));
        bound.map_err(|error| self.not_computed(error))
    }

    /// True of symbols that get their numbers while the kernel runs: scalars, and iterations of loops around.
    fn runs(&self, symbol: Symbol) -> bool {
        self.scalars.contains(&symbol)
            || dim_of_iteration(symbol).is_some_and(|dim| self.binder.dims.find(dim).is_some())
    }

    /// The number of a step.
    fn known_step(&self, step: Expr) -> Result<u32, Diagnostic> {
        let steps = self.binder.arena.as_integer(step).filter(|step| STEPS.contains(step));
        steps.and_then(|step| u32::try_from(step).ok()).ok_or_else(|| {
            let symbol = self.symbol;
            let text = format!("the step of loops over {symbol} is not a number from 1 to {}", STEPS.end());
            self.invalid(text).help("give a number, or a symbol that is set when the kernel is compiled")
        })
    }

    /// Checks that 32 bits hold the numbers if all sizes are known.
    fn check_range(&self, numbers: &[Expr]) -> Result<(), Diagnostic> {
        if !self.geometry.dynamic.is_empty() || iterations_fit(self.geometry, self.binder.arena, numbers) {
            return Ok(());
        }
        let text = format!("the iterations over {} leave the range of 32-bit integers", self.symbol);
        Err(Diagnostic::new(Kind::Limit, text)
            .at(self.at.clone())
            .help("kernels count in 32 bits: limit a number before it is multiplied, or divide it first"))
    }
}

/// Start, end, and for steps of more than a tile the first tile and the step.
type IterationLimits = (Expr, Expr, Option<(Expr, u32)>);

/// The limits of a loop: as much of `count` iterations
/// from `first` on as a dimension of so many elements has.
fn limits(
    arena: &mut ExprArena,
    (size, tile): (Expr, u32),
    (first, count): (Expr, Expr),
    (step, steps): (Expr, u32),
) -> Result<IterationLimits, ExprError> {
    let tile = arena.int(i64::from(tile));
    let total = arena.ceil_div(size, tile)?;
    let end = arena.add(first, count)?;
    // In the order in which they are printed, so that a text gives the same expressions.
    if steps == 1 {
        let upper = arena.min(first, total)?;
        let first = arena.max(upper, Expr::ZERO)?;
        let upper = arena.min(end, total)?;
        return Ok((first, arena.max(upper, first)?, None));
    }
    // Of negative numbers the first one that steps lead to and that exists.
    let least = arena.modulo(first, step)?;
    let first = arena.max(first, least)?;
    let first = arena.min(first, total)?;
    let upper = arena.min(end, total)?;
    let end = arena.max(upper, first)?;
    let tiles = arena.sub(end, first)?;
    Ok((Expr::ZERO, arena.ceil_div(tiles, step)?, Some((first, steps))))
}

/// The least and the largest that a symbol of iterations can be: a number of an iteration of a loop around, a
/// scalar, or a size.
pub(crate) fn bounds_of(geometry: &Geometry, arena: &ExprArena, symbol: Symbol) -> (i64, i64) {
    let around =
        dim_of_iteration(symbol).and_then(|around| geometry.dims.values().find(|dim| dim.symbol == around));
    if let Some(around) = around {
        let most = arena.range(around.size).hi.unwrap_or(MAX_SIZE);
        return (0, (most - 1) / i64::from(around.tiling.unwrap_or(1)));
    }
    let range = arena.symbol_range(symbol);
    (range.lo.unwrap_or(i32::MIN.into()), range.hi.unwrap_or(i32::MAX.into()))
}

/// As [`fits`], of iterations.
pub(crate) fn iterations_fit(geometry: &Geometry, arena: &ExprArena, numbers: &[Expr]) -> bool {
    fits_within(&geometry.grid, arena, numbers, &|symbol| {
        let (lo, hi) = bounds_of(geometry, arena, symbol);
        (lo.into(), hi.into())
    })
}

/// Checks that loops whose iterations depend on those of another one are inside of it: as the constraints say
/// it, whatever is left of that for the sizes at hand.
pub(super) fn check_nesting(
    body: &Body,
    geometry: &Geometry,
    constraints: &[(Constraint, u32)],
    bodies: &impl Fn(Entity) -> Option<(Op, Option<Body>)>,
    around: &mut SmallVec<[Symbol; 4]>,
) -> Result<(), (Entity, Diagnostic)> {
    for &node in &body.0 {
        let Some((op, Some(body))) = bodies(node) else { continue };
        let Some(dim) = op.over_tiles() else {
            check_nesting(&body, geometry, constraints, bodies, around)?;
            continue;
        };
        let dim = geometry.dim(dim).symbol;
        let chosen = constraints.iter().filter_map(|(constraint, _)| {
            let Constraint::Iterations { dim: of, first, count, .. } = constraint else { return None };
            (of.as_dimension() == Some(dim)).then_some([first, count])
        });
        let mut missing = None;
        for expr in chosen.flatten() {
            expr.visit(&mut |symbol| {
                let outer = dim_of_iteration(symbol).filter(|outer| !around.contains(outer));
                missing = missing.or(outer);
            });
        }
        if let Some(outer) = missing {
            let text =
                format!("the iterations over {dim} depend on those over {outer}, and are not inside of them");
            let fault = Diagnostic::invalid(text);
            return Err((node, fault.help(format!("loop over {dim} inside of a loop over {outer}"))));
        }
        around.push(dim);
        check_nesting(&body, geometry, constraints, bodies, around)?;
        around.pop();
    }
    Ok(())
}

/// Whether a kernel, which counts in 32 bits, gets numbers right in all workgroups of a grid and for all
/// sizes that are left open.
pub(crate) fn fits(grid: &[Expr], arena: &ExprArena, numbers: &[Expr]) -> bool {
    fits_within(grid, arena, numbers, &|symbol| {
        let range = arena.symbol_range(symbol);
        (range.lo.map_or(i32::MIN.into(), i128::from), range.hi.map_or(i32::MAX.into(), i128::from))
    })
}

/// The same for symbols within bounds.
fn fits_within(
    grid: &[Expr],
    arena: &ExprArena,
    numbers: &[Expr],
    bounds: &impl Fn(Symbol) -> NumberBounds,
) -> bool {
    let symbol = |symbol: Symbol| match GridSymbol::of(symbol) {
        Some(GridSymbol::Workgroup(axis)) => {
            // The hardware's third axis is all of those from the third on.
            let axes = if axis < 2 { axis as usize..axis as usize + 1 } else { 2..grid.len() };
            let counts = axes.filter_map(|axis| grid.get(axis));
            let most = counts.map(|&count| arena.range(count).hi.map_or(i128::from(i32::MAX), i128::from));
            (0, most.product::<i128>().clamp(1, i128::from(i32::MAX)) - 1)
        }
        Some(GridSymbol::Size(_)) | None => bounds(symbol),
    };
    numbers.iter().all(|&e| arena.narrow_bounds(e, &symbol).is_some())
}
