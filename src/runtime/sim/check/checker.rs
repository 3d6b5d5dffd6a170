//! What a check keeps: of the launch, of a thread, of a workgroup, of each of its waves.

use std::sync::atomic::{AtomicBool, AtomicU8};

use crate::codegen::isa::{Arch, Generation};
use crate::codegen::object::DescriptorField;
use crate::codegen::target::Target;

use super::super::execute::{ExecutionContext, Footprint, Lds, WidenedCache};
use super::super::memory::WrittenBytes;
use super::super::register_bits::FIRST_VECTOR;
use super::super::rounds::Rounds;
use super::super::start::LaunchContext;
use super::super::wave::{Progress, Wave};
use super::definedness::Undefined;
use super::device;
use super::facts::{Table, name};
use super::finding::{FindingKind, Lanes};
use super::flight::Flight;
use super::found::{Consequence, FindingSet, Raw};
use super::handover::{Handover, PendingHandover};
use super::hazards::{Answers, Window};
use super::lds;
use super::model::CacheModel;
use super::order::KnownOrder;
use super::polling::Polling;
use super::registers::{RegisterShadow, Unwritten};
use super::schedule::Plan;
use super::scratch::Scratch;
use super::undefined_bytes::UndefinedBytes;

/// Instructions after which the clock is read.
pub(super) const WATCH: u64 = 1 << 15;
/// The step was executed before.
pub(super) const SEEN: u8 = 1;
/// An instruction in front of it is too close.
pub(super) const CLOSE: u8 = 2;
/// It has stored something that other waves see.
pub(super) const STORES: u8 = 4;

/// What all workgroups of a checked launch share.
pub(super) struct LaunchChecker<'a> {
    pub launch: &'a LaunchContext<'a>,
    pub table: Table,
    pub seed: u64,
    /// For each step [`SEEN`], [`CLOSE`] and [`STORES`].
    pub visits: Vec<AtomicU8>,
    /// Step after the kernel's last one.
    pub end: usize,
    /// VGPRs, AGPRs and SGPRs of the descriptor.
    pub limits: [u32; 3],
    /// The parts of each allocation that were written before the launch.
    pub written: Vec<WrittenBytes>,
    /// Start and size of each allocation.
    pub extents: Vec<(u64, u64)>,
    /// A wave goes on for ever, or time is up: all waves stop.
    pub halted: AtomicBool,
    /// Caches of the chip in the mode of the kernel.
    pub model: CacheModel,
}

/// The state that a thread keeps from workgroup to workgroup.
pub(super) struct CheckWorker {
    pub caches: [WidenedCache; 2],
    pub shadow: device::DeviceShadow,
    pub handover: Handover,
    pub answers: Answers,
    pub found: FindingSet,
    /// Of the workgroup at work, or of all where workgroups share a shadow; of those before it.
    pub undefined_bytes: UndefinedBytes,
    pub left_undefined: UndefinedBytes,
    pub footprints: Vec<Footprint>,
    pub undefined: Vec<Undefined>,
    /// Races on LDS, each with the wave and the number of the other operation.
    pub races: Vec<(Raw, usize, u32)>,
    pub instructions: u64,
    /// Instructions since the clock was last read.
    pub unwatched: u64,
}

impl CheckWorker {
    /// A worker for a launch.
    pub(super) fn new(checker: &LaunchChecker<'_>) -> CheckWorker {
        CheckWorker {
            caches: Default::default(),
            shadow: device::DeviceShadow::new(
                checker.extents.iter().map(|&(_, size)| size),
                checker.table.granules[1],
            ),
            handover: Handover::default(),
            answers: Answers::new(),
            found: FindingSet::default(),
            undefined_bytes: UndefinedBytes::default(),
            left_undefined: UndefinedBytes::default(),
            footprints: Vec::new(),
            undefined: Vec::new(),
            races: Vec::new(),
            instructions: 0,
            // A launch that has no time left is stopped at once.
            unwatched: WATCH,
        }
    }
}

/// A wave and everything that is known of it.
pub(super) struct Runner {
    pub w: Wave,
    pub registers: RegisterShadow,
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
    /// Loops that it goes round.
    pub rounds: Rounds,
    /// Memory that it looks at again and again.
    pub polling: Polling,
}

/// A workgroup.
pub(super) struct CheckedGroup {
    pub workgroup: u64,
    pub runners: Vec<Runner>,
    pub lds: Lds,
    pub shadow: lds::LdsShadow,
    pub known: KnownOrder,
    pub plan: Plan,
    /// Waves that are left alone.
    pub parked: u32,
}

impl CheckedGroup {
    /// Instructions that its waves have executed.
    pub(super) fn executed(&self) -> u64 {
        self.runners.iter().map(|runner| runner.w.executed).sum()
    }

    /// Waves that are left alone go on though nothing has changed, because nobody else can.
    pub(super) fn goes_on_in_vain(&mut self) {
        let parked = self.runners.iter_mut().filter(|runner| runner.polling.is_parked());
        parked.for_each(|runner| runner.polling.goes_on_in_vain());
        self.parked = 0;
    }
}

/// A wave whose turn it is, and what it shares with others.
pub(super) struct WaveTurn<'a> {
    pub runner: &'a mut Runner,
    pub worker: &'a mut CheckWorker,
    pub lds: &'a mut Lds,
    pub shadow: &'a mut lds::LdsShadow,
    pub known: &'a mut KnownOrder,
    pub plan: &'a mut Plan,
    /// Waves of its workgroup that are left alone.
    pub parked: &'a mut u32,
}

/// The wave and step at work: for findings.
#[derive(Copy, Clone)]
pub(super) struct WaveStep {
    pub workgroup: u64,
    pub wave: usize,
    pub step: u32,
}

impl WaveStep {
    /// A finding at the current instruction.
    pub(super) fn raw(self, kind: FindingKind, place: u64, lanes: u64) -> Raw {
        let WaveStep { workgroup, wave, step } = self;
        let consequence = Consequence::Decides;
        Raw { step, place, kind, other: None, workgroup, wave: wave as u32, lanes, consequence }
    }
}

impl<'a> LaunchChecker<'a> {
    /// A checker for a launch; `end` is the step after the kernel's function.
    pub(super) fn new(
        launch: &'a LaunchContext<'a>,
        table: Table,
        target: Target,
        seed: u64,
        end: usize,
    ) -> LaunchChecker<'a> {
        let descriptor = &launch.kernel.descriptor;
        let vgprs = descriptor.allocated_vgprs(target);
        let limits = match descriptor.accum_offset(target) {
            Some(offset) => [offset.min(vgprs), vgprs.saturating_sub(offset)],
            None => [vgprs, vgprs],
        };
        LaunchChecker {
            launch,
            seed,
            visits: table.facts.iter().map(|_| AtomicU8::new(0)).collect(),
            end,
            limits: [limits[0], limits[1], descriptor.allocated_sgprs(target)],
            written: launch.memory.written(),
            extents: launch.memory.extents().collect(),
            halted: AtomicBool::new(false),
            model: CacheModel::new(table.arch, descriptor.get(DescriptorField::TgSplit) != 0),
            table,
        }
    }

    /// A workgroup before its first instruction; `old` is one that has ended, whose memory can be used again.
    pub(super) fn start(&self, workgroup: u64, old: Option<CheckedGroup>) -> CheckedGroup {
        let waves = self.launch.waves;
        let (mut runners, mut lds, mut shadow) = match old {
            Some(old) => (old.runners, old.lds, old.shadow),
            None => (Vec::new(), Lds::default(), lds::LdsShadow::new()),
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
        let known = KnownOrder::new(waves, self.model);
        CheckedGroup { workgroup, runners, lds, shadow, known, plan, parked: 0 }
    }

    /// The context that the executor needs.
    pub(super) fn context<'b>(
        &'b self,
        lds: &'b mut Lds,
        caches: &'b mut [WidenedCache; 2],
    ) -> ExecutionContext<'b> {
        ExecutionContext {
            program: self.launch.program,
            memory: self.launch.memory,
            lds,
            caches,
            budget: self.launch.config.instruction_budget,
        }
    }
}

/// Reports that an undefined value makes a difference at the current instruction.
pub(super) fn uninitialised(worker: &mut CheckWorker, who: WaveStep, bad: &Undefined) {
    undefined_value(worker, who, bad, Consequence::Decides);
}

/// Reports that an undefined value is stored to device memory.
pub(super) fn undefined_store(worker: &mut CheckWorker, who: WaveStep, bad: &Undefined) {
    undefined_value(worker, who, bad, Consequence::Stored);
}

fn undefined_value(worker: &mut CheckWorker, who: WaveStep, bad: &Undefined, consequence: Consequence) {
    let used_in = bad.used_in;
    let kind = match bad.origin.what {
        Unwritten::Register(number) => FindingKind::UninitialisedRegister { register: name(number), used_in },
        Unwritten::Memory(memory, address) => FindingKind::UninitialisedMemory { memory, address, used_in },
    };
    let place = bad.origin.place();
    let at = WaveStep { step: bad.origin.step, ..who };
    let other = (bad.origin.step != who.step).then_some(who.step);
    worker.found.add(Raw { other, consequence, ..at.raw(kind, place, bad.lanes) });
}

/// Reports lanes that bypassed a barrier and do something after it.
#[cold]
pub(super) fn returned(runner: &mut Runner, worker: &mut CheckWorker, who: WaveStep, lanes: u64) {
    let at = WaveStep { step: runner.missing_at, ..who };
    let kind = match runner.missing == runner.launched {
        true => FindingKind::EmptyBarrier,
        false => FindingKind::DivergentBarrier { missing: Lanes(lanes) },
    };
    let raw = at.raw(kind, 0, lanes);
    worker.found.add(Raw { other: Some(who.step), ..raw });
    runner.missing = 0;
}

impl Runner {
    fn new() -> Runner {
        Runner {
            w: Wave::new(),
            registers: RegisterShadow::new(),
            flight: Flight::new(),
            handovers: Vec::new(),
            scratch: Scratch::new(),
            window: Window::new(0),
            launched: 0,
            missing: 0,
            missing_at: 0,
            stale_vccz: false,
            rounds: Rounds::default(),
            polling: Polling::default(),
        }
    }

    /// Before the first instruction, with the registers that the launch has filled.
    fn reset(&mut self, launch: &LaunchContext<'_>, arch: Arch) {
        self.registers.reset();
        self.flight.reset();
        self.handovers.clear();
        self.scratch.reset(4 * self.w.private_words as usize);
        self.window = Window::new(self.w.pc as u32);
        let begins = self.w.progress == Progress::Running;
        self.launched = if begins { self.w.exec() } else { 0 };
        (self.missing, self.stale_vccz) = (0, false);
        self.rounds.reset();
        self.polling.reset();
        for number in 0..launch.sgprs.end.min(102) {
            self.registers.define(number);
        }
        // Work-item ids: packed into one register, or one each.
        let ids = if arch.generation() >= Generation::Cdna2 {
            1
        } else {
            1 + launch.kernel.descriptor.get(DescriptorField::WorkitemId)
        };
        for register in 0..ids {
            self.registers.set_vector(FIRST_VECTOR + register, self.launched);
        }
    }
}
