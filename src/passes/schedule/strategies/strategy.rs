//! What a strategy is, and how one schedules a loop.

use std::fmt;

use bevy_ecs::prelude::*;
use smallvec::smallvec;

use super::refusal::Refusal;
use crate::codegen::target::Target;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Placement, Unrolled};
use crate::ir::schedule::table::{Checks, Request};
use crate::passes::options::Schedule;
use crate::passes::schedule::apply::pipeline::Rebuilt;
use crate::passes::schedule::apply::rebuild::{NotRebuilt, rebuild};
use crate::passes::schedule::apply::record::{Applied, LoopRecord, Subject};
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::author::manual;
use crate::passes::schedule::estimate::steps::CodeOrder;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, NodeId};
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::loops::{Candidates, chip_model, innermost};
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::{bug, describe};

/// A way to schedule the loops of a kernel: a row of `STRATEGIES`.
#[derive(Copy, Clone)]
pub struct Strategy {
    /// Its word in the program's arguments, in tables and in reports.
    pub name: &'static str,
    /// What it does, for listings.
    pub about: &'static str,
    /// What asking for it takes.
    pub asked: Asked,
    /// The machine that it counts cycles for.
    pub model: Model,
    /// What its cycles respect.
    pub checks: Checks,
    /// How it schedules.
    pub find: Find,
    /// True if loops that it suits are better off with it than with what a search finds for one wave.
    pub spares_search: bool,
}

/// How an author asks for a strategy.
#[derive(Copy, Clone)]
pub enum Asked {
    /// By its name, which stands for this option.
    ByName(fn() -> Schedule),
    /// By its name and a `schedule` block after a text kernel.
    ByBlock,
    /// By a file, which says everything.
    ByFile,
}

/// The machine that a strategy counts cycles for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Model {
    /// The small one of the Wave language.
    Abstract,
    /// The chip that is compiled for.
    Chip,
}

/// How a strategy schedules.
#[derive(Copy, Clone)]
pub enum Find {
    /// Loops stay as they were written.
    AsWritten,
    /// It finds a cycle for every node of a loop.
    Cycles(fn(&DependenceGraph, &ResourceModel) -> Result<Assignment, Refusal>),
    /// It writes down a schedule for a loop as an author would. A loop that this does not suit gets the other
    /// strategy.
    Operations {
        /// Writes it.
        write: WriteSchedule,
        /// The other strategy.
        otherwise: &'static Strategy,
    },
    /// It brings a schedule for the whole kernel.
    Kernel(ScheduleKernel),
    /// It schedules each loop by one of several strategies.
    Cheapest {
        /// Chooses among them.
        choose: ChooseStrategy,
        /// The strategies.
        among: &'static [&'static Strategy],
    },
}

/// Schedules each loop of the kernel by one of these strategies.
pub(crate) type ChooseStrategy =
    fn(&mut Scheduling, &Candidates, &[&'static Strategy]) -> Result<Vec<LoopRecord>, Diagnostic>;

/// Schedules the loops of the kernel `root` by what the author brought.
pub(crate) type ScheduleKernel =
    fn(&mut Scheduling, &Candidates, &Schedule) -> Result<Vec<LoopRecord>, Diagnostic>;

/// Writes an author's schedule for the loop `node`, without a change of the kernel, or says why not.
pub(crate) type WriteSchedule =
    fn(SchedulerView, node: Entity, &LoopGraph) -> Result<Result<WrittenSchedule, String>, Diagnostic>;

/// By its name.
impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The schedule that a strategy writes for the loop `node`, or why it writes none: strategies know one
/// iteration, and a trip of an unrolled loop has several.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn write_one_iteration(
    write: WriteSchedule,
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    match Unrolled::of(view.world, node) {
        1 => write(view, node, found),
        count => Ok(Err(format!("a trip of the loop has {count} iterations: it is unrolled already"))),
    }
}

impl Strategy {
    /// The option that asks for it, where its name says everything.
    pub fn option(&self) -> Option<Schedule> {
        match self.asked {
            Asked::ByName(option) => Some(option()),
            Asked::ByBlock | Asked::ByFile => None,
        }
    }

    /// True if it looks for the shortest interval on the chip, which may take longer than all the rest.
    pub(super) fn searches(&self) -> bool {
        matches!(self.find, Find::Cycles(_)) && self.model == Model::Chip
    }

    /// What becomes of the order of instructions in loops that it schedules for a workgroup of so many waves.
    /// A schedule whose cycles are times on the chip, as an author's table can be, has the last word, and so
    /// has a SIMD that waves share.
    pub(crate) fn code_order(&self, waves: u32, target: &Target) -> CodeOrder {
        let places_in_time = self.checks == Checks::Machine || matches!(self.asked, Asked::ByFile);
        if waves <= target.simds_per_compute_unit && !places_in_time {
            CodeOrder::Interleaved
        } else {
            CodeOrder::AsLowered
        }
    }

    /// Whether it speaks of loops or of any operations.
    pub(crate) fn subject(&self) -> Subject {
        match self.asked {
            Asked::ByName(_) | Asked::ByFile => Subject::Loops,
            Asked::ByBlock => Subject::Operations,
        }
    }

    /// Schedules the innermost loops of a kernel.
    ///
    /// # Errors
    /// What an author has to correct; a kernel that is broken.
    pub fn schedule(
        &self,
        kernel: &mut Scheduling,
        candidates: &Candidates,
        asked: &Schedule,
    ) -> Result<Vec<LoopRecord>, Diagnostic> {
        match self.find {
            Find::AsWritten => Ok(Vec::new()),
            Find::Kernel(schedule) => schedule(kernel, candidates, asked),
            Find::Cheapest { choose, among } => choose(kernel, &innermost(candidates), among),
            Find::Cycles(_) | Find::Operations { .. } => {
                innermost(candidates).iter().map(|&place| self.schedule_loop(kernel, place)).collect()
            }
        }
    }

    /// Schedules the loop `node` in `region`, or says why not.
    ///
    /// # Errors
    /// As [`Strategy::schedule`].
    pub(super) fn schedule_loop(
        &self,
        kernel: &mut Scheduling,
        place: [Entity; 2],
    ) -> Result<LoopRecord, Diagnostic> {
        let [region, node] = place;
        let model = match self.model {
            Model::Abstract => ResourceModel::ABSTRACT,
            Model::Chip => chip_model(kernel.view(), node)?,
        };
        let refused = |why: String| Ok(LoopRecord::refused(node, why));
        let found = match dependences(kernel.view(), node, &model) {
            Ok(found) => found,
            Err(why) => return refused(why.to_string()),
        };
        let assignment = match self.find {
            Find::Kernel(_) => return Err(bug("a strategy that schedules no loops")),
            Find::AsWritten => return refused(String::new()),
            Find::Cheapest { choose, among } => {
                let mut records = choose(kernel, &smallvec![place], among)?;
                return records.pop().ok_or_else(|| bug("a loop without a schedule"));
            }
            Find::Cycles(find) => find(&found.graph, &model),
            Find::Operations { write, otherwise } => {
                return match write_one_iteration(write, kernel.view(), node, &found)? {
                    Ok(written) => {
                        for (operation, layout) in &written.layouts {
                            kernel.world.entity_mut(*operation).insert(Placement(layout.clone()));
                        }
                        let mut records = manual::apply(kernel, &written, (node, found))?;
                        let record = records.pop().ok_or_else(|| bug("a schedule without a loop"))?;
                        Ok(record.written_as(written))
                    }
                    Err(why) => {
                        let record = otherwise.schedule_loop(kernel, place)?;
                        Ok(record.instead(otherwise.name, why))
                    }
                };
            }
        };
        let assignment = match assignment {
            Ok(assignment) => assignment,
            Err(why) => {
                let name = |n: NodeId| describe(kernel.world, kernel.root, found.graph.nodes()[n].entity);
                return refused(why.in_words(name));
            }
        };
        let (request, checks) = (Request::default(), self.checks);
        match rebuild(kernel, [region, node], &found, &assignment, request, checks) {
            Ok((_, Rebuilt { steady, .. })) => {
                let applied =
                    Applied { instead: None, written: None, steady, found, assignment, request, checks };
                Ok(LoopRecord::applied(node, applied))
            }
            Err(NotRebuilt::Unfit(why)) => refused(why.to_string()),
            Err(NotRebuilt::Fault(fault)) => Err(fault),
        }
    }
}
