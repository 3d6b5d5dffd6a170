//! The stages of a loop whose strategy places nodes by phases, as an author would set them: a `pipeline` with
//! lists of nodes for each slot, which can be printed, changed and given again.

use bevy_ecs::prelude::*;
use cranelift_entity::PrimaryMap;
use smallvec::{SmallVec, smallvec};

use super::view::{LoopSchedule, LoopView};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Drain;
use crate::ir::schedule::table::Checks;
use crate::ir::schedule::{NodeType, Nodes, ScheduleTracer, WaveSchedule};
use crate::ir::types::AddressSpace;
use crate::passes::schedule::apply::written::{TaggedNodes, WrittenSchedule};
use crate::passes::schedule::author::manual::infer;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;

/// A logical operation of a loop.
#[derive(Copy, Clone)]
struct StagedOperation {
    logical: Entity,
    kind: NodeType,
    /// True for an access of LDS.
    is_shared: bool,
    cycle: u32,
}

/// The operations that one tag names: those that an author wrote as one, with what the compiler made of it.
struct TagGroup {
    tag: Box<str>,
    /// The cycle whose computation without tags it gathers.
    gathered: Option<u32>,
    members: SmallVec<[StagedOperation; 3]>,
}

/// The lists into which a tag's operations fall, each with its cycle.
enum GroupLists {
    /// All of them together.
    Whole(u32),
    /// A list for each kind, reads of memory and of LDS apart where there are two cycles.
    ByKind(SmallVec<[(NodeType, [u32; 2]); 3]>),
}

/// The schedule of the loop `node` in stages, over the `authors` tags where there are any. None if copies of
/// an operation have different places, if the place of one that no schedule can name does not follow, or if
/// the loop's cycles are those of a machine.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(super) fn in_stages(
    authors: &TaggedNodes,
    view: &LoopView,
    node: Entity,
    strategy: &str,
) -> Result<Option<WrittenSchedule>, Diagnostic> {
    let (Ok(found), Some(schedule)) = (&view.found, &view.schedule) else { return Ok(None) };
    if schedule.checks != Checks::Order || !are_cycles_inferred(found, schedule) {
        return Ok(None);
    }
    let Some(groups) = tag_groups(authors, found, schedule) else { return Ok(None) };
    let lists: Option<Vec<GroupLists>> = groups.iter().map(TagGroup::lists).collect();
    let Some(lists) = lists else { return Ok(None) };
    let loop_tag = unused("loop", authors, &groups);
    let mut tagged = TaggedNodes::from_iter([(loop_tag.clone(), smallvec![node])]);
    tagged.extend(
        groups
            .iter()
            .map(|group| (group.tag.clone(), group.members.iter().map(|member| member.logical).collect())),
    );
    let interval = schedule.assignment.interval as usize;
    let stages = schedule.assignment.stages() as usize;
    let traced = WaveSchedule::trace(strategy, |s| {
        let k_loop = s.get_node_by_tag(&loop_tag);
        let mut slots: Vec<Vec<Nodes>> = vec![Vec::new(); stages * interval];
        for (group, lists) in groups.iter().zip(&lists) {
            lists.place(s, &group.tag, &mut slots);
        }
        s.pipeline(k_loop, |p| {
            if schedule.request.drain == Drain::Loop {
                p.eliminate_epilogue();
            }
            if let Some(copies) = schedule.request.copies {
                p.multi_buffer_count(copies);
            }
            for stage in slots.chunks(interval) {
                p.set_stage(stage.to_vec());
            }
        });
    })?;
    Ok(Some(WrittenSchedule::new(traced, tagged)))
}

/// True for nodes that stages name; the places of others follow.
fn is_named(found: &LoopGraph, node: NodeId) -> bool {
    let takes_time = found.graph.nodes()[node].class != Class::Free;
    takes_time && found.op(node).and_then(NodeType::of).is_some()
}

/// True if the places of all nodes follow from those that stages name.
fn are_cycles_inferred(found: &LoopGraph, schedule: &LoopSchedule) -> bool {
    let own = &schedule.assignment.cycles;
    let named = |node: NodeId| is_named(found, node).then_some(own[node]);
    let mut cycles: PrimaryMap<NodeId, Option<u32>> = found.graph.nodes().keys().map(named).collect();
    infer(found, &mut cycles);
    found.body().all(|node| cycles[node] == Some(own[node]))
}

/// The operations of the loop by the tags that name them, if each has one place.
fn tag_groups(authors: &TaggedNodes, found: &LoopGraph, schedule: &LoopSchedule) -> Option<Vec<TagGroup>> {
    let mut groups: Vec<TagGroup> = Vec::new();
    let of_member = |groups: &[TagGroup], logical: Entity| {
        groups.iter().position(|group| group.members.iter().any(|own| own.logical == logical))
    };
    for node in found.body().filter(|&node| is_named(found, node)) {
        let own = &found.nodes[node];
        let logical = own.expansion.logical;
        let class = found.graph.nodes()[node].class;
        let member = StagedOperation {
            logical,
            kind: NodeType::of(own.op)?,
            is_shared: matches!(class, Class::ReadShared | Class::WriteShared),
            cycle: schedule.assignment.cycles[node],
        };
        if let Some(known) = of_member(&groups, logical) {
            let mut members = groups[known].members.iter();
            if members.any(|known| known.logical == logical && known.cycle != member.cycle) {
                return None;
            }
            continue;
        }
        let tag = authors.iter().find(|(_, nodes)| nodes.contains(&logical)).map(|(tag, _)| tag.clone());
        let is_load = matches!(class, Class::ReadGlobal | Class::GlobalToShared);
        let gathered = Some(member.cycle).filter(|_| tag.is_none() && !is_load);
        let source = || of_member(&groups, found.nodes[filled_from(found, node)?].expansion.logical);
        let gathering = || groups.iter().position(|group| gathered.is_some() && group.gathered == gathered);
        let known = match &tag {
            Some(tag) => groups.iter().position(|group| group.tag == *tag),
            None => source().or_else(gathering),
        };
        match known {
            Some(group) => groups[group].members.push(member),
            None => {
                let name = if is_load { "load" } else { "computation" };
                let tag = tag.unwrap_or_else(|| unused(name, authors, &groups));
                groups.push(TagGroup { tag, gathered, members: smallvec![member] });
            }
        }
    }
    Some(groups)
}

/// The node that makes the tile which an LDS access writes or reads: the compiler's accesses have its tag.
fn filled_from(found: &LoopGraph, node: NodeId) -> Option<NodeId> {
    let fill = found.buffers.iter().find(|fill| fill.writes.contains(&node) || fill.reads.contains(&node))?;
    let &write = fill.writes.first()?;
    let makes = |edge: &&Edge| edge.kind == Dependence::Value && is_named(found, edge.from);
    match found.graph.entering(write).find(makes) {
        Some(edge) => Some(edge.from),
        None => Some(write).filter(|&write| found.graph.nodes()[write].class == Class::GlobalToShared),
    }
}

/// A tag that neither an author nor a group has yet.
fn unused(name: &str, authors: &TaggedNodes, groups: &[TagGroup]) -> Box<str> {
    let used = authors.iter().map(|(tag, _)| tag).chain(groups.iter().map(|group| &group.tag));
    let is_used = |tag: &str| used.clone().any(|used| **used == *tag);
    let numbered = (2u32..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|tag| !is_used(tag)).unwrap_or_default().into()
}

impl TagGroup {
    /// The lists of its operations, if they can be told apart.
    fn lists(&self) -> Option<GroupLists> {
        let first = self.members.first()?;
        if self.members.iter().all(|member| member.cycle == first.cycle) {
            return Some(GroupLists::Whole(first.cycle));
        }
        let mut kinds: SmallVec<[(NodeType, [Option<u32>; 2]); 3]> = SmallVec::new();
        for member in &self.members {
            let at = kinds.iter().position(|(kind, _)| *kind == member.kind).unwrap_or_else(|| {
                kinds.push((member.kind, [None; 2]));
                kinds.len() - 1
            });
            let cycle = &mut kinds[at].1[usize::from(member.is_shared)];
            if cycle.replace(member.cycle).is_some_and(|other| other != member.cycle) {
                return None;
            }
        }
        let both = |[memory, shared]: [Option<u32>; 2]| Some([memory.or(shared)?, shared.or(memory)?]);
        let kinds = kinds.into_iter().map(|(kind, cycles)| Some((kind, both(cycles)?)));
        Some(GroupLists::ByKind(kinds.collect::<Option<_>>()?))
    }
}

impl GroupLists {
    /// Selects the lists of a tag and puts each into its slot.
    fn place(&self, s: &ScheduleTracer, tag: &str, slots: &mut [Vec<Nodes>]) {
        match self {
            &GroupLists::Whole(cycle) => slots[cycle as usize].push(s.get_node_by_tag(tag)),
            GroupLists::ByKind(kinds) => {
                for &(kind, [memory, shared]) in kinds {
                    let list = s.get_node_by_tag_and_type(tag, kind);
                    if memory == shared {
                        slots[memory as usize].push(list);
                        continue;
                    }
                    let (global, others) = s.partition_by_address_space(list, AddressSpace::Global);
                    slots[memory as usize].push(global);
                    slots[shared as usize].push(others);
                }
            }
        }
    }
}
