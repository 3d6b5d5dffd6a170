//! What scheduling did to a kernel, gathered for display: one view per loop, with everything that listings,
//! tables and pages tell. It is made on demand from the workspace of a compilation, so other compilations pay
//! nothing for it.

use bevy_ecs::prelude::*;

use crate::ir::kernel::KernelName;
use crate::ir::node::{Op, Tag};
use crate::ir::nodes::Bug;
use crate::ir::schedule::table::{Checks, Request};
use crate::passes::schedule::apply::record::{Applied, LoopRecord, Outcome, ScheduleRecord};
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::keys::keys;
use crate::passes::schedule::graph::loops::{candidates, chip_model};
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::PrimaryMap;

/// The schedule of a whole kernel.
pub(crate) struct KernelView<'w> {
    /// Its nodes.
    pub view: SchedulerView<'w>,
    /// Its name.
    pub kernel: String,
    /// Name of the chip.
    pub target: &'static str,
    /// Name of the schedule that was asked for.
    pub requested: &'static str,
    /// Name of the schedule that at least one loop got.
    pub applied: &'static str,
    /// Its loops, except for remainders.
    pub loops: Vec<LoopView>,
}

/// One loop.
pub(crate) struct LoopView {
    /// Its number among the kernel's loops.
    pub number: usize,
    /// Name of its dimension.
    pub dim: &'static str,
    /// Its tag.
    pub tag: Option<Box<str>>,
    /// The loop that runs: the steady state where it is pipelined.
    pub running: Entity,
    /// Its dependences, or why there are none.
    pub found: Result<LoopGraph, String>,
    /// Names of the graph's nodes.
    pub keys: PrimaryMap<NodeId, String>,
    /// The chip's model for it.
    pub chip: ResourceModel,
    /// The schedule that it got.
    pub schedule: Option<LoopSchedule>,
    /// Why it did not get the schedule asked for; empty if it did.
    pub why: String,
    /// The strategy that it got instead of the one asked for.
    pub strategy: Option<&'static str>,
    /// The schedule that the strategy wrote.
    pub written: Option<Box<WrittenSchedule>>,
}

/// The schedule of one loop.
pub(crate) struct LoopSchedule {
    /// Cycle of every node.
    pub assignment: Assignment,
    /// How the loop was rebuilt.
    pub request: Request,
    /// What the cycles respect.
    pub checks: Checks,
}

/// A loop that got a schedule, as tables and pages show it.
#[derive(Copy, Clone)]
pub(crate) struct ScheduledLoop<'v> {
    /// The kernel that it stands in.
    pub kernel: &'v KernelView<'v>,
    /// Its view.
    pub view: &'v LoopView,
    /// Its dependences.
    pub found: &'v LoopGraph,
    /// Its schedule.
    pub schedule: &'v LoopSchedule,
}

impl LoopView {
    /// The loop with its schedule, if it got one.
    pub(crate) fn scheduled<'v>(&'v self, kernel: &'v KernelView<'v>) -> Option<ScheduledLoop<'v>> {
        let (found, schedule) = (self.found.as_ref().ok()?, self.schedule.as_ref()?);
        Some(ScheduledLoop { kernel, view: self, found, schedule })
    }

    /// The machine that cycles are counted for: the chip where they respect its delays, else the abstract
    /// one.
    pub(crate) fn model(&self) -> ResourceModel {
        match &self.schedule {
            Some(LoopSchedule { checks: Checks::Machine, .. }) => self.chip,
            _ => ResourceModel::ABSTRACT,
        }
    }

    /// `loop 0 over K`.
    pub(crate) fn title(&self) -> String {
        format!("loop {} over {}", self.number, self.dim)
    }
}

impl KernelView<'_> {
    /// The view of a kernel that the scheduling pass has seen.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn new(view: SchedulerView<'_>) -> Result<KernelView<'_>, Bug> {
        let SchedulerView { world, root, .. } = view;
        let settings = view.settings()?;
        let record = world.get::<ScheduleRecord>(root);
        let all = match record {
            Some(record) => record.candidates.clone(),
            None => candidates(view)?,
        };
        let loops = all.iter().enumerate().map(|(number, &[_, node])| {
            let own = record.and_then(|record| record.loops.iter().find(|one| one.written == node));
            LoopView::new(view, number, node, own)
        });
        Ok(KernelView {
            view,
            kernel: world.get::<KernelName>(root).map_or_else(String::new, |name| name.0.to_string()),
            target: settings.target().name,
            requested: settings.requested_schedule().name(),
            applied: record.map_or("none", ScheduleRecord::applied),
            loops: loops.collect::<Result<_, Bug>>()?,
        })
    }
}

impl LoopView {
    fn new(
        kernel: SchedulerView,
        number: usize,
        node: Entity,
        record: Option<&LoopRecord>,
    ) -> Result<LoopView, Bug> {
        let seen = kernel.node(node)?;
        let Op::Iterate(dim) = *seen.op else { return Err(Bug::new("no loop")) };
        let dim = kernel.dims()?.name(dim);
        let tag = kernel.world.get::<Tag>(seen.piece(node).logical).map(|tag| tag.0.clone());
        let chip = chip_model(kernel, node)?;
        let mut view = LoopView {
            number,
            dim,
            tag,
            running: node,
            found: Err(String::new()),
            keys: PrimaryMap::default(),
            chip,
            schedule: None,
            why: String::new(),
            strategy: None,
            written: None,
        };
        match record.map(|record| &record.outcome) {
            Some(Outcome::Applied(applied)) => {
                let Applied { instead, written, steady, found, assignment, request, checks } = &**applied;
                view.running = *steady;
                view.found = Ok(found.clone());
                let (assignment, request, checks) = (assignment.clone(), *request, *checks);
                view.schedule = Some(LoopSchedule { assignment, request, checks });
                view.why = instead.as_ref().map(|(_, why)| why.clone()).unwrap_or_default();
                view.strategy = instead.as_ref().map(|(strategy, _)| *strategy);
                view.written = written.clone();
            }
            refused => {
                view.found =
                    dependences(kernel, node, &ResourceModel::ABSTRACT).map_err(|why| why.to_string());
                if let Some(Outcome::Refused { why }) = refused {
                    view.why = why.clone();
                }
            }
        }
        if let Ok(found) = &view.found {
            view.keys = keys(found);
        }
        Ok(view)
    }
}
