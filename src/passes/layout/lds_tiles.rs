//! Reads of shared memories, as layouts see them: which of them go through LDS, and which are made once more
//! in another layout, where another value would have to be converted. Those are tiles of rows that stand
//! where values say. Of other tiles a second read gained nothing on the whole: gradients of keys and values
//! took 15 % more of the estimated time on gfx950.

use bevy_ecs::prelude::*;

use super::element_layouts::LayoutNodes;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::AddressSpace;
use crate::passes::analysis::tiles_of_values::{SeenNode, is_tile_of_rows};
use crate::passes::facts::{Geometry, TurnedUnits};

/// Of accesses their coordinates and flags, of memories their space and strides.
pub(super) type AccessedMemories<'w, 's> = Query<
    'w,
    's,
    (
        Option<&'static Mapping>,
        Option<&'static Space>,
        Option<&'static Strides>,
        Has<TurnedUnits>,
        Option<&'static MemoryAccessFlags>,
    ),
>;

/// The facts by which reads of shared memories are judged.
#[derive(Copy, Clone)]
pub(super) struct LdsTiles<'a, 'w, 's> {
    pub(super) nodes: &'a LayoutNodes<'w, 's>,
    pub(super) accessed: &'a AccessedMemories<'w, 's>,
    pub(super) geometry: &'a Geometry,
}

impl<'a> LdsTiles<'a, '_, '_> {
    /// True for a read of a shared memory whose tile goes through LDS: at coordinates that the workgroup has
    /// in common, or of rows that it can load together.
    pub(super) fn are_read_by(&self, read: Entity) -> Result<bool, Diagnostic> {
        let seen = self.see(read)?;
        if !seen.op.loads() || !self.is_shared(read)? {
            return Ok(false);
        }
        for &value in seen.values() {
            if !self.nodes.get(value)?.2.dims.is_empty() {
                return self.are_rows(read);
            }
        }
        Ok(true)
    }

    /// True for a read of rows that is made once more, out of LDS, where another layout is wanted: such a
    /// tile is loaded once, however it is multiplied.
    pub(super) fn are_read_again_by(&self, read: Entity) -> Result<bool, Diagnostic> {
        let (.., turns_units, _) = self.accessed.get(read)?;
        Ok(!turns_units && self.are_rows(read)?)
    }

    /// True for a read of rows that stand where values say, and that go through LDS: the values will be made
    /// again for the load.
    pub(super) fn are_rows(&self, read: Entity) -> Result<bool, Diagnostic> {
        let seen = self.see(read)?;
        if !seen.op.loads() || seen.values().is_empty() || !self.is_shared(read)? {
            return Ok(false);
        }
        let Some(mapping) = self.accessed.get(read)?.0 else { return Ok(false) };
        let strides = self.accessed.get(seen.operands[seen.operands.len() - 1])?.2;
        let see = |node: Entity| self.see(node);
        let mut is_of_all = true;
        for &value in seen.values() {
            is_of_all &= self.nodes.get(value)?.2.dims.is_empty();
        }
        Ok(!is_of_all && is_tile_of_rows(&seen, (mapping, strides), self.geometry, &see)?)
    }

    /// How many operands of a node, from the first on, are values that are spread as it is. Those that say
    /// where rows of a tile are will be made again.
    pub(super) fn values_held_alike(&self, node: Entity) -> Result<usize, Diagnostic> {
        Ok(if self.are_rows(node)? { 0 } else { self.see(node)?.values().len() })
    }

    fn is_shared(&self, read: Entity) -> Result<bool, Diagnostic> {
        let memory = self.nodes.get(read)?.1.last()?;
        let is_memory = *self.nodes.get(memory)?.0 == Op::Memory;
        Ok(is_memory && self.accessed.get(memory)?.1.is_some_and(|space| space.0 == AddressSpace::Shared))
    }

    fn see(&self, node: Entity) -> Result<SeenNode<'a>, Bug> {
        let lost = |_| Bug::new("a pass lost a node");
        let (&op, operands, ty, _) = self.nodes.get(node).map_err(lost)?;
        let flags = self.accessed.get(node).map_err(lost)?.4;
        let is_volatile = flags.is_some_and(|flags| flags.volatile);
        Ok(SeenNode { op, operands: &operands.0, ty, is_volatile })
    }
}
