//! Run mode: all workgroups of a launch, in parallel.
//!
//! The waves of a workgroup take turns on one host thread: each runs until a barrier or its end. A barrier
//! opens when all waves that have not ended wait at it, as on hardware (CDNA3 ISA guide, S_BARRIER).

use crate::codegen::target::Target;
use crate::workers;

use super::error::{Fault, FaultKind, SimError, Stopped};
use super::execute::{Cache, ExecutionContext, Lds, run, step};
use super::launch_config::LaunchConfig;
use super::memory::DeviceMemory;
use super::module::Module;
use super::rounds::{Rounds, has_effect};
use super::start::{LaunchContext, Segments};
use super::stats::LaunchStats;
use super::wave::{Progress, Wave};

/// The state that a host thread keeps from workgroup to workgroup.
#[derive(Default)]
struct RunWorker {
    waves: Vec<Wave>,
    lds: Lds,
    caches: [Cache; 2],
    stats: LaunchStats,
}

/// Where a workgroup stopped.
struct DispatchFailure {
    workgroup: u64,
    wave: usize,
    step: usize,
    stopped: Stopped,
}

/// Runs a kernel to its end.
pub(super) fn launch(
    memory: &DeviceMemory,
    target: Target,
    module: &Module,
    name: &str,
    config: LaunchConfig,
    arguments: &[u8],
) -> Result<LaunchStats, SimError> {
    let kernel = module.kernel(name).ok_or_else(|| SimError::NoKernel(name.to_owned()))?;
    let segments = Segments::new(target, kernel, &config, arguments)?;
    let view = segments.view(memory);
    let launch = LaunchContext::new(target, module, kernel, config, &segments, &view)?;
    // Run mode does not follow which memory is written.
    view.define_all();
    all(&launch).map_err(|failure| {
        let (address, instruction) = module.describe(kernel, failure.step);
        SimError::Fault(Box::new(Fault {
            kernel: name.to_owned(),
            workgroup: launch.coordinates(failure.workgroup),
            wave: failure.wave as u32,
            lane: failure.stopped.lane,
            address,
            instruction,
            kind: failure.stopped.kind,
        }))
    })
}

/// Runs all workgroups. They start in order, so that the first of several that fail is always the one
/// reported.
fn all(launch: &LaunchContext<'_>) -> Result<LaunchStats, DispatchFailure> {
    let mut stats = LaunchStats::default();
    workers::until_failure(
        launch.workgroups(),
        RunWorker::default,
        |worker, workgroup| run_workgroup(launch, worker, workgroup),
        |worker| stats.merge(&worker.stats),
    )?;
    Ok(stats)
}

/// Instructions of a wave after which it is checked whether it goes on for ever, and for how many then.
const UNWATCHED: u64 = 1 << 22;
const WATCHED: u64 = 1 << 14;

/// Runs a wave to its next barrier or its end, within the limits of the launch.
fn go_on(
    wave: &mut Wave,
    context: &mut ExecutionContext<'_>,
    launch: &LaunchContext<'_>,
) -> Result<(), Stopped> {
    launch.check_time()?;
    let budget = launch.config.instruction_budget;
    loop {
        context.budget = budget.min(wave.executed.saturating_add(UNWATCHED));
        match run(wave, context) {
            Err(Stopped { kind: FaultKind::Budget(_), .. }) if wave.executed < budget => {}
            result => return result,
        }
        launch.check_time()?;
        context.budget = budget;
        watch(wave, context)?;
    }
}

/// Executes some instructions, and reports whether the wave is in an endless loop.
fn watch(wave: &mut Wave, context: &mut ExecutionContext<'_>) -> Result<(), Stopped> {
    let mut rounds = Rounds::default();
    for _ in 0..WATCHED {
        let (at, program) = (wave.pc, context.program);
        if wave.progress != Progress::Running || program.steps.get(at).is_none_or(|s| has_effect(s.class)) {
            return Ok(());
        }
        step(wave, context)?;
        if wave.pc <= at && rounds.back(wave) {
            return Err(Stopped::wave(FaultKind::NoProgress));
        }
    }
    Ok(())
}

/// Runs the waves of one workgroup to their ends.
fn run_workgroup(
    launch: &LaunchContext<'_>,
    worker: &mut RunWorker,
    workgroup: u64,
) -> Result<(), DispatchFailure> {
    worker.waves.resize_with(launch.waves, Wave::new);
    worker.lds.reset(launch.lds_bytes);
    let ids = launch.coordinates(workgroup);
    for (index, wave) in worker.waves.iter_mut().enumerate() {
        launch.start(wave, index, ids);
    }
    let mut context = ExecutionContext {
        program: launch.program,
        memory: launch.memory,
        lds: &mut worker.lds,
        caches: &mut worker.caches,
        budget: launch.config.instruction_budget,
    };
    loop {
        for (index, wave) in worker.waves.iter_mut().enumerate() {
            go_on(wave, &mut context, launch).map_err(|stopped| DispatchFailure {
                workgroup,
                wave: index,
                step: wave.pc,
                stopped,
            })?;
        }
        let mut waiting = false;
        for wave in worker.waves.iter_mut().filter(|w| w.progress == Progress::AtBarrier) {
            wave.progress = Progress::Running;
            waiting = true;
        }
        if !waiting {
            break;
        }
    }
    for wave in &mut worker.waves {
        worker.stats.waves += 1;
        worker.stats.add(&std::mem::take(&mut wave.counts));
    }
    Ok(())
}
