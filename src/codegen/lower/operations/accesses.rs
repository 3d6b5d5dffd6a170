//! Accesses to memory: loads and stores of global memory and of LDS, and loads from global memory straight
//! into LDS.
//!
//! A store of a value of which lanes or waves hold copies is made by the first of them.
//!
//! A buffer of LDS of the author's is `Op::Allocate` at the beginning of a kernel. Its accesses have bounds
//! like those of global memory, and `arrange_lds` leaves it in its declared order without swizzle. A loop
//! that keeps such a buffer is not pipelined.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use super::memory_instructions::{load, transposing_read};
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::addresses::access::{AccessBase, AccessWidth};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::op::{AccessOp, DataMovement};
use crate::ir::types::AddressSpace;
use crate::passes::facts::{TransposingRead, TurnedUnits};

impl OperationLayer<'_> {
    /// Writes an access to memory.
    pub(crate) fn access(
        &mut self,
        node: Entity,
        op: AccessOp,
        access: &ExpandedNodeItem,
    ) -> Result<(), Diagnostic> {
        self.plan(access)?;
        match op.movement() {
            DataMovement::Load => self.load(node, access),
            DataMovement::Store => self.store(access),
            DataMovement::Update(op) => self.update(node, op, access),
            DataMovement::Copy => self.load_to_lds(access),
        }
    }

    /// Emits the loads of one expanded read and notes where its value is.
    fn load(&mut self, node: Entity, access: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let (bytes, logical) = (self.element_bytes(access.memory()?)?, access.expansion()?.logical);
        let addressed = self.addressed(access)?;
        let AccessWidth { granule, repeats } = addressed.width;
        let loaded = granule / repeats * bytes;
        let turning = match addressed.base.space() {
            AddressSpace::Shared => self.kernel.world.get::<TransposingRead>(logical),
            AddressSpace::Global | AddressSpace::Register => None,
        };
        let op = match turning {
            Some(by) => {
                let bits = by.bits(self.kernel.world.get::<TurnedUnits>(logical));
                transposing_read(self.target, bits)?
            }
            None => load(addressed.base, loaded)?,
        };
        let total = addressed.pieces.len() as u32 * granule * bytes;
        let value = self.emitter.vgpr(total.div_ceil(4));
        let parts = match repeats {
            1 => self.parts(value, total, loaded),
            repeats => self.repeated_parts(value, total, loaded, [bytes, repeats]),
        };
        let cache = self.cache_bits(logical);
        for (piece, &dst) in addressed.pieces.iter().zip(&parts.registers) {
            self.clear_for(piece, dst, loaded.div_ceil(4));
            match addressed.base {
                AccessBase::Descriptor(descriptor) => self.buffer_access(op, dst, piece, (descriptor, cache)),
                AccessBase::Lds => self.lds_access(op, &[dst, piece.offset], piece),
                AccessBase::Pointer { .. } => {
                    self.masked_access(
                        piece,
                        Inst::new(op, &[dst, piece.offset, Operand::NONE]).modifiers(cache),
                    );
                }
            }
        }
        self.finish_later(node, parts.joins);
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Emits the stores of one expanded write.
    fn store(&mut self, access: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let (memory, logical) = (access.memory()?, access.expansion()?.logical);
        let bytes = self.element_bytes(memory)?;
        let elements = self.elements_of(logical)?;
        let operand = access.operands.at(0)?;
        let value = match self.in_order_of(access.expansion()?, operand)? {
            Some(value) => value,
            None => self.in_registers(operand, elements, bytes)?,
        };
        let addressed = self.addressed(access)?;
        let cache = self.cache_bits(logical);
        let stored = addressed.width.granule * bytes;
        let first = self.emitter.mark().inst;
        for (piece, at) in addressed.pieces.iter().zip(0..) {
            let (op, data) = self.store_of(addressed.base, value, at * stored, stored)?;
            match addressed.base {
                AccessBase::Descriptor(descriptor) => {
                    self.buffer_access(op, data, piece, (descriptor, cache))
                }
                AccessBase::Lds => self.lds_access(op, &[piece.offset, data], piece),
                AccessBase::Pointer { .. } => {
                    self.masked_access(
                        piece,
                        Inst::new(op, &[piece.offset, data, Operand::NONE]).modifiers(cache),
                    );
                }
            }
        }
        if addressed.base.space() == AddressSpace::Global {
            self.emitter.out.written.insert(memory);
        } else if !self.is_mapped(logical)? {
            self.emitter.put_off_writes(memory, first);
        }
        Ok(())
    }

    /// Emits a load from global memory straight into LDS. M0 is set by the scalar unit in front of each: the
    /// part of the address that depends on the wave and the copy of the buffer is in one SGPR.
    fn load_to_lds(&mut self, access: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let expansion = access.expansion()?;
        let bytes = self.element_bytes(access.operands.at(0)?)?;
        let addressed = self.addressed(access)?;
        let op = match addressed.width.granule * bytes {
            4 => Opcode::BufferLoadDwordLds,
            16 => Opcode::BufferLoadDwordx4Lds,
            bytes => return Err(Diagnostic::bug(format!("a load of {bytes} bytes to LDS"))),
        };
        let (&[piece], Some(descriptor)) = (&addressed.pieces[..], addressed.base.descriptor()) else {
            return Err(Diagnostic::bug("a load to LDS in pieces"));
        };
        let (base, place) = self.filled_place(expansion, access.memory()?)?;
        match base {
            None => self.emitter.with(Opcode::SMovB32, Operand::M0, &[place]),
            Some(base) => self.emitter.with(Opcode::SAddU32, Operand::M0, &[Scalar::Reg(base), place]),
        }
        let operands = [piece.offset, descriptor, piece.scalar_offset];
        let cache = self.cache_bits(expansion.logical);
        self.emitter.push(Inst::new(op, &operands).modifiers(cache.offen()));
        Ok(())
    }
}
