//! Conditions: lane masks of comparisons, and of what `and`, `or`, `xor` and `not` make of them.
//!
//! The masks of a whole tile would not fit into the SGPRs, so a condition is computed anew, element by
//! element, wherever it is used. One that takes many instructions is kept as a number per element instead.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::conversions::{OperationFamily, family};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// The most instructions of a condition that is computed anew at each use.
const MOST_INSTRUCTIONS: u32 = 8;

/// What combines two lane masks.
const LANE_LOGIC: [(BinaryOp, Opcode); 3] =
    [(BinaryOp::And, Opcode::SAndB64), (BinaryOp::Or, Opcode::SOrB64), (BinaryOp::Xor, Opcode::SXorB64)];

impl OperationLayer<'_> {
    /// One node whose result is i1.
    pub(crate) fn condition(
        &mut self,
        node: Entity,
        op: Op,
        operands: &[Entity],
        elements: u32,
    ) -> Result<(), Diagnostic> {
        let mut instructions = 1;
        if !matches!(op, Op::Compare(_)) {
            for &operand in operands {
                instructions += match *self.place(operand)? {
                    ValuePlace::Comparison(instructions) => instructions,
                    ValuePlace::Flags(_) | ValuePlace::Constant(_) => 1,
                    ValuePlace::Registers(_) | ValuePlace::Scattered(_) | ValuePlace::Uniform(_) => {
                        return Err(Diagnostic::bug("a number is used as a condition"));
                    }
                };
            }
        }
        self.set_place(node, ValuePlace::Comparison(instructions));
        if instructions <= MOST_INSTRUCTIONS {
            return Ok(());
        }
        let flags = self.emitter.vgpr(elements);
        for at in 0..elements {
            let mask = self.mask(node, at)?;
            let sources = [Scalar::ZERO, Scalar::Const(1), Scalar::Reg(mask)];
            self.emitter.with(Opcode::VCndmaskB32, flags.offset(at), &sources);
        }
        self.set_place(node, ValuePlace::Flags(flags));
        Ok(())
    }

    /// The lane mask of element `at` of a condition. Bits of lanes that are switched off say nothing.
    pub(crate) fn mask(&mut self, condition: Entity, at: u32) -> Result<Operand, Diagnostic> {
        let mask = self.emitter.sgpr(2);
        match *self.place(condition)? {
            ValuePlace::Flags(flags) => {
                self.emitter.op(Opcode::VCmpNeU32, &[mask, Operand::ZERO, flags.offset(at)]);
                return Ok(mask);
            }
            ValuePlace::Constant(bits) => {
                let all = Scalar::Const(-((bits & 1) as i64));
                self.emitter.with(Opcode::SMovB64, mask, &[all]);
                return Ok(mask);
            }
            ValuePlace::Comparison(_) => {}
            ValuePlace::Registers(_) | ValuePlace::Scattered(_) | ValuePlace::Uniform(_) => {
                return Err(Diagnostic::bug("a number is used as a condition"));
            }
        }
        let world = self.kernel.world;
        let operands = world.get::<Operands>(condition).map(|o| &o.0[..]).unwrap_or_default();
        let logical = self.get::<Expansion>(condition)?.logical;
        let mut places: SmallVec<[u32; 2]> = SmallVec::new();
        for &operand in operands {
            places.push(self.matching(logical, operand)?.element(at));
        }
        match (*self.get::<Op>(condition)?, operands) {
            (Op::Compare(predicate), &[a, b]) => {
                let dtype = self.logical_dtype(a)?;
                let mut sources = [self.element(a, places[0], dtype)?, self.element(b, places[1], dtype)?];
                if dtype.bits() == 64 {
                    self.wide_compare(mask, predicate, sources, dtype);
                } else {
                    self.limit_uniform(&mut sources, 1);
                    self.compare(mask, predicate, sources, dtype);
                }
            }
            (Op::Binary(op), &[a, b]) => {
                let opcode = LANE_LOGIC.iter().find(|row| row.0 == op).map(|row| row.1);
                let opcode = opcode.ok_or_else(|| Diagnostic::bug("arithmetic on conditions"))?;
                let [a, b] = [self.mask(a, places[0])?, self.mask(b, places[1])?];
                self.emitter.op(opcode, &[mask, a, b]);
            }
            // Lanes hold the same coordinates of both, so that their masks are the same.
            (Op::Broadcast, &[x]) => {
                let x = self.mask(x, places[0])?;
                self.emitter.op(Opcode::SMovB64, &[mask, x]);
            }
            (Op::Unary(UnaryOp::Not), &[x]) => {
                let x = self.mask(x, places[0])?;
                self.emitter.op(Opcode::SNotB64, &[mask, x]);
            }
            _ => return Err(Diagnostic::bug("a condition that is no comparison")),
        }
        Ok(mask)
    }

    pub(super) fn compare(&mut self, mask: Operand, predicate: Predicate, [a, b]: [Scalar; 2], dtype: DType) {
        let op = match (predicate, family(dtype)) {
            (Predicate::Eq, OperationFamily::Float) => Opcode::VCmpEqF32,
            (Predicate::Ne, OperationFamily::Float) => Opcode::VCmpNeqF32,
            (Predicate::Lt, OperationFamily::Float) => Opcode::VCmpLtF32,
            (Predicate::Le, OperationFamily::Float) => Opcode::VCmpLeF32,
            (Predicate::Gt, OperationFamily::Float) => Opcode::VCmpGtF32,
            (Predicate::Ge, OperationFamily::Float) => Opcode::VCmpGeF32,
            (Predicate::Eq, OperationFamily::Integer) => Opcode::VCmpEqI32,
            (Predicate::Ne, OperationFamily::Integer) => Opcode::VCmpNeI32,
            (Predicate::Lt, OperationFamily::Integer) => Opcode::VCmpLtI32,
            (Predicate::Le, OperationFamily::Integer) => Opcode::VCmpLeI32,
            (Predicate::Gt, OperationFamily::Integer) => Opcode::VCmpGtI32,
            (Predicate::Ge, OperationFamily::Integer) => Opcode::VCmpGeI32,
        };
        let (a, b) = (self.vop3_source(a), self.vop3_source(b));
        self.emitter.op(op, &[mask, a, b]);
    }

    /// `yes` in the lanes of a mask, `no` elsewhere.
    pub(super) fn select(&mut self, mask: Operand, [yes, no]: [Scalar; 2], dtype: DType) -> Operand {
        if dtype.bits() == 64 {
            return self.choose_pair(mask, yes, no);
        }
        let out = self.emitter.vgpr(1);
        self.select_into(out, mask, [yes, no]);
        out
    }

    /// The same of 32 bits, in a register.
    pub(super) fn select_into(&mut self, out: Operand, mask: Operand, [yes, no]: [Scalar; 2]) {
        let (yes, no) = (self.vop3_source(yes), self.vop3_source(no));
        self.emitter.op(Opcode::VCndmaskB32, &[out, no, yes, mask]);
    }
}
