//! An author's schedule as data: a straight list of operations over tags and numbered values, which does not
//! refer to any kernel.
//!
//! It is traced from a closure ([`WaveSchedule::trace`]) or read from a `schedule` block
//! ([`WaveSchedule::parse`]; the grammar is in [`text::schedule`](super::text::schedule)). Nothing is looked
//! up when it is written, so one schedule fits every kernel that has its tags; mistakes that do not depend on
//! a kernel are found all the same. Compiling a kernel walks [`WaveSchedule::operations`].
#![doc = include_str!("../../../docs/schedules.md")]

mod builder;
mod handles;
mod node_type;
mod operations;
mod recorded;
mod recorder;
mod rules;
pub mod table;
#[cfg(test)]
mod tests;

pub use builder::{PipelineTracer, ScheduleTracer};
pub use handles::{
    Cluster, ClusterEntry, Interleave, Listed, Nodes, OperationTarget, PipelineStage, PipelinedLoop, Slots,
};
pub use node_type::NodeType;
pub use operations::{
    Directive, Group, InsertPlace, Item, Operation, Pipeline, Scheduled, Stage, ValueId, ValueKind,
    WaveSchedule,
};
pub(in crate::ir) use recorder::Recorder;
pub(in crate::ir) use rules::MOST as MOST_PARTS;
