//! Loads from global memory straight into LDS: where in LDS each of them puts its data, and what each lane
//! loads.
//!
//! The lanes of a wave fill LDS side by side starting at the address in M0, so a swizzled buffer is filled by
//! lanes that load other columns of their rows, or of rows next to theirs. M0 is set by the scalar unit in
//! front of each load: the part of the address that depends on the wave and the copy of the buffer is in one
//! SGPR.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::lds::row_of;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Source};
use crate::ir::node::*;
use crate::passes::facts::LdsBuffer;

/// Where the loads of one logical node go.
#[derive(Clone, Debug)]
pub(crate) struct ToLdsPlan {
    /// The part that depends on the wave, in bytes.
    pub(crate) wave: Scalar,
    /// The part of the buffer and each replica, in bytes.
    pub(crate) places: SmallVec<[u32; 16]>,
}

impl AddressLayer<'_> {
    /// Makes the plan of a logical load to LDS at this point of the code.
    pub(crate) fn plan_load_to_lds(
        &mut self,
        node: Entity,
        memory: Entity,
        allocation: Entity,
    ) -> Result<(), Diagnostic> {
        if self.to_lds_plans.get(node).is_some() {
            return Ok(());
        }
        let buffer = self.get::<LdsBuffer>(allocation)?.clone();
        self.plan_global(node, memory, Some(&buffer))?;
        let layout = self.get::<Placement>(node)?.0.clone();
        let mut wave = Scalar::ZERO;
        for (&dim, step) in buffer.dims.iter().zip(steps(&buffer)) {
            let part = self.wave_part(&layout, dim);
            let bytes = self.emitter.mul(part, Scalar::Const(i64::from(step)));
            wave = self.emitter.add(wave, bytes);
        }
        let place_of = |replica: u32| {
            let place = layout::Place { replica, ..layout::Place::default() };
            let column = buffer.dims.last().map_or(0, |&dim| layout.coordinate(dim, place));
            let row = row_of(&buffer, |dim| layout.coordinate(dim, place));
            buffer.offset + row * buffer.pitch + column * buffer.element_bytes
        };
        let places = (0..layout.extent(Source::Replica)).map(place_of).collect();
        self.to_lds_plans.insert(node, ToLdsPlan { wave, places });
        Ok(())
    }
}

/// Bytes from one coordinate of each dimension of a buffer to the next.
pub(crate) fn steps(buffer: &LdsBuffer) -> SmallVec<[u32; 4]> {
    let (mut steps, mut step) = (SmallVec::<[u32; 4]>::new(), buffer.pitch);
    steps.push(buffer.element_bytes);
    for &extent in buffer.extents.iter().rev().skip(1) {
        steps.push(step);
        step *= extent;
    }
    steps.reverse();
    steps
}
