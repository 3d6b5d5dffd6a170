//! Plans of accesses: who makes which, where they are made, and what an expanded access takes of its own.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{AddressedAccess, InstructionPieces, PlannedPieces, space_of};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::types::AddressSpace;

impl AddressLayer<'_> {
    /// Prepares the addresses of an access, if that is still to be done.
    pub(crate) fn plan(&mut self, access: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let logical = access.expansion()?.logical;
        if self.plans.get(logical).is_none() {
            let memory = access.memory()?;
            let in_lds = *self.get::<Op>(memory)? == Op::Allocate;
            let plan = if access.op.copies() {
                self.plan_load_to_lds(logical, access.operands.at(0)?, memory)
            } else if self.kernel.world.get::<Mapping>(logical).is_some() {
                self.plan_mapped(logical, memory)
            } else if in_lds {
                self.plan_lds(logical, memory)
            } else {
                self.plan_global(logical, memory, None)
            }?;
            self.plans.insert(logical, plan);
        }
        Ok(())
    }

    /// Prepares the addresses of all accesses of the body in front of it.
    pub(crate) fn plan_body(&mut self, node: Entity) -> Result<(), Diagnostic> {
        let mut last = None;
        let in_pipeline = self.loops.last().is_some_and(|open| open.pipeline);
        for &inner in &self.get::<Body>(node)?.0 {
            let expanded = self.expanded(inner)?;
            // Addresses that only the steady state of a pipeline, or a region under a condition, needs are
            // prepared in front of all of it.
            if (in_pipeline || expanded.op.runs_under_condition()) && expanded.body.is_some() {
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

    /// The space of the memory of a logical access.
    pub(crate) fn space_of(&self, logical: Entity) -> Result<AddressSpace, Diagnostic> {
        Ok(space_of(self.plan_of(logical)?.descriptor))
    }

    /// Elements that a lane has of each expanded access of a logical one.
    pub(crate) fn elements_of(&self, logical: Entity) -> Result<u32, Diagnostic> {
        Ok(self.plan_of(logical)?.elements)
    }

    /// True if the coordinates of an access are expressions.
    pub(crate) fn is_mapped(&self, logical: Entity) -> Result<bool, Diagnostic> {
        Ok(matches!(self.plan_of(logical)?.pieces, PlannedPieces::Mapped(_)))
    }

    /// Descriptor, width and pieces of one expanded access, in the iteration that it belongs to.
    pub(crate) fn addressed(&mut self, access: &ExpandedNodeItem) -> Result<AddressedAccess, Diagnostic> {
        let expansion = access.expansion()?;
        let plan = self.plan_of(expansion.logical)?;
        let (descriptor, granule, repeats) = (plan.descriptor, plan.granule, plan.repeats);
        let count = (plan.elements / granule) as usize;
        let own = expansion.replica as usize * count..(expansion.replica as usize + 1) * count;
        let (advances, is_fill) = (plan.advances, plan.fill.is_some());
        let mut pieces = InstructionPieces::new();
        let mut mapped = Vec::new();
        match &plan.pieces {
            PlannedPieces::Tile(planned) => pieces = planned[own].into(),
            PlannedPieces::Mapped(planned) => mapped = planned[own].to_vec(),
        }
        if !mapped.is_empty() {
            let operands = &access.operands.0;
            let others = &operands[access.op.values_in_front()..operands.len() - 1];
            let late = LateFacts { iteration: expansion.iteration, operands: SmallVec::from_slice(others) };
            for piece in &mapped {
                let piece = match descriptor {
                    Some(_) => self.piece_in_memory(piece, &late)?,
                    None => self.piece_in_lds(piece, &late)?,
                };
                pieces.push(piece);
            }
        }
        if descriptor.is_none() {
            let copy = self.copy_offset(access.memory()?, expansion.iteration)?;
            for piece in &mut pieces {
                match copy {
                    Scalar::Const(bytes) => piece.immediate += bytes as u32,
                    Scalar::Reg(_) => piece.offset = self.moved_address(piece.offset, copy),
                }
                (piece.offset, piece.immediate) = self.within_reach(piece.offset, piece.immediate);
            }
        } else if advances {
            let memory = if is_fill { access.operands.at(0)? } else { access.memory()? };
            let offset = self.iteration_offset(memory, expansion.iteration)?;
            pieces.iter_mut().for_each(|piece| piece.scalar_offset = offset);
        }
        Ok(AddressedAccess { descriptor, granule, repeats, pieces })
    }
}
