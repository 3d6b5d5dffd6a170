//! Runs the text kernels under `tests/files`: a kernel in, an expected text out.
//!
//! A file holds cases, separated by lines that start with `; ===`. A case is
//!
//! ```text
//! ; test COMMAND        what is done with the kernel: a row of COMMANDS, with its argument if it takes one
//! ; set NAME=INTEGER    values of symbols, for commands that bind symbols
//! ; dynamic NAME        symbols that are left open until launch
//! ; global_to_shared    loads tiles of shared memories straight into LDS where it can
//! ; target NAME         the chip, gfx942 without this
//! ; bounds_check        accesses at coordinates that leave their memory are noted
//! ; fast_math           floats are computed with fewer instructions
//! ; schedule NAME       how loops are scheduled; a schedule after the kernel is an author's own
//! kernel ... { ... }
//! ; ---
//! the output of the command
//! ```
//!
//! A case may say only how it differs from another one of its file ([`groundswell_testing::case_files`]).
//!
//! `; test pass NAME` runs the pipeline up to and including a pass, with the verifier after each, and prints
//! the kernel with what the passes found. The kernel may be a text of any stage (`kernel gemm after expand
//! {`): then the passes after that stage run. `; test compile` prints the machine code, and `; test compile
//! loop` its largest loop; `; test schedule NAME` prints the table of a schedule. `; test order` prints the
//! order in which operations are emitted, those that are alike as one line. `; test check NAME VALUE ...`
//! compiles with each value of a symbol, bound and dynamic, runs in check mode, compares with the
//! interpreter, and prints the schedule that loops got and the bytes of LDS. `; test candidates` prints what
//! the report says of the schedules among which the compiler chose.
//!
//! Faults are comments at the end of the line at fault: `; error: message`, and `; help: what the
//! help says` where there is one; `; note: ...` where a note points. A fault without a place in the text is
//! at the line `; test`. With `BLESS=1` in the environment outputs and fault comments are rewritten to what
//! comes out; review them as a diff. A fault of the compiler itself is never accepted.

use groundswell_testing::case_files::{condensed, expanded, without_fault};
use groundswell_testing::places::root;
use std::fs;
use std::path::{Path, PathBuf};

use bevy_ecs::entity::Entity;
use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::check::with_findings;
use groundswell::compile::PIPELINE;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::listing;
use groundswell::compile::{ScheduleView, schedule_of};
use groundswell::device::Device;
use groundswell::diagnostic::{Diagnostic, Kind, Location};
use groundswell::internals::node::{Body, Control, Op};
use groundswell::internals::schedules::describe;
use groundswell::internals::walk;
use groundswell::internals::{Workspace, with_workspace};
use groundswell::options::{GlobalToShared, Options, Schedule};
use groundswell::target::Target;
use groundswell::text::{Detail, parse_file};
use groundswell_testing::loops::largest_loop;

/// The result of a command for a case.
enum Output {
    /// Text, which comes after `; ---`.
    Text(String),
    /// Faults, which come at the end of their lines.
    Faults(Vec<Diagnostic>),
}

/// Runs a case: returns its output, or why the command does not apply.
type Command = fn(&Case) -> Result<Output, String>;

const COMMANDS: &[(&str, Command)] = &[
    ("parse", |case| case.kernel().map(|_| Output::Text(String::new()))),
    ("print", |case| case.print(Detail::Source)),
    ("identity", |case| case.print(Detail::Identity)),
    ("full", |case| case.print(Detail::Full)),
    ("fail", fail),
    ("pass", pass),
    ("compile", compile),
    ("schedule", schedule),
    ("order", order),
    ("check", check),
    ("candidates", candidates),
];

/// The kernel must not parse.
fn fail(case: &Case) -> Result<Output, String> {
    match Kernel::parse(&case.source, &case.file) {
        Ok(_) => Err("the kernel has no faults".to_owned()),
        Err(faults) => Ok(Output::Faults(faults.into_iter().collect())),
    }
}

/// Runs the passes up to the named one.
fn pass(case: &Case) -> Result<Output, String> {
    let name = case.argument.as_str();
    if !PIPELINE.iter().any(|pass| pass.name == name) {
        let names: Vec<_> = PIPELINE.iter().map(|pass| pass.name).collect();
        return Err(format!("no pass `{name}`, there are: {}", names.join(", ")));
    }
    let kernel = case.kernel()?;
    let result = with_workspace(|workspace| {
        workspace.load(&kernel, &case.options());
        workspace.run(Some(name), Verify::AfterEachPass, &mut Vec::new())?;
        Ok(workspace.text(Detail::Full))
    });
    match result {
        // The result of a pass is a kernel that can be read back.
        Ok(text) => match Kernel::parse(&text, "the printed text") {
            Ok(again) if again.text(Detail::Full) == text => Ok(Output::Text(text)),
            Ok(again) => Err(format!("{text}\nreads as\n{}", again.text(Detail::Full))),
            Err(faults) => Err(format!("{text}\ndoes not parse: {faults:?}")),
        },
        Err(fault) => Ok(Output::Faults(vec![fault])),
    }
}

/// Runs all passes and prints what is emitted.
fn order(case: &Case) -> Result<Output, String> {
    let kernel = case.kernel()?;
    let result = with_workspace(|workspace| {
        workspace.load(&kernel, &case.options());
        workspace.run(None, Verify::AfterEachPass, &mut Vec::new())?;
        let mut lines: Vec<(String, u32)> = Vec::new();
        emitted(workspace, workspace.root, 0, &mut lines);
        Ok(lines)
    });
    Ok(match result {
        Err(fault) => Output::Faults(vec![fault]),
        Ok(lines) => Output::Text(
            lines
                .into_iter()
                .map(|(line, count)| match count {
                    1 => format!("{line}\n"),
                    more => format!("{line} x {more}\n"),
                })
                .collect(),
        ),
    })
}

/// Adds the operations of a region in order, and how many are alike.
fn emitted(workspace: &Workspace, region: Entity, depth: usize, lines: &mut Vec<(String, u32)>) {
    let world = &workspace.world;
    for node in walk::body(world, region) {
        let word = match world.get::<Op>(node) {
            Some(Op::Memory | Op::Allocate | Op::Register(_) | Op::IterArg(_) | Op::LoopResult(_)) => {
                continue;
            }
            Some(Op::Barrier) => "barrier".to_owned(),
            Some(Op::Control(Control::ConditionalBarrier(condition))) => {
                format!("barrier for waves {:?} {:?}", condition.predicate, condition.bound)
            }
            Some(Op::Control(control)) => format!("{control:?}"),
            _ => {
                let text = describe(world, workspace.root, node);
                let text = text.strip_prefix("the ").unwrap_or(&text);
                text.split(" (replica").next().unwrap_or(text).to_owned()
            }
        };
        let line = format!("{:1$}{word}", "", 2 * depth);
        match lines.last_mut() {
            Some((last, count)) if *last == line && world.get::<Body>(node).is_none() => *count += 1,
            _ => lines.push((line, 1)),
        }
        emitted(workspace, node, depth + 1, lines);
    }
}

/// Compiles the kernel for several values of a symbol and runs it in check mode.
fn check(case: &Case) -> Result<Output, String> {
    let mut words = case.argument.split_whitespace();
    let symbol = words.next().map(Symbol::new).ok_or("check takes a symbol and its values")?;
    let kernel = case.kernel()?;
    let device = Device::simulator(case.target);
    let mut out = String::new();
    let mut dynamic = Vec::new();
    for word in words {
        let size: i64 = word.parse().map_err(|_| format!("`{word}` is no size"))?;
        let value = |s: Symbol| {
            let set = case.settings.iter().find(|(name, _)| *name == s.name()).map(|set| set.1);
            if s == symbol { Some(size) } else { set }
        };
        for (how, options) in
            [("", case.options().set(symbol, size)), ("dynamic", case.options().dynamic(symbol))]
        {
            let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
                Ok(executable) => executable,
                Err(fault) => return Ok(Output::Faults(vec![fault])),
            };
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, 7)
                .map_err(|fault| format!("{symbol} = {size} {how}: {fault}"))?;
            if !report.is_clean() || !comparison.ok {
                return Err(format!("{symbol} = {size} {how}: {comparison:?} {report}"));
            }
            let report = executable.report();
            let why = match &report.schedule_why[..] {
                "" => String::new(),
                why => format!(" ({why})"),
            };
            let line = format!("{}, {} bytes of LDS{why}", report.schedule_applied, report.lds_bytes);
            if how.is_empty() {
                out.push_str(&format!("{symbol} = {size}: {line}\n"));
            } else if !dynamic.contains(&line) {
                dynamic.push(line);
            }
        }
    }
    dynamic.iter().for_each(|line| out.push_str(&format!("{symbol} dynamic: {line}\n")));
    Ok(Output::Text(out))
}

/// Compiles the kernel and prints its machine code, or the largest loop of it.
fn compile(case: &Case) -> Result<Output, String> {
    let executable = match compile_uncached(&case.kernel()?, &case.options(), Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) => return Ok(Output::Faults(vec![fault])),
    };
    let text = listing(executable.code(), executable.target().arch)?;
    match case.argument.as_str() {
        "" => Ok(Output::Text(text)),
        "loop" => match largest_loop(&text) {
            Some(lines) => Ok(Output::Text(lines.iter().map(|line| format!("{line}\n")).collect())),
            None => Err(format!("no loop in\n{text}")),
        },
        other => Err(format!("compile prints everything or `loop`, not `{other}`")),
    }
}

/// Lets the compiler choose the schedules of the kernel's loops, and prints what the report says of them.
fn candidates(case: &Case) -> Result<Output, String> {
    let options = case.options().schedule(Schedule::Automatic);
    let executable = match compile_uncached(&case.kernel()?, &options, Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) => return Ok(Output::Faults(vec![fault])),
    };
    let lines = executable.report().lines();
    let said = lines.iter().filter(|(what, _)| ["schedule", "candidate"].contains(what));
    Ok(Output::Text(said.map(|(what, line)| format!("{what} {line}\n")).collect()))
}

/// Schedules the kernel's loops and prints their table.
fn schedule(case: &Case) -> Result<Output, String> {
    let row = Schedule::named().find(|row| row.name() == case.argument);
    let schedule = row.ok_or_else(|| format!("no schedule `{}`", case.argument))?;
    let options = case.options().schedule(schedule);
    Ok(match schedule_of(&case.kernel()?, &options, ScheduleView::Table) {
        Ok(text) => Output::Text(text),
        Err(fault) => Output::Faults(vec![fault]),
    })
}

/// One case of a file.
struct Case {
    file: String,
    /// Lines of the file before the case.
    first: usize,
    commands: Vec<String>,
    /// What follows the command's name.
    argument: String,
    /// Values of symbols, in the order given.
    settings: Vec<(String, i64)>,
    /// Symbols left open until launch.
    dynamic: Vec<String>,
    /// How loops are scheduled.
    schedule: Schedule,
    /// How tiles of shared memories come into LDS.
    global_to_shared: GlobalToShared,
    target: Target,
    /// Whether coordinates outside of their memories are noted.
    bounds_check: bool,
    /// Whether floats are computed with fewer instructions.
    fast_math: bool,
    /// The case's lines up to its expected output, without fault comments, moved down to their place in the
    /// file.
    source: String,
    /// The same lines as they are in the file.
    lines: Vec<String>,
    expected: Option<String>,
}

impl Case {
    fn kernel(&self) -> Result<Kernel, String> {
        Kernel::parse(&self.source, &self.file)
            .map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
    }

    fn options(&self) -> Options {
        let options =
            Options::new(self.target).schedule(self.schedule.clone()).global_to_shared(self.global_to_shared);
        let options = if self.bounds_check { options.bounds_check() } else { options };
        let options = if self.fast_math { options.fast_math() } else { options };
        let options = match parse_file(&self.source, &self.file) {
            Ok((_, Some(schedule))) => options.wave_schedule(&schedule),
            _ => options,
        };
        let options = self
            .settings
            .iter()
            .fold(options, |options, (name, value)| options.set(Symbol::new(name), *value));
        self.dynamic.iter().fold(options, |options, name| options.dynamic(Symbol::new(name)))
    }

    /// The printed text has to read back as the same text.
    fn print(&self, detail: Detail) -> Result<Output, String> {
        let text = self.kernel()?.text(detail);
        let again =
            Kernel::parse(&text, "the printed text").map_err(|faults| format!("{text}\n{faults:?}"))?;
        match again.text(detail) {
            same if same == text => Ok(Output::Text(text)),
            other => Err(format!("printed, parsed and printed again:\n{}", difference(&text, &other))),
        }
    }

    fn read(file: &str, first: usize, lines: &[&str]) -> Result<Case, String> {
        let split = lines.iter().position(|line| *line == "; ---");
        let (input, expected) = match split {
            Some(at) => {
                (&lines[..at], Some(lines[at + 1..].iter().map(|line| format!("{line}\n")).collect()))
            }
            None => (lines, None),
        };
        let mut case = Case {
            file: file.to_owned(),
            first,
            commands: Vec::new(),
            argument: String::new(),
            settings: Vec::new(),
            dynamic: Vec::new(),
            schedule: Schedule::None,
            global_to_shared: GlobalToShared::Off,
            target: Target::GFX942,
            bounds_check: false,
            fast_math: false,
            source: "\n".repeat(first),
            lines: input.iter().map(|line| (*line).to_owned()).collect(),
            expected,
        };
        for line in input {
            let line = without_fault(line);
            if let Some(command) = line.strip_prefix("; test ") {
                let (name, argument) = command.trim().split_once(' ').unwrap_or((command.trim(), ""));
                case.commands.push(name.to_owned());
                case.argument = argument.to_owned();
            }
            if let Some(names) = line.strip_prefix("; dynamic ") {
                case.dynamic.extend(names.split_whitespace().map(str::to_owned));
            }
            if let Some(name) = line.strip_prefix("; schedule ") {
                let row = Schedule::named().find(|row| row.name() == name.trim());
                case.schedule = row.ok_or_else(|| format!("no schedule `{name}`"))?;
            }
            if let Some(name) = line.strip_prefix("; target ") {
                case.target = Target::from_name(name).expect("a chip");
            }
            if line == "; global_to_shared" {
                case.global_to_shared = GlobalToShared::Fitting;
            }
            case.bounds_check |= line == "; bounds_check";
            case.fast_math |= line == "; fast_math";
            if let Some(settings) = line.strip_prefix("; set ") {
                for setting in settings.split_whitespace() {
                    let pair =
                        setting.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
                    let (name, value) = pair.ok_or_else(|| format!("`{setting}` is not NAME=INTEGER"))?;
                    case.settings.push((name.to_owned(), value));
                }
            }
            case.source.push_str(line);
            case.source.push('\n');
        }
        Ok(case)
    }

    fn command(&self) -> Result<Command, String> {
        let [command] = &self.commands[..] else {
            return Err("a case has one line `; test COMMAND`".to_owned());
        };
        let names = || COMMANDS.iter().map(|row| row.0).collect::<Vec<_>>().join(", ");
        let row = COMMANDS.iter().find(|row| row.0 == command);
        row.map(|row| row.1).ok_or_else(|| format!("no command `{command}`, there are: {}", names()))
    }

    /// Index of the line that a fault blames.
    fn line(&self, place: Option<&Location>) -> Result<usize, String> {
        let Some(place) = place else {
            let command = self.lines.iter().position(|line| line.starts_with("; test "));
            return command.ok_or_else(|| "a case has a line `; test`".to_owned());
        };
        // A fault at the end of the text is at its last line.
        let line =
            (place.line as usize - 1).checked_sub(self.first).map(|line| line.min(self.lines.len() - 1));
        line.filter(|_| *place.file == *self.file).ok_or_else(|| format!("{place} is outside of the case"))
    }

    /// The case as it should be in the file.
    fn blessed(&self) -> Result<String, String> {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let clean: Vec<String> = self.lines.iter().map(|line| without_fault(line).to_owned()).collect();
        match self.command()?(self)? {
            Output::Text(output) if output.is_empty() => Ok(text(&clean)),
            Output::Text(output) => {
                // An empty line before the next case belongs to the file, not to the output.
                let end = if self.expected.as_ref().is_some_and(|e| e.ends_with("\n\n")) { "\n" } else { "" };
                Ok(format!("{}; ---\n{output}{end}", text(&clean)))
            }
            Output::Faults(faults) => {
                let mut lines = clean;
                for fault in &faults {
                    if fault.kind == Kind::Bug {
                        return Err(format!("a fault of the compiler: {fault}"));
                    }
                    let line = &mut lines[self.line(fault.location.as_ref())?];
                    line.push_str(&format!(" ; error: {}", fault.message));
                    // Notes without a place belong to the fault itself.
                    for (note, _) in fault.notes.iter().filter(|note| note.1.is_none()) {
                        line.push_str(&format!(" ; note: {note}"));
                    }
                    if let Some(help) = &fault.help {
                        line.push_str(&format!(" ; help: {help}"));
                    }
                    for (note, place) in fault.notes.iter().filter(|note| note.1.is_some()) {
                        lines[self.line(place.as_ref())?].push_str(&format!(" ; note: {note}"));
                    }
                }
                Ok(text(&lines))
            }
        }
    }
}

/// Lines that differ: expected ones with `-`, found ones with `+`.
fn difference(expected: &str, found: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    for (sign, lines, at) in [
        (' ', &old, same.saturating_sub(3)..same),
        ('-', &old, same..old.len() - tail),
        ('+', &new, same..new.len() - tail),
    ] {
        for line in &lines[at] {
            text.push_str(&format!("{sign} {line}\n"));
        }
    }
    text
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder of test files is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "gsw") {
            found.push(path);
        }
    }
}

/// The start of the title of a case.
const TITLE: &str = "; === ";

/// The text of a file, with all cases written out.
fn text_of(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("test files are text");
    expanded(&text, TITLE).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// The file as it should be, and the problems of its cases.
fn run(name: &str, text: &str) -> (String, Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| line.starts_with("; ===")).map(|(at, _)| at);
    let mut borders: Vec<usize> = std::iter::once(0).chain(starts).collect();
    borders.dedup();
    borders.push(lines.len());
    let mut blessed = String::new();
    let mut problems = Vec::new();
    for border in borders.windows(2) {
        let lines = &lines[border[0]..border[1]];
        if lines.iter().all(|line| line.is_empty() || line.starts_with(';'))
            && !lines.iter().any(|l| l.starts_with("; test "))
        {
            // A file may begin with comments about all of its cases.
            blessed.extend(lines.iter().map(|line| format!("{line}\n")));
            continue;
        }
        match Case::read(name, border[0], lines).and_then(|case| case.blessed()) {
            Ok(text) => blessed.push_str(&text),
            Err(problem) => {
                problems.push(format!("{name}:{}: {problem}", border[0] + 1));
                blessed.extend(lines.iter().map(|line| format!("{line}\n")));
            }
        }
    }
    (blessed, problems)
}

#[test]
fn all_files_give_what_they_expect() {
    let root = root().join("tests/files");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    assert!(!paths.is_empty(), "there are test files");
    let mut problems = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).expect("the file is under the root").display().to_string();
        let text = text_of(&path);
        let (blessed, mut wrong) = run(&name, &text);
        problems.append(&mut wrong);
        if blessed != text && bless {
            fs::write(&path, condensed(&blessed, TITLE)).expect("test files can be written");
        } else if blessed != text {
            problems.push(format!("{name} differs; BLESS=1 rewrites it:\n{}", difference(&text, &blessed)));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_harness_notices_wrong_expectations() {
    let good = "; test print\nkernel k {\n}\n; ---\nkernel k {\n}\n";
    assert_eq!(run("good", good), (good.to_owned(), vec![]));
    let (blessed, problems) = run("bad", &good.replace("---\nkernel k", "---\nkernel j"));
    assert_eq!((blessed.as_str(), problems.len()), (good, 0));
    let (_, problems) = run("unknown", "; test dance\nkernel k {\n}\n");
    assert_eq!(problems.len(), 1);
    let (_, problems) = run("no fault", "; test fail\nkernel k {\n}\n");
    assert_eq!(problems.len(), 1);
    let (blessed, _) = run("fault", "; test fail\nkernel k {\n  write ; error: old\n}\n");
    assert!(blessed.contains("  write ; error: expected a value like `%x`"), "{blessed}");
    let case = Case::read("set", 0, &["; test pass expand", "; set M=64 N=-1", "; dynamic K", "kernel k {}"])
        .expect("the case is well formed");
    assert_eq!(case.settings, [("M".to_owned(), 64), ("N".to_owned(), -1)]);
    assert_eq!((case.argument.as_str(), &case.dynamic[..]), ("expand", &["K".to_owned()][..]));
    let unknown = "; test pass dance\nkernel k {\n}\n";
    assert_eq!(run("no such pass", unknown).1.len(), 1);
    let (blessed, problems) =
        run("no size", "; test pass bind_symbols\nkernel k {\n  a = memory [M] global f32\n}\n");
    assert!(problems.is_empty() && blessed.contains("global f32 ; error: the dimension M"), "{blessed}");
    let case = Case::read("no place", 0, &["; test parse", "kernel k {}"]).expect("the case is well formed");
    assert_eq!(case.line(None), Ok(0));
}

#[test]
fn cases_may_say_how_they_differ_from_others() {
    let body = |first: &str, last: &str| format!("; test print\n{first}\na\nx\nb\nx\nc\nd\ne\n{last}\n");
    let text = [
        format!("; === one\n{}\n", body("kernel ; error: no", "end")),
        format!("; === two\n{}", body("kernel", "end").replace("b\nx\n", "b\nx\ny\n")),
        format!("; === three\n{}\n\n", body("kernel ; note: here", "the end")),
        "; === four\n; test parse\nkernel\n".to_owned(),
    ];
    let (text, short) = (text.concat(), condensed(&text.concat(), TITLE));
    let two = "; === two\n; like one\n b\n x\n+y\n; === three\n; like one\n-kernel\n+kernel ; note: here\n-end\n+the end\n";
    assert!(short.contains(two), "{short}");
    assert_eq!(expanded(&short, TITLE).as_ref(), Ok(&text));
    assert_eq!(condensed(&text, TITLE), short);
    assert!(expanded(&short.replace("like one", "like none"), TITLE).is_err());
    assert!(expanded(&short.replace("-end", "-start"), TITLE).is_err());
}

#[test]
fn every_pass_has_cases() {
    let root = root().join("tests/files");
    for pass in PIPELINE {
        let mut paths = Vec::new();
        files(&root.join(pass.name), &mut paths);
        let command = format!("; test pass {}", pass.name);
        let text: String = paths.iter().map(|path| text_of(path)).collect();
        let count = text.lines().filter(|line| without_fault(line) == command).count();
        assert!(count >= 2, "{} has {count} cases", pass.name);
    }
}

/// Every pass but the first has a case whose kernel is the text that the pass before it left.
#[test]
fn every_pass_has_a_case_that_starts_from_text() {
    let root = root().join("tests/files");
    for pair in PIPELINE.windows(2) {
        let (before, pass) = (pair[0].name, pair[1].name);
        let mut paths = Vec::new();
        files(&root.join(pass), &mut paths);
        let texts = paths.iter().map(|path| text_of(path));
        let starts = |text: &str| {
            text.split("; ===").any(|case| {
                let input = case.split("; ---").next().unwrap_or(case);
                input.contains(&format!("; test pass {pass}\n"))
                    && input.contains(&format!(" after {before} {{\n"))
            })
        };
        assert!(texts.into_iter().any(|text| starts(&text)), "{pass} has no case after {before}");
    }
}
