//! Values whose elements change places within a wave: other registers of the same lane.
//!
//! Elements that fill registers stay where they are, and the value is the list of them: what reads elements
//! one by one reads them there, and only what needs them side by side, as stores do, has them copied.
//! Narrower ones are packed anew.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::{Lowering, ValuePlace};
use crate::codegen::isa::{Opcode, Operand};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::passes::expand::Expansion;

impl Lowering<'_> {
    /// One piece of a value in other registers; `pieces` are those of the value that it takes elements of.
    pub(super) fn rearrange(
        &mut self,
        node: Entity,
        expansion: Expansion,
        pieces: &[Entity],
    ) -> Result<(), Diagnostic> {
        let own = &self.get::<Placement>(expansion.logical)?.0;
        let first = *pieces.first().ok_or_else(|| self.bug("nothing is rearranged"))?;
        let from = &self.get::<Placement>(Expansion::at(self.world, first).logical)?.0;
        let bytes = self.element_bytes(expansion.logical)?;
        for &piece in pieces {
            self.settle(piece)?;
        }
        if let place @ (ValuePlace::Constant(_) | ValuePlace::Uniform(_)) = *self.place(first)? {
            self.set_place(node, place);
            return Ok(());
        }
        let registers = own.extent(Source::Register);
        let mut elements: SmallVec<[ElementRegister; 16]> = SmallVec::new();
        for register in 0..registers {
            let place = layout::Place { replica: expansion.replica, register, ..layout::Place::default() };
            let coordinate = |dim: Dim| own.coordinate(dim, place);
            let replica = index_of(from, Source::Replica, coordinate);
            let is_it = |piece: &&Entity| Expansion::at(self.world, **piece).replica == replica;
            let piece = *pieces.iter().find(is_it).ok_or_else(|| self.bug("an element of no piece"))?;
            let ValuePlace::Registers(piece) = *self.place(piece)? else {
                return Err(self.bug("what is rearranged is in no registers"));
            };
            let byte = index_of(from, Source::Register, coordinate) * bytes;
            elements.push(ElementRegister { register: piece.offset(byte / 4), byte: byte % 4 });
        }
        let place = match bytes {
            4 | 8 => {
                let first = self.scattered.len() as u32;
                let dwords = |element: &ElementRegister| {
                    (0..bytes / 4).map(|at| element.register.offset(at)).collect()
                };
                self.scattered.extend(elements.iter().flat_map(|e| -> SmallVec<[Operand; 2]> { dwords(e) }));
                ValuePlace::Scattered(first)
            }
            _ => ValuePlace::Registers(self.side_by_side(&elements, bytes)),
        };
        self.set_place(node, place);
        Ok(())
    }

    /// Elements of one or two bytes, side by side.
    fn side_by_side(&mut self, elements: &[ElementRegister], bytes: u32) -> Operand {
        let value = self.emitter.vgpr((elements.len() as u32 * bytes).div_ceil(4));
        for (at, group) in elements.chunks((4 / bytes) as usize).enumerate() {
            let dst = value.offset(at as u32);
            // Neighbours join to pairs, pairs to quadruples.
            let mut parts: SmallVec<[ElementRegister; 4]> = group.into();
            let mut size = bytes;
            while parts.len() > 1 {
                let is_last = parts.len() == 2;
                let pairs = parts.chunks(2).map(|pair| match *pair {
                    [low, high] => {
                        let register = if is_last { dst } else { self.emitter.vgpr(1) };
                        self.join_pair([low, high], size, register);
                        ElementRegister { register, byte: 0 }
                    }
                    _ => pair[0],
                });
                parts = pairs.collect();
                size *= 2;
            }
            if group.len() == 1 {
                self.join_pair([parts[0]; 2], bytes, dst);
            }
        }
        value
    }

    /// Two elements of `size` bytes in the low bytes of a register.
    fn join_pair(&mut self, [low, high]: [ElementRegister; 2], size: u32, to: Operand) {
        // Bytes 0 to 3 are those of the last source (CDNA3 ISA guide, V_PERM_B32).
        let bytes = |first: u32| (0..size).fold(0, |all, at| all | (first + at) << (8 * at));
        let selector = bytes(low.byte) | bytes(4 + high.byte) << (8 * size);
        let selector = self.constant_sgpr(selector);
        self.emitter.op(Opcode::VPermB32, &[to, high.register, low.register, selector]);
    }

    /// Finishes a value, and brings the elements of one that is scattered together.
    pub(super) fn settle(&mut self, node: Entity) -> Result<(), Diagnostic> {
        self.finish(node);
        if let ValuePlace::Scattered(first) = *self.place(node)? {
            let width = self.width(node)?;
            let registers = self.gathered(first, width);
            self.set_place(node, ValuePlace::Registers(registers));
        }
        Ok(())
    }

    /// Copies of scattered registers, side by side.
    pub(super) fn gathered(&mut self, first: u32, width: u32) -> Operand {
        let registers = self.emitter.vgpr(width);
        for at in 0..width {
            let from = self.scattered[(first + at) as usize];
            self.emitter.op(Opcode::VMovB32, &[registers.offset(at), from]);
        }
        registers
    }
}

/// Where an element is.
#[derive(Copy, Clone)]
struct ElementRegister {
    register: Operand,
    /// Its first byte there, if it is narrower than a register.
    byte: u32,
}

/// The index of a source at which a layout holds the coordinates.
fn index_of(layout: &Layout, source: Source, coordinate: impl Fn(Dim) -> u32) -> u32 {
    let (mut index, mut weight) = (0, 1);
    for mode in layout.of_source(source) {
        if let Some(dim) = mode.dim {
            index += coordinate(dim) / mode.stride % mode.extent * weight;
        }
        weight *= mode.extent;
    }
    index
}
