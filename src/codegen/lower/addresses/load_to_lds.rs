//! Loads from global memory straight into LDS: where in LDS each of them puts its data, and what each lane
//! loads.
//!
//! The lanes of a wave fill LDS side by side starting at the address in M0, so a swizzled buffer is filled by
//! lanes that load other columns of their rows, or of rows next to theirs. M0 is set by the scalar unit in
//! front of each load: the part of the address that depends on the wave and the copy of the buffer is in one
//! SGPR.

use bevy_ecs::prelude::*;

use super::AddressLayer;
use super::access::{AccessPlan, LdsFill, instruction_places};
use super::lds::row_of;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Source;
use crate::ir::node::*;
use crate::passes::facts::LdsBuffer;
use crate::passes::loops::expand::Expansion;

impl AddressLayer<'_> {
    /// The plan of a logical load to LDS at this point of the code.
    pub(super) fn plan_load_to_lds(
        &mut self,
        node: Entity,
        memory: Entity,
        allocation: Entity,
    ) -> Result<AccessPlan, Diagnostic> {
        let buffer = self.get::<LdsBuffer>(allocation)?;
        let plan = self.plan_global(node, memory, Some(buffer))?;
        let layout = &self.get::<Placement>(node)?.0;
        let mut wave = Scalar::ZERO;
        for &dim in &buffer.dims {
            let part = self.wave_part(layout, dim);
            let bytes = self.emitter.mul(part, Scalar::Const(i64::from(buffer.stride(dim))));
            wave = self.emitter.add(wave, bytes);
        }
        let starts = instruction_places(layout, layout.extent(Source::Register));
        let place_of = |place| {
            let column = buffer.dims.last().map_or(0, |&dim| layout.coordinate(dim, place));
            let row = row_of(buffer, |dim| layout.coordinate(dim, place));
            buffer.offset + row * buffer.pitch + column * buffer.element_bytes
        };
        Ok(AccessPlan { fill: Some(LdsFill { wave, places: starts.map(place_of).collect() }), ..plan })
    }

    /// The place in LDS of the data of an expanded load: a register, if it needs one, and what is added.
    pub(crate) fn filled_place(
        &mut self,
        expansion: Expansion,
        allocation: Entity,
    ) -> Result<(Option<Operand>, Scalar), Diagnostic> {
        let fill = self.plan_of(expansion.logical)?.fill.as_ref();
        let fill = fill.ok_or_else(|| Diagnostic::bug("a load to LDS without a place there"))?;
        let (wave, place) = (fill.wave, i64::from(fill.places[expansion.replica as usize]));
        let (base, place) = match (wave, self.copy_offset(allocation, expansion.iteration)?) {
            (Scalar::Reg(wave), Scalar::Reg(copy)) => {
                (Some(self.moved_address(wave, Scalar::Reg(copy))), place)
            }
            (Scalar::Reg(base), Scalar::Const(bytes)) | (Scalar::Const(bytes), Scalar::Reg(base)) => {
                (Some(base), place + bytes)
            }
            (Scalar::Const(wave), Scalar::Const(copy)) => (None, place + wave + copy),
        };
        Ok((base, Scalar::Const(place)))
    }
}
