//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order operations are emitted.
//!
//! - [`graph`]: the dependences of a loop body, as data; [`mod@dependences`]: how they are found
//! - [`resources`]: units and delays of the machine; `target_model`: those of the chips
//! - [`assignment`]: a cycle for every node
//! - [`components`], [`bounds`], [`longest`], [`reservations`]: what schedulers ask of a graph and a machine
//! - [`modulo`]: the least interval, found by `iterative` or `in_order`, touched up by `settle`, decided by [`exact`] for small graphs
//! - [`prefetch`], [`four_stage`]: stages by kinds of operations, placed by [`phases`]
//! - [`refusal`]: why there is no schedule
//! - [`mod@pipeline`]: loops from stages; [`copies`]: how many copies of LDS buffers they take
//! - [`pressure`]: registers of the steady state
//! - [`reorder`]: another order of nodes; [`unroll`]: several iterations in one pass; [`wave_groups`]: barriers of waves that do not
//!   run in step
//! - `manual`: the author's operations, one after the other; `selection`, `editing`: what they do; [`verify`]: the judge
//! - [`ping_pong`]: the schedule in which two waves of a SIMD take turns
//! - [`record`]: what was done, and why not; [`view`]: the same for people, with [`keys`] of nodes and [`usage`] of units
//! - [`graph_text`], [`table`], [`timeline`]: as a listing and a drawing, as files that can be read back, as a page
//!
//! The pass looks at every innermost loop: it makes the graph, asks the scheduler that the options name for an [`Assignment`], and
//! rebuilds the loop. A loop that a scheduler refuses stays as it was written, and the record says why.

pub mod assignment;
pub mod bounds;
pub mod components;
pub mod copies;
pub mod dependences;
mod editing;
pub mod exact;
pub mod four_stage;
pub mod graph;
pub mod graph_text;
#[cfg(test)]
mod growth;
mod in_order;
mod iterative;
pub mod keys;
pub mod longest;
mod manual;
pub mod modulo;
pub mod phases;
pub mod ping_pong;
pub mod pipeline;
pub mod prefetch;
pub mod pressure;
pub mod record;
pub mod refusal;
pub mod reorder;
pub mod reservations;
pub mod resources;
mod selection;
mod settle;
pub mod table;
mod target_model;
pub mod timeline;
#[cfg(test)]
mod trials;
pub mod unroll;
pub mod usage;
pub mod verify;
pub mod view;
pub mod wave_groups;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use self::assignment::Assignment;
use self::copies::TooLarge;
use self::dependences::{LoopGraph, dependences};
use self::pipeline::{Placed, Rebuilt, Short, pipeline};
use self::record::{Applied, Checks, LoopRecord, ScheduleRecord};
use self::resources::ResourceModel;
use super::facts::{Expressions, Remainder, Scheduled, Settings};
use super::options::Schedule;
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::*;
use crate::ir::schedule::WaveSchedule;
use crate::ir::walk;
use crate::passes::expand::Expansion;

/// The pass; see the module.
pub fn schedule_loops(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let written = world.get::<Settings>(root).and_then(|s| s.0.requested_wave_schedule().cloned());
    schedule_all(world, root, written.as_ref())?;
    // Kernels have conditional barriers of their own, too, with or without a schedule.
    match wave_groups::check(world, root) {
        None => Ok(()),
        Some(fault) => Err(match written {
            Some(written) => manual::blamed(fault, &written),
            None => fault,
        }),
    }
}

fn schedule_all(world: &mut World, root: Entity, written: Option<&WaveSchedule>) -> PassResult {
    let schedule = world.get::<Settings>(root).map_or(Schedule::None, |s| s.0.requested_schedule());
    if schedule == Schedule::None {
        return Ok(());
    }
    let candidates = candidates(world, root);
    let mut loops = Vec::new();
    let settings = world.get::<Settings>(root).map(|s| &s.0);
    let given = settings.and_then(|s| s.requested_schedule_table().cloned());
    if let Some(written) = written {
        loops = manual::apply(world, root, written, None)?;
    } else if let Some(given) = given {
        loops = table::apply(world, root, &candidates, &given)?;
    } else {
        for &[region, node] in &candidates {
            loops.push(schedule_loop(world, root, region, node, schedule)?);
        }
    }
    let record = ScheduleRecord { requested: schedule, candidates, loops };
    let scheduled = Scheduled { applied: record.applied(), why: record.why() };
    world.entity_mut(root).insert((record, scheduled));
    Ok(())
}

/// Loops with the regions that they stand in.
pub type Candidates = SmallVec<[[Entity; 2]; 4]>;

/// The loops that schedulers look at: all but remainders.
fn candidates(world: &World, root: Entity) -> Candidates {
    let mut found = Candidates::new();
    for region in walk::regions(world, root) {
        for node in walk::body(world, region) {
            let logical = Expansion::at(world, node).logical;
            let is_loop = matches!(world.get::<Op>(node), Some(Op::Iterate(_)));
            if is_loop && world.get::<Remainder>(logical).is_none() {
                found.push([region, node]);
            }
        }
    }
    found
}

/// A fault of this compiler.
fn bug(text: &str) -> Diagnostic {
    Diagnostic::new(Kind::Bug, text)
}

/// Schedules one loop, or says why not.
fn schedule_loop(
    world: &mut World,
    root: Entity,
    region: Entity,
    node: Entity,
    schedule: Schedule,
) -> Result<LoopRecord, Diagnostic> {
    let model = model_of(world, root, node, schedule);
    let refused = |why: String| Ok(LoopRecord::refused(node, why));
    let found = match dependences(world, node, &model) {
        Ok(found) => found,
        Err(why) => return refused(why.to_string()),
    };
    if schedule == Schedule::PingPong {
        return ping_pong_loop(world, root, region, node, found);
    }
    let assignment = match schedule {
        Schedule::None | Schedule::Manual | Schedule::Table | Schedule::PingPong => {
            return refused("no schedule was given".to_owned());
        }
        Schedule::Prefetch => prefetch::schedule(&found.graph),
        Schedule::FourStage => four_stage::schedule(&found.graph),
        Schedule::Modulo => modulo::schedule(&found.graph, &model),
    };
    let assignment = match assignment {
        Ok(assignment) => assignment,
        Err(why) => {
            let name = |n: u32| verify::describe(world, root, found.graph.nodes()[n as usize].entity);
            return refused(why.in_words(name));
        }
    };
    let request = Request::default();
    let checks = if schedule == Schedule::Modulo { Checks::Machine } else { Checks::Order };
    match rebuild(world, root, [region, node], &found, &assignment, request) {
        Ok((_, Rebuilt { steady, .. })) => {
            let applied = Applied { instead: None, steady, found, assignment, request, checks };
            Ok(LoopRecord::applied(node, applied))
        }
        Err(NotRebuilt::Unfit(why)) => refused(why.to_string()),
        Err(NotRebuilt::Fault(fault)) => Err(fault),
    }
}

/// Lets the two waves of a SIMD take turns in a loop; where that does not suit it, the loop gets prefetching and the record says why.
fn ping_pong_loop(
    world: &mut World,
    root: Entity,
    region: Entity,
    node: Entity,
    found: LoopGraph,
) -> Result<LoopRecord, Diagnostic> {
    let product = match ping_pong::classify(world, root, node, &found) {
        Ok(product) => product,
        Err(why) => {
            let record = schedule_loop(world, root, region, node, Schedule::Prefetch)?;
            return Ok(record.instead(Schedule::Prefetch, why.to_string()));
        }
    };
    let tags = ping_pong::tag(world, root, &product);
    let written = ping_pong::schedule_of(&product, &tags)?;
    let mut records = manual::apply(world, root, &written, Some((node, found)))?;
    records.pop().ok_or_else(|| bug("a schedule without a loop"))
}

/// How a loop is to be rebuilt, beside its assignment.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Request {
    /// Copies of every LDS buffer, instead of as many as the assignment takes.
    pub copies: Option<u32>,
    /// What runs the last iterations' later stages.
    pub drain: Drain,
}

/// Why a loop stays as it is, although its assignment is legal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum Unfit {
    #[error("{stages} stages need at least {needed} iterations, and it has {count}")]
    Short { stages: u32, needed: u32, count: i64 },
    #[error(transparent)]
    Lds(#[from] TooLarge),
}

/// Why a loop is not rebuilt.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NotRebuilt {
    /// Its sizes do not suit the schedule: it stays as it was written.
    Unfit(Unfit),
    /// The kernel is broken.
    Fault(Diagnostic),
}

impl From<Unfit> for NotRebuilt {
    fn from(why: Unfit) -> NotRebuilt {
        NotRebuilt::Unfit(why)
    }
}

impl From<Diagnostic> for NotRebuilt {
    fn from(fault: Diagnostic) -> NotRebuilt {
        NotRebuilt::Fault(fault)
    }
}

/// Rebuilds a loop by an assignment that respects its dependences; gives the order of its nodes, and what became of them.
fn rebuild(
    world: &mut World,
    root: Entity,
    [region, node]: [Entity; 2],
    found: &LoopGraph,
    assignment: &Assignment,
    request: Request,
) -> Result<(Vec<Placed>, Rebuilt), NotRebuilt> {
    let stages = assignment.stages();
    let short = short(world, root, node, stages, request.drain)?;
    copies::give(world, root, found, assignment, request.copies).map_err(Unfit::from)?;
    let order = order_of(world, root, found, assignment);
    if stages == 1 {
        reorder_body(world, node, &order);
        let copies = order.iter().map(|placed| smallvec![placed.node]).collect();
        return Ok((order, Rebuilt { whole: node, steady: node, copies }));
    }
    let rebuilt = pipeline(world, root, [region, node], &order, stages, short, request.drain)?;
    Ok((order, rebuilt))
}

/// The machine that a schedule is made for.
fn model_of(world: &World, root: Entity, node: Entity, schedule: Schedule) -> ResourceModel {
    match schedule {
        Schedule::Modulo => chip_model(world, root, node),
        _ => ResourceModel::ABSTRACT,
    }
}

/// The target's model for a loop.
fn chip_model(world: &World, root: Entity, node: Entity) -> ResourceModel {
    let Some(settings) = world.get::<Settings>(root) else { return ResourceModel::ABSTRACT };
    let body = walk::body(world, node);
    let target = settings.0.target();
    let passes = body.iter().filter_map(|&n| match world.get::<Op>(n) {
        Some(Op::Mma(MmaChoice::Explicit(mma))) => target.matrix_instruction(*mma).map(|i| i.passes.into()),
        _ => None,
    });
    ResourceModel::of_target(target, passes.max().unwrap_or(0))
}

/// What a pipeline has to do about short trip counts; refused if the count is known to be too small.
fn short(
    world: &mut World,
    root: Entity,
    node: Entity,
    stages: u32,
    drain: Drain,
) -> Result<Short, NotRebuilt> {
    let needed = Pipelined { ahead: stages - 1, drain }.needed();
    let trip = *world.get::<Trip>(node).ok_or_else(|| bug("a loop without trip count"))?;
    let per_pass = i64::from(Unrolled::of(world, node));
    let mut expressions = world.get_mut::<Expressions>(root).ok_or_else(|| bug("no expressions"))?;
    let arena = &mut expressions.0;
    let count = arena.sub(trip.end, trip.start).map_err(|e| bug(&format!("a trip count: {e}")))?;
    let iterations = i64::from(needed) * per_pass;
    match arena.as_integer(count) {
        Some(known) if known < iterations => {
            Err(Unfit::Short { stages, needed, count: known / per_pass }.into())
        }
        Some(_) => Ok(Short::Never),
        None if arena.range(count).at_least(iterations) => Ok(Short::Never),
        None if needed == 1 => Ok(Short::Empty),
        None => Ok(Short::AsWritten),
    }
}

/// The nodes of the body in the order of the steady state: slot by slot, oldest iteration first, then as written. Reads move closer to
/// their users where registers are too few.
fn order_of(world: &World, root: Entity, found: &LoopGraph, assignment: &Assignment) -> Vec<Placed> {
    let mut order: Vec<u32> = (0..found.body)
        .filter(|&n| !matches!(world.get::<Op>(found.graph.nodes()[n as usize].entity), Some(Op::IterArg(_))))
        .collect();
    order.sort_by_key(|&n| (assignment.slot(n), std::cmp::Reverse(assignment.stage(n)), n));
    pressure::relieve(world, found, assignment, &mut order, pressure::available(world, root));
    pressure::placed(found, assignment, &order)
}

/// Gives a loop of one stage its new order.
fn reorder_body(world: &mut World, node: Entity, order: &[Placed]) {
    let carried = |&n: &Entity| matches!(world.get::<Op>(n), Some(Op::IterArg(_)));
    let mut body: SmallVec<[Entity; 64]> = walk::body(world, node).into_iter().filter(carried).collect();
    body.extend(order.iter().map(|placed| placed.node));
    walk::set_body(world, node, &body);
}
