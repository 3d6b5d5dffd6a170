//! Walking regions in program order.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::node::Body;

/// Nodes in order; the logical nodes of ordinary kernels need no heap.
pub type NodeList = SmallVec<[Entity; 64]>;

/// Appends all nodes of a region and of the regions inside it to `out` in program order: a loop, then its body, then what follows.
pub fn preorder<'a>(body: &'a Body, body_of: &impl Fn(Entity) -> Option<&'a Body>, out: &mut NodeList) {
    for &node in &body.0 {
        out.push(node);
        if let Some(inner) = body_of(node) {
            preorder(inner, body_of, out);
        }
    }
}

/// All nodes below `root` (the kernel or a loop) in program order.
pub fn nodes(world: &World, root: Entity) -> NodeList {
    let mut out = NodeList::new();
    if let Some(body) = world.get::<Body>(root) {
        preorder(body, &|node| world.get::<Body>(node), &mut out);
    }
    out
}

/// The kernel and its loops in program order: everything that owns a [`Body`].
pub fn regions(world: &World, root: Entity) -> SmallVec<[Entity; 8]> {
    let mut out = smallvec![root];
    visit(world, root, &mut |node| out.extend(world.get::<Body>(node).map(|_| node)));
    out
}

/// Calls `see` with all nodes below `root` in program order, without making a list of them.
pub fn visit(world: &World, root: Entity, see: &mut impl FnMut(Entity)) {
    for &node in world.get::<Body>(root).map(|body| &body.0[..]).unwrap_or_default() {
        see(node);
        visit(world, node, see);
    }
}

/// The nodes of one region, apart from the world, so that both can change.
pub fn body(world: &World, region: Entity) -> NodeList {
    world.get::<Body>(region).map(|body| NodeList::from_slice(&body.0)).unwrap_or_default()
}

/// Gives a region other nodes.
pub fn set_body(world: &mut World, region: Entity, nodes: &[Entity]) {
    if let Some(mut body) = world.get_mut::<Body>(region) {
        body.0.clear();
        body.0.extend_from_slice(nodes);
    }
}
