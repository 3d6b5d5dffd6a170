//! What waves do in a trip, one after the other.

use crate::ir::node::{Control, Op};
use crate::passes::schedule::graph::dependence_graph::NodeId;

/// What waves do one after the other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TripStep {
    /// An operation of the loop.
    Node(NodeId),
    /// A barrier, a wait or a priority.
    Control(TripControl),
}

/// Waits of waves for each other or for memory, and changes of how they compete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TripControl {
    /// For all waves of the workgroup, once the wave's own accesses of LDS are over, and its loads into LDS.
    SharedMemoryBarrier,
    /// For all waves of the workgroup.
    WorkgroupBarrier,
    /// Until at most so many loads are under way.
    WaitForLoads(u32),
    /// Until the wave's accesses of LDS are over.
    WaitForShared,
    /// For nothing: from here on the wave has this priority.
    Priority(u8),
    /// For nothing: what comes up to the next of these stands in the order that takes the fewest clocks.
    Interleave,
    /// For nothing: products that come next and whose factors are one most of the time are left out.
    SkipUnitFactors,
}

impl TripControl {
    /// What an operation without operands makes waves wait for; nothing if it only keeps an order.
    pub(super) fn of(op: Op) -> Option<TripControl> {
        if let Op::Barrier = op {
            return Some(TripControl::SharedMemoryBarrier);
        }
        let Op::Control(control) = op else { return None };
        match control {
            Control::WorkgroupBarrier => Some(TripControl::WorkgroupBarrier),
            Control::WaitForLoads(count) => Some(TripControl::WaitForLoads(count.into())),
            Control::WaitForShared(_) => Some(TripControl::WaitForShared),
            Control::SetWavePriority(level) => Some(TripControl::Priority(level)),
            Control::InterleaveByCost => Some(TripControl::Interleave),
            Control::SkipUnitFactors => Some(TripControl::SkipUnitFactors),
            Control::ConditionalBarrier(_) | Control::SchedulingBarrier => None,
        }
    }
}

/// How the halves of a workgroup's waves run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WaveHalves {
    /// Together.
    InStep,
    /// The second one a barrier later.
    Staggered,
}

/// What becomes of the order of a trip's instructions after lowering.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum CodeOrder {
    /// It stays.
    AsLowered,
    /// It is interleaved.
    Interleaved,
}

impl TripStep {
    /// The operation, if it is one.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match *self {
            TripStep::Node(node) => Some(node),
            TripStep::Control(_) => None,
        }
    }
}
