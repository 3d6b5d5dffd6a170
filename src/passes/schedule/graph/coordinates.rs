//! Where an expanded node lies in its tile.

use bevy_ecs::prelude::*;

use crate::ir::layout::{Dim, Place as LayoutPlace};
use crate::ir::node::*;
use crate::passes::expand::Expansion;

/// Place of a node along a dimension: its coordinate, and which part of its operands it multiplies.
pub(crate) fn coordinate(world: &World, node: Entity, dim: Dim) -> (u32, u32) {
    let of = |expansion: Option<&Expansion>| {
        let expansion = expansion?;
        let layout = &world.get::<Placement>(expansion.logical)?.0;
        let has = layout.modes().iter().any(|mode| mode.dim == Some(dim));
        has.then(|| {
            layout.coordinate(dim, LayoutPlace { replica: expansion.replica, ..LayoutPlace::default() })
        })
    };
    let expansion = world.get::<Expansion>(node);
    let slice = expansion.map_or(0, |e| e.slice);
    match (of(expansion), world.get::<Op>(node)) {
        (Some(own), Some(Op::Mma(_))) => (own, 0),
        (Some(own), _) => (own, slice),
        // A product takes its place along the contracted dimension from its operands.
        (None, _) => {
            let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
            (operands.iter().find_map(|&o| of(world.get::<Expansion>(o))).unwrap_or(0), slice)
        }
    }
}
