//! How often the contents of registers are used: several nodes can have the same contents, such as the
//! results of a loop that runs once and the values that it yields.

use bevy_ecs::prelude::*;

use super::ValueLayer;
use super::places::{Contents, ValuePlace};
use crate::codegen::isa::Operand;
use cranelift_entity::EntityRef;

impl ValueLayer<'_> {
    /// The contents of the register that `registers` is.
    pub(crate) fn contents(&self, registers: Operand) -> Option<&Contents> {
        self.places.contents.get(registers.as_virtual()?.0.index())
    }

    pub(crate) fn contents_mut(&mut self, registers: Operand) -> Option<&mut Contents> {
        self.places.contents.get_mut(registers.as_virtual()?.0.index())
    }

    /// Notes that `node` is the contents of `place`.
    pub(super) fn note_contents(&mut self, node: Entity, place: &ValuePlace) {
        let ValuePlace::Registers(registers) = place else { return };
        let Some((id, _)) = registers.as_virtual() else { return };
        if self.places.contents.len() <= id.index() {
            self.places.contents.resize(id.index() + 1, Contents::NONE);
        }
        let depth = self.depth();
        let contents = &mut self.places.contents[id.index()];
        if *contents == Contents::NONE {
            contents.depth = depth;
        }
        contents.uses += self.places.of_nodes[node.index_u32() as usize].uses;
    }

    /// Loops around this point.
    pub(crate) fn depth(&self) -> u32 {
        self.loops.len() as u32 + self.whiles
    }

    /// The registers hold something else from here on.
    pub(crate) fn renew_contents(&mut self, places: &[ValuePlace]) {
        for place in places {
            if let ValuePlace::Registers(registers) = *place
                && let Some(contents) = self.contents_mut(registers)
            {
                *contents = Contents::NONE;
            }
        }
    }
}
