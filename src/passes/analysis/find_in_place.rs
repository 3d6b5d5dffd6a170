//! Which arguments may be one tensor: a memory that the kernel only reads, and one that it writes.
//!
//! With both in one place a read finds the author's elements only if it comes before the write that replaces
//! them. Nothing orders the lanes, waves and workgroups of a launch among each other, except that what is
//! computed from a value comes after it. So the pass demands that each element that is written is computed
//! from the element of the same coordinates, and that nobody else reads that one:
//!
//! - both memories have the same dimensions, and are read and written at a node's own place alone;
//! - workgroups divide dimensions of the memory alone, so that two of them share no element;
//! - a read stands in loops over dimensions of the memory alone, each at most once, so that it meets an
//!   element once, and the waves of a workgroup hold different elements of it;
//! - every write is computed from every read, in operations that join elements of the same coordinates or
//!   fold whole dimensions.
//!
//! Later passes spread, pipeline and combine accesses, and make none of an element that was not accessed, nor
//! one that does not wait for the values that it is computed from. What the pass cannot prove is not said,
//! and launches refuse it.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{Geometry, InPlace, PackedElements};
use crate::ir::kernel::KernelName;
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, Bug, Node, NodeItem};
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;

/// The pass itself; see the module.
pub(crate) fn find_in_place(
    kernel: Single<(Entity, &Geometry, &Body), With<KernelName>>,
    nodes: Query<NodeInPlace>,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, body) = *kernel;
    let mut accesses = InPlaceAccesses { geometry, nodes: &nodes, accesses: SmallVec::new() };
    accesses.collect(body, &mut SmallVec::new())?;
    let mut found = InPlace::default();
    for (read, written) in accesses.candidates()? {
        if accesses.is_read_once(read)? && accesses.replaces(read, written)? {
            found.0.push([accesses.name(read)?, accesses.name(written)?]);
        }
    }
    if !found.0.is_empty() {
        commands.entity(root).insert(found);
    }
    Ok(())
}

/// True if two memories have the same dimensions and elements of the same size: a product has no such two,
/// and needs no closer look.
pub(in crate::passes) fn has_alike_memories(world: &World, root: Entity) -> bool {
    let mut known: SmallVec<[&ValueType; 8]> = SmallVec::new();
    let bits = |ty: &ValueType| ty.dtype.map(DType::bits);
    for node in walk::body(world, root) {
        let Ok(NodeItem { op: Op::Memory, ty, .. }) = nodes::node(world, node) else { continue };
        if known.iter().any(|other| other.dims == ty.dims && bits(other) == bits(ty)) {
            return true;
        }
        known.push(ty);
    }
    false
}

/// All that the pass asks of a node: one query, because the states of each cost about as much as the pass.
#[derive(QueryData)]
pub(crate) struct NodeInPlace {
    node: Node,
    body: Option<&'static Body>,
    yields: Option<&'static Yields>,
    placement: Option<&'static Placement>,
    is_mapped: Has<Mapping>,
    name: Option<&'static Name>,
    space: Option<&'static Space>,
    is_packed: Has<PackedElements>,
    is_log: Has<DebugLog>,
}

/// A node that reads or writes a memory or an LDS buffer.
struct InPlaceAccess {
    node: Entity,
    memory: Entity,
    /// The regions around it, outermost first.
    around: SmallVec<[Entity; 4]>,
}

/// The accesses of a kernel in program order.
struct InPlaceAccesses<'a, 'w, 's> {
    geometry: &'a Geometry,
    nodes: &'a Query<'w, 's, NodeInPlace>,
    accesses: SmallVec<[InPlaceAccess; 8]>,
}

impl InPlaceAccesses<'_, '_, '_> {
    /// Appends the accesses of a region in program order.
    fn collect(&mut self, body: &Body, around: &mut SmallVec<[Entity; 4]>) -> PassResult {
        let nodes = self.nodes;
        for &id in &body.0 {
            let NodeInPlaceItem { node, body, .. } = nodes.get(id)?;
            if node.op.is_access() {
                let memory = if node.op.copies() { node.operand(0)? } else { node.memory()? };
                self.accesses.push(InPlaceAccess { node: id, memory, around: around.clone() });
            }
            if let Some(body) = body {
                around.push(id);
                self.collect(body, around)?;
                around.pop();
            }
        }
        Ok(())
    }

    fn of_memory(&self, memory: Entity) -> impl Iterator<Item = (usize, &InPlaceAccess)> {
        self.accesses.iter().enumerate().filter(move |(_, access)| access.memory == memory)
    }

    fn node(&self, node: Entity) -> Result<NodeItem<'_, '_>, Diagnostic> {
        Ok(self.nodes.get(node)?.node)
    }

    fn name(&self, memory: Entity) -> Result<Arc<str>, Diagnostic> {
        let name = self.nodes.get(memory)?.name.ok_or(Bug::new("a memory without name"))?;
        Ok(name.0.clone())
    }

    /// True for a read or write at a node's own place, with as many operands as that takes.
    fn is_plain(&self, access: &InPlaceAccess, op: Op, operands: usize) -> Result<bool, Diagnostic> {
        let NodeInPlaceItem { node, is_mapped, .. } = self.nodes.get(access.node)?;
        Ok(*node.op == op && node.operands.0.len() == operands && !is_mapped)
    }

    /// Pairs of a memory that is only read and one that is written, of the same dimensions and elements of
    /// the same size, where no element is the business of two workgroups.
    fn candidates(&self) -> Result<SmallVec<[(Entity, Entity); 4]>, Diagnostic> {
        let mut pairs = SmallVec::new();
        let geometry = self.geometry;
        if geometry.persistent.is_some() || geometry.chooses_iterations() {
            return Ok(pairs);
        }
        let mut read = NodeList::new();
        let mut written = NodeList::new();
        for access in &self.accesses {
            let list = if self.node(access.node)?.op.is_write() { &mut written } else { &mut read };
            if !list.contains(&access.memory) {
                list.push(access.memory);
            }
        }
        read.retain(|memory| !written.contains(memory));
        let divides_others = |dims: &Dims| {
            geometry.dims.iter().any(|(dim, entry)| {
                let is_divided =
                    entry.workgroup.is_some_and(|(_, tile)| entry.static_size.is_none_or(|size| size > tile));
                is_divided && !dims.contains(&dim)
            })
        };
        for &read in &read {
            for &written in &written {
                let [own, other] = [self.whole_elements(read)?, self.whole_elements(written)?];
                if own == other && own.is_some_and(|(dims, _)| !divides_others(&dims)) {
                    pairs.push((read, written));
                }
            }
        }
        Ok(pairs)
    }

    /// The dimensions of a tensor argument and the bits of an element, if elements share no byte.
    fn whole_elements(&self, memory: Entity) -> Result<Option<(Dims, u32)>, Diagnostic> {
        let NodeInPlaceItem { node, space, is_packed, is_log, .. } = self.nodes.get(memory)?;
        let is_global = space.is_some_and(|space| space.0 == AddressSpace::Global);
        let is_argument = *node.op == Op::Memory && is_global && !is_packed && !is_log;
        let whole = node.ty.dtype.filter(|dtype| is_argument && dtype.packing().is_none());
        Ok(whole.map(|dtype| (node.ty.dims.clone(), dtype.bits())))
    }

    /// True if each element of a memory is read by one wave at most of the workgroup that has it, and once by
    /// each read.
    fn is_read_once(&self, memory: Entity) -> Result<bool, Diagnostic> {
        let dims = &self.node(memory)?.ty.dims;
        for (_, access) in self.of_memory(memory) {
            let placement = self.nodes.get(access.node)?.placement;
            if !self.is_plain(access, Op::Read, 1)?
                || self.node(access.node)?.ty.dims != *dims
                || !placement.is_some_and(|placement| placement.0.waves_hold_apart())
            {
                return Ok(false);
            }
            let mut walked: SmallVec<[Dim; 4]> = SmallVec::new();
            for &region in &access.around {
                let Some(dim) = self.node(region)?.op.walks() else { return Ok(false) };
                if !dims.contains(&dim) || walked.contains(&dim) || self.geometry.dim(dim).step.is_some() {
                    return Ok(false);
                }
                walked.push(dim);
            }
        }
        Ok(true)
    }

    /// True if all writes of a memory are plain and computed from all reads of another.
    fn replaces(&self, read: Entity, written: Entity) -> Result<bool, Diagnostic> {
        let dims = &self.node(written)?.ty.dims;
        for (_, access) in self.of_memory(written) {
            let node = self.node(access.node)?;
            if !node.op.is_write() {
                continue;
            }
            let value = node.operand(0)?;
            let own = &self.node(value)?.ty.dims;
            let has_all = own.iter().filter(|dim| dims.contains(dim)).count() == dims.len();
            if !has_all || !self.is_plain(access, Op::Write, 2)? {
                return Ok(false);
            }
            let sources = self.sources_of(access, value)?;
            if !self.of_memory(read).all(|(_, access)| sources.contains(access.node)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The nodes that a written value is computed from, such that each of its elements takes part of all
    /// that has the same coordinates.
    fn sources_of(&self, write: &InPlaceAccess, value: Entity) -> Result<NodeSet, Diagnostic> {
        let mut seen = NodeSet::default();
        let mut next: NodeList = smallvec![value];
        while let Some(id) = next.pop() {
            if seen.contains(id) {
                continue;
            }
            seen.insert(id);
            let node = self.node(id)?;
            match node.op.row().class {
                // Its scales and numbers are at coordinates of their own.
                OpClass::ElementWise if matches!(node.op, Op::Decode(_) | Op::Encode(_)) => {}
                OpClass::ElementWise | OpClass::Reduction => next.extend_from_slice(&node.operands.0),
                // The first element of an exclusive one takes part of nothing.
                OpClass::Scan if matches!(node.op, Op::Scan(scan) if !scan.op.is_exclusive()) => {
                    next.extend_from_slice(&node.operands.0);
                }
                OpClass::Rearrangement => {
                    let from = node.operand(0)?;
                    if self.node(from)?.ty.dims == node.ty.dims {
                        next.push(from);
                    }
                }
                OpClass::Access => next.extend(self.stored_before(id)?),
                OpClass::Carried => next.extend(self.summed_up(write, &node)?),
                OpClass::Declaration
                | OpClass::Constant
                | OpClass::Scan
                | OpClass::Contraction
                | OpClass::Region
                | OpClass::Order => {}
            }
        }
        Ok(seen)
    }

    /// Of a read of an LDS buffer that was written once, right before it: the value that was written.
    fn stored_before(&self, read: Entity) -> Result<Option<Entity>, Diagnostic> {
        let Some(at) = self.accesses.iter().position(|access| access.node == read) else { return Ok(None) };
        let own = &self.accesses[at];
        if *self.node(own.memory)?.op != Op::Allocate || !self.is_plain(own, Op::Read, 1)? {
            return Ok(None);
        }
        let mut written = None;
        for (place, access) in self.of_memory(own.memory) {
            if self.node(access.node)?.op.is_write() && written.replace((place, access)).is_some() {
                return Ok(None);
            }
        }
        let Some((place, write)) = written else { return Ok(None) };
        let is_before = place < at && write.around == own.around;
        match is_before && self.is_plain(write, Op::Write, 2)? {
            true => Ok(Some(self.node(write.node)?.operand(0)?)),
            false => Ok(None),
        }
    }

    /// Of the result of a loop that is over before a write: what its last iteration hands on, if that is
    /// computed from what the iterations before it have handed on.
    fn summed_up(&self, write: &InPlaceAccess, result: &NodeItem) -> Result<Option<Entity>, Diagnostic> {
        let Op::LoopResult(number) = *result.op else { return Ok(None) };
        let owner = result.operand(0)?;
        let NodeInPlaceItem { node, body, yields, .. } = self.nodes.get(owner)?;
        let (Some(body), Some(yields), Some(_)) = (body, yields, node.op.walks()) else { return Ok(None) };
        if write.around.contains(&owner) {
            return Ok(None);
        }
        let (carried, handed_on) = (body.at(number as usize)?, yields.at(number as usize)?);
        let mut seen = NodeSet::default();
        let mut next: NodeList = smallvec![handed_on];
        while let Some(node) = next.pop() {
            if node == carried {
                return Ok(Some(handed_on));
            }
            if !seen.contains(node) {
                seen.insert(node);
                next.extend_from_slice(&self.node(node)?.operands.0);
            }
        }
        Ok(None)
    }
}
