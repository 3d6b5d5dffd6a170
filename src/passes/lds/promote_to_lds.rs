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

use super::distribute_loads::{innermost_row, rows_loaded, takes_memory_order};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Layout;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::reasons::UnsharedReason;
use crate::ir::types::AddressSpace;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::tiles_of_values::{SeenNode, is_tile_of_rows};
use crate::passes::facts::{Geometry, Settings, TurnedUnits, Unshared};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::layout::element_layouts::projected;

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

/// Whether some of the values in coordinates differ from row to row.
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

/// A buffer, the layout of its readers, and the mapping by which it is loaded, with the values in it.
struct PromotedBuffer {
    placement: Placement,
    /// Whether such readers take a tile as it lies in the memory.
    in_memory_order: bool,
    mapping: Option<Mapping>,
    values: SmallVec<[Entity; 2]>,
    flags: MemoryAccessFlags,
    node: Entity,
}

fn promote_region(
    editor: &mut KernelEditor<'_>,
    region: Entity,
    buffers: &mut Buffers,
    again: &mut MadeAgain,
) -> PassResult {
    let mut body = editor.body(region);
    let (mut loads, mut stores) = (NodeList::new(), NodeList::new());
    let mut first = None;
    // Loads whose values are there only after others have begun, and their places in the body.
    let mut late: SmallVec<[(usize, [Entity; 2]); 2]> = SmallVec::new();
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
        let ty = node.ty.clone();
        let after = &body[first.unwrap_or(at)..];
        if let Some(why) = why_global(editor, read, &values, after)? {
            editor.attach(read, Unshared(why));
            continue;
        }
        let is_late = values.iter().any(|value| after.contains(value));
        if !is_late {
            first.get_or_insert(at);
        }
        let placement = editor.fact::<Placement>(read, "a read without layout")?;
        let mapping = editor.get::<Mapping>(read);
        let flags = editor.get::<MemoryAccessFlags>(read).copied().unwrap_or_default();
        let is_mapped = mapping.is_some();
        let of_memory = buffers.get(memory).map(|buffers| &buffers[..]).unwrap_or_default();
        let target = editor.kernel::<Settings>()?.0.target();
        let turns_units = editor.get::<TurnedUnits>(read).is_some();
        let in_memory_order = !turns_units && takes_memory_order(target, &ty, &placement.0);
        let is_same = |b: &&PromotedBuffer| {
            (b.mapping.as_ref(), &b.values, b.flags) == (mapping, &values, flags)
                && (b.placement == *placement || b.in_memory_order && in_memory_order)
        };
        let buffer = match of_memory.iter().find(is_same).map(|b| b.node) {
            Some(buffer) => buffer,
            None => {
                let (placement, mapping) = (placement.clone(), mapping.cloned());
                let loaded = match in_memory_order {
                    true => loaded_by_rows(editor, &ty, &values)?,
                    false => None,
                };
                let values_again = again.all_of(editor, &values, loaded.as_ref())?;
                let [node, load, store] = stage(editor, read, memory, &values_again)?;
                if is_late {
                    late.push((at, [load, store]));
                } else {
                    loads.push(load);
                    stores.push(store);
                }
                let buffer = PromotedBuffer { placement, in_memory_order, mapping, values, flags, node };
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
    let changes = first.is_some() || !late.is_empty();
    for (at, pair) in late.into_iter().rev() {
        body.insert_many(at, pair);
    }
    if let Some(first) = first {
        body.insert_many(first, loads.into_iter().chain(stores));
    }
    if changes {
        editor.set_body(region, &body);
    }
    Ok(())
}

/// How a tile is loaded that lies in LDS as in the memory, if values say where its rows are.
fn loaded_by_rows(
    editor: &KernelEditor<'_>,
    ty: &ValueType,
    values: &[Entity],
) -> Result<Option<Layout>, Diagnostic> {
    let mut of_values = Dims::new();
    for &value in values {
        of_values.extend(editor.dims(value)?);
    }
    let rows = innermost_row(&ty.dims, &of_values);
    rows.map(|rows| rows_loaded(editor.kernel::<Geometry>()?, ty, rows)).transpose()
}

/// A value that was made again for loads.
struct AgainMade {
    /// What it was made like, and itself.
    nodes: [Entity; 2],
    /// The layout that it will have, if that is known: loads that have it so share it.
    layout: Option<Layout>,
}

/// Values that are made again for loads.
#[derive(Default)]
struct MadeAgain(Vec<AgainMade>);

impl MadeAgain {
    /// Values for one load, which loads a tile so if that is known. Those without dimensions are what they
    /// are.
    fn all_of(
        &mut self,
        editor: &mut KernelEditor<'_>,
        values: &[Entity],
        loaded: Option<&Layout>,
    ) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
        let own = self.0.len();
        values.iter().map(|&value| self.of(editor, value, loaded, own)).collect()
    }

    /// One of them; values from number `own` on were made for the load itself.
    fn of(
        &mut self,
        editor: &mut KernelEditor<'_>,
        value: Entity,
        loaded: Option<&Layout>,
        own: usize,
    ) -> Result<Entity, Diagnostic> {
        let dims = editor.dims(value)?;
        if dims.is_empty() {
            return Ok(value);
        }
        let layout = loaded.map(|loaded| projected(loaded, &dims)).transpose()?;
        let is_it = |(at, made): &(usize, &AgainMade)| {
            made.nodes[0] == value && (*at >= own || layout.is_some() && made.layout == layout)
        };
        if let Some((_, known)) = self.0.iter().enumerate().find(is_it) {
            return Ok(known.nodes[1]);
        }
        let NodeItem { op, operands, .. } = editor.node(value)?;
        let (op, mut operands) = (*op, operands.0.clone());
        let values = operands.len() - usize::from(op.is_access());
        for operand in &mut operands[..values] {
            *operand = self.of(editor, *operand, loaded, own)?;
        }
        if op == Op::Rearrange {
            // Where its elements are does not matter.
            return Ok(operands[0]);
        }
        let again = editor.make_like(value)?;
        editor.turn_into(again, op, &operands);
        editor.copy::<Mapping>(value, again);
        editor.copy::<MemoryAccessFlags>(value, again);
        editor.copy::<TurnedUnits>(value, again);
        editor.copy::<Tag>(value, again);
        self.0.push(AgainMade { nodes: [value, again], layout });
        Ok(again)
    }

    /// Puts each value behind the one that it was made like, which stays if it has other uses.
    fn place(self, editor: &mut KernelEditor<'_>) -> Result<(), Bug> {
        if self.0.is_empty() {
            return Ok(());
        }
        for region in editor.regions() {
            let mut body = NodeList::new();
            for node in editor.body(region) {
                body.push(node);
                body.extend(self.0.iter().filter(|made| made.nodes[0] == node).map(|made| made.nodes[1]));
            }
            editor.set_body(region, &body);
        }
        // Users come after what they use, and were made again before it.
        let mut uses = editor.use_counts()?;
        let mut unused = NodeSet::default();
        let nodes = editor.nodes();
        for &node in nodes.iter().rev() {
            let was_made_again = self.0.iter().any(|made| made.nodes[0] == node);
            if was_made_again && uses.get(node).is_none_or(|&uses| uses == 0) {
                unused.insert(node);
                for &operand in &editor.node(node)?.operands.0 {
                    if let Some(uses) = uses.get_mut(operand) {
                        *uses -= 1;
                    }
                }
            }
        }
        for region in editor.regions() {
            let mut body = editor.body(region);
            body.retain(|node| !unused.contains(*node));
            editor.set_body(region, &body);
        }
        Ok(())
    }
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
