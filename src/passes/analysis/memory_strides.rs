//! Memories with strides: what has to hold of the numbers, as far as they are known before the launch.
//!
//! `Strides` on a memory are, for each dimension, the sizes whose product is its stride. They are entered as
//! dimensions, so that a leading dimension is bound, left open, assumed of and passed like a size. Only what
//! knows bytes reads them: `mark_bounds` (how wide an access may be), lowering (`stride_factors`; the
//! descriptor ends with the last element), and launches (`runtime/placement`). Coordinates do not overlap,
//! which this file and launches see to, because masks and races are judged by place. If the last stride is
//! not 1, every access has a `Mapping` from the start (`ir/assemble`), for which no order of the dimensions
//! matters; layouts ask `in_memory_order` along which dimension elements are side by side.

use smallvec::SmallVec;

use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprArena, ExprError, SymExpr};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::passes::facts::Geometry;

/// The number of elements that a stride is the product of.
pub(in crate::passes) fn product(
    arena: &mut ExprArena,
    geometry: &Geometry,
    factors: &[Dim],
) -> Result<Expr, Diagnostic> {
    let mut factors = factors.iter();
    let product =
        factors.try_fold(Expr::ONE, |product, &factor| arena.mul(product, geometry.dim(factor).size));
    product.map_err(|error| too_large(&error))
}

/// Refuses a memory of which one coordinate certainly reaches into the elements of the next one: masks go by
/// the place of an element, and workgroups write without regard to each other. What depends on sizes that are
/// left open is checked at launch. Along a dimension of one element nothing is multiplied by the stride, so
/// it may be any number.
pub(super) fn check_strides(
    arena: &mut ExprArena,
    geometry: &Geometry,
    name: &str,
    dims: &[Dim],
    strides: &Strides,
    at: &dyn Fn() -> Option<Location>,
) -> Result<(), Diagnostic> {
    let mut known: SmallVec<[(Dim, Option<i64>); 4]> = SmallVec::new();
    for (&dim, factors) in dims.iter().zip(&strides.0) {
        if geometry.dim(dim).static_size == Some(1) {
            continue;
        }
        let stride = product(arena, geometry, factors).map_err(|fault| fault.at(at()))?;
        known.push((dim, arena.as_integer(stride)));
    }
    if strides.lie_apart() {
        if known.iter().any(|(_, stride)| stride.is_none()) {
            return Ok(());
        }
        known.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
    }
    // Elements from the first one of a coordinate to the end of its last one.
    let mut span = Some(1i64);
    for &(dim, stride) in known.iter().rev() {
        let entry = geometry.dim(dim);
        if let (Some(stride), Some(span)) = (stride, span)
            && stride < span
        {
            let text = format!(
                "{} of `{name}` has a stride of {stride} elements, and those of one coordinate take {span}",
                entry.symbol.name()
            );
            return Err(Diagnostic::invalid(text).at(at()).help(match strides.lie_apart() {
                false => "strides fall from the first dimension to the last: give the tensor's own",
                true => {
                    "the elements of one coordinate end before those of the next one: give the tensor's own"
                }
            }));
        }
        span = match (span, stride, entry.static_size) {
            (Some(span), Some(stride), Some(size)) => {
                Some(span.saturating_add(stride.saturating_mul(i64::from(size) - 1)))
            }
            _ => None,
        };
    }
    Ok(())
}

fn too_large(error: &ExprError) -> Diagnostic {
    Diagnostic::new(Kind::Limit, format!("a stride is too large: {error}")).help("use smaller strides")
}

/// The coordinates of a mapping in the order in which what they count lies in memory: along the last one,
/// elements are side by side, if they are along any.
pub(in crate::passes) fn in_memory_order(
    mapping: &Mapping,
    strides: Option<&Strides>,
) -> SmallVec<[SymExpr; 4]> {
    let mut coordinates = mapping.0.clone();
    if let Some(strides) = strides.filter(|strides| strides.lie_apart())
        && let Some(inner) = strides.0.iter().position(|factors| factors.is_empty())
        && inner < coordinates.len()
    {
        let innermost = coordinates.remove(inner);
        coordinates.push(innermost);
    }
    coordinates
}
