//! Masks that hide nothing in most tiles of a loop: selections in place, under a branch that a wave takes
//! around them in the tiles where they select their first value everywhere. What only their conditions need
//! is computed there, too.

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use super::elementwise::MASKS_AHEAD;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::{Branch, Scalar};
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::InstId;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{OnDemand, UnmaskedTiles};
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::op::{OpClass, OpFamily};
use crate::passes::loops::expand::{Expansion, Iteration};

/// A selection in the registers of its first value.
#[derive(Copy, Clone)]
struct SelectionInPlace {
    node: Entity,
    condition: Entity,
    other: Entity,
    registers: Operand,
}

/// Selections that follow one another, in one iteration.
struct MaskRun {
    selections: SmallVec<[SelectionInPlace; 4]>,
    /// The tiles in which they select their first value everywhere.
    tiles: Trip,
    iteration: Iteration,
}

/// The tiles in which a wave makes selections, as far as lowering knows: none, all, or those of a branch.
enum MaskQuestion {
    Never,
    Always,
    Around(Branch),
}

impl OperationLayer<'_> {
    /// True for what is done where a selection needs it. What schedules carry of it from one trip to the next
    /// is there.
    pub(crate) fn is_on_demand(&self, node: Entity, op: Op) -> bool {
        let world = self.kernel.world;
        let is_marked = || world.get::<OnDemand>(Expansion::at(world, node).logical).is_some();
        self.kernel.has_seldom_masks && op.row().class != OpClass::Carried && is_marked()
    }

    /// Does what was left for the place where a selection is made.
    ///
    /// # Errors
    /// Broken kernels.
    pub(crate) fn demand_condition(&mut self, selection: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        if *selection.op == Op::Select {
            self.demand(selection.operands.at(0)?)?;
        }
        Ok(())
    }

    /// Brings a value together that a region carries. One on demand is computed for that, if it has not been.
    ///
    /// # Errors
    /// Broken kernels.
    pub(crate) fn settle_demanded(&mut self, node: Entity) -> Result<(), Diagnostic> {
        if self.kernel.has_seldom_masks {
            self.demand(node)?;
        }
        self.settle(node)
    }

    fn demand(&mut self, node: Entity) -> Result<(), Diagnostic> {
        let expanded = self.expanded(node)?;
        if !self.is_on_demand(node, *expanded.op) || self.places.has(node) {
            return Ok(());
        }
        let (expansion, operands) = (expanded.expansion()?, &expanded.operands.0[..]);
        for &operand in operands {
            self.demand(operand)?;
        }
        if let Op::SelfIndex(dim) = *expanded.op {
            self.self_index(node, expansion, dim)?;
        } else if let OpFamily::ElementWise(op) = expanded.op.family() {
            self.elementwise(node, expansion, (*expanded.op, op), operands)?;
        } else {
            return Err(Diagnostic::bug("an operation on demand that is no arithmetic"));
        }
        self.places.demanded.push(node);
        Ok(())
    }

    /// Writes the selections that some nodes begin with, if they can be made in place and hide nothing in
    /// some tiles, and returns how many these are.
    ///
    /// # Errors
    /// Broken kernels.
    pub(crate) fn select_unless_unmasked(&mut self, nodes: &[Entity]) -> Result<usize, Diagnostic> {
        let Some(run) = self.mask_run(nodes)? else { return Ok(0) };
        let start = self.emitter.mark().inst;
        let asked = self.ask_for_masks(&run)?;
        let first = self.emitter.mark().inst;
        if !matches!(asked, MaskQuestion::Never) {
            self.select_in_place(&run)?;
        }
        if let MaskQuestion::Around(around) = asked {
            let after = self.emitter.next_block(None);
            self.emitter.patch(around, after);
        }
        self.note_selections(&run, start..first);
        Ok(run.selections.len())
    }

    /// The selections that some nodes begin with.
    fn mask_run(&mut self, nodes: &[Entity]) -> Result<Option<MaskRun>, Diagnostic> {
        let world = self.kernel.world;
        let mut run = None::<MaskRun>;
        for &node in nodes {
            let Some(&expansion) = world.get::<Expansion>(node) else { break };
            let Some(&UnmaskedTiles(tiles)) = world.get::<UnmaskedTiles>(expansion.logical) else { break };
            let iteration = expansion.iteration;
            if run.as_ref().is_some_and(|run| run.tiles != tiles || run.iteration != iteration) {
                break;
            }
            let &[condition, value, other] = &self.get::<Operands>(node)?.0[..] else { break };
            // The value of another selection of the run is not there before it.
            if ![value, other].iter().all(|&operand| self.places.has(operand)) {
                break;
            }
            // Nothing may wait for an instruction that is left out.
            self.finish(value);
            self.finish(other);
            let Some(registers) = self.replaceable(node, value)? else { break };
            let run = run.get_or_insert_with(|| MaskRun { selections: SmallVec::new(), tiles, iteration });
            run.selections.push(SelectionInPlace { node, condition, other, registers });
        }
        Ok(run)
    }

    /// Asks whether the tile is one without masks.
    fn ask_for_masks(&mut self, run: &MaskRun) -> Result<MaskQuestion, Diagnostic> {
        let axis = self.loops.last().map(|open| open.axis);
        let axis = axis.ok_or_else(|| Diagnostic::bug("tiles of a selection in no loop"))?;
        let number = self.iteration_number(axis, run.iteration)?;
        let number = number.ok_or_else(|| Diagnostic::bug("tiles of a loop that does not run"))?;
        let [first, end] = [self.scalar(run.tiles.start)?, self.scalar(run.tiles.end)?];
        if let (Scalar::Const(number), Scalar::Const(first), Scalar::Const(end)) = (number, first, end) {
            return Ok(if (first..end).contains(&number) {
                MaskQuestion::Never
            } else {
                MaskQuestion::Always
            });
        }
        let (op, a, b) = match first {
            Scalar::Const(first) if first <= 0 => (Opcode::SCmpLtI32, number, end),
            // Numbers before the first one are large without their signs.
            Scalar::Const(_) | Scalar::Reg(_) => {
                (Opcode::SCmpLtU32, self.emitter.sub(number, first), self.emitter.sub(end, first))
            }
        };
        let [a, b] = [a, b].map(|number| self.emitter.in_sgpr(number));
        self.emitter.op(op, &[a, b]);
        let around = self.emitter.branch_ahead(Opcode::SCbranchScc1);
        self.emitter.note_seldom();
        self.emitter.out.loops.mask_branches += 1;
        Ok(MaskQuestion::Around(around))
    }

    /// Writes the selections. What has been computed for them is not there in other tiles.
    fn select_in_place(&mut self, run: &MaskRun) -> Result<(), Diagnostic> {
        let (scope, demanded) = (self.scope(), self.places.demanded.len());
        for &SelectionInPlace { node, condition, other, registers } in &run.selections {
            let logical = Expansion::at(self.kernel.world, node).logical;
            let dtype = self.logical_dtype(logical)?;
            let [of_condition, of_other] =
                [self.matching(logical, condition)?, self.matching(logical, other)?];
            let elements = self.elements(logical);
            self.demand(condition)?;
            for first in (0..elements).step_by(MASKS_AHEAD as usize) {
                let part = first..elements.min(first + MASKS_AHEAD);
                let masks: Result<SmallVec<[Operand; MASKS_AHEAD as usize]>, Diagnostic> =
                    part.clone().map(|at| self.mask(condition, of_condition.element(at))).collect();
                for (at, mask) in part.zip(masks?) {
                    let other = self.element(other, of_other.element(at), dtype)?;
                    let register = registers.offset(at);
                    self.select_into(register, mask, [Scalar::Reg(register), other]);
                }
            }
        }
        self.places.forget_demanded(demanded);
        self.leave(&scope);
        Ok(())
    }

    /// Notes where the values of the selections are, and that their question is what they cost: in most tiles
    /// they are left out.
    fn note_selections(&mut self, run: &MaskRun, asked: Range<InstId>) {
        let end = self.emitter.mark().inst;
        for (at, &SelectionInPlace { node, registers, .. }) in run.selections.iter().enumerate() {
            self.emitter.note_span(node, if at == 0 { asked.clone() } else { end..end });
            self.renew_contents(&[ValuePlace::Registers(registers)]);
            self.set_place(node, ValuePlace::Registers(registers));
        }
    }
}
