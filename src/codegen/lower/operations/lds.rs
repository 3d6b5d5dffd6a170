//! Reads and writes of LDS.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::target::Target;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::passes::facts::{TransposingRead, TurnedUnits};
use crate::passes::loops::expand::Expansion;

impl OperationLayer<'_> {
    /// The instruction that turns elements of so many bits among lanes.
    fn transposing_read(&self, bits: u32) -> Result<Opcode, Diagnostic> {
        let of = |target: Target| target.transposing_read(bits);
        of(self.target).ok_or_else(|| {
            let owners: Vec<&str> = Target::ALL
                .iter()
                .filter(|&&target| of(target).is_some())
                .map(|target| target.name)
                .collect();
            let text = format!("{} has no reads of LDS that turn elements of {bits} bits", self.target);
            let help = format!(
                "compile for {}, or start with a text from before `distribute_loads`",
                owners.join(" or ")
            );
            Diagnostic::new(Kind::Unsupported, text).help(help)
        })
    }

    /// The instruction that reads so many bytes.
    pub(super) fn lds_read(&self, bytes: u32) -> Result<Opcode, Diagnostic> {
        Ok(match bytes {
            1 => Opcode::DsReadU8,
            2 => Opcode::DsReadU16,
            4 => Opcode::DsReadB32,
            8 => Opcode::DsReadB64,
            16 => Opcode::DsReadB128,
            other => return Err(Diagnostic::bug(format!("an LDS read of {other} bytes"))),
        })
    }

    /// The instruction that writes so many bytes of a value from number `byte` on, and their register.
    pub(super) fn lds_write(
        &mut self,
        value: Operand,
        byte: u32,
        bytes: u32,
    ) -> Result<(Opcode, Operand), Diagnostic> {
        let data = value.offset(byte / 4);
        Ok(match (bytes, byte % 4) {
            (16, _) => (Opcode::DsWriteB128, data),
            (12, _) => (Opcode::DsWriteB96, data),
            (8, _) => (Opcode::DsWriteB64, data),
            (4, _) => (Opcode::DsWriteB32, data),
            (2, 0) => (Opcode::DsWriteB16, data),
            (2, _) => (Opcode::DsWriteB16D16Hi, data),
            (1, 0) => (Opcode::DsWriteB8, data),
            (1, 2) => (Opcode::DsWriteB8D16Hi, data),
            (1, position) => {
                let shifted = self.emitter.vgpr(1);
                let shift = Scalar::Const(i64::from(position * 8));
                self.emitter.with(Opcode::VLshrrevB32, shifted, &[shift, Scalar::Reg(data)]);
                (Opcode::DsWriteB8, shifted)
            }
            (other, _) => return Err(Diagnostic::bug(format!("an LDS write of {other} bytes"))),
        })
    }

    /// Emits the LDS reads of one expanded read and notes where its value is.
    pub(crate) fn read_lds(
        &mut self,
        node: Entity,
        expansion: Expansion,
        allocation: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(allocation)?;
        let (elements, pieces) = self.lds_pieces(expansion, allocation)?;
        let op = match self.kernel.world.get::<TransposingRead>(expansion.logical) {
            Some(by) => {
                self.transposing_read(by.bits(self.kernel.world.get::<TurnedUnits>(expansion.logical)))?
            }
            None => self.lds_read(elements * bytes)?,
        };
        let total = pieces.len() as u32 * elements * bytes;
        let value = self.emitter.vgpr(total.div_ceil(4));
        let parts = self.parts(value, total, elements * bytes);
        for (&(address, immediate), &dst) in pieces.iter().zip(&parts.registers) {
            self.emitter.push(Inst::new(op, &[dst, address]).imm(immediate));
        }
        self.finish_later(node, parts.joins);
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Emits the LDS writes of one expanded write.
    pub(crate) fn write_lds(
        &mut self,
        expansion: Expansion,
        value: Entity,
        allocation: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(allocation)?;
        let (elements, pieces) = self.lds_pieces(expansion, allocation)?;
        let value = self.in_registers(value, pieces.len() as u32 * elements, bytes)?;
        let first = self.emitter.mark().inst;
        for (at, (address, immediate)) in pieces.into_iter().enumerate() {
            let (op, data) = self.lds_write(value, at as u32 * elements * bytes, elements * bytes)?;
            self.emitter.push(Inst::new(op, &[address, data]).imm(immediate));
        }
        self.emitter.put_off_writes(allocation, first);
        Ok(())
    }
}
