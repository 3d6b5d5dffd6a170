//! Lanes that are outside of a memory: masks of conditions, and the offset at which nothing happens.

use super::AddressLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::dependence::HeldValue;
use crate::codegen::lower::values::expressions::LateFacts;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Expr;

/// A vector offset beyond every tensor: descriptors never span more than 2 GiB.
pub(crate) const OUTSIDE: u32 = 0x8000_0000;

impl AddressLayer<'_> {
    /// The offset in the lanes of a mask, if there is one, and [`OUTSIDE`] in the others.
    pub(super) fn or_outside(&mut self, offset: Operand, mask: Option<Operand>) -> Operand {
        let Some(mask) = mask else { return offset };
        let outside = self.outside();
        let chosen = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[chosen, outside, offset, mask]);
        chosen
    }

    /// The bits of two offsets, of which one is outside where either is.
    pub(super) fn either(&mut self, offset: Operand, other: Operand) -> Operand {
        let either = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VOrB32, &[either, offset, other]);
        either
    }

    /// [`OUTSIDE`] in a VGPR.
    pub(super) fn outside(&mut self) -> Operand {
        if let Some(&known) = self.outside.last() {
            return known;
        }
        let outside = self.in_vector(Scalar::Const(i64::from(OUTSIDE)));
        self.outside.push(outside);
        outside
    }

    /// The mask of the lanes in which all conditions hold; `None` without conditions.
    pub(super) fn lanes_inside(
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
}
