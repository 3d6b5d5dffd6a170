//! The judge of assignments: every node in its place once, every dependence in order, every LDS buffer with copies enough. A fault names both
//! nodes, how many iterations lie between them, and the first cycle that would be legal.

use bevy_ecs::prelude::*;

use super::assignment::Assignment;
use super::copies;
use super::dependences::LoopGraph;
use super::graph::{Dependence, Edge};
use super::resources::Class;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::node::{Name, *};
use crate::passes::expand::Expansion;
use crate::passes::facts::LdsBuffer;

/// A dependence that an assignment breaks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The dependence, between nodes of the body: junctions are resolved to the accesses that break it.
    pub edge: Edge,
    /// First cycle of the later node that would be legal.
    pub legal: u32,
}

/// The first dependence that an assignment breaks by its order: nodes of one slot run oldest iteration first, then as written, so a
/// dependence holds if `cycle(to) + distance * interval >= cycle(from)`.
pub fn broken(found: &LoopGraph, assignment: &Assignment) -> Option<Broken> {
    let cycle = |node: u32| u64::from(assignment.cycles[node as usize]);
    let interval = u64::from(assignment.interval);
    let holds = |from: u32, to: u32, distance: u32| cycle(to) + u64::from(distance) * interval >= cycle(from);
    // The last that enters a junction; edges come sorted by what they leave.
    let mut junction: Option<(u32, Option<&Edge>)> = None;
    for edge in found.graph.edges().iter().filter(|edge| edge.to < found.body) {
        // What goes through a junction depends on all that enters it.
        let mut broken = None;
        if edge.from >= found.body {
            let (_, last) = match junction.filter(|known| known.0 == edge.from) {
                Some(known) => known,
                None => (edge.from, found.graph.entering(edge.from).max_by_key(|e| (cycle(e.from), e.from))),
            };
            junction = Some((edge.from, last));
            if let Some(first) = last.filter(|e| !holds(e.from, edge.to, edge.distance)) {
                broken = Some(Edge { from: first.from, kind: first.kind, ..*edge });
            }
        } else if !holds(edge.from, edge.to, edge.distance) {
            broken = Some(*edge);
        }
        if let Some(edge) = broken {
            let legal = cycle(edge.from).saturating_sub(u64::from(edge.distance) * interval);
            return Some(Broken { edge, legal: u32::try_from(legal).unwrap_or(u32::MAX) });
        }
    }
    None
}

/// The fault of a broken dependence.
pub fn broken_fault(
    world: &World,
    root: Entity,
    found: &LoopGraph,
    assignment: &Assignment,
    fault: Broken,
) -> Diagnostic {
    let Broken { edge, legal } = fault;
    let [from, to] = [edge.from, edge.to].map(|n| found.graph.nodes()[n as usize].entity);
    let at = |node: u32| format!("stage {} slot {}", assignment.stage(node), assignment.slot(node));
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
            format!("{to_text} is in {} (cycle {})", at(edge.to), assignment.cycles[edge.to as usize]),
            place(world, root, to),
        )
        .note(
            format!("{from_text} is in {} (cycle {})", at(edge.from), assignment.cycles[edge.from as usize]),
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
        Dependence::Order => "is kept in order behind",
    }
}

/// The first LDS buffer with fewer copies than the order of an assignment takes: the last read of it, the first write to it, and how many it takes.
pub fn too_few_copies(found: &LoopGraph, assignment: &Assignment, copies: u32) -> Option<(u32, u32, u32)> {
    found.buffers.iter().find_map(|buffer| {
        let needed = copies::least(found, buffer, assignment);
        let cycle = |node: &&u32| assignment.cycles[**node as usize];
        let read = buffer.reads.iter().max_by_key(cycle).copied()?;
        let write = buffer.writes.iter().min_by_key(cycle).copied()?;
        (needed > copies).then_some((read, write, needed))
    })
}

/// The fault of LDS buffers with fewer copies than the order of an assignment takes; none if `copies` are enough.
pub fn too_few_fault(
    world: &World,
    root: Entity,
    found: &LoopGraph,
    assignment: &Assignment,
    copies: u32,
) -> Option<Diagnostic> {
    let (read, write, needed) = too_few_copies(found, assignment, copies)?;
    let [read, write] = [read, write].map(|n| {
        let node = found.graph.nodes()[n as usize].entity;
        let (stage, slot, cycle) = (assignment.stage(n), assignment.slot(n), assignment.cycles[n as usize]);
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
    Some(fault.help(format!("this schedule takes at least {needed} buffers")))
}

/// What speaks against a pipeline without epilogue: something that lasts, made before the last stage. None if nothing does.
pub fn early_fault(
    world: &World,
    root: Entity,
    found: &LoopGraph,
    assignment: &Assignment,
    node: Entity,
) -> Option<Diagnostic> {
    let last = assignment.stages() - 1;
    let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
    let early = (0..found.body).find(|&n| {
        let graph_node = found.graph.nodes()[n as usize];
        let lasting = graph_node.class == Class::WriteGlobal || yields.contains(&graph_node.entity);
        lasting && assignment.stage(n) != last
    })?;
    let early = found.graph.nodes()[early as usize].entity;
    let text = format!(
        "without an epilogue {} would run for iterations that do not exist",
        describe(world, root, early)
    );
    let fault = Diagnostic::invalid(text).note("it is written here", place(world, root, early));
    Some(fault.help("put it into the last stage, or keep the epilogue"))
}

/// Nodes that take time and have the first and the last place: what an assignment of a graph's nodes is in words.
pub fn takes_place(class: Class) -> bool {
    class != Class::Free
}

/// Where the author wrote a node.
pub fn place(world: &World, root: Entity, node: Entity) -> Option<Location> {
    world.get::<Locations>(root)?.get(world.get::<Origin>(node)?.0)
}

/// A node in words: `the LDS write "read_a" (replica 2)`.
pub fn describe(world: &World, root: Entity, node: Entity) -> String {
    let expansion = world.get::<Expansion>(node).copied().unwrap_or(Expansion::of(node));
    let memory = world.get::<Operands>(node).and_then(|o| o.0.last().copied());
    let shared = memory.is_some_and(|m| world.get::<LdsBuffer>(m).is_some());
    let name = memory.and_then(|m| world.get::<Name>(m)).map(|n| format!(" of {}", n.0)).unwrap_or_default();
    let what = match world.get::<Op>(node) {
        Some(Op::Read) if shared => "LDS read".to_owned(),
        Some(Op::Write) if shared => "LDS write".to_owned(),
        Some(Op::Read) => format!("global read{name}"),
        Some(Op::Write) => format!("global write{name}"),
        Some(Op::GlobalToShared) => "load to LDS".to_owned(),
        Some(Op::Mma(_)) => "matrix product".to_owned(),
        Some(&Op::Iterate(dim) | &Op::Pipeline(dim)) => {
            format!("loop over {}", world.get::<DimTable>(root).map_or("?", |d| d.name(dim)))
        }
        Some(Op::Barrier | Op::Control(_)) => "barrier or control".to_owned(),
        Some(Op::IterArg(_)) => "carried value".to_owned(),
        Some(&op) => crate::ir::schedule::NodeType::of(op).map_or("operation", |t| t.name()).to_owned(),
        None => "operation".to_owned(),
    };
    let tag = world.get::<Tag>(expansion.logical).or_else(|| world.get::<Tag>(node));
    match tag {
        Some(tag) => format!("the {what} \"{}\" (replica {})", tag.0, expansion.replica),
        None => format!("the {what} (replica {})", expansion.replica),
    }
}
