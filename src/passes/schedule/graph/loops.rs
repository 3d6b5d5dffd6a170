//! The loops of a kernel that schedulers look at, and the machine that each runs on.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::resources::ResourceModel;
use super::view::SchedulerView;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::Bug;
use crate::ir::walk;
use crate::passes::facts::Remainder;

/// Loops with the regions that they stand in.
pub(crate) type Candidates = SmallVec<[[Entity; 2]; 4]>;

/// The loops that schedulers look at: all but remainders.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn candidates(view: SchedulerView) -> Result<Candidates, Bug> {
    let mut found = Candidates::new();
    for region in walk::regions(view.world, view.root) {
        for &node in view.body(region)? {
            if let Op::Iterate(_) = view.op(node)?
                && view.world.get::<Remainder>(view.node(node)?.piece(node).logical).is_none()
            {
                found.push([region, node]);
            }
        }
    }
    Ok(found)
}

/// Those of the loops that hold no other one of them.
pub(crate) fn innermost(candidates: &Candidates) -> Candidates {
    let regions: NodeSet = candidates.iter().map(|&[region, _]| region).collect();
    candidates.iter().copied().filter(|&[_, node]| !regions.contains(node)).collect()
}

/// The target's model for a loop.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn chip_model(view: SchedulerView, node: Entity) -> Result<ResourceModel, Bug> {
    let target = view.settings()?.target();
    let mut passes = 0;
    for &inner in view.body(node)? {
        if let Some(MmaChoice::Explicit(mma)) = view.op(inner)?.product() {
            passes = passes.max(target.matrix_instruction(mma).map_or(0, |i| i.passes.into()));
        }
    }
    Ok(ResourceModel::of_target(target, passes))
}
