//! Why a scheduler gives no schedule.

use thiserror::Error;

use super::resources::{Class, Resource};

/// Longest interval that schedulers consider. It bounds the size of reservation tables; a loop body of that many cycles gains nothing
/// from overlapping iterations.
pub const MOST_CYCLES: u32 = 1 << 16;

/// Why there is no schedule. Nodes are numbers of the dependence graph.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// A dependence of distance zero leads from a node back to itself.
    #[error("node {node} depends on itself within one iteration")]
    Circular {
        /// A node of the circle.
        node: u32,
    },
    /// A dependence within an iteration leads against program order, to a phase that does not exist.
    #[error("node {to} comes before node {from} in the program but has to run behind it")]
    OutOfOrder {
        /// What has to run first.
        from: u32,
        /// What comes first.
        to: u32,
    },
    /// The machine lacks what a node needs.
    #[error("node {node} ({}) needs the unit `{}`, of which the machine has none", .class.name(), .resource.name())]
    NoUnit {
        /// The node.
        node: u32,
        /// Its class.
        class: Class,
        /// What it needs.
        resource: Resource,
    },
    /// The loop body is longer than schedulers can count.
    #[error("node {node} makes an iteration longer than schedulers count")]
    TooLong {
        /// A node on the long path, or of the class that is too busy.
        node: u32,
    },
    /// The search ended without a schedule.
    #[error("no schedule found with an interval of {first} to {last} cycles")]
    NotFound {
        /// The least interval that dependences and resources allow.
        first: u32,
        /// The longest one that was tried.
        last: u32,
    },
    /// Nothing could be loaded ahead.
    #[error("the loop loads nothing from global memory, so there is nothing to fetch ahead")]
    NoLoads,
    /// Every load waits for something of the iteration before.
    #[error("node {to} cannot run ahead: it waits for node {from} of an iteration before")]
    Recurrence {
        /// The node of the earlier iteration.
        from: u32,
        /// The load that waits for it.
        to: u32,
    },
    /// Every load waits for something that belongs to a later phase of its own iteration.
    #[error("node {to} cannot run ahead: it waits for node {from} of its own iteration")]
    LateLoad {
        /// What it waits for.
        from: u32,
        /// The load.
        to: u32,
    },
    /// Everything falls into one stage.
    #[error("all operations fall into one pipeline stage, so iterations would not overlap")]
    OneStage,
}
