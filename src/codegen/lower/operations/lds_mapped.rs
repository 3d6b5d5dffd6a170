//! Accesses of LDS at coordinates, and atomic updates of LDS.
//!
//! As in global memory, the address of an element is an expression over places and operands, an access is as
//! wide as the algebra proves, and what may be outside has conditions. There is no descriptor that would drop
//! what is outside, so lanes in which a condition fails are switched off around the instruction.
//!
//! A buffer of the author's is `Op::Allocate` at the beginning of a kernel. Its accesses have bounds like
//! those of global memory, and `arrange_lds` leaves it in its declared order without swizzle. A loop that
//! keeps such a buffer is not pipelined. Updates of LDS always have a mapping.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Opcode, Operand, Role};
use crate::codegen::lower::addresses::lds_mapped::AddressedPiece;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// The instructions of an update: without and with a result. `None` for dtypes that have none.
pub(crate) fn instructions(op: AtomicOp, dtype: DType) -> Option<[Opcode; 2]> {
    use Opcode::*;
    Some(match (op, dtype) {
        (AtomicOp::Add, DType::I32) => [DsAddU32, DsAddRtnU32],
        (AtomicOp::Add, DType::F32) => [DsAddF32, DsAddRtnF32],
        (AtomicOp::Add, DType::F16) => [DsPkAddF16, DsPkAddRtnF16],
        (AtomicOp::Add, DType::Bf16) => [DsPkAddBf16, DsPkAddRtnBf16],
        (AtomicOp::Min, DType::F32) => [DsMinF32, DsMinRtnF32],
        (AtomicOp::Max, DType::F32) => [DsMaxF32, DsMaxRtnF32],
        (AtomicOp::Add, DType::I64) => [DsAddU64, DsAddRtnU64],
        (AtomicOp::Add, DType::F64) => [DsAddF64, DsAddRtnF64],
        (AtomicOp::Min, DType::I32) => [DsMinI32, DsMinRtnI32],
        (AtomicOp::Min, DType::I64) => [DsMinI64, DsMinRtnI64],
        (AtomicOp::Min, DType::F64) => [DsMinF64, DsMinRtnF64],
        (AtomicOp::Max, DType::I32) => [DsMaxI32, DsMaxRtnI32],
        (AtomicOp::Max, DType::I64) => [DsMaxI64, DsMaxRtnI64],
        (AtomicOp::Max, DType::F64) => [DsMaxF64, DsMaxRtnF64],
        (AtomicOp::And, DType::I32) => [DsAndB32, DsAndRtnB32],
        (AtomicOp::And, DType::I64) => [DsAndB64, DsAndRtnB64],
        (AtomicOp::Or, DType::I32) => [DsOrB32, DsOrRtnB32],
        (AtomicOp::Or, DType::I64) => [DsOrB64, DsOrRtnB64],
        (AtomicOp::Xor, DType::I32) => [DsXorB32, DsXorRtnB32],
        (AtomicOp::Xor, DType::I64) => [DsXorB64, DsXorRtnB64],
        (AtomicOp::CompareExchange, DType::I32) => [DsCmpstB32, DsCmpstRtnB32],
        (AtomicOp::CompareExchange, DType::I64) => [DsCmpstB64, DsCmpstRtnB64],
        // There is no exchange without result.
        (AtomicOp::Exchange, DType::I32 | DType::F32) => [DsWrxchgRtnB32; 2],
        (AtomicOp::Exchange, DType::I64 | DType::F64) => [DsWrxchgRtnB64; 2],
        _ => return None,
    })
}

impl OperationLayer<'_> {
    /// Emits an instruction for the lanes of a piece.
    fn for_lanes(&mut self, piece: &AddressedPiece, op: Opcode, operands: &[Operand]) {
        if let Some(mask) = piece.mask {
            self.emitter.op(Opcode::SMovB64, &[Operand::EXEC, mask]);
        }
        self.emitter.push(Inst::new(op, operands).imm(piece.immediate));
        if piece.mask.is_some() {
            self.emitter.with(Opcode::SMovB64, Operand::EXEC, &[Scalar::Const(-1)]);
        }
    }

    /// Zeros in the registers that an instruction of this piece loads, where it does not load them in all
    /// lanes.
    fn clear_for(&mut self, piece: &AddressedPiece, first: Operand, registers: u32) {
        if piece.mask.is_some() {
            for at in 0..registers {
                self.emitter.op(Opcode::VMovB32, &[first.offset(at), Operand::ZERO]);
            }
        }
    }

    /// Emits the reads of one expanded read of LDS at coordinates and notes where its value is.
    pub(crate) fn read_lds_mapped(
        &mut self,
        node: Entity,
        expansion: Expansion,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let (granule, pieces) = self.mapped_lds_pieces(node, expansion, registers)?;
        let op = self.lds_read(granule * bytes)?;
        let value = self.emitter.vgpr((registers * bytes).div_ceil(4));
        let parts = self.parts(value, registers * bytes, granule * bytes);
        for (piece, &dst) in pieces.iter().zip(&parts.registers) {
            self.clear_for(piece, dst, (granule * bytes).div_ceil(4));
            self.for_lanes(piece, op, &[dst, piece.address]);
        }
        self.finish_later(node, parts.joins);
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Emits the writes of one expanded write to LDS at coordinates.
    pub(crate) fn write_lds_mapped(
        &mut self,
        node: Entity,
        expansion: Expansion,
        value: Entity,
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let value = self.in_registers(value, registers, bytes)?;
        let (granule, pieces) = self.mapped_lds_pieces(node, expansion, registers)?;
        for (at, piece) in pieces.iter().enumerate() {
            let (op, data) = self.lds_write(value, at as u32 * granule * bytes, granule * bytes)?;
            self.for_lanes(piece, op, &[piece.address, data]);
        }
        Ok(())
    }

    /// Emits the instructions of one expanded update of LDS.
    pub(crate) fn atomic_lds(
        &mut self,
        node: Entity,
        op: AtomicOp,
        expansion: Expansion,
        values: &[Entity],
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let dtype = self.logical_dtype(memory)?;
        let instruction = self.update(node, op, dtype, instructions(op, dtype))?;
        let width = dtype.bytes().div_ceil(4);
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        // In the order of the values: the expected element comes first (CDNA3 ISA guide, DS_CMPST_B32).
        let mut joined: SmallVec<[Operand; 2]> = SmallVec::new();
        for &value in values {
            joined.push(self.in_registers(value, registers, dtype.bytes())?);
        }
        let (granule, pieces) = self.mapped_lds_pieces(node, expansion, registers)?;
        self.check_granule(node, dtype, granule)?;
        let gives = instruction.info().operands[0].role == Role::Def;
        let before = gives.then(|| self.emitter.vgpr(registers / granule * width));
        for (piece, at) in pieces.iter().zip(0..) {
            let old = before.map(|before| before.offset(at * width));
            let mut operands: SmallVec<[Operand; 4]> = old.into_iter().collect();
            operands.push(piece.address);
            operands.extend(joined.iter().map(|register| register.offset(at * width)));
            if let Some(old) = old {
                self.clear_for(piece, old, width);
            }
            self.for_lanes(piece, instruction, &operands);
        }
        if let Some(before) = before {
            self.set_place(node, ValuePlace::Registers(before));
        }
        Ok(())
    }
}
