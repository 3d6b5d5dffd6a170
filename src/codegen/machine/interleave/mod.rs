//! Instructions of loops moved to where their units are free: vector instructions and reads between matrix
//! instructions, and whatever does not depend on it into the time in which a wave would wait.
//!
//! The pass looks at bodies of innermost loops that have both matrix and vector instructions. Barriers,
//! waits, writes of EXEC and branches cut a body into regions, and no instruction leaves its region; memory
//! is accessed in the order of the code except that reads of LDS pass each other. Each region is ordered anew
//! by list scheduling, with no more registers alive at once than before. A body that gains nothing by that
//! stays as it is, and so does one whose waves compete by priorities: there a schedule says when each of them
//! issues. Times are those of a wave that has its SIMD for itself, so the pass is for workgroups of up to
//! four waves: with eight, in step, attention took between 4 % more and 10 % less.
//!
//! - `dependences`: what has to come before what in a region
//! - `values`: the vector registers that instructions access
//!
//! A schedule can mark single regions instead (`interleave_by_cost`), under priorities and for any number of
//! waves: those in which a wave multiplies while the others of its SIMD do not. Then these alone get another
//! order.
//!
//! `codegen/issue` has what they cost, and finds the order of a region.

mod dependences;
mod values;

use std::ops::Range;

use smallvec::SmallVec;

use self::dependences::Dependences;
pub(crate) use self::dependences::is_fixed;
use self::values::RegionRegisters;
pub(crate) use self::values::made_registers;
use super::access::as_copy;
use super::body::{BlockId, InstId, MachineBody, MachineInst};
use super::loops::LoopDepths;
use crate::codegen::isa::{Arch, Meaning, Unit};
use crate::codegen::issue::{
    IssueCost, IssueOrder, IssueRates, IssueTies, IssuingWave, RegionGraph, has_work_beside, pays,
};
use crate::codegen::target::{DeviceModel, InstructionCost};
use crate::index::{Neighbours, Stretches};
use cranelift_entity::iter_entity_range;

/// Interleaves the loops of a body for a device. If some regions are marked by their first instructions,
/// these get another order, and all regions otherwise.
pub fn interleave(body: &mut MachineBody, marked: &[InstId], (arch, device): (Arch, &'static DeviceModel)) {
    let mut loops = LoopDepths::default();
    loops.compute(body);
    let innermost: SmallVec<[Range<BlockId>; 4]> = loops.innermost().collect();
    let mut interleaver = None::<Interleaver>;
    for blocks in innermost {
        let chosen = match marked {
            [] if suits(instructions(body, &blocks)) => Regions::All,
            marked if !marked.is_empty() => Regions::Marked(marked),
            _ => continue,
        };
        let has_chosen = |block: &BlockId| chosen.are_in(body.blocks[*block].start..body.blocks[*block].end);
        let blocks: SmallVec<[BlockId; 4]> = iter_entity_range(blocks).filter(has_chosen).collect();
        for block in blocks {
            let interleaver = interleaver.get_or_insert_with(|| Interleaver::of(body));
            interleaver.interleave_block(body, block, chosen, (arch, device));
        }
    }
}

/// The regions that get another order.
#[derive(Copy, Clone)]
enum Regions<'a> {
    All,
    /// Those that begin with one of these instructions.
    Marked(&'a [InstId]),
}

impl Regions<'_> {
    /// Which instruction goes first of several. Schedules mark regions that matrix cores bound.
    fn ties(self) -> IssueTies {
        match self {
            Regions::All => IssueTies::LongestWay,
            Regions::Marked(_) => IssueTies::BusiestUnit,
        }
    }

    /// True if some are among the instructions of a block.
    fn are_in(self, block: Range<InstId>) -> bool {
        match self {
            Regions::All => true,
            Regions::Marked(marked) => marked.iter().any(|first| block.contains(first)),
        }
    }

    /// True if a region that begins with an instruction is one of them.
    fn contain(self, first: InstId) -> bool {
        match self {
            Regions::All => true,
            Regions::Marked(marked) => marked.contains(&first),
        }
    }
}

/// The instructions of blocks that follow one another.
fn instructions<'a>(body: &'a MachineBody, blocks: &Range<BlockId>) -> impl Iterator<Item = &'a MachineInst> {
    iter_entity_range(blocks.clone()).flat_map(|block| body.block(block))
}

/// The memory of the pass, which is reused from block to block.
#[derive(Default)]
struct Interleaver {
    dependences: Dependences,
    registers: RegionRegisters,
    graph: RegionGraph,
    order: IssueOrder,
    costs: Vec<IssueCost>,
    written: Vec<MachineInst>,
}

impl Interleaver {
    /// For a body, whose instructions may change places.
    fn of(body: &MachineBody) -> Interleaver {
        let mut interleaver = Interleaver::default();
        interleaver.registers.begin(body);
        interleaver
    }

    fn interleave_block(
        &mut self,
        body: &mut MachineBody,
        block: BlockId,
        chosen: Regions<'_>,
        (arch, device): (Arch, &'static DeviceModel),
    ) {
        let rates = IssueRates::of(device);
        let own = body.blocks[block];
        self.costs.clear();
        self.costs.extend(body.block(block).iter().map(|inst| {
            // A wave that is alone shares no turns, whatever its operands are.
            let cost = InstructionCost::of(device, arch, &inst.inst, || false);
            rates.cost(&cost.kind, cost.turns)
        }));
        let tail = tail(body, block);
        self.dependences.begin(body, own.start..own.end, tail);
        self.written.clear();
        let [before, after] = self.pass_regions(body, chosen, own.start..tail, own.end);
        if pays(before, after) {
            body.insts.range_mut(own.start..tail).copy_from_slice(&self.written);
        }
    }

    /// Writes the new order of the instructions of a block up to its tail, and returns the clk of a trip that
    /// follows another one, as its instructions stand and in the new order.
    fn pass_regions(
        &mut self,
        body: &MachineBody,
        chosen: Regions<'_>,
        insts: Range<InstId>,
        end: InstId,
    ) -> [u64; 2] {
        let Interleaver { dependences, registers, graph, order, costs, written } = self;
        let mut wave = IssuingWave::default();
        dependences.issue(costs, &mut wave);
        dependences.hand_on(body.insts.range(insts.end..end));
        let (mut again, start, results) = (wave, wave.clk(), dependences.results());
        dependences.issue(costs, &mut again);
        dependences.restore(results);
        let (mut costs, mut first) = (&costs[..], 0);
        for region in regions(body, insts) {
            let is_chosen = chosen.contain(region.start);
            let own = body.insts.range(region);
            let (now, later) = costs.split_at(own.len());
            costs = later;
            dependences.find(graph, first, own, now);
            if is_chosen {
                order.find(graph, &mut wave, registers.enter(own), chosen.ties());
                written.extend(order.order.iter().map(|&number| own[number as usize]));
            } else {
                order.keep(graph, &mut wave);
                written.extend_from_slice(own);
            }
            dependences.leave(first, now, &order.begun);
            first += own.len();
        }
        [again, wave].map(|wave| wave.clk() - start)
    }
}

/// True if a body has matrix instructions and so much vector work beside them that waves do both in turns,
/// and no priorities by which waves compete.
fn suits<'a>(insts: impl Iterator<Item = &'a MachineInst>) -> bool {
    let (mut products, mut vector) = (0, 0);
    for inst in insts {
        let info = inst.inst.op.info();
        match info.unit {
            Unit::Mfma(_) => products += 1,
            Unit::Valu | Unit::Trans => vector += usize::from(as_copy(&inst.inst).is_none()),
            Unit::Other if info.meaning == Meaning::SetPriority => return false,
            _ => {}
        }
    }
    has_work_beside(products, vector)
}

/// The end of a loop's body that prepares the next trip: copies of what it carries, counts and the branch.
fn tail(body: &MachineBody, block: BlockId) -> InstId {
    let own = body.blocks[block];
    let prepares = |id: &InstId| {
        let inst = &body.insts[*id].inst;
        matches!(inst.op.info().unit, Unit::Salu | Unit::Branch) || as_copy(inst).is_some()
    };
    iter_entity_range(own.start..own.end).rev().take_while(prepares).last().unwrap_or(own.end)
}

/// The regions of instructions: runs of those that may change places, and single ones that may not.
fn regions(body: &MachineBody, insts: Range<InstId>) -> SmallVec<[Range<InstId>; 8]> {
    let mut regions: SmallVec<[Range<InstId>; 8]> = SmallVec::new();
    let mut start = insts.start;
    for id in iter_entity_range(insts.clone()) {
        if is_fixed(&body.insts[id].inst) {
            if start < id {
                regions.push(start..id);
            }
            regions.push(id..id.next());
            start = id.next();
        }
    }
    if start < insts.end {
        regions.push(start..insts.end);
    }
    regions
}
