//! One compilation: the straight walk from a kernel to a code object.
//!
//! ```text
//! kernel -> load -> passes -> lower -> allocate -> waits -> hazards -> encode -> object
//! ```

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;

use super::executable::{Executable, Inner, LaunchExpressions, Parameter, Size};
use super::explain::explained;
use super::report::{InstructionMix, LdsAccessReport, Report, SpillReport};
use crate::codegen::isa::Arch;
use crate::codegen::lower::{ArgumentSlot, Lowered, lower, preload};
use crate::codegen::machine::allocate::{Allocation, AllocationError, Allocator, Limits, Spills};
use crate::codegen::machine::branches::{BRANCH_REACH, Code, CodeError, drop_branches_to_next, encode_body};
use crate::codegen::machine::check::{
    Allocated, Fault, check_allocation, check_hazards, check_operands, check_replay, check_waits,
};
use crate::codegen::machine::hazards::{HazardResolver, Xnack};
use crate::codegen::machine::waits::{LdsLoads, WaitInserter};
use crate::codegen::machine::{Body as MachineBody, RegisterFile};
use crate::codegen::object::{
    self, Access, ArgumentInfo, ArgumentKind, KernelCode, KernelInfo, KernelResources, ObjectForm,
    ObjectOptions, SourceLines, SourcePlace, WorkgroupSize, WorkitemIds,
};
use crate::codegen::target::{Feature, FlatScratch, Target};
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::kernel::{Constraints, Declaration, Kernel, KernelName, Locations};
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::walk;
use crate::passes::expand::{ExpandedCount, Expansion};
use crate::passes::facts::{BankConflicts, DirectLoads, Expressions, Geometry, LdsBytes, Scheduled};
use crate::passes::options::{DebugInfo, Deny, KernargPreload, Options};
use crate::passes::workspace::{Verify, Workspace, with_workspace};

/// Memory of the machine passes, reused between compilations.
struct Machine {
    body: MachineBody,
    allocator: Allocator,
    waits: WaitInserter,
    hazards: HazardResolver,
    code: Code,
    bytes: Vec<u8>,
}

impl Machine {
    fn allocate(&mut self, lowered: &Lowered, limits: &Limits) -> Result<Allocation, AllocationError> {
        self.allocator.allocate(&mut self.body, limits, &lowered.fixed)
    }

    fn check_allocation(&self, before: &MachineBody, lowered: &Lowered) -> Vec<Fault> {
        let mut faults = check_allocation(&Allocated {
            before,
            after: &self.body,
            origins: self.allocator.origins(),
            inputs: &lowered.fixed,
            scratch_bytes: self.allocator.spills().scratch_bytes,
        });
        faults.extend(check_operands(&self.body, Arch::Gfx942));
        faults
    }

    /// Runs a machine pass; when asked to, the machine verifier then compares its result with what it began with.
    fn verified<R>(
        &mut self,
        name: &str,
        verify: Verify,
        pass: impl FnOnce(&mut Machine) -> Result<R, Diagnostic>,
        check: impl FnOnce(&Machine, &MachineBody) -> Vec<Fault>,
    ) -> Result<R, Diagnostic> {
        let before = (verify == Verify::AfterEachPass).then(|| self.body.clone());
        let result = pass(self)?;
        if let Some(before) = before
            && let Some(fault) = check(self, &before).first()
        {
            let text = format!("pass {name} broke instruction {}: {}", fault.inst, fault.message);
            return Err(Diagnostic::new(Kind::Bug, text));
        }
        Ok(result)
    }
}

static MACHINES: Mutex<Vec<Machine>> = Mutex::new(Vec::new());
const MACHINE_LIMIT: usize = 16;

fn with_machine<R>(body: impl FnOnce(&mut Machine) -> R) -> R {
    let pooled = MACHINES.lock().ok().and_then(|mut pool| pool.pop());
    let mut machine = pooled.unwrap_or_else(|| Machine {
        body: MachineBody::default(),
        allocator: Allocator::default(),
        waits: WaitInserter::new(Arch::Gfx942),
        hazards: HazardResolver::new(Arch::Gfx942),
        code: Code::default(),
        bytes: Vec::new(),
    });
    let result = body(&mut machine);
    if let Ok(mut pool) = MACHINES.lock()
        && pool.len() < MACHINE_LIMIT
    {
        pool.push(machine);
    }
    result
}

/// Compiles without looking into the cache.
///
/// # Errors
/// What is wrong with the kernel or the options, or more than the target has.
pub fn compile_uncached(
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
) -> Result<Executable, Diagnostic> {
    let preload = Feature::KernargPreload;
    if options.requested_kernarg_preload() == KernargPreload::Fitting && !options.target().has(preload) {
        let text = format!("{} has no {}", options.target(), preload.name());
        return Err(Diagnostic::invalid(text).help(format!("{} have it", preload.owners())));
    }
    if options.target() != Target::GFX942 {
        let text = format!("{} is not a target of code generation yet", options.target());
        return Err(Diagnostic::new(Kind::Unsupported, text).help("compile for gfx942"));
    }
    with_workspace(|workspace| {
        with_machine(|machine| compile_in(workspace, machine, kernel, options, verify))
    })
    .map_err(|fault| explained(kernel, options, fault))
}

fn compile_in(
    workspace: &mut Workspace,
    machine: &mut Machine,
    kernel: &Kernel,
    options: &Options,
    verify: Verify,
) -> Result<Executable, Diagnostic> {
    let mut phases: Vec<(&'static str, Duration)> = Vec::with_capacity(32);
    let mut clock = Instant::now();
    let phase = |name: &'static str, phases: &mut Vec<(&'static str, Duration)>, clock: &mut Instant| {
        let now = Instant::now();
        phases.push((name, now - *clock));
        *clock = now;
    };
    workspace.load(kernel, options);
    phase("load", &mut phases, &mut clock);
    workspace.run(None, verify, &mut phases)?;
    clock = Instant::now();
    let root = workspace.root;
    let lowered = lower(&mut workspace.world, root, &mut machine.body)?;
    phase("lower", &mut phases, &mut clock);
    let limits = limits(options, geometry(workspace)?.wave_count());
    let allocate = |m: &mut Machine| {
        m.allocate(&lowered, &limits).map_err(|error| out_of_registers(workspace, options, &limits, error))
    };
    let allocation =
        machine.verified("allocate", verify, allocate, |m, before| m.check_allocation(before, &lowered))?;
    phase("allocate", &mut phases, &mut clock);
    deny_spills(workspace, options, &allocation, &limits)?;
    drop_branches_to_next(&mut machine.body);
    // Waves that share LDS find in it what is in front of a barrier; a wave of its own needs none.
    let lds_loads = match geometry(workspace)?.wave_count() {
        1 => LdsLoads::Anywhere,
        _ => LdsLoads::BehindBarriers,
    };
    let waits = |m: &mut Machine| {
        m.waits.set_lds_loads(lds_loads);
        m.waits.insert(&mut m.body);
        Ok(())
    };
    machine.verified("waits", verify, waits, |m, before| {
        check_waits(before, &m.body, Arch::Gfx942, lds_loads)
    })?;
    phase("waits", &mut phases, &mut clock);
    let xnack = if options.target_id().may_retry() { Xnack::MayBeOn } else { Xnack::Off };
    let hazards = |m: &mut Machine| {
        m.hazards.set_xnack(xnack);
        m.hazards.resolve(&mut m.body);
        Ok(())
    };
    machine.verified("hazards", verify, hazards, |m, _| {
        let mut faults = check_hazards(&m.body, Arch::Gfx942);
        if xnack == Xnack::MayBeOn {
            faults.extend(check_replay(&m.body));
        }
        faults
    })?;
    phase("hazards", &mut phases, &mut clock);
    encode_body(&machine.body, options.target().arch, &mut machine.code)
        .map_err(|error| no_code(workspace, &machine.body, &allocation, error))?;
    phase("encode", &mut phases, &mut clock);
    let info = kernel_info(workspace, &lowered, &allocation)?;
    if lowered.preloaded_dwords > 0 {
        let prologue = preload::prologue(options.target().arch, lowered.preloaded_dwords)
            .map_err(|error| bug(&format!("the prologue could not be encoded: {error}")))?;
        machine.code.words.splice(0..0, prologue);
    }
    machine.bytes.clear();
    machine.bytes.extend(machine.code.words.iter().flat_map(|w| w.to_le_bytes()));
    let lines = match options.requested_debug_info() {
        DebugInfo::Lines => Some(source_lines(workspace, machine, lowered.preloaded_dwords)),
        DebugInfo::None => None,
    };
    let code = KernelCode { info: &info, code: &machine.bytes, lines: lines.as_ref() };
    let format = object_options(options);
    let object = object::write(format, &[code])
        .map_err(|error| Diagnostic::new(Kind::Bug, format!("the object could not be written: {error}")))?;
    phase("object", &mut phases, &mut clock);
    let report = report(workspace, options, machine, &lowered, &allocation, &info, phases);
    deny(options, &report)?;
    let inner = Inner {
        format,
        lines,
        object,
        code: machine.code.words.clone(),
        parameters: parameters(workspace, &lowered)?,
        block: [64 * geometry(workspace)?.wave_count(), 1, 1],
        launch: launch_expressions(workspace, &lowered)?,
        info,
        report,
    };
    Ok(Executable { inner: Arc::new(inner) })
}

fn object_options(options: &Options) -> ObjectOptions {
    let (target, version) = (options.target_id(), options.requested_object_version());
    ObjectOptions { target, version, form: ObjectForm::Loadable }
}

/// Where each instruction was written; what belongs to no place in particular belongs to the kernel's own.
fn source_lines(workspace: &Workspace, machine: &Machine, preloaded_dwords: u32) -> SourceLines {
    let world = &workspace.world;
    let locations = world.get::<Locations>(workspace.root).map(|l| &l.0[..]).unwrap_or_default();
    let declaration = world.get::<Declaration>(workspace.root).and_then(|d| d.0.as_ref());
    let mut lines = SourceLines { rows: Vec::with_capacity(64), ..SourceLines::default() };
    let place = |lines: &mut SourceLines, at: &Location| {
        let file = lines.file(&at.file);
        SourcePlace { file, line: at.line, column: at.column }
    };
    lines.declaration = declaration.map(|at| place(&mut lines, at));
    let body = if preloaded_dwords > 0 { preload::PROLOGUE_BYTES } else { 0 };
    lines.push(0, lines.declaration);
    let mut last = u32::MAX;
    for (inst, offset) in machine.body.insts.iter().zip(&machine.code.offsets) {
        if inst.source != last {
            last = inst.source;
            let at = locations.get(last as usize).map(|at| place(&mut lines, at));
            lines.push(body + offset, at.or(lines.declaration));
        }
    }
    lines
}

fn bug(text: &str) -> Diagnostic {
    Diagnostic::new(Kind::Bug, text)
}

fn geometry(workspace: &Workspace) -> Result<&Geometry, Diagnostic> {
    workspace.world.get::<Geometry>(workspace.root).ok_or_else(|| bug("no geometry"))
}

fn location(workspace: &Workspace, source: u32) -> Option<Location> {
    workspace.world.get::<Locations>(workspace.root)?.get(source)
}

/// Registers that a wave may have: what the target gives when all waves of a workgroup are to be resident, and what the
/// author allows.
fn limits(options: &Options, waves: u32) -> Limits {
    let target = options.target();
    let waves_per_simd = waves.div_ceil(target.simds_per_compute_unit).max(1);
    let resident = target.vgpr_file / waves_per_simd / target.vgpr_granule * target.vgpr_granule;
    Limits {
        sgprs: target.addressable_sgprs,
        vgprs: target.addressable_vgprs,
        agprs: target.addressable_vgprs,
        vectors: options.vgpr_limit().map_or(resident, |limit| limit.min(resident)),
        scratch_bytes: match target.flat_scratch {
            FlatScratch::Architected => Limits::MAX.scratch_bytes,
            FlatScratch::Absolute => 0,
        },
    }
}

const SMALLER_TILES: &str = "use smaller wave tiles: more waves per workgroup or smaller tiles";

/// Bytes of the widest register.
const WIDEST_REGISTER: u32 = 4 * 32;

fn out_of_registers(
    workspace: &Workspace,
    options: &Options,
    limits: &Limits,
    error: AllocationError,
) -> Diagnostic {
    let AllocationError::Exhausted { file, available, peak, all, spills } = &error else {
        return Diagnostic::new(Kind::Bug, error.to_string());
    };
    let Spills { scratch_bytes, to_lanes, .. } = *spills;
    if *file != RegisterFile::Sgpr
        && scratch_bytes > 0
        && scratch_bytes + WIDEST_REGISTER > limits.scratch_bytes
    {
        let (alive, vectors, scratch) = (all.registers, limits.vectors, limits.scratch_bytes);
        let text = format!(
            "{alive} vector registers are alive at once, more than registers and scratch memory hold"
        );
        let note = format!(
            "a wave has {vectors} vector registers here, and {} more are spilled to the {scratch} bytes of \
             scratch that a work-item can have",
            scratch_bytes / 4
        );
        return Diagnostic::new(Kind::Limit, text)
            .at(location(workspace, all.source))
            .note(note, None)
            .help(format!("{SMALLER_TILES}; or read values again where they are used"));
    }
    let needed = peak.registers;
    let diagnostic = match options.vgpr_limit() {
        Some(limit) if *file != RegisterFile::Sgpr => {
            let text =
                format!("one operation alone needs {needed} vector registers, and the options allow {limit}");
            Diagnostic::new(Kind::Denied, text).help(format!("{SMALLER_TILES}; or raise max_vgprs"))
        }
        _ => {
            let text = format!("the kernel needs {needed} {file} at once, and there are {available}");
            Diagnostic::new(Kind::Limit, text).help(SMALLER_TILES)
        }
    };
    let diagnostic = diagnostic
        .at(location(workspace, peak.source))
        .note("this operation needs them, with everything else spilled", None);
    match to_lanes {
        0 => diagnostic,
        _ if *file == RegisterFile::Sgpr => diagnostic,
        _ => diagnostic.note(
            format!(
                "{to_lanes} SGPRs, addresses of memories among them, are kept in {} of the VGPRs",
                to_lanes.div_ceil(64)
            ),
            None,
        ),
    }
}

/// Why code has no encoding: a loop that branches cannot go around is the author's, all else is ours.
fn no_code(
    workspace: &Workspace,
    body: &MachineBody,
    allocation: &Allocation,
    error: CodeError,
) -> Diagnostic {
    let CodeError::BranchRange { inst, distance } = error else {
        return Diagnostic::new(Kind::Bug, format!("the code could not be encoded: {error}"));
    };
    let (length, reach) = (4 * distance.unsigned_abs(), 4 * BRANCH_REACH);
    let text = format!("the code of this loop is {length} bytes long, and a branch reaches {reach}");
    let source = body.insts.get(inst as usize).map_or(u32::MAX, |branch| branch.source);
    let diagnostic = Diagnostic::new(Kind::Limit, text)
        .at(location(workspace, source))
        .help("use smaller tiles, more waves per workgroup, or unroll the loop less");
    match allocation.spills.to_scratch {
        0 => diagnostic,
        count => diagnostic
            .note(format!("{count} vector registers are spilled to scratch, which takes code"), None),
    }
}

fn deny_spills(
    workspace: &Workspace,
    options: &Options,
    allocation: &Allocation,
    limits: &Limits,
) -> Result<(), Diagnostic> {
    let spills = &allocation.spills;
    if !options.denies(Deny::Spills) || !spills.any() {
        return Ok(());
    }
    let (what, file, available) = match spills.to_scratch {
        0 => (format!("{} SGPRs to VGPRs", spills.to_lanes), RegisterFile::Sgpr, limits.sgprs),
        count => {
            let bytes = spills.scratch_bytes;
            let text = format!("{count} vector registers to {bytes} bytes of scratch per work-item");
            (text, RegisterFile::Vgpr, limits.vectors)
        }
    };
    let peak = allocation.peaks[file as usize];
    let help = match options.vgpr_limit() {
        Some(_) => format!("{SMALLER_TILES}; or raise max_vgprs"),
        None => SMALLER_TILES.to_owned(),
    };
    Err(Diagnostic::new(Kind::Denied, format!("the kernel spills {what}"))
        .at(location(workspace, peak.source))
        .note(
            format!("{} {file} are alive at this operation, and there are {available}", peak.registers),
            None,
        )
        .help(help))
}

fn deny(options: &Options, report: &Report) -> Result<(), Diagnostic> {
    if options.denies(Deny::BankConflicts)
        && let Some(access) = report.lds_accesses.iter().find(|a| a.conflict_degree > 1)
    {
        let text = format!(
            "the LDS {} of {} has bank conflicts of degree {}",
            access.kind, access.what, access.conflict_degree
        );
        return Err(Diagnostic::new(Kind::Denied, text)
            .at(access.location.clone())
            .help("choose a loop tile whose rows are a power of two of at least 32 bytes"));
    }
    Ok(())
}

/// The memories that the kernel writes.
fn written(workspace: &Workspace) -> NodeSet {
    let world = &workspace.world;
    let mut written = NodeSet::default();
    walk::visit(world, workspace.root, &mut |node| {
        if let (Some(Op::Write), Some(operands)) = (world.get::<Op>(node), world.get::<Operands>(node))
            && let Some(&memory) = operands.0.get(1)
        {
            written.insert(memory);
        }
    });
    written
}

fn kernel_info(
    workspace: &Workspace,
    lowered: &Lowered,
    allocation: &Allocation,
) -> Result<KernelInfo, Diagnostic> {
    let world = &workspace.world;
    let name = world.get::<KernelName>(workspace.root).map(|n| n.0.to_string()).unwrap_or_default();
    let written = written(workspace);
    let arguments = lowered
        .arguments
        .iter()
        .map(|slot| match *slot {
            ArgumentSlot::Pointer { memory, offset } => ArgumentInfo {
                name: world.get::<Name>(memory).map(|n| n.0.to_string()).unwrap_or_default(),
                size: 8,
                offset,
                kind: ArgumentKind::GlobalBuffer,
                access: Some(if written.contains(memory) { Access::ReadWrite } else { Access::ReadOnly }),
            },
            ArgumentSlot::Symbol { symbol, offset } => ArgumentInfo {
                name: symbol.name().to_string(),
                size: 4,
                offset,
                kind: ArgumentKind::ByValue,
                access: None,
            },
        })
        .collect();
    let resources = KernelResources {
        vgprs: allocation.vgprs.max(1),
        agprs: allocation.agprs,
        sgprs: allocation.sgprs,
        vcc: allocation.vcc,
        lds_bytes: world.get::<LdsBytes>(workspace.root).map_or(0, |l| l.0),
        scratch_bytes: allocation.spills.scratch_bytes,
        kernarg_bytes: lowered.kernarg_bytes,
        kernarg_preload_dwords: lowered.preloaded_dwords,
        workgroup_ids: lowered.workgroup_ids,
        workitem_ids: WorkitemIds::X,
        ieee_mode: !lowered.float_extremum,
        ..KernelResources::default()
    };
    let block = [64 * geometry(workspace)?.wave_count(), 1, 1];
    Ok(KernelInfo { name, resources, arguments, workgroup_size: WorkgroupSize::Exactly(block) })
}

fn parameters(workspace: &Workspace, lowered: &Lowered) -> Result<Vec<Parameter>, Diagnostic> {
    let world = &workspace.world;
    let geometry = geometry(workspace)?;
    let written = written(workspace);
    lowered
        .arguments
        .iter()
        .map(|slot| match *slot {
            ArgumentSlot::Symbol { symbol, offset } => Ok(Parameter::Symbol { symbol, offset }),
            ArgumentSlot::Pointer { memory, offset } => {
                let ty = world.get::<ValueType>(memory).ok_or_else(|| bug("a memory without type"))?;
                let size = |&dim: &crate::ir::layout::Dim| {
                    let entry = geometry.dim(dim);
                    entry.static_size.map_or(Size::Dynamic(entry.symbol), Size::Static)
                };
                Ok(Parameter::Buffer {
                    name: world.get::<Name>(memory).map_or("".into(), |n| n.0.clone()),
                    dtype: ty.dtype.ok_or_else(|| bug("a memory without dtype"))?,
                    shape: ty.dims.iter().map(size).collect(),
                    written: written.contains(memory),
                    offset,
                })
            }
        })
        .collect()
}

fn launch_expressions(workspace: &Workspace, lowered: &Lowered) -> Result<LaunchExpressions, Diagnostic> {
    let world = &workspace.world;
    let geometry = geometry(workspace)?;
    let expressions = world.get::<Expressions>(workspace.root).ok_or_else(|| bug("no expressions"))?;
    // Only what is evaluated goes into the executable's own arena.
    let from = &expressions.0;
    let mut arena = crate::ir::expr::ExprArena::new();
    let mut import = |e: crate::ir::expr::Expr| -> Result<crate::ir::expr::Expr, Diagnostic> {
        if let Some(value) = from.as_integer(e) {
            return Ok(arena.int(value));
        }
        // The text form is the one exchange format between arenas.
        arena
            .parse(&from.display(e).to_string())
            .map_err(|error| bug(&format!("a launch expression: {error}")))
    };
    let mut grid = [crate::ir::expr::Expr::ONE; 3];
    for (slot, &expr) in grid.iter_mut().zip(&geometry.grid) {
        *slot = import(expr)?;
    }
    let reaches = lowered.reaches.iter().map(|&(_, e)| import(e)).collect::<Result<_, _>>()?;
    let mut assumptions = Vec::new();
    for (constraint, _) in world.get::<Constraints>(workspace.root).map(|c| &c.0[..]).unwrap_or_default() {
        match constraint {
            Constraint::Divisible { symbol, by } => {
                assumptions.extend(symbol.as_symbol().map(|s| (s, *by, 0)))
            }
            Constraint::AtLeast { symbol, least } => {
                assumptions.extend(symbol.as_symbol().map(|s| (s, 1, *least)));
            }
            _ => {}
        }
    }
    Ok(LaunchExpressions { arena, grid, reaches, assumptions })
}

fn report(
    workspace: &Workspace,
    options: &Options,
    machine: &Machine,
    lowered: &Lowered,
    allocation: &Allocation,
    info: &KernelInfo,
    phases: Vec<(&'static str, Duration)>,
) -> Report {
    let world = &workspace.world;
    let occupancy = info.occupancy(options.target_id());
    let scheduled = world.get::<Scheduled>(workspace.root);
    let direct = world.get::<DirectLoads>(workspace.root);
    let main_loop = lowered
        .loops
        .iter()
        .map(|&block| InstructionMix::of(machine.body.block(block as usize)))
        .max_by_key(InstructionMix::total);
    Report {
        vgprs: info.resources.vgprs,
        agprs: info.resources.agprs,
        sgprs: info.resources.sgprs,
        lds_bytes: info.resources.lds_bytes,
        scratch_bytes: info.resources.scratch_bytes,
        kernarg_preload_dwords: info.resources.kernarg_preload_dwords,
        spills: spill_report(workspace, allocation),
        code_bytes: machine.code.size(),
        instructions: machine.body.insts.len() as u32,
        waves_per_simd: occupancy.waves_per_simd,
        limited_by: occupancy.limited_by,
        lds_accesses: lds_accesses(workspace),
        main_loop,
        schedule_requested: options.requested_schedule().name(),
        schedule_applied: scheduled.map_or("none", |scheduled| scheduled.applied),
        schedule_why: scheduled.map(|scheduled| scheduled.why.clone()).unwrap_or_default(),
        direct_loads: direct.map_or(0, |direct| direct.tiles),
        direct_loads_why: direct.map(|direct| direct.why.clone()).unwrap_or_default(),
        expanded_nodes: world.get::<ExpandedCount>(workspace.root).map_or(0, |c| c.0),
        phases,
    }
}

/// What did not stay in its file, and where most registers are alive; none if everything stayed.
fn spill_report(workspace: &Workspace, allocation: &Allocation) -> Option<SpillReport> {
    let counts = allocation.spills;
    if counts == Spills::default() {
        return None;
    }
    let file = if counts.to_scratch + counts.to_agprs == 0 && counts.to_lanes > 0 {
        RegisterFile::Sgpr
    } else {
        RegisterFile::Vgpr
    };
    let peak = allocation.peaks[file as usize];
    Some(SpillReport { counts, file, peak: peak.registers, location: location(workspace, peak.source) })
}

/// A location as text, made with one allocation.
fn text_of(location: &Location) -> String {
    let mut text = String::with_capacity(location.file.len() + 16);
    // Writing to a string cannot fail.
    let _ = write!(text, "{location}");
    text
}

fn lds_accesses(workspace: &Workspace) -> Vec<LdsAccessReport> {
    let world = &workspace.world;
    let mut accesses: NodeMap<u32> = NodeMap::default();
    walk::visit(world, workspace.root, &mut |node| {
        if let Some(expansion) = world.get::<Expansion>(node)
            && let Some(conflicts) = world.get::<BankConflicts>(expansion.logical)
        {
            accesses.insert(expansion.logical, conflicts.0);
        }
    });
    let mut out = Vec::with_capacity(accesses.len());
    for (logical, &conflict_degree) in accesses.iter() {
        let kind = if world.get::<Op>(logical).is_some_and(|op| op.is_write()) { "write" } else { "read" };
        let location = world.get::<Origin>(logical).and_then(|o| location(workspace, o.0));
        let what = match (world.get::<Tag>(logical), &location) {
            (Some(tag), _) => tag.0.to_string(),
            (None, Some(location)) => text_of(location),
            (None, None) => "?".to_string(),
        };
        out.push(LdsAccessReport { kind, what, location, conflict_degree });
    }
    out
}
