//! Values that loops and regions under a condition carry.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ControlLayer;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::RegisterFile;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;

impl ControlLayer<'_> {
    /// Registers of the carried values, holding the initial ones. An initial value gives up its registers if
    /// this is the only use of their contents, and if they are written anew whenever the loop is entered.
    pub(super) fn carried_registers(
        &mut self,
        inits: &[Entity],
    ) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        let mut carried = SmallVec::with_capacity(inits.len());
        for &init in inits {
            self.settle_demanded(init)?;
            let place = *self.place(init)?;
            if let ValuePlace::Registers(registers) = place
                && self.emitter.file(registers) == RegisterFile::Vgpr
                && self.contents(registers).is_some_and(|c| c.uses == 1 && c.depth >= self.depth())
            {
                carried.push(place);
                continue;
            }
            let width = self.width(init)?;
            let registers = self.emitter.vgpr(width);
            self.copy_into(registers, &place, width)?;
            carried.push(ValuePlace::Registers(registers));
        }
        Ok(carried)
    }

    /// Where the initial values are.
    pub(super) fn initial_places(
        &mut self,
        inits: &[Entity],
    ) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        inits
            .iter()
            .map(|&init| {
                self.settle_demanded(init)?;
                self.place(init).copied()
            })
            .collect()
    }

    /// Gives the arguments of a loop's body the registers that carry them.
    pub(super) fn place_arguments(&mut self, node: Entity, carried: &[ValuePlace]) -> Result<(), Diagnostic> {
        for &argument in &self.get::<Body>(node)?.0 {
            // They come first.
            let Op::IterArg(number) = *self.expanded(argument)?.op else { break };
            if let Some(place) = carried.get(number as usize) {
                self.set_place(argument, *place);
            }
        }
        Ok(())
    }

    /// Places of the values that the body yields, for a body that runs exactly once.
    pub(super) fn yielded(&mut self, node: Entity) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        let world = self.kernel.world;
        let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
        yields
            .iter()
            .map(|&value| {
                self.settle_demanded(value)?;
                let place = *self.place(value)?;
                // The results of the loop have the same contents, and their uses count instead.
                if let ValuePlace::Registers(registers) = place
                    && let Some(contents) = self.contents_mut(registers)
                {
                    contents.uses = contents.uses.saturating_sub(1);
                }
                Ok(place)
            })
            .collect()
    }
}
