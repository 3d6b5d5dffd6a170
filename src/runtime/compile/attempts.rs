//! What is compiled once more, in another way: kernels that do not fit the target with the schedule that was
//! found for them, or that spill with it in a loop, and loops that wait for tiles on the straight way to LDS.

use std::sync::Arc;

use super::{Compilation, with_compilation};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Kernel;
use crate::passes::facts::DirectLoads;
use crate::passes::options::{GlobalToShared, Options, Schedule};
use crate::passes::schedule::apply::choice::{CandidateOutcome, ScheduleCandidate};
use crate::passes::schedule::apply::record::ScheduleRecord;
use crate::passes::schedule::strategies::automatic::{LoopsEstimate, runners_up};
use crate::passes::schedule::strategies::rows::{NONE, STRATEGIES};
use crate::passes::workspace::Verify;
use crate::runtime::compiled_code::CompiledCode;
use crate::runtime::executable::{Executable, Inner};

/// How a compilation ended that may be left for another one.
enum Walked {
    /// With an executable, and so many accesses of scratch in its loops.
    Through(Executable, u32),
    /// A schedule that the compiler found takes more than the target has.
    TooFar(Diagnostic),
    /// After the passes, because it would be no better than another one.
    Stopped,
}

/// Compiles a kernel with the schedule of `options` or one in its place, and returns the options that it was
/// compiled with.
///
/// # Errors
/// As for [`super::compile_uncached`].
pub(super) fn settled(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
) -> Result<(Executable, Options), Diagnostic> {
    let (mut waiting, mut stays) = (None, false);
    let walked = walk(kernel, options, verify, |compilation| {
        waiting = compilation.estimate().filter(|_| compilation.waits_for_direct_loads());
        stays = compilation.is_as_written();
        false
    });
    let Some(direct) = waiting else { return fitting(kernel, options, verify, walked?) };
    let through_registers = options.clone().global_to_shared(GlobalToShared::Off);
    // Loops that stay as they were written stay so altogether: a kernel without a schedule has its tiles in
    // registers first.
    let is_better = |own: LoopsEstimate| stays || own.is_clearly_shorter(&direct);
    let is_no_better = |c: &Compilation| !c.estimate().is_some_and(is_better);
    // Code that does not compile that way, or spills, is no better either.
    if let Ok(Walked::Through(mut executable, 0)) = walk(kernel, &through_registers, verify, is_no_better) {
        if let Some(Inner { code: CompiledCode { report, .. }, .. }) = Arc::get_mut(&mut executable.inner) {
            report.direct_loads_why = format!(
                "loops that load straight into LDS would wait for it: {} clk are estimated for them",
                direct.clk
            );
        }
        return Ok((executable, through_registers));
    }
    fitting(kernel, options, verify, walked?)
}

/// Compiles a kernel, unless it shall be left after the passes.
fn walk(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
    stops: impl FnMut(&Compilation) -> bool,
) -> Result<Walked, Diagnostic> {
    with_compilation(kernel, options, verify, |compilation| compilation.walk_or_leave(stops))
}

/// The same for a compilation that may have gone too far, or not well.
fn fitting(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
    walked: Walked,
) -> Result<(Executable, Options), Diagnostic> {
    let requested = options.requested_schedule();
    let fault = match walked {
        Walked::Through(executable, scratch) if scratch > 0 && *requested == Schedule::Automatic => {
            let first = Spilling { executable, options: options.clone(), scratch };
            return Ok(spilling_least(kernel, options, verify, first));
        }
        Walked::Through(executable, _) => return Ok((executable, options.clone())),
        Walked::TooFar(fault) => fault,
        Walked::Stopped => return Err(Diagnostic::bug("a compilation that nothing follows")),
    };
    let (mut executable, options) = with_simpler_schedule(kernel, options, verify)?;
    if let Some(Inner { code: CompiledCode { report, .. }, .. }) = Arc::get_mut(&mut executable.inner) {
        report.schedule_requested = requested.name();
        report.schedule_why = format!("with {}, {}", requested.name(), fault.message);
    }
    Ok((executable, options))
}

/// A compilation whose loops access scratch.
struct Spilling {
    executable: Executable,
    options: Options,
    /// Accesses in loops.
    scratch: u32,
}

/// Of the schedules that the estimates allow, the first one with the fewest accesses of scratch in loops:
/// registers are counted roughly before they are allocated, and one spilled accumulator costs a loop more
/// than any schedule saves. The others are compiled one by one, until one has none.
fn spilling_least(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
    first: Spilling,
) -> (Executable, Options) {
    let (requested, preferred) = (options.requested_schedule().name(), first.executable.report());
    let accesses = first.scratch;
    let mut choices = preferred.schedule_choices.clone();
    let mut best = first;
    let mut replacement = None;
    for name in runners_up(&choices) {
        let strategy = STRATEGIES.iter().find(|strategy| strategy.name == name);
        let Some(schedule) = strategy.and_then(|strategy| strategy.option()) else { continue };
        let options = options.clone().schedule(schedule);
        let walked = walk(kernel, &options, verify, |_| false);
        if let Ok(Walked::Through(executable, scratch)) = walked
            && scratch < best.scratch
        {
            best = Spilling { executable, options, scratch };
            replacement = Some(name);
        }
        if best.scratch == 0 {
            break;
        }
    }
    if let Some(replacement) = replacement
        && let Some(Inner { code: CompiledCode { report, .. }, .. }) =
            Arc::get_mut(&mut best.executable.inner)
    {
        let why = format!("its registers spill: loops would access scratch {accesses} times");
        for choice in &mut choices {
            let suits = |c: &ScheduleCandidate| c.strategy == replacement && c.estimate().is_some();
            let Some(at) = choice.candidates.iter().position(suits) else { continue };
            for candidate in choice.candidates.iter_mut().filter(|candidate| candidate.chosen) {
                candidate.outcome = CandidateOutcome::Refused(why.clone());
                candidate.chosen = false;
            }
            choice.candidates[at].chosen = true;
        }
        report.schedule_requested = requested;
        report.schedule_choices = choices;
    }
    (best.executable, best.options)
}

/// Compiles a kernel with the first of the simpler schedules that fits, for options whose own does not.
fn with_simpler_schedule(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
) -> Result<(Executable, Options), Diagnostic> {
    if *options.requested_schedule() != Schedule::Prefetch {
        let options = options.clone().schedule(Schedule::Prefetch);
        let walked = walk(kernel, &options, verify, |_| false)?;
        if let Walked::Through(executable, _) = walked {
            return Ok((executable, options));
        }
    }
    let options = options.clone().schedule(Schedule::None);
    let compiled = with_compilation(kernel, &options, verify, |compilation| {
        compilation.begin()?;
        compilation.walk_on()
    });
    Ok((compiled?, options))
}

impl Compilation<'_> {
    fn begin(&mut self) -> Result<(), Diagnostic> {
        self.load();
        self.run_passes()
    }

    /// Compiles, except that it asks for another attempt where only the schedule may be too much (the
    /// compiler's is replaced, an author's is not), and where `stops` wants it after the passes.
    fn walk_or_leave(&mut self, mut stops: impl FnMut(&Compilation) -> bool) -> Result<Walked, Diagnostic> {
        let walked = self.begin().and_then(|()| {
            if stops(self) {
                return Ok(Walked::Stopped);
            }
            let code = self.walk_on()?;
            Ok(Walked::Through(code, self.allocation.scratch_in_loops))
        });
        match walked {
            Err(fault) if fault.kind == Kind::Limit && self.has_found_schedule() => Ok(Walked::TooFar(fault)),
            other => other,
        }
    }

    /// The estimate of the loops, if that chose their schedules.
    fn estimate(&self) -> Option<LoopsEstimate> {
        LoopsEstimate::of(&self.workspace.world.get::<ScheduleRecord>(self.workspace.root)?.choices())
    }

    /// True if loops have been compared with schedules, and all stay as they were written.
    fn is_as_written(&self) -> bool {
        let record = self.workspace.world.get::<ScheduleRecord>(self.workspace.root);
        let stays = |c: &ScheduleCandidate| !c.chosen || c.strategy == NONE.name;
        record.is_some_and(|record| record.choices().iter().flat_map(|choice| &choice.candidates).all(stays))
    }

    /// True if a loop that the compiler lets load straight into LDS waits for more than a unit that is busy,
    /// or gets no schedule. Such loads are known to be over when all before a barrier are, so that registers
    /// can hold more iterations' loads than copies in LDS.
    fn waits_for_direct_loads(&self) -> bool {
        let loads = self.workspace.world.get::<DirectLoads>(self.workspace.root);
        self.options.requested_global_to_shared() == GlobalToShared::Automatic
            && loads.is_some_and(|loads| loads.tiles > 0)
            && self.estimate().is_some_and(|estimate| estimate.waits || self.is_as_written())
    }
}
