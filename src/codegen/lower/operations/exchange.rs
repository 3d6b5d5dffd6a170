//! Updates of global memory for which a chip has no instruction: the new element is computed from what is
//! there, and takes its place if that is still there. Otherwise the lane tries again with what it found.
//!
//! The first attempt expects zero, so that no load is needed: it is right in memory that was cleared, and
//! tells what is there otherwise. A lane that is done, or that is outside of the memory, goes on with an
//! offset outside, where nothing is exchanged, until all lanes are: EXEC stays as it is.

use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::addresses::access::InstructionPiece;
use crate::codegen::lower::addresses::masks::OUTSIDE;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::machine::BlockId;
use crate::ir::node::AtomicOp;
use crate::ir::types::DType;

/// How elements of a dtype are updated by exchange.
#[derive(Copy, Clone)]
pub(super) struct UpdateByExchange {
    op: AtomicOp,
    dtype: DType,
    /// Makes the new element from the one that is there and the author's.
    join: Opcode,
    exchange: Opcode,
    /// Compares what was found with what was expected, bit by bit.
    compare: Opcode,
}

macro_rules! updates {
    ($($op:ident $dtype:ident: $join:ident $exchange:ident $compare:ident;)*) => {
        [$(UpdateByExchange {
            op: AtomicOp::$op,
            dtype: DType::$dtype,
            join: Opcode::$join,
            exchange: Opcode::$exchange,
            compare: Opcode::$compare,
        }),*]
    };
}

/// Updates that some chips have no instruction for. All chips have those that are used here.
const UPDATES: [UpdateByExchange; 5] = updates! {
    Add F32: VAddF32 BufferAtomicCmpswapRtn VCmpEqU32;
    Add F16: VPkAddF16 BufferAtomicCmpswapRtn VCmpEqU32;
    Add F64: VAddF64 BufferAtomicCmpswapX2Rtn VCmpEqU64;
    Min F64: VMinF64 BufferAtomicCmpswapX2Rtn VCmpEqU64;
    Max F64: VMaxF64 BufferAtomicCmpswapX2Rtn VCmpEqU64;
};

/// Elements of a lane that are updated in one loop: their exchanges are under way together.
const TOGETHER: usize = 8;

/// An element of each lane that is being updated.
struct OpenUpdate {
    offset: Operand,
    expected: Operand,
    data: Operand,
}

impl UpdateByExchange {
    /// That of an operation, if there is one.
    pub(super) fn of(op: AtomicOp, dtype: DType) -> Option<UpdateByExchange> {
        UPDATES.into_iter().find(|row| (row.op, row.dtype) == (op, dtype))
    }
}

impl OperationLayer<'_> {
    /// Updates the elements of pieces by values. What was there before comes to `before`, an element after
    /// the other.
    pub(super) fn update_by_exchange(
        &mut self,
        update: UpdateByExchange,
        values: &[Operand],
        pieces: &[InstructionPiece],
        descriptor: Operand,
        before: Operand,
    ) {
        let width = update.dtype.bytes().div_ceil(4);
        let outside = self.in_vector(Scalar::Const(i64::from(OUTSIDE)));
        let places = (0..).map(|at| before.offset(at * width));
        let elements: Vec<_> = pieces.iter().zip(values).zip(places).collect();
        for elements in elements.chunks(TOGETHER) {
            let mut open: SmallVec<[OpenUpdate; TOGETHER]> = SmallVec::new();
            for &((piece, _), expected) in elements {
                let offset = self.offset_inside(piece, descriptor, outside);
                for at in 0..width {
                    self.emitter.op(Opcode::VMovB32, &[expected.offset(at), Operand::ZERO]);
                }
                open.push(OpenUpdate { offset, expected, data: self.emitter.vgpr(2 * width) });
            }
            let block = self.emitter.next_block(None);
            for (&((&piece, &value), _), element) in elements.iter().zip(&open) {
                self.emitter.op(update.join, &[element.data, element.expected, value]);
                self.copy_registers(element.data.offset(width), element.expected, width);
                let piece = InstructionPiece { offset: element.offset, ..piece };
                self.buffer_access(update.exchange, element.data, &piece, (descriptor, Modifiers::new()));
            }
            for &OpenUpdate { offset, expected, data } in &open {
                let [done, going] = [self.emitter.sgpr(2), self.emitter.sgpr(2)];
                self.emitter.op(update.compare, &[done, data, expected]);
                // Lanes that are done keep what they found.
                self.emitter.op(Opcode::VCmpLeI32, &[going, Operand::ZERO, offset]);
                for at in 0..width {
                    let (expected, data) = (expected.offset(at), data.offset(at));
                    self.emitter.op(Opcode::VCndmaskB32, &[expected, expected, data, going]);
                }
                self.emitter.op(Opcode::VCndmaskB32, &[offset, offset, outside, done]);
            }
            self.repeat_unless_outside(&open, block);
        }
    }

    /// The vector offset of a piece in a register of its own, as [`OUTSIDE`] where the descriptor ends the
    /// memory in front of it.
    fn offset_inside(&mut self, piece: &InstructionPiece, descriptor: Operand, outside: Operand) -> Operand {
        let reached = match piece.immediate {
            0 => piece.offset,
            immediate => {
                let reached = self.emitter.vgpr(1);
                let sources = [Scalar::Const(i64::from(immediate)), Scalar::Reg(piece.offset)];
                self.emitter.with(Opcode::VAddU32, reached, &sources);
                reached
            }
        };
        let [offset, mask] = [self.emitter.vgpr(1), self.emitter.sgpr(2)];
        self.emitter.op(Opcode::VCmpLeU32, &[mask, descriptor.offset(2), reached]);
        self.emitter.op(Opcode::VCndmaskB32, &[offset, piece.offset, outside, mask]);
        offset
    }

    /// Ends the open block, a loop from `block` on, which is left once all offsets of all lanes are outside:
    /// these are the ones with the highest bit.
    fn repeat_unless_outside(&mut self, open: &[OpenUpdate], block: BlockId) {
        let [first, rest @ ..] = open else { return };
        let mut all = first.offset;
        for element in rest {
            let joined = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VAndB32, &[joined, all, element.offset]);
            all = joined;
        }
        let going = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpLeI32, &[going, Operand::ZERO, all]);
        self.emitter.op(Opcode::SCmpLgU64, &[going, Operand::ZERO]);
        self.emitter.push(Inst::new(Opcode::SCbranchScc1, &[]).imm(block.as_u32()));
        self.emitter.next_block(Some(block));
    }
}
