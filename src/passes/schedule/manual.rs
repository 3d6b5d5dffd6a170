//! An author's schedule on a kernel: its operations are evaluated one after the other, each verified before it changes anything.
//!
//! Selections give lists of expanded nodes. `pipeline` turns the lists of its stages into an assignment, has it judged, and rebuilds the loop;
//! from then on every list stands for the copies of its nodes. Editing orders nodes anew and inserts barriers and the like. What that does
//! to waves is judged when all is done: nobody may wait for somebody who does not come.

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;

use super::assignment::Assignment;
use super::dependences::{LoopGraph, dependences};
use super::record::LoopRecord;
use super::resources::{Class, ResourceModel};
use super::verify::{broken, broken_fault, describe, place, takes_place, too_few_copies};
use super::{Request, Unfit, editing, rebuild, selection};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::*;
use crate::ir::schedule::{Directive, Item, Operation, Pipeline, Scheduled, ValueId, WaveSchedule};

/// What a value of a schedule stands for.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Nodes.
    Nodes(Vec<Entity>),
    /// Nodes and what is to be inserted between them.
    Cluster(Vec<super::reorder::Piece>),
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The author has to mend something.
    Fault(Diagnostic),
    /// The sizes do not suit it; the kernel stays as it was written.
    Unfit(LoopRecord),
}

impl From<Diagnostic> for Stop {
    fn from(fault: Diagnostic) -> Stop {
        Stop::Fault(fault)
    }
}

/// A schedule while it is evaluated.
pub(super) struct Evaluation<'w> {
    pub(super) world: &'w mut World,
    pub(super) root: Entity,
    pub(super) values: Vec<Value>,
    pub(super) records: Vec<LoopRecord>,
    /// Location of the operation at work, and its index among the kernel's locations.
    pub(super) at: Location,
    pub(super) origin: Origin,
}

/// Evaluates a schedule; what became of the loops that it pipelines.
pub(super) fn apply(
    world: &mut World,
    root: Entity,
    schedule: &WaveSchedule,
) -> Result<Vec<LoopRecord>, Diagnostic> {
    let at = schedule.location().clone();
    let origin = Origin(u32::MAX);
    let mut evaluation = Evaluation { world, root, values: Vec::new(), records: Vec::new(), at, origin };
    for scheduled in schedule.operations() {
        match evaluation.operation(scheduled) {
            Ok(results) => evaluation.values.extend(results),
            Err(Stop::Fault(fault)) => return Err(fault),
            Err(Stop::Unfit(record)) => {
                evaluation.records.push(record);
                return Ok(evaluation.records);
            }
        }
    }
    Ok(evaluation.records)
}

/// A fault of waves out of step, at the operation of the schedule that parts them, unless it has a place already.
pub(super) fn blamed(fault: Diagnostic, schedule: &WaveSchedule) -> Diagnostic {
    let parting = schedule.operations().iter().rev().find(|s| parts_waves(&s.operation));
    let at = parting.map_or(schedule.location(), |scheduled| &scheduled.location);
    let at = fault.location.clone().unwrap_or_else(|| at.clone());
    fault.at(Some(at))
}

/// True for operations that let some waves meet a barrier that others do not.
fn parts_waves(operation: &Operation) -> bool {
    let is = |directive: &Directive| matches!(directive, Directive::Control(Control::ConditionalBarrier(_)));
    match operation {
        Operation::Stagger { .. } => true,
        Operation::Insert { directive, .. } => is(directive),
        Operation::Cluster { items } => {
            items.iter().any(|item| matches!(item, Item::Directive(directive) if is(directive)))
        }
        _ => false,
    }
}

impl Evaluation<'_> {
    /// A fault of the operation at work.
    pub(super) fn fault(&self, text: impl Into<String>) -> Diagnostic {
        Diagnostic::invalid(text).at(Some(self.at.clone()))
    }

    fn operation(&mut self, scheduled: &Scheduled) -> Result<Vec<Value>, Stop> {
        self.at = scheduled.location.clone();
        let nodes = |list: Vec<Entity>| vec![Value::Nodes(list)];
        Ok(match &scheduled.operation {
            Operation::GetNodeByTag { tag } => nodes(self.by_tag(tag)?),
            Operation::GetNodeByTagAndType { tag, node_type } => {
                let list = self.by_tag(tag)?;
                nodes(selection::of_type(self.world, &list, *node_type))
            }
            Operation::GetNodeByTagAndIteration { tag, iteration } => {
                let list = self.by_tag(tag)?;
                nodes(selection::of_iteration(self.world, &list, *iteration))
            }
            Operation::PartitionByAddressSpace { list, space } => {
                let (inside, others) = self.partition_by_space(*list, *space)?;
                vec![Value::Nodes(inside), Value::Nodes(others)]
            }
            Operation::PartitionByDim { list, dim, parts } => {
                let parts = self.partition_by_dim(*list, *dim, *parts)?;
                parts.into_iter().map(Value::Nodes).collect()
            }
            Operation::FilterNodes { list, stage, node_type } => {
                nodes(self.filter(*list, *stage, *node_type)?)
            }
            Operation::GetItem { list, index } => {
                let list = self.nodes(*list)?;
                let item = list.get(*index as usize).copied().ok_or_else(|| {
                    self.fault(format!("item {index} of a list of {} nodes", list.len()))
                        .help("items are counted from 0")
                })?;
                nodes(vec![item])
            }
            Operation::InterleaveOps { base, groups } => nodes(self.interleave(base, groups)?),
            Operation::Pipeline(pipeline) => self.pipeline(pipeline)?,
            Operation::Cluster { items } => vec![Value::Cluster(self.cluster(items)?)],
            Operation::ReorderGraph { region, clusters } => {
                self.reorder_graph(*region, clusters)?;
                Vec::new()
            }
            Operation::Insert { place, target, directive } => {
                self.insert(*place, *target, *directive)?;
                Vec::new()
            }
            Operation::Stagger { region } => {
                self.stagger(*region)?;
                Vec::new()
            }
            Operation::Unroll { .. } => return Err(self.fault("`unroll` is not available yet").into()),
        })
    }

    fn value(&self, id: ValueId) -> Result<&Value, Diagnostic> {
        self.values.get(id.index()).ok_or_else(|| self.fault("a value that is not defined"))
    }

    /// The nodes of a list.
    pub(super) fn nodes(&self, id: ValueId) -> Result<Vec<Entity>, Diagnostic> {
        match self.value(id)? {
            Value::Nodes(nodes) => Ok(nodes.clone()),
            _ => Err(self.fault("this is not a list of nodes")),
        }
    }

    /// A part of a pipelined loop.
    pub(super) fn part(&self, id: ValueId) -> Result<Option<Part>, Diagnostic> {
        Ok(match self.value(id)? {
            Value::Part(part) => Some(*part),
            _ => None,
        })
    }

    /// The one loop that a list names.
    pub(super) fn one_loop(&self, id: ValueId) -> Result<Entity, Diagnostic> {
        let nodes = self.nodes(id)?;
        match nodes[..] {
            [node] if matches!(self.world.get::<Op>(node), Some(Op::Iterate(_))) => Ok(node),
            [node] => {
                let text = format!("{} is not a loop", describe(self.world, self.root, node));
                let fault = self.fault(text).note("it is written here", place(self.world, self.root, node));
                Err(fault.help("take the loop by its own tag"))
            }
            _ => {
                let fault =
                    self.fault(format!("one loop is expected here, and the list has {} nodes", nodes.len()));
                let fault = match nodes.first() {
                    Some(&first) => fault.note(
                        format!("the first is {}", describe(self.world, self.root, first)),
                        place(self.world, self.root, first),
                    ),
                    None => fault,
                };
                Err(fault.help("take the loop by its own tag"))
            }
        }
    }

    /// The fault of a loop whose body no schedule can change.
    pub(super) fn not_schedulable(&self, node: Entity, text: &str) -> Diagnostic {
        let fault = self.fault(text).note("the loop is here", place(self.world, self.root, node));
        fault.help("schedule innermost loops whose carried values are made anew in each iteration")
    }

    fn by_tag(&self, tag: &str) -> Result<Vec<Entity>, Stop> {
        match selection::by_tag(self.world, self.root, tag) {
            selection::Tagged::Nodes(nodes) => Ok(nodes),
            selection::Tagged::Remainder(node) => {
                let why = "no whole tile is left for its loop".to_owned();
                Err(Stop::Unfit(LoopRecord::refused(node, why)))
            }
            selection::Tagged::Nothing(close) => {
                let fault = self.fault(format!("no node has the tag \"{tag}\""));
                Err(Stop::Fault(match close {
                    Some(close) => fault.help(format!("did you mean \"{close}\"?")),
                    None => fault.help("tag the operation in the kernel"),
                }))
            }
        }
    }

    fn cluster(&mut self, items: &[Item]) -> Result<Vec<super::reorder::Piece>, Diagnostic> {
        use super::reorder::Piece;
        let mut pieces = Vec::new();
        for item in items {
            match item {
                Item::Directive(directive) => pieces.push(Piece::Insert(directive.op(), self.origin)),
                Item::Value(id) => match self.value(*id)? {
                    Value::Nodes(nodes) => pieces.extend(nodes.iter().copied().map(Piece::Node)),
                    Value::Cluster(inner) => pieces.extend_from_slice(inner),
                    Value::Part(_) => {
                        return Err(self.fault("a part of a pipeline is not a part of a cluster"));
                    }
                },
            }
        }
        Ok(pieces)
    }

    /// Pieces of a cluster, or of a list taken as one.
    pub(super) fn pieces(&mut self, id: ValueId) -> Result<Vec<super::reorder::Piece>, Diagnostic> {
        self.cluster(&[Item::Value(id)])
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, Stop> {
        let node = self.one_loop(pipeline.target)?;
        let found = dependences(self.world, node, &ResourceModel::ABSTRACT)
            .map_err(|why| self.not_schedulable(node, &format!("this loop cannot be pipelined: {why}")))?;
        let assignment = self.assignment(pipeline, &found)?;
        if let Some(fault) = broken(&found, &assignment) {
            let fault = broken_fault(self.world, self.root, &found, &assignment, fault);
            return Err(fault.at(Some(self.at.clone())).into());
        }
        let drain = self.drain(pipeline, &found, &assignment, node)?;
        if let Some(copies) = pipeline.multi_buffer_count
            && let Some((read, write, needed)) = too_few_copies(&found, &assignment, copies)
        {
            let [read, write] = [read, write].map(|n| {
                let node = found.graph.nodes()[n as usize].entity;
                let (stage, slot, cycle) =
                    (assignment.stage(n), assignment.slot(n), assignment.cycles[n as usize]);
                let text = describe(self.world, self.root, node);
                let at = format!("{text} is in stage {stage} slot {slot} (cycle {cycle})");
                (text, at, place(self.world, self.root, node))
            });
            let (buffers, later) = match copies {
                1 => ("1 LDS buffer is".to_owned(), "the iteration before".to_owned()),
                more => (format!("{more} LDS buffers are"), format!("{more} iterations before")),
            };
            let text = format!(
                "{} overwrites what {} of {later} still has to read: {buffers} too few",
                write.0, read.0
            );
            return Err(self
                .fault(text)
                .note(read.1, read.2)
                .note(write.1, write.2)
                .help(format!("this schedule takes at least {needed} buffers"))
                .into());
        }
        let region = editing::region_of(self.world, self.root, node)
            .ok_or_else(|| self.fault("the loop is not in the kernel"))?;
        let request = Request { copies: pipeline.multi_buffer_count, drain };
        let (order, rebuilt) =
            match rebuild(self.world, self.root, [region, node], &found, &assignment, request)? {
                Ok(rebuilt) => rebuilt,
                Err(Unfit::Lds(why)) => {
                    return Err(self
                        .fault(why.to_string())
                        .help("use smaller tiles, or fewer stages")
                        .into());
                }
                Err(why @ Unfit::Short { .. }) => {
                    return Err(Stop::Unfit(LoopRecord::refused(node, why.to_string())));
                }
            };
        let copies: FxHashMap<Entity, &Vec<Entity>> =
            order.iter().map(|placed| placed.node).zip(&rebuilt.copies).collect();
        for value in &mut self.values {
            if let Value::Nodes(nodes) = value {
                *nodes = nodes
                    .iter()
                    .flat_map(|n| copies.get(n).map_or(std::slice::from_ref(n), |copies| &copies[..]))
                    .map(|&n| if n == node { rebuilt.steady } else { n })
                    .collect();
            }
        }
        self.records.push(LoopRecord::applied(node, rebuilt.steady, &found.graph, assignment));
        let part = |which| Value::Part(Part { whole: rebuilt.whole, steady: rebuilt.steady, which });
        Ok([Which::Prologue, Which::Kernel, Which::Epilogue].map(part).to_vec())
    }

    /// Cycles from stages and slots; nodes that take no time go where they are needed.
    fn assignment(&self, pipeline: &Pipeline, found: &LoopGraph) -> Result<Assignment, Diagnostic> {
        let interval = pipeline.initiation_interval() as u32;
        let nodes = found.graph.nodes();
        let size = nodes[..found.body as usize].iter().map(|n| n.entity.index_u32() as usize + 1).max();
        let mut number = vec![u32::MAX; size.unwrap_or(0)];
        for (at, node) in nodes[..found.body as usize].iter().enumerate() {
            number[node.entity.index_u32() as usize] = at as u32;
        }
        let mut cycles: Vec<Option<u32>> = vec![None; nodes.len()];
        for (stage_number, stage) in pipeline.stages.iter().enumerate() {
            for (slot, lists) in stage.slots.iter().enumerate() {
                for &list in lists {
                    for node in self.nodes(list)? {
                        let at = number.get(node.index_u32() as usize).copied().filter(|&n| n != u32::MAX);
                        let describe = || describe(self.world, self.root, node);
                        let Some(at) = at else {
                            let text = format!("{} is not in the loop", describe());
                            return Err(Diagnostic::invalid(text)
                                .at(Some(stage.location.clone()))
                                .note("it is written here", place(self.world, self.root, node))
                                .help("leave it out: a pipeline holds the nodes of its loop alone"));
                        };
                        let cycle = stage_number as u32 * interval + slot as u32;
                        if let Some(other) = cycles[at as usize].replace(cycle) {
                            let text = format!("{} has two places", describe());
                            let first = pipeline.stages.get((other / interval) as usize);
                            return Err(Diagnostic::invalid(text)
                                .at(Some(stage.location.clone()))
                                .note(
                                    format!("stage {} slot {}", other / interval, other % interval),
                                    first.map(|s| s.location.clone()),
                                )
                                .note("it is written here", place(self.world, self.root, node))
                                .help("name every node once"));
                        }
                    }
                }
            }
        }
        self.infer(found, &mut cycles);
        let missing = (0..found.body).find(|&n| cycles[n as usize].is_none());
        if let Some(missing) = missing {
            let node = nodes[missing as usize].entity;
            let text = format!("{} has no place in the pipeline", describe(self.world, self.root, node));
            return Err(self
                .fault(text)
                .note("it is written here", place(self.world, self.root, node))
                .help("put it into a slot of a stage"));
        }
        Ok(Assignment { interval, cycles: cycles.into_iter().map(Option::unwrap_or_default).collect() })
    }

    /// Places of nodes that take no time, and of conversions: as late as their first user allows. Barriers of the author and
    /// junctions follow what they wait for.
    fn infer(&self, found: &LoopGraph, cycles: &mut [Option<u32>]) {
        let graph = &found.graph;
        let is_cast =
            |n: u32| self.world.get::<Op>(graph.nodes()[n as usize].entity).is_some_and(|op| *op == Op::Cast);
        let is_fence = |n: u32| {
            let op = self.world.get::<Op>(graph.nodes()[n as usize].entity);
            n >= found.body || matches!(op, Some(Op::Barrier | Op::Control(_)))
        };
        for n in (0..graph.nodes().len() as u32).filter(|&n| is_fence(n)) {
            let before =
                graph.entering(n).filter(|e| e.distance == 0).filter_map(|e| cycles[e.from as usize]);
            let after = || {
                graph
                    .leaving(n)
                    .iter()
                    .filter(|e| e.distance == 0)
                    .filter_map(|e| cycles[e.to as usize])
                    .min()
            };
            cycles[n as usize] = cycles[n as usize].or(before.max()).or_else(after);
        }
        for n in (0..found.body).rev() {
            let class = graph.nodes()[n as usize].class;
            if cycles[n as usize].is_none() && (class == Class::Free || is_cast(n)) {
                let users = graph.leaving(n).iter().filter(|e| e.distance == 0);
                cycles[n as usize] = users.filter_map(|e| cycles[e.to as usize]).min();
            }
            // A carried value that nobody uses may be anywhere.
            if cycles[n as usize].is_none() && !takes_place(class) {
                cycles[n as usize] = Some(0);
            }
        }
    }

    /// Whether the epilogue can be left out, as the author asks.
    fn drain(
        &self,
        pipeline: &Pipeline,
        found: &LoopGraph,
        assignment: &Assignment,
        node: Entity,
    ) -> Result<Drain, Diagnostic> {
        if !pipeline.eliminate_epilogue {
            return Ok(Drain::Epilogue);
        }
        let last = assignment.stages() - 1;
        let yields = self.world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
        let early = (0..found.body).find(|&n| {
            let graph_node = found.graph.nodes()[n as usize];
            let lasting = graph_node.class == Class::WriteGlobal || yields.contains(&graph_node.entity);
            lasting && assignment.stage(n) != last
        });
        match early {
            None => Ok(Drain::Loop),
            Some(n) => {
                let node = found.graph.nodes()[n as usize].entity;
                let text = format!(
                    "without an epilogue {} would run for iterations that do not exist",
                    describe(self.world, self.root, node)
                );
                Err(self
                    .fault(text)
                    .note("it is written here", place(self.world, self.root, node))
                    .help("put it into the last stage, or keep the epilogue"))
            }
        }
    }
}
