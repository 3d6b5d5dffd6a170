//! Values that are made again for the loads of tiles: those that say where rows are, because a lane loads
//! other rows than it reads. Loads that hold them alike share them, and what nobody uses any more is taken
//! out.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::distribute_loads::{innermost_row, rows_loaded};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Layout;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::walk::NodeList;
use crate::passes::facts::{Geometry, TurnedUnits};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::layout::element_layouts::projected;

/// A value that was made again for loads.
struct AgainMade {
    /// The node that it was made like, and itself.
    nodes: [Entity; 2],
    /// The layout that it will have, if that is known: loads that have it so share it.
    layout: Option<Layout>,
}

/// Values that are made again for loads.
#[derive(Default)]
pub(super) struct MadeAgain(Vec<AgainMade>);

impl MadeAgain {
    /// Values for the load of the tile of a read, which may lie in LDS as in the memory. Those without
    /// dimensions are what they are.
    pub(super) fn all_of(
        &mut self,
        editor: &mut KernelEditor<'_>,
        read: Entity,
        values: &[Entity],
        in_memory_order: bool,
    ) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
        let own = self.0.len();
        let loaded = if in_memory_order { loaded_by_rows(editor, read, values)? } else { None };
        let loaded = loaded.as_ref();
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
    pub(super) fn place(self, editor: &mut KernelEditor<'_>) -> Result<(), Bug> {
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
        self.take_out_unused(editor)
    }

    /// Takes out what was made again and has no other uses.
    fn take_out_unused(&self, editor: &mut KernelEditor<'_>) -> Result<(), Bug> {
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

/// How a tile is loaded that lies in LDS as in the memory, if values say where its rows are.
fn loaded_by_rows(
    editor: &KernelEditor<'_>,
    read: Entity,
    values: &[Entity],
) -> Result<Option<Layout>, Diagnostic> {
    let mut of_values = Dims::new();
    for &value in values {
        of_values.extend(editor.dims(value)?);
    }
    let ty = editor.node(read)?.ty;
    let rows = innermost_row(&ty.dims, &of_values);
    rows.map(|rows| rows_loaded(editor.kernel::<Geometry>()?, ty, rows)).transpose()
}
