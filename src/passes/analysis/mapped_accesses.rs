//! Mapped accesses in passes: their types, the sizes in their expressions, and where their coordinates can be
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
use crate::ir::mapping::{Mapping, is_value};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::facts::Geometry;
use crate::passes::options::Options;

/// The coordinate along a scaled dimension at a coordinate along its base.
pub(in crate::passes) fn block_of(base: Symbol, by: u32) -> SymExpr {
    base / i64::from(by)
}

/// The type of the value of a mapped access.
///
/// # Errors
/// Coordinates or operands that do not fit.
pub(in crate::passes) fn checked(
    op: Op,
    own: &ValueType,
    mapping: &Mapping,
    operands: &[&ValueType],
    show: &dyn Fn(&ValueType) -> String,
) -> Result<ValueType, Diagnostic> {
    let wrong = |text: String, help: &str| Diagnostic::invalid(text).help(help);
    let Some((&memory, others)) = operands.split_last() else {
        return Err(Diagnostic::bug("an access without memory"));
    };
    let Some((written, others)) = others.split_at_checked(op.values_in_front()) else {
        return Err(Diagnostic::bug("a write without value"));
    };
    let value = match written.first() {
        Some(&value) => value.clone(),
        None => ValueType { dtype: memory.dtype, ..own.clone() },
    };
    if value.dims.is_empty() {
        let text = format!("a mapped access of a value {}", show(&value));
        return Err(wrong(text, "the value of a mapped access has at least one dimension"));
    }
    if value.dtype != memory.dtype {
        let text = format!("a value {} is written to a memory {}", show(&value), show(memory));
        return Err(wrong(text, "cast the value"));
    }
    if mapping.0.len() != memory.dims.len() {
        let given = match mapping.0.len() {
            1 => "1 coordinate is".to_owned(),
            count => format!("{count} coordinates are"),
        };
        let text = format!("{given} given for a memory {}", show(memory));
        return Err(wrong(text, "give a coordinate for each dimension of the memory, in its order"));
    }
    for &other in others {
        if other.dtype != Some(DType::I32) {
            let text = format!("a coordinate is made of a value {}", show(other));
            return Err(wrong(text, "values in coordinates are i32: cast it"));
        }
        if other.dims.iter().any(|dim| !value.dims.contains(dim)) {
            let text = format!("a coordinate of a value {} is made of a value {}", show(&value), show(other));
            return Err(wrong(
                text,
                "values in coordinates have dimensions of the value that is accessed only",
            ));
        }
    }
    Ok(value)
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

/// The symbol of a coordinate along a dimension of which `symbol` is the size.
fn coordinate_symbol(symbol: Symbol) -> Symbol {
    Symbol::new(&format!("at {}", symbol.name()))
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
    let mut coordinates: SmallVec<[(Symbol, Symbol); 4]> = SmallVec::new();
    for &dim in value {
        let entry = geometry.dim(dim);
        let at = coordinate_symbol(entry.symbol);
        // What cannot be assumed is not known, and then masks say it at run time.
        let last = entry.static_size.map_or(i64::from(i32::MAX), i64::from) - 1;
        let _ = arena.assume_range(at, 0..=last);
        coordinates.push((entry.symbol, at));
    }
    mapping.visit(&mut |symbol| {
        if is_value(symbol) {
            let _ = arena.assume_range(symbol, i64::from(i32::MIN)..=i64::from(i32::MAX));
        }
    });
    let named =
        mapping.replaced(&|symbol| coordinates.iter().find(|c| c.0 == symbol).map(|c| SymExpr::from(c.1)));
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
            value
                .iter()
                .any(|&v| coordinate_symbol(geometry.dim(v).symbol) == symbol && geometry.dim(v).size == size)
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
    let left = arena.sub(size, e)?;
    Ok(arena.range(e).at_least(0) && arena.range(left).at_least(1))
}
