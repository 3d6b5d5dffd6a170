//! What of a schedule is recorded so far, for the rules to look at.

use std::collections::BTreeMap;

use super::operations::{Scheduled, ValueId, ValueKind};
use crate::ir::diagnostic::Location;

/// Operations with what their values are.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) operations: Vec<Scheduled>,
    pub(super) kinds: Vec<ValueKind>,
    /// Loops that were given stages or a strategy, and where.
    pub(super) pipelined: BTreeMap<ValueId, Location>,
}

impl Recorded {
    /// What a value is.
    pub(super) fn kind(&self, value: ValueId) -> Option<ValueKind> {
        self.kinds.get(value.index()).copied()
    }

    /// The operation that defines a value.
    pub(super) fn definition(&self, value: ValueId) -> Option<&Scheduled> {
        let at = self.operations.partition_point(|scheduled| scheduled.results.end <= value.0);
        self.operations.get(at)
    }

    /// The place at which a loop was given stages or a strategy, if it was.
    pub(super) fn pipelined(&self, target: ValueId) -> Option<&Location> {
        self.pipelined.get(&target)
    }
}
