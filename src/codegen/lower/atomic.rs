//! Atomic updates of global memory: one instruction for each element, by the first of the lanes and waves
//! that hold it. The others address an element outside of the memory, as masked ones do, and nothing happens
//! there.

use bevy_ecs::prelude::*;

use super::{Lowering, ValuePlace};
use crate::codegen::isa::Opcode;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::expand::Expansion;

/// The instructions of an update: without and with a result. `None` for dtypes that have none.
fn instructions(op: AtomicOp, dtype: DType) -> Option<[Opcode; 2]> {
    Some(match (op, dtype) {
        (AtomicOp::Add, DType::F32) => [Opcode::BufferAtomicAddF32, Opcode::BufferAtomicAddF32Rtn],
        (AtomicOp::Add, DType::I32) => [Opcode::BufferAtomicAdd, Opcode::BufferAtomicAddRtn],
        (AtomicOp::Min, DType::I32) => [Opcode::BufferAtomicSmin, Opcode::BufferAtomicSminRtn],
        (AtomicOp::Max, DType::I32) => [Opcode::BufferAtomicSmax, Opcode::BufferAtomicSmaxRtn],
        (AtomicOp::And, DType::I32) => [Opcode::BufferAtomicAnd, Opcode::BufferAtomicAndRtn],
        (AtomicOp::Or, DType::I32) => [Opcode::BufferAtomicOr, Opcode::BufferAtomicOrRtn],
        (AtomicOp::Xor, DType::I32) => [Opcode::BufferAtomicXor, Opcode::BufferAtomicXorRtn],
        (AtomicOp::Exchange, DType::F32 | DType::I32) => {
            [Opcode::BufferAtomicSwap, Opcode::BufferAtomicSwapRtn]
        }
        (AtomicOp::Add, DType::I64) => [Opcode::BufferAtomicAddX2, Opcode::BufferAtomicAddX2Rtn],
        (AtomicOp::Min, DType::I64) => [Opcode::BufferAtomicSminX2, Opcode::BufferAtomicSminX2Rtn],
        (AtomicOp::Max, DType::I64) => [Opcode::BufferAtomicSmaxX2, Opcode::BufferAtomicSmaxX2Rtn],
        (AtomicOp::And, DType::I64) => [Opcode::BufferAtomicAndX2, Opcode::BufferAtomicAndX2Rtn],
        (AtomicOp::Or, DType::I64) => [Opcode::BufferAtomicOrX2, Opcode::BufferAtomicOrX2Rtn],
        (AtomicOp::Xor, DType::I64) => [Opcode::BufferAtomicXorX2, Opcode::BufferAtomicXorX2Rtn],
        (AtomicOp::Exchange, DType::F64 | DType::I64) => {
            [Opcode::BufferAtomicSwapX2, Opcode::BufferAtomicSwapX2Rtn]
        }
        (AtomicOp::Add, DType::F64) => [Opcode::BufferAtomicAddF64, Opcode::BufferAtomicAddF64Rtn],
        (AtomicOp::Min, DType::F64) => [Opcode::BufferAtomicMinF64, Opcode::BufferAtomicMinF64Rtn],
        (AtomicOp::Max, DType::F64) => [Opcode::BufferAtomicMaxF64, Opcode::BufferAtomicMaxF64Rtn],
        (
            AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Exchange,
            DType::F64
            | DType::F32
            | DType::F16
            | DType::Bf16
            | DType::I16
            | DType::I8
            | DType::I1
            | DType::F8E4M3Fnuz
            | DType::F8E5M2Fnuz
            | DType::F8E4M3Fn
            | DType::F8E5M2
            | DType::F8E8M0,
        ) => return None,
    })
}

impl Lowering<'_> {
    /// Emits the instructions of one expanded update.
    pub(super) fn atomic(
        &mut self,
        node: Entity,
        op: AtomicOp,
        expansion: Expansion,
        value: Entity,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        self.out.written.insert(memory);
        let dtype = self.logical_dtype(memory)?;
        let known = instructions(op, dtype);
        let [plain, returning] = known.ok_or_else(|| self.bug("an atomic update of another dtype"))?;
        let width = dtype.bytes() / 4;
        let layout = &self.get::<Placement>(expansion.logical)?.0;
        let (registers, has_copies) = (layout.extent(Source::Register), layout.has_copies());
        let value = self.in_registers(value, registers, dtype.bytes())?;
        let (descriptor, _, pieces) = match self.is_mapped(expansion.logical) {
            true => self.mapped_pieces(node, expansion, registers)?,
            false => self.pieces_of(expansion, registers, memory)?,
        };
        let is_used = self.uses.get(node.index_u32() as usize).is_some_and(|&uses| uses > 0);
        if is_used && has_copies {
            return Err(self.replaced_by_another(node));
        }
        let (op, data) = match is_used {
            false => (plain, value),
            true => {
                let before = self.emitter.vgpr(registers * width);
                self.copy_registers(before, value, registers * width);
                self.set_place(node, ValuePlace::Registers(before));
                (returning, before)
            }
        };
        for (piece, at) in pieces.into_iter().zip(0..) {
            self.buffer_access(op, data.offset(at * width), piece, descriptor);
        }
        Ok(())
    }
}
