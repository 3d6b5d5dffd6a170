//! Recording a schedule operation by operation: what tracing and parsing have in common, so that a schedule
//! gives the same list and the same messages whichever way it was written.

use std::sync::Arc;

use super::operations::{Operation, Pipeline, Results, Scheduled, ValueId, ValueKind, WaveSchedule};
use super::recorded::Recorded;
use super::rules;
use crate::ir::diagnostic::{Diagnostic, Location};

/// A schedule whose operations are still being added.
#[derive(Default)]
pub(in crate::ir) struct Recorder {
    recorded: Recorded,
}

impl Recorder {
    /// Appends an operation; returns the number of the first value that it defines, or would define.
    ///
    /// # Errors
    /// The rule that it breaks; the fault has no place where that is the operation's. Nothing is recorded
    /// then.
    pub(in crate::ir) fn push(
        &mut self,
        operation: Operation,
        names: Vec<Option<Arc<str>>>,
        location: Location,
    ) -> Result<ValueId, Diagnostic> {
        let recorded = &mut self.recorded;
        rules::check(&operation, recorded)?;
        if let Operation::Pipeline(Pipeline { target, .. }) | Operation::ScheduleLoop { target, .. } =
            &operation
        {
            recorded.pipelined.insert(*target, location.clone());
        }
        let first = recorded.kinds.len();
        match operation.results() {
            Results::Nodes(count) => recorded.kinds.resize(first + count as usize, ValueKind::Nodes),
            Results::Cluster => recorded.kinds.push(ValueKind::Cluster),
            Results::Parts => {
                recorded.kinds.extend([ValueKind::Prologue, ValueKind::Kernel, ValueKind::Epilogue]);
            }
        }
        let results = first as u32..recorded.kinds.len() as u32;
        recorded.operations.push(Scheduled { operation, location, results, names });
        Ok(ValueId(first as u32))
    }

    /// What a value is.
    pub(in crate::ir) fn kind(&self, value: ValueId) -> Option<ValueKind> {
        self.recorded.kind(value)
    }

    /// The complete schedule of the recorded operations; written at `location`.
    pub(in crate::ir) fn finish(self, name: &str, location: Location) -> WaveSchedule {
        WaveSchedule::new(name, self.recorded.operations, self.recorded.kinds, location)
    }
}

impl WaveSchedule {
    /// The schedule of these operations, whose values are numbered as they define them; written at
    /// `location`.
    ///
    /// # Errors
    /// The rule that an operation breaks.
    pub(crate) fn of_operations(
        name: &str,
        operations: impl IntoIterator<Item = Operation>,
        location: &Location,
    ) -> Result<WaveSchedule, Diagnostic> {
        let mut recorder = Recorder::default();
        for operation in operations {
            recorder.push(operation, Vec::new(), location.clone())?;
        }
        Ok(recorder.finish(name, location.clone()))
    }
}
