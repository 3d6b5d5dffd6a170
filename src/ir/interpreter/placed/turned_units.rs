//! Reads of units that lie along another dimension than those of the memory.

use bevy_ecs::prelude::*;

use super::fragment::{Fragment, places};
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::layout::{Dim, Source};
use crate::ir::node::*;

impl Machine<'_> {
    /// Each unit of a value is made of several units of a memory or of an LDS buffer.
    pub(super) fn read_turned(
        &self,
        node: Entity,
        turned: &TurnedUnits,
        memory: Entity,
        frame: usize,
        wave: &PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let (layout, frame) = (self.layout(node), &self.frames[frame]);
        let dtype = self.get::<ValueType>(memory)?.dtype.ok_or_else(|| bug("a memory without dtype"))?;
        let (first, replicas) = self.replicas(node, &layout);
        let registers = layout.extent(Source::Register);
        let mut fragment =
            Fragment { dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() };
        let path = self.access_path(node, memory, frame, wave, group)?;
        for (at, place) in places(first, replicas, registers, wave.number).enumerate() {
            let own = |dim: Dim| layout.coordinate(dim, place);
            // Tiles begin at whole units, so that the place in the tile tells which part of one it is.
            let (mut word, mut is_defined) = (0, true);
            for part in turned.parts(own) {
                let stored = |dim: Dim| turned.stored_coordinate(dim, &part, own);
                let element = path.element(at, stored).map_err(|fault| fault.at(self.location(node)))?;
                let found = self.found(element, (memory, dtype), wave, group)?;
                is_defined &= found.is_some();
                word |= part.of(found.unwrap_or_default());
            }
            fragment.defined.push(is_defined);
            fragment.bits.push(word);
        }
        Ok(fragment)
    }
}
