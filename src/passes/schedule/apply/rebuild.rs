//! A loop rebuilt by an assignment: copies of LDS buffers, the order of nodes, and a pipeline where there is
//! more than one stage.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::copies::{self, NotGiven, SharedCopies, TooLarge};
use super::pipeline::{OrderPlace, PlacedNode, Rebuilt, Short, pipeline};
use super::unroll::{NotUnrolled, unroll};
use super::{lifetimes, pressure};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug};
use crate::ir::schedule::table::{Checks, Request};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::facts::Expressions;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::bug;
use cranelift_entity::PrimaryMap;

/// Why a loop stays as it is, although its assignment is legal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unfit {
    /// It has fewer iterations than its stages need.
    #[error("{stages} stages need at least {needed} iterations, and it has {count}")]
    Short {
        /// Stages of the pipeline.
        stages: u32,
        /// Iterations that they need.
        needed: u32,
        /// Iterations that it has.
        count: i64,
    },
    /// A comparison and what looks at it are in different stages.
    #[error("a condition would be carried from one stage to a later one, and registers hold numbers")]
    Condition,
    /// Its LDS buffers do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
    /// They have other copies.
    #[error(transparent)]
    Shared(#[from] SharedCopies),
}

/// Why a loop is not rebuilt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotRebuilt {
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

impl From<Bug> for NotRebuilt {
    fn from(bug: Bug) -> NotRebuilt {
        NotRebuilt::Fault(bug.into())
    }
}

impl From<Diagnostic> for NotRebuilt {
    fn from(fault: Diagnostic) -> NotRebuilt {
        NotRebuilt::Fault(fault)
    }
}

impl From<NotGiven> for NotRebuilt {
    fn from(why: NotGiven) -> NotRebuilt {
        match why {
            NotGiven::TooLarge(why) => Unfit::from(why).into(),
            NotGiven::Shared(why) => Unfit::from(why).into(),
            NotGiven::Broken(bug) => bug.into(),
        }
    }
}

/// Rebuilds a loop by an assignment that respects its dependences; returns the order of its nodes, and what
/// became of them.
pub(crate) fn rebuild(
    kernel: &mut Scheduling,
    [region, node]: [Entity; 2],
    found: &LoopGraph,
    assignment: &Assignment,
    request: Request,
    checks: Checks,
) -> Result<(PrimaryMap<OrderPlace, PlacedNode>, Rebuilt), NotRebuilt> {
    let stages = assignment.stages();
    let short = short(kernel.world, kernel.root, node, stages, request.drain)?;
    if carries_condition(kernel.view(), found, assignment) {
        return Err(Unfit::Condition.into());
    }
    copies::give(kernel, found, assignment, request.copies)?;
    let numbers = order_of(kernel.view(), found, assignment, checks)?;
    let order = pressure::placed(found, assignment, &numbers);
    if stages == 1 {
        reorder_body(kernel, node, found, &order);
        let copies = order.values().map(|placed| smallvec![placed.node]).collect();
        return Ok((order, Rebuilt { whole: node, steady: node, copies }));
    }
    let most = kernel.view().most_iterations(node)?;
    let rebuilt = pipeline(kernel, [region, node], &order, stages, short, request.drain)?;
    let trips = lifetimes::merged_trips(found, assignment, &numbers, checks, most);
    if trips > 1 {
        unroll_steady(kernel, &rebuilt, trips)?;
    }
    Ok((order, rebuilt))
}

/// Merges several trips of a steady state into one; a steady state with fewer trips stays as it is.
fn unroll_steady(kernel: &mut Scheduling, rebuilt: &Rebuilt, trips: u32) -> Result<(), Diagnostic> {
    match unroll(kernel, [rebuilt.whole, rebuilt.steady], trips) {
        Ok(_) | Err(NotUnrolled::TooShort { .. }) => Ok(()),
        Err(NotUnrolled::Fault(fault)) => Err(fault),
    }
}

/// True if a condition is made in one stage and used in a later one.
fn carries_condition(view: SchedulerView, found: &LoopGraph, assignment: &Assignment) -> bool {
    if assignment.stages() == 1 || !view.any(|op| matches!(op, Op::Compare(_))) {
        return false;
    }
    let is_condition = |node: NodeId| {
        let ty = view.world.get::<ValueType>(found.graph.nodes()[node].entity);
        ty.is_some_and(|ty| ty.dtype == Some(DType::I1))
    };
    found.graph.edges().iter().any(|edge| {
        assignment.stage(edge.to) + edge.distance > assignment.stage(edge.from) && is_condition(edge.from)
    })
}

/// What a pipeline has to do about short trip counts; an error if the count is known to be too small.
fn short(
    world: &mut World,
    root: Entity,
    node: Entity,
    stages: u32,
    drain: Drain,
) -> Result<Short, NotRebuilt> {
    let needed = Pipelined { ahead: stages - 1, drain }.needed();
    let trip = *nodes::fact::<Trip>(world, node, "a loop without trip count")?;
    let per_trip = i64::from(Unrolled::of(world, node));
    let mut expressions = world.get_mut::<Expressions>(root).ok_or_else(|| bug("no expressions"))?;
    let arena = &mut expressions.0;
    let count = arena.sub(trip.end, trip.start).map_err(|e| bug(&format!("a trip count: {e}")))?;
    let iterations = i64::from(needed) * per_trip;
    match arena.as_integer(count) {
        Some(known) if known < iterations => {
            Err(Unfit::Short { stages, needed, count: known / per_trip }.into())
        }
        Some(_) => Ok(Short::Never),
        None if arena.range(count).at_least(iterations) => Ok(Short::Never),
        None if needed == 1 => Ok(Short::Empty),
        None => Ok(Short::AsWritten),
    }
}

/// The nodes of the body in the order of the steady state: slot by slot, the oldest iteration first, then as
/// written. Reads move closer to their users where registers are too few.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn order_of(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    checks: Checks,
) -> Result<Vec<NodeId>, Bug> {
    let mut order: Vec<NodeId> = found.body().filter(|&n| !found.is_carried(n)).collect();
    order.sort_by_key(|&n| (assignment.slot(n), std::cmp::Reverse(assignment.stage(n)), n));
    pressure::relieve(view, found, assignment, &mut order, pressure::available(view)?);
    // Phases say nothing about time, so no read is delayed there.
    if checks == Checks::Machine {
        lifetimes::take_turns(view, found, assignment, &mut order);
    }
    Ok(order)
}

/// Gives a loop of one stage its new order.
fn reorder_body(
    kernel: &mut Scheduling,
    node: Entity,
    found: &LoopGraph,
    order: &PrimaryMap<OrderPlace, PlacedNode>,
) {
    let carried = found.body().filter(|&n| found.is_carried(n));
    let mut body: SmallVec<[Entity; 64]> = carried.map(|n| found.graph.nodes()[n].entity).collect();
    body.extend(order.values().map(|placed| placed.node));
    walk::set_body(kernel.world, node, &body);
}
