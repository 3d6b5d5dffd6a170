//! The instructions that access memory: those of global memory go through a buffer descriptor or have an
//! address of 64 bits, those of LDS have an address alone.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::addresses::access::{AccessBase, InstructionPiece};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::Target;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, DType};

/// Instructions by the bytes that they access: through a descriptor, of LDS, and by pointers.
type WidthRows = [(u32, [Option<Opcode>; 3])];

const LOADS: &WidthRows = &[
    (16, [Some(Opcode::BufferLoadDwordx4), Some(Opcode::DsReadB128), Some(Opcode::GlobalLoadDwordx4)]),
    (12, [Some(Opcode::BufferLoadDwordx3), None, Some(Opcode::GlobalLoadDwordx3)]),
    (8, [Some(Opcode::BufferLoadDwordx2), Some(Opcode::DsReadB64), Some(Opcode::GlobalLoadDwordx2)]),
    (4, [Some(Opcode::BufferLoadDword), Some(Opcode::DsReadB32), Some(Opcode::GlobalLoadDword)]),
    (2, [Some(Opcode::BufferLoadUshort), Some(Opcode::DsReadU16), Some(Opcode::GlobalLoadUshort)]),
    (1, [Some(Opcode::BufferLoadUbyte), Some(Opcode::DsReadU8), Some(Opcode::GlobalLoadUbyte)]),
];

const STORES: &WidthRows = &[
    (16, [Some(Opcode::BufferStoreDwordx4), Some(Opcode::DsWriteB128), Some(Opcode::GlobalStoreDwordx4)]),
    (12, [None, Some(Opcode::DsWriteB96), None]),
    (8, [Some(Opcode::BufferStoreDwordx2), Some(Opcode::DsWriteB64), Some(Opcode::GlobalStoreDwordx2)]),
    (4, [Some(Opcode::BufferStoreDword), Some(Opcode::DsWriteB32), Some(Opcode::GlobalStoreDword)]),
    (2, [Some(Opcode::BufferStoreShort), Some(Opcode::DsWriteB16), Some(Opcode::GlobalStoreShort)]),
    (1, [Some(Opcode::BufferStoreByte), Some(Opcode::DsWriteB8), Some(Opcode::GlobalStoreByte)]),
];

/// Stores of what begins in the upper half of a register.
const UPPER_STORES: &WidthRows = &[
    (
        1,
        [
            Some(Opcode::BufferStoreByteD16Hi),
            Some(Opcode::DsWriteB8D16Hi),
            Some(Opcode::GlobalStoreByteD16Hi),
        ],
    ),
    (
        2,
        [
            Some(Opcode::BufferStoreShortD16Hi),
            Some(Opcode::DsWriteB16D16Hi),
            Some(Opcode::GlobalStoreShortD16Hi),
        ],
    ),
];

/// The instructions of an update: without and with a result.
type UpdateRow = (AtomicOp, DType, [Opcode; 2]);

macro_rules! updates {
    ($($op:ident $dtype:ident: $plain:ident $returning:ident;)*) => {
        &[$((AtomicOp::$op, DType::$dtype, [Opcode::$plain, Opcode::$returning])),*]
    };
}

const BUFFER_UPDATES: &[UpdateRow] = updates! {
    Add F32: BufferAtomicAddF32 BufferAtomicAddF32Rtn;
    Add I32: BufferAtomicAdd BufferAtomicAddRtn;
    Add F16: BufferAtomicPkAddF16 BufferAtomicPkAddF16Rtn;
    Min I32: BufferAtomicSmin BufferAtomicSminRtn;
    Max I32: BufferAtomicSmax BufferAtomicSmaxRtn;
    And I32: BufferAtomicAnd BufferAtomicAndRtn;
    Or I32: BufferAtomicOr BufferAtomicOrRtn;
    Xor I32: BufferAtomicXor BufferAtomicXorRtn;
    Exchange F32: BufferAtomicSwap BufferAtomicSwapRtn;
    Exchange I32: BufferAtomicSwap BufferAtomicSwapRtn;
    Add I64: BufferAtomicAddX2 BufferAtomicAddX2Rtn;
    Min I64: BufferAtomicSminX2 BufferAtomicSminX2Rtn;
    Max I64: BufferAtomicSmaxX2 BufferAtomicSmaxX2Rtn;
    And I64: BufferAtomicAndX2 BufferAtomicAndX2Rtn;
    Or I64: BufferAtomicOrX2 BufferAtomicOrX2Rtn;
    Xor I64: BufferAtomicXorX2 BufferAtomicXorX2Rtn;
    Exchange F64: BufferAtomicSwapX2 BufferAtomicSwapX2Rtn;
    Exchange I64: BufferAtomicSwapX2 BufferAtomicSwapX2Rtn;
    CompareExchange I32: BufferAtomicCmpswap BufferAtomicCmpswapRtn;
    CompareExchange I64: BufferAtomicCmpswapX2 BufferAtomicCmpswapX2Rtn;
    Add F64: BufferAtomicAddF64 BufferAtomicAddF64Rtn;
    Min F64: BufferAtomicMinF64 BufferAtomicMinF64Rtn;
    Max F64: BufferAtomicMaxF64 BufferAtomicMaxF64Rtn;
};

/// There is no exchange without result.
const LDS_UPDATES: &[UpdateRow] = updates! {
    Add I32: DsAddU32 DsAddRtnU32;
    Add F32: DsAddF32 DsAddRtnF32;
    Add F16: DsPkAddF16 DsPkAddRtnF16;
    Add Bf16: DsPkAddBf16 DsPkAddRtnBf16;
    Min F32: DsMinF32 DsMinRtnF32;
    Max F32: DsMaxF32 DsMaxRtnF32;
    Add I64: DsAddU64 DsAddRtnU64;
    Add F64: DsAddF64 DsAddRtnF64;
    Min I32: DsMinI32 DsMinRtnI32;
    Min I64: DsMinI64 DsMinRtnI64;
    Min F64: DsMinF64 DsMinRtnF64;
    Max I32: DsMaxI32 DsMaxRtnI32;
    Max I64: DsMaxI64 DsMaxRtnI64;
    Max F64: DsMaxF64 DsMaxRtnF64;
    And I32: DsAndB32 DsAndRtnB32;
    And I64: DsAndB64 DsAndRtnB64;
    Or I32: DsOrB32 DsOrRtnB32;
    Or I64: DsOrB64 DsOrRtnB64;
    Xor I32: DsXorB32 DsXorRtnB32;
    Xor I64: DsXorB64 DsXorRtnB64;
    CompareExchange I32: DsCmpstB32 DsCmpstRtnB32;
    CompareExchange I64: DsCmpstB64 DsCmpstRtnB64;
    Exchange I32: DsWrxchgRtnB32 DsWrxchgRtnB32;
    Exchange F32: DsWrxchgRtnB32 DsWrxchgRtnB32;
    Exchange I64: DsWrxchgRtnB64 DsWrxchgRtnB64;
    Exchange F64: DsWrxchgRtnB64 DsWrxchgRtnB64;
};

/// The instructions of an update, without and with a result, in global memory or in LDS. `None` for dtypes
/// that have none.
pub(super) fn updates(space: AddressSpace, op: AtomicOp, dtype: DType) -> Option<[Opcode; 2]> {
    let rows = if space == AddressSpace::Shared { LDS_UPDATES } else { BUFFER_UPDATES };
    rows.iter().find(|row| (row.0, row.1) == (op, dtype)).map(|row| row.2)
}

/// The instruction for so many bytes.
fn of_width(rows: &WidthRows, base: AccessBase, bytes: u32) -> Result<Opcode, Diagnostic> {
    let row = rows.iter().find(|row| row.0 == bytes);
    let column = match base {
        AccessBase::Descriptor(_) => 0,
        AccessBase::Lds => 1,
        AccessBase::Pointer { .. } => 2,
    };
    let found = row.and_then(|row| row.1[column]);
    found.ok_or_else(|| Diagnostic::bug(format!("an access of {bytes} bytes")))
}

/// The instruction that loads so many bytes.
pub(super) fn load(base: AccessBase, bytes: u32) -> Result<Opcode, Diagnostic> {
    of_width(LOADS, base, bytes)
}

/// The instruction that turns elements of so many bits among lanes.
pub(super) fn transposing_read(target: Target, bits: u32) -> Result<Opcode, Diagnostic> {
    let of = |target: Target| target.transposing_read(bits);
    of(target).ok_or_else(|| {
        let owners = Target::ALL.iter().filter(|&&target| of(target).is_some());
        let owners: Vec<&str> = owners.map(|target| target.name).collect();
        let text = format!("{target} has no reads of LDS that turn elements of {bits} bits");
        let help = format!(
            "compile for {}, or start with a text from before `distribute_loads`",
            owners.join(" or ")
        );
        Diagnostic::new(Kind::Unsupported, text).help(help)
    })
}

impl OperationLayer<'_> {
    /// The instruction that stores so many bytes of a value from number `byte` on, and their register.
    pub(super) fn store_of(
        &mut self,
        base: AccessBase,
        value: Operand,
        byte: u32,
        bytes: u32,
    ) -> Result<(Opcode, Operand), Diagnostic> {
        let data = value.offset(byte / 4);
        Ok(match (bytes, byte % 4) {
            (1 | 2, 2) => (of_width(UPPER_STORES, base, bytes)?, data),
            (1, position @ 1..) => {
                let shifted = self.emitter.vgpr(1);
                let shift = Scalar::Const(i64::from(position * 8));
                self.emitter.with(Opcode::VLshrrevB32, shifted, &[shift, Scalar::Reg(data)]);
                (of_width(STORES, base, 1)?, shifted)
            }
            _ => (of_width(STORES, base, bytes)?, data),
        })
    }

    /// Emits an access of global memory.
    pub(super) fn buffer_access(
        &mut self,
        op: Opcode,
        data: Operand,
        piece: &InstructionPiece,
        (descriptor, cache): (Operand, Modifiers),
    ) {
        let operands = [data, piece.offset, descriptor, piece.scalar_offset];
        self.emitter.push(Inst::new(op, &operands).imm(piece.immediate).modifiers(cache.offen()));
    }

    /// Emits an access of LDS for the lanes of a piece.
    pub(super) fn lds_access(&mut self, op: Opcode, operands: &[Operand], piece: &InstructionPiece) {
        self.masked_access(piece, Inst::new(op, operands));
    }

    /// Emits an access for the lanes of a piece, with its immediate.
    pub(super) fn masked_access(&mut self, piece: &InstructionPiece, access: Inst) {
        if let Some(mask) = piece.mask {
            self.emitter.op(Opcode::SMovB64, &[Operand::EXEC, mask]);
        }
        self.emitter.push(access.imm(piece.immediate));
        if piece.mask.is_some() {
            self.emitter.with(Opcode::SMovB64, Operand::EXEC, &[Scalar::Const(-1)]);
        }
    }

    /// Zeros in the registers that an instruction of this piece loads, where it does not load them in all
    /// lanes.
    pub(super) fn clear_for(&mut self, piece: &InstructionPiece, first: Operand, registers: u32) {
        if piece.mask.is_some() {
            for at in 0..registers {
                self.emitter.op(Opcode::VMovB32, &[first.offset(at), Operand::ZERO]);
            }
        }
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
