//! Names for the operations of a product: a schedule speaks of tags, and operations may have none, or one
//! that they share with others.

use bevy_ecs::prelude::*;

use super::operations::logical;
use super::{Product, Roles};
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::node::*;

/// Tags of a product's operations: the author's where they name one operation alone, otherwise new ones.
pub(crate) fn tag(world: &mut World, root: Entity, product: &Product) -> Tags {
    let loop_node = logical(world, product.k_loop);
    let [lhs, rhs] = product.factors;
    let tagged = tagged(world, root);
    let k_loop = tag_as(world, &tagged, &[loop_node], "ping_pong_loop");
    let lhs = tag_as(world, &tagged, &lhs, "ping_pong_lhs");
    let rhs = tag_as(world, &tagged, &rhs, "ping_pong_rhs");
    let mma = tag_as(world, &tagged, &[product.mma], "ping_pong_mma");
    let k = world.get::<DimTable>(root).and_then(|d| d.0.get(product.axis.0 as usize).copied());
    let k = k.unwrap_or_else(|| Symbol::new("K"));
    Tags { k_loop, lhs, rhs, mma, k }
}

/// Owned [`Roles`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tags {
    k_loop: Box<str>,
    lhs: Box<str>,
    rhs: Box<str>,
    mma: Box<str>,
    k: Symbol,
}

impl Tags {
    /// As the schedule takes them.
    pub(crate) fn roles(&self) -> Roles<'_> {
        let &Tags { ref k_loop, ref lhs, ref rhs, ref mma, k } = self;
        Roles { k_loop, lhs, rhs, mma, k }
    }
}

/// All tagged logical nodes except carried values, which share the tag of what they carry.
fn tagged(world: &World, root: Entity) -> Vec<Entity> {
    let mut found: Vec<Entity> = Vec::new();
    let mut last = root;
    crate::ir::walk::visit(world, root, &mut |node| {
        let own = logical(world, node);
        if own != last {
            last = own;
            let carried = matches!(world.get::<Op>(node), Some(Op::IterArg(_) | Op::LoopResult(_)));
            if !carried && world.get::<Tag>(own).is_some() && !found.contains(&own) {
                found.push(own);
            }
        }
    });
    found
}

/// The tag that all of `nodes` have and no other node of `tagged`; if there is none, they are given `fresh`.
fn tag_as(world: &mut World, tagged: &[Entity], nodes: &[Entity], fresh: &str) -> Box<str> {
    let tag_of = |node: Entity| world.get::<Tag>(node).map(|tag| &tag.0);
    if let Some(own) = nodes.first().and_then(|&n| tag_of(n)) {
        let same = |&node: &Entity| tag_of(node) == Some(own);
        // Remainders are copies with the same tags, which no schedule touches.
        let others = |node: &Entity| !nodes.contains(node) && !is_copy(world, *node, nodes);
        if nodes.iter().all(same) && !tagged.iter().filter(|n| same(n)).any(others) {
            return own.clone();
        }
    }
    // Other loops that take turns may already have tags like these.
    let used = |name: &str| tagged.iter().any(|&n| tag_of(n).is_some_and(|tag| **tag == *name));
    let mut name = fresh.to_owned();
    for number in 2.. {
        if !used(&name) {
            break;
        }
        name = format!("{fresh}_{number}");
    }
    for &node in nodes {
        world.entity_mut(node).insert(Tag(name.as_str().into()));
    }
    name.into()
}

/// True for a copy of one of the nodes: an operation that the author wrote at the same place.
fn is_copy(world: &World, node: Entity, nodes: &[Entity]) -> bool {
    let origin = world.get::<Origin>(node);
    nodes.iter().any(|&n| world.get::<Origin>(n) == origin && world.get::<Op>(n) == world.get::<Op>(node))
}
