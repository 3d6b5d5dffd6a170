//! The settings of a search, and its result.

use std::time::Duration;

use super::database::{WinnerKey, WinnerRecord};
use super::judge::CandidateTime;
use super::point::Point;
use super::search::{Budget, Search, Searching};
use super::space::{ConstraintCount, EnumeratedSpace, SearchLevel};
use super::template::Template;
use crate::codegen::target::{DeviceModel, TargetId};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::runtime::sim::time::{ClockChoice, Fidelity, TimeOptions};

/// Finds the best point of a template's space by time mode.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// use groundswell::templates::Matmul;
/// use groundswell::tuning::{Budget, Tuner};
///
/// let budget = Budget { candidates: Some(12), ..Budget::default() };
/// let tuned = Tuner::new(Target::GFX942)?.budget(budget).tune(&Matmul::new([64, 512, 1024]))?;
/// assert!(tuned.candidates().len() <= 12);
/// assert!(tuned.best().time.microseconds <= tuned.candidates()[1].time.microseconds);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tuner {
    target: TargetId,
    options: TimeOptions,
    level: SearchLevel,
    search: Search,
    budget: Budget,
    /// Of how many parts of the space this one is searched.
    shard: Option<(u32, u32)>,
}

/// Rounds of workgroups that are simulated of each candidate: one that finds caches empty, and one more.
const ROUNDS: u64 = 2;

/// Per cent below which two candidates are as fast as each other.
const LEAST_GAIN: f64 = 0.05;

/// A candidate that was judged.
#[derive(Clone, PartialEq, Debug)]
pub struct JudgedCandidate {
    /// Its choices.
    pub point: Point,
    /// The time that it takes.
    pub time: CandidateTime,
}

/// A candidate that did not compile.
#[derive(Clone, Debug)]
pub struct RefusedCandidate {
    /// Its choices.
    pub point: Point,
    /// Why.
    pub reason: Diagnostic,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Tuned {
    key: WinnerKey,
    candidates: Vec<JudgedCandidate>,
    refused: Vec<RefusedCandidate>,
    constraints: Vec<ConstraintCount>,
    points: usize,
    elapsed: Duration,
}

impl Tuner {
    /// A guided search of [`SearchLevel::One`] for a target, judged by the device that has its numbers.
    ///
    /// # Errors
    /// No device that is timed runs code for the target.
    pub fn new(target: impl Into<TargetId>) -> Result<Tuner, Diagnostic> {
        let target = target.into();
        let device = DeviceModel::of(target.target()).ok_or_else(|| {
            let text = format!("no chip with {} is timed", target.target());
            let timed: Vec<&str> = DeviceModel::ALL.iter().map(|device| device.target.name).collect();
            Diagnostic::new(Kind::Unsupported, text).help(format!("tune for {}", timed.join(", ")))
        })?;
        Ok(Tuner {
            target,
            options: TimeOptions::new(device).fidelity(Fidelity::Sampled).rounds(ROUNDS),
            level: SearchLevel::default(),
            search: Search::default(),
            budget: Budget::default(),
            shard: None,
        })
    }

    /// The same at another level.
    #[must_use]
    pub fn level(mut self, level: SearchLevel) -> Tuner {
        self.level = level;
        self
    }

    /// The same with another way to search.
    #[must_use]
    pub fn search(mut self, search: Search) -> Tuner {
        self.search = search;
        self
    }

    /// The same with another budget.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Tuner {
        self.budget = budget;
        self
    }

    /// The same at another clock than the one that the chip sustains with busy matrix cores.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<ClockChoice>) -> Tuner {
        self.options = self.options.clock(clock);
        self
    }

    /// The same in part number `part` (from 0 on) of `parts` of the space: every `parts`-th point. The
    /// winners of all parts are merged by a [`Database`](super::Database).
    #[must_use]
    pub fn shard(mut self, part: u32, parts: u32) -> Tuner {
        self.shard = Some((part, parts));
        self
    }

    /// The key under which the results for a template are kept.
    pub fn key(&self, template: &dyn Template) -> WinnerKey {
        let megahertz = self.options.clock.megahertz(self.options.device);
        WinnerKey::new(template.name(), &template.task(), self.options.device.name, megahertz)
    }

    /// Searches.
    ///
    /// # Errors
    /// An empty space, with what has emptied it; no candidate that compiles, with what the first one lacks.
    pub fn tune(&self, template: &dyn Template) -> Result<Tuned, Diagnostic> {
        self.tune_with_progress(template, &|_, _| true)
    }

    /// The same, telling after every few candidates how many of how many at most have been judged; if the
    /// answer is false the search ends with the best one so far.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub fn tune_with_progress(
        &self,
        template: &dyn Template,
        progress: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<Tuned, Diagnostic> {
        let space = template.space(self.target.target(), self.level)?;
        let EnumeratedSpace { points, constraints } = space.enumerate()?;
        let points = self.own_part(points)?;
        let of = (self.target, self.options.clone());
        let searching = Searching::new(template, of, &points, self.budget, progress);
        let started = searching.started;
        let (mut candidates, mut refused) = (Vec::new(), Vec::new());
        for (at, outcome) in searching.run(self.search) {
            let point = points[at].clone();
            match outcome {
                Ok(time) => candidates.push(JudgedCandidate { point, time }),
                Err(reason) => refused.push(RefusedCandidate { point, reason }),
            }
        }
        // Stable: of equals the first of the space is the best.
        candidates.sort_by(|a, b| a.time.microseconds.total_cmp(&b.time.microseconds));
        if candidates.is_empty() {
            return Err(match refused.into_iter().next() {
                Some(RefusedCandidate { point, reason }) => reason
                    .note(format!("with {point}: no other candidate of {} compiles", template.name()), None),
                None => {
                    Diagnostic::invalid("the budget has no room for a candidate").help("allow at least one")
                }
            });
        }
        Ok(Tuned {
            key: self.key(template),
            candidates,
            refused,
            constraints,
            points: points.len(),
            elapsed: started.elapsed(),
        })
    }

    fn own_part(&self, points: Vec<Point>) -> Result<Vec<Point>, Diagnostic> {
        let Some((part, parts)) = self.shard else { return Ok(points) };
        if part >= parts {
            let text = format!("there is no part {part} of {parts}");
            return Err(Diagnostic::invalid(text).help("count parts from 0 on"));
        }
        let total = points.len();
        let own = points.into_iter().skip(part as usize).step_by(parts as usize);
        let own: Vec<Point> = own.collect();
        if own.is_empty() {
            let text = format!("part {part} of {parts} has none of the {total} points");
            return Err(Diagnostic::invalid(text).help("divide the space into fewer parts"));
        }
        Ok(own)
    }
}

impl Tuned {
    /// The best candidate.
    pub fn best(&self) -> &JudgedCandidate {
        &self.candidates[0]
    }

    /// All that were judged, the best one first.
    pub fn candidates(&self) -> &[JudgedCandidate] {
        &self.candidates
    }

    /// Those that did not compile, in the order of the space.
    pub fn refused(&self) -> &[RefusedCandidate] {
        &self.refused
    }

    /// The effect of each constraint on the space.
    pub fn constraints(&self) -> &[ConstraintCount] {
        &self.constraints
    }

    /// Points of the space, or of the part of it that was searched.
    pub fn points(&self) -> usize {
        self.points
    }

    /// How long the search took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The winner, as a database keeps it.
    pub fn record(&self) -> WinnerRecord {
        let best = self.best();
        WinnerRecord {
            key: self.key.clone(),
            microseconds: best.time.microseconds,
            point: best.point.clone(),
        }
    }

    /// Why the best one is better than the next, in a sentence: by how much, and in what their times differ
    /// most.
    pub fn why(&self) -> String {
        let best = self.best();
        let Some(next) = self.candidates.get(1) else {
            return "it is the only candidate".to_owned();
        };
        let gain = 100.0 * (next.time.microseconds / best.time.microseconds - 1.0);
        if gain < LEAST_GAIN {
            return format!("as fast as {}", next.point);
        }
        let reason = best.time.advantage(&next.time).map(|reason| format!(": {reason}"));
        format!("{gain:.1} % faster than {}{}", next.point, reason.unwrap_or_default())
    }
}
