//! Loads from global memory straight into LDS. M0 is set by the scalar unit in front of each load: the part
//! of the address that depends on the wave and the copy of the buffer is in one SGPR.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::passes::loops::expand::Expansion;

impl OperationLayer<'_> {
    /// Emits the load of one expanded node.
    pub(crate) fn load_to_lds(
        &mut self,
        expansion: Expansion,
        memory: Entity,
        allocation: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let op = match registers * bytes {
            4 => Opcode::BufferLoadDwordLds,
            16 => Opcode::BufferLoadDwordx4Lds,
            bytes => return Err(Diagnostic::bug(format!("a load of {bytes} bytes to LDS"))),
        };
        let (descriptor, _, pieces) = self.pieces_of(expansion, registers, memory)?;
        let [piece] = pieces[..] else { return Err(Diagnostic::bug("a load to LDS in pieces")) };
        let plan = self.to_lds_plans.get(expansion.logical);
        let plan = plan.ok_or_else(|| Diagnostic::bug("a load to LDS without a plan"))?;
        let (wave, place) = (plan.wave, i64::from(plan.places[expansion.replica as usize]));
        let (base, place) = match (wave, self.copy_offset(allocation, expansion.iteration)?) {
            (Scalar::Reg(wave), Scalar::Reg(copy)) => {
                (Some(self.moved_address(wave, Scalar::Reg(copy))), place)
            }
            (Scalar::Reg(base), Scalar::Const(bytes)) | (Scalar::Const(bytes), Scalar::Reg(base)) => {
                (Some(base), place + bytes)
            }
            (Scalar::Const(wave), Scalar::Const(copy)) => (None, place + wave + copy),
        };
        let place = Scalar::Const(place);
        match base {
            None => self.emitter.with(Opcode::SMovB32, Operand::M0, &[place]),
            Some(base) => self.emitter.with(Opcode::SAddU32, Operand::M0, &[Scalar::Reg(base), place]),
        }
        let cache = self.cache_bits(expansion.logical);
        self.buffer_load_to_lds(op, piece, (descriptor, cache));
        Ok(())
    }
}
