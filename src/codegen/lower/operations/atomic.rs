//! Atomic updates of global memory: one instruction for each element, by the first of the lanes and waves
//! that hold it. The others address an element outside of the memory, as masked ones do, and nothing happens
//! there. What a chip has no instruction for goes by exchange ([`super::exchange`]).
//!
//! An update (`Op::Atomic`) is an access that writes its memory and has a value, what was there before, in
//! the layout of the value that it joins. Masks and mappings are those of a write. If lanes that did not
//! make the update need its value, `convert_layouts` sends it through LDS. Elements of 16 bits are updated
//! in pairs, or not at all. The verifier wants every dimension that is spread over workgroups in the value.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use super::exchange::UpdateByExchange;
use crate::codegen::isa::{Modifiers, Opcode, Operand};
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// The instructions of an update: without and with a result. `None` for dtypes that have none.
pub(crate) fn instructions(op: AtomicOp, dtype: DType) -> Option<[Opcode; 2]> {
    Some(match (op, dtype) {
        (AtomicOp::Add, DType::F32) => [Opcode::BufferAtomicAddF32, Opcode::BufferAtomicAddF32Rtn],
        (AtomicOp::Add, DType::I32) => [Opcode::BufferAtomicAdd, Opcode::BufferAtomicAddRtn],
        (AtomicOp::Add, DType::F16) => [Opcode::BufferAtomicPkAddF16, Opcode::BufferAtomicPkAddF16Rtn],
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
        (AtomicOp::CompareExchange, DType::I32) => {
            [Opcode::BufferAtomicCmpswap, Opcode::BufferAtomicCmpswapRtn]
        }
        (AtomicOp::CompareExchange, DType::I64) => {
            [Opcode::BufferAtomicCmpswapX2, Opcode::BufferAtomicCmpswapX2Rtn]
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
            | AtomicOp::Exchange
            | AtomicOp::CompareExchange,
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
            | DType::F8E8M0
            | DType::F4E2M1
            | DType::F6E2M3
            | DType::F6E3M2,
        ) => return None,
    })
}

impl OperationLayer<'_> {
    /// Emits the instructions of one expanded update.
    pub(crate) fn atomic(
        &mut self,
        node: Entity,
        op: AtomicOp,
        expansion: Expansion,
        values: &[Entity],
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        self.emitter.out.written.insert(memory);
        let dtype = self.logical_dtype(memory)?;
        let known = instructions(op, dtype);
        let by_exchange = match known.is_some_and(|known| self.lacks(node, known)) {
            true => UpdateByExchange::of(op, dtype),
            false => None,
        };
        let width = dtype.bytes().div_ceil(4);
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let mut joined: SmallVec<[Operand; 2]> = SmallVec::new();
        for &value in values {
            joined.push(self.in_registers(value, registers, dtype.bytes())?);
        }
        let (descriptor, granule, pieces) = self.global_pieces(node, expansion, registers, memory)?;
        self.check_granule(node, dtype, granule)?;
        let count = registers / granule;
        let is_used = self.is_used(node);
        if let (Some(update), &[value]) = (by_exchange, &joined[..]) {
            let values: SmallVec<[Operand; 16]> = (0..count).map(|at| value.offset(at * width)).collect();
            let before = self.emitter.vgpr(count * width);
            self.update_by_exchange(update, &values, &pieces, descriptor, before);
            if is_used {
                self.set_place(node, ValuePlace::Registers(before));
            }
            return Ok(());
        }
        let instruction = self.update(node, op, dtype, known)?;
        // The new element comes first, then the expected one, and what was there before replaces the first
        // (CDNA3 ISA guide, BUFFER_ATOMIC_CMPSWAP).
        joined.reverse();
        let parts = joined.len() as u32;
        let data: SmallVec<[Operand; 16]> = match (&joined[..], is_used) {
            (&[value], false) => (0..count).map(|at| value.offset(at * width)).collect(),
            _ => {
                // What several elements find lies side by side; with the expected ones it would fill more
                // than the largest tuple.
                let together = (parts == 1).then(|| self.emitter.vgpr(count * width));
                let mut data = SmallVec::new();
                for at in 0..count {
                    let own = match together {
                        Some(together) => together.offset(at * width),
                        None => self.emitter.vgpr(parts * width),
                    };
                    for (&value, part) in joined.iter().zip(0..) {
                        self.copy_registers(own.offset(part * width), value.offset(at * width), width);
                    }
                    data.push(own);
                }
                data
            }
        };
        for (piece, &data) in pieces.into_iter().zip(&data) {
            self.buffer_access(instruction, data, piece, (descriptor, Modifiers::new()));
        }
        if is_used {
            let before = match (parts, &data[..]) {
                (1, &[first, ..]) => first,
                _ => {
                    let before = self.emitter.vgpr(count * width);
                    for (&data, at) in data.iter().zip(0..) {
                        self.copy_registers(before.offset(at * width), data, width);
                    }
                    before
                }
            };
            self.set_place(node, ValuePlace::Registers(before));
        }
        Ok(())
    }

    /// Whether the chip has no such update; of those without and with a result, the one that is needed.
    fn lacks(&self, node: Entity, [plain, returning]: [Opcode; 2]) -> bool {
        let needed = if self.is_used(node) { returning } else { plain };
        !needed.on(self.target.arch)
    }

    /// The instruction of an update, of those without and with a result: with one if that is used.
    pub(super) fn update(
        &self,
        node: Entity,
        op: AtomicOp,
        dtype: DType,
        known: Option<[Opcode; 2]>,
    ) -> Result<Opcode, Diagnostic> {
        let [plain, returning] = known.ok_or_else(|| Diagnostic::bug("an atomic update of another dtype"))?;
        let (chip, is_used) = (self.target.arch, self.is_used(node));
        let instruction = if is_used { returning } else { plain };
        if !self.lacks(node, [plain, returning]) {
            return Ok(instruction);
        }
        let (target, word, others) = (self.target, op.row().word, instruction.info().arches);
        let text = format!("{target} has no instruction for `{word}` of {dtype}");
        let fault = match is_used && plain.on(chip) {
            true => {
                Diagnostic::new(Kind::Unsupported, format!("{text} that gives back what was there before"))
                    .help(format!("leave its value unused, or compile for {others}"))
            }
            false => Diagnostic::new(Kind::Unsupported, format!("{text} here"))
                .help(format!("compile for {others}, or update another dtype")),
        };
        Err(fault.at(self.at(node)))
    }

    /// Refuses updates of single elements of 16 bits: the instructions update whole dwords, and what is
    /// beside an element may not be the workgroup's, or not be there.
    pub(super) fn check_granule(&self, node: Entity, dtype: DType, granule: u32) -> Result<(), Diagnostic> {
        if granule * dtype.bytes() >= 4 {
            return Ok(());
        }
        let text = format!("elements of {dtype} are updated in pairs, and here neighbours may be apart");
        Err(Diagnostic::new(Kind::Limit, text).at(self.at(node)).help(
            "let the last coordinate be the last dimension of the value, of an even size (`assume N % 2 == 0` if \
             it is open), or update a memory of f32",
        ))
    }

    /// Whether anything uses what an update gives back.
    fn is_used(&self, node: Entity) -> bool {
        self.places.of_nodes.get(node.index_u32() as usize).is_some_and(|value| value.uses > 0)
    }
}
