//! Where an expanded node lies in its tile.

use bevy_ecs::prelude::*;

use super::view::SchedulerView;
use crate::ir::layout::{Dim, Layout, Place as LayoutPlace};
use crate::ir::node::Operands;
use crate::ir::nodes::Bug;
use crate::passes::loops::expand::Expansion;

/// Finds the places of nodes along a dimension.
pub(crate) struct PlacesAlong<'w> {
    view: SchedulerView<'w>,
    dim: Dim,
    /// The layouts of the last logical node, and of the last one that was an operand, if they have the
    /// dimension: pieces of one node follow each other.
    own: Option<(Entity, Option<&'w Layout>)>,
    operand: Option<(Entity, Option<&'w Layout>)>,
}

impl<'w> PlacesAlong<'w> {
    /// Places along this dimension.
    pub(crate) fn new(view: SchedulerView<'w>, dim: Dim) -> PlacesAlong<'w> {
        PlacesAlong { view, dim, own: None, operand: None }
    }

    /// Place of a node: its coordinate, and which part of its operands it multiplies.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn of(&mut self, node: Entity) -> Result<(u32, u32), Bug> {
        let (view, dim) = (self.view, self.dim);
        let expansion = view.world.get::<Expansion>(node);
        let slice = expansion.map_or(0, |expansion| expansion.slice);
        if let Some(own) = expansion.and_then(|expansion| place_of(view, dim, expansion, &mut self.own)) {
            let is_product = slice != 0 && view.op(node)?.is_product();
            return Ok((own, if is_product { 0 } else { slice }));
        }
        // The contracted dimension of a product is its operands'.
        let operands = view.world.get::<Operands>(node).ok_or(Bug::new("a schedule lost a node"))?;
        for &operand in &operands.0 {
            let expansion = view.world.get::<Expansion>(operand);
            if let Some(place) = expansion.and_then(|own| place_of(view, dim, own, &mut self.operand)) {
                return Ok((place, slice));
            }
        }
        Ok((0, slice))
    }
}

/// The coordinate of a piece, if its layout has the dimension; `last` is the layout that was looked at last.
fn place_of<'w>(
    view: SchedulerView<'w>,
    dim: Dim,
    expansion: &Expansion,
    last: &mut Option<(Entity, Option<&'w Layout>)>,
) -> Option<u32> {
    let layout = match *last {
        Some((logical, layout)) if logical == expansion.logical => layout,
        _ => {
            let layout = view.layout(expansion.logical);
            let layout = layout.filter(|own| own.modes().iter().any(|mode| mode.dim == Some(dim)));
            last.insert((expansion.logical, layout)).1
        }
    }?;
    let place = LayoutPlace { replica: expansion.replica, ..LayoutPlace::default() };
    Some(if expansion.replica == 0 { 0 } else { layout.coordinate(dim, place) })
}
