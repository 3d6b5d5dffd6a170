//! Time mode: how long a launch takes, and why.
//!
//! One compute unit is simulated in turns of four clk (`unit`), with the workgroups that it would get, as
//! many at a time as fit. Waves execute when they issue, through the same executor as in run mode; costs come
//! from rows of the instruction table (`costs`), from lanes' addresses (`banks`, `lanes`) and from caches and
//! translation (`hierarchy`, `translation`) over addresses that do not depend on the process (`places`).
//! Resources that compute units share are divided among them; how much of what they load is the same is
//! sampled beforehand (`share`). The result is scaled to the device (`report`); if some workgroups have more
//! work than others, a few of each kind are simulated (`uneven`).
//!
//! Every number of the model is in `parameters`, with its confidence and its source. The model leaves out
//! queues and channels between L2 and memory; the clock is given, and does not follow the load.
//!
//! Memory afterwards: the simulated workgroups have run and written their results, the others have not.
//!
//! [`Fidelity::Sampled`] comes to nearly the same in a fraction of the host's time: waves execute only what
//! their addresses and branches depend on (`address_slice`), and loops are left out once they go round at a
//! steady pace (`steady`).
//!
//! Measured micro-benchmarks and loops are the tests of the model, and docs/time-model.md sets its estimates
//! beside published figures. A report says which unknown parameters it rests on.
//!
//! ```
//! use groundswell::assembler::{AssemblerOptions, assemble};
//! use groundswell::simulator::time::{DeviceModel, TimeOptions};
//! use groundswell::simulator::{LaunchConfig, Simulator};
//! let text = "
//!     .amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
//!     .globl nothing
//!     .p2align 8
//!     .type nothing,@function
//! nothing:
//!     s_nop 3
//!     s_endpgm
//!     .size nothing, . - nothing
//!     .rodata
//!     .p2align 6
//!     .amdhsa_kernel nothing
//!       .amdhsa_next_free_vgpr 1
//!       .amdhsa_next_free_sgpr 0
//!       .amdhsa_accum_offset 4
//!     .end_amdhsa_kernel
//! ";
//! let object = assemble(text, AssemblerOptions::default())?.object;
//! let mut simulator = Simulator::new(DeviceModel::MI300X.target);
//! let module = simulator.load(&object)?;
//! let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
//! let report = simulator.time(&module, "nothing", config, &[], &TimeOptions::new(DeviceModel::MI300X))?;
//! assert_eq!(report.unit.instructions, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address_slice;
mod banks;
mod bound;
mod cache;
mod colours;
mod costs;
mod counters;
mod hierarchy;
mod lanes;
mod lds_path;
#[cfg(feature = "serde")]
mod page;
mod patterns;
mod picture;
mod places;
mod profile;
mod record;
mod report;
mod resident;
mod share;
mod steady;
#[cfg(feature = "serde")]
mod trace;
mod translation;
mod turn;
mod uneven;
mod unit;
mod vector_path;

use crate::codegen::object::ObjectFile;
use crate::codegen::target::{Occupancy, Target};

use super::check::FindingSource;
use super::error::SimError;
use super::launch_config::LaunchConfig;
use super::memory::DeviceMemory;
use super::module::Module;
use super::start::{LaunchContext, Segments, occupancy};
use address_slice::{AddressSlice, SlicedCode, WaveWalk};
use hierarchy::{Active, Hierarchy, LaunchSurroundings};
use uneven::UnevenWork;
use unit::ComputeUnit;

pub use crate::codegen::target::{ClockChoice, Confidence, DeviceModel, DeviceParameter, ParameterValue};
pub use bound::{LoopBound, LoopNeed, Transfer};
pub use hierarchy::{Sharing, Traffic};
pub use record::{Pipe, Resource, Stall, WaveTime};
pub use report::{
    ClockReport, Doubt, Estimate, ExecutedExtent, InstructionReport, LoopReport, MOST_LISTED, PipeReport,
    StallReport, TimeReport, UnitReport,
};

/// What to simulate and to keep.
#[derive(Clone, Debug)]
pub struct TimeOptions {
    /// Whose numbers to use.
    pub device: &'static DeviceModel,
    /// Clock of the compute units: the one that the device sustains with busy matrix cores unless another one
    /// is asked for.
    pub clock: ClockChoice,
    /// Workgroups to simulate per place on the compute unit; the rest is extrapolated.
    pub rounds: u64,
    /// Issued instructions to keep for the trace and the page, at most [`MOST_EVENTS`].
    pub events: usize,
    /// How much of the simulated workgroups is executed.
    pub fidelity: Fidelity,
}

/// How much of the simulated workgroups is executed.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Fidelity {
    /// All instructions, one by one.
    Full,
    /// The instructions that addresses and branches depend on, and of loops as many trips as it takes until
    /// their pace is steady. The estimate is that of [`Full`](Self::Full) to within a few per cent, after a
    /// fraction of the time; what the kernel computes is not there afterwards, nor for addresses that it
    /// loads from what it has stored itself. Launches whose branches depend on what they compute are executed
    /// in full, and the report says so ([`TimeReport::extent`]).
    Sampled,
}

impl TimeOptions {
    /// Three rounds at the clock that the device sustains, in full, and no trace.
    pub fn new(device: &'static DeviceModel) -> TimeOptions {
        TimeOptions { device, clock: ClockChoice::Sustained, rounds: 3, events: 0, fidelity: Fidelity::Full }
    }

    /// The same with another [`Fidelity`].
    #[must_use]
    pub fn fidelity(mut self, fidelity: Fidelity) -> TimeOptions {
        self.fidelity = fidelity;
        self
    }

    /// The same at another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<ClockChoice>) -> TimeOptions {
        self.clock = clock.into();
        self
    }

    /// The same with another number of rounds, at least one.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> TimeOptions {
        self.rounds = rounds.max(1);
        self
    }

    /// The same with this many events kept.
    #[must_use]
    pub fn events(mut self, events: usize) -> TimeOptions {
        self.events = events;
        self
    }

    /// The clock that is estimated for.
    fn megahertz(&self) -> f64 {
        self.clock.megahertz(self.device)
    }

    /// A reason why nothing can be estimated with them for a simulator of `target`.
    fn check(&self, target: Target) -> Result<(), String> {
        let device = self.device;
        if device.target != target {
            return Err(format!("a {} is a {}, not a {target}", device.name, device.target));
        }
        let clock = self.megahertz();
        if !(clock.is_finite() && clock > 0.0) {
            return Err("the clock must be positive".to_owned());
        }
        Ok(())
    }
}

/// The most issued instructions that are kept, whatever was asked for: some 500 MB of a trace.
pub const MOST_EVENTS: usize = 1_000_000;

/// How the workgroups of a launch are spread over the device: dies take turns, and inside a die compute units
/// do.
#[derive(Copy, Clone, Debug)]
struct WorkgroupSpread {
    dies: u64,
    units_per_die: u64,
    /// Compute units that get any.
    active: Active,
    /// Workgroups that the first compute unit gets.
    assigned: u64,
}

impl WorkgroupSpread {
    fn new(device: &DeviceModel, workgroups: u64) -> WorkgroupSpread {
        let dies = device.count(DeviceParameter::Dies).max(1);
        let units_per_die = (device.count(DeviceParameter::ComputeUnits) / dies).max(1);
        let in_die = workgroups.div_ceil(dies);
        let active = Active { device: workgroups.min(dies * units_per_die), die: in_die.min(units_per_die) };
        WorkgroupSpread { dies, units_per_die, active, assigned: in_die.div_ceil(units_per_die) }
    }

    /// Clk between the starts of two workgroups on one compute unit.
    fn launch_interval(&self, device: &DeviceModel) -> u64 {
        let engines = device.count(DeviceParameter::EnginesPerDie).max(1);
        device.count(DeviceParameter::LaunchInterval) * self.units_per_die.div_ceil(engines)
    }

    /// The workgroups of the first compute unit in order.
    fn workgroups(&self) -> impl Iterator<Item = u64> + use<> {
        let step = self.dies * self.units_per_die;
        (0..self.assigned).map(move |n| n * step)
    }
}

/// Estimates how long a launch takes.
pub(super) fn time(
    memory: &DeviceMemory,
    target: Target,
    module: &Module,
    name: &str,
    (config, arguments): (LaunchConfig, &[u8]),
    options: &TimeOptions,
) -> Result<TimeReport, SimError> {
    let kernel = module.kernel(name).ok_or_else(|| SimError::NoKernel(name.to_owned()))?;
    let refuse = |reason: String| SimError::Launch { kernel: name.to_owned(), reason };
    options.check(target).map_err(refuse)?;
    let segments = Segments::new(target, kernel, &config, arguments)?;
    let mut view = segments.view(memory);
    view.forgive_past_end();
    let launch = LaunchContext::new(target, module, kernel, config, &segments, &view)?;
    let fits = occupancy(target, kernel, &launch);
    if fits.workgroups_per_compute_unit == 0 {
        return Err(refuse(format!("no workgroup fits on a compute unit: too many {}", fits.limited_by)));
    }
    let costs = costs::costs(launch.program, options.device, |step| module.instruction(kernel, step));
    let timed = TimedLaunch { launch: &launch, costs: &costs, module, options, occupancy: fits };
    let mut extent = ExecutedExtent::full();
    if options.fidelity == Fidelity::Sampled {
        let code = SlicedCode {
            program: launch.program,
            entry: launch.entry,
            arguments: launch.sgprs.kernarg_segment_ptr,
            has_scratch: launch.private_bytes > 0,
        };
        match AddressSlice::of(&code, &costs, |step| module.instruction(kernel, step)) {
            Err(reason) => extent.why = Some(reason.text()),
            Ok(slice) => {
                let sampled = ExecutedExtent::sampled(slice.reads_memory);
                match timed.report(Some(&slice), sampled) {
                    // Other contents of memory than those which are there would not have led to it.
                    Err(SimError::Fault(_)) => {
                        extent.why = Some("the part of it that is sampled has a fault")
                    }
                    report => return report,
                }
            }
        }
    }
    timed.report(None, extent)
}

/// A launch, and what is to be found out about it.
struct TimedLaunch<'a> {
    launch: &'a LaunchContext<'a>,
    costs: &'a [costs::StepCost],
    module: &'a Module,
    options: &'a TimeOptions,
    occupancy: Occupancy,
}

impl TimedLaunch<'_> {
    /// Simulates a compute unit whose waves execute all of their instructions, or those of a slice.
    fn report(&self, slice: Option<&AddressSlice>, extent: ExecutedExtent) -> Result<TimeReport, SimError> {
        let TimedLaunch { launch, costs, module, options, occupancy } = *self;
        let (device, kernel) = (options.device, launch.kernel);
        let walk = WaveWalk { launch, slice };
        let resident = u64::from(occupancy.workgroups_per_compute_unit);
        let spread = WorkgroupSpread::new(device, launch.workgroups());
        let share::LaunchSample { sharing, bytes_read } = share::sample(walk, costs, &spread);
        let around = LaunchSurroundings { clock: options.megahertz(), bytes_read };
        let hierarchy = Hierarchy::new(device, spread.active, sharing, around);
        let mut unit = ComputeUnit::new(walk, costs, device, hierarchy, options.events.min(MOST_EVENTS));
        let simulated = spread.assigned.min(options.rounds.saturating_mul(resident)).max(1);
        launch.begins(simulated);
        let mut uneven = UnevenWork::of(walk, costs);
        let workgroups = match &mut uneven {
            Some(work) => work.examples(simulated, resident),
            None => spread.workgroups().take(simulated as usize).collect(),
        };
        unit.run(workgroups.into_iter(), resident.min(spread.assigned), spread.launch_interval(device))
            .map_err(|stopped| SimError::Fault(Box::new(launch.fault(module, stopped))))?;
        let about = report::About {
            options,
            kernel: &kernel.name,
            config: launch.config,
            occupancy,
            spread: &spread,
            sharing,
            workgroups: launch.workgroups(),
            simulated,
            uneven,
            extent,
        };
        let object =
            ObjectFile::parse(module.object()).map_err(|error| SimError::Object(error.to_string()))?;
        let lines = object.lines();
        Ok(report::report(
            &about,
            unit,
            |step| module.describe(kernel, step),
            |address| lines.line_of(address).map(FindingSource::from),
        ))
    }
}
