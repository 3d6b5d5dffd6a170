//! Addresses of lanes in an LDS buffer, and the elements that lanes load which fill one without registers:
//! swizzles exchange units of rows, in the one as in the other.
//!
//! The lanes of a wave fill LDS side by side starting at the address in M0, so a swizzled buffer is filled by
//! lanes that load other columns of their rows, or of rows next to theirs.

use smallvec::SmallVec;

use super::AddressLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::layout::{Dim, Layout};
use crate::passes::facts::{LdsBuffer, Swizzle};
use crate::passes::lds::arrange_lds::waves_change_phases;

/// Coordinates that lane and wave give, along each dimension; `None` where they are zero.
pub(super) type Coordinates = SmallVec<[(Dim, Option<Operand>); 4]>;

/// The row of a buffer at coordinates: all dimensions but the innermost, the last of them fastest.
pub(super) fn row_of(buffer: &LdsBuffer, coordinate: impl Fn(Dim) -> u32) -> u32 {
    let outer = buffer.dims.split_last().map_or(&[][..], |s| s.1);
    outer.iter().zip(&buffer.extents).fold(0, |row, (&dim, &extent)| row * extent + coordinate(dim))
}

impl AddressLayer<'_> {
    /// Byte address, inside the buffer, of the first element of the lane.
    pub(super) fn lane_address(&mut self, layout: &Layout, buffer: &LdsBuffer) -> Operand {
        let Some((&inner, outer)) = buffer.dims.split_last() else {
            return self.add_uniform(None, Scalar::ZERO);
        };
        let bytes = buffer.element_bytes;
        // Rows count all dimensions but the innermost, the last of them fastest.
        let (mut row, mut wave_rows) = (None, Scalar::ZERO);
        let mut weight = 1;
        for (&dim, &extent) in outer.iter().zip(&buffer.extents).rev() {
            for (digit, stride) in self.lane_parts(layout, dim) {
                row = Some(self.add_scaled(row, digit, Scalar::Const(i64::from(stride * weight))));
            }
            let wave = self.wave_part(layout, dim);
            let wave = self.emitter.mul(wave, Scalar::Const(i64::from(weight)));
            wave_rows = self.emitter.add(wave_rows, wave);
            weight *= extent;
        }
        if waves_change_phases(buffer, layout) {
            row = Some(self.add_uniform(row, wave_rows));
            wave_rows = Scalar::ZERO;
        }
        let mut column = None;
        for (digit, stride) in self.lane_parts(layout, inner) {
            column = Some(self.add_scaled(column, digit, Scalar::Const(i64::from(stride * bytes))));
        }
        let wave_column = self.wave_part(layout, inner);
        let mut wave_bytes = self.emitter.mul(wave_column, Scalar::Const(i64::from(bytes)));
        let pitch = Scalar::Const(i64::from(buffer.pitch));
        if let (Some(swizzle), Some(first)) = (buffer.swizzle, row)
            && swizzle.span() > buffer.pitch
        {
            // Units are exchanged between rows as well.
            let moved = self.swizzled_column(first, swizzle, swizzle.unit);
            let plain = self.add_scaled(column, first, pitch);
            let plain = self.add_uniform(Some(plain), wave_bytes);
            let swizzled = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VXorB32, &[swizzled, moved, plain]);
            (row, column, wave_bytes) = (None, Some(swizzled), Scalar::ZERO);
        } else if let (Some(swizzle), Some(row)) = (buffer.swizzle, row) {
            let moved = self.swizzled_column(row, swizzle, swizzle.unit);
            (column, wave_bytes) = (Some(self.exchanged(moved, column, wave_bytes)), Scalar::ZERO);
        }
        let address = match (row, column) {
            (Some(row), column) => Some(self.add_scaled(column, row, pitch)),
            (None, column) => column,
        };
        let wave_rows = self.emitter.mul(wave_rows, pitch);
        let wave = self.emitter.add(wave_rows, wave_bytes);
        self.add_uniform(address, wave)
    }

    /// Columns of lanes and of the wave, XORed with what moves them.
    fn exchanged(&mut self, moved: Operand, column: Option<Operand>, wave_bytes: Scalar) -> Operand {
        let mut all = moved;
        if let Some(column) = column {
            all = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VXorB32, &[all, moved, column]);
        }
        if wave_bytes == Scalar::ZERO {
            return all;
        }
        let out = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VXorB32, out, &[wave_bytes, Scalar::Reg(all)]);
        out
    }

    /// The columns that a swizzle XORs into those of a row, with units of `unit` columns.
    fn swizzled_column(&mut self, row: Operand, swizzle: Swizzle, unit: u32) -> Operand {
        let bits = Scalar::Const(i64::from(swizzle.phases.ilog2()));
        let mut digit = |rows: u32| {
            let (digit, shift) = (self.emitter.vgpr(1), Scalar::Const(i64::from(rows.ilog2())));
            self.emitter.with(Opcode::VBfeU32, digit, &[Scalar::Reg(row), shift, bits]);
            digit
        };
        let mut phase = digit(swizzle.group);
        if let Some(block) = swizzle.block {
            let (of_group, of_block) = (phase, digit(block));
            phase = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VXorB32, &[phase, of_group, of_block]);
        }
        self.scaled(phase, Scalar::Const(i64::from(unit)))
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
}
