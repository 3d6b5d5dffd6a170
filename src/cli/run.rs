//! `groundswell run`: compile, execute on random data, compare with the interpreter.

use std::fmt::Write;

use groundswell::check::{Checked, Inputs, against_interpreter, timed, with_findings};
use groundswell::diagnostic::Kind;
use groundswell::internals::summary::{NAME_COLUMNS, duration};
use groundswell::prelude::*;
use groundswell::report::Report;
use groundswell::simulator::CheckReport;
use groundswell::simulator::time::TimeReport;
use serde_json::{Map, Value, json};

use super::arguments::{Run, target_named};
use super::failure::Failure;
use super::job::{self, Job, Times};
use super::json;
use super::judgement;
use super::kernel_argument;
use super::outcome::VerbOutcome;
use super::outputs::Files;
use super::terminal::{Style, paint, progress};

/// The number of cold compilations, whose median is reported.
const COMPILES: usize = 11;

/// What was found out about a launch.
struct Judged {
    grid: [u32; 3],
    /// Whether the result is right, unless nobody asks.
    checked: Option<Checked>,
    findings: Option<CheckReport>,
    time: Option<TimeReport>,
    pictures: Vec<String>,
}

/// The verb.
pub fn run(arguments: &Run, files: &mut Files) -> Result<VerbOutcome, Failure> {
    let ask = &arguments.simulator;
    job::name_inputs(&arguments.kernel, files)?;
    let pictures = ask.name_pictures(files)?;
    let job = Job::new(&arguments.kernel)?.for_one_target("run")?;
    let target = job.options.target();
    let chip = if ask.time { ask.time_options(target)?.device.target } else { target };
    let device = device(&arguments.device, target, chip)?.with_limits(ask.limits());
    let device = device.with_order(ask.order.order);
    let time = ask.time.then(|| ask.time_options(device.target())).transpose()?;
    let bar = progress("compiling");
    let (executable, times) = job.compile(COMPILES)?;
    let scalars = kernel_argument::scalars(&arguments.arg, &executable).map_err(Failure::usage)?;
    let inputs = Inputs { seed: ask.seed, scalars: &scalars };
    let failed = |fault: Diagnostic| Failure::from(fault).with_source(job.source.as_ref());
    let value = |symbol| job.value(symbol);
    let (mut checked, mut findings) = (None, None);
    if !arguments.no_check {
        bar.set_message("running and comparing with the interpreter");
        let mut compared =
            against_interpreter(&job.kernel, &executable, &device, &value, inputs).map_err(failed)?;
        if ask.check {
            bar.set_message("running in check mode");
            let found = with_findings(&job.kernel, &executable, &device, &value, inputs).map_err(failed)?;
            findings = Some(found.0);
            compared.comparison = compared.comparison.and(found.1);
        }
        checked = Some(compared);
    }
    let grid = match &checked {
        Some(checked) => checked.launch.grid,
        None => executable.grid(&value).map_err(failed)?,
    };
    let mut judged = Judged { grid, checked, findings, time: None, pictures: Vec::new() };
    if let Some(options) = time {
        bar.set_message("estimating the time");
        let report = timed(&executable, &device, &value, inputs, &options).map_err(failed)?;
        judged.pictures = pictures.write(&report)?;
        judged.time = Some(report);
    }
    bar.finish_and_clear();
    let text = report(&job, &executable, &times, &device, &judged);
    let json = to_json(&job, &executable, &times, &device, &judged);
    let clean = judged.findings.as_ref().is_none_or(CheckReport::is_clean);
    let right = judged.checked.as_ref().is_none_or(|checked| checked.comparison.ok);
    Ok(VerbOutcome::checked(text, json, right && clean))
}

/// The device of that name, for code of a target; without the name of a chip that of `chip`.
fn device(name: &str, target: Target, chip: Target) -> Result<Device, Failure> {
    if let Some(id) = name.strip_prefix("sim:") {
        let id = target_named(id)?;
        if !target.covers(id.target()) {
            let text = format!("a {} does not run code for {target}", id.target());
            let chips: Vec<&str> = target.chips().map(|chip| chip.name).collect();
            return Err(Failure::usage(
                Diagnostic::invalid(text).help(format!("use {}", chips.join(" or "))),
            ));
        }
        return Ok(Device::simulator(id));
    }
    let simulator = || Ok(Device::simulator(chip));
    match name {
        "sim" => simulator(),
        // Code for another chip than the GPU's runs on the simulator.
        "auto" => match Device::gpu(0) {
            Ok(gpu) if target.covers(gpu.target()) => Ok(gpu),
            _ => simulator(),
        },
        _ => {
            let device = Device::named(name).map_err(|error| match error.kind {
                Kind::Invalid => Failure::usage(error),
                _ => error.into(),
            })?;
            if !target.covers(device.target()) {
                let text = format!("{} does not run code for {target}", device.name());
                return Err(Failure::usage(
                    Diagnostic::invalid(text).help(format!("compile with --target {}", device.target())),
                ));
            }
            Ok(device)
        }
    }
}

fn to_json(job: &Job, executable: &Executable, times: &Times, device: &Device, judged: &Judged) -> Value {
    let mut json = json::compilation(job, executable, times);
    if let Some(checked) = judged.checked.as_ref().filter(|checked| !checked.scalars.is_empty()) {
        json.insert("scalars".to_string(), json::scalars(&checked.scalars));
    }
    json.insert("device".to_string(), device.name().into());
    json.insert("launch".to_string(), json::launch(executable, Some(judged.grid)));
    let mut sim = Map::new();
    if let Some(checked) = &judged.checked {
        let found = checked.comparison;
        json.insert(
            "check".to_string(),
            json!({
                "ok": found.ok,
                "max_abs_err": json::number(found.max_abs_err),
                "max_rel_err": json::number(found.max_rel_err),
            }),
        );
        if !checked.launch.logs.is_empty() {
            json.insert("logs".to_string(), checked.launch.logs.iter().map(json::logged).collect());
        }
        sim.insert("elapsed_us".to_string(), json::microseconds(checked.elapsed).into());
        sim.insert("executed".to_string(), json!(checked.launch.stats));
    }
    if let Some(report) = &judged.findings {
        judgement::check_keys(&mut sim, report);
    }
    if let Some(report) = &judged.time {
        judgement::time_keys(&mut sim, report, &judged.pictures);
    }
    json.insert("sim".to_string(), Value::Object(sim));
    Value::Object(json)
}

/// The report for people.
fn report(job: &Job, executable: &Executable, times: &Times, device: &Device, judged: &Judged) -> String {
    let report = executable.report();
    let mut rows: Vec<(&str, String)> = Vec::new();
    let bindings: Vec<String> = job.bindings.iter().map(|(s, v)| format!("{s}={v}")).collect();
    rows.push(("symbols", bindings.join(" ")));
    if let Some(checked) = judged.checked.as_ref().filter(|checked| !checked.scalars.is_empty()) {
        let values: Vec<String> = checked.scalars.iter().map(|(name, v)| format!("{name}={v}")).collect();
        rows.push(("scalars", values.join(" ")));
    }
    rows.push(("compiled", compiled(times, report)));
    rows.extend(report.lines());
    rows.extend(executable.warnings().into_iter().map(|text| ("warning", text.to_owned())));
    let [x, y, z] = judged.grid;
    let block: u32 = executable.block().iter().product();
    let launched = if judged.checked.is_some() { "launched" } else { "estimated" };
    rows.push((
        launched,
        format!("{x} x {y} x {z} workgroups of {block} work-items on the {}", device.name()),
    ));
    if let Some(checked) = &judged.checked {
        rows.extend(outcome(checked));
    }
    if let Some(found) = &judged.findings {
        rows.push(("check mode", judgement::findings(found)));
    }
    if !judged.pictures.is_empty() {
        rows.push(("pictures", judged.pictures.join(", ")));
    }

    let mut out = String::new();
    let description =
        if job.description.is_empty() { String::new() } else { format!("  {}", job.description) };
    let _ = writeln!(out, "{}{description}  for {}", paint(Style::Bold, &job.title), executable.target());
    for (name, value) in rows {
        let _ = writeln!(out, "  {} {value}", paint(Style::Dim, &format!("{name:NAME_COLUMNS$}")));
    }
    for log in judged.checked.iter().flat_map(|checked| &checked.launch.logs) {
        let _ = writeln!(out, "\n{log}");
    }
    if let Some(found) = &judged.findings {
        out.push_str(&judgement::every_finding(found));
    }
    if let Some(time) = &judged.time {
        let _ = write!(out, "\n{}", time.profile());
    }
    out
}

/// What was executed, and whether it is right.
fn outcome(checked: &Checked) -> [(&'static str, String); 2] {
    let executed = checked.launch.stats.instructions;
    let rate = executed as f64 / checked.elapsed.as_secs_f64().max(1e-9) / 1e6;
    let elapsed = duration(checked.elapsed);
    let executed = format!("{executed} wave instructions in {elapsed}, {rate:.1} million per second");
    let found = checked.comparison;
    let verdict = match found.ok {
        true if found.max_abs_err == 0.0 => paint(Style::Good, "equals the interpreter, every element"),
        true => paint(Style::Good, "equals the interpreter within the dtype's error"),
        false => paint(Style::Bad, "DIFFERS from the interpreter"),
    };
    let errors = format!("largest error {:.2e}, {:.2e} of its row", found.max_abs_err, found.max_rel_err);
    let verdict = if found.max_abs_err == 0.0 { verdict } else { format!("{verdict}: {errors}") };
    [("executed", executed), ("checked", verdict)]
}

fn compiled(times: &Times, report: &Report) -> String {
    format!("in {} (median of cold compiles), {}", duration(times.total), report.size())
}
