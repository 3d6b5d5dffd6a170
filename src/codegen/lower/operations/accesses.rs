//! Accesses to memory: which of the ways to load, store and update one takes.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;

impl OperationLayer<'_> {
    /// Writes an access to memory.
    pub(crate) fn access(&mut self, node: Entity, expanded: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let operands = &expanded.operands.0[..];
        let (memory, expansion) = (expanded.memory()?, expanded.expansion()?);
        let in_lds = self.plan(expanded)? == Op::Allocate;
        if let Op::Atomic(op) = *expanded.op {
            let values = &operands[..op.values()];
            return match in_lds {
                true => self.atomic_lds(node, op, expansion, values, memory),
                false => self.atomic(node, op, expansion, values, memory),
            };
        }
        if *expanded.op == Op::GlobalToShared {
            return self.load_to_lds(expansion, operands[0], operands[1]);
        }
        match (expanded.op.is_write(), in_lds) {
            (false, true) if self.is_mapped_in_lds(expansion.logical) => {
                self.read_lds_mapped(node, expansion, memory)
            }
            (true, true) if self.is_mapped_in_lds(expansion.logical) => {
                self.write_lds_mapped(node, expansion, operands[0], memory)
            }
            (false, true) => self.read_lds(node, expansion, memory),
            (false, false) => self.load_global(node, expansion, memory),
            (true, true) => self.write_lds(expansion, operands[0], memory),
            (true, false) => self.store_global(node, expansion, operands[0], memory),
        }
    }
}
