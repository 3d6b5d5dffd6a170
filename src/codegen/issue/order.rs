//! List scheduling of a region: of the instructions near by that may come next the one that issues first, and
//! of several the one with the longest way to the end of the region.

use cranelift_entity::EntityRef;

use super::cost::{ISSUE_UNITS, IssueCost, IssueUnit};
use super::registers::LiveRegisters;
use super::wave::IssuingWave;

/// How far ahead of the first instruction that is still to come others are looked at: far enough for what
/// stands between two products of attention, and near enough that the work is linear.
const WINDOW: u32 = 96;

/// A dependence: an instruction comes after another one.
#[derive(Copy, Clone, Debug)]
struct RegionEdge {
    from: u32,
    to: u32,
    /// Clk from the issue of the first to that of the second.
    latency: u32,
}

/// The instructions of a region, by their places in the code, and what has to come before what.
#[derive(Default, Debug)]
pub(crate) struct RegionGraph {
    costs: Vec<IssueCost>,
    /// When the operands are there that come from outside.
    ready: Vec<u64>,
    edges: Vec<RegionEdge>,
    /// The edges by the instruction that they leave, and where those of each begin.
    leaving: Vec<RegionEdge>,
    starts: Vec<u32>,
}

impl RegionGraph {
    /// Begins with a region.
    pub(crate) fn clear(&mut self) {
        self.costs.clear();
        self.ready.clear();
        self.edges.clear();
    }

    /// Adds an instruction, and returns its number.
    pub(crate) fn push(&mut self, cost: IssueCost) -> u32 {
        self.costs.push(cost);
        self.ready.push(0);
        self.costs.len() as u32 - 1
    }

    /// An operand from outside is there at `clk`.
    pub(crate) fn waits_until(&mut self, number: u32, clk: u64) {
        let ready = &mut self.ready[number as usize];
        *ready = clk.max(*ready);
    }

    /// Number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.costs.len()
    }

    /// The cost of an instruction.
    pub(crate) fn cost(&self, number: u32) -> &IssueCost {
        &self.costs[number as usize]
    }

    /// The last instruction uses the result of an earlier one; a product may accumulate on it.
    pub(crate) fn uses(&mut self, from: u32, accumulates: bool) {
        let cost = self.cost(from);
        let accumulates = accumulates && cost.unit == IssueUnit::Matrix;
        self.add(from, cost.results[usize::from(accumulates)]);
    }

    /// The last instruction comes after an earlier one.
    pub(crate) fn follows(&mut self, from: u32) {
        self.add(from, 0);
    }

    fn add(&mut self, from: u32, latency: u32) {
        let to = self.costs.len() as u32 - 1;
        if from != to {
            self.edges.push(RegionEdge { from, to, latency });
        }
    }

    /// Sorts the edges by the instruction that they leave.
    fn sort(&mut self) {
        self.starts.clear();
        self.starts.resize(self.costs.len() + 1, 0);
        for edge in &self.edges {
            self.starts[edge.from as usize + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        self.leaving.clear();
        self.leaving.resize(self.edges.len(), RegionEdge { from: 0, to: 0, latency: 0 });
        // Each start is where the next edge goes, and in the end where those of the next instruction begin.
        for &edge in &self.edges {
            let place = &mut self.starts[edge.from as usize];
            self.leaving[*place as usize] = edge;
            *place += 1;
        }
        self.starts.rotate_right(1);
        if let Some(first) = self.starts.first_mut() {
            *first = 0;
        }
    }

    fn leaving(&self, number: u32) -> &[RegionEdge] {
        let at = number as usize;
        &self.leaving[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Which instruction goes first of those that can issue at the same time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum IssueTies {
    /// The one whose result has the longest way to the end of the region.
    LongestWay,
    /// The one whose unit has the most to do, or whose result has a longer way than that. It keeps matrix
    /// cores busy that are the bound of a region; in regions bound by vector work, products of block floats
    /// that are emulated, time mode has it up to 5 % slower.
    BusiestUnit,
}

/// The order of a region, and the memory for finding it.
#[derive(Default, Debug)]
pub(crate) struct IssueOrder {
    /// The instructions in their order.
    pub order: Vec<u32>,
    /// When the unit of each instruction begins with it.
    pub begun: Vec<u64>,
    heights: Vec<u64>,
    ready: Vec<u64>,
    waits: Vec<u32>,
    open: Vec<u32>,
    done: Vec<bool>,
    /// Clk that each unit needs for what is still to come.
    left: [u64; ISSUE_UNITS],
}

impl IssueOrder {
    /// Finds an order for a region, and lets a wave issue it.
    pub(crate) fn find<K: EntityRef>(
        &mut self,
        graph: &mut RegionGraph,
        wave: &mut IssuingWave,
        registers: &mut LiveRegisters<K>,
        ties: IssueTies,
    ) {
        graph.sort();
        self.begin(graph);
        self.find_heights(graph);
        self.open.clear();
        self.open.extend((0..graph.len() as u32).filter(|&number| self.waits[number as usize] == 0));
        let mut first = 0;
        while self.order.len() < graph.len() {
            while self.done[first] {
                first += 1;
            }
            let end = first as u32 + WINDOW;
            let mut best = None;
            for (place, &number) in self.open.iter().enumerate().filter(|(_, number)| **number < end) {
                let at = number as usize;
                let cost = &graph.costs[at];
                let way = match ties {
                    IssueTies::LongestWay => self.heights[at],
                    IssueTies::BusiestUnit => self.heights[at].max(self.left[cost.unit as usize]),
                };
                let key =
                    (wave.start(cost, self.ready[at]), u64::MAX - way, u64::MAX - self.heights[at], number);
                if best.is_none_or(|(known, _)| key < known) && registers.allows(number) {
                    best = Some((key, place));
                }
            }
            // As written the first one would come next, and it waits for nothing that is still to come.
            let place = match best {
                Some((_, place)) => place,
                None => self.open.iter().position(|&number| number == first as u32).unwrap_or(0),
            };
            let number = self.open.swap_remove(place);
            self.issue(graph, number, wave);
            registers.pass(number);
        }
    }

    /// Lets a wave issue a region as it stands.
    pub(crate) fn keep(&mut self, graph: &mut RegionGraph, wave: &mut IssuingWave) {
        graph.sort();
        self.begin(graph);
        self.open.clear();
        (0..graph.len() as u32).for_each(|number| self.issue(graph, number, wave));
    }

    fn begin(&mut self, graph: &RegionGraph) {
        self.order.clear();
        self.begun.clear();
        self.begun.resize(graph.len(), 0);
        self.ready.clone_from(&graph.ready);
        self.waits.clear();
        self.waits.resize(graph.len(), 0);
        for edge in &graph.edges {
            self.waits[edge.to as usize] += 1;
        }
        self.done.clear();
        self.done.resize(graph.len(), false);
        self.left = [0; ISSUE_UNITS];
        graph.costs.iter().for_each(|cost| self.left[cost.unit as usize] += u64::from(cost.busy));
    }

    /// Clk from the issue of each instruction to the end of the region at least.
    fn find_heights(&mut self, graph: &RegionGraph) {
        self.heights.clear();
        self.heights.resize(graph.len(), 0);
        for number in (0..graph.len() as u32).rev() {
            let own = u64::from(graph.cost(number).held);
            let ways = graph.leaving(number).iter();
            let ways = ways.map(|edge| self.heights[edge.to as usize] + u64::from(edge.latency).max(own));
            self.heights[number as usize] = ways.max().unwrap_or(0).max(own);
        }
    }

    fn issue(&mut self, graph: &RegionGraph, number: u32, wave: &mut IssuingWave) {
        let at = number as usize;
        let start = wave.start(&graph.costs[at], self.ready[at]);
        let cost = &graph.costs[at];
        let begun = wave.issue(cost, start);
        self.left[cost.unit as usize] -= u64::from(cost.busy);
        self.order.push(number);
        (self.begun[at], self.done[at]) = (begun, true);
        for edge in graph.leaving(number) {
            let to = edge.to as usize;
            if edge.latency > 0 {
                self.ready[to] = self.ready[to].max(begun + u64::from(edge.latency));
            }
            self.waits[to] -= 1;
            if self.waits[to] == 0 {
                self.open.push(edge.to);
            }
        }
    }
}
