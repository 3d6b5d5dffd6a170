//! The schedules of a kernel's loops as one block that names operations by their places, so that the kernel
//! needs no tags for it.

use std::sync::Arc;

use bevy_ecs::prelude::*;

use super::climb::SearchedLoop;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::schedule::{Operation, ValueId, WaveSchedule};
use crate::passes::schedule::apply::written::{TaggedNodes, WrittenSchedule};
use crate::passes::schedule::graph::node_names::{loop_name, node_names};
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::graph::words::bug;
use crate::passes::schedule::strategies::rows::NONE;

/// The name of the block.
const NAME: &str = "search";

/// How the schedules of loops are written down.
pub(crate) struct BlockWriter {
    /// The names of operations.
    names: Vec<(String, Entity)>,
    /// Tiles come straight into LDS without being asked for by the options.
    loads_to_lds: bool,
    location: Location,
}

impl BlockWriter {
    /// For a kernel before its loops are scheduled.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn new(view: SchedulerView, loads_to_lds: bool) -> Result<BlockWriter, Diagnostic> {
        let location = Location { file: NAME.into(), line: 1, column: 1 };
        Ok(BlockWriter { names: node_names(view)?, loads_to_lds, location })
    }

    /// The block of these loops, in the order of the kernel; `instead` is the schedule of one of them, after
    /// its number among them.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn block(
        &self,
        loops: &[&SearchedLoop],
        instead: Option<(usize, &WrittenSchedule)>,
    ) -> Result<WaveSchedule, Diagnostic> {
        let first = self.loads_to_lds.then_some(Operation::LoadToLds);
        let mut whole = WaveSchedule::of_operations(NAME, first, &self.location)?;
        for (at, own) in loops.iter().enumerate() {
            let instead = instead.filter(|(number, _)| *number == at).map(|(_, written)| written);
            let part = match instead.or(own.written.as_ref()) {
                Some(written) => self.written(own, written)?,
                None if own.strategy.name == NONE.name => continue,
                None => self.by_name(own)?,
            };
            whole = whole.then(&part);
        }
        Ok(whole)
    }

    /// A loop that is left to its strategy.
    fn by_name(&self, own: &SearchedLoop) -> Result<WaveSchedule, Diagnostic> {
        let tag: Arc<str> = format!("loop_{}", own.number).into();
        let operations = [
            Operation::TagNodes { tag: tag.clone(), nodes: vec![loop_name(own.number).into()] },
            Operation::GetNodeByTag { tag },
            Operation::ScheduleLoop { target: ValueId(0), strategy: own.strategy.name.into() },
        ];
        WaveSchedule::of_operations(NAME, operations, &self.location)
    }

    /// A loop with a schedule of its own.
    fn written(&self, own: &SearchedLoop, written: &WrittenSchedule) -> Result<WaveSchedule, Diagnostic> {
        let renamed = |tag: &str| -> Arc<str> { format!("loop_{}_{tag}", own.number).into() };
        let given = self.given(&written.tagged, &renamed)?;
        let tags = WaveSchedule::of_operations(NAME, given, &self.location)?;
        Ok(tags.then(&written.schedule.with_tags(|tag| Some(renamed(tag)))))
    }

    /// The tags of a schedule, which the block gives.
    fn given(
        &self,
        tagged: &TaggedNodes,
        renamed: &dyn Fn(&str) -> Arc<str>,
    ) -> Result<Vec<Operation>, Diagnostic> {
        let name = |node: &Entity| {
            let found = self.names.iter().find(|(_, own)| own == node).map(|(name, _)| Arc::from(&name[..]));
            found.ok_or_else(|| bug("an operation of a loop without a name"))
        };
        let given = tagged.iter().map(|(tag, nodes)| {
            let nodes = nodes.iter().map(name).collect::<Result<_, _>>()?;
            Ok(Operation::TagNodes { tag: renamed(tag), nodes })
        });
        given.collect()
    }
}
