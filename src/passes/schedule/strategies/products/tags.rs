//! Names for the operations of a product: a schedule speaks of tags, and operations may have none, or one
//! that they share with others.

use bevy_ecs::prelude::*;

use super::{ProductLoop, Roles};
use crate::ir::expr::Symbol;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::schedule::estimate::sketch::TaggedNodes;
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};

/// Tags of a product's operations: the author's where they name one operation alone, otherwise new ones that
/// begin with the name of the schedule.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn tag(kernel: &mut Scheduling, product: &ProductLoop, schedule: &str) -> Result<Tags, Bug> {
    let view = kernel.view();
    let loop_node = view.node(product.k_loop)?.piece(product.k_loop).logical;
    let k = view.dims()?.0.get(product.axis).copied();
    let k = k.ok_or(Bug::new("a loop over no dimension"))?;
    let [lhs, rhs] = product.factors;
    let tagged = tagged(view)?;
    let k_loop = tag_as(kernel, &tagged, &[loop_node], &format!("{schedule}_loop"))?;
    let lhs = tag_as(kernel, &tagged, &lhs, &format!("{schedule}_lhs"))?;
    let rhs = tag_as(kernel, &tagged, &rhs, &format!("{schedule}_rhs"))?;
    let scales = match product.scales {
        None => None,
        Some([lhs, rhs]) => Some([
            tag_as(kernel, &tagged, &lhs, &format!("{schedule}_lhs_scale"))?,
            tag_as(kernel, &tagged, &rhs, &format!("{schedule}_rhs_scale"))?,
        ]),
    };
    let mma = tag_as(kernel, &tagged, &[product.mma], &format!("{schedule}_mma"))?;
    Ok(Tags { k_loop, lhs, rhs, scales, mma, k })
}

/// Tags that stand for a product's operations and are nowhere in the kernel, with what they stand for.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn plain(view: SchedulerView, product: &ProductLoop) -> Result<(Tags, TaggedNodes), Bug> {
    let k = view.dims()?.0.get(product.axis).copied();
    let k = k.ok_or(Bug::new("a loop over no dimension"))?;
    let [k_loop, lhs, rhs, mma] = ["loop", "lhs", "rhs", "mma"].map(Box::<str>::from);
    let mut tagged = TaggedNodes::new();
    let mut stands = |tag: &str, nodes: &[Entity]| tagged.push((tag.into(), nodes.into()));
    stands(&lhs, &product.factors[0]);
    stands(&rhs, &product.factors[1]);
    stands(&mma, &[product.mma]);
    let scales = product.scales.map(|[of_lhs, of_rhs]| {
        let tags = ["lhs_scale", "rhs_scale"].map(Box::<str>::from);
        stands(&tags[0], &of_lhs);
        stands(&tags[1], &of_rhs);
        tags
    });
    Ok((Tags { k_loop, lhs, rhs, scales, mma, k }, tagged))
}

/// Owned [`Roles`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tags {
    k_loop: Box<str>,
    lhs: Box<str>,
    rhs: Box<str>,
    scales: Option<[Box<str>; 2]>,
    mma: Box<str>,
    k: Symbol,
}

impl Tags {
    /// As the schedule takes them.
    pub(crate) fn roles(&self) -> Roles<'_> {
        let &Tags { ref k_loop, ref lhs, ref rhs, ref scales, ref mma, k } = self;
        let scales = scales.as_ref().map(|[lhs, rhs]| [&**lhs, &**rhs]);
        Roles { k_loop, lhs, rhs, scales, mma, k }
    }
}

/// The tags of lists of nodes, in the order of the lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NodeTags(Vec<Box<str>>);

impl NodeTags {
    /// The tags.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tag| &**tag)
    }

    /// Tags that stand for lists of logical nodes and are nowhere in the kernel, with what they stand for.
    pub(crate) fn plain(named: &[(&'static str, Vec<Entity>)]) -> (NodeTags, TaggedNodes) {
        let tags: Vec<Box<str>> = numbered(named).map(|name| name.into()).collect();
        let tagged = tags.iter().zip(named).map(|(tag, (_, nodes))| (tag.clone(), nodes[..].into()));
        let tagged = tagged.collect();
        (NodeTags(tags), tagged)
    }
}

/// Names with a number for each.
fn numbered(named: &[(&'static str, Vec<Entity>)]) -> impl Iterator<Item = String> {
    named.iter().zip(0u32..).map(|((name, _), number)| format!("{name}_{number}"))
}

/// Tags of lists of logical nodes: the author's where they name one list alone, otherwise new ones that begin
/// with the name of the schedule.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn tag_all(
    kernel: &mut Scheduling,
    named: &[(&'static str, Vec<Entity>)],
    schedule: &str,
) -> Result<NodeTags, Bug> {
    let tagged = tagged(kernel.view())?;
    let names = named.iter().zip(numbered(named));
    let tags = names.map(|((_, nodes), name)| tag_as(kernel, &tagged, nodes, &format!("{schedule}_{name}")));
    tags.collect::<Result<_, Bug>>().map(NodeTags)
}

/// All tagged logical nodes except carried values, which share the tag of what they carry.
fn tagged(view: SchedulerView) -> Result<Vec<Entity>, Bug> {
    let mut found: Vec<Entity> = Vec::new();
    let mut last = view.root;
    view.visit(view.root, &mut |node, seen| {
        let own = seen.piece(node).logical;
        if own != last {
            last = own;
            let carried = matches!(seen.op, Op::IterArg(_) | Op::LoopResult(_));
            if !carried && view.world.get::<Tag>(own).is_some() && !found.contains(&own) {
                found.push(own);
            }
        }
    })?;
    Ok(found)
}

/// The tag that all of `nodes` have and no other node of `tagged`; if there is none, they are given `fresh`.
fn tag_as(
    kernel: &mut Scheduling,
    tagged: &[Entity],
    nodes: &[Entity],
    fresh: &str,
) -> Result<Box<str>, Bug> {
    let view = kernel.view();
    let world = view.world;
    let tag_of = |node: Entity| world.get::<Tag>(node).map(|tag| &tag.0);
    if let Some(own) = nodes.first().and_then(|&n| tag_of(n)) {
        let same = |&node: &Entity| tag_of(node) == Some(own);
        // Remainders are copies with the same tags, which no schedule touches.
        let others = tagged.iter().filter(|node| same(node) && !nodes.contains(node));
        let copies = others.map(|&node| is_copy(view, node, nodes)).collect::<Result<Vec<bool>, Bug>>()?;
        if nodes.iter().all(same) && copies.into_iter().all(|is_copy| is_copy) {
            return Ok(own.clone());
        }
    }
    // Other loops with the same schedule may already have tags like these.
    let used = |name: &str| tagged.iter().any(|&n| tag_of(n).is_some_and(|tag| **tag == *name));
    let mut name = fresh.to_owned();
    for number in 2.. {
        if !used(&name) {
            break;
        }
        name = format!("{fresh}_{number}");
    }
    for &node in nodes {
        kernel.world.entity_mut(node).insert(Tag(name.as_str().into()));
    }
    Ok(name.into())
}

/// True for a copy of one of the nodes: an operation that the author wrote at the same place.
fn is_copy(view: SchedulerView, node: Entity, nodes: &[Entity]) -> Result<bool, Bug> {
    let own = view.node(node)?;
    for &other in nodes {
        let other = view.node(other)?;
        if (other.origin, other.op) == (own.origin, own.op) {
            return Ok(true);
        }
    }
    Ok(false)
}
