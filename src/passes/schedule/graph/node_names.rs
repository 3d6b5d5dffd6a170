//! Names of the operations of all loops of a kernel: the same in every compilation of it with the same
//! options.

use bevy_ecs::prelude::*;

use super::dependences::dependences;
use super::keys::logical_names;
use super::loops::candidates;
use super::resources::ResourceModel;
use super::view::SchedulerView;
use crate::ir::nodes::Bug;

/// The name of the loop of a number among those of the kernel.
pub(crate) fn loop_name(number: usize) -> String {
    format!("loop.{number}")
}

/// `loop.0` for each loop, and `loop.0.mma.7` for each logical operation in it, where the numbers are those
/// of a table of schedules.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn node_names(view: SchedulerView) -> Result<Vec<(String, Entity)>, Bug> {
    let mut names = Vec::new();
    for (number, [_, node]) in candidates(view)?.into_iter().enumerate() {
        let name = loop_name(number);
        if let Ok(found) = dependences(view, node, &ResourceModel::ABSTRACT) {
            names.extend(logical_names(&found).into_iter().map(|(own, key)| (format!("{name}.{key}"), own)));
        }
        names.push((name, view.node(node)?.piece(node).logical));
    }
    Ok(names)
}
