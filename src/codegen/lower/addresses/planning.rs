//! Plans of accesses: where they are made, and what an expanded access takes of its own.

use std::borrow::Cow;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{
    AccessBase, AccessFacts, AddressedAccess, InstructionPiece, InstructionPieces, LaneOffset, LatePlace,
    PlannedPiece, ScalarOffset, SpaceLimits,
};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::dependence::HeldValue;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Layout;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::types::AddressSpace;
use crate::passes::facts::{LdsBuffer, TransposingRead, TurnedUnits};
use crate::passes::loops::expand::Expansion;

impl<'a> AddressLayer<'a> {
    /// Prepares the addresses of an access, if that is still to be done.
    pub(crate) fn plan(&mut self, access: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let logical = access.expansion()?.logical;
        if self.plans.get(logical).is_none() {
            let is_mapped = self.kernel.world.get::<Mapping>(logical).is_some();
            let facts = self.facts_of(access, is_mapped)?;
            let plan = if is_mapped { self.plan_mapped(facts) } else { self.plan_tile(facts) }?;
            self.plans.insert(logical, plan);
        }
        Ok(())
    }

    /// The facts of an access that its plan is made of.
    fn facts_of(
        &mut self,
        access: &ExpandedNodeItem,
        is_mapped: bool,
    ) -> Result<AccessFacts<'a>, Diagnostic> {
        let (node, accessed) = (access.expansion()?.logical, access.memory()?);
        let layout = Cow::Borrowed(&self.get::<Placement>(node)?.0);
        let buffer = self.kernel.world.get::<LdsBuffer>(accessed);
        if let Some(buffer) = buffer.filter(|_| !access.op.copies()) {
            let dims = if is_mapped { &self.get::<ValueType>(accessed)?.dims } else { &buffer.dims };
            let strides = dims.iter().map(|&dim| (dim, self.arena.int(buffer.stride(dim).into())));
            return Ok(AccessFacts {
                node,
                memory: accessed,
                element_bytes: buffer.element_bytes,
                strides: strides.collect(),
                layout: if is_mapped { layout } else { self.places_in(buffer, node, layout)? },
                buffer: Some(buffer),
                fills: None,
                limits: SpaceLimits::LDS,
            });
        }
        let (memory, limits) = match buffer {
            Some(_) => (access.operands.at(0)?, SpaceLimits::INTO_LDS),
            None => (accessed, SpaceLimits::GLOBAL),
        };
        let (dims, element_bytes) = (&self.get::<ValueType>(memory)?.dims, self.element_bytes(memory)?);
        let mut strides = SmallVec::new();
        for &dim in dims {
            strides.push((dim, self.stride_bytes(memory, dims, dim, element_bytes)?));
        }
        Ok(AccessFacts { node, memory, element_bytes, strides, layout, buffer: None, fills: buffer, limits })
    }

    /// The elements of a buffer that an access is of whose value is held so.
    fn places_in(
        &self,
        buffer: &LdsBuffer,
        node: Entity,
        held: Cow<'a, Layout>,
    ) -> Result<Cow<'a, Layout>, Diagnostic> {
        let elements = match self.kernel.world.get::<TransposingRead>(node) {
            Some(by) => by
                .loaded(&held, self.kernel.world.get::<TurnedUnits>(node))
                .map(Cow::Owned)
                .ok_or_else(|| Diagnostic::bug("a read of LDS that turns nothing"))?,
            None => held,
        };
        if buffer.spacing.is_none() {
            return Ok(elements);
        }
        let spaced = buffer.places_in_rows(elements.into_owned()).map(Cow::Owned);
        spaced.ok_or_else(|| Diagnostic::bug("an LDS access of words that lie apart"))
    }

    /// Prepares the addresses of all accesses of the body in front of it.
    pub(crate) fn plan_body(&mut self, node: Entity) -> Result<(), Diagnostic> {
        self.last_place = None;
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
        Ok(self.plan_of(logical)?.base.space())
    }

    /// Elements that a lane has of each expanded access of a logical one.
    pub(crate) fn elements_of(&self, logical: Entity) -> Result<u32, Diagnostic> {
        Ok(self.plan_of(logical)?.elements)
    }

    /// True if the coordinates of an access are expressions.
    pub(crate) fn is_mapped(&self, logical: Entity) -> Result<bool, Diagnostic> {
        Ok(self.plan_of(logical)?.is_mapped)
    }

    /// Base, width and pieces of one expanded access, in the iteration that it belongs to.
    pub(crate) fn addressed(&mut self, access: &ExpandedNodeItem) -> Result<AddressedAccess, Diagnostic> {
        let expansion = access.expansion()?;
        let plan = self.plan_of(expansion.logical)?;
        let (base, width, advances, is_fill) = (plan.base, plan.width, plan.advances, plan.fill.is_some());
        let count = (plan.elements / width.granule) as usize;
        let first = plan.pieces.start + expansion.replica as usize * count;
        let mut late = LateFacts { iteration: expansion.iteration, operands: SmallVec::new() };
        if plan.is_mapped {
            let operands = &access.operands.0;
            late.operands = SmallVec::from_slice(&operands[access.op.values_in_front()..operands.len() - 1]);
        }
        let mut pieces = InstructionPieces::new();
        for at in first..first + count {
            if let Some(piece) = self.beside_last_place(at, base, &late) {
                pieces.push(piece);
                continue;
            }
            let piece = match base {
                AccessBase::Pointer { .. } if at > first && self.are_beside(at - 1, at) => {
                    let before = pieces.last().copied().ok_or_else(|| Diagnostic::bug("no first piece"))?;
                    InstructionPiece { immediate: self.pieces[at].immediate, ..before }
                }
                AccessBase::Pointer { pointer, unit } => self.placed_far(at, (pointer, unit), &late)?,
                AccessBase::Lds | AccessBase::Descriptor(_) => self.placed(at, base, &late)?,
            };
            pieces.push(piece);
            if base != AccessBase::Lds && !late.operands.is_empty() {
                self.last_place = Some(LatePlace { at, base, late: late.clone(), piece });
            }
        }
        if base == AccessBase::Lds {
            let copy = self.copy_offset(access.memory()?, expansion.iteration)?;
            for piece in &mut pieces {
                match copy {
                    Scalar::Const(bytes) => piece.immediate += bytes as u32,
                    Scalar::Reg(_) => piece.offset = self.moved_address(piece.offset, copy),
                }
                let [immediate, rest] = SpaceLimits::LDS.immediate_and_rest(piece.immediate);
                if rest != 0 {
                    piece.offset = self.moved_address(piece.offset, Scalar::Const(i64::from(rest)));
                    piece.immediate = immediate;
                }
            }
        } else if advances {
            let memory = if is_fill { access.operands.at(0)? } else { access.memory()? };
            let offset = self.iteration_offset(memory, expansion.iteration)?;
            pieces.iter_mut().for_each(|piece| piece.scalar_offset = offset);
        }
        Ok(AddressedAccess { base, width, pieces })
    }

    /// True if two planned pieces differ in their immediates alone.
    fn are_beside(&self, one: usize, other: usize) -> bool {
        let [one, other] = [&self.pieces[one], &self.pieces[other]];
        (one.lane, one.scalar, &one.conditions) == (other.lane, other.scalar, &other.conditions)
    }

    /// A planned piece of an access, if it differs in its immediate alone from the place that was made last
    /// of the same values, as pieces of one row do.
    fn beside_last_place(&self, at: usize, base: AccessBase, late: &LateFacts) -> Option<InstructionPiece> {
        // What all lanes have in common is on the scalar unit, and soon computed.
        let has_dims = |&value: &Entity| self.get::<ValueType>(value).is_ok_and(|ty| !ty.dims.is_empty());
        let last = self.last_place.as_ref().filter(|_| late.operands.iter().any(has_dims))?;
        let is_same =
            (last.base, last.late.iteration, &last.late.operands) == (base, late.iteration, &late.operands);
        (is_same && self.are_beside(last.at, at))
            .then(|| InstructionPiece { immediate: self.pieces[at].immediate, ..last.piece })
    }

    /// A planned piece with an address of 64 bits: so many units after a pointer.
    fn placed_far(
        &mut self,
        at: usize,
        (pointer, unit): (Operand, u32),
        late: &LateFacts,
    ) -> Result<InstructionPiece, Diagnostic> {
        let piece = self.placed(at, AccessBase::Pointer { pointer, unit }, late)?;
        let (address, carry) = (self.emitter.vgpr(2), self.emitter.sgpr(2));
        let unit = Operand::inline_integer(unit as i32);
        let unit = unit.ok_or_else(|| Diagnostic::bug("a unit that an instruction does not hold"))?;
        self.emitter.op(Opcode::VMadI64I32, &[address, carry, piece.offset, unit, pointer]);
        Ok(InstructionPiece { offset: address, ..piece })
    }

    /// A planned piece at this point of the code, in the first copy of its buffer.
    fn placed(
        &mut self,
        at: usize,
        base: AccessBase,
        late: &LateFacts,
    ) -> Result<InstructionPiece, Diagnostic> {
        let has_descriptor = base.descriptor().is_some();
        let piece = &self.pieces[at];
        if let (LaneOffset::Register(offset), ScalarOffset::Register(scalar_offset), true) =
            (piece.lane, piece.scalar, piece.conditions.is_empty())
        {
            return Ok(InstructionPiece { offset, scalar_offset, immediate: piece.immediate, mask: None });
        }
        let PlannedPiece { lane, scalar, immediate, conditions } = piece.clone();
        let mut offset = match lane {
            LaneOffset::Register(offset) => offset,
            LaneOffset::Onto(base, rest) => self.held_onto(base, rest, late)?,
            LaneOffset::Joined(_, e) | LaneOffset::Expression(e) => {
                let held = if has_descriptor { self.held(e, late)? } else { self.held_near(e, late)? };
                self.vector_of(held)
            }
        };
        if let LaneOffset::Joined(other, _) = lane {
            offset = self.either(offset, other);
        }
        if !has_descriptor {
            for &(coordinate, _) in &conditions {
                self.held_near(coordinate, late)?;
            }
        }
        let mut mask = self.lanes_inside(&conditions, late)?;
        if has_descriptor {
            offset = self.or_outside(offset, mask.take());
        }
        let scalar_offset = match scalar {
            ScalarOffset::Register(register) => register,
            ScalarOffset::Expression(e) => match self.held(e, late)? {
                HeldValue::Uniform(Scalar::Const(0)) => Operand::ZERO,
                HeldValue::Uniform(scalar) => self.emitter.in_sgpr(scalar),
                HeldValue::Vector(_) => return Err(Diagnostic::bug("a scalar offset in vector registers")),
            },
        };
        Ok(InstructionPiece { offset, scalar_offset, immediate, mask })
    }

    /// The place in LDS of the data of an expanded load: a register, if it needs one, and what is added. M0
    /// is set by the scalar unit in front of each load, so the part that depends on the wave and the copy of
    /// the buffer is in one SGPR.
    pub(crate) fn filled_place(
        &mut self,
        expansion: Expansion,
        allocation: Entity,
    ) -> Result<(Option<Operand>, Scalar), Diagnostic> {
        let fill = self.plan_of(expansion.logical)?.fill.as_ref();
        let fill = fill.ok_or_else(|| Diagnostic::bug("a load to LDS without a place there"))?;
        let (wave, place) = (fill.wave, i64::from(fill.places[expansion.replica as usize]));
        let (base, place) = match (wave, self.copy_offset(allocation, expansion.iteration)?) {
            (Scalar::Reg(wave), Scalar::Reg(copy)) => {
                (Some(self.moved_address(wave, Scalar::Reg(copy))), place)
            }
            (Scalar::Reg(base), Scalar::Const(bytes)) | (Scalar::Const(bytes), Scalar::Reg(base)) => {
                (Some(base), place + bytes)
            }
            (Scalar::Const(wave), Scalar::Const(copy)) => (None, place + wave + copy),
        };
        Ok((base, Scalar::Const(place)))
    }
}
