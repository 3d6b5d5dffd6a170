//! Gathers the report of a compilation.

use std::fmt::Write as _;

use bevy_ecs::prelude::*;
use cranelift_entity::iter_entity_range;
use smallvec::SmallVec;

use super::Compilation;
use crate::codegen::isa::Unit;
use crate::codegen::machine::allocate::Spills;
use crate::codegen::machine::{MachineInst, RegisterFile};
use crate::codegen::object::KernelInfo;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, Source};
use crate::ir::node::{Body, Name, Op, Placement, Tag};
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, ExpandedNodes};
use crate::ir::op::MemoryEffect;
use crate::ir::reasons::MaskReason;
use crate::passes::analysis::reduction_trees::reduction_trees;
use crate::passes::facts::{
    Bounds, DirectLoads, Geometry, LayoutConversion, LdsBytes, LogicalBody, Remainder, ScheduledLoops,
    SplitAccess, TransposingRead, Unshared,
};
use crate::passes::layout::conversion_ways::ConversionWay;
use crate::passes::loops::expand::ExpandedCount;
use crate::passes::schedule::apply::record::ScheduleRecord;
use crate::passes::workspace::Workspace;
use crate::runtime::report::{
    ConversionReport, InstructionMix, LdsAccessReport, MaskedAccessReport, Report, SpillReport,
    SplitAccessReport, StoreCounts, UnsharedReadReport,
};

impl Compilation<'_> {
    /// The report of a finished compilation; it takes the times with it.
    pub(super) fn report(&mut self, info: &KernelInfo) -> Result<Report, Diagnostic> {
        let phases = std::mem::take(&mut self.phases);
        let lds_accesses = self.lds_accesses()?;
        let split_accesses = self.split_accesses()?;
        let unshared_reads = self.unshared_reads()?;
        let masked_accesses = self.masked_accesses()?;
        let conversions = self.conversions()?;
        let (world, root, machine) = (&self.workspace.world, self.workspace.root, &self.machine);
        let occupancy = info.occupancy(self.options.target_id());
        // Only kernels that ask for a schedule, or for such loads, have these.
        let scheduled = world.get::<ScheduledLoops>(root);
        let direct = world.get::<DirectLoads>(root);
        let main_loop = self.main_loop();
        let seldom =
            self.lowered.loops.seldom.iter().map(|&block| machine.body.block(block).len() as u32).sum();
        Ok(Report {
            vgprs: info.resources.vgprs,
            agprs: info.resources.agprs,
            sgprs: info.resources.sgprs,
            lds_bytes: info.resources.lds_bytes,
            scratch_bytes: info.resources.scratch_bytes,
            kernarg_preload_dwords: info.resources.kernarg_preload_dwords,
            spills: self.spill_report(),
            code_bytes: machine.code.size(),
            instructions: machine.body.insts.len() as u32,
            barriers: machine.body.insts.values().filter(|inst| is_barrier(inst)).count() as u32,
            waves_per_simd: occupancy.waves_per_simd,
            limited_by: occupancy.limited_by,
            lds_accesses,
            split_accesses,
            masked_accesses,
            unshared_reads,
            conversions,
            reductions: reduction_trees(world, root, self.options.target().name)?,
            main_loop,
            seldom_instructions: seldom,
            branches_of_masks: self.lowered.loops.mask_branches,
            loops_of_masks: self.fact::<Geometry>()?.divided_loops(),
            stores: StoreCounts::of(machine.body.insts.values()),
            schedule_requested: self.options.requested_schedule().name(),
            schedule_applied: scheduled.map_or("none", |scheduled| scheduled.applied),
            schedule_why: scheduled.map(|scheduled| scheduled.why.clone()).unwrap_or_default(),
            schedule_choices: world
                .get::<ScheduleRecord>(root)
                .map(ScheduleRecord::choices)
                .unwrap_or_default(),
            direct_loads: direct.map_or(0, |direct| direct.tiles),
            direct_loads_why: direct.map(|direct| direct.why.clone()).unwrap_or_default(),
            expanded_nodes: self.fact::<ExpandedCount>()?.0,
            phases,
        })
    }

    /// The instructions of the loop that has most of them, among those that do not take tiles with masks,
    /// without what is left out most of the time.
    fn main_loop(&self) -> Option<InstructionMix> {
        let loops = &self.lowered.loops;
        let bodies = loops.bodies.iter().enumerate().filter(|(number, _)| !loops.masked.contains(number));
        let mixes = bodies.map(|(_, blocks)| {
            let often = iter_entity_range(blocks.clone()).filter(|block| !loops.seldom.contains(block));
            InstructionMix::of(often.flat_map(|block| self.machine.body.block(block)))
        });
        mixes.max_by_key(InstructionMix::total)
    }

    /// The values that did not stay in their file, and where most registers are alive; none if all stayed.
    fn spill_report(&self) -> Option<SpillReport> {
        let counts = self.allocation.spills;
        if counts == Spills::default() {
            return None;
        }
        let file = if counts.to_scratch + counts.to_agprs == 0 && counts.to_lanes > 0 {
            RegisterFile::Sgpr
        } else {
            RegisterFile::Vgpr
        };
        let peak = self.allocation.peaks[file as usize];
        let location = self.kernel.told_place(self.location(peak.source));
        Some(SpillReport { counts, file, peak: peak.registers, location })
    }

    /// Accesses of arguments that are not as wide as they could be, in the order in which they were lowered.
    pub(super) fn split_accesses(&self) -> Result<Vec<SplitAccessReport>, Diagnostic> {
        let mut out = Vec::with_capacity(self.lowered.reasons.splits.len());
        for &(logical, SplitAccess { elements, possible, why }) in &self.lowered.reasons.splits {
            let node = nodes::node(&self.workspace.world, logical)?;
            if nodes::op(&self.workspace.world, node.memory()?)? == Op::Allocate {
                continue;
            }
            let location = self.location(node.origin.0);
            let what = self.told(logical, location.as_ref());
            let (kind, why) = (kind_of(*node.op), why.text());
            out.push(SplitAccessReport { kind, what, location, elements, possible, why });
        }
        Ok(out)
    }

    /// Accesses that leave elements out, in the order in which they were lowered.
    pub(super) fn masked_accesses(&self) -> Result<Vec<MaskedAccessReport>, Diagnostic> {
        let (world, mut known) = (&self.workspace.world, NodeSet::default());
        let mut out = Vec::new();
        for &(logical, memory) in &self.lowered.reasons.masked {
            if known.contains(logical) {
                continue;
            }
            known.insert(logical);
            let node = nodes::node(world, logical)?;
            // What an operation does, it does to its last memory; any other one is read.
            let kind = kind_of(if node.memory()? == memory { *node.op } else { Op::Read });
            let memory = nodes::fact::<Name>(world, memory, "a memory without name")?.0.to_string();
            let bounds = nodes::fact::<Bounds>(world, logical, "an access without bounds")?;
            let geometry = nodes::fact::<Geometry>(world, self.workspace.root, "a kernel without geometry")?;
            let along = bounds.masks.iter().map(|&dim| ragged(geometry, dim));
            let outside = bounds.outside.iter().map(|&dim| {
                let name = geometry.dim(dim).symbol.name();
                format!("{name} (by its coordinates)")
            });
            let dims = along.chain(outside).collect();
            let why = bounds.masked_as.map_or("", MaskReason::text);
            out.push(MaskedAccessReport { kind, memory, dims, why });
        }
        Ok(out)
    }

    /// Reads of shared memories that stay reads of global memory, in program order.
    fn unshared_reads(&self) -> Result<Vec<UnsharedReadReport>, Diagnostic> {
        let (world, root) = (&self.workspace.world, self.workspace.root);
        let mut out = Vec::new();
        if has_any::<Unshared>(world) {
            let logical = nodes::fact::<LogicalBody>(world, root, "a kernel that was not expanded")?;
            self.unshared_in(&logical.0, &mut out)?;
        }
        Ok(out)
    }

    fn unshared_in(&self, body: &[Entity], out: &mut Vec<UnsharedReadReport>) -> Result<(), Diagnostic> {
        let world = &self.workspace.world;
        for &read in body {
            if let Some(inner) = world.get::<Body>(read) {
                self.unshared_in(&inner.0, out)?;
            }
            let Some(Unshared(why)) = world.get::<Unshared>(read) else { continue };
            let node = nodes::node(world, read)?;
            let location = self.location(node.origin.0);
            let what = self.told(read, location.as_ref());
            let memory = nodes::fact::<Name>(world, node.memory()?, "a memory without name")?.0.to_string();
            let report = UnsharedReadReport { what, memory, location, why: why.text() };
            // The loop over the remainder has copies of what the loop before it has.
            if !out.contains(&report) {
                out.push(report);
            }
        }
        Ok(())
    }

    /// Values that were brought to other layouts, in program order.
    pub(super) fn conversions(&self) -> Result<Vec<ConversionReport>, Diagnostic> {
        let (world, root) = (&self.workspace.world, self.workspace.root);
        let mut out = Vec::new();
        // Most kernels have none, and then nothing is walked.
        if has_any::<LayoutConversion>(world) {
            let dims = nodes::fact::<DimTable>(world, root, "a kernel without dimensions")?;
            let logical = nodes::fact::<LogicalBody>(world, root, "a kernel that was not expanded")?;
            self.conversions_in(&logical.0, dims, &mut out)?;
        }
        Ok(out)
    }

    fn conversions_in(
        &self,
        body: &[Entity],
        dims: &DimTable,
        out: &mut Vec<ConversionReport>,
    ) -> Result<(), Diagnostic> {
        let world = &self.workspace.world;
        // The loop over the remainder has copies of what the loop before it has.
        let mut walked = None;
        let mut written: SmallVec<[(Entity, Entity); 4]> = SmallVec::new();
        for &node in body {
            let seen = nodes::node(world, node)?;
            let axis = seen.op.walks();
            let is_rest = world.get::<Remainder>(node).is_some();
            let is_copy = is_rest && axis == walked;
            if let Some(inner) = world.get::<Body>(node).filter(|_| !is_copy) {
                self.conversions_in(&inner.0, dims, out)?;
            }
            if axis.is_some() {
                walked = axis.filter(|_| !is_rest);
            }
            if seen.op.is_write() {
                written.push((seen.memory()?, node));
            }
            let Some(why) = world.get::<LayoutConversion>(node) else { continue };
            let value = self.converted(node, &written)?;
            let layout = |node| nodes::fact::<Placement>(world, node, "a converted value without layout");
            let (from, to) = (&layout(value)?.0, &layout(node)?.0);
            let way = match seen.op {
                Op::Rearrange if from.lanes_hold_alike(to) => ConversionWay::Renamed,
                Op::Rearrange => ConversionWay::AcrossLanes,
                _ => ConversionWay::ThroughLds,
            };
            let location = self.location(nodes::node(world, value)?.origin.0);
            out.push(ConversionReport {
                what: self.told(value, location.as_ref()),
                location,
                user: match self.location(why.origin.0) {
                    Some(at) => format!("{} at {at}", why.user),
                    None => why.user.to_owned(),
                },
                way,
                from: layout_text(from, dims),
                to: layout_text(to, dims),
                vector_instructions: why.vector,
                lds_instructions: why.lds,
            });
        }
        Ok(())
    }

    /// The value that a conversion begins with, which ends with `node`; `written` are the writes before it.
    fn converted(&self, node: Entity, written: &[(Entity, Entity)]) -> Result<Entity, Diagnostic> {
        let world = &self.workspace.world;
        let mut seen = nodes::node(world, node)?;
        if *seen.op == Op::Read {
            let memory = seen.memory()?;
            // A load straight into LDS brings no value that had another layout.
            let stores = |write: Entity| world.get::<Op>(write).is_some_and(|op| !op.copies());
            let write = written.iter().rev().find(|&&(to, write)| to == memory && stores(write));
            return match write {
                Some(&(_, write)) => Ok(nodes::node(world, write)?.operand(0)?),
                None => Ok(node),
            };
        }
        loop {
            let before = seen.operand(0)?;
            seen = nodes::node(world, before)?;
            if *seen.op != Op::Rearrange || world.get::<LayoutConversion>(before).is_some() {
                return Ok(before);
            }
        }
    }

    /// A value or an access as its author knows it: its tag, or where it is written.
    fn told(&self, logical: Entity, location: Option<&Location>) -> String {
        told_of(self.workspace.world.get::<Tag>(logical), location)
    }

    /// A logical access in words: `write of read_a (gemm.gsw:12:10)`.
    pub(super) fn told_access(&self, logical: Entity) -> String {
        let Ok(node) = nodes::node(&self.workspace.world, logical) else { return "?".to_owned() };
        let location = self.location(node.origin.0);
        let (kind, what) = (kind_of(*node.op), self.told(logical, location.as_ref()));
        match location {
            Some(at) if self.workspace.world.get::<Tag>(logical).is_some() => {
                format!("{kind} of {what} ({at})")
            }
            _ => format!("{kind} at {what}"),
        }
    }

    /// The accesses of LDS in program order.
    fn lds_accesses(&mut self) -> Result<Vec<LdsAccessReport>, Diagnostic> {
        let Workspace { world, root, expanded, conflicts, .. } = &mut *self.workspace;
        if world.get::<LdsBytes>(*root).is_none_or(|bytes| bytes.0 == 0) {
            return Ok(Vec::new());
        }
        let conflicts = conflicts.get_or_insert_with(|| QueryState::new(world));
        let mut known: SmallVec<[(Entity, u32); 8]> =
            conflicts.iter(world).map(|(logical, conflicts)| (logical, conflicts.0)).collect();
        // In program order, as far as the last of them: most of a kernel is not looked at.
        let mut found = 0;
        let body = nodes::fact::<Body>(world, *root, "a kernel without body")?;
        first_accesses(&expanded.query(world), &body.0, &mut known, &mut found)?;
        let world = &self.workspace.world;
        let mut out = Vec::with_capacity(found);
        for &(logical, conflict_degree) in &known[..found] {
            let node = nodes::node(world, logical)?;
            let kind = match world.get::<TransposingRead>(logical) {
                Some(_) => LdsAccessReport::TRANSPOSING_READ,
                None => kind_of(*node.op),
            };
            let location = self.location(node.origin.0);
            let what = self.told(logical, location.as_ref());
            out.push(LdsAccessReport { kind, what, location, conflict_degree });
        }
        Ok(out)
    }
}

/// True if some node has a fact that is kept apart from the others, which costs no walk.
fn has_any<C: Component>(world: &World) -> bool {
    let set = world.component_id::<C>().and_then(|id| world.storages().sparse_sets.get(id));
    set.is_some_and(|set| !set.is_empty())
}

/// Whether waves wait here for each other.
pub(super) fn is_barrier(inst: &MachineInst) -> bool {
    inst.inst.op.info().unit == Unit::Barrier
}

/// A dimension whose tiles reach beyond its end, and why.
fn ragged(geometry: &Geometry, dim: Dim) -> String {
    let (own, walked) = (geometry.dim(dim), geometry.dim(geometry.loop_dim(dim)));
    let size = own.static_size.map_or("known at the launch".to_owned(), |size| size.to_string());
    let tile = walked.tiling.or(walked.workgroup.map(|(_, tile)| tile));
    let name = own.symbol.name();
    match tile {
        Some(tile) => format!("{name} ({size} in tiles of {tile})"),
        None => format!("{name} ({size})"),
    }
}

/// An access in a word.
fn kind_of(op: Op) -> &'static str {
    match op.row().memory {
        MemoryEffect::Updates => "update",
        effect if effect.writes() => "write",
        _ => "read",
    }
}

/// Brings `known` logical accesses into the order in which a body first has pieces of them: `found` so many
/// so far.
fn first_accesses(
    nodes: &ExpandedNodes,
    body: &[Entity],
    known: &mut [(Entity, u32)],
    found: &mut usize,
) -> Result<(), Diagnostic> {
    for &node in body {
        if *found == known.len() {
            break;
        }
        let seen = nodes.get(node)?;
        if let Some(inner) = seen.body {
            first_accesses(nodes, &inner.0, known, found)?;
        } else if seen.op.is_access()
            && let Some(expansion) = seen.expansion
            && let Some(at) = known[*found..].iter().position(|one| one.0 == expansion.logical)
        {
            known.swap(*found, *found + at);
            *found += 1;
        }
    }
    Ok(())
}

/// A layout in words: `registers 4 of M; lanes 16 of N, 4 of M by 4`.
fn layout_text(layout: &Layout, dims: &DimTable) -> String {
    let mut text = String::new();
    let layout = layout.canonical();
    for source in Source::ALL {
        for (at, mode) in layout.of_source(source).enumerate() {
            let separator = match (at, text.is_empty()) {
                (0, true) => "",
                (0, false) => "; ",
                _ => ", ",
            };
            let name = if at == 0 { source.name() } else { "" };
            let plural = if at == 0 { "s " } else { "" };
            let [extent, stride] = [mode.extent, mode.stride].map(|number| number.to_string());
            [separator, name, plural, &extent].into_iter().for_each(|word| text.push_str(word));
            match mode.dim {
                None => text.push_str(" copies"),
                Some(dim) => {
                    text.push_str(" of ");
                    text.push_str(dims.name(dim));
                    if mode.stride != 1 {
                        text.push_str(" by ");
                        text.push_str(&stride);
                    }
                }
            }
        }
    }
    if text.is_empty() { "one element".to_string() } else { text }
}

/// A node as its author knows it: its tag, or where it is written.
fn told_of(tag: Option<&Tag>, location: Option<&Location>) -> String {
    match (tag, location) {
        (Some(tag), _) => tag.0.to_string(),
        (None, Some(location)) => text_of(location),
        (None, None) => "?".to_string(),
    }
}

/// A location as text, made with one allocation.
fn text_of(location: &Location) -> String {
    let mut text = String::with_capacity(location.file.len() + 16);
    // Writing to a string cannot fail.
    let _ = write!(text, "{location}");
    text
}
