//! What time mode found, as data, and the estimate for the whole device.

use std::ops::Range;

use crate::codegen::target::Occupancy;

use super::super::check::FindingSource;
use super::super::launch_config::LaunchConfig;
use super::super::wave::LANES;
use super::bound::{LoopBound, UnitSpeed};
use super::hierarchy::{Sharing, Traffic};
use super::record::{Busy, Counters, IssueEvent, Pipe, Record, Stall, Wait, WaveTime};
use super::uneven::{UnevenWork, dealt_out, least_and_most, mean};
use super::unit::ComputeUnit;
use super::{Fidelity, TimeOptions, WorkgroupSpread};
use crate::codegen::target::{
    ClockChoice, Confidence, DeviceModel, DeviceParameter, ParameterSet, SIMDS, TURN,
};

/// How long a launch takes, and why.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TimeReport {
    /// The name that the device is sold under.
    pub device: &'static str,
    /// Kernel name.
    pub kernel: String,
    /// Workgroups of the launch.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// Clock of the compute units.
    pub clock: ClockReport,
    /// Workgroups that a compute unit holds.
    pub workgroups_per_unit: u32,
    /// Waves that its fullest SIMD holds.
    pub waves_per_simd: u32,
    /// What keeps it from holding more.
    pub limited_by: String,
    /// How much compute units load the same.
    pub sharing: Sharing,
    /// How much of the simulated workgroups was executed.
    pub extent: ExecutedExtent,
    /// The compute unit that was simulated.
    pub unit: UnitReport,
    /// The loop that was taken most often.
    pub main_loop: Option<LoopReport>,
    /// How busy pipes were.
    pub pipes: Vec<PipeReport>,
    /// Stalls of all waves by reason, in the order of [`Stall::ALL`].
    pub stalls: Vec<StallReport>,
    /// Every instruction from the first to the last that was executed; of very long kernels JSON and page
    /// have only the first [`MOST_LISTED`].
    #[cfg_attr(feature = "serde", serde(serialize_with = "listed"))]
    pub instructions: Vec<InstructionReport>,
    /// Instructions that JSON and page leave out.
    pub instructions_left_out: usize,
    /// The whole device.
    pub estimate: Estimate,
    /// Doubtful numbers that all this rests on.
    pub rests_on: Vec<Doubt>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) timeline: Timeline,
}

/// How much of the simulated workgroups was executed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExecutedExtent {
    /// All instructions, or a sample.
    pub fidelity: Fidelity,
    /// Why it was all of them although a sample was asked for.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub why: Option<&'static str>,
    /// A sample whose addresses or branches depend on what memory holds beside the arguments of the kernel.
    pub reads_memory: bool,
}

impl ExecutedExtent {
    pub(super) fn full() -> ExecutedExtent {
        ExecutedExtent { fidelity: Fidelity::Full, why: None, reads_memory: false }
    }

    pub(super) fn sampled(reads_memory: bool) -> ExecutedExtent {
        ExecutedExtent { fidelity: Fidelity::Sampled, why: None, reads_memory }
    }
}

/// The clock that was estimated for, beside those of the device.
#[derive(Copy, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ClockReport {
    /// MHz, which microseconds and rates follow from.
    pub megahertz: f64,
    /// Which it is: `sustained`, `greatest` or `given`.
    pub which: &'static str,
    /// What the device holds while its matrix cores are busy, MHz.
    pub sustained: f64,
    /// The greatest clock of its data sheet, MHz.
    pub greatest: f64,
}

impl ClockReport {
    fn of(options: &TimeOptions) -> ClockReport {
        let megahertz = |clock: ClockChoice| clock.megahertz(options.device);
        ClockReport {
            megahertz: megahertz(options.clock),
            which: options.clock.name(),
            sustained: megahertz(ClockChoice::Sustained),
            greatest: megahertz(ClockChoice::Greatest),
        }
    }

    /// The clock of the device that it is not, in MHz: the greatest one, or the sustained one if this is any
    /// other.
    pub(super) fn other(&self) -> (f64, &'static str) {
        let [sustained, greatest] = [ClockChoice::Sustained, ClockChoice::Greatest].map(ClockChoice::name);
        if self.which == sustained { (self.greatest, greatest) } else { (self.sustained, sustained) }
    }

    /// Least and most microseconds at the other clock of what takes so many clk at this one.
    fn at_other(&self, clk: f64) -> [f64; 2] {
        let [same_time, same_clk] = [clk / self.megahertz, clk / self.other().0];
        [same_time.min(same_clk), same_time.max(same_clk)]
    }
}

/// Instructions that JSON and page list at most.
pub const MOST_LISTED: usize = 20_000;

#[cfg(feature = "serde")]
fn listed<S: serde::Serializer>(
    instructions: &[InstructionReport],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use serde::Serialize;
    instructions[..instructions.len().min(MOST_LISTED)].serialize(serializer)
}

/// What one compute unit did.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct UnitReport {
    /// Workgroups that were simulated, and that the compute unit would get.
    pub workgroups: u64,
    /// Workgroups that the compute unit would get.
    pub assigned: u64,
    /// Instructions issued.
    pub instructions: u64,
    /// Operations: floating-point ones, and those of matrix instructions.
    pub operations: u64,
    /// Clk until the last simulated workgroup had ended.
    pub clk: u64,
    /// Clk between the ends of two workgroups in steady state; the mean of all if they differ.
    pub clk_per_workgroup: f64,
    /// The least and the most clk of a workgroup, if they have different work.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub clk_of_workgroups: Option<[f64; 2]>,
    /// Traffic of the caches.
    pub traffic: Traffic,
    /// When each wave ran.
    pub waves: Vec<WaveTime>,
}

/// A loop.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LoopReport {
    /// Addresses of its first instruction and of its branch.
    pub address: [u64; 2],
    /// Times that a wave went back.
    pub iterations: u64,
    /// Clk of an iteration of one wave: the median.
    pub clk_per_iteration: f64,
    /// Clk that the compute unit takes per iteration of a wave.
    pub unit_clk_per_iteration: f64,
    /// What an iteration of all waves that run at the same time needs, and what of it takes longest.
    pub bound: LoopBound,
}

/// How busy a pipe was.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PipeReport {
    /// Which.
    pub pipe: Pipe,
    /// Its name.
    pub name: &'static str,
    /// Part of the time that it was busy, all its units together. The VALU can be above one where a SIMD
    /// issues two instructions per turn, LDS where it is read and written at once.
    pub utilisation: f64,
}

/// Stalls of one kind.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StallReport {
    /// Which.
    pub stall: Stall,
    /// AMD's name.
    pub name: &'static str,
    /// Clk of all waves.
    pub clk: u64,
}

/// An instruction and what it cost.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstructionReport {
    /// Address in the code object, as disassemblers print it.
    pub address: u64,
    /// Assembler text.
    pub text: String,
    /// The author's line, where the object says it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub source: Option<FindingSource>,
    /// Times that it was issued.
    pub issued: u64,
    /// Clk that waves stood at it before they issued it, or because of it, by reason in the order of
    /// [`Stall::ALL`].
    pub stalls: [u64; Stall::ALL.len()],
    /// Clk of LDS banks that conflicts cost.
    pub bank_conflicts: u64,
    /// Cache lines that it touched.
    pub lines: u64,
}

impl InstructionReport {
    fn new(address: u64, text: String, source: Option<FindingSource>, c: &Counters) -> InstructionReport {
        InstructionReport {
            address,
            text,
            source,
            issued: c.issued,
            stalls: c.stalls,
            bank_conflicts: c.conflicts,
            lines: c.lines,
        }
    }

    /// Clk that waves stood at it.
    pub fn stalled(&self) -> u64 {
        self.stalls.iter().sum()
    }

    /// The reason that cost most.
    pub fn worst(&self) -> Option<Stall> {
        let worst =
            Stall::ALL.into_iter().max_by_key(|&s| (self.stalls[s as usize], Stall::ALL.len() - s as usize));
        worst.filter(|&s| self.stalls[s as usize] > 0)
    }
}

/// The whole device.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Estimate {
    /// How often all places of the device are filled with workgroups.
    pub rounds: f64,
    /// Clk from the first wave to the last.
    pub clk: f64,
    /// The same in microseconds at the clock.
    pub microseconds: f64,
    /// With the launch.
    pub microseconds_with_launch: f64,
    /// Microseconds without the launch that it takes at least and at most at the device's other clock, which
    /// is the greatest one if this is for the sustained one, and otherwise that. The clk bound it: of loads
    /// from below L2 they count more at a higher clock, and never fewer.
    pub microseconds_at_other_clock: [f64; 2],
    /// Tera-operations per second of the launch, without its overhead.
    pub tera_operations: f64,
    /// Bytes that lanes load and store, in TB per second.
    pub bandwidth: f64,
    /// Bytes of HBM, in TB per second.
    pub memory_bandwidth: f64,
    /// Whether part of it is extrapolated.
    pub extrapolated: bool,
}

/// A doubtful number.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Doubt {
    /// Which.
    pub parameter: DeviceParameter,
    /// What it says.
    pub text: &'static str,
    /// The number.
    pub value: f64,
    /// How far it can be trusted: low or unknown.
    pub confidence: Confidence,
    /// Where it comes from.
    pub source: &'static str,
}

/// Events for the pictures.
#[derive(Clone, Default, Debug)]
pub(super) struct Timeline {
    pub events: Vec<IssueEvent>,
    pub waits: Vec<Wait>,
    pub busy: Vec<Busy>,
    /// Step of the first instruction of the report.
    pub first: usize,
    /// Workgroup, number in it and SIMD of each wave by the order of launches.
    pub waves: Vec<(u64, u32, u32)>,
}

impl Timeline {
    /// Waves of which something is kept: the first ones.
    #[cfg(feature = "serde")]
    pub(super) fn seen(&self) -> usize {
        let waves = self.events.iter().map(|e| e.wave).chain(self.waits.iter().map(|w| w.wave));
        waves.map(|wave| wave as usize + 1).max().unwrap_or(0).min(self.waves.len())
    }
}

impl TimeReport {
    /// Kept issues in the order of time: text and clk.
    pub fn issues(&self) -> impl Iterator<Item = (&str, u64)> {
        self.timeline.events.iter().filter_map(|event| {
            let index = (event.step as usize).checked_sub(self.timeline.first)?;
            Some((self.instructions.get(index)?.text.as_str(), event.issued))
        })
    }

    /// Clk that waves spent on an instruction, issuing it or waiting at it.
    pub fn cost(&self, instruction: &InstructionReport) -> u64 {
        instruction.issued * TURN + instruction.stalled()
    }

    /// The instructions that cost most, the most expensive one first, those of the same cost in the order of
    /// addresses.
    pub fn most_expensive(&self, count: usize) -> Vec<&InstructionReport> {
        let mut all: Vec<&InstructionReport> =
            self.instructions.iter().filter(|i| self.cost(i) > 0).collect();
        all.sort_by_key(|i| std::cmp::Reverse(self.cost(i)));
        all.truncate(count);
        all
    }
}

/// What the report says in addition to the findings of the model.
pub(super) struct About<'a> {
    pub options: &'a TimeOptions,
    pub kernel: &'a str,
    pub config: LaunchConfig,
    pub occupancy: Occupancy,
    pub spread: &'a WorkgroupSpread,
    pub sharing: Sharing,
    pub workgroups: u64,
    pub simulated: u64,
    pub uneven: Option<UnevenWork>,
    pub extent: ExecutedExtent,
}

impl About<'_> {
    /// The speed of the compute unit with all waves that it runs at the same time.
    fn speed(&self, unit: &ComputeUnit<'_>) -> UnitSpeed {
        let waves = self.config.block.iter().product::<u32>().div_ceil(LANES as u32);
        let workgroups = self.simulated.min(self.occupancy.workgroups_per_compute_unit.into());
        UnitSpeed {
            waves: u64::from(waves) * workgroups,
            lds_write: self.options.device.get(DeviceParameter::LdsPortWrite),
            levels: unit.hierarchy.rates(),
        }
    }
}

/// The parameters that every figure rests on.
const ALWAYS: ParameterSet = ParameterSet::of(&[
    DeviceParameter::Turn,
    DeviceParameter::LaunchInterval,
    DeviceParameter::WaveInterval,
    DeviceParameter::LaunchOverhead,
]);

/// Makes the report; `describe` gives address and text of a step, `line` the author's line of an address.
pub(super) fn report(
    about: &About<'_>,
    mut unit: ComputeUnit<'_>,
    describe: impl Fn(usize) -> (u64, String),
    line: impl Fn(u64) -> Option<FindingSource>,
) -> TimeReport {
    let device = about.options.device;
    let resident = about.occupancy.workgroups_per_compute_unit;
    // By launch, as timeline and reader expect it.
    unit.waves.sort_by_key(|w| (w.start, w.workgroup, w.wave));
    let record = &unit.record;
    let clk = unit.ends.iter().copied().max().unwrap_or(0).max(1);
    let executed = executed_steps(record);
    let instructions: Vec<InstructionReport> = Range::clone(&executed)
        .map(|step| {
            let (address, text) = describe(step);
            InstructionReport::new(address, text, line(address), &record.counters[step])
        })
        .collect();
    let own_clk = about.uneven.as_ref().map(|work| work.clk(&unit.waves)).unwrap_or_default();
    let unit_report = UnitReport {
        workgroups: about.simulated,
        assigned: about.spread.assigned,
        instructions: record.counters.iter().map(|c| c.issued).sum(),
        operations: record.operations,
        clk,
        clk_per_workgroup: mean(&own_clk).unwrap_or_else(|| clk_per_workgroup(&unit.ends, resident as usize)),
        clk_of_workgroups: least_and_most(&own_clk),
        traffic: unit.hierarchy.traffic,
        waves: std::mem::take(&mut unit.waves),
    };
    let (speed, addresses) = (about.speed(&unit), |step| describe(step).0);
    TimeReport {
        device: device.name,
        kernel: about.kernel.to_owned(),
        grid: about.config.grid,
        block: about.config.block,
        clock: ClockReport::of(about.options),
        workgroups_per_unit: resident,
        waves_per_simd: about.occupancy.waves_per_simd,
        limited_by: about.occupancy.limited_by.to_string(),
        sharing: about.sharing,
        extent: about.extent,
        main_loop: main_loop(record, clk, &speed, addresses, |step| unit.branch_target(step)),
        pipes: Pipe::ALL.map(|pipe| pipe_report(record, pipe, clk)).into(),
        stalls: stall_reports(record).into(),
        instructions_left_out: instructions.len().saturating_sub(MOST_LISTED),
        instructions,
        estimate: estimate(about, &unit_report, &own_clk),
        rests_on: doubts(used_parameters(&unit, about.options.clock), device),
        unit: unit_report,
        timeline: Timeline {
            events: unit.record.events,
            waits: unit.record.waits,
            busy: unit.record.busy,
            first: executed.start,
            waves: unit.launched,
        },
    }
}

/// The steps from the first to the last one that was executed.
fn executed_steps(record: &Record) -> Range<usize> {
    let executed = |c: &Counters| c.issued > 0;
    let first = record.counters.iter().position(executed).unwrap_or(0);
    first..record.counters.iter().rposition(executed).map_or(first, |last| last + 1)
}

fn stall_reports(record: &Record) -> [StallReport; Stall::ALL.len()] {
    Stall::ALL.map(|stall| {
        let clk = record.counters.iter().map(|counters| counters.stalls[stall as usize]).sum();
        StallReport { stall, name: stall.name(), clk }
    })
}

/// The parameters that what a compute unit did rests on.
fn used_parameters(unit: &ComputeUnit<'_>, clock: ClockChoice) -> ParameterSet {
    let mut used = unit.record.used;
    used.join(ALWAYS);
    if clock == ClockChoice::Sustained {
        used.mark(DeviceParameter::SustainedClock);
    }
    used.join(unit.hierarchy.used);
    for (counters, cost) in unit.record.counters.iter().zip(unit.costs()) {
        if counters.issued > 0 {
            used.join(cost.instruction.used);
        }
    }
    used
}

/// Those of some parameters that are doubtful on a device.
fn doubts(used: ParameterSet, device: &DeviceModel) -> Vec<Doubt> {
    let doubts = used.members().filter_map(|parameter| {
        let value = device.value(parameter);
        let doubtful = value.confidence >= Confidence::Low;
        doubtful.then(|| Doubt {
            parameter,
            text: parameter.text(),
            value: value.value,
            confidence: value.confidence,
            source: value.source,
        })
    });
    doubts.collect()
}

/// Clk between the ends of two workgroups once the compute unit is full.
fn clk_per_workgroup(ends: &[u64], resident: usize) -> f64 {
    let mut ends = ends.to_vec();
    ends.sort_unstable();
    let last = ends.last().copied().unwrap_or(0);
    // With a full round before it, and whole rounds after: all places end at about the same time.
    let rounds = (ends.len() / resident.max(1)).saturating_sub(1);
    match rounds {
        0 => last as f64 / ends.len().max(1) as f64,
        _ => (last - ends[ends.len() - 1 - rounds * resident]) as f64 / (rounds * resident) as f64,
    }
}

fn pipe_report(record: &Record, pipe: Pipe, clk: u64) -> PipeReport {
    let units = match pipe {
        Pipe::Valu | Pipe::Matrix => SIMDS,
        Pipe::Lds => SIMDS / 2,
        Pipe::Scalar | Pipe::LdsBanks | Pipe::Vector | Pipe::Branch => 1,
    };
    let utilisation = record.busy_clk[pipe as usize] / (units as u64 * clk) as f64;
    PipeReport { pipe, name: pipe.name(), utilisation }
}

/// The loop that was taken most often; of several the first.
fn main_loop(
    record: &Record,
    clk: u64,
    speed: &UnitSpeed,
    address: impl Fn(usize) -> u64,
    target: impl Fn(usize) -> usize,
) -> Option<LoopReport> {
    let hottest = record.loops.iter().rev().max_by_key(|l| l.taken)?;
    let mut intervals = hottest.intervals.clone();
    intervals.sort_unstable();
    let median = match intervals.len() {
        0 => 0.0,
        n => f64::from(intervals[(n - 1) / 2] + intervals[n / 2]) / 2.0,
    };
    let steps = target(hottest.step)..=hottest.step;
    Some(LoopReport {
        address: [address(*steps.start()), address(*steps.end())],
        iterations: hottest.taken,
        clk_per_iteration: median,
        unit_clk_per_iteration: clk as f64 / hottest.taken as f64,
        bound: speed.bound(&record.counters[steps], hottest.pace()),
    })
}

/// The estimate for the device, whose workgroups take `own_clk` each, or all what the simulated ones take if
/// that is empty.
fn estimate(about: &About<'_>, unit: &UnitReport, own_clk: &[f64]) -> Estimate {
    let spread = about.spread;
    let left = spread.assigned - about.simulated;
    let resident = u64::from(about.occupancy.workgroups_per_compute_unit);
    let (total, scale) = match &about.uneven {
        Some(work) => {
            let cold = work.cold_clk(&unit.waves, own_clk);
            (cold + dealt_out(own_clk, spread, resident), work.scale(&unit.waves))
        }
        // All workgroups are assumed to do what the first one does.
        None => (
            unit.clk as f64 + left as f64 * unit.clk_per_workgroup,
            about.workgroups as f64 / about.simulated as f64,
        ),
    };
    let microseconds = total / about.options.megahertz();
    let places = spread.dies * spread.units_per_die * resident;
    let per_second = |count: f64| count * scale / microseconds / 1e6;
    Estimate {
        rounds: about.workgroups as f64 / places as f64,
        clk: total,
        microseconds,
        microseconds_at_other_clock: ClockReport::of(about.options).at_other(total),
        microseconds_with_launch: microseconds + about.options.device.get(DeviceParameter::LaunchOverhead),
        tera_operations: per_second(unit.operations as f64),
        bandwidth: per_second((unit.traffic.loaded + unit.traffic.stored) as f64),
        memory_bandwidth: per_second((unit.traffic.memory_read + unit.traffic.memory_written) as f64),
        extrapolated: left > 0 || !own_clk.is_empty(),
    }
}
