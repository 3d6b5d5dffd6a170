//! Mapped accesses in passes: the sizes in their expressions, and where their coordinates can be
//! outside of the memory.
//!
//! A mapped access is a read or write with a `Mapping` (`ir/mapping.rs`). The value is laid out as its users
//! want, the operands as the access. `mark_bounds` says which coordinates can be outside; promotion loads a
//! tile of the value; `codegen/lower/addresses/mapped.rs` makes the addresses. Memories whose offsets the
//! algebra does not bound have less than 2 GiB.

use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Atom, Expr, ExprArena, ExprError, SymExpr, Symbol};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, OPERAND_RANGE, coordinate_along, is_certainly_inside, is_value};
use crate::passes::facts::Geometry;
use crate::passes::options::Options;

/// The coordinate along a scaled dimension at a coordinate along its base.
pub(in crate::passes) fn block_of(base: Symbol, by: u32) -> SymExpr {
    base / i64::from(by)
}

/// The mapping with numbers in place of sizes that are known. What is left are the dimensions of the value,
/// its other operands, and sizes that are open until launch.
///
/// # Errors
/// Sizes without a value.
pub(super) fn with_sizes(
    mapping: &Mapping,
    value: &[Dim],
    geometry: &Geometry,
    options: &Options,
) -> Result<Mapping, Diagnostic> {
    let is_coordinate = |symbol: Symbol| value.iter().any(|&dim| geometry.dim(dim).symbol == symbol);
    // The blocks of an open size.
    let blocks = |symbol: Symbol| {
        let (base, by) = symbol.scaled_from()?;
        let is_open = geometry.dynamic.contains(&base) && !is_coordinate(base);
        is_open.then(|| SymExpr::from(base).ceil_div(i64::from(by)))
    };
    let mut missing = None;
    mapping.visit(&mut |symbol| {
        let known = is_value(symbol) || is_coordinate(symbol) || options.value(symbol).is_some();
        if !known && blocks(symbol).is_none() && !geometry.dynamic.contains(&symbol) {
            missing = Some(symbol);
        }
    });
    if let Some(symbol) = missing {
        let text = format!("{symbol} stands in a coordinate and has no value");
        let open = options.dynamic_symbols().contains(&symbol);
        let help = match open {
            true => format!("bind it with set({symbol}, ..): only dimensions of memories can be left open"),
            false => format!("bind it with set({symbol}, ..), or use a dimension of the value"),
        };
        return Err(Diagnostic::invalid(text).help(help).about(symbol));
    }
    Ok(mapping.replaced(&|symbol| match is_value(symbol) || is_coordinate(symbol) {
        true => None,
        false => options.value(symbol).map(SymExpr::from).or_else(|| blocks(symbol)),
    }))
}

/// Dimensions of a memory along which the coordinates of a mapped access can be outside of it, where the
/// element itself is inside of the value's dimensions.
pub(in crate::passes) fn outside(
    arena: &mut ExprArena,
    geometry: &Geometry,
    mapping: &Mapping,
    value: &[Dim],
    memory: &[Dim],
) -> SmallVec<[Dim; 4]> {
    let coordinates: SmallVec<[(Dim, Symbol); 4]> = value
        .iter()
        .map(|&dim| {
            let (_, range) = coordinate_along(geometry, dim);
            // Not the symbol that lowering takes: its expressions would be there before it, and stand in
            // another order than in a kernel that was read after this pass.
            let symbol = Symbol::new(&format!("at {}", geometry.dim(dim).symbol.name()));
            // What cannot be assumed is not known, and then masks say it at run time.
            let _ = arena.assume_range(symbol, range);
            (dim, symbol)
        })
        .collect();
    mapping.visit(&mut |symbol| {
        if is_value(symbol) {
            let _ = arena.assume_range(symbol, OPERAND_RANGE);
        }
    });
    let named = mapping.over(geometry, coordinates.iter().copied());
    let mut outside = SmallVec::new();
    for ((coordinate, &dim), written) in named.0.iter().zip(memory).zip(&mapping.0) {
        // The block of an element exists as the element does.
        let is_block = geometry.dim(dim).scaled_from.is_some_and(|(base, by)| {
            value.contains(&base) && *written == block_of(geometry.dim(base).symbol, by)
        });
        if is_block {
            continue;
        }
        let size = geometry.dim(dim).size;
        let own = |symbol: Symbol| {
            coordinates.iter().any(|known| known.1 == symbol && geometry.dim(known.0).size == size)
        };
        let inside = coordinate.intern(arena).and_then(|e| is_inside(arena, e, size, &own));
        if !inside.unwrap_or(false) {
            outside.push(dim);
        }
    }
    outside
}

/// Whether `0 <= e < size` is certain; `own` tells coordinates along dimensions of that size.
fn is_inside(
    arena: &mut ExprArena,
    e: Expr,
    size: Expr,
    own: &dyn Fn(Symbol) -> bool,
) -> Result<bool, ExprError> {
    match arena.as_atom(e) {
        Some(Atom::Mod(_, divisor)) if divisor == size && arena.range(size).at_least(1) => return Ok(true),
        Some(Atom::Symbol(symbol)) if own(symbol) => return Ok(true),
        _ => {}
    }
    is_certainly_inside(arena, e, size)
}
