//! Decides which registers leave their file when there are too few: a sweep over the program that, wherever
//! more registers are alive than fit, gives up the one that costs least for the room it makes.
//!
//! The cost of giving up a register is what its reads and writes will cost, weighted by how often they run
//! (eight times more per loop level): a constant, or another register XORed with one, is made again; a
//! register whose operands can be AGPRs moves there for nothing, others for a copy per access; scratch memory
//! costs a memory access, lanes of a VGPR (for SGPRs) an instruction per 32 bits. The cost is divided by the
//! room: how many registers for how long. So the registers that are used least in loops leave first.
//!
//! Scratch accesses and constant moves obey EXEC, as most instructions do: a store after a write stores the
//! lanes that were written, a load before a read loads the lanes that are read. An instruction that looks at
//! all lanes (matrix instructions, `v_readlane`, `v_writelane`, and `v_readfirstlane` because EXEC may be
//! empty) would see lanes that such a load has left out, so registers that one of them touches while lanes
//! may be off stay where they are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::repeat_n;

use super::access::{ignores_exec, width};
use super::agpr::{becomes_agpr_write, may_be_agpr, takes_agpr};
use super::body::{InstId, MachineBody, RegisterFile};
use super::liveness::{LiveSegment, Liveness, Position};
use super::loops::LoopDepths;
use super::rematerialise::{Recipe, Recipes, holds_value};
use crate::codegen::isa::{Inst, Operand, Role, VReg};
use crate::codegen::target::AccumulationFile;
use crate::index::{Neighbours, Stretches};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

/// Where a register goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum EvictionChoice {
    /// Nowhere: it is made again where it is read.
    Rematerialise,
    /// To the AGPRs.
    Agpr,
    /// To scratch, or, an SGPR, to lanes of a VGPR.
    Memory,
}

/// What giving up a register costs.
#[derive(Copy, Clone, Default)]
struct EvictionCost {
    rematerialise: Option<u64>,
    /// The register that it is made of again.
    base: Option<VReg>,
    agpr: u64,
    /// Some of the copies that AGPRs take are in a loop.
    agpr_copies_in_loops: bool,
    memory: u64,
    /// Registers times positions.
    room: u64,
    /// May not leave.
    pinned: bool,
}

/// Cost of a scratch access, in addition to that of its registers, in vector instructions.
const ACCESS: u64 = 12;
/// Cost of each register of a scratch access.
const ACCESS_REGISTER: u64 = 4;

/// Which ways out of a file registers may take.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WaysOut {
    /// All of them.
    All,
    /// To the AGPRs, and only if no copy is needed in a loop.
    FreeInLoops,
}

/// A file that is too small.
#[derive(Copy, Clone)]
pub(super) struct Shortage {
    /// The file.
    pub file: RegisterFile,
    /// Where AGPRs live.
    pub accumulation: AccumulationFile,
    /// The most registers that may be alive.
    pub limit: u32,
    /// Registers that may move to AGPRs however long they live.
    pub agprs: u32,
    /// AGPRs that there are.
    pub capacity: u32,
    /// Registers that may move to scratch memory (SGPRs: to lanes of VGPRs).
    pub memory: u32,
    /// Where registers may go.
    pub ways: WaysOut,
}

/// The decision and its working memory.
#[derive(Default)]
pub(super) struct Evictor {
    /// The registers that leave, and where they go.
    pub evicted: Vec<(VReg, EvictionChoice)>,
    recipes: Recipes,
    costs: SecondaryMap<VReg, EvictionCost>,
    /// Position, whether something starts there (ends go first), register, number of parts.
    events: Vec<(Position, bool, VReg, u32)>,
    /// Parts alive at the moment.
    alive: SecondaryMap<VReg, u32>,
    gone: SecondaryMap<VReg, bool>,
    /// AGPRs in use at each position, with those of registers that go there; empty until it is needed.
    agprs: PrimaryMap<Position, u32>,
    candidates: BinaryHeap<Reverse<(u64, VReg)>>,
    set_aside: Vec<Reverse<(u64, VReg)>>,
}

impl Evictor {
    /// The instruction that makes `register` (as of the last choice).
    pub(super) fn maker(&self, body: &MachineBody, register: VReg) -> Option<InstId> {
        self.recipes.of(body, register).map(|recipe| recipe.inst)
    }

    /// Chooses which registers leave so that no more than `shortage.limit` are alive anywhere, as far as that
    /// is possible. `stays` is true for registers that may not leave.
    pub(super) fn choose(
        &mut self,
        body: &MachineBody,
        liveness: &Liveness,
        loops: &LoopDepths,
        shortage: Shortage,
        stays: impl Fn(VReg) -> bool,
    ) {
        self.recipes.compute(body, loops);
        self.estimate(body, liveness, loops, shortage, stays);
        self.events.clear();
        for (id, register) in body.registers.iter() {
            if register.file == shortage.file {
                for segment in liveness.of(id) {
                    let parts = segment.parts.count_ones();
                    self.events.push((segment.start, true, id, parts));
                    self.events.push((segment.end.next(), false, id, parts));
                }
            }
        }
        self.events.sort_unstable();
        self.agprs.clear();
        self.sweep(body, liveness, shortage);
    }

    fn estimate(
        &mut self,
        body: &MachineBody,
        liveness: &Liveness,
        loops: &LoopDepths,
        Shortage { file, accumulation, .. }: Shortage,
        stays: impl Fn(VReg) -> bool,
    ) {
        self.costs.clear();
        self.costs.resize(body.registers.len());
        for (id, cost) in self.costs.iter_mut() {
            cost.pinned = stays(id) || body.registers[id].file != file || liveness.first[id].is_none();
            let recipe = self.recipes.of(body, id);
            cost.rematerialise = recipe.map(|_| 0);
            cost.base = recipe.and_then(|Recipe { base, .. }| base);
            if !cost.pinned {
                let room = |s: LiveSegment| {
                    u64::from(s.end.as_u32() - s.start.as_u32() + 1) * u64::from(s.parts.count_ones())
                };
                cost.room = liveness.of(id).map(room).sum();
            }
        }
        for (block, data) in body.blocks.iter() {
            let weight = u64::from(loops.weight(block));
            for index in data.insts() {
                let inst = &body.insts[index].inst;
                let all_lanes = file != RegisterFile::Sgpr && liveness.is_masked(index) && ignores_exec(inst);
                for (at, spec) in inst.op.info().operands.iter().enumerate() {
                    let Some((id, _)) = inst.operands[at].as_virtual() else { continue };
                    let cost = &mut self.costs[id];
                    if cost.pinned {
                        continue;
                    }
                    cost.pinned |= all_lanes;
                    let registers = u64::from(width(inst, at, spec));
                    let accesses = if inst.role(at) == Role::DefUse { 2 } else { 1 };
                    cost.memory += weight
                        * accesses
                        * match file {
                            RegisterFile::Sgpr => registers,
                            _ => ACCESS + ACCESS_REGISTER * registers,
                        };
                    let own = |operand: Operand| operand.as_virtual().is_some_and(|(other, _)| other == id);
                    let free =
                        may_be_agpr(inst, at, accumulation, own) || at == 0 && becomes_agpr_write(inst);
                    cost.agpr += if free { 0 } else { weight * accesses * registers };
                    cost.agpr_copies_in_loops |= !free && weight > 1;
                    let reads = inst.role(at) != Role::Def;
                    if reads && cost.base.is_some_and(|base| !holds_value(liveness, base, index)) {
                        cost.rematerialise = None;
                    }
                    if let Some(cost) = &mut cost.rematerialise {
                        *cost += if reads { weight } else { 0 };
                    }
                }
            }
        }
    }

    /// True if AGPRs are free while a register holds a value. As long as all that go there would fit side by
    /// side, nothing has to be counted; after that, registers that live one after the other share AGPRs.
    fn has_agprs(&mut self, body: &MachineBody, liveness: &Liveness, id: VReg, shortage: Shortage) -> bool {
        if shortage.file != RegisterFile::Vgpr || shortage.capacity == 0 {
            return false;
        }
        if u32::from(body.registers[id].width) <= shortage.agprs {
            return true;
        }
        if self.agprs.is_empty() {
            self.agprs.extend(repeat_n(0, Position::end(body).next().next().index()));
            for (other, register) in body.registers.iter() {
                if register.file == RegisterFile::Agpr {
                    occupy(&mut self.agprs, liveness, other);
                }
            }
            for &(other, choice) in &self.evicted {
                if choice == EvictionChoice::Agpr {
                    occupy(&mut self.agprs, liveness, other);
                }
            }
        }
        liveness.of(id).all(|segment| {
            let fits = |taken: &u32| taken + segment.parts.count_ones() <= shortage.capacity;
            self.agprs.range(segment.start..segment.end.next()).iter().all(fits)
        })
    }

    /// The cheapest way out for a register, and its cost relative to the room it makes, if AGPRs are free
    /// while it holds a value, as far as there are any.
    fn cheapest(&self, id: VReg, registers: u32, shortage: Shortage) -> Option<(u64, EvictionChoice)> {
        let cost = &self.costs[id];
        let agpr = shortage.file == RegisterFile::Vgpr && shortage.capacity > 0;
        if shortage.ways == WaysOut::FreeInLoops {
            let free = agpr && !cost.agpr_copies_in_loops;
            return free.then_some(((cost.agpr << 16) / cost.room.max(1), EvictionChoice::Agpr));
        }
        let again = cost.rematerialise.filter(|_| cost.base.is_none_or(|base| !self.gone[base]));
        let ways = [
            again.map(|cost| (cost, EvictionChoice::Rematerialise)),
            agpr.then_some((cost.agpr, EvictionChoice::Agpr)),
            (registers <= shortage.memory).then_some((cost.memory, EvictionChoice::Memory)),
        ];
        let (cost_of_way, way) = ways.into_iter().flatten().min_by_key(|(cost, _)| *cost)?;
        Some(((cost_of_way << 16) / cost.room.max(1), way))
    }

    fn sweep(&mut self, body: &MachineBody, liveness: &Liveness, mut shortage: Shortage) {
        self.evicted.clear();
        self.alive.clear();
        self.alive.resize(body.registers.len());
        self.gone.clear();
        self.gone.resize(body.registers.len());
        self.candidates.clear();
        let mut now = 0;
        let mut next = 0;
        while next < self.events.len() {
            let position = self.events[next].0;
            while let Some(&(at, starts, id, parts)) = self.events.get(next).filter(|e| e.0 == position) {
                debug_assert_eq!(at, position);
                next += 1;
                if self.gone[id] {
                    continue;
                }
                if !starts {
                    now -= parts;
                    self.alive[id] = 0;
                    continue;
                }
                now += parts;
                self.alive[id] = parts;
                let registers = body.registers[id].width.into();
                if !self.costs[id].pinned
                    && let Some((key, _)) = self.cheapest(id, registers, shortage)
                {
                    self.candidates.push(Reverse((key, id)));
                }
            }
            if now > shortage.limit {
                now = self.make_room(body, liveness, position, now, &mut shortage);
            }
        }
    }

    /// Evicts at one position until no more than the limit are alive; returns how many then are.
    fn make_room(
        &mut self,
        body: &MachineBody,
        liveness: &Liveness,
        position: Position,
        mut now: u32,
        shortage: &mut Shortage,
    ) -> u32 {
        let inst = body.insts.get(position.inst()).map(|i| &i.inst);
        // Registers that have left, but that this instruction still needs in the file.
        let mut needed = 0;
        while now + needed > shortage.limit {
            let Some(Reverse((key, id))) = self.candidates.pop() else { break };
            if self.gone[id] || self.alive[id] == 0 || self.costs[id].pinned {
                continue;
            }
            let registers = u32::from(body.registers[id].width);
            let mut possible = *shortage;
            if !self.has_agprs(body, liveness, id, possible) {
                possible.capacity = 0;
            }
            let Some((current_key, choice)) = self.cheapest(id, registers, possible) else { continue };
            if current_key > key {
                self.candidates.push(Reverse((current_key, id)));
                continue;
            }
            let needs = match choice {
                EvictionChoice::Agpr => agpr_copies(inst, id, shortage.accumulation),
                EvictionChoice::Memory | EvictionChoice::Rematerialise => accessed(inst, id),
            };
            if needs >= self.alive[id] {
                self.set_aside.push(Reverse((key, id)));
                continue;
            }
            now -= self.alive[id];
            needed += needs;
            self.alive[id] = 0;
            self.gone[id] = true;
            match choice {
                EvictionChoice::Agpr => {
                    shortage.agprs = shortage.agprs.saturating_sub(registers);
                    if !self.agprs.is_empty() {
                        occupy(&mut self.agprs, liveness, id);
                    }
                }
                EvictionChoice::Memory => shortage.memory -= registers,
                EvictionChoice::Rematerialise => {
                    if let Some(base) = self.costs[id].base {
                        self.costs[base].pinned = true;
                    }
                }
            }
            self.evicted.push((id, choice));
        }
        self.candidates.extend(self.set_aside.drain(..));
        now
    }
}

/// Counts the parts of a register wherever they hold values.
fn occupy(taken: &mut PrimaryMap<Position, u32>, liveness: &Liveness, id: VReg) {
    for segment in liveness.of(id) {
        let parts = segment.parts.count_ones();
        taken.range_mut(segment.start..segment.end.next()).iter_mut().for_each(|taken| *taken += parts);
    }
}

/// The most registers of `id` that an instruction reads or writes.
fn accessed(inst: Option<&Inst>, id: VReg) -> u32 {
    let Some(inst) = inst else { return 0 };
    let operands = inst.op.info().operands.iter().enumerate();
    let own =
        operands.filter(|(at, _)| inst.operands[*at].as_virtual().is_some_and(|(other, _)| other == id));
    own.map(|(at, spec)| width(inst, at, spec)).sum()
}

/// The same without those that can be AGPRs.
fn agpr_copies(inst: Option<&Inst>, id: VReg, file: AccumulationFile) -> u32 {
    let Some(inst) = inst else { return 0 };
    let operands = inst.op.info().operands.iter().enumerate();
    let own =
        operands.filter(|(at, _)| inst.operands[*at].as_virtual().is_some_and(|(other, _)| other == id));
    own.filter(|(at, _)| !takes_agpr(inst, *at, file)).map(|(at, spec)| width(inst, at, spec)).sum()
}
