//! The cluster of each operation of an iteration.
//!
//! Clusters are numbered from 0, the memory cluster of the first product, in the order in which an
//! iteration passes them; in a loop of two products clusters 4 to 7 are those of the next trip. The product
//! of number `p` runs in the first cluster `2 p + 1` of a trip that comes after its operands, arithmetic in
//! the first odd one that comes after the products that it needs, and what is left out most of the time in
//! the memory cluster in front of the product that needs it.

use bevy_ecs::prelude::*;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

use super::unsuitable::NotClustered;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::numbers::EntityNumbers;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::{SchedulerView, Seldom};

/// The number of a logical operation of a loop, in program order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ChainOperationId(u32);
entity_impl!(ChainOperationId, "");

/// How an operation takes part.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OperationPart {
    /// The product of this number.
    Product(u32),
    /// Vector arithmetic.
    Vector,
    /// Vector arithmetic that is left out most of the time.
    Seldom(Seldom),
    /// Accesses of LDS and memory, which `tiles` places.
    Moved,
    /// Nothing: it takes no time.
    Free,
}

/// An operation and its cluster.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ClusteredOperation {
    pub logical: Entity,
    pub part: OperationPart,
    pub cluster: u32,
}

/// The clusters of a loop's operations.
pub(super) struct OperationPlaces {
    pub operations: PrimaryMap<ChainOperationId, ClusteredOperation>,
    /// The operation of each node.
    pub of_node: PrimaryMap<NodeId, ChainOperationId>,
    /// For operations that take no time: whether a product needs their results, by way of others of the kind.
    hands_to_product: SecondaryMap<ChainOperationId, bool>,
    /// Clusters of a trip.
    pub per_trip: u32,
}

/// True for the use of a value by a node of the body.
fn is_value(found: &LoopGraph, edge: &Edge) -> bool {
    edge.kind == Dependence::Value && edge.from < found.body_end && edge.to < found.body_end
}

/// The first odd cluster.
const FIRST: u32 = 1;

impl OperationPlaces {
    /// Clusters of all operations; those of moved ones are provisional.
    ///
    /// # Errors
    /// If the loop is no chain of products.
    pub(super) fn of(view: SchedulerView, found: &LoopGraph) -> Result<OperationPlaces, NotClustered> {
        let mut places = OperationPlaces::numbered(view, found)?;
        let products = places.products().len() as u32;
        if products < 2 {
            return Err(NotClustered::NoChain("second product"));
        }
        places.per_trip = 2 * products;
        places.find_handed(found);
        if !places.operations.values().any(|own| own.part == OperationPart::Vector) {
            return Err(NotClustered::NoChain("arithmetic"));
        }
        places.after_operands(found);
        places.seldom_before_users(found);
        places.free_with_users(found);
        Ok(places)
    }

    fn numbered(view: SchedulerView, found: &LoopGraph) -> Result<OperationPlaces, NotClustered> {
        let mut operations: PrimaryMap<ChainOperationId, ClusteredOperation> = PrimaryMap::default();
        let logical = || found.nodes.values().map(|node| node.expansion.logical);
        let mut numbers: EntityNumbers<ChainOperationId> = EntityNumbers::of(logical());
        let (mut of_node, mut products) = (PrimaryMap::default(), 0);
        for (node, own) in found.body().zip(logical()) {
            let class = found.graph.nodes()[node].class;
            if class == Class::WriteGlobal {
                return Err(NotClustered::Others("writes to global memory"));
            }
            let id = numbers.get(own).unwrap_or_else(|| {
                let id = operations.push(ClusteredOperation {
                    logical: own,
                    part: OperationPart::Free,
                    cluster: FIRST,
                });
                numbers.insert(own, id);
                id
            });
            let known = &mut operations[id].part;
            if *known != OperationPart::Free {
                of_node.push(id);
                continue;
            }
            *known = match class {
                Class::Mma => {
                    products += 1;
                    OperationPart::Product(products - 1)
                }
                Class::Valu | Class::Shuffle => {
                    view.seldom(own).map_or(OperationPart::Vector, OperationPart::Seldom)
                }
                Class::Free => OperationPart::Free,
                Class::ReadGlobal
                | Class::WriteGlobal
                | Class::ReadShared
                | Class::WriteShared
                | Class::GlobalToShared => OperationPart::Moved,
            };
            of_node.push(id);
        }
        Ok(OperationPlaces { operations, of_node, hands_to_product: SecondaryMap::new(), per_trip: 0 })
    }

    /// Finds which operations that take no time, such as carried values, hand on to a product what they are
    /// given.
    fn find_handed(&mut self, found: &LoopGraph) {
        let edges: Vec<_> = self.values(found).filter(|edge| edge.2 == 0).collect();
        // Uses come after what they use, so that one round in the other direction finds all of them.
        for id in self.operations.keys().rev() {
            if self.operations[id].part == OperationPart::Free {
                let mut users = edges.iter().filter(|edge| edge.0 == id).map(|edge| edge.1);
                self.hands_to_product[id] = users.any(|to| self.is_for_product(to));
            }
        }
    }

    /// True for products, and for what hands its operands to one.
    pub(super) fn is_for_product(&self, id: ChainOperationId) -> bool {
        matches!(self.operations[id].part, OperationPart::Product(_)) || self.hands_to_product[id]
    }

    /// Clusters from one operation to another that needs its result.
    pub(super) fn distance(&self, from: ChainOperationId, to: ChainOperationId) -> u32 {
        let user =
            if self.hands_to_product[to] { OperationPart::Product(0) } else { self.operations[to].part };
        Self::between(self.operations[from].part, user)
    }

    /// The first cluster from `cluster` on in which an operation may run.
    fn at_least(&self, cluster: u32, part: OperationPart) -> u32 {
        match part {
            OperationPart::Product(number) => {
                let own = 2 * number + 1;
                own + cluster.saturating_sub(own).next_multiple_of(self.per_trip)
            }
            OperationPart::Vector => cluster | 1,
            OperationPart::Seldom(_) => cluster.next_multiple_of(2),
            OperationPart::Moved | OperationPart::Free => cluster,
        }
    }

    /// The same of parts: what a product makes is there in the next cluster, and what arithmetic makes in its
    /// own, for arithmetic.
    fn between(from: OperationPart, to: OperationPart) -> u32 {
        match (from, to) {
            (OperationPart::Vector, OperationPart::Vector)
            | (OperationPart::Free | OperationPart::Moved, _)
            | (_, OperationPart::Free | OperationPart::Moved) => 0,
            (OperationPart::Product(_) | OperationPart::Vector | OperationPart::Seldom(_), _) => 1,
        }
    }

    /// Edges of values between operations of one iteration and the next ones.
    pub(super) fn values<'a>(
        &'a self,
        found: &'a LoopGraph,
    ) -> impl Iterator<Item = (ChainOperationId, ChainOperationId, u32)> + 'a {
        let edges = found.graph.edges().iter().filter(|edge| is_value(found, edge));
        let ends = edges.map(|edge| (self.of_node[edge.from], self.of_node[edge.to], edge.distance));
        ends.filter(|(from, to, _)| from != to)
    }

    fn after_operands(&mut self, found: &LoopGraph) {
        let edges: Vec<_> = self.values(found).filter(|edge| edge.2 == 0).collect();
        for _ in 0..self.operations.len() {
            let mut has_moved = false;
            for &(from, to, _) in &edges {
                let there = self.operations[from].cluster + self.distance(from, to);
                let own = self.operations[to];
                let cluster = self.at_least(there, own.part);
                if cluster > own.cluster {
                    self.operations[to].cluster = cluster;
                    has_moved = true;
                }
            }
            for id in self.operations.keys() {
                let own = self.operations[id];
                self.operations[id].cluster = self.at_least(own.cluster, own.part);
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Puts what is left out most of the time right in front of the first product that needs it.
    fn seldom_before_users(&mut self, found: &LoopGraph) {
        for id in self.operations.keys() {
            if let OperationPart::Seldom(_) = self.operations[id].part {
                let users = self.values(found).filter(|&(from, _, distance)| from == id && distance == 0);
                let first = users.map(|(_, to, _)| self.operations[to].cluster).min();
                self.operations[id].cluster = first.map_or(self.operations[id].cluster, |first| first - 1);
            }
        }
    }

    /// Puts what takes no time, such as carried values, where it is needed first.
    fn free_with_users(&mut self, found: &LoopGraph) {
        let edges: Vec<_> = self.values(found).filter(|edge| edge.2 == 0).collect();
        // Uses come after what they use, so that one round in the other direction finds all of them.
        for id in self.operations.keys().rev() {
            if self.operations[id].part == OperationPart::Free {
                let users =
                    edges.iter().filter(|edge| edge.0 == id).map(|edge| self.operations[edge.1].cluster);
                self.operations[id].cluster = users.min().unwrap_or(self.operations[id].cluster);
            }
        }
    }

    /// Checks that all values are there where they are needed, if nodes have these clusters.
    pub(super) fn check(
        &self,
        found: &LoopGraph,
        clusters: &SecondaryMap<NodeId, u32>,
    ) -> Result<(), NotClustered> {
        let is_late = |edge: &Edge| {
            let ids = [edge.from, edge.to].map(|node| self.of_node[node]);
            let [from, to] = ids.map(|id| self.operations[id].part);
            // Pieces of a product add to each other in its cluster.
            let is_other = ids[0] != ids[1] && from != OperationPart::Moved && to != OperationPart::Moved;
            let there = clusters[edge.from] + self.distance(ids[0], ids[1]);
            is_other && clusters[edge.to] + edge.distance * self.per_trip < there
        };
        match found.graph.edges().iter().filter(|edge| is_value(found, edge)).any(is_late) {
            true => Err(NotClustered::Carried),
            false => Ok(()),
        }
    }

    /// The clusters of nodes as their operations have them.
    pub(super) fn of_nodes(&self, found: &LoopGraph) -> SecondaryMap<NodeId, u32> {
        let mut clusters = SecondaryMap::new();
        found.body().for_each(|node| clusters[node] = self.operations[self.of_node[node]].cluster);
        clusters
    }

    /// The products in the order of their numbers.
    pub(super) fn products(&self) -> Vec<ClusteredOperation> {
        self.operations
            .values()
            .copied()
            .filter(|own| matches!(own.part, OperationPart::Product(_)))
            .collect()
    }

    /// What is left out most of the time.
    pub(super) fn seldom(&self) -> Vec<ClusteredOperation> {
        let is_seldom = |own: &ClusteredOperation| matches!(own.part, OperationPart::Seldom(_));
        self.operations.values().copied().filter(is_seldom).collect()
    }

    /// Trips that an iteration takes part in.
    pub(super) fn stages(&self) -> u32 {
        self.operations.values().map(|own| own.cluster / self.per_trip + 1).max().unwrap_or(1)
    }

    /// The first cluster that uses the result of a node, by way of nodes that take no time; none if none
    /// does, or if something uses it that is no product and no vector arithmetic beside products.
    pub(super) fn first_use(&self, found: &LoopGraph, node: NodeId) -> Option<u32> {
        let users =
            found.graph.leaving(node).iter().filter(|edge| {
                edge.distance == 0 && edge.kind == Dependence::Value && edge.to < found.body_end
            });
        let mut first = None::<u32>;
        for edge in users {
            let user = self.operations[self.of_node[edge.to]];
            let cluster = match user.part {
                OperationPart::Product(_) | OperationPart::Vector => user.cluster,
                OperationPart::Free => self.first_use(found, edge.to)?,
                OperationPart::Seldom(_) | OperationPart::Moved => return None,
            };
            first = Some(first.map_or(cluster, |known| known.min(cluster)));
        }
        first
    }
}
