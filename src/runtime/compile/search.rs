//! A bounded search for the schedules of a kernel's loops: it costs many compilations, so it is made on
//! request, and what it finds is kept as a file.

use std::fmt;

use super::attempts::settled;
use crate::codegen::lower::with_workspace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::Kernel;
use crate::ir::schedule::WaveSchedule;
use crate::passes::options::{GlobalToShared, Options, Schedule};
use crate::passes::schedule::apply::choice::ScheduleChoice;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::search::block::BlockWriter;
use crate::passes::schedule::search::climb::{SearchedLoop, loops};
use crate::passes::schedule::strategies::rows::named;
use crate::passes::workspace::Verify;
use crate::runtime::executable::Executable;

/// How many schedules a search estimates, unless it is told otherwise.
pub const SEARCHED_SCHEDULES: u32 = 1000;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct SearchedSchedule {
    /// The schedule, for [`Options::wave_schedule`] on the options that were searched for. Its text reads
    /// back as the same and gives the same code.
    pub schedule: WaveSchedule,
    /// The loops that have an estimate.
    pub loops: Vec<FoundLoop>,
    /// Schedules that were estimated.
    pub tried: u32,
}

/// What a search has found for a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLoop {
    /// The loop.
    pub what: String,
    /// The strategy whose schedule it has or from which the search went on.
    pub strategy: &'static str,
    /// Clk that a trip of a workgroup is estimated to take under the schedule that `auto` chooses.
    pub began: u32,
    /// The same under the schedule that was found: the same number if none is better.
    pub reached: u32,
}

/// One line.
impl fmt::Display for FoundLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FoundLoop { what, strategy, began, reached } = self;
        match reached < began {
            true => write!(f, "{what}: from {strategy}, {reached} clk instead of {began}"),
            false => write!(f, "{what}: {strategy}, {began} clk"),
        }
    }
}

/// Looks for schedules of a kernel's loops that are shorter, by the estimate that
/// [`Schedule::Automatic`] uses, than what that chooses: among so many at most, always the same ones for the
/// same kernel and options. The schedule of `options` does not count.
///
/// The search goes on from what strategies write for a loop by small changes, as long as a trip gets shorter:
/// lists of operations change places, go to another cluster or stage, or are spread otherwise. A schedule is
/// taken only if the kernel compiles with it and needs no more scratch. What it finds is never longer than
/// what `auto` chooses, and that itself if nothing is shorter.
///
/// # Errors
/// A kernel that does not compile with [`Schedule::Automatic`].
///
/// # Example
/// ```
/// use groundswell::compile::search_schedule;
/// use groundswell::kernels::Gemm;
/// use groundswell::prelude::*;
///
/// let gemm = Gemm::any_shape().kernel()?;
/// let mut options = Options::new(Target::GFX942);
/// for name in ["M", "N", "K"] {
///     options = options.set(Symbol::new(name), 512);
/// }
/// for (name, size) in [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)] {
///     options = options.set(Symbol::new(name), size);
/// }
/// let found = search_schedule(&gemm, &options, 20)?;
/// // What is written to a file reads back.
/// let again = WaveSchedule::parse(&found.schedule.to_string(), "best.schedule").expect("it reads");
/// let [once, twice] = [&found.schedule, &again].map(|s| gemm.compile(&options.clone().wave_schedule(s)));
/// assert_eq!(once?.code(), twice?.code());
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn search_schedule(
    kernel: &Kernel,
    options: &Options,
    candidates: u32,
) -> Result<SearchedSchedule, Diagnostic> {
    let (automatic, settled) = settled(kernel, &options.clone().schedule(Schedule::Automatic), Verify::Off)?;
    let loading = settled.clone().schedule(Schedule::Automatic);
    let loads_to_lds =
        options.requested_global_to_shared() == GlobalToShared::Automatic && loading.loads_to_lds();
    with_workspace(|workspace| {
        workspace.load(kernel, &loading);
        workspace.run_to_schedules()?;
        let mut scheduling = Scheduling::of(workspace);
        let writer = BlockWriter::new(scheduling.view(), loads_to_lds)?;
        let mut loops = loops(&mut scheduling)?;
        take_chosen(&mut loops, settled.requested_schedule(), &automatic.report().schedule_choices);
        let first = writer.block(&Vec::from_iter(&loops), None)?;
        let trial = Trial { kernel, options, first: compiled(kernel, options, &first)? };
        let mut tried = 0;
        for at in 0..loops.len() {
            let mut own = loops.remove(at);
            let mut compiles = |own: &SearchedLoop, written: &WrittenSchedule| {
                let mut all = Vec::from_iter(&loops);
                all.insert(at, own);
                writer.block(&all, Some((at, written))).is_ok_and(|block| trial.suits(&block))
            };
            tried += own.search(scheduling.view(), candidates.saturating_sub(tried), &mut compiles)?;
            loops.insert(at, own);
        }
        let schedule = writer.block(&Vec::from_iter(&loops), None)?;
        Ok(SearchedSchedule { schedule, loops: loops.iter().filter_map(found).collect(), tried })
    })
}

/// Gives loops the strategies that the compilation has chosen for them.
fn take_chosen(loops: &mut [SearchedLoop], settled: &Schedule, choices: &[ScheduleChoice]) {
    let by_loop = *settled == Schedule::Automatic && choices.len() == loops.len();
    for (at, own) in loops.iter_mut().enumerate() {
        let chosen = || choices[at].candidates.iter().find(|candidate| candidate.chosen);
        let name = if by_loop { chosen().map(|chosen| chosen.strategy) } else { Some(settled.name()) };
        if let Some(strategy) = name.and_then(named).filter(|strategy| strategy.option().is_some()) {
            own.take(strategy);
        }
    }
}

fn found(own: &SearchedLoop) -> Option<FoundLoop> {
    let began = own.began?.clk;
    let reached = own.reached.map_or(began, |trip| trip.clk);
    Some(FoundLoop { what: own.what.clone(), strategy: own.strategy.name, began, reached })
}

fn compiled(kernel: &Kernel, options: &Options, block: &WaveSchedule) -> Result<Executable, Diagnostic> {
    let options = options.clone().wave_schedule(block);
    settled(kernel, &options, Verify::Off).map(|(executable, _)| executable)
}

/// What candidates are compared with.
struct Trial<'a> {
    kernel: &'a Kernel,
    options: &'a Options,
    /// Under the schedules that the search begins with.
    first: Executable,
}

impl Trial<'_> {
    /// True if the kernel compiles with a schedule: for all loops, with no more scratch and no fewer waves.
    fn suits(&self, block: &WaveSchedule) -> bool {
        let first = self.first.report();
        compiled(self.kernel, self.options, block).is_ok_and(|executable| {
            let report = executable.report();
            report.schedule_why == first.schedule_why
                && report.scratch_bytes <= first.scratch_bytes
                && report.waves_per_simd >= first.waves_per_simd
        })
    }
}
