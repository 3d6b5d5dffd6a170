//! A schedule while it is evaluated: what its values stand for, and why it may stop.

use bevy_ecs::prelude::*;

use super::reorder::ClusterPiece;
use super::tags::TagIndex;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::schedule::{Item, ValueId};
use crate::passes::schedule::apply::record::LoopRecord;
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::{describe, place};

/// Schedules the loop at a place, in the region before it, by the strategy of a name.
pub(crate) type ScheduleByName = fn(&mut Scheduling, [Entity; 2], &str) -> Result<LoopRecord, Diagnostic>;

/// What a value of a schedule stands for.
#[derive(Clone, Debug)]
pub(super) enum ScheduleValue {
    /// Nodes.
    Nodes(Vec<Entity>),
    /// Nodes and what is to be inserted between them.
    Cluster(Vec<ClusterPiece>),
    /// A part of a pipelined loop.
    Part(Part),
}

/// A part of a pipelined loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// The region of the pipelined loop.
    pub whole: Entity,
    /// The loop of its steady state.
    pub steady: Entity,
    /// Which part.
    pub which: Which,
}

/// Parts of a pipelined loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Prologue,
    Kernel,
    Epilogue,
}

/// Why a schedule is not applied.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Stop {
    /// The author has to correct something.
    Fault(Diagnostic),
    /// The sizes do not suit it; the kernel stays as it was written.
    Unfit(LoopRecord),
}

impl From<Bug> for Stop {
    fn from(bug: Bug) -> Stop {
        Stop::Fault(bug.into())
    }
}

impl From<Diagnostic> for Stop {
    fn from(fault: Diagnostic) -> Stop {
        Stop::Fault(fault)
    }
}

/// A schedule while it is evaluated.
pub(super) struct Evaluation<'s, 'w> {
    pub(super) kernel: &'s mut Scheduling<'w>,
    pub(super) values: Vec<ScheduleValue>,
    pub(super) records: Vec<LoopRecord>,
    /// The nodes that the tags of a schedule stand for, if it is a strategy's or names nodes itself.
    pub(super) tagged: Option<&'s TaggedNodes>,
    /// Tagged nodes, until the kernel changes.
    pub(super) tags: Option<TagIndex<'s>>,
    /// The dependences of a loop, if they are already known.
    pub(super) known: Option<(Entity, LoopGraph)>,
    /// Location of the operation being evaluated, and its index among the kernel's locations.
    pub(super) at: Location,
    pub(super) origin: Origin,
    /// The way to the strategies that an author leaves loops to.
    pub(super) by_name: ScheduleByName,
}

impl<'s, 'w> Evaluation<'s, 'w> {
    /// An author's schedule, written at a place, before its first operation.
    pub(super) fn new(kernel: &'s mut Scheduling<'w>, at: Location, by_name: ScheduleByName) -> Self {
        let (values, records, origin) = (Vec::new(), Vec::new(), Origin(u32::MAX));
        Evaluation { kernel, values, records, tagged: None, tags: None, known: None, at, origin, by_name }
    }

    /// A node in words.
    pub(super) fn describe(&self, node: Entity) -> String {
        describe(self.kernel.world, self.kernel.root, node)
    }

    /// Where the author wrote a node.
    pub(super) fn place(&self, node: Entity) -> Option<Location> {
        place(self.kernel.world, self.kernel.root, node)
    }

    /// A fault at the operation being evaluated.
    pub(super) fn fault(&self, text: impl Into<String>) -> Diagnostic {
        Diagnostic::invalid(text).at(Some(self.at.clone()))
    }

    fn value(&self, id: ValueId) -> Result<&ScheduleValue, Diagnostic> {
        self.values.get(id.index()).ok_or_else(|| self.fault("a value that is not defined"))
    }

    /// The nodes of a list.
    pub(super) fn nodes(&self, id: ValueId) -> Result<&[Entity], Diagnostic> {
        match self.value(id)? {
            ScheduleValue::Nodes(nodes) => Ok(nodes),
            ScheduleValue::Cluster(_) | ScheduleValue::Part(_) => {
                Err(self.fault("this is not a list of nodes"))
            }
        }
    }

    /// A part of a pipelined loop.
    pub(super) fn part(&self, id: ValueId) -> Result<Option<Part>, Diagnostic> {
        Ok(match self.value(id)? {
            ScheduleValue::Part(part) => Some(*part),
            ScheduleValue::Nodes(_) | ScheduleValue::Cluster(_) => None,
        })
    }

    /// The one loop that a list names.
    pub(super) fn one_loop(&mut self, id: ValueId) -> Result<Entity, Diagnostic> {
        let is_loop = match self.nodes(id)? {
            &[node] => matches!(self.kernel.view().op(node)?, Op::Iterate(_)),
            _ => false,
        };
        let nodes = self.nodes(id)?;
        match nodes[..] {
            [node] if is_loop => Ok(node),
            [node] => {
                let text = format!("{} is not a loop", self.describe(node));
                let fault = self.fault(text).note("it is written here", self.place(node));
                Err(fault.help("take the loop by its own tag"))
            }
            _ => {
                let fault =
                    self.fault(format!("one loop is expected here, and the list has {} nodes", nodes.len()));
                let fault = match nodes.first() {
                    Some(&first) => {
                        fault.note(format!("the first is {}", self.describe(first)), self.place(first))
                    }
                    None => fault,
                };
                let (nodes, view) = (nodes.to_vec(), self.kernel.view());
                let is_pipelined = nodes.iter().any(|&node| matches!(view.op(node), Ok(Op::Pipeline(_))));
                Err(fault.help(match is_pipelined {
                    true => "this loop has its schedule already: give it one strategy, or stages",
                    false => "take the loop by its own tag",
                }))
            }
        }
    }

    /// The fault for a loop whose body no schedule can change.
    pub(super) fn not_schedulable(&self, node: Entity, text: &str) -> Diagnostic {
        let fault = self.fault(text).note("the loop is here", self.place(node));
        fault.help("schedule innermost loops whose carried values are made anew in each iteration")
    }

    /// The pieces of a cluster.
    pub(super) fn cluster(&mut self, items: &[Item]) -> Result<Vec<ClusterPiece>, Diagnostic> {
        let mut pieces = Vec::new();
        for item in items {
            match item {
                Item::Directive(directive) => pieces.push(ClusterPiece::Insert(directive.op(), self.origin)),
                Item::Value(id) => match self.value(*id)? {
                    ScheduleValue::Nodes(nodes) => {
                        pieces.extend(nodes.iter().copied().map(ClusterPiece::Node))
                    }
                    ScheduleValue::Cluster(inner) => pieces.extend_from_slice(inner),
                    ScheduleValue::Part(_) => {
                        return Err(self.fault("a part of a pipeline is not a part of a cluster"));
                    }
                },
            }
        }
        Ok(pieces)
    }

    /// Pieces of a cluster, or of a list taken as one.
    pub(super) fn pieces(&mut self, id: ValueId) -> Result<Vec<ClusterPiece>, Diagnostic> {
        self.cluster(&[Item::Value(id)])
    }
}
