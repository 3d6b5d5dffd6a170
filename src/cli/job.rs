//! From arguments to a kernel and its options: what `run`, `compile` and `bench` have in common.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use groundswell::compile::Verify;
use groundswell::compile::{compile_uncached, search_schedule};
use groundswell::internals::foreign_dtype;
use groundswell::internals::schedules::{NONE, PING_PONG, PREFETCH, SEARCH};
use groundswell::kernels;
use groundswell::kernels::{Choices, Waves};
use groundswell::prelude::*;
use groundswell::text::parse_file;

use super::arguments::{DirectLoading, KernelArguments, target_named};
use super::failure::Failure;
use super::inputs;
use super::outputs::Files;
use super::snippet::NamedText;
use super::standard_input;

/// A kernel that can be compiled, and everything that the arguments say about it.
pub struct Job {
    /// Its name, or the file that it was read from.
    pub title: String,
    /// What it computes, if that is known.
    pub description: &'static str,
    /// The kernel.
    pub kernel: Kernel,
    /// How it is compiled, for the first of the targets.
    pub options: Options,
    /// What it is compiled for.
    pub targets: Vec<TargetId>,
    /// Values of its symbols, the dynamic ones included.
    pub bindings: Vec<(Symbol, i64)>,
    /// The text that it was read from.
    pub source: Option<NamedText>,
}

/// Times of several cold compilations.
pub struct Times {
    /// Of the first one, which may have to make what later ones find in pools.
    pub first: Duration,
    /// Median of the whole.
    pub total: Duration,
    /// Median of each phase, in order.
    pub phases: Vec<(&'static str, Duration)>,
}

impl Job {
    /// The job that arguments describe.
    pub fn new(arguments: &KernelArguments) -> Result<Job, Failure> {
        let targets = arguments.target.iter().map(|id| target_named(id)).collect::<Result<Vec<_>, _>>()?;
        let first = *targets.first().ok_or_else(|| Failure::usage(Diagnostic::invalid("no target")))?;
        let mut bound = Bound::default();
        for (name, value) in &arguments.set {
            bound.add(name, *value, format!("-s {name}={value}"));
        }
        for (dim, value) in &arguments.tile {
            bound.add(&format!("BLOCK_{dim}"), *value, format!("--tile {dim}={value}"));
        }
        let (title, description, (kernel, written), source) = match kernels::find(&arguments.kernel) {
            Some(entry) => {
                // Its lines are not the user's.
                let nowhere = |fault: Diagnostic| fault.at(None);
                let choices = choices(arguments).map_err(Failure::usage)?;
                let kernel = entry.kernel(&choices).map_err(|fault| named(nowhere(fault), arguments))?;
                let kernel = match entry.waves {
                    Some(usual) => told_waves(kernel.told_at(None), usual, arguments),
                    None => kernel.told_at(None),
                };
                let values = entry.values(&|name| bound.value(Symbol::new(name)));
                bound.defaults(values.into_iter());
                (entry.name.to_string(), entry.description, (kernel, None), None)
            }
            None => {
                for (dim, value) in &arguments.waves {
                    bound.add(&format!("WAVES_{dim}"), *value, format!("--waves {dim}={value}"));
                }
                let (parts, source) = read(arguments)?;
                (standard_input::title(&arguments.kernel).to_owned(), "", parts, Some(source))
            }
        };
        let mut options = Options::new(first).global_to_shared(global_to_shared(arguments));
        options = bind_symbols(options, &kernel, &bound, arguments)
            .map_err(|fault| Failure::usage(fault).with_source(source.as_ref()))?;
        if arguments.fast_math {
            options = options.fast_math();
        }
        if arguments.always_rescale {
            options = options.unit_factors(UnitFactors::Multiply);
        }
        if arguments.visit_masked {
            options = options.masked_tiles(MaskedTiles::Visit);
        }
        if let Some(name) = &arguments.emulate {
            options = options.emulate(dtype("--emulate", name).map_err(Failure::usage)?);
        }
        if arguments.bounds_check {
            options = options.bounds_check();
        }
        options = arguments.deny.iter().fold(options, |options, denied| options.deny(denied.option()));
        let bindings = bound.0.iter().map(|(symbol, value, _)| (*symbol, *value)).collect();
        let options = match arguments.schedule.name == SEARCH.name {
            true => searched(&kernel, options, arguments, &targets)?,
            false => scheduled(options, arguments, written.as_ref(), source.as_ref())?,
        };
        Ok(Job { title, description, kernel, options, targets, bindings, source })
    }

    /// Checks that there is one target alone, for what is done with one.
    pub fn for_one_target(self, what: &str) -> Result<Job, Failure> {
        if self.targets.len() > 1 {
            let text = format!("{what} takes one target, not {}", self.targets.len());
            let help = "compile --emit object makes a bundle of several";
            return Err(Failure::usage(Diagnostic::invalid(text).help(help)));
        }
        Ok(self)
    }

    /// Value of a symbol.
    pub fn value(&self, symbol: Symbol) -> Option<i64> {
        self.bindings.iter().find(|b| b.0 == symbol).map(|b| b.1)
    }

    /// Compiles without a cache, and then takes the time of `count` more compilations at least, for at least
    /// a twentieth of a second unless that takes `4 * count` of them.
    pub fn compile(&self, count: usize) -> Result<(Executable, Times), Failure> {
        let once = || {
            let start = Instant::now();
            let executable = compile_uncached(&self.kernel, &self.options, Verify::Off)
                .map_err(|fault| Failure::from(fault).with_source(self.source.as_ref()))?;
            Ok::<_, Failure>((start.elapsed(), executable))
        };
        // It fills the pools, and is not representative.
        let (first, executable) = once()?;
        let begin = Instant::now();
        let mut totals = Vec::new();
        let mut phases: Vec<(&'static str, Vec<Duration>)> = Vec::new();
        while totals.len() < count
            || (totals.len() < 4 * count && begin.elapsed() < Duration::from_millis(50))
        {
            let (time, executable) = once()?;
            totals.push(time);
            for (at, &(name, time)) in executable.report().phases.iter().enumerate() {
                match phases.get_mut(at) {
                    Some((_, times)) => times.push(time),
                    None => phases.push((name, vec![time])),
                }
            }
        }
        let phases = phases.into_iter().map(|(name, times)| (name, median(times))).collect();
        Ok((executable, Times { first, total: median(totals), phases }))
    }
}

/// The options with the symbols that arguments set or leave open.
fn bind_symbols(
    mut options: Options,
    kernel: &Kernel,
    bound: &Bound,
    arguments: &KernelArguments,
) -> Result<Options, Diagnostic> {
    let known = kernel.symbols();
    let dynamic: Vec<Symbol> = arguments.dynamic.iter().map(|name| Symbol::new(name.trim())).collect();
    for &symbol in &dynamic {
        check_known(&known, symbol)
            .map_err(|fault| fault.note(format!("--dynamic {symbol} leaves it open"), None))?;
        options = options.dynamic_by(symbol, SetBy::Argument(format!("--dynamic {symbol}").into()));
    }
    for (symbol, value, by) in &bound.0 {
        check_known(&known, *symbol).map_err(|fault| match by {
            SetBy::Argument(argument) => fault.note(format!("{argument} sets it"), None),
            _ => fault,
        })?;
        if !dynamic.contains(symbol) {
            options = options.set_by(*symbol, *value, by.clone());
        }
    }
    Ok(options)
}

/// The middle one.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Bindings in the order given, each with its origin. A symbol may be there twice: the compiler reports it.
#[derive(Default)]
struct Bound(Vec<(Symbol, i64, SetBy)>);

impl Bound {
    fn add(&mut self, name: &str, value: i64, argument: String) {
        self.0.push((Symbol::new(name), value, SetBy::Argument(argument.into())));
    }

    /// The value that a symbol was given.
    fn value(&self, symbol: Symbol) -> Option<i64> {
        self.0.iter().find(|bound| bound.0 == symbol).map(|bound| bound.1)
    }

    /// Adds the defaults of symbols that are not bound, all in the order of the defaults.
    fn defaults(&mut self, defaults: impl Iterator<Item = (&'static str, i64)>) {
        let given = std::mem::take(&mut self.0);
        for (name, value) in defaults {
            let symbol = Symbol::new(name);
            match given.iter().any(|g| g.0 == symbol) {
                true => self.0.extend(given.iter().filter(|g| g.0 == symbol).cloned()),
                false => self.0.push((symbol, value, SetBy::Default)),
            }
        }
        let rest = given.iter().filter(|g| !self.0.iter().any(|b| b.0 == g.0)).cloned().collect::<Vec<_>>();
        self.0.extend(rest);
    }
}

/// Names the files that a job is read from.
pub fn name_inputs(arguments: &KernelArguments, files: &mut Files) -> Result<(), Failure> {
    if kernels::find(&arguments.kernel).is_none() {
        files.reads(Path::new(&arguments.kernel))?;
    }
    arguments.schedule_file.as_deref().map_or(Ok(()), |path| files.reads(path))
}

fn check_known(known: &[Symbol], symbol: Symbol) -> Result<(), Diagnostic> {
    if known.contains(&symbol) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|s| s.name()).collect();
    Err(Diagnostic::invalid(format!("the kernel has no symbol {symbol}"))
        .help(format!("its symbols are {}", names.join(", "))))
}

/// A fault of making a ready kernel, with the options that it was made from.
fn named(fault: Diagnostic, arguments: &KernelArguments) -> Diagnostic {
    let chosen = [("--dtype", &arguments.dtype), ("--mma", &arguments.mma)];
    let given = chosen.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
    given.fold(fault, |fault, (option, value)| fault.note(format!("{option} {value} is asked for"), None))
}

/// The kernel, whose faults about waves say which argument set them, or that nothing did.
fn told_waves(kernel: Kernel, usual: Waves, arguments: &KernelArguments) -> Kernel {
    [("M", usual.m), ("N", usual.n)].into_iter().fold(kernel, |kernel, (dim, usual)| {
        let given = arguments.waves.iter().rfind(|given| given.0 == dim);
        let (count, by) = match given {
            Some((_, count)) => (*count, format!("set by --waves {dim}={count}")),
            None => (usual.into(), "the default".to_owned()),
        };
        let waves = if count == 1 { "wave" } else { "waves" };
        let are = if count == 1 { "is" } else { "are" };
        let text = format!("{count} {waves} along {dim} {are} {by}");
        kernel.chosen_for(Symbol::new(dim), text, None)
    })
}

/// A text kernel, with the schedule after it.
type TextParts = (Kernel, Option<WaveSchedule>);

fn read(arguments: &KernelArguments) -> Result<(TextParts, NamedText), Failure> {
    let name = &arguments.kernel;
    if arguments.mma.is_some() || arguments.dtype.is_some() || arguments.out_dtype.is_some() {
        return Err(Failure::usage(
            Diagnostic::invalid("--mma, --dtype and --out-dtype choose variants of ready kernels")
                .help("write the matrix instruction and the dtypes into the text"),
        ));
    }
    let is_standard_input = standard_input::is_named(Path::new(name));
    let path = match is_standard_input {
        true => Path::new(name),
        false => &arguments.folder.join(name),
    };
    if !is_standard_input && !path.exists() {
        let names: Vec<&str> = kernels::list().iter().map(|e| e.name).collect();
        let place = match arguments.folder.as_os_str().is_empty() {
            true => String::new(),
            false => format!(" in {}", arguments.folder.display()),
        };
        return Err(Diagnostic::invalid(format!("{name} is neither a ready kernel nor a file{place}"))
            .help(format!("ready kernels are {}", names.join(", ")))
            .into());
    }
    let text = inputs::read_text(path, inputs::KERNEL)?;
    let file = standard_input::title(name);
    let source = NamedText { file: Arc::from(file), text: Arc::from(text.as_str()) };
    match parse_file(&text, file) {
        Ok(parts) => Ok((parts, source)),
        Err(faults) => Err(Failure::of_source(faults, source)),
    }
}

/// How tiles come into LDS according to the arguments.
fn global_to_shared(arguments: &KernelArguments) -> GlobalToShared {
    match arguments.global_to_shared {
        None => GlobalToShared::Automatic,
        Some(DirectLoading::Fitting) => GlobalToShared::Fitting,
        Some(DirectLoading::Off) => GlobalToShared::Off,
    }
}

/// The options with the schedule of a file: a table, or a block.
fn of_file(options: Options, name: String, text: String) -> Result<Options, Failure> {
    let is_opening = |line: &str| line.starts_with("schedule ") && line.trim_end().ends_with('{');
    let read = match text.lines().any(is_opening) {
        true => WaveSchedule::parse(&text, &name).map(|block| options.wave_schedule(&block)),
        false => ScheduleTable::parse(&text, &name).map(|table| options.schedule_table(&table)),
    };
    read.map_err(|faults| Failure::of_source(faults, NamedText { file: name.into(), text: text.into() }))
}

/// The options with the schedule that a search finds.
fn searched(
    kernel: &Kernel,
    options: Options,
    arguments: &KernelArguments,
    targets: &[TargetId],
) -> Result<Options, Failure> {
    if arguments.schedule_file.is_some() || arguments.pingpong {
        return Err(Failure::arguments("--schedule search goes with neither --schedule-file nor --pingpong"));
    }
    if targets.len() > 1 {
        return Err(Failure::arguments("--schedule search takes one target: what it finds is for one chip"));
    }
    let found = search_schedule(kernel, &options, arguments.search_candidates)?;
    // What is printed is the same with and without the search.
    eprintln!("search: {} schedules estimated", found.tried);
    found.loops.iter().for_each(|own| eprintln!("search: {own}"));
    Ok(options.wave_schedule(&found.schedule))
}

/// The options with the schedule that the arguments ask for.
fn scheduled(
    options: Options,
    arguments: &KernelArguments,
    written: Option<&WaveSchedule>,
    source: Option<&NamedText>,
) -> Result<Options, Failure> {
    if let Some(path) = &arguments.schedule_file {
        if arguments.schedule.name != NONE.name || arguments.pingpong {
            return Err(Failure::arguments(
                "--schedule-file is a schedule of its own and goes with neither --schedule nor --pingpong",
            ));
        }
        let text = inputs::read_text(&arguments.folder.join(path), inputs::TABLE)?;
        return of_file(options, path.display().to_string(), text);
    }
    let strategy = arguments.schedule;
    if arguments.pingpong {
        return match [NONE.name, PREFETCH.name, PING_PONG.name].contains(&strategy.name) {
            true => Ok(options.schedule(Schedule::PingPong)),
            false => {
                Err(Failure::arguments(&format!("--pingpong goes with --schedule {} alone", PREFETCH.name)))
            }
        };
    }
    match strategy.option() {
        Some(schedule) => Ok(options.schedule(schedule)),
        None => match (written, source) {
            (Some(written), _) => Ok(options.wave_schedule(written)),
            (None, Some(source)) => Err(Diagnostic::invalid(format!("{} holds no schedule", source.file))
                .help("write a `schedule` block after the kernel")
                .into()),
            (None, None) => {
                let name = &arguments.kernel;
                Err(Failure::usage(
                    Diagnostic::invalid(format!("{name} is a ready kernel without a schedule"))
                        .help("manual schedules come after text kernels; ready kernels take the others"),
                ))
            }
        },
    }
}

/// What the arguments choose about a ready kernel.
fn choices(arguments: &KernelArguments) -> Result<Choices, Diagnostic> {
    let named =
        |argument, name: &Option<String>| name.as_deref().map(|name| dtype(argument, name)).transpose();
    let mut choices = Choices {
        dtype: named("--dtype", &arguments.dtype)?,
        output: named("--out-dtype", &arguments.out_dtype)?,
        ..Choices::default()
    };
    if let Some(name) = &arguments.mma {
        choices.matrix = Some(matrix(name, &mut choices.dtype)?);
    }
    if !arguments.waves.is_empty() {
        choices.waves = Some(waves(&arguments.waves, &arguments.kernel)?);
    }
    Ok(choices)
}

/// The dtype that an argument names.
pub fn dtype(argument: &str, name: &str) -> Result<DType, Diagnostic> {
    DType::from_name(name).ok_or_else(|| {
        let help = foreign_dtype(name).unwrap_or_else(|| {
            let names: Vec<&str> = DType::all().filter(|&t| t != DType::I1).map(DType::name).collect();
            format!("dtypes are {}", names.join(", "))
        });
        Diagnostic::invalid(format!("{argument} {name}: {name} is not a dtype")).help(help)
    })
}

/// `16x16`, or the name of an instruction, which also says the dtype.
fn matrix(name: &str, dtype: &mut Option<DType>) -> Result<MmaType, Diagnostic> {
    if let Some(shape) = MatrixShape::ALL.into_iter().find(|shape| shape.name() == name) {
        return Ok(shape.into());
    }
    let Some(mma) = Mma::all().find(|mma| mma.name().eq_ignore_ascii_case(name)) else {
        let names: Vec<&str> = Mma::all().map(Mma::name).collect();
        return Err(Diagnostic::invalid(format!("--mma {name}: {name} is not a matrix instruction"))
            .help(format!("use 16x16, 32x32, {}", names.join(", "))));
    };
    match *dtype {
        Some(given) if given != mma.input() => {
            Err(Diagnostic::invalid(format!("--mma {} multiplies {}, not {given}", mma.name(), mma.input()))
                .help("leave out --dtype or choose a fitting instruction"))
        }
        _ => {
            *dtype = Some(mma.input());
            Ok(mma.into())
        }
    }
}

fn waves(given: &[(String, i64)], kernel: &str) -> Result<Waves, Diagnostic> {
    let mut waves = kernels::find(kernel).and_then(|entry| entry.waves).unwrap_or(Waves::new(1, 1));
    for (dim, count) in given {
        let count = u32::try_from(*count).ok().filter(|&count| count > 0).ok_or_else(|| {
            Diagnostic::invalid(format!("--waves {dim}={count}: there cannot be {count} waves along {dim}"))
                .help("use at least one wave along each dimension")
        })?;
        match dim.as_str() {
            "M" => waves.m = count,
            "N" => waves.n = count,
            _ => {
                return Err(Diagnostic::invalid(format!(
                    "--waves {dim}={count}: there are no waves along {dim}"
                ))
                .help("use M=..,N=.."));
            }
        }
    }
    Ok(waves)
}
