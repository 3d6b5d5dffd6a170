//! Promotion: a read of a shared memory becomes a global read, a write to an LDS buffer and a read of that buffer.
//!
//! In each region all global reads of promoted tiles come first, then all LDS writes, then the LDS reads where the author's reads
//! were: the loads overlap, and one barrier separates writes from reads. Two reads of one memory with the same layout share a buffer.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::facts::Geometry;
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::Locations;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeMap;
use crate::ir::types::AddressSpace;
use crate::ir::walk::{self, NodeList};

/// The pass; see the module.
pub fn promote_to_lds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    reject_writes_to_shared(world, root)?;
    let mut allocations = NodeList::new();
    let mut buffers = Buffers::default();
    for region in walk::regions(world, root) {
        buffers.truncate(0);
        promote_region(world, region, &mut buffers, &mut allocations)?;
    }
    if let Some(mut body) = world.get_mut::<Body>(root) {
        body.0.splice(0..0, allocations);
    }
    for node in walk::nodes(world, root) {
        if world.get::<Op>(node) == Some(&Op::Memory)
            && let Some(mut space) = world.get_mut::<Space>(node)
        {
            space.0 = AddressSpace::Global;
        }
    }
    Ok(())
}

fn is_shared_memory(world: &World, memory: Entity) -> bool {
    world.get::<Op>(memory) == Some(&Op::Memory)
        && world.get::<Space>(memory).is_some_and(|s| s.0 == AddressSpace::Shared)
}

fn reject_writes_to_shared(world: &World, root: Entity) -> Result<(), Diagnostic> {
    let locations = world.get::<Locations>(root).cloned().unwrap_or_default();
    for node in walk::nodes(world, root) {
        let (Some(Op::Write), Some(operands)) = (world.get::<Op>(node), world.get::<Operands>(node)) else {
            continue;
        };
        if is_shared_memory(world, operands.0[1]) {
            let name = world.get::<Name>(operands.0[1]).map_or("?", |n| &n.0);
            let at = |node: Entity| world.get::<Origin>(node).and_then(|o| locations.get(o.0));
            return Err(Diagnostic::invalid(format!("`{name}` is shared and written"))
                .at(at(node))
                .note("the memory is declared here", at(operands.0[1]))
                .help("declare memories that are written as global"));
        }
    }
    Ok(())
}

/// Buffers of a region by the memory that they hold a tile of, with the layout of their readers.
type Buffers = NodeMap<SmallVec<[(Placement, Entity); 1]>>;

fn promote_region(
    world: &mut World,
    region: Entity,
    buffers: &mut Buffers,
    allocations: &mut NodeList,
) -> PassResult {
    let nodes = walk::body(world, region);
    let (mut loads, mut stores) = (NodeList::new(), NodeList::new());
    let mut first = None;
    for (at, &node) in nodes.iter().enumerate() {
        if world.get::<Op>(node) != Some(&Op::Read) {
            continue;
        }
        let Some(memory) = world.get::<Operands>(node).map(|o| o.0[0]) else { continue };
        if !is_shared_memory(world, memory) {
            continue;
        }
        first.get_or_insert(at);
        let placement = world.get::<Placement>(node).cloned();
        let of_memory = buffers.get(memory).map(|buffers| &buffers[..]).unwrap_or_default();
        let shared = of_memory.iter().find(|b| Some(&b.0) == placement.as_ref()).map(|b| b.1);
        let buffer = match shared {
            Some(buffer) => buffer,
            None => {
                let [buffer, load, store] = stage(world, node, memory);
                allocations.push(buffer);
                loads.push(load);
                stores.push(store);
                if let Some(placement) = placement {
                    match buffers.get_mut(memory) {
                        Some(known) => known.push((placement, buffer)),
                        None => buffers.insert(memory, smallvec![(placement, buffer)]),
                    }
                }
                buffer
            }
        };
        if let Some(mut operands) = world.get_mut::<Operands>(node) {
            operands.0[0] = buffer;
        }
    }
    let (Some(first), Some(mut body)) = (first, world.get_mut::<Body>(region)) else { return Ok(()) };
    body.0.splice(first..first, loads.into_iter().chain(stores));
    Ok(())
}

/// The LDS buffer, the global read and the LDS write that feed the promoted read `node`.
fn stage(world: &mut World, node: Entity, memory: Entity) -> [Entity; 3] {
    let ty = world.get::<ValueType>(memory).cloned().unwrap_or_else(ValueType::unknown);
    let origin = world.get::<Origin>(node).copied().unwrap_or(Origin(u32::MAX));
    let tag = world.get::<Tag>(node).cloned();
    let none = || ValueType { dims: Dims::new(), dtype: None };
    let operands = |nodes: &[Entity]| Operands(SmallVec::from_slice(nodes));
    let space = Space(AddressSpace::Shared);
    let buffer = world.spawn((Op::Allocate, Operands::default(), ty.clone(), origin, space)).id();
    let load = world.spawn((Op::Read, operands(&[memory]), ty, origin)).id();
    let store = world.spawn((Op::Write, operands(&[load, buffer]), none(), origin)).id();
    if let Some(tag) = tag {
        world.entity_mut(load).insert(tag.clone());
        world.entity_mut(store).insert(tag);
    }
    [buffer, load, store]
}

/// Elements of each dimension of an LDS buffer: the workgroup's tile.
pub(super) fn workgroup_tile(
    geometry: &Geometry,
    dims: &[crate::ir::layout::Dim],
) -> Option<SmallVec<[u32; 4]>> {
    dims.iter().map(|&d| geometry.dim(d).workgroup_extent()).collect()
}
