//! An author's schedule on paper: the trip that it makes of a loop, without changing the kernel. It knows the
//! operations that this compiler's own schedules consist of.

use bevy_ecs::prelude::*;

use super::steps::{TripControl, TripStep, WaveHalves};
use super::trip::PlannedTrip;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::nodes::Bug;
use crate::ir::schedule::{Group, InsertPlace, Item, NodeType, Operation, Pipeline, ValueId, WaveSchedule};
use crate::ir::types::AddressSpace;
use crate::passes::schedule::apply::copies::{self, TooLarge};
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::author::manual::infer;
use crate::passes::schedule::author::selection::{divided, interleaved};
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::PrimaryMap;

/// Why a schedule has no sketch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotSketched {
    /// Its LDS buffers do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
    /// The kernel is broken.
    #[error(transparent)]
    Broken(#[from] Bug),
    /// It does what only authors do.
    #[error("its operations are not estimated")]
    Operation,
}

/// What a value of the schedule stands for.
enum SketchedValue {
    Nodes(Vec<NodeId>),
    Cluster(Vec<TripStep>),
    /// What runs before or after the loop.
    Ends,
    /// The loop.
    Steady,
}

/// A schedule while it is read.
struct Sketch<'a> {
    view: SchedulerView<'a>,
    found: &'a LoopGraph,
    tagged: &'a TaggedNodes,
    values: Vec<SketchedValue>,
    cycles: PrimaryMap<NodeId, Option<u32>>,
    interval: u32,
    /// Copies of every LDS buffer that the schedule asks for.
    copies: Option<u32>,
    steps: Vec<TripStep>,
    halves: WaveHalves,
}

/// The trip that a schedule for one loop makes of it; `tagged` are the nodes of its tags.
///
/// # Errors
/// Why there is none.
pub(crate) fn sketch(
    view: SchedulerView,
    found: &LoopGraph,
    schedule: &WaveSchedule,
    tagged: &TaggedNodes,
) -> Result<PlannedTrip, NotSketched> {
    let (cycles, halves) = (found.graph.table(None), WaveHalves::InStep);
    let (values, steps) = (Vec::new(), Vec::new());
    let mut sketch = Sketch { view, found, tagged, values, cycles, interval: 1, copies: None, steps, halves };
    for scheduled in schedule.operations() {
        let values = sketch.operation(&scheduled.operation)?;
        sketch.values.extend(values);
    }
    let Sketch { cycles, interval, copies, steps, halves, .. } = sketch;
    let cycles = cycles.values().map(|cycle| cycle.unwrap_or_default()).collect();
    let assignment = Assignment { interval, cycles };
    let copies = match copies {
        Some(copies) => copies::of_all(view, found, copies)??,
        None => copies::planned(view, found, &assignment)??,
    };
    let steps = with_free_nodes(found, &steps);
    Ok(PlannedTrip::new(view, found, assignment, (steps, halves), &copies)?)
}

impl Sketch<'_> {
    fn operation(&mut self, operation: &Operation) -> Result<Vec<SketchedValue>, NotSketched> {
        let nodes = |list: Vec<NodeId>| vec![SketchedValue::Nodes(list)];
        match operation {
            Operation::GetNodeByTag { tag } => Ok(nodes(self.by_tag(tag, None))),
            Operation::GetNodeByTagAndType { tag, node_type } => {
                Ok(nodes(self.by_tag(tag, Some(*node_type))))
            }
            Operation::PartitionByAddressSpace { list, space } => {
                let (inside, others) = self.by_space(*list, *space)?;
                Ok(vec![SketchedValue::Nodes(inside), SketchedValue::Nodes(others)])
            }
            Operation::PartitionByDim { list, dim, parts } => {
                let parts = self.by_dim(*list, *dim, *parts)?;
                Ok(parts.into_iter().map(SketchedValue::Nodes).collect())
            }
            // There are no nodes but those of the loop.
            Operation::FilterNodes { list, node_type: None, .. } => Ok(nodes(self.nodes(*list)?.to_vec())),
            Operation::GetItem { list, index } => {
                let item = self.nodes(*list)?.get(*index as usize).copied();
                Ok(nodes(vec![item.ok_or(NotSketched::Operation)?]))
            }
            Operation::InterleaveOps { base, groups } => Ok(nodes(self.interleave(base, groups)?)),
            Operation::Pipeline(pipeline) => self.pipeline(pipeline),
            Operation::Cluster { items } => Ok(vec![SketchedValue::Cluster(self.cluster(items)?)]),
            Operation::ReorderGraph { clusters, .. } => {
                let mut steps = Vec::new();
                for &cluster in clusters {
                    steps.extend(self.cluster(&[Item::Value(cluster)])?);
                }
                self.steps = steps;
                Ok(Vec::new())
            }
            Operation::Insert { place, target, directive } => {
                self.insert(*place, *target, TripControl::of(directive.op()))?;
                Ok(Vec::new())
            }
            Operation::Stagger { .. } => {
                self.halves = WaveHalves::Staggered;
                Ok(Vec::new())
            }
            // A trip of the unrolled loop is so many of these.
            Operation::Unroll { .. } | Operation::TagNodes { .. } | Operation::LoadToLds => Ok(Vec::new()),
            Operation::GetNodeByTagAndIteration { .. }
            | Operation::FilterNodes { .. }
            | Operation::ScheduleLoop { .. } => Err(NotSketched::Operation),
        }
    }

    fn nodes(&self, id: ValueId) -> Result<&[NodeId], NotSketched> {
        match self.values.get(id.index()) {
            Some(SketchedValue::Nodes(nodes)) => Ok(nodes),
            _ => Err(NotSketched::Operation),
        }
    }

    fn by_tag(&self, tag: &str, node_type: Option<NodeType>) -> Vec<NodeId> {
        let named = self.tagged.iter().find(|known| *known.0 == *tag);
        let logical = named.map_or(&[][..], |known| &known.1);
        let is_wanted = |node: &NodeId| {
            let own = &self.found.nodes[*node];
            logical.contains(&own.expansion.logical)
                && node_type.is_none_or(|wanted| NodeType::of(own.op) == Some(wanted))
        };
        self.found.body().filter(is_wanted).collect()
    }

    fn by_space(
        &self,
        list: ValueId,
        space: AddressSpace,
    ) -> Result<(Vec<NodeId>, Vec<NodeId>), NotSketched> {
        let (mut inside, mut others) = (Vec::new(), Vec::new());
        for &node in self.nodes(list)? {
            let seen = self.view.node(self.found.graph.nodes()[node].entity)?;
            let is_inside = self.view.buffer_of(&seen)?.is_some() == (space == AddressSpace::Shared);
            if is_inside { inside.push(node) } else { others.push(node) }
        }
        Ok((inside, others))
    }

    fn by_dim(&self, list: ValueId, symbol: Symbol, parts: u32) -> Result<Vec<Vec<NodeId>>, NotSketched> {
        let dim = self.view.dims()?.0.values().position(|&dim| dim == symbol);
        let dim = dim.and_then(|at| u8::try_from(at).ok()).map(Dim).ok_or(NotSketched::Operation)?;
        let nodes = self.nodes(list)?;
        let mut along = PlacesAlong::new(self.view, dim);
        let place = |&node: &NodeId| along.of(self.found.graph.nodes()[node].entity);
        let places = nodes.iter().map(place).collect::<Result<Vec<(u32, u32)>, Bug>>()?;
        divided(nodes, &places, parts).map_err(|_| NotSketched::Operation)
    }

    fn flat(&self, lists: &[ValueId]) -> Result<Vec<NodeId>, NotSketched> {
        let mut all = Vec::new();
        for &list in lists {
            all.extend_from_slice(self.nodes(list)?);
        }
        Ok(all)
    }

    fn interleave(&self, base: &[ValueId], groups: &[Group]) -> Result<Vec<NodeId>, NotSketched> {
        let lists = groups.iter().map(|group| self.flat(&group.lists)).collect::<Result<Vec<_>, _>>()?;
        Ok(interleaved(&self.flat(base)?, &lists, groups))
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<SketchedValue>, NotSketched> {
        self.interval = (pipeline.initiation_interval() as u32).max(1);
        self.copies = pipeline.multi_buffer_count;
        let mut cycle = 0;
        for stage in &pipeline.stages {
            for lists in &stage.slots {
                for node in self.flat(lists)? {
                    self.cycles[node] = Some(cycle);
                }
                cycle += 1;
            }
        }
        infer(self.found, &mut self.cycles);
        Ok(vec![SketchedValue::Ends, SketchedValue::Steady, SketchedValue::Ends])
    }

    fn cluster(&self, items: &[Item]) -> Result<Vec<TripStep>, NotSketched> {
        let mut steps = Vec::new();
        for item in items {
            match item {
                Item::Directive(directive) => {
                    steps.extend(TripControl::of(directive.op()).map(TripStep::Control))
                }
                Item::Value(id) => match self.values.get(id.index()) {
                    Some(SketchedValue::Nodes(nodes)) => {
                        steps.extend(nodes.iter().copied().map(TripStep::Node));
                    }
                    Some(SketchedValue::Cluster(inner)) => steps.extend_from_slice(inner),
                    Some(SketchedValue::Ends | SketchedValue::Steady) | None => {
                        return Err(NotSketched::Operation);
                    }
                },
            }
        }
        Ok(steps)
    }

    fn insert(
        &mut self,
        place: InsertPlace,
        target: ValueId,
        fence: Option<TripControl>,
    ) -> Result<(), NotSketched> {
        let Some(fence) = fence.map(TripStep::Control) else { return Ok(()) };
        let at = match (self.values.get(target.index()), place) {
            // What is beside the loop is no part of a trip.
            (Some(SketchedValue::Ends), _)
            | (Some(SketchedValue::Steady), InsertPlace::Before | InsertPlace::After) => return Ok(()),
            (Some(SketchedValue::Steady), InsertPlace::AtStart) => 0,
            (Some(SketchedValue::Steady), InsertPlace::AtEnd) => self.steps.len(),
            (Some(SketchedValue::Nodes(nodes)), InsertPlace::Before) => self.place_of(nodes.first())?,
            (Some(SketchedValue::Nodes(nodes)), InsertPlace::After) => self.place_of(nodes.last())? + 1,
            (Some(SketchedValue::Nodes(_)), InsertPlace::AtStart | InsertPlace::AtEnd)
            | (Some(SketchedValue::Cluster(_)) | None, _) => return Err(NotSketched::Operation),
        };
        self.steps.insert(at, fence);
        Ok(())
    }

    fn place_of(&self, node: Option<&NodeId>) -> Result<usize, NotSketched> {
        let place = |&node: &NodeId| self.steps.iter().position(|step| *step == TripStep::Node(node));
        node.and_then(place).ok_or(NotSketched::Operation)
    }
}

/// The steps with the nodes that no list names, which take no time, in front of the first one that needs
/// them.
fn with_free_nodes(found: &LoopGraph, steps: &[TripStep]) -> Vec<TripStep> {
    let mut emitted = found.graph.table(false);
    for step in steps {
        if let TripStep::Node(node) = *step {
            emitted[node] = true;
        }
    }
    let mut out = Vec::with_capacity(found.graph.nodes().len());
    let mut open: Vec<NodeId> = Vec::new();
    for &step in steps {
        if let TripStep::Node(node) = step {
            open.push(node);
            while let Some(&next) = open.last() {
                let missing = found.graph.entering(next).find(|edge| {
                    let is_in_body = edge.from < found.body_end && edge.distance == 0;
                    is_in_body && !emitted[edge.from] && !found.is_carried(edge.from)
                });
                if let Some(edge) = missing {
                    emitted[edge.from] = true;
                    open.push(edge.from);
                    continue;
                }
                open.pop();
                if next != node {
                    out.push(TripStep::Node(next));
                }
            }
        }
        out.push(step);
    }
    out
}
