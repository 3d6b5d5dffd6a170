//! The least interval that resources and recurrences allow.

use crate::ir::schedule::table::MOST_CYCLES;
use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, Edge, NodeId};
use crate::passes::schedule::graph::resources::{RESOURCES, Resource, ResourceModel};
use crate::passes::schedule::strategies::components::{ComponentId, GraphShape};
use crate::passes::schedule::strategies::refusal::Refusal;
use cranelift_entity::PrimaryMap;

/// Lower bounds of the interval of a loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct IntervalBounds {
    /// Cycles for which the scarcest resource is busy.
    pub resource: u32,
    /// That resource; none if nothing is used.
    pub scarce: Option<Resource>,
    /// Cycles that the slowest recurrence takes per iteration.
    pub recurrence: u32,
    /// A node of that recurrence; none if there is no recurrence, or none takes time.
    pub critical: Option<NodeId>,
    /// Edges looked at along the way, as the measure of the work.
    pub steps: u64,
}

impl IntervalBounds {
    /// Bounds of a graph on a machine.
    pub(crate) fn of(
        graph: &DependenceGraph,
        model: &ResourceModel,
        shape: &GraphShape,
    ) -> Result<IntervalBounds, Refusal> {
        let (resource, scarce) = resource_bound(graph, model)?;
        let mut bounds = IntervalBounds { resource, scarce, recurrence: 1, critical: None, steps: 0 };
        let (length, reached_by, seen) = (graph.table(0), graph.table(None), graph.table(0));
        let mut paths = Paths { length, reached_by, seen, walks: 0 };
        for component in shape.components.ids() {
            if shape.components.is_recurrence(graph, component) {
                bounds.raise(graph, shape, component, &mut paths)?;
            }
        }
        Ok(bounds)
    }

    /// The least interval that both allow.
    pub(crate) fn interval(&self) -> u32 {
        self.resource.max(self.recurrence)
    }

    /// Newton's method: while some cycle takes longer than the interval allows, the interval grows to what
    /// that cycle takes.
    fn raise(
        &mut self,
        graph: &DependenceGraph,
        shape: &GraphShape,
        component: ComponentId,
        paths: &mut Paths,
    ) -> Result<(), Refusal> {
        while let Some(cycle) = paths.find_cycle(graph, shape, component, self.recurrence, &mut self.steps) {
            // A cycle without distance has been rejected together with the order, so the divisor is not zero.
            let needed = cycle.latency.div_ceil(cycle.distance.max(1));
            if needed > u64::from(MOST_CYCLES) {
                return Err(Refusal::TooLong { node: cycle.node });
            }
            self.recurrence = (needed as u32).max(self.recurrence + 1);
            self.critical = Some(cycle.node);
        }
        Ok(())
    }
}

/// Per resource, the busy cycles of all nodes over the number of units, rounded up; the largest.
fn resource_bound(
    graph: &DependenceGraph,
    model: &ResourceModel,
) -> Result<(u32, Option<Resource>), Refusal> {
    let mut busy = [0u64; RESOURCES];
    let mut user = [NodeId::default(); RESOURCES];
    for (number, node) in graph.nodes().iter() {
        for (column, &cycles) in model.cost(node.class).busy.iter().enumerate() {
            if cycles > 0 && model.units[column] == 0 {
                let resource = Resource::NAMES[column].0;
                return Err(Refusal::NoUnit { node: number, class: node.class, resource });
            }
            if cycles > 0 {
                busy[column] += u64::from(cycles);
                user[column] = number;
            }
        }
    }
    let mut bound = (1, None);
    for (column, &(resource, _)) in Resource::NAMES.iter().enumerate() {
        let needed = busy[column].div_ceil(u64::from(model.units[column]).max(1));
        if needed > u64::from(MOST_CYCLES) {
            return Err(Refusal::TooLong { node: user[column] });
        }
        if needed > u64::from(bound.0) || (needed > 0 && bound.1.is_none()) {
            bound = (needed as u32, Some(resource));
        }
    }
    Ok(bound)
}

/// A cycle of dependences: its sums and one of its nodes.
struct Cycle {
    latency: u64,
    distance: u64,
    node: NodeId,
}

/// Longest paths inside a component for one interval, and the edge over which each node was reached.
struct Paths {
    length: PrimaryMap<NodeId, i64>,
    reached_by: PrimaryMap<NodeId, Option<Edge>>,
    /// The number of the last walk back over `reached_by` that came by each node.
    seen: PrimaryMap<NodeId, u64>,
    walks: u64,
}

impl Paths {
    /// A cycle whose latencies exceed what `interval` allows for its distances, if there is one. This is the
    /// Bellman-Ford algorithm, in an order in which one round follows all dependences of one iteration.
    fn find_cycle(
        &mut self,
        graph: &DependenceGraph,
        shape: &GraphShape,
        component: ComponentId,
        interval: u32,
        steps: &mut u64,
    ) -> Option<Cycle> {
        let nodes = shape.components.nodes(component);
        for &node in nodes {
            self.length[node] = 0;
            self.reached_by[node] = None;
        }
        loop {
            let mut changed = false;
            for &node in nodes {
                for edge in graph.leaving(node) {
                    *steps += 1;
                    if shape.components.of(edge.to) != component {
                        continue;
                    }
                    let length = self.length[node] + slack(edge, interval);
                    if length > self.length[edge.to] {
                        self.length[edge.to] = length;
                        self.reached_by[edge.to] = Some(*edge);
                        changed = true;
                    }
                }
            }
            if !changed {
                return None;
            }
            if let Some(cycle) = self.cycle(nodes) {
                return Some(cycle);
            }
        }
    }

    /// A cycle among the edges over which nodes were reached; any such cycle is too long, and any cycle that
    /// is too long shows up here.
    fn cycle(&mut self, nodes: &[NodeId]) -> Option<Cycle> {
        let before = self.walks;
        for &start in nodes {
            self.walks += 1;
            let mut node = start;
            loop {
                let seen = self.seen[node];
                if seen == self.walks {
                    return Some(self.sum(node));
                }
                if seen > before {
                    break;
                }
                self.seen[node] = self.walks;
                match &self.reached_by[node] {
                    Some(edge) => node = edge.from,
                    None => break,
                }
            }
        }
        None
    }

    /// Sums over the cycle that `node` is on.
    fn sum(&self, node: NodeId) -> Cycle {
        let mut cycle = Cycle { latency: 0, distance: 0, node };
        let mut at = node;
        while let Some(edge) = &self.reached_by[at] {
            cycle.latency += u64::from(edge.latency);
            cycle.distance += u64::from(edge.distance);
            at = edge.from;
            if at == node {
                break;
            }
        }
        cycle
    }
}

/// Cycles between the two ends of an edge, as cycles of one iteration.
pub(super) fn slack(edge: &Edge, interval: u32) -> i64 {
    i64::from(edge.latency) - i64::from(edge.distance) * i64::from(interval)
}
