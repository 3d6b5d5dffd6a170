//! Recording a schedule operation by operation: what tracing and parsing have in common, so that a schedule
//! gives the same list and the same messages whichever way it was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::operations::{Operation, Results, Scheduled, ValueId, ValueKind};
use super::rules;
use crate::ir::diagnostic::{Diagnostic, Location};

/// A schedule whose operations are still being added.
#[derive(Default)]
pub(in crate::ir) struct Recorder {
    operations: Vec<Scheduled>,
    kinds: Vec<ValueKind>,
    /// Loops that were pipelined, and where.
    pipelined: BTreeMap<ValueId, Location>,
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
        rules::check(&operation, self)?;
        if let Operation::Pipeline(pipeline) = &operation {
            self.pipelined.insert(pipeline.target, location.clone());
        }
        let first = self.kinds.len();
        match operation.results() {
            Results::Nodes(count) => self.kinds.resize(first + count as usize, ValueKind::Nodes),
            Results::Cluster => self.kinds.push(ValueKind::Cluster),
            Results::Parts => {
                self.kinds.extend([ValueKind::Prologue, ValueKind::Kernel, ValueKind::Epilogue]);
            }
        }
        let results = first as u32..self.kinds.len() as u32;
        self.operations.push(Scheduled { operation, location, results, names });
        Ok(ValueId(first as u32))
    }

    /// What a value is.
    pub(in crate::ir) fn kind(&self, value: ValueId) -> Option<ValueKind> {
        self.kinds.get(value.index()).copied()
    }

    /// The operation that defines a value.
    pub(super) fn definition(&self, value: ValueId) -> Option<&Scheduled> {
        let at = self.operations.partition_point(|scheduled| scheduled.results.end <= value.0);
        self.operations.get(at)
    }

    /// Where a loop was pipelined, if it was.
    pub(super) fn pipelined(&self, target: ValueId) -> Option<&Location> {
        self.pipelined.get(&target)
    }

    /// The operations, and what their values are.
    pub(super) fn into_parts(self) -> (Vec<Scheduled>, Vec<ValueKind>) {
        (self.operations, self.kinds)
    }
}
