//! Dimensions that passes make: they count what holds parts of an author's dimension.

use bevy_ecs::prelude::*;

use super::facts::{DimGeometry, Expressions, Geometry};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::nodes;

/// The dimension of a name and size, made if there is none yet; a wave has `of_wave` of it, or all.
pub(super) fn counted_dim(
    world: &mut World,
    root: Entity,
    name: &str,
    size: u32,
    of_wave: Option<u32>,
) -> Result<Dim, Diagnostic> {
    let symbol = Symbol::new(name);
    let mut table = nodes::fact_mut::<DimTable>(world, root, "a kernel without dims")?;
    if let Some(known) = table.find(symbol) {
        return Ok(known);
    }
    let Some(dim) = table.enter(symbol) else {
        let text = "a kernel has at most 256 dimensions, with those that count the parts of reductions";
        return Err(Diagnostic::new(Kind::Limit, text));
    };
    let mut expressions = nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
    let count = expressions.0.int(i64::from(size));
    let mut geometry = nodes::fact_mut::<Geometry>(world, root, "a kernel without geometry")?;
    let made = DimGeometry { wave: of_wave, ..DimGeometry::new(symbol, count, Some(size)) };
    geometry.dims.push(made);
    Ok(dim)
}

/// The name of a dimension of the kernel.
pub(super) fn dim_name(world: &World, root: Entity, dim: Dim) -> Result<&'static str, Diagnostic> {
    Ok(nodes::fact::<DimTable>(world, root, "a kernel without dims")?.name(dim))
}
