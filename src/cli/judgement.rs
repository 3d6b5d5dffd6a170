//! What check mode and time mode report about a launch: options on the command line, text for people, JSON
//! for scripts, pictures.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use groundswell::diagnostic::Kind;
use groundswell::prelude::Diagnostic;
use groundswell::simulator::time::{ClockChoice, DeviceModel, Fidelity, Pipe, TimeOptions, TimeReport};
use groundswell::simulator::{CheckReport, Limits, WaveOrder};
use groundswell::target::Target;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::outputs::{Files, OutputFile};
use super::terminal::{Style, paint};

/// The number of issued instructions that the pictures show.
const EVENTS: usize = 20_000;

/// When launches are stopped.
#[derive(Args)]
pub struct LimitArguments {
    /// Instructions that a wave may execute
    #[arg(long, value_name = "N", default_value_t = Limits::default().instructions)]
    pub budget: u64,
    /// Seconds after which a launch is stopped; without this, none
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// In which order waves go on.
#[derive(Args)]
pub struct OrderArguments {
    /// Order of the waves of a workgroup, except with --check and --time: round-robin, round-robin:TURN in
    /// turns of TURN instructions, first-to-last, last-to-first, random:SEED. What a kernel without races
    /// does is the same in all of them
    #[arg(long, value_name = "ORDER", default_value = "round-robin", hide_default_value = true)]
    pub order: WaveOrder,
}

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
    #[command(flatten)]
    pub limits: LimitArguments,
    #[command(flatten)]
    pub order: OrderArguments,
    /// With --time: whose numbers, MI50, MI100, MI210, MI300X or MI355X; without this, those of the target
    #[arg(long, value_name = "NAME", requires = "time", value_parser = chip)]
    pub chip: Option<&'static DeviceModel>,
    /// With --time: the clock: sustained, which the chip holds while its matrix cores are busy, greatest, or
    /// from 1 to 10000 MHz; without this, sustained
    #[arg(long, value_name = "CLOCK", requires = "time", value_parser = clock)]
    pub clock: Option<ClockChoice>,
    /// With --time: execute only what addresses and branches depend on, and of steady loops a few trips; much
    /// faster, and nearly the same. Kernels whose branches depend on what they compute are executed in full
    #[arg(long, requires = "time")]
    pub sampled: bool,
    /// With --time: write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", requires = "time")]
    pub trace: Option<PathBuf>,
    /// With --time: write a page with the listing, its stalls and the timeline
    #[arg(long, value_name = "FILE", requires = "time")]
    pub page: Option<PathBuf>,
    /// With --time: write a picture (SVG) of two iterations of the main loop on one SIMD
    #[arg(long, value_name = "FILE", requires = "time")]
    pub picture: Option<PathBuf>,
}

/// A number of seconds, with a fraction if wanted.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or_else(|| format!("{text} is not a number of seconds"))
}

impl SimulatorArguments {
    /// When launches are stopped.
    pub fn limits(&self) -> Limits {
        Limits { instructions: self.limits.budget, time: self.limits.timeout }
    }

    /// Options of time mode for code of a target.
    pub fn time_options(&self, target: Target) -> Result<TimeOptions, Failure> {
        let device = match self.chip {
            Some(device) => device,
            None => DeviceModel::of(target).ok_or_else(|| {
                let message = format!("no chip with {target} is timed");
                Diagnostic::new(Kind::Unsupported, message).help(format!("timed are {}", chips()))
            })?,
        };
        if !target.covers(device.target) {
            let message = format!("a {} is a {}, and the code is for {target}", device.name, device.target);
            return Err(Failure::usage(Diagnostic::invalid(message).help(format!("timed are {}", chips()))));
        }
        let mut options = TimeOptions::new(device);
        if self.sampled {
            options = options.fidelity(Fidelity::Sampled);
        }
        if self.trace.is_some() || self.page.is_some() || self.picture.is_some() {
            options = options.events(EVENTS);
        }
        Ok(match self.clock {
            Some(clock) => options.clock(clock),
            None => options,
        })
    }

    /// Names the pictures that are asked for.
    pub fn name_pictures(&self, files: &mut Files) -> Result<Pictures, Failure> {
        let mut name = |path: &Option<PathBuf>| path.as_deref().map(|path| files.writes(path)).transpose();
        Ok(Pictures { trace: name(&self.trace)?, page: name(&self.page)?, picture: name(&self.picture)? })
    }
}

/// Pictures to write.
pub struct Pictures {
    trace: Option<OutputFile>,
    page: Option<OutputFile>,
    picture: Option<OutputFile>,
}

impl Pictures {
    /// Writes them; returns their names.
    pub fn write(&self, report: &TimeReport) -> Result<Vec<String>, Failure> {
        type Draw = fn(&TimeReport) -> String;
        let pictures: [(&Option<OutputFile>, Draw); 3] = [
            (&self.trace, TimeReport::trace),
            (&self.page, TimeReport::page),
            (&self.picture, TimeReport::picture),
        ];
        let mut written = Vec::new();
        for (output, draw) in pictures {
            if let Some(output) = output {
                output.write(draw(report).as_bytes())?;
                written.push(output.name().to_owned());
            }
        }
        Ok(written)
    }
}

fn chips() -> String {
    DeviceModel::ALL.map(|device| format!("{} ({})", device.name, device.target)).join(", ")
}

fn chip(name: &str) -> Result<&'static DeviceModel, String> {
    DeviceModel::from_name(name).ok_or_else(|| format!("timed are {}", chips()))
}

/// Plausible clocks in MHz: a value that no chip comes near is a mistake.
const CLOCKS: RangeInclusive<f64> = 1.0..=10_000.0;

pub fn clock(text: &str) -> Result<ClockChoice, String> {
    match text {
        "sustained" => return Ok(ClockChoice::Sustained),
        "greatest" => return Ok(ClockChoice::Greatest),
        _ => {}
    }
    let clock = text.parse().map_err(|_| "expected a number of MHz, sustained or greatest".to_owned())?;
    let (low, high) = (CLOCKS.start(), CLOCKS.end());
    if CLOCKS.contains(&clock) { Ok(clock.into()) } else { Err(format!("clocks are {low} to {high} MHz")) }
}

/// Findings for people, by their cause.
pub fn findings(report: &CheckReport) -> String {
    let notes = match report.noted_causes().len() {
        0 => String::new(),
        1 => ", 1 note".to_owned(),
        count => format!(", {count} notes"),
    };
    let (causes, places) = (report.causes().len(), report.findings.len());
    let at = if places > causes { format!(" at {places} places") } else { String::new() };
    match causes {
        0 => paint(Style::Good, &format!("no race, missing wait, hazard or other finding{notes}")),
        1 => paint(Style::Bad, &format!("1 finding{at}{notes}")),
        count => paint(Style::Bad, &format!("{count} findings{at}{notes}")),
    }
}

/// Each finding and then each note, those of one cause as one, with an empty line between.
pub fn every_finding(report: &CheckReport) -> String {
    let mut text = String::new();
    for cause in report.causes().iter().chain(&report.noted_causes()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{cause}");
    }
    text
}

/// Keys of `sim` that come from check mode.
pub fn check_keys(sim: &mut Map<String, Value>, report: &CheckReport) {
    sim.insert("seed".to_owned(), report.seed.into());
    sim.insert("findings".to_owned(), json!(report.causes()));
    sim.insert("notes".to_owned(), json!(report.noted_causes()));
}

/// Keys of `sim` that come from time mode.
pub fn time_keys(sim: &mut Map<String, Value>, report: &TimeReport, pictures: &[String]) {
    let matrix = report.pipes.iter().find(|pipe| pipe.pipe == Pipe::Matrix).map(|pipe| pipe.utilisation);
    let conflicts: u64 = report.instructions.iter().map(|i| i.bank_conflicts).sum();
    let keys = [
        ("cycles", json!(report.estimate.clk)),
        ("cycles_per_iteration", json!(report.main_loop.as_ref().map(|l| l.clk_per_iteration))),
        ("bound", json!(report.main_loop.as_ref().map(|l| l.bound.name))),
        ("mfma_utilisation", json!(matrix)),
        ("bank_conflicts", json!(conflicts)),
        ("pictures", json!(pictures)),
        ("time", json!(report)),
    ];
    sim.extend(keys.into_iter().map(|(key, value)| (key.to_owned(), value)));
}
