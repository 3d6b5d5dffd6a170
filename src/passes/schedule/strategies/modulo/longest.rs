//! Longest paths between all nodes of a small set, as functions of the interval.
//!
//! A path of a loop body forces its last node to start `latency - T * distance` cycles after its first, where
//! `T` is the interval. As functions of `T`, the paths between two nodes are lines, and together they are the
//! upper envelope of these lines. No cycle is positive from the recurrence bound on, so paths need not visit
//! a node twice and each envelope has few lines.

use smallvec::SmallVec;

use crate::passes::schedule::graph::dependence_graph::{DependenceGraph, NodeId};

/// One path, or many with the same sums.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LongestPath {
    /// Sum of the distances.
    pub distance: u64,
    /// Sum of the latencies.
    pub latency: u64,
}

impl LongestPath {
    /// Cycles between the ends of the path.
    pub(crate) fn at(self, interval: u32) -> i64 {
        self.latency as i64 - self.distance as i64 * i64::from(interval)
    }
}

/// An upper envelope: distances rise, and so do the values at the least interval; each line is the highest
/// for some interval from there on.
type Envelope = SmallVec<[LongestPath; 2]>;

/// Longest paths between all pairs of some nodes, through these nodes.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    count: usize,
    /// The least interval for which the envelopes hold.
    least: u32,
    entries: Vec<Envelope>,
}

impl Longest {
    /// The most nodes for which this pays; the work grows with their cube.
    pub(crate) const MOST: usize = 32;

    /// Longest paths between `nodes`, for intervals from `least` on, which is no less than the recurrence
    /// bound.
    pub(crate) fn of(graph: &DependenceGraph, nodes: &[NodeId], least: u32) -> Longest {
        let count = nodes.len();
        let mut places: Vec<(NodeId, usize)> = nodes.iter().zip(0..).map(|(&node, at)| (node, at)).collect();
        places.sort_unstable();
        let mut longest = Longest { count, least, entries: vec![Envelope::new(); count * count] };
        for (from, &node) in nodes.iter().enumerate() {
            for edge in graph.leaving(node) {
                if let Ok(at) = places.binary_search_by_key(&edge.to, |place| place.0) {
                    let line =
                        LongestPath { distance: u64::from(edge.distance), latency: u64::from(edge.latency) };
                    longest.insert(from, places[at].1, line);
                }
            }
        }
        for through in 0..count {
            for from in 0..count {
                if from == through || longest.lines(from, through).is_empty() {
                    continue;
                }
                for to in (0..count).filter(|&to| to != through) {
                    let (first, second) = (from * count + through, through * count + to);
                    for a in 0..longest.entries[first].len() {
                        for b in 0..longest.entries[second].len() {
                            let (a, b) = (longest.entries[first][a], longest.entries[second][b]);
                            let distance = a.distance + b.distance;
                            longest.insert(
                                from,
                                to,
                                LongestPath { distance, latency: a.latency + b.latency },
                            );
                        }
                    }
                }
            }
        }
        longest
    }

    /// The lines between two nodes, by their places in the list.
    pub(crate) fn lines(&self, from: usize, to: usize) -> &[LongestPath] {
        &self.entries[from * self.count + to]
    }

    /// Least cycles from one node to another; none if no path leads there.
    pub(crate) fn at(&self, from: usize, to: usize, interval: u32) -> Option<i64> {
        self.lines(from, to).iter().map(|line| line.at(interval)).max()
    }

    fn insert(&mut self, from: usize, to: usize, line: LongestPath) {
        let least = self.least;
        let lines = &mut self.entries[from * self.count + to];
        let height = line.at(least);
        if lines.iter().any(|other| other.distance <= line.distance && other.at(least) >= height) {
            return;
        }
        lines.retain(|other| other.distance < line.distance || other.at(least) > height);
        let mut at = lines.partition_point(|other| other.distance < line.distance);
        lines.insert(at, line);
        if at > 0 && at + 1 < lines.len() && is_covered(lines[at - 1], line, lines[at + 1]) {
            lines.remove(at);
            return;
        }
        while at + 2 < lines.len() && is_covered(lines[at], lines[at + 1], lines[at + 2]) {
            lines.remove(at + 1);
        }
        while at >= 2 && is_covered(lines[at - 2], lines[at - 1], lines[at]) {
            lines.remove(at - 1);
            at -= 1;
        }
    }
}

/// True if the middle one of three lines, sorted by distance, is nowhere above both others: the last one
/// overtakes it no later than it overtakes the first.
fn is_covered(first: LongestPath, middle: LongestPath, last: LongestPath) -> bool {
    let rise = |from: LongestPath, to: LongestPath| u128::from(to.latency - from.latency);
    let run = |from: LongestPath, to: LongestPath| u128::from(to.distance - from.distance);
    rise(middle, last) * run(first, middle) >= rise(first, middle) * run(middle, last)
}
