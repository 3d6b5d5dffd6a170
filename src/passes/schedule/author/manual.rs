//! An author's schedule on a kernel: its operations are evaluated one after the other, each verified before
//! it changes anything.
//!
//! Selections give lists of expanded nodes. `pipeline` turns the lists of its stages into an assignment, has
//! it judged, and rebuilds the loop; from then on every list stands for the copies of its nodes. Editing
//! reorders nodes and inserts barriers and the like. What that does to waves is judged at the end: no wave
//! may wait at a barrier that another wave never reaches.

use crate::passes::schedule::graph::dependence_graph::NodeId;
use bevy_ecs::prelude::*;

use super::evaluation::{Evaluation, Part, ScheduleByName, ScheduleValue, Stop, Which};
use super::tags::{TagIndex, Tagged, of_known_loop};
use super::{named_nodes, selection};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::schedule::table::{Checks, Request};
use crate::ir::schedule::{Directive, Item, Operation, Pipeline, Scheduled, ValueId, WaveSchedule};
use crate::ir::walk;
use crate::passes::options::Schedule;
use crate::passes::schedule::apply::pipeline::OrderPlace;
use crate::passes::schedule::apply::rebuild::{NotRebuilt, Unfit, rebuild};
use crate::passes::schedule::apply::record::{Applied, LoopRecord, Outcome};
use crate::passes::schedule::apply::unroll::{NotUnrolled, unroll};
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::numbers::EntityNumbers;
use crate::passes::schedule::graph::resources::{Class, ResourceModel};
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::bug;
use crate::passes::schedule::judge::verify::{broken, broken_fault, early_fault, too_few_fault};
use crate::passes::schedule::judge::wave_groups;
use cranelift_entity::PrimaryMap;

/// Evaluates the schedule that the options bring.
///
/// # Errors
/// What the author has to correct; a kernel that is broken.
pub(crate) fn schedule(
    kernel: &mut Scheduling,
    asked: &Schedule,
    by_name: ScheduleByName,
) -> Result<Vec<LoopRecord>, Diagnostic> {
    let Schedule::Manual(written) = asked else { return Err(bug("no author's schedule")) };
    let at = written.location().clone();
    let tagged = named_nodes::tagged(kernel.view(), written)?;
    let evaluation = Evaluation { tagged: tagged.as_ref(), ..Evaluation::new(kernel, at, by_name) };
    evaluate(evaluation, written)
}

/// Evaluates a strategy's schedule of one loop, whose dependences are known. Returns what became of the loop.
pub(crate) fn apply(
    kernel: &mut Scheduling,
    written: &WrittenSchedule,
    known: (Entity, LoopGraph),
) -> Result<Vec<LoopRecord>, Diagnostic> {
    let at = written.schedule.location().clone();
    let evaluation = Evaluation::new(kernel, at, |_, _, _| Err(bug("a strategy that names another one")));
    let evaluation = Evaluation { tagged: Some(&written.tagged), known: Some(known), ..evaluation };
    evaluate(evaluation, &written.schedule)
}

fn evaluate(mut evaluation: Evaluation, schedule: &WaveSchedule) -> Result<Vec<LoopRecord>, Diagnostic> {
    for scheduled in schedule.operations() {
        match evaluation.operation(scheduled) {
            Ok(results) => evaluation.values.extend(results),
            Err(Stop::Fault(fault)) => return Err(fault),
            Err(Stop::Unfit(record)) => {
                evaluation.records.push(record);
                break;
            }
        }
    }
    Ok(evaluation.records)
}

/// A fault of waves that are out of step, placed at the operation of the schedule that parts them unless it
/// has a place already.
pub(crate) fn blamed(fault: Diagnostic, schedule: &WaveSchedule) -> Diagnostic {
    let parting = schedule.operations().iter().rev().find(|s| parts_waves(&s.operation));
    let at = parting.map_or(schedule.location(), |scheduled| &scheduled.location);
    let at = fault.location.clone().unwrap_or_else(|| at.clone());
    fault.at(Some(at))
}

/// True for operations that let some waves meet a barrier that others do not.
fn parts_waves(operation: &Operation) -> bool {
    let is = |directive: &Directive| matches!(directive, Directive::Control(Control::ConditionalBarrier(_)));
    if let Operation::Insert { directive, .. } = operation {
        is(directive)
    } else if let Operation::Cluster { items } = operation {
        items.iter().any(|item| matches!(item, Item::Directive(directive) if is(directive)))
    } else {
        matches!(operation, Operation::Stagger { .. })
    }
}

impl Evaluation<'_, '_> {
    fn operation(&mut self, scheduled: &Scheduled) -> Result<Vec<ScheduleValue>, Stop> {
        self.at = scheduled.location.clone();
        let nodes = |list: Vec<Entity>| vec![ScheduleValue::Nodes(list)];
        Ok(match &scheduled.operation {
            Operation::GetNodeByTag { tag } => nodes(self.by_tag(tag)?),
            Operation::GetNodeByTagAndType { tag, node_type } => {
                let list = self.by_tag(tag)?;
                nodes(selection::of_type(self.kernel.view(), &list, *node_type)?)
            }
            Operation::GetNodeByTagAndIteration { tag, iteration } => {
                nodes(self.by_tag_and_iteration(tag, *iteration)?)
            }
            Operation::PartitionByAddressSpace { list, space } => {
                let (inside, others) = self.partition_by_space(*list, *space)?;
                vec![ScheduleValue::Nodes(inside), ScheduleValue::Nodes(others)]
            }
            Operation::PartitionByDim { list, dim, parts } => {
                let parts = self.partition_by_dim(*list, *dim, *parts)?;
                parts.into_iter().map(ScheduleValue::Nodes).collect()
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
            Operation::Cluster { items } => vec![ScheduleValue::Cluster(self.cluster(items)?)],
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
            Operation::Unroll { region, factor } => {
                self.unroll(*region, *factor)?;
                Vec::new()
            }
            Operation::ScheduleLoop { target, strategy } => {
                self.schedule_loop(*target, strategy)?;
                Vec::new()
            }
            // They hold for the whole schedule or kernel, and have been looked at before.
            Operation::TagNodes { .. } | Operation::LoadToLds => Vec::new(),
        })
    }

    fn by_tag(&mut self, tag: &str) -> Result<Vec<Entity>, Stop> {
        if let (Some(tagged), Some((node, found))) = (self.tagged, &self.known)
            && let Some(nodes) = of_known_loop(self.kernel.view(), (tagged, tag), (*node, found))?
        {
            return Ok(nodes);
        }
        if self.tags.is_none() {
            self.tags = Some(TagIndex::of(self.kernel.view(), self.tagged)?);
        }
        match self.tags.as_ref().map_or(Tagged::Nothing(None), |tags| tags.get(tag)) {
            Tagged::Nodes(nodes) => Ok(nodes),
            Tagged::Remainder(node) => {
                let why = "no whole tile is left for its loop".to_owned();
                Err(Stop::Unfit(LoopRecord::refused(node, why)))
            }
            Tagged::Nothing(close) => {
                let fault = self.fault(format!("no node has the tag \"{tag}\""));
                Err(Stop::Fault(match close {
                    Some(close) => fault.help(format!("did you mean \"{close}\"?")),
                    None => fault.help("tag the operation in the kernel"),
                }))
            }
        }
    }

    fn by_tag_and_iteration(&mut self, tag: &str, iteration: u32) -> Result<Vec<Entity>, Stop> {
        let list = self.by_tag(tag)?;
        selection::of_iteration(self.kernel.view(), &list, iteration)?.map_err(|count| {
            let text = format!("no copy of \"{tag}\" is of iteration {iteration}");
            // A loop that was too short to be unrolled has only one.
            let refused = self.records.iter().find(|r| matches!(r.outcome, Outcome::Refused { .. }));
            match refused {
                Some(record) => Stop::Unfit(LoopRecord::refused(record.written, text)),
                None if count == 1 => self.fault(text).help("unroll its loop first").into(),
                None => {
                    let help = format!("its loop runs {count} iterations in a trip, counted from 0");
                    self.fault(text).help(help).into()
                }
            }
        })
    }

    /// Unrolls a loop; lists then stand for all copies of their nodes, one iteration after the other.
    fn unroll(&mut self, region: ValueId, factor: u32) -> Result<(), Diagnostic> {
        let node = match self.part(region)? {
            Some(part) if part.which == Which::Kernel => part.steady,
            Some(_) => {
                return Err(self.fault("only a loop can be unrolled").help("unroll the pipeline's kernel"));
            }
            None => self.one_loop(region)?,
        };
        let view = self.kernel.view();
        let mut body = view.body(node)?.iter().copied();
        if let Some(inner) = body.find(|&inner| view.body(inner).is_ok()) {
            let text = format!("{} holds another loop", self.describe(node));
            return Err(self
                .fault(text)
                .note("the inner loop is here", self.place(inner))
                .help("only innermost loops can be unrolled"));
        }
        let around = walk::region_of(self.kernel.world, self.kernel.root, node)
            .ok_or_else(|| self.fault("the loop is not in the kernel"))?;
        if wave_groups::out_of_step(self.kernel.view(), around, node)? {
            let text = format!("{} is staggered", self.describe(node));
            return Err(self.fault(text).help("unroll it first, then stagger it"));
        }
        let copies = match unroll(self.kernel, [around, node], factor) {
            Ok(copies) => copies,
            Err(NotUnrolled::Fault(fault)) => return Err(fault.at(Some(self.at.clone()))),
            Err(NotUnrolled::TooShort { count }) => {
                let why = format!("a trip count of {count} is too small to unroll the loop {factor} times");
                self.records.push(LoopRecord::refused(node, why));
                return Ok(());
            }
        };
        (self.tags, self.known) = (None, None);
        for value in &mut self.values {
            let ScheduleValue::Nodes(nodes) = value else { continue };
            let later = (1..factor as usize).flat_map(|at| nodes.iter().map(move |n| (n, at)));
            let later: Vec<Entity> =
                later.filter_map(|(n, at)| copies.get(n).and_then(|c| c.get(at)).copied()).collect();
            nodes.extend(later);
        }
        Ok(())
    }

    /// The one loop that a list names, which no pipeline has yet, after the region around it.
    fn loop_to_pipeline(&mut self, list: ValueId) -> Result<[Entity; 2], Diagnostic> {
        let node = self.one_loop(list)?;
        let region = walk::region_of(self.kernel.world, self.kernel.root, node)
            .ok_or_else(|| self.fault("the loop is not in the kernel"))?;
        if region != self.kernel.root && matches!(self.kernel.view().op(region)?, Op::Pipeline(_)) {
            let fault = self.fault("this loop is pipelined already");
            return Err(fault.help("set all stages in one pipeline"));
        }
        Ok([region, node])
    }

    /// Schedules a loop by a strategy of the compiler's. Lists keep what is still in the kernel.
    fn schedule_loop(&mut self, target: ValueId, strategy: &str) -> Result<(), Diagnostic> {
        let place = self.loop_to_pipeline(target)?;
        let at = &self.at;
        let record = (self.by_name)(self.kernel, place, strategy)
            .map_err(|fault| if fault.location.is_some() { fault } else { fault.at(Some(at.clone())) })?;
        self.records.push(record);
        (self.tags, self.known) = (None, None);
        let mut kept = NodeSet::default();
        walk::visit(self.kernel.world, self.kernel.root, &mut |node| kept.insert(node));
        for value in &mut self.values {
            if let ScheduleValue::Nodes(nodes) = value {
                nodes.retain(|&node| kept.contains(node));
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<ScheduleValue>, Stop> {
        let [region, node] = self.loop_to_pipeline(pipeline.target)?;
        let found = match self.known.take().filter(|known| known.0 == node) {
            Some((_, found)) => found,
            None => dependences(self.kernel.view(), node, &ResourceModel::ABSTRACT).map_err(|why| {
                self.not_schedulable(node, &format!("this loop cannot be pipelined: {why}"))
            })?,
        };
        let assignment = self.assignment(pipeline, &found)?;
        if let Some(fault) = broken(&found, &assignment, Checks::Order) {
            let fault = broken_fault(self.kernel.world, self.kernel.root, &found, &assignment, fault);
            return Err(fault.at(Some(self.at.clone())).into());
        }
        let drain = self.drain(pipeline, &found, &assignment, node)?;
        if let Some(copies) = pipeline.multi_buffer_count
            && let Some(fault) = too_few_fault(self.kernel.view(), &found, &assignment, copies)?
        {
            return Err(fault.at(Some(self.at.clone())).into());
        }
        let request = Request { copies: pipeline.multi_buffer_count, drain };
        let rebuilt = rebuild(self.kernel, [region, node], &found, &assignment, request, Checks::Order);
        let (order, rebuilt) = rebuilt.map_err(|why| match why {
            NotRebuilt::Unfit(Unfit::Lds(why)) => {
                Stop::Fault(self.fault(why.to_string()).help("use smaller tiles, or fewer stages"))
            }
            NotRebuilt::Unfit(why) => Stop::Unfit(LoopRecord::refused(node, why.to_string())),
            NotRebuilt::Fault(fault) => Stop::Fault(fault),
        })?;
        self.tags = None;
        let place: EntityNumbers<OrderPlace> =
            EntityNumbers::in_order(order.values().map(|placed| placed.node));
        for value in &mut self.values {
            if let ScheduleValue::Nodes(nodes) = value {
                *nodes = nodes
                    .iter()
                    .flat_map(|n| match place.get(*n) {
                        Some(at) => &rebuilt.copies[at][..],
                        None => std::slice::from_ref(n),
                    })
                    .map(|&n| if n == node { rebuilt.steady } else { n })
                    .collect();
            }
        }
        let checks = Checks::Order;
        let steady = rebuilt.steady;
        let applied = Applied { instead: None, written: None, steady, found, assignment, request, checks };
        self.records.push(LoopRecord::applied(node, applied));
        let part = |which| ScheduleValue::Part(Part { whole: rebuilt.whole, steady: rebuilt.steady, which });
        Ok([Which::Prologue, Which::Kernel, Which::Epilogue].map(part).to_vec())
    }

    /// Cycles from stages and slots; nodes that take no time are placed where they are needed.
    fn assignment(&self, pipeline: &Pipeline, found: &LoopGraph) -> Result<Assignment, Diagnostic> {
        let interval = pipeline.initiation_interval() as u32;
        let nodes = found.graph.nodes();
        let number: EntityNumbers<NodeId> = EntityNumbers::in_order(found.body_entities());
        let mut cycles: PrimaryMap<NodeId, Option<u32>> = found.graph.table(None);
        for (stage_number, stage) in pipeline.stages.iter().enumerate() {
            for (slot, lists) in stage.slots.iter().enumerate() {
                for &list in lists {
                    for &node in self.nodes(list)? {
                        let at = number.get(node);
                        let describe = || self.describe(node);
                        let Some(at) = at else {
                            let text = format!("{} is not in the loop", describe());
                            return Err(Diagnostic::invalid(text)
                                .at(Some(stage.location.clone()))
                                .note("it is written here", self.place(node))
                                .help("leave it out: a pipeline holds the nodes of its loop alone"));
                        };
                        let cycle = stage_number as u32 * interval + slot as u32;
                        if let Some(other) = cycles[at].replace(cycle) {
                            let text = format!("{} has two places", describe());
                            let first = pipeline.stages.get((other / interval) as usize);
                            return Err(Diagnostic::invalid(text)
                                .at(Some(stage.location.clone()))
                                .note(
                                    format!("stage {} slot {}", other / interval, other % interval),
                                    first.map(|s| s.location.clone()),
                                )
                                .note("it is written here", self.place(node))
                                .help("name every node once"));
                        }
                    }
                }
            }
        }
        infer(found, &mut cycles);
        let missing = found.body().find(|&n| cycles[n].is_none());
        if let Some(missing) = missing {
            let node = nodes[missing].entity;
            let text = format!("{} has no place in the pipeline", self.describe(node));
            return Err(self
                .fault(text)
                .note("it is written here", self.place(node))
                .help("put it into a slot of a stage"));
        }
        Ok(Assignment { interval, cycles: cycles.values().map(|cycle| cycle.unwrap_or_default()).collect() })
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
        match early_fault(self.kernel.world, self.kernel.root, found, assignment, node) {
            None => Ok(Drain::Loop),
            Some(fault) => Err(fault.at(Some(self.at.clone()))),
        }
    }
}

/// Infers the places of conversions, of dtypes and of layouts, and of nodes that take no time: as late as
/// their first user allows. An author cannot name a conversion of layouts.
/// Barriers of the author and junctions come after the nodes that they wait for.
pub(crate) fn infer(found: &LoopGraph, cycles: &mut PrimaryMap<NodeId, Option<u32>>) {
    let graph = &found.graph;
    let is_conversion = |n: NodeId| matches!(found.op(n), Some(Op::Convert(_) | Op::Rearrange));
    let is_fence = |n: NodeId| n >= found.body_end || found.is_fence(n);
    for n in graph.nodes().keys().filter(|&n| is_fence(n)) {
        let before = graph.entering(n).filter(|e| e.distance == 0).filter_map(|e| cycles[e.from]);
        let after = || graph.leaving(n).iter().filter(|e| e.distance == 0).filter_map(|e| cycles[e.to]).min();
        cycles[n] = cycles[n].or(before.max()).or_else(after);
    }
    for n in found.body().rev() {
        let class = graph.nodes()[n].class;
        if cycles[n].is_none() && (class == Class::Free || is_conversion(n)) {
            let users = graph.leaving(n).iter().filter(|e| e.distance == 0);
            cycles[n] = users.filter_map(|e| cycles[e.to]).min();
        }
        // A carried value without users may be anywhere.
        if cycles[n].is_none() && class == Class::Free {
            cycles[n] = Some(0);
        }
    }
}
