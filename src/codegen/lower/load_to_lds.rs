//! Loads from global memory straight into LDS: where in LDS each of them puts its data, and what each lane
//! loads.
//!
//! The lanes of a wave fill LDS side by side starting at the address in M0, so a swizzled buffer is filled by
//! lanes that load other columns of their rows, or of rows next to theirs. M0 is set by the scalar unit in
//! front of each load: the part of the address that depends on the wave and the copy of the buffer is in one
//! SGPR.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::Lowering;
use super::emitter::Scalar;
use super::global::Coordinates;
use super::lds::row_of;
use crate::codegen::isa::{Opcode, Operand};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Source};
use crate::ir::node::*;
use crate::passes::facts::LdsBuffer;
use crate::passes::loops::expand::Expansion;

/// Where the loads of one logical node go.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct ToLdsPlan {
    /// The part that depends on the wave, in bytes.
    wave: Scalar,
    /// The part of the buffer and each replica, in bytes.
    places: SmallVec<[u32; 16]>,
}

impl Lowering<'_> {
    /// Makes the plan of a logical load to LDS at this point of the code.
    pub(super) fn plan_load_to_lds(
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

    /// Gives the lanes the columns, and rows, that a swizzled buffer has where they write, this many rows
    /// after their own.
    pub(super) fn swizzle(&mut self, coordinates: &mut Coordinates, buffer: &LdsBuffer, rows: u32) {
        let (Some(swizzle), Some((&inner, outer))) = (buffer.swizzle, buffer.dims.split_last()) else {
            return;
        };
        let coordinate = |dim| coordinates.iter().find(|c| c.0 == dim).and_then(|c| c.1);
        let (mut row, mut weight) = (None, 1);
        for (&dim, &extent) in outer.iter().zip(&buffer.extents).rev() {
            if let Some(coordinate) = coordinate(dim) {
                row = Some(self.add_scaled(row, coordinate, Scalar::Const(i64::from(weight))));
            }
            weight *= extent;
        }
        let row = self.add_uniform(row, Scalar::Const(i64::from(rows)));
        let moves = self.swizzled_column(row, swizzle, swizzle.unit / buffer.element_bytes);
        let mut column = moves;
        if swizzle.span() > buffer.pitch
            && let Some(&neighbour) = outer.last()
        {
            // A power of two, as every swizzle through several rows has it.
            let bits = (buffer.pitch / buffer.element_bytes).ilog2();
            let other_row = self.emitter.vgpr(1);
            self.emitter.with(
                Opcode::VLshrrevB32,
                other_row,
                &[Scalar::Const(i64::from(bits)), Scalar::Reg(moves)],
            );
            self.move_along(coordinates, neighbour, other_row);
            column = self.emitter.vgpr(1);
            let within = Scalar::Const((1i64 << bits) - 1);
            self.emitter.with(Opcode::VAndB32, column, &[within, Scalar::Reg(moves)]);
        }
        self.move_along(coordinates, inner, column);
    }

    /// Changes the coordinates of all lanes along a dimension by XOR with `moves`.
    fn move_along(&mut self, coordinates: &mut Coordinates, dim: Dim, moves: Operand) {
        for known in coordinates.iter_mut().filter(|known| known.0 == dim) {
            known.1 = Some(match known.1 {
                None => moves,
                Some(own) => {
                    let moved = self.emitter.vgpr(1);
                    self.emitter.op(Opcode::VXorB32, &[moved, moves, own]);
                    moved
                }
            });
        }
    }

    /// Emits the load of one expanded node.
    pub(super) fn load_to_lds(
        &mut self,
        expansion: Expansion,
        memory: Entity,
        allocation: Entity,
    ) -> Result<(), Diagnostic> {
        let bytes = self.element_bytes(memory)?;
        let registers = self.get::<Placement>(expansion.logical)?.0.extent(Source::Register);
        let op = match registers * bytes {
            4 => Opcode::BufferLoadDwordLds,
            16 => Opcode::BufferLoadDwordx4Lds,
            bytes => return Err(self.bug(&format!("a load of {bytes} bytes to LDS"))),
        };
        let (descriptor, _, pieces) = self.pieces_of(expansion, registers, memory)?;
        let [piece] = pieces[..] else { return Err(self.bug("a load to LDS in pieces")) };
        let plan = self.to_lds_plans.get(expansion.logical);
        let plan = plan.ok_or_else(|| self.bug("a load to LDS without a plan"))?;
        let (wave, place) = (plan.wave, i64::from(plan.places[expansion.replica as usize]));
        let (base, place) = match (wave, self.copy_offset(allocation, expansion.iteration)?) {
            (Scalar::Reg(wave), Scalar::Reg(copy)) => {
                (Some(self.moved_address(wave, Scalar::Reg(copy))), place)
            }
            (Scalar::Reg(base), Scalar::Const(bytes)) | (Scalar::Const(bytes), Scalar::Reg(base)) => {
                (Some(base), place + bytes)
            }
            (Scalar::Const(wave), Scalar::Const(copy)) => (None, place + wave + copy),
        };
        let place = Scalar::Const(place);
        match base {
            None => self.emitter.with(Opcode::SMovB32, Operand::M0, &[place]),
            Some(base) => self.emitter.with(Opcode::SAddU32, Operand::M0, &[Scalar::Reg(base), place]),
        }
        let cache = self.cache_bits(expansion.logical);
        self.buffer_load_to_lds(op, piece, (descriptor, cache));
        Ok(())
    }
}

/// Bytes from one coordinate of each dimension of a buffer to the next.
fn steps(buffer: &LdsBuffer) -> SmallVec<[u32; 4]> {
    let (mut steps, mut step) = (SmallVec::<[u32; 4]>::new(), buffer.pitch);
    steps.push(buffer.element_bytes);
    for &extent in buffer.extents.iter().rev().skip(1) {
        steps.push(step);
        step *= extent;
    }
    steps.reverse();
    steps
}
