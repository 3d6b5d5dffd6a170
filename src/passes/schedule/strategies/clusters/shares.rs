//! How vector arithmetic is divided between two clusters.
//!
//! Arithmetic that follows a product could all run beside the next one. What nothing needs before the
//! cluster after that may run there: then both products have some beside them. Operations are divided where
//! the second product sums over several pieces, because arithmetic on a piece needs no other one. They
//! stand in an order in which each comes after what it needs and a piece is done with before the next one
//! begins, and a prefix of it runs in the first of the two clusters, so long that both shares take about as
//! much of the time that their products leave.

use bevy_ecs::prelude::*;
use cranelift_entity::SecondaryMap;

use super::places::{ChainOperationId, OperationPart, OperationPlaces};
use super::unsuitable::NotClustered;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::node_costs::NodeCosts;
use crate::passes::schedule::graph::view::SchedulerView;

/// A vector operation and its clusters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct VectorShare {
    pub logical: Entity,
    /// The first of its clusters; the other one comes two later.
    pub cluster: u32,
    /// The parts that it is divided into, and how many of them, from the first on, run in the first
    /// cluster.
    pub parts: u32,
    pub early: u32,
    /// The dimension along which parts lie, if there are several.
    pub along: Option<Symbol>,
}

/// A part of an operation.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OperationUnit {
    /// The last of the finest parts that it needs.
    reached: u32,
    operation: ChainOperationId,
    part: u32,
}

/// The vector operations of a loop, in the order in which clusters have them; `clusters` are those of
/// nodes. The first shares have so many parts more than would make both take as long.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn of(
    view: SchedulerView,
    found: &LoopGraph,
    places: &OperationPlaces,
    clusters: &mut SecondaryMap<NodeId, u32>,
    more_early: i32,
) -> Result<Vec<VectorShare>, NotClustered> {
    let mut shares = Vec::new();
    let mut firsts: Vec<u32> = vectors(places).map(|id| places.operations[id].cluster).collect();
    firsts.sort_unstable();
    firsts.dedup();
    for first in firsts {
        VectorSegment::new(view, found, places, first)?.divide(&mut shares, clusters, more_early)?;
    }
    Ok(shares)
}

fn vectors(places: &OperationPlaces) -> impl Iterator<Item = ChainOperationId> + '_ {
    places.operations.iter().filter(|(_, own)| own.part == OperationPart::Vector).map(|(id, _)| id)
}

/// The operations whose first cluster is the same.
struct VectorSegment<'a> {
    view: SchedulerView<'a>,
    found: &'a LoopGraph,
    places: &'a OperationPlaces,
    first: u32,
    operations: Vec<ChainOperationId>,
    /// The dimension along which they are divided, and the parts of each.
    along: Option<(Dim, Symbol)>,
    parts: SecondaryMap<ChainOperationId, u32>,
    /// The part of each node.
    part_of: SecondaryMap<NodeId, u32>,
}

impl<'a> VectorSegment<'a> {
    fn new(
        view: SchedulerView<'a>,
        found: &'a LoopGraph,
        places: &'a OperationPlaces,
        first: u32,
    ) -> Result<VectorSegment<'a>, Bug> {
        let own = |id: &ChainOperationId| places.operations[*id].cluster == first;
        let operations: Vec<ChainOperationId> = vectors(places).filter(own).collect();
        let (parts, part_of) = (SecondaryMap::new(), SecondaryMap::new());
        let mut segment =
            VectorSegment { view, found, places, first, operations, along: None, parts, part_of };
        segment.along = segment.summed_dim()?;
        for number in 0..segment.operations.len() {
            segment.find_parts(segment.operations[number])?;
        }
        Ok(segment)
    }

    /// The dimension over which the first product sums that needs one of the operations.
    fn summed_dim(&self) -> Result<Option<(Dim, Symbol)>, Bug> {
        let is_own = |id: ChainOperationId| self.operations.contains(&id);
        let user = self.places.values(self.found).find(|&(from, to, distance)| {
            let is_product = matches!(self.places.operations[to].part, OperationPart::Product(_));
            distance == 0 && is_own(from) && is_product
        });
        let Some((_, product, _)) = user else { return Ok(None) };
        let product = self.view.node(self.places.operations[product].logical)?;
        let factor = self.view.node(product.operands.at(0)?)?;
        let Some(dim) = factor.ty.dims.iter().copied().find(|dim| !product.ty.dims.contains(dim)) else {
            return Ok(None);
        };
        Ok(self.view.dims()?.0.get(dim).map(|&symbol| (dim, symbol)))
    }

    fn nodes(&self, id: ChainOperationId) -> impl Iterator<Item = NodeId> + '_ {
        self.found.body().filter(move |&node| self.places.of_node[node] == id)
    }

    /// Finds the parts of an operation: places of its nodes along the dimension, if each has only what is
    /// at one.
    fn find_parts(&mut self, id: ChainOperationId) -> Result<(), Bug> {
        self.parts[id] = 1;
        let Some((dim, _)) = self.along else { return Ok(()) };
        if !self.view.node(self.places.operations[id].logical)?.ty.dims.contains(&dim) {
            return Ok(());
        }
        let mut along = PlacesAlong::new(self.view, dim);
        let mut found = Vec::new();
        for node in self.nodes(id) {
            found.push((along.of(self.found.graph.nodes()[node].entity)?, node));
        }
        found.sort_unstable();
        for (nodes, part) in found.chunk_by(|one, other| one.0 == other.0).zip(0..) {
            nodes.iter().for_each(|&(_, node)| self.part_of[node] = part);
            self.parts[id] = part + 1;
        }
        Ok(())
    }

    /// Divides the operations, and appends them.
    fn divide(
        &self,
        shares: &mut Vec<VectorShare>,
        clusters: &mut SecondaryMap<NodeId, u32>,
        more_early: i32,
    ) -> Result<(), Bug> {
        let units = self.units();
        let costs = units.iter().map(|unit| self.cost(unit.operation)).collect::<Result<Vec<u64>, Bug>>()?;
        let fixed = self.fixed(&units);
        let all: u64 = costs.iter().sum();
        let mut best = (u64::MAX, units.len());
        let mut early = 0;
        for at in 0..=units.len() {
            if at >= fixed {
                best = best.min((early.max(all - early), at));
            }
            early += costs.get(at).copied().unwrap_or(0);
        }
        let cut = best.1.saturating_add_signed(more_early as isize).clamp(fixed.min(best.1), units.len());
        let mut seen: Vec<ChainOperationId> = Vec::new();
        for unit in &units {
            let id = unit.operation;
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let early = units[..cut].iter().filter(|own| own.operation == id).count() as u32;
            let parts = self.parts[id];
            for node in self.nodes(id) {
                clusters[node] = self.first + 2 * u32::from(self.part_of[node] >= early);
            }
            shares.push(VectorShare {
                logical: self.places.operations[id].logical,
                cluster: self.first,
                parts,
                early,
                along: self.along.map(|(_, symbol)| symbol).filter(|_| parts > 1),
            });
        }
        Ok(())
    }

    /// The parts of all operations in an order in which each comes after what it needs, the first parts
    /// first.
    fn units(&self) -> Vec<OperationUnit> {
        let finest = self.operations.iter().map(|&id| self.parts[id]).max().unwrap_or(1);
        let mut units: Vec<OperationUnit> = Vec::new();
        // The last finest part that each node needs.
        let mut reached: SecondaryMap<NodeId, u32> = SecondaryMap::new();
        for node in self.found.body() {
            let operands = self.found.graph.entering(node).filter(|edge| edge.distance == 0);
            let needed = operands.map(|edge| reached[edge.from]).max().unwrap_or(0);
            let (operation, part) = (self.places.of_node[node], self.part_of[node]);
            if !self.operations.contains(&operation) {
                reached[node] = needed;
                continue;
            }
            let parts = self.parts[operation];
            let own = if parts > 1 { (part + 1) * finest / parts - 1 } else { 0 };
            reached[node] = own.max(needed);
            match units.iter_mut().find(|unit| unit.operation == operation && unit.part == part) {
                Some(unit) => unit.reached = unit.reached.max(reached[node]),
                None => units.push(OperationUnit { reached: reached[node], operation, part }),
            }
        }
        units.sort_by_key(|unit| (unit.operation, unit.part));
        for at in 1..units.len() {
            // Parts stay in their order.
            if units[at].operation == units[at - 1].operation {
                units[at].reached = units[at].reached.max(units[at - 1].reached);
            }
        }
        units.sort();
        units
    }

    /// Units from the first on that have to be in the first cluster, because something needs them there or
    /// in the next one.
    fn fixed(&self, units: &[OperationUnit]) -> usize {
        let needed = |id: ChainOperationId| {
            self.places.values(self.found).any(|(from, to, distance)| {
                let user = self.places.operations[to];
                let cluster = user.cluster + distance * self.places.per_trip;
                let is_late = match user.part {
                    OperationPart::Product(_) | OperationPart::Seldom(_) => cluster > self.first + 2,
                    OperationPart::Vector => cluster >= self.first + 2 || self.operations.contains(&to),
                    OperationPart::Moved | OperationPart::Free => {
                        !self.places.is_for_product(to) || cluster > self.first + 2
                    }
                };
                from == id && !is_late
            })
        };
        units.iter().rposition(|unit| needed(unit.operation)).map_or(0, |last| last + 1)
    }

    /// Clk of the vector unit for a part of an operation.
    fn cost(&self, id: ChainOperationId) -> Result<u64, Bug> {
        let costs = NodeCosts::of(self.view, self.found)?;
        let mut clk = 0;
        for node in self.nodes(id) {
            clk += costs.vector_clk(node)?;
        }
        Ok(clk / u64::from(self.parts[id].max(1)))
    }
}
