//! `groundswell compile`: a kernel as assembly, object, IR or machine code, and its schedule as text and pictures.

use std::io::IsTerminal;

use groundswell::ir::text::{self, Detail};
use groundswell::passes::workspace::{Verify, with_workspace};
use groundswell::prelude::*;
use groundswell::runtime::schedule_view::{ScheduleView, schedule_of};
use serde_json::Value;

use super::arguments::{Compile, Emit};
use super::failure::Failure;
use super::job::Job;
use super::outcome::Outcome;
use super::outputs::Files;
use super::{job, json, listing};

/// The verb.
pub fn compile(arguments: &Compile, files: &mut Files) -> Result<Outcome, Failure> {
    let emit = arguments.emit;
    let to_pipe = !arguments.json && !std::io::stdout().is_terminal();
    if emit == Emit::Object && arguments.output.is_none() && !to_pipe {
        return Err(Failure::usage(
            Diagnostic::invalid("a code object is no text").help("say where to write it with -o FILE"),
        ));
    }
    job::name_inputs(&arguments.kernel, files)?;
    let output = arguments.output.as_deref().map(|path| files.writes(path)).transpose()?;
    let job = Job::new(&arguments.kernel)?;
    let (executable, times) = job.compile(if arguments.json { 11 } else { 1 })?;
    let content = match emit {
        Emit::Asm => executable.assembly()?.into_bytes(),
        Emit::Object => executable.object().to_vec(),
        Emit::Ir => ir(&job)?.into_bytes(),
        Emit::Graph => schedule(&job, ScheduleView::Graph)?.into_bytes(),
        Emit::Dot => schedule(&job, ScheduleView::Dot)?.into_bytes(),
        Emit::Schedule => schedule(&job, ScheduleView::Table)?.into_bytes(),
        Emit::Timeline => schedule(&job, ScheduleView::Timeline)?.into_bytes(),
        Emit::Machine => listing::text(executable.code(), executable.target().arch).into_bytes(),
    };
    let mut report = json::compilation(&job, &executable, &times);
    // Sizes that are open until launch may have no value here.
    let grid = executable.grid(&|symbol| job.value(symbol)).ok();
    report.insert("launch".to_string(), json::launch(&executable, grid));
    report.insert("emit".to_string(), Value::from(emit.name()));
    let Some(output) = output else {
        report.insert("text".to_string(), Value::from(String::from_utf8_lossy(&content).into_owned()));
        return Ok(Outcome::done(content, Value::Object(report)));
    };
    output.write(&content)?;
    report.insert("output".to_string(), Value::from(output.name()));
    report.insert("output_bytes".to_string(), Value::from(content.len()));
    let text = format!("{}: {} bytes\n", output.name(), content.len());
    Ok(Outcome::done(text, Value::Object(report)))
}

/// The kernel after all passes, with what they found out.
fn ir(job: &Job) -> Result<String, Failure> {
    with_workspace(|workspace| {
        workspace.load(&job.kernel, &job.options);
        workspace.run(None, Verify::Off, &mut Vec::new())?;
        Ok(text::print(&workspace.world, workspace.root, Detail::Full))
    })
    .map_err(|fault: Diagnostic| Failure::from(fault).with_source(job.source.as_ref()))
}

/// What became of the kernel's loops.
fn schedule(job: &Job, view: ScheduleView) -> Result<String, Failure> {
    schedule_of(&job.kernel, &job.options, view)
        .map_err(|fault| Failure::from(fault).with_source(job.source.as_ref()))
}
