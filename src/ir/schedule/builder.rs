//! Tracing: a schedule is written as a Rust closure over [`ScheduleTracer`], and every call becomes an
//! operation with the author's file and line.
//!
//! Nothing here panics: a mistake is remembered with its place, the call returns a placeholder, and
//! [`WaveSchedule::trace`] returns the first mistake.

use std::array;
use std::cell::RefCell;
use std::panic::Location as Caller;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handles::{
    Cluster, ClusterEntry, ClusterEntryKind, Handle, Interleave, Listed, Nodes, OperationTarget,
    PipelineStage, PipelinedLoop, Slots, collect,
};
use super::operations::{
    Directive, Group, InsertPlace, Item, Operation, Pipeline, Stage, ValueId, WaveSchedule,
};
use super::{MOST_PARTS, NodeType, Recorder};
use crate::ir::assemble::is_identifier;
use crate::ir::control::HardwareConstraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::Symbol;
use crate::ir::node::{Control, WaveCondition};
use crate::ir::types::AddressSpace;

/// Distinguishes traces, so that a value of one is not used in another.
static NEXT_TRACE: AtomicU64 = AtomicU64::new(0);

/// Stands for a value of an operation that was not recorded.
const NOTHING: ValueId = ValueId(u32::MAX);

/// The schedule that is being traced. All of its calls record the caller's file and line.
pub struct ScheduleTracer {
    trace: u64,
    state: RefCell<TracerState>,
}

#[derive(Default)]
struct TracerState {
    recorder: Recorder,
    error: Option<Diagnostic>,
    /// The file of the last call; most calls have the same.
    file: Option<Arc<str>>,
}

/// A pipeline whose stages are being set.
pub struct PipelineTracer<'s> {
    schedule: &'s ScheduleTracer,
    eliminate_epilogue: bool,
    multi_buffer_count: Option<u32>,
    stages: Vec<(Vec<Vec<Nodes>>, Location)>,
}

impl TracerState {
    fn location(&mut self, caller: &'static Caller<'static>) -> Location {
        let file = match &self.file {
            Some(file) if **file == *caller.file() => file.clone(),
            _ => self.file.insert(Arc::from(caller.file())).clone(),
        };
        Location { file, line: caller.line(), column: caller.column() }
    }
}

impl WaveSchedule {
    /// Traces a schedule: runs `body` once and records what it does.
    ///
    /// # Errors
    /// The first mistake that needs no kernel to be seen, with the author's line.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("unrolled", |s| {
    ///     let k_loop = s.get_node_by_tag("k_loop");
    ///     s.unroll(k_loop, 2);
    /// })?;
    /// assert_eq!(
    ///     schedule.to_string(),
    ///     "schedule unrolled {\n  k_loop = get_node_by_tag \"k_loop\"\n  unroll k_loop 2\n}\n"
    /// );
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn trace(name: &str, body: impl FnOnce(&ScheduleTracer)) -> Result<WaveSchedule, Diagnostic> {
        let caller = Caller::caller();
        let trace = NEXT_TRACE.fetch_add(1, Ordering::Relaxed);
        let tracer = ScheduleTracer { trace, state: RefCell::default() };
        let declared = tracer.location(caller);
        if !is_identifier(name) {
            let fault = Diagnostic::invalid(format!("`{name}` is not a schedule's name"));
            tracer.fail(fault.help("use letters, digits and underscores"), &declared);
        }
        body(&tracer);
        let TracerState { recorder, error, .. } = tracer.state.into_inner();
        match error {
            Some(error) => Err(error),
            None => Ok(recorder.finish(name, declared)),
        }
    }
}

impl ScheduleTracer {
    fn location(&self, caller: &'static Caller<'static>) -> Location {
        self.state.borrow_mut().location(caller)
    }

    /// Remembers the first mistake; one without a place is placed at `location`.
    fn fail(&self, fault: Diagnostic, location: &Location) {
        let mut state = self.state.borrow_mut();
        if state.error.is_none() {
            let at = fault.location.clone().unwrap_or_else(|| location.clone());
            state.error = Some(fault.at(Some(at)));
        }
    }

    /// The numbers of values, if they belong to this schedule.
    fn own(&self, handles: impl IntoIterator<Item = Handle>, location: &Location) -> Option<Vec<ValueId>> {
        let values: Option<Vec<_>> =
            handles.into_iter().map(|h| (h.trace == self.trace).then_some(h.value)).collect();
        if values.is_none() {
            let fault = Diagnostic::invalid("a value of another schedule is used here");
            self.fail(fault.help("use only values traced inside this schedule's closure"), location);
        }
        values
    }

    /// Records an operation on `handles`; returns its first value.
    fn record(
        &self,
        caller: &'static Caller<'static>,
        handles: &[Handle],
        operation: impl FnOnce(&[ValueId]) -> Operation,
    ) -> Handle {
        let location = self.location(caller);
        let values = self.own(handles.iter().copied(), &location);
        let value = values.and_then(|values| self.push(operation(&values), location));
        Handle { value: value.unwrap_or(NOTHING), trace: self.trace }
    }

    fn push(&self, operation: Operation, location: Location) -> Option<ValueId> {
        let mut state = self.state.borrow_mut();
        // After a mistake values may be placeholders, and only the first mistake is returned.
        if state.error.is_some() {
            return None;
        }
        let result = state.recorder.push(operation, Vec::new(), location.clone());
        drop(state);
        result.map_err(|fault| self.fail(fault, &location)).ok()
    }

    /// All nodes that have the tag, in program order. Tags are put on operations where the kernel is traced;
    /// nodes that the compiler makes of an operation have its tag, too: a read of shared memory is a global
    /// read, an LDS write and an LDS read.
    #[track_caller]
    pub fn get_node_by_tag(&self, tag: &str) -> Nodes {
        Nodes(self.record(Caller::caller(), &[], |_| Operation::GetNodeByTag { tag: tag.into() }))
    }

    /// All nodes of one type that have the tag.
    #[track_caller]
    pub fn get_node_by_tag_and_type(&self, tag: &str, node_type: NodeType) -> Nodes {
        let operation = |_: &[ValueId]| Operation::GetNodeByTagAndType { tag: tag.into(), node_type };
        Nodes(self.record(Caller::caller(), &[], operation))
    }

    /// Of the copies that unrolling made of nodes with the tag, those of iteration `iteration`, from 0.
    #[track_caller]
    pub fn get_node_by_tag_and_iteration(&self, tag: &str, iteration: u32) -> Nodes {
        let operation = |_: &[ValueId]| Operation::GetNodeByTagAndIteration { tag: tag.into(), iteration };
        Nodes(self.record(Caller::caller(), &[], operation))
    }

    /// The accesses of `space` among reads and writes, and the others.
    #[track_caller]
    pub fn partition_by_address_space(&self, list: Nodes, space: AddressSpace) -> (Nodes, Nodes) {
        let operation = |v: &[ValueId]| Operation::PartitionByAddressSpace { list: v[0], space };
        let first = self.record(Caller::caller(), &[list.0], operation);
        (Nodes(self.result(first, 0)), Nodes(self.result(first, 1)))
    }

    /// Equal parts of a list by the nodes' place along a dimension; as many as there are names for them.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [k] = symbols(["K"]);
    /// let schedule = WaveSchedule::trace("halves", |s| {
    ///     let mma = s.get_node_by_tag("mma");
    ///     let [first, second] = s.partition_by_dim(mma, k);
    ///     let clusters = [s.cluster((first, SchedulingBarrier)), s.cluster(second)];
    ///     s.reorder_graph(s.get_node_by_tag("k_loop"), clusters);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn partition_by_dim<const N: usize>(&self, list: Nodes, dim: Symbol) -> [Nodes; N] {
        let first = self.parts(Caller::caller(), list, dim, N);
        array::from_fn(|at| Nodes(self.result(first, at)))
    }

    /// [`ScheduleTracer::partition_by_dim`] into a number of parts that is not a constant.
    #[track_caller]
    pub fn partition_by_dim_into(&self, list: Nodes, dim: Symbol, parts: usize) -> Vec<Nodes> {
        let first = self.parts(Caller::caller(), list, dim, parts);
        // More parts than any list has are a mistake, which is remembered.
        (0..parts.min(MOST_PARTS as usize)).map(|at| Nodes(self.result(first, at))).collect()
    }

    fn parts(&self, caller: &'static Caller<'static>, list: Nodes, dim: Symbol, parts: usize) -> Handle {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        self.record(caller, &[list.0], |v| Operation::PartitionByDim { list: v[0], dim, parts })
    }

    /// Result number `at` of the operation whose first result is `first`.
    fn result(&self, first: Handle, at: usize) -> Handle {
        let value = if first.value == NOTHING { NOTHING } else { ValueId(first.value.0 + at as u32) };
        Handle { value, trace: self.trace }
    }

    /// Nodes of a list that are in a part of a pipeline, or of a type, or both: `None` means no restriction.
    #[track_caller]
    pub fn filter_nodes(
        &self,
        list: Nodes,
        stage: impl Into<Option<PipelineStage>>,
        node_type: impl Into<Option<NodeType>>,
    ) -> Nodes {
        let (stage, node_type) = (stage.into(), node_type.into());
        let handles: Vec<Handle> = [list.0].into_iter().chain(stage.map(|stage| stage.0)).collect();
        let operation =
            |v: &[ValueId]| Operation::FilterNodes { list: v[0], stage: v.get(1).copied(), node_type };
        Nodes(self.record(Caller::caller(), &handles, operation))
    }

    /// Node number `index` of a list, from 0.
    #[track_caller]
    pub fn getitem(&self, list: Nodes, index: u32) -> Nodes {
        Nodes(self.record(Caller::caller(), &[list.0], |v| Operation::GetItem { list: v[0], index }))
    }

    /// Pipelines a loop; `stages` sets the stages, first to last. Each stage is a list of as many tuples,
    /// which run one after the other: their number is the initiation interval. The tuples at the same
    /// position of all stages run together, each for its own iteration. Afterwards every list of nodes stands
    /// for the copies in all parts of the pipeline.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("two_stages", |s| {
    ///     let (loads, mma) = (s.get_node_by_tag("loads"), s.get_node_by_tag("mma"));
    ///     let pipelined = s.pipeline(s.get_node_by_tag("k_loop"), |p| {
    ///         p.set_stage(((loads,), ()));
    ///         p.set_stage(((), (mma,)));
    ///     });
    ///     s.insert_at_start(pipelined.kernel(), SetWavePriority(1));
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn pipeline(&self, target: Nodes, stages: impl FnOnce(&mut PipelineTracer<'_>)) -> PipelinedLoop {
        let caller = Caller::caller();
        let mut pipeline = PipelineTracer {
            schedule: self,
            eliminate_epilogue: false,
            multi_buffer_count: None,
            stages: Vec::new(),
        };
        stages(&mut pipeline);
        let PipelineTracer { eliminate_epilogue, multi_buffer_count, stages, .. } = pipeline;
        let own = |(slots, location): (Vec<Vec<Nodes>>, Location)| {
            let slots = slots.into_iter().map(|slot| self.own(slot.into_iter().map(|n| n.0), &location));
            Some(Stage { slots: slots.collect::<Option<_>>()?, location })
        };
        let stages: Option<Vec<Stage>> = stages.into_iter().map(own).collect();
        let first = self.record(caller, &[target.0], |v| {
            // Where a stage is missing a mistake was remembered, and nothing is recorded.
            let stages = stages.unwrap_or_default();
            Operation::Pipeline(Pipeline { target: v[0], eliminate_epilogue, multi_buffer_count, stages })
        });
        PipelinedLoop { parts: array::from_fn(|at| PipelineStage(self.result(first, at))) }
    }

    /// Nodes and directives that belong together, in the order given. A directive is inserted after the node
    /// before it, or in front of the first node.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("one_cluster", |s| {
    ///     let mma = s.get_node_by_tag("mma");
    ///     s.cluster((SetWavePriority(1), mma, SetWavePriority(0), SharedMemoryBarrier));
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn cluster(&self, items: impl Listed<ClusterEntry>) -> Cluster {
        let items = collect(items);
        let handles = items.iter().filter_map(|item| match item.0 {
            ClusterEntryKind::Value(handle) => Some(handle),
            ClusterEntryKind::Directive(_) => None,
        });
        let handles: Vec<Handle> = handles.collect();
        let operation = |values: &[ValueId]| {
            let mut values = values.iter();
            let item = |item: &ClusterEntry| match item.0 {
                ClusterEntryKind::Value(_) => values.next().map(|&value| Item::Value(value)),
                ClusterEntryKind::Directive(directive) => Some(Item::Directive(directive)),
            };
            Operation::Cluster { items: items.iter().filter_map(item).collect() }
        };
        Cluster(self.record(Caller::caller(), &handles, operation))
    }

    /// Puts the nodes of a loop, or of a part of a pipeline, into the order of the clusters, as far as
    /// dependences allow. A list of nodes counts as a cluster.
    #[track_caller]
    pub fn reorder_graph(&self, region: impl Into<OperationTarget>, clusters: impl Listed<Cluster>) {
        let clusters = collect(clusters);
        let handles: Vec<Handle> =
            [region.into().0].into_iter().chain(clusters.iter().map(|cluster| cluster.0)).collect();
        let operation = |v: &[ValueId]| Operation::ReorderGraph { region: v[0], clusters: v[1..].to_vec() };
        self.record(Caller::caller(), &handles, operation);
    }

    fn insert(
        &self,
        caller: &'static Caller<'static>,
        place: InsertPlace,
        target: impl Into<OperationTarget>,
        directive: impl Into<Directive>,
    ) {
        let (target, directive) = (target.into(), directive.into());
        let operation = |v: &[ValueId]| Operation::Insert { place, target: v[0], directive };
        self.record(caller, &[target.0], operation);
    }

    /// Inserts an operation in front of the first of the target's nodes.
    #[track_caller]
    pub fn insert_before(&self, target: impl Into<OperationTarget>, directive: impl Into<Directive>) {
        self.insert(Caller::caller(), InsertPlace::Before, target, directive);
    }

    /// Inserts an operation after the last of the target's nodes.
    #[track_caller]
    pub fn insert_after(&self, target: impl Into<OperationTarget>, directive: impl Into<Directive>) {
        self.insert(Caller::caller(), InsertPlace::After, target, directive);
    }

    /// Inserts an operation in front of everything in a loop or in a part of a pipeline.
    #[track_caller]
    pub fn insert_at_start(&self, target: impl Into<OperationTarget>, directive: impl Into<Directive>) {
        self.insert(Caller::caller(), InsertPlace::AtStart, target, directive);
    }

    /// Inserts an operation after everything in a loop or in a part of a pipeline.
    #[track_caller]
    pub fn insert_at_end(&self, target: impl Into<OperationTarget>, directive: impl Into<Directive>) {
        self.insert(Caller::caller(), InsertPlace::AtEnd, target, directive);
    }

    /// [`ScheduleTracer::insert_before`] of a barrier for some waves.
    #[track_caller]
    pub fn insert_cond_barrier_before(&self, condition: WaveCondition, target: impl Into<OperationTarget>) {
        self.insert(Caller::caller(), InsertPlace::Before, target, Control::ConditionalBarrier(condition));
    }

    /// [`ScheduleTracer::insert_after`] of a barrier for some waves.
    #[track_caller]
    pub fn insert_cond_barrier_after(&self, condition: WaveCondition, target: impl Into<OperationTarget>) {
        self.insert(Caller::caller(), InsertPlace::After, target, Control::ConditionalBarrier(condition));
    }

    /// Holds back the second half of a workgroup's waves by one barrier for the duration of a loop.
    #[track_caller]
    pub fn stagger(&self, region: impl Into<OperationTarget>) {
        self.record(Caller::caller(), &[region.into().0], |v| Operation::Stagger { region: v[0] });
    }

    /// The nodes of `base` with those of the groups spread between them.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("spread", |s| {
    ///     let [mma, loads, stores] = ["mma", "loads", "stores"].map(|tag| s.get_node_by_tag(tag));
    ///     let spread = s.interleave_ops(
    ///         mma,
    ///         [Interleave::of(loads).interval(4), Interleave::of(stores).start_after_groups([0])],
    ///     );
    ///     s.reorder_graph(s.get_node_by_tag("k_loop"), spread);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn interleave_ops(
        &self,
        base: impl Listed<Nodes>,
        groups: impl IntoIterator<Item = Interleave>,
    ) -> Nodes {
        let caller = Caller::caller();
        let (base, groups) = (collect(base), groups.into_iter().collect::<Vec<_>>());
        let all = base.iter().chain(groups.iter().flat_map(|group| &group.lists));
        let handles: Vec<Handle> = all.map(|nodes| nodes.0).collect();
        let operation = |values: &[ValueId]| {
            let (base, mut rest) = values.split_at(base.len());
            let group = |group: Interleave| {
                let (lists, others) = rest.split_at(group.lists.len());
                rest = others;
                Group {
                    lists: lists.to_vec(),
                    interval: group.interval,
                    start_offset: group.start_offset,
                    start_after_groups: group.start_after_groups,
                }
            };
            Operation::InterleaveOps { base: base.to_vec(), groups: groups.into_iter().map(group).collect() }
        };
        Nodes(self.record(caller, &handles, operation))
    }

    /// Turns `factor` iterations of a loop, or of a pipeline's kernel, into one.
    #[track_caller]
    pub fn unroll(&self, region: impl Into<OperationTarget>, factor: u32) {
        self.record(Caller::caller(), &[region.into().0], |v| Operation::Unroll { region: v[0], factor });
    }

    /// Schedules a loop by a strategy of the compiler's, of which `strategy` is the word that `--schedule`
    /// takes: so each loop of a kernel can have another one. Lists that were taken before have none of the
    /// loop's nodes afterwards.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("by_loop", |s| {
    ///     s.schedule_loop(s.get_node_by_tag("scores"), "two_phase");
    ///     s.schedule_loop(s.get_node_by_tag("sums"), "prefetch");
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn schedule_loop(&self, target: Nodes, strategy: &str) {
        let strategy = strategy.into();
        self.record(Caller::caller(), &[target.0], |v| Operation::ScheduleLoop { target: v[0], strategy });
    }

    /// Gives a tag to operations that are named by their places in the kernel, for the whole schedule:
    /// `loop.0` is the first loop, and `loop.0.mma.7` an operation in it, as tables of schedules name them.
    /// So a schedule fits one kernel with one set of options, and the kernel needs no tags.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let schedule = WaveSchedule::trace("first_loop", |s| {
    ///     s.tag_nodes("scores", ["loop.0"]);
    ///     s.schedule_loop(s.get_node_by_tag("scores"), "clusters");
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn tag_nodes<'n>(&self, tag: &str, nodes: impl IntoIterator<Item = &'n str>) {
        let (tag, nodes) = (tag.into(), nodes.into_iter().map(Arc::from).collect());
        self.record(Caller::caller(), &[], |_| Operation::TagNodes { tag, nodes });
    }

    /// Loads tiles straight into LDS if all of them can be, on chips where the compiler's own schedules do.
    #[track_caller]
    pub fn load_to_lds(&self) {
        self.record(Caller::caller(), &[], |_| Operation::LoadToLds);
    }

    /// The values that conditions on waves are made of.
    pub fn get_hardware_constraint(&self) -> HardwareConstraint {
        HardwareConstraint::default()
    }
}

impl PipelineTracer<'_> {
    /// Sets the next stage: the lists of each slot, as tuples. An array takes tuples of one size, a tuple
    /// takes any: `((a, b), (c,), ())`.
    #[track_caller]
    pub fn set_stage(&mut self, slots: impl Slots) {
        let caller = Caller::caller();
        let mut lists = Vec::new();
        slots.slots(&mut lists);
        self.stages.push((lists, self.schedule.location(caller)));
    }

    /// Runs the last iterations in the loop as well, with nothing more to load, instead of after it.
    pub fn eliminate_epilogue(&mut self) {
        self.eliminate_epilogue = true;
    }

    /// Gives every LDS buffer this many copies, instead of as many as the stages need.
    pub fn multi_buffer_count(&mut self, copies: u32) {
        self.multi_buffer_count = Some(copies);
    }
}
