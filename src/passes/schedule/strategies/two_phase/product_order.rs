//! The matrix instructions of a trip: their order, which of them use what is read, and along which dimension
//! they walk.

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
    pub dim: Dim,
    /// Places along it, of which there are several.
    pub parts: u32,
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
    pub(super) fn use_of(&self, found: &LoopGraph, node: NodeId) -> Option<u32> {
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

    /// The last product: the dimension along which it walks, if its matrix instructions come place by place,
    /// and as many at each, and its first matrix instruction.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(super) fn last_product(
        &self,
        view: SchedulerView,
        found: &LoopGraph,
    ) -> Result<Option<(WalkedDim, u32)>, Bug> {
        let operation = |node: &NodeId| self.halves.of_node[*node];
        let Some(last) = self.nodes.last().map(operation) else { return Ok(None) };
        let first = self.nodes.iter().position(|node| operation(node) == last).unwrap_or(0);
        let Some(dim) = summed(view, self.halves.operations[last].logical)? else { return Ok(None) };
        let places = self.nodes[first..].iter().map(|&node| place_along(view, found, node, dim));
        let places = places.collect::<Result<Vec<_>, Bug>>()?;
        let parts: Vec<usize> = places.chunk_by(|one, other| one == other).map(<[_]>::len).collect();
        let is_in_order = places.is_sorted() && parts.iter().all(|&count| count == parts[0]);
        let walked = WalkedDim { symbol: dim_symbol(view, dim)?, dim, parts: parts.len() as u32 };
        Ok(is_in_order.then_some((walked, first as u32)))
    }

    /// The fewest clk for which one of the matrix instructions takes its unit.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(super) fn least_busy(&self, costs: &mut NodeCosts) -> Result<u32, Bug> {
        let mut least = u32::MAX;
        for &node in &self.nodes {
            if let (_, Some(product)) = costs.cost(node)? {
                least = least.min(product.busy);
            }
        }
        Ok(least.max(1))
    }

    /// How many matrix instructions a read takes until its data are there.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(super) fn latency(&self, view: SchedulerView, found: &LoopGraph) -> Result<u32, Bug> {
        let mut costs = NodeCosts::of(view, found)?;
        let least = self.least_busy(&mut costs)?;
        Ok(costs.latency_in_cluster().div_ceil(least))
    }
}

/// The nodes of a logical one.
pub(super) fn pieces(found: &LoopGraph, logical: Entity) -> impl Iterator<Item = NodeId> {
    found.body().filter(move |&node| found.nodes[node].expansion.logical == logical)
}

/// The place of a node along a dimension.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn place_along(
    view: SchedulerView,
    found: &LoopGraph,
    node: NodeId,
    dim: Dim,
) -> Result<(u32, u32), Bug> {
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
