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
    /// Name of the schedule that at least one loop got.
    pub fn applied(&self) -> &'static str {
        let applied = self.loops.iter().any(|one| matches!(one.outcome, Outcome::Applied { .. }));
        if applied { self.requested.name() } else { Schedule::None.name() }
    }

    /// Why loops stayed as they were; empty if none did.
    pub fn why(&self) -> String {
        let refused = self.loops.iter().filter_map(|one| match &one.outcome {
            Outcome::Refused { why } => Some(&why[..]),
            Outcome::Applied { .. } => None,
        });
        match (self.loops.is_empty(), refused.collect::<Vec<_>>()) {
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
        let outcome = Outcome::Applied { steady, graph: graph.clone(), assignment };
        LoopRecord { written, outcome }
    }

    /// The loop stayed as it was.
    pub fn refused(written: Entity, why: String) -> LoopRecord {
        LoopRecord { written, outcome: Outcome::Refused { why } }
    }
}
