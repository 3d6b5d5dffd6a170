//! Memory instructions under check: their addresses and data, the shadows that they touch, when they act.

use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use crate::codegen::isa::{Effect, Field, Inst, Meaning, MemoryData as Kind, Unit};
use crate::codegen::rules::EXEC;

use super::super::error::{MemoryAccess, Stopped};
use super::super::execute::{self, Footprint, MemorySpace, footprints, merge_loaded, permuted, swizzled};
use super::super::memory::WrittenBytes;
use super::super::program::Step;
use super::super::register_bits::{FIRST_VECTOR, SCC};
use super::super::wave::{EXEC as EXEC_PAIR, LANES, VectorRow, Wave};
use super::checker::{
    CheckWorker, LaunchChecker, Runner, STORES, WaveStep, WaveTurn, returned, undefined_store, uninitialised,
};
use super::data::StoreData;
use super::definedness::Undefined;
use super::device;
use super::facts::{CompletionOrder, InstructionFacts};
use super::finding::{FindingKind, Memory, Use};
use super::flight::row_of;
use super::found::Raw;
use super::handover::{Member, PendingHandover};
use super::lds::{self, LateConflict, LdsConflict, Meets};
use super::model::SyncScope;
use super::order::{Clock, KnownOrder, Sight};
use super::registers::{RegisterShadow, UndefinedOrigin, Unwritten};
use super::undefined::{UndefinedLoad, UndefinedStore};

/// An instruction about to be issued.
pub(super) struct Issue<'a> {
    pub who: WaveStep,
    pub facts: &'a InstructionFacts,
    pub step: &'a Step,
    /// It uses a register that is not fully defined.
    pub undefined: bool,
}

/// The result of an instruction for its lanes.
#[derive(Default)]
struct AccessOutcome {
    /// Lanes that must not access anything.
    refused: u64,
    /// The undefined part of what it has loaded.
    undefined: UndefinedLoad,
    /// It has something to access, and at least one lane may.
    accesses: bool,
    touches: bool,
    /// The plan delays it.
    defers: bool,
}

/// One access of an instruction.
struct AccessPiece<'a> {
    footprint: &'a Footprint,
    /// Extent of the lanes that were not rejected.
    reach: (u64, u64),
    /// Lanes that were not rejected.
    lanes: u64,
    /// Lanes whose data are undefined.
    data: u64,
    /// The undefined part of what accesses before it have loaded.
    loaded: &'a UndefinedLoad,
    /// Its number among the accesses of the instruction.
    index: usize,
}

impl AccessPiece<'_> {
    /// The undefined part of what it stores.
    fn stores<'a>(
        &'a self,
        facts: &InstructionFacts,
        registers: &'a RegisterShadow,
        step: u32,
    ) -> Option<UndefinedStore<'a>> {
        match self.loaded.is_empty() || self.footprint.access != MemoryAccess::Store {
            true => UndefinedStore::of_registers(facts, self.index, self.data, registers, step),
            false => Some(UndefinedStore::Loaded(self.loaded)),
        }
    }
}

impl LaunchChecker<'_> {
    /// Judges a memory instruction, issues it, and performs it unless it is delayed.
    pub(super) fn memory(&self, issue: &Issue<'_>, turn: &mut WaveTurn<'_>) -> Result<(), Stopped> {
        let Issue { who, facts, step, undefined } = *issue;
        let mut found = std::mem::take(&mut turn.worker.footprints);
        found.clear();
        let known_places = footprints(&turn.runner.w, step, &mut found);
        if turn.runner.polling.is_followed() {
            turn.runner.polling.note(&found, facts);
        }
        let data = match undefined {
            true => self.judge_sources(issue, &found, turn.runner, turn.worker),
            false => 0,
        };
        known_places?;
        // What lanes do that others see makes it matter that they have bypassed a barrier. Without
        // optimisation lanes that have left the kernel are there again for its last instructions.
        let seen = found.iter().filter(|footprint| footprint.space != MemorySpace::Private);
        let back = seen.fold(0, |lanes, footprint| lanes | footprint.lanes) & turn.runner.missing;
        if back != 0 && facts.is_masked {
            returned(turn.runner, turn.worker, who, back);
        }
        // Waves that share a first-level cache need not wait for it before they open a lock in LDS.
        let opens = |f: &Footprint| f.space == MemorySpace::Lds && f.access != MemoryAccess::Load;
        if self.table.lds_hands_over && !self.model.is_split && found.iter().any(opens) {
            let mut context = self.context(turn.lds, &mut turn.worker.caches);
            turn.runner.flight.perform_device(&self.table, &mut turn.runner.w, &mut context)?;
            self.follow(who, turn.runner, turn.worker, turn.known);
        }
        let outcome = self.accesses(issue, &found, data, turn);
        let WaveTurn { runner, worker, known, .. } = turn;
        worker.footprints = found;
        if facts.sync.writes_back && self.table.hands_over {
            let handover = PendingHandover::write_back(&runner.flight, known, who.wave);
            runner.handovers.push(handover);
        }
        self.results(issue, &outcome, runner);
        self.perform(issue, &outcome, turn)?;
        self.follow(who, turn.runner, turn.worker, turn.known);
        Ok(())
    }

    /// Judges the accesses of an instruction, and notes them in the shadows; `data` are the lanes whose data
    /// are undefined.
    fn accesses(
        &self,
        issue: &Issue<'_>,
        found: &[Footprint],
        data: u64,
        turn: &mut WaveTurn<'_>,
    ) -> AccessOutcome {
        let Issue { who, facts, .. } = *issue;
        let WaveTurn { runner, worker, shadow, known, plan, .. } = turn;
        let (accesses, defers) = (!found.is_empty(), plan.defers());
        let mut outcome = AccessOutcome { accesses, defers, ..AccessOutcome::default() };
        // Lanes that one access rejects do not perform the other one either.
        let mut reaches: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        for footprint in found {
            let reach = footprint.extent(footprint.lanes);
            outcome.refused |= self.out_of_bounds(footprint, reach, runner, worker, who);
            reaches.push(reach);
        }
        let mut dword = 0;
        for (index, footprint) in found.iter().enumerate() {
            if footprint.access == MemoryAccess::Store && footprint.space != MemorySpace::Private {
                let visits = &self.visits[who.step as usize];
                if visits.load(Relaxed) & STORES == 0 {
                    visits.fetch_or(STORES, Relaxed);
                }
            }
            let lanes = footprint.lanes & !outcome.refused;
            outcome.touches |= lanes != 0;
            self.leaves_buffer(issue, footprint, lanes, runner, worker);
            // What lanes hold that access nothing is not stored.
            let data = data & lanes;
            let reach = if lanes == footprint.lanes { reaches[index] } else { footprint.extent(lanes) };
            let piece = AccessPiece { footprint, reach, lanes, data, loaded: &outcome.undefined, index };
            let loaded = match footprint.space {
                MemorySpace::Lds => self.lds(issue, &piece, runner, worker, shadow, known),
                MemorySpace::Device => self.device(issue, &piece, runner, worker, known),
                MemorySpace::Private => {
                    let stored = piece.stores(facts, &runner.registers, who.step);
                    runner.scratch.access(footprint, lanes, stored.as_ref(), who.step)
                }
            };
            outcome.undefined.merge(&loaded, dword);
            // Data from several places go to registers one after the other; flat accesses share the
            // registers.
            let has_more = index + 1 < found.len();
            if has_more && facts.order != CompletionOrder::Flat && footprint.access != MemoryAccess::Store {
                dword += usize::from(footprint.bytes.into_iter().max().unwrap_or(0)).div_ceil(4);
            }
        }
        outcome
    }

    /// True if an access waits for what another wave stores: it is in a loop that has stored nothing for
    /// others so far.
    fn polls(&self, facts: &InstructionFacts) -> bool {
        let stores = |step: u32| self.visits[step as usize].load(Relaxed) & STORES != 0;
        facts.sync.polls.clone().is_some_and(|mut steps| !steps.any(stores))
    }

    /// A wave of a workgroup, as hand-over sees it.
    pub(super) fn member(&self, workgroup: u64, wave: usize) -> Member {
        Member { wave, first_wave: (workgroup as u32).wrapping_mul(self.launch.waves as u32) }
    }

    /// To be called when operations of a wave may have been performed or ended: notes what they handed over.
    #[inline]
    pub(super) fn follow(
        &self,
        who: WaveStep,
        runner: &mut Runner,
        worker: &mut CheckWorker,
        known: &mut KnownOrder,
    ) {
        if !runner.handovers.is_empty() {
            let member = self.member(who.workgroup, who.wave);
            worker.handover.follow(&mut runner.handovers, &runner.flight, known, member);
        }
    }

    /// Executes the instruction now or keeps it for later.
    fn perform(
        &self,
        issue: &Issue<'_>,
        outcome: &AccessOutcome,
        turn: &mut WaveTurn<'_>,
    ) -> Result<(), Stopped> {
        let Issue { who, facts, step, .. } = *issue;
        let WaveTurn { runner, worker, lds, .. } = turn;
        let exec = runner.w.exec();
        let program = self.launch.program;
        let scalar = matches!(facts.inst.as_ref().map(|i| i.op.info().unit), Some(Unit::Smem));
        if outcome.refused != 0 {
            clear_results(facts, outcome.refused, program.vgprs(), &mut runner.w);
        }
        let nothing_left = outcome.accesses && !outcome.touches && outcome.refused != 0;
        let lanes = if scalar { exec } else { exec & !outcome.refused };
        if nothing_left {
            runner.flight.issue(who.step, facts, exec);
        } else if outcome.defers || !runner.flight.may_perform_now(facts.order) {
            runner.flight.defer(who.step, facts, &runner.w, program.vgprs(), lanes);
        } else {
            let mut context = self.context(lds, &mut worker.caches);
            if lanes == exec {
                execute::one(&mut runner.w, &mut context, step)?;
            } else {
                runner.w.set_pair(EXEC_PAIR, lanes);
                let result = execute::one(&mut runner.w, &mut context, step);
                runner.w.set_pair(EXEC_PAIR, exec);
                result?;
            }
            runner.flight.issue(who.step, facts, exec);
        }
        let mut context = self.context(lds, &mut worker.caches);
        runner.flight.overflow(&self.table, &mut runner.w, &mut context)
    }

    /// Judges undefined sources: those of addresses are reported, and those of updates, of which nobody knows
    /// what they leave; returns the lanes whose data are undefined.
    fn judge_sources(
        &self,
        issue: &Issue<'_>,
        found: &[Footprint],
        runner: &Runner,
        worker: &mut CheckWorker,
    ) -> u64 {
        let Issue { who, facts, .. } = *issue;
        let exec = runner.w.exec();
        let Some(inst) = &facts.inst else { return 0 };
        let info = inst.op.info();
        // Of an address of `ds_permute` only the number of the wave's dword counts.
        let permutes = matches!(info.meaning, Meaning::LanePermute(_));
        let between_lanes = permutes || info.meaning == Meaning::LaneSwizzle;
        let stored = stored_bits(info.meaning);
        let atomic = info.meaning.effect() == Effect::Atomic;
        // A lane that a range check drops updates nothing.
        let updating = found.iter().fold(0, |lanes, footprint| lanes | footprint.lanes);
        let mut data = 0;
        for register in facts.uses.all.iter().filter(|r| r.is_read) {
            let is_data = register.first >= FIRST_VECTOR
                && matches!(register.field, Some(Field::Data0 | Field::Data1 | Field::Dst));
            // Parts of a result that a load leaves unchanged do not matter.
            if register.first == EXEC && register.field.is_none() || register.is_written && !atomic {
                continue;
            }
            for number in register.first..register.end {
                let counts = if is_data { stored } else { u32::MAX };
                let undefined = match number {
                    FIRST_VECTOR.. if permutes && !is_data => {
                        exec & undefined_lanes(&runner.registers, number, 0xff)
                    }
                    FIRST_VECTOR.. => {
                        let lanes = if atomic && is_data { updating } else { exec };
                        lanes & undefined_lanes(&runner.registers, number, counts)
                    }
                    _ if runner.registers.is_defined(number, exec) => 0,
                    _ => exec.max(1),
                };
                if undefined == 0 {
                    continue;
                }
                let used_in = match is_data {
                    true => Use::Store,
                    false if permutes => Use::Lane,
                    false => Use::Address,
                };
                if is_data {
                    data |= undefined;
                }
                // Data that move between lanes are followed in `results`.
                if !between_lanes && atomic || !is_data && info.meaning != Meaning::LaneSwizzle {
                    let origin = runner.registers.origin(number, who.step);
                    uninitialised(worker, who, &Undefined { origin, used_in, lanes: undefined });
                    break;
                }
            }
        }
        data
    }

    /// Lanes of an access that leave their memory or are not aligned as required.
    fn out_of_bounds(
        &self,
        footprint: &Footprint,
        reach: (u64, u64),
        runner: &Runner,
        worker: &mut CheckWorker,
        who: WaveStep,
    ) -> u64 {
        let lanes = footprint.lanes;
        let refused = match footprint.space {
            MemorySpace::Device => self.outside_device(footprint, reach, &mut runner.w.hint.clone()),
            MemorySpace::Lds => outside(footprint, reach, self.launch.lds_bytes.into()),
            MemorySpace::Private => outside(footprint, reach, 4 * u64::from(runner.w.private_words)),
        };
        if refused != 0 {
            let l = refused.trailing_zeros() as usize;
            let (address, bytes) = (footprint.address[l], u32::from(footprint.bytes[l]));
            let (base, size) = match footprint.space {
                MemorySpace::Device => self.launch.memory.nearest(address),
                MemorySpace::Lds => (0, self.launch.lds_bytes.into()),
                MemorySpace::Private => (0, 4 * u64::from(runner.w.private_words)),
            };
            let memory = memory(footprint.space);
            let access = footprint.access;
            let freed = self.launch.memory.freed(address).filter(|_| footprint.space == MemorySpace::Device);
            let kind = match freed {
                Some((base, size)) => FindingKind::Freed { access, address, bytes, base, size },
                None => FindingKind::OutOfBounds { memory, access, address, bytes, base, size },
            };
            worker.found.add(who.raw(kind, base, refused));
        }
        refused | misaligned(footprint, lanes & !refused, worker, who)
    }

    fn outside_device(&self, footprint: &Footprint, reach: (u64, u64), hint: &mut usize) -> u64 {
        let (low, high) = reach;
        if low <= high && self.launch.memory.find(hint, low, high - low).is_some() {
            return 0;
        }
        let mut refused = 0;
        for l in (0..LANES).filter(|l| footprint.lanes >> l & 1 != 0) {
            let inside = self.launch.memory.find(hint, footprint.address[l], footprint.bytes[l].into());
            refused |= u64::from(inside.is_none()) << l;
        }
        refused
    }

    fn lds(
        &self,
        issue: &Issue<'_>,
        piece: &AccessPiece<'_>,
        runner: &mut Runner,
        worker: &mut CheckWorker,
        shadow: &mut lds::LdsShadow,
        known: &KnownOrder,
    ) -> UndefinedLoad {
        let Issue { who, facts, .. } = *issue;
        let AccessPiece { footprint, lanes, index, .. } = *piece;
        let stored = piece.stores(facts, &runner.registers, who.step);
        let is_atomic = footprint.access == MemoryAccess::Atomic || facts.sync.is_guess || facts.is_atomic();
        let meets = match is_atomic {
            _ if self.polls(facts) => Meets::Stores,
            true => Meets::Atomics,
            false => Meets::Nothing,
        };
        if self.table.lds_hands_over && (meets > Meets::Nothing || footprint.access == MemoryAccess::Store) {
            let member = self.member(who.workgroup, who.wave);
            let returns = returns(facts, footprint.access);
            let handover =
                PendingHandover::lds_flag(footprint, lanes, returns, &runner.flight, known, member);
            runner.handovers.push(handover);
        }
        let by = lds::LdsAccessor {
            wave: who.wave,
            number: runner.flight.next(),
            step: who.step,
            reach: piece.reach,
            clock: Clock::of(&runner.flight, 0),
            known,
            by_dma: facts.to_lds,
            meets,
            undefined: stored.as_ref(),
            data: self.data(issue, index, runner),
        };
        let judged = shadow.access(footprint, lanes, &by);
        if let Some(conflict) = judged.conflict {
            let raw = self.lds_race(who, &conflict, footprint.access, judged.lanes);
            worker.races.push((raw, conflict.other_wave, conflict.number));
        }
        for late in &judged.late {
            let raw = self.late_race(who.workgroup, late);
            worker.races.push((raw, late.conflict.other_wave, late.conflict.number));
        }
        if let Some(repeated) = judged.repeated {
            let kind = FindingKind::RepeatedStore {
                memory: Memory::Lds,
                address: repeated.address,
                other_wave: repeated.other_wave as u32,
                other_workgroup: self.launch.coordinates(who.workgroup),
            };
            let raw = who.raw(kind, 0, judged.repeated_lanes);
            worker.races.push((raw, repeated.other_wave, repeated.number));
        }
        judged.undefined
    }

    fn lds_race(&self, who: WaveStep, conflict: &LdsConflict, then: MemoryAccess, lanes: u64) -> Raw {
        let kind = FindingKind::Race {
            memory: Memory::Lds,
            first: conflict.first,
            then,
            address: conflict.address,
            reason: conflict.reason,
            other_wave: conflict.other_wave as u32,
            other_workgroup: self.launch.coordinates(who.workgroup),
        };
        who.raw(kind, 0, lanes)
    }

    /// A race of stores to LDS that shows after the second one.
    pub(super) fn late_race(&self, workgroup: u64, late: &LateConflict) -> Raw {
        let who = WaveStep { workgroup, wave: late.wave, step: late.step };
        self.lds_race(who, &late.conflict, MemoryAccess::Store, late.lanes)
    }

    /// The data of a store, if they are known.
    fn data<'a>(&self, issue: &Issue<'_>, index: usize, runner: &'a Runner) -> Option<StoreData<'a>> {
        StoreData::of(issue.facts, index, &runner.w, self.launch.program.vgprs())
    }

    fn device(
        &self,
        issue: &Issue<'_>,
        piece: &AccessPiece<'_>,
        runner: &mut Runner,
        worker: &mut CheckWorker,
        known: &mut KnownOrder,
    ) -> UndefinedLoad {
        let Issue { who, facts, .. } = *issue;
        let AccessPiece { footprint, lanes, data, index, .. } = *piece;
        let mut loaded = UndefinedLoad::default();
        let has_undefined = self.stores_undefined(issue, piece, runner, worker);
        let member = self.member(who.workgroup, who.wave);
        let (waits, own_scope) = self.waits_with_scope(facts);
        // An atomic that waits changes nothing until it finds what it waits for, and then it has acquired
        // that.
        let is_load = waits && footprint.access == MemoryAccess::Atomic;
        let as_load = is_load.then(|| Footprint { access: MemoryAccess::Load, ..footprint.clone() });
        let shown = as_load.as_ref().unwrap_or(footprint);
        let mut left = lanes;
        while left != 0 {
            let Some(allocation) = self.allocation_at(footprint, left, runner) else {
                left &= left - 1;
                continue;
            };
            let base = self.extents[allocation].0;
            let (here, (low, high)) = self.lanes_in(allocation, piece, left);
            let inside = here == left;
            left &= !here & (left - 1);
            let written = &self.written[allocation];
            let by = device::DeviceAccessor {
                wave: member.first_wave.wrapping_add(who.wave as u32),
                first_wave: member.first_wave,
                number: runner.flight.next(),
                step: who.step,
                known,
                scope: own_scope,
                sight: Sight::of(footprint.access, own_scope),
                // What is undefined is reported above, and no value to compare.
                data: self.data(issue, index, runner).filter(|_| data == 0),
                defined: inside && written.holds(low - base, high - base),
                written,
            };
            let judged = worker.shadow.access(allocation, base, shown, here, &by);
            if has_undefined || !worker.undefined_bytes.is_empty() {
                let stores = || piece.stores(facts, &runner.registers, who.step);
                let undefined = has_undefined.then(stores).flatten();
                let bytes = &mut worker.undefined_bytes;
                bytes.access((allocation, base), (footprint, here), undefined.as_ref(), &mut loaded);
            }
            self.report_conflicts(who, footprint.access, base, &judged, worker);
            note_unwritten(&judged, (footprint, base), written, who.step, &mut loaded);
        }
        if self.table.hands_over && facts.may_be_flag(footprint.access, own_scope) {
            let returns = returns(facts, footprint.access);
            let handover = PendingHandover::flag(footprint, lanes, returns, &runner.flight, known, member);
            runner.handovers.push(handover);
        }
        loaded
    }

    /// The allocation that the first of the lanes accesses, if it is in one.
    fn allocation_at(&self, footprint: &Footprint, lanes: u64, runner: &mut Runner) -> Option<usize> {
        let first = lanes.trailing_zeros() as usize;
        let (address, bytes) = (footprint.address[first], footprint.bytes[first].into());
        self.launch.memory.find(&mut runner.w.hint, address, bytes)?;
        Some(runner.w.hint)
    }

    /// Those of the lanes `left` that access an allocation, and what all of them reach.
    fn lanes_in(&self, allocation: usize, piece: &AccessPiece<'_>, left: u64) -> (u64, (u64, u64)) {
        let (base, size) = self.extents[allocation];
        let (low, high) = if left == piece.lanes { piece.reach } else { piece.footprint.extent(left) };
        // Usually all lanes are in one allocation.
        let here = match low >= base && high <= base + size {
            true => left,
            false => left & lanes_inside(piece.footprint, base, size),
        };
        (here, (low, high))
    }

    /// True if an access waits for another wave, and the scope that it counts for. Without scope bits a load
    /// of the scope of a workgroup looks like any other.
    fn waits_with_scope(&self, facts: &InstructionFacts) -> (bool, SyncScope) {
        let waits = self.polls(facts);
        match waits && !self.table.arch.has_scope_bits() {
            true => (waits, facts.sync.scope.max(SyncScope::Workgroup)),
            false => (waits, facts.sync.scope),
        }
    }

    /// Reports the undefined data of a store to device memory; true if there are any.
    fn stores_undefined(
        &self,
        issue: &Issue<'_>,
        piece: &AccessPiece<'_>,
        runner: &Runner,
        worker: &mut CheckWorker,
    ) -> bool {
        if piece.footprint.access != MemoryAccess::Store {
            return false;
        }
        let lanes = piece.data & piece.lanes;
        if lanes != 0 {
            self.undefined_store(issue, lanes, runner, worker);
        }
        if let Some((origin, bad)) = piece.loaded.first() {
            let bad = Undefined { origin, used_in: Use::Store, lanes: bad & piece.lanes };
            undefined_store(worker, issue.who, &bad);
        }
        lanes != 0 || !piece.loaded.is_empty()
    }

    /// Reports what an access to the allocation at `base` conflicts with.
    #[inline]
    fn report_conflicts(
        &self,
        who: WaveStep,
        then: MemoryAccess,
        base: u64,
        judged: &device::DeviceVerdict,
        worker: &mut CheckWorker,
    ) {
        let waves = self.launch.waves as u32;
        let workgroup_of = |wave: u32| self.launch.coordinates(u64::from(wave / waves));
        if let Some(conflict) = &judged.conflict {
            let kind = FindingKind::Race {
                memory: Memory::Device,
                first: conflict.first,
                then,
                address: base + conflict.offset,
                reason: conflict.reason,
                other_wave: conflict.wave % waves,
                other_workgroup: workgroup_of(conflict.wave),
            };
            let raw = who.raw(kind, base, judged.lanes);
            worker.found.add(Raw { other: Some(conflict.step), ..raw });
        }
        if let Some(repeated) = &judged.repeated {
            let kind = FindingKind::RepeatedStore {
                memory: Memory::Device,
                address: base + repeated.offset,
                other_wave: repeated.wave % waves,
                other_workgroup: workgroup_of(repeated.wave),
            };
            let raw = who.raw(kind, base, judged.repeated_lanes);
            worker.found.add(Raw { other: Some(repeated.step), ..raw });
        }
    }

    /// Reports undefined data that a store brings to device memory.
    #[cold]
    fn undefined_store(&self, issue: &Issue<'_>, lanes: u64, runner: &Runner, worker: &mut CheckWorker) {
        let registers = issue.facts.uses.all.iter().filter(|r| r.field == Some(Field::Data0));
        let counts = issue.facts.inst.as_ref().map_or(u32::MAX, |inst| stored_bits(inst.op.info().meaning));
        let mut numbers = registers.flat_map(|r| r.first..r.end);
        let bad = numbers.find(|&n| lanes & undefined_lanes(&runner.registers, n, counts) != 0);
        if let Some(number) = bad {
            let origin = runner.registers.origin(number, issue.who.step);
            undefined_store(worker, issue.who, &Undefined { origin, used_in: Use::Store, lanes });
        }
    }

    /// Notes which of the instruction's results are defined.
    fn results(&self, issue: &Issue<'_>, outcome: &AccessOutcome, runner: &mut Runner) {
        let Issue { facts, step, undefined, .. } = *issue;
        if !undefined && outcome.undefined.is_empty() {
            // It is defined already, like everything that the instruction touches.
            return;
        }
        let exec = runner.w.exec();
        let Some(inst) = &facts.inst else { return };
        let meaning = inst.op.info().meaning;
        if move_between_lanes(inst, issue, runner) {
            return;
        }
        for register in facts.uses.all.iter().filter(|r| r.is_written) {
            for (index, number) in (register.first..register.end).enumerate() {
                let undefined = outcome.undefined.lanes(index);
                let bits = |l: usize| outcome.undefined.bits(index).map_or(0, |row| row[l]);
                match (number, meaning) {
                    (SCC, _) => {}
                    // Usually everything is defined; some loads keep a part of the old contents.
                    (FIRST_VECTOR.., Meaning::Load(_))
                        if undefined & exec == 0
                            && (!register.is_read
                                || !step.keeps_other_half
                                || runner.registers.is_defined(number, exec)) =>
                    {
                        runner.registers.write_vector(number, exec, u64::MAX);
                    }
                    (FIRST_VECTOR.., Meaning::Load(kind)) => {
                        let old = kept_undefined(runner, step, number);
                        let row = std::array::from_fn(|l| merge_loaded(kind, old[l], bits(l)));
                        runner.registers.write_bits(number, exec, &row);
                    }
                    (FIRST_VECTOR.., Meaning::LoadFormatHigh) => {
                        let old = kept_undefined(runner, step, number);
                        let high = |l: usize| if undefined >> l & 1 != 0 { 0xffff << 16 } else { 0 };
                        let row = std::array::from_fn(|l| old[l] & 0xffff | high(l));
                        runner.registers.write_bits(number, exec, &row);
                    }
                    (FIRST_VECTOR.., Meaning::LoadTwo(..) | Meaning::LoadAtLane) if undefined & exec != 0 => {
                        runner.registers.write_bits(number, exec, &std::array::from_fn(bits));
                    }
                    (FIRST_VECTOR.., _) => runner.registers.write_vector(number, exec, !undefined),
                    _ => runner.registers.set_scalar(number, if undefined == 0 { u32::MAX } else { 0 }),
                }
                if let Some(origin) = outcome.undefined.origin(index) {
                    runner.registers.set_origin(number, origin);
                }
            }
        }
    }
}

/// Moves the undefined bits of an instruction that moves data between lanes; true if it is one.
fn move_between_lanes(inst: &Inst, issue: &Issue<'_>, runner: &mut Runner) -> bool {
    let Issue { who, step, .. } = *issue;
    let data = |operand: usize| inst.operands[operand].number().filter(|&n| n >= FIRST_VECTOR);
    let undefined = |from: u32| runner.registers.undefined_bits(from);
    let moved = match inst.op.info().meaning {
        Meaning::LanePermute(direction) => {
            data(2).map(|from| (from, permuted(&runner.w, step, direction, &undefined(from))))
        }
        Meaning::LaneSwizzle => data(1).map(|from| (from, swizzled(&runner.w, step, &undefined(from)))),
        _ => None,
    };
    let (Some((from, row)), Some(to)) = (moved, data(0)) else { return false };
    let origin = runner.registers.origin(from, who.step);
    runner.registers.write_bits(to, runner.w.exec(), &row);
    if !runner.registers.is_defined(to, u64::MAX) {
        runner.registers.set_origin(to, origin);
    }
    true
}

/// Lanes whose first byte lies in the allocation of `size` bytes at `base`.
fn lanes_inside(footprint: &Footprint, base: u64, size: u64) -> u64 {
    let inside = |l: usize| footprint.address[l].wrapping_sub(base) < size;
    (0..LANES).fold(0, |mask, l| mask | u64::from(inside(l)) << l)
}

/// Notes what an access loads from the allocation at `base` that no kernel wrote and that was not written
/// before the launch.
fn note_unwritten(
    judged: &device::DeviceVerdict,
    (footprint, base): (&Footprint, u64),
    written: &WrittenBytes,
    step: u32,
    loaded: &mut UndefinedLoad,
) {
    judged.unwritten.for_each(|lane, first, bits| {
        let start = footprint.address[lane] - base + first;
        let end = (start + 4).min(footprint.address[lane] - base + u64::from(footprint.bytes[lane]));
        if written.holds(start, end) {
            return;
        }
        for byte in (0..4).filter(|byte| bits >> (8 * byte) & 0xff != 0) {
            if !written.holds(start + byte, start + byte + 1) {
                let what = Unwritten::Memory(Memory::Device, base + start + byte);
                loaded.add(lane, first + byte, 0xff, Some(UndefinedOrigin { step, what }));
            }
        }
    });
}

/// Undefined bits that a load into half of a register leaves there.
fn kept_undefined(runner: &Runner, step: &Step, number: u32) -> VectorRow {
    if step.keeps_other_half { runner.registers.undefined_bits(number) } else { [0; LANES] }
}

/// True if the wave gets what the access has found.
fn returns(facts: &InstructionFacts, access: MemoryAccess) -> bool {
    let silent = |inst: &Inst| matches!(inst.op.info().meaning, Meaning::Atomic(..));
    access != MemoryAccess::Store && !facts.inst.as_ref().is_some_and(silent)
}

/// The bits of a data register that an instruction stores.
fn stored_bits(meaning: Meaning) -> u32 {
    match meaning {
        Meaning::Store(kind) => match kind {
            Kind::ByteHigh | Kind::SignedByteHigh => 0xff << 16,
            Kind::ShortHigh => 0xffff << 16,
            _ => u32::MAX >> (32 - 8 * kind.bytes().min(4)),
        },
        Meaning::StoreFormatHigh => 0xffff << 16,
        _ => u32::MAX,
    }
}

/// Lanes of a vector register in which at least one of these bits is undefined.
fn undefined_lanes(registers: &RegisterShadow, number: u32, counts: u32) -> u64 {
    let lanes = !registers.vector(number);
    if lanes == 0 || counts == u32::MAX {
        return lanes;
    }
    let bits = registers.undefined_bits(number);
    (0..LANES).fold(0, |lanes, l| lanes | u64::from(bits[l] & counts != 0) << l)
}

fn memory(space: MemorySpace) -> Memory {
    match space {
        MemorySpace::Lds => Memory::Lds,
        MemorySpace::Device => Memory::Device,
        MemorySpace::Private => Memory::Scratch,
    }
}

/// Lanes that do not lie inside `size` bytes; `reach` is the extent of all of them.
fn outside(footprint: &Footprint, reach: (u64, u64), size: u64) -> u64 {
    if reach.1 <= size {
        return 0;
    }
    let mut refused = 0;
    for l in 0..LANES {
        let end = footprint.address[l] + u64::from(footprint.bytes[l]);
        refused |= u64::from(end > size) << l;
    }
    refused & footprint.lanes
}

/// Lanes that are rejected as misaligned; wide LDS accesses are only reported: the amdhsa runtime allows any
/// alignment (LLVM, `FeatureUnalignedAccessMode`), at the price of a clock for each lane.
fn misaligned(footprint: &Footprint, lanes: u64, worker: &mut CheckWorker, who: WaveStep) -> u64 {
    if lanes == 0 {
        return 0;
    }
    let bytes = u32::from(footprint.bytes[lanes.trailing_zeros() as usize]);
    let atomic = footprint.access == MemoryAccess::Atomic;
    let alignment = match (footprint.space, bytes) {
        (_, 4 | 8) if atomic => bytes,
        (MemorySpace::Lds, 8) => 8,
        (MemorySpace::Lds, 12 | 16) => 16,
        _ => return 0,
    };
    let low_bits = u64::from(alignment) - 1;
    if footprint.address.iter().fold(0, |all, address| all | address) & low_bits == 0 {
        return 0;
    }
    let bad = |l: usize| footprint.address[l] & low_bits != 0;
    let bad = (0..LANES).fold(0, |mask, l| mask | u64::from(bad(l)) << l) & lanes;
    if bad != 0 {
        let address = footprint.address[bad.trailing_zeros() as usize];
        let memory = memory(footprint.space);
        let kind = FindingKind::Misaligned { memory, access: footprint.access, address, alignment };
        worker.found.add(who.raw(kind, 0, bad));
    }
    if atomic { bad } else { 0 }
}

/// Loads that are rejected give zero.
fn clear_results(facts: &InstructionFacts, refused: u64, vgprs: usize, w: &mut Wave) {
    for number in facts.uses.all.iter().filter(|r| r.is_written).flat_map(|r| r.first..r.end) {
        match row_of(number, vgprs).and_then(|row| w.rows.get_mut(row)) {
            Some(row) => (0..LANES).filter(|l| refused >> l & 1 != 0).for_each(|l| row[l] = 0),
            None if number < 128 => w.s[number as usize] = 0,
            None => {}
        }
    }
}
