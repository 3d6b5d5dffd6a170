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
use crate::ir::node::{self, *};

impl ControlLayer<'_> {
    /// Loads the arguments and names the registers that the hardware sets. Arguments at the beginning that
    /// fit into `user_sgprs` after the pointer to the segment are already in registers.
    pub(crate) fn prologue(&mut self, arguments: &[Entity], user_sgprs: u32) -> Result<(), Diagnostic> {
        let geometry = self.kernel.geometry;
        let mut offset: u32 = 0;
        // In the order of declaration, each aligned to its size, as C compilers lay out the parameters of a
        // kernel.
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
        let room = user_sgprs.saturating_sub(FIRST_SGPR);
        let fits = |end: u32| end / 4 <= room;
        let preloaded =
            self.emitter.out.arguments.iter().map(|slot| slot.end()).take_while(|&end| fits(end)).last();
        self.emitter.out.preloaded_dwords = preloaded.unwrap_or(0) / 4;

        // A kernel without arguments gets no pointer to them.
        let kernarg = self.emitter.sgpr(2);
        let mut next_sgpr = 0;
        if offset > 0 {
            self.fix(kernarg, Operand::sgpr(0));
            next_sgpr = FIRST_SGPR + self.emitter.out.preloaded_dwords;
        }
        self.kernel.counts_workgroups = geometry.counts_workgroups() || geometry.persistent.is_some();
        let used = |axis| geometry.dims.values().any(|d| d.workgroup.is_some_and(|w| w.0 == axis));
        // Axes of which workgroups that share the grid need the numbers.
        let mut shared = [false; 3];
        for axis in 0..3 {
            let number = GridSymbol::Workgroup(axis);
            let counted = || {
                let number = number.symbol();
                let chosen = geometry.dims.values().filter_map(|dim| dim.iterations);
                let mut limits = chosen.flat_map(|(first, end)| [first, end]);
                limits.any(|limit| self.arena.symbols(limit).contains(&number))
            };
            let counted = self.kernel.counts_workgroups && counted();
            let wanted = counted
                || match geometry.places.is_empty() {
                    true => used(axis),
                    false => {
                        let number = number.symbol();
                        let places = (0..).zip(&geometry.places).filter(|&(axis, _)| used(axis));
                        places.into_iter().any(|(_, &place)| self.arena.symbols(place).contains(&number))
                    }
                };
            if wanted && geometry.persistent.is_some() {
                shared[axis as usize] = true;
            } else if wanted {
                let id = self.emitter.sgpr(1);
                self.fix(id, Operand::sgpr(next_sgpr));
                self.workgroup[axis as usize] = id;
                self.emitter.out.workgroup_ids[axis as usize] = true;
                next_sgpr += 1;
                if self.kernel.counts_workgroups {
                    self.symbols.push((number.symbol(), id));
                }
            }
        }
        let mut number = None;
        if geometry.persistent.is_some() {
            let id = self.emitter.sgpr(1);
            self.fix(id, Operand::sgpr(next_sgpr));
            self.emitter.out.workgroup_ids[0] = true;
            number = Some(id);
        }
        let thread = self.emitter.vgpr(1);
        self.fix(thread, Operand::vgpr(0));
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
        self.thread_position(thread);
        if let Some(number) = number {
            self.open_tiles(number, shared)?;
        }
        for (axis, &place) in (0..).zip(&geometry.places).filter(|&(axis, _)| used(axis)) {
            let place = self.scalar(place)?;
            self.workgroup[axis as usize] = self.emitter.in_sgpr(place);
        }
        Ok(())
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
        }
        register
    }
}
