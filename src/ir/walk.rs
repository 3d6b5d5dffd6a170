//! Walking regions in program order.

use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::node::{Body, Yields};
use super::node_map::NodeMap;
use super::nodes::{self, Bug};

/// Nodes in order; the logical nodes of ordinary kernels fit without the heap.
pub(crate) type NodeList = SmallVec<[Entity; 64]>;

/// Appends all nodes of a region and of the regions inside it to `out` in program order: a loop, then its
/// body, then what follows.
pub(crate) fn preorder<'a>(
    body: &'a Body,
    body_of: &impl Fn(Entity) -> Option<&'a Body>,
    out: &mut NodeList,
) {
    for &node in &body.0 {
        out.push(node);
        if let Some(inner) = body_of(node) {
            preorder(inner, body_of, out);
        }
    }
}

/// All nodes below `root` in program order, as a pass finds them.
pub fn order(bodies: &Query<&Body>, root: Entity) -> NodeList {
    let mut out = NodeList::new();
    if let Ok(body) = bodies.get(root) {
        preorder(body, &|node| bodies.get(node).ok(), &mut out);
    }
    out
}

/// The kernel and its loops in program order, as a pass finds them.
pub(crate) fn regions_of(bodies: &Query<&Body>, root: Entity) -> SmallVec<[Entity; 8]> {
    let mut out = smallvec![root];
    let order = order(bodies, root);
    out.extend(order.into_iter().filter(|&node| bodies.contains(node)));
    out
}

/// All nodes below `root` (the kernel or a loop) in program order.
pub fn nodes(world: &World, root: Entity) -> NodeList {
    let mut out = NodeList::new();
    if let Some(body) = world.get::<Body>(root) {
        preorder(body, &|node| world.get::<Body>(node), &mut out);
    }
    out
}

/// Some nodes and all nodes below them in program order.
pub fn nodes_of_list(world: &World, nodes: &[Entity]) -> NodeList {
    let mut out = NodeList::new();
    for &node in nodes {
        out.push(node);
        out.extend(self::nodes(world, node));
    }
    out
}

/// The kernel and its loops in program order: everything that owns a [`Body`].
pub fn regions(world: &World, root: Entity) -> SmallVec<[Entity; 8]> {
    let mut out = smallvec![root];
    if let Some(body) = world.component_id::<Body>() {
        regions_below(world, root, body, &mut out);
    }
    out
}

fn regions_below(world: &World, region: Entity, body: ComponentId, out: &mut SmallVec<[Entity; 8]>) {
    for &node in nodes_of(world, region).iter().filter(|node| owns(world, **node, body)) {
        out.push(node);
        regions_below(world, node, body, out);
    }
}

/// The region that holds a node, at or below `root`: only its neighbours and those of the surrounding regions
/// are looked at.
pub fn region_of(world: &World, root: Entity, node: Entity) -> Option<Entity> {
    fn search(world: &World, region: Entity, node: Entity, body: ComponentId) -> Option<Entity> {
        let nodes = nodes_of(world, region);
        if nodes.contains(&node) {
            return Some(region);
        }
        let inner = nodes.iter().filter(|inner| owns(world, **inner, body));
        inner.copied().find_map(|inner| search(world, inner, node, body))
    }
    search(world, root, node, world.component_id::<Body>()?)
}

fn nodes_of(world: &World, region: Entity) -> &[Entity] {
    world.get::<Body>(region).map(|body| &body.0[..]).unwrap_or_default()
}

/// True for nodes with a component. Nearly all nodes of a body own none themselves, and asking by the
/// component's id is a cheap way to find that out.
fn owns(world: &World, node: Entity, component: ComponentId) -> bool {
    world.get_entity(node).is_ok_and(|node| node.contains_id(component))
}

/// Calls `see` with all nodes below `root` in program order, without making a list of them.
pub fn visit(world: &World, root: Entity, see: &mut impl FnMut(Entity)) {
    if let Some(body) = world.component_id::<Body>() {
        visit_below(world, root, body, see);
    }
}

fn visit_below(world: &World, region: Entity, body: ComponentId, see: &mut impl FnMut(Entity)) {
    for &node in nodes_of(world, region) {
        see(node);
        if owns(world, node, body) {
            visit_below(world, node, body, see);
        }
    }
}

/// Number of times that each node is an operand or handed on by a region; a node without uses has none.
pub(crate) fn use_counts(world: &World, root: Entity) -> Result<NodeMap<u32>, Bug> {
    let mut uses = NodeMap::default();
    for node in self::nodes(world, root) {
        let handed_on = world.get::<Yields>(node).map(|yields| &yields.0[..]).unwrap_or_default();
        for &used in nodes::node(world, node)?.operands.0.iter().chain(handed_on) {
            uses.count(used);
        }
    }
    Ok(uses)
}

/// The nodes of one region, detached from the world, so that both can change.
pub fn body(world: &World, region: Entity) -> NodeList {
    world.get::<Body>(region).map(|body| NodeList::from_slice(&body.0)).unwrap_or_default()
}

/// Replaces the nodes of a region.
pub(crate) fn set_body(world: &mut World, region: Entity, nodes: &[Entity]) {
    if let Some(mut body) = world.get_mut::<Body>(region) {
        body.0.clear();
        body.0.extend_from_slice(nodes);
    }
}
