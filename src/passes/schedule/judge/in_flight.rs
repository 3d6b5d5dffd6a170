//! When accesses of LDS in a loop body are over: for each, the number of barriers that its wave has met by
//! then.
//!
//! An access is over at the first of these: a barrier with an LDS fence; the first use of the value that it
//! reads; a wait that leaves fewer accesses under way than were issued after it. What counts in one counter
//! is over in the order of issue (CDNA3 ISA, section 4.4), and steady states repeat their bodies, so a wait
//! may be for accesses of earlier trips. Scalar loads, which would come between those of LDS in any order,
//! stand in front of loops alone.

use crate::index::Stretches;
use bevy_ecs::prelude::*;

use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::{MemoryEffect, OpUnit};
use crate::passes::loops::expand::{Base, Iteration};
use crate::passes::schedule::graph::numbers::EntityNumbers;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::{PrimaryMap, entity_impl};

/// An LDS access of the body.
pub(super) struct BodyAccess {
    pub(super) node: Entity,
    pub(super) buffer: Entity,
    /// Copies of the buffer that iterations use in turn.
    pub(super) copies: u32,
    pub(super) write: bool,
    pub(super) ahead: u32,
    /// Barriers of the body before it.
    pub(super) epoch: u32,
    /// The epoch in which it is over.
    pub(super) over: u32,
}

/// An access of which nothing has said yet that it is over; half of the range leaves room for sums.
const OPEN: u32 = u32::MAX / 2;

/// The counter of an access while it is under way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AccessCounter {
    /// vmcnt: loads from global memory, to registers or to LDS.
    Loads,
    /// lgkmcnt: accesses of LDS.
    Shared,
}

/// A wait for all but a number of the accesses in a counter.
struct CountedWait {
    counter: AccessCounter,
    /// Accesses of the counter in the body before it.
    issued: u32,
    left: u32,
    epoch: u32,
}

impl CountedWait {
    /// Trips until at least `left` accesses have been issued between one that `before` others precede in its
    /// trip and the wait; each trip issues `total`.
    fn trips_after(&self, before: u32, total: u32) -> u32 {
        (before + 1 + self.left).saturating_sub(self.issued).div_ceil(total)
    }
}

/// The number of an LDS access of a body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct AccessId(u32);
entity_impl!(AccessId, "");

/// The counter that a directive waits for, and how many of its accesses may be left under way.
fn waited_for(control: Control) -> Option<(AccessCounter, u8)> {
    match control {
        Control::WaitForLoads(left) => Some((AccessCounter::Loads, left)),
        Control::WaitForShared(left) => Some((AccessCounter::Shared, left)),
        Control::WorkgroupBarrier
        | Control::ConditionalBarrier(_)
        | Control::SetWavePriority(_)
        | Control::SchedulingBarrier
        | Control::InterleaveByCost
        | Control::SkipUnitFactors => None,
    }
}

/// The counter of an access, of an LDS buffer if there is one.
pub(super) fn counter_of(buffer: Option<Entity>, memory: MemoryEffect) -> AccessCounter {
    match (buffer, memory) {
        (Some(_), MemoryEffect::Reads | MemoryEffect::Writes | MemoryEffect::Updates) => {
            AccessCounter::Shared
        }
        _ => AccessCounter::Loads,
    }
}

/// The LDS accesses of a body, and how many barriers it has.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn accesses_of(
    view: SchedulerView,
    body: &[Entity],
) -> Result<(PrimaryMap<AccessId, BodyAccess>, u32), Bug> {
    let mut accesses: PrimaryMap<AccessId, BodyAccess> = PrimaryMap::default();
    // What counts each access, and how many accesses of that counter were issued before it.
    let mut issues: PrimaryMap<AccessId, (AccessCounter, u32)> = PrimaryMap::default();
    let mut number: EntityNumbers<AccessId> = EntityNumbers::of(body.iter().copied());
    let mut issued = [0; 2];
    let mut waits: Vec<CountedWait> = Vec::new();
    let mut first_open = AccessId::default();
    let mut epoch = 0;
    let mut first_fence = None;
    for &node in body {
        let seen = view.node(node)?;
        for at in seen.operands.0.iter().filter_map(|&operand| number.get(operand)) {
            accesses[at].over = accesses[at].over.min(epoch);
        }
        if *seen.op == Op::Barrier {
            let end = accesses.next_key();
            accesses.range_mut(first_open..end).iter_mut().for_each(|it| it.over = it.over.min(epoch));
            first_open = end;
            first_fence.get_or_insert(epoch);
            epoch += 1;
        } else if let Op::Control(control) = *seen.op {
            epoch += u32::from(control == Control::WorkgroupBarrier);
            waits.extend(waited_for(control).map(|(counter, left)| CountedWait {
                counter,
                issued: issued[counter as usize],
                left: left.into(),
                epoch,
            }));
        }
        let row = seen.op.row();
        if row.unit != OpUnit::Memory || row.memory == MemoryEffect::Fence {
            continue;
        }
        let buffer = view.buffer_of(&seen)?;
        let counter = counter_of(buffer, row.memory);
        if let Some(buffer) = buffer {
            let write = seen.op.is_write();
            let Iteration { base, ahead } = seen.piece(node).iteration;
            // As it is written, all iterations use the first.
            let copies = if base == Base::Written { 1 } else { view.copies(buffer) };
            let access = BodyAccess { node, buffer, copies, write, ahead, epoch, over: OPEN };
            number.insert(node, accesses.push(access));
            issues.push((counter, issued[counter as usize]));
        }
        issued[counter as usize] += 1;
    }
    // What no fence of its trip follows is over at the first one of the next trip.
    let next_fence = first_fence.map_or(OPEN, |fence| epoch + fence);
    for (access, &(counter, before)) in accesses.values_mut().zip(issues.values()) {
        let total = issued[counter as usize].max(1);
        let counted = waits.iter().filter(|wait| wait.counter == counter);
        let over = counted.map(|wait| wait.trips_after(before, total) * epoch + wait.epoch);
        access.over = over.fold(access.over.min(next_fence), u32::min);
    }
    Ok((accesses, epoch))
}
