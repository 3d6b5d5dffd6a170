//! Promotion: a read of a shared memory becomes a global read, a write to an LDS buffer and a read of that
//! buffer.
//!
//! In each region all global reads of promoted tiles come first, then all LDS writes, then the LDS reads
//! where the author's reads were: the loads overlap, and one barrier separates writes from reads. Two reads
//! of one memory with the same layout share a buffer.
//!
//! Coordinates may be made of values without dimensions, which the workgroup has in common. Reads whose
//! coordinates are made of others, and volatile ones, stay reads of global memory; the report says which, and
//! [`Deny::UnsharedReads`](crate::passes::options::Deny) refuses them.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::reasons::UnsharedReason;
use crate::ir::types::AddressSpace;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::facts::Unshared;
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It makes nodes and looks at them again, so it takes the whole world.
pub(crate) fn promote_to_lds(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut buffers = Buffers::default();
    for region in editor.regions() {
        buffers.truncate(0);
        promote_region(&mut editor, region, &mut buffers)?;
    }
    editor.place_buffers()?;
    for node in editor.body(editor.root()) {
        if editor.op(node)? == Op::Memory {
            editor.attach(node, Space(AddressSpace::Global));
        }
    }
    Ok(())
}

/// Why a read of a shared memory stays one of global memory. Loads come before what is computed `after` the
/// first of them.
fn why_global(
    editor: &KernelEditor<'_>,
    read: Entity,
    values: &[Entity],
    after: &[Entity],
) -> Result<Option<UnsharedReason>, Bug> {
    if editor.get::<MemoryAccessFlags>(read).is_some_and(|flags| flags.volatile) {
        return Ok(Some(UnsharedReason::Volatile));
    }
    for &value in values {
        if after.contains(&value) || !editor.dims(value)?.is_empty() {
            return Ok(Some(UnsharedReason::Values));
        }
    }
    Ok(None)
}

/// True for a shared memory, which a buffer of the author is not.
fn is_shared(op: Op, space: Option<&Space>) -> bool {
    op == Op::Memory && space.is_some_and(|space| space.0 == AddressSpace::Shared)
}

/// The fault of a write to a shared memory.
fn shared_and_written(editor: &KernelEditor<'_>, write: Entity, memory: Entity) -> Result<Diagnostic, Bug> {
    let name = &editor.fact::<Name>(memory, "a memory without name")?.0;
    Ok(Diagnostic::invalid(format!("`{name}` is shared and written"))
        .at(editor.location(write))
        .note("the memory is declared here", editor.location(memory))
        .help("declare memories that are written as global"))
}

/// Buffers of a region by the memory that they hold a tile of.
type Buffers = NodeMap<SmallVec<[PromotedBuffer; 1]>>;

/// A buffer, the layout of its readers, and the mapping by which it is loaded, with the values in it.
struct PromotedBuffer {
    placement: Placement,
    mapping: Option<Mapping>,
    values: SmallVec<[Entity; 2]>,
    flags: MemoryAccessFlags,
    node: Entity,
}

fn promote_region(editor: &mut KernelEditor<'_>, region: Entity, buffers: &mut Buffers) -> PassResult {
    let mut body = editor.body(region);
    let (mut loads, mut stores) = (NodeList::new(), NodeList::new());
    let mut first = None;
    for (at, &read) in body.iter().enumerate() {
        let (op, node) = (editor.op(read)?, editor.node(read)?);
        if !matches!(op, Op::Read | Op::Write) {
            continue;
        }
        let memory = node.memory()?;
        if !is_shared(editor.op(memory)?, editor.get(memory)) {
            continue;
        }
        if op.is_write() {
            return Err(shared_and_written(editor, read, memory)?);
        }
        // All operands but the memory are values of coordinates.
        let values: SmallVec<[Entity; 2]> =
            node.operands.0.iter().copied().filter(|&o| o != memory).collect();
        if let Some(why) = why_global(editor, read, &values, &body[first.unwrap_or(at)..])? {
            editor.attach(read, Unshared(why));
            continue;
        }
        first.get_or_insert(at);
        let placement = editor.fact::<Placement>(read, "a read without layout")?;
        let mapping = editor.get::<Mapping>(read);
        let flags = editor.get::<MemoryAccessFlags>(read).copied().unwrap_or_default();
        let is_mapped = mapping.is_some();
        let of_memory = buffers.get(memory).map(|buffers| &buffers[..]).unwrap_or_default();
        let is_same = |b: &&PromotedBuffer| {
            (&b.placement, b.mapping.as_ref(), &b.values, b.flags) == (placement, mapping, &values, flags)
        };
        let buffer = match of_memory.iter().find(is_same).map(|b| b.node) {
            Some(buffer) => buffer,
            None => {
                let (placement, mapping) = (placement.clone(), mapping.cloned());
                let [node, load, store] = stage(editor, read, memory, &values)?;
                loads.push(load);
                stores.push(store);
                let buffer = PromotedBuffer { placement, mapping, values, flags, node };
                match buffers.get_mut(memory) {
                    Some(known) => known.push(buffer),
                    None => buffers.insert(memory, smallvec![buffer]),
                }
                node
            }
        };
        editor.turn_into(read, Op::Read, &[buffer]);
        editor.take::<MemoryAccessFlags>(read);
        if is_mapped {
            // The buffer has the dimensions of the value.
            editor.take::<Mapping>(read);
        }
    }
    if let Some(first) = first {
        body.insert_many(first, loads.into_iter().chain(stores));
        editor.set_body(region, &body);
    }
    Ok(())
}

/// The LDS buffer, the global read and the LDS write that feed a promoted read.
fn stage(
    editor: &mut KernelEditor<'_>,
    read: Entity,
    memory: Entity,
    values: &[Entity],
) -> Result<[Entity; 3], Bug> {
    editor.model_on(read)?;
    // A tile of the value, which is the memory's own tile where no mapping says otherwise.
    let of = if editor.get::<Mapping>(read).is_some() { read } else { memory };
    let ty = editor.node(of)?.ty.clone();
    let buffer = editor.add_buffer(ty.clone());
    let operands: SmallVec<[Entity; 3]> = values.iter().copied().chain([memory]).collect();
    let load = editor.make(Op::Read, &operands, ty, ());
    let store = editor.make(Op::Write, &[load, buffer], ValueType::unknown(), ());
    editor.copy::<Mapping>(read, load);
    editor.copy::<MemoryAccessFlags>(read, load);
    editor.copy::<Tag>(read, load);
    editor.copy::<Tag>(read, store);
    Ok([buffer, load, store])
}
