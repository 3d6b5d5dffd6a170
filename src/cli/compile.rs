//! `groundswell compile`: a kernel as assembly, object, IR or machine code, and its schedule as text and
//! pictures.

use std::io::IsTerminal;

use groundswell::compile::Bundle;
use groundswell::compile::PIPELINE;
use groundswell::compile::Verify;
use groundswell::compile::{
    MACHINE_PASSES, compile_uncached, fitting_options, kernel_with_reasons, machine_code_after,
    machine_code_with_reasons,
};
use groundswell::compile::{ScheduleView, schedule_of};
use groundswell::internals::with_workspace;
use groundswell::internals::{KernelResults, run_compared};
use groundswell::prelude::*;
use groundswell::text::Detail;
use serde_json::{Map, Value};

use super::arguments::{Compile, Emit};
use super::failure::Failure;
use super::job::{Job, Times};
use super::outcome::VerbOutcome;
use super::outputs::{Files, OutputFile};
use super::{job, json, listing};

/// The verb.
pub fn compile(arguments: &Compile, files: &mut Files) -> Result<VerbOutcome, Failure> {
    let emit = arguments.emit;
    let to_pipe = !arguments.json && !std::io::stdout().is_terminal();
    if emit == Emit::Object && arguments.output.is_none() && !to_pipe {
        return Err(Failure::usage(
            Diagnostic::invalid("a code object is not text").help("say where to write it with -o FILE"),
        ));
    }
    if let Some(pass) = &arguments.after {
        check_pass(emit, pass)?;
    }
    job::name_inputs(&arguments.kernel, files)?;
    let output = arguments.output.as_deref().map(|path| files.writes(path)).transpose()?;
    let job = Job::new(&arguments.kernel)?;
    if emit == Emit::Object && job.targets.len() > 1 {
        return bundle(arguments, job, output);
    }
    if arguments.compress {
        let fault = Diagnostic::invalid("--compress goes with a bundle");
        return Err(Failure::usage(fault.help("--emit object makes one if --target names several")));
    }
    let job = job.for_one_target(&format!("--emit {}", emit.name()))?;
    if arguments.verify {
        verify(&job)?;
    }
    let (executable, times) = job.compile(timed(arguments))?;
    let content = match emit {
        Emit::Asm => executable.assembly()?.into_bytes(),
        Emit::Object => executable.object().to_vec(),
        Emit::Ir => ir(&job, &fitting(&job)?, arguments.after.as_deref())?.into_bytes(),
        Emit::Reasons => reasons(&job, &fitting(&job)?)?.into_bytes(),
        Emit::Graph => schedule(&job, &fitting(&job)?, ScheduleView::Graph)?.into_bytes(),
        Emit::Dot => schedule(&job, &fitting(&job)?, ScheduleView::Dot)?.into_bytes(),
        Emit::Schedule => schedule(&job, &fitting(&job)?, ScheduleView::Table)?.into_bytes(),
        Emit::Operations => schedule(&job, &fitting(&job)?, ScheduleView::Operations)?.into_bytes(),
        Emit::Timeline => schedule(&job, &fitting(&job)?, ScheduleView::Timeline)?.into_bytes(),
        Emit::Machine => match &arguments.after {
            Some(pass) => machine(&job, &fitting(&job)?, pass)?.into_bytes(),
            None => listing::text(executable.code(), executable.target().arch).into_bytes(),
        },
    };
    let mut report = compilation(&job, &executable, &times);
    report.insert("emit".to_string(), Value::from(emit.name()));
    let Some(output) = output else {
        report.insert("text".to_string(), Value::from(String::from_utf8_lossy(&content).into_owned()));
        return Ok(VerbOutcome::done(content, Value::Object(report)));
    };
    output.write(&content)?;
    report.insert("output".to_string(), Value::from(output.name()));
    report.insert("output_bytes".to_string(), Value::from(content.len()));
    let text = format!("{}: {} bytes\n", output.name(), content.len());
    Ok(VerbOutcome::done(text, Value::Object(report)))
}

/// One file of objects for several chips.
fn bundle(arguments: &Compile, mut job: Job, output: Option<OutputFile>) -> Result<VerbOutcome, Failure> {
    let mut reports = Vec::new();
    let options = job.options.clone();
    let mut executables = Vec::new();
    for target in job.targets.clone() {
        job.options = options.clone().for_target(target);
        if arguments.verify {
            verify(&job)?;
        }
        let (executable, times) = job.compile(timed(arguments))?;
        let mut report = compilation(&job, &executable, &times);
        report.insert("target".to_string(), Value::from(target.to_string()));
        reports.push(Value::Object(report));
        executables.push(executable);
    }
    let bundle = Bundle::of(executables)?;
    let content = if arguments.compress { bundle.to_compressed_bytes()? } else { bundle.to_bytes() };
    let mut report = serde_json::json!({ "targets": reports, "emit": Emit::Object.name() });
    let Some(output) = output else { return Ok(VerbOutcome::done(content, report)) };
    output.write(&content)?;
    report["output"] = Value::from(output.name());
    report["output_bytes"] = Value::from(content.len());
    let text = format!("{}: {} bytes, {} objects\n", output.name(), content.len(), job.targets.len());
    Ok(VerbOutcome::done(text, report))
}

/// How often the time of a compilation is taken: where nobody sees it, never.
fn timed(arguments: &Compile) -> usize {
    if arguments.json { 11 } else { 0 }
}

/// The keys of every compilation and of its launch.
fn compilation(job: &Job, executable: &Executable, times: &Times) -> Map<String, Value> {
    let mut report = json::compilation(job, executable, times);
    // Sizes that are left open until launch may have no value here.
    let grid = executable.grid(&|symbol| job.value(symbol)).ok();
    report.insert("launch".to_string(), json::launch(executable, grid));
    report
}

/// The options with the schedule that the kernel is compiled with, so that all that is shown belongs to one
/// compilation.
fn fitting(job: &Job) -> Result<Options, Failure> {
    fitting_options(&job.kernel, &job.options)
        .map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}

/// Compiles the kernel with all checks, and compares after each pass what it means.
fn verify(job: &Job) -> Result<(), Failure> {
    let options = fitting(job)?;
    let compared = || {
        let meaning = KernelResults::of(&job.kernel, &options, &|symbol| job.value(symbol), 1)?;
        with_workspace(|workspace| {
            workspace.load(&job.kernel, &options);
            run_compared(workspace, &meaning, None, &mut |_, _, _| {})
        })?;
        compile_uncached(&job.kernel, &options, Verify::AfterEachPass)
    };
    compared().map(|_| ()).map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}

/// Checks that the pass exists, and that its result can be shown.
fn check_pass(emit: Emit, pass: &str) -> Result<(), Failure> {
    let names: Vec<&str> = match emit {
        Emit::Ir => PIPELINE.iter().map(|known| known.name).collect(),
        Emit::Machine => MACHINE_PASSES.iter().map(|known| known.name).collect(),
        _ => {
            let text =
                format!("--after goes with --emit ir and --emit machine, not with --emit {}", emit.name());
            return Err(Failure::usage(Diagnostic::invalid(text)));
        }
    };
    if names.contains(&pass) {
        return Ok(());
    }
    let fault = Diagnostic::invalid(format!("--emit {} stops after no pass called {pass}", emit.name()));
    Err(Failure::usage(fault.help(format!("the passes are {}", names.join(", ")))))
}

/// The kernel after a pass, or after all of them and with what lowering adds, with the facts that they found.
fn ir(job: &Job, options: &Options, after: Option<&str>) -> Result<String, Failure> {
    let text = match after {
        None => kernel_with_reasons(&job.kernel, options),
        Some(pass) => with_workspace(|workspace| {
            workspace.load(&job.kernel, options);
            workspace.run(Some(pass), Verify::Off, &mut Vec::new())?;
            Ok(workspace.text(Detail::Stage))
        }),
    };
    text.map_err(|fault: Diagnostic| Failure::from(fault).with_source(job.source.as_ref()))
}

/// The machine code after a machine pass.
fn machine(job: &Job, options: &Options, after: &str) -> Result<String, Failure> {
    machine_code_after(&job.kernel, options, after)
        .map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}

/// The machine code and why it waits.
fn reasons(job: &Job, options: &Options) -> Result<String, Failure> {
    machine_code_with_reasons(&job.kernel, options)
        .map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}

/// What became of the kernel's loops.
fn schedule(job: &Job, options: &Options, view: ScheduleView) -> Result<String, Failure> {
    schedule_of(&job.kernel, options, view)
        .map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}
