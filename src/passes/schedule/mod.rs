//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order operations are emitted.
//!
//! Rooms, lowest first; each uses only those above it in this list:
//!
//! - [`graph`]: a loop as schedulers see it, the machine it runs on, and a cycle for every node
//! - [`apply`]: loops rebuilt by cycles, and the record of it
//! - [`judge`]: what must hold of cycles and of waves that do not run in step
//! - [`author`]: schedules and tables that somebody wrote
//! - [`strategies`]: schedules that the compiler finds
//! - [`show`]: listings, drawings, tables and pages
//!
//! The pass looks at every innermost loop: it makes the graph, asks the strategy that the options name for an
//! [`Assignment`](graph::assignment::Assignment), and rebuilds the loop. A loop that a strategy refuses stays as it was
//! written, and the record says why.

pub mod apply;
mod author;
pub mod graph;
pub mod judge;
pub mod show;
pub mod strategies;
#[cfg(test)]
mod tests;

use bevy_ecs::prelude::*;

use self::apply::pipeline::Rebuilt;
use self::apply::rebuild::{NotRebuilt, rebuild};
use self::apply::record::{Applied, LoopRecord, ScheduleRecord};
use self::author::{manual, table};
use self::graph::dependences::{LoopGraph, dependences};
use self::graph::loops::{candidates, chip_model};
use self::graph::resources::ResourceModel;
use self::graph::words::{bug, describe};
use self::judge::wave_groups;
use self::strategies::{four_stage, modulo, ping_pong, prefetch};
use super::facts::{Scheduled, Settings};
use super::options::Schedule;
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::schedule::WaveSchedule;
use crate::ir::schedule::table::{Checks, Request};

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
            let name = |n: u32| describe(world, root, found.graph.nodes()[n as usize].entity);
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

/// The machine that a schedule is made for.
fn model_of(world: &World, root: Entity, node: Entity, schedule: Schedule) -> ResourceModel {
    match schedule {
        Schedule::Modulo => chip_model(world, root, node),
        _ => ResourceModel::ABSTRACT,
    }
}
