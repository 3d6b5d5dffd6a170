//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order
//! operations are emitted.
//!
//! Rooms, lowest first; each uses only those above it in this list:
//!
//! Modules, lowest first; each uses only those above it in this list:
//! - [`apply`]: loops rebuilt by cycles, and the record of it
//! - [`judge`]: what must hold of cycles and of waves that do not run in step
//! - `author`: schedules and tables that an author wrote
//! - [`estimate`]: what a trip of a loop would take, before anything is done
//! - [`strategies`]: schedules that the compiler finds
//! - [`show`]: listings, drawings, tables and pages
//!
//! The pass looks at every innermost loop: it makes the graph, asks the strategy that the options name for an
//! [`Assignment`](graph::assignment::Assignment), and rebuilds the loop. A loop that a strategy refuses stays
//! as it was written, and the record says why.

pub(crate) mod apply;
mod author;
pub(crate) mod estimate;
pub(crate) mod graph;
pub(crate) mod judge;
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
