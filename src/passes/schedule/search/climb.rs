//! The search for the schedule of one loop.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;

use super::moves::{moved, moves};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Unrolled;
use crate::passes::schedule::apply::choice::EstimatedTrip;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::loops::{candidates, innermost};
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::describe_operation;
use crate::passes::schedule::strategies::automatic::{estimate_written, suitable};
use crate::passes::schedule::strategies::clusters;
use crate::passes::schedule::strategies::rows::{AUTOMATIC, CLUSTERS};
use crate::passes::schedule::strategies::strategy::{Find, Strategy};

/// A loop and the best schedule that is known for it.
pub(crate) struct SearchedLoop {
    /// Its number among the kernel's loops.
    pub(super) number: usize,
    /// The loop in words.
    pub(crate) what: String,
    node: Entity,
    found: LoopGraph,
    /// The strategies that suit it, the one that it gets first.
    suitable: Vec<(&'static Strategy, EstimatedTrip)>,
    /// The strategy that the best schedule is from.
    pub(crate) strategy: &'static Strategy,
    /// What a trip takes under the strategy that it gets, if that is estimated.
    pub(crate) began: Option<EstimatedTrip>,
    /// What the search made of it, if it found something shorter.
    pub(super) written: Option<WrittenSchedule>,
    pub(crate) reached: Option<EstimatedTrip>,
}

/// A schedule with the strategy that it is from and its estimate.
#[derive(Clone)]
struct WrittenCandidate {
    strategy: &'static Strategy,
    written: WrittenSchedule,
    trip: EstimatedTrip,
}

/// The order of candidates: what a trip takes among other workgroups, then alone.
fn clk(trip: &EstimatedTrip) -> [u32; 2] {
    [trip.clk, trip.alone]
}

/// How shares between clusters may be shifted at first.
const SHIFTS: [i32; 12] = [1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8];

/// The innermost loops of a kernel, with what `auto` gives them; those for which nothing can be estimated are
/// not among them.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn loops(kernel: &mut Scheduling) -> Result<Vec<SearchedLoop>, Diagnostic> {
    let Find::Cheapest { among, .. } = AUTOMATIC.find else { return Ok(Vec::new()) };
    let all = candidates(kernel.view())?;
    let mut loops = Vec::new();
    for place in innermost(&all) {
        let [_, node] = place;
        let Ok(found) = dependences(kernel.view(), node, &ResourceModel::ABSTRACT) else { continue };
        let suitable = suitable(kernel, node, &found, among)?;
        let number = all.iter().position(|&own| own == place);
        let (Some(&(strategy, trip)), Some(number)) = (suitable.first(), number) else { continue };
        let what = describe_operation(kernel.world, kernel.root, node);
        let (began, written, reached) = (Some(trip), None, None);
        loops.push(SearchedLoop { number, what, node, found, suitable, strategy, began, written, reached });
    }
    Ok(loops)
}

impl SearchedLoop {
    /// Gives it a strategy, which need not be the one that estimates alone would give it.
    pub(crate) fn take(&mut self, strategy: &'static Strategy) {
        let own = self.suitable.iter().find(|(own, _)| own.name == strategy.name);
        (self.strategy, self.began) = (strategy, own.map(|(_, trip)| *trip));
    }

    /// Looks for a shorter schedule among so many candidates at most; returns how many it has estimated.
    /// `compiles` says whether the kernel compiles with a schedule in the place of this loop's.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn search(
        &mut self,
        view: SchedulerView,
        most: u32,
        compiles: &mut dyn FnMut(&SearchedLoop, &WrittenSchedule) -> bool,
    ) -> Result<u32, Diagnostic> {
        // Nothing can be compared with a strategy that has no estimate.
        let most = if self.began.is_some() { most } else { 0 };
        let mut climb = Climb { view, most, tried: 0, seen: BTreeSet::new() };
        for start in climb.starts(self)? {
            climb.from(self, start, compiles)?;
        }
        Ok(climb.tried)
    }

    /// Takes a schedule if a trip of it is shorter than those of the one so far.
    fn take_shorter(
        &mut self,
        candidate: &WrittenCandidate,
        compiles: &mut dyn FnMut(&SearchedLoop, &WrittenSchedule) -> bool,
    ) -> bool {
        let best = self.reached.or(self.began);
        let is_shorter = best.is_none_or(|best| clk(&candidate.trip) < clk(&best));
        if !is_shorter || !compiles(self, &candidate.written) {
            return false;
        }
        (self.strategy, self.reached) = (candidate.strategy, Some(candidate.trip));
        self.written = Some(candidate.written.clone());
        true
    }
}

/// A search under way.
struct Climb<'w> {
    view: SchedulerView<'w>,
    most: u32,
    tried: u32,
    /// The schedules that were estimated.
    seen: BTreeSet<String>,
}

impl Climb<'_> {
    /// The estimate of a schedule that is legal, unless it was looked at before or too many were.
    fn candidate(
        &mut self,
        own: &SearchedLoop,
        strategy: &'static Strategy,
        written: WrittenSchedule,
    ) -> Result<Option<WrittenCandidate>, Diagnostic> {
        if self.tried >= self.most || !self.seen.insert(written.schedule.to_string()) {
            return Ok(None);
        }
        self.tried += 1;
        let trip = estimate_written(self.view, own.node, &own.found, (strategy, &written))?;
        Ok(trip.map(|trip| WrittenCandidate { strategy, written, trip }))
    }

    /// What strategies write for the loop, the shortest first. Schedules for which operations get other
    /// layouts cannot be written down.
    fn starts(&mut self, own: &SearchedLoop) -> Result<Vec<WrittenCandidate>, Diagnostic> {
        let Find::Cheapest { among, .. } = AUTOMATIC.find else { return Ok(Vec::new()) };
        let mut starts = Vec::new();
        if Unrolled::of(self.view.world, own.node) > 1 {
            return Ok(starts);
        }
        for &strategy in among {
            let Find::Operations { write, .. } = strategy.find else { continue };
            if let Ok(written) = write(self.view, own.node, &own.found)?
                && written.layouts.is_empty()
            {
                starts.extend(self.candidate(own, strategy, written)?);
            }
        }
        let is_clustered = starts.iter().any(|start| start.strategy.name == CLUSTERS.name);
        for shift in SHIFTS.into_iter().filter(|_| is_clustered) {
            if let Ok(written) = clusters::write_shifted(self.view, own.node, &own.found, shift)? {
                starts.extend(self.candidate(own, &CLUSTERS, written)?);
            }
        }
        starts.sort_by_key(|start| clk(&start.trip));
        Ok(starts)
    }

    /// Goes from a schedule to a shorter one as long as there is one.
    fn from(
        &mut self,
        own: &mut SearchedLoop,
        start: WrittenCandidate,
        compiles: &mut dyn FnMut(&SearchedLoop, &WrittenSchedule) -> bool,
    ) -> Result<(), Diagnostic> {
        own.take_shorter(&start, compiles);
        let mut current = start;
        let (mut changes, mut next, mut without_gain) = (moves(&current.written.schedule), 0, 0);
        while without_gain < changes.len() && self.tried < self.most {
            let change = changes[next % changes.len()];
            (next, without_gain) = (next + 1, without_gain + 1);
            let Some(schedule) = moved(&current.written.schedule, change) else { continue };
            let written = WrittenSchedule { schedule, ..current.written.clone() };
            let Some(candidate) = self.candidate(own, current.strategy, written)? else { continue };
            let is_shorter = clk(&candidate.trip) < clk(&current.trip);
            if is_shorter && (own.take_shorter(&candidate, compiles) || compiles(own, &candidate.written)) {
                current = candidate;
                (changes, without_gain) = (moves(&current.written.schedule), 0);
            }
        }
        Ok(())
    }
}
