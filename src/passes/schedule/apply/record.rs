//! What scheduling did: one record per loop, for reports, tables and pictures.
//!
//! No later pass and no lowering reads it: the test `stages` compiles the texts of all schedules, which lack
//! it, to the same bytes.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;

use super::choice::{ScheduleCandidate, ScheduleChoice};
use super::written::WrittenSchedule;
use crate::ir::schedule::table::{Checks, Request};
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::loops::Candidates;

/// What became of the kernel's loops. On the kernel entity.
#[derive(Component, Clone, PartialEq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct ScheduleRecord {
    /// Name of the strategy that the options asked for.
    pub requested: &'static str,
    /// Whether it speaks of loops or of any operations.
    pub subject: Subject,
    /// The loops that could have been scheduled, as they were written; tables and pictures number them in
    /// this order.
    pub candidates: Candidates,
    /// What became of the loops that a scheduler looked at, in the order in which it did.
    pub loops: Vec<LoopRecord>,
}

impl ScheduleRecord {
    /// True for an author's schedule that pipelines nothing: it orders nodes and inserts others.
    fn only_edits(&self) -> bool {
        self.subject == Subject::Operations && self.loops.is_empty()
    }

    /// Name of the schedule that at least one loop got.
    pub(crate) fn applied(&self) -> &'static str {
        if self.only_edits() {
            return self.requested;
        }
        let applied = self.loops.iter().filter_map(|one| match &one.outcome {
            Outcome::Applied(applied) => Some(applied.instead.as_ref().map_or(self.requested, |i| i.0)),
            Outcome::Refused { .. } => None,
        });
        let all: Vec<&str> = applied.collect();
        let requested = all.iter().copied().find(|name| *name == self.requested);
        requested.or(all.first().copied()).unwrap_or("none")
    }

    /// The choices that the compiler made, loop by loop.
    pub(crate) fn choices(&self) -> Vec<ScheduleChoice> {
        self.loops.iter().filter_map(|one| one.choice.clone()).collect()
    }

    /// Why loops did not get it, each reason once; empty if all did.
    pub(crate) fn why(&self) -> String {
        let reasons = self.loops.iter().filter_map(|one| match &one.outcome {
            Outcome::Refused { why } => Some(&why[..]),
            Outcome::Applied(applied) => applied.instead.as_ref().map(|i| &i.1[..]),
        });
        if self.only_edits() {
            return String::new();
        }
        let mut known = BTreeSet::new();
        let reasons = reasons.filter(|why| !why.is_empty() && known.insert(*why));
        match (self.loops.is_empty(), reasons.collect::<Vec<_>>()) {
            (true, _) => "there is no loop to schedule".to_owned(),
            (false, whys) => whys.join("; "),
        }
    }
}

/// What a schedule speaks of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// Every loop.
    Loops,
    /// Any operations: an author may put a kernel without loops in order.
    Operations,
}

/// What became of one loop.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopRecord {
    /// The expanded loop as it was written.
    pub written: Entity,
    /// What was done.
    pub outcome: Outcome,
    /// Among which strategies that was chosen, where the compiler chose.
    pub choice: Option<ScheduleChoice>,
}

/// The end of a loop's scheduling.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It is rebuilt.
    Applied(Box<Applied>),
    /// It stayed as it was.
    Refused {
        /// Why.
        why: String,
    },
}

/// A schedule that a loop got.
#[derive(Clone, PartialEq, Debug)]
pub struct Applied {
    /// Name of the strategy that was used instead of the one asked for, and why; none if it is the one asked
    /// for.
    pub instead: Option<(&'static str, String)>,
    /// The schedule that the strategy wrote for it, if that is how it schedules.
    pub(crate) written: Option<Box<WrittenSchedule>>,
    /// The loop of the steady state.
    pub steady: Entity,
    /// The dependences of the loop as it was written.
    pub found: LoopGraph,
    /// Cycle of every node.
    pub assignment: Assignment,
    /// How the loop was rebuilt.
    pub request: Request,
    /// What its cycles respect.
    pub checks: Checks,
}

impl LoopRecord {
    /// The loop was rebuilt.
    pub fn applied(written: Entity, applied: Applied) -> LoopRecord {
        LoopRecord { written, outcome: Outcome::Applied(Box::new(applied)), choice: None }
    }

    /// The same, with a schedule other than the one asked for, which may have left the loop to another one
    /// itself.
    pub(crate) fn instead(mut self, strategy: &'static str, why: String) -> LoopRecord {
        let both = |other: &str| match other == why {
            true => why.clone(),
            false => format!("{why}; and {strategy}: {other}"),
        };
        match &mut self.outcome {
            Outcome::Applied(applied) => {
                applied.instead = Some(match applied.instead.take() {
                    Some((last, other)) => (last, both(&other)),
                    None => (strategy, why),
                });
            }
            Outcome::Refused { why: other } => *other = both(other),
        }
        self
    }

    /// The same, scheduled by a strategy that something other than the options named.
    pub(crate) fn by(mut self, strategy: &'static str) -> LoopRecord {
        if let Outcome::Applied(applied) = &mut self.outcome {
            applied.instead.get_or_insert((strategy, String::new()));
        }
        self
    }

    /// The same, with the schedule that the strategy wrote.
    pub(crate) fn written_as(mut self, written: WrittenSchedule) -> LoopRecord {
        if let Outcome::Applied(applied) = &mut self.outcome {
            applied.written = Some(Box::new(written));
        }
        self
    }

    /// The same, chosen among these strategies for the loop that `what` names.
    pub(crate) fn among(self, what: String, candidates: Vec<ScheduleCandidate>) -> LoopRecord {
        LoopRecord { choice: Some(ScheduleChoice { what, candidates }), ..self }
    }

    /// The loop stayed as it was.
    pub fn refused(written: Entity, why: String) -> LoopRecord {
        LoopRecord { written, outcome: Outcome::Refused { why }, choice: None }
    }
}
