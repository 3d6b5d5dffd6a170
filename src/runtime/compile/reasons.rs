//! Why machine code, and the kernel that it is made of, are as they are. Each wait and each no-operation is
//! left out on its own, and the machine verifier, which shares nothing with the passes that insert them, says
//! what would go wrong. What was decided before there was machine code stands at the head: conversions of
//! layouts, accesses that are split, and those that leave elements out.

use std::fmt::Write;

use super::machine_passes::MACHINE_PASSES;
use super::report::is_barrier;
use super::{Compilation, with_compilation};
use crate::codegen::isa::{Effect, Meaning, Unit, WaitCounts};
use crate::codegen::machine::check::MachineFault;
use crate::codegen::machine::text;
use crate::codegen::machine::{InstId, MachineBody, MachineInst};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::Kernel;
use crate::ir::node::Op;
use crate::ir::nodes;
use crate::ir::op::MemoryEffect;
use crate::ir::text::Detail;
use crate::ir::walk;
use crate::passes::facts::{Bounds, Expansion, OfSchedule, OrderedAccesses, SplitAccess};
use crate::passes::options::Options;
use crate::passes::workspace::Verify;
use bevy_ecs::prelude::*;
use cranelift_entity::EntityRef;

/// The machine code of a kernel as text. At its head stand the conversions of layouts with the operations
/// that need them, the accesses that take more instructions than they could, and those that leave elements
/// out, each with the reason. Then each `s_barrier` says which accesses it keeps in order, each `s_waitcnt`
/// and each `s_nop` what would go wrong without it, and at which of the author's lines, and each instruction
/// of an access that is split why it moves no more. It compiles the kernel once and checks it once for each
/// of them.
///
/// # Errors
/// As for [`compile_uncached`](super::compile_uncached).
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::prelude::*;
/// use groundswell::compile::machine_code_with_reasons;
///
/// let sizes = [("M", 64), ("N", 64), ("BLOCK_M", 16), ("BLOCK_N", 64)];
/// let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
/// let text = machine_code_with_reasons(&copy(F32, Waves::new(4, 1))?, &options)?;
/// assert!(text.contains("    ; or: a register that `"));
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn machine_code_with_reasons(kernel: &Kernel, options: &Options) -> Result<String, Diagnostic> {
    with_compilation(kernel, options, Verify::Off, |compilation| {
        compilation.load();
        compilation.run_passes()?;
        let mut before = MachineBody::default();
        for pass in MACHINE_PASSES {
            if pass.name == "waits" {
                before = compilation.machine.body.clone();
            }
            (pass.run)(compilation)?;
        }
        Ok(compilation.decided_before()? + &compilation.with_reasons(&before)?)
    })
}

/// The kernel as all passes leave it, as text, with all that is known of why it is so: lowering adds why it
/// has split accesses, `!split(1 of 4: apart)`.
///
/// # Errors
/// As for [`compile_uncached`](super::compile_uncached).
pub fn kernel_with_reasons(kernel: &Kernel, options: &Options) -> Result<String, Diagnostic> {
    with_compilation(kernel, options, Verify::Off, |compilation| {
        compilation.load();
        compilation.run_passes()?;
        compilation.lower()?;
        let world = &mut compilation.workspace.world;
        for &(logical, split) in &compilation.lowered.reasons.splits {
            if let Ok(mut access) = world.get_entity_mut(logical) {
                access.insert(split);
            }
        }
        Ok(compilation.workspace.text(Detail::Stage))
    })
}

/// An access that moves fewer elements at once than a lane has side by side, as its instructions show it.
struct NarrowAccess {
    /// The author's line.
    source: u32,
    effect: Effect,
    unit: Unit,
    split: SplitAccess,
}

impl Compilation<'_> {
    /// Reasons for what there is no single instruction to stand beside, as lines of comments. What a loop of
    /// the author's makes of one access stands there once.
    fn decided_before(&self) -> Result<String, Diagnostic> {
        let conversions = self.conversions()?.into_iter().map(|conversion| format!("layout: {conversion}"));
        let splits = self.split_accesses()?.into_iter().map(|access| format!("split: {access}"));
        let masked = self.masked_accesses()?.into_iter().map(|access| format!("masked: {access}"));
        let lines: Vec<String> = conversions.chain(splits).chain(masked).collect();
        let mut out = String::new();
        for same in lines.chunk_by(|a, b| a == b) {
            // Writing to a string cannot fail.
            let _ = match same.len() {
                1 => writeln!(out, "; {}", same[0]),
                count => writeln!(out, "; {} ({count} of them)", same[0]),
            };
        }
        Ok(out)
    }

    /// The code as text; `before` is what it was before the waits were inserted.
    fn with_reasons(&mut self, before: &MachineBody) -> Result<String, Diagnostic> {
        let narrow = self.narrow_accesses()?;
        let body = self.machine.body.clone();
        let text = text::print(&body);
        let mut out = String::with_capacity(2 * text.len());
        let mut insts = body.insts.keys();
        let mut barriers = std::mem::take(&mut self.lowered.reasons.barriers).into_iter();
        for line in text.lines() {
            out.push_str(line);
            let inst = if line.starts_with(' ') { insts.next() } else { None };
            let is_barrier = inst.is_some_and(|inst| is_barrier(&body.insts[inst]));
            let reason = match (inst, is_barrier) {
                (Some(_), true) => barriers.next().map(|node| self.reason_of_barrier(node)),
                (Some(inst), false) => {
                    let wait = self.reason(before, &body, inst);
                    wait.or_else(|| reason_of_width(&narrow, &body.insts[inst]))
                }
                (None, _) => None,
            };
            if let Some(reason) = reason {
                let _ = write!(out, "    ; {reason}");
            }
            out.push('\n');
        }
        self.machine.body = body;
        Ok(out)
    }

    /// The accesses that are split, as lowering says of those at coordinates, and their bounds of others.
    fn narrow_accesses(&self) -> Result<Vec<NarrowAccess>, Diagnostic> {
        let world = &self.workspace.world;
        let mut splits = self.lowered.reasons.splits.clone();
        for piece in walk::nodes(world, self.workspace.root) {
            let Some(logical) = world.get::<Expansion>(piece).map(|expansion| expansion.logical) else {
                continue;
            };
            let Some(bounds) = world.get::<Bounds>(logical) else { continue };
            if let Some((possible, why)) = bounds.narrowed
                && splits.iter().all(|split| split.0 != logical)
            {
                splits.push((logical, SplitAccess { elements: bounds.granule, possible, why }));
            }
        }
        let narrow = splits.into_iter().map(|(logical, split)| {
            let node = nodes::node(world, logical)?;
            let effect = match node.op.row().memory {
                MemoryEffect::Updates => Effect::Atomic,
                MemoryEffect::Copies => Effect::LoadToLds,
                MemoryEffect::Writes => Effect::Store,
                MemoryEffect::Reads | MemoryEffect::None | MemoryEffect::Fence => Effect::Load,
            };
            let in_lds = nodes::op(world, node.memory()?)? == Op::Allocate && effect != Effect::LoadToLds;
            let unit = if in_lds { Unit::Lds } else { Unit::Vmem };
            Ok(NarrowAccess { source: node.origin.0, effect, unit, split })
        });
        narrow.collect()
    }

    /// Why a barrier is there, as its node says, if it has one. No pass over machine code adds barriers,
    /// copies them or changes their order.
    fn reason_of_barrier(&self, node: Option<Entity>) -> String {
        let Some(node) = node else {
            return "or: the next tile, in the LDS that other waves still read for this one".to_owned();
        };
        let world = &self.workspace.world;
        if let Some(&OrderedAccesses { later, earlier }) = world.get::<OrderedAccesses>(node) {
            let [later, earlier] = [later, earlier].map(|access| self.told_access(access));
            return format!("or: the {later} before the {earlier} in all waves");
        }
        let by = if world.get::<OfSchedule>(node).is_some() { "its loop's schedule" } else { "the kernel" };
        format!("asked for by {by}")
    }

    /// What would go wrong without an instruction that does nothing but wait.
    fn reason(&mut self, before: &MachineBody, body: &MachineBody, inst: InstId) -> Option<String> {
        let (faults, moved) = match body.insts[inst].inst.op.info().meaning {
            Meaning::Wait => {
                self.machine.body = body.clone();
                self.machine.body.insts[inst].inst.imm = WaitCounts::NONE.to_imm();
                (self.check_waits(before), 0)
            }
            Meaning::Nop => {
                self.machine.body = without(body, inst);
                (self.check_hazards(), 1)
            }
            _ => return None,
        };
        // What comes next is what it waits for; in a loop that may stand before it.
        let place =
            |fault: &MachineFault| InstId::new(fault.inst.index() + moved * usize::from(fault.inst >= inst));
        let first = faults.iter().min_by_key(|fault| (place(fault) < inst, place(fault)));
        Some(match first {
            None => "asked for by the kernel or its schedule".to_owned(),
            Some(fault) => {
                let at = self.location(body.insts[place(fault)].source);
                let at = at.map_or_else(String::new, |at| format!(" ({at})"));
                let more = match faults.len() {
                    1 => String::new(),
                    count => format!(", and {} more", count - 1),
                };
                format!("or: {}{at}{more}", fault.message)
            }
        })
    }
}

/// Why an instruction of an access moves no more elements, if it could.
fn reason_of_width(narrow: &[NarrowAccess], inst: &MachineInst) -> Option<String> {
    let info = inst.inst.op.info();
    let own = |access: &&NarrowAccess| {
        access.source == inst.source && (access.effect, access.unit) == (info.meaning.effect(), info.unit)
    };
    let SplitAccess { elements, possible, why } = narrow.iter().find(own)?.split;
    Some(format!("moves {elements} of {possible} elements, as {}", why.text()))
}

/// The same code without an instruction, which begins or ends no block.
fn without(body: &MachineBody, inst: InstId) -> MachineBody {
    let mut body = body.clone();
    let others = body.insts.iter().filter(|(own, _)| *own != inst);
    body.insts = others.map(|(_, i)| *i).collect();
    let moved = |place: InstId| InstId::new(place.index() - usize::from(place > inst));
    for block in body.blocks.values_mut() {
        (block.start, block.end) = (moved(block.start), moved(block.end));
    }
    body
}
