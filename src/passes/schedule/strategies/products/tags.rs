//! Names for the operations of a product: a schedule speaks of tags, and operations may have none, or one
//! that they share with others.

use bevy_ecs::prelude::*;

use super::{ProductLoop, Roles};
use crate::ir::expr::Symbol;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::graph::view::SchedulerView;

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
    stands(&k_loop, &[view.node(product.k_loop)?.piece(product.k_loop).logical]);
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
