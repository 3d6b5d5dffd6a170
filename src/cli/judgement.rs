//! What check mode and time mode say of a launch: options on the command line, text for people, JSON for scripts, pictures.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use groundswell::codegen::target::Target;
use groundswell::prelude::Diagnostic;
use groundswell::runtime::sim::time::{Device, Pipe, TimeOptions, TimeReport};
use groundswell::runtime::sim::{CheckReport, Limits};
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::file;
use super::terminal::{Style, paint};

/// Issued instructions that the pictures show.
const EVENTS: usize = 20_000;

/// How the simulator is asked.
#[derive(Args)]
pub struct SimulatorArguments {
    /// Look for races, missing waits and hazards while simulating
    #[arg(long)]
    pub check: bool,
    /// Estimate cycles
    #[arg(long)]
    pub time: bool,
    /// Seed of random data and, with --check, of the order of execution
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Instructions that a wave may execute
    #[arg(long, value_name = "N", default_value_t = Limits::default().instructions)]
    pub budget: u64,
    /// Seconds after which a launch is stopped; without this, none
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// With --time: whose numbers, MI210, MI300X or MI355X; without this, those of the target
    #[arg(long, value_name = "NAME", requires = "time")]
    pub chip: Option<String>,
    /// With --time: the clock in MHz instead of the chip's greatest
    #[arg(long, value_name = "MHZ", requires = "time")]
    pub clock: Option<f64>,
    /// With --time: write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", requires = "time")]
    pub trace: Option<PathBuf>,
    /// With --time: write a page with the listing, its stalls and the timeline
    #[arg(long, value_name = "FILE", requires = "time")]
    pub page: Option<PathBuf>,
}

/// A number of seconds, with a fraction if wanted.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or_else(|| format!("{text} is no number of seconds"))
}

impl SimulatorArguments {
    /// When launches are stopped.
    pub fn limits(&self) -> Limits {
        Limits { instructions: self.budget, time: self.timeout }
    }

    /// Options of time mode for code of a target.
    pub fn time_options(&self, target: Target) -> Result<TimeOptions, Failure> {
        let names = || Device::ALL.map(|d| format!("{} ({})", d.name, d.target)).join(", ");
        let device = match &self.chip {
            Some(name) => Device::from_name(name)
                .ok_or_else(|| Diagnostic::invalid(format!("{name} is no chip")).help(names())),
            None => Device::of(target)
                .ok_or_else(|| Diagnostic::invalid(format!("no chip with {target} is timed")).help(names())),
        }?;
        let mut options = TimeOptions::new(device);
        if self.trace.is_some() || self.page.is_some() {
            options = options.events(EVENTS);
        }
        match self.clock {
            Some(clock) if clock.is_finite() && clock > 0.0 => Ok(options.clock(clock)),
            Some(clock) => Err(Diagnostic::invalid(format!("{clock} MHz is no clock")).into()),
            None => Ok(options),
        }
    }

    /// Writes the pictures that were asked for; says which.
    pub fn write_pictures(&self, report: &TimeReport) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        if let Some(path) = &self.trace {
            file::write(path, report.trace().as_bytes())?;
            written.push(path.display().to_string());
        }
        if let Some(path) = &self.page {
            file::write(path, report.page().as_bytes())?;
            written.push(path.display().to_string());
        }
        Ok(written)
    }
}

/// Findings for people.
pub fn findings(report: &CheckReport) -> String {
    let notes = match report.notes.len() {
        0 => String::new(),
        1 => ", 1 note".to_owned(),
        count => format!(", {count} notes"),
    };
    match report.findings.len() {
        0 => paint(Style::Good, &format!("no race, missing wait, hazard or other finding{notes}")),
        1 => paint(Style::Bad, &format!("1 finding{notes}")),
        count => paint(Style::Bad, &format!("{count} findings{notes}")),
    }
}

/// Each finding and each note, with an empty line between.
pub fn every_finding(report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in report.findings.iter().chain(&report.notes) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{finding}");
    }
    text
}

/// Keys of `sim` that come from check mode.
pub fn check_keys(sim: &mut Map<String, Value>, report: &CheckReport) {
    sim.insert("seed".to_owned(), report.seed.into());
    sim.insert("findings".to_owned(), json!(report.findings));
    sim.insert("notes".to_owned(), json!(report.notes));
}

/// Keys of `sim` that come from time mode.
pub fn time_keys(sim: &mut Map<String, Value>, report: &TimeReport, pictures: &[String]) {
    let matrix = report.pipes.iter().find(|pipe| pipe.pipe == Pipe::Matrix).map(|pipe| pipe.utilisation);
    let conflicts: u64 = report.instructions.iter().map(|i| i.bank_conflicts).sum();
    let keys = [
        ("cycles", json!(report.estimate.clk)),
        ("cycles_per_iteration", json!(report.main_loop.as_ref().map(|l| l.clk_per_iteration))),
        ("mfma_utilisation", json!(matrix)),
        ("bank_conflicts", json!(conflicts)),
        ("pictures", json!(pictures)),
        ("time", json!(report)),
    ];
    sim.extend(keys.into_iter().map(|(key, value)| (key.to_owned(), value)));
}
