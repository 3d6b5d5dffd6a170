//! Addresses of accesses of LDS at coordinates.
//!
//! As in global memory, the address of an element is an expression over places and operands, an access is as
//! wide as the algebra proves, and what may be outside has conditions.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::mapped_values::LateFacts;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprError};
use crate::ir::node::*;
use crate::passes::facts::LdsBuffer;
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;
use crate::passes::loops::expand::Expansion;

/// How the pieces of one logical access of LDS are addressed.
#[derive(Clone, Debug)]
pub(super) struct MappedLdsPlan {
    /// Consecutive elements per instruction.
    granule: u32,
    /// One per replica and piece; the pieces of a replica are adjacent.
    pieces: Vec<MappedLdsPiece>,
}

/// One instruction's part of an access.
#[derive(Clone, Debug)]
struct MappedLdsPiece {
    /// The part of the address in the register.
    address: Expr,
    immediate: u32,
    /// `0 <= a < b` has to hold of each pair.
    conditions: SmallVec<[(Expr, Expr); 4]>,
}

/// A piece whose address is in a register.
pub(crate) struct AddressedPiece {
    pub(crate) address: Operand,
    pub(crate) immediate: u32,
    /// The lanes that take part, if not all of them certainly do.
    pub(crate) mask: Option<Operand>,
}

impl AddressLayer<'_> {
    /// Makes the plan of an access of LDS at coordinates at this point of the code.
    pub(crate) fn plan_mapped_lds(&mut self, node: Entity, memory: Entity) -> Result<(), Diagnostic> {
        if self.mapped_lds_plans.get(node).is_some() {
            return Ok(());
        }
        let bytes = self.element_bytes(memory)?;
        let &LdsBuffer { offset, bytes: size, .. } = self.get::<LdsBuffer>(memory)?;
        let access = self.mapped_access(node, memory)?;
        let is_atomic = matches!(self.get::<Op>(node)?, Op::Atomic(_));
        let mut widest = if is_atomic { (4 / bytes).max(1) } else { MAX_ACCESS_BYTES / bytes };
        let (granule, drafts) = loop {
            let (granule, drafts, _) = self.drafts(&access, bytes, widest).map_err(|e| self.unmappable(e))?;
            // LDS wants more than dwords of its widest accesses: those that are not aligned take many turns.
            let aligned = |draft: &super::mapped::MappedDraft| {
                self.arena.is_multiple_of(draft.address, i64::from(granule * bytes))
            };
            if granule * bytes <= 4 || drafts.iter().all(aligned) {
                break (granule, drafts);
            }
            widest = granule / 2;
        };
        let mut pieces = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let (address, constant) = self.split_lds(draft.address, size).map_err(|e| self.unmappable(e))?;
            pieces.push(MappedLdsPiece {
                address,
                immediate: offset + constant,
                conditions: draft.conditions,
            });
        }
        if !self.loops.is_empty() {
            for piece in &pieces {
                self.prepare(piece.address)?;
                for &(coordinate, _) in &piece.conditions {
                    self.prepare(coordinate)?;
                }
            }
        }
        self.mapped_lds_plans.insert(node, MappedLdsPlan { granule, pieces });
        Ok(())
    }

    /// What of an address in a buffer of so many bytes goes into a register, and what is added to it by the
    /// instruction: a constant, if the rest is certainly not negative without it.
    fn split_lds(&mut self, address: Expr, bytes: u32) -> Result<(Expr, u32), ExprError> {
        let constant = self.arena.constant(address);
        let fits = *constant.denom() == 1 && (0..i64::from(bytes)).contains(constant.numer());
        if fits {
            let whole = self.arena.int(*constant.numer());
            let rest = self.arena.sub(address, whole)?;
            if self.arena.range(rest).at_least(0) {
                return Ok((rest, *constant.numer() as u32));
            }
        }
        Ok((address, 0))
    }

    /// Whether an access has a plan of this kind.
    pub(crate) fn is_mapped_in_lds(&self, logical: Entity) -> bool {
        self.mapped_lds_plans.get(logical).is_some()
    }

    /// Elements per instruction and the pieces of one expanded access.
    pub(crate) fn mapped_lds_pieces(
        &mut self,
        node: Entity,
        expansion: Expansion,
        registers: u32,
    ) -> Result<(u32, Vec<AddressedPiece>), Diagnostic> {
        let plan = self.mapped_lds_plans.get(expansion.logical);
        let plan = plan.ok_or_else(|| Diagnostic::bug("an access of LDS without a plan"))?;
        let granule = plan.granule;
        let count = (registers / granule) as usize;
        let first = expansion.replica as usize * count;
        let pieces = plan.pieces[first..first + count].to_vec();
        let expanded = self.expanded(node)?;
        let (operands, memory) = (&expanded.operands.0, expanded.memory()?);
        let others = &operands[expanded.op.values_in_front()..operands.len() - 1];
        let late = LateFacts { iteration: expansion.iteration, operands: SmallVec::from_slice(others) };
        let mut done = Vec::with_capacity(count);
        for piece in pieces {
            let held = self.held_near(piece.address, &late)?;
            let mut address = self.vector_of(held);
            let mut immediate = piece.immediate;
            match self.copy_offset(memory, expansion.iteration)? {
                Scalar::Const(bytes) => immediate += bytes as u32,
                place @ Scalar::Reg(_) => address = self.moved_address(address, place),
            }
            (address, immediate) = self.within_reach(address, immediate);
            for &(coordinate, _) in &piece.conditions {
                self.held_near(coordinate, &late)?;
            }
            let mask = self.lanes_inside(&piece.conditions, &late)?;
            done.push(AddressedPiece { address, immediate, mask });
        }
        Ok((granule, done))
    }
}
