//! The schedule that costs least: for each loop, what a trip takes under every strategy is estimated for the
//! chip (`schedule/estimate`), and the loop gets the one with the fewest clocks.
//!
//! Only the parts of strategies that cost little are run for that: cycles of the ones that place nodes by
//! their kinds, and classification and places of operations of those that write an author's schedule, which
//! is then read on paper. Modulo scheduling is a search, so only small loops have its candidate.
//!
//! The estimates are in the loop's record (`apply/choice`) and in the report, and nothing else reads them. If
//! allocation then spills in a loop, `runtime/compile` tries the other candidates in the order of the
//! estimates.

use bevy_ecs::prelude::*;

use super::refusal::Refusal;
use super::strategy::{Find, Model, Strategy, write_one_iteration};
use crate::codegen::target::{CODE_LINE, DeviceModel, DeviceParameter};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Drain, Pipelined};
use crate::ir::nodes::{self, Bug};
use crate::ir::schedule::table::Checks;
use crate::passes::facts::{Expressions, Geometry};
use crate::passes::schedule::apply::choice::{
    CandidateOutcome, EstimatedTrip, ScheduleCandidate, ScheduleChoice, TripBound,
};
use crate::passes::schedule::apply::lifetimes;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::apply::rebuild::Unfit;
use crate::passes::schedule::apply::record::{LoopRecord, Outcome};
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::estimate::needs::{bound, needs};
use crate::passes::schedule::estimate::program::TripProgram;
use crate::passes::schedule::estimate::sketch::{NotSketched, sketch};
use crate::passes::schedule::estimate::steps::TripStep;
use crate::passes::schedule::estimate::trip::PlannedTrip;
use crate::passes::schedule::estimate::unit::{Residents, trip_clk};
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::loops::{Candidates, chip_model};
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::{describe, describe_operation};
use crate::passes::schedule::judge::verify::broken;

/// The most nodes of a loop for which modulo scheduling is tried: that of larger ones can take longer than
/// the rest of their compilation.
const MOST_SEARCHED: usize = 256;

/// Estimates are alike if they differ by this part of the least one: where waves keep one unit busy all the
/// time, clk in time mode differ by a few percent with the places of tensors in memory, of which an estimate
/// knows nothing.
const ALIKE: u64 = 40;

/// A schedule whose trips take this many times as long as those of the best one so far is estimated no more
/// exactly: that is more than estimates change from one trip to the next.
const CLEARLY_LONGER: f64 = 1.25;

/// The estimate of a strategy.
struct LoopEstimate {
    trip: EstimatedTrip,
    /// Iterations that the pipeline begins before its first trip, and ends after the last one.
    ahead: u32,
    /// Clk until the code of a trip is there, for each workgroup.
    code: f64,
}

impl LoopEstimate {
    /// Clk of a loop of `count` trips, among other workgroups and alone. It takes one trip without overlap,
    /// of `first` clk, to fill a pipeline and to empty it; the iterations that it begins beyond one take the
    /// busiest unit.
    fn whole(&self, count: u32, first: [u32; 2]) -> [u64; 2] {
        let ahead = self.ahead.max(1);
        let steady = f64::from(count.saturating_sub(ahead));
        let more = f64::from(ahead.min(count).saturating_sub(1)) * f64::from(self.trip.needs.longest());
        let whole = |trip: u32, first: u32| {
            let filled = f64::from(first) + more + f64::from(self.ahead) * self.code;
            (steady * f64::from(trip) + filled) as u64
        };
        [whole(self.trip.clk, first[0]), whole(self.trip.alone, first[1])]
    }
}

/// A loop whose number of iterations only the launch knows is pipelined if it may have this many times the
/// iterations that the pipeline needs: of shorter ones many run as they were written, beside a pipeline that
/// is in their way.
const LONG_ENOUGH: u32 = 4;

/// Why a strategy is no candidate.
enum NotEstimated {
    /// It does not suit the loop.
    Refused(String),
    /// The kernel is broken.
    Broken(Diagnostic),
}

impl From<Bug> for NotEstimated {
    fn from(bug: Bug) -> NotEstimated {
        NotEstimated::Broken(bug.into())
    }
}

impl From<Diagnostic> for NotEstimated {
    fn from(fault: Diagnostic) -> NotEstimated {
        NotEstimated::Broken(fault)
    }
}

/// Schedules each loop by the one of these strategies that takes the fewest clocks.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn schedule(
    kernel: &mut Scheduling,
    candidates: &Candidates,
    among: &[&'static Strategy],
) -> Result<Vec<LoopRecord>, Diagnostic> {
    candidates.iter().map(|&place| schedule_loop(kernel, place, among)).collect()
}

fn schedule_loop(
    kernel: &mut Scheduling,
    place: [Entity; 2],
    among: &[&'static Strategy],
) -> Result<LoopRecord, Diagnostic> {
    let [_, node] = place;
    let found = match dependences(kernel.view(), node, &ResourceModel::ABSTRACT) {
        Ok(found) => found,
        Err(why) => return Ok(LoopRecord::refused(node, why.to_string())),
    };
    let mut estimates = estimates(kernel, node, &found, among)?;
    for at in preferred(&estimates) {
        let strategy = among[at];
        let record = strategy.schedule_loop(kernel, place)?;
        if let Outcome::Refused { why } = &record.outcome
            && !why.is_empty()
        {
            estimates[at].outcome = CandidateOutcome::Refused(why.clone());
            continue;
        }
        estimates[at].chosen = true;
        return Ok(record
            .by(strategy.name)
            .among(describe_operation(kernel.world, kernel.root, node), estimates));
    }
    Ok(LoopRecord::refused(node, "no schedule can be estimated for it".to_owned()))
}

/// What the loop takes under each strategy, or why that is no candidate.
fn estimates(
    kernel: &mut Scheduling,
    node: Entity,
    found: &LoopGraph,
    among: &[&'static Strategy],
) -> Result<Vec<ScheduleCandidate>, Diagnostic> {
    let mut outcomes: Vec<Option<Result<LoopEstimate, String>>> = Vec::new();
    outcomes.resize_with(among.len(), || None);
    let mut shortest = f64::INFINITY;
    // The first strategy that suits and makes a search needless.
    let mut sparing = None;
    for at in in_order_of_estimates(among) {
        let strategy = among[at];
        outcomes[at] = Some(match sparing.filter(|_| strategy.searches()) {
            Some(name) => Err(format!("the loop suits {name}, so that nothing is searched for it")),
            None => match estimate(kernel, node, found, strategy, shortest * CLEARLY_LONGER) {
                Ok(estimate) => {
                    shortest = shortest.min(f64::from(estimate.trip.clk));
                    sparing = sparing.or(strategy.spares_search.then_some(strategy.name));
                    Ok(estimate)
                }
                Err(NotEstimated::Refused(why)) => Err(why),
                Err(NotEstimated::Broken(fault)) => return Err(fault),
            },
        });
    }
    let count = kernel.view().most_iterations(node)?;
    // Clk of a trip without overlap.
    let serial = among.iter().zip(&outcomes).find_map(|(strategy, outcome)| match (strategy.find, outcome) {
        (Find::AsWritten, Some(Ok(estimate))) => Some([estimate.trip.clk, estimate.trip.alone]),
        _ => None,
    });
    let outcome = |outcome: Result<LoopEstimate, String>| match outcome {
        Ok(estimate) => {
            let own = [estimate.trip.clk, estimate.trip.alone];
            let first = serial.filter(|_| estimate.ahead > 0).unwrap_or(own);
            let whole = count.map(|count| estimate.whole(count, first));
            CandidateOutcome::Estimated(EstimatedTrip { whole, ..estimate.trip })
        }
        Err(why) => CandidateOutcome::Refused(why),
    };
    let named = among.iter().zip(outcomes);
    let estimates = named
        .filter_map(|(strategy, own)| {
            Some(ScheduleCandidate { strategy: strategy.name, outcome: outcome(own?), chosen: false })
        })
        .collect();
    Ok(estimates)
}

/// The numbers of strategies in the order in which they are estimated: those that suit few loops come first,
/// because they are the shorter ones where they do, and the longer ones need no exact estimate then. Those
/// that search come last, because others spare the search.
fn in_order_of_estimates(among: &[&'static Strategy]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..among.len()).collect();
    order.sort_by_key(|&at| (among[at].searches(), !matches!(among[at].find, Find::Operations { .. })));
    order
}

/// The numbers of the candidates that suit, the best one first. Estimates that are alike do not tell two
/// apart where all saturate the same unit: of these comes first what takes a workgroup alone the least, which
/// has the most time left for what the estimate does not know, and of equals the first, which is the simpler
/// one. The loop as it is, the first candidate, comes before those that do not make it clearly
/// shorter as a whole, where a bound of its trips is known.
fn preferred(estimates: &[ScheduleCandidate]) -> Vec<usize> {
    let suits = |(at, candidate): (usize, &ScheduleCandidate)| Some((at, *candidate.estimate()?));
    let mut trips: Vec<(usize, EstimatedTrip)> = estimates.iter().enumerate().filter_map(suits).collect();
    let as_written = trips.first().filter(|(at, _)| *at == 0).and_then(|(_, trip)| trip.whole);
    let pays = |trip: &EstimatedTrip| match (as_written, trip.whole) {
        (Some(written), Some(whole)) => (0..2).any(|at| {
            let saved = written[at].saturating_sub(whole[at]);
            saved.saturating_mul(ALIKE) > written[at]
        }),
        _ => true,
    };
    let paying = trips.iter().filter(|(_, trip)| pays(trip));
    let least = paying.map(|(_, trip)| trip.clk).min().unwrap_or(0);
    let alike = |trip: &EstimatedTrip| u64::from(trip.clk.saturating_sub(least)) * ALIKE <= least.into();
    trips.sort_by_key(|(at, trip)| match (pays(trip), *at) {
        (true, _) if alike(trip) => (0, trip.alone),
        (true, _) => (1, trip.clk),
        (false, 0) => (2, 0),
        (false, _) => (3, trip.clk),
    });
    trips.into_iter().map(|(at, _)| at).collect()
}

/// The strategies of `among` that suit a loop, the one that it gets first.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn suitable(
    kernel: &mut Scheduling,
    node: Entity,
    found: &LoopGraph,
    among: &[&'static Strategy],
) -> Result<Vec<(&'static Strategy, EstimatedTrip)>, Diagnostic> {
    let estimates = estimates(kernel, node, found, among)?;
    let order = preferred(&estimates).into_iter();
    Ok(order.filter_map(|at| Some((among[at], *estimates[at].estimate()?))).collect())
}

/// The estimate of a trip of the loop `node` under a schedule that a strategy wrote for it, or that was made
/// of such a one, if it keeps dependences and the loop is long enough for it.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn estimate_written(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
    (strategy, written): (&Strategy, &WrittenSchedule),
) -> Result<Option<EstimatedTrip>, Diagnostic> {
    let trip = match sketch(view, found, &written.schedule, &written.tagged) {
        Ok(trip) => trip,
        Err(NotSketched::Broken(bug)) => return Err(bug.into()),
        Err(NotSketched::Lds(_) | NotSketched::Operation) => return Ok(None),
    };
    if broken(found, &trip.assignment, Checks::Order).is_some() {
        return Ok(None);
    }
    match timed(view, node, found, (strategy, trip), f64::INFINITY) {
        Ok(estimate) => Ok(Some(estimate.trip)),
        Err(NotEstimated::Refused(_)) => Ok(None),
        Err(NotEstimated::Broken(fault)) => Err(fault),
    }
}

/// The strategies that were not chosen for the loop whose trips take longest, by their names, the best one
/// first.
pub(crate) fn runners_up(choices: &[ScheduleChoice]) -> Vec<&'static str> {
    let clk = |candidate: &ScheduleCandidate| candidate.estimate().map(|trip| trip.clk);
    let longest =
        choices.iter().max_by_key(|choice| choice.candidates.iter().find(|c| c.chosen).and_then(clk));
    let candidates = longest.map_or(&[][..], |choice| &choice.candidates[..]);
    let others = preferred(candidates).into_iter().filter(|&at| !candidates[at].chosen);
    others.map(|at| candidates[at].strategy).collect()
}

/// The estimate of all loops of a kernel under the schedules that were chosen.
pub(crate) struct LoopsEstimate {
    /// Clk of all loops of a workgroup, or of a trip of each if the number of trips of one is not known.
    pub clk: u64,
    /// One of them is bound by latency or by loads.
    pub waits: bool,
}

impl LoopsEstimate {
    /// That of these loops, if there are any and estimates chose the schedules of all.
    pub(crate) fn of(choices: &[ScheduleChoice]) -> Option<LoopsEstimate> {
        let chosen = |choice: &ScheduleChoice| {
            choice.candidates.iter().find(|candidate| candidate.chosen).and_then(|c| c.estimate().copied())
        };
        let trips: Vec<EstimatedTrip> = choices.iter().map(chosen).collect::<Option<_>>()?;
        if trips.is_empty() {
            return None;
        }
        let whole: Option<u64> = trips.iter().map(|trip| Some(trip.whole?[0])).sum();
        let clk = whole.unwrap_or_else(|| trips.iter().map(|trip| u64::from(trip.clk)).sum());
        Some(LoopsEstimate {
            clk,
            waits: trips.iter().any(|trip| matches!(trip.bound, TripBound::Latency | TripBound::Loads)),
        })
    }

    /// True if the difference from another one is more than estimates err.
    pub(crate) fn is_clearly_shorter(&self, other: &LoopsEstimate) -> bool {
        other.clk.saturating_sub(self.clk).saturating_mul(ALIKE) > other.clk
    }
}

/// The estimate of a trip of the loop `node` under a strategy, a rough one if it is more than `enough` clk.
fn estimate(
    kernel: &mut Scheduling,
    node: Entity,
    found: &LoopGraph,
    strategy: &'static Strategy,
    enough: f64,
) -> Result<LoopEstimate, NotEstimated> {
    let refused = |why: String| Err(NotEstimated::Refused(why));
    match strategy.find {
        Find::AsWritten => {
            let trip = PlannedTrip::as_written(kernel.view(), found)?;
            timed(kernel.view(), node, found, (strategy, trip), enough)
        }
        Find::Cycles(_) => {
            let model = match strategy.model {
                Model::Abstract => {
                    return placed(kernel, node, found, (strategy, &ResourceModel::ABSTRACT), enough);
                }
                Model::Chip => chip_model(kernel.view(), node)?,
            };
            let nodes = found.body().len();
            if nodes > MOST_SEARCHED {
                return refused(format!("{nodes} operations are too many to search for it"));
            }
            match dependences(kernel.view(), node, &model) {
                Ok(found) => placed(kernel, node, &found, (strategy, &model), enough),
                Err(why) => refused(why.to_string()),
            }
        }
        Find::Operations { write, .. } => {
            let view = kernel.view();
            let planned = match write_one_iteration(write, view, node, found)? {
                Ok(planned) => planned,
                Err(why) => return refused(why),
            };
            match sketch(view, found, &planned.schedule, &planned.tagged) {
                Ok(trip) => timed(view, node, found, (strategy, trip), enough),
                Err(NotSketched::Broken(bug)) => Err(bug.into()),
                Err(why) => refused(why.to_string()),
            }
        }
        Find::Kernel(_) | Find::Cheapest { .. } => refused("it schedules no single loop".to_owned()),
    }
}

/// The same of a strategy that finds cycles.
fn placed(
    kernel: &mut Scheduling,
    node: Entity,
    found: &LoopGraph,
    (strategy, model): (&'static Strategy, &ResourceModel),
    enough: f64,
) -> Result<LoopEstimate, NotEstimated> {
    let Find::Cycles(find) = strategy.find else {
        return Err(NotEstimated::Refused("it finds no cycles".to_owned()));
    };
    let assignment = find(&found.graph, model).map_err(|why: Refusal| {
        let name = |n: NodeId| describe(kernel.world, kernel.root, found.graph.nodes()[n].entity);
        NotEstimated::Refused(why.in_words(name))
    })?;
    let view = kernel.view();
    let mut trip = match PlannedTrip::of_cycles(view, found, assignment, strategy.checks)? {
        Ok(trip) => trip,
        Err(why) => return Err(NotEstimated::Refused(why.to_string())),
    };
    trip.moved = moved_registers(view, node, found, (&trip, strategy.checks))?;
    let available = pressure::available(view)? + pressure::BESIDE_VALUES;
    if trip.registers > available {
        let needed = trip.registers;
        let why = format!("a wave would need about {needed} vector registers, and has {available}");
        return Err(NotEstimated::Refused(why));
    }
    timed(view, node, found, (strategy, trip), enough)
}

/// Vector registers that a trip moves, as [`rebuild`](crate::passes::schedule::apply::rebuild) makes it: none
/// where trips are merged.
fn moved_registers(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
    (trip, checks): (&PlannedTrip, Checks),
) -> Result<u32, Bug> {
    let order: Vec<NodeId> = trip.steps.iter().filter_map(TripStep::node).collect();
    let most = view.most_iterations(node)?;
    Ok(match lifetimes::merged_trips(found, &trip.assignment, &order, checks, most) {
        1 => lifetimes::moved_registers(found, &trip.assignment, &order),
        _ => 0,
    })
}

/// Why the loop has too few iterations for a pipeline of so many stages, if it has.
fn too_short(view: SchedulerView, node: Entity, stages: u32) -> Result<Option<String>, Bug> {
    let Some(count) = view.most_iterations(node)?.filter(|_| stages > 1) else { return Ok(None) };
    let needed = Pipelined { ahead: stages - 1, drain: Drain::Epilogue }.needed();
    if count < needed {
        return Ok(Some(Unfit::Short { stages, needed, count: count.into() }.to_string()));
    }
    let enough = needed.saturating_mul(LONG_ENOUGH);
    let is_known = view.known_iterations(node)?.is_some();
    Ok((count < enough && !is_known).then(|| {
        format!(
            "{stages} stages pay from about {enough} iterations on where only the launch knows their number, and \
             there are {count} at most"
        )
    }))
}

/// The estimate of a trip while a compute unit holds as many workgroups as it can, a rough one if it is more
/// than `enough` clk.
fn timed(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
    (strategy, mut trip): (&Strategy, PlannedTrip),
    enough: f64,
) -> Result<LoopEstimate, NotEstimated> {
    let refused = |why: String| Err(NotEstimated::Refused(why));
    let stages = trip.assignment.stages();
    if let Some(why) = too_short(view, node, stages)? {
        return refused(why);
    }
    let (waves, target) = (view.waves()?.max(1), view.settings()?.target());
    trip.order = strategy.code_order(waves, &target);
    let device = DeviceModel::nearest(target);
    let available = pressure::available(view)? + pressure::BESIDE_VALUES;
    let registers = trip.registers.min(available);
    let fits = target.occupancy(registers, 1, trip.lds_bytes, waves).workgroups_per_compute_unit;
    let launched = workgroups_of_a_launch(view)?;
    let units = device.count(DeviceParameter::ComputeUnits) as u32;
    let all = launched.map(|launched| launched.div_ceil(units));
    let workgroups = fits.min(all.unwrap_or(u32::MAX)).max(1);
    let program = TripProgram::of(view, node, found, &trip)?;
    let busy_units = launched.map_or(units, |launched| launched.min(units));
    let needs = needs(&program, waves, busy_units, device);
    let residents = Residents { workgroups, waves, halves: trip.halves, busy_units };
    let one = Residents { workgroups: 1, ..residents };
    let clk = trip_clk(&program, residents, device, enough);
    let alone = if workgroups == 1 { clk } else { trip_clk(&program, one, device, enough) };
    let (Some(clk), Some(alone)) = (clk, alone) else {
        return refused("its waves would wait for each other".to_owned());
    };
    let (bound, registers) = (bound(&needs, clk), trip.registers);
    let [clk, alone] = [clk, alone].map(|clk| clk as u32);
    // The first workgroups of a compute unit wait for their code, those after them find it there.
    let rounds = all.map_or(f64::INFINITY, |all| f64::from(all.div_ceil(workgroups)));
    let lines = program.code_bytes().div_ceil(CODE_LINE) as f64;
    let code = lines * device.get(DeviceParameter::ColdLine) / rounds;
    let trip = EstimatedTrip { clk, alone, whole: None, bound, needs, workgroups, registers };
    Ok(LoopEstimate { trip, ahead: stages - 1, code })
}

/// The most workgroups of a launch, if it is known.
fn workgroups_of_a_launch(view: SchedulerView) -> Result<Option<u32>, Bug> {
    let geometry = nodes::fact::<Geometry>(view.world, view.root, "a kernel without geometry")?;
    let arena = &nodes::fact::<Expressions>(view.world, view.root, "no expressions")?.0;
    let along = geometry.grid.iter().map(|&count| arena.as_integer(count));
    let Some(along) = along.collect::<Option<Vec<i64>>>() else { return Ok(None) };
    let all = along.into_iter().fold(1i64, i64::saturating_mul);
    let all = geometry.persistent.map_or(all, |most| all.min(most.into()));
    Ok(Some(u32::try_from(all.max(1)).unwrap_or(u32::MAX)))
}
