//! The tagged nodes of a kernel, by the author's tags or by those that a strategy's schedule speaks of.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::passes::facts::Remainder;
use crate::passes::schedule::apply::unroll::Rest;
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::spelling::closest;

/// The author's tags and the logical nodes of each, but for those of remainders.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn authors_tags(view: SchedulerView) -> Result<TaggedNodes, Bug> {
    let rows = TagIndex::of(view, None)?.rows.into_iter();
    rows.map(|row| {
        let logical = |&node: &Entity| Ok(view.node(node)?.piece(node).logical);
        let mut nodes = row.nodes.iter().map(logical).collect::<Result<SmallVec<_>, Bug>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok((row.tag, nodes))
    })
    .collect()
}

/// The nodes that a tag of a strategy's schedule stands for in the one loop that it speaks of, if it names
/// any there.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn of_known_loop(
    view: SchedulerView,
    (tagged, tag): (&TaggedNodes, &str),
    (node, found): (Entity, &LoopGraph),
) -> Result<Option<Vec<Entity>>, Bug> {
    let Some((_, logical)) = tagged.iter().find(|(known, _)| **known == *tag) else { return Ok(None) };
    let mut nodes = Vec::new();
    if logical.contains(&view.node(node)?.piece(node).logical) {
        nodes.push(node);
    }
    for (own, graph_node) in found.nodes.values().zip(found.graph.nodes().values()) {
        // What a loop carries belongs to the loop.
        if logical.contains(&own.expansion.logical) && !own.op.is_carried() {
            nodes.push(graph_node.entity);
        }
    }
    Ok(Some(nodes).filter(|nodes| !nodes.is_empty()))
}

/// What a tag names.
pub(super) enum Tagged {
    /// These nodes, in program order.
    Nodes(Vec<Entity>),
    /// Only nodes of a loop's remainder, or of what masks divide from it, such as this one: the loop itself
    /// has no iteration.
    Remainder(Entity),
    /// Nothing; perhaps this tag was meant.
    Nothing(Option<String>),
}

/// All tagged nodes of a kernel as it stands.
pub(super) struct TagIndex<'a> {
    rows: Vec<TagRow>,
    /// The tags that count instead of the author's.
    tagged: Option<&'a TaggedNodes>,
}

/// The nodes of one tag.
struct TagRow {
    tag: Box<str>,
    nodes: Vec<Entity>,
    /// A node of a loop's remainder that has the tag.
    remainder: Option<Entity>,
}

impl<'a> TagIndex<'a> {
    pub(super) fn of(view: SchedulerView, tagged: Option<&'a TaggedNodes>) -> Result<TagIndex<'a>, Bug> {
        let mut index = TagIndex { rows: Vec::new(), tagged };
        let mut last = (view.root, None);
        index.walk(view, view.root, false, &mut last)?;
        Ok(index)
    }

    /// `last` remembers the row of the previous logical node, which is usually that of the next node as well.
    fn walk(
        &mut self,
        view: SchedulerView,
        region: Entity,
        in_remainder: bool,
        last: &mut (Entity, Option<usize>),
    ) -> Result<(), Bug> {
        let world = view.world;
        for &node in view.body(region)? {
            let seen = view.node(node)?;
            let is_region = seen.body.is_some();
            if is_region && world.get::<Rest>(node).is_some() {
                continue;
            }
            let own = seen.piece(node).logical;
            let is_beside = world.get::<Remainder>(own).is_some() || view.is_masked_part(own);
            let in_remainder = in_remainder || (is_region && is_beside);
            // The results and carried values of a loop belong to it.
            if !seen.op.is_carried() && seen.op.row().class != OpClass::Declaration {
                if last.0 != own {
                    *last = (own, self.row_of(world, own));
                }
                if let Some(row) = last.1.map(|row| &mut self.rows[row]) {
                    match in_remainder {
                        true => row.remainder = row.remainder.or(Some(node)),
                        false => row.nodes.push(node),
                    }
                }
            }
            if is_region {
                self.walk(view, node, in_remainder, last)?;
            }
        }
        Ok(())
    }

    fn row_of(&mut self, world: &World, logical: Entity) -> Option<usize> {
        let tag = match self.tagged {
            Some(tagged) => &tagged.iter().find(|(_, nodes)| nodes.contains(&logical))?.0,
            None => &world.get::<Tag>(logical)?.0,
        };
        let known = self.rows.iter().position(|row| row.tag == *tag);
        Some(known.unwrap_or_else(|| {
            self.rows.push(TagRow { tag: tag.clone(), nodes: Vec::new(), remainder: None });
            self.rows.len() - 1
        }))
    }

    /// All nodes with a tag, except those in loops' remainders, in what masks divide from loops, and in the
    /// loops that unrolling leaves, which no author's schedule touches.
    pub(super) fn get(&self, wanted: &str) -> Tagged {
        match self.rows.iter().find(|row| *row.tag == *wanted) {
            Some(row) if !row.nodes.is_empty() => Tagged::Nodes(row.nodes.clone()),
            Some(TagRow { remainder: Some(node), .. }) => Tagged::Remainder(*node),
            _ => {
                let known = self.rows.iter().map(|row| &row.tag[..]);
                Tagged::Nothing(closest(wanted, known).map(str::to_owned))
            }
        }
    }
}
