//! One compute unit in turns of four clk.
//!
//! A SIMD has an issue turn every four clk, each SIMD one clk after the one before. Clk are counted from the
//! SIMD's own first turn, so all turns are at multiples of four, and nobody sees anything sooner for being on
//! another SIMD. In a turn a SIMD issues at most one instruction per class, of different waves, those of
//! higher priority first, then the oldest (SC25: the oldest wave always wins). What SIMDs share is taken in
//! the same order: a wave that comes later never overtakes by the place that it was given.
//!
//! An instruction executes when it issues, and all its later effects on time are computed at once: units and
//! queues know when they are free again, results know when they are ready. So the time at which a wave may
//! try its next instruction is known unless it waits at a barrier, and the model jumps from one such time to
//! the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::codegen::target::{CODE_LINE, DeviceModel, DeviceParameter, LDS_PAIR, SIMDS, TURN, WAVE_ORDER};

use super::super::error::{FaultKind, Stopped, StoppedWave};
use super::super::execute::{ExecutionContext, Footprint, MemorySpace, footprints};
use super::super::rounds::has_effect;
use super::super::wave::Progress;
use super::address_slice::WaveWalk;
use super::cache::CacheTags;
use super::costs::StepCost;
use super::counters::{AnyOrder, InOrder};
use super::hierarchy::{Hierarchy, OnTheWay};
use super::lds_path::LdsPath;
use super::places::{ModelledPlaces, privatise};
use super::record::{IssueEvent, LoopBranch, Pipe, Record, Stall, Wait, WaveTime};
use super::resident::{NEVER, PendingResult, ResidentGroup, Simd, UnitNumbers, WaveSlot};
use super::steady::{LoopingUnit, SteadyLoop};
use super::turn::{Delay, IssuedStep, Turn, dependency};
use super::vector_path::VectorPath;
use crate::codegen::target::whole;
use crate::codegen::target::{CostKind, IssueClass, LdsKind, VectorKind};

/// Instructions after which the clock of the host is read.
const WATCH: u64 = 1 << 14;

/// A compute unit and what it works on.
pub(super) struct ComputeUnit<'a> {
    walk: WaveWalk<'a>,
    /// Trips of steady loops are left out.
    leaves_out: bool,
    steady: SteadyLoop,
    costs: &'a [StepCost],
    numbers: UnitNumbers,
    simds: [Simd; SIMDS],
    /// When a wave of each SIMD may issue.
    next: [u64; SIMDS],
    slots: Vec<WaveSlot>,
    free_slots: Vec<usize>,
    groups: Vec<ResidentGroup>,
    free_groups: Vec<usize>,
    lds: LdsPath,
    vector: VectorPath,
    pub hierarchy: Hierarchy,
    places: ModelledPlaces,
    code: CacheTags,
    to_code: OnTheWay<u64>,
    pub record: Record,
    pub waves: Vec<WaveTime>,
    /// Workgroup, number in it and SIMD of each wave by the order of launches.
    pub launched: Vec<(u64, u32, u32)>,
    /// Ends of workgroups, in the order in which they ended.
    pub ends: Vec<u64>,
    launches: BinaryHeap<Reverse<u64>>,
    next_simd: usize,
    age: u64,
    found: Vec<Footprint>,
    /// Instructions since the clock of the host was last read.
    unwatched: u64,
}

impl<'a> ComputeUnit<'a> {
    /// An idle compute unit.
    pub(super) fn new(
        walk: WaveWalk<'a>,
        costs: &'a [StepCost],
        device: &DeviceModel,
        hierarchy: Hierarchy,
        room: usize,
    ) -> ComputeUnit<'a> {
        let count = |parameter| device.count(parameter);
        let launch = walk.launch;
        ComputeUnit {
            walk,
            leaves_out: room == 0 && walk.slice.is_some_and(|slice| !slice.reads_lds),
            steady: SteadyLoop::default(),
            costs,
            numbers: UnitNumbers::of(device, costs),
            simds: Default::default(),
            next: [NEVER; SIMDS],
            slots: Vec::new(),
            free_slots: Vec::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            lds: LdsPath::new(device, costs.len()),
            vector: VectorPath::new(device, costs.len()),
            hierarchy,
            places: ModelledPlaces::of(launch),
            code: CacheTags::new(
                count(DeviceParameter::CodeBytes),
                CODE_LINE,
                count(DeviceParameter::CodeWays),
            ),
            to_code: OnTheWay::new(),
            record: Record::new(costs.len(), room),
            waves: Vec::new(),
            launched: Vec::new(),
            ends: Vec::new(),
            launches: BinaryHeap::new(),
            next_simd: 0,
            age: 0,
            found: Vec::new(),
            // A launch that has no time left is stopped at once.
            unwatched: WATCH,
        }
    }

    /// What each step costs.
    pub(super) fn costs(&self) -> &'a [StepCost] {
        self.costs
    }

    /// The step that a branch goes to, or the branch's own.
    pub(super) fn branch_target(&self, step: usize) -> usize {
        self.costs.get(step).map_or(step, |cost| (cost.target as usize).min(step))
    }

    /// Runs `workgroups` to their ends, at most `resident` at a time, the first ones starting `interval` clk
    /// apart.
    pub(super) fn run(
        &mut self,
        mut workgroups: impl Iterator<Item = u64>,
        resident: u64,
        interval: u64,
    ) -> Result<(), StoppedWave> {
        self.launches.extend((0..resident).map(|n| Reverse(n * interval)));
        loop {
            let next = self.next.iter().copied().fold(NEVER, u64::min);
            if let Some(&Reverse(at)) = self.launches.peek()
                && at <= next
            {
                self.launches.pop();
                if let Some(workgroup) = workgroups.next() {
                    self.start(workgroup, at);
                } else {
                    self.launches.clear();
                }
                continue;
            }
            if next == NEVER {
                return Ok(());
            }
            self.turn(next)?;
        }
    }

    /// Starts a workgroup.
    fn start(&mut self, workgroup: u64, at: u64) {
        let group = self.free_groups.pop().unwrap_or_else(|| {
            self.groups.push(ResidentGroup::default());
            self.groups.len() - 1
        });
        let ids = self.walk.launch.coordinates(workgroup);
        self.steady.forget();
        let it = &mut self.groups[group];
        it.workgroup = workgroup;
        it.lds.reset(self.walk.launch.lds_bytes);
        it.slots.clear();
        (it.alive, it.waiting, it.started, it.ended) = (self.walk.launch.waves, 0, at, at);
        for index in 0..self.walk.launch.waves {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots.push(WaveSlot::new());
                self.slots.len() - 1
            });
            self.groups[group].slots.push(slot);
            let simd = self.simd_for_next_wave();
            let started = at + index as u64 * self.numbers.wave_interval;
            let it = &mut self.slots[slot];
            self.walk.start(&mut it.wave, index, ids);
            (it.group, it.index, it.age, it.simd) = (group, index, self.age, simd);
            (it.priority, it.misaligned, it.line, it.barrier) = (0, 0, u64::MAX, None);
            (it.started, it.issued, it.since) = (started + self.steady.skipped, 0, started);
            it.vm.clear();
            it.lgkm.clear();
            it.pending.clear();
            it.loops.clear();
            it.rounds.reset();
            self.age += 1;
            self.launched.push((workgroup, index as u32, simd as u32));
            let entry = it.wave.pc;
            let mut ready = started;
            if let Some(cost) = self.costs.get(entry) {
                it.line = cost.lines[0];
                if self.code.touch(it.line) {
                    self.record.used.mark(DeviceParameter::WarmStart);
                    ready = self.to_code.wait(it.line, started + self.numbers.warm_start);
                } else {
                    self.record.used.mark(DeviceParameter::ColdStart);
                    ready += self.numbers.cold_start;
                    self.to_code.note(it.line, ready);
                }
            }
            let wave = it.age as u32;
            let stall = Stall::NoInstruction;
            self.record.wait(Wait { wave, step: entry as u32, start: started, end: ready, stall });
            self.simds[simd].order.push(slot);
            self.sort(simd);
            self.prepare(slot, ready);
        }
    }

    /// The next SIMD in turn of those with the fewest waves.
    fn simd_for_next_wave(&mut self) -> usize {
        let fewest = self.simds.iter().map(|simd| simd.order.len()).min().unwrap_or(0);
        let turn = (0..SIMDS).map(|n| (self.next_simd + n) % SIMDS);
        let place = turn.clone().find(|&n| self.simds[WAVE_ORDER[n]].order.len() == fewest);
        let place = place.unwrap_or(self.next_simd);
        self.next_simd = (place + 1) % SIMDS;
        WAVE_ORDER[place]
    }

    /// Puts the waves of a SIMD in the order in which they win arbitration.
    fn sort(&mut self, simd: usize) {
        let slots = &self.slots;
        self.simds[simd].order.sort_by_key(|&s| (Reverse(slots[s].priority), slots[s].age));
    }

    /// Finds when a wave may try its next instruction, whose turn would be at `base`.
    fn prepare(&mut self, slot: usize, base: u64) {
        let it = &mut self.slots[slot];
        let numbers = &self.numbers;
        let pc = it.wave.pc;
        let wave = it.age as u32;
        let mut delay = Delay { record: &mut self.record, wave, step: pc as u32, at: base, last: None };
        if let Some(cost) = self.costs.get(pc) {
            for line in cost.lines {
                if it.line != line {
                    it.line = line;
                    if self.code.touch(line) {
                        delay.until(self.to_code.wait(line, delay.at), Stall::NoInstruction);
                    } else {
                        delay.record.used.mark(DeviceParameter::ColdLine);
                        delay.until(delay.at + numbers.cold_line, Stall::NoInstruction);
                        self.to_code.note(line, delay.at);
                    }
                }
            }
            if it.misaligned >= numbers.misaligned_run {
                it.misaligned = 0;
                // One buffer of a SIMD is filled per turn.
                let simd = &mut self.simds[it.simd];
                simd.refill = delay.at.max(simd.refill) + TURN;
                delay.until(simd.refill, Stall::NoInstruction);
            }
            if !it.pending.is_empty() {
                it.pending.retain(|p| p.readable > delay.at);
                let until = it.pending.iter().map(|p| dependency(p, cost)).max().unwrap_or(0);
                delay.until(until, Stall::AluDependency);
            }
            if let CostKind::Wait { vm, lgkm } = cost.instruction.kind {
                let until = it.vm.reaches(vm, delay.at).max(it.lgkm.reaches(lgkm, delay.at));
                delay.until(until, Stall::Waitcnt);
            }
            if cost.instruction.vm > 0 {
                let until = it.vm.reaches(InOrder::MOST - u32::from(cost.instruction.vm), delay.at);
                delay.until(until, Stall::Other);
            }
            if cost.instruction.lgkm > 0 {
                let until = it.lgkm.reaches(AnyOrder::MOST - u32::from(cost.instruction.lgkm), delay.at);
                delay.until(until, Stall::Other);
            }
        }
        let aligned = delay.at.next_multiple_of(TURN);
        delay.until(aligned, delay.last.unwrap_or(Stall::NoInstruction));
        it.ready = delay.at;
        self.next[it.simd] = self.next[it.simd].min(it.ready);
    }

    /// The turns of all SIMDs at `clk`.
    fn turn(&mut self, clk: u64) -> Result<(), StoppedWave> {
        let mut turns: [Option<Turn>; SIMDS] = [None; SIMDS];
        for (turn, next) in turns.iter_mut().zip(&mut self.next) {
            // Waves that issue, and those that they release, set themselves when they may issue again.
            if *next == clk {
                (*turn, *next) = (Some(Turn::default()), NEVER);
            }
        }
        loop {
            let mut best: Option<((Reverse<u8>, u64), usize, usize)> = None;
            for (simd, turn) in turns.iter_mut().enumerate() {
                let Some(turn) = turn else { continue };
                while let Some(&slot) = self.simds[simd].order.get(turn.place) {
                    let it = &self.slots[slot];
                    if it.ready <= clk {
                        let rank = (Reverse(it.priority), it.age);
                        if best.is_none_or(|(least, ..)| rank < least) {
                            best = Some((rank, simd, slot));
                        }
                        break;
                    }
                    turn.next = turn.next.min(it.ready);
                    turn.place += 1;
                }
            }
            let Some((_, simd, slot)) = best else { break };
            if let Some(turn) = &mut turns[simd] {
                turn.place += 1;
                self.attempt(slot, simd, clk, turn)?;
            }
        }
        for (simd, turn) in turns.iter().enumerate() {
            let Some(turn) = turn else { continue };
            if turn.sorts {
                self.sort(simd);
            }
            self.next[simd] = self.next[simd].min(turn.next);
        }
        Ok(())
    }

    /// Issues the next instruction of a wave that is ready, if nothing is in its way.
    fn attempt(&mut self, slot: usize, simd: usize, clk: u64, turn: &mut Turn) -> Result<(), StoppedWave> {
        let pc = self.slots[slot].wave.pc;
        let Some(cost) = self.costs.get(pc) else {
            // Executing it reports what is wrong.
            return self.execute(slot);
        };
        if cost.instruction.class != IssueClass::Internal {
            let class = cost.instruction.class as usize;
            let second = turn.pair && matches!(cost.instruction.kind, CostKind::Valu { pairs: true, .. });
            let memory = matches!(cost.instruction.class, IssueClass::Lds | IssueClass::Vector);
            let port_taken = memory && self.numbers.one_memory_port && turn.memory();
            let outranked = memory && self.scales_are_due(simd, clk);
            let blocked = if turn.taken[class] && !second || port_taken || outranked {
                Some((clk + TURN, Stall::NotWon))
            } else if turn.full[class] > clk {
                Some((turn.full[class], Stall::PipeStalled))
            } else {
                let until = self.blocked_until(slot, simd, cost, clk, second);
                let until = until.map(|until| until.max(clk + 1).next_multiple_of(TURN));
                if let (Some(until), IssueClass::Lds | IssueClass::Vector) = (until, cost.instruction.class) {
                    turn.full[class] = until;
                }
                until.map(|until| (until, Stall::PipeStalled))
            };
            if let Some((until, stall)) = blocked {
                let it = &mut self.slots[slot];
                let wave = it.age as u32;
                self.record.wait(Wait { wave, step: pc as u32, start: clk, end: until, stall });
                it.ready = until;
                turn.next = turn.next.min(until);
                return Ok(());
            }
            if class == IssueClass::Valu as usize {
                turn.pair =
                    !turn.taken[class] && matches!(cost.instruction.kind, CostKind::Valu { pairs: true, .. });
                if second {
                    self.record.used.mark(DeviceParameter::SecondValu);
                }
            }
            turn.taken[class] = true;
        }
        turn.sorts |= matches!(cost.instruction.kind, CostKind::Priority { .. });
        let wave = self.slots[slot].age as u32;
        self.issue(IssuedStep { slot, simd, wave, step: pc, cost, clk })?;
        if matches!(cost.instruction.kind, CostKind::Matrix { .. }) && turn.memory() {
            // That one counts among those beside the matrix instruction.
            self.simds[simd].memory += TURN;
        }
        if self.slots[slot].wave.progress == Progress::Ended {
            turn.place -= 1;
        }
        Ok(())
    }

    /// True if a scaled matrix instruction is ready to issue on a SIMD: fetching its scales goes before
    /// memory instructions of other waves (GT, gemm/inter_wave/a4w4/v1_combineBsc).
    fn scales_are_due(&self, simd: usize, clk: u64) -> bool {
        let unit = &self.simds[simd];
        self.numbers.scaled
            && unit.valu.max(unit.matrix) <= clk
            && unit.order.iter().any(|&slot| {
                let it = &self.slots[slot];
                let cost = self.costs.get(it.wave.pc).map(|cost| &cost.instruction.kind);
                it.ready <= clk && matches!(cost, Some(CostKind::Matrix { scaled: true, .. }))
            })
    }

    /// When the unit that an instruction needs accepts it, if it does not at `clk`.
    fn blocked_until(
        &mut self,
        slot: usize,
        simd: usize,
        cost: &StepCost,
        clk: u64,
        second: bool,
    ) -> Option<u64> {
        let unit = &self.simds[simd];
        let until = match cost.instruction.kind {
            CostKind::Valu { .. } if second => unit.beside,
            CostKind::Valu { overlaps: true, .. } => unit.valu.max(unit.beside),
            CostKind::Valu { .. } => {
                let own = unit.owner == self.slots[slot].age && unit.matrix > 0;
                let turnaround = if own { self.numbers.packed_after_matrix } else { 0 };
                unit.valu.max(unit.matrix + turnaround)
            }
            CostKind::Matrix { .. } => unit.valu.max(unit.matrix),
            CostKind::Lds { .. } => unit.memory.max(self.lds.ports.full_until(clk, simd).unwrap_or(0)),
            CostKind::Vector { kind, .. } if kind != VectorKind::Control => {
                unit.memory.max(self.vector.full_until(clk).unwrap_or(0))
            }
            _ => return None,
        };
        (until > clk).then_some(until)
    }

    /// Executes the instruction that a wave stands at.
    fn execute(&mut self, slot: usize) -> Result<(), StoppedWave> {
        let it = &mut self.slots[slot];
        let group = &mut self.groups[it.group];
        let at = it.wave.pc;
        let mut context = ExecutionContext {
            program: self.walk.launch.program,
            memory: self.walk.launch.memory,
            lds: &mut group.lds,
            caches: &mut it.caches,
            budget: self.walk.launch.config.instruction_budget,
        };
        let mut result = self.walk.step(&mut it.wave, &mut context);
        if result.is_ok() && at >= self.costs.len() {
            result = Err(Stopped::wave(FaultKind::ProgramCounter { target: at as i64 }));
        }
        self.unwatched += 1;
        if result.is_ok() {
            let class = self.walk.launch.program.steps.get(at).map(|step| step.class);
            if class.is_none_or(has_effect) {
                it.rounds.reset();
            } else if it.wave.pc <= at && it.rounds.back(&it.wave) {
                result = Err(Stopped::wave(FaultKind::NoProgress));
            } else if self.unwatched >= WATCH {
                self.unwatched = 0;
                result = self.walk.launch.check_time();
            }
        }
        result.map_err(|stopped| StoppedWave {
            workgroup: group.workgroup,
            wave: it.index,
            step: at,
            stopped,
        })
    }

    /// Issues an instruction: executes it, and accounts for what it occupies.
    fn issue(&mut self, issued: IssuedStep<'a>) -> Result<(), StoppedWave> {
        let IssuedStep { slot, step, cost, clk, .. } = issued;
        let held = match cost.instruction.kind {
            CostKind::Lds { .. } | CostKind::Vector { .. } | CostKind::ScalarMemory => self.touch(&issued)?,
            _ => clk,
        };
        self.execute(slot)?;
        let it = &mut self.slots[slot];
        it.issued += 1;
        self.record.counters[step].issued += 1;
        if let Some(place) = cost.clock_to {
            it.wave.set_scalar_wide(place, clk);
        }
        // Only an unbroken run of them needs more code than the buffer is filled with.
        it.misaligned = if cost.misaligned { it.misaligned + 1 } else { 0 };
        let end = clk + TURN * cost.instruction.turns;
        self.record.event(IssueEvent { wave: issued.wave, step: step as u32, issued: clk, end });
        let next = self.occupy(&issued, held.max(end));
        let ends = cost.instruction.kind == CostKind::End;
        if cost.instruction.kind == CostKind::Barrier {
            self.wait_at_barrier(slot, step, clk);
        } else if ends || self.slots[slot].wave.progress == Progress::Ended {
            self.end(slot, step, next);
        } else {
            self.prepare(slot, next);
        }
        Ok(())
    }

    /// Accounts for the units that an instruction occupies, and for what makes its wave wait. Returns when
    /// the wave can go on; memory holds it until `held`.
    fn occupy(&mut self, issued: &IssuedStep<'_>, held: u64) -> u64 {
        let IssuedStep { slot, simd, cost, clk, .. } = *issued;
        let next = clk + TURN * cost.instruction.turns;
        let mut waits_until = |until: u64, stall: Stall| {
            self.record.wait(issued.wait(next, until, stall));
            until
        };
        match cost.instruction.kind {
            CostKind::Valu { clk: length, .. } => {
                let exec = self.slots[slot].wave.exec();
                let lanes = if cost.instruction.operations == 0 { 0 } else { u64::from(exec.count_ones()) };
                let unit = &mut self.simds[simd];
                unit.valu = unit.valu.max(clk + length);
                self.record.busy(issued.busy(Pipe::Valu, simd, clk..clk + length));
                self.record.operations += cost.instruction.operations * lanes;
            }
            CostKind::Matrix { .. } => self.occupy_matrix_unit(issued),
            CostKind::Scalar | CostKind::ScalarMemory => {
                self.record.busy(issued.busy_for_a_clk(Pipe::Scalar));
            }
            CostKind::Lds { .. } | CostKind::Vector { .. } => return waits_until(held, Stall::PipeStalled),
            CostKind::Nop { clk: length } => return waits_until(next + length, Stall::Internal),
            CostKind::Sleep { clk: length } => return waits_until(next + length, Stall::Other),
            CostKind::Branch => return self.branch(issued, next),
            CostKind::End => self.record.busy(issued.busy_for_a_clk(Pipe::Branch)),
            CostKind::Priority { level } => self.slots[slot].priority = level,
            CostKind::Wait { .. } | CostKind::Barrier => {}
        }
        next
    }

    fn occupy_matrix_unit(&mut self, issued: &IssuedStep<'_>) {
        let IssuedStep { slot, simd, cost, clk, .. } = *issued;
        let CostKind::Matrix { occupancy, blocks, memory, result, accumulate, .. } = cost.instruction.kind
        else {
            return;
        };
        let it = &mut self.slots[slot];
        let unit = &mut self.simds[simd];
        unit.valu = unit.valu.max(clk + TURN * cost.instruction.turns);
        unit.beside = clk + blocks;
        unit.matrix = clk + occupancy;
        unit.memory = clk + memory;
        unit.owner = it.age;
        self.record.busy(issued.busy(Pipe::Matrix, simd, clk..clk + occupancy));
        self.record.operations += cost.instruction.operations;
        if let Some(rows) = cost.result {
            it.pending.retain(|p| p.rows != rows);
            it.pending.push(PendingResult {
                rows,
                opcode: cost.opcode,
                readable: clk + result,
                accumulable: clk + accumulate,
            });
        }
    }

    /// Accounts for a branch. Returns when its wave can go on; without being taken it is that at `next`.
    fn branch(&mut self, issued: &IssuedStep<'_>, next: u64) -> u64 {
        let IssuedStep { slot, step, clk, .. } = *issued;
        self.record.busy(issued.busy_for_a_clk(Pipe::Branch));
        let it = &mut self.slots[slot];
        if it.wave.pc == step + 1 {
            self.record.branch(step, LoopBranch::Leaves, clk, &mut it.loops);
            self.steady.leaves(step);
            return next;
        }
        self.record.used.mark(DeviceParameter::TakenBranch);
        let there = next.max(clk + self.numbers.taken_branch);
        self.record.wait(issued.wait(next, there, Stall::NoInstruction));
        it.line = u64::MAX;
        if it.wave.pc <= step {
            self.record.branch(step, LoopBranch::Back, clk, &mut it.loops);
            if self.leaves_out {
                self.leave_out(slot, step, clk);
            }
        }
        there
    }

    /// A wave has gone back at a step: if the loop has a steady pace, most of its trips are left out.
    fn leave_out(&mut self, slot: usize, step: usize, clk: u64) {
        let unit = LoopingUnit {
            walk: self.walk,
            body: self.branch_target(step)..=step,
            simds: &self.simds,
            slots: &mut self.slots,
            record: &mut self.record,
            traffic: &mut self.hierarchy.traffic,
            is_full: self.launches.is_empty(),
        };
        self.steady.goes_back(unit.slots[slot].age, clk, unit);
    }

    /// An instruction is about to access memory. Returns until when it holds its wave.
    fn touch(&mut self, issued: &IssuedStep<'_>) -> Result<u64, StoppedWave> {
        let IssuedStep { slot, step, cost, clk, .. } = *issued;
        let it = &mut self.slots[slot];
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        footprints(&it.wave, &self.walk.launch.program.steps[step], &mut found).map_err(|stopped| {
            StoppedWave { workgroup: self.groups[it.group].workgroup, wave: it.index, step, stopped }
        })?;
        for f in found.iter_mut().filter(|f| f.space == MemorySpace::Device) {
            self.places.apply(f);
        }
        let mut held = clk;
        match cost.instruction.kind {
            CostKind::ScalarMemory => {
                let range = found.first().map(|f| (f.address[0], u64::from(f.bytes[0])));
                let done = self.hierarchy.scalar(clk as f64, range);
                for _ in 0..cost.instruction.lgkm {
                    it.lgkm.push(whole(done));
                }
            }
            CostKind::Lds { kind, dwords } => held = self.touch_lds(issued, (kind, dwords), &found),
            CostKind::Vector { kind, bypasses_l1, .. } => {
                self.touch_vector_memory(issued, (kind, bypasses_l1), &mut found);
            }
            _ => {}
        }
        self.found = found;
        Ok(held)
    }

    /// An LDS instruction is about to access its banks. Returns until when it holds its wave.
    fn touch_lds(
        &mut self,
        issued: &IssuedStep<'_>,
        (kind, dwords): (LdsKind, u32),
        found: &[Footprint],
    ) -> u64 {
        let IssuedStep { slot, simd, step, clk, .. } = *issued;
        let banked = if kind == LdsKind::Permute { &[] } else { found };
        let (access, conflicts) = self.lds.access(clk, simd, (kind, dwords), step, banked);
        self.slots[slot].lgkm.push(whole(access.done));
        let counters = &mut self.record.counters[step];
        counters.conflicts += u64::from(conflicts);
        match kind {
            LdsKind::Write => counters.demand.lds_writes += access.bus,
            LdsKind::Read | LdsKind::Atomic | LdsKind::Permute => counters.demand.lds_reads += access.bus,
        }
        counters.demand.banks += access.banks;
        // A bus for each direction.
        let unit = 2 * LDS_PAIR[simd] + usize::from(kind == LdsKind::Write);
        self.record.busy(issued.busy(Pipe::Lds, unit, whole(access.start)..whole(access.end)));
        self.record.busy_clk[Pipe::LdsBanks as usize] += access.banks;
        if let Some(other) = access.shares_bus_with {
            self.hold_writer(other, whole(access.end));
        }
        if kind == LdsKind::Write {
            self.simds[simd].writer = slot;
        }
        whole(access.held)
    }

    /// The wave that a SIMD writes to LDS for goes on then at the earliest.
    fn hold_writer(&mut self, simd: usize, until: u64) {
        let it = &mut self.slots[self.simds[simd].writer];
        let until = until.next_multiple_of(TURN);
        if it.ready < until {
            let (wave, step, start) = (it.age as u32, it.wave.pc as u32, it.ready);
            self.record.wait(Wait { wave, step, start, end: until, stall: Stall::PipeStalled });
            it.ready = until;
        }
    }

    /// An instruction is about to go through the path to vector memory, or through that and LDS.
    fn touch_vector_memory(
        &mut self,
        issued: &IssuedStep<'_>,
        (kind, bypasses_l1): (VectorKind, bool),
        found: &mut Vec<Footprint>,
    ) {
        let IssuedStep { slot, simd, step, cost, clk, .. } = *issued;
        let it = &mut self.slots[slot];
        let counters = &mut self.record.counters[step];
        let mut lds_done = None;
        if let Some(index) = found.iter().position(|f| f.space == MemorySpace::Lds)
            && kind != VectorKind::LoadToLds
        {
            let own = &found[index..=index];
            let (access, _) = self.lds.access(clk, simd, (LdsKind::Read, 1), step, own);
            lds_done = Some(access.done);
        }
        found.retain(|f| f.space != MemorySpace::Lds);
        for f in found.iter_mut().filter(|f| f.space == MemorySpace::Private) {
            privatise(f, it.age);
        }
        if kind == VectorKind::Control {
            if cost.instruction.vm > 0 {
                it.vm.push(clk + TURN);
            }
            return;
        }
        let before = self.hierarchy.traffic;
        let access = self.vector.access(clk, (kind, bypasses_l1), step, found, &mut self.hierarchy);
        counters.lines += u64::from(access.lines);
        counters.demand.vector += access.service;
        counters.demand.traffic.join(&self.hierarchy.traffic.since(&before));
        if access.scattered {
            self.record.used.mark(DeviceParameter::Gather);
        }
        if kind == VectorKind::LoadToLds {
            self.lds.ports.arrival(access.done, access.bytes);
            counters.demand.to_lds += u64::from(access.bytes);
        }
        let done = whole(access.done.max(lds_done.unwrap_or(0.0)));
        if cost.instruction.vm > 0 {
            it.vm.push(done);
        }
        if cost.instruction.lgkm > 0 {
            it.lgkm.push(lds_done.map_or(done, whole));
        }
        self.record.busy(issued.busy(Pipe::Vector, 0, whole(access.start)..whole(access.end)));
    }

    fn wait_at_barrier(&mut self, slot: usize, pc: usize, clk: u64) {
        let it = &mut self.slots[slot];
        it.barrier = Some(pc);
        it.since = clk + TURN;
        it.ready = NEVER;
        let group = it.group;
        self.groups[group].waiting += 1;
        self.open_barrier(group, clk);
    }

    /// Lets the waves of a workgroup go on if all remaining ones wait.
    fn open_barrier(&mut self, group: usize, clk: u64) {
        let it = &mut self.groups[group];
        if it.waiting == 0 || it.waiting < it.alive {
            return;
        }
        it.waiting = 0;
        // The barrier of a workgroup of one wave does nothing.
        let release = if self.walk.launch.waves > 1 { self.numbers.barrier_release } else { TURN };
        for index in 0..self.groups[group].slots.len() {
            let slot = self.groups[group].slots[index];
            let it = &mut self.slots[slot];
            if let Some(pc) = it.barrier.take() {
                let next = (clk + release).max(it.since);
                let (wave, start) = (it.age as u32, it.since);
                it.wave.progress = Progress::Running;
                self.record.wait(Wait { wave, step: pc as u32, start, end: next, stall: Stall::Barrier });
                self.prepare(slot, next);
            }
        }
    }

    /// A wave has issued its last instruction. The hardware waits for all memory before it executes that
    /// (CDNA3 ISA guide, S_ENDPGM).
    fn end(&mut self, slot: usize, pc: usize, issued: u64) {
        let it = &mut self.slots[slot];
        let clk = it.vm.drained(it.lgkm.drained(issued));
        let (wave, stall) = (it.age as u32, Stall::Waitcnt);
        self.record.wait(Wait { wave, step: pc as u32, start: issued, end: clk, stall });
        it.ready = NEVER;
        let group = it.group;
        self.waves.push(WaveTime {
            workgroup: self.groups[group].workgroup,
            wave: it.index as u32,
            simd: it.simd as u32,
            start: it.started,
            end: clk + self.steady.skipped,
            instructions: it.issued,
        });
        self.simds[it.simd].order.retain(|s| *s != slot);
        let ended = &mut self.groups[group];
        ended.alive -= 1;
        ended.ended = ended.ended.max(clk);
        if ended.alive > 0 {
            self.open_barrier(group, clk);
            return;
        }
        self.ends.push(ended.ended + self.steady.skipped);
        self.steady.forget();
        self.walk.launch.workgroup_ended();
        self.launches.push(Reverse(ended.ended + self.numbers.turnaround));
        self.record.used.mark(DeviceParameter::Turnaround);
        self.free_slots.append(&mut ended.slots);
        self.free_groups.push(group);
    }
}
