//! How often values are used, and the tables by entity index.

use bevy_ecs::prelude::*;

use super::ControlLayer;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;

impl ControlLayer<'_> {
    /// Counts how often each expanded value is used, and sizes the tables by entity index.
    pub(crate) fn count_uses(&mut self, root: Entity) -> Result<(), Diagnostic> {
        let size = self.count_uses_below(root)?.max(self.places.uses.len());
        self.places.uses.resize(size, 0);
        self.places.of_nodes.resize(size, None);
        self.places.unfinished.resize(size, Vec::new());
        Ok(())
    }

    /// The same for a region; one more than the largest entity index in it.
    fn count_uses_below(&mut self, region: Entity) -> Result<usize, Diagnostic> {
        let mut size = 0;
        for &node in &self.get::<Body>(region)?.0 {
            size = size.max(node.index_u32() as usize + 1);
            let expanded = self.first_seen(node)?;
            self.kernel.multiplies |= matches!(expanded.op, Op::Mma(_) | Op::ScaledMma(_));
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
            if index >= self.places.uses.len() {
                self.places.uses.resize(index + 1, 0);
            }
            self.places.uses[index] += 1;
        }
    }
}
