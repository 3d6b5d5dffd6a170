//! `groundswell hip`: runs a HIP program on the simulator. The program is the one that runs on a GPU: it
//! finds another library by the name of HIP's, which lies beside this program.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs};

use groundswell::diagnostic::Kind;
use groundswell::object::DeviceCode;
use groundswell::prelude::Diagnostic;
use serde_json::{Value, json};

use super::arguments::{Hip, target_named};
use super::exit::Exit;
use super::failure::Failure;
use super::host_code::HostListing;
use super::inputs::{self, DeviceFile};
use super::outcome::VerbOutcome;
use super::outputs::{Files, TextStream};
use super::terminal::{Style, paint_error};

/// The libraries, as cargo names them, and the names by which programs ask for them. HSA's has only the name
/// of those who open it to ask what device there is: programs that are linked to it need all of it.
const LIBRARIES: [(&str, &[&str]); 4] = [
    ("amdhip64-5", &["libamdhip64.so.5"]),
    ("amdhip64-6", &["libamdhip64.so.6"]),
    ("amdhip64-7", &["libamdhip64.so.7", "libamdhip64.so"]),
    ("hsa-runtime64", &["libhsa-runtime64.so"]),
];

/// Where else than beside this program the libraries are looked for.
const DIRECTORY_VARIABLE: &str = "GROUNDSWELL_HIP_LIBRARIES";

/// A directory of this run, with the names of the libraries and the reports of processes; it goes with the
/// run.
struct RunDirectory(PathBuf);

impl RunDirectory {
    fn new() -> io::Result<RunDirectory> {
        let path = env::temp_dir().join(format!("groundswell-hip-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(RunDirectory(path))
    }

    /// Gives the libraries the names that programs ask for.
    fn name_libraries(&self, libraries: &Path) -> io::Result<()> {
        for (file, names) in LIBRARIES {
            for name in names {
                symlink(libraries.join(file), self.0.join(name))?;
            }
        }
        fs::create_dir(self.reports())
    }

    fn reports(&self) -> PathBuf {
        self.0.join("reports")
    }

    /// What the processes have written, in the order of their numbers.
    fn read_reports(&self) -> io::Result<Vec<Value>> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.reports())?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        // A process that was killed as it wrote leaves half a report, which says nothing.
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        Ok(paths.iter().filter_map(read).collect())
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // What cannot be removed is litter in a directory for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The directory that has the libraries.
fn libraries() -> Result<PathBuf, Failure> {
    let beside = || Some(env::current_exe().ok()?.canonicalize().ok()?.parent()?.to_owned());
    let directory = env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from).or_else(beside).unwrap_or_default();
    match LIBRARIES.iter().find(|(file, _)| !directory.join(file).is_file()) {
        None => Ok(directory),
        Some((missing, _)) => {
            let text = format!("there is no {missing} in {}", directory.display());
            let help = format!(
                "`cargo build --release --workspace` makes it; {DIRECTORY_VARIABLE} names another directory"
            );
            Err(Diagnostic::new(Kind::Unsupported, text).help(help).into())
        }
    }
}

/// The verb.
pub fn hip(arguments: &Hip, files: &mut Files) -> Result<VerbOutcome, Failure> {
    if arguments.list {
        return list(Path::new(&arguments.program[0]));
    }
    let target = arguments.target.as_deref().map(target_named).transpose()?;
    let trace = arguments.trace.as_deref().map(|path| files.writes(path)).transpose()?;
    let libraries = libraries()?;
    let failed = |error: io::Error| Failure::unwritable(&"a directory for the run", &error);
    let directory = RunDirectory::new().map_err(failed)?;
    directory.name_libraries(&libraries).map_err(failed)?;

    let status = command(arguments, &directory, target.map(|target| target.to_string()), files).status();
    let status = status.map_err(|error| {
        let text = format!("cannot run {}: {error}", arguments.program[0].to_string_lossy());
        Failure::usage(Diagnostic::invalid(text).help("groundswell hip [OPTIONS] -- PROGRAM [ARGUMENTS]"))
    })?;
    let processes = directory.read_reports().map_err(failed)?;
    if let Some(output) = &trace {
        let events: Vec<&Value> = of_all(&processes, "trace").collect();
        output.write(json!({ "traceEvents": events }).to_string().as_bytes())?;
    }
    eprint!("{}{}", text(arguments, &processes), ending(status));
    let clean = ["findings", "faults"].iter().all(|key| of_all(&processes, key).next().is_none());
    let exit = if status.success() && clean { Exit::Worked } else { Exit::Failed };
    let json = to_json(arguments, status, &processes);
    Ok(VerbOutcome { text: Vec::new(), json: Some(json), exit })
}

/// Shows the list of the device code in a program or library.
fn list(program: &Path) -> Result<VerbOutcome, Failure> {
    let path = found(program);
    let (DeviceFile::Objects(bytes) | DeviceFile::Host(bytes)) = inputs::read_device_file(&path)?;
    let listing = HostListing::new(&path, DeviceCode::find(&bytes));
    Ok(VerbOutcome::done(listing.text(), listing.json()))
}

/// The file that a command of this name would run, or the name itself.
fn found(program: &Path) -> PathBuf {
    let is_name =
        program.components().count() == 1 && !program.as_os_str().as_encoded_bytes().contains(&b'/');
    let paths = env::var_os("PATH").filter(|_| is_name && !program.is_file()).unwrap_or_default();
    let mut all = env::split_paths(&paths).map(|folder| folder.join(program));
    all.find(|path| path.is_file()).unwrap_or_else(|| program.to_owned())
}

/// The program, told by its environment where the library is and what it is to do.
fn command(arguments: &Hip, directory: &RunDirectory, target: Option<String>, files: &Files) -> Command {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]);
    let mut search = directory.0.clone().into_os_string();
    if let Some(before) = env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
        search.push(":");
        search.push(before);
    }
    let mode = match (arguments.check, arguments.time) {
        (true, _) => "check",
        (false, true) => "time",
        (false, false) => "run",
    };
    command.env("LD_LIBRARY_PATH", search);
    command.env("GROUNDSWELL_HIP_MODE", mode);
    command.env("GROUNDSWELL_HIP_SEED", arguments.seed.to_string());
    command.env("GROUNDSWELL_HIP_BUDGET", arguments.budget.to_string());
    command.env("GROUNDSWELL_HIP_ORDER", arguments.order.order.to_string());
    command.env("GROUNDSWELL_HIP_REPORT", directory.reports());
    if let Some(timeout) = arguments.timeout {
        command.env("GROUNDSWELL_HIP_TIMEOUT", timeout.as_secs_f64().to_string());
    }
    if let Some(target) = target {
        command.env("GROUNDSWELL_HIP_TARGET", target);
    }
    if io::stderr().is_terminal() {
        command.env("GROUNDSWELL_HIP_PROGRESS", "1");
    }
    // Standard output carries one JSON object.
    if arguments.json || files.text_stream() == TextStream::Error {
        command.stdout(Stdio::from(io::stderr()));
    }
    command
}

/// The values of a list of every process.
fn of_all<'a>(processes: &'a [Value], key: &'a str) -> impl Iterator<Item = &'a Value> {
    processes.iter().filter_map(move |process| process[key].as_array()).flatten()
}

fn to_json(arguments: &Hip, status: ExitStatus, processes: &[Value]) -> Value {
    let all = |key| of_all(processes, key).collect::<Vec<_>>();
    json!({
        "program": arguments.program.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>(),
        "exit": status.code(),
        "signal": status.signal(),
        "processes": processes,
        "sim": { "seed": arguments.seed, "findings": all("findings"), "notes": all("notes"),
                 "faults": all("faults") },
    })
}

/// For people: what was launched, and what was found. In run mode nothing, as the program speaks for itself.
fn text(arguments: &Hip, processes: &[Value]) -> String {
    let mut text = String::new();
    if !arguments.check && !arguments.time {
        return text;
    }
    // Writing to a string cannot fail.
    for process in processes {
        let program = process["program"].as_str().unwrap_or_default();
        let _ = writeln!(text, "\n{}  process {}", paint_error(Style::Bold, program), process["process"]);
        for kernel in process["kernels"].as_array().into_iter().flatten() {
            let name = kernel["kernel"].as_str().unwrap_or_default();
            let launches = plural(kernel["launches"].as_u64().unwrap_or(0), "launch", "launches");
            let time = match kernel["us"].as_f64().filter(|_| arguments.time) {
                Some(us) => format!(", {us:.1} us"),
                None => String::new(),
            };
            let untimed = match kernel["untimed"].as_u64().unwrap_or(0) {
                0 => String::new(),
                count => format!(", {count} of them without a time"),
            };
            let _ = writeln!(text, "  {name}: {launches}{time}{untimed}");
        }
        for list in ["findings", "notes"] {
            for finding in process[list].as_array().into_iter().flatten() {
                let _ = writeln!(text, "\n{}", finding["text"].as_str().unwrap_or_default());
            }
        }
    }
    if arguments.check {
        let findings = of_all(processes, "findings").count() + of_all(processes, "faults").count();
        let _ = match findings {
            0 => writeln!(
                text,
                "{}",
                paint_error(Style::Good, "no race, missing wait, hazard or other finding")
            ),
            _ => {
                let count = plural(findings as u64, "finding", "findings");
                writeln!(text, "\n{}", paint_error(Style::Bad, &count))
            }
        };
    }
    text
}

/// How the program ended, if not well.
fn ending(status: ExitStatus) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return String::new(),
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program did not end well".to_owned(),
    };
    format!("{}\n", paint_error(Style::Bad, &how))
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
