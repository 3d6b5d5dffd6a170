//! Atomic updates of global memory and of LDS: one instruction for each element, by the first of the lanes
//! and waves that hold it. In global memory the others address an element outside of the memory, as masked
//! ones do, and nothing happens there; in LDS they are switched off. What a chip has no instruction for goes
//! by exchange ([`super::exchange`]).
//!
//! An update (`Op::Atomic`) is an access that writes its memory and has a value, what was there before, in
//! the layout of the value that it joins. Masks and mappings are those of a write, and updates of LDS always
//! have a mapping. If lanes that did not make the update need its value, `convert_layouts` sends it through
//! LDS. Elements of 16 bits are updated in pairs, or not at all. The verifier wants every dimension that is
//! spread over workgroups in the value.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use super::exchange::UpdateByExchange;
use super::memory_instructions::updates;
use crate::codegen::isa::{Modifiers, Opcode, Operand, Role};
use crate::codegen::lower::addresses::access::InstructionPieces;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::types::{AddressSpace, DType};

/// The elements of an expanded update.
struct UpdatedElements {
    pieces: InstructionPieces,
    /// Values in registers, in their order.
    joined: SmallVec<[Operand; 2]>,
    /// Registers of an element.
    width: u32,
    /// True if anything uses what was there before.
    are_used: bool,
}

impl OperationLayer<'_> {
    /// Emits the instructions of one expanded update.
    pub(super) fn update(
        &mut self,
        node: Entity,
        op: AtomicOp,
        access: &ExpandedNodeItem,
    ) -> Result<(), Diagnostic> {
        let (logical, memory) = (access.expansion()?.logical, access.memory()?);
        let dtype = self.logical_dtype(memory)?;
        let space = self.space_of(logical)?;
        let known = updates(space, op, dtype);
        let lacks = space == AddressSpace::Global && known.is_some_and(|known| self.lacks(node, known));
        let by_exchange = if lacks { UpdateByExchange::of(op, dtype) } else { None };
        let instruction = match by_exchange {
            Some(_) => None,
            None => Some(self.update_instruction(node, op, dtype, known)?),
        };
        let registers = self.elements_of(logical)?;
        let mut joined: SmallVec<[Operand; 2]> = SmallVec::new();
        for &value in &access.operands.0[..op.values()] {
            joined.push(self.in_registers(value, registers, dtype.bytes())?);
        }
        let addressed = self.addressed(access)?;
        self.check_granule(node, dtype, addressed.width.granule)?;
        let (width, are_used) = (dtype.bytes().div_ceil(4), self.is_used(node));
        let elements = UpdatedElements { pieces: addressed.pieces, joined, width, are_used };
        let before = match (addressed.base.descriptor(), by_exchange, instruction) {
            (None, _, Some(instruction)) => self.update_lds(instruction, &elements),
            (Some(descriptor), Some(update), _) => self.exchange_all(update, &elements, descriptor),
            (Some(descriptor), _, Some(instruction)) => self.update_memory(instruction, elements, descriptor),
            (_, _, None) => return Err(Diagnostic::bug("an update without an instruction")),
        };
        if space == AddressSpace::Global {
            self.emitter.out.written.insert(memory);
        }
        if let Some(before) = before {
            self.set_place(node, ValuePlace::Registers(before));
        }
        Ok(())
    }

    /// Updates LDS; returns what was there before, if the instruction gives it.
    fn update_lds(&mut self, instruction: Opcode, elements: &UpdatedElements) -> Option<Operand> {
        let UpdatedElements { pieces, joined, width, .. } = elements;
        let gives = instruction.info().operands[0].role == Role::Def;
        let before = gives.then(|| self.emitter.vgpr(pieces.len() as u32 * width));
        for (piece, at) in pieces.iter().zip(0..) {
            let old = before.map(|before| before.offset(at * width));
            // In the order of the values: the expected element comes first (CDNA3 ISA guide, DS_CMPST_B32).
            let mut operands: SmallVec<[Operand; 4]> = old.into_iter().collect();
            operands.push(piece.offset);
            operands.extend(joined.iter().map(|register| register.offset(at * width)));
            if let Some(old) = old {
                self.clear_for(piece, old, *width);
            }
            self.lds_access(instruction, &operands, piece);
        }
        before
    }

    /// Updates global memory by exchange; returns what was there before, if it is used.
    fn exchange_all(
        &mut self,
        update: UpdateByExchange,
        elements: &UpdatedElements,
        descriptor: Operand,
    ) -> Option<Operand> {
        let UpdatedElements { pieces, joined, width, .. } = elements;
        let count = pieces.len() as u32;
        let values = joined.iter().flat_map(|value| (0..count).map(|at| value.offset(at * width)));
        let values: SmallVec<[Operand; 16]> = values.collect();
        let before = self.emitter.vgpr(count * width);
        self.update_by_exchange(update, &values, pieces, descriptor, before);
        elements.are_used.then_some(before)
    }

    /// Updates global memory; returns what was there before, if it is used.
    fn update_memory(
        &mut self,
        instruction: Opcode,
        elements: UpdatedElements,
        descriptor: Operand,
    ) -> Option<Operand> {
        let UpdatedElements { pieces, mut joined, width, are_used } = elements;
        let count = pieces.len() as u32;
        // The new element comes first, then the expected one, and what was there before replaces the first
        // (CDNA3 ISA guide, BUFFER_ATOMIC_CMPSWAP).
        joined.reverse();
        let parts = joined.len() as u32;
        let mut data: SmallVec<[Operand; 16]> = SmallVec::new();
        if let (&[value], false) = (&joined[..], are_used) {
            data.extend((0..count).map(|at| value.offset(at * width)));
        } else {
            // What several elements find lies side by side; with the expected ones it would fill more than
            // the largest tuple.
            let together = (parts == 1).then(|| self.emitter.vgpr(count * width));
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
        }
        for (piece, &data) in pieces.iter().zip(&data) {
            self.buffer_access(instruction, data, piece, (descriptor, Modifiers::new()));
        }
        if !are_used {
            return None;
        }
        if let (1, &[first, ..]) = (parts, &data[..]) {
            return Some(first);
        }
        let before = self.emitter.vgpr(count * width);
        for (&data, at) in data.iter().zip(0..) {
            self.copy_registers(before.offset(at * width), data, width);
        }
        Some(before)
    }

    /// Whether the chip has no such update; of those without and with a result, the one that is needed.
    fn lacks(&self, node: Entity, [plain, returning]: [Opcode; 2]) -> bool {
        let needed = if self.is_used(node) { returning } else { plain };
        !needed.on(self.target.arch)
    }

    /// The instruction of an update, of those without and with a result: with one if that is used.
    fn update_instruction(
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
    fn check_granule(&self, node: Entity, dtype: DType, granule: u32) -> Result<(), Diagnostic> {
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
