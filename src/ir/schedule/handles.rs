//! The values that an author holds while a schedule is traced, and the shapes in which lists of them are
//! written: tuples, arrays, vectors.

use super::operations::{Directive, ValueId};
use crate::ir::node::Control;

/// A value and the trace that it belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Handle {
    pub(super) value: ValueId,
    pub(super) trace: u64,
}

/// A list of nodes, while a schedule is traced.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Nodes(pub(super) Handle);

/// Nodes and directives that belong together, while a schedule is traced.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cluster(pub(super) Handle);

/// A part of a pipeline, while a schedule is traced.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PipelineStage(pub(super) Handle);

/// What a pipeline became: straight code before the loop, the loop, straight code after it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PipelinedLoop {
    pub(super) parts: [PipelineStage; 3],
}

impl PipelinedLoop {
    /// What fills the pipeline.
    pub fn prologue(self) -> PipelineStage {
        self.parts[0]
    }

    /// The loop.
    pub fn kernel(self) -> PipelineStage {
        self.parts[1]
    }

    /// What drains the pipeline. There is none if it was eliminated.
    pub fn epilogue(self) -> PipelineStage {
        self.parts[2]
    }
}

/// The target of an operation: nodes (a loop, an operation), or a part of a pipeline.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperationTarget(pub(super) Handle);

impl From<Nodes> for OperationTarget {
    fn from(nodes: Nodes) -> OperationTarget {
        OperationTarget(nodes.0)
    }
}

impl From<PipelineStage> for OperationTarget {
    fn from(stage: PipelineStage) -> OperationTarget {
        OperationTarget(stage.0)
    }
}

/// A part of a cluster: made of [`Nodes`], of a [`Cluster`], of a [`Control`] or of a [`Directive`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClusterEntry(pub(super) ClusterEntryKind);

/// What an [`ClusterEntry`] is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ClusterEntryKind {
    Value(Handle),
    Directive(Directive),
}

/// Nodes that are spread between the base of [`interleave_ops`](super::ScheduleTracer::interleave_ops).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interleave {
    pub(super) lists: Vec<Nodes>,
    pub(super) interval: u32,
    pub(super) start_offset: u32,
    pub(super) start_after_groups: Vec<u32>,
}

impl Interleave {
    /// The nodes of these lists, one after each node of the base, from the first on.
    pub fn of(lists: impl Listed<Nodes>) -> Interleave {
        Interleave { lists: collect(lists), interval: 1, start_offset: 0, start_after_groups: Vec::new() }
    }

    /// One of them after every `interval` nodes of the base.
    #[must_use]
    pub fn interval(self, interval: u32) -> Interleave {
        Interleave { interval, ..self }
    }

    /// The first after this node of the base, counted from 0.
    #[must_use]
    pub fn start_offset(self, start_offset: u32) -> Interleave {
        Interleave { start_offset, ..self }
    }

    /// None before these groups are used up, counted from 0.
    #[must_use]
    pub fn start_after_groups(self, groups: impl IntoIterator<Item = u32>) -> Interleave {
        Interleave { start_after_groups: groups.into_iter().collect(), ..self }
    }
}

/// A list of `T` as authors write it: a single one, or a tuple, an array or a vector of such lists. `()` is
/// the empty one.
pub trait Listed<T> {
    /// Appends its elements.
    fn list(self, out: &mut Vec<T>);
}

/// Slots of a stage as authors write them: an array, a vector, or a tuple of lists, which may then be of
/// different sizes.
pub trait Slots {
    /// Appends the lists of each slot.
    fn slots(self, out: &mut Vec<Vec<Nodes>>);
}

/// The elements of a list.
pub(super) fn collect<T>(listed: impl Listed<T>) -> Vec<T> {
    let mut list = Vec::new();
    listed.list(&mut list);
    list
}

impl Listed<Nodes> for Nodes {
    fn list(self, out: &mut Vec<Nodes>) {
        out.push(self);
    }
}

impl Listed<Cluster> for Cluster {
    fn list(self, out: &mut Vec<Cluster>) {
        out.push(self);
    }
}

/// A list of nodes is a cluster without directives.
impl Listed<Cluster> for Nodes {
    fn list(self, out: &mut Vec<Cluster>) {
        out.push(Cluster(self.0));
    }
}

impl Listed<ClusterEntry> for ClusterEntry {
    fn list(self, out: &mut Vec<ClusterEntry>) {
        out.push(self);
    }
}

macro_rules! entries {
    ($($type:ty, $pattern:pat => $entry:expr;)*) => {
        $(
            impl From<$type> for ClusterEntry {
                fn from($pattern: $type) -> ClusterEntry {
                    ClusterEntry($entry)
                }
            }

            impl Listed<ClusterEntry> for $type {
                fn list(self, out: &mut Vec<ClusterEntry>) {
                    out.push(self.into());
                }
            }
        )*
    };
}

entries! {
    Nodes, Nodes(handle) => ClusterEntryKind::Value(handle);
    Cluster, Cluster(handle) => ClusterEntryKind::Value(handle);
    Directive, directive => ClusterEntryKind::Directive(directive);
    Control, control => ClusterEntryKind::Directive(Directive::Control(control));
}

impl<T, L: Listed<T>, const N: usize> Listed<T> for [L; N] {
    fn list(self, out: &mut Vec<T>) {
        self.into_iter().for_each(|item| item.list(out));
    }
}

impl<T, L: Listed<T>> Listed<T> for Vec<L> {
    fn list(self, out: &mut Vec<T>) {
        self.into_iter().for_each(|item| item.list(out));
    }
}

impl<T, L: Listed<T> + Clone> Listed<T> for &[L] {
    fn list(self, out: &mut Vec<T>) {
        self.iter().cloned().for_each(|item| item.list(out));
    }
}

impl<L: Listed<Nodes>, const N: usize> Slots for [L; N] {
    fn slots(self, out: &mut Vec<Vec<Nodes>>) {
        out.extend(self.into_iter().map(collect));
    }
}

impl<L: Listed<Nodes>> Slots for Vec<L> {
    fn slots(self, out: &mut Vec<Vec<Nodes>>) {
        out.extend(self.into_iter().map(collect));
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {
        $(
            impl<T, $($name: Listed<T>),*> Listed<T> for ($($name,)*) {
                #[allow(non_snake_case, unused_variables)]
                fn list(self, out: &mut Vec<T>) {
                    let ($($name,)*) = self;
                    $($name.list(out);)*
                }
            }

            impl<$($name: Listed<Nodes>),*> Slots for ($($name,)*) {
                #[allow(non_snake_case, unused_variables)]
                fn slots(self, out: &mut Vec<Vec<Nodes>>) {
                    let ($($name,)*) = self;
                    $(out.push(collect($name));)*
                }
            }
        )*
    };
}

tuples! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
    (A B C D E F G H I)
    (A B C D E F G H I J)
    (A B C D E F G H I J K)
    (A B C D E F G H I J K L)
}
