//! Which candidates are tried, in which order. All searches are deterministic: what is tried next follows
//! from the space and from the results so far, never from the host's clock, unless a budget of seconds ends
//! the search.

use std::time::{Duration, Instant};

use super::judge::{CandidateTime, judge};
use super::point::Point;
use super::template::Template;
use crate::codegen::target::TargetId;
use crate::ir::diagnostic::Diagnostic;
use crate::runtime::sim::time::TimeOptions;
use crate::workers;

/// How candidates are chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Search {
    /// All of them, in the order of the space.
    Exhaustive,
    /// All of them with one round of workgroups, and those that are best by that with more.
    Halving,
    /// In the order of what the template expects, then the neighbours of the best: points that differ from
    /// one of them in one choice.
    #[default]
    Guided,
}

impl Search {
    /// Every search, with the word that the program has for it.
    pub const ALL: [(&str, Search); 3] =
        [("exhaustive", Search::Exhaustive), ("halving", Search::Halving), ("guided", Search::Guided)];
}

/// When a search ends.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Budget {
    /// After so many candidates.
    pub candidates: Option<usize>,
    /// After so long; the candidates that are being judged then are finished.
    pub time: Option<Duration>,
    /// Once the template expects nothing that is left to take less than the best so far by more than this
    /// part of it. Templates that expect nothing never end so.
    pub regret: Option<f64>,
}

/// A candidate that was tried: its number in the space, and what became of it.
pub(super) type Tried = (usize, Result<CandidateTime, Diagnostic>);

/// Candidates that are judged between two looks at the budget.
const BATCH: usize = 8;
/// Of the candidates of a guided search that a budget allows, so many come from the expectation alone.
const EXPECTED: usize = 24;
/// The best ones whose neighbours are tried.
const BEST: usize = 3;
/// Of the candidates of a halving search, the part that is judged in full, and its least number.
const KEPT: usize = 4;
const LEAST_KEPT: usize = 8;

/// A search at work.
pub(super) struct Searching<'a> {
    pub template: &'a dyn Template,
    pub target: TargetId,
    pub options: TimeOptions,
    pub points: &'a [Point],
    pub budget: Budget,
    pub started: Instant,
    /// Is told after each batch how many candidates have been judged, of how many at most.
    pub progress: &'a (dyn Fn(usize, usize) -> bool + Sync),
    tried: Vec<Tried>,
    /// Of each point, whether it has been tried.
    is_tried: Vec<bool>,
    stopped: bool,
}

impl<'a> Searching<'a> {
    pub(super) fn new(
        template: &'a dyn Template,
        (target, options): (TargetId, TimeOptions),
        points: &'a [Point],
        budget: Budget,
        progress: &'a (dyn Fn(usize, usize) -> bool + Sync),
    ) -> Searching<'a> {
        let is_tried = vec![false; points.len()];
        let (started, tried, stopped) = (Instant::now(), Vec::new(), false);
        Searching { template, target, options, points, budget, started, progress, tried, is_tried, stopped }
    }

    /// The candidates that a search has tried, in the order of the space.
    pub(super) fn run(mut self, search: Search) -> Vec<Tried> {
        match search {
            Search::Exhaustive => self.try_all(0..self.points.len()),
            Search::Halving => self.halving(),
            Search::Guided => self.guided(),
        }
        self.tried.sort_by_key(|tried| tried.0);
        self.tried
    }

    /// The most candidates that may be tried.
    fn most(&self) -> usize {
        self.budget.candidates.unwrap_or(usize::MAX).min(self.points.len())
    }

    fn is_over(&self) -> bool {
        // However short the time is, there is something to say of a few.
        let is_late = |time| !self.tried.is_empty() && self.started.elapsed() >= time;
        self.stopped || self.tried.len() >= self.most() || self.budget.time.is_some_and(is_late)
    }

    /// Tries points that have not been tried, in that order, until the budget is used up.
    fn try_all(&mut self, numbers: impl IntoIterator<Item = usize>) {
        let new: Vec<usize> = numbers.into_iter().filter(|&at| !self.is_tried[at]).collect();
        for batch in new.chunks(BATCH) {
            if self.is_over() {
                return;
            }
            let batch = &batch[..batch.len().min(self.most() - self.tried.len())];
            batch.iter().for_each(|&at| self.is_tried[at] = true);
            self.tried.extend(self.judged(batch, self.options.rounds));
            self.stopped |= !(self.progress)(self.tried.len(), self.most());
        }
    }

    /// Judges points on all cores.
    fn judged(&self, numbers: &[usize], rounds: u64) -> Vec<Tried> {
        let mut results: Vec<Option<Tried>> = vec![None; numbers.len()];
        let options = self.options.clone().rounds(rounds);
        workers::for_each(numbers.iter().zip(&mut results), u64::MAX, |(&at, result)| {
            let kernels = self.template.instantiate(self.target, &self.points[at]);
            *result = Some((at, kernels.and_then(|kernels| judge(&kernels, &options))));
        });
        results.into_iter().flatten().collect()
    }

    fn halving(&mut self) {
        let full = self.options.rounds;
        self.options.rounds = 1;
        self.try_all(0..self.points.len());
        let kept = (self.tried.len() / KEPT).max(LEAST_KEPT);
        let best = self.best(kept);
        self.options.rounds = full;
        let again = self.judged(&best, full);
        // What was judged with one round alone is not compared with what was judged in full.
        self.tried.retain(|tried| tried.1.is_err());
        self.tried.extend(again);
    }

    fn guided(&mut self) {
        let device = self.options.device;
        let expected: Vec<Option<f64>> =
            self.points.iter().map(|point| self.template.expected(device, point)).collect();
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        order.sort_by(|&a, &b| {
            // What the template takes of itself comes first, without an expectation.
            let of = |at: usize| expected[at].unwrap_or(f64::NEG_INFINITY);
            of(a).total_cmp(&of(b))
        });
        let first = EXPECTED.min(self.most().div_ceil(2));
        self.try_all(order.iter().copied().take(first));
        while !self.is_over() && !self.expects_nothing(&expected) {
            let before = self.tried.len();
            for at in self.best(BEST) {
                let near = |&other: &usize| self.points[at].distance(&self.points[other]) == 1;
                let neighbours: Vec<usize> = order.iter().copied().filter(near).collect();
                self.try_all(neighbours);
            }
            if self.tried.len() == before {
                // No neighbour is left: what is left comes in the order of the expectation.
                let next: Vec<usize> =
                    order.iter().copied().filter(|&at| !self.is_tried[at]).take(BATCH).collect();
                if next.is_empty() || self.budget == Budget::default() {
                    return;
                }
                self.try_all(next);
            }
        }
    }

    /// True if no point that is left is expected to be better than the best one by more than the regret.
    fn expects_nothing(&self, expected: &[Option<f64>]) -> bool {
        let Some(regret) = self.budget.regret else { return false };
        let Some(best) = self.best(1).first().and_then(|&at| self.microseconds(at)) else { return false };
        let left = (0..self.points.len()).filter(|&at| !self.is_tried[at]);
        left.map(|at| expected[at]).all(|expected| expected.is_some_and(|e| e * (1.0 + regret) >= best))
    }

    fn microseconds(&self, at: usize) -> Option<f64> {
        let tried = self.tried.iter().find(|tried| tried.0 == at)?;
        tried.1.as_ref().ok().map(|time| time.microseconds)
    }

    /// The numbers of the best candidates so far, the best one first; of equals the first of the space.
    fn best(&self, count: usize) -> Vec<usize> {
        let time = |tried: &Tried| Some((tried.1.as_ref().ok()?.microseconds, tried.0));
        let mut times: Vec<(f64, usize)> = self.tried.iter().filter_map(time).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        times.into_iter().take(count).map(|(_, at)| at).collect()
    }
}
