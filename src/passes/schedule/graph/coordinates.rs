//! Where an expanded node lies in its tile.

use bevy_ecs::prelude::*;

use super::view::SchedulerView;
use crate::ir::layout::{Dim, Place as LayoutPlace};
use crate::ir::nodes::Bug;
use crate::passes::loops::expand::Expansion;

/// Place of a node along a dimension: its coordinate, and which part of its operands it multiplies.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn coordinate(view: SchedulerView, node: Entity, dim: Dim) -> Result<(u32, u32), Bug> {
    let of = |expansion: Option<&Expansion>| {
        let expansion = expansion?;
        let layout = view.layout(expansion.logical)?;
        let has = layout.modes().iter().any(|mode| mode.dim == Some(dim));
        let place = LayoutPlace { replica: expansion.replica, ..LayoutPlace::default() };
        has.then(|| if expansion.replica == 0 { 0 } else { layout.coordinate(dim, place) })
    };
    let node = view.node(node)?;
    let slice = node.expansion.map_or(0, |e| e.slice);
    if let Some(own) = of(node.expansion) {
        return Ok((own, if node.op.is_product() { 0 } else { slice }));
    }
    // The contracted dimension of a product is its operands'.
    for &operand in &node.operands.0 {
        if let Some(place) = of(view.world.get::<Expansion>(operand)) {
            return Ok((place, slice));
        }
    }
    Ok((0, slice))
}
