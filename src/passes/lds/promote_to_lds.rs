//! Promotion: a read of a shared memory becomes a global read, a write to an LDS buffer and a read of that
//! buffer.
//!
//! In each region all global reads of promoted tiles come first, then all LDS writes, then the LDS reads
//! where the author's reads were: the loads overlap, and one barrier separates writes from reads. Two reads
//! of one memory with the same layout share a buffer.
//!
//! Coordinates may be made of values without dimensions, which the workgroup has in common. Where values with
//! dimensions say where the rows of a tile are, these are made again for the load, right after they were made
//! for the read: a lane loads other rows than it reads. `distribute_loads` gives them their layout. Reads
//! whose coordinates are made of others (`tiles_of_values`), and volatile ones, stay reads of global memory;
//! the report says which, and [`Deny::UnsharedReads`](crate::passes::options::Deny) refuses them.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::distribute_loads::takes_memory_order;
use super::made_again::MadeAgain;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::{Name, *};
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::reasons::UnsharedReason;
use crate::ir::types::AddressSpace;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::tiles_of_values::{SeenNode, is_tile_of_rows};
use crate::passes::facts::{Geometry, Settings, TurnedUnits, Unshared};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It makes nodes and looks at them again, so it takes the whole world.
pub(crate) fn promote_to_lds(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut buffers = Buffers::default();
    let mut again = MadeAgain::default();
    for region in editor.regions() {
        buffers.truncate(0);
        promote_region(&mut editor, region, &mut buffers, &mut again)?;
    }
    again.place(&mut editor)?;
    editor.place_buffers()?;
    for node in editor.body(editor.root()) {
        if editor.op(node)? == Op::Memory {
            editor.attach(node, Space(AddressSpace::Global));
        }
    }
    Ok(())
}

/// Why a read of a shared memory stays one of global memory. Loads come before what is computed `after` the
/// first of them; those of rows that stand where values say need not.
fn why_global(
    editor: &KernelEditor<'_>,
    read: Entity,
    values: &[Entity],
    after: &[Entity],
) -> Result<Option<UnsharedReason>, Bug> {
    if is_volatile(editor, read) {
        return Ok(Some(UnsharedReason::Volatile));
    }
    let is_shared = if of_rows(editor, values)? {
        let memory = editor.node(read)?.memory()?;
        let mapping = editor.fact::<Mapping>(read, "a read at values without coordinates")?;
        let at = (mapping, editor.get::<Strides>(memory));
        let seen = |node: Entity| see(editor, node);
        is_tile_of_rows(&seen(read)?, at, editor.kernel::<Geometry>()?, &seen)?
    } else {
        !values.iter().any(|value| after.contains(value))
    };
    Ok((!is_shared).then_some(UnsharedReason::Values))
}

/// True if some of the values in coordinates differ from row to row.
fn of_rows(editor: &KernelEditor<'_>, values: &[Entity]) -> Result<bool, Bug> {
    for &value in values {
        if !editor.dims(value)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_volatile(editor: &KernelEditor<'_>, access: Entity) -> bool {
    editor.get::<MemoryAccessFlags>(access).is_some_and(|flags| flags.volatile)
}

fn see<'a>(editor: &'a KernelEditor<'_>, node: Entity) -> Result<SeenNode<'a>, Bug> {
    let NodeItem { op, operands, ty, .. } = editor.node(node)?;
    Ok(SeenNode { op: *op, operands: &operands.0, ty, is_volatile: is_volatile(editor, node) })
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

/// A buffer, and the read that it was made for.
struct PromotedBuffer {
    read: PromotedRead,
    node: Entity,
}

/// A read of a tile: the layout of its value, and the mapping by which it is loaded, with the values in it.
struct PromotedRead {
    placement: Placement,
    /// True if it takes a tile of rows that stand where values say as that lies in the memory.
    in_memory_order: bool,
    mapping: Option<Mapping>,
    values: SmallVec<[Entity; 2]>,
    flags: MemoryAccessFlags,
}

impl PromotedRead {
    fn of(
        editor: &KernelEditor<'_>,
        read: Entity,
        values: SmallVec<[Entity; 2]>,
    ) -> Result<PromotedRead, Bug> {
        let placement = editor.fact::<Placement>(read, "a read without layout")?.clone();
        let target = editor.kernel::<Settings>()?.0.target();
        let turns_units = editor.get::<TurnedUnits>(read).is_some();
        let ty = editor.node(read)?.ty;
        let is_of_rows = !turns_units && of_rows(editor, &values)?;
        let in_memory_order = is_of_rows && takes_memory_order(target, ty, &placement.0);
        let mapping = editor.get::<Mapping>(read).cloned();
        let flags = editor.get::<MemoryAccessFlags>(read).copied().unwrap_or_default();
        Ok(PromotedRead { placement, in_memory_order, mapping, values, flags })
    }

    /// True if two reads of one memory share a buffer.
    fn shares_with(&self, other: &PromotedRead) -> bool {
        (&self.mapping, &self.values, self.flags) == (&other.mapping, &other.values, other.flags)
            && (self.placement == other.placement || self.in_memory_order && other.in_memory_order)
    }
}

/// The loads of a region, and the writes of what they bring.
#[derive(Default)]
struct RegionLoads {
    /// The places of those that come together.
    first: Option<usize>,
    loads: NodeList,
    stores: NodeList,
    /// Loads whose values are there only after others have begun, and their places in the body.
    late: SmallVec<[(usize, [Entity; 2]); 2]>,
}

impl RegionLoads {
    /// Puts all of them into the body of the region.
    fn place(self, editor: &mut KernelEditor<'_>, region: Entity, mut body: NodeList) {
        if self.first.is_none() && self.late.is_empty() {
            return;
        }
        for (at, pair) in self.late.into_iter().rev() {
            body.insert_many(at, pair);
        }
        if let Some(first) = self.first {
            body.insert_many(first, self.loads.into_iter().chain(self.stores));
        }
        editor.set_body(region, &body);
    }
}

/// The shared memory that a node reads.
fn shared_memory(editor: &KernelEditor<'_>, access: Entity) -> Result<Option<Entity>, Diagnostic> {
    let op = editor.op(access)?;
    if !matches!(op, Op::Read | Op::Write) {
        return Ok(None);
    }
    let memory = editor.node(access)?.memory()?;
    if !is_shared(editor.op(memory)?, editor.get(memory)) {
        return Ok(None);
    }
    if op.is_write() {
        return Err(shared_and_written(editor, access, memory)?);
    }
    Ok(Some(memory))
}

fn promote_region(
    editor: &mut KernelEditor<'_>,
    region: Entity,
    buffers: &mut Buffers,
    again: &mut MadeAgain,
) -> PassResult {
    let body = editor.body(region);
    let mut found = RegionLoads::default();
    for (at, &read) in body.iter().enumerate() {
        let Some(memory) = shared_memory(editor, read)? else { continue };
        // All operands but the memory are values of coordinates.
        let operands = &editor.node(read)?.operands.0;
        let values: SmallVec<[Entity; 2]> = operands.iter().copied().filter(|&o| o != memory).collect();
        let after = &body[found.first.unwrap_or(at)..];
        if let Some(why) = why_global(editor, read, &values, after)? {
            editor.attach(read, Unshared(why));
            continue;
        }
        let is_late = values.iter().any(|value| after.contains(value));
        if !is_late {
            found.first.get_or_insert(at);
        }
        let tile = PromotedRead::of(editor, read, values)?;
        let of_memory = buffers.get(memory).map(|buffers| &buffers[..]).unwrap_or_default();
        let known = of_memory.iter().find(|buffer| buffer.read.shares_with(&tile));
        let buffer = match known.map(|buffer| buffer.node) {
            Some(buffer) => buffer,
            None => {
                let values = again.all_of(editor, read, &tile.values, tile.in_memory_order)?;
                let [node, load, store] = stage(editor, read, memory, &values)?;
                if is_late {
                    found.late.push((at, [load, store]));
                } else {
                    found.loads.push(load);
                    found.stores.push(store);
                }
                let buffer = PromotedBuffer { read: tile, node };
                match buffers.get_mut(memory) {
                    Some(known) => known.push(buffer),
                    None => buffers.insert(memory, smallvec![buffer]),
                }
                node
            }
        };
        editor.turn_into(read, Op::Read, &[buffer]);
        editor.take::<MemoryAccessFlags>(read);
        // The buffer has the dimensions of the value.
        editor.take::<Mapping>(read);
    }
    found.place(editor, region, body);
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
