//! What is still under way when waves enter a loop that keeps its accesses of LDS in order by itself.
//!
//! Its first trip may overwrite what is read of LDS right in front of it. A barrier there would wait for
//! these reads; but the loop waits for them, too, where it uses their values, and if its own barriers stand
//! between that and the first write, they are enough.
//!
//! Loads straight into LDS in front of it are those of the trips that a pipeline leaves out. If they are
//! issued in the order of the loop, its own waits are for all that a trip leaves under way, and a barrier in
//! front of it has to wait for the others alone: for the tile of the first trip, and not for those after it.

use bevy_ecs::prelude::*;

use super::in_flight::{AccessCounter, counter_of};
use super::trip_barriers::WaveGroup;
use crate::ir::control::MAX_LOADS;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::op::{OpClass, OpUnit};
use crate::ir::walk;
use crate::passes::loops::expand::{Base, Expansion};
use crate::passes::schedule::graph::view::SchedulerView;

/// True if something is read of LDS after the last fence in front of the loop `node`, which follows these
/// nodes in its region, and all of it is over before the first trip, run by these groups, writes to the same
/// buffers.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn reads_are_over(
    view: SchedulerView,
    before: &[Entity],
    node: Entity,
    groups: &[WaveGroup],
) -> Result<bool, Bug> {
    let mut reads: Vec<EarlyRead> = Vec::new();
    for &node in before.iter().rev() {
        let seen = view.node(node)?;
        if *seen.op == Op::Barrier {
            break;
        } else if seen.op.row().class == OpClass::Region {
            return Ok(false);
        } else if let Some(buffer) = view.buffer_of(&seen)?.filter(|_| !seen.op.is_write()) {
            reads.push(EarlyRead { node, buffer, over: None, overwritten: None });
        }
    }
    if reads.is_empty() {
        return Ok(false);
    }
    first_trip(view, node, &mut reads)?;
    let latest = groups.iter().map(|group| group.late).max().unwrap_or(0);
    Ok(reads
        .iter()
        .all(|read| read.over.is_some_and(|over| read.overwritten.is_none_or(|epoch| over + latest < epoch))))
}

/// A read in front of a loop.
struct EarlyRead {
    node: Entity,
    buffer: Entity,
    /// Barriers that a wave meets in the loop until it has used or waited for the value, and until it first
    /// writes to the buffer.
    over: Option<u32>,
    overwritten: Option<u32>,
}

/// Finds out what the first trip of a loop does about reads in front of it.
fn first_trip(view: SchedulerView, node: Entity, reads: &mut [EarlyRead]) -> Result<(), Bug> {
    let mut numbers: NodeMap<usize> = NodeMap::default();
    reads.iter().enumerate().for_each(|(at, read)| numbers.insert(read.node, at));
    let values = &view.node(node)?.operands.0;
    let mut arguments: NodeMap<usize> = NodeMap::default();
    let mut epoch = 0;
    for &inner in view.body(node)? {
        let seen = view.node(inner)?;
        for &operand in &seen.operands.0 {
            if let Some(&read) = arguments.get(operand) {
                let over = &mut reads[read].over;
                *over = over.or(Some(epoch));
            }
        }
        if let Op::IterArg(at) = *seen.op
            && let Some(&read) = values.get(at as usize).and_then(|&value| numbers.get(value))
        {
            arguments.insert(inner, read);
        }
        let is_fence = *seen.op == Op::Barrier;
        if is_fence || *seen.op == Op::Control(Control::WaitForShared(0)) {
            reads.iter_mut().for_each(|read| read.over = read.over.or(Some(epoch)));
        }
        epoch += u32::from(is_fence || *seen.op == Op::Control(Control::WorkgroupBarrier));
        if let Some(buffer) = view.buffer_of(&seen)?.filter(|_| seen.op.is_write()) {
            let own = reads.iter_mut().filter(|read| read.buffer == buffer);
            own.for_each(|read| read.overwritten = read.overwritten.or(Some(epoch)));
        }
    }
    Ok(())
}

/// How many loads may be under way when waves enter the loop `node`: as many as a trip leaves, if the last
/// ones in front of it, at least those since the last fence, are those that the trips before the first one
/// would have issued, and nothing else has written to LDS since then.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn loads_under_way(view: SchedulerView, node: Entity) -> Result<Option<u32>, Bug> {
    let Some(region) = walk::region_of(view.world, view.root, node) else { return Ok(None) };
    let (loads, left) = loads_of_a_trip(view, node)?;
    if loads.is_empty() || left == 0 {
        return Ok(None);
    }
    let per_trip = view.world.get::<Unrolled>(node).map_or(1, |unrolled| i64::from(unrolled.0));
    let before = view.body(region)?.iter().take_while(|&&other| other != node);
    let before: Vec<Entity> = before.copied().collect();
    // The last load that waves have issued comes first.
    let (mut matched, mut is_fenced) = (0, false);
    for &other in before.iter().rev() {
        let op = view.op(other)?;
        let row = op.row();
        is_fenced = op == Op::Barrier;
        if is_fenced || row.class == OpClass::Region {
            break;
        }
        if row.unit != OpUnit::Memory {
            continue;
        }
        let seen = view.node(other)?;
        let buffer = view.buffer_of(&seen)?;
        if buffer.is_some() && !seen.op.is_write() {
            // Reads are under way beside loads; who places barriers looks at them.
            continue;
        }
        if counter_of(buffer, row.memory) != AccessCounter::Loads {
            return Ok(None);
        }
        if matched < left {
            let (trips, at) = (matched as usize / loads.len(), matched as usize % loads.len());
            let expected = loads[loads.len() - 1 - at];
            let iteration = i64::from(expected.iteration.ahead) - per_trip * (trips as i64 + 1);
            let own = seen.piece(other);
            let is_same = (own.logical, own.replica, own.slice)
                == (expected.logical, expected.replica, expected.slice)
                && own.iteration.base == Base::Start
                && i64::from(own.iteration.ahead) == iteration;
            if !is_same {
                return Ok(None);
            }
            matched += 1;
        }
    }
    let is_known = matched == left || is_fenced && matched > 0;
    Ok((is_known && i64::from(left) <= MAX_LOADS).then_some(left))
}

/// The loads of a trip in their order, and how many of them are under way when it ends.
fn loads_of_a_trip(view: SchedulerView, node: Entity) -> Result<(Vec<Expansion>, u32), Bug> {
    let mut loads = Vec::new();
    // Without a wait none is known to be over.
    let mut left = None;
    for &inner in view.body(node)? {
        let op = view.op(inner)?;
        let row = op.row();
        if op == Op::Barrier {
            left = Some(0);
        } else if let Op::Control(Control::WaitForLoads(most)) = op {
            left = Some(left.map_or(most.into(), |left: u32| left.min(most.into())));
        } else if row.unit == OpUnit::Memory {
            let seen = view.node(inner)?;
            if counter_of(view.buffer_of(&seen)?, row.memory) == AccessCounter::Loads {
                loads.push(seen.piece(inner));
                left = left.map(|left| left + 1);
            }
        }
    }
    Ok((loads, left.unwrap_or(0)))
}
