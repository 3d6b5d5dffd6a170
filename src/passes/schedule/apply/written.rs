//! Schedules of single loops that strategies write as an author would.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::layout::Layout;
use crate::ir::schedule::WaveSchedule;

/// The tags of a strategy's schedule, which are nowhere in the kernel, and the logical nodes that they stand
/// for.
pub(crate) type TaggedNodes = SmallVec<[(Box<str>, SmallVec<[Entity; 3]>); 6]>;

/// An author's schedule of one loop, written by a strategy.
#[derive(Clone, PartialEq, Debug)]
pub struct WrittenSchedule {
    /// The schedule.
    pub(crate) schedule: WaveSchedule,
    /// The nodes that its tags stand for.
    pub(crate) tagged: TaggedNodes,
    /// Operations that get other layouts for it.
    pub(crate) layouts: SmallVec<[(Entity, Layout); 2]>,
}

impl WrittenSchedule {
    /// A schedule that leaves the layouts of operations as they are.
    pub(crate) fn new(schedule: WaveSchedule, tagged: TaggedNodes) -> WrittenSchedule {
        WrittenSchedule { schedule, tagged, layouts: SmallVec::new() }
    }
}
