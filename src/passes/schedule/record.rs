//! What scheduling did: one record per loop, for reports, tables and pictures.

use bevy_ecs::prelude::*;

use super::assignment::Assignment;
use super::graph::DependenceGraph;
use crate::passes::options::Schedule;

/// What became of the kernel's loops. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct ScheduleRecord {
    /// What the options asked for.
    pub requested: Schedule,
    /// One per loop that could have been scheduled, in order.
    pub loops: Vec<LoopRecord>,
}

impl ScheduleRecord {
    /// True for an author's schedule that pipelines nothing: it orders nodes and inserts others.
    fn only_edits(&self) -> bool {
        self.requested == Schedule::Manual && self.loops.is_empty()
    }

    /// Name of the schedule that at least one loop got.
    pub fn applied(&self) -> &'static str {
        if self.only_edits() {
            return self.requested.name();
        }
        let applied = self.loops.iter().filter_map(|one| match &one.outcome {
            Outcome::Applied { instead, .. } => Some(instead.as_ref().map_or(self.requested, |i| i.0)),
            Outcome::Refused { .. } => None,
        });
        let requested = |schedule: &Schedule| *schedule == self.requested;
        let all: Vec<Schedule> = applied.collect();
        all.iter().copied().find(requested).or(all.first().copied()).unwrap_or_default().name()
    }

    /// Why loops did not get it; empty if all did.
    pub fn why(&self) -> String {
        let reasons = self.loops.iter().filter_map(|one| match &one.outcome {
            Outcome::Refused { why } => Some(&why[..]),
            Outcome::Applied { instead, .. } => instead.as_ref().map(|i| &i.1[..]),
        });
        if self.only_edits() {
            return String::new();
        }
        match (self.loops.is_empty(), reasons.collect::<Vec<_>>()) {
            (true, _) => "there is no loop to schedule".to_owned(),
            (false, whys) => whys.join("; "),
        }
    }
}

/// What became of one loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopRecord {
    /// The expanded loop as it was written.
    pub written: Entity,
    /// What was done.
    pub outcome: Outcome,
}

/// The end of a loop's scheduling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is pipelined.
    Applied {
        /// The schedule that it got, if not the one asked for, and why.
        instead: Option<(Schedule, String)>,
        /// The loop of the steady state.
        steady: Entity,
        /// Its dependences.
        graph: DependenceGraph,
        /// Cycle of every node.
        assignment: Assignment,
    },
    /// It stayed as it was.
    Refused {
        /// Why.
        why: String,
    },
}

impl LoopRecord {
    /// The loop was rebuilt.
    pub fn applied(
        written: Entity,
        steady: Entity,
        graph: &DependenceGraph,
        assignment: Assignment,
    ) -> LoopRecord {
        let outcome = Outcome::Applied { instead: None, steady, graph: graph.clone(), assignment };
        LoopRecord { written, outcome }
    }

    /// The same, with another schedule than the one asked for.
    pub fn instead(mut self, schedule: Schedule, why: String) -> LoopRecord {
        match &mut self.outcome {
            Outcome::Applied { instead, .. } => *instead = Some((schedule, why)),
            Outcome::Refused { why: other } => *other = format!("{why}; and {}: {other}", schedule.name()),
        }
        self
    }

    /// The loop stayed as it was.
    pub fn refused(written: Entity, why: String) -> LoopRecord {
        LoopRecord { written, outcome: Outcome::Refused { why } }
    }
}
