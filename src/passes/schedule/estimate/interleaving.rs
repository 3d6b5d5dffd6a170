//! The order in which a trip's instructions will stand: machine code of loops is interleaved after lowering
//! (`codegen/machine/interleave`), and what nodes become is interleaved here by the same model.

use std::ops::Range;

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::program::{TripOperand, TripPlace};
use crate::codegen::issue::{
    IssueCost, IssueOrder, IssueRates, IssueTies, IssuingWave, LiveRegisters, MemoryOrder, RegionGraph,
    ValueAccess, has_work_beside, pays,
};
use crate::codegen::target::{CostKind, DeviceModel, LdsKind, VectorKind};

/// An instruction of a trip.
#[derive(Copy, Clone)]
pub(super) struct OrderedInstruction<'a> {
    /// Its cost.
    pub kind: CostKind,
    /// Turns that issuing takes.
    pub turns: u32,
    /// Vector registers of a result that takes no other's.
    pub registers: u8,
    /// It keeps its place among its neighbours.
    pub is_fixed: bool,
    /// The results that it reads.
    pub operands: &'a [TripOperand],
}

/// When the result of each instruction is there, and when for a product that accumulates on it.
type TripResults = SecondaryMap<TripPlace, [u64; 2]>;

/// A trip, and what is known about its order so far.
struct InterleavedTrip<'a> {
    insts: &'a [OrderedInstruction<'a>],
    costs: Vec<IssueCost>,
    /// Results of the trip before, and those of this one.
    before: TripResults,
    results: TripResults,
    /// For each instruction those in front of it that read what it has made a trip ago.
    last_readers: SecondaryMap<TripPlace, SmallVec<[u32; 2]>>,
    alive: LiveRegisters<TripPlace>,
    graph: RegionGraph,
    found: IssueOrder,
}

/// The order of the instructions of a trip, if another one than theirs pays. If some regions are marked by
/// their first instructions, these get another order, and all of them otherwise.
pub(super) fn interleaved(
    insts: &[OrderedInstruction],
    marked: &[usize],
    device: &DeviceModel,
) -> Option<Vec<u32>> {
    let count = |is: fn(&CostKind) -> bool| insts.iter().filter(|inst| is(&inst.kind)).count();
    let products = count(|kind| matches!(kind, CostKind::Matrix { .. }));
    if !has_work_beside(products, count(|kind| matches!(kind, CostKind::Valu { .. }))) {
        return None;
    }
    let mut trip = InterleavedTrip::new(insts, &IssueRates::of(device));
    let mut wave = IssuingWave::default();
    trip.issue(0..insts.len(), &mut wave);
    let (start, mut again) = (wave.clk(), wave);
    trip.next_trip();
    trip.issue(0..insts.len(), &mut again);
    let mut order = Vec::with_capacity(insts.len());
    for region in regions(insts) {
        if marked.is_empty() || marked.contains(&region.start) {
            let ties = if marked.is_empty() { IssueTies::LongestWay } else { IssueTies::BusiestUnit };
            trip.order_region(region, (&mut wave, ties), &mut order);
        } else {
            order.extend(region.start as u32..region.end as u32);
            trip.issue(region, &mut wave);
        }
    }
    pays(again.clk() - start, wave.clk() - start).then_some(order)
}

/// Runs of instructions that may change places, and single ones that may not.
fn regions(insts: &[OrderedInstruction]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let runs = insts.chunk_by(|one, next| !one.is_fixed && !next.is_fixed);
    runs.map(move |run| {
        start += run.len();
        start - run.len()..start
    })
}

impl<'a> InterleavedTrip<'a> {
    fn new(insts: &'a [OrderedInstruction<'a>], rates: &IssueRates) -> InterleavedTrip<'a> {
        let mut alive = LiveRegisters::default();
        let mut last_readers: SecondaryMap<TripPlace, SmallVec<[u32; 2]>> = SecondaryMap::new();
        alive.begin();
        for (inst, at) in insts.iter().zip(0u32..) {
            alive.set_width(TripPlace::new(at as usize), inst.registers.into());
            alive.count(TripPlace::new(at as usize));
            for operand in inst.operands {
                let from = TripPlace::new(operand.from as usize);
                alive.count(from);
                if operand.trips > 0 {
                    // It outlives its trip.
                    alive.count(from);
                    if at < operand.from {
                        last_readers[from].push(at);
                    }
                }
            }
        }
        InterleavedTrip {
            insts,
            costs: insts.iter().map(|inst| rates.cost(&inst.kind, inst.turns.into())).collect(),
            before: SecondaryMap::new(),
            results: SecondaryMap::new(),
            last_readers,
            alive,
            graph: RegionGraph::default(),
            found: IssueOrder::default(),
        }
    }

    fn next_trip(&mut self) {
        self.before.clone_from(&self.results);
    }

    /// When an operand is there.
    fn ready(&self, operand: &TripOperand) -> u64 {
        let results = if operand.trips > 0 { &self.before } else { &self.results };
        results[TripPlace::new(operand.from as usize)][usize::from(operand.late == 0)]
    }

    fn note(&mut self, at: usize, begun: u64) {
        let results = self.costs[at].results.map(|clk| begun + u64::from(clk));
        self.results[TripPlace::new(at)] = results;
    }

    /// Lets a wave issue instructions as they stand.
    fn issue(&mut self, region: Range<usize>, wave: &mut IssuingWave) {
        for (inst, at) in self.insts[region.clone()].iter().zip(region.start..) {
            let ready = inst.operands.iter().map(|operand| self.ready(operand)).max().unwrap_or(0);
            let cost = &self.costs[at];
            let begun = wave.issue(cost, wave.start(cost, ready));
            self.note(at, begun);
        }
    }

    /// Orders a region, and lets a wave issue it.
    fn order_region(
        &mut self,
        region: Range<usize>,
        (wave, ties): (&mut IssuingWave, IssueTies),
        order: &mut Vec<u32>,
    ) {
        self.find_dependences(&region);
        let own = self.insts[region.clone()].iter();
        self.alive.begin_region();
        for (inst, at) in own.zip(region.start..) {
            let mut accesses: SmallVec<[ValueAccess<TripPlace>; 8]> = SmallVec::new();
            let reads = inst.operands.iter().filter(|operand| operand.trips == 0);
            let reads = reads.map(|operand| (TripPlace::new(operand.from as usize), false));
            for (value, makes) in reads.chain([(TripPlace::new(at), true)]) {
                if self.alive.has_registers(value) && accesses.iter().all(|known| known.value != value) {
                    accesses.push(ValueAccess { value, makes });
                }
            }
            self.alive.push(accesses);
        }
        self.alive.enter();
        self.found.find(&mut self.graph, wave, &mut self.alive, ties);
        for number in 0..region.len() {
            self.note(region.start + number, self.found.begun[number]);
        }
        order.extend(self.found.order.iter().map(|number| region.start as u32 + number));
    }

    fn find_dependences(&mut self, region: &Range<usize>) {
        self.graph.clear();
        let mut memory = MemoryOrder::default();
        for at in region.clone() {
            let number = self.graph.push(self.costs[at]);
            let inst = &self.insts[at];
            for operand in inst.operands {
                match (operand.from as usize).checked_sub(region.start) {
                    Some(from) if operand.trips == 0 => self.graph.uses(from as u32, operand.late == 0),
                    _ => {
                        let ready = self.ready(operand);
                        self.graph.waits_until(number, ready);
                    }
                }
            }
            for &reader in &self.last_readers[TripPlace::new(at)] {
                if let Some(reader) = (reader as usize).checked_sub(region.start) {
                    self.graph.follows(reader as u32);
                }
            }
            match inst.kind {
                CostKind::Lds { kind: LdsKind::Read, .. } => memory.reads_lds(&mut self.graph, number),
                CostKind::Lds { kind: LdsKind::Write | LdsKind::Atomic, .. } => {
                    memory.changes_lds(&mut self.graph, number);
                }
                CostKind::Vector { kind, .. } => {
                    memory.cached(&mut self.graph, number);
                    if kind == VectorKind::LoadToLds {
                        memory.changes_lds(&mut self.graph, number);
                    }
                }
                // Moves between lanes take the way of LDS and touch none of it.
                CostKind::Lds { kind: LdsKind::Permute, .. }
                | CostKind::Valu { .. }
                | CostKind::Matrix { .. }
                | CostKind::Scalar
                | CostKind::ScalarMemory
                | CostKind::Branch
                | CostKind::Nop { .. }
                | CostKind::Sleep { .. }
                | CostKind::Wait { .. }
                | CostKind::Barrier
                | CostKind::Priority { .. }
                | CostKind::End => {}
            }
        }
    }
}
