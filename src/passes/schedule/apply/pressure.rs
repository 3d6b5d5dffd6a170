//! Vector registers of a steady state, and an order that takes fewer.
//!
//! A schedule says in which slot a node runs. Within the slot, reads may come as early as the slot begins, or
//! only when they are needed. Early is better, because results take long to come, unless there are too few
//! registers to hold them in the meantime.

use super::pipeline::{OrderPlace, PlacedNode};
use crate::index::Neighbours;
use crate::ir::node::Op;
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::{EntityRef, PrimaryMap};

/// Registers that addresses, masks and the like take in addition to values.
pub(crate) const BESIDE_VALUES: u32 = 20;

/// Vector registers that values may take so that all waves of a workgroup are resident.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn available(view: SchedulerView) -> Result<u32, Bug> {
    let (waves, settings) = (view.waves()?, view.settings()?);
    let target = settings.target();
    let resident = target.vgpr_file / waves.div_ceil(target.simds_per_compute_unit).max(1);
    let limit = settings.vgpr_limit().unwrap_or(u32::MAX).min(resident);
    Ok(limit.saturating_sub(BESIDE_VALUES))
}

/// Facts about the nodes of a loop that do not change with their order.
struct LoopValues<'a> {
    found: &'a LoopGraph,
    assignment: &'a Assignment,
    /// Registers of each node's result; none for products, which stay in those of their accumulators.
    width: PrimaryMap<NodeId, u32>,
    /// Registers of carried values.
    carried: u32,
}

impl<'a> LoopValues<'a> {
    fn of(found: &'a LoopGraph, assignment: &'a Assignment) -> LoopValues<'a> {
        let mut width = found.graph.table(0);
        let mut carried = 0;
        for (node, width) in found.nodes.values().zip(width.values_mut()) {
            if let Op::IterArg(_) = node.op {
                carried += node.registers;
            } else if !node.op.is_product() {
                *width = node.registers;
            }
        }
        LoopValues { found, assignment, width, carried }
    }

    /// Most registers that are occupied at once; `at` gives the place of each node in the order.
    fn peak(&self, at: &PrimaryMap<NodeId, OrderPlace>, length: usize) -> u32 {
        let mut change: PrimaryMap<OrderPlace, i64> = vec![0; length + 2].into();
        let mut always = i64::from(self.carried);
        for (node, &width) in self.width.iter().filter(|(_, width)| **width > 0) {
            let mut last = at[node];
            let mut trips = 0;
            for edge in self.found.graph.leaving(node).iter().filter(|e| e.to < self.found.body_end) {
                let later = self.assignment.stage(edge.to) + edge.distance;
                let lag = later.saturating_sub(self.assignment.stage(node));
                (trips, last) = (trips, last).max((lag, at[edge.to]));
            }
            let width = i64::from(width);
            change[at[node]] += width;
            if trips == 0 {
                change[last.next()] -= width;
            } else {
                // From here to the end of the trip, through all trips between, and from the beginning to the
                // last use.
                always += width * i64::from(trips - 1);
                change[OrderPlace::default()] += width;
                change[last.next()] -= width;
            }
        }
        let mut now = always;
        let mut most = now;
        for &change in change.values() {
            now += change;
            most = most.max(now);
        }
        u32::try_from(most).unwrap_or(0)
    }
}

/// Vector registers that a wave takes, about, if a steady state has this order.
pub(crate) fn registers(found: &LoopGraph, assignment: &Assignment, order: &[NodeId]) -> u32 {
    LoopValues::of(found, assignment).peak(&places(found, order), order.len()) + BESIDE_VALUES
}

/// Moves reads closer to their users, as far as it takes to stay within `limit` registers: first reads from
/// LDS, then reads from global memory, too. `order` holds numbers of the graph's nodes.
pub(crate) fn relieve(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    order: &mut Vec<NodeId>,
    limit: u32,
) {
    let nodes = found.graph.nodes();
    let is = |node: NodeId, class: Class| nodes[node].class == class;
    let values = LoopValues::of(found, assignment);
    let length = order.len();
    let places = |order: &[NodeId]| places(found, order);
    let written = places(order);
    if values.peak(&written, length) <= limit {
        return;
    }
    let original = order.clone();
    let latest = latest(view, found, assignment, &written);
    for classes in [&[Class::ReadShared][..], &[Class::ReadShared, Class::ReadGlobal]] {
        let mut reach = length as u32 / 2;
        loop {
            let key = |&node: &NodeId| {
                let own = written[node];
                let moves = classes.iter().any(|&class| is(node, class));
                let latest = if moves { latest[node] } else { own };
                // In front of the node that stands there now.
                (own.as_u32().max(latest.as_u32().saturating_sub(reach)), if moves { 0 } else { 1 }, own)
            };
            order.clone_from(&original);
            order.sort_by_cached_key(key);
            if values.peak(&places(order), length) <= limit {
                return;
            }
            if reach == 0 {
                break;
            }
            reach /= 2;
        }
    }
}

/// The place of each node of the graph in an order.
pub(super) fn places(found: &LoopGraph, order: &[NodeId]) -> PrimaryMap<NodeId, OrderPlace> {
    let mut at = found.graph.table(OrderPlace::default());
    order.iter().enumerate().for_each(|(place, &node)| at[node] = OrderPlace::new(place));
    at
}

/// The last place at which each read may stand: that of its first user in the same trip, or of the first node
/// that overwrites what it reads.
fn latest(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    at: &PrimaryMap<NodeId, OrderPlace>,
) -> PrimaryMap<NodeId, OrderPlace> {
    let mut latest = at.clone();
    for node in found.body().filter(|&node| reads(found, node)) {
        let (own, here) = (assignment.stage(node), at[node]);
        let users = found.graph.leaving(node).iter().filter(|e| e.to < found.body_end && e.distance == 0);
        let users = users.map(|e| if assignment.stage(e.to) == own { at[e.to] } else { here });
        // Nodes that write the memory in the same trip are kept in order by a junction.
        let junctions = found.graph.leaving(node).iter().filter(|e| e.to >= found.body_end);
        let writes = junctions
            .flat_map(|e| {
                found.graph.leaving(e.to).iter().map(move |next| (next.to, e.distance + next.distance))
            })
            .filter(|&(to, distance)| to < found.body_end && assignment.stage(to) + distance == own)
            .map(|(to, _)| at[to]);
        latest[node] = users.chain(writes).min().unwrap_or(here);
    }
    before_overwritten(view, found, assignment, at, &mut latest);
    latest
}

/// Limits the places of reads from LDS to those before anything overwrites what they read.
pub(super) fn before_overwritten(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    at: &PrimaryMap<NodeId, OrderPlace>,
    latest: &mut PrimaryMap<NodeId, OrderPlace>,
) {
    for buffer in &found.buffers {
        let copies = view.copies(buffer.buffer).max(1);
        // Iterations whose stages differ by a multiple of the copies meet in the same copy.
        let copy = |node: NodeId| assignment.stage(node) % copies;
        let mut writes: Vec<_> = buffer.writes.iter().map(|&w| (copy(w), at[w])).collect();
        writes.sort_unstable();
        for &node in &buffer.reads {
            let next = writes.partition_point(|&write| write <= (copy(node), at[node]));
            if let Some(&(_, place)) = writes.get(next).filter(|write| write.0 == copy(node)) {
                latest[node] = latest[node].min(place);
            }
        }
    }
}

/// True for nodes that bring values from memory.
pub(super) fn reads(found: &LoopGraph, node: NodeId) -> bool {
    matches!(found.graph.nodes()[node].class, Class::ReadShared | Class::ReadGlobal)
}

/// The order in the form that pipelining takes.
pub(crate) fn placed(
    found: &LoopGraph,
    assignment: &Assignment,
    order: &[NodeId],
) -> PrimaryMap<OrderPlace, PlacedNode> {
    let placed = |&n: &NodeId| PlacedNode { node: found.graph.nodes()[n].entity, stage: assignment.stage(n) };
    order.iter().map(placed).collect()
}
