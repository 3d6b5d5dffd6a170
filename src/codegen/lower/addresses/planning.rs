//! Plans of accesses: which one an access has, where it is made, and what an expanded access takes of it.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::InstructionPiece;
use crate::codegen::isa::Operand;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::passes::loops::expand::Expansion;

impl AddressLayer<'_> {
    /// Prepares the addresses of an access, if that is still to be done; returns the operation of its memory.
    pub(crate) fn plan(&mut self, access: &ExpandedNodeItem) -> Result<Op, Diagnostic> {
        let (logical, memory) = (access.expansion()?.logical, access.memory()?);
        let memory_op = *self.get::<Op>(memory)?;
        match (access.op, memory_op) {
            (Op::GlobalToShared, _) => self.plan_load_to_lds(logical, access.operands.at(0)?, memory),
            (_, Op::Allocate) if self.kernel.world.get::<Mapping>(logical).is_some() => {
                self.plan_mapped_lds(logical, memory)
            }
            (_, Op::Allocate) => self.plan_lds(logical, memory),
            _ if self.kernel.world.get::<Mapping>(logical).is_some() => self.plan_mapped(logical, memory),
            _ => self.plan_global(logical, memory, None),
        }?;
        Ok(memory_op)
    }

    /// Prepares the addresses of all accesses of the body in front of it.
    pub(crate) fn plan_body(&mut self, node: Entity) -> Result<(), Diagnostic> {
        let mut last = None;
        let in_pipeline = self.loops.last().is_some_and(|open| open.pipeline);
        for &inner in &self.get::<Body>(node)?.0 {
            let expanded = self.expanded(inner)?;
            // Addresses that only the steady state of a pipeline, or a region under a condition, needs are
            // prepared in front of all of it.
            if (in_pipeline || matches!(expanded.op, Op::Conditional | Op::While)) && expanded.body.is_some()
            {
                self.plan_body(inner)?;
                continue;
            }
            if expanded.op.is_access() {
                let logical = expanded.expansion()?.logical;
                if last != Some(logical) {
                    self.plan(&expanded)?;
                    last = Some(logical);
                }
            }
        }
        Ok(())
    }

    /// Descriptor, elements per instruction and pieces of one expanded access of global memory.
    pub(crate) fn global_pieces(
        &mut self,
        node: Entity,
        expansion: Expansion,
        registers: u32,
        memory: Entity,
    ) -> Result<(Operand, u32, SmallVec<[InstructionPiece; 16]>), Diagnostic> {
        match self.is_mapped(expansion.logical) {
            true => self.mapped_pieces(node, expansion, registers),
            false => self.pieces_of(expansion, registers, memory),
        }
    }
}
