//! What the parser of a schedule keeps.

use std::collections::BTreeMap;

use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::schedule::{Recorder, ValueId};
use crate::ir::text::cursor::{Cursor, TextFaults};

/// The parser of a schedule.
pub(super) struct ScheduleParser<'p, 'a> {
    pub(super) cursor: &'p mut Cursor<'a>,
    pub(super) faults: &'p mut TextFaults,
    pub(super) recorder: Recorder,
    pub(super) names: BTreeMap<&'a str, Named>,
    /// True if the statement uses something that has a fault, which was reported: it is read, and not
    /// recorded.
    pub(super) unknown: bool,
}

/// A name that was defined.
pub(super) struct Named {
    pub(super) meaning: ScheduleNameMeaning,
    pub(super) at: Location,
}

/// What a name stands for.
#[derive(Copy, Clone)]
pub(super) enum ScheduleNameMeaning {
    Value(ValueId),
    /// A pipeline, whose parts begin with this value.
    Pipeline(ValueId),
    /// A value whose definition has a fault: its uses are not reported again.
    Unknown,
}

impl ScheduleParser<'_, '_> {
    pub(super) fn fault(&mut self, fault: Diagnostic) {
        self.faults.add(fault, self.cursor);
    }
}
