//! How often the contents of registers are used: several nodes can have the same contents, such as the
//! results of a loop that runs once and the values that it yields.

use bevy_ecs::prelude::*;

use super::{Lowering, ValuePlace};
use crate::codegen::isa::Operand;
use crate::index::Id;

/// What is known of the contents of one virtual register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    /// Uses of all nodes that have these contents, anywhere in the kernel.
    pub(super) uses: u32,
    /// Loops around the place where they are written.
    pub(super) depth: u32,
}

impl Contents {
    /// Of no node yet.
    const NONE: Contents = Contents { uses: 0, depth: u32::MAX };
}

impl Lowering<'_> {
    /// The contents of the register that `registers` is.
    pub(super) fn contents(&self, registers: Operand) -> Option<&Contents> {
        self.contents.get(registers.as_virtual()?.0.index())
    }

    pub(super) fn contents_mut(&mut self, registers: Operand) -> Option<&mut Contents> {
        self.contents.get_mut(registers.as_virtual()?.0.index())
    }

    /// Notes that `node` is the contents of `place`.
    pub(super) fn note_contents(&mut self, node: Entity, place: &ValuePlace) {
        let ValuePlace::Registers(registers) = place else { return };
        let Some((id, _)) = registers.as_virtual() else { return };
        if self.contents.len() <= id.index() {
            self.contents.resize(id.index() + 1, Contents::NONE);
        }
        let depth = self.depth();
        let contents = &mut self.contents[id.index()];
        if *contents == Contents::NONE {
            contents.depth = depth;
        }
        contents.uses += self.uses[node.index_u32() as usize];
    }

    /// Loops around this point.
    pub(super) fn depth(&self) -> u32 {
        self.loops.len() as u32 + self.whiles
    }

    /// The registers hold something else from here on.
    pub(super) fn renew_contents(&mut self, places: &[ValuePlace]) {
        for place in places {
            if let ValuePlace::Registers(registers) = *place
                && let Some(contents) = self.contents_mut(registers)
            {
                *contents = Contents::NONE;
            }
        }
    }
}
