//! How much of what compute units load is the same: the beginnings of workgroups that run at the same time,
//! one of each compute unit, are executed without their stores, and the lines that they load are compared:
//! those of two trips of a loop if there is one, since trips come in hundreds and what is before them once.
//! This is done for the workgroups that run first, for those in the middle of the launch and for the last
//! ones, as the order of workgroups need not go through the matrices evenly.
//! What the workgroups of one compute unit share shows in its own caches.

use crate::workers;

use super::super::error::MemoryAccess;
use super::super::execute::{ExecutionContext, Footprint, Lds, MemorySpace, WidenedCache, footprints};
use super::super::program::OperandPlace;
use super::super::start::LaunchContext;
use super::super::wave::{Progress, Wave};
use super::WorkgroupSpread;
use super::address_slice::WaveWalk;
use super::costs::StepCost;
use super::hierarchy::Sharing;
use crate::codegen::target::SHARED_LINE;
use crate::codegen::target::{CostKind, VectorKind};

/// The most workgroups of a die that are sampled.
const MOST_WORKGROUPS: u64 = 40;
/// Lines after which the sampling of a workgroup ends.
const MOST_LINES: usize = 4096;
/// Instructions of a wave that are executed.
const MOST_INSTRUCTIONS: u64 = 3000;
/// How often a wave executes the same load: its beginning and two whole trips of a loop, or one.
const MOST_REPEATED: u8 = 3;
const LEAST_REPEATED: u8 = 2;

/// What the sampled workgroups say about a launch.
pub(super) struct LaunchSample {
    /// How much of what compute units load is the same.
    pub sharing: Sharing,
    /// Bytes of the memories that the launch loads from.
    pub bytes_read: u64,
}

/// Samples workgroups that run at the same time.
pub(super) fn sample(walk: WaveWalk<'_>, costs: &[StepCost], spread: &WorkgroupSpread) -> LaunchSample {
    let launch = walk.launch;
    let wanted = match walk.slice {
        Some(_) => in_the_middle(launch.workgroups(), spread),
        None => at_three_times(launch.workgroups(), spread),
    };
    let mut found = vec![SampledWorkgroup::default(); wanted.len()];
    let memories = launch.memories();
    let places = wanted.iter().zip(&mut found);
    workers::for_each_with(places, u64::MAX, SamplingPlace::default, |place, (&(_, workgroup), found)| {
        *found = look(walk, costs, place, workgroup, &memories);
    });
    LaunchSample {
        sharing: sharing(&wanted, &found, spread),
        bytes_read: bytes_read(launch, costs, &memories, &found),
    }
}

/// Workgroups that run at the same time at the beginning of a launch, in its middle and when all compute
/// units have one for the last time: each with the number of that time.
fn at_three_times(all: u64, spread: &WorkgroupSpread) -> Vec<(usize, u64)> {
    let at_once = spread.dies * spread.units_per_die;
    let last = (all / at_once).saturating_sub(1);
    let mut rounds = vec![0, last / 2, last];
    rounds.dedup();
    rounds.into_iter().enumerate().flat_map(|(time, round)| of_round(time, round, all, spread)).collect()
}

/// Workgroups that run at the same time in the middle of a launch.
fn in_the_middle(all: u64, spread: &WorkgroupSpread) -> Vec<(usize, u64)> {
    let at_once = spread.dies * spread.units_per_die;
    of_round(0, (all / at_once).saturating_sub(1) / 2, all, spread).collect()
}

/// Workgroups of a round, one for each compute unit, with the number of the time that it stands for.
fn of_round(
    time: usize,
    round: u64,
    all: u64,
    spread: &WorkgroupSpread,
) -> impl Iterator<Item = (usize, u64)> + use<> {
    let first = round * spread.dies * spread.units_per_die;
    let per_die = spread.units_per_die.min(MOST_WORKGROUPS);
    (0..per_die * spread.dies).map(move |place| (time, first + place)).filter(move |at| at.1 < all)
}

/// What a workgroup has loaded.
#[derive(Clone, Default)]
struct SampledWorkgroup {
    /// Distinct lines of its longest part.
    lines: Vec<u64>,
    /// Of each memory of the launch, whether it has loaded from it.
    memories: Vec<bool>,
    /// Of each step, whether a wave has loaded by it.
    steps: Vec<bool>,
}

/// Bytes of the memories that are loaded from. If the code has loads that no sampled workgroup has come to,
/// as after a long loop, and that address with other scalar registers than those seen, it is not known what
/// they load, and all memories count.
fn bytes_read(
    launch: &LaunchContext<'_>,
    costs: &[StepCost],
    memories: &[(u64, u64)],
    found: &[SampledWorkgroup],
) -> u64 {
    let is_scalar = |place: &&OperandPlace| matches!(place, OperandPlace::Scalar(_));
    // The address of a buffer or of a memory, which stands in front of an offset.
    let base = |step: usize| launch.program.steps[step].operands.iter().find(is_scalar).copied();
    let is_seen = |step: usize| found.iter().any(|found| found.steps.get(step) == Some(&true));
    let loading = || costs.iter().enumerate().filter(|(_, cost)| loads(cost)).map(|(step, _)| step);
    let known: Vec<OperandPlace> = loading().filter(|&step| is_seen(step)).filter_map(base).collect();
    let knows_all =
        loading().all(|step| is_seen(step) || base(step).is_some_and(|base| known.contains(&base)));
    let is_read = |memory: usize| found.iter().any(|found| found.memories.get(memory) == Some(&true));
    let counted = memories.iter().enumerate().filter(|&(memory, _)| !knows_all || is_read(memory));
    counted.map(|(_, &(_, bytes))| bytes).sum()
}

/// True if the vector memory instruction brings something from memory.
fn loads(cost: &StepCost) -> bool {
    use VectorKind::{Atomic, Load, LoadToLds};
    matches!(cost.instruction.kind, CostKind::Vector { kind: Load | LoadToLds | Atomic, .. })
}

/// How much of what the workgroups `wanted` have loaded is the same.
fn sharing(wanted: &[(usize, u64)], found: &[SampledWorkgroup], spread: &WorkgroupSpread) -> Sharing {
    // Lines that compute units load, that dies do, and that the device does.
    let mut loaded = [0, 0, 0];
    let mut left = wanted.iter().zip(found).peekable();
    while let Some(&(&(time, _), _)) = left.peek() {
        let mut dies: Vec<Vec<u64>> = vec![Vec::new(); spread.dies as usize];
        while let Some((&(_, workgroup), found)) = left.next_if(|&(&(other, _), _)| other == time) {
            dies[(workgroup % spread.dies) as usize].extend(&found.lines);
        }
        let mut device = Vec::new();
        for die in &mut dies {
            loaded[0] += die.len();
            distinct(die);
            device.extend_from_slice(die);
        }
        loaded[1] += device.len();
        distinct(&mut device);
        loaded[2] += device.len();
    }
    let ratio = |parts: usize, whole: usize| if parts == 0 { 1.0 } else { whole as f64 / parts as f64 };
    Sharing { die: ratio(loaded[0], loaded[1]), device: ratio(loaded[1], loaded[2]) }
}

fn distinct(lines: &mut Vec<u64>) {
    lines.sort_unstable();
    lines.dedup();
}

/// Memory for workgroups that are sampled one after the other.
#[derive(Default)]
struct SamplingPlace {
    lds: Lds,
    caches: [WidenedCache; 2],
    waves: Vec<Wave>,
    /// How often each wave has executed each load.
    executions: Vec<Vec<u8>>,
    /// What one instruction accesses.
    found: Vec<Footprint>,
}

/// What the beginning of a workgroup loads. Any fault ends it: the timed run will report it.
fn look(
    walk: WaveWalk<'_>,
    costs: &[StepCost],
    place: &mut SamplingPlace,
    workgroup: u64,
    memories: &[(u64, u64)],
) -> SampledWorkgroup {
    let launch = walk.launch;
    let ids = launch.coordinates(workgroup);
    let SamplingPlace { lds, caches, waves, executions, found } = place;
    lds.reset(launch.lds_bytes);
    waves.resize_with(launch.waves, Wave::new);
    executions.resize_with(launch.waves, Vec::new);
    for (index, (wave, executions)) in waves.iter_mut().zip(&mut *executions).enumerate() {
        walk.start(wave, index, ids);
        executions.clear();
        executions.resize(costs.len(), 0);
    }
    let mut context = ExecutionContext {
        program: launch.program,
        memory: launch.memory,
        lds,
        caches,
        budget: MOST_INSTRUCTIONS,
    };
    let mut lines = SampledLines { found, first: Vec::new(), again: Vec::new() };
    loop {
        for (wave, executions) in waves.iter_mut().zip(&mut *executions) {
            while wave.progress == Progress::Running && !lines.suffice() {
                if !advance((wave, walk), costs, &mut context, executions, &mut lines) {
                    wave.progress = Progress::Ended;
                }
            }
        }
        let mut waiting = false;
        for wave in waves.iter_mut().filter(|w| w.progress == Progress::AtBarrier) {
            wave.progress = Progress::Running;
            waiting = true;
        }
        if !waiting || lines.suffice() {
            break;
        }
    }
    let steps = (0..costs.len()).map(|step| executions.iter().any(|wave| wave[step] > 0)).collect();
    let memories = memories.iter().map(|&memory| lines.touch(memory)).collect();
    SampledWorkgroup { lines: lines.of_the_longest_part(), memories, steps }
}

/// Lines that a workgroup loads.
struct SampledLines<'a> {
    /// What one instruction accesses.
    found: &'a mut Vec<Footprint>,
    /// By loads that a wave executes for the first time.
    first: Vec<u64>,
    /// By loads that it has executed before: those of a loop, each as often as the others.
    again: Vec<u64>,
}

impl SampledLines<'_> {
    fn suffice(&self) -> bool {
        self.first.len().max(self.again.len()) >= MOST_LINES
    }

    /// True if some of them belong to a memory.
    fn touch(&self, (start, bytes): (u64, u64)) -> bool {
        let own = start / SHARED_LINE..=(start + bytes.max(1) - 1) / SHARED_LINE;
        self.first.iter().chain(&self.again).any(|line| own.contains(line))
    }

    /// A loop stands for the time that it takes, however little of it is sampled.
    fn of_the_longest_part(self) -> Vec<u64> {
        let mut lines = if self.again.is_empty() { self.first } else { self.again };
        distinct(&mut lines);
        lines
    }
}

/// Executes one instruction, leaving out stores to memory and matrix instructions, on whose results hardly
/// any address depends; false if that is not possible.
fn advance(
    (wave, walk): (&mut Wave, WaveWalk<'_>),
    costs: &[StepCost],
    context: &mut ExecutionContext<'_>,
    executions: &mut [u8],
    lines: &mut SampledLines<'_>,
) -> bool {
    let Some(cost) = costs.get(wave.pc) else { return false };
    if cost.moves_no_address() {
        wave.pc += 1;
        return true;
    }
    if let CostKind::Vector { .. } = cost.instruction.kind {
        let SampledLines { found, first, again } = lines;
        let executions = &mut executions[wave.pc];
        let most = if walk.slice.is_some() { LEAST_REPEATED } else { MOST_REPEATED };
        if *executions == most {
            return false;
        }
        let lines = if *executions == 0 { first } else { again };
        *executions += 1;
        found.clear();
        if footprints(wave, &context.program.steps[wave.pc], found).is_err() {
            return false;
        }
        for f in found.iter().filter(|f| f.space == MemorySpace::Device && f.access == MemoryAccess::Load) {
            let mut left = f.lanes;
            let mut last = u64::MAX;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                left &= left - 1;
                let line = f.address[lane] / SHARED_LINE;
                if line != last {
                    lines.push(line);
                    last = line;
                }
            }
        }
    }
    walk.step(wave, context).is_ok()
}
