//! One compilation: the straight walk from a kernel to a code object.
//!
//! ```text
//! kernel -> load -> passes -> machine passes (lower, allocate, ..., waits, hazards) -> encode -> object
//! ```
//!
//! - `machine_passes`: the list of machine passes, as `passes::PIPELINE` is that of the passes before them
//! - `pool`: memory of machine passes, reused between compilations
//! - `reasons`: why the machine code waits where it does
//! - `attempts`: what is compiled once more, in another way
//! - `search`: a schedule that is looked for among many, on request
//! - `facts`: what the others ask about the kernel and the target
//! - `faults`: faults for the author when the machine lacks something or the options deny something
//! - `object`, `launch`, `report`: the contents of the code object, the executable and the report

mod attempts;
mod facts;
mod faults;
mod launch;
mod machine_passes;
mod object;
mod pool;
mod reasons;
mod report;
mod search;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::machine_passes::MACHINE_PASSES;
use self::object::CodeObject;
use self::pool::{MachineWorkspace, with_machine};
pub use self::reasons::{kernel_with_reasons, machine_code_with_reasons};
pub use self::search::{FoundLoop, SEARCHED_SCHEDULES, SearchedSchedule, search_schedule};
use super::compiled_code::CompiledCode;
use super::executable::{Executable, Inner};
use super::explain::explained;
use crate::codegen::lower::{Lowered, preload, with_workspace};
use crate::codegen::machine::allocate::Allocation;
use crate::codegen::machine::branches::{BRANCH_REACH, CodeError, encode_body};
use crate::codegen::machine::islands::add_islands;
use crate::codegen::machine::text;
use crate::codegen::target::{Feature, Target};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Kernel;
use crate::passes::options::{KernargPreload, Options};
use crate::passes::workspace::{Verify, Workspace};

/// Compiles without looking into the cache.
///
/// If the kernel fits the target, but not with a schedule that the compiler found for it, it gets a simpler
/// one or none, and the report says why ([`fitting_options`] says which). So it does if the schedule that the
/// estimates prefer spills in a loop: another one that does not, or less, takes its place.
///
/// # Errors
/// What is wrong with the kernel or the options, or more than the target has.
pub fn compile_uncached(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
) -> Result<Executable, Diagnostic> {
    attempts::settled(kernel, options, verify).map(|(executable, _)| executable)
}

/// The options with the schedule that [`compile_uncached`] compiles a kernel with: that of `options`, unless
/// the kernel fits the target with a simpler one alone.
///
/// # Errors
/// As for [`compile_uncached`].
pub fn fitting_options(kernel: &Kernel, options: &Options) -> Result<Options, Diagnostic> {
    attempts::settled(kernel, options, Verify::Off).map(|(_, options)| options)
}

/// Machine code after one of [`MACHINE_PASSES`], as text: with virtual registers after `lower`, with physical
/// ones after `allocate`.
///
/// # Errors
/// As for [`compile_uncached`], up to that pass; and a name that is not in the list.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::prelude::*;
/// use groundswell::compile::machine_code_after;
///
/// let sizes = [("M", 64), ("N", 64), ("BLOCK_M", 16), ("BLOCK_N", 64)];
/// let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
/// let copy = copy(F32, Waves::new(4, 1))?;
/// assert!(machine_code_after(&copy, &options, "lower")?.contains("%0"));
/// assert!(!machine_code_after(&copy, &options, "allocate")?.contains("%0"));
/// assert!(machine_code_after(&copy, &options, "waits")?.contains("s_waitcnt"));
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn machine_code_after(kernel: &Kernel, options: &Options, pass: &str) -> Result<String, Diagnostic> {
    if !MACHINE_PASSES.iter().any(|known| known.name == pass) {
        let names: Vec<&str> = MACHINE_PASSES.iter().map(|known| known.name).collect();
        return Err(Diagnostic::invalid(format!("no machine pass is called {pass}"))
            .help(format!("the machine passes are {}", names.join(", "))));
    }
    with_compilation(kernel, options, Verify::Off, |compilation| {
        compilation.load();
        compilation.run_passes()?;
        compilation.run_machine_passes(Some(pass))?;
        Ok(text::print(&compilation.machine.body))
    })
}

fn with_compilation<R>(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
    body: impl FnOnce(&mut Compilation) -> Result<R, Diagnostic>,
) -> Result<R, Diagnostic> {
    if Target::SAMPLES.contains(&options.target()) {
        let text = format!("nothing is compiled for {}, samples of gfx942", options.target());
        return Err(Diagnostic::invalid(text).help("assembler text for it is taken"));
    }
    let preload = Feature::KernargPreload;
    if options.requested_kernarg_preload() == KernargPreload::Fitting && !options.target().has(preload) {
        let text = format!("{} has no {}", options.target(), preload.name());
        return Err(Diagnostic::invalid(text).help(format!("{} have it", preload.owners())));
    }
    let version = options.requested_object_version();
    if version < options.target().object_version() {
        let text = format!("{} takes objects of version 6, not {}", options.target(), version.number());
        return Err(Diagnostic::invalid(text).help("leave the version out"));
    }
    with_workspace(|workspace| {
        with_machine(options.target(), |machine| {
            body(&mut Compilation {
                kernel,
                options,
                verify,
                workspace,
                machine,
                lowered: Lowered::default(),
                allocation: Allocation::default(),
                phases: Vec::with_capacity(32),
            })
        })
    })
    .map_err(|fault| explained(kernel, options, fault))
}

/// A compilation under way: its input, and its results so far.
struct Compilation<'a> {
    kernel: &'a Kernel,
    options: &'a Options,
    verify: Verify,
    /// The kernel while passes work on it.
    workspace: &'a mut Workspace,
    /// The machine code while machine passes work on it.
    machine: &'a mut MachineWorkspace,
    /// The result of `lower` apart from the code.
    lowered: Lowered,
    /// The result of `allocate` apart from the code.
    allocation: Allocation,
    /// Phases that are over, with their times.
    phases: Vec<(&'static str, Duration)>,
}

impl Compilation<'_> {
    /// The walk from the end of the passes on.
    fn walk_on(&mut self) -> Result<Executable, Diagnostic> {
        self.run_machine_passes(None)?;
        self.timed("encode", |c| c.encode())?;
        let object = self.timed("object", |c| c.object())?;
        self.executable(object)
    }

    /// Runs a phase and notes how long it took.
    fn timed<R>(&mut self, name: &'static str, phase: impl FnOnce(&mut Self) -> R) -> R {
        let start = Instant::now();
        let result = phase(self);
        self.phases.push((name, start.elapsed()));
        result
    }

    fn load(&mut self) {
        self.timed("load", |c| c.workspace.load(c.kernel, c.options));
    }

    fn run_passes(&mut self) -> Result<(), Diagnostic> {
        self.workspace.run(None, self.verify, &mut self.phases)
    }

    /// Runs the machine passes up to and including `last` (all of them for `None`). On request the machine
    /// verifier compares the code after each of them with the code before it.
    fn run_machine_passes(&mut self, last: Option<&str>) -> Result<(), Diagnostic> {
        for pass in MACHINE_PASSES {
            let before = (self.verify == Verify::AfterEachPass).then(|| self.machine.body.clone());
            self.timed(pass.name, pass.run)?;
            if let Some(before) = before
                && let Some(fault) = (pass.check)(self, &before).first()
            {
                let text = format!("pass {} broke instruction {}: {}", pass.name, fault.inst, fault.message);
                return Err(Diagnostic::bug(text));
            }
            if last == Some(pass.name) {
                break;
            }
        }
        Ok(())
    }

    /// The words of the code, preceded by the prologue for firmware that cannot preload arguments.
    fn encode(&mut self) -> Result<(), Diagnostic> {
        let has_found_schedule = self.has_found_schedule();
        let (machine, arch) = (&mut *self.machine, self.options.target().arch);
        let mut has_islands = false;
        let mut encoded = encode_body(&machine.body, arch, &mut machine.code);
        // A schedule that makes a loop so long has spilled more than it gains.
        if let Err(CodeError::BranchRange { .. }) = encoded
            && has_found_schedule
        {
            let text = format!(
                "the code of this loop is longer than the {} bytes that a branch reaches",
                4 * BRANCH_REACH
            );
            return Err(Diagnostic::new(Kind::Limit, text).help("use smaller tiles, or no schedule"));
        }
        // Each time, all branches that do not reach come as much nearer to their targets as one reaches.
        let most = machine.code.words.len() / (BRANCH_REACH as usize / 2);
        for _ in 0..=most {
            let Err(CodeError::BranchRange { .. }) = encoded else { break };
            let numbers = add_islands(&mut machine.body, &machine.code);
            let loops = &mut self.lowered.loops;
            for blocks in &mut loops.bodies {
                *blocks = numbers[blocks.start]..numbers[blocks.end];
            }
            loops.seldom.iter_mut().for_each(|block| *block = numbers[*block]);
            encoded = encode_body(&machine.body, arch, &mut machine.code);
            has_islands = true;
        }
        encoded.map_err(|error| Diagnostic::bug(format!("the code could not be encoded: {error}")))?;
        if has_islands
            && self.verify == Verify::AfterEachPass
            && let Some(fault) = self.check_hazards().first()
        {
            let text = format!("islands broke instruction {}: {}", fault.inst, fault.message);
            return Err(Diagnostic::bug(text));
        }
        let dwords = self.lowered.preloaded_dwords;
        if dwords > 0 {
            let scratch = match self.allocation.spills.scratch_bytes {
                0 => 0,
                _ => self.options.target().scratch_user_sgprs(),
            };
            let prologue = preload::prologue(arch, dwords, preload::FIRST_SGPR + scratch)
                .map_err(|error| Diagnostic::bug(format!("the prologue could not be encoded: {error}")))?;
            self.machine.code.words.splice(0..0, prologue);
        }
        Ok(())
    }

    fn executable(&mut self, object: CodeObject) -> Result<Executable, Diagnostic> {
        let report = self.report(&object.info)?;
        self.deny_bank_conflicts(&report)?;
        self.deny_split_accesses(&report)?;
        self.deny_unshared_reads(&report)?;
        let parameters = self.parameters(&object.info)?;
        let inner = Inner {
            name: object.info.name.clone(),
            target: object.format.target,
            in_place: self.in_place(&parameters),
            parameters,
            kernarg_bytes: object.info.resources.kernarg_bytes,
            lds_bytes: report.lds_bytes,
            block: self.block()?,
            launch: self.launch_expressions()?,
            object: object.bytes,
            code: CompiledCode {
                format: object.format,
                lines: object.lines,
                info: object.info,
                words: self.machine.code.words.clone(),
                report,
            },
        };
        Ok(Executable { inner: Arc::new(inner) })
    }
}
