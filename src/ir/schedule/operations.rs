//! The data of a schedule. Values are numbered in the order in which operations define them, so walking the
//! operations and appending each one's results to a list gives every value its place in that list.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::NodeType;
use crate::ir::diagnostic::Location;
use crate::ir::expr::Symbol;
use crate::ir::kernel::{Declaration, Identity, Locations, Sources};
use crate::ir::node::{Control, Op};
use crate::ir::text;
use crate::ir::types::AddressSpace;

/// Number of a value in its schedule.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(pub u32);

impl ValueId {
    /// Its place in a list of all values.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a value is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueKind {
    /// A list of nodes.
    Nodes,
    /// A list of nodes and of directives between them.
    Cluster,
    /// What a pipeline runs before its loop.
    Prologue,
    /// The loop of a pipeline.
    Kernel,
    /// What a pipeline runs after its loop.
    Epilogue,
}

/// An operation that a schedule puts between nodes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Directive {
    /// An LDS fence and a barrier for the workgroup: [`Op::Barrier`].
    SharedMemoryBarrier,
    /// A control operation.
    Control(Control),
}

impl Directive {
    /// The operation of the node that it becomes.
    pub fn op(self) -> Op {
        match self {
            Directive::SharedMemoryBarrier => Op::Barrier,
            Directive::Control(control) => Op::Control(control),
        }
    }
}

impl From<Control> for Directive {
    fn from(control: Control) -> Directive {
        Directive::Control(control)
    }
}

/// A part of a cluster.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// The nodes of a list, or what a cluster holds.
    Value(ValueId),
    /// An operation, inserted after the node before it (in front of the next one if it is the first).
    Directive(Directive),
}

/// Where something is inserted.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum InsertPlace {
    /// In front of the first of the target's nodes.
    Before,
    /// After the last of the target's nodes.
    After,
    /// In front of everything in the target, a loop or a part of a pipeline.
    AtStart,
    /// After everything in the target, a loop or a part of a pipeline.
    AtEnd,
}

impl InsertPlace {
    /// All of them with their operations' words.
    pub(in crate::ir) const WORDS: &'static [(InsertPlace, &'static str)] = &[
        (InsertPlace::Before, "insert_before"),
        (InsertPlace::After, "insert_after"),
        (InsertPlace::AtStart, "insert_at_start"),
        (InsertPlace::AtEnd, "insert_at_end"),
    ];
}

/// A stage of a pipeline: its slots in order, each with the lists of nodes that run in it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Slots; all stages of a pipeline have the same number, the initiation interval.
    pub slots: Vec<Vec<ValueId>>,
    /// Where the author set the stage.
    pub location: Location,
}

/// A loop to be pipelined, and how.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// A list that holds the loop alone.
    pub target: ValueId,
    /// True if the last iterations run in the loop as well, with nothing more to load: there is no epilogue.
    pub eliminate_epilogue: bool,
    /// Copies of every LDS buffer, instead of as many as the stages need.
    pub multi_buffer_count: Option<u32>,
    /// Stages, first to last. There is at least one, with at least one slot.
    pub stages: Vec<Stage>,
}

impl Pipeline {
    /// Slots of every stage.
    pub fn initiation_interval(&self) -> usize {
        self.stages.first().map_or(0, |stage| stage.slots.len())
    }
}

/// Nodes that are spread between others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    /// Lists, taken as one.
    pub lists: Vec<ValueId>,
    /// One of its nodes goes after every `interval` nodes of the base; at least 1.
    pub interval: u32,
    /// Number of the base's node that the first one goes after.
    pub start_offset: u32,
    /// Numbers of groups that must be used up before this one begins; no group waits for itself.
    pub start_after_groups: Vec<u32>,
}

/// What an operation does. The values that it defines are in brackets.
#[derive(Clone, Debug)]
pub enum Operation {
    /// All nodes that have the tag, in program order (nodes).
    GetNodeByTag {
        /// The tag.
        tag: Arc<str>,
    },
    /// Those of one type (nodes).
    GetNodeByTagAndType {
        /// The tag.
        tag: Arc<str>,
        /// The type.
        node_type: NodeType,
    },
    /// The nodes that unrolling made for one iteration (nodes).
    GetNodeByTagAndIteration {
        /// The tag.
        tag: Arc<str>,
        /// Number of the iteration among the copies.
        iteration: u32,
    },
    /// Accesses of one address space, and the others (nodes, nodes).
    PartitionByAddressSpace {
        /// The reads and writes to divide.
        list: ValueId,
        /// Global or shared.
        space: AddressSpace,
    },
    /// Equal parts by the nodes' place along a dimension, larger ones first (nodes, `parts` times).
    PartitionByDim {
        /// The nodes to divide.
        list: ValueId,
        /// The dimension.
        dim: Symbol,
        /// How many parts; at least 1.
        parts: u32,
    },
    /// Nodes of a list that satisfy the conditions (nodes).
    FilterNodes {
        /// The list.
        list: ValueId,
        /// Those in this part of a pipeline.
        stage: Option<ValueId>,
        /// Those of this type.
        node_type: Option<NodeType>,
    },
    /// One node of a list (nodes).
    GetItem {
        /// The list.
        list: ValueId,
        /// Its place, from 0.
        index: u32,
    },
    /// Pipelines a loop (prologue, kernel, epilogue). Every list stands for the copies of its nodes
    /// afterwards.
    Pipeline(Pipeline),
    /// Nodes and directives that belong together (cluster).
    Cluster {
        /// Its parts in order; at least one is a value.
        items: Vec<Item>,
    },
    /// Orders the nodes of a loop, or of a part of a pipeline, as the clusters say.
    ReorderGraph {
        /// The loop (nodes) or the part.
        region: ValueId,
        /// Clusters or lists of nodes, which together hold every node once.
        clusters: Vec<ValueId>,
    },
    /// Inserts an operation.
    Insert {
        /// Where.
        place: InsertPlace,
        /// Where: nodes or a part of a pipeline.
        target: ValueId,
        /// What.
        directive: Directive,
    },
    /// Holds back the second half of a workgroup's waves by one barrier for the duration of a loop.
    Stagger {
        /// The loop (nodes, or a pipeline's kernel).
        region: ValueId,
    },
    /// The nodes of the base with those of the groups spread between them (nodes). After node `i` of the base
    /// every group, in order, gives its next node if all groups that it starts after are used up, `i >=
    /// start_offset` and `i - start_offset` is a multiple of its interval. Nodes that are left over come
    /// last.
    InterleaveOps {
        /// Lists, taken as one.
        base: Vec<ValueId>,
        /// The groups that go between.
        groups: Vec<Group>,
    },
    /// Repeats the body of a loop.
    Unroll {
        /// The loop (nodes, or a pipeline's kernel).
        region: ValueId,
        /// How many iterations become one; at least 2.
        factor: u32,
    },
    /// Schedules a loop by a strategy of the compiler's. Lists that were taken before have none of its nodes
    /// afterwards.
    ScheduleLoop {
        /// The loop (nodes).
        target: ValueId,
        /// The word of the strategy, as in `--schedule`.
        strategy: Arc<str>,
    },
    /// Gives a tag to operations that are named by their places in the kernel, as tables of schedules name
    /// them. It holds for the whole schedule.
    TagNodes {
        /// The tag, which nothing in the kernel has.
        tag: Arc<str>,
        /// `loop.0`, the first loop of the kernel, or `loop.0.mma.7`, an operation in it.
        nodes: Vec<Arc<str>>,
    },
    /// Loads tiles straight into LDS if all of them can be, on chips where the compiler's own schedules do.
    /// It holds for the whole kernel.
    LoadToLds,
}

/// How many values an operation defines.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ir) enum Results {
    /// So many lists of nodes.
    Nodes(u32),
    /// A cluster.
    Cluster,
    /// The three parts of a pipeline.
    Parts,
}

impl Operation {
    /// Calls `change` with every value that it uses.
    fn change_values(&mut self, change: &mut dyn FnMut(&mut ValueId)) {
        match self {
            Operation::GetNodeByTag { .. }
            | Operation::GetNodeByTagAndType { .. }
            | Operation::GetNodeByTagAndIteration { .. }
            | Operation::TagNodes { .. }
            | Operation::LoadToLds => {}
            Operation::PartitionByAddressSpace { list: value, .. }
            | Operation::PartitionByDim { list: value, .. }
            | Operation::GetItem { list: value, .. }
            | Operation::Insert { target: value, .. }
            | Operation::Stagger { region: value }
            | Operation::Unroll { region: value, .. }
            | Operation::ScheduleLoop { target: value, .. } => change(value),
            Operation::FilterNodes { list, stage, .. } => {
                change(list);
                stage.iter_mut().for_each(change);
            }
            Operation::Pipeline(pipeline) => {
                change(&mut pipeline.target);
                let stages = pipeline.stages.iter_mut();
                stages.flat_map(|stage| &mut stage.slots).flatten().for_each(change);
            }
            Operation::Cluster { items } => {
                for item in items {
                    if let Item::Value(value) = item {
                        change(value);
                    }
                }
            }
            Operation::ReorderGraph { region, clusters } => {
                change(region);
                clusters.iter_mut().for_each(change);
            }
            Operation::InterleaveOps { base, groups } => {
                base.iter_mut().for_each(&mut *change);
                groups.iter_mut().flat_map(|group| &mut group.lists).for_each(change);
            }
        }
    }

    /// The tag that it looks up.
    fn tag_mut(&mut self) -> Option<&mut Arc<str>> {
        match self {
            Operation::GetNodeByTag { tag }
            | Operation::GetNodeByTagAndType { tag, .. }
            | Operation::GetNodeByTagAndIteration { tag, .. } => Some(tag),
            _ => None,
        }
    }

    pub(in crate::ir) fn results(&self) -> Results {
        match self {
            Operation::GetNodeByTag { .. }
            | Operation::GetNodeByTagAndType { .. }
            | Operation::GetNodeByTagAndIteration { .. }
            | Operation::FilterNodes { .. }
            | Operation::GetItem { .. }
            | Operation::InterleaveOps { .. } => Results::Nodes(1),
            Operation::PartitionByAddressSpace { .. } => Results::Nodes(2),
            Operation::PartitionByDim { parts, .. } => Results::Nodes(*parts),
            Operation::Pipeline(_) => Results::Parts,
            Operation::Cluster { .. } => Results::Cluster,
            Operation::ReorderGraph { .. }
            | Operation::Insert { .. }
            | Operation::Stagger { .. }
            | Operation::Unroll { .. }
            | Operation::ScheduleLoop { .. }
            | Operation::TagNodes { .. }
            | Operation::LoadToLds => Results::Nodes(0),
        }
    }
}

/// An operation in its schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// What it does.
    pub operation: Operation,
    /// Where the author wrote it.
    pub location: Location,
    /// The values that it defines: consecutive numbers, after those of all operations before.
    pub results: Range<u32>,
    /// Names that the author gave them: one per result, or one for the whole pipeline.
    pub(in crate::ir) names: Vec<Option<Arc<str>>>,
}

/// An author's schedule. Cheap to clone. Two schedules are equal if they do the same under the same name,
/// wherever they were written and whatever their values are called.
#[derive(Clone)]
pub struct WaveSchedule {
    data: Arc<ScheduleData>,
}

struct ScheduleData {
    name: Arc<str>,
    operations: Vec<Scheduled>,
    kinds: Vec<ValueKind>,
    /// Computed on demand: schedules that the compiler makes for itself are never compared.
    identity: OnceLock<Identity>,
    sources: Sources,
    location: Location,
}

impl WaveSchedule {
    /// True if it leaves loops to strategies of the compiler.
    pub(crate) fn names_strategies(&self) -> bool {
        let is_named = |one: &Scheduled| matches!(one.operation, Operation::ScheduleLoop { .. });
        self.data.operations.iter().any(is_named)
    }

    /// True if it has tiles loaded straight into LDS where that suits all of them.
    pub(crate) fn loads_to_lds(&self) -> bool {
        self.data.operations.iter().any(|one| matches!(one.operation, Operation::LoadToLds))
    }

    /// The schedule of these operations, whose values are of these kinds; written at `location`.
    pub(super) fn new(
        name: &str,
        operations: Vec<Scheduled>,
        kinds: Vec<ValueKind>,
        location: Location,
    ) -> WaveSchedule {
        let mut locations = Vec::new();
        for scheduled in &operations {
            locations.push(scheduled.location.clone());
            if let Operation::Pipeline(pipeline) = &scheduled.operation {
                locations.extend(pipeline.stages.iter().map(|stage| stage.location.clone()));
            }
        }
        let sources = Sources::new(Declaration(Some(location.clone())), Locations(Arc::new(locations)));
        let identity = OnceLock::new();
        let data = ScheduleData { name: name.into(), operations, kinds, identity, sources, location };
        WaveSchedule { data: Arc::new(data) }
    }

    /// The same schedule over other tags: `renamed` has a new one for each tag that changes.
    pub(crate) fn with_tags(&self, renamed: impl Fn(&str) -> Option<Arc<str>>) -> WaveSchedule {
        let mut operations = self.data.operations.clone();
        for scheduled in &mut operations {
            if let Some(tag) = scheduled.operation.tag_mut()
                && let Some(new) = renamed(tag)
            {
                *tag = new;
            }
        }
        let kinds = self.data.kinds.clone();
        WaveSchedule::new(self.name(), operations, kinds, self.data.location.clone())
    }

    /// This schedule and then another one, under this one's name.
    pub(crate) fn then(&self, other: &WaveSchedule) -> WaveSchedule {
        let first = self.data.kinds.len() as u32;
        let mut operations = self.data.operations.clone();
        operations.extend(other.data.operations.iter().cloned().map(|mut scheduled| {
            scheduled.operation.change_values(&mut |value| value.0 += first);
            scheduled.results = scheduled.results.start + first..scheduled.results.end + first;
            scheduled.names.clear();
            scheduled
        }));
        let kinds = self.data.kinds.iter().chain(&other.data.kinds).copied().collect();
        WaveSchedule::new(self.name(), operations, kinds, self.data.location.clone())
    }

    /// Its name, for reports.
    pub fn name(&self) -> &str {
        &self.data.name
    }

    /// What it does, in order.
    pub fn operations(&self) -> &[Scheduled] {
        &self.data.operations
    }

    /// What each value is, by number.
    pub fn value_kinds(&self) -> &[ValueKind] {
        &self.data.kinds
    }

    /// The operation that defines a value.
    pub fn definition(&self, value: ValueId) -> Option<&Scheduled> {
        let at = self.data.operations.partition_point(|scheduled| scheduled.results.end <= value.0);
        self.data.operations.get(at).filter(|scheduled| scheduled.results.contains(&value.0))
    }

    /// Names of all values, by number, as the text shows them.
    pub fn value_names(&self) -> Vec<String> {
        text::schedule::value_names(&self.data.operations, text::schedule::Names::Kept)
    }

    /// Where it was written: the call that traces it, the line that names it.
    pub fn location(&self) -> &Location {
        &self.data.location
    }

    /// Identity for caches.
    pub fn identity(&self) -> &Identity {
        self.data.identity.get_or_init(|| {
            let generated = text::schedule::Names::Generated;
            Identity::new(text::schedule::print(self.name(), self.operations(), generated))
        })
    }

    /// Where its operations were written, for caches: inserted operations have these places.
    pub fn sources(&self) -> &Sources {
        &self.data.sources
    }
}

impl PartialEq for WaveSchedule {
    fn eq(&self, other: &WaveSchedule) -> bool {
        Arc::ptr_eq(&self.data, &other.data) || self.identity() == other.identity()
    }
}

impl Eq for WaveSchedule {}

impl Hash for WaveSchedule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The text form, with the author's names of values or made-up ones.
impl fmt::Display for WaveSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::schedule::print(self.name(), self.operations(), text::schedule::Names::Kept))
    }
}

/// The same text.
impl fmt::Debug for WaveSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
