//! One trip of a loop as a strategy would have it: the order of its nodes, the pipeline stage of each, and
//! the barriers and waits between them, with what the loop would take of LDS and of the registers. Nothing
//! of the kernel is changed for it.

use super::barriers;
use super::steps::{CodeOrder, TripStep, WaveHalves};
use crate::ir::nodes::Bug;
use crate::ir::schedule::table::Checks;
use crate::passes::schedule::apply::copies::{self, PlannedCopies, TooLarge};
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::apply::rebuild::order_of;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;

/// A trip; see the module.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTrip {
    /// What waves do.
    pub steps: Vec<TripStep>,
    /// How the halves of a workgroup's waves run.
    pub halves: WaveHalves,
    /// Stages of its nodes.
    pub assignment: Assignment,
    /// Bytes of LDS of the workgroup.
    pub lds_bytes: u32,
    /// Vector registers of a wave, about.
    pub registers: u32,
    /// Vector registers that a wave moves to make room for the next trip's values.
    pub moved: u32,
    /// What becomes of the order of its instructions.
    pub order: CodeOrder,
}

impl PlannedTrip {
    /// The trip of a loop that stays as it was written.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn as_written(view: SchedulerView, found: &LoopGraph) -> Result<PlannedTrip, Bug> {
        let assignment = Assignment { interval: 1, cycles: found.graph.table(0) };
        let order: Vec<NodeId> = found.body().filter(|&node| !found.is_carried(node)).collect();
        let copies: PlannedCopies = found.buffers.iter().map(|buffer| (buffer.buffer, 1)).collect();
        PlannedTrip::with_barriers(view, found, assignment, order, &copies)
    }

    /// The trip of a loop whose nodes get cycles.
    ///
    /// # Errors
    /// A kernel that is broken; LDS that is too small.
    pub(crate) fn of_cycles(
        view: SchedulerView,
        found: &LoopGraph,
        assignment: Assignment,
        checks: Checks,
    ) -> Result<Result<PlannedTrip, TooLarge>, Bug> {
        let copies = match copies::planned(view, found, &assignment)? {
            Ok(copies) => copies,
            Err(why) => return Ok(Err(why)),
        };
        let order = order_of(view, found, &assignment, checks)?;
        PlannedTrip::with_barriers(view, found, assignment, order, &copies).map(Ok)
    }

    fn with_barriers(
        view: SchedulerView,
        found: &LoopGraph,
        assignment: Assignment,
        order: Vec<NodeId>,
        copies: &PlannedCopies,
    ) -> Result<PlannedTrip, Bug> {
        let steps = match view.waves()? {
            0 | 1 => order.iter().copied().map(TripStep::Node).collect(),
            _ => barriers::placed(found, &assignment, &order, copies),
        };
        PlannedTrip::new(view, found, assignment, (steps, WaveHalves::InStep), copies)
    }

    /// The trip of steps that say everything.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(super) fn new(
        view: SchedulerView,
        found: &LoopGraph,
        assignment: Assignment,
        (steps, halves): (Vec<TripStep>, WaveHalves),
        copies: &PlannedCopies,
    ) -> Result<PlannedTrip, Bug> {
        let nodes: Vec<NodeId> = steps.iter().filter_map(TripStep::node).collect();
        let registers = pressure::registers(found, &assignment, &nodes);
        let lds_bytes = copies::bytes_of(view, copies)?;
        let order = CodeOrder::AsLowered;
        Ok(PlannedTrip { steps, halves, assignment, lds_bytes, registers, moved: 0, order })
    }
}
