//! `groundswell sim`: runs any AMDHSA code object on the simulator.

use std::fmt::Write;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use groundswell::diagnostic::Kind;
use groundswell::internals::summary::duration;
use groundswell::object::ObjectFile;
use groundswell::prelude::Diagnostic;
use groundswell::simulator::time::TimeReport;
use groundswell::simulator::{
    CheckOptions, CheckReport, LaunchConfig, LaunchStats, Module, SimError, Simulator,
};
use groundswell::target::TargetId;
use serde_json::{Map, Value, json};

use super::arguments::{Sim, target_named};
use super::failure::Failure;
use super::host_code::ObjectChoice;
use super::kernel_argument::{KernelArgument, offsets};
use super::outcome::VerbOutcome;
use super::outputs::{Files, OutputFile};
use super::terminal::{Style, paint, progress};
use super::{inputs, json, judgement};

/// The buffer that a pointer argument points to.
struct ArgumentBuffer<'a> {
    address: u64,
    bytes: usize,
    output: Option<&'a OutputFile>,
}

/// A device with the object and the arguments of a launch in its memory.
struct Ready<'a> {
    simulator: Simulator,
    module: Module,
    kernarg: Vec<u8>,
    buffers: Vec<ArgumentBuffer<'a>>,
}

/// The results.
#[derive(Default)]
struct SimulationResults {
    run: Option<(LaunchStats, Duration)>,
    findings: Option<CheckReport>,
    time: Option<TimeReport>,
    pictures: Vec<String>,
    outputs: Vec<String>,
}

fn refuse(error: SimError) -> Failure {
    let kind = match error {
        SimError::OutOfMemory { .. } => Kind::Limit,
        _ => Kind::Invalid,
    };
    let fault = Diagnostic::new(kind, error.to_string());
    error.help().into_iter().fold(fault, Diagnostic::help).into()
}

/// The verb.
pub fn sim(arguments: &Sim, files: &mut Files) -> Result<VerbOutcome, Failure> {
    let path = &arguments.file;
    let ask = &arguments.simulator;
    files.reads(path)?;
    let outputs = name_buffers(&arguments.arg, files)?;
    let pictures = ask.name_pictures(files)?;
    let choice = ObjectChoice {
        target: arguments.target.as_deref(),
        kernel: arguments.kernel.as_deref(),
        number: arguments.object,
    };
    let input = inputs::read_device_file(path)?;
    let bytes = inputs::object_of(&input, path, choice)?;
    let bytes = &*bytes;
    let object = ObjectFile::parse(bytes).map_err(|error| Failure::file("load", path, &error))?;
    let kernel = choose(&object, arguments.kernel.as_deref())?;
    let metadata = object.kernel(kernel).and_then(|k| k.metadata.as_ref());
    let offsets = offsets(&arguments.arg, metadata);
    let offsets = offsets.map_err(|reason| Failure::usage(Diagnostic::invalid(reason)))?;
    let config =
        LaunchConfig::new(arguments.grid, arguments.block).dynamic_lds(arguments.lds).limits(ask.limits());
    let config = config.order(ask.order.order);
    let named = arguments.target.as_deref().map(target_named).transpose()?;
    let timed = named.map_or(object.target, TargetId::target);
    let time = ask.time.then(|| ask.time_options(timed)).transpose()?;
    let chip = match (named, object.target.generic, &time) {
        (Some(named), _, _) => named,
        (None, Some(_), Some(options)) => options.device.target.into(),
        _ => object.target_id(),
    };
    let ready = || Ready::new(chip, bytes, &arguments.arg, &outputs, &offsets);

    let bar = progress("simulating");
    let mut results = SimulationResults::default();
    // Each mode starts from the same memory; the results are those of the first.
    let first = ready()?;
    if ask.check {
        let options = CheckOptions { seed: ask.seed };
        let report = first.simulator.check(&first.module, kernel, config, &first.kernarg, &options);
        results.findings = Some(report.map_err(refuse)?);
    } else {
        let begin = Instant::now();
        let stats = first.simulator.launch(&first.module, kernel, config, &first.kernarg).map_err(refuse)?;
        results.run = Some((stats, begin.elapsed()));
    }
    results.outputs = first.write_outputs()?;
    drop(first);
    if let Some(options) = time {
        let ready = ready()?;
        let report = ready.simulator.time(&ready.module, kernel, config, &ready.kernarg, &options);
        let report = report.map_err(refuse)?;
        results.pictures = pictures.write(&report)?;
        results.time = Some(report);
    }
    bar.finish_and_clear();

    let clean = results.findings.as_ref().is_none_or(CheckReport::is_clean);
    let text = text(arguments, &object, kernel, &results);
    Ok(VerbOutcome::checked(text, to_json(arguments, &object, kernel, &results), clean))
}

impl<'a> Ready<'a> {
    fn new(
        chip: TargetId,
        bytes: &[u8],
        arguments: &[KernelArgument],
        outputs: &'a [Option<OutputFile>],
        offsets: &[usize],
    ) -> Result<Ready<'a>, Failure> {
        let mut simulator = Simulator::new(chip);
        let module = simulator.load(bytes).map_err(refuse)?;
        let (mut kernarg, mut buffers) = (Vec::new(), Vec::new());
        for ((argument, output), &offset) in arguments.iter().zip(outputs).zip(offsets) {
            let value = match argument {
                KernelArgument::Value(bytes) => bytes.clone(),
                _ => {
                    let buffer = buffer(&mut simulator, argument, output.as_ref())?;
                    let address = buffer.address.to_le_bytes().to_vec();
                    buffers.push(buffer);
                    address
                }
            };
            kernarg.resize(kernarg.len().max(offset + value.len()), 0);
            kernarg[offset..offset + value.len()].copy_from_slice(&value);
        }
        Ok(Ready { simulator, module, kernarg, buffers })
    }

    /// Writes the buffers that go to files; returns their names.
    fn write_outputs(&self) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        for buffer in &self.buffers {
            if let Some(output) = buffer.output {
                output.write_with(|out| self.copy(buffer, out))?;
                written.push(output.name().to_owned());
            }
        }
        Ok(written)
    }

    /// Writes a buffer piece by piece: it may be as large as the remaining memory.
    fn copy(&self, buffer: &ArgumentBuffer, out: &mut dyn io::Write) -> io::Result<()> {
        let mut pieces = vec![0; PIECE.min(buffer.bytes)];
        for start in (0..buffer.bytes).step_by(PIECE) {
            let piece = &mut pieces[..PIECE.min(buffer.bytes - start)];
            self.simulator.read_into(buffer.address + start as u64, piece).map_err(io::Error::other)?;
            out.write_all(piece)?;
        }
        Ok(())
    }
}

/// Bytes of a buffer that are in flight to its file at a time.
const PIECE: usize = 1 << 20;

fn to_json(arguments: &Sim, object: &ObjectFile, kernel: &str, results: &SimulationResults) -> Value {
    let mut sim = Map::new();
    if let Some((stats, elapsed)) = &results.run {
        sim.insert("elapsed_us".to_owned(), json::microseconds(*elapsed).into());
        sim.insert("executed".to_owned(), json!(stats));
    }
    if let Some(report) = &results.findings {
        judgement::check_keys(&mut sim, report);
    }
    if let Some(report) = &results.time {
        judgement::time_keys(&mut sim, report, &results.pictures);
    }
    json!({
        "kernel": kernel,
        "target": object.target.name,
        "launch": {
            "grid": arguments.grid, "block": arguments.block, "lds_bytes": arguments.lds,
            "args": arguments.arg.len(),
        },
        "outputs": results.outputs,
        "sim": sim,
    })
}

fn text(arguments: &Sim, object: &ObjectFile, kernel: &str, results: &SimulationResults) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (arguments.grid, arguments.block);
    let mut rows =
        vec![("launched", format!("{gx} x {gy} x {gz} workgroups of {bx} x {by} x {bz} work-items"))];
    if let Some((stats, elapsed)) = &results.run {
        let rate = stats.instructions as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
        let (instructions, waves, time) = (stats.instructions, stats.waves, duration(*elapsed));
        let text = format!(
            "{instructions} wave instructions of {waves} waves in {time}, {rate:.1} million per second"
        );
        rows.push(("executed", text));
    }
    let list = |files: &[String]| if files.is_empty() { "nothing".to_owned() } else { files.join(", ") };
    rows.push(("written", list(&[&results.outputs[..], &results.pictures].concat())));
    if let Some(report) = &results.findings {
        rows.push(("check mode", judgement::findings(report)));
    }
    let mut text = String::new();
    let (name, file) = (paint(Style::Bold, kernel), arguments.file.display());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}  of {file} on the simulator of {}", object.target);
    for (name, value) in rows {
        let _ = writeln!(text, "  {} {value}", paint(Style::Dim, &format!("{name:10}")));
    }
    if let Some(report) = &results.findings {
        text.push_str(&judgement::every_finding(report));
    }
    if let Some(report) = &results.time {
        let _ = write!(text, "\n{}", report.profile());
    }
    text
}

/// The kernel of that name, or the only one.
fn choose<'a>(object: &ObjectFile<'a>, name: Option<&str>) -> Result<&'a str, Failure> {
    let names: Vec<&'a str> = object.kernels.iter().map(|k| k.name).collect();
    let list = || match names.len() {
        0 => "the object has no kernels".to_owned(),
        _ => format!("the object has {}", names.join(", ")),
    };
    match name {
        Some(name) => names.iter().copied().find(|n| *n == name).ok_or_else(|| {
            Failure::usage(Diagnostic::invalid(format!("there is no kernel `{name}`")).help(list()))
        }),
        None if names.len() == 1 => Ok(names[0]),
        None if names.is_empty() => Err(Diagnostic::invalid(list()).into()),
        None => {
            let help = format!("--kernel NAME; {}", list());
            Err(Failure::usage(Diagnostic::invalid("which kernel?").help(help)))
        }
    }
}

/// Names the files of arguments, and how those that are written at the end are written.
fn name_buffers(arguments: &[KernelArgument], files: &mut Files) -> Result<Vec<Option<OutputFile>>, Failure> {
    let name = |argument: &KernelArgument| match argument {
        KernelArgument::In(path) => files.reads(path).map(|()| None),
        KernelArgument::InOut(path) | KernelArgument::Out(path, _) => files.writes(path).map(Some),
        KernelArgument::Value(_) => Ok(None),
    };
    arguments.iter().map(name).collect()
}

/// Allocates what a pointer argument points to, and fills it.
fn buffer<'a>(
    simulator: &mut Simulator,
    argument: &KernelArgument,
    output: Option<&'a OutputFile>,
) -> Result<ArgumentBuffer<'a>, Failure> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| Failure::file("read", path, &error));
    let (contents, bytes) = match argument {
        KernelArgument::In(path) | KernelArgument::InOut(path) => (read(path)?, None),
        KernelArgument::Out(_, bytes) => (Vec::new(), Some(*bytes)),
        KernelArgument::Value(_) => (Vec::new(), None),
    };
    let bytes = bytes.unwrap_or(contents.len() as u64);
    let address = simulator.alloc(bytes).map_err(refuse)?;
    if !contents.is_empty() {
        simulator.write(address, &contents).map_err(refuse)?;
    }
    Ok(ArgumentBuffer { address, bytes: bytes as usize, output })
}
