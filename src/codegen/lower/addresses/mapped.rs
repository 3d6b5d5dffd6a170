//! Plans of mapped accesses, of global memory and of LDS.
//!
//! Lane, wave, workgroup and iteration are symbols with ranges in the algebra of expressions, so the
//! coordinates of each element are expressions over them, and so is its address. An address in global memory
//! is taken apart ([`super::mapped_splits`]), and what does not depend on the iteration is computed in front
//! of the loop. In LDS it is a register and an immediate.
//!
//! An access is as wide as the algebra proves: the addresses of neighbouring registers are neighbours, their
//! alignment is that of a dword, and all of them are inside of the memory or none of them is. In global
//! memory, what can be outside selects an offset that is always outside; all other elements are certainly
//! inside, so the size in the descriptor has nothing to decide. LDS has no descriptor that would drop what is
//! outside: lanes in which a condition fails do not take part.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{
    AccessPlan, ElementConditions, InstructionPiece, KeptOffset, MappedPiece, PlannedPieces,
};
use super::descriptors::MAX_RECORDS;
use super::global::OUTSIDE;
use super::mapped_places::MappedExpressions;
use super::mapped_splits::{MOST_BIAS, Split};
use super::mapped_widths::Drafts;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::dependence::HeldValue;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprError};
use crate::ir::layout::Layout;
use crate::ir::node::*;
use crate::ir::reasons::Narrowness;
use crate::passes::facts::{LdsBuffer, SplitAccess};
use crate::passes::layout::element_layouts::most_elements;

/// Vector offsets that loops keep: more would take registers from everything else.
const MOST_KEPT: usize = 32;

/// The most that may be added to [`OUTSIDE`]: the sum is outside as well, and does not wrap.
const MOST_ADDED: i64 = 1 << 30;

impl AddressLayer<'_> {
    /// The plan of a mapped access at this point of the code.
    pub(super) fn plan_mapped(&mut self, node: Entity, memory: Entity) -> Result<AccessPlan, Diagnostic> {
        let access = self.mapped_access(node, memory)?;
        let widest = most_elements(*self.get::<Op>(node)?, access.element_bytes);
        let drafts = self.drafts(&access, widest).map_err(|e| self.unmappable(e))?;
        match self.kernel.world.get::<LdsBuffer>(memory) {
            Some(buffer) => {
                self.note_mapped_split(node, &access, (&drafts, widest));
                self.planned_in_lds(&access.layout, drafts, buffer)
            }
            None => {
                let drafts = self.widest_drafts(node, memory, &access, (drafts, widest))?;
                self.planned_in_memory((node, memory), &access.layout, drafts)
            }
        }
    }

    /// Drafts of accesses of global memory, which may be of elements that are repeated, and what there is to
    /// say of their width and masks.
    fn widest_drafts(
        &mut self,
        node: Entity,
        memory: Entity,
        access: &MappedExpressions,
        (mut drafts, widest): (Drafts, u32),
    ) -> Result<Drafts, Diagnostic> {
        let possible = access.widest_run(widest);
        if drafts.granule == 1 && possible > 1 && self.get::<Op>(node)?.loads() {
            let repeated = self.repeated_drafts(access, possible).map_err(|e| self.unmappable(e))?;
            drafts = repeated.unwrap_or(drafts);
        }
        self.note_mapped_split(node, access, (&drafts, widest));
        if drafts.pieces.iter().any(|draft| !draft.conditions.is_empty()) {
            self.emitter.out.reasons.masked.push((node, memory));
        }
        Ok(drafts)
    }

    /// Notes why an access is not as wide as the elements that a lane has side by side.
    fn note_mapped_split(
        &mut self,
        node: Entity,
        access: &MappedExpressions,
        (drafts, widest): (&Drafts, u32),
    ) {
        let (elements, possible) = (drafts.granule, access.widest_run(widest));
        if elements < possible {
            let why = drafts.why.unwrap_or(Narrowness::Apart);
            self.emitter.out.reasons.splits.push((node, SplitAccess { elements, possible, why }));
        }
    }

    /// The plan of an access of LDS.
    fn planned_in_lds(
        &mut self,
        layout: &Layout,
        drafts: Drafts,
        buffer: &LdsBuffer,
    ) -> Result<AccessPlan, Diagnostic> {
        let mut pieces = Vec::with_capacity(drafts.pieces.len());
        for draft in drafts.pieces {
            let split = self.split_lds(draft.address, buffer.bytes);
            let (address, constant) = split.map_err(|e| self.unmappable(e))?;
            let piece = MappedPiece::new(address, Expr::ZERO, buffer.offset + constant);
            pieces.push(MappedPiece { conditions: draft.conditions, ..piece });
        }
        if !self.loops.is_empty() {
            for piece in &pieces {
                self.prepare(piece.vector)?;
                piece.conditions.iter().try_for_each(|&(coordinate, _)| self.prepare(coordinate))?;
            }
        }
        Ok(AccessPlan::new(None, layout, drafts.granule, PlannedPieces::Mapped(pieces)))
    }

    /// The plan of an access of global memory.
    fn planned_in_memory(
        &mut self,
        (node, memory): (Entity, Entity),
        layout: &Layout,
        drafts: Drafts,
    ) -> Result<AccessPlan, Diagnostic> {
        let addresses: Vec<Expr> = drafts.pieces.iter().map(|draft| draft.address).collect();
        let split = self.shortest_split(&addresses).map_err(|e| self.unmappable(e))?;
        let Split { uniform, bias, mut pieces, top } = split.unwrap_or_else(|| Split::flat(&addresses));
        for (piece, draft) in pieces.iter_mut().zip(drafts.pieces) {
            piece.conditions = draft.conditions;
        }
        if top.is_none_or(|top| top >= i64::from(MAX_RECORDS)) {
            // Offsets begin where the descriptor does, which may be in front of the memory. Bounds below that
            // of a bias are those of arguments of 32 bits, which say nothing.
            let lowest = self.arena.range(uniform).lo.filter(|lo| *lo >= -MOST_BIAS);
            let before = lowest.unwrap_or(0).min(0);
            self.reach_of_memory(node, memory, bias - before)?;
        }
        let descriptor = Some(self.mapped_descriptor(memory, uniform, bias)?);
        if !self.loops.is_empty() {
            self.keep(&mut pieces)?;
        }
        let plan = AccessPlan::new(descriptor, layout, drafts.granule, PlannedPieces::Mapped(pieces));
        Ok(AccessPlan { repeats: drafts.repeats, ..plan })
    }

    /// Prepares in front of a loop what does not change in it.
    fn keep(&mut self, pieces: &mut [MappedPiece]) -> Result<(), Diagnostic> {
        let early = |lowering: &mut Self, piece: &MappedPiece| -> ElementConditions {
            piece.conditions.iter().copied().filter(|c| lowering.class(c.0).is_early()).collect()
        };
        let mut kept: Vec<(Expr, ElementConditions, Operand)> = Vec::new();
        for piece in pieces {
            let conditions = early(self, piece);
            let is_early = self.class(piece.vector).is_early();
            let base = self.base(piece.vector).map_err(|e| self.unmappable(e))?;
            let vector = if is_early { piece.vector } else { base.unwrap_or(Expr::ZERO) };
            let known = kept.iter().find(|k| k.0 == vector && k.1 == conditions).map(|k| k.2);
            let is_nothing = vector == Expr::ZERO && conditions.is_empty() && !is_early;
            let own = match known {
                _ if is_nothing => None,
                Some(known) => Some(known),
                None if kept.len() == MOST_KEPT => None,
                None => {
                    let held = self.held(vector, &LateFacts::default())?;
                    let offset = self.vector_of(held);
                    let offset = self.or_outside(offset, &conditions, &LateFacts::default())?;
                    kept.push((vector, conditions, offset));
                    Some(offset)
                }
            };
            let own = match own {
                None => KeptOffset::Nothing,
                Some(offset) if is_early => KeptOffset::Offset(offset),
                Some(offset) if base.is_some() => KeptOffset::Base(offset),
                Some(offset) => KeptOffset::Poison(offset),
            };
            piece.kept = own;
            if own != KeptOffset::Nothing {
                let classes: SmallVec<[bool; 4]> =
                    piece.conditions.iter().map(|c| self.class(c.0).is_early()).collect();
                let mut classes = classes.into_iter();
                piece.conditions.retain(|_| !classes.next().unwrap_or(false));
            }
            let late: SmallVec<[Expr; 8]> = [piece.vector, piece.scalar]
                .into_iter()
                .chain(piece.conditions.iter().map(|c| c.0))
                .collect();
            if kept.len() < MOST_KEPT {
                late.into_iter().try_for_each(|e| self.prepare(e))?;
            }
            if !piece.conditions.is_empty() {
                self.outside();
            }
        }
        Ok(())
    }

    /// What of an offset does not change, if what changes may be added to an offset outside as well.
    pub(crate) fn base(&mut self, vector: Expr) -> Result<Option<Expr>, ExprError> {
        let [early, late] = self.early_and_late(vector)?;
        let range = self.arena.range(late);
        let fits = early != Expr::ZERO
            && self.denominator(vector) == 1
            && range.at_least(0)
            && range.at_most(MOST_ADDED);
        Ok(fits.then_some(early))
    }

    /// The offset where all conditions hold, and [`OUTSIDE`] elsewhere.
    fn or_outside(
        &mut self,
        offset: Operand,
        conditions: &[(Expr, Expr)],
        late: &LateFacts,
    ) -> Result<Operand, Diagnostic> {
        let Some(mask) = self.lanes_inside(conditions, late)? else { return Ok(offset) };
        let outside = self.outside();
        let chosen = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[chosen, outside, offset, mask]);
        Ok(chosen)
    }

    /// The mask of the lanes in which all conditions hold; `None` without conditions.
    fn lanes_inside(
        &mut self,
        conditions: &[(Expr, Expr)],
        late: &LateFacts,
    ) -> Result<Option<Operand>, Diagnostic> {
        let mut all: Option<Operand> = None;
        for &(coordinate, size) in conditions {
            let coordinate = self.held(coordinate, late)?;
            let limit = self.held(size, late)?;
            let mask = self.emitter.sgpr(2);
            // A negative coordinate is a large one without a sign.
            match (coordinate, limit) {
                (HeldValue::Uniform(coordinate), HeldValue::Uniform(limit)) => {
                    let coordinate = self.emitter.in_sgpr(coordinate);
                    let (limit, literal) = limit.source();
                    self.emitter.push(Inst::new(Opcode::SCmpLtU32, &[coordinate, limit]).imm(literal));
                    let all_lanes = Operand::constant(u32::MAX);
                    self.emitter.op(Opcode::SCselectB64, &[mask, all_lanes, Operand::ZERO]);
                }
                (coordinate, limit) => {
                    let coordinate = self.vector_of(coordinate);
                    let limit = match limit {
                        HeldValue::Uniform(Scalar::Const(value)) => {
                            match Operand::inline_integer(value as i32) {
                                Some(inline) => inline,
                                None => self.constant_sgpr(value as u32),
                            }
                        }
                        HeldValue::Uniform(Scalar::Reg(register)) | HeldValue::Vector(register) => register,
                    };
                    self.emitter.op(Opcode::VCmpGtU32, &[mask, limit, coordinate]);
                }
            }
            all = Some(match all {
                None => mask,
                Some(others) => {
                    let both = self.emitter.sgpr(2);
                    self.emitter.op(Opcode::SAndB64, &[both, others, mask]);
                    both
                }
            });
        }
        Ok(all)
    }

    /// [`OUTSIDE`] in a VGPR.
    fn outside(&mut self) -> Operand {
        if let Some(&known) = self.outside.last() {
            return known;
        }
        let outside = self.in_vector(Scalar::Const(i64::from(OUTSIDE)));
        self.outside.push(outside);
        outside
    }

    /// A piece of an access of LDS, in the first copy of its buffer.
    pub(super) fn piece_in_lds(
        &mut self,
        piece: &MappedPiece,
        late: &LateFacts,
    ) -> Result<InstructionPiece, Diagnostic> {
        let held = self.held_near(piece.vector, late)?;
        let offset = self.vector_of(held);
        for &(coordinate, _) in &piece.conditions {
            self.held_near(coordinate, late)?;
        }
        let mask = self.lanes_inside(&piece.conditions, late)?;
        Ok(InstructionPiece { offset, scalar_offset: Operand::ZERO, immediate: piece.immediate, mask })
    }

    /// A piece of an access of global memory.
    pub(super) fn piece_in_memory(
        &mut self,
        piece: &MappedPiece,
        late: &LateFacts,
    ) -> Result<InstructionPiece, Diagnostic> {
        let mut offset = match piece.kept {
            KeptOffset::Offset(offset) => offset,
            KeptOffset::Base(base) => {
                let [_, rest] = self.early_and_late(piece.vector).map_err(|e| self.unmappable(e))?;
                self.held_onto(base, rest, late)?
            }
            KeptOffset::Nothing | KeptOffset::Poison(_) => {
                let held = self.held(piece.vector, late)?;
                self.vector_of(held)
            }
        };
        if let KeptOffset::Poison(poison) = piece.kept {
            let either = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VOrB32, &[either, offset, poison]);
            offset = either;
        }
        offset = self.or_outside(offset, &piece.conditions, late)?;
        let scalar_offset = match self.held(piece.scalar, late)? {
            HeldValue::Uniform(Scalar::Const(0)) => Operand::ZERO,
            HeldValue::Uniform(scalar) => self.emitter.in_sgpr(scalar),
            HeldValue::Vector(_) => return Err(Diagnostic::bug("a scalar offset in vector registers")),
        };
        Ok(InstructionPiece { offset, scalar_offset, immediate: piece.immediate, mask: None })
    }
}
