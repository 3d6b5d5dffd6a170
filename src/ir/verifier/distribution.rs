//! What the distribution of a kernel demands of it. A memory or a value that lacks a dimension which is
//! spread over workgroups (or over their waves) belongs to all workgroups along that dimension, and nothing
//! orders these. So all of them must write the same to such a memory, and none may see what another one
//! writes:
//!
//! - It is written once: by one `write`, in no loop over a dimension that it lacks. All workgroups store the
//!   same value.
//! - It is not read before that: neither ahead of the `write`, nor after it in a loop that comes back to it.
//! - No `mma` sums over a dimension that is spread over workgroups: each of them has only a part of the
//!   products.
//!
//! A mapped write says itself which elements are whose. Its value belongs to all workgroups along a dimension
//! that the value lacks, so it stores the same wherever they are. But a memory that is written and read, not
//! always at the same coordinates, is one that some workgroup changes while another one reads it.
//!
//! A memory that has all of these dimensions is divided between the workgroups and their waves, and can be
//! read and written without restriction; so can LDS, of which every workgroup has its own.
//!
//! This is judged when a kernel is made, before any symbol has a value, so that one verdict holds for the
//! interpreter, for all compilations and for all sizes, static or dynamic. A dimension that is given to
//! workgroups counts as spread, even if a launch happens to have one workgroup along it; an author who wants
//! only one leaves the constraint out.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::facts::Geometry;
use crate::ir::kernel::{Constraints, DimTable, Locations, ScaledDim};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Name, *};
use crate::ir::op::{AlongDimOp, CarriedOp, DeclarationOp, ElementWiseOp, MemoryEffect, OpClass, OpFamily};
use crate::ir::walk;

/// Every fault of the author's kernel `root` of `world` under its distribution, in program order; none for a
/// valid kernel. What passes have made of a kernel is not judged again: they divide one write of the author's
/// among several loops, each with its own elements.
pub(crate) fn check(world: &World, root: Entity) -> Vec<Diagnostic> {
    if world.get::<Geometry>(root).is_some() {
        return Vec::new();
    }
    let Some(dims) = world.get::<DimTable>(root) else { return Vec::new() };
    let mut spread: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
    for (constraint, origin) in world.get::<Constraints>(root).iter().flat_map(|c| &c.0) {
        // A dimension that is spread over waves is spread over workgroups as well; otherwise the kernel is
        // invalid.
        if let Constraint::Workgroup { dim, .. } = constraint
            && let Some(symbol) = dim.as_dimension()
            && let Some(dim) = dims.find(symbol)
        {
            spread.push((dim, *origin));
        }
    }
    if spread.is_empty() {
        return Vec::new();
    }
    let differing = differing_dims(world, root, dims);
    let mut judge = DistributionJudge {
        world,
        root,
        dims,
        spread,
        differing,
        scaled: dims.scaled(),
        loops: SmallVec::new(),
        values: FxHashMap::default(),
        shared: FxHashMap::default(),
        has_mappings: mapped_memories(world),
        faults: Vec::new(),
    };
    judge.region(root);
    judge.faults
}

fn mapped_memories(world: &World) -> FxHashSet<Entity> {
    let Some(accesses) = world.try_query_filtered::<&Operands, With<Mapping>>() else {
        return FxHashSet::default();
    };
    accesses.query_manual(world).iter_inner().filter_map(|operands| operands.0.last().copied()).collect()
}

/// Dimensions that are spread over the grid axes on which iterations of loops and numbers of workgroups
/// depend.
fn differing_dims(world: &World, root: Entity, dims: &DimTable) -> SmallVec<[(Dim, u32); 2]> {
    let mut found = SmallVec::new();
    let all = world.get::<Constraints>(root).map(|c| &c.0[..]).unwrap_or_default();
    let chosen = all.iter().map(|(iterations, origin)| (iterations.workgroup_axes(), *origin));
    let origin = |node: &Entity| world.get::<Origin>(*node).map_or(u32::MAX, |origin| origin.0);
    let is_number = |op: &Op| matches!(op, Op::WorkgroupId(_));
    let has_numbers =
        world.try_query::<&Op>().is_some_and(|ops| ops.query_manual(world).iter_inner().any(is_number));
    let numbers = if has_numbers { walk::nodes(world, root) } else { walk::NodeList::new() };
    let numbers = numbers.iter().filter_map(|node| match world.get::<Op>(*node) {
        Some(&Op::WorkgroupId(axis)) => Some((1 << axis.min(31), origin(node))),
        _ => None,
    });
    for (axes, origin) in chosen.chain(numbers).filter(|(axes, _)| *axes != 0) {
        for (constraint, _) in all {
            if let Constraint::Workgroup { dim, axis, .. } = constraint
                && axes >> (*axis).min(31) & 1 != 0
                && let Some(dim) = dim.as_dimension().and_then(|symbol| dims.find(symbol))
            {
                found.push((dim, origin));
            }
        }
    }
    found
}

/// The accesses so far to a memory that lacks a spread dimension.
#[derive(Default)]
struct SharedAccesses {
    /// The first read.
    read: Option<Entity>,
    /// The first read or write with a mapping, and the first one without or with another mapping.
    mapped: Option<Entity>,
    unlike: Option<Entity>,
    /// Whether there was a read, and whether there was a write.
    accessed: [bool; 2],
    /// The write.
    write: Option<Entity>,
    /// A fault was reported: one is enough.
    faulty: bool,
}

struct DistributionJudge<'w> {
    world: &'w World,
    root: Entity,
    dims: &'w DimTable,
    /// Dimensions that are spread over workgroups, and where the author says so.
    spread: SmallVec<[(Dim, u32); 4]>,
    /// Dimensions that follow others.
    scaled: SmallVec<[ScaledDim; 2]>,
    /// Those along which the iterations of loops differ, and where the author says so.
    differing: SmallVec<[(Dim, u32); 2]>,
    /// Loops and conditionals around the current node, with the dimensions of those that have one.
    loops: SmallVec<[(Entity, Option<Dim>); 4]>,
    /// Dimensions of the values so far.
    values: FxHashMap<Entity, Dims>,
    shared: FxHashMap<Entity, SharedAccesses>,
    /// Memories that an access with a mapping touches.
    has_mappings: FxHashSet<Entity>,
    faults: Vec<Diagnostic>,
}

impl<'w> DistributionJudge<'w> {
    fn region(&mut self, region: Entity) {
        let world = self.world;
        for &node in world.get::<Body>(region).iter().flat_map(|body| &body.0) {
            let (Some(&op), Some(Operands(operands))) = (world.get::<Op>(node), world.get::<Operands>(node))
            else {
                continue;
            };
            // Of what a log is told at the same time, it keeps any.
            if op.is_access() && operands.last().is_some_and(|&log| world.get::<DebugLog>(log).is_some()) {
                continue;
            }
            let mapped = op.is_access() && world.get::<Mapping>(node).is_some();
            if op.is_write()
                && mapped
                && let (&[value, ..], Some(&memory)) = (operands.as_slice(), operands.last())
                && world.get::<Op>(memory) == Some(&Op::Allocate)
            {
                self.in_buffer(node, value, memory);
            }
            if op.is_access()
                && let Some(&memory) = operands.last()
                && world.get::<Op>(memory) == Some(&Op::Memory)
                && (mapped || self.has_mappings.contains(&memory))
            {
                self.mapped(node, op, memory);
            }
            if op.is_write()
                && let (&[value, ..], Some(&memory)) = (operands.as_slice(), operands.last())
            {
                self.differs(node, mapped.then_some(value), memory);
            }
            match (op.row().memory, operands.as_slice()) {
                (MemoryEffect::Updates, &[value, .., memory]) => self.atomic(node, value, memory),
                _ if mapped => {}
                (MemoryEffect::Reads, &[memory]) => self.read(node, memory),
                (MemoryEffect::Writes, &[.., memory]) => self.write(node, memory),
                (MemoryEffect::Copies, &[from, to]) => {
                    self.read(node, from);
                    self.write(node, to);
                }
                // No operands, or a wrong number of them.
                (MemoryEffect::None | MemoryEffect::Fence, _)
                | (MemoryEffect::Reads | MemoryEffect::Writes | MemoryEffect::Copies, _)
                | (MemoryEffect::Updates, _) => {}
            }
            if let (OpClass::Contraction, &[lhs, rhs, acc, ..]) = (op.row().class, operands.as_slice()) {
                self.product(node, [lhs, rhs, acc]);
            }
            if let OpFamily::AlongDim(along) = op.family() {
                let (dim, what) = match along {
                    AlongDimOp::Reduce(reduction) => (reduction.dim, "reduction runs along"),
                    AlongDimOp::Scan(scan) => (scan.dim, "scan runs along"),
                    AlongDimOp::Sort(sort) => (sort.dim, "sort runs along"),
                };
                self.whole(node, dim, what);
            }
            if let Some(dims) = self.dims_of(node, op, operands) {
                self.values.insert(node, dims);
            }
            if op.row().class == OpClass::Region {
                self.loops.push((node, op.walks()));
                self.region(node);
                self.loops.pop();
            }
        }
    }

    /// Dimensions of the result of a node; `None` if it has none or its operands are wrong, which is reported
    /// elsewhere.
    fn dims_of(&self, node: Entity, op: Op, operands: &[Entity]) -> Option<Dims> {
        let value = |at: usize| self.values.get(operands.get(at)?).cloned();
        match op.family() {
            OpFamily::Access(_) => match op.row().memory {
                // Its dims are written on the node.
                MemoryEffect::Reads if self.world.get::<Mapping>(node).is_some() => self.stated_dims(node),
                MemoryEffect::Reads => self.stated_dims(*operands.first()?),
                MemoryEffect::Updates => value(0),
                MemoryEffect::None | MemoryEffect::Writes | MemoryEffect::Copies | MemoryEffect::Fence => {
                    None
                }
            },
            OpFamily::Rearrangement(_) => value(0),
            OpFamily::Declaration(DeclarationOp::Scalar) | OpFamily::Constant(_) => self.stated_dims(node),
            OpFamily::ElementWise(ElementWiseOp::Broadcast) => self.stated_dims(node),
            OpFamily::ElementWise(_) => self.widest_dims(operands),
            OpFamily::Contraction(_) => value(2),
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => {
                let mut dims = value(0)?;
                dims.retain(|dim| *dim != reduction.dim);
                Some(dims)
            }
            OpFamily::AlongDim(AlongDimOp::Scan(_) | AlongDimOp::Sort(_)) => value(0),
            OpFamily::Carried(CarriedOp::IterArg(number)) => self.carried_dims(self.loops.last()?.0, number),
            OpFamily::Carried(CarriedOp::LoopResult(number)) => self.carried_dims(*operands.first()?, number),
            OpFamily::Declaration(DeclarationOp::Memory | DeclarationOp::Allocate)
            | OpFamily::Region(_)
            | OpFamily::Order(_) => None,
        }
    }

    /// Dimensions that are written on a node.
    fn stated_dims(&self, node: Entity) -> Option<Dims> {
        self.world.get::<ValueType>(node).map(|ty| ty.dims.clone())
    }

    /// Dimensions of the operand that has all of them.
    fn widest_dims(&self, operands: &[Entity]) -> Option<Dims> {
        let plain = |dim: &&Dim| self.scaled.iter().all(|scaled| scaled.dim != **dim);
        let plain = |dims: &Dims| dims.iter().filter(plain).count();
        let dims = operands.iter().filter_map(|operand| self.values.get(operand).cloned());
        dims.max_by_key(|dims| (dims.len(), plain(dims)))
    }

    /// Dimensions of a value that a region carries.
    fn carried_dims(&self, region: Entity, number: u32) -> Option<Dims> {
        let initial = self.world.get::<Operands>(region)?.0.get(number as usize)?;
        self.values.get(initial).cloned()
    }

    /// A spread dimension that a memory lacks, unless the memory is a buffer in LDS.
    fn lacks(&self, memory: Entity) -> Option<(Dim, u32)> {
        if self.world.get::<Op>(memory) != Some(&Op::Memory) {
            return None;
        }
        let dims = &self.world.get::<ValueType>(memory)?.dims;
        self.spread.iter().copied().find(|(dim, _)| !self.divides(*dim, dims))
    }

    /// Whether a division of a dimension divides what has the dimensions `dims`: they have it, or one that
    /// follows it.
    fn divides(&self, divided: Dim, dims: &Dims) -> bool {
        let follows = |scaled: &ScaledDim| scaled.base == divided && dims.contains(&scaled.dim);
        dims.contains(&divided) || self.scaled.iter().any(follows)
    }

    /// A write of what lacks a dimension along which workgroups run other iterations: they would write
    /// different values to the same elements.
    fn differs(&mut self, node: Entity, mapped: Option<Entity>, memory: Entity) {
        if self.world.get::<Op>(memory) != Some(&Op::Memory) {
            return;
        }
        let dims = match mapped {
            Some(value) => self.values.get(&value),
            None => self.world.get::<ValueType>(memory).map(|ty| &ty.dims),
        };
        let Some(dims) = dims else { return };
        let Some(&(dim, origin)) = self.differing.iter().find(|(dim, _)| !self.divides(*dim, dims)) else {
            return;
        };
        let (name, dim) = (self.name(memory), self.dims.name(dim));
        let text = format!("every workgroup along {dim} would write its own value to `{name}`");
        let fault = Diagnostic::invalid(text)
            .at(self.location(node))
            .note(
                format!(
                    "here they differ: workgroups along {dim} run other iterations, or have other numbers"
                ),
                self.constraint(origin),
            )
            .help(format!("write a value that has {dim} to a memory that has it, too"));
        self.faults.push(fault);
    }

    fn read(&mut self, node: Entity, memory: Entity) {
        if self.lacks(memory).is_some() {
            self.shared.entry(memory).or_default().read.get_or_insert(node);
        }
    }

    fn write(&mut self, node: Entity, memory: Entity) {
        let Some(lacking) = self.lacks(memory) else { return };
        let dims = self.world.get::<ValueType>(memory).map(|ty| &ty.dims);
        // Iterations over a dimension of the memory have their own elements. A read after the write in a loop
        // precedes the write of the next iteration, so the fault is that the loop repeats the write.
        let repeats = |around: &&(Entity, Option<Dim>)| match around.1 {
            Some(along) => dims.is_some_and(|dims| !self.divides(along, dims)),
            None => self.world.get::<Op>(around.0).is_some_and(|op| op.repeats()),
        };
        let repeats = self.loops.iter().find(repeats).map(|around| around.0);
        let shared = self.shared.entry(memory).or_default();
        let first = shared.write.replace(node);
        if shared.faulty {
            return;
        }
        shared.faulty = shared.read.or(first).or(repeats).is_some();
        match (shared.read, first, repeats) {
            (Some(read), ..) => self.updated(memory, node, read, lacking),
            (_, Some(first), _) => self.rewritten(memory, node, ("the first write is here", first), lacking),
            (.., Some(around)) => {
                self.rewritten(memory, node, ("every iteration of this loop writes it", around), lacking);
            }
            _ => {}
        }
    }

    /// An access with a mapping, or without one of a memory that has accesses with one.
    fn mapped(&mut self, node: Entity, op: Op, memory: Entity) {
        let world = self.world;
        let mapping = |node: Entity| world.get::<Mapping>(node);
        let dims = |node: Entity| match world.get::<Op>(node) {
            Some(op) if op.is_write() && !op.copies() => {
                self.values.get(world.get::<Operands>(node)?.0.first()?).cloned()
            }
            _ => world.get::<ValueType>(node).map(|ty| ty.dims.clone()),
        };
        let known = self.shared.get(&memory).map(|shared| (shared.mapped, shared.unlike));
        let (first, unlike) = known.unwrap_or_default();
        let same = first.is_none_or(|first| mapping(first) == mapping(node) && dims(first) == dims(node));
        let shared = self.shared.entry(memory).or_default();
        shared.mapped = first.or(Some(node));
        shared.unlike = unlike.or((!same).then_some(node));
        shared.accessed[usize::from(op.is_write())] = true;
        if shared.faulty || shared.accessed != [true; 2] {
            return;
        }
        let (Some(first), Some(other)) = (shared.mapped, shared.unlike) else { return };
        shared.faulty = true;
        let name = self.name(memory);
        let text = format!("`{name}` is read and written at different coordinates, in no common order");
        let fault = Diagnostic::invalid(text)
            .at(self.location(other))
            .note("the other coordinates are here", self.location(first))
            .help(format!("write the result to another memory than `{name}`"));
        self.faults.push(fault);
    }

    /// A mapped write to an LDS buffer, or an atomic update of one. Workgroups along a dimension that only
    /// the value has would leave different things in their buffers, which are one to the author.
    fn in_buffer(&mut self, node: Entity, value: Entity, buffer: Entity) {
        let (Some(dims), Some(own)) = (self.values.get(&value), self.world.get::<ValueType>(buffer)) else {
            return;
        };
        let lacks = |(dim, _): &&(Dim, u32)| self.divides(*dim, dims) && !self.divides(*dim, &own.dims);
        let Some(&(dim, origin)) = self.spread.iter().find(lacks) else { return };
        let dim = self.dims.name(dim);
        let text = format!("workgroups along {dim} would keep different elements in this LDS buffer");
        let fault = Diagnostic::invalid(text)
            .at(self.location(node))
            .note("the buffer is declared here", self.location(buffer))
            .note(format!("{dim} is spread over workgroups here"), self.constraint(origin));
        let help = format!(
            "give the buffer the dimension {dim}, with `{dim}` as its coordinate, or split {dim}: into a \
             dimension that counts workgroups, which the buffer has too, and one inside of them"
        );
        self.faults.push(fault.help(help));
    }

    /// An atomic update, which every workgroup along a dimension that the value lacks would make.
    fn atomic(&mut self, node: Entity, value: Entity, memory: Entity) {
        if self.world.get::<Op>(memory) != Some(&Op::Memory) {
            return;
        }
        let Some(dims) = self.values.get(&value) else { return };
        let Some(&lacking) = self.spread.iter().find(|(dim, _)| !self.divides(*dim, dims)) else { return };
        let (name, dim) = (self.name(memory), self.dims.name(lacking.0));
        let text = format!("every workgroup along {dim} would update `{name}`: the value has no {dim}");
        let note = format!("{dim} is spread over workgroups here");
        let help = format!("broadcast the value to {dim}, or do not spread {dim} over workgroups");
        let fault = Diagnostic::invalid(text).at(self.location(node));
        self.faults.push(fault.note(note, self.constraint(lacking.1)).help(help));
    }

    /// A memory is read, and then written, by all workgroups along a dimension that it lacks.
    fn updated(&mut self, memory: Entity, write: Entity, read: Entity, lacking: (Dim, u32)) {
        let (name, dim) = (self.name(memory), self.dims.name(lacking.0));
        let text = format!("`{name}` is updated by every workgroup along {dim}: it is read and then written");
        let fault =
            Diagnostic::invalid(text).at(self.location(write)).note("it is read here", self.location(read));
        self.report(memory, fault, lacking, &format!("write the result to another memory than `{name}`"));
    }

    /// A memory is written several times by all workgroups along a dimension that it lacks.
    fn rewritten(
        &mut self,
        memory: Entity,
        write: Entity,
        (why, place): (&str, Entity),
        lacking: (Dim, u32),
    ) {
        let (name, dim) = (self.name(memory), self.dims.name(lacking.0));
        let text =
            format!("`{name}` is written more than once by every workgroup along {dim}, in no common order");
        let fault = Diagnostic::invalid(text).at(self.location(write)).note(why, self.location(place));
        self.report(memory, fault, lacking, "write only the last value");
    }

    fn report(&mut self, memory: Entity, fault: Diagnostic, (dim, origin): (Dim, u32), way_out: &str) {
        let (name, dim) = (self.name(memory), self.dims.name(dim));
        let help =
            format!("{way_out}, give `{name}` the dimension {dim}, or do not spread {dim} over workgroups");
        let note = format!("`{name}` has no {dim}, which is spread over workgroups here");
        self.faults.push(fault.note(note, self.constraint(origin)).help(help));
    }

    /// An `mma`, which must not sum over a spread dimension.
    fn product(&mut self, node: Entity, operands: [Entity; 3]) {
        let [Some(lhs), Some(rhs), Some(acc)] = operands.map(|operand| self.values.get(&operand)) else {
            return;
        };
        let summed = |&dim: &Dim| self.divides(dim, lhs) && self.divides(dim, rhs) && !self.divides(dim, acc);
        let Some(&(dim, origin)) = self.spread.iter().find(|(dim, _)| summed(dim)) else { return };
        self.partial(node, (dim, origin), "mma sums over");
    }

    /// What must not run along a spread dimension.
    fn whole(&mut self, node: Entity, along: Dim, what: &str) {
        let base = self.dims.scaled_from(along).map_or(along, |(base, _)| base);
        if let Some(&spread) = self.spread.iter().find(|(dim, _)| *dim == base) {
            self.partial(node, spread, what);
        }
    }

    /// The fault of an operation that needs all of a spread dimension.
    fn partial(&mut self, node: Entity, (dim, origin): (Dim, u32), what: &str) {
        let dim = self.dims.name(dim);
        let text = format!("this {what} {dim}, of which every workgroup has only a part");
        let fault = Diagnostic::invalid(text)
            .at(self.location(node))
            .note(format!("{dim} is spread over workgroups here"), self.constraint(origin))
            .help(match self.world.get::<Op>(node) {
                Some(Op::Sort(_)) => format!("leave out workgroup({dim}, ..): a workgroup sorts whole rows"),
                _ => format!("loop over {dim}, with tile({dim}, ..) in place of workgroup({dim}, ..)"),
            });
        self.faults.push(fault);
    }

    fn name(&self, memory: Entity) -> &'w str {
        self.world.get::<Name>(memory).map_or("?", |name| &name.0)
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.constraint(self.world.get::<Origin>(node)?.0)
    }

    fn constraint(&self, origin: u32) -> Option<Location> {
        self.world.get::<Locations>(self.root)?.get(origin)
    }
}
