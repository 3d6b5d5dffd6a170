//! Why a scheduler gives no schedule.

use crate::passes::schedule::graph::dependence_graph::NodeId;
use std::fmt;

use crate::passes::schedule::graph::resources::{Class, Resource};

/// So many waves, in words.
pub(super) fn waves(count: u32) -> String {
    if count == 1 { "1 wave".to_owned() } else { format!("{count} waves") }
}

/// Why there is no schedule. Nodes are numbers of the dependence graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A dependence of distance zero leads from a node back to itself.
    Circular {
        /// A node of the circle.
        node: NodeId,
    },
    /// A dependence within an iteration leads, against program order, to a phase that does not exist.
    OutOfOrder {
        /// The node that has to run first.
        from: NodeId,
        /// The node that comes first.
        to: NodeId,
    },
    /// The machine lacks what a node needs.
    NoUnit {
        /// The node.
        node: NodeId,
        /// Its class.
        class: Class,
        /// What it needs.
        resource: Resource,
    },
    /// The loop body is longer than schedulers can count.
    TooLong {
        /// A node on the long path, or of the class that is too busy.
        node: NodeId,
    },
    /// The search ended without a schedule.
    NotFound {
        /// The least interval that dependences and resources allow.
        first: u32,
        /// The longest one that was tried.
        last: u32,
    },
    /// No load can run ahead.
    NoLoads,
    /// Every load waits for a node of the previous iteration.
    Recurrence {
        /// The node of the earlier iteration.
        from: NodeId,
        /// The load that waits for it.
        to: NodeId,
    },
    /// Every load waits for a node that belongs to a later phase of its own iteration.
    LateLoad {
        /// The node that it waits for.
        from: NodeId,
        /// The load.
        to: NodeId,
    },
    /// Everything falls into one stage.
    OneStage,
}

impl Refusal {
    /// The reason in words, with nodes as `name` calls them.
    pub(crate) fn in_words(&self, name: impl Fn(NodeId) -> String) -> String {
        match *self {
            Refusal::Circular { node } => format!("{} depends on itself within one iteration", name(node)),
            Refusal::OutOfOrder { from, to } => {
                format!("{} comes before {} in the program but has to run after it", name(to), name(from))
            }
            Refusal::NoUnit { node, class, resource } => {
                let (class, unit) = (class.name(), resource.name());
                format!("{} ({class}) needs the unit `{unit}`, of which the machine has none", name(node))
            }
            Refusal::TooLong { node } => {
                format!("{} makes an iteration longer than schedulers count", name(node))
            }
            Refusal::NotFound { first, last } => {
                format!("no schedule found with an interval of {first} to {last} cycles")
            }
            Refusal::NoLoads => {
                "the loop loads nothing from global memory, so there is nothing to fetch ahead".to_owned()
            }
            Refusal::Recurrence { from, to } => {
                let (from, to) = (name(from), name(to));
                format!("{to} cannot run ahead: it waits for {from} of an iteration before")
            }
            Refusal::LateLoad { from, to } => {
                format!("{} cannot run ahead: it waits for {} of its own iteration", name(to), name(from))
            }
            Refusal::OneStage => {
                "all operations fall into one pipeline stage, so iterations would not overlap".to_owned()
            }
        }
    }
}

/// With the numbers of nodes.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(|node| format!("node {node}")))
    }
}

impl std::error::Error for Refusal {}
