//! In which half trip each operation of an iteration runs.
//!
//! Half trips are numbered from the first product of an iteration on: even ones multiply, odd ones do
//! everything else, and half trip -1 comes before the first product. An operation runs in the first half of
//! its kind that has its operands; operations of the vector unit then move to the last one that their users
//! allow, which leaves less to be held in registers.

use bevy_ecs::prelude::*;

use super::unsuitable::NotTwoPhases;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::numbers::EntityNumbers;
use crate::passes::schedule::graph::resources::Class;
use cranelift_entity::{PrimaryMap, entity_impl};

/// The number of a logical operation of a loop, in program order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OperationId(u32);
entity_impl!(OperationId, "");

/// What a half trip is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Products and the LDS accesses beside them.
    Products,
    /// Everything else.
    Others,
}

impl Phase {
    /// That of a half trip.
    pub(super) fn of(half: i32) -> Phase {
        if half.rem_euclid(2) == 0 { Phase::Products } else { Phase::Others }
    }
}

/// The half trip in front of the first product.
const FIRST: i32 = -1;

/// An operation and its half trip.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct HalfOperation {
    pub logical: Entity,
    pub class: Class,
    pub half: i32,
}

/// The half trips of a loop's operations.
pub(super) struct HalfTrips {
    pub operations: PrimaryMap<OperationId, HalfOperation>,
    /// The operation of each node.
    pub of_node: PrimaryMap<NodeId, OperationId>,
    /// Operations that move tiles through LDS, for which `tiles` finds the half trips.
    pub is_moved: PrimaryMap<OperationId, bool>,
}

/// The first half trip from `half` on in which a class runs.
fn at_least(half: i32, class: Class) -> i32 {
    let is_even = half.rem_euclid(2) == 0;
    match class {
        Class::Free => half,
        Class::Mma => half + i32::from(!is_even),
        Class::ReadGlobal
        | Class::WriteGlobal
        | Class::ReadShared
        | Class::WriteShared
        | Class::GlobalToShared
        | Class::Valu
        | Class::Shuffle => half + i32::from(is_even),
    }
}

/// The last half trip up to `half` in which a class runs.
fn at_most(half: i32, class: Class) -> i32 {
    let first = at_least(half, class);
    if first > half { first - 2 } else { half }
}

impl HalfTrips {
    /// Half trips of all operations; those of a product's factors are provisional.
    ///
    /// # Errors
    /// If one of the phases would be empty.
    pub(super) fn of(found: &LoopGraph) -> Result<HalfTrips, NotTwoPhases> {
        let has = |class: fn(Class) -> bool| found.graph.nodes().values().any(|own| class(own.class));
        if !has(|class| class == Class::Mma) {
            return Err(NotTwoPhases::OnePhase("matrix product"));
        }
        if !has(|class| matches!(class, Class::Valu | Class::Shuffle)) {
            return Err(NotTwoPhases::OnePhase("arithmetic beside its products"));
        }
        if has(|class| class == Class::WriteGlobal) {
            return Err(NotTwoPhases::Others("writes to global memory"));
        }
        let mut halves = HalfTrips::numbered(found);
        halves.as_early_as_operands(found);
        halves.as_late_as_users(found);
        Ok(halves)
    }

    fn numbered(found: &LoopGraph) -> HalfTrips {
        let mut operations: PrimaryMap<OperationId, HalfOperation> = PrimaryMap::default();
        let logical = || found.nodes.values().map(|node| node.expansion.logical);
        let mut numbers: EntityNumbers<OperationId> = EntityNumbers::of(logical());
        let mut of_node = PrimaryMap::default();
        for (node, own) in found.body().zip(logical()) {
            let class = found.graph.nodes()[node].class;
            let id = numbers.get(own).unwrap_or_else(|| {
                let id = operations.push(HalfOperation { logical: own, class, half: FIRST });
                numbers.insert(own, id);
                id
            });
            let known = &mut operations[id].class;
            if *known == Class::Free {
                *known = class;
            }
            of_node.push(id);
        }
        let is_moved = vec![false; operations.len()].into();
        HalfTrips { operations, of_node, is_moved }
    }

    /// The values that a node uses, or that use it.
    fn is_value(found: &LoopGraph, edge: &Edge) -> bool {
        edge.kind == Dependence::Value && edge.from < found.body_end && edge.to < found.body_end
    }

    fn as_early_as_operands(&mut self, found: &LoopGraph) {
        // Pieces of an operation may need each other: one round more for each time that a round moves any.
        for _ in 0..self.operations.len() {
            let mut has_moved = false;
            for node in found.body() {
                let own = self.of_node[node];
                let class = self.operations[own].class;
                for edge in found.graph.entering(node).filter(|e| e.distance == 0 && Self::is_value(found, e))
                {
                    let from = self.of_node[edge.from];
                    let half = at_least(self.operations[from].half, class);
                    if from != own && half > self.operations[own].half {
                        self.operations[own].half = half;
                        has_moved = true;
                    }
                }
                let own = &mut self.operations[own];
                own.half = at_least(own.half, class);
            }
            if !has_moved {
                return;
            }
        }
    }

    fn as_late_as_users(&mut self, found: &LoopGraph) {
        for _ in 0..self.operations.len() {
            // What only the next iteration uses stays: it may be what that needs first.
            let mut latest = vec![None; self.operations.len()].into();
            self.bound_by_users(found, &mut latest, |edge| edge.distance == 0);
            let is_used = latest.clone();
            self.bound_by_users(found, &mut latest, |edge| edge.distance > 0);
            let mut has_moved = false;
            for (id, own) in self.operations.iter_mut() {
                let later = latest[id].filter(|&half| own.class != Class::Mma && half > own.half);
                if let (Some(later), Some(_)) = (later, is_used[id]) {
                    own.half = later;
                    has_moved = true;
                }
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Lowers the last half trips of operations to those that their users allow, by the edges that count.
    fn bound_by_users(
        &self,
        found: &LoopGraph,
        latest: &mut PrimaryMap<OperationId, Option<i32>>,
        counts: impl Fn(&Edge) -> bool,
    ) {
        for node in found.body() {
            let own = self.of_node[node];
            for edge in found.graph.leaving(node).iter().filter(|e| Self::is_value(found, e) && counts(e)) {
                let user = self.of_node[edge.to];
                if user != own {
                    let half = self.operations[user].half + 2 * edge.distance as i32;
                    let half = at_most(half, self.operations[own].class);
                    latest[own] = Some(latest[own].map_or(half, |known| known.min(half)));
                }
            }
        }
    }

    /// The first half trip in which something uses the result of a node.
    pub(super) fn first_use(&self, found: &LoopGraph, node: NodeId) -> Option<i32> {
        let users = found.graph.leaving(node).iter().filter(|e| e.distance == 0 && Self::is_value(found, e));
        let half = |edge: &Edge| {
            let user = self.operations[self.of_node[edge.to]];
            match user.class {
                Class::Free => self.first_use(found, edge.to),
                Class::ReadGlobal
                | Class::WriteGlobal
                | Class::ReadShared
                | Class::WriteShared
                | Class::GlobalToShared
                | Class::Mma
                | Class::Valu
                | Class::Shuffle => Some(user.half),
            }
        };
        users.filter_map(half).min()
    }

    /// The first half trip of all.
    pub(super) fn earliest(&self) -> i32 {
        self.operations.values().map(|own| own.half).min().unwrap_or(FIRST)
    }

    /// Checks that every value is there when it is used: in an earlier half trip, or in the same one where
    /// older iterations come first and each in its own order.
    ///
    /// # Errors
    /// If a carried value is not.
    pub(super) fn check(&self, found: &LoopGraph) -> Result<(), NotTwoPhases> {
        for edge in found.graph.edges().iter().filter(|edge| Self::is_value(found, edge)) {
            let [from, to] = [edge.from, edge.to].map(|node| self.operations[self.of_node[node]]);
            if to.half + 2 * (edge.distance as i32) < from.half {
                return Err(NotTwoPhases::Carried);
            }
        }
        Ok(())
    }
}
