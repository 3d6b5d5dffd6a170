//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order
//! operations are emitted.
//!
//! Rooms, lowest first; each uses only those above it in this list (`ir/schedule`, below all of them, is the
//! author's schedule as data):
//! - [`graph`]: a loop as schedulers see it: what comes before what, units and delays, a cycle for every node
//! - [`apply`]: loops rebuilt by cycles, and the record of it
//! - [`judge`]: what must hold of cycles and of waves that do not run in step
//! - `author`: schedules and tables that an author wrote
//! - [`estimate`]: what a trip of a loop would take, before anything is done
//! - [`strategies`]: schedules that the compiler finds
//! - [`search`]: shorter schedules, made of those by small changes, on request
//! - [`show`]: listings, drawings, tables and pages
//!
//! The pass looks at every innermost loop: it makes the graph, asks the strategy that the options name for an
//! [`Assignment`](graph::assignment::Assignment), and rebuilds the loop. A loop that a strategy refuses stays
//! as it was written, and the record says why.
//!
//! A schedule says for each node of a loop body in which pipeline stage and slot it runs, and in which order
//! nodes are emitted. It works on expanded nodes, in innermost loops, and no later pass changes the order;
//! between barriers, machine code may (`codegen/machine/interleave`). Schedules hand a `SchedulerView` on
//! ([`graph::view`]), which finds nodes by a query whose state belongs to the pass.
//!
//! A schedule is in the text of a kernel by its effect: a node's stage is its iteration (`trip 1`,
//! `start 0`, `end 0`), its slot and cluster are its place among the nodes, barriers and controls, and the
//! interval is one trip of the loop; copies of buffers, stages, unrolling and waves out of step are
//! attributes. Nothing else of the dependence graph and of the assignment lives on: `ScheduleRecord` has
//! them for reports, tables and pictures, and no later pass and no lowering reads it. Pictures of schedules
//! start before this pass.

pub(crate) mod apply;
mod author;
pub(crate) mod estimate;
pub(crate) mod graph;
pub(crate) mod judge;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod strategies;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use self::apply::record::ScheduleRecord;
use self::author::manual;
use self::graph::loops::candidates;
use self::graph::view::Scheduling;
use self::judge::wave_groups;
use super::facts::ScheduledLoops;
use super::options::Schedule;
use super::{PassResult, kernel_entity};
use crate::ir::node::Op;
use crate::ir::nodes::ExpandedNode;

/// The pass itself; see the module. It rebuilds loops and their bodies, so it takes the whole world.
pub(crate) fn schedule_loops(
    world: &mut World,
    nodes: &mut QueryState<ExpandedNode>,
    ops: &mut QueryState<&'static Op>,
) -> PassResult {
    let root = kernel_entity(world)?;
    let (lds_use, settled) = (OnceCell::new(), SmallVec::new());
    let mut kernel = Scheduling { world, root, nodes, ops, lds_bytes: None, lds_use, settled };
    let asked = kernel.view().settings()?.requested_schedule().clone();
    if asked != Schedule::None {
        let (strategy, candidates) = (asked.strategy(), candidates(kernel.view())?);
        let loops = strategy.schedule(&mut kernel, &candidates, &asked)?;
        let record =
            ScheduleRecord { requested: strategy.name, subject: strategy.subject(), candidates, loops };
        let scheduled = ScheduledLoops { applied: record.applied(), why: record.why() };
        kernel.world.entity_mut(root).insert((record, scheduled));
    }
    // Kernels may hold conditional barriers of their own, with or without a schedule.
    match (wave_groups::check(&mut kernel)?, &asked) {
        (None, _) => Ok(()),
        (Some(fault), Schedule::Manual(written)) => Err(manual::blamed(fault, written)),
        (Some(fault), _) => Err(fault),
    }
}
