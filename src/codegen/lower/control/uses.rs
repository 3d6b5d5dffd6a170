//! How often values are used, and the tables by entity index.

use bevy_ecs::prelude::*;

use super::ControlLayer;
use crate::codegen::lower::values::places::NodeValue;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;

impl ControlLayer<'_> {
    /// Counts how often each expanded value is used, and sizes the tables by entity index.
    pub(crate) fn count_uses(&mut self, root: Entity) -> Result<(), Diagnostic> {
        let size = self.count_uses_below(root)?.max(self.places.of_nodes.len());
        self.places.of_nodes.resize(size, NodeValue::default());
        self.places.unfinished.resize(size, Vec::new());
        Ok(())
    }

    /// The same for a region; one more than the largest entity index in it.
    fn count_uses_below(&mut self, region: Entity) -> Result<usize, Diagnostic> {
        let mut size = 0;
        for &node in &self.get::<Body>(region)?.0 {
            size = size.max(node.index_u32() as usize + 1);
            let expanded = self.first_seen(node)?;
            self.kernel.multiplies |= expanded.op.is_product();
            self.count_all(&expanded.operands.0);
            if expanded.body.is_some() {
                self.count_all(&self.get::<Yields>(node)?.0);
                size = size.max(self.count_uses_below(node)?);
            }
        }
        Ok(size)
    }

    fn count_all(&mut self, values: &[Entity]) {
        for value in values {
            let index = value.index_u32() as usize;
            if index >= self.places.of_nodes.len() {
                self.places.of_nodes.resize(index + 1, NodeValue::default());
            }
            self.places.of_nodes[index].uses += 1;
        }
    }
}
