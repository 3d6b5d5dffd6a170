//! Walking regions in program order.

use bevy_ecs::prelude::*;

use super::node::Body;

/// Appends all nodes of a region and of the regions inside it to `out` in program order: a loop, then its body, then what follows.
pub fn preorder<'a>(body: &'a Body, body_of: &impl Fn(Entity) -> Option<&'a Body>, out: &mut Vec<Entity>) {
    for &node in &body.0 {
        out.push(node);
        if let Some(inner) = body_of(node) {
            preorder(inner, body_of, out);
        }
    }
}

/// All nodes below `root` (the kernel or a loop) in program order.
pub fn nodes(world: &World, root: Entity) -> Vec<Entity> {
    let mut out = Vec::new();
    if let Some(body) = world.get::<Body>(root) {
        preorder(body, &|node| world.get::<Body>(node), &mut out);
    }
    out
}

/// The kernel and its loops in program order: everything that owns a [`Body`].
pub fn regions(world: &World, root: Entity) -> Vec<Entity> {
    let mut out = vec![root];
    out.extend(nodes(world, root).into_iter().filter(|&node| world.get::<Body>(node).is_some()));
    out
}
