//! Places of elements in the whole tensor, and sizes of dimensions, as values.
//!
//! `Op::SelfIndex` is the place of each element along a dimension of the whole tensor, i32, in the layout of
//! its users. Masks, one-hot values, positions of extrema and comparisons of places are arithmetic on it.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::passes::facts::DimGeometry;
use crate::passes::loops::expand::{Expansion, Iteration};

impl OperationLayer<'_> {
    /// The place along a dimension of the first element that a lane holds in this layout.
    pub(super) fn first_place(
        &mut self,
        layout: &Layout,
        expansion: Expansion,
        dim: Dim,
    ) -> Result<Operand, Diagnostic> {
        let lane = self.vector_coordinate(layout, dim);
        let first = self.first_element(dim, expansion.iteration)?;
        Ok(self.add_uniform(lane, first))
    }

    /// One expanded `self_index`: an integer for each element that a lane holds.
    pub(crate) fn self_index(
        &mut self,
        node: Entity,
        expansion: Expansion,
        dim: Dim,
    ) -> Result<(), Diagnostic> {
        let scalar = Layout::default();
        let layout =
            self.kernel.world.get::<Placement>(expansion.logical).map_or(&scalar, |placement| &placement.0);
        let base = self.first_place(layout, expansion, dim)?;
        let registers = layout.extent(Source::Register);
        let value = self.emitter.vgpr(registers);
        for register in 0..registers {
            let place = layout::Place { register, replica: expansion.replica, ..layout::Place::default() };
            let further = Scalar::Const(i64::from(layout.coordinate(dim, place)));
            let to = value.offset(register);
            match further {
                Scalar::ZERO => self.emitter.op(Opcode::VMovB32, &[to, base]),
                Scalar::Const(_) | Scalar::Reg(_) => {
                    self.emitter.with(Opcode::VAddU32, to, &[further, Scalar::Reg(base)])
                }
            }
        }
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// One `size`.
    pub(crate) fn size(&mut self, node: Entity, dim: Dim) -> Result<(), Diagnostic> {
        let size = self.kernel.geometry.dim(dim).size;
        let place = match self.scalar(size)? {
            Scalar::Const(size) => ValuePlace::Constant(u64::from(size as u32)),
            Scalar::Reg(register) => ValuePlace::Uniform(register),
        };
        self.set_place(node, place);
        Ok(())
    }

    /// One `workgroup_id`.
    pub(crate) fn workgroup_id(&mut self, node: Entity, axis: u32) -> Result<(), Diagnostic> {
        let spread = |dim: &DimGeometry| dim.workgroup.is_some_and(|(own, _)| own == axis);
        // Along an axis that no dimension is spread over there is one workgroup.
        let place = match self.kernel.geometry.dims.values().any(spread) {
            true => ValuePlace::Uniform(self.workgroup[axis as usize]),
            false => ValuePlace::Constant(0),
        };
        self.set_place(node, place);
        Ok(())
    }

    /// One `iteration`.
    pub(crate) fn iteration(
        &mut self,
        node: Entity,
        expansion: Expansion,
        dim: Dim,
    ) -> Result<(), Diagnostic> {
        let number = self.iteration_number(dim, expansion.iteration)?;
        let place = match number.ok_or_else(|| Diagnostic::bug("an iteration of no loop"))? {
            Scalar::Const(number) => ValuePlace::Constant(u64::from(number as u32)),
            Scalar::Reg(register) => ValuePlace::Uniform(register),
        };
        self.set_place(node, place);
        Ok(())
    }

    /// The first element along a dimension of the workgroup's tile in an iteration.
    fn first_element(&mut self, dim: Dim, iteration: Iteration) -> Result<Scalar, Diagnostic> {
        let entry = self.kernel.geometry.dim(dim);
        let (workgroup, tiling) = (entry.workgroup, entry.tiling);
        let mut first = Scalar::ZERO;
        if let Some((axis, tile)) = workgroup {
            let id = Scalar::Reg(self.workgroup[axis as usize]);
            first = self.emitter.mul(id, Scalar::Const(i64::from(tile)));
        }
        if let Some(tile) = tiling
            && let Some(number) = self.iteration_number(dim, iteration)?
        {
            let start = self.emitter.mul(number, Scalar::Const(i64::from(tile)));
            first = self.emitter.add(first, start);
        }
        Ok(first)
    }
}
