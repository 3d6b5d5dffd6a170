//! What a value that is read at coordinates can be read from.

use bevy_ecs::prelude::*;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::facts::TurnedUnits;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::Bug;
use crate::passes::kernel_editor::KernelEditor;

/// Memories that hold the same from the beginning of a kernel to its end.
pub(in crate::passes) struct ReadSources {
    /// Memories and buffers that the kernel writes.
    written: NodeSet,
}

impl ReadSources {
    pub(in crate::passes) fn of(editor: &KernelEditor<'_>) -> Result<ReadSources, Bug> {
        let mut written = NodeSet::default();
        for node in editor.nodes() {
            if editor.op(node)?.is_write() {
                written.insert(editor.node(node)?.memory()?);
            }
        }
        Ok(ReadSources { written })
    }

    /// The memory of which a value is a read at coordinates without values, and which the kernel does not
    /// write.
    pub(in crate::passes) fn mapped(
        &self,
        editor: &KernelEditor<'_>,
        value: Entity,
    ) -> Result<Option<Entity>, Bug> {
        let node = editor.node(value)?;
        let is_mapped = *node.op == Op::Read
            && node.operands.0.len() == 1
            && editor.get::<Mapping>(value).is_some()
            && editor.get::<TurnedUnits>(value).is_none()
            && editor.get::<MemoryAccessFlags>(value).is_none();
        if !is_mapped {
            return Ok(None);
        }
        let memory = node.memory()?;
        Ok((editor.op(memory)? == Op::Memory && !self.written.contains(memory)).then_some(memory))
    }

    /// The memory of which a value is a plain read and which the kernel does not write, or else the value
    /// itself.
    pub(in crate::passes) fn source(&self, editor: &KernelEditor<'_>, value: Entity) -> Result<Entity, Bug> {
        let node = editor.node(value)?;
        let is_plain = editor.get::<Mapping>(value).is_none()
            && editor.get::<TurnedUnits>(value).is_none()
            && editor.get::<MemoryAccessFlags>(value).is_none();
        if *node.op == Op::Read && is_plain {
            let memory = node.memory()?;
            if editor.op(memory)? == Op::Memory && !self.written.contains(memory) {
                return Ok(memory);
            }
        }
        Ok(value)
    }
}
