//! After which products LDS is read.
//!
//! Products walk along their summed dimension, and so do the reads of their factors, which fall into a part
//! for each place along it. Each part is read while the one before it is multiplied, evenly, and so early
//! that its data arrive in time. What is needed too soon for that comes before all products.

use bevy_ecs::prelude::*;

use super::halves::{HalfTrips, OperationId};
use super::tiles::TileRead;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::graph::dependence_graph::{Dependence, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::node_costs::NodeCosts;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::PrimaryMap;

/// A dimension along which a product walks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct WalkedDim {
    pub symbol: Symbol,
    dim: Dim,
    /// Places along it, of which there are several.
    pub parts: u32,
}

/// A part of what a logical read of a tile reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadPart {
    /// The number of the read.
    pub read: usize,
    /// The number of the part.
    pub part: u32,
}

/// Reads that come at even distances between products; those of the first group come before all products.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadGroup {
    /// The matrix instruction, counted from the first of the trip, after which they begin.
    pub first: u32,
    /// Matrix instructions from one read to the next; 0 for those before all products.
    pub interval: u32,
    /// What is read.
    pub parts: Vec<ReadPart>,
}

/// The matrix instructions of a trip in their order.
pub(super) struct ProductOrder<'a> {
    halves: &'a HalfTrips,
    nodes: Vec<NodeId>,
    /// Their places, for those nodes that are some.
    places: PrimaryMap<NodeId, Option<u32>>,
}

impl<'a> ProductOrder<'a> {
    pub(super) fn of(found: &LoopGraph, halves: &'a HalfTrips, products: &[OperationId]) -> ProductOrder<'a> {
        let mut nodes = Vec::new();
        for &product in products {
            nodes.extend(found.body().filter(|&node| halves.of_node[node] == product));
        }
        let mut places = found.graph.table(None);
        nodes.iter().zip(0..).for_each(|(&node, place)| places[node] = Some(place));
        ProductOrder { halves, nodes, places }
    }

    /// Matrix instructions of a trip.
    pub(super) fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The first matrix instruction that uses a logical read; none if only vectors do.
    pub(super) fn first_use(&self, found: &LoopGraph, read: Entity) -> Option<u32> {
        pieces(found, read).filter_map(|node| self.use_of(found, node)).min()
    }

    /// The first matrix instruction that uses the result of a node, by way of nodes that take no time.
    fn use_of(&self, found: &LoopGraph, node: NodeId) -> Option<u32> {
        let users = found.graph.leaving(node).iter();
        let users = users.filter(|edge| edge.kind == Dependence::Value && edge.distance == 0);
        let place = |to: NodeId| match found.graph.nodes()[to].class == Class::Free {
            true => self.use_of(found, to),
            false => self.places[to],
        };
        users.filter(|edge| edge.to < found.body_end).filter_map(|edge| place(edge.to)).min()
    }

    /// The dimension along which the first product that uses a read walks, and the places of the read's nodes
    /// along it, if there are several.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(super) fn parts(
        &self,
        view: SchedulerView,
        found: &LoopGraph,
        read: &TileRead,
    ) -> Result<Option<WalkedDim>, Bug> {
        let Some(first) = self.first_use(found, read.logical) else { return Ok(None) };
        let product = self.halves.operations[self.halves.of_node[self.nodes[first as usize]]].logical;
        let Some(dim) = summed(view, product)? else { return Ok(None) };
        let places = pieces(found, read.logical).map(|node| place_along(view, found, node, dim));
        let mut places = places.collect::<Result<Vec<_>, Bug>>()?;
        places.sort_unstable();
        places.dedup();
        let walked = WalkedDim { symbol: dim_symbol(view, dim)?, dim, parts: places.len() as u32 };
        Ok(Some(walked).filter(|walked| walked.parts > 1))
    }

    /// The parts of a read, each with the first use of each of its nodes, in the order in which the schedule
    /// has them; none for a read that no product uses.
    fn uses(
        &self,
        view: SchedulerView,
        found: &LoopGraph,
        (number, read): (usize, &TileRead),
        walked: Option<WalkedDim>,
    ) -> Result<Vec<(ReadPart, Vec<u32>)>, Bug> {
        let mut reads = Vec::new();
        for node in pieces(found, read.logical) {
            let Some(used) = self.use_of(found, node) else { continue };
            let place = match walked {
                Some(WalkedDim { dim, .. }) => place_along(view, found, node, dim)?,
                None => (0, 0),
            };
            reads.push((place, used));
        }
        reads.sort_by_key(|&(place, _)| place);
        let mut parts: Vec<(ReadPart, Vec<u32>)> = Vec::new();
        for (reads, part) in reads.chunk_by(|one, other| one.0 == other.0).zip(0..) {
            let uses = reads.iter().map(|&(_, used)| used).collect();
            parts.push((ReadPart { read: number, part }, uses));
        }
        Ok(parts)
    }

    /// How many matrix instructions a read takes until its data are there.
    fn latency(&self, view: SchedulerView, found: &LoopGraph) -> Result<u32, Bug> {
        let mut costs = NodeCosts::of(view, found)?;
        let mut least = u32::MAX;
        for &node in &self.nodes {
            if let (_, Some(product)) = costs.cost(node)? {
                least = least.min(product.busy);
            }
        }
        Ok(costs.latency_in_cluster().div_ceil(least.max(1)))
    }
}

/// The nodes of a logical one.
fn pieces(found: &LoopGraph, logical: Entity) -> impl Iterator<Item = NodeId> {
    found.body().filter(move |&node| found.nodes[node].expansion.logical == logical)
}

fn place_along(view: SchedulerView, found: &LoopGraph, node: NodeId, dim: Dim) -> Result<(u32, u32), Bug> {
    PlacesAlong::new(view, dim).of(found.graph.nodes()[node].entity)
}

fn dim_symbol(view: SchedulerView, dim: Dim) -> Result<Symbol, Bug> {
    view.dims()?.0.get(dim).copied().ok_or(Bug::new("a product over no dimension"))
}

/// The dimension over which a product sums.
fn summed(view: SchedulerView, product: Entity) -> Result<Option<Dim>, Bug> {
    let own = view.node(product)?;
    let factor = view.node(own.operands.at(0)?)?;
    Ok(factor.ty.dims.iter().copied().find(|dim| !own.ty.dims.contains(dim)))
}

/// The groups of the reads that products use, with the dimensions along which they are walked: a
/// group for what comes before all products, and one for each part that comes between them.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn groups(
    view: SchedulerView,
    found: &LoopGraph,
    order: &ProductOrder,
    (reads, walked): (&[TileRead], &[Option<WalkedDim>]),
) -> Result<Vec<ReadGroup>, Bug> {
    let mut parts = Vec::new();
    // What vectors read first is there for products that read it, too.
    let factors = reads.iter().enumerate().zip(walked).filter(|((_, read), _)| read.is_factor());
    for ((number, read), walked) in factors {
        parts.extend(order.uses(view, found, (number, read), *walked)?);
    }
    parts.sort_by_key(|(part, uses)| (uses.iter().min().copied(), part.read));
    let latency = order.latency(view, found)?;
    let mut groups = vec![ReadGroup { first: 0, interval: 0, parts: Vec::new() }];
    let mut before = 0;
    for (part, uses) in parts {
        let used = uses.iter().min().copied().unwrap_or(0);
        // A part is read while the one before it is multiplied.
        let interval = (used.saturating_sub(before) / uses.len().max(1) as u32).max(1);
        match latest(interval, latency, &uses) {
            Some(first) => groups.push(ReadGroup { first, interval, parts: vec![part] }),
            None => groups[0].parts.push(part),
        }
        before = used;
    }
    Ok(groups)
}

/// The last matrix instruction after which reads at a distance can begin, so that the data of each are there
/// when they are used; none if they have to come before all matrix instructions.
fn latest(interval: u32, latency: u32, uses: &[u32]) -> Option<u32> {
    let begin = uses.iter().zip(0..).map(|(&used, number)| used.checked_sub(1 + latency + number * interval));
    begin.min().flatten()
}

#[cfg(test)]
mod tests {
    use super::latest;

    #[test]
    fn reads_come_as_late_as_their_uses_allow() {
        assert_eq!(latest(2, 4, &[16, 18, 20, 22]), Some(11));
        assert_eq!(latest(4, 4, &[16, 18, 20, 22]), Some(5));
        assert_eq!(latest(1, 0, &[1, 2, 3]), Some(0));
        assert_eq!(latest(1, 1, &[1, 2, 3]), None);
        assert_eq!(latest(1, 0, &[1, 1]), None);
    }
}
