//! The judge of assignments: every node is placed exactly once, every dependence holds, and every LDS buffer
//! has enough copies. A fault names both nodes, how many iterations lie between them, and the first cycle
//! that would be legal.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Yields;
use crate::ir::nodes::Bug;
use crate::ir::schedule::table::Checks;
use crate::passes::schedule::apply::copies;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::buffer_parts::parts_of;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::{LoopBuffer, LoopGraph};
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::graph::words::{describe, place};

/// A dependence that an assignment breaks; [`broken`] finds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    /// The dependence, between nodes of the body: for a junction, the accesses that break it.
    pub edge: Edge,
    /// The first legal cycle of the later node.
    pub legal: u32,
}

/// The first dependence that an assignment breaks. In one slot the oldest iteration runs first, and then
/// nodes run as written, so their order keeps a dependence if `cycle(to) + distance * interval >=
/// cycle(from)`; the machine needs another `latency` cycles before the second node.
pub(crate) fn broken(found: &LoopGraph, assignment: &Assignment, checks: Checks) -> Option<Broken> {
    let cycle = |node: NodeId| u64::from(assignment.cycles[node]);
    let over = |edge: &Edge| match checks {
        Checks::Order => cycle(edge.from),
        Checks::Machine => cycle(edge.from) + u64::from(edge.latency),
    };
    // The last node that enters a junction; edges are sorted by the nodes that they leave.
    let mut junction: Option<(NodeId, Option<&Edge>)> = None;
    for edge in found.graph.edges().iter().filter(|edge| edge.to < found.body_end) {
        let mut edge = *edge;
        // What leaves a junction depends on everything that enters it.
        if edge.from >= found.body_end {
            let (_, last) = match junction.filter(|known| known.0 == edge.from) {
                Some(known) => known,
                None => (edge.from, found.graph.entering(edge.from).max_by_key(|e| (over(e), e.from))),
            };
            junction = Some((edge.from, last));
            let Some(last) = last else { continue };
            edge = Edge { from: last.from, kind: last.kind, latency: last.latency + edge.latency, ..edge };
        }
        let legal = over(&edge).saturating_sub(u64::from(edge.distance) * u64::from(assignment.interval));
        if cycle(edge.to) < legal {
            return Some(Broken { edge, legal: u32::try_from(legal).unwrap_or(u32::MAX) });
        }
    }
    None
}

/// The fault of a dependence that an order breaks.
pub(crate) fn broken_fault(
    world: &World,
    root: Entity,
    found: &LoopGraph,
    assignment: &Assignment,
    fault: Broken,
) -> Diagnostic {
    let Broken { edge, legal } = fault;
    let [from, to] = [edge.from, edge.to].map(|n| found.graph.nodes()[n].entity);
    let at = |node: NodeId| format!("stage {} slot {}", assignment.stage(node), assignment.slot(node));
    let (what, from_text, to_text) =
        (reason(edge.kind), describe(world, root, from), describe(world, root, to));
    let distance = match edge.distance {
        0 => "of the same iteration".to_owned(),
        1 => "of the iteration before".to_owned(),
        more => format!("{more} iterations before"),
    };
    let text = format!("{to_text} {what} {from_text} {distance}, but runs before it");
    let interval = assignment.interval.max(1);
    let help = format!(
        "the first legal place is stage {} slot {} (cycle {legal})",
        legal / interval,
        legal % interval
    );
    Diagnostic::invalid(text)
        .note(
            format!("{to_text} is in {} (cycle {})", at(edge.to), assignment.cycles[edge.to]),
            place(world, root, to),
        )
        .note(
            format!("{from_text} is in {} (cycle {})", at(edge.from), assignment.cycles[edge.from]),
            place(world, root, from),
        )
        .help(help)
}

fn reason(kind: Dependence) -> &'static str {
    match kind {
        Dependence::Value => "uses",
        Dependence::Flow => "reads what is written by",
        Dependence::Anti => "overwrites what is read by",
        Dependence::Output => "overwrites what is written by",
        Dependence::Order => "has to come after",
    }
}

/// An LDS buffer with fewer copies than the order of an assignment needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct TooFewCopies {
    /// The last read of an iteration.
    read: NodeId,
    /// The first write of the iteration that gets the same copy.
    write: NodeId,
    /// The first legal cycle of the write.
    legal: u32,
    /// Copies that this order needs.
    needed: u32,
}

/// The first LDS buffer with fewer copies than the order of an assignment needs.
fn too_few_copies(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    copies: u32,
) -> Result<Option<TooFewCopies>, Bug> {
    for one in &found.buffers {
        // In the order of iterations.
        let fills: SmallVec<[&LoopBuffer; 4]> =
            found.buffers.iter().filter(|fill| fill.buffer == one.buffer).collect();
        let accesses = fills.iter().map(|fill| [&fill.writes[..], &fill.reads[..]]);
        let accesses: SmallVec<[[&[NodeId]; 2]; 4]> = accesses.collect();
        if overwritten(&accesses, assignment, copies).is_none() {
            continue;
        }
        // A part of a buffer may be written anew while another one is still to be read.
        let parts = of_parts(view, found, one.buffer, &accesses)?;
        let of_any = |copies| parts.iter().find_map(|part| overwritten(part, assignment, copies));
        if let Some((read, write, legal)) = of_any(copies) {
            let most = copies::least(found, one, assignment);
            let needed = (copies + 1..most).find(|&copies| of_any(copies).is_none()).unwrap_or(most);
            return Ok(Some(TooFewCopies { read, write, legal, needed }));
        }
    }
    Ok(None)
}

/// Of the writes and reads by each iteration of a trip, the first read that comes too late for the write that
/// gets its copy, with that write and the first cycle that would be legal for it.
fn overwritten<L: AsRef<[NodeId]>>(
    fills: &[[L; 2]],
    assignment: &Assignment,
    copies: u32,
) -> Option<(NodeId, NodeId, u32)> {
    let cycle = |node: NodeId| u64::from(assignment.cycles[node]);
    fills.iter().enumerate().find_map(|(at, [_, reads])| {
        let later = at + copies as usize;
        let trips = (later / fills.len()) as u64;
        let read = reads.as_ref().iter().copied().max_by_key(|&n| cycle(n))?;
        let [writes, _] = &fills[later % fills.len()];
        let write = writes.as_ref().iter().copied().min_by_key(|&n| cycle(n))?;
        let legal = cycle(read).saturating_sub(trips * u64::from(assignment.interval));
        let legal = u32::try_from(legal).unwrap_or(u32::MAX);
        (cycle(write) < u64::from(legal)).then_some((read, write, legal))
    })
}

/// The same writes and reads for each part of their buffer.
fn of_parts(
    view: SchedulerView,
    found: &LoopGraph,
    buffer: Entity,
    fills: &[[&[NodeId]; 2]],
) -> Result<Vec<Vec<[Vec<NodeId>; 2]>>, Bug> {
    let lists = || fills.iter().flatten().copied();
    let entities: Vec<Entity> = lists().flatten().map(|&node| found.graph.nodes()[node].entity).collect();
    let numbers = parts_of(view, buffer, &entities)?;
    let count = numbers.iter().max().map_or(0, |&last| last as usize + 1);
    let mut parts = vec![vec![[Vec::new(), Vec::new()]; fills.len()]; count];
    let mut numbers = numbers.into_iter();
    for (at, list) in lists().enumerate() {
        for (&node, part) in list.iter().zip(&mut numbers) {
            parts[part as usize][at / 2][at % 2].push(node);
        }
    }
    Ok(parts)
}

/// The fault of LDS buffers with fewer copies than the order of an assignment needs; none if `copies` are
/// enough.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn too_few_fault(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    copies: u32,
) -> Result<Option<Diagnostic>, Bug> {
    let Some(few) = too_few_copies(view, found, assignment, copies)? else { return Ok(None) };
    let TooFewCopies { read, write, legal, needed } = few;
    let SchedulerView { world, root, .. } = view;
    let [read, write] = [read, write].map(|n| {
        let node = found.graph.nodes()[n].entity;
        let (stage, slot, cycle) = (assignment.stage(n), assignment.slot(n), assignment.cycles[n]);
        let text = describe(world, root, node);
        let at = format!("{text} is in stage {stage} slot {slot} (cycle {cycle})");
        (text, at, place(world, root, node))
    });
    let (buffers, later) = match copies {
        1 => ("1 LDS buffer is".to_owned(), "the iteration before".to_owned()),
        more => (format!("{more} LDS buffers are"), format!("{more} iterations before")),
    };
    let text =
        format!("{} overwrites what {} of {later} still has to read: {buffers} too few", write.0, read.0);
    let fault = Diagnostic::invalid(text).note(read.1, read.2).note(write.1, write.2);
    let interval = assignment.interval.max(1);
    Ok(Some(fault.help(format!(
        "this schedule takes at least {needed} buffers; with {copies} the first legal place of the write is stage {} slot {} \
         (cycle {legal})",
        legal / interval,
        legal % interval
    ))))
}

/// The fault of a pipeline without epilogue that makes a lasting value before the last stage. None if it
/// makes none.
pub(crate) fn early_fault(
    world: &World,
    root: Entity,
    found: &LoopGraph,
    assignment: &Assignment,
    node: Entity,
) -> Option<Diagnostic> {
    let last = assignment.stages() - 1;
    let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
    let early = found.body().find(|&n| {
        let graph_node = found.graph.nodes()[n];
        let lasting = graph_node.class == Class::WriteGlobal || yields.contains(&graph_node.entity);
        lasting && assignment.stage(n) != last
    })?;
    let early = found.graph.nodes()[early].entity;
    let text = format!(
        "without an epilogue {} would run for iterations that do not exist",
        describe(world, root, early)
    );
    let fault = Diagnostic::invalid(text).note("it is written here", place(world, root, early));
    Some(fault.help("put it into the last stage, or keep the epilogue"))
}
