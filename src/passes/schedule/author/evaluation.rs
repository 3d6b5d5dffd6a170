//! A schedule while it is evaluated: what its values stand for, and why it may stop.

use bevy_ecs::prelude::*;

use super::reorder::ClusterPiece;
use super::tags::TagIndex;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::record::LoopRecord;
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::{describe, place};

/// Schedules the loop at a place, in the region before it, by the strategy of a name.
pub(crate) type ScheduleByName = fn(&mut Scheduling, [Entity; 2], &str) -> Result<LoopRecord, Diagnostic>;

/// What a value of a schedule stands for.
#[derive(Clone, Debug)]
pub(super) enum ScheduleValue {
    /// Nodes.
    Nodes(Vec<Entity>),
    /// Nodes and what is to be inserted between them.
    Cluster(Vec<ClusterPiece>),
    /// A part of a pipelined loop.
    Part(Part),
}

/// A part of a pipelined loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// The region of the pipelined loop.
    pub whole: Entity,
    /// The loop of its steady state.
    pub steady: Entity,
    /// Which part.
    pub which: Which,
}

/// Parts of a pipelined loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Prologue,
    Kernel,
    Epilogue,
}

/// Why a schedule is not applied.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Stop {
    /// The author has to correct something.
    Fault(Diagnostic),
    /// The sizes do not suit it; the kernel stays as it was written.
    Unfit(LoopRecord),
}

impl From<Bug> for Stop {
    fn from(bug: Bug) -> Stop {
        Stop::Fault(bug.into())
    }
}

impl From<Diagnostic> for Stop {
    fn from(fault: Diagnostic) -> Stop {
        Stop::Fault(fault)
    }
}

/// A schedule while it is evaluated.
pub(super) struct Evaluation<'s, 'w> {
    pub(super) kernel: &'s mut Scheduling<'w>,
    pub(super) values: Vec<ScheduleValue>,
    pub(super) records: Vec<LoopRecord>,
    /// The nodes that the tags of a strategy's schedule stand for; none for an author's.
    pub(super) tagged: Option<&'s TaggedNodes>,
    /// Tagged nodes, until the kernel changes.
    pub(super) tags: Option<TagIndex<'s>>,
    /// The dependences of a loop, if they are already known.
    pub(super) known: Option<(Entity, LoopGraph)>,
    /// Location of the operation being evaluated, and its index among the kernel's locations.
    pub(super) at: Location,
    pub(super) origin: Origin,
    /// The way to the strategies that an author leaves loops to.
    pub(super) by_name: ScheduleByName,
}

impl<'s, 'w> Evaluation<'s, 'w> {
    /// An author's schedule, written at a place, before its first operation.
    pub(super) fn new(kernel: &'s mut Scheduling<'w>, at: Location, by_name: ScheduleByName) -> Self {
        let (values, records, origin) = (Vec::new(), Vec::new(), Origin(u32::MAX));
        Evaluation { kernel, values, records, tagged: None, tags: None, known: None, at, origin, by_name }
    }

    /// A node in words.
    pub(super) fn describe(&self, node: Entity) -> String {
        describe(self.kernel.world, self.kernel.root, node)
    }

    /// Where the author wrote a node.
    pub(super) fn place(&self, node: Entity) -> Option<Location> {
        place(self.kernel.world, self.kernel.root, node)
    }

    /// A fault at the operation being evaluated.
    pub(super) fn fault(&self, text: impl Into<String>) -> Diagnostic {
        Diagnostic::invalid(text).at(Some(self.at.clone()))
    }
}
