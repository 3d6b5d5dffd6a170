//! How often each node of a kernel is used.

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes;
use crate::ir::walk;

/// How often each node of a kernel is an operand or handed on by a region; nodes that nothing uses are not
/// in the map.
pub(in crate::passes) fn use_counts(world: &World, root: Entity) -> Result<NodeMap<u32>, Diagnostic> {
    let mut uses: NodeMap<u32> = NodeMap::default();
    for node in walk::nodes(world, root) {
        let handed_on = world.get::<Yields>(node).map(|yields| &yields.0[..]).unwrap_or_default();
        for &used in nodes::node(world, node)?.operands.0.iter().chain(handed_on) {
            match uses.get_mut(used) {
                Some(count) => *count += 1,
                None => uses.insert(used, 1),
            }
        }
    }
    Ok(uses)
}
