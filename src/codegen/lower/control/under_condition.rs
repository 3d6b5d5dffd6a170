//! Regions that run under a condition, which all lanes and waves of a workgroup have in common: a branch.
//!
//! `Op::Conditional` and `Op::While` are regions that carry values as loops do, without a dimension: their
//! last operand is the condition, and a `while` yields its next one last (`Runs::UnderConditions`). A
//! condition is i1 without dimensions, and such a value is the same in all lanes and waves. So the whole
//! workgroup takes a region or does not, and barriers may stand in it. Addresses and scalars that a region
//! prepares are forgotten after it, and a pending part of a value is finished before it. Loops with such a
//! region are not pipelined.
//!
//! `Op::WorkgroupId` and `Op::Iteration` are values without dimensions. With the first, values differ
//! between workgroups, and the rules for chosen iterations hold.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ControlLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::addresses::AddressScope;
use crate::codegen::lower::emit::emitter::{Branch, Scalar};
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::BlockId;
use crate::index::Neighbours;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::types::DType;

/// A region under a condition that comes next.
pub(super) struct EnteredCondition {
    /// Prepared values that were valid in front of it.
    scope: AddressScope,
    /// Symbols that had names in front of it.
    symbols: usize,
    /// Offsets that the loops around had.
    fixed: SmallVec<[usize; 4]>,
    carried: SmallVec<[ValuePlace; 4]>,
    /// The branch around it, if it has a condition in front of it.
    skip: Option<Branch>,
    /// Its first block, if it repeats.
    again: Option<BlockId>,
}

impl ControlLayer<'_> {
    /// Writes what comes in front of a region under a condition.
    pub(super) fn enter_condition(
        &mut self,
        node: Entity,
        op: Op,
        operands: &[Entity],
    ) -> Result<EnteredCondition, Diagnostic> {
        let repeats = op.repeats();
        // What the region leaves out must not wait for an instruction inside of it.
        self.finish_all();
        let (scope, symbols) = (self.scope(), self.symbols.len());
        let fixed = self.loops.iter().map(|open| open.fixed.len()).collect();
        let carried = self.carried_registers(op.initial(operands))?;
        if repeats {
            self.whiles += 1;
            self.plan_body(node)?;
        }
        self.renew_contents(&carried);
        self.place_arguments(node, &carried)?;
        let skip = match op.condition(operands) {
            Some(condition) => Some(self.branch_unless(condition)?),
            None => {
                self.emitter.next_block(None);
                None
            }
        };
        let again = repeats.then(|| self.emitter.current_block());
        if let Some(block) = again {
            self.emitter.out.loops.bodies.push(block..block.next());
        }
        Ok(EnteredCondition { scope, symbols, fixed, carried, skip, again })
    }

    /// Writes what comes after the region.
    pub(super) fn leave_condition(
        &mut self,
        node: Entity,
        entered: EnteredCondition,
    ) -> Result<(), Diagnostic> {
        let EnteredCondition { scope, symbols, fixed, carried, skip, again: repeats } = entered;
        // The operands of the next condition may be carried values, which change now.
        let again = match (repeats, self.get::<Yields>(node)?.0.last()) {
            (Some(block), Some(&condition)) => Some((block, self.mask(condition, 0)?)),
            _ => None,
        };
        self.carry(node, &carried)?;
        let after = match again {
            Some((block, mask)) => {
                self.emitter.op(Opcode::SCmpLgU64, &[mask, Operand::ZERO]);
                self.emitter.push(Inst::new(Opcode::SCbranchScc1, &[]).imm(block.as_u32()));
                self.emitter.next_block(Some(block))
            }
            None => self.emitter.next_block(None),
        };
        if let Some(skip) = skip {
            self.emitter.patch(skip, after);
        }
        self.whiles -= u32::from(repeats.is_some());
        // Values of the region that nothing has used by now are not used at all.
        self.drop_unfinished();
        for (open, &len) in self.loops.iter_mut().zip(&fixed) {
            open.fixed.truncate(len);
        }
        self.symbols.truncate(symbols);
        self.leave(&scope);
        self.results.insert(node, carried);
        Ok(())
    }

    /// A branch, to be patched, for the case that the condition does not hold.
    fn branch_unless(&mut self, condition: Entity) -> Result<Branch, Diagnostic> {
        if let Some((op, [a, b])) = self.uniform_comparison(condition)? {
            let a = self.emitter.in_sgpr(a);
            let (b, literal) = b.source();
            self.emitter.push(Inst::new(op, &[a, b]).imm(literal));
        } else {
            let mask = self.mask(condition, 0)?;
            self.emitter.op(Opcode::SCmpLgU64, &[mask, Operand::ZERO]);
        }
        Ok(self.emitter.branch_ahead(Opcode::SCbranchScc0))
    }

    /// The scalar instruction that compares the operands of a condition, if these are in SGPRs.
    fn uniform_comparison(&self, condition: Entity) -> Result<Option<(Opcode, [Scalar; 2])>, Diagnostic> {
        let &Op::Compare(predicate) = self.get::<Op>(condition)? else { return Ok(None) };
        let &[a, b] = &self.get::<Operands>(condition)?.0[..] else { return Ok(None) };
        if self.logical_dtype(a)? != DType::I32 {
            return Ok(None);
        }
        let scalar = |node: Entity| match *self.place(node)? {
            ValuePlace::Constant(bits) => Ok(Some(Scalar::Const(i64::from(bits as u32 as i32)))),
            ValuePlace::Uniform(register) => Ok(Some(Scalar::Reg(register))),
            ValuePlace::Registers(_)
            | ValuePlace::Scattered(_)
            | ValuePlace::Comparison(_)
            | ValuePlace::Flags(_) => Ok::<_, Diagnostic>(None),
        };
        let op = match predicate {
            Predicate::Eq => Opcode::SCmpEqI32,
            Predicate::Ne => Opcode::SCmpLgI32,
            Predicate::Lt => Opcode::SCmpLtI32,
            Predicate::Le => Opcode::SCmpLeI32,
            Predicate::Gt => Opcode::SCmpGtI32,
            Predicate::Ge => Opcode::SCmpGeI32,
        };
        Ok(scalar(a)?.zip(scalar(b)?).map(|(a, b)| (op, [a, b])))
    }
}
