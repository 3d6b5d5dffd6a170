//! *Check* mode: the instructions of run mode in an adversarial order, with every step judged by what the
//! machine guarantees.
//!
//! A seed decides in which order workgroups and waves go on and when memory operations take effect
//! between their issue and the wait that covers them (`schedule`, `flight`), so that missing
//! synchronisation can also show in the results. The findings do not depend on that luck: shadows know
//! for every register whether it is written and not in flight (`registers`, `flight`) and which bits of
//! it are defined (`registers`, `definedness`), for every piece of LDS, device memory and scratch which
//! wave used it last and what has ordered that since (`lds`, `device`, `contested`, `undefined_bytes`,
//! `merged`, `scratch`, `order`, `handover`; `touched` is what is left of it for others), and for every
//! wave the wait states after each instruction (`hazards`). Runs that a replay gets wrong (`replay`) and
//! halves of registers that a load clears (`halves`) are found before the launch. `checker` is what all
//! that is kept in, `group` the loop over instructions, `access` the judge of memory instructions,
//! `finding` and `report` the output, `cause` what puts findings together.
//!
//! Workgroups run in parallel where they cannot hand over data to each other; a launch that could is run on
//! one thread, its workgroups in turns, so that the same seed gives the same report. Waves that would only
//! look again at what another one has to store (`polls`) are left alone until it has changed (`polling`).
//!
//! The rules of memory between waves are those of the memory model of LLVM's AMDGPU usage page (`model`,
//! `order`, `handover`). They are judged by what happened before what, never by the values that a seed
//! brings about. Two waves of a workgroup are ordered by a barrier, or by a flag in memory: without tg_split
//! what was issued before the flag counts, with tg_split only what vmcnt has covered, and loads see it after
//! `buffer_inv sc0`. Waves of different workgroups may be on different dies: a store counts once it is over
//! and, from gfx942 on, written back (`buffer_wbl2 sc1`, waited for), or was itself of agent scope; a load
//! sees it after an invalidation (`buffer_inv sc1`, before gfx942 `buffer_wbinvl1_vol`), or if it has agent
//! scope. The scope of loads and stores is sc1 sc0 from gfx942 on (00 wave, 01 workgroup, 10 agent, 11
//! system; nt is a hint without meaning here), before that glc of a load; read-modify-writes always have
//! agent scope. A flag hands over what its store knew when it was issued, to the load that finds the value
//! when it is performed, for use once a wait has covered that load; between workgroups both sides need agent
//! scope.
//!
//! Two stores of the same value are a note. LDS has no scope bits: there atomics hand over, and a store does
//! to a load that waits for it (`polls`), because all accesses to LDS are in one order; the same loads are
//! flags of workgroup scope in memory before gfx942. At the barrier of a grid (`ds_gws_barrier`) every wave
//! hands over what it knows to all that meet there. The waves that wait look again on later turns, and if no
//! workgroup can go on, that is a finding.
//!
//! Most paths are short on purpose: what lies straight in front of an instruction is judged once, accesses
//! of whole waves are judged by groups of lanes that lie side by side (`runs`), and what workgroups leave is
//! kept by blocks of cells (`merged`). A new judgement has to keep them so. A finding is data: kind,
//! instruction, wave, lanes, register or address; text, line of the author and JSON are made from it at the
//! end.

mod access;
mod advice;
mod cause;
mod cells;
mod checker;
mod contested;
mod data;
mod definedness;
mod descriptors;
mod device;
mod facts;
mod finding;
mod flight;
mod found;
mod group;
mod guess;
mod halves;
mod handover;
mod hazards;
mod lds;
mod merged;
mod model;
mod order;
mod polling;
mod polls;
mod registers;
mod replay;
mod report;
mod runs;
mod schedule;
mod scratch;
mod touched;
mod undefined;
mod undefined_bytes;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use crate::codegen::object::{LineMap, ObjectFile};
use crate::codegen::target::Target;
use crate::workers;

use super::error::{SimError, StoppedWave};
use super::launch_config::LaunchConfig;
use super::memory::DeviceMemory;
use super::module::{LoadedKernel, Module};
use super::random::Random;
use super::start::{LaunchContext, Segments};
use checker::{CheckWorker, CheckedGroup, LaunchChecker};
use facts::Table;
use found::{Consequence, FindingSet, Raw};
use merged::Merged;
use touched::TouchKind;
use undefined_bytes::{StoredUndefined, UndefinedBytes};

pub use cause::{CauseKey, FindingCause, MorePlaces};
pub use finding::{
    AdviceReader, Finding, FindingKind, FindingSource, Lanes, Memory, Site, Touch, Unordered, Use,
    WaitCounter,
};
pub use report::CheckReport;
pub use touched::TouchedBytes;

/// How to check.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckOptions {
    /// Decides the order of workgroups, waves and memory operations.
    pub seed: u64,
}

/// Waves that run at the same time where workgroups can wait for each other.
const RESIDENT_WAVES: usize = 1024;
/// The same where all of these wait for those that have not begun: hardware holds more.
const MOST_RESIDENT_WAVES: usize = 8 * RESIDENT_WAVES;
/// Instructions after which it is another workgroup's turn there.
const TURN: u32 = 512;

/// Turns per workgroup, at random, after which no wave that could go on can have been left out.
const TURNS_OF_ALL: usize = 256;

/// Runs a kernel to its end and reports what it does wrong.
pub(super) fn check(
    memory: &DeviceMemory,
    target: Target,
    module: &Module,
    name: &str,
    (config, arguments): (LaunchConfig, &[u8]),
    options: &CheckOptions,
) -> Result<CheckReport, SimError> {
    let kernel = module.kernel(name).ok_or_else(|| SimError::NoKernel(name.to_owned()))?;
    let segments = Segments::new(target, kernel, &config, arguments)?;
    let mut view = segments.view(memory);
    view.with_rendezvous();
    let launch = LaunchContext::new(target, module, kernel, config, &segments, &view)?;
    let object = ObjectFile::parse(module.object()).map_err(|error| SimError::Object(error.to_string()))?;
    let (code, address) = module.code(kernel);
    let end = object.kernel(name).and_then(|k| (k.entry + k.code.len() as u64).checked_sub(address));
    let end = end.and_then(|offset| launch.program.find(i64::try_from(offset).ok()?));
    let end = end.map_or(launch.program.steps.len(), |step| step as usize);
    let table = Table::new(launch.program, code, launch.entry..end, |facts, program| {
        guess::mark(facts);
        replay::mark(facts, object.xnack);
        halves::mark(facts, program);
        polls::mark(facts, program);
    });
    let checker = LaunchChecker::new(&launch, table, target, options.seed, end);
    launch.begins(launch.workgroups());
    let Launched { found, instructions, undefined, touched } =
        if checker.table.hands_over { together(&checker) } else { in_parallel(&checker) }
            .map_err(|stopped| SimError::Fault(Box::new(launch.fault(module, stopped))))?;
    let lines = object.lines();
    let stored = undefined.leave(launch.memory);
    let words = FindingWords { module, kernel, launch: &launch, lines: &lines, stored };
    let (notes, findings) = words.all(found).into_iter().partition(|finding| finding.kind.is_note());
    Ok(CheckReport {
        kernel: name.to_owned(),
        seed: options.seed,
        findings,
        notes,
        instructions,
        waves: launch.workgroups() * launch.waves as u64,
        touched,
    })
}

/// What came of a launch.
#[derive(Default)]
struct Launched {
    found: FindingSet,
    instructions: u64,
    /// What is left in memory that is undefined.
    undefined: UndefinedBytes,
    touched: TouchedBytes,
}

impl Launched {
    /// Bytes `start` to `end - 1` of an allocation were used.
    fn touch(&mut self, checker: &LaunchChecker<'_>, kind: TouchKind, allocation: usize, bytes: Range<u64>) {
        let (base, size) = checker.extents[allocation];
        self.touched.add(kind, base + bytes.start..base + bytes.end.min(size));
    }
}

/// Workgroups that cannot wait for each other, on all threads.
fn in_parallel(checker: &LaunchChecker<'_>) -> Result<Launched, StoppedWave> {
    let workgroups = checker.launch.workgroups();
    let sizes: Vec<u64> = checker.extents.iter().map(|(_, size)| *size).collect();
    let merged = Merged::new(&sizes, checker.table.granules[1], checker.model);
    let order = schedule::WorkgroupOrder::new(checker.seed, workgroups);
    let mut launched = Launched::default();
    workers::until_failure(
        order.runs(),
        || (CheckWorker::new(checker), None),
        |(worker, group), run| {
            for workgroup in order.run(run) {
                if checker.halted.load(Relaxed) {
                    return Ok(());
                }
                let mut this = checker.start(workgroup, group.take());
                let result = run_to_end(checker, &mut this, worker);
                if result.is_ok() {
                    merged.add(workgroup, &worker.shadow);
                }
                worker.shadow.reset();
                worker.left_undefined.append(&mut worker.undefined_bytes);
                *group = Some(this);
                result?;
            }
            Ok(())
        },
        |(mut worker, _)| {
            launched.found.merge(worker.found);
            launched.instructions += worker.instructions;
            launched.undefined.append(&mut worker.left_undefined);
        },
    )?;
    merged.races(|race| launched.found.add(between_workgroups(checker, &race)));
    merged.written(|allocation, start, end| checker.launch.memory.note_written(allocation, start, end));
    merged.touched(|kind, allocation, bytes| launched.touch(checker, kind, allocation, bytes));
    launched.touched.tidy();
    Ok(launched)
}

fn run_to_end(
    checker: &LaunchChecker<'_>,
    group: &mut CheckedGroup,
    worker: &mut CheckWorker,
) -> Result<(), StoppedWave> {
    while !checker.advance(group, worker, u32::MAX)? {
        group.goes_on_in_vain();
    }
    Ok(())
}

/// A race between workgroups as a finding at the later one's instruction.
fn between_workgroups(checker: &LaunchChecker<'_>, race: &merged::Race) -> Raw {
    let [(other_workgroup, other_step, first), (workgroup, step, then)] = race.sides;
    let (base, _) = checker.extents[race.allocation];
    let (memory, address, other_wave) = (Memory::Device, base + race.offset, 0);
    let other_workgroup = checker.launch.coordinates(other_workgroup);
    Raw {
        step,
        place: base,
        kind: match race.is_repeated {
            true => FindingKind::RepeatedStore { memory, address, other_wave, other_workgroup },
            false => {
                let reason = Unordered::OtherWorkgroup;
                FindingKind::Race { memory, first, then, address, reason, other_wave, other_workgroup }
            }
        },
        other: Some(other_step),
        workgroup,
        wave: 0,
        lanes: 0,
        consequence: Consequence::Decides,
    }
}

/// Workgroups that may wait for each other, in turns on one thread.
fn together(checker: &LaunchChecker<'_>) -> Result<Launched, StoppedWave> {
    let workgroups = checker.launch.workgroups();
    let order = schedule::WorkgroupOrder::new(checker.seed, workgroups);
    let mut waiting = (0..order.runs()).flat_map(|run| order.run(run)).peekable();
    let mut random = Random::new(checker.seed, u64::MAX);
    // All workgroups of a cooperative launch fit the chip at once; those of another one need not.
    let mut most = match checker.table.meets && checker.launch.config.grid_sync != 0 {
        true => usize::MAX,
        false => (RESIDENT_WAVES / checker.launch.waves).max(1),
    };
    let mut worker = CheckWorker::new(checker);
    let (mut groups, mut spare): (Vec<CheckedGroup>, Vec<CheckedGroup>) = (Vec::new(), Vec::new());
    let (mut idle, mut able) = (0, Vec::new());
    loop {
        while groups.len() < most && !checker.halted.load(Relaxed) {
            let Some(workgroup) = waiting.next() else { break };
            groups.push(checker.start(workgroup, spare.pop()));
        }
        if groups.is_empty() {
            break;
        }
        let Some(index) = choose(checker, &mut groups, &mut able, &mut random) else {
            match waiting.peek() {
                Some(_) if most.saturating_mul(checker.launch.waves) < MOST_RESIDENT_WAVES => most += 1,
                _ => groups.iter_mut().for_each(CheckedGroup::goes_on_in_vain),
            }
            continue;
        };
        let group = &mut groups[index];
        let before = group.executed();
        let has_ended = checker.advance(group, &mut worker, TURN)?;
        // Workgroups have their turns at random: after that many, all of them have had several.
        idle = if has_ended || group.executed() != before { 0 } else { idle + 1 };
        if idle > TURNS_OF_ALL * groups.len() {
            checker.never_meets(&groups[index], &mut worker);
        }
        if has_ended {
            spare.push(groups.swap_remove(index));
        }
    }
    worker.shadow.written(|allocation, start, end| {
        checker.launch.memory.note_written(allocation, start, end);
    });
    let CheckWorker { found, instructions, undefined_bytes: undefined, shadow, .. } = worker;
    let mut launched = Launched { found, instructions, undefined, touched: TouchedBytes::default() };
    shadow.touched(|kind, allocation, bytes| launched.touch(checker, kind, allocation, bytes));
    launched.touched.tidy();
    Ok(launched)
}

/// One of the workgroups that can go on, if there is any; `able` is for their numbers.
fn choose(
    checker: &LaunchChecker<'_>,
    groups: &mut [CheckedGroup],
    able: &mut Vec<usize>,
    random: &mut Random,
) -> Option<usize> {
    if groups.iter().all(|group| group.parked == 0) {
        return Some(random.below(groups.len() as u64) as usize);
    }
    let numbered = groups.iter_mut().enumerate();
    able.clear();
    able.extend(numbered.filter_map(|(index, group)| checker.can_go_on(group).then_some(index)));
    able.get(random.below(able.len() as u64) as usize).copied()
}

/// Turns findings into words.
struct FindingWords<'a> {
    module: &'a Module,
    kernel: &'a LoadedKernel,
    launch: &'a LaunchContext<'a>,
    lines: &'a LineMap<'a>,
    stored: StoredUndefined,
}

impl FindingWords<'_> {
    fn all(&self, found: FindingSet) -> Vec<Finding> {
        found.into_sorted().map(|(raw, count)| self.finding(raw, count)).collect()
    }

    fn finding(&self, raw: Raw, count: u64) -> Finding {
        Finding {
            kernel: self.kernel.name.clone(),
            at: self.site(raw.step),
            other: raw.other.map(|step| self.site(step)),
            workgroup: self.launch.coordinates(raw.workgroup),
            wave: raw.wave,
            lanes: Lanes(raw.lanes),
            kind: raw.kind,
            count,
            stored: match raw.consequence {
                // Nowhere any more if something else has been stored there since.
                Consequence::Stored => {
                    self.stored.get(&(raw.step, raw.place)).map_or(Some(Vec::new()), Option::clone)
                }
                Consequence::Decides => None,
            },
            reader: AdviceReader::default(),
        }
    }

    fn site(&self, step: u32) -> Site {
        let (address, instruction) = self.module.describe(self.kernel, step as usize);
        let source = self.lines.line_of(address).map(FindingSource::from);
        Site { instruction, address, source }
    }
}
