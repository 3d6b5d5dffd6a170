//! Promotion: a read of a shared memory becomes a global read, a write to an LDS buffer and a read of that
//! buffer.
//!
//! In each region all global reads of promoted tiles come first, then all LDS writes, then the LDS reads
//! where the author's reads were: the loads overlap, and one barrier separates writes from reads. Two reads
//! of one memory with the same layout share a buffer.
//!
//! Reads whose coordinates are made of values, and volatile ones, stay reads of global memory; the report
//! says which, and [`Deny::UnsharedReads`](crate::passes::options::Deny) refuses them.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::Locations;
use crate::ir::mapping::Mapping;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::reasons::UnsharedReason;
use crate::ir::types::AddressSpace;
use crate::ir::walk::{self, NodeList};
use crate::passes::facts::Unshared;
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module. It makes nodes and looks at them again, so it takes the whole world.
pub(crate) fn promote_to_lds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    reject_writes_to_shared(world, root)?;
    let mut allocations = NodeList::new();
    let mut buffers = Buffers::default();
    for region in walk::regions(world, root) {
        buffers.truncate(0);
        promote_region(world, region, &mut buffers, &mut allocations)?;
    }
    nodes::fact_mut::<Body>(world, root, "a kernel without body")?.0.splice(0..0, allocations);
    for node in walk::nodes(world, root) {
        if nodes::op(world, node)? == Op::Memory {
            nodes::fact_mut::<Space>(world, node, "a memory without space")?.0 = AddressSpace::Global;
        }
    }
    Ok(())
}

/// How an access is made, apart from what it accesses.
fn flags_of(world: &World, access: Entity) -> MemoryAccessFlags {
    world.get::<MemoryAccessFlags>(access).copied().unwrap_or_default()
}

/// Why a read of a shared memory stays one of global memory.
fn why_global(world: &World, read: Entity) -> Result<Option<UnsharedReason>, Bug> {
    let flags = flags_of(world, read);
    if flags.volatile {
        return Ok(Some(UnsharedReason::Volatile));
    }
    let is_by_values = nodes::node(world, read)?.operands.0.len() > 1;
    Ok(is_by_values.then_some(UnsharedReason::Values))
}

/// The reads of shared memories, in a kernel as its author wrote it, that do not go through LDS, and why.
pub(crate) fn unshared_reads(
    world: &World,
    root: Entity,
) -> Result<SmallVec<[(Entity, UnsharedReason); 2]>, Bug> {
    let mut found = SmallVec::new();
    for read in walk::nodes(world, root) {
        if nodes::op(world, read)? == Op::Read
            && is_shared_memory(world, nodes::node(world, read)?.memory()?)?
            && let Some(why) = why_global(world, read)?
        {
            found.push((read, why));
        }
    }
    Ok(found)
}

fn is_shared_memory(world: &World, memory: Entity) -> Result<bool, Bug> {
    Ok(nodes::op(world, memory)? == Op::Memory
        && nodes::fact::<Space>(world, memory, "a memory without space")?.0 == AddressSpace::Shared)
}

fn reject_writes_to_shared(world: &World, root: Entity) -> Result<(), Diagnostic> {
    let locations = nodes::fact::<Locations>(world, root, "a kernel without locations")?;
    for node in walk::nodes(world, root) {
        if nodes::op(world, node)? != Op::Write {
            continue;
        }
        let node = nodes::node(world, node)?;
        let memory = node.memory()?;
        if is_shared_memory(world, memory)? {
            let name = &nodes::fact::<Name>(world, memory, "a memory without name")?.0;
            let declared = nodes::node(world, memory)?.origin.0;
            return Err(Diagnostic::invalid(format!("`{name}` is shared and written"))
                .at(locations.get(node.origin.0))
                .note("the memory is declared here", locations.get(declared))
                .help("declare memories that are written as global"));
        }
    }
    Ok(())
}

/// Buffers of a region by the memory that they hold a tile of.
type Buffers = NodeMap<SmallVec<[PromotedBuffer; 1]>>;

/// A buffer, the layout of its readers, and the mapping by which it is loaded.
struct PromotedBuffer {
    placement: Placement,
    mapping: Option<Mapping>,
    flags: MemoryAccessFlags,
    node: Entity,
}

fn promote_region(
    world: &mut World,
    region: Entity,
    buffers: &mut Buffers,
    allocations: &mut NodeList,
) -> PassResult {
    let region_nodes = walk::body(world, region);
    let (mut loads, mut stores) = (NodeList::new(), NodeList::new());
    let mut first = None;
    for (at, &read) in region_nodes.iter().enumerate() {
        if nodes::op(world, read)? != Op::Read {
            continue;
        }
        let memory = nodes::node(world, read)?.memory()?;
        let flags = flags_of(world, read);
        if !is_shared_memory(world, memory)? {
            continue;
        }
        if let Some(why) = why_global(world, read)? {
            world.entity_mut(read).insert(Unshared(why));
            continue;
        }
        first.get_or_insert(at);
        let placement = nodes::fact::<Placement>(world, read, "a read without layout")?.clone();
        let mapping = world.get::<Mapping>(read).cloned();
        let of_memory = buffers.get(memory).map(|buffers| &buffers[..]).unwrap_or_default();
        let is_same =
            |b: &&PromotedBuffer| b.placement == placement && b.mapping == mapping && b.flags == flags;
        let shared = of_memory.iter().find(is_same).map(|b| b.node);
        let buffer = match shared {
            Some(buffer) => buffer,
            None => {
                let [buffer, load, store] = stage(world, read, memory)?;
                allocations.push(buffer);
                loads.push(load);
                stores.push(store);
                let node = buffer;
                let buffer = PromotedBuffer { placement, mapping: mapping.clone(), flags, node };
                match buffers.get_mut(memory) {
                    Some(known) => known.push(buffer),
                    None => buffers.insert(memory, smallvec![buffer]),
                }
                node
            }
        };
        nodes::fact_mut::<Operands>(world, read, "a read without operands")?.0[0] = buffer;
        world.entity_mut(read).remove::<MemoryAccessFlags>();
        if mapping.is_some() {
            // The buffer has the dimensions of the value.
            world.entity_mut(read).remove::<Mapping>();
        }
    }
    if let Some(first) = first {
        let mut body = nodes::fact_mut::<Body>(world, region, "a region without body")?;
        body.0.splice(first..first, loads.into_iter().chain(stores));
    }
    Ok(())
}

/// The LDS buffer, the global read and the LDS write that feed a promoted read.
fn stage(world: &mut World, read: Entity, memory: Entity) -> Result<[Entity; 3], Bug> {
    let mapping = world.get::<Mapping>(read).cloned();
    // A tile of the value, which is the memory's own tile where no mapping says otherwise.
    let of = if mapping.is_some() { read } else { memory };
    let ty = nodes::node(world, of)?.ty.clone();
    let origin = *nodes::node(world, read)?.origin;
    let tag = world.get::<Tag>(read).cloned();
    let operands = |nodes: &[Entity]| Operands(SmallVec::from_slice(nodes));
    let buffer = NodeBundle { ty: ty.clone(), ..NodeBundle::effect(Op::Allocate, origin) };
    let buffer = buffer.spawn(world, Space(AddressSpace::Shared));
    let load = NodeBundle { op: Op::Read, operands: operands(&[memory]), ty, origin }.spawn(world, ());
    let store = NodeBundle { operands: operands(&[load, buffer]), ..NodeBundle::effect(Op::Write, origin) };
    let store = store.spawn(world, ());
    if let Some(mapping) = mapping {
        world.entity_mut(load).insert(mapping);
    }
    if let Some(&flags) = world.get::<MemoryAccessFlags>(read) {
        world.entity_mut(load).insert(flags);
    }
    if let Some(tag) = tag {
        world.entity_mut(load).insert(tag.clone());
        world.entity_mut(store).insert(tag);
    }
    Ok([buffer, load, store])
}
