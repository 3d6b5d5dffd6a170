//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order
//! operations are emitted.
//!
//! Rooms, lowest first; each uses only those above it in this list:
//!
//! Modules, lowest first; each uses only those above it in this list:
//! - [`apply`]: loops rebuilt by cycles, and the record of it
//! - [`judge`]: what must hold of cycles and of waves that do not run in step
//! - `author`: schedules and tables that an author wrote
//! - [`strategies`]: schedules that the compiler finds
//! - [`show`]: listings, drawings, tables and pages
//!
//! The pass looks at every innermost loop: it makes the graph, asks the strategy that the options name for an
//! [`Assignment`](graph::assignment::Assignment), and rebuilds the loop. A loop that a strategy refuses stays
//! as it was written, and the record says why.

pub(crate) mod apply;
mod author;
pub(crate) mod graph;
pub(crate) mod judge;
pub(crate) mod show;
pub(crate) mod strategies;
#[cfg(test)]
mod tests;

use bevy_ecs::prelude::*;

use self::apply::record::ScheduleRecord;
use self::author::manual;
use self::graph::loops::candidates;
use self::judge::wave_groups;
use super::facts::{Scheduled, Settings};
use super::options::Schedule;
use super::{PassResult, kernel_entity};

/// The pass itself; see the module. It rebuilds loops and their bodies, so it takes the whole world.
pub(crate) fn schedule_loops(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let asked = world.get::<Settings>(root).map_or(Schedule::None, |s| s.0.requested_schedule().clone());
    if asked != Schedule::None {
        let (strategy, candidates) = (asked.strategy(), candidates(world, root));
        let loops = strategy.schedule(world, root, &candidates, &asked)?;
        let record =
            ScheduleRecord { requested: strategy.name, subject: strategy.subject(), candidates, loops };
        let scheduled = Scheduled { applied: record.applied(), why: record.why() };
        world.entity_mut(root).insert((record, scheduled));
    }
    // Kernels may hold conditional barriers of their own, with or without a schedule.
    match (wave_groups::check(world, root), &asked) {
        (None, _) => Ok(()),
        (Some(fault), Schedule::Manual(written)) => Err(manual::blamed(fault, written)),
        (Some(fault), _) => Err(fault),
    }
}
