//! The beginning of a kernel: its arguments, and the registers that the hardware sets.

use bevy_ecs::prelude::*;

use super::ControlLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::lowered::ArgumentSlot;
use crate::codegen::lower::preload::FIRST_SGPR;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::constraint::GridSymbol;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::facts::DimGeometry;
use crate::ir::node::{self, *};

impl ControlLayer<'_> {
    /// Loads the arguments and names the registers that the hardware sets. Arguments at the beginning that
    /// fit into `user_sgprs` after the pointer to the segment are already in registers.
    pub(crate) fn prologue(&mut self, arguments: &[Entity], user_sgprs: u32) -> Result<(), Diagnostic> {
        let geometry = self.kernel.geometry;
        self.lay_out_arguments(arguments)?;
        let room = user_sgprs.saturating_sub(FIRST_SGPR);
        let fits = |end: u32| end / 4 <= room;
        let preloaded =
            self.emitter.out.arguments.iter().map(|slot| slot.end()).take_while(|&end| fits(end)).last();
        self.emitter.out.preloaded_dwords = preloaded.unwrap_or(0) / 4;

        // A kernel without arguments gets no pointer to them.
        let kernarg = self.emitter.sgpr(2);
        let mut next_sgpr = 0;
        if self.emitter.out.kernarg_bytes > 0 {
            self.fix(kernarg, Operand::sgpr(0));
            next_sgpr = FIRST_SGPR + self.emitter.out.preloaded_dwords;
        }
        self.kernel.counts_workgroups = geometry.counts_workgroups() || geometry.persistent.is_some();
        // Axes of which workgroups that share the grid need the numbers.
        let wanted = [0, 1, 2].map(|axis| self.wants_number(axis));
        let mut number = None;
        if geometry.persistent.is_some() {
            number = Some(self.workgroup_number(0, next_sgpr));
        } else {
            for axis in (0..3).filter(|&axis| wanted[axis as usize]) {
                let id = self.workgroup_number(axis, next_sgpr);
                self.workgroup[axis as usize] = id;
                next_sgpr += 1;
                if self.kernel.counts_workgroups {
                    self.symbols.push((GridSymbol::Workgroup(axis).symbol(), id));
                }
            }
        }
        let thread = self.emitter.vgpr(1);
        self.fix(thread, Operand::vgpr(0));
        self.load_arguments(kernarg);
        self.thread_position(thread);
        if let Some(number) = number {
            self.open_tiles(number, wanted)?;
        }
        for (axis, &place) in (0..).zip(&geometry.places) {
            if self.spreads(axis) {
                let place = self.scalar(place)?;
                self.workgroup[axis as usize] = self.emitter.in_sgpr(place);
            }
        }
        Ok(())
    }

    /// The places of the arguments in their segment: in the order of declaration, each aligned to its size,
    /// as C compilers lay out the parameters of a kernel.
    fn lay_out_arguments(&mut self, arguments: &[Entity]) -> Result<(), Diagnostic> {
        let geometry = self.kernel.geometry;
        let mut offset: u32 = 0;
        for &argument in arguments {
            let slot = match self.kernel.nodes.get(argument).map(|node| *node.op) {
                Ok(Op::Scalar) => {
                    let bytes = self.element_bytes(argument)?;
                    ArgumentSlot::Scalar { scalar: argument, bytes, offset: offset.next_multiple_of(bytes) }
                }
                _ => ArgumentSlot::Pointer { memory: argument, offset: offset.next_multiple_of(8) },
            };
            self.emitter.out.arguments.push(slot);
            offset = slot.end();
        }
        for &symbol in &geometry.dynamic {
            self.emitter.out.arguments.push(ArgumentSlot::Symbol { symbol, offset });
            offset += 4;
        }
        self.emitter.out.kernarg_bytes = offset;
        Ok(())
    }

    /// True if workgroups along an axis of the grid have different tiles.
    fn spreads(&self, axis: u32) -> bool {
        let mut dims = self.kernel.geometry.dims.values();
        dims.any(|dim| dim.workgroup.is_some_and(|workgroup| workgroup.0 == axis))
    }

    /// True if the kernel needs the number that the hardware gives a workgroup along one of its axes.
    fn wants_number(&self, axis: u32) -> bool {
        let geometry = self.kernel.geometry;
        let names = |expr| self.arena.symbols(expr).contains(&GridSymbol::Workgroup(axis).symbol());
        let counted = || {
            let mut limits = geometry.dims.values().flat_map(DimGeometry::limits);
            limits.any(|(first, end)| names(first) || names(end))
        };
        if self.kernel.counts_workgroups && counted() {
            return true;
        }
        match geometry.places.is_empty() {
            true => self.spreads(axis),
            false => (0..).zip(&geometry.places).any(|(axis, &place)| self.spreads(axis) && names(place)),
        }
    }

    /// The register in which the hardware puts the number of a workgroup along an axis.
    fn workgroup_number(&mut self, axis: u32, sgpr: u32) -> Operand {
        let id = self.emitter.sgpr(1);
        self.fix(id, Operand::sgpr(sgpr));
        self.emitter.out.workgroup_ids[axis as usize] = true;
        id
    }

    fn load_arguments(&mut self, kernarg: Operand) {
        let geometry = self.kernel.geometry;
        for at in 0..self.emitter.out.arguments.len() {
            match self.emitter.out.arguments[at] {
                ArgumentSlot::Pointer { memory, offset } => {
                    let pointer = self.argument(2, Opcode::SLoadDwordx2, kernarg, offset);
                    self.pointers.insert(memory, pointer);
                }
                ArgumentSlot::Scalar { scalar, bytes, offset } => {
                    let load = if bytes == 8 { Opcode::SLoadDwordx2 } else { Opcode::SLoadDword };
                    let register = self.argument(bytes / 4, load, kernarg, offset);
                    self.set_place(scalar, ValuePlace::Uniform(register));
                    if geometry.chooses_iterations()
                        && let Some(name) = self.kernel.world.get::<node::Name>(scalar)
                    {
                        let symbol = Symbol::new(&name.0);
                        if !geometry.dynamic.contains(&symbol) && self.chooses_iterations(symbol) {
                            self.symbols.push((symbol, register));
                        }
                    }
                }
                ArgumentSlot::Symbol { symbol, offset } => {
                    let register = self.argument(1, Opcode::SLoadDword, kernarg, offset);
                    self.symbols.push((symbol, register));
                }
            }
        }
    }

    fn fix(&mut self, register: Operand, physical: Operand) {
        if let Some((id, _)) = register.as_virtual() {
            self.emitter.out.fixed.push((id, physical));
        }
    }

    /// The registers of an argument: where firmware has put it, or where it is loaded to.
    fn argument(&mut self, width: u32, op: Opcode, kernarg: Operand, offset: u32) -> Operand {
        let register = self.emitter.sgpr(width);
        if offset / 4 < self.emitter.out.preloaded_dwords {
            self.fix(register, Operand::sgpr(FIRST_SGPR + offset / 4));
        } else {
            self.emitter.push(crate::codegen::isa::Inst::new(op, &[register, kernarg]).imm(offset));
            self.emitter.loaded_arguments.push((register, width));
        }
        register
    }
}
