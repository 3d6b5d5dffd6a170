//! What a value that is read at coordinates can be read from.

use bevy_ecs::prelude::*;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes;
use crate::ir::walk;

/// Memories that hold the same from the beginning of a kernel to its end.
pub(in crate::passes) struct ReadSources {
    /// Memories and buffers that the kernel writes.
    written: NodeSet,
}

impl ReadSources {
    pub(in crate::passes) fn of(world: &World, root: Entity) -> Result<ReadSources, Diagnostic> {
        let mut written = NodeSet::default();
        for node in walk::nodes(world, root) {
            if nodes::op(world, node)?.is_write() {
                written.insert(nodes::node(world, node)?.memory()?);
            }
        }
        Ok(ReadSources { written })
    }

    /// The memory of which a value is a plain read and which the kernel does not write, or else the value
    /// itself.
    pub(in crate::passes) fn source(&self, world: &World, value: Entity) -> Result<Entity, Diagnostic> {
        let node = nodes::node(world, value)?;
        let is_plain = world.get::<Mapping>(value).is_none()
            && world.get::<TurnedUnits>(value).is_none()
            && world.get::<MemoryAccessFlags>(value).is_none();
        if node.op.loads() && is_plain {
            let memory = node.memory()?;
            if nodes::op(world, memory)? == Op::Memory && !self.written.contains(memory) {
                return Ok(memory);
            }
        }
        Ok(value)
    }
}
