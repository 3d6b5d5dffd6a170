//! One workgroup under check: its waves go on in the order of its plan, and every instruction is judged
//! before it executes.

use std::sync::atomic::Ordering::Relaxed;

use crate::codegen::isa::{BranchCondition, Counter, Generation, Meaning, Operand};
use crate::codegen::rules::{VCC, erratum};

use super::super::error::{FaultKind, Stopped, StoppedWave};
use super::super::execute::{self, GPR_INDEX, Lds};
use super::super::register_bits::{FIRST_VECTOR, insert, meet};
use super::super::rounds::has_effect;
use super::super::wave::Progress;
use super::access::Issue;
use super::checker::{
    CLOSE, CheckWorker, CheckedGroup, LaunchChecker, Runner, SEEN, STORES, WATCH, WaveStep, WaveTurn,
    returned, uninitialised,
};
use super::definedness::{Executed, propagate};
use super::facts::{InstructionFacts, Treatment, name};
use super::finding::{FindingKind, Touch};
use super::found::Raw;
use super::hazards::straight;
use super::model::SyncScope;
use super::order::{Clock, KnownOrder};

/// What looking whether a barrier of the grid has opened counts in instructions of a turn.
const TURN_OF_WAITING: u32 = 128;

/// How a wave goes on after an instruction.
enum StepEnd {
    /// At the next instruction.
    Next,
    /// At the place to which a branch has taken it.
    Jumps,
    /// Not in this turn: it has ended, or waits.
    Leaves,
}

impl Runner {
    /// It will come to its instruction again, which does not count before that.
    fn comes_back(&mut self) -> StepEnd {
        self.w.executed -= 1;
        StepEnd::Leaves
    }
}

impl LaunchChecker<'_> {
    /// The waves of a workgroup that can go on.
    fn ready(&self, group: &mut CheckedGroup) -> u64 {
        let running = |r: &Runner| r.w.progress == Progress::Running;
        let runners = group.runners.iter().enumerate();
        let mut ready = runners.fold(0u64, |mask, (i, r)| mask | u64::from(running(r)) << i);
        if group.parked > 0 {
            for (index, runner) in group.runners.iter_mut().enumerate() {
                if !runner.polling.is_parked() {
                    continue;
                }
                match runner.polling.waits_still(self.launch.memory, &group.lds) {
                    true => ready &= !(1 << index),
                    false => group.parked -= 1,
                }
            }
        }
        ready
    }

    /// True if there is something to do for a workgroup: not if those of its waves that could go on are left
    /// alone.
    pub(super) fn can_go_on(&self, group: &mut CheckedGroup) -> bool {
        group.parked == 0 || self.ready(group) != 0
    }

    /// Lets a workgroup go on for about this many instructions, or until all of its waves are left alone;
    /// true if it has ended.
    pub(super) fn advance(
        &self,
        group: &mut CheckedGroup,
        worker: &mut CheckWorker,
        instructions: u32,
    ) -> Result<bool, StoppedWave> {
        let mut left = instructions;
        while left > 0 {
            let ready = self.ready(group);
            if ready == 0 {
                if group.parked > 0 {
                    return Ok(false);
                }
                if !self.open_barrier(group, worker)? {
                    self.launch.workgroup_ended();
                    self.ended(group, worker);
                    return Ok(true);
                }
                continue;
            }
            let (wave, length) = group.plan.next(ready);
            let length = if ready.is_power_of_two() { length.max(256) } else { length };
            let before = group.runners[wave].w.executed;
            let result = self.run(group, worker, wave, length);
            for (raw, other, number) in worker.races.drain(..) {
                worker.found.add(Raw { other: group.runners[other].flight.step_of(number), ..raw });
            }
            if let Err(stopped) = result.or_else(|stopped| self.unsupported(group, worker, wave, stopped)) {
                let step = group.runners[wave].w.pc;
                return Err(StoppedWave { workgroup: group.workgroup, wave, step, stopped });
            }
            let executed = (group.runners[wave].w.executed - before).max(1);
            worker.unwatched += executed;
            if worker.unwatched >= WATCH {
                worker.unwatched = 0;
                self.watch_clock(group, worker, wave);
            }
            if self.halted.load(Relaxed) {
                self.ended(group, worker);
                return Ok(true);
            }
            // Who waits for other workgroups need not look often whether they are there.
            let waits = group.runners[wave].w.grid_barrier.is_some();
            left = left.saturating_sub(if waits { TURN_OF_WAITING } else { executed as u32 });
        }
        Ok(false)
    }

    /// All workgroups that have not ended wait for others.
    #[cold]
    pub(super) fn never_meets(&self, group: &CheckedGroup, worker: &mut CheckWorker) {
        let waits = |runner: &Runner| runner.w.grid_barrier.is_some();
        let Some(wave) = group.runners.iter().position(waits) else { return };
        let step = group.runners[wave].w.pc as u32;
        let who = WaveStep { workgroup: group.workgroup, wave, step };
        worker.found.add(who.raw(FindingKind::UnmetBarrier, 0, 0));
        self.halted.store(true, Relaxed);
    }

    /// A workgroup has ended.
    fn ended(&self, group: &mut CheckedGroup, worker: &mut CheckWorker) {
        for late in group.shadow.unsettled() {
            let other = group.runners[late.conflict.other_wave].flight.step_of(late.conflict.number);
            worker.found.add(Raw { other, ..self.late_race(group.workgroup, &late) });
        }
        worker.instructions += group.executed();
        if self.table.lds_hands_over {
            worker.handover.forget_lds(self.member(group.workgroup, 0).first_wave);
        }
    }

    /// Stops everything if time is up.
    fn watch_clock(&self, group: &CheckedGroup, worker: &mut CheckWorker, wave: usize) {
        let Err(Stopped { kind: FaultKind::TimedOut(overrun), .. }) = self.launch.check_time() else {
            return;
        };
        if !self.halted.swap(true, Relaxed) {
            let step = group.runners[wave].w.pc as u32;
            let kind = FindingKind::TimedOut(overrun);
            worker.found.add(WaveStep { workgroup: group.workgroup, wave, step }.raw(kind, 0, 0));
        }
    }

    /// Ends a wave at an instruction that the simulator does not execute, so that earlier findings are kept.
    #[cold]
    fn unsupported(
        &self,
        group: &mut CheckedGroup,
        worker: &mut CheckWorker,
        wave: usize,
        stopped: Stopped,
    ) -> Result<(), Stopped> {
        let FaultKind::Unsupported(what) = stopped.kind else { return Err(stopped) };
        let runner = &mut group.runners[wave];
        let who = WaveStep { workgroup: group.workgroup, wave, step: runner.w.pc as u32 };
        worker.found.add(who.raw(FindingKind::Unsupported { what }, 0, 0));
        self.stop(who, runner, &mut group.lds, worker, &mut group.known)
    }

    /// Lets all waves go on that wait at the barrier; false if none does. Waves that have ended are not
    /// waited for (CDNA3 ISA guide, `S_BARRIER`).
    fn open_barrier(&self, group: &mut CheckedGroup, worker: &mut CheckWorker) -> Result<bool, StoppedWave> {
        let waits = |r: &Runner| r.w.progress == Progress::AtBarrier;
        if !group.runners.iter().any(waits) {
            return Ok(false);
        }
        let brought = |(wave, runner): (usize, &Runner)| {
            let back = group.known.of(wave, wave).back;
            if waits(runner) { Clock::of(&runner.flight, back) } else { Clock::ended(back) }
        };
        let brought: Vec<Clock> = group.runners.iter().enumerate().map(brought).collect();
        group.known.barrier(&brought);
        for (wave, runner) in group.runners.iter_mut().enumerate() {
            // Only accesses through one first-level cache are in order without a wait.
            if !self.model.is_split {
                let mut context = self.context(&mut group.lds, &mut worker.caches);
                let performed = runner.flight.perform_device(&self.table, &mut runner.w, &mut context);
                performed.map_err(|stopped| StoppedWave {
                    workgroup: group.workgroup,
                    wave,
                    step: runner.w.pc,
                    stopped,
                })?;
                let who = WaveStep { workgroup: group.workgroup, wave, step: runner.w.pc as u32 };
                self.follow(who, runner, worker, &mut group.known);
            }
            if waits(runner) {
                runner.w.progress = Progress::Running;
            }
        }
        Ok(true)
    }

    /// Executes up to `length` instructions of a wave.
    fn run(
        &self,
        group: &mut CheckedGroup,
        worker: &mut CheckWorker,
        wave: usize,
        length: u32,
    ) -> Result<(), Stopped> {
        let workgroup = group.workgroup;
        let due = group.plan.due();
        let CheckedGroup { runners, lds, shadow, known, plan, parked, .. } = group;
        let turn = &mut WaveTurn { runner: &mut runners[wave], worker, lds, shadow, known, plan, parked };
        if due > 0 {
            let who = WaveStep { workgroup, wave, step: turn.runner.w.pc as u32 };
            self.perform_waiting(due, turn, who)?;
        }
        for _ in 0..length {
            let who = WaveStep { workgroup, wave, step: turn.runner.w.pc as u32 };
            match self.step(turn, who)? {
                StepEnd::Next => {
                    turn.runner.w.pc = who.step as usize + 1;
                    if turn.runner.w.pc == self.end {
                        return self.stop_with(FindingKind::PastEnd, turn, who);
                    }
                }
                StepEnd::Jumps => {}
                StepEnd::Leaves => return Ok(()),
            }
            if turn.runner.w.progress != Progress::Running {
                break;
            }
        }
        Ok(())
    }

    /// Judges and executes the instruction that a wave stands at.
    #[inline(always)]
    fn step(&self, turn: &mut WaveTurn<'_>, who: WaveStep) -> Result<StepEnd, Stopped> {
        let pc = who.step as usize;
        let budget = self.launch.config.instruction_budget;
        let (Some(step), Some(facts)) = (self.launch.program.steps.get(pc), self.table.facts.get(pc)) else {
            let who = WaveStep { step: pc.saturating_sub(1) as u32, ..who };
            return self.leave_with(FindingKind::PastEnd, turn, who);
        };
        if turn.runner.w.executed >= budget {
            self.halted.store(true, Relaxed);
            return self.leave_with(FindingKind::Endless { budget }, turn, who);
        }
        turn.runner.w.executed += 1;
        let undefined = self.judge_step(turn.runner, turn.worker, facts, who);
        let issue = Issue { who, facts, step, undefined };
        match facts.kind {
            Treatment::Plain => return self.plain(&issue, turn),
            Treatment::Memory => {
                if facts.sync.polls.is_some()
                    && !turn.runner.flight.waits()
                    && turn.runner.polling.comes_to_wait(&turn.runner.w, self.launch.memory, turn.lds)
                {
                    *turn.parked += 1;
                    return Ok(turn.runner.comes_back());
                }
                turn.runner.rounds.reset();
                self.memory(&issue, turn)?;
            }
            Treatment::Wait(counts) => {
                let mut context = self.context(turn.lds, &mut turn.worker.caches);
                turn.runner.flight.wait(counts, &self.table, &mut turn.runner.w, &mut context)?;
                self.follow(who, turn.runner, turn.worker, turn.known);
            }
            Treatment::Barrier => self.barrier(turn.runner, turn.worker, who),
            Treatment::GridBarrier => return self.grid_barrier(&issue, turn),
            Treatment::End => {
                self.stop(who, turn.runner, turn.lds, turn.worker, turn.known)?;
                return Ok(StepEnd::Leaves);
            }
            Treatment::Undecodable => return self.leave_with(FindingKind::IllegalInstruction, turn, who),
        }
        Ok(StepEnd::Next)
    }

    /// An instruction that accesses no memory and does not wait.
    #[inline(always)]
    fn plain(&self, issue: &Issue<'_>, turn: &mut WaveTurn<'_>) -> Result<StepEnd, Stopped> {
        let Issue { who, facts, step, undefined } = *issue;
        let WaveTurn { runner, worker, lds, known, .. } = turn;
        if self.table.indexes && runner.w.mode & GPR_INDEX != 0 {
            // It is not followed which registers are meant.
            runner.registers.define_vectors();
        }
        if undefined {
            let mut bad = std::mem::take(&mut worker.undefined);
            let executed = Executed { facts, step, number: who.step, arch: self.table.arch };
            propagate(executed, &runner.w, &mut runner.registers, &mut bad);
            bad.drain(..).for_each(|bad| uninitialised(worker, who, &bad));
            worker.undefined = bad;
        }
        if has_effect(step.class) {
            runner.rounds.reset();
        }
        if facts.sync.invalidates > SyncScope::Wave {
            known.forget(who.wave, facts.sync.invalidates);
            if facts.counter != Counter::None {
                runner.flight.issue(who.step, facts, runner.w.exec());
            }
        }
        let mut context = self.context(lds, &mut worker.caches);
        match execute::one(&mut runner.w, &mut context, step) {
            Ok(Some(to)) => self.jump(turn, who, to),
            Ok(None) => Ok(StepEnd::Next),
            Err(stopped) => {
                let kind = match stopped.kind {
                    FaultKind::ProgramCounter { .. } => FindingKind::IllegalInstruction,
                    FaultKind::Trap(number) => FindingKind::Trap { number },
                    _ => return Err(stopped),
                };
                worker.found.add(who.raw(kind, 0, runner.w.exec()));
                self.stop(who, runner, lds, worker, known)?;
                Ok(StepEnd::Leaves)
            }
        }
    }

    /// A wave goes on at the step `to`.
    #[inline(always)]
    fn jump(&self, turn: &mut WaveTurn<'_>, who: WaveStep, to: usize) -> Result<StepEnd, Stopped> {
        let runner = &mut *turn.runner;
        runner.w.pc = to;
        runner.window.jumped(&self.table, &mut turn.worker.answers, who.step, to as u32);
        if to <= who.step as usize && runner.rounds.back(&runner.w) {
            if !runner.flight.waits() {
                self.halted.store(true, Relaxed);
                return self.leave_with(FindingKind::NoProgress, turn, who);
            }
            // Operations in flight may still change a register.
            self.perform_waiting(usize::MAX, turn, who)?;
            turn.runner.rounds.reset();
        }
        Ok(StepEnd::Jumps)
    }

    /// A wave comes to the barrier of the grid, or to it again.
    fn grid_barrier(&self, issue: &Issue<'_>, turn: &mut WaveTurn<'_>) -> Result<StepEnd, Stopped> {
        let Issue { who, facts, step, .. } = *issue;
        let WaveTurn { runner, worker, lds, known, .. } = turn;
        runner.rounds.reset();
        runner.polling.reset();
        let member = self.member(who.workgroup, who.wave);
        let arrives = runner.w.grid_barrier.is_none();
        if arrives {
            worker.handover.arrive(&runner.flight, known, member);
        }
        let mut context = self.context(lds, &mut worker.caches);
        if execute::one(&mut runner.w, &mut context, step)?.is_some() {
            return Ok(runner.comes_back());
        }
        if arrives {
            worker.handover.open();
        }
        worker.handover.pass(known, member);
        runner.flight.issue(who.step, facts, runner.w.exec());
        Ok(StepEnd::Next)
    }

    /// Lets up to `count` operations that a wave waits for take effect.
    fn perform_waiting(&self, count: usize, turn: &mut WaveTurn<'_>, who: WaveStep) -> Result<(), Stopped> {
        let mut context = self.context(turn.lds, &mut turn.worker.caches);
        turn.runner.flight.perform_some(count, &self.table, &mut turn.runner.w, &mut context)?;
        self.follow(who, turn.runner, turn.worker, turn.known);
        Ok(())
    }

    /// Reports why a wave cannot go on, and ends it.
    #[cold]
    fn stop_with(&self, kind: FindingKind, turn: &mut WaveTurn<'_>, who: WaveStep) -> Result<(), Stopped> {
        turn.worker.found.add(who.raw(kind, 0, 0));
        self.stop(who, turn.runner, turn.lds, turn.worker, turn.known)
    }

    /// The same as the end of a step.
    #[cold]
    fn leave_with(
        &self,
        kind: FindingKind,
        turn: &mut WaveTurn<'_>,
        who: WaveStep,
    ) -> Result<StepEnd, Stopped> {
        self.stop_with(kind, turn, who)?;
        Ok(StepEnd::Leaves)
    }

    /// Ends a wave, which waits for everything in flight.
    fn stop(
        &self,
        who: WaveStep,
        runner: &mut Runner,
        lds: &mut Lds,
        worker: &mut CheckWorker,
        known: &mut KnownOrder,
    ) -> Result<(), Stopped> {
        runner.w.progress = Progress::Ended;
        let mut context = self.context(lds, &mut worker.caches);
        runner.flight.finish(&self.table, &mut runner.w, &mut context)?;
        self.follow(who, runner, worker, known);
        Ok(())
    }

    /// Judgements that come before any kind of instruction; true if it uses a register that is not fully
    /// defined.
    #[inline(always)]
    fn judge_step(
        &self,
        runner: &mut Runner,
        worker: &mut CheckWorker,
        facts: &InstructionFacts,
        who: WaveStep,
    ) -> bool {
        let [undefined, busy] = facts.uses.touched.meet(&runner.registers.partial, &runner.flight.busy);
        let visit = self.visits[who.step as usize].load(Relaxed);
        if visit & SEEN == 0 {
            self.first_visit(worker, facts, who);
        }
        if (visit & !STORES != SEEN || !runner.window.is_straight(facts))
            && let Some(close) = runner.window.too_soon(&self.table, &mut worker.answers, who.step)
        {
            let (needed, present) = (close.needed, close.present);
            let kind = match close.is_tolerated() {
                true => FindingKind::ToleratedHazard { kept: needed, asked: close.undisputed, present },
                false => FindingKind::Hazard { needed, present },
            };
            let raw = who.raw(kind, 0, runner.w.exec());
            worker.found.add(Raw { other: Some(close.first), ..raw });
        }
        if busy {
            self.judge_in_flight(runner, worker, facts, who);
        }
        if facts.uses.touches_vcc {
            judge_vccz(runner, worker, facts, who);
        }
        if !facts.apart_from.is_empty() {
            super::replay::judge(facts, runner.window.landed(), worker, who);
        }
        undefined
    }

    /// Judgements that are the same whenever the instruction is executed.
    #[cold]
    fn first_visit(&self, worker: &mut CheckWorker, facts: &InstructionFacts, who: WaveStep) {
        let close = if straight(&self.table, &mut worker.answers, who.step).is_some() { CLOSE } else { 0 };
        self.visits[who.step as usize].fetch_or(SEEN | close, Relaxed);
        // Accumulation VGPRs follow the last VGPR.
        let end = if self.limits[1] > 0 { 256 } else { self.limits[0] };
        if let Some(erratum) = facts.inst.and_then(|inst| erratum(&inst, self.table.arch, end)) {
            let kind = FindingKind::Erratum(erratum);
            worker.found.add(WaveStep { workgroup: 0, wave: 0, ..who }.raw(kind, 0, 0));
        }
        if facts.clears.is_some() {
            let raw = WaveStep { workgroup: 0, wave: 0, ..who }.raw(FindingKind::ClearedHalf, 0, 0);
            worker.found.add(Raw { other: facts.clears, ..raw });
        }
        for (file, first) in [(0, FIRST_VECTOR), (1, 512), (2, 0)] {
            let (end, allocated) = (facts.uses.ends[file], self.limits[file]);
            if end > allocated {
                let register = name(first + end - 1);
                let kind = FindingKind::RegisterBeyondAllocation { register, allocated };
                worker.found.add(WaveStep { workgroup: 0, wave: 0, ..who }.raw(kind, file as u64, 0));
            }
        }
    }

    #[cold]
    fn judge_in_flight(
        &self,
        runner: &Runner,
        worker: &mut CheckWorker,
        facts: &InstructionFacts,
        who: WaveStep,
    ) {
        // Of a vector register an instruction uses the lanes that it is for, unless it moves data between
        // lanes.
        let own = if facts.stays_in_lanes { runner.w.exec() } else { u64::MAX };
        for register in &facts.uses.all {
            let lanes = if register.is_vector() { own } else { u64::MAX };
            for number in register.first..register.end {
                let mut bits = [0; 12];
                insert(&mut bits, number, number + 1);
                if !meet(&bits, &runner.flight.busy) {
                    continue;
                }
                // Results of vector memory may follow each other into a written register; for registers that
                // are read no load may be in flight.
                let order = if register.is_read { None } else { Some(facts.order) };
                let Some(blocking) = runner.flight.blocking(&bits, lanes, &self.table, order) else {
                    continue;
                };
                let touch = if register.is_read { Touch::Read } else { Touch::Overwrite };
                let (counter, at_most) = (blocking.counter, blocking.at_most);
                let kind = FindingKind::MissingWait { register: name(number), touch, counter, at_most };
                let raw = who.raw(kind, number.into(), runner.w.exec());
                worker.found.add(Raw { other: Some(blocking.step), ..raw });
            }
        }
    }

    fn barrier(&self, runner: &mut Runner, worker: &mut CheckWorker, who: WaveStep) {
        runner.rounds.reset();
        runner.polling.reset();
        runner.w.progress = Progress::AtBarrier;
        let back = runner.w.exec() & runner.missing;
        if back != 0 {
            returned(runner, worker, who, back);
        }
        let missing = runner.launched & !runner.w.exec();
        if missing != 0 {
            runner.missing |= missing;
            runner.missing_at = who.step;
        }
        if self.table.arch.generation() < Generation::Cdna2 && !runner.flight.is_empty() {
            worker.found.add(who.raw(FindingKind::WaitBeforeBarrier, 0, 0));
        }
    }
}

/// VCCZ does not follow writes of one half of VCC (LLVM, GCNSubtarget.h, `partialVCCWritesUpdateVCCZ`).
fn judge_vccz(runner: &mut Runner, worker: &mut CheckWorker, facts: &InstructionFacts, who: WaveStep) {
    let Some(inst) = &facts.inst else { return };
    let looks = matches!(
        inst.op.info().meaning,
        Meaning::Branch(BranchCondition::VccZero | BranchCondition::VccNotZero)
    ) || inst.operands.contains(&Operand::VCCZ);
    if looks && runner.stale_vccz {
        worker.found.add(who.raw(FindingKind::StaleVccz, 0, 0));
    }
    let writes = (facts.writes(VCC), facts.writes(VCC + 1));
    runner.stale_vccz = match writes {
        (true, true) => false,
        (false, false) => runner.stale_vccz,
        _ => true,
    };
}
