//! Where values are: their registers, and the elements in these.

use std::collections::VecDeque;

use bevy_ecs::prelude::*;

use super::ValueLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::arithmetic::conversions::{constant_register, widened_constant};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// Where a value is.
#[derive(Copy, Clone, Debug)]
pub(crate) enum ValuePlace {
    /// In consecutive registers, elements packed.
    Registers(Operand),
    /// In registers that do not follow each other: those in [`ValueLayer::scattered`] from this number on.
    Scattered(u32),
    /// The same in every lane: the bits of two registers that follow each other, which is one element of 64
    /// bits, or twice the same.
    Constant(u64),
    /// A number in an SGPR, or in a pair of them.
    Uniform(Operand),
    /// i1: compared anew at each use, since the lane masks of a whole tile would not fit into the SGPRs. How
    /// many comparisons that takes.
    Comparison(u32),
    /// i1 that takes too many of them: a register per element, which is not zero where it holds.
    Flags(Operand),
}

/// What is known of the contents of one virtual register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contents {
    /// Uses of all nodes that have these contents, anywhere in the kernel.
    pub(crate) uses: u32,
    /// Loops around the place where they are written.
    pub(crate) depth: u32,
}

impl Contents {
    /// Of no node yet.
    pub(super) const NONE: Contents = Contents { uses: 0, depth: u32::MAX };
}

/// An expanded value.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct NodeValue {
    /// Its place, once it has been computed.
    pub(super) place: Option<ValuePlace>,
    /// How often it is used.
    pub(crate) uses: u32,
}

/// The places of the values of nodes, and facts about the registers.
#[derive(Default)]
pub(crate) struct ValuePlaces {
    /// By entity index of the expanded value.
    pub(crate) of_nodes: Vec<NodeValue>,
    /// Registers of scattered values, one value after the other.
    pub(crate) scattered: Vec<Operand>,
    /// Values that have been brought together, and where their registers stand in `scattered`, which is valid
    /// where the copies are not.
    pub(super) settled: Vec<(Entity, u32)>,
    /// Values that have been computed where a condition needs them, and are valid there.
    pub(crate) demanded: Vec<Entity>,
    /// What is known of the contents of virtual registers, by number.
    pub(super) contents: Vec<Contents>,
    /// Instructions that finish a loaded value, emitted before its first use, by entity index.
    pub(crate) unfinished: Vec<Vec<Inst>>,
    /// Values that have such instructions, oldest first.
    pub(super) finishing: VecDeque<Entity>,
}

impl ValuePlaces {
    /// For so many entities, or a few more.
    pub(super) fn new(entities: usize) -> ValuePlaces {
        ValuePlaces {
            of_nodes: vec![NodeValue::default(); entities],
            contents: Vec::with_capacity(entities),
            ..ValuePlaces::default()
        }
    }

    /// True if a value has been computed.
    pub(crate) fn has(&self, node: Entity) -> bool {
        self.of_nodes.get(node.index_u32() as usize).is_some_and(|value| value.place.is_some())
    }

    /// Forgets the places of values that were computed on demand since there were `first` of them.
    pub(crate) fn forget_demanded(&mut self, first: usize) {
        for node in self.demanded.drain(first..) {
            self.of_nodes[node.index_u32() as usize].place = None;
        }
    }
}

/// Which element of an operand belongs to an element of a node: the one with the same coordinates.
pub(crate) enum Matching<'a> {
    /// The layouts are alike.
    Same,
    /// Found through the layouts of both.
    Coordinates { own: &'a Layout, other: &'a Layout },
    /// One of them has no layout, and so one element.
    First,
}

impl Matching<'_> {
    /// The operand's element for element `at`.
    pub(crate) fn element(&self, at: u32) -> u32 {
        let (own, other) = match *self {
            Matching::Same => return at,
            Matching::Coordinates { own, other } => (own, other),
            Matching::First => return 0,
        };
        let place = layout::Place { register: at, ..layout::Place::default() };
        let coordinate = |dim: Dim| own.coordinate(dim, place);
        let (mut index, mut weight) = (0, 1);
        for mode in other.of_source(Source::Register) {
            if let Some(dim) = mode.dim {
                index += coordinate(dim) / mode.stride % mode.extent * weight;
            }
            weight *= mode.extent;
        }
        index
    }
}

impl<'a> ValueLayer<'a> {
    pub(crate) fn set_place(&mut self, node: Entity, place: ValuePlace) {
        self.note_contents(node, &place);
        self.places.of_nodes[node.index_u32() as usize].place = Some(place);
    }

    pub(crate) fn place(&self, node: Entity) -> Result<&ValuePlace, Diagnostic> {
        let value = self.places.of_nodes.get(node.index_u32() as usize);
        let place = value.and_then(|value| value.place.as_ref());
        place.ok_or_else(|| Diagnostic::bug("a value is used before it is computed"))
    }

    /// A value of `elements` elements in VGPRs, constants spread out.
    pub(crate) fn in_registers(
        &mut self,
        node: Entity,
        elements: u32,
        bytes: u32,
    ) -> Result<Operand, Diagnostic> {
        self.finish(node);
        match *self.place(node)? {
            ValuePlace::Registers(registers) => Ok(registers),
            ValuePlace::Scattered(first) => Ok(self.gathered(first, (elements * bytes).div_ceil(4))),
            ValuePlace::Constant(bits) => {
                let width = (elements * bytes).div_ceil(4);
                let registers = self.emitter.vgpr(width);
                for at in 0..width {
                    let value = constant_register(bits, at);
                    self.emitter.with(Opcode::VMovB32, registers.offset(at), &[value]);
                }
                Ok(registers)
            }
            ValuePlace::Uniform(register) => {
                let width = bytes.div_ceil(4);
                let copy = self.emitter.vgpr(width);
                for at in 0..width {
                    self.emitter.op(Opcode::VMovB32, &[copy.offset(at), register.offset(at)]);
                }
                Ok(copy)
            }
            ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                Err(Diagnostic::bug("a condition is used as a value"))
            }
        }
    }

    /// Element `at` of a value, widened to 32 bits unless it has 64: a constant, a VGPR or a pair, or the
    /// SGPRs of a scalar argument.
    pub(crate) fn element(&mut self, node: Entity, at: u32, dtype: DType) -> Result<Scalar, Diagnostic> {
        self.finish(node);
        match *self.place(node)? {
            ValuePlace::Constant(bits) if dtype.bits() == 64 => Ok(Scalar::Const(bits as i64)),
            ValuePlace::Constant(bits) => Ok(Scalar::Const(i64::from(widened_constant(bits as u32, dtype)))),
            ValuePlace::Uniform(register) => Ok(Scalar::Reg(register)),
            // Only elements that fill registers are scattered.
            ValuePlace::Scattered(first) => {
                let at = first + at * dtype.bytes() / 4;
                Ok(Scalar::Reg(self.places.scattered[at as usize]))
            }
            ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                Err(Diagnostic::bug("a condition is used as a number"))
            }
            ValuePlace::Registers(registers) => {
                let bytes = dtype.bytes();
                let register = registers.offset(at * bytes / 4);
                let bit = at * bytes % 4 * 8;
                Ok(Scalar::Reg(self.widen(register, bit, dtype)))
            }
        }
    }

    pub(crate) fn elements(&self, logical: Entity) -> u32 {
        self.kernel.world.get::<Placement>(logical).map_or(1, |p| p.0.extent(Source::Register))
    }

    pub(crate) fn logical_dtype(&self, node: Entity) -> Result<DType, Diagnostic> {
        let logical = Expansion::at(self.kernel.world, node).logical;
        self.get::<ValueType>(logical)?.dtype.ok_or_else(|| Diagnostic::bug("a value without dtype"))
    }

    /// Which elements of `operand` belong to those of a node.
    pub(crate) fn matching(&self, logical: Entity, operand: Entity) -> Result<Matching<'a>, Diagnostic> {
        let source = Expansion::at(self.kernel.world, operand).logical;
        let layouts =
            (self.kernel.world.get::<Placement>(logical), self.kernel.world.get::<Placement>(source));
        Ok(match layouts {
            (Some(own), Some(other)) if own.0 == other.0 => Matching::Same,
            (Some(own), Some(other)) => Matching::Coordinates { own: &own.0, other: &other.0 },
            _ => Matching::First,
        })
    }

    /// Writes a place into registers.
    pub(crate) fn copy_into(
        &mut self,
        to: Operand,
        place: &ValuePlace,
        width: u32,
    ) -> Result<(), Diagnostic> {
        for at in 0..width {
            let source = match place {
                ValuePlace::Registers(from) => Scalar::Reg(from.offset(at)),
                ValuePlace::Scattered(first) => Scalar::Reg(self.places.scattered[(first + at) as usize]),
                ValuePlace::Constant(bits) => constant_register(*bits, at),
                ValuePlace::Uniform(register) => Scalar::Reg(register.offset(at)),
                ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                    return Err(Diagnostic::bug("a condition is carried as a value"));
                }
            };
            self.emitter.with(Opcode::VMovB32, to.offset(at), &[source]);
        }
        Ok(())
    }

    /// Registers of a value.
    pub(crate) fn width(&self, node: Entity) -> Result<u32, Diagnostic> {
        let logical = Expansion::at(self.kernel.world, node).logical;
        let elements =
            self.kernel.world.get::<Placement>(logical).map_or(1, |p| p.0.extent(Source::Register));
        let bytes = self.element_bytes(logical)?;
        Ok((elements * bytes).div_ceil(4))
    }

    /// Finishes a value, and brings the elements of one that is scattered together.
    pub(crate) fn settle(&mut self, node: Entity) -> Result<(), Diagnostic> {
        self.finish(node);
        if let ValuePlace::Scattered(first) = *self.place(node)? {
            let width = self.width(node)?;
            let registers = self.gathered(first, width);
            self.set_place(node, ValuePlace::Registers(registers));
            self.places.settled.push((node, first));
        }
        Ok(())
    }

    /// Scatters again what has been brought together since there were `settled` such values: where a region
    /// ends that may not have run, nothing has written the copies.
    pub(super) fn scatter_again(&mut self, settled: usize) {
        for (node, first) in self.places.settled.drain(settled..) {
            self.places.of_nodes[node.index_u32() as usize].place = Some(ValuePlace::Scattered(first));
        }
    }

    /// Copies of scattered registers, side by side.
    fn gathered(&mut self, first: u32, width: u32) -> Operand {
        let registers = self.emitter.vgpr(width);
        for at in 0..width {
            let from = self.places.scattered[(first + at) as usize];
            self.emitter.op(Opcode::VMovB32, &[registers.offset(at), from]);
        }
        registers
    }
}
