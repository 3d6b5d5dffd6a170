//! Memories with strides: what has to hold of the numbers, as far as they are known before the launch.

use super::facts::Geometry;
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;

/// The number of elements that a stride is the product of.
pub(super) fn product(
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
/// left open is checked at launch.
pub(super) fn check_strides(
    arena: &mut ExprArena,
    geometry: &Geometry,
    name: &str,
    dims: &[Dim],
    strides: &Strides,
    at: &dyn Fn() -> Option<Location>,
) -> Result<(), Diagnostic> {
    // Elements from the first one of a coordinate to the end of its last one.
    let mut span = Some(1i64);
    for (&dim, factors) in dims.iter().zip(&strides.0).rev() {
        let stride = product(arena, geometry, factors).map_err(|fault| fault.at(at()))?;
        let (stride, entry) = (arena.as_integer(stride), geometry.dim(dim));
        if let (Some(stride), Some(span)) = (stride, span)
            && stride < span
        {
            let text = format!(
                "{} of `{name}` has a stride of {stride} elements, and those of one coordinate take {span}",
                entry.symbol.name()
            );
            return Err(Diagnostic::invalid(text)
                .at(at())
                .help("strides fall from the first dimension to the last: give the tensor's own"));
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
