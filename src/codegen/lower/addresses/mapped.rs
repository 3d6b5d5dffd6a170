//! Plans of accesses whose coordinates are expressions, of global memory and of LDS.
//!
//! Lane, wave, workgroup and iteration are symbols with ranges in the algebra of expressions, so the
//! coordinates of each element are expressions over them, and so is its address, which is taken apart
//! ([`super::mapped_splits`]); what does not depend on the iteration is computed in front of the loop.
//!
//! An access is as wide as the algebra proves: the addresses of neighbouring registers are neighbours, their
//! alignment is that of a dword, and all of them are inside of the memory or none of them is. In global
//! memory, what can be outside selects an offset that is always outside; all other elements are certainly
//! inside, so the size in the descriptor has nothing to decide. LDS has no descriptor that would drop what is
//! outside: lanes in which a condition fails do not take part.
//!
//! A memory that is certainly larger than what a descriptor spans has addresses of 64 bits instead: offsets
//! of lanes count units, of which all addresses but for their immediates are multiples, and are multiplied
//! and added to a pointer by one instruction. Lanes outside do not take part there either.

use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{
    AccessBase, AccessFacts, AccessPlan, ElementConditions, LaneOffset, PlannedPiece, ScalarOffset,
};
use super::descriptors::{DescriptorBase, MAX_RECORDS};
use super::mapped_places::MappedExpressions;
use super::mapped_splits::{MOST_BIAS, Split};
use super::mapped_widths::Drafts;
use crate::codegen::isa::Operand;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprError};
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::ir::op::DataMovement;
use crate::ir::reasons::Narrowness;
use crate::passes::facts::SplitAccess;
use crate::passes::layout::element_layouts::most_elements;

/// Vector offsets that loops keep: more would take registers from everything else.
const MOST_KEPT: usize = 32;

/// The most that may be added to an offset outside: the sum is outside as well, and does not wrap.
const MOST_ADDED: i64 = 1 << 30;

impl<'a> AddressLayer<'a> {
    /// The plan of a mapped access at this point of the code.
    pub(super) fn plan_mapped(&mut self, facts: AccessFacts<'a>) -> Result<AccessPlan, Diagnostic> {
        let (node, memory, in_lds) = (facts.node, facts.memory, facts.buffer.is_some());
        let access = self.mapped_access(facts)?;
        let drafts = self.widest_drafts(&access)?;
        if !in_lds && drafts.pieces.iter().any(|draft| !draft.conditions.is_empty()) {
            self.emitter.out.reasons.masked.push((node, memory));
        }
        let addresses: SmallVec<[Expr; 16]> = drafts.pieces.iter().map(|draft| draft.address).collect();
        let mut split = self.split(&addresses, access.facts.buffer).map_err(|e| self.unmappable(e))?;
        let base = match in_lds {
            true => AccessBase::Lds,
            false => match self.split_beyond_descriptors(&access.facts, &addresses, &split)? {
                Some((far, base)) => {
                    split = far;
                    base
                }
                None => AccessBase::Descriptor(self.base_of(&access.facts, &split)?),
            },
        };
        let mut pieces = split.pieces;
        for (piece, draft) in pieces.iter_mut().zip(drafts.pieces) {
            piece.conditions = draft.conditions;
        }
        if !self.loops.is_empty() {
            match base {
                AccessBase::Descriptor(_) => self.keep(&mut pieces)?,
                AccessBase::Lds | AccessBase::Pointer { .. } => {
                    pieces.iter().try_for_each(|piece| self.prepare_piece(piece))?;
                }
            }
        }
        let first = self.pieces.len();
        self.pieces.extend(pieces);
        Ok(AccessPlan {
            base,
            advances: false,
            is_mapped: true,
            width: drafts.width,
            elements: access.facts.layout.extent(Source::Register),
            pieces: first..self.pieces.len(),
            shared: None,
            fill: None,
        })
    }

    /// The widest drafts of an access; those of global memory may be of elements that are repeated. Notes why
    /// they are not as wide as the elements that a lane has side by side.
    fn widest_drafts(&mut self, access: &MappedExpressions) -> Result<Drafts, Diagnostic> {
        let AccessFacts { node, element_bytes, buffer, .. } = access.facts;
        let op = *self.get::<Op>(node)?;
        let widest = most_elements(op, element_bytes);
        let possible = access.widest_run(widest);
        let mut drafts = self.drafts(access, widest).map_err(|e| self.unmappable(e))?;
        if buffer.is_none() && drafts.width.granule == 1 && possible > 1 && op.loads() {
            let repeated = self.repeated_drafts(access, possible).map_err(|e| self.unmappable(e))?;
            drafts = repeated.unwrap_or(drafts);
        }
        let elements = drafts.width.granule;
        if elements < possible {
            let why = drafts.why.unwrap_or(Narrowness::Apart);
            self.emitter.out.reasons.splits.push((node, SplitAccess { elements, possible, why }));
        }
        Ok(drafts)
    }

    /// The base of an access of global memory.
    fn base_of(&mut self, facts: &AccessFacts, split: &Split) -> Result<Operand, Diagnostic> {
        let (uniform, bias) = (split.uniform, split.bias);
        if split.may_go_beyond_descriptors() {
            // Offsets begin where the descriptor does, which may be in front of the memory. Bounds below that
            // of a bias are those of arguments of 32 bits, which say nothing.
            let lowest = self.arena.range(uniform).lo.filter(|lo| *lo >= -MOST_BIAS);
            let before = lowest.unwrap_or(0).min(0);
            self.check_reach_of_memory(facts, bias - before)?;
        }
        self.descriptor(facts.memory, DescriptorBase::Moved { uniform, bias })
    }

    /// The addresses of loads and stores taken apart for a pointer, if the memory is certainly larger than
    /// what a descriptor spans; nothing for those that cannot be.
    fn split_beyond_descriptors(
        &mut self,
        facts: &AccessFacts,
        addresses: &[Expr],
        split: &Split,
    ) -> Result<Option<(Split, AccessBase)>, Diagnostic> {
        let movement = self.get::<Op>(facts.node)?.movement();
        let is_plain = matches!(movement, Some(DataMovement::Load | DataMovement::Store));
        if !is_plain || facts.fills.is_some() || !split.may_go_beyond_descriptors() {
            return Ok(None);
        }
        let reach = self.reach_of_memory(facts).map_err(|e| self.unmappable(e))?;
        let is_far = self.arena.range(reach).lo.is_some_and(|least| least > i64::from(MAX_RECORDS));
        if !is_far {
            return Ok(None);
        }
        let far = self.split_in_units(addresses).map_err(|e| self.unmappable(e))?;
        let Some((far, unit)) = far else { return Ok(None) };
        self.check_units_of_memory(facts, reach, unit)?;
        let pointer = self.moved_pointer(facts.memory, far.uniform)?;
        Ok(Some((far, AccessBase::Pointer { pointer, unit })))
    }

    /// Computes in front of a loop what is known of what a piece does not have in registers.
    fn prepare_piece(&mut self, piece: &PlannedPiece) -> Result<(), Diagnostic> {
        if let LaneOffset::Expression(e) = piece.lane {
            self.prepare(e)?;
        }
        if let ScalarOffset::Expression(e) = piece.scalar {
            self.prepare(e)?;
        }
        piece.conditions.iter().try_for_each(|&(coordinate, _)| self.prepare(coordinate))
    }

    /// Prepares in front of a loop what does not change in it.
    fn keep(&mut self, pieces: &mut [PlannedPiece]) -> Result<(), Diagnostic> {
        let mut kept: Vec<(Expr, ElementConditions, Operand)> = Vec::new();
        for piece in pieces {
            let LaneOffset::Expression(whole) = piece.lane else { continue };
            let (conditions, late): (ElementConditions, ElementConditions) =
                piece.conditions.iter().copied().partition(|condition| self.class(condition.0).is_early());
            let is_early = self.class(whole).is_early();
            let base = self.base(whole).map_err(|e| self.unmappable(e))?;
            let vector = if is_early { whole } else { base.unwrap_or(Expr::ZERO) };
            let known = kept.iter().find(|k| k.0 == vector && k.1 == conditions).map(|k| k.2);
            let is_nothing = vector == Expr::ZERO && conditions.is_empty() && !is_early;
            let own = match known {
                _ if is_nothing => None,
                Some(known) => Some(known),
                None if kept.len() == MOST_KEPT => None,
                None => {
                    let held = self.held(vector, &LateFacts::default())?;
                    let offset = self.vector_of(held);
                    let mask = self.lanes_inside(&conditions, &LateFacts::default())?;
                    let offset = self.or_outside(offset, mask);
                    kept.push((vector, conditions, offset));
                    Some(offset)
                }
            };
            if let Some(offset) = own {
                piece.conditions = late;
                piece.lane = if is_early {
                    LaneOffset::Register(offset)
                } else if base.is_some() {
                    let [_, rest] = self.early_and_late(whole).map_err(|e| self.unmappable(e))?;
                    LaneOffset::Onto(offset, rest)
                } else {
                    LaneOffset::Joined(offset, whole)
                };
            }
            if kept.len() < MOST_KEPT {
                if own.is_some() {
                    self.prepare(whole)?;
                }
                self.prepare_piece(piece)?;
            }
            if !piece.conditions.is_empty() {
                self.outside();
            }
        }
        Ok(())
    }

    /// What of an offset does not change, if what changes may be added to an offset outside as well.
    fn base(&mut self, vector: Expr) -> Result<Option<Expr>, ExprError> {
        let [early, late] = self.early_and_late(vector)?;
        let range = self.arena.range(late);
        let fits = early != Expr::ZERO
            && self.denominator(vector) == 1
            && range.at_least(0)
            && range.at_most(MOST_ADDED);
        Ok(fits.then_some(early))
    }
}
