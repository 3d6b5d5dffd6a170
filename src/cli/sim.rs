//! `groundswell sim`: runs any AMDHSA code object on the simulator.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use groundswell::codegen::object::ObjectFile;
use groundswell::prelude::Diagnostic;
use groundswell::runtime::sim::{LaunchConfig, LaunchStats, Simulator};
use serde_json::{Value, json};

use super::arguments::Sim;
use super::failure::Failure;
use super::kernel_argument::{KernelArgument, offsets};
use super::outcome::Outcome;
use super::run::duration;
use super::terminal::{Style, paint, progress};
use super::{file, json};

/// What lies behind a pointer argument.
struct Buffer<'a> {
    address: u64,
    bytes: usize,
    output: Option<&'a Path>,
}

/// The verb.
pub fn sim(arguments: &Sim) -> Result<Outcome, Failure> {
    if arguments.check || arguments.time {
        let what = if arguments.check { "--check" } else { "--time" };
        return Err(Failure::not_yet(what, "run without it"));
    }
    let path = &arguments.file;
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let object = ObjectFile::parse(&bytes).map_err(|error| Failure::file("load", path, &error))?;
    let kernel = choose(&object, arguments.kernel.as_deref())?;
    let metadata = object.kernel(kernel).and_then(|k| k.metadata.as_ref());
    let offsets = offsets(&arguments.arg, metadata).map_err(Diagnostic::invalid)?;

    let mut simulator = Simulator::new(object.target_id());
    let refuse =
        |error: groundswell::runtime::sim::SimError| Failure::from(Diagnostic::invalid(error.to_string()));
    let module = simulator.load(&bytes).map_err(refuse)?;
    let mut kernarg = Vec::new();
    let mut buffers = Vec::new();
    for (argument, offset) in arguments.arg.iter().zip(offsets) {
        let value = match argument {
            KernelArgument::Value(bytes) => bytes.clone(),
            _ => {
                let buffer = buffer(&mut simulator, argument)?;
                let address = buffer.address.to_le_bytes().to_vec();
                buffers.push(buffer);
                address
            }
        };
        kernarg.resize(kernarg.len().max(offset + value.len()), 0);
        kernarg[offset..offset + value.len()].copy_from_slice(&value);
    }
    let config = LaunchConfig::new(arguments.grid, arguments.block).dynamic_lds(arguments.lds);
    let bar = progress("simulating");
    let begin = Instant::now();
    let stats = simulator.launch(&module, kernel, config, &kernarg).map_err(refuse)?;
    let elapsed = begin.elapsed();
    bar.finish_and_clear();
    for buffer in &buffers {
        if let Some(output) = buffer.output {
            let contents = simulator.read(buffer.address, buffer.bytes).map_err(refuse)?;
            file::write(output, &contents)?;
        }
    }
    let outputs: Vec<String> = buffers.iter().filter_map(|b| Some(b.output?.display().to_string())).collect();
    let json = json!({
        "kernel": kernel,
        "target": object.target.name,
        "launch": {
            "grid": arguments.grid, "block": arguments.block, "lds_bytes": arguments.lds,
            "kernarg_bytes": kernarg.len(), "args": arguments.arg.len(),
        },
        "outputs": outputs,
        "sim": { "elapsed_us": json::microseconds(elapsed), "executed": executed(&stats) },
    });
    let mut text = String::new();
    let ([gx, gy, gz], [bx, by, bz]) = (arguments.grid, arguments.block);
    let rate = stats.instructions as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
    let rows = [
        ("launched", format!("{gx} x {gy} x {gz} workgroups of {bx} x {by} x {bz} work-items")),
        (
            "executed",
            format!(
                "{} wave instructions of {} waves in {}, {rate:.1} million per second",
                stats.instructions,
                stats.waves,
                duration(elapsed)
            ),
        ),
        ("written", if outputs.is_empty() { "nothing".to_owned() } else { outputs.join(", ") }),
    ];
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}  of {} on the simulator of {}",
        paint(Style::Bold, kernel),
        path.display(),
        object.target
    );
    for (name, value) in rows {
        let _ = writeln!(text, "  {} {value}", paint(Style::Dim, &format!("{name:10}")));
    }
    Ok(Outcome { text: text.into_bytes(), json, success: true })
}

/// The kernel of that name, or the only one.
fn choose<'a>(object: &ObjectFile<'a>, name: Option<&str>) -> Result<&'a str, Failure> {
    let names: Vec<&'a str> = object.kernels.iter().map(|k| k.name).collect();
    let list = || match names.len() {
        0 => "the object has no kernels".to_owned(),
        _ => format!("the object has {}", names.join(", ")),
    };
    match name {
        Some(name) => {
            names.iter().copied().find(|n| *n == name).ok_or_else(|| {
                Diagnostic::invalid(format!("there is no kernel `{name}`")).help(list()).into()
            })
        }
        None if names.len() == 1 => Ok(names[0]),
        None => Err(Diagnostic::invalid("which kernel?").help(format!("--kernel NAME; {}", list())).into()),
    }
}

/// Allocates what a pointer argument points to, and fills it.
fn buffer<'a>(simulator: &mut Simulator, argument: &'a KernelArgument) -> Result<Buffer<'a>, Failure> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| Failure::file("read", path, &error));
    let (contents, bytes, output) = match argument {
        KernelArgument::In(path) => (read(path)?, None, None),
        KernelArgument::InOut(path) => (read(path)?, None, Some(path.as_path())),
        KernelArgument::Out(path, bytes) => (Vec::new(), Some(*bytes), Some(path.as_path())),
        KernelArgument::Value(_) => (Vec::new(), None, None),
    };
    let bytes = bytes.unwrap_or(contents.len() as u64);
    let refuse =
        |error: groundswell::runtime::sim::SimError| Failure::from(Diagnostic::invalid(error.to_string()));
    let address = simulator.alloc(bytes).map_err(refuse)?;
    if !contents.is_empty() {
        simulator.write(address, &contents).map_err(refuse)?;
    }
    Ok(Buffer { address, bytes: bytes as usize, output })
}

fn executed(stats: &LaunchStats) -> Value {
    serde_json::to_value(stats).unwrap_or(Value::Null)
}
