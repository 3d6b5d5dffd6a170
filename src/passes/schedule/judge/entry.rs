//! What is read of LDS right in front of a loop whose waves do not run in step.
//!
//! The loop's first trip may overwrite it. A barrier in front of the loop would wait for these reads; but the
//! loop waits for them, too, where it uses their values, and if its own barriers stand between that and the
//! first write, they are enough.

use bevy_ecs::prelude::*;

use super::trip_barriers::WaveGroup;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
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
