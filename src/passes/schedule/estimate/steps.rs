//! What waves do in a trip, one after the other.

use crate::ir::node::{Control, Op};
use crate::passes::schedule::graph::dependence_graph::NodeId;

/// What waves do one after the other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TripStep {
    /// An operation of the loop.
    Node(NodeId),
    /// A barrier, a wait or a priority.
    TripFence(TripFence),
}

/// Where waves wait for each other or for memory, or change how they compete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TripFence {
    /// For all waves of the workgroup, once the wave's own accesses of LDS are over, and its loads into LDS.
    SharedMemoryBarrier,
    /// For all waves of the workgroup.
    WorkgroupBarrier,
    /// Until at most so many loads are under way.
    Loads(u32),
    /// Until the wave's accesses of LDS are over.
    Shared,
    /// For nothing: from here on the wave has this priority.
    Priority(u8),
}

impl TripFence {
    /// What an operation without operands makes waves wait for; nothing if it only keeps an order.
    pub(super) fn of(op: Op) -> Option<TripFence> {
        if let Op::Barrier = op {
            return Some(TripFence::SharedMemoryBarrier);
        }
        let Op::Control(control) = op else { return None };
        match control {
            Control::WorkgroupBarrier => Some(TripFence::WorkgroupBarrier),
            Control::WaitForLoads(count) => Some(TripFence::Loads(count.into())),
            Control::WaitForShared(_) => Some(TripFence::Shared),
            Control::SetWavePriority(level) => Some(TripFence::Priority(level)),
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

impl TripStep {
    /// The operation, if it is one.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match *self {
            TripStep::Node(node) => Some(node),
            TripStep::TripFence(_) => None,
        }
    }
}
