//! What the barriers of a steady state are for: which accesses of LDS they leave unordered, and which
//! barriers no order of accesses needs.
//!
//! A trip with a barrier less pairs up its barriers anew, and takes other waves' accesses that much nearer to
//! each other. Where they stay in order all the same, the barrier is there for the pace: of two waves of a
//! SIMD one computes while the other moves data, because each waits for the other between.
//!
//! The answer is found on demand, for the page of a schedule and for tests, which take out each barrier and
//! look at what check mode and time mode say.

use std::ops::ControlFlow;

use bevy_ecs::prelude::*;

use super::in_flight::{AccessId, BodyAccess, accesses_of};
use crate::ir::node::Unrolled;
use crate::ir::nodes::Bug;
use crate::passes::facts::Settled;
use crate::passes::schedule::graph::buffer_parts::parts_of_groups;
use crate::passes::schedule::graph::dependences::trips_between;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::PrimaryMap;

/// Waves that run a loop in step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WaveGroup {
    /// How many barriers more than the others they have met.
    pub late: u32,
    /// Their numbers.
    pub waves: Vec<u32>,
}

/// Two accesses of LDS, of which the barriers between them have to keep one in front of the other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AccessPair {
    /// The access that has to be over first.
    pub earlier: Entity,
    /// The access that has to wait.
    pub later: Entity,
    /// Trips of the loop between the two.
    pub trips: u32,
    /// How many barriers more than the others the waves of the first access have met.
    pub earlier_offset: u32,
    /// The same for the waves of the second.
    pub later_offset: u32,
    /// Barriers that a wave meets from the beginning of the first one's trip until that access is over, and
    /// until it makes the second one itself.
    over: u32,
    begins: u32,
}

impl AccessPair {
    fn is_ordered(&self) -> bool {
        self.over + self.earlier_offset < self.begins + self.later_offset
    }

    /// True if the pair is in order without barrier `barrier` of the `barriers` of a trip.
    fn is_ordered_without(&self, barrier: u32, barriers: u32) -> bool {
        let before = |end: u32| end - (end / barriers + u32::from(end % barriers > barrier));
        before(self.over) + self.earlier_offset < before(self.begins) + self.later_offset
    }
}

/// How the accesses of LDS of a steady state lie between its barriers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TripOrder {
    /// These two are not in order.
    Unordered(AccessPair),
    /// All are, and some are still under way when the loop has ended and its waves have met again.
    Open,
    /// All are, and none is under way then.
    Settled,
}

/// Judges the accesses of LDS in the steady state `node`, which these groups of waves run.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn order(view: SchedulerView, node: Entity, groups: &[WaveGroup]) -> Result<TripOrder, Bug> {
    let accesses = TripAccesses::of(view, node)?;
    let late: Vec<u32> = groups.iter().map(|group| group.late).collect();
    let unordered = |list: &[Extreme]| {
        accesses.pairs(list, &mut |pair| match pair.is_ordered() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(pair),
        })
    };
    let mut found =
        unordered(&extremes(accesses.all.values().map(|access| (&late[..], access)))).break_value();
    if found.is_some() {
        // Only accesses of the same part of a buffer have to be in order; few loops need that looked at.
        found = accesses.parts(view, groups)?.iter().find_map(|part| unordered(part).break_value());
    }
    Ok(match found {
        Some(pair) => TripOrder::Unordered(pair),
        None if accesses.all.values().all(|access| access.over < accesses.barriers) => TripOrder::Settled,
        None => TripOrder::Open,
    })
}

/// What a barrier of a loop is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BarrierRole {
    /// It keeps accesses of LDS in order.
    Order,
    /// Accesses are in order without it, if all others stay: it keeps groups of waves in pace.
    Pace,
}

/// What each barrier of the steady state `node` is for, in their order; none if all its waves run in step.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn roles(
    view: SchedulerView,
    node: Entity,
    groups: &[WaveGroup],
) -> Result<Vec<BarrierRole>, Bug> {
    if groups.len() < 2 {
        return Ok(Vec::new());
    }
    let accesses = TripAccesses::of(view, node)?;
    let barriers = accesses.barriers;
    let mut roles = vec![BarrierRole::Pace; barriers as usize];
    let mut judge = |pair: AccessPair| {
        for (role, barrier) in roles.iter_mut().zip(0..) {
            if !pair.is_ordered_without(barrier, barriers) {
                *role = BarrierRole::Order;
            }
        }
        ControlFlow::Continue(())
    };
    for part in accesses.parts(view, groups)? {
        let _: ControlFlow<AccessPair> = accesses.pairs(&part, &mut judge);
    }
    if view.world.get::<Settled>(node).is_some() {
        // No other barrier stands between the loop and what comes after it.
        let latest = groups.iter().map(|group| group.late).max().unwrap_or(0);
        for access in accesses.all.values() {
            let (earlier, later) = (access.node, access.node);
            let pair = AccessPair {
                earlier,
                later,
                trips: 1,
                earlier_offset: latest,
                later_offset: latest,
                over: access.over,
                begins: barriers,
            };
            let _ = judge(pair);
        }
    }
    Ok(roles)
}

/// The accesses of LDS of a trip, which its barriers cut into epochs.
struct TripAccesses {
    all: PrimaryMap<AccessId, BodyAccess>,
    /// Barriers of a trip.
    barriers: u32,
    /// Iterations of a trip.
    per_trip: u32,
}

impl TripAccesses {
    fn of(view: SchedulerView, node: Entity) -> Result<TripAccesses, Bug> {
        let (all, barriers) = accesses_of(view, view.body(node)?)?;
        Ok(TripAccesses { all, barriers, per_trip: Unrolled::of(view.world, node) })
    }

    /// The accesses of each part of each buffer, those of every group apart.
    fn parts<'a>(
        &'a self,
        view: SchedulerView,
        groups: &'a [WaveGroup],
    ) -> Result<Vec<Vec<Extreme<'a>>>, Bug> {
        let mut buffers: Vec<Entity> = Vec::new();
        for access in self.all.values() {
            if !buffers.contains(&access.buffer) {
                buffers.push(access.buffer);
            }
        }
        let mut found = Vec::new();
        for buffer in buffers {
            let own: Vec<&BodyAccess> = self.all.values().filter(|access| access.buffer == buffer).collect();
            let nodes: Vec<Entity> = own.iter().map(|access| access.node).collect();
            let numbers = parts_of_groups(view, buffer, &nodes, groups.iter().map(|group| &group.waves[..]))?;
            let of_groups = groups
                .iter()
                .flat_map(|group| own.iter().map(move |&access| (std::slice::from_ref(&group.late), access)));
            let mut parts: Vec<(u32, (&[u32], &BodyAccess))> = numbers.into_iter().zip(of_groups).collect();
            parts.sort_by_key(|(part, _)| *part);
            let same = parts.chunk_by(|one, other| one.0 == other.0);
            found.extend(same.map(|part| extremes(part.iter().map(|(_, access)| *access))));
        }
        Ok(found)
    }

    /// Shows `look` the pairs of these accesses that may touch the same elements, until it has seen enough.
    fn pairs<B>(
        &self,
        extremes: &[Extreme],
        look: &mut impl FnMut(AccessPair) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let TripAccesses { per_trip, barriers, .. } = *self;
        for writes in extremes.iter().filter(|e| e.write) {
            for reads in extremes.iter().filter(|e| !e.write && e.buffer == writes.buffer) {
                // An iteration reads what it has written some trips later; what it reads is overwritten when
                // the same copy is used again.
                let read = trips_between(writes.ahead, reads.ahead, 0, per_trip);
                let overwritten = trips_between(reads.ahead, writes.ahead, writes.copies, per_trip);
                let pairs = [read.map(|p| (writes, reads, p)), overwritten.map(|p| (reads, writes, p))];
                for (earlier, later, trips) in pairs.into_iter().flatten() {
                    for &earlier_offset in earlier.late {
                        for &later_offset in later.late {
                            let (over, begins) = (earlier.last_over.0, trips * barriers + later.first.0);
                            let (earlier, later) = (earlier.last_over.1, later.first.1);
                            look(AccessPair {
                                earlier,
                                later,
                                trips,
                                earlier_offset,
                                later_offset,
                                over,
                                begins,
                            })?;
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// First and last of the accesses that are alike.
struct Extreme<'a> {
    /// How late the groups of waves are that make them.
    late: &'a [u32],
    buffer: Entity,
    copies: u32,
    write: bool,
    ahead: u32,
    first: (u32, Entity),
    last_over: (u32, Entity),
}

/// The extremes of these accesses, each with how late the groups are that make it.
fn extremes<'a>(accesses: impl Iterator<Item = (&'a [u32], &'a BodyAccess)>) -> Vec<Extreme<'a>> {
    let mut extremes: Vec<Extreme> = Vec::new();
    for (late, access) in accesses {
        match extremes.iter_mut().find(|known| known.is_of(late, access)) {
            Some(known) => known.widen(access),
            None => extremes.push(Extreme::of(late, access)),
        }
    }
    extremes
}

impl<'a> Extreme<'a> {
    fn of(late: &'a [u32], access: &BodyAccess) -> Extreme<'a> {
        let &BodyAccess { node, buffer, copies, write, ahead, epoch, over } = access;
        Extreme { late, buffer, copies, write, ahead, first: (epoch, node), last_over: (over, node) }
    }

    fn is_of(&self, late: &[u32], access: &BodyAccess) -> bool {
        let own = (self.buffer, self.write, self.ahead, self.late);
        own == (access.buffer, access.write, access.ahead, late)
    }

    fn widen(&mut self, access: &BodyAccess) {
        if access.epoch < self.first.0 {
            self.first = (access.epoch, access.node);
        }
        if access.over > self.last_over.0 {
            self.last_over = (access.over, access.node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair of which the first one is over after so many barriers, and the second begins after so many.
    fn pair([over, begins]: [u32; 2], [earlier_offset, later_offset]: [u32; 2]) -> AccessPair {
        let (earlier, later) = (Entity::PLACEHOLDER, Entity::PLACEHOLDER);
        AccessPair { earlier, later, trips: 0, earlier_offset, later_offset, over, begins }
    }

    /// Runs a wave of each offset through trips of `barriers` barriers without one of them, and looks at the
    /// epochs in which the first access is over and the second begins.
    fn in_order(pair: &AccessPair, without: u32, barriers: u32) -> bool {
        let met = |until: u32| (0..until).filter(|at| at % barriers != without).count() as u32;
        met(pair.over) + pair.earlier_offset < met(pair.begins) + pair.later_offset
    }

    #[test]
    fn a_barrier_is_needed_where_one_less_lets_two_accesses_meet() {
        for barriers in 1..5 {
            for over in 0..9 {
                for begins in 0..20 {
                    for offsets in [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 0]] {
                        let pair = pair([over, begins], offsets);
                        for without in 0..barriers {
                            let expected = in_order(&pair, without, barriers);
                            assert_eq!(pair.is_ordered_without(without, barriers), expected, "{pair:?}");
                        }
                    }
                }
            }
        }
        // Of groups that are one barrier apart, the late one needs two barriers where one with itself needs
        // one.
        assert!(pair([0, 1], [0, 0]).is_ordered() && !pair([0, 1], [1, 0]).is_ordered());
        assert!(pair([0, 2], [1, 0]).is_ordered() && !pair([0, 2], [1, 0]).is_ordered_without(0, 4));
        assert!(pair([0, 2], [1, 0]).is_ordered_without(2, 4));
    }
}
