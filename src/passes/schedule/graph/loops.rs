//! The loops of a kernel that schedulers look at, and the machine that each runs on.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::resources::ResourceModel;
use crate::ir::node::*;
use crate::ir::walk;
use crate::passes::expand::Expansion;
use crate::passes::facts::{Remainder, Settings};

/// Loops with the regions that they stand in.
pub(crate) type Candidates = SmallVec<[[Entity; 2]; 4]>;

/// The loops that schedulers look at: all but remainders.
pub(crate) fn candidates(world: &World, root: Entity) -> Candidates {
    let mut found = Candidates::new();
    for region in walk::regions(world, root) {
        for node in walk::body(world, region) {
            let logical = Expansion::at(world, node).logical;
            let is_loop = matches!(world.get::<Op>(node), Some(Op::Iterate(_)));
            if is_loop && world.get::<Remainder>(logical).is_none() {
                found.push([region, node]);
            }
        }
    }
    found
}

/// The target's model for a loop.
pub(crate) fn chip_model(world: &World, root: Entity, node: Entity) -> ResourceModel {
    let Some(settings) = world.get::<Settings>(root) else { return ResourceModel::ABSTRACT };
    let body = walk::body(world, node);
    let target = settings.0.target();
    let passes = body.iter().filter_map(|&n| match world.get::<Op>(n) {
        Some(Op::Mma(MmaChoice::Explicit(mma))) => target.matrix_instruction(*mma).map(|i| i.passes.into()),
        _ => None,
    });
    ResourceModel::of_target(target, passes.max().unwrap_or(0))
}
