//! Which of the tiles of a dimension its loops take, where the author says so: the first one and how many, as
//! far as there are so many, as expressions of what is known when a workgroup starts.

use smallvec::SmallVec;

use super::facts::Geometry;
use super::options::Options;
use crate::ir::constraint::{Constraint, GridSymbol};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprArena, ExprError, SymExpr, Symbol};
use crate::ir::kernel::{DimTable, Locations};

/// Binds the expressions of `iterations` constraints, for a geometry whose workgroups have their places.
pub(super) fn bind_iterations(
    geometry: &mut Geometry,
    arena: &mut ExprArena,
    (dims, constraints): (&DimTable, &[(Constraint, u32)]),
    (options, locations): (&Options, &Locations),
) -> Result<(), Diagnostic> {
    for (constraint, origin) in constraints {
        let Constraint::Iterations { dim, first, count } = constraint else { continue };
        let at = locations.get(*origin);
        let invalid = |text: String| Diagnostic::invalid(text).at(at.clone());
        let Some(symbol) = dim.as_dimension() else {
            return Err(invalid(format!("{dim} is not a dimension")).help("constrain plain symbols"));
        };
        let known = dims.find(symbol).filter(|&dim| geometry.dim(dim).tiling.is_some());
        let Some((dim, tile)) = known.and_then(|dim| Some((dim, geometry.dim(dim).tiling?))) else {
            let text =
                format!("the iterations of loops over {symbol} are chosen, and {symbol} has no loop tile");
            return Err(invalid(text).help(format!("add tile({symbol}, elements per iteration)")));
        };
        if geometry.dim(dim).iterations.is_some() {
            return Err(invalid(format!("the iterations of loops over {symbol} are chosen twice"))
                .help("keep one of the constraints"));
        }
        let not_computed = |error: ExprError| {
            invalid(format!("the iterations over {symbol} cannot be computed: {error}"))
                .help("divide by what is not zero, and use smaller numbers or shorter expressions")
        };
        let mut bound = |e: &SymExpr| -> Result<Expr, Diagnostic> {
            let raw = e.intern(arena).map_err(not_computed)?;
            let mut values: SmallVec<[(Symbol, Expr); 8]> = SmallVec::new();
            for symbol in arena.symbols(raw) {
                let value = match GridSymbol::of(symbol) {
                    Some(GridSymbol::Workgroup(axis)) if geometry.places.is_empty() && axis < 3 => continue,
                    Some(GridSymbol::Workgroup(axis)) => geometry.places.get(axis as usize).copied(),
                    Some(GridSymbol::Size(axis)) => {
                        Some(geometry.grid.get(axis as usize).copied().unwrap_or(Expr::ONE))
                    }
                    None => match options.value(symbol) {
                        Some(value) => Some(arena.int(value)),
                        None if geometry.dynamic.contains(&symbol) => continue,
                        None => {
                            let text = format!("{e} depends on {symbol}, which has no value");
                            return Err(invalid(text).help(format!(
                                "bind it with set({symbol}, ..), or leave a dimension of this name open"
                            )));
                        }
                    },
                };
                values.push((symbol, value.unwrap_or(Expr::ZERO)));
            }
            let value = |s: Symbol| values.iter().find(|v| v.0 == s).map(|v| v.1);
            arena.substitute(raw, &mut |s: Symbol| value(s)).map_err(not_computed)
        };
        let (first, count) = (bound(first)?, bound(count)?);
        let limits = |arena: &mut ExprArena| {
            let tile = arena.int(i64::from(tile));
            let total = arena.ceil_div(geometry.dim(dim).size, tile)?;
            let end = arena.add(first, count)?;
            let upper = arena.min(first, total)?;
            let first = arena.max(upper, Expr::ZERO)?;
            let upper = arena.min(end, total)?;
            Ok((first, arena.max(upper, first)?))
        };
        let limits = limits(arena).map_err(not_computed)?;
        if geometry.dynamic.is_empty() && !fits(&geometry.grid, arena, &[limits.0, limits.1]) {
            let text = format!("the iterations over {symbol} leave the range of 32-bit integers");
            return Err(Diagnostic::new(Kind::Limit, text).at(at).help(
                "kernels count in 32 bits: limit a number before it is multiplied, or divide it first",
            ));
        }
        geometry.dims[dim].iterations = Some(limits);
    }
    Ok(())
}

/// Whether a kernel, which counts in 32 bits, gets numbers right in all workgroups of a grid and for all
/// sizes that are left open.
pub(crate) fn fits(grid: &[Expr], arena: &ExprArena, numbers: &[Expr]) -> bool {
    let symbol = |symbol: Symbol| {
        let range = match GridSymbol::of(symbol) {
            Some(GridSymbol::Workgroup(axis)) => {
                // The hardware's third axis is all of those from the third on.
                let axes = if axis < 2 { axis as usize..axis as usize + 1 } else { 2..grid.len() };
                let counts = axes.filter_map(|axis| grid.get(axis));
                let most =
                    counts.map(|&count| arena.range(count).hi.map_or(i128::from(i32::MAX), i128::from));
                return (0, most.product::<i128>().clamp(1, i128::from(i32::MAX)) - 1);
            }
            Some(GridSymbol::Size(_)) | None => arena.symbol_range(symbol),
        };
        let [lo, hi] =
            [range.lo.map_or(i32::MIN.into(), i128::from), range.hi.map_or(i32::MAX.into(), i128::from)];
        (lo, hi)
    };
    numbers.iter().all(|&e| arena.narrow_bounds(e, &symbol).is_some())
}
