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

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::facts::{Geometry, InPlace, PackedElements};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, Bug};
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::NodeList;
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module. It follows operands from node to node, so it takes the whole world.
pub(crate) fn find_in_place(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    if !has_alike_memories(world, root)? {
        return Ok(());
    }
    let mut found = InPlace::default();
    let mut accesses: SmallVec<[InPlaceAccess; 8]> = SmallVec::new();
    let mut around = SmallVec::new();
    collect(world, root, &mut around, &mut accesses)?;
    for (read, written) in candidates(world, root, &accesses)? {
        if is_read_once(world, root, &accesses, read)? && replaces(world, &accesses, read, written)? {
            let name = |memory| nodes::fact::<Name>(world, memory, "a memory without name");
            found.0.push([name(read)?.0.clone(), name(written)?.0.clone()]);
        }
    }
    if !found.0.is_empty() {
        world.entity_mut(root).insert(found);
    }
    Ok(())
}

/// True if two memories have the same dimensions and elements of the same size: a product has no such two,
/// and needs no closer look.
fn has_alike_memories(world: &World, root: Entity) -> Result<bool, Bug> {
    let Some(body) = world.get::<Body>(root) else { return Ok(false) };
    let mut known: SmallVec<[&ValueType; 8]> = SmallVec::new();
    let bits = |ty: &ValueType| ty.dtype.map(DType::bits);
    for &node in &body.0 {
        if nodes::op(world, node)? == Op::Memory {
            let ty = type_of(world, node)?;
            if known.iter().any(|other| other.dims == ty.dims && bits(other) == bits(ty)) {
                return Ok(true);
            }
            known.push(ty);
        }
    }
    Ok(false)
}

fn type_of(world: &World, node: Entity) -> Result<&ValueType, Bug> {
    nodes::fact::<ValueType>(world, node, "a node without type")
}

fn operands_of(world: &World, node: Entity) -> Result<&Operands, Bug> {
    nodes::fact::<Operands>(world, node, "a node without operands")
}

/// A node that reads or writes a memory or an LDS buffer.
struct InPlaceAccess {
    node: Entity,
    memory: Entity,
    /// The regions around it, outermost first.
    around: SmallVec<[Entity; 4]>,
}

/// Appends the accesses of a region in program order.
fn collect(
    world: &World,
    region: Entity,
    around: &mut SmallVec<[Entity; 4]>,
    out: &mut SmallVec<[InPlaceAccess; 8]>,
) -> Result<(), Bug> {
    let Some(body) = world.get::<Body>(region) else { return Ok(()) };
    for &node in &body.0 {
        let op = nodes::op(world, node)?;
        if op.is_access() {
            let seen = nodes::node(world, node)?;
            let from = if seen.op.copies() { seen.operand(0)? } else { seen.memory()? };
            out.push(InPlaceAccess { node, memory: from, around: around.clone() });
        }
        if op.row().class == OpClass::Region {
            around.push(node);
            collect(world, node, around, out)?;
            around.pop();
        }
    }
    Ok(())
}

/// Pairs of a memory that is only read and one that is written, of the same dimensions and elements of the
/// same size, where no element is the business of two workgroups.
fn candidates(
    world: &World,
    root: Entity,
    accesses: &[InPlaceAccess],
) -> Result<SmallVec<[(Entity, Entity); 4]>, Bug> {
    let mut pairs = SmallVec::new();
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
    if geometry.persistent.is_some() || geometry.chooses_iterations() {
        return Ok(pairs);
    }
    let mut read = NodeList::new();
    let mut written = NodeList::new();
    for access in accesses {
        let list = if nodes::op(world, access.node)?.is_write() { &mut written } else { &mut read };
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
            if let (Some(own), Some(other)) = (whole_elements(world, read)?, whole_elements(world, written)?)
                && own == other
                && !divides_others(&own.0)
            {
                pairs.push((read, written));
            }
        }
    }
    Ok(pairs)
}

/// The dimensions of a tensor argument and the bits of an element, if elements share no byte.
fn whole_elements(world: &World, memory: Entity) -> Result<Option<(Dims, u32)>, Bug> {
    if nodes::op(world, memory)? != Op::Memory
        || nodes::fact::<Space>(world, memory, "a memory without space")?.0 != AddressSpace::Global
        || world.get::<PackedElements>(memory).is_some()
        || world.get::<DebugLog>(memory).is_some()
    {
        return Ok(None);
    }
    let ty = type_of(world, memory)?;
    let whole = ty.dtype.filter(|dtype| dtype.packing().is_none());
    Ok(whole.map(|dtype| (ty.dims.clone(), dtype.bits())))
}

/// Whether each element of a memory is read by one wave at most of the workgroup that has it, and once by
/// each read.
fn is_read_once(
    world: &World,
    root: Entity,
    accesses: &[InPlaceAccess],
    memory: Entity,
) -> Result<bool, Bug> {
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
    let dims = &type_of(world, memory)?.dims;
    for access in accesses.iter().filter(|access| access.memory == memory) {
        let node = nodes::node(world, access.node)?;
        let is_plain = node.op.loads()
            && node.operands.0.len() == 1
            && world.get::<Mapping>(access.node).is_none()
            && node.ty.dims == *dims;
        let placement = world.get::<Placement>(access.node);
        let is_apart = placement.is_some_and(|placement| placement.0.waves_hold_apart());
        if !is_plain || !is_apart {
            return Ok(false);
        }
        let mut walked: SmallVec<[Dim; 4]> = SmallVec::new();
        for &region in &access.around {
            let Some(dim) = nodes::op(world, region)?.over_tiles() else { return Ok(false) };
            if !dims.contains(&dim) || walked.contains(&dim) || geometry.dim(dim).step.is_some() {
                return Ok(false);
            }
            walked.push(dim);
        }
    }
    Ok(true)
}

/// Whether all writes of a memory are plain and computed from all reads of another.
fn replaces(world: &World, accesses: &[InPlaceAccess], read: Entity, written: Entity) -> Result<bool, Bug> {
    let dims = &type_of(world, written)?.dims;
    for access in accesses.iter().filter(|access| access.memory == written) {
        if !nodes::op(world, access.node)?.is_write() {
            continue;
        }
        let node = nodes::node(world, access.node)?;
        let value = node.operand(0)?;
        let has_all = type_of(world, value)?.dims.iter().filter(|dim| dims.contains(dim)).count();
        if !node.op.stores()
            || node.operands.0.len() != 2
            || world.get::<Mapping>(access.node).is_some()
            || has_all != dims.len()
        {
            return Ok(false);
        }
        let sources = sources_of(world, accesses, access, value)?;
        let mut reads = accesses.iter().filter(|access| access.memory == read);
        if !reads.all(|access| sources.contains(access.node)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The nodes that a written value is computed from, such that each of its elements takes part of all that
/// has the same coordinates.
fn sources_of(
    world: &World,
    accesses: &[InPlaceAccess],
    write: &InPlaceAccess,
    value: Entity,
) -> Result<NodeSet, Bug> {
    let mut seen = NodeSet::default();
    let mut next: NodeList = smallvec![value];
    while let Some(node) = next.pop() {
        if seen.contains(node) {
            continue;
        }
        seen.insert(node);
        let op = nodes::op(world, node)?;
        let operands = operands_of(world, node)?;
        match op.row().class {
            // Its scales and numbers are at coordinates of their own.
            OpClass::ElementWise if matches!(op, Op::Decode(_) | Op::Encode(_)) => {}
            OpClass::ElementWise | OpClass::Reduction => next.extend_from_slice(&operands.0),
            // The first element of an exclusive one takes part of nothing.
            OpClass::Scan if matches!(op, Op::Scan(scan) if !scan.op.is_exclusive()) => {
                next.extend_from_slice(&operands.0);
            }
            OpClass::Rearrangement => {
                let from = operands.at(0)?;
                if type_of(world, from)?.dims == type_of(world, node)?.dims {
                    next.push(from);
                }
            }
            OpClass::Access => next.extend(stored_before(world, accesses, node)?),
            OpClass::Carried => next.extend(summed_up(world, write, node)?),
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
fn stored_before(world: &World, accesses: &[InPlaceAccess], read: Entity) -> Result<Option<Entity>, Bug> {
    let Some(at) = accesses.iter().position(|access| access.node == read) else { return Ok(None) };
    let own = &accesses[at];
    let node = nodes::node(world, read)?;
    if !node.op.loads() || nodes::op(world, own.memory)? != Op::Allocate || node.operands.0.len() != 1 {
        return Ok(None);
    }
    let mut written = None;
    for (place, access) in accesses.iter().enumerate().filter(|(_, access)| access.memory == own.memory) {
        if nodes::op(world, access.node)?.is_write() && written.replace((place, access)).is_some() {
            return Ok(None);
        }
    }
    let Some((place, write)) = written else { return Ok(None) };
    let stored = nodes::node(world, write.node)?;
    let is_plain = stored.op.stores()
        && stored.operands.0.len() == 2
        && world.get::<Mapping>(write.node).is_none()
        && world.get::<Mapping>(read).is_none();
    let is_before = place < at && write.around == own.around;
    (is_plain && is_before).then(|| stored.operand(0)).transpose()
}

/// Of the result of a loop that is over before a write: what its last iteration hands on, if that is computed
/// from what the iterations before it have handed on.
fn summed_up(world: &World, write: &InPlaceAccess, result: Entity) -> Result<Option<Entity>, Bug> {
    let node = nodes::node(world, result)?;
    let Some(number) = node.op.carried_result() else { return Ok(None) };
    let owner = node.operand(0)?;
    if nodes::op(world, owner)?.over_tiles().is_none() || write.around.contains(&owner) {
        return Ok(None);
    }
    let handed_on = nodes::fact::<Yields>(world, owner, "a loop without yields")?.at(number as usize)?;
    let carried = nodes::fact::<Body>(world, owner, "a loop without body")?.at(number as usize)?;
    let mut seen = NodeSet::default();
    let mut next: NodeList = smallvec![handed_on];
    while let Some(node) = next.pop() {
        if node == carried {
            return Ok(Some(handed_on));
        }
        if !seen.contains(node) {
            seen.insert(node);
            next.extend_from_slice(&operands_of(world, node)?.0);
        }
    }
    Ok(None)
}
