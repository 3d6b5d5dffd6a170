//! What a check keeps: of the launch, of a thread, of a workgroup, of each of its waves.

use std::sync::atomic::{AtomicBool, AtomicU8};

use crate::codegen::isa::{Arch, Generation};
use crate::codegen::object::Field;
use crate::codegen::target::Target;

use super::super::error::Stopped;
use super::super::execute::{Cache, Footprint, Lds};
use super::super::memory::Written;
use super::super::rounds::Rounds;
use super::super::start::Launch;
use super::super::wave::{Progress, Wave};
use super::definedness::Undefined;
use super::device;
use super::facts::{FIRST_VECTOR, Table, name};
use super::finding::FindingKind;
use super::flight::Flight;
use super::found::{Found, Raw};
use super::handover::{Handover, PendingHandover};
use super::hazards::{Answers, Window};
use super::lds;
use super::model::Model;
use super::order::Known;
use super::registers::{Registers, What};
use super::schedule::Plan;
use super::scratch::Scratch;

/// What all workgroups of a checked launch share.
pub(super) struct Checker<'a> {
    pub launch: &'a Launch<'a>,
    pub table: Table,
    pub seed: u64,
    /// For each step, whether it was executed, and the result of judging the instructions in front of it.
    pub visits: Vec<AtomicU8>,
    /// Step after the kernel's last one.
    pub end: usize,
    /// VGPRs, AGPRs and SGPRs of the descriptor.
    pub limits: [u32; 3],
    /// The parts of each allocation that were written before the launch.
    pub written: Vec<Written>,
    /// Start and size of each allocation.
    pub extents: Vec<(u64, u64)>,
    /// Memory instructions may be replayed.
    pub retries: bool,
    /// A wave goes on for ever, or time is up: all waves stop.
    pub halted: AtomicBool,
    /// Caches of the chip in the mode of the kernel.
    pub model: Model,
}

/// The state that a thread keeps from workgroup to workgroup.
pub(super) struct Worker {
    pub caches: [Cache; 2],
    pub shadow: device::Shadow,
    pub handover: Handover,
    pub answers: Answers,
    pub found: Found,
    pub footprints: Vec<Footprint>,
    pub undefined: Vec<Undefined>,
    /// Races on LDS, each with the wave and the number of the other operation.
    pub races: Vec<(Raw, usize, u32)>,
    pub instructions: u64,
    /// Instructions since the clock was last read.
    pub unwatched: u64,
}

impl Worker {
    /// A worker for a launch.
    pub(super) fn new(checker: &Checker<'_>) -> Worker {
        Worker {
            caches: Default::default(),
            shadow: device::Shadow::new(checker.extents.len(), checker.table.granules[1]),
            handover: Handover::default(),
            answers: Answers::new(),
            found: Found::default(),
            footprints: Vec::new(),
            undefined: Vec::new(),
            races: Vec::new(),
            instructions: 0,
            unwatched: 0,
        }
    }
}

/// A wave and everything that is known of it.
pub(super) struct Runner {
    pub w: Wave,
    pub registers: Registers,
    pub flight: Flight,
    /// Operations in flight that hand over, by number.
    pub handovers: Vec<PendingHandover>,
    pub scratch: Scratch,
    pub window: Window,
    /// Lanes that started.
    pub launched: u64,
    /// Lanes that bypassed a barrier, and its step.
    pub missing: u64,
    pub missing_at: u32,
    pub stale_vccz: bool,
    /// Steps of the current run of memory instructions.
    pub run: Vec<u32>,
    /// Loops that it goes round.
    pub rounds: Rounds,
}

/// A workgroup.
pub(super) struct Group {
    pub workgroup: u64,
    pub runners: Vec<Runner>,
    pub lds: Lds,
    pub shadow: lds::Shadow,
    pub known: Known,
    pub plan: Plan,
}

/// Where a workgroup stopped for good.
pub(super) struct Failure {
    pub workgroup: u64,
    pub wave: usize,
    pub step: usize,
    pub stopped: Stopped,
}

/// The wave and step at work: for findings.
#[derive(Copy, Clone)]
pub(super) struct Who {
    pub workgroup: u64,
    pub wave: usize,
    pub step: u32,
}

impl Who {
    /// A finding at the current instruction.
    pub(super) fn raw(self, kind: FindingKind, place: u64, lanes: u64) -> Raw {
        let Who { workgroup, wave, step } = self;
        Raw { step, place, kind, other: None, workgroup, wave: wave as u32, lanes }
    }
}

impl<'a> Checker<'a> {
    /// A checker for a launch; `end` is the step after the kernel's function.
    pub(super) fn new(
        launch: &'a Launch<'a>,
        table: Table,
        target: Target,
        seed: u64,
        end: usize,
        retries: bool,
    ) -> Checker<'a> {
        let descriptor = &launch.kernel.descriptor;
        let vgprs = descriptor.allocated_vgprs(target);
        let limits = match descriptor.accum_offset(target) {
            Some(offset) => [offset.min(vgprs), vgprs.saturating_sub(offset)],
            None => [vgprs, vgprs],
        };
        Checker {
            launch,
            seed,
            visits: table.facts.iter().map(|_| AtomicU8::new(0)).collect(),
            end,
            limits: [limits[0], limits[1], descriptor.allocated_sgprs(target)],
            written: launch.memory.written(),
            extents: launch.memory.extents().collect(),
            retries,
            halted: AtomicBool::new(false),
            model: Model::new(table.arch, descriptor.get(Field::TgSplit) != 0),
            table,
        }
    }

    /// A workgroup before its first instruction; `old` is one that has ended, whose memory can be used again.
    pub(super) fn start(&self, workgroup: u64, old: Option<Group>) -> Group {
        let waves = self.launch.waves;
        let (mut runners, mut lds, mut shadow) = match old {
            Some(old) => (old.runners, old.lds, old.shadow),
            None => (Vec::new(), Lds::default(), lds::Shadow::new()),
        };
        runners.resize_with(waves, Runner::new);
        lds.reset(self.launch.lds_bytes);
        shadow.reset(self.launch.lds_bytes, waves, self.table.granules[0]);
        let ids = self.launch.coordinates(workgroup);
        for (index, runner) in runners.iter_mut().enumerate() {
            self.launch.start(&mut runner.w, index, ids);
            runner.reset(self.launch, self.table.arch);
        }
        let plan = Plan::new(self.seed, workgroup, waves);
        Group { workgroup, runners, lds, shadow, known: Known::new(waves, self.model), plan }
    }
}

/// Reports that an undefined value makes a difference at the current instruction.
pub(super) fn uninitialised(worker: &mut Worker, who: Who, bad: &Undefined) {
    let used_in = bad.used_in;
    let (kind, place) = match bad.origin.what {
        What::Register(number) => {
            (FindingKind::UninitialisedRegister { register: name(number), used_in }, u64::from(number))
        }
        What::Memory(memory, address) => {
            (FindingKind::UninitialisedMemory { memory, address, used_in }, memory as u64)
        }
    };
    let at = Who { step: bad.origin.step, ..who };
    let other = (bad.origin.step != who.step).then_some(who.step);
    worker.found.add(Raw { other, ..at.raw(kind, place, bad.lanes) });
}

impl Runner {
    fn new() -> Runner {
        Runner {
            w: Wave::new(),
            registers: Registers::new(),
            flight: Flight::new(),
            handovers: Vec::new(),
            scratch: Scratch::new(),
            window: Window::new(),
            launched: 0,
            missing: 0,
            missing_at: 0,
            stale_vccz: false,
            run: Vec::new(),
            rounds: Rounds::default(),
        }
    }

    /// Before the first instruction, with the registers that the launch has filled.
    fn reset(&mut self, launch: &Launch<'_>, arch: Arch) {
        self.registers.reset();
        self.flight.reset();
        self.handovers.clear();
        self.scratch.reset(4 * self.w.private_words as usize);
        self.window = Window::new();
        let begins = self.w.progress == Progress::Running;
        self.launched = if begins { self.w.exec() } else { 0 };
        (self.missing, self.stale_vccz) = (0, false);
        self.run.clear();
        self.rounds.reset();
        for number in 0..launch.sgprs.end.min(102) {
            self.registers.define(number);
        }
        // Work-item ids: packed into one register, or one each.
        let ids = if arch.generation() >= Generation::Cdna2 {
            1
        } else {
            1 + launch.kernel.descriptor.get(Field::WorkitemId)
        };
        for register in 0..ids {
            self.registers.set_vector(FIRST_VECTOR + register, self.launched);
        }
    }
}
