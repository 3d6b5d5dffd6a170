//! The arguments of the program, as clap reads them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use groundswell::compile::SEARCHED_SCHEDULES;
use groundswell::internals::schedules::{Asked, NONE, SEARCH, STRATEGIES, Strategy, named};
use groundswell::prelude::{Deny, Diagnostic, Target, TargetId};
use groundswell::simulator::Limits;
use groundswell::simulator::time::ClockChoice;
use groundswell::target::TargetIdError;
use groundswell::tuning::{Budget, Search};

use super::failure::Failure;
use super::judgement::{OrderArguments, SimulatorArguments, clock, seconds};
use super::kernel_argument::KernelArgument;

/// Compiles tile-level GPU kernels to AMD CDNA machine code, and runs and checks them on a simulator.
#[derive(Parser)]
#[command(name = "groundswell", version, subcommand_required = true, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    /// List the ready kernels, their symbols and defaults
    List(List),
    /// Compile a kernel, execute it on random data, compare with the interpreter
    Run(Run),
    /// Compile a kernel and write the result
    Compile(Compile),
    /// Run any AMDHSA code object on the simulator
    Sim(Sim),
    /// Run a HIP program on the simulator
    Hip(Hip),
    /// Assemble a text to a code object
    Asm(Asm),
    /// Disassemble any AMDHSA code object to text that `asm` takes
    Disasm(Disasm),
    /// Build kernels ahead of time: a package for several chips, with sources that launch them
    Build(Build),
    /// Look after a cache of compilations on disk
    Cache(CacheVerb),
    /// Measure compile times, cold and cached, per phase, and the first one of a process
    Bench(Bench),
    /// Find the best tile, waves, schedule and what else there is to choose, by time mode
    Tune(Tune),
}

/// What is built ahead of time.
#[derive(Args)]
pub struct Build {
    /// Manifests (FILE.toml), and kernels with their defaults: names from `list`, or paths of text kernels,
    /// `-` for standard input
    #[arg(required = true, value_name = "FILE.toml|KERNEL")]
    pub inputs: Vec<String>,
    /// The directory to write to
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// The chips, in place of those of the manifest; gfx942 where neither names one
    #[arg(long, value_name = "TARGET,..", value_delimiter = ',')]
    pub target: Vec<String>,
    /// The name of the files, in place of that of the manifest; `kernels` where neither says one
    #[arg(long)]
    pub name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What is done with a cache on disk.
#[derive(Args)]
pub struct CacheVerb {
    #[command(subcommand)]
    pub what: CacheWork,
}

#[derive(Subcommand)]
pub enum CacheWork {
    /// List what is in it
    List(CacheChoice),
    /// Check every entry; it does not hold if one is broken
    Verify(CacheChoice),
    /// Remove entries, those first that were used least recently, and what interrupted processes left
    Prune(CachePrune),
    /// Write all entries into one file
    Export(CacheFile),
    /// Add the entries of such a file
    Import(CacheFile),
}

/// Which cache.
#[derive(Args)]
pub struct CacheChoice {
    /// The directory; without this, the one that GROUNDSWELL_CACHE names
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CachePrune {
    /// The most bytes that are left; without this, all entries may stay
    #[arg(long, value_name = "BYTES")]
    pub bytes: Option<u64>,
    /// Remove broken entries and those of other builds of the compiler as well
    #[arg(long)]
    pub stale: bool,
    #[command(flatten)]
    pub directory: CacheChoice,
}

#[derive(Args)]
pub struct CacheFile {
    /// The file
    pub file: PathBuf,
    #[command(flatten)]
    pub directory: CacheChoice,
}

#[derive(Args)]
pub struct List {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which kernel, and how it is compiled.
#[derive(Args)]
pub struct KernelArguments {
    /// A name from `list`, or the path of a text kernel; `-` is standard input
    pub kernel: String,
    /// Bind a symbol
    #[arg(short = 's', long = "set", value_name = "SYM=N", value_parser = binding)]
    pub set: Vec<(String, i64)>,
    /// Tile sizes: sets BLOCK_M and so on
    #[arg(long, value_name = "M=128,N=256,K=64", value_delimiter = ',', value_parser = binding)]
    pub tile: Vec<(String, i64)>,
    /// Waves of a workgroup; in text kernels sets WAVES_M and so on
    #[arg(long, value_name = "M=4,N=2", value_delimiter = ',', value_parser = binding)]
    pub waves: Vec<(String, i64)>,
    /// Symbols left open until launch
    #[arg(long, value_name = "SYM,..", value_delimiter = ',')]
    pub dynamic: Vec<String>,
    /// Matrix instruction: 16x16 or 32x32, the chip's best of that shape, or a name such as F32_16x16x16_F16
    #[arg(long, value_name = "NAME")]
    pub mma: Option<String>,
    /// Element type of the inputs
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// Element type of the output of a product; without this that of its sums, f32 or i32
    #[arg(long, value_name = "DTYPE")]
    pub out_dtype: Option<String>,
    /// The chip to compile for, with modes if wanted: gfx942:sramecc+:xnack-. Several, with commas between
    /// them, make a bundle of objects
    #[arg(long, value_name = "TARGET,..", value_delimiter = ',', default_value = "gfx942")]
    pub target: Vec<String>,
    /// How loops are scheduled
    #[arg(long, value_parser = strategies_and_search(), default_value = NONE.name)]
    pub schedule: &'static Strategy,
    /// How many schedules --schedule search estimates at most
    #[arg(long, value_name = "N", default_value_t = SEARCHED_SCHEDULES)]
    pub search_candidates: u32,
    /// Let two groups of waves alternate between memory and compute
    #[arg(long)]
    pub pingpong: bool,
    /// Load the tiles of shared memories straight into LDS, where such loads can bring them (fitting), or
    /// never (off); without this, where ping-pong gains by it
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "fitting")]
    pub global_to_shared: Option<DirectLoading>,
    /// Compute roots, powers, logarithms and quotients of floats with fewer instructions: denormals count as
    /// zeros, and errors are larger
    #[arg(long)]
    pub fast_math: bool,
    /// Multiply running sums with factors that are one most of the time, as attention has them, without
    /// asking whether they are
    #[arg(long)]
    pub always_rescale: bool,
    /// Visit tiles of loops that masks hide entirely, and ask after the mask in those of which it hides
    /// nothing
    #[arg(long)]
    pub visit_masked: bool,
    /// Multiply the factors of scaled_mma with their scales in this dtype, bf16, f16 or f32, as chips need it
    /// that have no instruction for such products
    #[arg(long, value_name = "DTYPE")]
    pub emulate: Option<String>,
    /// Note coordinates that leave their memories: a launch then says which access, and where it went
    #[arg(long)]
    pub bounds_check: bool,
    /// What the kernel may not have: an error then says where it is
    #[arg(long, value_name = "WHAT,..", value_delimiter = ',', value_enum)]
    pub deny: Vec<Denied>,
    /// Give loops the cycles of a table that `--emit schedule` has written, or the `schedule` block that
    /// --schedule search has found and `--emit operations` has written
    #[arg(long, value_name = "FILE")]
    pub schedule_file: Option<PathBuf>,

    /// Where paths begin: the folder of a manifest, or here.
    #[arg(skip)]
    pub folder: PathBuf,
}

/// What `--global-to-shared` takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub enum DirectLoading {
    /// Where such loads can bring the tile.
    Fitting,
    /// Never.
    Off,
}

/// What `--deny` takes.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub enum Denied {
    /// Values that do not fit into registers
    Spills,
    /// Accesses of LDS that take several turns
    BankConflicts,
    /// Mapped accesses of several instructions where neighbours in memory would take one
    SplitAccesses,
    /// Reads of shared memories that do not go through LDS
    UnsharedReads,
    /// Results whose bits depend on which wave comes first
    Nondeterministic,
}

impl Denied {
    /// The option of the library.
    pub fn option(self) -> Deny {
        match self {
            Denied::Spills => Deny::Spills,
            Denied::BankConflicts => Deny::BankConflicts,
            Denied::SplitAccesses => Deny::SplitAccesses,
            Denied::UnsharedReads => Deny::UnsharedReads,
            Denied::Nondeterministic => Deny::Nondeterministic,
        }
    }
}

/// The words of strategies that are asked for by name, from their table.
fn strategies() -> impl TypedValueParser<Value = &'static Strategy> {
    let by_name = |row: &&&Strategy| !matches!(row.asked, Asked::ByFile);
    let words = STRATEGIES.iter().filter(by_name).map(|row| PossibleValue::new(row.name).help(row.about));
    PossibleValuesParser::new(words).map(|word| named(&word).unwrap_or(&NONE))
}

/// The same with the search, which is made before a kernel is compiled.
fn strategies_and_search() -> impl TypedValueParser<Value = &'static Strategy> {
    let by_name = |row: &&Strategy| !matches!(row.asked, Asked::ByFile);
    let rows = STRATEGIES.into_iter().filter(by_name).chain([&SEARCH]);
    let words = rows.map(|row| PossibleValue::new(row.name).help(row.about));
    PossibleValuesParser::new(words).map(|word| match word == SEARCH.name {
        true => &SEARCH,
        false => named(&word).unwrap_or(&NONE),
    })
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// Value of a scalar argument; those that are not given are random
    #[arg(long, value_name = "NAME=V", allow_hyphen_values = true, value_parser = scalar)]
    pub arg: Vec<(String, String)>,
    /// Where it runs: auto, sim, sim:TARGET for a chip of a generic target, or hip:0
    #[arg(long, default_value = "auto")]
    pub device: String,
    #[command(flatten)]
    pub simulator: SimulatorArguments,
    /// With --time: estimate only, without executing the kernel and the interpreter and comparing them
    #[arg(long, requires = "time", conflicts_with = "check")]
    pub no_check: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Compile {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// What to write
    #[arg(long, value_enum, default_value_t = Emit::Asm)]
    pub emit: Emit,
    /// With --emit ir or --emit machine: show the result of this pass
    #[arg(long, value_name = "PASS")]
    pub after: Option<String>,
    /// Check the kernel after every pass, and compare what it computes on small data: choose small sizes
    #[arg(long)]
    pub verify: bool,
    /// Compress the bundle that several targets make, as clang-offload-bundler of LLVM 19 does
    #[arg(long)]
    pub compress: bool,
    /// Where to write it; `-`, or leaving this out, is standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// Assembly text that LLVM accepts
    Asm,
    /// The code object
    Object,
    /// The kernel after all passes, or after the one that --after names
    Ir,
    /// Offsets, encodings and instructions; with --after, the machine code as it is then
    Machine,
    /// The machine code, with what would go wrong without each wait and each no-operation
    Reasons,
    /// The dependences of loops, as a listing
    Graph,
    /// The same as a drawing for Graphviz
    Dot,
    /// The cycles of loops' operations, as a table that --schedule-file takes
    Schedule,
    /// The same as an author would write them: a `schedule` block, and the tags that it needs
    Operations,
    /// A page of HTML: stages, units, what waves do between barriers
    Timeline,
}

impl Emit {
    /// Its name in the arguments.
    pub fn name(self) -> String {
        self.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
    }
}

#[derive(Args)]
pub struct Sim {
    /// The code object, a bundle of them, or a program or library with such inside
    pub file: PathBuf,
    /// The chip whose object of a bundle is meant, and that an object has to be for; of a program the first
    /// one that it has code for
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The object of that number in the list that `disasm` shows of a program
    #[arg(long, value_name = "N")]
    pub object: Option<usize>,
    /// Which of its kernels; may be left out if there is only one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Number of workgroups
    #[arg(long, value_name = "X,Y,Z", value_parser = extent, default_value = "1,1,1")]
    pub grid: [u32; 3],
    /// Work-items of a workgroup
    #[arg(long, value_name = "X,Y,Z", value_parser = extent, default_value = "64,1,1")]
    pub block: [u32; 3],
    /// Bytes of LDS in addition to those that the kernel declares
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub lds: u32,
    /// The next argument of the kernel: in:FILE, out:FILE:BYTES, io:FILE, i32:V, i64:V, f32:V, or
    /// hex:BYTES for a struct by value
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub arg: Vec<KernelArgument>,
    #[command(flatten)]
    pub simulator: SimulatorArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Hip {
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
    /// List the code for devices inside of the program, or of a library, and run nothing
    #[arg(long, conflicts_with_all = ["check", "time", "timeout", "target"])]
    pub list: bool,
    /// The simulated chip; without this the first one that the program has code for
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Look for races, missing waits and hazards while simulating
    #[arg(long)]
    pub check: bool,
    /// Estimate how long each kernel takes; events of the program tell that time
    #[arg(long, conflicts_with = "check")]
    pub time: bool,
    /// With --check: decides the order of execution
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Instructions that a wave may execute
    #[arg(long, value_name = "N", default_value_t = Limits::default().instructions)]
    pub budget: u64,
    /// Seconds that all launches of the program may take together, on the host; without this, no limit
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub order: OrderArguments,
    /// With --time: write a trace of all launches for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", requires = "time", conflicts_with = "check")]
    pub trace: Option<PathBuf>,
    /// Print one JSON object; what the program prints goes to standard error
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Asm {
    /// Assembler text in LLVM's syntax
    pub file: PathBuf,
    /// Where to write the code object; `-` is standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: PathBuf,
    /// The chip, with modes if wanted (gfx942:xnack-); without this the text says it
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Disasm {
    /// The code object, a bundle of them, or a program or library with such inside, which are listed unless
    /// one is chosen
    pub file: PathBuf,
    /// The chip whose object of a bundle is meant, and that an object has to be for
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The object of a program that has this kernel
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// The object of that number in the list of a program
    #[arg(long, value_name = "N")]
    pub object: Option<usize>,
    /// Where to write the text; without this, and with `-`, standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Bench {
    /// Names from `list` or paths of text kernels (`-` is standard input); without any, copy, four tiles of
    /// GEMM, and ping-pong
    pub kernels: Vec<String>,
    /// Bind a symbol
    #[arg(short = 's', long = "set", value_name = "SYM=N", value_parser = binding)]
    pub set: Vec<(String, i64)>,
    /// Tile sizes of the kernels that are named: sets BLOCK_M and so on
    #[arg(
        long, value_name = "M=128,N=256,K=64", value_delimiter = ',', value_parser = binding, requires = "kernels"
    )]
    pub tile: Vec<(String, i64)>,
    /// Waves of a workgroup of the kernels that are named; in text kernels sets WAVES_M and so on
    #[arg(long, value_name = "M=4,N=2", value_delimiter = ',', value_parser = binding, requires = "kernels")]
    pub waves: Vec<(String, i64)>,
    /// How loops of the kernels that are named are scheduled
    #[arg(long, value_parser = strategies(), default_value = NONE.name, requires = "kernels")]
    pub schedule: &'static Strategy,
    /// The chip to compile for, with modes if wanted: gfx942:sramecc+:xnack-
    #[arg(long, value_name = "TARGET", default_value = "gfx942")]
    pub target: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A search for the best choices.
#[derive(Args)]
pub struct Tune {
    /// A name from `list`
    pub kernel: String,
    /// Bind a symbol
    #[arg(short = 's', long = "set", value_name = "SYM=N", value_parser = binding)]
    pub set: Vec<(String, i64)>,
    /// The chip to tune for, with modes if wanted: gfx942:sramecc+:xnack-
    #[arg(long, value_name = "TARGET", default_value = "gfx942")]
    pub target: String,
    /// Element type of the inputs
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// Element type of the output of a product
    #[arg(long, value_name = "DTYPE")]
    pub out_dtype: Option<String>,
    #[command(flatten)]
    pub how: TuningArguments,
    /// Add the winner to this file; winners of many searches are kept there as text
    #[arg(long, value_name = "FILE")]
    pub database: Option<PathBuf>,
    /// The clock: sustained, greatest, or from 1 to 10000 MHz; without this, sustained
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    pub clock: Option<ClockChoice>,
    /// Candidates to show
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub show: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The extent of a search, its order and its end.
#[derive(Args)]
pub struct TuningArguments {
    /// How much is tried: 0 what is taken without tuning, 1 what is usually among the best, 2 everything
    #[arg(long, value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub level: u8,
    /// In which order: exhaustive, halving (all with one round of workgroups, the best with more), or guided
    /// by what the template expects and by the neighbours of the best
    #[arg(long, value_name = "SEARCH", default_value = "guided", value_parser = search)]
    pub search: Search,
    /// When to stop: after so many candidates (100), after so many seconds (10s), or once nothing is expected
    /// that is better by more than so much (2%)
    #[arg(long, value_name = "N|Ns|N%", value_parser = budget)]
    pub budget: Option<Budget>,
    /// Search only part I of N parts of the space (from 1 on); databases merge the results
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u32, u32)>,
}

/// `guided`, or another search
fn search(word: &str) -> Result<Search, String> {
    let found = Search::ALL.iter().find(|search| search.0 == word);
    let words = || Search::ALL.map(|search| search.0).join(", ");
    found.map(|search| search.1).ok_or_else(|| format!("{word} is none of {}", words()))
}

/// `100`, `10s` or `2%`
fn budget(text: &str) -> Result<Budget, String> {
    let none = Budget::default();
    if let Some(part) = text.strip_suffix('%') {
        let part = part.parse().ok().filter(|part: &f64| part.is_finite() && *part >= 0.0);
        let part = part.ok_or_else(|| format!("{text} is no percentage"))?;
        return Ok(Budget { regret: Some(part / 100.0), ..none });
    }
    if let Some(time) = text.strip_suffix('s') {
        return Ok(Budget { time: Some(seconds(time)?), ..none });
    }
    match text.parse() {
        Ok(0) | Err(_) => {
            Err(format!("{text} is no number of candidates, of seconds (10s) or percentage (2%)"))
        }
        Ok(count) => Ok(Budget { candidates: Some(count), ..none }),
    }
}

/// `1/4`, as part number 0 of 4
fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match parts {
        Some((part, parts)) if (1..=parts).contains(&part) => Ok((part - 1, parts)),
        _ => Err(format!("{text} is no part of a space, as 1/4 is")),
    }
}

/// `4,2,1`; what is left out is 1
fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("expected X,Y,Z".to_owned());
    }
    for (size, part) in extent.iter_mut().zip(parts) {
        *size = part.trim().parse().map_err(|_| format!("`{part}` is not a number"))?;
    }
    Ok(extent)
}

/// `alpha=0.5`; the kernel says what it is
fn scalar(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=NUMBER".to_owned()),
    }
}

/// `M=128`
pub fn binding(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected SYMBOL=INTEGER")?;
    let value = value.trim().parse().map_err(|_| format!("`{value}` is not an integer"))?;
    match name.trim() {
        "" => Err("expected a symbol before `=`".to_string()),
        name => Ok((name.to_string(), value)),
    }
}

/// The target that an id names.
pub fn target_named(id: &str) -> Result<TargetId, Failure> {
    id.parse().map_err(|error: TargetIdError| {
        let names: Vec<&str> = Target::every().map(|target| target.name).collect();
        Failure::usage(Diagnostic::invalid(error.to_string()).help(format!(
            "targets are {}; features may follow as in gfx942:sramecc+:xnack-",
            names.join(", ")
        )))
    })
}
