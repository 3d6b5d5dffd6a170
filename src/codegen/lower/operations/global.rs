//! Loads and stores of global memory.
//!
//! A store of a value of which lanes or waves hold copies is made by the first of them.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::addresses::access::InstructionPiece;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::passes::loops::expand::Expansion;

impl OperationLayer<'_> {
    /// Emits the loads of one expanded read and notes where its value is.
    pub(crate) fn load_global(
        &mut self,
        node: Entity,
        expansion: Expansion,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let (descriptor, granule, pieces) = self.global_pieces(node, expansion, registers, memory)?;
        let cache = self.cache_bits(expansion.logical);
        let repeats = self.repeats_of(expansion.logical);
        let loaded = granule / repeats * bytes;
        let op = match loaded {
            1 => Opcode::BufferLoadUbyte,
            2 => Opcode::BufferLoadUshort,
            4 => Opcode::BufferLoadDword,
            8 => Opcode::BufferLoadDwordx2,
            12 => Opcode::BufferLoadDwordx3,
            16 => Opcode::BufferLoadDwordx4,
            other => return Err(Diagnostic::bug(format!("a load of {other} bytes"))),
        };
        let value = self.emitter.vgpr((registers * bytes).div_ceil(4));
        let parts = match repeats {
            1 => self.parts(value, registers * bytes, loaded),
            _ => self.repeated_parts(value, registers * bytes, loaded, [bytes, repeats]),
        };
        for (piece, &dst) in pieces.iter().zip(&parts.registers) {
            self.buffer_access(op, dst, *piece, (descriptor, cache));
        }
        self.finish_later(node, parts.joins);
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Emits the stores of one expanded write.
    pub(crate) fn store_global(
        &mut self,
        node: Entity,
        expansion: Expansion,
        value: Entity,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        self.emitter.out.written.insert(memory);
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let value = self.in_registers(value, registers, bytes)?;
        let (descriptor, granule, pieces) = self.global_pieces(node, expansion, registers, memory)?;
        let cache = self.cache_bits(expansion.logical);
        for (at, piece) in pieces.into_iter().enumerate() {
            let byte = at as u32 * granule * bytes;
            let data = value.offset(byte / 4);
            let (op, data) = match (granule * bytes, byte % 4) {
                (16, _) => (Opcode::BufferStoreDwordx4, data),
                (8, _) => (Opcode::BufferStoreDwordx2, data),
                (4, _) => (Opcode::BufferStoreDword, data),
                (2, 0) => (Opcode::BufferStoreShort, data),
                (2, _) => (Opcode::BufferStoreShortD16Hi, data),
                (1, 0) => (Opcode::BufferStoreByte, data),
                (1, 2) => (Opcode::BufferStoreByteD16Hi, data),
                (1, position) => {
                    let shifted = self.emitter.vgpr(1);
                    let shift = Scalar::Const(i64::from(position * 8));
                    self.emitter.with(Opcode::VLshrrevB32, shifted, &[shift, Scalar::Reg(data)]);
                    (Opcode::BufferStoreByte, shifted)
                }
                (other, _) => return Err(Diagnostic::bug(format!("a store of {other} bytes"))),
            };
            self.buffer_access(op, data, piece, (descriptor, cache));
        }
        Ok(())
    }

    pub(super) fn buffer_access(
        &mut self,
        op: Opcode,
        data: Operand,
        piece: InstructionPiece,
        (descriptor, cache): (Operand, Modifiers),
    ) {
        let operands = [data, piece.offset, descriptor, piece.scalar_offset];
        let inst = Inst::new(op, &operands).imm(piece.immediate).modifiers(cache.offen());
        self.emitter.push(inst);
    }

    /// A load that brings its data to LDS, at the address in M0.
    pub(super) fn buffer_load_to_lds(
        &mut self,
        op: Opcode,
        piece: InstructionPiece,
        (descriptor, cache): (Operand, Modifiers),
    ) {
        let operands = [piece.offset, descriptor, piece.scalar_offset];
        self.emitter.push(Inst::new(op, &operands).modifiers(cache.offen()));
    }

    /// What the flags of an access mean for the caches: system scope is sc0 and sc1, before gfx90a glc alone,
    /// and `nt` a hint (CDNA3 ISA guide, "Memory scopes and temporal hints"; LLVM's AMDGPU usage page, memory
    /// models).
    pub(super) fn cache_bits(&self, logical: Entity) -> Modifiers {
        let flags = self.kernel.world.get::<MemoryAccessFlags>(logical).copied().unwrap_or_default();
        let widest = match self.target.arch.has_system_scope() {
            true => Modifiers::new().sc0().sc1(),
            false => Modifiers::new().sc0(),
        };
        let scope = if flags.volatile { widest } else { Modifiers::new() };
        if flags.non_temporal { scope.nt() } else { scope }
    }
}
