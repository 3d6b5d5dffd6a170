//! The order that instructions of a region must keep, and when operands from outside are there.

use super::super::access::{
    RegisterRange, accesses, changes_indexing, hardware_register, is_lds_dma, is_vmem,
};
use super::super::body::{InstId, MachineBody, MachineInst};
use super::super::register_parts::{PartAccess, RegisterPart, RegisterPartNumbers};
use crate::codegen::isa::{Effect, Implicit, Inst, Meaning, Unit};
use crate::codegen::issue::{IssueCost, IssueUnit, IssuingWave, MemoryOrder, RegionGraph};
use crate::index::Stretches;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use std::ops::Range;

/// True for instructions that stay where they are: those with which waves wait or compete, scalar loads and
/// flat accesses, whose counters say when all are over and not when one is, those that change which lanes are
/// active or how others work, and branches.
pub(crate) fn is_fixed(inst: &Inst) -> bool {
    let info = inst.op.info();
    let writes_exec = || {
        info.writes.contains(Implicit::EXEC)
            || accesses(inst)
                .filter(|access| access.writes())
                .any(|access| access.range().is_some_and(|range| range.overlaps(RegisterRange::EXEC)))
    };
    match info.unit {
        Unit::Branch | Unit::Barrier | Unit::Wait | Unit::Nop | Unit::Other | Unit::Flat | Unit::Smem => true,
        Unit::Salu => writes_exec() || reaches_unnamed(inst),
        Unit::Valu | Unit::Trans => writes_exec(),
        Unit::Mfma(_) | Unit::Lds | Unit::Vmem => false,
    }
}

/// True for scalar instructions that change the mode in which others work, or registers that they do not
/// name.
fn reaches_unnamed(inst: &Inst) -> bool {
    use Meaning::{MoveFromRelative, MoveToRelative, SetGprIndex, SetGprIndexMode};
    let meaning = inst.op.info().meaning;
    hardware_register(inst).is_some()
        || changes_indexing(inst).is_some()
        || matches!(meaning, MoveFromRelative(_) | MoveToRelative(_) | SetGprIndex | SetGprIndexMode)
}

/// The number of a read in the list of a region's reads.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
struct ReadId(u32);
entity_impl!(ReadId, "");

/// The accesses of a part of a register by instructions of the region so far.
#[derive(Copy, Clone, Default)]
struct PartUse {
    /// The region for which the rest holds; 0 is none.
    region: u32,
    writer: Option<u32>,
    /// The last read since it was written.
    read: PackedOption<ReadId>,
}

/// A read, and the one before it of the same part.
#[derive(Copy, Clone)]
struct PartRead {
    reader: u32,
    before: PackedOption<ReadId>,
}

/// When the result in a part is there, and when for a product that accumulates on it.
pub(super) type ResultTimes = SecondaryMap<RegisterPart, [u64; 2]>;

/// The dependences of the regions of a block, one after the other.
#[derive(Default)]
pub(super) struct Dependences {
    parts: RegisterPartNumbers,
    /// The accesses of parts by the block's instructions, and where those of each begin.
    accesses: Vec<(RegisterPart, PartAccess)>,
    starts: Vec<u32>,
    /// The parts that stand for others in the next trip.
    successors: SecondaryMap<RegisterPart, PackedOption<RegisterPart>>,
    uses: SecondaryMap<RegisterPart, PartUse>,
    reads: Vec<PartRead>,
    results: ResultTimes,
    region: u32,
}

impl Dependences {
    /// Begins with a block whose last instructions, from `tail` on, prepare the next trip.
    pub(super) fn begin(&mut self, body: &MachineBody, block: Range<InstId>, tail: InstId) {
        self.parts.number(body);
        self.accesses.clear();
        self.starts.clear();
        for inst in body.insts.range(block.start..tail) {
            self.starts.push(self.accesses.len() as u32);
            self.parts.visit(&inst.inst, |part, access| self.accesses.push((part, access)));
        }
        self.starts.push(self.accesses.len() as u32);
        self.region = 0;
        self.uses.clear();
        self.uses.resize(self.parts.count());
        self.results.clear();
        self.results.resize(self.parts.count());
        self.find_successors(body.insts.range(tail..block.end));
    }

    /// The accesses of parts by an instruction of the block.
    fn of(&self, at: usize) -> &[(RegisterPart, PartAccess)] {
        &self.accesses[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Finds values that take the place of others at the end of the trip and can have their registers,
    /// because they are made after the last read of these.
    fn find_successors(&mut self, tail: &[MachineInst]) {
        self.successors.clear();
        self.successors.resize(self.parts.count());
        // Numbers of instructions from 1 on, and 0 for none.
        let mut last_read: SecondaryMap<RegisterPart, u32> = SecondaryMap::new();
        let mut made: SecondaryMap<RegisterPart, u32> = SecondaryMap::new();
        for at in 1..self.starts.len() {
            for &(part, access) in self.of(at - 1) {
                match access {
                    PartAccess::Write => made[part] = at as u32,
                    PartAccess::Read | PartAccess::Addend => last_read[part] = at as u32,
                }
            }
        }
        for [to, from] in self.parts.copied(tail) {
            if made[from] > 0 && made[from] >= last_read[to] {
                self.successors[from] = to.into();
            }
        }
    }

    /// Finds the dependences of the next region, whose first instruction is number `first` of the block.
    pub(super) fn find(
        &mut self,
        graph: &mut RegionGraph,
        first: usize,
        insts: &[MachineInst],
        costs: &[IssueCost],
    ) {
        self.region += 1;
        self.reads.clear();
        graph.clear();
        let mut memory = MemoryOrder::default();
        for ((inst, &cost), at) in insts.iter().zip(costs).zip(first..) {
            let number = graph.push(cost);
            let is_product = cost.unit == IssueUnit::Matrix;
            let Dependences { accesses, starts, successors, uses, reads, results, region, .. } = self;
            for &(part, access) in &accesses[starts[at] as usize..starts[at + 1] as usize] {
                let named = successors[part].expand().unwrap_or(part);
                let own = &mut uses[named];
                if own.region != *region {
                    *own = PartUse { region: *region, ..PartUse::default() };
                }
                let accumulates = is_product && access == PartAccess::Addend;
                if access == PartAccess::Write {
                    own.overwrite(graph, reads, number);
                    continue;
                }
                match own.writer {
                    Some(writer) => graph.uses(writer, accumulates),
                    None => graph.waits_until(number, results[part][usize::from(accumulates)]),
                }
                if accumulates {
                    // The result takes the registers of the addend.
                    own.follow_reads(graph, reads, number);
                }
                own.read(reads, number);
            }
            let info = inst.inst.op.info();
            if is_vmem(info) {
                memory.cached(graph, number);
            }
            match info.meaning.effect() {
                _ if is_lds_dma(info) => memory.changes_lds(graph, number),
                Effect::None => {}
                _ if info.unit != Unit::Lds => {}
                Effect::Load => memory.reads_lds(graph, number),
                _ => memory.changes_lds(graph, number),
            }
        }
    }

    /// When the results are there that have been made so far.
    pub(super) fn results(&self) -> ResultTimes {
        self.results.clone()
    }

    /// Goes back to these.
    pub(super) fn restore(&mut self, results: ResultTimes) {
        self.results = results;
    }

    /// Notes when the results of a region are there whose first instruction is number `first`, and with whose
    /// instructions units begin at `begun`.
    pub(super) fn leave(&mut self, first: usize, costs: &[IssueCost], begun: &[u64]) {
        for ((cost, &begun), at) in costs.iter().zip(begun).zip(first..) {
            self.note(at, cost, begun);
        }
    }

    /// Lets a wave issue the instructions of the block as they stand.
    pub(super) fn issue(&mut self, costs: &[IssueCost], wave: &mut IssuingWave) {
        for (at, cost) in costs.iter().enumerate().take(self.starts.len() - 1) {
            let is_product = cost.unit == IssueUnit::Matrix;
            let mut ready = 0;
            for &(part, access) in self.of(at) {
                if access != PartAccess::Write {
                    let accumulates = is_product && access == PartAccess::Addend;
                    ready = self.results[part][usize::from(accumulates)].max(ready);
                }
            }
            let begun = wave.issue(cost, wave.start(cost, ready));
            self.note(at, cost, begun);
        }
    }

    /// Lets the next trip find results under the names that the copies at the end of a trip give them.
    pub(super) fn hand_on(&mut self, tail: &[MachineInst]) {
        for [to, from] in self.parts.copied(tail) {
            self.results[to] = self.results[from];
        }
    }

    fn note(&mut self, at: usize, cost: &IssueCost, begun: u64) {
        let results = cost.results.map(|clk| begun + u64::from(clk));
        let Dependences { accesses, starts, results: all, .. } = self;
        // Writes come after reads.
        let own = accesses[starts[at] as usize..starts[at + 1] as usize].iter().rev();
        for &(part, _) in own.take_while(|own| own.1 == PartAccess::Write) {
            all[part] = results;
        }
    }
}

impl PartUse {
    fn read(&mut self, reads: &mut Vec<PartRead>, reader: u32) {
        let before = std::mem::replace(&mut self.read, ReadId::new(reads.len()).into());
        reads.push(PartRead { reader, before });
    }

    /// The last instruction comes after the reads.
    fn follow_reads(&self, graph: &mut RegionGraph, reads: &[PartRead], number: u32) {
        let mut next = self.read.expand();
        while let Some(id) = next {
            let PartRead { reader, before } = reads[id.index()];
            if reader != number {
                graph.follows(reader);
            }
            next = before.expand();
        }
    }

    /// The last instruction writes it.
    fn overwrite(&mut self, graph: &mut RegionGraph, reads: &[PartRead], number: u32) {
        self.follow_reads(graph, reads, number);
        if let Some(writer) = self.writer {
            graph.follows(writer);
        }
        (self.writer, self.read) = (Some(number), None.into());
    }
}
